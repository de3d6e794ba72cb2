"""Least squares onto equalities, orthogonal or weighted (SDP Thm 10, Cor 11, 14, 17).

z = y − VAᵀ(AVAᵀ)⁻¹(Ay − b), one sparse solve. Weighted by the noise variances this is generalised least squares.
The residual Ay − b is formed in whole numbers where y is whole, so the output is a function of the exact noisy
value and of b alone.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse, special
from scipy.sparse import linalg as sparse_linalg

from holdfast.arguments import Refused
from holdfast.arrays import Array, Floats
from holdfast.constraints import NullSpace
from holdfast.constraints.system.null_space import for_alike
from holdfast.constraints.system.rows import products
from holdfast.constraints.system.sound_rows import TOO_CLOSE
from holdfast.noise import Independent
from holdfast.noise.spread import STUDY, Spread, simulated_quantiles
from holdfast.onto.problem import Problem, Ties
from holdfast.randomness import seeded


def accepts(problem: Problem) -> bool:
    """Whether only equalities hold, the norm is L2 and real values are asked for."""
    system = problem.system
    if system.branches or system.has_inequalities or problem.integer or problem.norm != "l2":
        return False
    return bool(np.isfinite(problem.spreads).all()) or determined(problem)


def image(problem: Problem, noisy: Array, right: Array, ties: Ties = None) -> Floats:
    """Project the noisy values, (size, n); `right` holds the right-hand sides of `problem.space.rows`."""
    del ties  # the nearest point is the only one
    if problem.space.rank == 0:
        return noisy.astype(np.float64)
    if np.isfinite(problem.spreads).all():
        sound = problem.sound
        found = products(sound.rows, noisy.T) if noisy.dtype.kind == "i" else sound.rows @ noisy.T
        residual = found - sound.sides(right)[:, None]
        return np.asarray(noisy - sound.correction(residual.astype(np.float64)).T)
    sides = problem.space.sound.sides(right).astype(np.float64) / problem.space.sound.lengths
    return np.asarray(_with_unmeasured(problem)(noisy.astype(np.float64).T, sides).T)


def move(problem: Problem, errors: Array) -> Floats:
    """The linear part P of the projection, applied to errors, (size, n)."""
    return image(problem, errors, np.zeros(problem.space.rows.shape[0], dtype=np.int64))


def determined(problem: Problem) -> bool:
    """Whether the equalities determine the unmeasured outputs from the measured ones."""
    unmeasured = np.isinf(problem.spreads)
    if unmeasured.sum() > 3_000:
        return False
    block = problem.space.rows[:, np.flatnonzero(unmeasured)]
    return NullSpace.of(sparse.csr_array(block)).is_zero


def _with_unmeasured(problem: Problem) -> Any:
    """Solve the optimality system with weight 0 on unmeasured outputs."""
    rows, n = problem.space.sound.unit, problem.n
    weights = np.where(np.isinf(problem.spreads), 0.0, 1 / problem.spreads)
    system = sparse.block_array([[sparse.diags_array(weights), rows.T], [rows, None]], format="csc")
    try:
        factor = sparse_linalg.splu(system)
    except RuntimeError:  # exactly singular in doubles
        raise Refused(TOO_CLOSE) from None

    def solve(noisy: Floats, right: Floats) -> Floats:
        known = np.where(weights[:, None] > 0, noisy, 0.0)
        load = np.vstack([weights[:, None] * known, np.repeat(right[:, None], noisy.shape[1], axis=1)])
        return np.asarray(factor.solve(load)[:n])

    return solve


def spread(problem: Problem, law: Independent) -> Spread:
    """Errors P e with covariance PΣPᵀ; unbiased (SDP Cor 21). Total squared error (n−n_c)σ² (SDP Cor 14)."""
    variances = np.where(np.isinf(law.variances), 0.0, law.variances)

    def variance_of(weights: Floats) -> float:
        return float((_transposed(problem, weights[:, None])[:, 0] ** 2 * variances).sum())

    errors = np.sqrt(_output_variances(problem, variances))
    if law.kind == "gaussian" and not law.integer:
        return Spread(errors, variance_of, lambda p: errors * special.ndtri(p))

    def study() -> Floats:
        return move(problem, law.measured_draw(STUDY, seeded(0)))

    return Spread(errors, variance_of, simulated_quantiles(study), measured=True)


def _transposed(problem: Problem, columns: Floats) -> Floats:
    """Pᵀ applied to columns: V⁻¹ P V for a projection with spreads V."""
    if np.isfinite(problem.spreads).all():
        spreads = problem.spreads[:, None]
        return np.asarray(move(problem, (columns * spreads).T).T / spreads)
    dense = move(problem, np.eye(problem.n)).T  # small: outputs that are not measured are refused beyond a size
    return np.asarray(dense.T @ columns)


def _output_variances(problem: Problem, variances: Floats) -> Floats:
    """diag(PΣPᵀ); outputs that are alike (equal columns of A, spreads and variances) share one value."""

    def found(units: Floats, _chosen: Any) -> Floats:
        return np.asarray((_transposed(problem, units) ** 2 * variances[:, None]).sum(axis=0))

    return for_alike(problem.space, found, problem.spreads, variances)
