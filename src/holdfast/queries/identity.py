"""Queries that ask every cell: a histogram, or all cells of a cube. W is the identity."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import csc_array, csr_array

from holdfast.arguments import Refused, whole
from holdfast.arrays import Bools, Ints
from holdfast.domains import Cube
from holdfast.queries.columns import Columns
from holdfast.queries.exact_weights import NOTHING, Bound, Weights
from holdfast.queries.kinds import Kind, maximal
from holdfast.queries.linear_query import Query
from holdfast.queries.neighbours import Neighbours

#: Cells of the largest table that is answered cell by cell: its arrays still fit an ordinary computer.
MOST_ASKED = 2**31


@dataclass(frozen=True, eq=False, repr=False)
class CellCounts(Query):
    """One output per cell: a record adds 1 to its cell."""

    table: Cube | None = None

    @property
    def cells(self) -> int:
        return self.n

    @property
    def identity(self) -> bool:
        return True

    @property
    def cube(self) -> Cube | None:
        return self.table

    @cached_property
    def columns(self) -> Columns:
        index = np.arange(self.n + 1)
        return csc_array((np.ones(self.n, np.int64), index[:-1], index), shape=(self.n, self.n))

    @cached_property
    def labels(self) -> npt.NDArray[np.object_]:
        if self.table is None:
            return np.array([f"cell {j}" for j in range(self.n)], dtype=object)
        names, points = self.table.names, self.table.coordinates(np.arange(self.n))
        texts = [", ".join(f"{a}={c}" for a, c in zip(names, point, strict=True)) for point in points]
        return np.array(texts, dtype=object)

    def consistency(self) -> csr_array[Any]:
        return csr_array((0, self.n), dtype=np.int64)

    def _answer(self, cells: Ints) -> Ints:
        return cells.copy()

    def _cell_shapes(self) -> list[tuple[int, ...]]:
        shape = None if self.table is None else self.table.shape
        return [(self.n,)] if shape in (None, (self.n,)) else [(self.n,), shape or ()]

    def single(self, weights: Weights, p: int, mask: Bools | None) -> Bound:
        del p  # a cell changes by 1
        groups = _present(weights.which, mask, self.n)
        return Bound(max((weights.values[g] for g in groups), default=Fraction(0)), True)

    def pair(self, weights: Weights, p: int, classes: Ints | None) -> Bound:
        """Return the largest sum of two weights in one class."""
        del p
        best = NOTHING.value
        for groups in _pairs(weights.which, classes, self.n, _ranks(weights)):
            best = max(best, sum((weights.values[g] for g in groups), Fraction(0)))
        return Bound(best, True)

    def single_kinds(self, which: Ints | None, mask: Bools | None) -> list[Kind]:
        return maximal(frozenset({((1, g), 1)}) for g in _present(which, mask, self.n))

    def pair_kinds(self, which: Ints | None, classes: Ints | None) -> list[Kind]:
        pairs = _pairs(which, classes, self.n, None)
        return maximal(frozenset(Counter((1, g) for g in pair).items()) for pair in pairs)

    def _widest(self, relation: Neighbours) -> Fraction:
        return Fraction(1 if relation.adds or self.n > 1 else 0)

    def _columns_for_kinds(self, which: Ints | None, mask: Bools | None, relation: Neighbours) -> Columns:
        # Cells of one group are exchangeable; a difference touches at most 2·records of them.
        cells = np.arange(self.n) if mask is None else np.flatnonzero(mask)
        group = np.zeros(cells.size, np.int64) if which is None else which[cells]
        order = np.argsort(group, kind="stable")
        rank = np.empty(cells.size, np.int64)
        starts = np.flatnonzero(np.diff(group[order], prepend=-1))
        sizes = np.diff(np.append(starts, cells.size))
        rank[order] = np.arange(cells.size) - np.repeat(starts, sizes)
        return self.columns[:, cells[rank < 2 * relation.records]]


def _present(which: Ints | None, mask: Bools | None, n: int) -> list[int]:
    """Return the groups that have an allowed cell."""
    if which is None:
        return [0] if n and (mask is None or mask.any()) else []
    return [int(g) for g in np.unique(which if mask is None else which[mask])]


def _ranks(weights: Weights) -> Ints:
    order = sorted(range(len(weights.values)), key=lambda g: weights.values[g])
    ranks = np.empty(len(order), np.int64)
    ranks[order] = np.arange(len(order))
    return ranks


def _pairs(which: Ints | None, classes: Ints | None, n: int, ranks: Ints | None) -> list[tuple[int, ...]]:
    """Return the pairs of groups of two cells in one class; with `ranks` only the best pair of each class."""
    cells = np.arange(n) if classes is None else np.flatnonzero(classes >= 0)
    group = np.zeros(cells.size, np.int64) if which is None else which[cells]
    label = np.zeros(cells.size, np.int64) if classes is None else classes[cells]
    value = group if ranks is None else ranks[group]
    order = np.lexsort((-value, label))
    label, group = label[order], group[order]
    starts = np.flatnonzero(np.diff(label, prepend=-1))
    sizes = np.diff(np.append(starts, label.size))
    if ranks is not None:
        first = starts[sizes > 1]
        found = np.unique(np.sort(np.stack([group[first], group[first + 1]], axis=1), axis=1), axis=0)
        return [tuple(int(g) for g in pair) for pair in found]
    pairs: set[tuple[int, ...]] = set()
    seen: set[bytes] = set()
    for start, size in zip(starts, sizes, strict=True):
        distinct, times = np.unique(group[start : start + size], return_counts=True)
        key = distinct.tobytes() + (times > 1).tobytes()
        if key not in seen:
            seen.add(key)
            pairs |= {(int(g), int(g)) for g in distinct[times > 1]}
            pairs |= {(int(a), int(b)) for i, a in enumerate(distinct) for b in distinct[i + 1 :]}
    return sorted(pairs)


def histogram(n: int) -> Query:
    """Ask the count of each of n cells; one record adds 1 to one cell.

    Args:
        n: how many cells.

    Example:
        >>> import holdfast as hf
        >>> hf.histogram(3).sensitivity(1, "replace-one")
        2.0
    """
    size = whole("n", n, at_least=1)
    if size > MOST_ASKED:
        raise Refused(f"n must be at most 2**31 cells, found {size}")
    return CellCounts(size)
