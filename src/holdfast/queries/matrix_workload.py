"""A workload: any matrix W of public numbers, q(x) = W·hist(x)."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from flint import fmpz_mat
from scipy.sparse import csc_array, csr_array, issparse

from holdfast.arguments import LARGEST, Matrix, Number, Refused, positive, reals, whole_numbers
from holdfast.arguments import array as numbers
from holdfast.arrays import Array, Ints
from holdfast.queries.columns import Columns, equal_columns, terms_of
from holdfast.queries.linear_query import Query

#: The largest matrix of distinct columns whose left null space is computed exactly.
MOST_EXACT_ENTRIES = 250_000


@dataclass(frozen=True, eq=False, repr=False)
class Workload(Query):
    """The rows of a matrix W; with a grid, W is counted in whole steps of it."""

    matrix: Columns
    step: Fraction | None

    @property
    def cells(self) -> int:
        return int(self.matrix.shape[1])

    @property
    def integer(self) -> bool:
        """Whether the entries (in steps of the grid) are whole."""
        return bool(self.matrix.dtype.kind == "i")

    @property
    def grid(self) -> Fraction | None:
        """The step, if one was given: answers, columns and sensitivities are counted in steps of it."""
        return self.step

    @cached_property
    def columns(self) -> Columns:
        """W itself, or its entries as whole numbers of steps."""
        return self.matrix

    @cached_property
    def labels(self) -> npt.NDArray[np.object_]:
        return np.array([f"row {i}" for i in range(self.n)], dtype=object)

    def consistency(self) -> csr_array[Any]:
        """Return a whole basis of the left null space of W, exactly; refused for large W."""
        classes = equal_columns(self.matrix)
        distinct = self.matrix[:, np.unique(classes, return_index=True)[1]]
        if distinct.shape[0] * distinct.shape[1] > MOST_EXACT_ENTRIES:
            raise Refused(
                f"consistency must be asked of a workload with at most {MOST_EXACT_ENTRIES} entries in its "
                f"distinct columns, found {distinct.shape[0]} by {distinct.shape[1]}"
            )
        table = [[0] * self.n for _ in range(distinct.shape[1])]
        for j, row in enumerate(table):
            terms = terms_of(distinct, j)
            denominator = max((Fraction(entry).denominator for entry, _ in terms), default=1)
            for entry, i in terms:  # doubles have powers of two as denominators: the largest serves all
                row[i] = int(entry * denominator)
        basis, count = fmpz_mat(table).nullspace()
        rows = [[int(basis[i, j]) for i in range(self.n)] for j in range(count)]
        return csr_array(_primitive(rows, self.n))

    def _answer(self, cells: Ints) -> Array:
        if not self.integer:
            return np.asarray(self.matrix @ cells.astype(np.float64), dtype=np.float64)
        estimate = np.asarray(abs(self.matrix).astype(np.float64) @ cells.astype(np.float64))
        if estimate.size and estimate.max() >= LARGEST / 2:
            raise Refused("cells must have answers below 2**61 in size")
        return np.asarray(self.matrix @ cells, dtype=np.int64)


def _primitive(rows: list[list[int]], n: int) -> Ints:
    result = np.zeros((len(rows), n), np.int64)
    for i, row in enumerate(rows):
        common = int(np.gcd.reduce(np.array(row, dtype=object)))
        reduced = [entry // common for entry in row]
        if max(map(abs, reduced)) >= LARGEST:
            raise Refused(f"consistency must fit in 64 bits, but equality {i} of this workload does not")
        result[i] = reduced
    return result


def workload(W: Matrix, grid: Number | None = None) -> Query:
    """Ask W·hist(x) for a matrix W of shape (outputs, cells).

    Args:
        W: dense or sparse. Whole W gives whole answers.
        grid: with real W, whole numbers of steps of the grid: each entry of W is rounded to the nearest multiple of it
            (ties to even), so that every answer lies exactly on it. `columns`, `largest` and `kinds` then count in
            steps; `answer`, `differences` and `sensitivity` speak in the units of W. None: real W gives real answers.

    Example:
        >>> import holdfast as hf
        >>> prefix_sums = hf.workload([[1, 0, 0], [1, 1, 0], [1, 1, 1]])
        >>> prefix_sums.answer([5, 0, 7]).tolist(), prefix_sums.sensitivity(1)
        ([5, 5, 12], 3.0)
    """
    sparse: Columns | None = None
    if issparse(W):
        given: Any = W
        sparse = csc_array(given, copy=True)
        sparse.sum_duplicates()
    data = numbers("W", W if sparse is None else sparse.data)
    shape = data.shape if sparse is None else sparse.shape
    if len(shape) != 2 or 0 in shape:
        raise Refused(f"W must have shape (outputs, cells) with at least one of each, found shape {shape}")
    step = None if grid is None else positive("grid", grid)
    whole = data.dtype.kind in "iu" or bool((reals("W", data) == np.rint(data)).all())
    if step is not None:
        data = _in_steps(data, step)
    elif whole:
        data = whole_numbers("W", data)
    else:
        data = reals("W", data)
    matrix = csc_array(data) if sparse is None else csc_array((data, sparse.indices, sparse.indptr), shape=shape)
    matrix.eliminate_zeros()
    return Workload(int(shape[0]), matrix, step)


def _in_steps(data: Array, step: Fraction) -> Ints:
    distinct, inverse = np.unique(data, return_inverse=True)
    exact = [Fraction(int(value)) if data.dtype.kind in "iu" else Fraction(float(value)) for value in distinct]
    steps = [round(value / step) for value in exact]
    if any(abs(count) >= LARGEST for count in steps):
        raise Refused("grid must be coarse enough for W to stay below 2**62 steps")
    return np.array(steps, dtype=np.int64)[inverse].reshape(data.shape)
