"""A linear refinement X̂ = A X + D c + h of noisy answers X by known combinations Bᵀμ = c (LR Defs 2–7)."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
from flint import fmpq_mat

from holdfast.arguments import Matrix, Numbers, Refused, reals
from holdfast.arrays import Floats
from holdfast.exact.rational_matrices import (
    as_floats,
    as_rows,
    dense,
    from_fraction,
    identity,
    made,
    pivots,
    read_matrix,
)
from holdfast.exact.rationals import numeric, read_number, read_vector


class LinearRefinement:
    """X̂ = A X + D c + h: what an analyst makes of noisy answers X and known combinations c.

    They are kept in exact rationals, and as doubles in the attributes A, D and h.

    Args:
        A: (n, n).
        D: (n, m).
        h: (n,), or None for 0.

    Example:
        >>> import holdfast as hf
        >>> from holdfast.refinement import LinearRefinement
        >>> best = LinearRefinement.best([[1], [1]])  # two answers whose sum is known
        >>> best.unbiased([[1], [1]]), best.constrained([[1], [1]])
        (True, True)
    """

    def __init__(self, A: Matrix, D: Matrix, h: Numbers | None = None) -> None:
        exact = read_matrix("A", A)
        n = exact.nrows()
        if exact.ncols() != n:
            raise Refused(f"A must be square, found shape {(n, exact.ncols())}")
        constant = [Fraction(0)] * n if h is None else [Fraction(v) for v in read_vector("h", h, n)[0].tolist()]
        self._keep(exact, read_matrix("D", D, rows=n), constant)

    def _keep(self, A: fmpq_mat, D: fmpq_mat, h: list[Fraction]) -> None:
        self.exact_A, self.exact_D, self.exact_h = A, D, h
        self.A, self.D = as_floats(A), as_floats(D)
        self.h: Floats = np.array([float(value) for value in h])

    @classmethod
    def best(cls, B: Matrix, covariance: Matrix | None = None) -> LinearRefinement:
        """Return the refinement of least variance (LR Thm 3; weighted: THEORY §7), for noise of this covariance.

        B is (n, m) with Bᵀμ = c; columns that follow from earlier ones are not used. `covariance`: None for equal
        variances, one variance per output, or a positive definite matrix; doubles are taken as they are.
        """
        known = read_matrix("B", B)
        n, m = known.nrows(), known.ncols()
        spread = _covariance(covariance, n)
        used = pivots(known)[1]
        rows = as_rows(known)
        independent = made([[row[k] for k in used] for row in rows], len(used))
        loaded = spread * independent
        if used:
            gain = loaded * (independent.transpose() * loaded).inv()
            A = identity(n) - gain * independent.transpose()
        else:
            gain, A = fmpq_mat(n, 0), identity(n)
        gains, table = as_rows(gain), [[Fraction(0)] * m for _ in range(n)]
        for i in range(n):
            for k, column in enumerate(used):
                table[i][column] = gains[i][k]
        result = cls.__new__(cls)
        result._keep(A, made(table, m), [Fraction(0)] * n)
        return result

    def unbiased(self, B: Matrix) -> bool:
        """Tell whether E X̂ = μ for every μ with Bᵀμ = c, B of (n, m) (LR Def 3): A + D Bᵀ = I and h = 0, exactly."""
        known = self._known(B)
        return bool(self.exact_A + self.exact_D * known.transpose() == identity(known.nrows())) and not any(
            self.exact_h
        )

    def constrained(self, B: Matrix) -> bool:
        """Tell whether Bᵀ X̂ = c for every X and every possible c, B of (n, m) (LR Def 4), exactly.

        That is BᵀA = 0, Bᵀh = 0, and BᵀD c = c for every c = Bᵀμ.
        """
        known = self._known(B)
        rows = known.transpose()
        constant = made([[value] for value in self.exact_h], 1)
        return (
            _is_zero(rows * self.exact_A) and _is_zero(rows * constant) and _is_zero(rows * self.exact_D * rows - rows)
        )

    def refine(self, noisy: Numbers, c: Numbers) -> Floats:
        """Return A X + D c + h for noisy answers X, (n,) or (size, n)."""
        values = reals("noisy", noisy)
        n, m = self.exact_D.nrows(), self.exact_D.ncols()
        if values.ndim not in (1, 2) or values.shape[-1] != n:
            raise Refused(f"noisy must have shape ({n},) or (size, {n}), found shape {values.shape}")
        return np.asarray(values @ self.A.T + self.D @ reals("c", c, (m,)) + self.h)

    def _known(self, B: Any) -> fmpq_mat:
        return read_matrix("B", B, self.exact_D.nrows(), self.exact_D.ncols())

    def __repr__(self) -> str:
        return f"LinearRefinement({self.exact_D.nrows()} answers, {self.exact_D.ncols()} known combinations)"


def _is_zero(matrix: fmpq_mat) -> bool:
    return all(value == 0 for value in matrix.entries())


def _covariance(covariance: Any, n: int) -> fmpq_mat:
    """Return the covariance exactly; refuse one that is not positive definite."""
    if covariance is None:
        return identity(n)
    found = numeric("covariance", covariance)
    if found.ndim == 1:
        if found.shape != (n,):
            raise Refused(f"covariance must hold {n} variances or be a matrix of shape {(n, n)}, found {found.shape}")
        found = np.diag(found.astype(object))
    if found.shape != (n, n):
        raise Refused(f"covariance must hold {n} variances or be a matrix of shape {(n, n)}, found {found.shape}")
    entries = [[read_number("covariance", value)[0] for value in row] for row in dense("covariance", found).tolist()]
    refuse_indefinite(entries)
    return fmpq_mat([[from_fraction(value) for value in row] for row in entries])


def refuse_indefinite(entries: list[list[Fraction]]) -> None:
    """Refuse a covariance that is not symmetric and positive definite, decided exactly."""
    n = len(entries)
    if any(entries[i][j] != entries[j][i] for i in range(n) for j in range(i)):
        raise Refused("covariance must be symmetric, and is not")
    rest = [row[:] for row in entries]
    for k in range(n):  # elimination: all pivots of a positive definite matrix are above 0
        if rest[k][k] <= 0:
            raise Refused(f"covariance must be positive definite, but the variance left at position {k} is not above 0")
        for i in range(k + 1, n):
            factor = rest[i][k] / rest[k][k]
            if factor:
                rest[i] = [a - factor * b for a, b in zip(rest[i], rest[k], strict=True)]
