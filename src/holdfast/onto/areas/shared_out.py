"""Share out the cells of one area among its parts, as near as can be to the estimated margins of each part.

Least Σ_A q_A‖M_A x_c − y_cA‖² over parts c and margins A, with x ≥ 0 and Σ_c x_c = the cells above. The quadratic
part is diagonal in the coordinates of sets of axes (docs/theory/areas-and-margins.md), the rest are simplices, one
per cell: the alternating direction method of multipliers takes them in turn, O(parts × cells) each time.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy import sparse

from holdfast.arrays import Array, Bools, Floats, Ints
from holdfast.domains import Cube
from holdfast.exact.solver import linear_program, solved
from holdfast.queries.areas.area_equalities import Axes
from holdfast.trees.normal import grains
from holdfast.trees.normal.contrasts import turned, turned_back

#: Rounds of the method, and the distance (root mean square, in records per cell) at which it has settled: far below 1,
#: since the cells are rounded next.
ROUNDS, SETTLED = 300, 2e-3
#: How far each round goes beyond its own answer.
OVER = 1.6


@dataclass(frozen=True, eq=False)
class Sharing:
    """The margins that are told about every area of one level, with the weight of each."""

    table: Cube
    margins: tuple[Axes, ...]
    weights: tuple[float, ...]

    @cached_property
    def strength(self) -> Floats:
        """The weight of every coordinate, in the steps of the cells: Σ κ·q over the margins that hold it."""
        total = np.zeros(grains.steps(self.table, self.cells))
        for kept, weight in zip(self.margins, self.weights, strict=True):
            total[grains.held(self.table, kept)] += weight * self._summed(kept)
        return total

    @property
    def cells(self) -> Axes:
        return tuple(range(len(self.table.shape)))

    def _summed(self, kept: Axes) -> int:
        return self.table.cells // math.prod(self.table.sizes[a] for a in kept)

    @cached_property
    def _order(self) -> Ints | None:
        return grains.order(self.table, self.cells)

    def turned(self, cells: Floats) -> Floats:
        """Return the coordinates of cells, (parts, cells)."""
        placed = cells if self._order is None else cells[:, self._order]
        return turned(placed.reshape(len(cells), *self.strength.shape))

    def turned_back(self, coordinates: Floats) -> Floats:
        """Return the cells, (parts, cells), that have these coordinates."""
        placed = turned_back(coordinates).reshape(len(coordinates), -1)
        if self._order is None:
            return placed
        cells = np.empty_like(placed)
        cells[:, self._order] = placed
        return cells

    def pull(self, told: list[Floats], parts: int) -> Floats:
        """Return Σ q·√κ × the coordinates of the told margins, in the steps of the cells."""
        total = np.zeros((parts, *self.strength.shape))
        for kept, weight, values in zip(self.margins, self.weights, told, strict=True):
            where = total[:, *grains.held(self.table, kept)]
            order, steps = grains.order(self.table, kept), grains.steps(self.table, kept)
            coordinates = turned((values if order is None else values[:, order]).reshape(parts, *steps))
            where += weight * math.sqrt(self._summed(kept)) * coordinates.reshape(where.shape)
        return total

    def shared(
        self, above: Ints | None, told: list[Floats], parts: int, *, signed: bool = False, empty: Bools | None = None
    ) -> Floats:
        """Return cells ≥ 0 of every part, (parts, cells), that add up to those above, where there are any.

        signed: cells of any sign; what is told is then met but for what is missing to the sum, in equal shares. empty:
        cells of parts, (parts, cells), that are 0; above is 0 where all parts are empty.
        """
        if above is not None and parts == 1:
            return above[None].astype(np.float64)
        pull, strength = self.pull(told, parts), self.strength
        if signed:
            free = self.turned_back(np.where(strength > 0, pull / np.where(strength > 0, strength, 1.0), 0.0))
            return free if above is None else free + (above - free.sum(axis=0)) / parts
        known = strength[strength > 0]
        step = float(np.sqrt(known.min() * known.max())) if known.size else 1.0
        fitting = np.zeros((parts, self.table.cells)) if above is None else np.repeat(above[None] / parts, parts, 0)
        price = np.zeros_like(fitting)
        for _ in range(ROUNDS):
            free = self.turned_back((pull + step * self.turned(fitting - price)) / (strength + step))
            reached = OVER * free + (1 - OVER) * fitting
            before, fitting = fitting, allowed(reached + price, above, empty)
            price = price + reached - fitting
            apart, moved = _size(free - fitting), _size(fitting - before)
            if max(apart, moved) <= SETTLED:
                break
            if apart > 10 * moved or moved > 10 * apart:  # keep both in step
                factor = 2.0 if apart > moved else 0.5
                step, price = step * factor, price / factor
        return fitting

    def distance(self, cells: Floats, told: list[Floats]) -> float:
        """Return Σ q·‖margin of the cells − what was told‖²."""
        total, block = 0.0, cells.reshape(len(cells), *self.table.shape)
        for kept, weight, values in zip(self.margins, self.weights, told, strict=True):
            total += weight * float(((self.table.summed(block, kept) - values) ** 2).sum())
        return total


def _size(values: Floats) -> float:
    return float(np.sqrt((values**2).mean()))


def allowed(values: Floats, above: Array | None, empty: Bools | None = None) -> Floats:
    """Return the nearest cells ≥ 0 that add up to those above, 0 where they are empty."""
    if empty is not None:
        values = np.where(empty, -np.inf, values)
    if above is None:
        return np.maximum(values, 0)
    result = np.zeros_like(values)
    active = np.flatnonzero(above)
    result[:, active] = on_simplices(values[:, active], above[active])
    return result


def on_simplices(values: Floats, totals: Ints) -> Floats:
    """Return for each column the nearest vector ≥ 0 with this sum."""
    falling = -np.sort(-values, axis=0)
    excess = np.cumsum(falling, axis=0) - totals
    count = np.arange(1, len(values) + 1)[:, None]
    last = (falling * count > excess).sum(axis=0) - 1
    shift = excess[last, np.arange(values.shape[1])] / (last + 1)
    return np.maximum(values - shift, 0)


#: Parts of a cell this near to a whole number are taken for it.
NEAR = 1e-7


def rounded(cells: Floats, above: Ints | None, coins: Floats) -> Ints:
    """Return whole cells, each rounded up or down, with the column sums `above` and row sums rounded up or down.

    coins: numbers in [0, 1) of the same shape that decide between equally good roundings.
    """
    low = np.floor(cells + NEAR).astype(np.int64)
    part = np.where(np.abs(cells - low) <= NEAR, 0.0, cells - low)
    row, column = np.nonzero(part)
    if row.size == 0:
        return low
    chance = part[row, column]
    cost = (1 - 2 * chance) + 1e-4 * coins[row, column]
    totals = np.bincount(row, chance, minlength=len(cells))
    used, place = np.unique(column, return_inverse=True)
    entry = np.arange(row.size)
    by_row = sparse.csr_array((np.ones(row.size), (row, entry)), shape=(len(cells), row.size))
    by_column = sparse.csr_array((np.ones(row.size), (place, entry)), shape=(used.size, row.size))
    if above is None:
        lower, upper, matrix = np.rint(totals), np.rint(totals), by_row
    else:
        missing = (above - low.sum(axis=0))[used].astype(np.float64)
        lower = np.concatenate([np.floor(totals - NEAR * row.size), missing])
        upper = np.concatenate([np.ceil(totals + NEAR * row.size), missing])
        matrix = sparse.csr_array(sparse.vstack([by_row, by_column]))
    found = solved(linear_program(matrix, cost, (0.0, 1.0), (lower, upper), solver="simplex"))
    assert found is not None  # the parts themselves are a solution
    low[row, column] += np.rint(found).astype(np.int64)
    return low
