"""Choosing a whole number with weights that messages enclose, exactly.

The numbers are ordered mode, mode+1, mode−1, mode+2, … within their support, so that likely ones come first. The
comparison of random bits with enclosed cumulative weights is `noise.comparison`; when it is undecided it asks for the
weights again at a higher precision, and the messages are then made anew with wider windows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
from flint import arb, ctx

from holdfast.trees.message import up_to


@dataclass(frozen=True)
class Support:
    """The whole numbers from low to high; None on a side without end."""

    low: int | None
    high: int | None

    def __add__(self, other: Support) -> Support:
        return Support(_plus(self.low, other.low), _plus(self.high, other.high))

    def times(self, count: int) -> Support:
        """The support of a sum of so many numbers."""
        low = None if self.low is None else count * self.low
        return Support(low, None if self.high is None else count * self.high)

    def within(self, low: int | None, high: int | None) -> Support:
        """Intersect with bounds."""
        lows = [end for end in (self.low, low) if end is not None]
        highs = [end for end in (self.high, high) if end is not None]
        return Support(max(lows, default=None), min(highs, default=None))

    def reflected(self, total: int) -> Support:
        """The numbers total − s for s in the support."""
        low = None if self.high is None else total - self.high
        return Support(low, None if self.low is None else total - self.low)

    @property
    def empty(self) -> bool:
        """Whether there is no number at all."""
        return self.low is not None and self.high is not None and self.low > self.high


def _plus(a: int | None, b: int | None) -> int | None:
    return None if a is None or b is None else a + b


#: Weights on a window: its first place, enclosures, and a bound on the sum of all weights beyond it.
Window = tuple[int, list[arb], arb]


@dataclass(frozen=True, eq=False)
class Choice:
    """Cumulative probabilities of the choice (see `noise.comparison.Cumulative`)."""

    window: Callable[[], Window]
    mode: int
    support: Support
    _made: dict[int, tuple[list[arb], list[bool], arb]] = field(default_factory=dict, repr=False)

    @property
    def size(self) -> int | None:
        """How many numbers there are to choose from."""
        low, high = self.support.low, self.support.high
        return None if low is None or high is None else high - low + 1

    def _turn(self) -> tuple[int, int]:
        """How far the zigzag goes to both sides, and the side (+1 or −1) on which it then goes on."""
        down = None if self.support.low is None else self.mode - self.support.low
        up = None if self.support.high is None else self.support.high - self.mode
        if down is None and up is None:
            return 1 << 62, 1
        if up is None or (down is not None and down <= up):
            return int(down if down is not None else 0), 1
        return int(up), -1

    def numbers(self, symbols: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Turn places in the order into the numbers themselves."""
        turn, side = self._turn()
        zigzag = np.where(symbols % 2 == 1, self.mode + (symbols + 1) // 2, self.mode - symbols // 2)
        return np.where(symbols > 2 * turn, self.mode + side * (symbols - turn), zigzag)

    def at(self, k: int) -> arb:
        """Enclose the probability of the first k numbers."""
        if k == 0:
            return arb(0)
        if self.size is not None and k >= self.size:
            return arb(1)
        sums, complete, missing = self._table()
        place = min(k, len(sums)) - 1
        numerator = sums[place] if k <= len(sums) and complete[place] else sums[place] + up_to(missing)
        return numerator / (sums[-1] + up_to(missing))

    def run(self) -> Iterator[arb]:
        """Enclose the cumulative probabilities in turn."""
        k = 1
        while self.size is None or k < self.size:
            yield self.at(k)
            k += 1

    def _table(self) -> tuple[list[arb], list[bool], arb]:
        """Sums of enclosed weights over the first numbers, whether none of them is beyond the window, and the rest."""
        bits = int(ctx.prec)
        if bits not in self._made:
            low, weights, missing = self.window()
            reach = max(abs(self.mode - low), abs(low + len(weights) - 1 - self.mode)) + 1
            count = 2 * reach + 1 if self.size is None else min(2 * reach + 1, self.size)
            sums, complete, running, whole = [], [], arb(0), True
            for number in self.numbers(np.arange(count, dtype=np.int64)).tolist():
                if low <= number < low + len(weights):
                    running = running + weights[number - low]
                else:
                    whole = whole and missing == 0
                sums.append(running)
                complete.append(whole)
            self._made[bits] = (sums, complete, missing)
        return self._made[bits]
