"""The coordinates of all areas side by side: one row for each node, one column for each contrast that is told.

Columns of sets of axes that the same depths know stand together, and those of one set too, so that the passes over a
hierarchy run along rows. Measured values are turned and added to their columns node by node, and turned back so.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from holdfast.arrays import Floats, Ints, compiled
from holdfast.queries.areas.area_equalities import Axes, known_sets, knows
from holdfast.queries.areas.area_margins import AreaMargins
from holdfast.trees.normal import grains
from holdfast.trees.normal.contrasts import lengths, turn_one, turn_one_back
from holdfast.trees.normal.normal_passes import NormalPasses


@dataclass(frozen=True, eq=False)
class Frame:
    """Where the coordinates of a query's margins stand in the columns of a row."""

    query: AreaMargins

    @cached_property
    def patterns(self) -> list[tuple[tuple[bool, ...], list[Axes]]]:
        """The sets of axes that the same depths know, with which depths these are."""
        found: dict[tuple[bool, ...], list[Axes]] = {}
        for axes in known_sets(self.query.table, self.query.keep):
            found.setdefault(tuple(knows(self.query.table, self.query.keep, axes)), []).append(axes)
        return list(found.items())

    @cached_property
    def cuts(self) -> dict[Axes, slice]:
        found, start = {}, 0
        for axes in (axes for _, sets in self.patterns for axes in sets):
            count = grains.count_of(self.query.table, axes)
            found[axes] = slice(start, start + count)
            start += count
        return found

    @property
    def width(self) -> int:
        return max(cut.stop for cut in self.cuts.values())

    @cached_property
    def _margins(self) -> dict[Axes, tuple[Ints, Floats, Ints, Ints]]:
        """For every margin the sizes and lengths of its steps, its entries in their order (none: as they stand), and
        the columns of these."""
        table, found = self.query.table, {}
        for kept in dict.fromkeys(kept for _, kept in self.query.groups):
            steps = grains.steps(table, kept)
            columns = np.empty(steps, np.int64)
            for axes, cut in self.cuts.items():
                if table.tells(kept, axes):
                    where = grains.block(table, kept, axes)
                    columns[where] = np.arange(cut.start, cut.stop).reshape(columns[where].shape)
            order = grains.order(table, kept)
            order = np.zeros(0, np.int64) if order is None else order
            scales = np.ones((max(len(steps), 1), max(steps, default=1)))
            for row, size in enumerate(steps):
                scales[row, :size] = lengths(size)
            found[kept] = (np.array(steps, np.int64), scales, order, columns.ravel())
        return found

    def add(self, rows: Floats, values: Floats, group: int, weight: Floats) -> None:
        """Add the coordinates of a group's values, each times the weight of its column, to the rows of its nodes.

        rows: (tables, nodes, columns). values: (tables, outputs).
        """
        kept, (nodes, begin) = self.query.groups[group][1], self.query.places[group]
        steps, scales, order, columns = self._margins[kept]
        _add(rows, nodes, values, self.query.starts[nodes] + begin, steps, scales, order, columns, weight[columns])

    def fill(self, values: Floats, rows: Floats, group: int, factor: float) -> None:
        """Fill in a group's values from the rows of its nodes, times a factor."""
        kept, (nodes, begin) = self.query.groups[group][1], self.query.places[group]
        steps, scales, order, columns = self._margins[kept]
        _fill(rows, nodes, values, self.query.starts[nodes] + begin, steps, scales, order, columns, factor)


