"""The factor on all scales at which a total guarantee meets a target from below."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

#: The target is met from below within this relative distance.
NEARNESS = 1e-10
# First relative width of the bracket around a guess; it grows fourfold until it holds the answer.
_WIDTH = Fraction(1, 2**20)
# Widest bracket, where nothing is promised at its upper end.
_WIDEST = 2**8
# Where the search starts: at the first of these at which something is promised.
_STARTS = (1, 2, 8, 64, 2**12, 2**24)
# Secant steps before the bracket, and how far, in distances between the last two points, one of them may lead.
_GUESSES = 8
_FARTHEST = 4.0


def factor_meeting(met: Callable[[Fraction], float], limit: float, *, squared: bool) -> Fraction:
    """Return a factor f with met(f) ≤ limit, nearly equal; `met` falls as the factor grows.

    `squared` says that `met` is about proportional to 1/f², otherwise to 1/f; where it is exactly so the first guess is
    the answer. `met` is infinite where nothing is promised. Raises OverflowError when the limit is met at every scale,
    and ZeroDivisionError when nothing is promised where it would be met.
    """
    known: dict[Fraction, float] = {}

    def at(factor: Fraction) -> float:
        if factor not in known:
            known[factor] = met(factor)
        return known[factor]

    before = next((f for f in map(Fraction, _STARTS) if not math.isinf(at(f))), None)
    if before is None:
        raise ZeroDivisionError("nothing is promised at any scale")
    if limit * (1 - NEARNESS) <= at(before) <= limit:
        return before
    ratio = at(before) / limit
    guess = before * Fraction(max(math.sqrt(ratio) if squared else ratio, 2.0**-40)) * (1 + Fraction(1, 2**44))
    aim = limit * (1 - NEARNESS / 2)
    for _ in range(_GUESSES):
        if limit * (1 - NEARNESS) <= at(guess) <= limit:
            return guess
        before, guess = guess, Fraction(float(_crossing(before, at(before), guess, at(guess), aim)))
    low, high, width = guess, guess, _WIDTH
    while at(high) > limit:
        if width > _WIDEST and math.isinf(at(high)):
            raise ZeroDivisionError("nothing is promised at larger scales")
        low, high, width = high, high * (1 + width), 4 * width
    width = _WIDTH
    while at(high) < limit * (1 - NEARNESS) and at(low) <= limit:
        low, width = low / (1 + width), 4 * width
        if low < Fraction(1, 2**80):
            raise OverflowError("the limit is met at every scale")
    while at(high) < limit * (1 - NEARNESS):
        middle = Fraction(float((low + high) / 2))
        if middle in (low, high):
            break
        low, high = (middle, high) if at(middle) > limit else (low, middle)
    return high


def _crossing(first: Fraction, there: float, second: Fraction, here: float, limit: float) -> Fraction:
    """Where a power of the factor through two points meets the limit; the second point where that is no help."""
    if there == here or min(there, here) <= 0 or math.isinf(max(there, here)):
        return second
    share = math.log(here / limit) / math.log(there / here)
    step = share * math.log(second / first)
    if not (abs(share) < _FARTHEST and abs(step) < 1):
        return second
    return second * Fraction(math.exp(step))
