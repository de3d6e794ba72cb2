"""Finding a two-way table whose row sums and column sums are all held."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from holdfast.arrays import Ints
from holdfast.constraints.system.system import System


def crossed_table(system: System) -> Ints | None:
    """Return the outputs as a table (rows, columns), rows not more than columns, if its margins are all that is held.

    Every equality sums a row or a column with equal coefficients, and every row and column has its equality.
    """
    if system.branches or system.inequalities.count:
        return None
    A = sparse.csr_array(sparse.vstack([system.equalities.A, system.invariants.A], format="csr"))
    A.eliminate_zeros()
    count, n = A.shape
    if n == 0 or A.nnz != 2 * n or (np.diff(A.indptr) == 0).any():
        return None
    if (A.data != np.repeat(A.data[A.indptr[:-1]], np.diff(A.indptr))).any():
        return None
    columns = sparse.csc_array(A)
    columns.sort_indices()
    if (np.diff(columns.indptr) != 2).any():
        return None
    ends = columns.indices.reshape(n, 2).astype(np.int64)
    first, second = ends[0]
    down = np.unique(ends[(ends == second).any(axis=1)].ravel())
    down = down[down != second]
    is_row = np.zeros(count, dtype=bool)
    is_row[down] = True
    if down.size * (count - down.size) != n or not is_row[first] or (is_row[ends].sum(axis=1) != 1).any():
        return None
    row, column = np.where(is_row[ends[:, 0]], ends.T, ends.T[::-1])
    place = np.cumsum(is_row) - 1, np.cumsum(~is_row) - 1
    table = np.full((down.size, count - down.size), -1, dtype=np.int64)
    table[place[0][row], place[1][column]] = np.arange(n)
    if (table < 0).any():
        return None
    return table if table.shape[0] <= table.shape[1] else np.ascontiguousarray(table.T)
