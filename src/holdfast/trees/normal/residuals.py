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
from holdfast.arrays import Array, Bools, Floats, Ints
from holdfast.constraints import System
from holdfast.domains import Hierarchy
from holdfast.queries.areas.area_equalities import Axes, knowing_forest, known_sets, knows
from holdfast.queries.areas.area_margins import AreaMargins
from holdfast.trees.normal import grains
from holdfast.trees.normal.frame import Frame, settle
from holdfast.trees.normal.normal_passes import NormalPasses


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
        return self.at_nodes(self.passes.variances()[None])[:, 0]


@dataclass(frozen=True, eq=False)
class Residuals:
    """The coordinates of a query under Gaussian noise with a precision for each group of outputs (0: not measured)."""

    query: AreaMargins
    precisions: tuple[float, ...]

    @classmethod
    def of_system(cls, system: System, variances: Floats, *, ruled: bool = False) -> Residuals | None:
        """Return the coordinates where what must hold is a query's consistency and a group's entries are alike.

        None also where nothing measured tells some figure, and where the groups of a recoded axis differ in size.
        """
        found = measured_margins(system, variances, ruled=ruled)
        if found is None or not grains.alike(found[0].table):
            return None  # it does not fall apart: docs/theory/areas-and-margins.md, section 6
        result = cls(*found)
        return None if result.untold is not None else result

    @property
    def exact(self) -> bool:
        return True

    def inside(self, measured: Floats) -> Floats:
        """Return measured values of what was asked as those of all outputs."""
        return measured

    def outside(self, values: Floats) -> Floats:
        return values

    def answer(self, cells: Array) -> Array:
        return self.query.totals(cells)

    def empty(self, known: Bools | None) -> Bools | None:
        """Return the cells of the leaves that are 0, from those that are known."""
        return known

    @cached_property
    def untold(self) -> str | None:
        """What nothing measured tells, in words; None where everything is told."""
        for axes in known_sets(self.query.table, self.query.keep):
            if self._passes(axes) is None:
                level = self.query.hierarchy.levels[
                    max(d for d, knowing in enumerate(knows(self.query.table, self.query.keep, axes)) if knowing)
                ]
                return f"{self.query.table.margin_name(axes)} of each {level}"
        return None

    @cached_property
    def coordinates(self) -> tuple[Coordinate, ...]:
        """One hierarchy of scalars for every set of axes that a margin keeps."""
        return tuple(self._coordinate(axes) for axes in known_sets(self.query.table, self.query.keep))

    def _coordinate(self, axes: Axes) -> Coordinate:
        found = self._passes(axes)
        if found is None:
            raise Refused(f"margins must be measured so that every figure is told, but nothing tells {self.untold}")
        nodes, passes, precision = found
        return Coordinate(axes, grains.count_of(self.query.table, axes), nodes, passes, precision)

    def _passes(self, axes: Axes) -> tuple[Ints, NormalPasses, Floats] | None:
        known, precision = knows(self.query.table, self.query.keep, axes), self._precision(axes)
        nodes, parents, depths = scalar_forest(self.query.hierarchy, known)
        own = self._own(axes, precision, depths)
        passes = NormalPasses.of(parents, own, own == 0)
        return None if passes is None else (nodes, passes, precision)

    def _own(self, axes: Axes, precision: Floats, depths: Ints) -> Floats:
        """The variances with which the nodes of a scalar hierarchy are measured, by their depths (−1: uncovered)."""
        del axes
        with np.errstate(divide="ignore"):
            return np.where(depths < 0, np.inf, 1 / precision[depths])

    def _precision(self, axes: Axes) -> Floats:
        """The precision with which the coordinates of a set of axes are measured, by depth."""
        found = np.zeros(len(self.query.keep))
        for (depth, kept), p in zip(self.query.groups, self.precisions, strict=True):
            if self.query.table.tells(kept, axes):
                found[depth] += self._summed(kept) * p
        return found

    def _summed(self, kept: Axes) -> int:
        return self.query.table.cells // math.prod(self.query.table.sizes[a] for a in kept)

    @cached_property
    def frame(self) -> Frame:
        return Frame(self.query)

    def noise(self, normals: Floats) -> Floats:
        """Turn standard normal numbers into noise of all outputs given that they agree and add up, (n,)."""
        rows, used = np.zeros((1, self.query.hierarchy.n, self.frame.width)), 0
        for each in self.coordinates:
            size = each.count * each.deviations_kept()
            values = normals[used : used + size].reshape(each.count, -1).copy()
            each.passes.noise(values)
            rows[0, each.nodes, self.frame.cuts[each.axes]] = each.at_nodes(values)
            used += size
        return self.outputs_of(rows)[0]

    @cached_property
    def normals_needed(self) -> int:
        return sum(each.count * each.deviations_kept() for each in self.coordinates)

    def estimated(self, measured: Floats, *, below: bool = False) -> Floats:
        """Return the best linear estimate of all outputs from their measured values, (n,) or one row for each table.

        below: of each area from what is measured in it and in its parts alone.
        """
        tables = np.atleast_2d(np.asarray(measured, np.float64))
        return self.outputs_of(self.settled(tables, below=below)).reshape(measured.shape)

    def settled(self, measured: Floats, *, below: bool) -> Floats:
        """The estimated coordinates of every node, (tables, nodes and more, columns)."""
        tree, frame, rows = self.query.hierarchy, self.frame, self.measured_rows(measured)
        by_axes = {each.axes: each for each in self.coordinates}
        for _, sets in frame.patterns:
            mine = [by_axes[axes] for axes in sets]
            cuts = [frame.cuts[axes] for axes in sets]
            settle([each.passes for each in mine], mine[0].nodes, tree.n, cuts, rows, below=below)
        return rows

    def measured_rows(self, measured: Floats) -> Floats:
        """The measured coordinates of every node, (tables, nodes and more, columns)."""
        tree, frame = self.query.hierarchy, self.frame
        by_axes = {each.axes: each for each in self.coordinates}
        spare = max(each.deviations_kept() - each.nodes.size for each in self.coordinates)
        rows = np.zeros((len(measured), tree.n + spare, frame.width))
        for g, ((depth, kept), p) in enumerate(zip(self.query.groups, self.precisions, strict=True)):
            if p > 0:
                weight = np.zeros(frame.width)
                for axes, cut in frame.cuts.items():
                    if self.query.table.tells(kept, axes):
                        weight[cut] = p * math.sqrt(self._summed(kept)) / by_axes[axes].precision[depth]
                frame.add(rows, measured, g, weight)
        return rows

    def outputs_of(self, rows: Floats) -> Floats:
        """Return the outputs, (tables, n), from the coordinates of every node."""
        result = np.empty((len(rows), self.query.n))
        for g, (_, kept) in enumerate(self.query.groups):
            self.frame.fill(result, rows, g, math.sqrt(self._summed(kept)))
        return result

    def variance_of(self, weights: Floats) -> float:
        """Return the variance of a weighted sum of outputs given that all agree and add up."""
        rows = np.zeros((1, self.query.hierarchy.n, self.frame.width))
        for g, (_, kept) in enumerate(self.query.groups):
            factor = np.full(self.frame.width, math.sqrt(self._summed(kept)))
            self.frame.add(rows, np.asarray(weights, np.float64)[None], g, factor)
        total = 0.0
        for each in self.coordinates:
            own = each.in_order(rows[0, each.nodes, self.frame.cuts[each.axes]])
            total += sum(each.passes.variance_of(row) for row in own)
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
                if query.table.tells(kept, each.axes):
                    share = grains.share_of(query.table, kept, each.axes)
                    found[g] += self._summed(kept) * share * at[query.places[g][0]]
        return found


def measured_margins(
    system: System, variances: Floats, *, ruled: bool = False
) -> tuple[AreaMargins, tuple[float, ...]] | None:
    """Return the query whose consistency must hold and the precision of each of its groups; None: there is none such.

    Everything may have to be non-negative besides, and some outputs 0 then. ruled: whatever else must hold is left
    to whoever asks. variances: of all outputs, inf where not measured.
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
    return query, tuple((1 / first).tolist())


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
