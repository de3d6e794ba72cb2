"""Bounds carried from row to row, exactly, until two of them cross or the work is used up.

A row Σ a_j z_j ≥ b bounds each of its coordinates once the others are bounded. Every derived bound remembers,
as a set of bits, which parts it was derived from; two bounds that cross prove that these parts contradict.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from scipy import sparse

from holdfast.arguments import LARGEST
from holdfast.arrays import Bools, Ints
from holdfast.exact.rationals import ExactVector

#: Entries of rows looked at before giving up: a fixed amount, and some for each entry there is. Bounds that
#: creep (z₀ ≤ z₁/2, z₁ ≤ z₀/2 + 1) would otherwise go on for ever.
_PATIENCE, _PATIENCE_EACH = 50_000, 20
#: Creeping bounds double their digits at every step. One with a larger denominator is not taken over, which is
#: always allowed: it is only a bound less.
_FINEST = 2**40
#: Sums of bounds stay below this size, so that 64 bits hold them.
_SAFE = 2.0**60


def _light(value: Fraction | int) -> Fraction | int:
    """Return a whole number as an int: much faster to compute with than a Fraction."""
    return int(value) if value.denominator == 1 else value


def _quotient(value: Any, by: int) -> Any:
    """Return value / by exactly, as an int where it is whole."""
    if isinstance(value, int) and value % by == 0:
        return value // by
    return _light(Fraction(value) / by)


class _Box:
    """Bounds and the parts behind them, on both sides of every coordinate."""

    def __init__(self, lower: ExactVector, upper: ExactVector, bound_parts: Ints, whole: bool) -> None:
        self.rounded: tuple[Any, Any] = (math.ceil, math.floor) if whole else (_light, _light)
        self.value: list[list[Any]] = [
            [self.rounded[k](value) for value in side.tolist()] for k, side in enumerate((lower, upper))
        ]
        self.parts = [[1 << k if k >= 0 else 0 for k in side] for side in bound_parts.tolist()]

    def tightened(self, side: int, column: int, limit: Any, parts: int) -> bool:
        """Take over a better bound; one of 2**62 or more in size, or of many digits, is not worth having."""
        limit, old = self.rounded[side](limit), self.value[side][column]
        if abs(limit) >= LARGEST or limit.denominator > _FINEST or (limit <= old if side == 0 else limit >= old):
            return False
        self.value[side][column] = limit
        self.parts[side][column] = parts
        return True

    def crossed(self, column: int) -> int | None:
        """Return the parts behind two crossing bounds on this coordinate, or None."""
        if self.value[0][column] <= self.value[1][column]:
            return None
        return self.parts[0][column] | self.parts[1][column]


def _derived(box: _Box, row: Sequence[tuple[int, int]], b: Any, own: int) -> Iterator[int]:
    """Yield the columns that a row Σ a_j z_j ≥ b gives a better bound, once that bound is entered."""
    most: Any = 0
    open_at = -1
    for column, a in row:
        bound = box.value[1 if a > 0 else 0][column]
        if abs(bound) >= LARGEST:
            if open_at >= 0:
                return  # two coordinates without a bound: nothing follows for either
            open_at = column
        else:
            most += a * bound
    for column, a in row:
        if open_at not in (-1, column):
            continue
        side = 1 if a > 0 else 0
        rest = most if open_at == column else most - a * box.value[side][column]
        parts = own
        for other, factor in row:
            if other != column:
                parts |= box.parts[1 if factor > 0 else 0][other]
        if box.tightened(1 - side, column, _quotient(b - rest, a), parts):
            yield column


def crossing_parts(
    A: sparse.csr_array,
    b: ExactVector,
    equality: Bools,
    origins: Ints,
    bounds: tuple[ExactVector, ExactVector, Ints],
    *,
    whole: bool = False,
) -> frozenset[int] | None:
    """Return the numbers of parts that are proved to contradict each other, or None if nothing crosses.

    Rows are A z = b where `equality`, otherwise A z ≥ b; `origins` numbers the part of each row and `bounds`
    holds the lower bounds, the upper bounds and the parts (2, n) they come from. For `whole` points every bound is
    rounded to a whole number.
    """
    box = _Box(*bounds, whole)
    starts, columns, values = A.indptr.tolist(), A.indices.tolist(), A.data.tolist()
    by_column = sparse.csc_array(A)
    waiting = deque(range(A.shape[0]))
    queued = [True] * A.shape[0]
    work = _PATIENCE + _PATIENCE_EACH * A.nnz
    while waiting and work > 0:
        i = waiting.popleft()
        queued[i] = False
        row = list(zip(columns[starts[i] : starts[i + 1]], values[starts[i] : starts[i + 1]], strict=True))
        own = 1 << int(origins[i])
        side = _light(b.item(i))
        senses = ((1, side), (-1, -side)) if equality[i] else ((1, side),)
        for sign, least in senses:
            work -= len(row)
            for column in _derived(box, [(j, sign * a) for j, a in row], least, own):
                work -= len(row)
                found = box.crossed(column)
                if found is not None:
                    return frozenset(k for k in range(found.bit_length()) if found >> k & 1)
                for k in by_column.indices[by_column.indptr[column] : by_column.indptr[column + 1]].tolist():
                    if not queued[k]:
                        queued[k] = True
                        waiting.append(k)
    return None


def carried(A: sparse.csr_array, b: Ints, bounds: tuple[Ints, Ints], rounds: int, *, whole: bool) -> tuple[Ints, Ints]:
    """Return bounds after rows A z ≥ b carried them on, all at once in each round, or as soon as two cross.

    A row bounds each of its coordinates once the others are at their best. Real values keep the next whole number
    outside. What 64 bits might not hold counts as without limit: a bound less is always allowed.
    """
    low, high = bounds
    row, column, a = np.repeat(np.arange(A.shape[0]), np.diff(A.indptr)), A.indices, A.data
    most_in_a_row = max(1, int(np.diff(A.indptr).max(initial=1)))
    for _ in range(rounds):
        best = np.where(a > 0, high[column], low[column])
        size = np.abs(best.astype(np.float64))
        is_open = (size >= LARGEST) | (np.abs(a.astype(np.float64)) * size >= _SAFE / most_in_a_row)
        share = a * np.where(is_open, 0, best)
        sums = np.zeros(A.shape[0], dtype=np.int64)
        np.add.at(sums, row, share)
        opens = np.bincount(row[is_open], minlength=A.shape[0])
        decided = opens[row] - is_open == 0
        need, at, factor = (b[row] - (sums[row] - share))[decided], column[decided], a[decided]
        up = factor > 0
        before, (low, high) = (low, high), (low.copy(), high.copy())
        np.maximum.at(low, at[up], -(-need[up] // factor[up]) if whole else need[up] // factor[up])
        np.minimum.at(high, at[~up], need[~up] // factor[~up] if whole else -(-need[~up] // factor[~up]))
        if (low > high).any() or (np.array_equal(before[0], low) and np.array_equal(before[1], high)):
            break
    return low, high
