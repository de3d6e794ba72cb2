"""Margins of a cube in every area of a hierarchy: a record adds 1 to each margin of its leaf and of its ancestors."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import csc_array, csr_array

from holdfast.arguments import Refused, one_of, shown, whole
from holdfast.arrays import Array, Bools, Ints
from holdfast.domains import Cube, Hierarchy
from holdfast.queries.areas.area_classes import Spans
from holdfast.queries.areas.area_equalities import Axes, Keep, area_equalities
from holdfast.queries.areas.area_places import AreaPlaces
from holdfast.queries.areas.rules import Rules
from holdfast.queries.areas.tree_counts import MOST_COLUMN_ENTRIES, TreeCounts, meeting_paths
from holdfast.queries.columns import Columns
from holdfast.queries.exact_weights import Bound, Weights
from holdfast.queries.identity import MOST_ASKED
from holdfast.queries.kinds import Kind, maximal
from holdfast.queries.linear_query import Query
from holdfast.queries.neighbours import Neighbours

#: Outputs up to which the equalities between margins in areas are written out as rows.
MOST_WRITTEN = 200_000


@dataclass(frozen=True, eq=False, repr=False)
class AreaMargins(AreaPlaces):
    """At every node of depth d the margins ``keep[d]``: nodes in order, inside a node margin after margin in C order.

    Cells are leaf-major. The outputs fall into groups (depth, margin): the levels of this query.
    """

    @classmethod
    def of(cls, tree: Hierarchy, table: Cube, keep: Keep) -> AreaMargins:
        """Ask these margins at every node of each depth."""
        width = np.array([sum(math.prod(table.margin_shape(axes)) for axes in kept) for kept in keep], dtype=np.int64)
        return cls(int(width[tree.depth].sum()), tree, table, keep)

    @property
    def domain(self) -> tuple[Hierarchy, Cube]:
        return self.hierarchy, self.table

    @cached_property
    def levels(self) -> Mapping[str, int]:
        """Each group's name, such as "county: sex × age", with its number."""
        return {self.name_of(*group): g for g, group in enumerate(self.groups)}

    def name_of(self, depth: int, axes: Axes) -> str:
        return f"{self.hierarchy.levels[depth]}: {self.table.margin_name(axes)}"

    def level_number(self, name: str, key: Any) -> int:
        """Return the group meant by its name, its number, or a pair (level, margin)."""
        if not isinstance(key, tuple):
            return super().level_number(name, key)
        if len(key) != 2:
            raise Refused(f"a level of {name} must be a pair (level, margin), found {shown(key)}")
        group = (self.hierarchy.depth_of_level(key[0]), self.table.axes(key[1]))
        return self.levels[one_of(f"a level of {name}", self.name_of(*group), list(self.levels))]

    @cached_property
    def labels(self) -> npt.NDArray[np.object_]:
        """The path of each output's node with the kept coordinates."""
        result = np.empty(self.n, dtype=object)
        for g, (_, axes) in enumerate(self.groups):
            names = [self.table.all_names[a] for a in axes]
            points = [
                ", ".join(f"{a}={c}" for a, c in zip(names, point, strict=True)) or "total"
                for point in np.ndindex(*self.table.margin_shape(axes))
            ]
            for node, row in zip(self.places[g][0].tolist(), self.outputs(g), strict=True):
                path = " / ".join(self.hierarchy.path(node))
                result[row] = [f"{path} [{point}]" for point in points]
        return result

    @cached_property
    def columns(self) -> Columns:
        """Column (leaf, cell): 1 in its place of every margin of the leaf and its ancestors."""
        tree, many = self.hierarchy, self.table.cells
        above = self.paths()
        entries = sum(int((above[depth] >= 0).sum()) for depth, _ in self.groups) * many
        if entries > MOST_COLUMN_ENTRIES:
            raise Refused(f"columns must have at most 2**29 entries, but the paths of this tree have {entries}")
        cell = np.arange(self.cells).reshape(tree.n_leaves, many)
        rows, owners = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
        for g, (depth, axes) in enumerate(self.groups):
            on = above[depth] >= 0
            first = self.starts[above[depth][on]] + self.places[g][1]
            rows.append((first[:, None] + self.table.margin_index(axes)).ravel())
            owners.append(cell[on].ravel())
        row, owner = np.concatenate(rows), np.concatenate(owners)
        return csc_array((np.ones(row.size, np.int64), (row, owner)), shape=(self.n, self.cells))

    def contradicts(self, rows: Any, low: Ints, high: Ints) -> bool:
        """Whether no cells ≥ 0 keep the limits of all these rows of ones, as far as limits tell."""
        try:
            found = Rules.of_rows(self, rows, low, high)
        except Refused:  # too many to be looked at
            return False
        return found is not None and found.crosses

    @cached_property
    def many_sums(self) -> int | None:
        """How many equalities the answers obey, where they are too many to be written out and the cells tell them."""
        deep = np.unique(self.hierarchy.depth[self.hierarchy.leaves]).tolist()
        if self.n <= MOST_WRITTEN or not all((depth, self.every_axis) in self.groups for depth in deep):
            return None
        return self.n - self.cells

    def consistency(self) -> csr_array[Any]:
        """Return rows that make margins agree inside every node and add up along the hierarchy."""
        return area_equalities(self.hierarchy, self.table, self.keep, self.starts)

    def _answer(self, cells: Ints) -> Ints:
        if self.groups and float(cells.astype(np.float64).sum()) >= 2**61:
            raise Refused("cells must have a total below 2**61")
        return self.totals(cells)

    def totals(self, cells: Array) -> Array:
        """Return W·cells, whole or not and of any sign, one row of cells per leaf or all after each other."""
        result = np.empty(self.n, cells.dtype)
        by_leaf = cells.reshape(-1, *self.table.shape)
        for axes in {axes for _, axes in self.groups}:
            summed = self.hierarchy.sum_up(self.table.summed(by_leaf, axes))
            for g, (_, wanted) in enumerate(self.groups):
                if wanted == axes:
                    self.set(result, g, summed[self.places[g][0]])
        return result

    def _cell_shapes(self) -> list[tuple[int, ...]]:
        leaves = self.hierarchy.n_leaves
        return [(self.cells,), (leaves, self.table.cells), (leaves, *self.table.shape)]

    # Largest changes, where weights follow the groups: a record changes one entry of each margin on its path ---

    def single(self, weights: Weights, p: int, mask: Bools | None) -> Bound:
        """Return the heaviest path to an allowed cell."""
        group = self._group(weights.which)
        if group is None:
            return super().single(weights, p, mask)
        deepest = self._deepest(mask)
        found = (weights.values[g] for (depth, _), g in zip(self.groups, group, strict=True) if depth <= deepest)
        return Bound(sum(found, Fraction(0)), True)

    def pair(self, weights: Weights, p: int, classes: Ints | None) -> Bound:
        """Return the heaviest pair of paths whose cells differ on every axis."""
        group = self._group(weights.which)
        if group is not None and classes is not None and self.many_sums is not None:
            within = Spans(self, classes).patterns()
            sums = (sum((n * weights.values[group[g]] for g, n in pair.items()), Fraction(0)) for pair in within)
            return Bound(max(sums, default=Fraction(0)), False)
        if group is None or classes is not None:
            return super().pair(weights, p, classes)
        changed = (
            sum((times * weights.values[group[g]] for g, times in pair.items()), Fraction(0)) for pair in self._pairs()
        )
        return Bound(max(changed, default=Fraction(0)), True)

    def single_kinds(self, which: Ints | None, mask: Bools | None) -> list[Kind]:
        """Return the kind of the deepest allowed path, where the groups follow those of this query."""
        group = self._group(which)
        if group is None:
            return super().single_kinds(which, mask)
        deepest = self._deepest(mask)
        times = Counter((1, g) for (depth, _), g in zip(self.groups, group, strict=True) if depth <= deepest)
        return maximal([frozenset(times.items())])

    def pair_kinds(self, which: Ints | None, classes: Ints | None) -> list[Kind]:
        """Return the maximal kinds of pairs, where the groups follow those of this query."""
        group = self._group(which)
        many = self.many_sums is not None
        if group is None or (classes is not None and not many):
            return super().pair_kinds(which, classes)
        found = []
        for pair in self._pairs() if classes is None else Spans(self, classes).patterns():
            times: Counter[tuple[int, int]] = Counter()
            for g, count in pair.items():
                times[1, group[g]] += count
            found.append(frozenset(times.items()))
        return maximal(found)

    def _pairs(self) -> Iterator[Counter[int]]:
        """Yield how many entries of each group two cells change that differ on every axis, for all kinds of paths.

        Two paths share the nodes down to where they meet; there a margin changes twice if one of its axes can, below
        on both paths. Cells that differ on fewer axes, or in one and the same leaf, change no more than that.
        """
        for meeting, first, second in self.meetings():
            pair: Counter[int] = Counter()
            for g, (depth, axes) in enumerate(self.groups):
                moves = any(self.table.sizes[a] > 1 for a in axes)
                pair[g] = 2 * moves if depth <= meeting else (depth <= first) + (depth <= second)
            yield +pair

    def meetings(self) -> list[tuple[int, int, int]]:
        """Return for all kinds of pairs of leaves, one leaf twice included, the depth at which their paths meet (−1:
        nowhere) and the depths of the two."""
        tree = self.hierarchy
        triples = {(depth, depth, depth) for depth in np.unique(tree.depth[tree.leaves]).tolist()}
        for meeting, first, second in meeting_paths(tree, 1, np.ones(tree.n, np.int64), None):
            both = np.unique(np.stack([first, second]), axis=1) + meeting
            triples |= {(meeting, int(a), int(b)) for a, b in both.T}
        return sorted(triples)

    def _deepest(self, mask: Bools | None) -> int:
        tree = self.hierarchy
        on = np.ones(tree.n_leaves, bool) if mask is None else mask.reshape(tree.n_leaves, -1).any(axis=1)
        return int(tree.depth[tree.leaves[on]].max(initial=-1))

    def _group(self, which: Ints | None) -> list[int] | None:
        """Return each group's weight, or None where the weights do not follow the groups."""
        if which is None:
            return [0] * len(self.groups)
        first = np.array([which[self.starts[nodes[0]] + begin] for nodes, begin in self.places])
        return first.tolist() if bool((first[self.level_of] == which).all()) else None

    def _widest(self, relation: Neighbours) -> Fraction:
        one = any(self._pairs()) if not relation.adds else bool(self.groups)
        return Fraction(int(one))


