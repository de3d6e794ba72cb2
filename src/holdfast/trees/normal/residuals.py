"""Margins of a cube in every area of a hierarchy, under Gaussian noise: one scalar tree problem per set of axes (H7).

An orthogonal change of basis along each axis (first the constant, then contrasts) splits the cells of an area into
coordinates, and each coordinate belongs to one set S of axes: those on which it is no constant. A margin that keeps
the axes A holds the coordinates of all S ⊆ A, each √κ times that of the cells (κ: how many cells are summed into one
entry of the margin), so noise of precision p on its entries is noise of precision κp on each such coordinate. Summing
up the hierarchy does not touch the coordinates: for every S there is a hierarchy of scalars, the same for all its
coordinates, over the nodes whose margins keep S, with the precision Σ κp over these margins (docs/theory/areas-and-
margins.md).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from holdfast.arguments import Refused
from holdfast.arrays import Floats, Ints
from holdfast.constraints import System
from holdfast.domains import Hierarchy
from holdfast.queries.areas.area_equalities import Axes, knowing_forest, known_sets, knows
from holdfast.queries.areas.area_margins import AreaMargins
from holdfast.trees.normal.contrasts import turned, turned_back
from holdfast.trees.normal.passes import NormalPasses


@dataclass(frozen=True, eq=False)
class Coordinate:
    """The hierarchy of scalars of one set of axes: the nodes that know it, and their messages.

    `nodes` are these nodes; behind them stand nodes for leaves below a node that no knowing node covers.
    """

    axes: Axes
    count: int  # coordinates that share it
    nodes: Ints
    passes: NormalPasses
    precision: Floats  # by depth

    def deviations_kept(self) -> int:
        """Return how many numbers one coordinate needs, the nodes that stand for uncovered leaves included."""
        return int(self.passes.order.size)

    def at_nodes(self, ordered: Floats) -> Floats:
        """Return values in the order of the passes, (rows, n), by node: (nodes, rows)."""
        result = np.empty((ordered.shape[1], ordered.shape[0]))
        result[self.passes.order] = ordered.T
        return result[: self.nodes.size]

    def in_order(self, by_node: Floats) -> Floats:
        """Return values by node, (nodes, rows), in the order of the passes, 0 where no node stands: (rows, n)."""
        result = np.zeros((by_node.shape[1], self.passes.order.size))
        places = np.empty(self.passes.order.size, np.int64)
        places[self.passes.order] = np.arange(places.size)
        result[:, places[: self.nodes.size]] = by_node.T
        return result

    @cached_property
    def variances(self) -> Floats:
        """The variance of a coordinate at each node."""
        return self.at_nodes(self.passes.variances()[None])[:, 0]


@dataclass(frozen=True, eq=False)
class Residuals:
    """The coordinates of a query under Gaussian noise with a precision for each group of outputs (0: not measured)."""

    query: AreaMargins
    precisions: tuple[float, ...]

    @classmethod
    def of_system(cls, system: System, variances: Floats, *, ruled: bool = False) -> Residuals | None:
        """Return the coordinates where what must hold is a query's consistency and a group's entries are alike.

        Everything may have to be non-negative besides, and some outputs 0 then. ruled: whatever else must hold is left
        to whoever asks.

        variances: of all outputs, inf where not measured. None also where nothing measured tells some figure.
        """
        beside: tuple[str, ...] = ("nonnegative", "fixed") if system.has_bounds else ()
        if ruled:
            beside = tuple({part.kind for part in system.parts} - {"consistent"})
        rows = [part for part in system.parts if part.kind not in beside]
        known = [part.rows for part in system.parts if part.kind == "fixed" and part.rows is not None]
        if not ruled and any(np.any(part.b != 0) for part in known):
            return None
        if len(rows) != 1 or rows[0].kind != "consistent" or not isinstance(rows[0].source, AreaMargins):
            return None
        bounded = system.lower == 0
        for part in known:  # what is 0 needs no bound
            bounded[part.A.indices] = True
        if system.has_bounds and not ruled and not bool(bounded.all()):
            return None
        query = rows[0].source
        first = np.array([variances[query.starts[nodes[0]] + begin] for nodes, begin in query.places])
        if not bool((first[query.level_of] == variances).all()):
            return None
        result = cls(query, tuple((1 / first).tolist()))
        return None if result.untold is not None else result

    @cached_property
    def untold(self) -> str | None:
        """What nothing measured tells, in words; None where everything is told."""
        for axes in known_sets(self.query.table.shape, self.query.keep):
            if self._passes(axes) is None:
                level = self.query.hierarchy.levels[
                    max(d for d, knowing in enumerate(knows(self.query.keep, axes)) if knowing)
                ]
                return f"{self.query.table.margin_name(axes)} of each {level}"
        return None

    @cached_property
    def coordinates(self) -> tuple[Coordinate, ...]:
        """One hierarchy of scalars for every set of axes that a margin keeps."""
        return tuple(self._coordinate(axes) for axes in known_sets(self.query.table.shape, self.query.keep))

    def _coordinate(self, axes: Axes) -> Coordinate:
        found = self._passes(axes)
        if found is None:
            raise Refused(f"margins must be measured so that every figure is told, but nothing tells {self.untold}")
        nodes, passes, precision = found
        return Coordinate(axes, math.prod(self.query.table.shape[a] - 1 for a in axes), nodes, passes, precision)

    def _passes(self, axes: Axes) -> tuple[Ints, NormalPasses, Floats] | None:
        known = knows(self.query.keep, axes)
        precision = np.zeros(len(known))
        for (depth, kept), p in zip(self.query.groups, self.precisions, strict=True):
            if set(axes) <= set(kept):
                precision[depth] += self._summed(kept) * p
        nodes, parents, depths = scalar_forest(self.query.hierarchy, known)
        with np.errstate(divide="ignore"):
            own = np.where(depths < 0, np.inf, 1 / precision[depths])
        passes = NormalPasses.of(parents, own)
        return None if passes is None else (nodes, passes, precision)

    def _summed(self, kept: Axes) -> int:
        """Return how many cells are summed into one entry of a margin."""
        return math.prod(size for a, size in enumerate(self.query.table.shape) if a not in kept)

    def noise(self, normals: Floats) -> Floats:
        """Turn standard normal numbers into noise of all outputs given that they agree and add up, (n,)."""
        found, used = [], 0
        for each in self.coordinates:
            size = each.count * each.deviations_kept()
            values = normals[used : used + size].reshape(each.count, -1).copy()
            each.passes.noise(values)
            found.append(each.at_nodes(values))
            used += size
        return self._outputs(found)[0]

    @cached_property
    def normals_needed(self) -> int:
        """How many standard normal numbers one draw takes."""
        return sum(each.count * each.deviations_kept() for each in self.coordinates)

    def estimated(self, measured: Floats, *, below: bool = False) -> Floats:
        """Return the best linear estimate of all outputs from their measured values, (n,) or one row for each table.

        below: of each area from what is measured in it and in its parts alone.
        """
        rows = np.atleast_2d(measured)
        return self._outputs(self._estimates(rows, below), len(rows)).reshape(measured.shape)

    def _estimates(self, measured: Floats, below: bool) -> list[Floats]:
        tree, tables = self.query.hierarchy, len(measured)
        sums = [np.zeros((tree.n, tables * each.count)) for each in self.coordinates]
        for g, ((depth, kept), p) in enumerate(zip(self.query.groups, self.precisions, strict=True)):
            if p > 0:
                nodes = self.query.places[g][0]
                block = np.moveaxis(self.query.taken(measured, g), 0, 1)
                coordinates = turned(block.reshape(nodes.size * tables, *self.query.table.margin_shape(kept)))
                del block
                for each, total in zip(self.coordinates, sums, strict=True):
                    if set(each.axes) <= set(kept):
                        share = p * math.sqrt(self._summed(kept)) / each.precision[depth]
                        total[nodes] += share * coordinates[_block(kept, each.axes)].reshape(nodes.size, -1)
        found = []
        for each in self.coordinates:
            values = each.in_order(sums.pop(0)[each.nodes])
            (each.passes.from_below if below else each.passes.estimated)(values)
            found.append(each.at_nodes(values))
        return found

    def _outputs(self, by_coordinate: list[Floats], tables: int = 1) -> Floats:
        """Return the outputs, (tables, n), from the coordinates at every node that knows them."""
        tree, query = self.query.hierarchy, self.query
        place = np.empty((len(self.coordinates), tree.n), np.int64)
        for s, each in enumerate(self.coordinates):
            place[s, each.nodes] = np.arange(each.nodes.size)
        result = np.empty((tables, query.n))
        for g, (_, kept) in enumerate(query.groups):
            nodes = query.places[g][0]
            block = np.zeros((nodes.size * tables, *query.table.margin_shape(kept)))
            for s, each in enumerate(self.coordinates):
                if set(each.axes) <= set(kept):
                    where = _block(kept, each.axes)
                    block[where] = by_coordinate[s][place[s, nodes]].reshape(block[where].shape)
            values = turned_back(block).reshape(nodes.size, tables, -1)
            values *= math.sqrt(self._summed(kept))
            query.set(result, g, np.moveaxis(values, 1, 0))
        return result

    def variance_of(self, weights: Floats) -> float:
        """Return the variance of a weighted sum of outputs given that all agree and add up."""
        tree, query, total = self.query.hierarchy, self.query, 0.0
        at = [np.zeros((tree.n, each.count)) for each in self.coordinates]
        for g, (_, kept) in enumerate(query.groups):
            nodes = query.places[g][0]
            block = weights[query.outputs(g)].reshape(nodes.size, *query.table.margin_shape(kept))
            coordinates = turned(block) * math.sqrt(self._summed(kept))
            for each, sums in zip(self.coordinates, at, strict=True):
                if set(each.axes) <= set(kept):
                    sums[nodes] += coordinates[_block(kept, each.axes)].reshape(nodes.size, -1)
        for each, sums in zip(self.coordinates, at, strict=True):
            total += sum(each.passes.variance_of(row) for row in each.in_order(sums[each.nodes]))
        return total

    def variances(self) -> Floats:
        """Return the variance of every output given that all agree and add up, which is that of the best estimate."""
        result = np.empty(self.query.n)
        by_group = self.variances_by_group()
        for g, at_nodes in enumerate(by_group):
            result[self.query.outputs(g)] = at_nodes[:, None]
        return result

    def variances_by_group(self, *, below: bool = False) -> list[Floats]:
        """Return for each group the variance of its entries at each of its nodes: all entries of a node are alike.

        below: of the estimates from what is measured in the area and in its parts alone.
        """
        tree, query = self.query.hierarchy, self.query
        found = [np.zeros(nodes.size) for nodes, _ in query.places]
        for each in self.coordinates:
            at = np.empty(tree.n)
            at[each.nodes] = each.at_nodes(each.passes.upward[None])[:, 0] if below else each.variances
            for g, (_, kept) in enumerate(query.groups):
                if set(each.axes) <= set(kept):
                    found[g] += (
                        self._summed(kept) * share_of(query.table.shape, kept, each.axes) * at[query.places[g][0]]
                    )
        return found


def share_of(shape: tuple[int, ...], kept: Axes, axes: Axes) -> float:
    """Return the squared length of an entry of a margin inside the coordinates of a set of axes."""
    return math.prod((1 - 1 / shape[a]) if a in axes else 1 / shape[a] for a in kept)


def scalar_forest(tree: Hierarchy, known: list[bool]) -> tuple[Ints, Ints, Ints]:
    """Return the nodes that know, their parents among them with a node for uncovered leaves behind, and all depths."""
    above, covered = knowing_forest(tree, known)
    at = np.array(known)[tree.depth]
    nodes = np.flatnonzero(at)
    rank = np.full(at.size + 1, -1, np.int64)  # the last entry stands for no parent
    rank[nodes] = np.arange(nodes.size)
    parents = rank[above[nodes]]
    has_children = np.zeros(nodes.size, bool)
    has_children[parents[parents >= 0]] = True
    rest = np.flatnonzero(has_children & ~covered[nodes])
    depths = np.concatenate([tree.depth[nodes], np.full(rest.size, -1)])
    return nodes, np.concatenate([parents, rest]), depths


def _block(kept: Axes, axes: Axes) -> tuple[slice, ...]:
    """Return where the coordinates of a set of axes stand in a margin: contrasts on its axes, else the constant."""
    return (slice(None), *(slice(1, None) if a in axes else slice(0, 1) for a in kept))
