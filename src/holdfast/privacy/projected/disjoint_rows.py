"""Projection of cells on the null space of equalities that share no cell, in closed form.

For one row a through cell j: Π e_j = e_j − (a_j/‖a‖²)·a; cells outside every row stay as they are.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
from scipy.sparse import csr_array

#: Different coefficients in one row up to which all pairs of them are compared exactly.
MOST_COEFFICIENTS = 300


def disjoint_rows_norm(rows: csr_array[Any], norm: float, adds: bool) -> Fraction | None:
    """Return max ‖Π d‖_p over one-record differences of the cells (its square for p = 2), exactly."""
    free = rows.shape[1] - rows.nnz
    singles = [Fraction(1)] * min(free, 2)
    best = Fraction(0)
    seen: dict[tuple[bytes, bytes], int] = {}
    for r in range(rows.shape[0]):
        entries, times = np.unique(rows.data[rows.indptr[r] : rows.indptr[r + 1]], return_counts=True)
        if entries.size == 0:
            continue
        if entries.size > MOST_COEFFICIENTS:
            return None
        key = (entries.tobytes(), times.tobytes())
        seen[key] = seen.get(key, 0) + 1
        if seen[key] > 2:  # equal rows give equal norms, and a pair touches two rows at most
            continue
        line = _Row([Fraction(entry.item()) for entry in entries], [int(t) for t in times], norm)
        singles.append(max(line.one(i) for i in range(entries.size)))
        if not adds:
            best = max(best, line.best_pair())
    if adds:
        return max(singles)
    singles.sort(reverse=True)
    if len(singles) > 1:  # different rows: the two images share no cell
        best = max(best, singles[0] if norm == np.inf else singles[0] + singles[1])
    return best


class _Row:
    """One equality: its distinct coefficients, how often each occurs, and the norm that is asked."""

    def __init__(self, entries: list[Fraction], times: list[int], norm: float) -> None:
        self.entries, self.times, self.norm = entries, times, norm
        self.square = sum((t * a * a for a, t in zip(entries, times, strict=True)), Fraction(0))

    def one(self, i: int) -> Fraction:
        a = self.entries[i]
        return self._total([1 - a * a / self.square], a / self.square, {i: 1})

    def two(self, i: int, k: int) -> Fraction:
        a, b = self.entries[i], self.entries[k]
        slope = (a - b) / self.square
        used = {i: 2} if i == k else {i: 1, k: 1}
        return self._total([1 - slope * a, -1 - slope * b], slope, used)

    def best_pair(self) -> Fraction:
        best = Fraction(0)
        for i in range(len(self.entries)):
            for k in range(i, len(self.entries)):
                if k > i or self.times[i] > 1:
                    best = max(best, self.two(i, k))
        return best

    def _total(self, own: list[Fraction], slope: Fraction, used: dict[int, int]) -> Fraction:
        """Return the norm of the own entries and of −slope·a on the row's other cells."""
        sizes = [(abs(x), 1) for x in own]
        for i, (a, t) in enumerate(zip(self.entries, self.times, strict=True)):
            if t > used.get(i, 0):
                sizes.append((abs(slope * a), t - used.get(i, 0)))
        if self.norm == np.inf:
            return max(x for x, _ in sizes)
        return sum((t * x ** int(self.norm) for x, t in sizes), Fraction(0))