def same_answers(one: Any, other: Query) -> bool:
    """Whether two queries in areas ask the same, whatever they call it."""
    if not (isinstance(one, AreaMargins) and isinstance(other, AreaMargins)):
        return False
    same_places = one.hierarchy is other.hierarchy or np.array_equal(one.hierarchy.parents, other.hierarchy.parents)
    return same_places and _same_cells(one.table, other.table) and one.keep == other.keep


def _same_cells(one: Cube, other: Cube) -> bool:
    """Whether two cubes have the same cells and groups of them, whatever they call them."""
    groups = ([(each.axis, each.of) for each in table.recoded] for table in (one, other))
    return one.shape == other.shape and next(groups) == next(groups)


def margins_by_depth(tree: Hierarchy, table: Cube, keep: Any) -> Keep:
    """Read `keep`: one list of margins for all levels, or a list for each level that is asked; None: every cell."""
    everything = (tuple(range(len(table.shape))),)
    if not isinstance(keep, Mapping):
        return (table.margins(keep),) * len(tree.levels)
    found: list[tuple[Axes, ...]] = [()] * len(tree.levels)
    seen: set[int] = set()
    for level, kept in keep.items():
        depth = tree.depth_of_level(level)
        if depth in seen:
            raise Refused(f"keep names the level {level!r} twice")
        seen.add(depth)
        found[depth] = everything if kept is None else table.margins(kept)
    if not any(found):
        raise Refused("keep must ask at least one margin of one level, found none")
    return tuple(found)


