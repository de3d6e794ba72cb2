"""A sparse Cholesky factorisation of A·diag(τ)·Aᵀ for ever new τ: ordering and pattern are found once, all is compiled.

Rows are put in an order of little fill (minimum degree). The pattern of the factor follows from the elimination tree;
the numbers are then computed row by row.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from scipy.sparse import linalg

from holdfast.arrays import Floats, Ints, compiled

#: Products that one sum A·diag(τ)·Aᵀ may take, and entries that its factor may have.
MOST_PRODUCTS, MOST_ENTRIES = 20_000_000, 20_000_000


class Pattern(NamedTuple):
    """What the compiled factorisation sees. Rows of A are permuted and scaled; columns are those of A."""

    column_start: Ints  # A by columns
    column_rows: Ints
    column_values: Floats
    sum_start: Ints  # row k of the lower half of A·diag(τ)·Aᵀ: entries sum_start[k] … sum_start[k+1]−1
    sum_column: Ints
    product_start: Ints  # products coefficient·τ[cell] that add up to an entry
    product_cell: Ints
    product_coefficient: Floats
    factor_start: Ints  # row k of the factor left of the diagonal, columns increasing
    factor_column: Ints
    place_start: Ints  # where column j of the factor is stored, its diagonal first

    @property
    def rank(self) -> int:
        """The number of rows."""
        return int(self.sum_start.size - 1)


def pattern_of(rows: sparse.csr_array) -> Pattern | None:
    """Prepare independent rows (r, n); None where sums or factor would be too large."""
    A = sparse.csr_array(rows.astype(np.float64))
    lengths = np.sqrt(np.asarray(A.multiply(A).sum(axis=1)).ravel())
    A = sparse.csr_array(sparse.diags_array(1.0 / lengths, format="csr") @ A)
    r = int(A.shape[0])
    counts = np.diff(sparse.csc_array(A).indptr).astype(np.int64)
    if int((counts * (counts + 1) // 2).sum()) > MOST_PRODUCTS:
        return None
    # A diagonal that dominates: no pivoting disturbs the order, which depends on the pattern alone.
    gram = sparse.csc_array(abs(A) @ abs(A).T)
    gram = sparse.csc_array(gram + sparse.diags_array(np.asarray(gram.sum(axis=1)).ravel()))
    order = np.argsort(linalg.splu(gram, permc_spec="MMD_AT_PLUS_A", options={"SymmetricMode": True}).perm_c)
    columns = sparse.csc_array(sparse.csr_array(A[order]))
    columns.sort_indices()
    sums = _products(columns)
    factor = _factor_rows(r, sums[0], sums[1])
    if factor is None:
        return None
    start, column = factor
    places = np.concatenate([[0], np.cumsum(1 + np.bincount(column, minlength=r))]).astype(np.int64)
    return Pattern(
        columns.indptr.astype(np.int64), columns.indices.astype(np.int64), columns.data, *sums, start, column, places
    )


def _products(columns: sparse.csc_array) -> tuple[Ints, Ints, Ints, Ints, Floats]:
    """The lower half of A·diag(τ)·Aᵀ as sums of products."""
    r = int(columns.shape[0])
    first, second, cells, coefficients = _pairs(
        columns.indptr.astype(np.int64), columns.indices.astype(np.int64), columns.data
    )
    order = np.lexsort((cells, second, first))
    key = (first * r + second)[order]
    begins = np.flatnonzero(np.concatenate([[True], key[1:] != key[:-1]])) if key.size else np.zeros(0, np.int64)
    found = key[begins]
    start = np.searchsorted(found // r, np.arange(r + 1))
    product_start = np.append(begins, key.size).astype(np.int64)
    return start.astype(np.int64), found % r, product_start, cells[order], coefficients[order]


@compiled
def _pairs(start: Any, rows: Any, values: Any) -> Any:  # pragma: no cover (compiled)
    total = 0
    for i in range(start.size - 1):
        count = start[i + 1] - start[i]
        total += count * (count + 1) // 2
    first, second = np.empty(total, np.int64), np.empty(total, np.int64)
    cells, coefficients = np.empty(total, np.int64), np.empty(total)
    at = 0
    for i in range(start.size - 1):
        for p in range(start[i], start[i + 1]):
            for q in range(start[i], p + 1):
                first[at], second[at] = max(rows[p], rows[q]), min(rows[p], rows[q])
                cells[at], coefficients[at] = i, values[p] * values[q]
                at += 1
    return first, second, cells, coefficients


def _factor_rows(r: int, start: Ints, column: Ints) -> tuple[Ints, Ints] | None:
    counts, parents = _row_counts(r, start, column)
    if int(counts.sum()) > MOST_ENTRIES:
        return None
    begins = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    return begins, _row_columns(r, start, column, parents, begins)


@compiled
def _row_counts(r: int, start: Any, column: Any) -> Any:  # pragma: no cover (compiled)
    """Entries of each row of the factor left of the diagonal, and the elimination tree."""
    parents, seen = np.full(r, -1, np.int64), np.full(r, -1, np.int64)
    counts = np.zeros(r, np.int64)
    for k in range(r):
        seen[k] = k
        for p in range(start[k], start[k + 1]):
            j = column[p]
            while j < k and seen[j] != k:
                if parents[j] < 0:
                    parents[j] = k
                seen[j] = k
                counts[k] += 1
                j = parents[j]
    return counts, parents


@compiled
def _row_columns(r: int, start: Any, column: Any, parents: Any, begins: Any) -> Any:  # pragma: no cover (compiled)
    result, seen = np.empty(begins[-1], np.int64), np.full(r, -1, np.int64)
    for k in range(r):
        seen[k] = k
        at = begins[k]
        for p in range(start[k], start[k + 1]):
            j = column[p]
            while j < k and seen[j] != k:
                seen[j] = k
                result[at] = j
                at += 1
                j = parents[j]
        result[begins[k] : at].sort()
    return result


@compiled
def factorise(a: Pattern, tau: Any, work: Any, used: Any, factor: Any, places: Any) -> None:  # pragma: no cover
    """Fill `factor` (and the rows of its entries, `places`) with the Cholesky factor of A·diag(tau)·Aᵀ.

    `work` holds zeros and does so again afterwards; `used` is scratch; each has an entry per row.
    """
    for k in range(a.sum_start.size - 1):
        used[k] = a.place_start[k] + 1
        for entry in range(a.sum_start[k], a.sum_start[k + 1]):
            total = 0.0
            for p in range(a.product_start[entry], a.product_start[entry + 1]):
                total += a.product_coefficient[p] * tau[a.product_cell[p]]
            work[a.sum_column[entry]] = total
        pivot = work[k]
        work[k] = 0.0
        for p in range(a.factor_start[k], a.factor_start[k + 1]):
            j = a.factor_column[p]
            begin = a.place_start[j]
            value = work[j] / factor[begin]
            work[j] = 0.0
            for q in range(begin + 1, used[j]):
                work[places[q]] -= factor[q] * value
            pivot -= value * value
            factor[used[j]] = value
            places[used[j]] = k
            used[j] += 1
        factor[a.place_start[k]] = np.sqrt(max(pivot, 1e-300))
        places[a.place_start[k]] = k


@compiled(inner=True)
def solve(a: Pattern, factor: Any, places: Any, right: Any) -> None:  # pragma: no cover (compiled)
    """Replace `right` by (A·diag(tau)·Aᵀ)⁻¹ right."""
    r = right.size
    for j in range(r):
        begin = a.place_start[j]
        right[j] /= factor[begin]
        for q in range(begin + 1, a.place_start[j + 1]):
            right[places[q]] -= factor[q] * right[j]
    for j in range(r - 1, -1, -1):
        begin = a.place_start[j]
        total = right[j]
        for q in range(begin + 1, a.place_start[j + 1]):
            total -= factor[q] * right[places[q]]
        right[j] = total / factor[begin]


@compiled
def correct(a: Pattern, tau: Any, factor: Any, places: Any, values: Any, right: Any) -> None:  # pragma: no cover
    """Subtract diag(tau)·Aᵀ(A·diag(tau)·Aᵀ)⁻¹A·values from values; `right` is scratch, an entry per row."""
    right[:] = 0.0
    for i in range(values.size):
        for p in range(a.column_start[i], a.column_start[i + 1]):
            right[a.column_rows[p]] += a.column_values[p] * values[i]
    solve(a, factor, places, right)
    for i in range(values.size):
        total = 0.0
        for p in range(a.column_start[i], a.column_start[i + 1]):
            total += a.column_values[p] * right[a.column_rows[p]]
        values[i] -= tau[i] * total
