"""Compiled passes over pieces that guess windows: slopes going down, bends going up, windows going down.

A pass goes over the pieces of one height at a time, in slices; nothing in it depends on the slices.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from holdfast.arguments import LARGEST
from holdfast.arrays import BORROWED, Array, Floats, Ints, compiled
from holdfast.compiler import put
from holdfast.trees.messages.responses import at, slope_for

#: How far messages inside parcels, which have no tilt, may fall: e^−420 and its square root are far from no doubles.
MOST_DECAY = 420.0


@compiled(inner=True, **BORROWED)
def _cost(d: Any, v: Any, bend: Any, pull: Any) -> Any:
    """Minus the log-probability of straying d from the mean, about, and its slope.

    Parabolic with variance v until the slope is bend[0]; from there the slope grows as with variance bend[1] up to
    bend[2]. `pull` is a slope that helps to stray.
    """
    first, last = bend[0] - pull, max(bend[2] - pull, 0.05 * bend[2])
    if first < 0.05 * bend[0]:
        first = last
    turn = v * first
    if d <= turn:
        return d * d / (2 * v), d / v
    cost = first * turn / 2
    x = d - turn
    straight = (last - first) * bend[1]
    if x <= straight:
        return cost + first * x + x * x / (2 * bend[1]), first + x / bend[1]
    cost += first * straight + straight * straight / (2 * bend[1]) if straight > 0 else 0.0
    return cost + last * (x - max(straight, 0.0)), last


@compiled(inner=True, **BORROWED)
def reach(v: Any, bend: Any, pull: Any, other_v: Any, other_bend: Any, other_pull: Any, need: Any) -> Any:
    """How far a total strays with log-probability −need, while another goes back as far."""
    d = np.sqrt(2 * need / (1 / v + 1 / other_v))
    for _ in range(12):
        cost, slope = _cost(d, v, bend, pull)
        other_cost, other_slope = _cost(d, other_v, other_bend, other_pull)
        cost += other_cost
        if cost >= need * (1 - 1e-2):
            break
        d += (need - cost) / (slope + other_slope)
    return d


@compiled(inner=True, **BORROWED)
def _along(means: Any, grid: Any, slope: Any, centre: Any, sign: Any, other_v: Any, other_bend: Any, need: Any) -> Any:
    """As `reach`, for a total that strays along its own responses: the cost is the slope that it takes, summed up."""
    d, cost, pull = 0.0, 0.0, 0.0
    g = np.searchsorted(grid, slope) if sign > 0 else np.searchsorted(grid, slope, "right") - 1
    while 0 <= g < grid.size:
        further, harder = sign * (means[g] - centre), sign * (grid[g] - slope)
        if further > d:
            length = further - d
            more = cost + length * (pull + harder) / 2
            held, _ = _cost(further, other_v, other_bend, 0.0)
            if more + held >= need:  # between the two, where the pull grows evenly
                low, high = 0.0, length
                for _ in range(12):
                    x = (low + high) / 2
                    held, _ = _cost(d + x, other_v, other_bend, 0.0)
                    if cost + x * (pull + x * (harder - pull) / (2 * length)) + held >= need:
                        high = x
                    else:
                        low = x
                return d + high
            d, cost = further, more
        pull = max(pull, harder)
        g += sign
    held, held_slope = _cost(d, other_v, other_bend, 0.0)
    return d + (need - cost - held) / (pull + held_slope)


@compiled(inner=True, **BORROWED)
def _in_series(bend: Any, other: Any) -> None:
    """The bend of a sum of two totals, in place of the first: the softer one gives way."""
    bend[0], bend[1], bend[2] = min(bend[0], other[0]), bend[1] + other[1], min(bend[2], other[2])


class Followed(NamedTuple):
    """What the guess keeps of every piece from one time that it is made to the next."""

    slope: Floats  # from above
    below: Floats  # with that of the own weight
    centre: Floats  # the mean of the total
    spread: Floats  # its variance
    before: Floats  # the same before the own weight
    bends: Floats  # how totals bend when they stray up [0] or down [1]


class Responses(NamedTuple):
    """How totals of every kind of piece answer to slopes of a grid: before the own weight, and after it.

    Single precision: they are guesses, and a nation has many.
    """

    before_mean: Array
    before_variance: Array
    mean: Array
    variance: Array

    @classmethod
    def empty(cls, shape: tuple[int, int]) -> Responses:
        """Room for so many kinds and slopes."""
        return cls(*(np.empty(shape, dtype=np.float32) for _ in range(4)))


#: What cannot bend at all, and a distance that no total strays.
RIGID, UNBENT = 1e9, 2.0**61


@compiled(**BORROWED)
def slopes_downward(some: Any, pieces: Any, grid: Any, responses: Any, known: Any, followed: Any) -> None:
    """Slopes and means of some pieces, higher than `known`; those of all above them are given."""
    kind, left, right, root, height = pieces.kind, pieces.left, pieces.right, pieces.root, pieces.height
    before_mean, before_variance, mean, variance = responses
    slope, below, centre, spread, before, _ = followed
    for i in range(some.size):
        p = some[i]
        k = kind[p]
        centre[p], v = at(mean[k], variance[k], grid, slope[p])
        if root[p] == 2:
            centre[p] = 0.0
        below[p] = slope_for(before_mean[k], before_variance[k], grid, centre[p])
        _, u = at(before_mean[k], before_variance[k], grid, below[p])
        spread[p], before[p] = max(v, 1e-2), max(u, 1e-2)
        for side in range(2):
            child = right[p] if side else left[p]
            if child < 0:
                continue
            slope[child] = below[p]
            if height[kind[child]] <= known:  # its windows stay, its mean is better known
                centre[child], v = at(mean[kind[child]], variance[kind[child]], grid, slope[child])
                spread[child] = max(v, 1e-2)


@compiled(inner=True, **BORROWED)
def _softened(own: Any, sign: Any, below: Any, slope: Any) -> Any:
    """The slope at which an own Laplace weight gives way."""
    return max(own + sign * (below - slope), 0.02 * own)


@compiled(**BORROWED)
def bends_upward(some: Any, pieces: Any, leaf_steep: Any, weight: Any, followed: Any) -> None:
    """How totals of some pieces bend when they stray; for those below it is known."""
    rate, laplace, _ = weight
    slope, below, _, _, before, bends = followed
    left, right = pieces.left, pieces.right
    for i in range(some.size):
        p = some[i]
        own_law = pieces.law[pieces.kind[p]]
        for side in range(2):
            sign = 1.0 if side == 0 else -1.0
            bend = bends[p, side]
            if left[p] < 0:
                steep = np.inf
                for j in range(pieces.first[p], pieces.first[p] + pieces.members[p]):
                    steep = min(steep, leaf_steep[pieces.leaf_kind[j]])
                bend[0] = max(steep - sign * below[p], 0.02 * steep)
                bend[1] = 1.0
                bend[2] = bend[0]
            else:
                put(bends[left[p], side], bend)
                if right[p] >= 0:
                    _in_series(bend, bends[right[p], side])
            if own_law < 0:
                continue
            if laplace:
                soft = _softened(rate[own_law], sign, below[p], slope[p])
                bend[0], bend[1], bend[2] = soft, before[p], soft + bend[0]
            else:
                bend[:] = RIGID


@compiled(inner=True, **BORROWED)
def _window(p: Any, pieces: Any, held: Any, mean: Any, grid: Any, need: Any, rough: Any, followed: Any) -> Any:
    """Where the total of a piece lies, as its own responses and what holds it from outside let it stray."""
    k = pieces.kind[p]
    rest, hold = held
    if rough:
        up = _along(mean[k], grid, followed.slope[p], followed.centre[p], 1, rest[p], hold[p, 0], need) + 3
        down = _along(mean[k], grid, followed.slope[p], followed.centre[p], -1, rest[p], hold[p, 1], need) + 3
    else:
        up = reach(followed.spread[p], followed.bends[p, 0], 0.0, rest[p], hold[p, 0], 0.0, need) + 3
        down = reach(followed.spread[p], followed.bends[p, 1], 0.0, rest[p], hold[p, 1], 0.0, need) + 3
    return down, up


@compiled(inner=True, **BORROWED)
def _held_below(p: Any, law: Any, weight: Any, held: Any, followed: Any, own_hold: Any) -> Any:
    """What holds a piece's total below its own weight: that weight and everything outside; `own_hold` is filled."""
    rate, laplace, _ = weight
    hold, own_rest = held[1], held[0][p]
    for side in range(2):
        put(hold[p, side], own_hold[side])
    if law < 0:
        return own_rest
    own = rate[law]
    if laplace:
        width2 = 1 / (1 / followed.before[p] + own * own / 2)
        far2 = followed.centre[p] * followed.centre[p] + width2
        bend_by = own * width2 / (far2 * np.sqrt(far2))
        for side in range(2):
            soft = _softened(own, 1.0 if side == 0 else -1.0, followed.below[p], followed.slope[p])
            own_hold[side, 2] = soft + own_hold[side, 0]
            own_hold[side, 0], own_hold[side, 1] = soft, own_rest
    else:
        bend_by = 2 * own
        own_hold[:] = RIGID
    return 1 / (1 / own_rest + bend_by)


