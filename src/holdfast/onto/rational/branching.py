"""Whole points by branch and bound in rationals, for small lattices in which allowed points may be rare.

Each node is a real optimum (`dual_steps`). Branches are made on whole coordinates in which what is allowed is nearly
round (`Slices`), not on outputs. The search ends after a given number of nodes, never after a time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from holdfast.arguments import LARGEST
from holdfast.arrays import Ints
from holdfast.exact.inside import Cut, Inside, Slices, with_cuts
from holdfast.exact.nearest_rational import ExactRows, Nearest, nearest
from holdfast.onto.grid.grid import Task
from holdfast.onto.rational.exact_rows import nearest_absolute

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