def counts(
    tree: Hierarchy,
    by: int | Sequence[int] | Cube = 1,
    keep: Iterable[str | Iterable[int | str]] | Mapping[str | int, Iterable[str | Iterable[int | str]]] | None = None,
) -> Query:
    """Ask the count at every node of a hierarchy; one record adds 1 to its leaf and to every ancestor.

    Outputs: nodes in order, inside a node the margins in the order of `keep`, inside a margin C order.

    Args:
        tree: the hierarchy.
        by: k categories at every node, the shape of a cube, or a `Cube` with names.
        keep: None asks all cells at every node; a list of margins such as [(), (0,), (0, 2)] these at every node;
            {level: list or None} at the nodes of the named levels alone.

    Example:
        >>> import holdfast as hf
        >>> tree = hf.Hierarchy.from_parents([-1, 0, 0])
        >>> hf.counts(tree).answer([4, 6]).tolist()
        [10, 4, 6]
        >>> hf.counts(tree, by=2).answer([1, 3, 6, 0]).tolist()
        [7, 3, 1, 3, 6, 0]
    """
    if not isinstance(tree, Hierarchy):
        raise Refused(f"tree must be a Hierarchy, found an object of type {type(tree).__name__}")
    if not isinstance(by, (Cube, Iterable)) or isinstance(by, str):
        by = whole("by", by, at_least=1)
    table = by if isinstance(by, Cube) else Cube(by)
    if keep is None:
        if tree.n * table.cells > MOST_ASKED:
            raise Refused(f"by must ask at most 2**31 outputs in all, found {tree.n * table.cells}")
        return TreeCounts(tree.n * table.cells, tree, table.cells, None if isinstance(by, int) else table)
    asked = AreaMargins.of(tree, table, margins_by_depth(tree, table, keep))
    if asked.n > MOST_ASKED:
        raise Refused(f"keep must ask at most 2**31 outputs, found {asked.n}")
    return asked
