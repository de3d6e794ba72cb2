"""Numbers of constraints read as exact rationals: vectors, and matrices with whole entries.

A number given as an integer, a fraction or a decimal means itself. A double means the simplest rational that
it is the nearest double of (0.5, 1/3), if there is a simple one; any other double (the nearest to √2, say) is
kept as the dyadic number it is and marked as not rational, because its author did not mean that dyadic
number.
"""

from __future__ import annotations

import math
import numbers
from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
from scipy import sparse

from holdfast.arguments import LARGEST, Refused, as_array, rational, shown
from holdfast.arrays import Array

#: A double is read as a fraction if a denominator up to this reproduces it; two such fractions differ by at
#: least 10⁻¹², far more than doubles do near 1, so the reading is unique.
SIMPLE_DENOMINATOR = 10**6
#: A double with at most this many significant bits (2⁻³⁰, say) was meant exactly; those nearest to irrational
#: numbers need about 53, or 24 if they were rounded to single precision before.
SHORT_MANTISSA = 8

#: Exact numbers: int64 where all are whole and below 2**62 in size, otherwise an object array of Fractions.
ExactVector = Array


def read_double(value: float) -> tuple[Fraction, bool]:
    """Return the rational a finite double stands for, and whether it is one its author can have meant."""
    exact = Fraction(value)
    if exact.denominator <= SIMPLE_DENOMINATOR:
        return exact, True
    near = exact.limit_denominator(SIMPLE_DENOMINATOR)
    if float(near) == value and (near or not value):
        return near, True
    odd = exact.numerator
    odd //= odd & -odd
    return exact, abs(odd).bit_length() <= SHORT_MANTISSA


def read_number(name: str, value: Any) -> tuple[Fraction, bool]:
    """Return one finite number as the exact rational it stands for, and whether it is one."""
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (numbers.Real, Decimal)):
        raise Refused(f"{name} must hold numbers, found {shown(value)}")
    if isinstance(value, (numbers.Rational, Decimal)):
        return rational(name, value), True
    if not math.isfinite(value):
        raise Refused(f"{name} must hold finite numbers, found {value}")
    return read_double(float(value))


def numeric(name: str, values: Any) -> Array:
    """Return an array of kind i, u, f or O without rounding; refuse text, truth values and ragged lists."""
    result = as_array(name, values)
    if result.dtype.kind == "f" and not isinstance(values, np.ndarray) and not (abs(result) < 2**53).all():
        # numpy rounds a list that mixes doubles with large whole numbers; objects keep each as it is
        result = as_array(name, values, object)
    if hasattr(type(values), "nnz"):  # numpy takes a sparse matrix for one object
        raise Refused(f"{name} must be a plain array of numbers, found {shown(values)}: pass .toarray()")
    if result.dtype.kind not in "iufO":
        raise Refused(f"{name} must hold numbers, found values of type {result.dtype}")
    return result


def compact(values: Iterable[Fraction], count: int) -> ExactVector:
    """Return exact numbers as int64 where all are whole and small enough, otherwise as Fractions."""
    result = np.empty(count, dtype=object)
    whole = True
    for i, value in enumerate(values):
        result[i] = value
        whole = whole and value.denominator == 1 and abs(value.numerator) <= LARGEST
    return result.astype(np.int64) if whole else result


def read_vector(name: str, values: Any, count: int | None = None) -> tuple[ExactVector, bool]:
    """Return finite numbers below 2**62 in size exactly; with `count`, one number is repeated."""
    found = numeric(name, values)
    if count is not None and found.ndim == 0:
        found = np.broadcast_to(found, (count,))
    if found.ndim != 1 or (count is not None and found.shape != (count,)):
        wanted = "a list of numbers" if count is None else f"one number or {count} numbers"
        raise Refused(f"{name} must be {wanted}, found shape {found.shape}")
    if found.dtype.kind in "iu":
        bad = (found >= LARGEST) | (found <= -LARGEST)
        if bad.any():
            raise Refused(f"{name} must stay below 2**62 in size, found {found[bad][0]}")
        return found.astype(np.int64), True
    if found.dtype.kind == "f":
        distinct, back = np.unique(found, return_inverse=True)
    else:
        distinct, back = found, np.arange(found.size)
    read = [read_number(name, value) for value in distinct]
    for value, _ in read:
        if abs(value) >= LARGEST:
            raise Refused(f"{name} must stay below 2**62 in size, found a larger number")
    rational = all(flag for _, flag in read)
    return compact((read[k][0] for k in back.ravel()), found.size), rational


