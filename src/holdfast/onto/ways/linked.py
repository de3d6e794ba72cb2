"""Onto whole, non-negative linked tables of a census: persons and households that fit, area by area.

The nearest such table takes a program with all whole numbers at once; here it is found in steps (onto/areas), from the
best linear estimate down the hierarchy. The gap is how much further the table lies from the noisy values than that
estimate, which nothing that adds up and keeps the ties comes below.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from holdfast.arrays import Array, kept
from holdfast.evidence import Evidence
from holdfast.noise import Independent
from holdfast.noise.spread import Spread
from holdfast.onto.areas.linked_sharing import LinkedEstimate, LinkedSteps
from holdfast.onto.independent_shares import Answer
from holdfast.onto.problem import Problem, Ties

#: Outputs up to which a program looks for the nearest table.
MOST_EXACT = 120
#: By which part of itself the distance of the estimate may be too large in doubles.
ROUNDED = 1e-9


def accepts(problem: Problem) -> bool:
    """Whether whole numbers ≥ 0 are to keep the consistency and ties of linked tables, and are too many at once."""
    if problem.norm != "l2" or not problem.integer or not problem.depends_on_data or problem.unit != 1:
        return False
    return problem.n > MOST_EXACT and _steps(problem) is not None


@kept
def _steps(problem: Problem) -> LinkedSteps | None:
    found = LinkedEstimate.of_system(problem.system, problem.spreads)
    return None if found is None else LinkedSteps(found)


def image(problem: Problem, noisy: Array, right: Array, ties: Ties = None) -> Array:
    coins = np.zeros(len(noisy), np.uint64) if ties is None else ties
    return np.stack([certified(problem, row, right, int(coin)).values for row, coin in zip(noisy, coins, strict=True)])


def certified(problem: Problem, noisy: Array, right: Array, coin: int = 0) -> Answer:
    del right  # all sides are 0
    steps = _steps(problem)
    assert steps is not None
    estimate = steps.estimate.estimated(noisy.astype(np.float64)[None])[0]
    values = steps.values(estimate, coin)
    weight = 1 / problem.spreads
    reached, least = (float((weight * (found - noisy) ** 2).sum()) for found in (values, estimate))
    gap = max(reached - least * (1 - ROUNDED), 0.0)
    return Answer(values, Evidence(objective=reached, gap=gap, grid=Fraction(1), exact=True, nearest=False))


def spread(problem: Problem, law: Independent) -> Spread | None:
    del problem, law
    return None
