"""Round the cells of the parts of an area to whole numbers that add up to the cells above and keep every part's total.

The cells of the parts are a table with parts as rows: its column sums are whole and its row sums are rounded up or
down. Such a rounding always exists, and the cheapest one is a vertex of a transport polytope, whose vertices are whole.
"""

from __future__ import annotations

import numpy as np
from scipy import sparse

from holdfast.arrays import Floats, Ints
from holdfast.exact.solver import linear_program, solved

#: Parts of a cell this near to a whole number are taken for it.
NEAR = 1e-7


def rounded(cells: Floats, above: Ints | None, coins: Floats) -> Ints:
    """Return whole cells, each rounded up or down, with the column sums `above` and row sums rounded up or down.

    coins: numbers in [0, 1) of the same shape that decide between equally good roundings.
    """
    low = np.floor(cells + NEAR).astype(np.int64)
    part = np.where(np.abs(cells - low) <= NEAR, 0.0, cells - low)
    row, column = np.nonzero(part)
    if row.size == 0:
        return low
    chance = part[row, column]
    cost = (1 - 2 * chance) + 1e-4 * coins[row, column]
    totals = np.bincount(row, chance, minlength=len(cells))
    used, place = np.unique(column, return_inverse=True)
    entry = np.arange(row.size)
    by_row = sparse.csr_array((np.ones(row.size), (row, entry)), shape=(len(cells), row.size))
    by_column = sparse.csr_array((np.ones(row.size), (place, entry)), shape=(used.size, row.size))
    if above is None:
        lower, upper, matrix = np.rint(totals), np.rint(totals), by_row
    else:
        missing = (above - low.sum(axis=0))[used].astype(np.float64)
        lower = np.concatenate([np.floor(totals - NEAR * row.size), missing])
        upper = np.concatenate([np.ceil(totals + NEAR * row.size), missing])
        matrix = sparse.csr_array(sparse.vstack([by_row, by_column]))
    found = solved(linear_program(matrix, cost, (0.0, 1.0), (lower, upper), solver="simplex"))
    assert found is not None  # the parts themselves are a solution
    low[row, column] += np.rint(found).astype(np.int64)
    return low
