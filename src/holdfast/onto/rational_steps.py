"""Whole points by branch and bound in rationals, for small lattices in which allowed points may be rare.

Each node is a real optimum (`dual_steps`). Branches are made on whole coordinates in which what is allowed is nearly
round (`Slices`), not on outputs. The search ends after a given number of nodes, never after a time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import flint
import numpy as np

from holdfast.arguments import LARGEST
from holdfast.arrays import Floats, Ints
from holdfast.exact.inside import Cut, Inside, Slices, with_cuts
from holdfast.exact.nearest_rational import MOST_OUTPUTS, MOST_ROWS, ExactRows, Nearest, nearest
from holdfast.exact.whole_rows import WholeRows
from holdfast.onto.grid.grid import MOST_FINER, Task

#: Nodes of one search, and nodes after which it ends if an allowed point is known.
MOST_NODES, ENOUGH_NODES = 400, 80
#: What an output that is not measured weighs, as a share of the least weight.
HARDLY = 2.0**-30


@dataclass(frozen=True, eq=False)
class Branched:
    """The best whole moves found, and whether no others are nearer."""

    moves: Ints
    complete: bool


def nearest_branched(
    task: Task, rows: ExactRows, inside: Inside, real: Sequence[Fraction], known: Ints | None
) -> Branched | None:
    """The whole moves with the least Σ w x²; `real` are real ones, `known` are whole ones that are allowed."""
    slices = Slices.of(rows, inside, real)
    if slices is None:
        return None
    best, least = known, None if known is None else _cost(task, known.tolist())
    waiting: list[list[Cut]] = [[]]
    for node in range(MOST_NODES):
        if not waiting or (best is not None and node >= ENOUGH_NODES):
            break
        cuts = waiting.pop()
        found = least_squares(task, with_cuts(rows, cuts))
        if found is None or (least is not None and _cost(task, found.point) >= least):
            continue
        pair = slices.cuts(found.point)
        if pair is not None:
            waiting += [[*cuts, cut] for cut in pair]
        elif max(map(abs, found.point)) < LARGEST:
            best, least = np.array([int(x) for x in found.point], dtype=np.int64), _cost(task, found.point)
    return None if best is None else Branched(best, not waiting)


def real_optimum(task: Task, rows: ExactRows) -> Nearest | None:
    """The real moves with the least cost that satisfy some rows."""
    return nearest_absolute(rows, task.shape.weights) if task.problem.norm == "l1" else least_squares(task, rows)


def least_squares(task: Task, rows: ExactRows) -> Nearest | None:
    """The real moves with the least Σ w x² that satisfy some rows; outputs that are not measured hardly weigh."""
    weights = task.shape.weights
    least = weights[weights > 0].min(initial=1.0)
    return nearest(rows, np.where(weights > 0, weights, least * HARDLY), [Fraction(0)] * task.start.size)


def _cost(task: Task, moves: Sequence[int | Fraction]) -> Fraction:
    return sum((Fraction(w) * x * x for w, x in zip(task.shape.weights.tolist(), moves, strict=True)), Fraction(0))


# Tasks in rationals, for small problems; L1 is reached from far away.
#
# The allowed point nearest to −M·cost has the least cost for all large M (Mangasarian).

#: How far away L1 starts, in steps: costs differ by a hair if a corner lies farther out than the root of this.
FAR_AWAY = 1 << 200


def exact_rows(task: Task) -> ExactRows | None:
    """Write down all rows of a task, in whole steps; None where there are too many."""
    shape, n = task.shape, task.start.size
    below, above = np.flatnonzero(task.low > -LARGEST), np.flatnonzero(task.high < LARGEST)
    count = task.gap.size + task.least.size + below.size + above.size
    if n > MOST_OUTPUTS or count > MOST_ROWS:
        return None
    unit = np.eye(n, dtype=np.int64)
    stacked = [shape.rows.toarray(), shape.inequalities.A.toarray(), unit[below], -unit[above]]
    C = flint.fmpz_mat(count, n, [int(x) for x in np.vstack(stacked).ravel()])
    sides = (task.gap, task.least, task.low[below], -task.high[above])
    return ExactRows(C, tuple(int(x) for x in np.concatenate(sides)), task.gap.size, task.least.size)


def nearest_absolute(rows: ExactRows, weights: Floats) -> Nearest | None:
    """A point with the least Σ w|x| that satisfies all rows, and prices of the rows; None where there is none.

    x = up − down, each 0 or more.
    """
    n, count = rows.C.ncols(), rows.count
    entries = []
    for i in range(count):
        row = rows.row(i)
        entries += [*row, *(-x for x in row)]
    for j in range(2 * n):
        entries += [int(k == j) for k in range(2 * n)]
    twice = ExactRows(
        flint.fmpz_mat(count + 2 * n, 2 * n, entries), (*rows.sides, *(0,) * (2 * n)), rows.equalities, rows.between
    )
    costs = [Fraction(w) for w in weights.tolist()]
    found = nearest(twice, np.ones(2 * n), [-FAR_AWAY * cost for cost in costs + costs])
    if found is None:
        return None
    point = [up - down for up, down in zip(found.point[:n], found.point[n:], strict=True)]
    return Nearest(point, [price / (2 * FAR_AWAY) for price in found.prices[:count]])


# Whole steps next to a real point when corners are too sharp for rounding: a little way towards the inside first.
#
# On the way from any allowed point to one at which only rows are tight that always are (`Inside`), all other rows get
# slack at once, and so whole points next to the way, on the rows that are always tight, satisfy everything; the first
# that does is taken. All of it is in rationals, for small problems.

#: The shares of the way inside that are tried, and one below which no finer grid is.
SHARES = (Fraction(0), *(Fraction(1, 1 << k) for k in range(40, -1, -2)))
SHORT = Fraction(1, 1 << 20)


def rounded_inwards(task: Task, rows: ExactRows, near: Sequence[Fraction], inside: Inside) -> tuple[Task, Ints] | None:
    """Whole moves that satisfy everything next to real ones that do, on the task's grid or a finer one.

    A finer grid is tried as well where the way inside was long.
    """
    held = WholeRows.of([rows.row(i) for i in inside.always], task.start.size)
    finest = 1 if task.problem.integer else task.most_finer
    best, parts = None, 1
    while parts <= finest:
        tried = _tried(task, rows, held, inside, near, parts)
        if isinstance(tried, tuple):
            best = tried[1:]
            if tried[0] <= SHORT:
                break
        parts = tried if isinstance(tried, int) and tried > parts else parts * 4
    return best


def _tried(
    task: Task, rows: ExactRows, held: WholeRows, inside: Inside, near: Sequence[Fraction], parts: int
) -> tuple[Fraction, Task, Ints] | int:
    """The share of the way and moves on a grid `parts` times finer; or how many times finer it must be at least."""
    finer = task.finer(parts) if parts > 1 else task
    right = [parts * rows.sides[i] for i in inside.always]
    for share in SHARES:
        aim = [round(parts * (x + share * (c - x))) for x, c in zip(near, inside.point, strict=True)]
        change = held.near(held.missing(aim, right))
        if change is None or change[1] > 1:
            return MOST_FINER + 1 if change is None else parts * change[1]
        found = [a + d for a, d in zip(aim, change[0], strict=True)]
        if max(map(abs, found), default=0) < LARGEST:
            moves = np.array(found, dtype=np.int64)
            if finer.missed(moves) is None:
                return share, finer, moves
    return 0
