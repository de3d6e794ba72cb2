"""Sums of integer Gaussians as upper bounds in whole numbers: the arithmetic under the exact δ(ε).

A *masses* value holds non-negative whole numbers, masses in units of 2**−BITS, on consecutive points of a
lattice, and `missing`, a bound for all mass that is not listed. Every operation rounds upwards, so a
masses value is always at least the true law, point by point; the final δ is a sum with non-negative weights
and inherits the bound. Products are exact (integer polynomials), so nothing is lost to cancellation.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from flint import arb, ctx

from holdfast.privacy.rounding import ball

#: Fixed-point bits of a mass. Recursions of 10⁶ steps lose about 40 of them, 60 bits of the result remain.
BITS = 128
ONE = 1 << BITS
#: Windows reach this many standard deviations: what lies beyond weighs less than 2⁻⁸⁰, counted as missing.
REACH = 10.7
#: Two laws are merged into one Gaussian when that changes no probability by more than this fraction.
SMOOTH = 1e-12
#: So many copies of a law are merged one by one, the others together.
ONE_BY_ONE = 16
#: Safety on the few factors computed in double precision (expm1 of a grid offset): far above their rounding.
DOUBLE_SAFETY = 1.0 + 2.0**-40


def ceiling(value: Any) -> int:
    """Return the whole number at or above 2**BITS times a ball."""
    return int((value * arb(2) ** BITS).upper().ceil().unique_fmpz())


def floor(value: Any) -> int:
    """Return the whole number at or below 2**BITS times a ball."""
    return int((value * arb(2) ** BITS).lower().floor().unique_fmpz())


@dataclass(frozen=True)
class Part:
    """Count independent copies of step·U, with U on the whole numbers and P(U=u) ∝ exp(−u²/2·variance)."""

    step: int
    variance: Fraction
    count: int


@dataclass(frozen=True)
class Masses:
    """Upper bounds of the masses at start, start+1, …, in units of 2**−BITS, and of all mass elsewhere."""

    start: int
    values: list[int]
    missing: int


def normaliser(variance: Fraction) -> Any:
    """Return a ball at or just below Z = Σ exp(−u²/2v) over the whole numbers (by Poisson when v ≥ ½)."""
    v = ball(variance)
    if variance >= Fraction(1, 2):
        rate = -2 * arb.pi() ** 2 * v
        return (2 * arb.pi() * v).sqrt() * (1 + 2 * sum(((rate * k * k).exp() for k in range(1, 9)), arb(0)))
    return 1 + 2 * sum(((-ball(k * k) / (2 * v)).exp() for k in range(1, 13)), arb(0))


def column(variance: Fraction, centre: Fraction, start: int | None = None) -> Masses:
    """Return upper bounds of exp(−(u−centre)²/2v)/Z on a window around the centre, or from `start` upwards.

    With a start, points below it are left out and do not count as missing.
    """
    reach = math.ceil(REACH * math.sqrt(variance)) + 2
    middle = math.floor(centre) if start is None else start
    with ctx.workprec(2 * BITS):
        v, scale = ball(variance), 1 / normaliser(variance)
        peak = (-((ball(middle - centre)) ** 2) / (2 * v)).exp() * scale
        turn = ceiling((-1 / v).exp())
        up, up_missing = _run(peak, (ball(2 * (centre - middle) - 1) / (2 * v)).exp(), turn, reach)
        if start is not None:
            return Masses(start, up, up_missing)
        down, down_missing = _run(peak, (ball(2 * (middle - centre) - 1) / (2 * v)).exp(), turn, reach)
    return Masses(middle - len(down) + 1, down[:0:-1] + up, up_missing + down_missing)


def _run(peak: Any, first_ratio: Any, turn: int, reach: int) -> tuple[list[int], int]:
    """Return a Gaussian sequence from its first value and ratios, and a bound of its tail."""
    value, ratio = ceiling(peak), ceiling(first_ratio)
    values = [value]
    while len(values) <= reach or ratio >= ONE:
        value = (value * ratio >> BITS) + 1
        ratio = (ratio * turn >> BITS) + 1
        values.append(value)
    # Ratios fall further, so the tail is below a geometric series with the next ratio, which is below 1.
    following = (value * ratio >> BITS) + 1
    return values, following * ONE // (ONE - ratio) + 1


def merged(parts: Iterable[Part]) -> tuple[list[Part], Any]:
    """Merge parts whose sum is, point by point, a Gaussian on one lattice up to a proved factor.

    With z = b·s + a·u, gcd(a, b) = g, the points (s, u) with one z lie on a line; summing the product of
    the two weights along it gives exp(−z²/2V) times a theta sum that, by Poisson summation, is constant up
    to 1 ± 2Σ exp(−2π²τ²k²), 1/τ² = (a/g)²/v_s + (b/g)²/v_u. Returns the parts and the ball of the factor by
    which true probabilities may exceed those of the returned parts.
    """
    factor = arb(1)
    open_parts: list[Part] = []
    for part in sorted(parts, key=lambda item: item.step):
        current, left = Part(part.step, part.variance, 1), part.count - 1
        while left:
            error = _roughness(current, part)
            if error is None:
                break
            # The wider the sum already is, the less another copy costs: the last of many cost at most this each.
            taken = 1 if part.count - left < ONE_BY_ONE else left
            wider = Part(part.step, current.variance + taken * part.variance, 1)
            current, factor, left = wider, factor * error**taken, left - taken
        if left:
            open_parts.append(part)
        else:
            open_parts.append(current)
    changed = True
    while changed:
        changed = False
        singles = sorted((p for p in open_parts if p.count == 1), key=lambda p: -p.variance)
        for i, one in enumerate(singles):
            for other in singles[i + 1 :]:
                error = _roughness(one, other)
                if error is not None:
                    open_parts.remove(one)
                    open_parts.remove(other)
                    open_parts.append(_sum(one, other))
                    factor, changed = factor * error, True
                    break
            if changed:
                break
    return open_parts, factor


def _sum(one: Part, other: Part) -> Part:
    g = math.gcd(one.step, other.step)
    variance = (one.step**2 * one.variance + other.step**2 * other.variance) / g**2
    return Part(g, variance, 1)


def _roughness(one: Part, other: Part) -> Any | None:
    """Return the factor that merging costs, or None when it is above 1 + 2·SMOOTH."""
    g = math.gcd(one.step, other.step)
    inverse = Fraction(other.step // g) ** 2 / one.variance + Fraction(one.step // g) ** 2 / other.variance
    q = (-2 * arb.pi() ** 2 / ball(inverse)).exp()
    bound = 2 * q / (1 - q)
    if not bound < SMOOTH:
        return None
    return (1 + bound) / (1 - bound)
