"""Rows of a linear system in whole numbers, their names, and exact tests of values against them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import overload

import numpy as np
import numpy.typing as npt
from scipy import sparse

from holdfast.arrays import Array, Bools, Floats, Ints
from holdfast.exact.rationals import ExactVector

#: Sums whose terms add up to less than this in size (estimated in doubles, hence the wide margin) cannot
#: leave 64 bits; the others are added in Python's unlimited integers.
_SAFE = 2.0**61
#: Real values meet a row if they miss it by at most this share of the row's size Σ|a_i z_i| + |b| (or of 1).
TOLERANCE = 1e-9


@dataclass(frozen=True, eq=False)
class Names(Sequence[str]):
    """Names of rows, written only when asked for: blocks of a template and the numbers that fill it in."""

    blocks: tuple[tuple[str, Ints], ...] = ()

    @classmethod
    def numbered(cls, template: str, labels: npt.ArrayLike) -> Names:
        """Return names made of one template; `labels` holds one number, or one row of numbers, per name."""
        found = np.asarray(labels, dtype=np.int64)
        return cls(((template, found[:, None] if found.ndim == 1 else found),))

    def __len__(self) -> int:
        return sum(len(labels) for _, labels in self.blocks)

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> list[str]: ...
    def __getitem__(self, index: int | slice) -> str | list[str]:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        left = index + len(self) if index < 0 else index
        for template, labels in self.blocks:
            if 0 <= left < len(labels):
                return template.format(*labels[left].tolist())
            left -= len(labels)
        raise IndexError(index)

    def chosen(self, keep: Array) -> Names:
        blocks, start = [], 0
        for template, labels in self.blocks:
            blocks.append((template, labels[keep[start : start + len(labels)]]))
            start += len(labels)
        return Names(tuple(blocks))


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows (A, b) with names: A is csr int64 of shape (count, n), b is exact; the system says = or ≥."""

    A: sparse.csr_array
    b: ExactVector
    names: Names

    @classmethod
    def none(cls, n: int) -> Rows:
        return cls(sparse.csr_array((0, n), dtype=np.int64), np.zeros(0, dtype=np.int64), Names())

    @property
    def count(self) -> int:
        return int(self.A.shape[0])

    @property
    def sizes(self) -> Ints:
        return np.diff(self.A.indptr).astype(np.int64)

    def widened(self, n: int) -> Rows:
        if self.A.shape[1] == n:
            return self
        wide = sparse.csr_array((self.A.data, self.A.indices, self.A.indptr), shape=(self.count, n))
        return Rows(wide, self.b, self.names)

    def chosen(self, keep: Bools) -> Rows:
        if keep.all():
            return self
        return Rows(sparse.csr_array(self.A[np.flatnonzero(keep)]), self.b[keep], self.names.chosen(keep))


def stacked(rows: Sequence[Rows], n: int) -> Rows:
    """Return the rows of several systems over n coordinates, one after the other."""
    present = [part.widened(n) for part in rows if part.count]
    if not present:
        return Rows.none(n)
    if len(present) == 1:
        return present[0]
    A = sparse.csr_array(sparse.vstack([part.A for part in present], format="csr"))
    b = np.concatenate([part.b for part in present])
    return Rows(A, b, Names(tuple(block for part in present for block in part.names.blocks)))


def _long_products(A: sparse.csr_array, values: Ints) -> Array:
    result = np.zeros((A.shape[0], values.shape[1]), dtype=object)
    for i in range(A.shape[0]):
        for k in range(A.indptr[i], A.indptr[i + 1]):
            result[i] += int(A.data[k]) * values[A.indices[k]].astype(object)
    return result


def products(A: sparse.csr_array, values: Ints) -> Array:
    """Return A @ values exactly for int64 A (m, n) and int64 values (n, size).

    The result is int64 where 64 bits certainly suffice, otherwise an array of Python integers.
    """
    if values.size == 0 or A.shape[0] == 0:
        return np.zeros((A.shape[0], values.shape[1]), dtype=np.int64)
    largest, heaviest = (max(-int(of.min(initial=0)), int(of.max(initial=0))) for of in (values, A.data))
    if largest * heaviest * int(np.diff(A.indptr).max()) < _SAFE:
        return np.asarray(A @ values)
    magnitudes = np.max(np.abs(values.astype(np.float64)), axis=1)
    absolute = sparse.csr_array((np.abs(A.data.astype(np.float64)), A.indices, A.indptr), shape=A.shape)
    long = np.flatnonzero(absolute @ magnitudes >= _SAFE)
    if long.size == 0:
        return np.asarray(A @ values)
    result = np.asarray(A @ values).astype(object)
    result[long] = _long_products(sparse.csr_array(A[long]), values)
    return result


def divided(b: ExactVector, scale: Fraction) -> ExactVector:
    """Return b / scale exactly: int64 if possible, otherwise Fractions."""
    if scale == 1:
        return b
    result = np.empty(b.size, dtype=object)
    result[:] = [Fraction(value) / scale for value in b.tolist()]
    return result


def raised(b: ExactVector) -> Array:
    """Return the least whole number at or above each entry (int64, or Python integers where needed)."""
    if b.dtype != object:
        return b
    result = np.empty(b.size, dtype=object)
    result[:] = [math.ceil(value) for value in b]
    return result


def missed_whole(rows: Rows, values: Ints, equality: bool, scale: Fraction = Fraction(1)) -> Bools:
    """Tell for each row and each column of whole values (n, size) whether A z = b (or ≥ b) fails, exactly.

    The table's values are `values` times `scale`.
    """
    side = divided(rows.b, scale)
    limit = raised(side)
    found = products(rows.A, values)
    if not equality:
        return np.asarray(found < limit[:, None], dtype=bool)
    # a fraction is never equal to a whole number, so its row fails whatever the values are
    broken = np.asarray(side != limit, dtype=bool)
    return np.asarray(found != limit[:, None], dtype=bool) | broken[:, None]


def missed_real(rows: Rows, values: Floats, equality: bool, scale: Fraction = Fraction(1)) -> Bools:
    """Tell the same for real values, within a tolerance of 1e-9 relative to the size of the row."""
    A = rows.A.astype(np.float64)
    side = divided(rows.b, scale).astype(np.float64)[:, None]
    size = abs(A) @ np.abs(values) + np.abs(side)
    slack = TOLERANCE * np.maximum(size, 1.0)
    distance = A @ values - side
    return np.asarray(np.abs(distance) > slack if equality else distance < -slack, dtype=bool)
