"""Half planes and bands of one sum: the statement is the enumerated loss, never below it.

Weights are summed over a grid of all outputs, seen from every table in a box around the ends.
"""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

import holdfast as hf


def constraint_of(row, intervals):
    """The union of low ≤ row·z ≤ high."""
    sides = []
    for low, high in intervals:
        parts = [] if low is None else [hf.at_least([row], [low])]
        parts += [] if high is None else [hf.at_least([[-r for r in row]], [-high])]
        sides.append(parts[0] if len(parts) == 1 else parts[0] & parts[1])
    union = sides[0]
    for side in sides[1:]:
        union = union | side
    return union


def enumerated(row, intervals, scales, kind, records, reach=26):
    """The largest loss over all neighbouring tables of two cells, by sums over a grid of outputs."""
    ends = [end for interval in intervals for end in interval if end is not None]
    box = range(min(ends) - 8, max(ends) + 9)
    axis = np.arange(box[0] - reach, box[-1] + reach + 1)

    def inside(total):
        found = np.zeros(np.shape(total), dtype=bool)
        for low, high in intervals:
            found |= (total >= (-np.inf if low is None else low)) & (total <= (np.inf if high is None else high))
        return found

    allowed = inside(row[0] * axis[:, None] + row[1] * axis[None, :])
    # The weight depends on the sum alone: one table for each sum will do.
    first = {row[0] * a + row[1] * b: (a, b) for a in box for b in box if abs(row[0] * a + row[1] * b) <= max(box)}
    seen = {}
    for total, (a, b) in first.items():
        if inside(total):
            one, other = (np.exp(-np.abs(axis - x) / s) for x, s in zip((a, b), scales, strict=True))
            seen[total] = one @ allowed @ other / (one.sum() * other.sum())
    unit = [(1, 0), (0, 1)]
    single = [*unit, *[(-a, -b) for a, b in unit]] if kind == "add-remove" else [(1, -1), (-1, 1)]
    moves = {(0, 0)}
    for _ in range(records):
        moves |= {(a + c, b + d) for a, b in moves for c, d in single}
    largest = max(abs(a) / scales[0] + abs(b) / scales[1] for a, b in moves)
    worst = 0.0
    for (total, weight), (a, b) in itertools.product(seen.items(), moves - {(0, 0)}):
        after = seen.get(total + row[0] * a + row[1] * b)
        if after is not None:
            worst = max(worst, abs(a) / scales[0] + abs(b) / scales[1] + math.log(after / weight))
    return worst, largest


CASES = [
    ([1, 1], [(None, 8), (10, None)], [1, 1], "add-remove", 1),
    ([1, 1], [(None, 8), (12, None)], [1, 1], "add-remove", 4),
    ([1, -1], [(None, -1), (1, None)], [0.5, 1], "replace-one", 1),
    ([1, -1], [(None, -2), (0, 0), (3, None)], [1, 1], "replace-one", 1),
    ([1, 1], [(0, 2), (5, None)], [1, 0.5], "add-remove", 2),
    ([2, 2], [(None, 5), (9, None)], [1, 1], "add-remove", 1),
]


@pytest.mark.parametrize(("row", "intervals", "scales", "kind", "records"), CASES)
def test_half_planes_cost_their_worst_table(row, intervals, scales, kind, records):
    base = hf.laplace(hf.histogram(2), scale=scales, neighbours=hf.Neighbours(kind, records))
    statement = base.given(constraint_of(row, intervals)).guarantee
    worst, largest = enumerated(row, intervals, scales, kind, records)
    assert worst <= statement.epsilon + 1e-9
    assert statement.epsilon <= 1.5 * worst
    assert statement.epsilon < 2 * largest
    if len(set(scales)) == 1 and records == 1:
        assert statement.epsilon == pytest.approx(worst, abs=1e-6)


def test_a_side_that_no_record_leaves_is_named():
    near, far = (constraint_of([1, 1], [(None, 8), (end, None)]) for end in (9, 11))
    base = hf.laplace(hf.histogram(2), scale=1)
    assert base.given(hf.at_least([[1, 1]], [10]) | hf.at_least([[-1, -1]], [-8])).guarantee.unprotected
    assert not base.given(near).guarantee.unprotected
    assert base.given(far).guarantee.unprotected


def test_other_rows_keep_twice_epsilon():
    """Two outputs that are not weighed alike have no such law."""
    base = hf.laplace(hf.histogram(2), scale=1)
    assert base.given(constraint_of([1, 2], [(None, 8), (10, None)])).guarantee.epsilon == 2
