"""Totals divided among leaves, by tilts: one of them takes what the others leave."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from holdfast.arguments import LARGEST
from holdfast.arrays import Bools, Floats, Ints
from holdfast.trees.circles.exact import Part, joined
from holdfast.trees.circles.leaf_tables import POOR, LeafTable, rounded
from holdfast.trees.circles.tables import Division
from holdfast.trees.circles.testing import Tested

#: Leaves of divisions that are drawn at once.
LEAVES = 1 << 18


class LeafDivisions(Tested):
    """Divisions among leaves."""

    def _divide_leaves(self, some: Ints) -> None:
        """Divide the totals of nodes among leaves; nodes with one tilt at a time."""
        shape, m = self.shape, self.m
        if not some.size:
            return
        self._settle(some, self._leaf_sum)
        node = np.repeat(some, self.rows)
        row = np.tile(np.arange(self.rows), some.size)
        totals = self.totals[some].ravel()
        tilt = m.responses.tilts_for(node, totals.astype(np.float64))
        grid, curves = m.responses.grid, m.responses.curves
        right = np.clip(np.searchsorted(grid, tilt), 1, grid.size - 1)
        rise = (curves[node, right] - curves[node, right - 1]) / (grid[right] - grid[right - 1])
        tilt = np.clip(rounded(tilt, rise, 0.4, m.unit), *m.limits[:, node])
        order = np.argsort(tilt, kind="stable")
        for part in np.split(order, np.flatnonzero(np.diff(tilt[order])) + 1):
            numbers = shape.leaf_start[node[part] + 1] - shape.leaf_start[node[part]]
            group = np.cumsum(numbers) // LEAVES
            for tasks in np.split(part, np.flatnonzero(np.diff(group)) + 1):
                self._divide_leaf_tasks(node[tasks], row[tasks], totals[tasks], float(tilt[tasks[0]]))

    def _leaf_sum(self, k: int) -> Part:
        """The sum of the leaves of a node."""
        if k in self.leaf_sums:
            return self.leaf_sums[k]
        m, shape = self.m, self.shape
        node = np.array([k])
        table, kind, _ = m.leaf_table(node, float(m.tilt[k]))
        leaves, _ = m.leaves_of(node)
        parts = [
            self._leaf(table, each, (int(shape.leaf_low[leaf]), int(shape.leaf_high[leaf])))
            for each, leaf in zip(kind.tolist(), leaves.tolist(), strict=True)
        ]
        return self.leaf_sums.setdefault(k, joined(parts))

    def _divide_leaf_tasks(self, nodes: Ints, rows: Ints, totals: Ints, tilt: float, again: bool = True) -> None:
        shape, m = self.shape, self.m
        leaf_table, kind, counts = m.leaf_table(nodes, tilt)
        leaves, _ = m.leaves_of(nodes)
        starts = np.cumsum(counts) - counts
        widest = first_largest(leaf_table.variance[kind], starts, counts)
        others = np.ones(kind.size, dtype=bool)
        others[widest] = False
        slots = np.flatnonzero(others)
        table = self._leaf_rows(leaf_table)
        last = kind[widest]
        only = counts == 1
        if again:
            mean = leaf_table.mean[kind]
            rest = np.rint(totals - np.add.reduceat(mean, starts) + mean[widest]).astype(np.int64)
            poor = ~only & (table.at(last, rest) < POOR * table.top[last])
            steeper = self._steeper(leaf_table, last, rest, m.limits[:, nodes])
            poor &= np.abs(steeper) > abs(tilt)
            for k in np.flatnonzero(poor).tolist():
                one = slice(k, k + 1)
                self._divide_leaf_tasks(nodes[one], rows[one], totals[one], float(steeper[k]), again=False)
            if poor.any():
                if not poor.all():
                    self._divide_leaf_tasks(nodes[~poor], rows[~poor], totals[~poor], tilt, again=False)
                return
        last[only] = -1
        division = Division(table, kind[slots], counts - 1, totals, table, last)
        low, high = shape.leaf_low[leaves], shape.leaf_high[leaves]
        fits = _fits(
            counts - 1,
            (low[slots], high[slots]),
            (np.where(only, -LARGEST, low[widest]), np.where(only, LARGEST, high[widest])),
        )

        def one_by_one(task: int) -> list[int]:
            values = self._apart(int(nodes[task]), int(rows[task]), int(counts[task]), self._leaf_sum)
            last = values.pop(int(widest[task] - starts[task]))
            return [*values, last]

        drawn, rests = division.draw(self.stream, one_by_one, fits)
        task = np.repeat(np.arange(counts.size), counts)
        self.leaves[leaves[slots], rows[task[slots]]] = drawn
        self.leaves[leaves[widest], rows] = rests
        # A total that its only leaf cannot have.
        wrong = only & ((rests < low[widest]) | (rests > high[widest]))
        self.kept[shape.tree[nodes[wrong]], rows[wrong]] = False

    def _steeper(self, table: LeafTable, kinds: Ints, rest: Ints, limits: Floats) -> Floats:
        """Tilts just inside poles under which leaves of some kinds often take such rests; 0 where there is no pole."""
        moved = rest - table.mean[kinds]
        pole = self.m.poles[table.kinds.law[kinds], (moved > 0).astype(np.int64)]
        with np.errstate(divide="ignore", invalid="ignore"):
            steep = pole * np.maximum(1 - 3 / np.abs(moved * pole), 0.0)
        return np.clip(np.where(np.isfinite(pole), steep, 0.0), *limits)


def _fits(
    counts: Ints, bounds: tuple[Ints, Ints], last: tuple[Ints, Ints]
) -> Callable[[Ints, Ints, Ints, Ints], Bools]:
    """Whether drawn values, and what is left, lie within bounds."""

    def fits(todo: Ints, some: Ints, chosen: Ints, rest: Ints) -> Bools:
        good = (rest >= last[0][todo]) & (rest <= last[1][todo])
        bad = np.flatnonzero((chosen < bounds[0][some]) | (chosen > bounds[1][some]))
        if bad.size:
            good[np.searchsorted(np.cumsum(counts[todo]), bad, "right")] = False
        return good

    return fits


def first_largest(values: Floats, starts: Ints, counts: Ints) -> Ints:
    """The first place of the largest value in each run."""
    largest = np.maximum.reduceat(values, starts)
    places = np.flatnonzero(values == np.repeat(largest, counts))
    return places[np.searchsorted(places, starts)]
