"""The end of every solver's way: what must hold is tested in whole steps, and the gap is measured."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from holdfast.arguments import Refused
from holdfast.imaging.checker import lower_bound
from holdfast.imaging.evidence import Answer, Evidence
from holdfast.imaging.grid import Floats, Ints, Task
from holdfast.imaging.problem import Problem
from holdfast.imaging.rows_apart import stacked

UNSOLVED = "the nearest point was not found: use other weights or norm, or fewer constraints"


def approved(task: Task, moves: Ints) -> npt.NDArray[np.int64] | npt.NDArray[np.float64]:
    """The moved table, once it is certain that everything holds for it; refused otherwise."""
    if task.missed(moves) is not None:
        raise Refused(UNSOLVED)
    return task.values(moves)


def moved_rows(
    problem: Problem, noisy: npt.NDArray[Any], right: npt.NDArray[Any], move: Callable[[Task], Ints]
) -> npt.NDArray[Any]:
    """Move each row of (size, n) by itself; `right` holds the right-hand sides of `problem.space.rows`."""

    def one(row: npt.NDArray[Any]) -> npt.NDArray[Any]:
        task = Task.of(problem, row, right)
        return approved(task, move(task))

    return stacked(problem, noisy, one)


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
    return Answer(values, Evidence(task.grid, task.exact, objective * unit, gap * unit, nearest))
