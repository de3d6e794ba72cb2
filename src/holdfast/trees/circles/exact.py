"""What doubles leave undecided: sums of messages as balls, by which totals are tested, and divided without proposals.

Messages of children are doubles on windows with series beyond, or leaves' own weights: polynomials whose product has
S̃(t) as a coefficient. What lies beyond their ends makes the ball wider, and less so the further they reach.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Protocol

import numpy as np
from flint import arb, arb_poly

from holdfast.arguments import LARGEST
from holdfast.arrays import Floats
from holdfast.noise.draws.decisions import FIRST_BITS, Digits, chosen, decided
from holdfast.randomness import Stream
from holdfast.trees.circles.weights import Weight


class Part(Protocol):
    """A message as balls, or the sum of some."""

    def window(self, more: int) -> tuple[int, list[arb], arb]:
        """The first place, the values from there on, and a bound on the sum of all others, which falls as e^−more."""


class Row:
    """A message of doubles with series beyond its window."""

    def __init__(self, first: int, values: Floats, height: tuple[float, float], ratio: tuple[float, float]) -> None:
        self.first, self.values, self.height, self.ratio = first, values, height, ratio

    def at(self, t: int) -> arb:
        """The message at t."""
        inside = t - self.first
        if 0 <= inside < self.values.size:
            return arb(float(self.values[inside]))
        side, distance = (1, inside - self.values.size + 1) if inside >= 0 else (0, -inside)
        return arb(self.height[side]) * arb(self.ratio[side]) ** distance

    def window(self, more: int) -> tuple[int, list[arb], arb]:
        """See Part."""
        ends, left = [0, 0], arb(0)
        for side, (height, ratio) in enumerate(zip(self.height, self.ratio, strict=True)):
            if height > 0:
                ends[side] = math.ceil(-more / math.log(ratio))
                left = left + arb(height) * arb(ratio) ** (ends[side] + 1) / (1 - arb(ratio))
        first = self.first - ends[0]
        return first, [self.at(t) for t in range(first, self.first + self.values.size + ends[1])], left


class Leaf:
    """A leaf's weight within its bounds under a tilt: w(t)·e^{tilt·(t − origin)}/whole."""

    def __init__(
        self, weight: Weight, bounds: tuple[int, int], tilt: float, origin: int, log_whole: tuple[float, float]
    ) -> None:
        self.weight, self.bounds, self.tilt, self.origin = weight, bounds, tilt, origin
        self.log_whole = log_whole

    def at(self, t: int) -> arb:
        """The weight at t."""
        if not self.bounds[0] <= t <= self.bounds[1]:
            return arb(0)
        peak, whole = self.log_whole
        return self.weight.ball(t) * (arb(self.tilt) * (t - self.origin) - arb(peak)).exp() / arb(whole)

    def window(self, more: int) -> tuple[int, list[arb], arb]:
        """See Part."""
        low, high = (np.array([bound], dtype=np.int64) for bound in self.bounds)
        first, last = (int(end[0]) for end in self.weight.window(self.tilt, low, high, 60.0 + more))
        left = arb(0)
        for side, edge, bound in ((0, first, self.bounds[0]), (1, last, self.bounds[1])):
            if abs(bound) < LARGEST and edge == bound:
                continue
            step = float(self.weight.steps(np.array([edge]))[side][0])
            fall = arb(step) * (1 - arb(2) ** -40) + (arb(self.tilt) if side else -arb(self.tilt))
            ratio = fall.exp()
            left = left + self.at(edge) * ratio / (1 - ratio)
        return first, [self.at(t) for t in range(first, last + 1)], left


class Joined:
    """The sum of two parts, either of which may be such a sum."""

    def __init__(self, one: Part, other: Part) -> None:
        self.one, self.other = one, other
        self._windows: dict[int, tuple[int, list[arb], arb]] = {}

    def window(self, more: int) -> tuple[int, list[arb], arb]:
        """See Part; what is left may be anywhere, inside too."""
        if more not in self._windows:
            (first, ones, _), (start, others, _) = self.one.window(more), self.other.window(more)
            values, left = (arb_poly(ones) * arb_poly(others)).coeffs(), self._missing(more)
            # Ends that hardly weigh anything would make products slow.
            limit = sum(values, arb(0)) * arb(2) ** -(FIRST_BITS + more)
            low, high = _light(values, limit), len(values) - _light(values[::-1], limit)
            left = left + sum(values[:low], arb(0)) + sum(values[high:], arb(0))
            extra = _raised(arb(0), left)
            self._windows[more] = first + start + low, [each + extra for each in values[low:high]], left
        return self._windows[more]

    def _missing(self, more: int) -> arb:
        """A bound on the ways of which one lies beyond a window."""
        (_, ones, left), (_, others, right) = self.one.window(more), self.other.window(more)
        return left * sum(others, right) + right * sum(ones, left)

    def ways(self, t: int, more: int) -> tuple[dict[int, arb], arb]:
        """What the first part may have where both make t, each with its weight; and the sum of all."""
        (first, ones, _), (start, others, _) = self.one.window(more), self.other.window(more)
        last = t - first - start
        inside = range(max(0, last - len(others) + 1), min(len(ones), last + 1))
        result = {first + place: ones[place] * others[last - place] for place in inside}
        return result, _raised(sum(result.values(), arb(0)), self._missing(more))


def _raised(value: arb, left: arb) -> arb:
    """A value to which something from 0 to what is left is added."""
    return value if left == 0 else value + left / 2 + arb(0, (left / 2).upper())


def joined(parts: Sequence[Part]) -> Part:
    """The sum of parts, halved again and again."""
    half = len(parts) // 2
    return Joined(joined(parts[:half]), joined(parts[half:])) if half else parts[0]


def sum_at(whole: Part, t: int, more: int) -> arb:
    """Σ over all ways to make t of the product of the parts' messages."""
    if isinstance(whole, Joined):
        return whole.ways(t, more)[1]
    first, values, left = whole.window(more)
    return values[t - first] if first <= t < first + len(values) else _raised(arb(0), left)


def _light(values: list[arb], limit: arb) -> int:
    """How many values at the beginning weigh less than a limit together."""
    running = arb(0)
    for k, value in enumerate(values):
        running = running + value
        if not running < limit:
            return k
    return 0


def half_of(whole: Joined, t: int, digits: Digits, bits: int = FIRST_BITS) -> int:
    """What the first part has of a total: the place that a uniform number stands for."""
    order: dict[int, None] = {}  # places that a wider window adds come after all others

    def attempt(found: tuple[dict[int, arb], arb], number: Digits) -> int:
        order.update(dict.fromkeys(found[0]))
        return chosen(found[0].__getitem__, found[1], iter(order), number)

    return decided(lambda bits: whole.ways(t, bits - FIRST_BITS), digits, attempt, bits)


def divided(whole: Part, t: int, stream: Stream) -> list[int]:
    """Divide a total among parts with the probability of their messages' product: what a half of them has, and so on.

    No proposal is rejected, however improbable what makes the total is.
    """
    if not isinstance(whole, Joined):
        return [t]
    half = half_of(whole, t, Digits(stream.bits(64), 64, lambda: stream))
    return divided(whole.one, half, stream) + divided(whole.other, t - half, stream)
