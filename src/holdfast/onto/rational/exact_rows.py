"""Tasks in rationals, for small problems; L1 is reached from far away.

The allowed point nearest to −M·cost has the least cost for all large M (Mangasarian).
"""

from __future__ import annotations

from fractions import Fraction

import flint
import numpy as np

from holdfast.arguments import LARGEST
from holdfast.arrays import Floats
from holdfast.exact.nearest_rational import MOST_OUTPUTS, MOST_ROWS, ExactRows, Nearest, nearest
from holdfast.onto.grid.grid import Task

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
