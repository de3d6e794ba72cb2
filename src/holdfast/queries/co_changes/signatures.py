"""Signatures: what each cell adds to the invariants, s_j = C·w_j, and the cells that add the same."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import csc_array, csr_array, hstack, issparse

from holdfast.arguments import LARGEST, Refused
from holdfast.arrays import Bools, Ints
from holdfast.queries.columns import Columns, equal_columns

#: Fractions in the rows are cleared by powers of two up to this one; doubles with finer parts are refused.
FINEST = 60


@dataclass(frozen=True, eq=False)
class Signatures:
    """The signature of each cell as a column, its class (0: zero; −1: the cell cannot hold records)."""

    matrix: Columns
    classes: Ints

    @property
    def zero(self) -> Bools:
        """Which cells add nothing to any invariant."""
        return self.classes == 0

    def distinct(self) -> Columns:
        found, first = np.unique(self.classes, return_index=True)
        return self.matrix[:, first[found >= 0]]


def signatures(rows: Any, columns: Columns, mask: Bools | None) -> Signatures:
    """Return rows @ columns exactly, with the classes of equal signatures among the allowed cells."""
    entries: Any = rows if issparse(rows) else np.atleast_2d(np.asarray(rows))
    given = csr_array(entries)
    if given.shape[1] != columns.shape[0]:
        raise Refused(f"rows must have one column per output, {columns.shape[0]}, found shape {given.shape}")
    left = _whole("rows", given)
    right = columns if columns.dtype.kind == "i" else _whole("query", columns.tocsr())
    largest = [float(np.abs(each.data).max(initial=0)) for each in (left, right)]
    most = largest[0] * largest[1] * np.diff(right.tocsc().indptr).max(initial=0)  # no entry of the product is larger
    if most >= LARGEST / 2 and _size(left, right) >= LARGEST / 2:
        raise Refused(
            "the weights of the query and the rows of the constraint have too many digits together for exact "
            "arithmetic: round the weights to multiples of 2**-20, say"
        )
    matrix = csc_array(left @ right)
    matrix.eliminate_zeros()
    classes = equal_columns(matrix)
    if mask is not None:
        classes[~mask] = -1
    return Signatures(matrix, classes)


def _size(left: Any, right: Any) -> float:
    """The largest sum of sizes that is added up in a product."""
    sizes = abs(left).astype(np.float64) @ abs(right).astype(np.float64)
    return float(sizes.max()) if sizes.nnz else 0.0


def _whole(name: str, given: csr_array[Any]) -> csr_array[Any]:
    """Return the matrix times a power of two that makes its entries whole (null spaces stay the same)."""
    data = given.data
    if data.dtype.kind not in "iuf":
        raise Refused(f"{name} must hold numbers, found values of type {data.dtype}")
    if data.dtype.kind == "f":
        if not np.isfinite(data).all():
            raise Refused(f"{name} must hold finite numbers")
        scaled = (np.ldexp(data, k) for k in range(FINEST))
        whole = next((entries for entries in scaled if (entries == np.rint(entries)).all()), None)
        if whole is None:
            raise Refused(f"{name} must hold whole multiples of 2**-{FINEST - 1}")
        data = whole
    if data.size and float(np.abs(data).max()) >= LARGEST:
        raise Refused(f"{name} must stay below 2**62 in size")
    return csr_array((data.astype(np.int64), given.indices, given.indptr), shape=given.shape)


def opposite(distinct: Columns) -> bool:
    """Return whether some non-zero signature is the negative of another."""
    classes = equal_columns(csc_array(hstack([distinct, -distinct], format="csc")))
    half = distinct.shape[1]
    return bool(np.isin(classes[:half][classes[:half] > 0], classes[half:]).any())


def independent(distinct: Columns) -> bool:
    """Return True if the distinct non-zero signatures were shown to be linearly independent.

    The proof is by peeling: an equality that only one remaining signature touches forces its coefficient to be
    0. It succeeds for all nested equalities (exact nodes of a hierarchy) and fails for crossed ones, where
    False means "not shown". For replacements the number of records is kept too: that settles the coefficient
    of the zero signature once the others are settled (docs/theory/difference-sets.md, Proposition 8).
    """
    table = distinct.tocsc()
    alive = np.diff(table.indptr) > 0
    by_row = table.tocsr()
    degree = np.diff(by_row.indptr).astype(np.int64)
    settled = by_row.indices[by_row.indptr[:-1][degree == 1]]
    if np.unique(settled).size == np.count_nonzero(alive):
        return True  # each has an equality of its own
    ready = list(np.flatnonzero(degree == 1))
    while ready:
        row = ready.pop()
        if degree[row] != 1:
            continue
        owners = by_row.indices[by_row.indptr[row] : by_row.indptr[row + 1]]
        column = int(owners[alive[owners]][0])
        alive[column] = False
        touched = table.indices[table.indptr[column] : table.indptr[column + 1]]
        degree[touched] -= 1
        ready.extend(touched[degree[touched] == 1])
    return not alive.any()
