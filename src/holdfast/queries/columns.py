"""Exact work on the columns of a sparse matrix: largest weighted column, pairs, equal columns, all differences."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
from scipy.sparse import csc_array, csr_array

from holdfast.arguments import LARGEST, Refused
from holdfast.arrays import Array, Ints
from holdfast.queries.exact_weights import NOTHING, Bound, Weights, greatest
from holdfast.queries.neighbours import Neighbours

Columns = csc_array[Any]

#: Pairs of columns are listed up to this many, and up to this many stored entries, in blocks of PAIR_BLOCK.
MOST_PAIRS = 4_000_000
MOST_PAIR_ENTRIES = 40_000_000
PAIR_BLOCK = 100_000
#: Estimates by doubles are trusted for numbers between these; outside every column is summed exactly.
SMALLEST = 1e-280
LARGEST_ESTIMATE = 1e280
#: Near-ties that are settled one by one in exact fractions; beyond that the bound is rounded up.
MOST_TIES = 512
#: Ties are first merged by their sums per group when there are at most this many groups.
MOST_GROUPS = 64
#: Entries of all tables together that are built while the differences of neighbours are listed.
MOST_DIFFERENCES = 40_000_000

Terms = list[tuple[Any, int]]


def largest_column(
    columns: Columns, weights: Weights, p: int, exact_terms: Callable[[int], Terms] | None = None
) -> Bound:
    """Return max over the columns c of Σ_i weight_i·|c_i|^p.

    Doubles find the candidates, with a proved margin; exact fractions decide among them. `exact_terms(j)`
    gives the (entry, row) pairs of column j exactly where the stored doubles are themselves rounded.
    """
    if columns.shape[1] == 0 or columns.nnz == 0 or max(weights.values) == 0:
        return NOTHING
    with np.errstate(over="ignore", under="ignore"):
        size = abs(columns).astype(np.float64).power(p)
        estimate = np.asarray(weights.floats() @ size, dtype=np.float64).ravel()
    top = float(estimate.max())
    least = float(size.data[columns.data != 0].min(initial=1)) * weights.least_ratio()
    if not (least > SMALLEST and top < LARGEST_ESTIMATE):  # doubles would lose more than their last bits
        return _settled(columns, weights, p, exact_terms)
    # Each term carries at most 2p + 3 roundings, a sum of k terms k − 1 more; all terms are ≥ 0.
    margin = (int(np.diff(columns.indptr).max()) + 16) * 2.0**-52
    near = np.flatnonzero(estimate >= top * (1 - 3 * margin))
    chosen = columns[:, near]
    if exact_terms is None and columns.dtype.kind == "i" and len(weights.values) <= MOST_GROUPS:
        first = _first_of_each_sum(chosen, weights, p, top)
        near, chosen = near[first], chosen[:, first]
    if near.size > MOST_TIES:
        return Bound(Fraction(top * (1 + 3 * margin)) * max(weights.values), False)
    renamed = None if exact_terms is None else lambda j: exact_terms(int(near[j]))
    return _settled(chosen, weights, p, renamed)


def _settled(columns: Columns, weights: Weights, p: int, exact_terms: Callable[[int], Terms] | None) -> Bound:
    numerators, denominator = weights.numerators()
    best = Fraction(0)
    for j in range(columns.shape[1]):
        total = Fraction(0)
        for entry, row in terms_of(columns, j) if exact_terms is None else exact_terms(j):
            total += numerators[0 if weights.which is None else int(weights.which[row])] * abs(entry) ** p
        best = max(best, total)
    return Bound(best / denominator, True)


def _first_of_each_sum(columns: Columns, weights: Weights, p: int, top: float) -> Ints:
    """Return one column for each distinct vector of sums per group (equal vectors have equal totals)."""
    if not 0 < top < np.inf or float(abs(columns).max()) ** p * columns.shape[0] >= 2**62:
        return np.arange(columns.shape[1])
    group = np.zeros(weights.n, np.int64) if weights.which is None else weights.which
    chooser = csr_array(
        (np.ones(weights.n, np.int64), (group, np.arange(weights.n))), shape=(len(weights.values), weights.n)
    )
    sums = (chooser @ abs(columns).power(p)).toarray().T
    return np.unique(sums, axis=0, return_index=True)[1]


def terms_of(columns: Columns, j: int) -> Terms:
    """Return the (entry, row) pairs of a column exactly, as ints or fractions."""
    part = slice(columns.indptr[j], columns.indptr[j + 1])
    whole = columns.dtype.kind == "i"
    return [
        (int(entry) if whole else Fraction(float(entry)), int(row))
        for entry, row in zip(columns.data[part], columns.indices[part], strict=True)
    ]


def pair_blocks(columns: Columns, classes: Ints) -> Iterator[tuple[Columns, Ints, Ints]] | None:
    """Return blocks (differences, first, second) over pairs of cells of one class ≥ 0; None if too many."""
    order = np.argsort(classes, kind="stable")
    order = order[classes[order] >= 0]
    starts = np.flatnonzero(np.diff(classes[order], prepend=-1))
    sizes = np.diff(np.append(starts, order.size))
    length = np.diff(columns.indptr)
    entries = sum(
        (int(s) - 1) * int(length[order[a : a + s]].sum()) for a, s in zip(starts, sizes, strict=True) if s > 1
    )
    if int((sizes * (sizes - 1) // 2).sum()) > MOST_PAIRS or entries > MOST_PAIR_ENTRIES:
        return None
    return _pair_blocks(columns, order, starts, sizes)


def _pair_blocks(columns: Columns, order: Ints, starts: Ints, sizes: Ints) -> Iterator[tuple[Columns, Ints, Ints]]:
    waiting: list[tuple[Ints, Ints]] = []
    count = 0
    for start, size in zip(starts, sizes, strict=True):
        if size < 2:
            continue
        a, b = np.triu_indices(size, 1)
        for cut in range(0, a.size, PAIR_BLOCK):
            waiting.append((order[start + a[cut : cut + PAIR_BLOCK]], order[start + b[cut : cut + PAIR_BLOCK]]))
            count += waiting[-1][0].size
            if count >= PAIR_BLOCK:
                yield _difference(columns, waiting)
                waiting, count = [], 0
    if waiting:
        yield _difference(columns, waiting)


def _difference(columns: Columns, waiting: list[tuple[Ints, Ints]]) -> tuple[Columns, Ints, Ints]:
    first = np.concatenate([a for a, _ in waiting])
    second = np.concatenate([b for _, b in waiting])
    difference = csc_array(columns[:, first] - columns[:, second])
    difference.eliminate_zeros()
    return difference, first, second


def largest_pair(columns: Columns, weights: Weights, p: int, classes: Ints) -> Bound:
    """Return max over pairs of cells of one class of Σ_i weight_i·|w_ij − w_ik|^p.

    Beyond the sizes that are listed, a bound: |a − b| ≤ |a| + |b|, and (a − b)² ≤ a² + b² for entries ≥ 0.
    """
    classes = distinct_only(columns, classes)
    blocks = pair_blocks(columns, classes)
    if blocks is None:
        counts = np.bincount(classes[classes >= 0])
        paired = np.flatnonzero((classes >= 0) & (counts[np.maximum(classes, 0)] > 1))
        single = largest_column(columns[:, paired], weights, p)
        factor = 2 if p == 1 or columns.data.min() >= 0 else 4
        return Bound(single.value * factor, False)
    return greatest(_largest_in_block(columns, weights, p, *block) for block in blocks)


def _largest_in_block(
    columns: Columns, weights: Weights, p: int, difference: Columns, first: Ints, second: Ints
) -> Bound:
    def terms(t: int) -> Terms:
        total: dict[int, Any] = {}
        for sign, j in ((1, int(first[t])), (-1, int(second[t]))):
            for entry, row in terms_of(columns, j):
                total[row] = total.get(row, 0) + sign * entry
        return [(entry, row) for row, entry in total.items()]

    return largest_column(difference, weights, p, None if columns.dtype.kind == "i" else terms)


def equal_columns(columns: Columns) -> Ints:
    """Return a class number for each column that exactly the equal columns share; class 0 is zero."""
    tidy = csc_array(columns, copy=True)
    tidy.sum_duplicates()
    tidy.eliminate_zeros()
    tidy.sort_indices()
    length = np.diff(tidy.indptr)
    classes = np.zeros(length.size, np.int64)
    used = 1
    for k in np.unique(length[length > 0]):
        members = np.flatnonzero(length == k)
        places = tidy.indptr[members].astype(np.int64)[:, None] + np.arange(k)
        rows = tidy.indices[places].astype(np.int64)
        data = (tidy.data[places] + 0).view(np.int64)  # + 0 turns −0.0 into 0.0; bits then decide equality
        number = np.zeros(members.size, np.int64)
        for place in range(int(k)):  # equal so far and equal here: numbers stay below the count of columns
            for entry in (rows[:, place], data[:, place]):
                number = _numbered(number, entry)
        classes[members] = used + number
        used += int(number.max()) + 1
    return classes


def _numbered(group: Ints, entry: Ints) -> Ints:
    """Return a number from 0 on for each pair of a group and an entry, in their order."""
    least, most = int(entry.min()), int(entry.max())
    if least == most:
        return group
    width = most - least + 1
    if (int(group.max()) + 1) * width >= 2**62:
        entry, least = np.unique(entry, return_inverse=True)[1].ravel(), 0
        width = int(entry.max()) + 1
    keys = group * width + (entry - least)
    if int(keys.max()) > 4 * keys.size:
        return np.unique(keys, return_inverse=True)[1].ravel()
    return np.asarray((np.cumsum(np.bincount(keys) > 0) - 1)[keys])


def distinct_only(columns: Columns, classes: Ints) -> Ints:
    """Return the classes with all but the first of equal columns in a class set to −1 (they add nothing)."""
    keys = np.stack([classes, equal_columns(columns)])
    result = np.full(classes.size, -1, np.int64)
    first = np.unique(keys, axis=1, return_index=True)[1]
    result[first] = classes[first]
    return result


def widest_row(columns: Columns, classes: Ints) -> Fraction:
    """Return max over rows i and pairs j, k of one class of |w_ij − w_ik|, exactly."""
    kept = np.flatnonzero(classes >= 0)
    sub = columns[:, kept].tocoo()
    high, low, present = row_extremes(sub.row.astype(np.int64), classes[kept][sub.col], sub.data, columns.shape[0])
    size = np.bincount(classes[kept])
    absent = present[2] < size[present[1]]  # some cell of the class has no entry in this row: its entry is 0
    high, low = np.where(absent, np.maximum(high, 0), high), np.where(absent, np.minimum(low, 0), low)
    best = Fraction(0)
    if high.size:
        width = high.astype(np.float64) - low.astype(np.float64)
        near = np.flatnonzero(width >= width.max() * (1 - 2.0**-50))
        exact = int if columns.dtype.kind == "i" else (lambda x: Fraction(float(x)))
        best = max(Fraction(exact(high[i]) - exact(low[i])) for i in near)
    return best


def row_extremes(row: Ints, group: Ints, data: Array, rows: int) -> tuple[Array, Array, tuple[Ints, Ints, Ints]]:
    """Return (max, min, (row, group, count)) of the stored entries of each (row, group) that has any."""
    if data.size == 0:
        none = np.zeros(0, np.int64)
        return data, data, (none, none, none)
    key = group.astype(np.int64) * rows + row
    order = np.argsort(key, kind="stable")
    starts = np.flatnonzero(np.diff(key[order], prepend=-1))
    high, low = np.maximum.reduceat(data[order], starts), np.minimum.reduceat(data[order], starts)
    at = key[order][starts]
    return high, low, (at % rows, at // rows, np.diff(np.append(starts, order.size)))


#: Differences that are looked at before all are listed.
FEW = 30


def difference_set(columns: Columns, neighbours: Neighbours) -> Array:
    """Return the difference set of q(x) = W·hist(x) as distinct rows, shape (m, n), both signs, without 0."""
    n, cells = columns.shape
    size = 2 * cells if neighbours.adds else cells * (cells - 1)
    _refuse_large(size, n)
    table = np.ascontiguousarray(columns.toarray().T)
    if neighbours.adds:
        one = np.vstack([table, -table])
    else:
        first, second = np.nonzero(~np.eye(cells, dtype=bool))
        one = table[first] - table[second]
    one = _distinct(one)
    # With every further record there are more sums, by as many as one record has differences at least, less one.
    _refuse_large(neighbours.records * len(one), n)
    # Of d independent ones there are as many sums as ways to choose how often each occurs.
    rank, others = int(np.linalg.matrix_rank(one[-FEW:])) if neighbours.records > 2 else 1, neighbours.records - 1
    _refuse_large(math.comb(others + rank, rank) * len(one), n)
    reached, listed = one, 0
    for _ in range(neighbours.records - 1):
        listed += len(reached) * len(one)
        _refuse_large(listed, n)
        sums = (reached[:, None, :] + one[None, :, :]).reshape(-1, n)
        reached = _distinct(np.vstack([reached, sums]))
    return reached


def few_differences(columns: Columns, neighbours: Neighbours, most: int) -> Array | None:
    """Return the difference set where it has at most so many rows; where not, None, mostly before all are listed."""
    one = difference_set(columns, replace(neighbours, records=1))
    # Several records change whatever one changes, and sums of two such changes: two rows are added to all of them.
    some = one if neighbours.records == 1 else _distinct((one[:, None] + one[None, :2]).reshape(-1, columns.shape[0]))
    if max(len(one), len(some)) > most:
        return None
    found = difference_set(columns, neighbours)
    return found if len(found) <= most else None


def one_of_each_sign(differences: Array) -> Columns:
    """Return the differences as sparse columns, one of d and −d each (rows come both signs and sorted)."""
    return csc_array(differences[: len(differences) // 2].T)


def _distinct(rows: Array) -> Array:
    """Return the distinct rows that are not 0, in order."""
    found = rows[(rows != 0).any(axis=1)] + 0  # + 0 turns −0.0 into 0.0
    if not found.size or found.dtype.kind not in "iu":
        return np.unique(found, axis=0)
    low, high = found.min(axis=0), found.max(axis=0)
    widths = [int(top) - int(bottom) + 1 for bottom, top in zip(low, high, strict=True)]
    if math.prod(widths) >= LARGEST:
        return np.unique(found, axis=0)
    # Each row as one number, whose order is that of the rows: sorted in a twentieth of the time.
    numbers = np.unique(np.ravel_multi_index(tuple((found - low).T), tuple(widths)))
    return np.stack(np.unravel_index(numbers, tuple(widths)), axis=1).astype(found.dtype) + low


def _refuse_large(rows: int, n: int) -> None:
    if rows * n > MOST_DIFFERENCES:
        raise Refused(
            f"differences must be few enough to list, at most {MOST_DIFFERENCES} numbers, "
            f"but this query and relation would need {rows} rows of {n}"
        )
