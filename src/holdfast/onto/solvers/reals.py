"""The nearest real moves for any linear rows, by the first of several solvers that finds them.

Newton's method where there are equalities and bounds only, then Clarabel, and for small problems rationals; L1 by
HiGHS, then rationals. Their moves are finished in whole steps of the grid (`finish`), or a little inwards (`inwards`).
Larger tables at corners too sharp for all of that go to whole numbers, with the gap that this leaves.
"""

from __future__ import annotations

import numpy as np

from holdfast.arguments import Refused
from holdfast.arrays import Ints
from holdfast.exact.inside import Inside
from holdfast.onto.grid.closing import answered
from holdfast.onto.grid.grid import Task
from holdfast.onto.independent_shares import Answer
from holdfast.onto.rational_steps import exact_rows, nearest_branched, real_optimum, rounded_inwards
from holdfast.onto.solvers import newton
from holdfast.onto.solvers.finish import finish
from holdfast.onto.solvers.solvers import Proposal, inner_point, least_absolute, least_squares
from holdfast.onto.solvers.whole_numbers import anywhere

#: A gap above this share of the objective is looked at again in rationals, where the problem is small.
LOOSE = 1e-7
#: Where rounding inwards leaves a larger gap than this, grid points are searched for.
COARSE = 1e-4
#: Shares of the way inside that are tried for larger problems.
SHARES = tuple(2.0**-k for k in range(30, -1, -3))


def proposed(task: Task) -> Proposal | None:
    """Real moves with the least cost; None where no solver finds them."""
    return _in_doubles(task) or _in_rationals(task)


def _in_rationals(task: Task) -> Proposal | None:
    rows = exact_rows(task)
    real = None if rows is None else real_optimum(task, rows)
    if rows is None or real is None:
        return None
    return Proposal(np.array([float(x) for x in real.point]), real.of_rows(rows))


def _in_doubles(task: Task) -> Proposal | None:
    if task.problem.norm == "l1":
        return least_absolute(task)
    if task.least.size == 0 and task.gap.size and (task.shape.weights > 0).all():
        try:
            moves, prices = newton.solve(task)
            return Proposal(moves, (prices, np.zeros(0)))
        except Refused:
            pass
    return least_squares(task)


def nearest_real(task: Task) -> Answer | None:
    """Move one table to the nearest point on its grid; None where none is found."""
    real = _in_doubles(task)
    found = None if real is None else _finished(task, real)
    if found is None or found.evidence.relative_gap > LOOSE:
        found = _nearer(found, _answered_in_rationals(task))
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


def _nearer(one: Answer | None, other: Answer | None) -> Answer | None:
    known = [each for each in (one, other) if each is not None]
    return min(known, key=lambda each: each.evidence.gap, default=None)


def _finished(task: Task, real: Proposal) -> Answer | None:
    done = finish(task, real.moves)
    return None if done is None else _on_grid(task, real, *done)


def _on_grid(task: Task, real: Proposal, finer: Task, moves: Ints) -> Answer:
    """The answer on a finer grid; prices of squares grow with the number of steps."""
    factor = 1.0 if task.problem.norm == "l1" else float(task.grid / finer.grid)
    return answered(finer, moves, (real.prices[0] * factor, real.prices[1] * factor))


def _answered_in_rationals(task: Task) -> Answer | None:
    """The real optimum of a small problem, and grid points next to it or, where the grid is too coarse, near it."""
    rows = exact_rows(task)
    real = None if rows is None else real_optimum(task, rows)
    if rows is None or real is None:
        return None
    prices = real.of_rows(rows)
    proposal = Proposal(np.array([float(x) for x in real.point]), prices)
    if all(x.denominator == 1 and abs(x) < 2**61 for x in real.point):
        return answered(task, np.array([int(x) for x in real.point], dtype=np.int64), prices)
    inside = Inside.of(rows, real.point, max(1, task.grid.denominator))
    if inside is None:
        return None
    done = rounded_inwards(task, rows, real.point, inside)
    found = None if done is None else _on_grid(task, proposal, *done)
    if found is not None and found.evidence.relative_gap <= COARSE:
        return found
    near = nearest_branched(task, rows, inside, real.point, None)
    return _nearer(found, None if near is None else answered(task, near.moves, prices))


def _inwards(task: Task, real: Proposal) -> Answer | None:
    """The same in doubles, for larger problems: towards a point at which as many rows as possible have slack."""
    inside = inner_point(task)
    if inside is None:
        return None
    for share in SHARES:
        found = _finished(task, Proposal(real.moves + share * (inside - real.moves), real.prices))
        if found is not None:
            return found
    return None
