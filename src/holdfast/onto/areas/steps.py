"""A whole, non-negative table of margins in every area, in three steps, each with its evidence.

1. The best linear estimate of all outputs (docs/theory/areas-and-margins.md). 2. From the roots down, the cells of an
area are shared out among its parts in numbers ≥ 0 that add up and come nearest to the estimated margins of the parts.
3. They are rounded to whole numbers that add up and keep the parts' totals, before the next level is shared out.
Everything holds exactly, since all outputs are counted from the cells of the leaves. It is not the nearest such
table: the gap is how much further it lies from the noisy values than the best linear estimate, which nothing that
adds up comes below.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from holdfast.arguments import Refused
from holdfast.arrays import Array, Bools, Floats, Ints
from holdfast.domains import Hierarchy
from holdfast.onto.areas.programs import shared_atoms, shared_cells
from holdfast.onto.areas.shared_out import Sharing, rounded
from holdfast.queries.areas.area_margins import AreaMargins
from holdfast.queries.areas.rules import Rules
from holdfast.trees.normal.residuals import Residuals

#: Numbers, areas times cells, up to which cells are shared out in memory: about 24 bytes each at the peak.
MOST_SHARED = 400_000_000
#: What areas are told by: all measurements, those in them and in their parts (BlueDown), or their own (TopDown).
EVERYTHING, BELOW, OWN = "everything", "below", "own"


@dataclass(frozen=True, eq=False)
class Steps:
    """A query with Gaussian measurements, ready to share out cells; `whole`: whole numbers, `signed`: of any sign.

    `empty`: cells of the leaves, (leaves, cells), that are 0. `rules`: what is known or bounded in areas besides.
    `source`: what areas are told by. Of a part of a larger hierarchy `numbers` are the areas' numbers in the whole, and
    `known` is what is told about the areas of each depth there.
    """

    residuals: Residuals
    whole: bool
    signed: bool = False
    empty: Bools | None = None
    rules: Rules | None = None
    source: str = EVERYTHING
    numbers: Ints | None = None
    known: tuple[Sharing, ...] | None = None

    def estimated(self, noisy: Floats) -> Floats:
        """Return what is told about all outputs: estimates from all measurements, from those below, or these."""
        if self.source == OWN:
            return noisy
        return self.residuals.estimated(noisy, below=self.source == BELOW)

    @cached_property
    def _empty(self) -> Bools | None:
        """The cells of every area that are 0: those that are so in all leaves below it."""
        tree = self.residuals.query.hierarchy
        return None if self.empty is None else ~filled_areas(tree, ~self.empty)

    @cached_property
    def told(self) -> AreaMargins:
        """The query with what lower levels tell about each area: margins that they ask and the area does not."""
        query, tree = self.residuals.query, self.residuals.query.hierarchy
        if self.known is not None:
            return AreaMargins.of(tree, query.table, tuple(each.margins for each in self.known))
        if self.source == OWN:
            return query
        shallowest = int(tree.depth[tree.leaves].min())
        keep = []
        for depth, kept in enumerate(query.keep):
            # Down to the first leaves the areas of a lower level cover this one.
            below = dict.fromkeys(axes for lower in query.keep[depth + 1 : shallowest + 1] for axes in lower)
            table = query.table
            more = (axes for axes in below if not any(axes != other and table.tells(other, axes) for other in below))
            keep.append((*kept, *(axes for axes in more if not any(table.tells(other, axes) for other in kept))))
        return AreaMargins.of(tree, query.table, tuple(keep))

    @cached_property
    def equivariant(self) -> bool:
        """Whether cells of any sign move with the truth: every area is told all its cells."""
        every = tuple(range(len(self.told.table.shape)))
        return all(every in kept for kept in self.told.keep)

    def told_by(self, estimate: Floats) -> Floats:
        told, query = self.told, self.residuals.query
        if told.keep == query.keep:
            return estimate
        result = np.empty(told.n)
        for g, (depth, axes) in enumerate(told.groups):
            source = next(at for at, kept in enumerate(query.keep) if at >= depth and axes in kept)
            values = estimate[query.outputs(query.groups.index((source, axes)))]
            node = query.hierarchy.nodes_at(source)
            for _ in range(source - depth):
                node = query.hierarchy.parents[node]
            nodes, place = np.unique(node, return_inverse=True)
            total = np.zeros((nodes.size, values.shape[1]))
            np.add.at(total, place, values)
            result[told.outputs(g)] = total
        return result

    @cached_property
    def levels(self) -> Sequence[Sharing]:
        """What is told about the areas of each depth, margins weighted by their precision after estimation."""
        if self.known is not None:
            return self.known
        measured = dict(zip(self.residuals.query.groups, self.residuals.precisions, strict=True))
        known = Residuals(self.told, tuple(measured.get(group, 0.0) for group in self.told.groups))
        by_group = list(self.residuals.precisions)
        if self.source != OWN:
            spreads = known.variances_by_group(below=self.source == BELOW)
            by_group = [1 / max(float(at_nodes.mean()), 1e-12) for at_nodes in spreads]
        found = []
        for depth, kept in enumerate(self.told.keep):
            mine = [by_group[g] for g, (at, _) in enumerate(self.told.groups) if at == depth]
            found.append(Sharing(self.told.table, kept, tuple(mine)))
        return found

    def cells(self, estimate: Floats, coin: int) -> Array:
        """Return the cells of all leaves, (leaves, cells), from estimates of all outputs."""
        return self.shared_out(estimate, coin)[0]

    def shared_out(self, estimate: Floats, coin: int, roots: Array | None = None) -> tuple[Array, Floats]:
        """Return the same, and the gap of every area that has parts, 0 elsewhere; `roots`: cells of these, if known.

        The gap: how much further its parts lie from what is told about them than the nearest cells of any sign, whole
        or not, that add up to the area's.
        """
        query, tree = self.residuals.query, self.residuals.query.hierarchy
        told = self.told_by(estimate)
        table = np.zeros((tree.n, query.table.cells), np.int64 if self.whole else np.float64)
        gaps, first = np.zeros(tree.n), 0
        if roots is not None:
            table[tree.roots], first = roots, 1
        alone = self.numbers is not None  # others work on other parts
        with ThreadPoolExecutor(1 if alone else os.cpu_count() or 1) as pool:
            for depth in range(first, len(tree.levels)):
                parents = [-1] if depth == 0 else np.unique(tree.parents[tree.nodes_at(depth)]).tolist()

                def one(parent: int, depth: int = depth) -> None:
                    parts = tree.roots if parent < 0 else tree.children_of(parent)
                    above = None if parent < 0 else table[parent]
                    if above is None:
                        for root in parts:
                            table[root] = self._shared(depth, np.array([root]), None, told, coin)[0][0]
                    else:
                        table[parts], gaps[parent] = self._shared(depth, parts, above, told, coin)

                list(pool.map(one, parents))
        return np.asarray(table[tree.leaves]), gaps

    def told_at(self, depth: int, parts: Ints, told: Floats) -> list[Floats]:
        """Return what is told about some areas of a level, margin by margin, (areas, entries)."""
        found = []
        for g, (at, _) in enumerate(self.told.groups):
            if at == depth:
                begin = self.told.starts[parts] + self.told.places[g][1]
                found.append(told[begin[:, None] + np.arange(self.told.sizes[g])])
        return found

    def _shared(self, depth: int, parts: Ints, above: Array | None, estimate: Floats, coin: int) -> tuple[Array, float]:
        sharing, told = self.levels[depth], self.told_at(depth, parts, estimate)
        empty = None if self._empty is None else self._empty[parts]
        found: Array = sharing.shared(above, told, parts.size, signed=self.signed, empty=empty)
        if self.whole:
            number = int(parts[0] if self.numbers is None else self.numbers[parts[0]])
            coins = np.random.default_rng([coin, number]).random(found.shape)
            found = rounded(found, above, coins) if self.rules is None else self._ruled(parts, above, found, coins)
        if above is None or parts.size == 1:
            return found, 0.0
        nearest = sharing.shared(above, told, parts.size, signed=True)
        return found, max(sharing.distance(found, told) - sharing.distance(nearest, told), 0.0)

    def _ruled(self, parts: Ints, above: Array | None, near: Floats, coins: Floats) -> Ints:
        """Return whole cells of the parts near to real ones that keep all rules: sums over atoms first."""
        assert self.rules is not None
        if above is not None and parts.size == 1:
            return np.asarray(near).astype(np.int64)
        atom_of, atoms = self.rules.atom_of, self.rules.inside.shape[1]

        def by_atom(cells: Array) -> Array:
            total = np.zeros((len(cells), atoms), cells.dtype)
            np.add.at(total.T, atom_of, cells.T)
            return total

        here = by_atom(near)
        sums = shared_atoms(
            self.rules, parts, None if above is None else by_atom(above[None])[0], here, coins[:, :atoms]
        )
        filled = np.where(here > 0, sums / np.where(here > 0, here, 1.0), 1.0)
        return shared_cells(atom_of, sums, above, near * filled[:, atom_of], coins)


def filled_areas(tree: Hierarchy, leaves: Bools) -> Bools:
    """Which cells of every area some leaf below it has, (areas, cells)."""
    some = np.zeros((tree.n, leaves.shape[1]), bool)
    some[tree.leaves] = leaves
    for depth in range(len(tree.levels) - 1, 0, -1):
        nodes = tree.nodes_at(depth)
        np.logical_or.at(some, tree.parents[nodes], some[nodes])
    return some


def refuse_too_many_cells(query: AreaMargins) -> None:
    """Refuse shapes whose cells do not fit in memory, by sizes alone, which are public."""
    numbers = query.hierarchy.n * query.table.cells
    if numbers > MOST_SHARED:
        here, most = (round(24 * each / 2**30) for each in (numbers, MOST_SHARED))
        raise Refused(
            f"{query.hierarchy.n:,} areas with {query.table.cells:,} cells each are shared out in about {here:,} GiB "
            f"of memory, more than is offered ({most:,} GiB): make one release for each place of an upper level, leave "
            "out an axis, or ask for real numbers without nonnegative"
        )


def empty_cells(query: AreaMargins, outputs: Ints) -> Bools | None:
    """Return the cells of the leaves, (leaves, cells), that are 0 since some of these outputs, which hold them, are."""
    if not outputs.size:
        return None
    chosen = np.zeros(query.n, bool)
    chosen[outputs] = True
    found = np.zeros((query.hierarchy.n_leaves, query.table.cells), bool)
    above = query.paths()
    for group, (depth, axes) in enumerate(query.groups):
        mine = chosen[query.outputs(group)]
        if mine.any():
            place = np.full(query.hierarchy.n, -1)
            place[query.places[group][0]] = np.arange(len(mine))
            below = np.flatnonzero(above[depth] >= 0)
            found[below] |= mine[place[above[depth][below]]][:, query.table.margin_index(axes)]
    return found
