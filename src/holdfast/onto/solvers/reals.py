"""The nearest real moves for any linear rows, as a solver finds them.

Clarabel, or HiGHS for L1. Their moves are finished in whole steps of the grid (`finish`), or a little inwards. Tables
at corners too sharp for all of that go to whole numbers, with the gap that this leaves.
"""

from __future__ import annotations

import numpy as np

from holdfast.onto.grid.closing import answered
from holdfast.onto.grid.grid import Task
from holdfast.onto.independent_shares import Answer
from holdfast.onto.solvers.finish import finish
from holdfast.onto.solvers.solvers import Proposal, inner_point, least_absolute, least_squares
from holdfast.onto.solvers.whole_numbers import anywhere

#: Shares of the way inside that are tried.
SHARES = tuple(2.0**-k for k in range(30, -1, -3))


def proposed(task: Task) -> Proposal | None:
    """Real moves with the least cost; None where no solver finds them."""
    return least_absolute(task) if task.problem.norm == "l1" else least_squares(task)


def nearest_real(task: Task) -> Answer | None:
    """Move one table to the nearest point on its grid; None where none is found."""
    real = proposed(task)
    found = None if real is None else _finished(task, real)
    if found is None and real is not None:
        found = _inwards(task, real)
    return _in_whole_numbers(task, real) if found is None else found


def _in_whole_numbers(task: Task, real: Proposal | None) -> Answer | None:
    """Whole numbers near the best reals, as tables of counts always have some; None where none are found."""
    whole = task.in_whole_numbers()
    if whole is None:
        return None
    found = anywhere(whole, proposed(whole))
    if found is None:
        return None
    moves = (whole.start + found.moves) * task.grid.denominator - task.start
    prices = (np.zeros(task.gap.size), np.zeros(task.least.size)) if real is None else real.prices
    return None if task.missed(moves) is not None else answered(task, moves, prices)


def _finished(task: Task, real: Proposal) -> Answer | None:
    done = finish(task, real.moves)
    if done is None:
        return None
    finer, moves = done  # on a finer grid prices of squares grow with the number of steps
    factor = 1.0 if task.problem.norm == "l1" else float(task.grid / finer.grid)
    return answered(finer, moves, (real.prices[0] * factor, real.prices[1] * factor))


def _inwards(task: Task, real: Proposal) -> Answer | None:
    """The same towards a point at which as many rows as possible have slack."""
    inside = inner_point(task)
    if inside is None:
        return None
    for share in SHARES:
        found = _finished(task, Proposal(real.moves + share * (inside - real.moves), real.prices))
        if found is not None:
            return found
    return None
