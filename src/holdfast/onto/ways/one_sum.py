"""The nearest values with one given sum, within bounds: by sorting.

Least squares raises all values by v·price, cut to their bounds, and the price at which the sum is right stands between
two of the sorted prices at which values are cut. In whole numbers each step costs more than the one before, so the
cheapest steps make the optimum; equally cheap ones go by the public hash. L1 takes the outputs with the least weight
first, and those of one weight share what is left evenly.
"""

from __future__ import annotations

import heapq
from typing import Any

import numpy as np
import numpy.typing as npt

from holdfast.arguments import LARGEST, Refused
from holdfast.arrays import Floats, Ints, compiled
from holdfast.noise import Independent
from holdfast.noise.spread import Spread
from holdfast.onto.grid.closing import UNSOLVED, answered, moved_rows, simulated
from holdfast.onto.grid.grid import FAR, Task, shape_of
from holdfast.onto.independent_shares import Answer
from holdfast.onto.problem import Problem, Ties
from holdfast.trees.shape.ties import tie_hash

#: Times that a price is corrected by what is counted to be missing.
MOST_CORRECTIONS = 20


def accepts(problem: Problem) -> bool:
    """Whether one equality with coefficients 1 holds all outputs, with bounds, and every output is measured."""
    system = problem.system
    if system.branches or system.inequalities.count or not np.isfinite(problem.spreads).all():
        return False
    rows = shape_of(problem).rows
    return rows.shape[0] == 1 and rows.nnz == problem.n and bool((rows.data == 1).all())


def image(problem: Problem, noisy: npt.NDArray[Any], right: npt.NDArray[Any], ties: Ties = None) -> npt.NDArray[Any]:
    return moved_rows(problem, noisy, right, ties, lambda task, coin: _moved(task, coin)[0])


def certified(problem: Problem, noisy: npt.NDArray[Any], right: npt.NDArray[Any], coin: int = 0) -> Answer:
    task = Task.of(problem, noisy, right).turned_by(coin)
    moves, price = _moved(task, coin)
    return answered(task, moves, (np.array([price]), np.zeros(0)))


def spread(problem: Problem, law: Independent) -> Spread | None:
    return simulated(problem, law, image)


def _moved(task: Task, coin: int) -> tuple[Ints, float]:
    """Whole moves within bounds that add up to the gap, and the price of one step."""
    weights, total = task.shape.weights, int(task.gap[0])
    least = sum(int(x) for x in task.low if x > -LARGEST) if (task.low > -LARGEST).all() else None
    most = sum(int(x) for x in task.high if x < LARGEST) if (task.high < LARGEST).all() else None
    if (least is not None and total < least) or (most is not None and total > most):
        raise Refused("the bounds do not leave room for the sum: widen them")
    if task.problem.norm == "l1":
        return _absolute(weights, task.low, task.high, total, coin)
    return shared_out(weights, task.low, task.high, total, coin)


def shared_out(weights: Floats, low: Ints, high: Ints, total: int, coin: int) -> tuple[Ints, float]:
    """Whole moves with the least Σ w x² that add up to `total`, and the price between what is taken and what is not."""
    price, rate = _price(weights, low, high, float(total))
    for _ in range(MOST_CORRECTIONS):  # sums in doubles are blurred: what is missing is counted in whole numbers
        moves = np.clip(np.rint(price / (2 * weights)), -FAR, FAR).astype(np.int64)
        moves = np.clip(moves, low, high)
        missing = total - sum(moves.tolist())
        if abs(missing) <= 4 * moves.size:
            return moves, float(_put_right(weights, low, high, moves, missing, np.uint64(coin >> 1)))
        price += missing / rate
    raise Refused(UNSOLVED)


def _price(weights: Floats, low: Ints, high: Ints, total: float) -> tuple[float, float]:
    """The price p with Σ cut(p/2w) = total, and how fast the sum rises there.

    The sum rises in straight pieces between the sorted prices at which an output meets a bound; the right piece is
    found by halving.
    """
    has_low, has_high = low > -LARGEST, high < LARGEST
    first = np.where(has_low, 2 * weights * low, -np.inf)
    last = np.where(has_high, 2 * weights * high, np.inf)
    ends = np.where(has_low, low, -np.inf), np.where(has_high, high, np.inf)
    places = np.sort(np.concatenate([first[has_low], last[has_high]]))

    def at(price: float) -> float:
        return float(np.clip(price / (2 * weights), *ends).sum())

    below, above = -1, places.size  # the sum is too small at `below` and not at `above`
    while above - below > 1:
        middle = (below + above) // 2
        if at(float(places[middle])) < total:
            below = middle
        else:
            above = middle
    anchor = float(places[below]) if below >= 0 else float(places[0]) if places.size else 0.0
    free = (first <= anchor) & (last > anchor) if below >= 0 else ~has_low
    if places.size == 0:
        free = np.ones(low.size, dtype=bool)
    rate = float((0.5 / weights[free]).sum())
    if rate == 0.0:
        return anchor, float((0.5 / weights).sum())
    return anchor + (total - at(anchor)) / rate, rate


