"""Bounds on differences of two values and on values: z_i ≤ z_j + b_ij, low ≤ z ≤ high, in whole numbers.

Such a set is a lattice: with two tables it holds the smaller and the larger value of each cell.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from scipy import sparse
from scipy.sparse import csgraph

from holdfast.arrays import Ints
from holdfast.constraints import System

#: No bound; sums of two stay within 64 bits, and everything from half of it on counts as none.
NONE = 1 << 60
#: Bounds are smaller than this, so that sums along a path stay far below NONE.
LARGEST_BOUND = 1 << 48


@dataclass(frozen=True, eq=False)
class DifferenceBounds:
    """z_i ≤ z_j + within[i, j] and low ≤ z ≤ high, all as tight as they follow from each other; ±NONE for no bound.

    `edges` are the pairs (i, j) whose bound does not follow from others.
    """

    within: Ints
    low: Ints
    high: Ints
    edges: tuple[tuple[int, int], ...]

    @classmethod
    def of(cls, bounds: dict[tuple[int, int], int], low: Ints, high: Ints) -> DifferenceBounds | None:
        """Close bounds under shortest paths; None where some cells can only change together."""
        n = low.size
        within = np.full((n, n), NONE, dtype=np.int64)
        for (i, j), b in bounds.items():
            within[i, j] = min(b, within[i, j])
        given = within.copy()
        np.fill_diagonal(within, 0)
        for k in range(n):
            np.minimum(within, _plus(within[:, [k]], within[[k], :]), out=within)
        ties = _plus(within, within.T)
        np.fill_diagonal(ties, NONE)
        if (ties <= 0).any() or (np.diag(within) < 0).any():
            return None
        edges = [(i, j) for i, j in bounds if given[i, j] == within[i, j] and _needed(within, i, j)]
        highest = np.minimum(high, _plus(within, high[None, :]).min(axis=1, initial=NONE))
        lowest = -np.minimum(-low, _plus(within.T, -low[None, :]).min(axis=1, initial=NONE))
        return cls(within, lowest, highest, tuple(sorted(set(edges))))

    @property
    def mirrored(self) -> DifferenceBounds:
        """The same set seen from below: every value z is −z."""
        turned = tuple(sorted((j, i) for i, j in self.edges))
        return DifferenceBounds(np.ascontiguousarray(self.within.T), -self.high, -self.low, turned)


def _plus(a: Ints, b: Ints) -> Ints:
    """Sums of bounds; NONE where a term is NONE."""
    return np.where((np.abs(a) >= NONE // 2) | (np.abs(b) >= NONE // 2), NONE, a + b)


def _needed(within: Ints, i: int, j: int) -> bool:
    """Whether z_i ≤ z_j + b follows from no path over other cells."""
    through = _plus(within[i, :], within[:, j])
    through[[i, j]] = NONE
    return bool(through.min(initial=NONE) > within[i, j])


def read(system: System) -> list[tuple[Ints, DifferenceBounds]] | None:
    """The cells of a system of bounds on whole values and differences, in parts that no row connects.

    None where other rows are asked for, numbers are large, or cells can only change together.
    """
    if system.branches or system.invariants.count or system.equalities.sizes.max(initial=0) > 1:
        return None
    bounds = _pairs(system)
    if bounds is None:
        return None
    low, high = (np.clip(side, -NONE, NONE) for side in system.integer_bounds())
    fixed = system.equalities
    for i in range(fixed.count):
        j = int(fixed.A.indices[i])
        value = Fraction(fixed.b[i : i + 1].tolist()[0]) / int(fixed.A.data[i])
        if value.denominator != 1:
            return None
        low[j], high[j] = max(int(low[j]), int(value)), min(int(high[j]), int(value))
    sides = np.concatenate([low, high, np.array(list(bounds.values()), dtype=np.int64)])
    if (np.abs(sides[np.abs(sides) < NONE]) >= LARGEST_BOUND).any():
        return None
    graph = sparse.csr_array((np.ones(len(bounds)), tuple(np.array(list(bounds)).T)), shape=(system.n, system.n))
    label = csgraph.connected_components(graph, directed=False)[1]
    order = np.argsort(label, kind="stable")
    parts = []
    for cells in np.split(order, np.flatnonzero(np.diff(label[order])) + 1):
        place = {int(cell): k for k, cell in enumerate(cells)}
        own = {(place[i], place[j]): b for (i, j), b in bounds.items() if i in place} if cells.size > 1 else {}
        closed = DifferenceBounds.of(own, low[cells], high[cells])
        if closed is None:
            return None
        parts.append((cells, closed))
    return parts


def _pairs(system: System) -> dict[tuple[int, int], int] | None:
    """Rows a·z_j − a·z_i ≥ h as z_i ≤ z_j + b; None where a row is another one."""
    rows = system.inequalities
    if not rows.count or (rows.sizes != 2).any():
        return None
    found: dict[tuple[int, int], int] = {}
    columns, data = rows.A.indices.reshape(-1, 2), rows.A.data.reshape(-1, 2)
    if (data.sum(axis=1) != 0).any():
        return None
    for (i, j), (first, _), side in zip(columns.tolist(), data.tolist(), rows.b.tolist(), strict=True):
        pair, size = ((j, i), first) if first > 0 else ((i, j), -first)
        b = math.floor(-Fraction(side) / size)
        found[pair] = min(b, found.get(pair, b))
    return found
