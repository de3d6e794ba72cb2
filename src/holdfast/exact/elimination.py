"""Exact elimination of sparse whole-number rows: which rows are independent, and who determines whom.

Rows are dictionaries of Python integers, so nothing overflows and nothing is rounded; a row that reduces to
nothing is thereby *proved* to depend on the others. Pivots of ±1 come first, because they keep everything
whole: where all pivots are ±1, the free coordinates run through all whole numbers and the solutions are a
lattice with one basis vector per free coordinate. Trees never need more than removing columns that occur in a
single row.
"""

from __future__ import annotations

import heapq
import math
from collections import deque
from dataclasses import dataclass

import numpy as np
from scipy import sparse

from holdfast.arrays import Ints

Row = dict[int, int]

#: Times that rows with a column of their own are taken away; trees need one for each level.
MOST_PEELS = 64


@dataclass(frozen=True, eq=False)
class Elimination:
    """Rows in triangular form.

    `steps` holds (column, row) in the order of elimination: a row mentions its own column, and of the other
    pivot columns only later ones. `units` counts the leading steps with a coefficient of ±1; `core` holds the
    rows that were left when no ±1 could be found any more. `independent` lists the original rows that are
    independent.
    """

    n: int
    independent: Ints
    steps: tuple[tuple[int, Row], ...]
    units: int
    core: tuple[Row, ...]

    @property
    def rank(self) -> int:
        return len(self.steps)

    def free(self, after: int | None = None) -> Ints:
        """Return the columns that none of the first `after` steps (all, if None) determines, increasing."""
        taken = [column for column, _ in self.steps[:after]]
        return np.setdiff1d(np.arange(self.n), np.array(taken, dtype=np.int64))


class _Work:
    """The changing state of one elimination; lives only inside `eliminate`."""

    def __init__(self, A: sparse.csr_array) -> None:
        self.rows: dict[int, Row] = {}
        self.columns: dict[int, set[int]] = {}
        data, indices, starts = A.data.tolist(), A.indices.tolist(), A.indptr.tolist()
        for i in range(A.shape[0]):
            row = dict(zip(indices[starts[i] : starts[i + 1]], data[starts[i] : starts[i + 1]], strict=True))
            if row:
                self.rows[i] = row
        for i, row in self.rows.items():
            for column in row:
                self.columns.setdefault(column, set()).add(i)
        self.steps: list[tuple[int, Row]] = []
        self.independent: list[int] = []
        # first come, first served: on a tree the leaves go before the nodes above them, which keeps the basis
        # sparse however deep the tree is
        self.lonely = deque(column for column, users in self.columns.items() if len(users) == 1)
        self.heap = [(len(row), i) for i, row in self.rows.items()]
        heapq.heapify(self.heap)

    def pivot(self, i: int, column: int) -> None:
        """Make row i determine the column, and remove the column from every other row."""
        chosen = self.rows.pop(i)
        self.steps.append((column, chosen))
        self.independent.append(i)
        for other in chosen:
            users = self.columns[other]
            users.discard(i)
            if len(users) == 1:
                self.lonely.append(other)
        for k in sorted(self.columns[column]):
            self._subtract(k, chosen, column)

    def _subtract(self, k: int, chosen: Row, column: int) -> None:
        row = self.rows[k]
        lead, mine = chosen[column], row[column]
        common = math.gcd(lead, mine)
        times, less = lead // common, mine // common
        if times != 1:
            for other in row:
                row[other] *= times
        for other, value in chosen.items():
            left = row.get(other, 0) - less * value
            if left:
                if other not in row:
                    self.columns[other].add(k)
                row[other] = left
            elif other in row:
                del row[other]
                users = self.columns[other]
                users.discard(k)
                if len(users) == 1:
                    self.lonely.append(other)
        if row:
            heapq.heappush(self.heap, (len(row), k))
        else:
            del self.rows[k]  # proved dependent

    def peel(self) -> None:
        """Use up columns that occur in one row only, with coefficient ±1: nothing else changes."""
        while self.lonely:
            column = self.lonely.popleft()
            users = self.columns[column]
            if len(users) == 1:
                (i,) = users
                if abs(self.rows[i][column]) == 1:
                    self.pivot(i, column)

    def shortest(self) -> int | None:
        """Return the row with the fewest entries, or None when no row is left."""
        while self.heap:
            length, i = heapq.heappop(self.heap)
            if i in self.rows and len(self.rows[i]) == length:
                return i
        return None


def _reduce(row: Row) -> None:
    common = math.gcd(*row.values())
    if common > 1:
        for column in row:
            row[column] //= common


def peels(A: sparse.csr_array) -> bool:
    """Whether taking away rows that have a column of their own, again and again, leaves none: all are independent.

    False proves nothing.
    """
    used = A.data != 0
    columns = A.indices[used]
    rows = np.repeat(np.arange(A.shape[0]), np.diff(A.indptr))[used]
    left = int(A.shape[0])
    for _ in range(MOST_PEELS):
        if not left:
            return True
        own = np.zeros(A.shape[0], dtype=bool)
        own[rows[np.bincount(columns, minlength=1)[columns] == 1]] = True
        if not own.any():
            return False
        kept = ~own[rows]
        rows, columns, left = rows[kept], columns[kept], left - int(own.sum())
    return not left


def eliminate(A: sparse.csr_array) -> Elimination:
    """Bring whole-number rows (m, n) into triangular form, exactly."""
    work = _Work(A)
    while True:
        work.peel()
        i = work.shortest()
        if i is None:
            break
        row = work.rows[i]
        _reduce(row)
        units = [column for column, value in row.items() if abs(value) == 1]
        if units:
            work.pivot(i, min(units, key=lambda column: (len(work.columns[column]), column)))
    count = len(work.steps)
    core = tuple(dict(row) for row in work.rows.values())
    while work.rows:
        i = min(work.rows, key=lambda k: (len(work.rows[k]), k))
        row = work.rows[i]
        _reduce(row)
        work.pivot(i, min(row, key=lambda column: (abs(row[column]), len(work.columns[column]), column)))
    independent = np.array(sorted(work.independent), dtype=np.int64)
    return Elimination(int(A.shape[1]), independent, tuple(work.steps), count, core)
