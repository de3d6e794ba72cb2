"""Listing a difference set: the distinct non-zero answers' differences between neighbours, both signs."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
from scipy.sparse import csc_array

from holdfast.arguments import LARGEST, Refused
from holdfast.arrays import Array
from holdfast.queries.columns import Columns
from holdfast.queries.neighbours import Neighbours

#: Entries of all tables together that are built while listing.
MOST_ENTRIES = 40_000_000


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
    if rows * n > MOST_ENTRIES:
        raise Refused(
            f"differences must be few enough to list, at most {MOST_ENTRIES} numbers, "
            f"but this query and relation would need {rows} rows of {n}"
        )
