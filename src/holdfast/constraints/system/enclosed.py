"""Projections on a null space with proved bounds of their error, for whoever derives a guarantee from them.

Small systems are solved in rationals and rounded once. For larger ones let B be the rows, each divided by a power of 2
(exact in doubles), w any multipliers and v = d − Bᵀw. Then Π_N d = Π_N v, so ‖v − Π_N d‖ = ‖Π_R v‖ ≤ ‖B v‖/σ, where
σ² is a proved lower bound of the least eigenvalue of B Bᵀ (docs/theory/subspace.md, section 10).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import flint
import numpy as np
from scipy import sparse

from holdfast.arguments import Refused
from holdfast.arrays import Bools, Floats
from holdfast.constraints.system.sound_rows import SoundRows
from holdfast.rooms import sparse_linalg as linalg

#: Rows, and numbers in the products, of a system that is solved in rationals at once (a tenth of a second), and of one
#: that is solved in rationals where the bounds in doubles are wide (a second or two).
AT_ONCE, AT_MOST = (40, 200_000), (120, 5_000_000)
#: Bounds in doubles are wide where they are above this part of the largest entry.
WIDE = 1e-12
#: Whole numbers below this are doubles.
EXACT = 2.0**53
#: Twice the unit roundoff: bounds below use it where the theory has u, which covers their own rounding.
STEP = 2.0**-52

NOT_PROVED = (
    "how accurately the answers are projected cannot be proved for these equalities, so no statement can be made about "
    "the part that they leave open: write them as sums and differences with small whole coefficients, or ask for fewer"
)


@dataclass(frozen=True, eq=False)
class Enclosed:
    """Every true entry lies within `radius` of `values`, both (n, m)."""

    values: Floats
    radius: Floats

    def divided(self, divisors: Floats) -> Enclosed:
        """Return the enclosure of each row divided by a double above 0."""
        wide = divisors[:, None]
        values = self.values / wide
        return Enclosed(values, (self.radius / wide + STEP * np.abs(values)) * (1 + 4 * STEP))


@dataclass(frozen=True, eq=False)
class Encloser:
    """The projection on the null space of sound rows."""

    sound: SoundRows

    def project(self, columns: Floats) -> Enclosed:
        """Enclose Π_N of each column of (n, m); the columns are taken as the doubles that they are."""
        rank = int(self.sound.rows.shape[0])
        work = rank * int(self._touched.sum()) * columns.shape[1]
        if rank <= AT_ONCE[0] and work <= AT_ONCE[1]:
            return self._rational(columns)
        small = rank <= AT_MOST[0] and work <= AT_MOST[1]
        try:
            found = self._bounded(columns)
        except Refused:
            if not small:
                raise
            return self._rational(columns)
        wide = found.radius.max() > WIDE * np.abs(found.values).max()
        return self._rational(columns) if wide and small else found

    @cached_property
    def _touched(self) -> Bools:
        """The coordinates that some row mentions; the others stay as they are."""
        found = np.zeros(self.sound.rows.shape[1], dtype=bool)
        found[self.sound.rows.indices] = True
        return found

    @cached_property
    def _gain(self) -> tuple[Any, Any, int]:
        """A, and (A Aᵀ)⁻¹A as whole numbers with their common denominator, over the coordinates in rows."""
        A = flint.fmpz_mat(self.sound.rows[:, np.flatnonzero(self._touched)].toarray().tolist())
        gain, denominator = flint.fmpq_mat(A * A.transpose()).solve(flint.fmpq_mat(A)).numer_denom()
        return A, gain, int(denominator)

    def _rational(self, columns: Floats) -> Enclosed:
        A, gain, denominator = self._gain
        inside = np.flatnonzero(self._touched)
        result = columns.copy()
        table, shift = _whole(columns[inside])
        rest = table * denominator - A.transpose() * (gain * table)
        divisor = denominator << shift
        entries = [int(x) / divisor for x in rest.entries()]
        result[inside] = np.array(entries, dtype=np.float64).reshape(inside.size, -1)
        radius = np.zeros_like(result)
        radius[inside] = STEP * np.abs(result[inside])  # 0 exactly where the projection is
        return Enclosed(result, radius)

    @cached_property
    def _proved(self) -> tuple[sparse.csr_array, sparse.csr_array, float]:
        """B, |B| and a proved lower bound of its least singular value; refused where none is found."""
        A = self.sound.rows
        if A.nnz and max(-int(A.data.min()), int(A.data.max())) >= EXACT:
            raise Refused(NOT_PROVED)
        powers = np.exp2(-np.round(np.log2(linalg.norm(A.astype(np.float64), axis=1))))
        B = sparse.csr_array(sparse.diags_array(powers, format="csr") @ A.astype(np.float64))
        found = least_eigenvalue(B)
        if found is None:
            raise Refused(NOT_PROVED)
        return B, sparse.csr_array(abs(B)), float(np.sqrt(found) * (1 - 4 * STEP))

    def _bounded(self, columns: Floats) -> Enclosed:
        """Project in doubles, and bound what rounding did."""
        B, size, sigma = self._proved
        unit, solve = self.sound.unit, self.sound.solve
        lengths = np.asarray(linalg.norm(B, axis=1))[:, None]
        first = solve(unit @ columns)
        second = solve(unit @ (columns - unit.T @ first))
        w = (first + second) / lengths  # any multipliers will do: these make the residual small
        v = columns - B.T @ w
        terms = int(max(np.diff(B.indptr).max(), np.diff(sparse.csc_array(B).indptr).max())) + 4
        rounding = terms * STEP * (np.abs(columns) + size.T @ np.abs(w))
        left = np.abs(B @ v) + terms * STEP * (size @ np.abs(v)) + size @ rounding
        far = np.sqrt((left**2).sum(axis=0)) / sigma
        slack = 1 + (left.shape[0] + 16) * STEP
        return Enclosed(v, (rounding + far) * slack)


def _whole(columns: Floats) -> tuple[Any, int]:
    """Return doubles as whole numbers over a power of 2."""
    ratios = [value.as_integer_ratio() for value in columns.ravel().tolist()]
    shift = max((bottom.bit_length() - 1 for _, bottom in ratios), default=0)
    entries = [top << (shift - (bottom.bit_length() - 1)) for top, bottom in ratios]
    return flint.fmpz_mat(columns.shape[0], columns.shape[1], entries), shift


def least_eigenvalue(B: sparse.csr_array) -> float | None:
    """Return a proved lower bound of the least eigenvalue of B Bᵀ, above 0, or None.

    Gaussian elimination of S = B Bᵀ − c without pivoting gives L and U with |LU − S| ≤ γ|L||U| (Higham 2002, Thm 9.3;
    any order of the sums). If all pivots d are above 0, then S = L diag(d) Lᵀ + E with L diag(d) Lᵀ ≥ 0 and a symmetric
    E that is bounded entry by entry; so the least eigenvalue is at least c − ‖E‖_∞. The sums are bounded with vectors
    of ones.
    """
    rank = int(B.shape[0])
    gram = sparse.csc_array(B @ B.T)
    ones = np.ones(rank)
    size = abs(B)
    most = int(np.diff(B.indptr).max()) + 2
    formed = most * STEP * float((size @ (size.T @ ones)).max())
    guess = _guess(gram)
    if guess is None:
        return None
    for c in (guess / 2, guess / 16):
        factor = _factors(sparse.csc_array(gram - c * sparse.eye_array(rank, format="csc")))
        if factor is None:
            continue
        L, U, pivots = factor
        if pivots.min() <= 0:
            continue
        wrong = sparse.csr_array(U - sparse.diags_array(pivots) @ L.T)
        apart = float((abs(L) @ (abs(wrong) @ ones + STEP * (abs(U) @ ones))).max())
        eliminated = 2 * (rank + 2) * STEP * float((abs(L) @ (abs(U) @ ones)).max())
        missed = (apart + eliminated + formed + STEP * float(abs(gram).max() + c)) * (1 + (rank + 16) * STEP)
        if missed < c / 2:
            return c - missed
    return None


def _factors(S: Any) -> tuple[Any, Any, Floats] | None:
    """Return L, U and the pivots of symmetric elimination without pivoting, or None where that does not work."""
    try:
        found = linalg.splu(S, permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options={"SymmetricMode": True})
    except RuntimeError:  # exactly singular
        return None
    if not np.array_equal(found.perm_r, found.perm_c):
        return None
    L, U = sparse.csr_array(found.L), sparse.csr_array(found.U)
    return L, U, np.asarray(U.diagonal(), dtype=np.float64)


def _guess(gram: Any) -> float | None:
    """Estimate the least eigenvalue by inverse iteration."""
    try:
        solve = linalg.splu(gram, permc_spec="MMD_AT_PLUS_A", options={"SymmetricMode": True}).solve
    except RuntimeError:
        return None
    vector = np.cos(np.arange(gram.shape[0]) * 2.399963)
    for _ in range(8):
        vector = solve(vector / np.linalg.norm(vector))
    size = float(np.linalg.norm(vector))
    return 1 / size if np.isfinite(size) and size > 0 else None
