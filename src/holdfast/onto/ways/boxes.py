"""Bounds and fixed values on single outputs: the nearest point is found output by output, whatever the norm."""

from __future__ import annotations

import numpy as np

from holdfast.arguments import LARGEST
from holdfast.arrays import Array
from holdfast.noise import Independent
from holdfast.noise.error_model import ErrorModel, of_independent
from holdfast.noise.spread import Spread
from holdfast.onto.problem import Problem, Ties


def accepts(problem: Problem) -> bool:
    """Whether only bounds and fixed values on single outputs are asked for, and every free output is measured."""
    if problem.system.branches or not problem.system.coordinatewise:
        return False
    unmeasured = np.isinf(problem.spreads)
    return not unmeasured.any() or bool(problem.space.pinned_coordinates()[unmeasured].all())


def image(problem: Problem, noisy: Array, right: Array, ties: Ties = None) -> Array:
    """Clip the noisy values, (size, n), into their bounds; fixed and exact outputs take their value."""
    del ties  # the nearest point is the only one
    if problem.integer:
        low, high = problem.system.integer_bounds(problem.unit)
        values = np.clip(noisy, np.maximum(low, -LARGEST), np.minimum(high, LARGEST))
    else:
        values = np.clip(
            noisy.astype(np.float64), *(bound / float(problem.unit) for bound in problem.system.real_bounds())
        )
    rows = problem.space.rows
    for i in range(rows.shape[0]):
        row = rows[[i]]
        exact = right[i] // row.data[0] if problem.integer else right[i] / row.data[0]
        values[:, row.indices[0]] = exact
    return np.asarray(values)


def spread(problem: Problem, law: Independent) -> Spread | None:
    if problem.system.has_inequalities:
        return None
    pinned = problem.space.pinned_coordinates()
    variances = np.where(pinned, 0.0, law.variances)
    return Spread(
        np.sqrt(variances),
        lambda weights: float((weights**2 * variances).sum()),
        lambda p: np.where(pinned, 0, law.quantiles(p)),
        characteristic=of_independent(law, lambda weights: np.where(pinned, 0.0, weights)),
        model=ErrorModel("moved", law, lambda: problem.space.rows, problem.spreads),
    )
