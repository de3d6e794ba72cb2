"""The nearest point for any linear constraint: a quadratic, linear or integer program, finished in exact arithmetic.

Least squares by Newton's method on prices or, with inequalities between outputs, by Clarabel; L1 and whole numbers by
HiGHS. Least squares in whole numbers looks in a window around the real optimum z: a whole point better than one of cost
U has w(x−z)² ≤ U − cost(z) at every output, so a window that covers this holds the optimum. Where that window is too
large the point is the best one next to the real optimum, a *controlled rounding*, and its evidence says so.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from holdfast.arguments import LARGEST, Refused
from holdfast.imaging import newton, projection
from holdfast.imaging.closing import UNSOLVED, answered
from holdfast.imaging.evidence import Answer
from holdfast.imaging.finish import finish
from holdfast.imaging.grid import Ints, Task
from holdfast.imaging.problem import Problem
from holdfast.imaging.rows_apart import simulated, stacked
from holdfast.imaging.solvers import Proposal, least_absolute, least_squares, whole_squares
from holdfast.noise import Independent
from holdfast.noise.spread import Spread

#: Unit steps of all windows together up to which the nearest whole point is looked for.
MOST_STEPS = 6_000
#: Widths of windows, in units around the real optimum, tried until one holds a whole point.
WIDTHS = (1, 2, 4, 16, 64)


def accepts(problem: Problem) -> bool:
    """Whether there is no union, and unmeasured outputs follow from the measured ones."""
    if problem.system.branches:
        return False
    return bool(np.isfinite(problem.spreads).all()) or projection.determined(problem)


def image(problem: Problem, noisy: npt.NDArray[Any], right: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Move noisy values, (size, n); `right` holds the right-hand sides of `problem.space.rows`."""
    return stacked(problem, noisy, lambda row: certified(problem, row, right).values)


def certified(problem: Problem, noisy: npt.NDArray[Any], right: npt.NDArray[Any]) -> Answer:
    """Move one table, (n,), with evidence."""
    task = Task.of(problem, noisy, right)
    nowhere = np.zeros_like(task.start)
    if task.missed(nowhere) is None and (task.shape.weights > 0).all():
        return answered(task, nowhere, (np.zeros(task.gap.size), np.zeros(task.least.size)))
    if problem.integer:
        return _whole(task)
    found = _real(task)
    finished = finish(task, found.moves)
    if finished is None:
        raise Refused(UNSOLVED)
    on_grid, moves = finished
    parts = float(task.grid / on_grid.grid)
    power = 0 if problem.norm == "l1" else 1
    return answered(on_grid, moves, (found.prices[0] * parts**power, found.prices[1] * parts**power))


def spread(problem: Problem, law: Independent) -> Spread | None:
    """Simulated errors; not known before data is seen where there are bounds."""
    return simulated(problem, law, image)


def _real(task: Task) -> Proposal:
    """The best real moves."""
    if task.problem.norm == "l1":
        return least_absolute(task, whole=False)[0]
    if task.least.size == 0 and task.gap.size and (task.shape.weights > 0).all():
        moves, prices = newton.solve(task)
        return Proposal(moves, (prices, np.zeros(0)))
    return least_squares(task)


def _whole(task: Task) -> Answer:
    """The best whole moves, or the best in a window."""
    if task.problem.norm == "l1":
        found, proved = least_absolute(task, whole=True)
        prices = least_absolute(task, whole=False)[0].prices
        return answered(task, np.rint(found.moves).astype(np.int64), prices, nearest=proved)
    real = _real(task)
    measured = task.shape.weights > 0
    for width in WIDTHS:
        low, high = _window(task, real.moves, np.full(task.start.size, float(width)))
        first = whole_squares(task, low, high)
        if first is not None:
            break
    else:
        raise Refused("no whole numbers near the best real ones satisfy what must hold: pass integer=False")
    moves, proved = first
    # A point better than this one lies within this reach of the real optimum at every measured output.
    above = max(0.0, task.objective(moves) - task.objective(real.moves)) * (1 + 1e-6) + 1e-6
    reach = np.where(measured, np.sqrt(above / np.where(measured, task.shape.weights, 1.0)), 0.0)
    covered = bool((reach[measured] <= width).all())
    if proved and not covered:
        low, high = _window(task, real.moves, np.maximum(reach, width))
        proved = int((high - low)[measured].sum()) <= MOST_STEPS
        if proved:
            best = whole_squares(task, low, high)
            proved = best is not None and best[1]
            if best is not None and task.objective(best[0]) <= task.objective(moves):
                moves = best[0]
    return answered(task, moves, real.prices, nearest=proved)


def _window(task: Task, real: npt.NDArray[np.float64], width: npt.NDArray[np.float64]) -> tuple[Ints, Ints]:
    """Whole moves within `width` of the real ones (of the next whole ones, for those below 1) and within bounds."""
    low = np.maximum(task.low, np.floor(real - width + 1e-6).astype(np.int64))
    high = np.minimum(task.high, np.ceil(real + width - 1e-6).astype(np.int64))
    unmeasured = task.shape.weights == 0
    low, high = np.where(unmeasured, task.low, low), np.where(unmeasured, task.high, high)
    return np.minimum(low, np.where(low < LARGEST, high, low)), high
