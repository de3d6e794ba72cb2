"""Matrices of a refinement read as exact rationals, and the few exact operations on them."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from flint import fmpq, fmpq_mat, fmpz_mat
from scipy import sparse

from holdfast.arguments import Refused
from holdfast.exact.rationals import numeric, read_number

#: A computed double this near to a fraction with a denominator up to this one is read as that fraction. Fractions of
#: such denominators lie a million times further apart, so the reading is unique.
COARSEST, NEARNESS = 10**4, 1e-13
#: A matrix of doubles that misses A·A = A by at most this part is a projector up to rounding.
ROUNDED = 1e-9


def as_fraction(value: Any) -> Fraction:
    return Fraction(int(value.p), int(value.q)) if isinstance(value, fmpq) else Fraction(int(value))


def from_fraction(value: Fraction | int) -> fmpq:
    exact = Fraction(value)
    return fmpq(exact.numerator, exact.denominator)


def read_entry(name: str, value: Any) -> Fraction:
    """Return the rational that an entry stands for; refuse a double that is near to no simple one."""
    exact, rational = read_number(name, value)
    if rational and (exact.denominator <= COARSEST or not isinstance(value, (float, np.floating))):
        return exact
    near = exact.limit_denominator(COARSEST)
    # Also where the double is short: 2**-54 is what an inverse in doubles leaves of a 0.
    if abs(exact - near) <= Fraction(NEARNESS) * max(Fraction(1), abs(exact)):
        return near
    if rational:
        return exact
    raise Refused(
        f"{name} must hold rational numbers, found {value!r}, which is near to none with a denominator up to "
        f"{COARSEST}: give fractions, or let LinearRefinement.best(B, covariance) make the matrix"
    )


def dense(name: str, matrix: Any) -> Any:
    """Return a dense or sparse matrix as a two-dimensional array of numbers."""
    stored: bool = sparse.issparse(matrix)
    found = numeric(name, matrix.toarray() if stored else matrix)
    if found.ndim != 2 or 0 in found.shape:
        raise Refused(f"{name} must be a matrix with at least one row and one column, found shape {found.shape}")
    return found


def read_matrix(name: str, matrix: Any, rows: int | None = None, columns: int | None = None) -> fmpq_mat:
    """Return a matrix of rationals, of the given shape where one is given."""
    found = dense(name, matrix)
    wanted = tuple(size if asked is None else asked for size, asked in zip(found.shape, (rows, columns), strict=True))
    if found.shape != wanted:
        raise Refused(f"{name} must have shape {wanted}, found shape {found.shape}")
    result = made([[read_entry(name, value) for value in row] for row in found.tolist()], found.shape[1])
    if found.dtype.kind == "f" and found.shape[0] == found.shape[1]:
        _refuse_misread(name, found.astype(np.float64), result)
    return result


def _refuse_misread(name: str, doubles: np.ndarray[Any, np.dtype[np.float64]], read: fmpq_mat) -> None:
    """Refuse a square matrix of doubles that is a projector up to rounding and was not read as one.

    Every unbiased refinement that meets what is known is a projector, A·A = A; its rank decides what can be told apart.
    """
    size = max(1.0, float(np.abs(doubles).max()))
    if np.abs(doubles @ doubles - doubles).max() > ROUNDED * size**2:
        return
    if read * read != read:
        raise Refused(
            f"{name} is a projector up to rounding, but which one cannot be read from its doubles: give fractions, or "
            "let LinearRefinement.best(B, covariance) make the matrix"
        )


def made(rows: Sequence[Sequence[Fraction | int]], columns: int) -> fmpq_mat:
    if not rows or not columns:
        return fmpq_mat(len(rows), columns)
    return fmpq_mat([[from_fraction(value) for value in row] for row in rows])


def identity(n: int) -> fmpq_mat:
    return made([[int(i == j) for j in range(n)] for i in range(n)], n)


def as_floats(matrix: fmpq_mat) -> np.ndarray[Any, np.dtype[np.float64]]:
    rows, columns = matrix.nrows(), matrix.ncols()
    values = [float(as_fraction(value)) for value in matrix.entries()]
    return np.array(values, dtype=np.float64).reshape(rows, columns)


def as_rows(matrix: fmpq_mat) -> list[list[Fraction]]:
    return [[as_fraction(matrix[i, j]) for j in range(matrix.ncols())] for i in range(matrix.nrows())]


def pivots(matrix: fmpq_mat) -> tuple[fmpq_mat, list[int]]:
    """Return the reduced row echelon form and its pivot columns."""
    reduced, rank = matrix.rref()
    found, column = [], 0
    for i in range(rank):
        while reduced[i, column] == 0:
            column += 1
        found.append(column)
    return reduced, found


def left_null_space(matrix: fmpq_mat) -> list[list[int]]:
    """Return whole vectors y with yᵀ·matrix = 0 that span all of them."""
    whole, _ = matrix.transpose().numer_denom()
    basis, count = fmpz_mat(whole).nullspace()
    return [[int(basis[i, j]) for i in range(matrix.nrows())] for j in range(count)]