@compiled(inner=True, **BORROWED)
def _pass_down(p: Any, pieces: Any, own_rest: Any, own_hold: Any, held: Any, followed: Any) -> None:
    """What holds the two parts of a piece from outside: each other, and what holds their total."""
    rest, hold = held
    a, b = pieces.left[p], pieces.right[p]
    if a < 0:
        return
    if b < 0:
        rest[a] = own_rest
        for side in range(2):
            put(own_hold[side], hold[a, side])
        return
    spread, bends = followed.spread, followed.bends
    rest[a], rest[b] = spread[b] + own_rest, spread[a] + own_rest
    for side in range(2):  # one goes up when the other goes down, or when the total goes up
        put(bends[b, 1 - side], hold[a, side])
        put(bends[a, 1 - side], hold[b, side])
        _in_series(hold[a, side], own_hold[side])
        _in_series(hold[b, side], own_hold[side])


@compiled(inline="always")
def within(low: Any, high: Any, lowest: Any, highest: Any) -> Any:
    """A window within the possible totals, four places wide where there are as many; as far as these where it is none.

    Windows have no end where nothing bends a total: whole numbers do not hold that.
    """
    least = np.int64(np.floor(low)) if low > -UNBENT else -LARGEST
    most = np.int64(np.ceil(high)) if high < UNBENT else LARGEST
    lo = min(max(least, lowest), max(highest - 3, lowest))
    hi = max(min(most, highest), min(lowest + 3, highest))
    return lo, hi


