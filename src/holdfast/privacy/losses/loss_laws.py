"""Laws of privacy loss on a grid: what many releases promise together at a δ, rounded upwards.

A release with trade-off δ(ε) is no easier to tell apart than a pair of laws with the same δ(ε); the loss L of such a
pair has δ(ε) = E[(1 − e^(ε−L))₊], and losses of releases add. Here every loss is put on the multiples of one step so
that δ can only grow, and the laws are added in doubles of which every one is an upper bound: all terms are positive, so
rounding is a relative error that is counted and charged (docs/theory/composition.md, "Loss laws").
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
from flint import ctx

from holdfast.arrays import Floats
from holdfast.privacy.rounding import ball, outward

#: Bits of the balls from which masses are made.
PRECISION = 256
#: Roundings of one addition of laws beyond one per place: numpy adds at most so many times in a row where it sums.
ROUNDINGS = 64
#: Places up to which a loss is added place by place.
FEW = 16
#: Units in the last place by which a double of expm1 may be wrong: far above what any library documents.
EXPM1_ULPS = 2**12
#: More than all that products below the smallest double can lose in any sum that is tried here.
LOST = 1e-300

#: An upper bound of δ at an ε that is not negative.
Curve = Callable[[Fraction], float]


@dataclass(frozen=True, eq=False)
class Loss:
    """A loss at some multiples of the step; `masses` and `beyond`, the mass at +∞, are upper bounds."""

    places: tuple[int, ...]
    masses: tuple[float, ...]
    beyond: float


def response(epsilon: Fraction, delta: Fraction, step: Fraction) -> Loss:
    """Return the loss of the worst (ε, δ)-private release: +∞ with δ, otherwise that of randomized response.

    *Guarantee:* every (ε, δ)-private pair is a post-processing of this one (Kairouz, Oh and Viswanath 2015, Thm 3.1).
    """
    with ctx.workprec(PRECISION):
        power = ball(epsilon).exp()
        share = ball(1 - delta) / (1 + power)
        found: dict[int, Any] = {}
        for loss, mass in ((-epsilon, share), (epsilon, share * power)):
            for place, part in _split(loss, mass, step):
                found[place] = found[place] + part if place in found else part
        places = tuple(sorted(found))
        return Loss(places, tuple(_above(found[place]) for place in places), outward(delta))


def _above(value: Any) -> float:
    """Return a double above a ball of ordinary size; quicker than the nearest one above."""
    return math.nextafter(float(value.upper()), math.inf)


def _split(loss: Fraction, mass: Any, step: Fraction) -> list[tuple[int, Any]]:
    """Share a mass between the two places around its loss so that its mass and its mass times e^−loss are kept.

    Merging the two gives the original pair back, so the original is a post-processing ("connect the dots",
    Doroshenko, Ghazi, Kamath, Kumar and Manurangsi 2022).
    """
    below = math.floor(loss / step)
    rest = loss - below * step
    if rest == 0:
        return [(below, mass)]
    # With a = rest and h = step: lower share (e^(h−a) − 1)/(e^h − 1), upper share 1 − that = (e^h − e^(h−a))/(e^h − 1).
    whole, upper = ball(step).expm1(), ball(step - rest).expm1()
    return [(below, mass * upper / whole), (below + 1, mass * (whole - upper) / whole)]


def from_curve(curve: Curve, step: Fraction, every: int, lowest: int, highest: int) -> Loss:
    """Return a loss whose δ(ε) is above a curve that bounds δ both ways between two laws.

    The true δ is convex in e^ε, falls from 1 at ε = −∞, and at −ε is 1 − e^(−ε)(1 − δ'(ε)), δ' the other way. It is
    therefore below the polygon through upper bounds at any choice of points, which is the δ(ε) of a loss at these
    points wherever the polygon is convex: points where it is not for certain are left out.
    """
    ticks = [every * k for k in range(lowest // every, -(-highest // every) + 1)]
    with ctx.workprec(PRECISION):
        bounds = {tick: ball(Fraction(curve(abs(tick) * step))) for tick in sorted({abs(tick) for tick in ticks})}
        # The knots (e^ε, δ), from (0, 1) on.
        knots: list[tuple[int | None, Any, Any]] = [(None, ball(0), ball(1))]
        for tick in ticks:
            here = ball(tick * step).exp()
            bound = bounds[abs(tick)] if tick >= 0 else 1 - here * (1 - bounds[abs(tick)])
            while len(knots) > 1 and not _slope(knots[-2], knots[-1]) <= _slope(knots[-1], (tick, here, bound)):
                knots.pop()
            knots.append((tick, here, bound))
        while len(knots) > 2 and not _slope(knots[-2], knots[-1]) <= 0:
            knots.pop()
        slopes = [_slope(one, other) for one, other in pairwise(knots)] + [ball(0)]
        # The slope grows by mass·e^−loss at every place of a loss.
        masses = tuple(outward(knots[k][1] * (slopes[k] - slopes[k - 1])) for k in range(1, len(knots)))
        beyond = outward(knots[-1][2])
    return Loss(tuple(knot[0] for knot in knots[1:] if knot[0] is not None), masses, beyond)


def _slope(one: tuple[int | None, Any, Any], other: tuple[int | None, Any, Any]) -> Any:
    return (other[2] - one[2]) / (other[1] - one[1])


@dataclass(frozen=True, eq=False)
class Total:
    """The sum of losses at the places from `low` on, and what its doubles may have lost to rounding."""

    step: Fraction
    low: int
    masses: Floats
    beyond: float
    roundings: int

    @property
    def high(self) -> int:
        return self.low + self.masses.size - 1

    def times(self, factor: float) -> Total:
        """Return the same losses with all masses larger by a factor of 1 or a little more."""
        masses = self.masses * factor
        return Total(self.step, self.low, masses, min(1.0, math.nextafter(self.beyond * factor, 2)), self.roundings + 1)

    def at(self, place: int) -> float:
        """Return a double at or above δ at ε = place·step, place ≥ low."""
        above = self.masses[place - self.low + 1 :]
        weights = -np.expm1(-float(self.step) * np.arange(1, above.size + 1))
        # The step is rounded to a double here: one more relative error of 2^−53 in each weight.
        lost = (self.roundings + above.size + EXPM1_ULPS) * 2.0**-52
        found = Fraction(float(above @ weights)) * (1 + Fraction(lost)) + Fraction(self.beyond) + Fraction(LOST)
        return min(1.0, outward(found))

    def delta(self, epsilon: Fraction) -> float:
        """Return a double at or above δ(ε), ε ≥ 0: between two places δ is linear in e^ε."""
        place = math.floor(epsilon / self.step)
        if place >= self.high:
            return self.at(self.high)
        near, far = Fraction(self.at(place)), Fraction(self.at(place + 1))
        with ctx.workprec(PRECISION):
            share = ball(epsilon - place * self.step).expm1() / ball(self.step).expm1()
            return min(1.0, outward(ball(near) + share * ball(far - near)))

    def epsilon(self, delta: float) -> float:
        """Return a double at or above the smallest ε ≥ 0 with δ(ε) ≤ δ; infinite where none is known."""
        if self.at(0) <= delta:
            return 0.0
        if self.at(self.high) > delta:
            return math.inf
        below, above = 0, self.high
        while above - below > 1:
            middle = (below + above) // 2
            below, above = (below, middle) if self.at(middle) <= delta else (middle, above)
        near, far = Fraction(self.at(below)), Fraction(self.at(above))
        with ctx.workprec(PRECISION):
            share = ball((near - Fraction(delta)) / (near - far))
            return outward(ball(below * self.step) + (share * ball(self.step).expm1()).log1p())


def added(losses: Iterable[tuple[Loss, int]], step: Fraction, low: int, high: int) -> Total:
    """Return the sum of independent losses, each so many times, between two places with low ≤ 0 ≤ high.

    What falls below the window is raised to its lowest place and what passes it is counted as +∞: δ only grows.
    """
    masses = np.zeros(high - low + 1)
    masses[-low] = 1.0
    first = last = -low
    beyond, roundings = Fraction(0), 0
    for loss, count in losses:
        for _ in range(count):
            piece = masses[first : last + 1]
            masses, passed = _moved(piece, first, loss, masses.size)
            beyond += passed + Fraction(loss.beyond) * Fraction(float(piece.sum()))
            first = min(max(first + loss.places[0], 0), masses.size - 1)
            last = min(max(last + loss.places[-1], 0), masses.size - 1)
            roundings += len(loss.places) + ROUNDINGS
    charged = outward(beyond * (1 + Fraction(roundings, 2**52)))
    return Total(step, low, masses, min(1.0, charged), roundings)


def _moved(piece: Floats, first: int, loss: Loss, size: int) -> tuple[Floats, Fraction]:
    """Add a loss to the masses that start at `first`; returns all places, and what passed the last one."""
    length = loss.places[-1] - loss.places[0] + 1
    if len(loss.places) > FEW and length < 4 * len(loss.places):
        dense = np.zeros(length)
        dense[np.array(loss.places) - loss.places[0]] = loss.masses
        pieces = [(first + loss.places[0], np.convolve(piece, dense))]
    else:
        pieces = [(first + place, mass * piece) for place, mass in zip(loss.places, loss.masses, strict=True)]
    result = np.zeros(size)
    passed = Fraction(0)
    for start, values in pieces:
        low, high = min(max(-start, 0), values.size), max(min(size - start, values.size), 0)
        if low:
            result[0] += values[:low].sum()
        if high < values.size:
            passed += Fraction(float(values[max(high, low) :].sum()))
        if high > low:
            result[start + low : start + high] += values[low:high]
    return result, passed