def settle(
    passes: list[NormalPasses], nodes: Ints, spare: int, cuts: list[slice], rows: Floats, *, below: bool
) -> None:
    """Turn measured coordinates into the best linear estimates, in place, for sets of axes with one hierarchy.

    rows: (tables, nodes and more, columns). nodes: the row of each node; nodes behind them stand in the rows from
    `spare` on. below: estimates from what is measured at and below each node alone. (THEORY §4)
    """
    first, order = passes[0].first, passes[0].order
    places = np.concatenate([nodes, spare + np.arange(order.size - nodes.size)])[order]
    upward = np.stack([each.upward for each in passes], axis=1)
    sums = np.stack([each.below for each in passes], axis=1)
    own = np.stack([each.own for each in passes], axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        alone = (np.diff(first) == 0)[:, None] | np.isinf(sums)  # its own law, whatever is below
        by_children = np.where(alone, 0.0, np.where(np.isinf(own) | (sums == 0), 1.0, upward / sums))
        by_own = np.where(alone, 1.0, np.where(sums == 0, 0.0, upward / own))
        by_own = np.where(np.isinf(own), 0.0, np.where(own == 0, 1.0, by_own))
        by_children = np.where(own == 0, 0.0, by_children)
        parent = np.repeat(np.arange(order.size), np.diff(first))
        roots = order.size - parent.size
        share = np.zeros_like(upward)
        above = sums[parent]
        mine = upward[roots:]
        share[roots:] = np.where(np.isinf(mine), 1.0, np.where(np.isinf(above) | (above == 0), 0.0, mine / above))
    ends = np.array([cuts[0].start, *(cut.stop for cut in cuts)])
    _settle(first, places, by_children, by_own, share, ends, rows, below)


@compiled(inner=True)
def _turn(table: Any, steps: Any, scales: Any, total: Any, back: Any) -> None:  # pragma: no cover (compiled)
    """Turn a table along all its axes, or back, in place."""
    outer, inner = 1, table.size
    for t in range(steps.size):
        size = steps[t]
        inner //= size
        if size > 1:
            blocks = table.reshape(outer, size, inner)
            for b in range(outer):
                if back:
                    turn_one_back(blocks[b], scales[t], total)
                else:
                    turn_one(blocks[b], scales[t], total)
        outer *= size


@compiled(beyond=20_000)
def _add(
    rows: Any,
    nodes: Any,
    values: Any,
    starts: Any,
    steps: Any,
    scales: Any,
    order: Any,
    columns: Any,
    weight: Any,
) -> None:  # pragma: no cover (compiled)
    table, total = np.empty(columns.size), np.empty(columns.size)
    for at in range(rows.shape[0] * nodes.size):
        i = at % nodes.size
        given, row = values[at // nodes.size], rows[at // nodes.size, nodes[i]]
        start = starts[i]
        if order.size:
            for j in range(order.size):
                table[j] = given[start + order[j]]
        else:
            for j in range(columns.size):
                table[j] = given[start + j]
        _turn(table, steps, scales, total, False)
        for j in range(columns.size):
            row[columns[j]] += weight[j] * table[j]


@compiled(beyond=20_000)
def _fill(
    rows: Any,
    nodes: Any,
    values: Any,
    starts: Any,
    steps: Any,
    scales: Any,
    order: Any,
    columns: Any,
    factor: Any,
) -> None:  # pragma: no cover (compiled)
    table, total = np.empty(columns.size), np.empty(columns.size)
    for at in range(rows.shape[0] * nodes.size):
        i = at % nodes.size
        result, row = values[at // nodes.size], rows[at // nodes.size, nodes[i]]
        for j in range(columns.size):
            table[j] = row[columns[j]]
        _turn(table, steps, scales, total, True)
        start = starts[i]
        if order.size:
            for j in range(order.size):
                result[start + order[j]] = table[j] * factor
        else:
            for j in range(columns.size):
                result[start + j] = table[j] * factor


@compiled(beyond=20_000)
def _settle(
    first: Any, places: Any, by_children: Any, by_own: Any, share: Any, ends: Any, tables: Any, below: Any
) -> None:  # pragma: no cover (compiled)
    """The means of the messages upwards, and then what is left of every node to its children, along rows."""
    left = np.empty(ends[-1] - ends[0])
    for t in range(tables.shape[0]):
        _upwards(first, places, by_children, by_own, ends, tables[t], left)
        if not below:
            _downwards(first, places, share, ends, tables[t], left)


@compiled(inner=True)
def _upwards(
    first: Any, places: Any, by_children: Any, by_own: Any, ends: Any, rows: Any, total: Any
) -> None:  # pragma: no cover (compiled)
    low, sets = ends[0], ends.size - 1
    for v in range(places.size - 1, -1, -1):
        row = rows[places[v]]
        if first[v + 1] == first[v]:
            for s in range(sets):
                if by_own[v, s] == 0:
                    row[ends[s] : ends[s + 1]] = 0.0
            continue
        total[:] = 0.0
        for c in range(first[v], first[v + 1]):
            child = rows[places[c]]
            for k in range(total.size):
                total[k] += child[low + k]
        for s in range(sets):
            one, other = by_children[v, s], by_own[v, s]
            for k in range(ends[s], ends[s + 1]):
                row[k] = one * total[k - low] + other * row[k]


@compiled(inner=True)
def _downwards(
    first: Any, places: Any, share: Any, ends: Any, rows: Any, left: Any
) -> None:  # pragma: no cover (compiled)
    low, sets = ends[0], ends.size - 1
    for v in range(places.size):
        if first[v + 1] == first[v]:
            continue
        row = rows[places[v]]
        for k in range(left.size):
            left[k] = row[low + k]
        for c in range(first[v], first[v + 1]):
            child = rows[places[c]]
            for k in range(left.size):
                left[k] -= child[low + k]
        for c in range(first[v], first[v + 1]):
            child = rows[places[c]]
            for s in range(sets):
                part = share[c, s]
                for k in range(ends[s], ends[s + 1]):
                    child[k] += part * left[k - low]
