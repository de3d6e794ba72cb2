"""Bounds of cells carried from row to row in whole numbers, until nothing changes."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from holdfast.arguments import LARGEST
from holdfast.arrays import Ints
from holdfast.disclosure.figures import SAFE, CellRows, Contradiction

#: Rounds after which bounds that still creep are left as they are: a bound less is always allowed.
ROUNDS = 40


def carried(rows: CellRows) -> CellRows:
    """Return the rows with tighter bounds; refuse where two bounds cross.

    A row Σ a_j x_j ≥ h bounds each of its cells once the others are at their best; an equality is two such rows.
    """
    M = sparse.csr_array(sparse.vstack([rows.A, -rows.A, rows.G], format="csr"))
    side = np.concatenate([rows.b, -rows.b, rows.h])
    low, high = rows.low.copy(), rows.high.copy()
    row = np.repeat(np.arange(M.shape[0]), np.diff(M.indptr))
    cell, a = M.indices, M.data
    most_in_a_row = max(1, int(np.diff(M.indptr).max(initial=1)))
    for _ in range(ROUNDS):
        best = np.where(a > 0, high[cell], low[cell])
        # what 64 bits might not hold counts as without limit
        free = (best >= LARGEST) | (np.abs(a.astype(np.float64)) * best >= SAFE / most_in_a_row)
        share = np.where(free, 0, a * np.where(free, 0, best))
        most, open_ends = _sums(M, row, share), _sums(M, row, free.astype(np.int64))
        rest = most[row] - share
        bound = (open_ends[row] - free) == 0  # everything else in the row is bounded
        needed = side[row] - rest
        up, down = bound & (a > 0), bound & (a < 0)
        new_low, new_high = low.copy(), high.copy()
        np.maximum.at(new_low, cell[up], -((-needed[up]) // a[up]))
        np.minimum.at(new_high, cell[down], (-needed[down]) // (-a[down]))
        if (new_low > new_high).any():
            raise Contradiction
        if np.array_equal(new_low, low) and np.array_equal(new_high, high):
            break
        low, high = new_low, new_high
    if (low > high).any():
        raise Contradiction
    return CellRows(rows.A, rows.b, rows.G, rows.h, low, high)


def _sums(M: sparse.csr_array, row: Ints, values: Ints) -> Ints:
    total = np.zeros(M.shape[0], dtype=np.int64)
    np.add.at(total, row, values)
    return total
