"""The factor on all scales at which a total guarantee meets a target from below."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

#: The target is met from below within this relative distance.
NEARNESS = 1e-10
# First relative width of the bracket around a guess; it grows fourfold until it holds the answer.
_WIDTH = Fraction(1, 2**20)


def factor_meeting(met: Callable[[Fraction], float], limit: float, *, squared: bool) -> Fraction:
    """Return a factor f with met(f) ≤ limit, nearly equal; `met` falls as the factor grows.

    `squared` says that `met` is about proportional to 1/f², otherwise to 1/f; where it is exactly so the first guess is
    the answer. Raises OverflowError when the limit is met at every scale.
    """
    ratio = met(Fraction(1)) / limit
    guess = Fraction(max(math.sqrt(ratio) if squared else ratio, 2.0**-40)) * (1 + Fraction(1, 2**44))
    low, high, width = guess, guess, _WIDTH
    while met(high) > limit:
        low, high, width = high, high * (1 + width), 4 * width
    width = _WIDTH
    while met(high) < limit * (1 - NEARNESS) and met(low) <= limit:
        low, width = low / (1 + width), 4 * width
        if low < Fraction(1, 2**80):
            raise OverflowError("the limit is met at every scale")
    while met(high) < limit * (1 - NEARNESS):
        middle = Fraction(float((low + high) / 2))
        if middle in (low, high):
            break
        low, high = (middle, high) if met(middle) > limit else (low, middle)
    return high
