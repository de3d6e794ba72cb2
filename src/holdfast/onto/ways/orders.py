"""The nearest ordered values: pool adjacent violators, in one pass.

One chain z₀ ≤ z₁ ≤ … with bounds on any value. Least squares pools neighbours that are out of order into blocks at
their weighted mean, cut to the bounds they share; the best whole numbers are the real ones, rounded to nearest. L1
keeps the slopes of the cost so far in a heap and takes weighted medians, which are data or bounds and hence whole where
these are (docs/theory/update-in-general.md). Halves go up, and of several medians
one end is taken; the other way round if the coin is odd.
"""

from __future__ import annotations

import heapq
from typing import Any

import numpy as np
import numpy.typing as npt

from holdfast.arguments import LARGEST, Refused
from holdfast.arrays import Ints, compiled, kept
from holdfast.noise import Independent
from holdfast.noise.spread import Spread
from holdfast.onto.problem import Problem, Ties

#: Whole numbers are pooled as doubles: they must stay below this size.
MOST = 2.0**52


def accepts(problem: Problem) -> bool:
    """Whether the inequalities are one chain, with bounds and fixed values, and every output is measured."""
    return bool(np.isfinite(problem.spreads).all()) and _chain(problem) is not None


def image(problem: Problem, noisy: npt.NDArray[Any], right: npt.NDArray[Any], ties: Ties = None) -> npt.NDArray[Any]:
    order = _chain(problem)
    assert order is not None
    low, high = problem.bounds(right)
    low, high = low[order].astype(np.float64), high[order].astype(np.float64)
    low, high = np.where(low <= -LARGEST, -np.inf, low), np.where(high >= LARGEST, np.inf, high)
    # What lies before a value bounds it from below, what lies behind it from above.
    low, high = np.maximum.accumulate(low), np.minimum.accumulate(high[::-1])[::-1]
    if (low > high).any():
        raise Refused("bounds along an ordering cross: no values between them are ordered; widen the bounds")
    weights = 1 / problem.spreads[order]
    weights = weights / weights.max()
    values = noisy[:, order].astype(np.float64)
    if np.abs(values).max(initial=0.0) > MOST:
        raise Refused("noisy values of 2**52 or more in size cannot be ordered in doubles: choose a larger unit")
    find = _medians if problem.norm == "l1" else _means
    moved = np.empty_like(values)
    costs = np.sqrt(weights) if problem.norm == "l1" else weights
    mirrored = np.zeros(len(values), dtype=bool) if ties is None or not problem.integer else ties % 2 == 1
    for k in range(len(values)):
        if mirrored[k]:  # all signs turned, from the last value to the first
            find(-values[k, ::-1], costs[::-1].copy(), -high[::-1], -low[::-1], moved[k])
            moved[k] = moved[k, ::-1].copy()
        else:
            find(values[k], costs, low, high, moved[k])
    result = np.empty(noisy.shape, dtype=np.int64 if problem.integer else np.float64)
    result[:, order] = np.floor(moved + 0.5) if problem.integer else moved
    result[mirrored] *= -1
    return result


def spread(problem: Problem, law: Independent) -> Spread | None:
    del problem, law
    return None


@kept
def _chain(problem: Problem) -> Ints | None:
    """The outputs in their order, if the rows say z[i₀] ≤ z[i₁] ≤ … for all of them and nothing else."""
    system, n = problem.system, problem.n
    rows = system.inequalities
    if system.branches or n < 2 or rows.count < n - 1:
        return None
    if np.diff(problem.space.rows.indptr).max(initial=0) > 1 or (rows.sizes != 2).any() or (rows.b != 0).any():
        return None
    pairs, columns = rows.A.data.reshape(-1, 2), rows.A.indices.reshape(-1, 2)
    if (pairs.sum(axis=1) != 0).any():
        return None
    places = np.arange(rows.count)
    before, after = columns[places, pairs.argmin(axis=1)], columns[places, pairs.argmax(axis=1)]
    steps = np.unique(np.column_stack([before, after]), axis=0)
    if len(steps) != n - 1:
        return None
    following = np.full(n, -1, dtype=np.int64)
    following[steps[:, 0]] = steps[:, 1]
    first = np.setdiff1d(np.arange(n), steps[:, 1])
    if first.size != 1 or np.unique(steps[:, 0]).size != n - 1:
        return None
    return np.asarray(_followed(following, first[0]))


@compiled(beyond=5_000)
def _followed(following, first):  # type: ignore[no-untyped-def]
    order = np.empty(following.size, np.int64)
    place = first
    for k in range(order.size):
        order[k] = place
        place = following[place]
    return order


@compiled(beyond=5_000)
def _means(values, weights, low, high, result):  # type: ignore[no-untyped-def]
    """Least squares: blocks at their weighted mean, cut to [low of the last, high of the first]."""
    n = values.size
    total, weight, level = np.empty(n), np.empty(n), np.empty(n)
    start = np.empty(n + 1, np.int64)
    blocks = 0
    for i in range(n):
        start[blocks], total[blocks], weight[blocks] = i, weights[i] * values[i], weights[i]
        level[blocks] = min(max(values[i], low[i]), high[i])
        blocks += 1
        while blocks > 1 and level[blocks - 2] >= level[blocks - 1]:
            blocks -= 1
            total[blocks - 1] += total[blocks]
            weight[blocks - 1] += weight[blocks]
            level[blocks - 1] = min(max(total[blocks - 1] / weight[blocks - 1], low[i]), high[start[blocks - 1]])
    start[blocks] = n
    for k in range(blocks):
        result[start[k] : start[k + 1]] = level[k]


@compiled(beyond=5_000)
def _medians(values, weights, low, high, result):  # type: ignore[no-untyped-def]
    """L1: the slopes of the least cost so far as a function of the last value, kept as weighted points in a heap.

    One more value adds its points; then the weight by which the cost would rise is taken off the largest points. The
    largest point left is the best last value; going back, each value is the smaller of its own best and the next one.
    Points never run out: far to the left the cost falls.
    """
    n = values.size
    wall = 2.0 * weights.sum() + 1.0  # a slope that no sum of weights outweighs: a bound
    points = [(0.0, 0.0)]
    points.pop()
    for i in range(n):
        rising = -weights[i] if values[i] > high[i] else weights[i]
        if low[i] <= values[i] <= high[i]:
            heapq.heappush(points, (-values[i], 2.0 * weights[i]))
        if low[i] > -np.inf:
            heapq.heappush(points, (-low[i], 4.0 * wall))
        if high[i] < np.inf:
            heapq.heappush(points, (-high[i], wall))
            rising += wall
        while rising > 0.0:
            place, change = heapq.heappop(points)
            if change > rising:
                heapq.heappush(points, (place, change - rising))
                rising = 0.0
            else:
                rising -= change
        result[i] = -points[0][0]
    for i in range(n - 2, -1, -1):
        result[i] = min(result[i], result[i + 1])
