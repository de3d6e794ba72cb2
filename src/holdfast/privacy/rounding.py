"""Rounding outwards: the one place where exact numbers and rigorous balls become doubles.

A privacy parameter may only err upwards. Numbers are therefore carried as fractions or as balls
(`flint.arb`: a midpoint and a proved radius) and turned into a double once, on the safe side.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from fractions import Fraction
from typing import Any

from flint import arb, ctx, fmpq

#: Precisions, in bits, tried one after another until a ball is small enough to be useful.
PRECISIONS = (128, 256, 512, 1024, 2048, 4096)
#: Smallest positive double.
TINIEST = math.ulp(0.0)
#: Beyond these binary exponents a value is below every positive double or above every finite one.
LOWEST_EXPONENT, HIGHEST_EXPONENT = -1200, 1200


def ball(value: Fraction | int | float) -> Any:
    """Return a ball that contains the number, as tight as the current precision allows."""
    number = Fraction(value)
    return arb(fmpq(number.numerator, number.denominator))


def _edge(value: Any, upper: bool) -> Fraction | float:
    """Return the upper or lower end of a ball as a fraction, or as an infinite or sign-keeping tiny float."""
    if value.is_nan() or not value.is_finite():
        return math.inf if upper else -math.inf
    end = value.upper() if upper else value.lower()
    if not end.is_finite():
        return math.inf if upper else -math.inf
    mantissa, exponent = (int(part) for part in end.man_exp())
    top = exponent + mantissa.bit_length()
    if top > HIGHEST_EXPONENT:
        return math.copysign(math.inf, mantissa)
    if top < LOWEST_EXPONENT and mantissa:
        # Far below the smallest double: any value of the same sign under it rounds to the same double.
        return Fraction(1 if mantissa > 0 else -1, 2 ** (-LOWEST_EXPONENT))
    return Fraction(mantissa) * Fraction(2) ** exponent


def outward(value: Any) -> float:
    """Return the smallest double at or above a fraction, or above the whole of a ball."""
    exact = _edge(value, upper=True) if isinstance(value, arb) else value
    if isinstance(exact, float):
        return exact
    exact = Fraction(exact)
    try:
        nearest = float(exact)
    except OverflowError:
        return math.inf if exact > 0 else -math.nextafter(math.inf, 0.0)
    if math.isinf(nearest):
        return nearest if nearest > 0 else math.nextafter(nearest, math.inf)
    return nearest if Fraction(nearest) >= exact else math.nextafter(nearest, math.inf)


def inward(value: Any) -> float:
    """Return the largest double at or below a fraction, or below the whole of a ball."""
    return -outward(-value)


def settled(compute: Callable[[], Any], bits: int = 64) -> Any:
    """Return `compute()` as a ball with at least this relative accuracy, raising the precision as needed.

    When no precision in the list is enough the widest honest answer, the last ball, is returned: it still
    contains the true value.
    """
    result = arb(0)
    for precision in PRECISIONS:
        with ctx.workprec(precision):
            result = compute()
            if result.is_finite() and (result.is_exact() or result.rel_accuracy_bits() >= bits):
                break
    return result


def at_most(compute: Callable[[], Any], limit: Fraction) -> bool:
    """Say whether `compute()` is certainly at most the limit; undecided counts as no."""
    for precision in PRECISIONS:
        with ctx.workprec(precision):
            value, bound = compute(), ball(limit)
            if value <= bound:
                return True
            if value > bound:
                return False
    return False


def _ordinal(value: float) -> int:
    """Number the non-negative doubles in increasing order."""
    return int(struct.unpack("<q", struct.pack("<d", value))[0])


def _double(ordinal: int) -> float:
    return float(struct.unpack("<d", struct.pack("<q", ordinal))[0])


def smallest_double(holds: Callable[[float], bool], low: float, high: float) -> float:
    """Return the smallest double in (low, high] for which an increasing condition holds; it holds at high."""
    below, above = _ordinal(low), _ordinal(high)
    while above - below > 1:
        middle = (below + above) // 2
        below, above = (below, middle) if holds(_double(middle)) else (middle, above)
    return _double(above)


def largest_double(holds: Callable[[float], bool], low: float, high: float) -> float:
    """Return the largest double in [low, high) for which a decreasing condition holds; it holds at low."""
    return math.nextafter(smallest_double(lambda value: not holds(value), low, high), 0.0)
