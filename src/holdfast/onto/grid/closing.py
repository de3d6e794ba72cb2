"""What ways share that move one table at a time: what must hold is tested in whole steps, and the gap is measured."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from holdfast.arguments import Refused
from holdfast.arrays import Array, Floats, Ints
from holdfast.evidence import Evidence
from holdfast.noise import Independent
from holdfast.noise.spread import STUDY, Spread, simulated_spread
from holdfast.onto.grid.checker import lower_bound
from holdfast.onto.grid.grid import Task
from holdfast.onto.independent_shares import Answer
from holdfast.onto.problem import MOST_SIMULATED, Image, Problem, Ties, simulated_errors

#: A study moves so many tables one by one: errors are not simulated for larger ones.
MOST_OUTPUTS = 2_000

UNSOLVED = "the nearest point was not found: use other weights or norm, or fewer constraints"


def approved(task: Task, moves: Ints) -> Ints | Floats:
    """The moved table, once it is certain that everything holds for it; refused otherwise."""
    if task.missed(moves) is not None:
        raise Refused(UNSOLVED)
    return task.values(moves)


def stacked(problem: Problem, noisy: Array, ties: Ties, one: Callable[[Array, int], Array]) -> Array:
    """Move each row of (size, n) by itself, with its coin."""
    result = np.empty(noisy.shape, dtype=np.int64 if problem.integer else np.float64)
    for k, row in enumerate(noisy):
        result[k] = one(row, 0 if ties is None else int(ties[k]))
    return result


def moved_rows(problem: Problem, noisy: Array, right: Array, ties: Ties, move: Callable[[Task, int], Ints]) -> Array:
    """Move each row of (size, n) by itself; `right` holds the right-hand sides of `problem.space.rows`."""

    def one(row: Array, coin: int) -> Array:
        task = Task.of(problem, row, right).turned_by(coin)
        return turned_back(approved(task, move(task, coin)), task)

    return stacked(problem, noisy, ties, one)


def turned_back(values: Array, task: Task) -> Array:
    """The moved table of a task as it was before a coin turned it."""
    return -values if task.turned else values


def answered(task: Task, moves: Ints, prices: tuple[Floats, Floats], *, nearest: bool = True) -> Answer:
    """The moved table with its evidence; `prices` of the equalities and inequalities are only a proposal."""
    values = approved(task, moves)
    objective = task.objective(moves)
    bound = lower_bound(
        task.problem.norm,
        task.shape.weights,
        task.real_bounds,
        (task.shape.in_doubles[0], task.gap),
        (task.shape.in_doubles[1], task.least),
        prices,
        objective,
        whole=task.problem.integer,
    )
    gap = max(0.0, objective - max(bound, 0.0))
    unit = task.unit_of_objective
    evidence = Evidence(objective=objective * unit, gap=gap * unit, grid=task.grid, exact=task.exact, nearest=nearest)
    return Answer(turned_back(values, task), evidence)


def simulated(problem: Problem, law: Independent, image: Image) -> Spread | None:
    """Errors from simulated draws where the map does not depend on the data and the study is short; otherwise None."""
    if problem.system.has_inequalities or problem.n > MOST_OUTPUTS or STUDY * problem.n > MOST_SIMULATED:
        return None
    return simulated_spread(simulated_errors(problem, law, image))
