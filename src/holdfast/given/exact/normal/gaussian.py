"""Continuous Gaussian noise given equalities, in closed form (THEORY §2).

Law: N(0, Q(QᵀΣ⁻¹Q)⁻¹Qᵀ) on N. With every output measured the draw is U − ΣAᵀ(AΣAᵀ)⁻¹AU: one sparse
factorisation serves all draws. With outputs that are not measured the
precision on a dense basis Q of N is used.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy import linalg, special

from holdfast.arrays import Array, Floats, Ints, kept
from holdfast.constraints.system.null_space import for_alike
from holdfast.given.problem import Problem, Truth
from holdfast.noise.error_model import ErrorModel
from holdfast.noise.spread import Spread
from holdfast.randomness import Stream

#: Largest number of outputs for the dense way, which holds a basis of N.
LARGEST_DENSE = 3_000


def accepts(problem: Problem) -> bool:
    """Whether the law is continuous Gaussian, only equalities hold, and the conditional law is normalisable."""
    if problem.depends_on_data or problem.law.kind != "gaussian" or problem.law.integer:
        return False
    if None not in problem.law.laws:
        return True
    return problem.law.n <= LARGEST_DENSE and _dense_root(problem) is not None


def _measured(problem: Problem) -> bool:
    return None not in problem.law.laws


def _dense_root(problem: Problem) -> Floats | None:
    """F with F Fᵀ = Q(QᵀΣ⁻¹Q)⁻¹Qᵀ, or None when the unmeasured outputs leave a direction without noise law."""
    basis = problem.space.orthonormal()
    precision = basis.T @ (basis / problem.law.variances[:, None])
    values, vectors = linalg.eigh(precision)
    if values.size and values[0] <= values[-1] * 1e-12:
        return None
    return np.asarray(basis @ (vectors / np.sqrt(values)))


def draw(problem: Problem, truth: Truth, size: int, stream: Stream) -> Array:
    del truth  # the law does not depend on it
    if _measured(problem):
        return projection(problem)(problem.law.draw(size, stream))
    root = _dense_root(problem)
    assert root is not None
    return np.asarray(stream.normals(size * root.shape[1]).reshape(size, -1) @ root.T)


def spread(problem: Problem) -> Spread:
    """Normal errors with the covariance of the conditional law."""
    if _measured(problem):
        variances = _conditional_variances(problem)
        prior = problem.law.variances

        def variance_of(weights: Floats) -> float:
            return float(weights @ projection(problem)((prior * weights)[None, :])[0])
    else:
        root = _dense_root(problem)
        assert root is not None
        variances = (root**2).sum(axis=1)

        def variance_of(weights: Floats) -> float:
            return float(((weights @ root) ** 2).sum())

    errors = np.sqrt(np.maximum(variances, 0.0))
    model = ErrorModel("normal", problem.law, lambda: problem.space.rows, problem.law.variances)
    return Spread(errors, variance_of, lambda p: errors * special.ndtri(p), model=model)


def _conditional_variances(problem: Problem) -> Floats:
    """diag(Σ − ΣAᵀ(AΣAᵀ)⁻¹AΣ): outputs with equal rows of Aᵀ and equal variance share one value."""
    prior, project, space = problem.law.variances, projection(problem), problem.space
    if space.cube_margins is not None and problem.uniform_scale():  # cells can be exchanged
        return np.asarray(prior * space.dimension / space.n)

    def found(units: Floats, chosen: Ints) -> Floats:
        return project(np.ascontiguousarray(units.T) * prior[chosen, None])[np.arange(len(chosen)), chosen]

    return for_alike(space, found, prior)


@kept
def projection(problem: Problem) -> Callable[[Floats], Floats]:
    """x − ΣAᵀ(AΣAᵀ)⁻¹A x for every row x of an array, Σ the variances of the outputs; factorised once."""
    project = problem.space.weighted_projection(problem.law.variances)
    return lambda rows: np.ascontiguousarray(project(rows.T).T)
