"""The end of every solver's way: what must hold is tested in whole steps, and the gap is measured."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from holdfast.arguments import Refused
from holdfast.arrays import Floats, Ints
from holdfast.evidence import Evidence
from holdfast.onto.grid.checker import lower_bound
from holdfast.onto.grid.grid import Task
from holdfast.onto.grid.rows_apart import stacked
from holdfast.onto.plan import Answer
from holdfast.onto.problem import Problem, Ties

UNSOLVED = "the nearest point was not found: use other weights or norm, or fewer constraints"


def approved(task: Task, moves: Ints) -> npt.NDArray[np.int64] | npt.NDArray[np.float64]:
    """The moved table, once it is certain that everything holds for it; refused otherwise."""
    if task.missed(moves) is not None:
        raise Refused(UNSOLVED)
    return task.values(moves)


def moved_rows(
    problem: Problem, noisy: npt.NDArray[Any], right: npt.NDArray[Any], ties: Ties, move: Callable[[Task, int], Ints]
) -> npt.NDArray[Any]:
    """Move each row of (size, n) by itself; `right` holds the right-hand sides of `problem.space.rows`."""

    def one(row: npt.NDArray[Any], coin: int) -> npt.NDArray[Any]:
        task = Task.of(problem, row, right).turned_by(coin)
        return turned_back(approved(task, move(task, coin)), task)

    return stacked(problem, noisy, ties, one)


def turned_back(values: npt.NDArray[Any], task: Task) -> npt.NDArray[Any]:
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
