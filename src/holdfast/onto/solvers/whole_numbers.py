"""The nearest whole moves for any linear rows: from good prices up a ladder of bounds.

Good prices bound the cost of all whole points from below, and leave a window to each output for every rise above that
bound (`pieces`). The ladder asks for the best point in the window of a small rise, then of a larger one. A point that
costs no more than the rise allows is the nearest of all; so is one that costs no more than the next cost there is:
with equal weights costs are whole, and all even or all odd where the rows fix the parity of the sum. Where the rungs
end before that, the point is a *controlled rounding* with its gap measured.
Searches end after a number of nodes, never after a time: the noisy values alone decide.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import flint
import numpy as np

from holdfast.arguments import LARGEST, Refused
from holdfast.arrays import Floats, Ints, kept
from holdfast.onto.grid.closing import answered
from holdfast.onto.grid.grid import Shape, Task
from holdfast.onto.independent_shares import Answer
from holdfast.onto.solvers.pieces import Centre, solved
from holdfast.onto.solvers.solvers import Proposal, least_absolute

#: Rungs of the ladder, in multiples of a typical weight above the bound; or of the step between costs, above the least.
RUNGS, WHOLE_RUNGS = (0.25, 1.0, 4.0, 16.0, 64.0), (0, 1, 2, 4, 8, 32)
#: Nodes of one search, and unit steps in all windows together up to which there is one.
MOST_NODES, MOST_STEPS = 500, 6_000
#: Unit steps on both sides of the best moves in which prices are looked for.
WIDTH = 3
#: Distances from the best real moves in which any allowed point is looked for at last.
DISTANCES = (4, 64, 1_024, 2**20, LARGEST)
NOWHERE = "no whole numbers near the best real ones satisfy what must hold: pass integer=False"


@dataclass(frozen=True, eq=False)
class Point:
    """Whole moves that are allowed, prices that bound how far from the nearest they are, and whether they are it."""

    moves: Ints
    prices: tuple[Floats, Floats]
    nearest: bool


def nearest_whole(task: Task, real: Proposal | None) -> Answer:
    """The best whole moves, from real ones if they are known."""
    found = None if real is None else _climbed(task, real)
    if found is None:
        found = anywhere(task, real)
    if found is None:
        raise Refused(NOWHERE)
    return answered(task, found.moves, found.prices, nearest=found.nearest)


def _proposed(task: Task) -> Proposal:
    """The moves with the least sum of sizes, or none, and no prices: where no solver proposes any for squares."""
    found = least_absolute(task)
    moves = np.zeros(task.start.size) if found is None else found.moves
    return Proposal(moves, (np.zeros(task.gap.size), np.zeros(task.least.size)))


def _climbed(task: Task, real: Proposal) -> Point | None:
    """Search rung by rung; None where no rung holds an allowed point."""
    centre = _centre(task, real)
    weights = task.shape.weights
    step, offset = _costs(task)
    least = centre.bound - 1e-9 * (1.0 + abs(centre.bound))
    first = offset + step * math.ceil((least - offset) / step) if step else least
    typical = float(np.median(weights[weights > 0])) if (weights > 0).any() else 1.0
    rises = [first + step * k for k in WHOLE_RUNGS] if step else [least + typical * k for k in RUNGS]
    best: Ints | None = None
    while rises:
        limit = rises.pop(0)
        low, high = centre.window(limit - centre.bound + 1e-6 * max(step, typical))
        steps = (high - low)[weights > 0].sum() if task.problem.norm == "l2" else 0
        if steps > MOST_STEPS and best is not None:
            break
        enough = 0.999 * step if step else 1e-9 * typical
        found = solved(centre, low, high, whole=True, nodes=MOST_NODES, enough=enough)
        moves = None if found is None else np.rint(found.moves).astype(np.int64)
        if found is None or moves is None or task.missed(moves) is not None:
            continue
        if best is None or task.objective(moves) < task.objective(best):
            best = moves
        cost = task.objective(best)
        if not found.best:
            break
        if cost <= limit + max(step, 1e-9 * abs(limit)) * (1 + 1e-9):
            return Point(best, centre.prices, True)
        rises = [cost]
    best = _near(centre) if best is None else best
    return None if best is None else Point(best, centre.prices, False)


def _near(centre: Centre) -> Ints | None:
    """The best whole moves in a box around those that prices ask for, where no window of a rung holds any."""
    task = centre.task
    for width in (WIDTH, max(WIDTH, MOST_STEPS // (2 * task.start.size))):
        low, high = np.maximum(task.low, centre.moves - width), np.minimum(task.high, centre.moves + width)
        found = solved(centre, low, high, whole=True, nodes=MOST_NODES)
        moves = None if found is None else np.rint(found.moves).astype(np.int64)
        if moves is not None and task.missed(moves) is None:
            return moves
    return None


def _centre(task: Task, real: Proposal) -> Centre:
    """The best prices known: those of the real optimum, or of the program in pieces around it."""
    known = 4 * task.objective(real.moves) + 1e3 * float(task.shape.weights.sum())
    centre = Centre.of(task, real.prices, known, real.moves)
    if task.problem.norm == "l1":
        return centre
    low, high = np.maximum(task.low, centre.moves - WIDTH), np.minimum(task.high, centre.moves + WIDTH)
    unmeasured = task.shape.weights == 0
    low, high = np.where(unmeasured, task.low, low), np.where(unmeasured, task.high, high)
    found = solved(centre, low, high, whole=False)
    if found is None:
        return centre
    other = Centre.of(task, found.prices, known, found.moves)
    return other if other.bound > centre.bound else centre


def _costs(task: Task) -> tuple[int, int]:
    """The step and offset of all costs that whole allowed points can have; a step of 0 where none is known."""
    if (task.shape.weights != 1).any():
        return 0, 0
    rows = _parity(task.shape)
    if rows is None:
        return 1, 0
    return 2, int(sum(int(x) & 1 for x in task.gap[rows])) % 2


@kept
def _parity(shape: Shape) -> Ints | None:
    """Rows whose sum is odd at every output, so that they give the parity of the sum of all moves; None without any.

    Outputs that no row with several entries holds are in none: then there are no such rows.
    """
    count, n = shape.rows.shape
    odd = np.hstack([shape.rows.toarray().T % 2, np.ones((n, 1), dtype=np.int64)])
    reduced, rank = flint.nmod_mat(n, count + 1, [int(x) for x in odd.ravel()], 2).rref()
    leads = [next((j for j in range(count + 1) if int(reduced[i, j])), count) for i in range(rank)]
    return None if count in leads else np.array([j for i, j in enumerate(leads) if int(reduced[i, count])])


def anywhere(task: Task, real: Proposal | None) -> Point | None:
    """Any allowed whole point, as near to the real moves as one of the distances tried."""
    real = real or _proposed(task)
    centre = Centre.of(task, real.prices, 4 * task.objective(real.moves) + 1.0, real.moves)
    middle = np.clip(np.rint(real.moves).astype(np.int64), task.low, task.high)
    for distance in DISTANCES:
        free = (task.shape.weights == 0) | (distance == LARGEST)
        low = np.where(free, task.low, np.maximum(task.low, middle - np.where(free, 0, distance)))
        high = np.where(free, task.high, np.minimum(task.high, middle + np.where(free, 0, distance)))
        found = solved(centre, low, high, whole=True, nodes=MOST_NODES, costs=False)
        moves = None if found is None else np.rint(found.moves).astype(np.int64)
        if moves is not None and task.missed(moves) is None:
            return Point(moves, real.prices, False)
    return None
