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

from holdfast.arrays import BORROWED, Floats, Ints, compiled
from holdfast.trees.messages.pieces import Pieces
from holdfast.trees.messages.responses import Laws, Leaves, leaf_responses, slopes, upward
from holdfast.trees.messages.windows import (
    Followed,
    Responses,
    Windows,
    bends_upward,
    slopes_downward,
    together,
    windows_downward,
)

#: What runs a task on slices of some items.
Over = Callable[[Callable[[Ints], Any], Ints], Any]

#: Slopes at a time, and rows of so many numbers that `_moments` fills: a step, its powers, and sums.
_WIDE = 64
_STEP, _POWER, _MASS, _FIRST, _SECOND, _LAST, _BEYOND, _ROWS = (np.uint64(i * _WIDE) for i in range(8))


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


class Prospect:
    """Guesses of windows for all kinds of pieces, which can be made again as messages become known."""

    def __init__(
        self, pieces: Pieces, levels: list[Ints], leaves: Leaves, laws: Laws, need: float, over: Over,
        more: Floats | None = None, pull: Floats | None = None,
    ) -> None:  # fmt: skip
        """Guess windows beyond which totals lie with a probability of about e^{−need}; `over` runs tasks on slices.

        `levels` are the pieces by height, `more` are slopes for the grid, `pull` is the slope from above at every piece
        that is a root (None: 0).
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
        self._pieces, self._levels, self._laws, self._need, self._over = pieces, levels, laws, need, over
        self._rough = more is not None
        self._leaf = (leaf_mean, leaf_variance, steep)
        self._grid = (grid, unit)
        kinds, size = pieces.kinds, pieces.size
        self._responses: Responses | None = Responses.empty((kinds, grid.size))
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
        found = self._responses
        return self._grid[0], found.mean[kind].astype(np.float64), found.variance[kind].astype(np.float64)

    def learn(self, height: int, shelf: Any) -> None:
        """Guess what is above a height again, now that all messages up to it are known."""
        o, (grid, _) = self.outlook, self._grid
        assert self._responses is not None
        mean, variance = self._responses.mean, self._responses.variance
        kinds = self.heights[height]
        weighed = kinds[self._pieces.law[kinds] >= 0]  # others answer as the sums of what they are made of
        self._over(lambda some: learned(some, o.tilt, grid, mean, variance, shelf), weighed)
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
        upwards = self._levels[known + 1 :]
        for level in reversed(upwards):
            self._over(lambda some: slopes_downward(some, pieces, *self._grid, responses, known, followed), level)
        for level in upwards:
            self._over(lambda some: bends_upward(some, pieces, steep, weight, followed), level)
        held, found = (np.empty(pieces.size), np.empty((pieces.size, 2, 3))), Windows.empty(pieces.size)
        asked = weight, responses.mean, self._grid[0], self._need, self._rough, followed
        for level in reversed(upwards):
            self._over(lambda some: windows_downward(some, pieces, *asked, held, found), level)
        together(pieces, known, followed, found, self.outlook)


@compiled
def learned(some: Any, tilt: Any, grid: Any, mean: Any, variance: Any, shelf: Any) -> None:
    """Put what the messages of some kinds say into their responses, at slopes at which their windows hold it all."""
    room = np.empty(_ROWS)
    for k in some:
        size = shelf.hi[k] - shelf.lo[k] + 1
        values = shelf.values[shelf.offset[k] : shelf.offset[k] + size]
        first_known, last_known = grid.size, -1
        for start in range(0, grid.size, _WIDE):
            count = min(_WIDE, grid.size - start)
            _moments(values, grid[start : start + count], tilt[k], shelf.r_lo[k], shelf.r_hi[k], room)
            for g in range(count):
                mass = room[_MASS + np.uint64(g)]
                too_steep = abs(grid[start + g] - tilt[k]) * size > 600.0
                if too_steep or room[_BEYOND + np.uint64(g)] > 1e-4 * mass:
                    continue
                first = room[_FIRST + np.uint64(g)] / mass
                mean[k, start + g] = shelf.lo[k] + size // 2 + first
                variance[k, start + g] = max(room[_SECOND + np.uint64(g)] / mass - first * first, 1e-2)
                first_known, last_known = min(first_known, start + g), start + g
        least, most = np.inf, -np.inf
        for g in range(first_known, last_known + 1):
            least, most = min(least, mean[k, g]), max(most, mean[k, g])
        for g in range(first_known):
            mean[k, g] = min(mean[k, g], least)
        for g in range(last_known + 1, grid.size):
            mean[k, g] = max(mean[k, g], most)


@compiled(inner=True, **BORROWED)
def _moments(values: Any, slopes: Any, tilt: Any, r_lo: Any, r_hi: Any, room: Any) -> None:
    """Σ v·e^{s·i} for slopes s (less the tilt), the same times i and i², from the middle, and the next ones beyond.

    All slopes at each place: they do not wait for one another.
    """
    middle, n = values.size // 2, np.uint64(slopes.size)
    for g in range(n):
        room[_MASS + g], room[_FIRST + g], room[_SECOND + g], room[_BEYOND + g] = 0.0, 0.0, 0.0, 0.0
    for side in range(2):
        sign, begin, count, r = (-1, middle - 1, middle, r_lo) if side else (1, middle, values.size - middle, r_hi)
        for g in range(n):
            room[_STEP + g] = np.exp(sign * (slopes[g] - tilt))
            room[_POWER + g], room[_LAST + g] = room[_STEP + g] if side else 1.0, 0.0
        for i in range(count):
            away = np.float64(begin + sign * i - middle)
            _add_place(values[begin + sign * i], away, away * away, n, room)
        for g in range(n):
            room[_BEYOND + g] += room[_LAST + g] * r


@compiled(inner=True, **BORROWED)
def _add_place(value: Any, away: Any, square: Any, n: Any, room: Any) -> None:
    """One place of `_moments`."""
    for g in range(n):
        term = value * room[_POWER + g]
        room[_POWER + g] *= room[_STEP + g]
        room[_LAST + g] = term
        room[_MASS + g] += term
        room[_FIRST + g] += term * away
        room[_SECOND + g] += term * square
