"""Which scales of noise are accepted."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

from holdfast.arguments import Refused, positive

#: Largest scale λ or σ of integer noise: draws beyond ±2^62 then have a probability below e^{−4000}.
LARGEST_INTEGER_SCALE = 2**50
#: Scales and variances stay within 2^±400, so that quotients of values and scales are ordinary doubles.
EXTREME = 2**400


def real_scale(name: str, value: Any) -> Fraction:
    """Return a scale or variance of continuous noise as an exact rational."""
    number = positive(name, value)
    if not Fraction(1, EXTREME) <= number <= EXTREME:
        raise Refused(f"{name} must lie between 2**-400 and 2**400, found {_about(name, number)}")
    return number


def integer_scale(name: str, value: Any, power: int = 1) -> Fraction:
    """Return a scale (power 1) or variance (power 2) of integer noise as an exact rational."""
    number = real_scale(name, value)
    if number > LARGEST_INTEGER_SCALE**power:
        raise Refused(
            f"{name} must be at most 2**{50 * power} for integer noise, which has to stay within 64 bits, "
            f"found {_about(name, number)}"
        )
    return number


def _about(name: str, number: Fraction) -> str:
    """Say how large a number is, however far from the doubles."""
    digits = math.log10(number.numerator) - math.log10(number.denominator)
    size = f"about {10 ** (digits - math.floor(digits)):.2f}e{math.floor(digits):+d}"
    return f"{size}, the square of the scale" if name == "sigma2" else size
