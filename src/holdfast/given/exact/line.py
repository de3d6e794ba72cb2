"""Equalities that leave one direction free: the noise is that direction times a number with a law of the same kind.

On the line {t·b}, Laplace noise has weight e^{−|t|Σ|b_i|/λ_i} and Gaussian noise e^{−t²Σb_i²/2σ_i²}.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from holdfast.arrays import Array
from holdfast.given.problem import Problem, Truth
from holdfast.noise.independent import LAWS, Law
from holdfast.noise.spread import Spread
from holdfast.randomness import Stream


def accepts(problem: Problem) -> bool:
    """Whether at most one direction is free and noise is measured along it."""
    if problem.depends_on_data or problem.space.dimension > 1:
        return False
    return problem.space.dimension == 0 or _rate(problem) > 0


def _direction(problem: Problem) -> Array:
    """The shortest whole vector of N for integer laws; any vector of N for continuous ones."""
    if problem.law.integer:
        return np.asarray(problem.space.lattice_basis().toarray()[:, 0], dtype=np.int64)
    start = np.zeros(problem.law.n)
    for i in range(problem.law.n):
        start[:] = 0.0
        start[i] = 1.0
        direction = problem.space.project(start)
        # Π e_i has squared length Π_ii; these add up to the dimension 1, so some i has at least 1/n.
        if direction[i] * problem.law.n >= 0.5:
            break
    return np.asarray(direction / np.abs(direction).max())


def _rate(problem: Problem) -> Fraction:
    power = 1 if problem.law.kind == "laplace" else 2
    direction, which = _direction(problem), problem.law.complete
    total = Fraction(0)
    for group, scale in enumerate(problem.law.scale_values):
        if scale is not None:
            mine = direction[which == group]
            total += sum((abs(Fraction(entry)) ** power for entry in mine.tolist()), Fraction(0)) / scale
    return total


def _law(problem: Problem) -> Law:
    return LAWS[problem.law.kind, problem.law.integer](1 / _rate(problem))


def draw(problem: Problem, truth: Truth, size: int, stream: Stream) -> Array:
    del truth  # the law does not depend on it
    if problem.space.dimension == 0:
        return np.zeros((size, problem.law.n), dtype=np.int64 if problem.law.integer else np.float64)
    return np.multiply.outer(_law(problem).draw(size, stream), _direction(problem))


def spread(problem: Problem) -> Spread:
    n = problem.law.n
    if problem.space.dimension == 0:
        return Spread(np.zeros(n), lambda _weights: 0.0, lambda _p: np.zeros(n))
    law, direction = _law(problem), _direction(problem)
    each = float(law.variance)

    def quantiles(p: float) -> Array:
        # For a negative entry the p-quantile of t·b is b times the largest t with P(T ≥ t) ≥ p; the law is symmetric.
        return np.abs(direction) * law.quantile(p)

    return Spread(np.abs(direction) * np.sqrt(each), lambda weights: each * float(weights @ direction) ** 2, quantiles)