class Windows(NamedTuple):
    """Windows of all pieces, and what holds their totals below their own weights."""

    low: Ints
    high: Ints
    rest: Floats
    hold: Floats

    @classmethod
    def empty(cls, size: int) -> Windows:
        """Room for so many pieces."""
        return cls(np.empty(size, np.int64), np.empty(size, np.int64), np.empty(size), np.empty((size, 2, 3)))


@compiled(**BORROWED)
def windows_downward(
    some: Any, pieces: Any, weight: Any, mean: Any, grid: Any, need: Any, rough: Any, followed: Any, held: Any,
    found: Any,
) -> None:  # fmt: skip
    """Windows of some pieces; those of all above them are found.

    What holds a total from outside goes down, in `held`: the variance with which it lets the total move, and how that
    bends.
    """
    _, laplace, hardest = weight
    kind, root, lowest, highest = pieces.kind, pieces.root, pieces.lowest, pieces.highest
    centre, low, high = followed.centre, found.low, found.high
    for i in range(some.size):
        p = some[i]
        k = kind[p]
        fixed = root[p] == 2
        if root[p] > 0:
            held[0][p] = 1e-9 if fixed else 1e18
            held[1][p] = RIGID if fixed else 1e-9
            held[1][p, :, 1] = 1e18
        if fixed:
            low[p], high[p] = max(lowest[k], np.int64(-2)), min(highest[k], np.int64(2))
        else:
            down, up = _window(p, pieces, held, mean, grid, need, rough, followed)
            if laplace and pieces.left[p] < 0:
                up = min(up, max(MOST_DECAY / hardest - centre[p], 4.0))
                down = min(down, max(MOST_DECAY / hardest + centre[p], 4.0))
            low[p], high[p] = within(centre[p] - down, centre[p] + up, lowest[k], highest[k])
        law = np.int64(-1) if fixed else pieces.law[k]
        found.rest[p] = _held_below(p, law, weight, held, followed, found.hold[p])
        _pass_down(p, pieces, found.rest[p], found.hold[p], held, followed)


@compiled(**BORROWED)
def slopes_together(pieces: Any, known: Any, followed: Any, outlook: Any) -> None:
    """Slopes and means of kinds higher than `known`: the least and the largest slope below of all its pieces."""
    centre, spread, below = followed.centre, followed.spread, outlook.below
    for k in range(pieces.law.size):
        if pieces.height[k] > known:
            below[k, 0], below[k, 1] = np.inf, -np.inf
    for p in range(pieces.kind.size - 1, -1, -1):
        k = pieces.kind[p]
        if pieces.height[k] <= known:
            continue
        outlook.tilt[k], outlook.centre[k] = followed.slope[p], centre[p]
        below[k, 0], below[k, 1] = min(below[k, 0], followed.below[p]), max(below[k, 1], followed.below[p])
        a, b = pieces.left[p], pieces.right[p]
        if b >= 0:
            outlook.share[k] = spread[a] / (spread[a] + spread[b])
            outlook.left_mean[k] = centre[a]


@compiled(**BORROWED)
def windows_together(pieces: Any, known: Any, found: Any, outlook: Any) -> None:
    """Windows of kinds higher than `known`: a kind's window holds those of all its pieces."""
    low, high, rest, hold = outlook.low, outlook.high, outlook.rest, outlook.hold
    for k in range(pieces.law.size):
        if pieces.height[k] > known:
            low[k], high[k], rest[k] = LARGEST, -LARGEST, 0.0
            hold[k] = np.inf
    for p in range(pieces.kind.size - 1, -1, -1):
        k = pieces.kind[p]
        if pieces.height[k] <= known:
            continue
        low[k], high[k] = min(low[k], found.low[p]), max(high[k], found.high[p])
        rest[k] = max(rest[k], found.rest[p])
        for side in range(2):
            if found.hold[p, side, 0] < hold[k, side, 0]:
                put(found.hold[p, side], hold[k, side])
