"""What doubles leave undecided: the share S̃(t)·w(t)/M(t) with which a total is kept, enclosed by balls.

Messages of children are doubles on windows with series beyond, or leaves' own weights: polynomials whose product has
S̃(t) as a coefficient. What lies beyond their ends makes the ball wider, and less so the further they reach.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
from flint import arb, arb_poly

from holdfast.arguments import LARGEST
from holdfast.arrays import Floats
from holdfast.trees.circles.weights import Weight


class Part(Protocol):
    """A message as balls."""

    def window(self, more: int) -> tuple[int, list[arb], arb]:
        """The first place, the values from there on, and a bound on the sum of all others; `more` reaches further."""


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
        below = range(self.first - more, self.first) if self.height[0] > 0 else range(0)
        last = self.first + self.values.size
        above = range(last, last + more) if self.height[1] > 0 else range(0)
        values = [self.at(t) for t in below] + [arb(float(v)) for v in self.values] + [self.at(t) for t in above]
        left = arb(0)
        for height, ratio in zip(self.height, self.ratio, strict=True):
            if height > 0:
                left = left + arb(height) * arb(ratio) ** (more + 1) / (1 - arb(ratio))
        return self.first - len(below), values, left


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


def sum_at(parts: list[Part], t: int, more: int) -> arb:
    """Σ over all ways to make t of the product of the parts' messages."""
    windows = sorted((part.window(more) for part in parts), key=lambda window: len(window[1]))
    masses = [sum(values, left) for _, values, left in windows]
    whole = arb(1)
    for mass in masses:
        whole = whole * mass
    missing = arb(0)
    for mass, (_, _, left) in zip(masses, windows, strict=True):
        missing = missing + left / mass * whole
    start, values, _ = windows[-1]
    polynomials = [arb_poly(others) for _, others, _ in windows[:-1]] or [arb_poly([1])]
    while len(polynomials) > 1:
        pairs = [a * b for a, b in zip(polynomials[::2], polynomials[1::2], strict=False)]
        polynomials = pairs + polynomials[len(pairs) * 2 :]
    others = polynomials[0].coeffs()
    last = (
        t - start - sum(first for first, _, _ in windows[:-1])
    )  # places of the widest part and of the others add up to this
    inside = arb(0)
    for place in range(max(0, last - len(others) + 1), min(len(values) - 1, last) + 1):
        inside = inside + values[place] * others[last - place]
    return inside + missing / 2 + arb(0, missing.upper() / 2)
