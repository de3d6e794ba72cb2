"""Where each piece's total will probably lie: windows for the messages, guessed before they are made.

Going up, it is followed how totals answer to slopes (responses.py); going down, each piece's slope is read off its
parent's. From the slopes come windows that hold nearly all of the conditional law, also where it sits far in the tail
of the piece's own message (many empty leaves). An own weight has a kink at 0, and a guess through many kinks is biased
where bounds pull hard; then it is made again as messages become known, with their true means. All of this is a guess:
every step proves what the windows leave out, and wider ones are made where that is too much. No guess reaches the law
of a draw.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from holdfast.arrays import BORROWED, Floats, Ints, compiled
from holdfast.trees.messages.pieces import Pieces
from holdfast.trees.messages.responses import Laws, Leaves, at, leaf_responses, slopes, upward
from holdfast.trees.messages.windows import (
    Followed,
    Responses,
    Windows,
    bends_upward,
    slopes_downward,
    slopes_together,
    windows_downward,
    windows_together,
)

#: What runs a task on slices of some items.
Over = Callable[[Callable[[Ints], Any], Ints], Any]

#: A guess is made again where at least one in so many pieces above what is known has learned something.
WORTH = 16


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
        pull: Floats | None, learn: bool | None,
    ) -> None:  # fmt: skip
        """Guess slopes; `place` guesses windows beyond which totals lie with a probability of about e^{−need}.

        `over` runs tasks on slices, `levels` are the pieces by height, `pull` is the slope from above at every piece
        that is a root (None: 0), `learn` says whether it learns (None: where that helps).
        """
        grid = slopes(laws, 8)
        unit = float(1 / laws.slope.min())
        leaf_mean, leaf_variance = leaf_responses(leaves, laws, grid)
        measured = leaves.law >= 0
        if laws.laplace:
            steep = np.where(measured, laws.rate[np.maximum(leaves.law, 0)], laws.rate.min() / 50)
        else:
            steep = np.where(measured, 1e9, 1e-3 * laws.slope.min())
        self._pieces, self._levels, self._laws, self._need, self._over = pieces, levels, laws, need, over
        self._leaf = (leaf_mean, leaf_variance, steep)
        self._grid = grid
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
        self._new = 0  # kinds that were learned since the last guess
        self._guess(-1)
        self.learns = self.is_rough if learn is None else learn  # then windows follow responses, which become known

    @property
    def is_rough(self) -> bool:
        """Whether leaves are pulled so hard that guesses through own weights are biased."""
        return self._pieces.kinds > 0 and bool(np.median(np.abs(self.outlook.below)) > self._laws.slope.min())

    def answers(self, kind: int) -> tuple[Floats, Floats, Floats]:
        """How the total of a kind of pieces answers to slopes: their grid, means and variances."""
        assert self._responses is not None
        found = self._responses
        return self._grid, found.mean[kind].astype(np.float64), found.variance[kind].astype(np.float64)

    def learn(self, height: int, shelf: Any) -> None:
        """Guess what is above a height again, now that all messages up to it are known."""
        o, grid = self.outlook, self._grid
        assert self._responses is not None
        mean, variance = self._responses.mean, self._responses.variance
        kinds = self.heights[height]
        is_weighed = self._pieces.law[kinds] >= 0
        weighed = kinds[is_weighed]
        self._over(self._answer, kinds[~is_weighed])  # as the sums of what they are made of
        self._over(lambda some: learned(some, o.tilt, grid, mean, variance, shelf), weighed)
        self._new += weighed.size
        if WORTH * self._new >= sum(above.size for above in self.heights[height + 1 :]):
            self._guess(height)
            self.place(height)
            self._new = 0

    def forget(self) -> None:
        """Let go of what only learning needs."""
        self._responses, self._followed = None, None

    def _guess(self, known: int) -> None:
        """Guess slopes, from which it is seen whether windows guessed from them will do."""
        pieces, responses, followed = self._pieces, self._responses, self._followed
        assert followed is not None
        for kinds in self.heights[known + 1 :]:
            self._over(self._answer, kinds)
        for level in reversed(self._levels[known + 1 :]):
            self._over(lambda some: slopes_downward(some, pieces, self._grid, responses, known, followed), level)
        slopes_together(pieces, known, followed, self.outlook)

    def _answer(self, some: Ints) -> None:
        """Find how some kinds answer to slopes; for what they are made of it is known."""
        leaf_mean, leaf_variance, _ = self._leaf
        weight = self._laws.rate, self._laws.laplace
        upward(some, self._pieces, (leaf_mean, leaf_variance), weight, self._grid, self._responses)

    def place(self, known: int = -1) -> None:
        """Guess windows from the slopes."""
        pieces, laws, responses, followed = self._pieces, self._laws, self._responses, self._followed
        assert responses is not None
        assert followed is not None
        weight, steep = (laws.rate, laws.laplace, float(laws.rate.max(initial=0.0))), self._leaf[2]
        upwards = self._levels[known + 1 :]
        for level in upwards:
            self._over(lambda some: bends_upward(some, pieces, steep, weight, followed), level)
        held, found = (np.empty(pieces.size), np.empty((pieces.size, 2, 3))), Windows.empty(pieces.size)
        asked = weight, responses.mean, self._grid, self._need, self.learns, followed
        for level in reversed(upwards):
            self._over(lambda some: windows_downward(some, pieces, *asked, held, found), level)
        windows_together(pieces, known, found, self.outlook)


@compiled(**BORROWED)
def learned(some: Any, tilt: Any, grid: Any, mean: Any, variance: Any, shelf: Any) -> None:
    """Move and stretch the responses of some kinds to what their messages say at the slope that they are made for."""
    for k in some:
        size, r_lo, r_hi = shelf.hi[k] - shelf.lo[k] + 1, shelf.r_lo[k], shelf.r_hi[k]
        values = shelf.values[shelf.offset[k] : shelf.offset[k] + size]
        mass, first, second = 0.0, 0.0, 0.0
        for i in range(size):
            v, place = values[i], np.float64(i)
            mass, first, second = mass + v, first + v * place, second + v * place * place
        if not max(r_lo, r_hi) < 1.0 or values[0] * r_lo / (1 - r_lo) + values[-1] * r_hi / (1 - r_hi) > 1e-4 * mass:
            continue  # the window does not hold it all
        centre = first / mass
        old, spread = at(mean[k], variance[k], grid, tilt[k])
        stretch = min(max((second / mass - centre * centre) / spread, 0.1), 10.0)
        for g in range(grid.size):
            mean[k, g] = shelf.lo[k] + centre + stretch * (mean[k, g] - old)
            variance[k, g] *= stretch
