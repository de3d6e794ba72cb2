"""Rounding exact numbers outwards: the smallest double that is not below."""

from __future__ import annotations

import math
from fractions import Fraction


def float_up(value: Fraction) -> float:
    """Return the smallest double ≥ value."""
    near = float(value)
    return near if Fraction(near) >= value else math.nextafter(near, math.inf)


def sqrt_up(value: Fraction) -> float:
    """Return the smallest double ≥ √value, for value ≥ 0."""
    # An integer root of the value shifted by an even power of two carries more bits than a double holds.
    shift = max(0, 64 - (value.numerator.bit_length() - value.denominator.bit_length()) // 2)
    shifted = (value.numerator << (2 * shift)) // value.denominator
    root = math.isqrt(shifted)
    below = Fraction(root, 1 << shift)
    if below * below == value:
        return float_up(below)
    # The root lies strictly between two neighbouring multiples of 2**-shift, far finer than doubles here.
    up = float_up(below)
    return up if Fraction(up) ** 2 >= value else math.nextafter(up, math.inf)
