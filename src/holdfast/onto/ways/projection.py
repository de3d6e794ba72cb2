"""Least squares onto equalities, orthogonal or weighted (SDP Thm 10, Cor 11, 14, 17).

z = y − VAᵀ(AVAᵀ)⁻¹(Ay − b), one sparse solve. Weighted by the noise variances this is generalised least squares.
The residual Ay − b is formed in whole numbers where y is whole, so the output is a function of the exact noisy
value and of b alone.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from scipy import sparse, special
from scipy.sparse import linalg as sparse_linalg

from holdfast.arguments import Refused
from holdfast.arrays import Array, Floats
from holdfast.constraints import NullSpace
from holdfast.constraints.system.null_space import for_alike
from holdfast.constraints.system.own_sums import OwnSums
from holdfast.constraints.system.rows import products
from holdfast.constraints.system.sound_rows import TOO_CLOSE
from holdfast.noise import Independent
from holdfast.noise.error_model import ErrorModel, of_independent
from holdfast.noise.reach import reach_of
from holdfast.noise.spread import STUDY, Spread, studied_quantiles
from holdfast.onto.problem import Problem, Ties
from holdfast.randomness import seeded

#: Entries of dense work arrays kept at once while variances are computed.
CHUNK = 1 << 22
#: Rows up to which the inverse of their products is computed where there are many outputs, and the share of a variance
#: below which what is left of it comes from rounding: the output is determined.
MOST_INVERTED, NOTHING = 2_000, 1e-10


def accepts(problem: Problem) -> bool:
    """Whether only equalities hold, the norm is L2 and real values are asked for."""
    system = problem.system
    if system.branches or system.has_inequalities or problem.integer or problem.norm != "l2":
        return False
    if isinstance(system.equalities, OwnSums):  # too many rows for a solve
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

    def moved(weights: Floats) -> Floats:
        return np.asarray(_transposed(problem, weights[:, None])[:, 0])

    def variance_of(weights: Floats) -> float:
        return float((moved(weights) ** 2 * variances).sum())

    errors = np.sqrt(_output_variances(problem, variances))
    model = ErrorModel("moved", law, lambda: problem.space.rows, problem.spreads)
    if law.kind == "gaussian" and not law.integer:
        normal = replace(model, kind="normal")
        return Spread(errors, variance_of, lambda p: errors * special.ndtri(p), model=normal)

    def study(size: int) -> Floats:
        stream = seeded(0)
        step = size if size == STUDY else max(1, CHUNK // problem.n)
        drawn = [move(problem, law.measured_draw(min(step, size - at), stream)) for at in range(0, size, step)]
        return np.concatenate(drawn)

    quantiles, measured = studied_quantiles(study, law, errors)
    return Spread(errors, variance_of, quantiles, measured, reach_of(law), of_independent(law, moved), model)


def _transposed(problem: Problem, columns: Floats) -> Floats:
    """Pᵀ applied to columns: V⁻¹ P V for a projection with spreads V."""
    if np.isfinite(problem.spreads).all():
        spreads = problem.spreads[:, None]
        return np.asarray(move(problem, (columns * spreads).T).T / spreads)
    dense = move(problem, np.eye(problem.n)).T  # small: outputs that are not measured are refused beyond a size
    return np.asarray(dense.T @ columns)


def _output_variances(problem: Problem, variances: Floats) -> Floats:
    """diag(PΣPᵀ); outputs that are alike (equal columns of A, spreads and variances) share one value."""
    if problem.n * problem.n > CHUNK and problem.space.rank <= MOST_INVERTED and np.isfinite(problem.spreads).all():
        classes, _ = problem.space.alike(problem.spreads, variances)
        if len(classes) * problem.n > CHUNK:
            return _by_inverse(problem, variances)

    def found(units: Floats, _chosen: Any) -> Floats:
        return np.asarray((_transposed(problem, units) ** 2 * variances[:, None]).sum(axis=0))

    return for_alike(problem.space, found, problem.spreads, variances)


def _by_inverse(problem: Problem, variances: Floats) -> Floats:
    """diag(PΣPᵀ) from the inverse of the products of the rows, which is small where there are few rows.

    With unit rows U, G = UUᵀ and spreads V, P = I − V^½UᵀG⁻¹UV^−½; entry i is Σ_i(1 − 2q_i) + V_i m_i for
    q_i = u_iᵀG⁻¹u_i, m_i = u_iᵀG⁻¹(U V⁻¹Σ Uᵀ)G⁻¹u_i and the column u_i of U.
    """
    columns = sparse.csr_array(problem.sound.unit.T)
    inverse = problem.sound.solve(np.eye(columns.shape[1]))
    shares = variances / problem.spreads
    middle = inverse @ (columns.T @ sparse.diags_array(shares) @ columns).toarray() @ inverse
    result = np.empty(problem.n)
    step = max(1, CHUNK // columns.shape[1])
    for start in range(0, problem.n, step):
        at = slice(start, start + step)
        own = sparse.csr_array(columns[at])
        q, m = (np.asarray(own.multiply(own @ matrix).sum(axis=1)).ravel() for matrix in (inverse, middle))
        result[at] = variances[at] * (1 - 2 * q) + problem.spreads[at] * m
    return np.where(result > NOTHING * variances, result, 0.0)
