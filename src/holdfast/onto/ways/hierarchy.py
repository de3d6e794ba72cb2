"""The nearest table on a hierarchy: the global optimum, over the reals and over the whole numbers (THEORY §4, min-sum).

Parents equal the sum of their children; exact and fixed outputs, bounds on any output, outputs that are not measured,
categories and several trees may come together. Whole numbers satisfy everything exactly. Real values lie within their
bounds exactly, and parents equal the sum of their children up to rounding.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from scipy import special

from holdfast.arrays import Array, Floats, kept
from holdfast.noise import Independent
from holdfast.noise.error_model import ErrorModel, of_independent
from holdfast.noise.reach import reach_of
from holdfast.noise.spread import STUDY, Spread, simulated_spread, studied_quantiles
from holdfast.onto.problem import MOST_SIMULATED, Image, Problem, Ties, simulated_errors
from holdfast.trees.nearest.best_linear import error_variances, error_weights
from holdfast.trees.nearest.nearest import Nearest

#: The outputs' standard errors, and what each measurement error counts in the error of a weighted sum of them.
Linear = tuple[Floats, Callable[[Floats], Floats]]


def accepts(problem: Problem) -> bool:
    """Whether the system is a hierarchy and no unmeasured leaf is left open."""
    found = _nearest(problem)
    return found is not None and found.determined


def image(problem: Problem, noisy: Array, right: Array, ties: Ties = None) -> Array:
    found = _nearest(problem)
    assert found is not None
    return found.move(noisy, *problem.bounds(right), ties)


def spread(problem: Problem, law: Independent) -> Spread | None:
    """Errors in closed form for real least squares (SDP Cor 21), otherwise simulated; None where there are bounds."""
    found = _nearest(problem)
    assert found is not None

    def linear(variances: Floats) -> Linear:
        return np.sqrt(error_variances(found, variances)), lambda weights: error_weights(found, weights)

    return spread_of(problem, law, image, linear)


def spread_of(problem: Problem, law: Independent, image: Image, linear: Callable[[Floats], Linear]) -> Spread | None:
    """Errors of a way whose real least squares are `linear`, given the variances of what was measured."""
    if problem.system.has_inequalities:
        return None
    if problem.integer or problem.norm != "l2":
        small = STUDY * problem.n <= MOST_SIMULATED
        return simulated_spread(simulated_errors(problem, law, image)) if small else None
    variances = np.where(np.isinf(law.variances), 0.0, law.variances)
    errors, counted = linear(variances)

    def variance_of(weights: Floats) -> float:
        return float((counted(weights) ** 2 * variances).sum())

    model = ErrorModel("moved", law, lambda: problem.space.rows, problem.spreads)
    if law.kind == "gaussian" and not law.integer:
        return Spread(errors, variance_of, lambda p: errors * special.ndtri(p), model=replace(model, kind="normal"))
    quantiles, measured = studied_quantiles(simulated_errors(problem, law, image), law, errors)
    return Spread(errors, variance_of, quantiles, measured, reach_of(law), of_independent(law, counted), model)


@kept
def _nearest(problem: Problem) -> Nearest | None:
    """The prepared hierarchy; None where the system is not one."""
    if problem.forest is None:
        return None
    return Nearest.of(problem.forest.parents, problem.exact, problem.spreads, absolute=problem.norm == "l1")
