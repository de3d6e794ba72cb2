"""Sums of two, four or eight leaves of one kind: messages of their own, shared by all nodes that have such leaves.

Below a node with many leaves a block of leaves that are alike takes what the others leave of the total, since it is
wider than one leaf, and is divided in halves afterwards. Its message is a convolution of positive doubles, so it is
good to some units in the last place wherever totals lie, under any tilt (docs/theory/circles.md, section 4).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from flint import arb

from holdfast.arguments import LARGEST
from holdfast.arrays import Array, Floats, Ints
from holdfast.trees.circles.exact import Leaf, Part, Row
from holdfast.trees.circles.tables import Table
from holdfast.trees.circles.tilts import mean_of
from holdfast.trees.circles.weights import GaussianWeight, LaplaceWeight, Weight

#: Leaves of the largest block.
LARGEST_BLOCK = 8
#: Blocks are used under tilts up to this share of a pole, and of the inverse standard deviation where there is none.
BEARABLE, STEEPEST = 0.5, 3.0
#: Places of the widest block.
WIDEST = 1 << 13
#: By how much a block's message is larger than what it stands for, inside its window.
EXCESS = 1e-10


@dataclass(frozen=True, eq=False)
class Block:
    """Leaves with one weight within the same bounds (∓2**62: none, or far)."""

    weight: Weight
    low: int
    high: int

    @cached_property
    def tilts(self) -> tuple[float, float]:
        """Under which tilts blocks are used."""
        ends = []
        for pole, bounded, sign in (
            (self.weight.poles[0], self.low > -LARGEST, -1),
            (self.weight.poles[1], self.high < LARGEST, 1),
        ):
            if np.isfinite(pole):
                ends.append(pole * (4.0 if bounded else BEARABLE))
            else:
                ends.append(sign * STEEPEST * float(self.weight.slope(np.array([1.0]))[0]) ** 0.5)
        return ends[0], ends[1]

    @property
    def halving(self) -> tuple[float, float]:
        """Under which tilts blocks are divided in halves: an end that is far needs a steep one."""
        return tuple(
            tilt * (0.9 / BEARABLE) if abs(tilt) < abs(pole) < np.inf else tilt
            for tilt, pole in zip(self.tilts, self.weight.poles, strict=True)
        )  # type: ignore[return-value]

    @cached_property
    def _grid(self) -> tuple[Floats, Floats]:
        low, high = self.halving
        tilts = np.concatenate([low * np.linspace(1, 0.02, 32), [0.0], high * np.linspace(0.02, 1, 32)])
        return tilts, np.maximum.accumulate(mean_of(self.weight, tilts, *self._bounds)[0])

    @property
    def _bounds(self) -> tuple[Ints, Ints]:
        return np.array([self.low]), np.array([self.high])

    def tilts_for(self, means: Floats) -> tuple[Floats, Floats]:
        """Tilts under which a leaf has these means, roughly, and its standard deviations under them."""
        tilts, known = self._grid
        known = known + np.arange(known.size) * 1e-12
        chosen = np.interp(means, known, tilts)
        rise = np.interp(chosen, (tilts[1:] + tilts[:-1]) / 2, np.diff(known) / np.diff(tilts))
        return chosen, np.sqrt(np.maximum(rise, 1e-6))

    @cached_property
    def _reach(self) -> tuple[int, int, int]:
        """The window of sums, and by how much more single leaves reach on either side."""
        more = int(np.ceil(float(np.max(np.abs(np.concatenate(self.weight.window(0.0, *self._bounds, 45.0)))))))
        if self.low > -LARGEST or self.high < LARGEST:
            free = np.array([-LARGEST]), np.array([LARGEST])
            more = int(np.ceil(float(np.max(np.abs(np.concatenate(self.weight.window(0.0, *free, 45.0)))))))
        first, last = 0, 0
        for tilt in self.tilts:
            low, high = (int(end[0]) for end in self.weight.window(tilt, *self._bounds, 45.0))
            mean = float(mean_of(self.weight, np.array([tilt]), *self._bounds)[0, 0])
            wide = LARGEST_BLOCK**0.5
            first = min(first, int(LARGEST_BLOCK * mean - wide * (mean - low)))
            last = max(last, int(LARGEST_BLOCK * mean + wide * (high - mean)))
        first = LARGEST_BLOCK * self.low if self.low > -LARGEST else first
        last = LARGEST_BLOCK * self.high if self.high < LARGEST else last
        return first, last, more

    @property
    def window(self) -> tuple[int, int]:
        """The first and the last place of the window."""
        return self._reach[:2]

    @property
    def places(self) -> int:
        """The length of the window."""
        first, last, _ = self._reach
        return last - first + 1

    @cached_property
    def _messages(self) -> dict[int, Floats]:
        first, last, more = self._reach
        places = np.arange(first - more, last + more + 1)
        values = np.exp(self.weight.log(places))
        values[(places < self.low) | (places > self.high)] = 0.0
        result, size = {1: values[more : more + self.places]}, 1
        while size < LARGEST_BLOCK:
            size *= 2
            # The sum of two at `first` stands where places from first − more on add up to it.
            begin = first - 2 * (first - more)
            values = np.convolve(values, values)[begin : begin + self.places] * (1 + EXCESS / 4)
            result[size] = values
            (low, high), (fall, rise) = self._tails[size]
            away = np.arange(1, more + 1)
            values = np.concatenate([low * fall ** away[::-1], values, high * rise**away])
        return result

    @cached_property
    def _tails(self) -> dict[int, tuple[tuple[float, float], tuple[float, float]]]:
        """Heights and ratios beyond the window, by sizes."""
        first, last, _ = self._reach
        ends: dict[int, list[tuple[float, float]]] = {1: [], 2: [], 4: [], 8: []}
        for side, edge, bound in ((0, first, self.low), (1, last, self.high)):
            sign = (-1, 1)[side]
            pole = self.weight.poles[side]
            steep = 0.97 * abs(pole) if np.isfinite(pole) else 2.2 * max(abs(tilt) for tilt in self.tilts)
            one = np.array([sign * steep])
            low, high = (int(end[0]) for end in self.weight.window(float(one[0]), *self._bounds, 60.0))
            places = np.arange(low, high + 1)
            logs = self.weight.log(places) + one * places
            logs[(places < self.low) | (places > self.high)] = -np.inf
            whole = float(np.log(np.exp(logs - logs.max()).sum()) + logs.max()) + 1e-6
            for size in ends:
                if abs(bound) < LARGEST:
                    ends[size].append((0.0, 0.0))
                else:
                    ends[size].append((float(np.exp(size * whole - steep * abs(edge))), float(np.exp(-steep))))
        return {size: ((two[0][0], two[1][0]), (two[0][1], two[1][1])) for size, two in ends.items()}

    def fits(self, tilt: float) -> bool:
        """Whether a block is worth its message, and what lies beyond its window is nothing under a tilt."""
        near = [abs(bound) for bound in (self.low, self.high) if abs(bound) < LARGEST]
        if not isinstance(self.weight, LaplaceWeight | GaussianWeight) or max(near, default=0) * LARGEST_BLOCK > WIDEST:
            return False
        low, high = self.tilts
        return low <= tilt <= high and self.places < WIDEST

    def row(self, size: int) -> Part:
        """The message of a block, or of a single leaf, as balls."""
        if size == 1:
            return Leaf(self.weight, (self.low, self.high), 0.0, 0, (0.0, 1.0))
        return Row(self._reach[0], self._messages[size], *self._tails[size])

    def table(self, sizes: Ints, tilts: Floats) -> Table:
        """Rows of blocks of some sizes under tilts."""
        first, last, _ = self._reach
        messages = np.stack([self._messages[size] for size in sizes.tolist()])
        with np.errstate(divide="ignore"):
            logs = np.log(messages) + np.multiply.outer(tilts, np.arange(first, last + 1))
        norms = logs.max(axis=1)
        weights = np.exp(logs - norms[:, None])
        np.maximum(weights, 1e-290, out=weights, where=messages > 0)
        tails = np.array([self._tails[size] for size in sizes.tolist()])  # (rows, height and ratio, sides)
        edges, signs = np.array([[first], [last]]), np.array([[-1], [1]])
        with np.errstate(divide="ignore"):
            heights = np.exp(np.log(tails[:, 0].T) + tilts * edges - norms) * (1 + 1e-9)
        ratios = tails[:, 1].T * np.exp(signs * tilts) * (1 + 1e-12)
        ratios[tails[:, 0].T == 0] = 0.0
        parts = {size: self.row(size) for size in set(sizes.tolist())}

        def ball(row: int, t: int) -> arb:
            part: Array | Part = parts[int(sizes[row])]
            return part.at(t) * (arb(float(tilts[row])) * t - arb(float(norms[row]))).exp()  # type: ignore[union-attr]

        return Table(np.full(sizes.size, first), weights, heights, ratios, ball)
