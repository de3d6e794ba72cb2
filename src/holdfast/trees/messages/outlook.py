"""Where each piece's total will probably lie: windows for the messages, guessed before they are made.

Going up, it is followed how totals answer to slopes (responses.py); going down, each piece's slope is read off its
parent's. From the slopes come windows that hold nearly all of the conditional law, also where it sits far in the tail
of the piece's own message (many empty leaves). An own weight has a kink at 0, and a guess through many kinks is biased
where bounds pull hard; then it is made again as messages become known, with their true means. All of this is a guess:
steps.py proves what the windows leave out, and wider ones are made where that is too much. No guess reaches the law of
a draw.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from holdfast.arguments import LARGEST
from holdfast.arrays import BORROWED, Floats, Ints, compiled
from holdfast.compiler import put
from holdfast.trees.messages.pieces import Pieces
from holdfast.trees.messages.responses import Laws, Leaves, at, leaf_responses, learned, slope_for, slopes, upward

#: What runs a task on slices of some items.
Over = Callable[[Callable[[Ints], Any], Ints], Any]

#: How far messages inside parcels, which have no tilt, may fall: e^−420 and its square root are far from no doubles.
MOST_DECAY = 420.0


class Outlook(NamedTuple):
    """Guesses for every kind of piece, and the responses of leaves."""

    low: Ints  # the window
    high: Ints
    tilt: Floats  # the slope from above at the place of the window
    below: Floats  # the same slope with that of the own weight, the least and the largest of all such pieces
    centre: Floats  # the mean of the total
    share: Floats  # how much of a move of the total the left part takes
    rest: Floats  # the variance with which what lies outside and the own weight let the total move
    hold: Floats  # how that bends, for moves up and down (see `_cost`)
    left_mean: Floats  # the mean of the left part
    grid: Floats
    unit: float
    leaf_mean: Floats
    leaf_variance: Floats
    leaf_steep: Floats


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
                for _ in range(24):
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
    """How totals of every kind of piece answer to slopes of a grid: before the own weight, and after it."""

    before_mean: Floats
    before_variance: Floats
    mean: Floats
    variance: Floats


#: What cannot bend at all.
RIGID = 1e9


@compiled(**BORROWED)
def _slopes_downward(pieces: Any, grid: Any, unit: Any, responses: Any, known: Any, followed: Any) -> None:
    """Slopes and means of the pieces of kinds higher than `known`, from the roots, whose slopes are given, down."""
    kind, left, right, root, height = pieces.kind, pieces.left, pieces.right, pieces.root, pieces.height
    before_mean, before_variance, mean, variance = responses
    slope, below, centre, spread, before, _ = followed
    for p in range(kind.size - 1, -1, -1):
        k = kind[p]
        if height[k] <= known:
            continue
        centre[p] = 0.0 if root[p] == 2 else at(mean[k], grid, slope[p], unit)
        spread[p] = max(at(variance[k], grid, slope[p], unit * unit), 1e-2)
        below[p] = slope_for(before_mean[k], grid, centre[p], unit)
        before[p] = max(at(before_variance[k], grid, below[p], unit * unit), 1e-2)
        for side in range(2):
            child = right[p] if side else left[p]
            if child < 0:
                continue
            slope[child] = below[p]
            if height[kind[child]] <= known:  # its windows stay, its mean is better known
                centre[child] = at(mean[kind[child]], grid, slope[child], unit)
                spread[child] = max(at(variance[kind[child]], grid, slope[child], unit * unit), 1e-2)


@compiled(inner=True, **BORROWED)
def _softened(own: Any, sign: Any, below: Any, slope: Any) -> Any:
    """The slope at which an own Laplace weight gives way."""
    return max(own + sign * (below - slope), 0.02 * own)


@compiled(**BORROWED)
def _bends_upward(pieces: Any, leaf_steep: Any, weight: Any, known: Any, followed: Any) -> None:
    """How the totals of pieces of kinds higher than `known` bend when they stray, from the leaves up."""
    rate, laplace, _ = weight
    slope, below, _, _, before, bends = followed
    left, right = pieces.left, pieces.right
    for p in range(pieces.kind.size):
        if pieces.height[pieces.kind[p]] <= known:
            continue
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
def _pass_down(p: Any, pieces: Any, own_rest: Any, own_hold: Any, held: Any, followed: Any, outlook: Any) -> None:
    """What holds the two parts of a piece from outside: each other, and what holds their total."""
    rest, hold = held
    a, b, k = pieces.left[p], pieces.right[p], pieces.kind[p]
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
    outlook.share[k] = spread[a] / (spread[a] + spread[b])
    outlook.left_mean[k] = followed.centre[a]


@compiled(**BORROWED)
def _windows_downward(
    pieces: Any, weight: Any, mean: Any, need: Any, known: Any, rough: Any, followed: Any, outlook: Any, held: Any
) -> None:
    """Windows and tilts of kinds higher than `known`; a kind's window holds those of all its pieces.

    What holds a total from outside goes down, in `held`: the variance with which it lets the total move, and how that
    bends; its last place is room for one piece more.
    """
    (_, laplace, hardest), own_hold = weight, held[1][-1]
    kind, root, lowest, highest = pieces.kind, pieces.root, pieces.lowest, pieces.highest
    slope, below, centre = followed.slope, followed.below, followed.centre
    low, high = outlook.low, outlook.high
    for k in range(pieces.law.size):
        if pieces.height[k] > known:
            low[k], high[k], outlook.rest[k] = LARGEST, -LARGEST, 0.0
            outlook.hold[k] = np.inf
            outlook.below[k, 0], outlook.below[k, 1] = np.inf, -np.inf
    for p in range(kind.size - 1, -1, -1):
        k = kind[p]
        if pieces.height[k] <= known:
            continue
        fixed = root[p] == 2
        if root[p] > 0:
            held[0][p] = 1e-9 if fixed else 1e18
            held[1][p] = RIGID if fixed else 1e-9
            held[1][p, :, 1] = 1e18
        if fixed:
            lo, hi = max(lowest[k], np.int64(-2)), min(highest[k], np.int64(2))
        else:
            down, up = _window(p, pieces, held, mean, outlook.grid, need, rough, followed)
            if laplace and pieces.left[p] < 0:
                up = min(up, max(MOST_DECAY / hardest - centre[p], 4.0))
                down = min(down, max(MOST_DECAY / hardest + centre[p], 4.0))
            lo = min(max(np.int64(np.floor(centre[p] - down)), lowest[k]), max(highest[k] - 3, lowest[k]))
            hi = max(min(np.int64(np.ceil(centre[p] + up)), highest[k]), min(lowest[k] + 3, highest[k]))
        low[k], high[k] = min(low[k], lo), max(high[k], hi)
        outlook.tilt[k], outlook.centre[k] = slope[p], centre[p]
        outlook.below[k, 0] = min(outlook.below[k, 0], below[p])
        outlook.below[k, 1] = max(outlook.below[k, 1], below[p])
        own_rest = _held_below(p, np.int64(-1) if fixed else pieces.law[k], weight, held, followed, own_hold)
        outlook.rest[k] = max(outlook.rest[k], own_rest)
        for side in range(2):
            if own_hold[side, 0] < outlook.hold[k, side, 0]:
                put(own_hold[side], outlook.hold[k, side])
        _pass_down(p, pieces, own_rest, own_hold, held, followed, outlook)


class Prospect:
    """Guesses of windows for all kinds of pieces, which can be made again as messages become known."""

    def __init__(
        self, pieces: Pieces, leaves: Leaves, laws: Laws, need: float, over: Over, more: Floats | None = None,
        pull: Floats | None = None,
    ) -> None:  # fmt: skip
        """Guess windows beyond which totals lie with a probability of about e^{−need}; `over` runs tasks on slices.

        `more` are slopes for the grid, `pull` is the slope from above at every piece that is a root (None: 0).
        """
        grid = slopes(laws, 8)
        if more is not None:
            grid = np.unique(np.concatenate([grid, more]))
        unit = float(1 / laws.slope.min())
        leaf_mean, leaf_variance = leaf_responses(leaves, laws, grid)
        measured = leaves.law >= 0
        if laws.laplace:
            steep = np.where(measured, laws.rate[np.maximum(leaves.law, 0)], laws.rate.min() / 50)
        else:
            steep = np.where(measured, 1e9, 1e-3 * laws.slope.min())
        self._pieces, self._laws, self._need, self._over = pieces, laws, need, over
        self._rough = more is not None
        self._leaf = (leaf_mean, leaf_variance, steep)
        self._grid = (grid, unit)
        kinds, size = pieces.kinds, pieces.size
        self._responses: Responses | None = Responses(*(np.empty((kinds, grid.size)) for _ in range(4)))
        five = [np.zeros(size) for _ in range(5)]
        five[0] += 0.0 if pull is None else pull
        self._followed: Followed | None = Followed._make([*five, np.empty((size, 2, 3))])
        whole = [np.zeros(kinds, dtype=np.int64) for _ in range(2)]
        real = [np.zeros(kinds) for _ in range(5)]
        self.outlook = Outlook(
            whole[0], whole[1], real[0], np.zeros((kinds, 2)), real[1], real[2], real[3], np.empty((kinds, 2, 3)),
            real[4], grid, unit, leaf_mean, leaf_variance, steep,
        )  # fmt: skip
        order = np.argsort(pieces.height, kind="stable")
        ends = np.searchsorted(pieces.height[order], np.arange(int(pieces.height.max(initial=0)) + 2))
        self.heights = [order[ends[h] : ends[h + 1]] for h in range(ends.size - 1)]
        self._guess(-1)

    @property
    def is_rough(self) -> bool:
        """Whether leaves are pulled so hard that guesses through own weights are biased."""
        return self._pieces.kinds > 0 and bool(np.median(np.abs(self.outlook.below)) > self._laws.slope.min())

    @property
    def usual_slopes(self) -> Floats:
        """The slopes that are met most at each height."""
        o, unit = self.outlook, self._laws.slope.min()
        found = np.array([np.median(of[kinds]) for of in (o.tilt, o.below) for kinds in self.heights])
        return np.unique(np.round(found / unit, 3)) * unit

    def answers(self, kind: int) -> tuple[Floats, Floats, Floats]:
        """How the total of a kind of pieces answers to slopes: their grid, means and variances."""
        assert self._responses is not None
        return self._grid[0], self._responses.mean[kind].copy(), self._responses.variance[kind].copy()

    def learn(self, height: int, shelf: Any) -> None:
        """Guess what is above a height again, now that all messages up to it are known."""
        o, (grid, _) = self.outlook, self._grid
        assert self._responses is not None
        mean, variance = self._responses.mean, self._responses.variance
        learned(
            self.heights[height], o.tilt, grid, mean, variance, shelf.values, shelf.offset, shelf.lo, shelf.hi,
            shelf.r_lo, shelf.r_hi,
        )  # fmt: skip
        self._guess(height)

    def forget(self) -> None:
        """Let go of what only learning needs."""
        self._responses, self._followed = None, None

    def _guess(self, known: int) -> None:
        pieces, laws, responses, followed = self._pieces, self._laws, self._responses, self._followed
        assert responses is not None
        assert followed is not None
        *leaf, steep = self._leaf
        weight = laws.rate, laws.laplace, float(laws.rate.max(initial=0.0))
        for kinds in self.heights[known + 1 :]:
            self._over(lambda some: upward(some, pieces, tuple(leaf), weight[:2], *self._grid, responses), kinds)
        _slopes_downward(pieces, *self._grid, responses, known, followed)
        _bends_upward(pieces, steep, weight, known, followed)
        held, rough = (np.empty(pieces.size), np.empty((pieces.size + 1, 2, 3))), self._rough
        _windows_downward(pieces, weight, responses.mean, self._need, known, rough, followed, self.outlook, held)
