"""Recoded axes whose groups differ in size: filled up to one size with values that nobody has.

Filled up, everything falls apart again (residuals.py). That nobody has these values is known: measuring them as 0 tells
nothing new, and the best linear estimate is that of the filled table given that they are 0. As for ties between tables
it is z − ΣTᵀ(TΣTᵀ)⁻¹Tz, with T the outputs of such values (docs/theory/areas-and-margins.md, section 6).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np

from holdfast.arrays import Array, Bools, Floats, Ints
from holdfast.domains import Cube
from holdfast.queries.areas.area_equalities import Axes
from holdfast.queries.areas.area_margins import AreaMargins
from holdfast.trees.normal.residuals import Residuals

#: Rounds of conjugate gradients, and the part that may be left over, of the largest at the start.
ROUNDS, LEFT = 400, 1e-11


def priced(values: Floats, tied: Callable[[Floats], Floats], spread: Callable[[Floats], Floats]) -> Floats:
    """Return z − ΣTᵀ(TΣTᵀ)⁻¹Tz for every table, (tables, n); tied: times T. spread: prices times ΣTᵀ."""
    left = tied(values)
    aim = LEFT * np.abs(left).max(axis=1, initial=0.0, keepdims=True)
    direction, size = left.copy(), (left**2).sum(axis=1, keepdims=True)
    for _ in range(ROUNDS):
        if (np.abs(left) <= aim).all():
            break
        moved = spread(direction)
        change = tied(moved)
        step = size / np.maximum((direction * change).sum(axis=1, keepdims=True), 1e-300)
        values, left = values - step * moved, left - step * change
        before, size = size, (left**2).sum(axis=1, keepdims=True)
        direction = left + size / np.maximum(before, 1e-300) * direction
    return values


@dataclass(frozen=True, eq=False)
class Padded(Residuals):
    """The coordinates of a query that was filled up, and where its own outputs and cells stand there."""

    asked: AreaMargins
    outputs: Ints
    cells: Ints

    @classmethod
    def of(cls, asked: AreaMargins, precisions: tuple[float, ...]) -> Padded:
        """Fill up a query."""
        table, places = _filled(asked.table)
        query = AreaMargins.of(asked.hierarchy, table, asked.keep)
        outputs = np.empty(asked.n, np.int64)
        for g, (_, kept) in enumerate(asked.groups):
            outputs[asked.outputs(g)] = query.outputs(g)[:, _entries(table, places, kept)]
        return cls(query, precisions, asked, outputs, _entries(table, places, asked.every_axis))

    @property
    def exact(self) -> bool:
        return False

    @cached_property
    def _nobody(self) -> Ints:
        """The measured outputs of values that nobody has."""
        free = np.ones(self.query.n, bool)
        free[self.outputs] = False
        for g, p in enumerate(self.precisions):
            if p == 0:
                self.query.set(free, g, False)
        return np.flatnonzero(free)

    def inside(self, measured: Floats) -> Floats:
        """Return measured values of all outputs with 0 for values that nobody has."""
        result = np.zeros((*measured.shape[:-1], self.query.n))
        result[..., self.outputs] = measured
        return result

    def outside(self, values: Floats) -> Floats:
        return values[..., self.outputs]

    def answer(self, cells: Array) -> Array:
        """Return the outputs that were asked from the cells of the leaves."""
        return self.asked.totals(np.ascontiguousarray(cells[:, self.cells]))

    def empty(self, known: Bools | None) -> Bools:
        """Return the cells of the leaves that are 0: those that nobody has, and those that are known."""
        result = np.ones((self.query.hierarchy.n_leaves, self.query.table.cells), bool)
        result[:, self.cells] = False if known is None else known
        return result

    def estimated(self, measured: Floats, *, below: bool = False) -> Floats:
        """Return the best linear estimate of the filled table; from below, without what nobody has."""
        rows = np.atleast_2d(np.asarray(measured, np.float64))
        values = super().estimated(rows, below=below)
        if not below:
            variance = (1 / np.array([p or 1.0 for p in self.precisions]))[self.query.level_of[self._nobody]]

            def spread(prices: Floats) -> Floats:
                pulled = np.zeros((len(prices), self.query.n))
                pulled[:, self._nobody] = prices * variance
                return Residuals.estimated(self, pulled)

            values = priced(values, lambda found: found[:, self._nobody], spread)
        return values.reshape(np.shape(measured))


def _filled(table: Cube) -> tuple[Cube, dict[int, Ints]]:
    """Return a cube whose groups have one size, and where the values of every axis and recoding stand there."""
    shape, recoded, places = [], {}, {}
    for axis in range(len(table.shape)):
        chain = table.chain(axis)
        places[chain[0]], size = np.arange(table.sizes[chain[0]]), table.sizes[chain[0]]
        sizes = [size]
        for coarse, fine in pairwise(chain):
            group = np.empty(table.sizes[fine], np.int64)
            group[table.groups(fine)] = table.groups(coarse)
            rank = np.array([int((group[:value] == each).sum()) for value, each in enumerate(group.tolist())])
            widest = int(rank.max()) + 1
            places[fine] = places[coarse][group] * widest + rank
            size *= widest
            sizes.append(size)
        shape.append(size)
        for each, count in zip(chain[:-1], sizes, strict=False):
            recoded[table.all_names[each]] = (axis, np.arange(size) // (size // count))
    return Cube(shape, table.names, recoded), places


def _entries(table: Cube, places: dict[int, Ints], kept: Axes) -> Ints:
    """Return where the entries of a margin stand in that of the cube that was filled up."""
    position = np.zeros(1, np.int64)
    for axis in kept:
        position = (position[:, None] * table.sizes[axis] + places[axis]).ravel()
    return position