@compiled(beyond=5_000)
def _put_right(weights, low, high, moves, missing, coin):  # type: ignore[no-untyped-def]
    """Add (or take off) the cheapest steps until nothing is missing, then exchange steps while that is cheaper.

    Return a price at which no step is worth more than it costs.
    """
    ups = [(0.0, np.uint64(0), np.int64(0))]
    downs = [(0.0, np.uint64(0), np.int64(0))]
    ups.pop()
    downs.pop()
    for k in range(moves.size):
        i = np.int64(k)
        if moves[i] < high[i]:
            ups.append((weights[i] * (2.0 * moves[i] + 1.0), tie_hash(np.uint64(i) ^ coin), np.int64(i)))
        if moves[i] > low[i]:
            downs.append((-weights[i] * (2.0 * moves[i] - 1.0), ~tie_hash(np.uint64(i) ^ coin), np.int64(i)))
    heapq.heapify(ups)
    heapq.heapify(downs)
    while True:
        while len(ups) > 0:  # entries of steps already taken are out of date
            cost, _, i = ups[0]
            now = weights[i] * (2.0 * moves[i] + 1.0)
            if moves[i] < high[i] and now == cost:
                break
            heapq.heappop(ups)
        while len(downs) > 0:
            cost, _, i = downs[0]
            now = -weights[i] * (2.0 * moves[i] - 1.0)
            if moves[i] > low[i] and now == cost:
                break
            heapq.heappop(downs)
        gain, first_up = (ups[0][0], ups[0][1]) if len(ups) > 0 else (np.inf, np.uint64(0))
        loss, first_down = (downs[0][0], downs[0][1]) if len(downs) > 0 else (np.inf, np.uint64(0))
        tied = gain + loss == 0.0 and first_up < ~first_down
        if missing == 0 and not (gain + loss < 0.0 or tied):
            if gain == np.inf:
                return -loss if loss < np.inf else 0.0
            return gain if loss == np.inf else 0.5 * (gain - loss)
        up = missing > 0 or (missing == 0 and len(ups) > 0)
        if up:
            i = ups[0][2]
            moves[i] += 1
            missing -= 1
        else:
            i = downs[0][2]
            moves[i] -= 1
            missing += 1
        if moves[i] < high[i]:
            heapq.heappush(ups, (weights[i] * (2.0 * moves[i] + 1.0), tie_hash(np.uint64(i) ^ coin), np.int64(i)))
        if moves[i] > low[i]:
            heapq.heappush(downs, (-weights[i] * (2.0 * moves[i] - 1.0), ~tie_hash(np.uint64(i) ^ coin), np.int64(i)))


def _absolute(weights: Floats, low: Ints, high: Ints, total: int, coin: int) -> tuple[Ints, float]:
    """Whole moves with the least Σ w|x|: what bounds force, then the cheapest outputs, those of one weight evenly."""
    moves = np.clip(np.zeros_like(low), low, high)
    missing = total - sum(moves.tolist())
    if missing == 0:
        return moves, 0.0
    up = missing > 0
    # Steps towards 0 pay back their weight: they come first, from the largest weight to the smallest.
    forced = moves < 0 if up else moves > 0
    back = np.where(forced, np.abs(moves), 0)
    end = high if up else low
    room = np.where(np.abs(end) >= LARGEST, LARGEST, np.abs(np.where(np.abs(end) >= LARGEST, 0, end) - moves))
    stages = [(-weights, np.minimum(back, room)), (weights, room - np.minimum(back, room))]
    for costs, rooms in stages:
        for cost in np.unique(costs[rooms > 0]):
            group = np.flatnonzero((costs == cost) & (rooms > 0))
            here = rooms[group]
            whole = LARGEST if (here >= LARGEST // 2).any() else sum(here.tolist())
            take = min(abs(missing), whole)
            if take == whole:
                given = here
            else:
                given = shared_out(np.ones(group.size), np.zeros_like(here), here, take, coin)[0]
            moves[group] += given if up else -given
            missing += -take if up else take
            if missing == 0:
                return moves, float(cost) if up else -float(cost)
    raise Refused(UNSOLVED)
