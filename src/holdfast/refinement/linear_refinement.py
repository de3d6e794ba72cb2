"""A linear refinement X̂ = A X + D c + h of noisy answers X by known combinations Bᵀμ = c (LR Defs 2–7)."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
from flint import fmpq_mat

from holdfast import onto
from holdfast.arguments import Matrix, Numbers, Refused, known, reals
from holdfast.arrays import Floats
from holdfast.constraints import Constraint, equals
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


def refine(
    noisy: Numbers,
    B: Matrix | None = None,
    c: Numbers | None = None,
    covariance: Matrix | None = None,
    *,
    knowledge: Constraint | None = None,
) -> Floats:
    """Return the best linear refinement X + ΣB(BᵀΣB)⁻¹(c − BᵀX) of noisy answers X.

    It is unbiased, satisfies Bᵀ X̂ = c, and has the least variance of all linear unbiased refinements.

    Args:
        noisy: X, (n,) or (size, n).
        B: (n, m): Bᵀμ = c is known.
        c: (m,).
        covariance: Σ of the noise: None for equal variances (LR Thm 3), one variance per output, or a positive definite
            matrix.
        knowledge: anything else that is known, such as ordered([0, 1, 2]) or between(0, 10); the answer is then the
            nearest point that satisfies everything, which is no longer linear.

    Guarantee:
        For c that does not depend on the data, refining is post-processing and costs nothing; where c changes with the
        data, `refinement_loss` says what it costs.

    Example:
        >>> import holdfast as hf
        >>> hf.refine([6, 3], [[1], [1]], [10]).tolist()  # the two are known to make 10
        [6.5, 3.5]
    """
    values = reals("noisy", noisy)
    if values.ndim not in (1, 2) or values.size == 0:
        raise Refused(f"noisy must have shape (n,) or (size, n), found shape {values.shape}")
    n = values.shape[-1]
    wanted = _known(B, c, knowledge, n)
    spread = np.ones(n) if covariance is None else reals("covariance", covariance)
    if spread.shape == (n,):
        if (spread <= 0).any():
            raise Refused(f"covariance must be above 0, but the entry at position {np.argmax(spread <= 0)} is not")
        return _nearest(values, wanted, spread)
    if spread.shape != (n, n):
        raise Refused(f"covariance must hold {n} variances or be a matrix of shape {(n, n)}, found {spread.shape}")
    if knowledge is not None:
        raise Refused("covariance must hold one variance per output where more than Bᵀμ = c is known, found a matrix")
    return _generalised(values, wanted, spread)


def _known(B: Any, c: Any, knowledge: Any, n: int) -> Constraint:
    """Return everything that is known as one constraint; refuse what contradicts itself."""
    if (B is None) != (c is None):
        raise Refused("B and c go together: Bᵀμ = c is known")
    if knowledge is not None and not isinstance(knowledge, Constraint):
        raise Refused(f"knowledge must be a constraint such as ordered([0, 1]), found {type(knowledge).__name__}")
    if knowledge is not None and knowledge.has_invariants:
        raise Refused("knowledge must be structural: an invariant is read from data that an analyst does not have")
    if B is None:
        if knowledge is None:
            raise Refused("nothing is known: give B and c, or knowledge")
        return knowledge
    matrix = dense("B", B)
    if matrix.shape[0] != n:
        raise Refused(f"B must have {n} rows, one for each answer, found shape {matrix.shape}")
    sides, m = numeric("c", c), matrix.shape[1]
    if sides.shape not in ((), (m,)):
        raise Refused(f"c must hold {m} numbers, one for each column of B, found shape {sides.shape}")
    linear = equals(matrix.T, c)
    return linear if knowledge is None else linear & knowledge


def _nearest(values: Floats, wanted: Constraint, spread: Any) -> Floats:
    """Move every row to the nearest point, weighted by the variances."""
    system = wanted.system(values.shape[-1])
    problem = onto.Problem(values.shape[-1], system, "l2", spread, False)
    right = system.right_hand_sides()
    moved = known(onto.choose(problem)).image(problem, np.atleast_2d(values), right)
    return np.asarray(moved, dtype=np.float64).reshape(values.shape)


def _generalised(values: Floats, wanted: Constraint, spread: Any) -> Floats:
    """Solve generalised least squares for a full covariance, with one step that removes the first one's rounding."""
    if not np.array_equal(spread, spread.T):
        raise Refused("covariance must be symmetric, and is not")
    try:
        np.linalg.cholesky(spread)
    except np.linalg.LinAlgError:
        raise Refused("covariance must be positive definite, and is not") from None
    system = wanted.system(values.shape[-1])
    sound = system.null_space().sound
    rows = sound.unit.toarray()
    right = sound.sides(system.right_hand_sides()).astype(np.float64) / sound.lengths
    loaded = spread @ rows.T
    gram = rows @ loaded
    refined = np.atleast_2d(values).copy()
    for _ in range(2):
        refined += (loaded @ np.linalg.solve(gram, right[:, None] - rows @ refined.T)).T
    return np.asarray(refined.reshape(values.shape))


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
