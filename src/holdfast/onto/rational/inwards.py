"""Whole steps next to a real point when corners are too sharp for rounding: a little way towards the inside first.

On the way from any allowed point to one at which only rows are tight that always are (`Inside`), all other rows get
slack at once, and so whole points next to the way, on the rows that are always tight, satisfy everything; the first
that does is taken. All of it is in rationals, for small problems.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from holdfast.arguments import LARGEST
from holdfast.arrays import Ints
from holdfast.exact.inside import Inside
from holdfast.exact.nearest_rational import ExactRows
from holdfast.exact.whole_rows import WholeRows
from holdfast.onto.grid.grid import MOST_FINER, Task

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