@dataclass(frozen=True, eq=False)
class WholeMatrix:
    """A rational matrix whose rows were each multiplied by the least factor that makes them whole.

    `A` is (m, n) with int64 entries, sorted and without stored zeros; row i of the matrix that was read is
    A[i] / factors[i]; `rational` is False if an entry was a double that stands for no simple rational.
    """

    A: sparse.csr_array
    factors: list[int] | None
    rational: bool

    def scaled(self, b: ExactVector) -> ExactVector:
        """Return the right-hand sides that belong to the multiplied rows."""
        if self.factors is None:
            return b
        return compact((Fraction(v) * f for v, f in zip(b.tolist(), self.factors, strict=True)), b.size)


def tidy(matrix: Any) -> sparse.csr_array:
    """Return a csr_array of int64 with summed duplicates, no stored zeros and sorted columns."""
    result = sparse.csr_array(matrix, dtype=np.int64, copy=True)
    result.sum_duplicates()
    result.eliminate_zeros()
    result.sort_indices()
    return result


def _csr(name: str, matrix: Any) -> tuple[Array, Array, Array, tuple[int, int]]:
    """Return data, columns, row starts and shape of a dense or sparse matrix; a vector is one row."""
    stored: bool = sparse.issparse(matrix)
    if stored:
        found = sparse.csr_array(matrix if matrix.ndim == 2 else matrix.reshape(1, -1), copy=True)
        if found.dtype.kind not in "iufO":
            raise Refused(f"{name} must hold numbers, found values of type {found.dtype}")
        found.sum_duplicates()
        return found.data, found.indices, found.indptr, (int(found.shape[0]), int(found.shape[1]))
    dense = numeric(name, matrix)
    if dense.ndim == 1:
        dense = dense.reshape(1, -1)
    if dense.ndim != 2:
        raise Refused(f"{name} must be a matrix or one row, found shape {dense.shape}")
    if dense.dtype.kind == "O":
        for value in dense.ravel():
            read_number(name, value)
    rows, columns = np.nonzero(dense)
    starts = np.searchsorted(rows, np.arange(dense.shape[0] + 1))
    return dense[rows, columns], columns, starts, (int(dense.shape[0]), int(dense.shape[1]))


def read_matrix(name: str, matrix: Any) -> WholeMatrix:
    """Return a rational matrix, dense or sparse, as whole rows; a vector is one row. Refuse an empty one."""
    data, columns, starts, shape = _csr(name, matrix)
    if 0 in shape:
        raise Refused(f"{name} must have at least one row and one column, found shape {shape}")
    factors: list[int] | None = None
    rational = True
    if data.dtype.kind in "iu":
        if data.size and (int(data.max()) >= LARGEST or int(data.min()) <= -LARGEST):
            raise Refused(f"{name} must hold entries below 2**62 in size, found a larger one")
        whole = data.astype(np.int64)
    else:
        distinct, back = (
            np.unique(data, return_inverse=True) if data.dtype.kind == "f" else (data, np.arange(data.size))
        )
        read = [read_number(name, value) for value in distinct]
        rational = all(flag for _, flag in read)
        entries = [read[k][0] for k in back]
        factors = [
            math.lcm(*(entries[k].denominator for k in range(starts[i], starts[i + 1]))) for i in range(shape[0])
        ]
        rows = np.repeat(np.arange(shape[0]), np.diff(starts)).tolist()
        exact = [int(entry * factors[i]) for entry, i in zip(entries, rows, strict=True)]
        if any(abs(entry) >= LARGEST for entry in exact):
            raise Refused(
                f"{name} must hold entries below 2**62 in size once the denominators of each row are "
                "cleared, found a larger one"
            )
        whole = np.array(exact, dtype=np.int64)
        if all(factor == 1 for factor in factors):
            factors = None
    return WholeMatrix(tidy(sparse.csr_array((whole, columns, starts), shape=shape)), factors, rational)
