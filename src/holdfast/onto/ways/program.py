"""The nearest point for any linear constraint: a quadratic, linear or integer program, finished in exact arithmetic.

Reals (`reals`) by Clarabel or HiGHS; whole numbers (`whole`) by a ladder of bounds; small
problems in rationals where these give up. So what has a solution is not refused once the noise is drawn.
"""

from __future__ import annotations

import numpy as np

from holdfast.arguments import Refused
from holdfast.arrays import Array
from holdfast.noise import Independent
from holdfast.noise.spread import Spread
from holdfast.onto.grid.closing import UNSOLVED, answered, simulated, stacked
from holdfast.onto.grid.grid import Task
from holdfast.onto.independent_shares import Answer
from holdfast.onto.problem import Problem, Ties
from holdfast.onto.solvers.reals import nearest_real, proposed
from holdfast.onto.solvers.whole_numbers import nearest_whole
from holdfast.onto.ways import projection


def accepts(problem: Problem) -> bool:
    """Whether there is no union, and unmeasured outputs follow from the measured ones."""
    if problem.system.branches:
        return False
    return bool(np.isfinite(problem.spreads).all()) or projection.determined(problem)


def image(problem: Problem, noisy: Array, right: Array, ties: Ties = None) -> Array:
    return stacked(problem, noisy, ties, lambda row, coin: certified(problem, row, right, coin).values)


def certified(problem: Problem, noisy: Array, right: Array, coin: int = 0) -> Answer:
    task = Task.of(problem, noisy, right).turned_by(coin)
    nowhere = np.zeros_like(task.start)
    if task.missed(nowhere) is None and (task.shape.weights > 0).all():
        return answered(task, nowhere, (np.zeros(task.gap.size), np.zeros(task.least.size)))
    if problem.integer:
        return nearest_whole(task, proposed(task))
    found = nearest_real(task)
    if found is None:
        raise Refused(UNSOLVED)
    return found


def spread(problem: Problem, law: Independent) -> Spread | None:
    return simulated(problem, law, image)
