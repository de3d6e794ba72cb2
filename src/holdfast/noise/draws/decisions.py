"""Random digits against balls: choices and acceptances that are made only where balls prove them.

A uniform number is known by its first binary digits, and terms and totals by balls. A choice goes through places in a
given order; where the digits and the balls do not tell which place it is, more digits are drawn and the precision
grows until they do. So the place is a function of the number alone, whatever the precision.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeVar

from flint import arb, fmpz

from holdfast.arguments import Refused, positive
from holdfast.noise.precision import MOST_BITS, working_precision
from holdfast.randomness import Stream

#: Precision of the first attempt.
FIRST_BITS = 128

Exact = TypeVar("Exact")


class Restart(Exception):
    """A proposal was rejected; the whole table is drawn again."""


class Open(Exception):
    """More precision or more random bits are needed."""


@dataclass(eq=False)
class Digits:
    """A uniform number, known by its first binary digits; more are drawn when they are needed."""

    value: int
    count: int
    stream: Callable[[], Stream]
    _more: Stream | None = None

    def more(self) -> None:
        if self._more is None:
            self._more = self.stream()
        self.value = self.value << 64 | self._more.bits(64)
        self.count += 64

    def times(self, total: arb) -> tuple[arb, arb]:
        unit = arb(2) ** -self.count
        return arb(fmpz(self.value)) * unit * total, arb(fmpz(self.value + 1)) * unit * total


def places(start: int, low: int, high: int, lowest: int | None, highest: int | None) -> Iterator[int]:
    """The order of a choice: from the start to both sides within low … high, then what lies beyond, nearest first."""
    turn = min(high - start, start - low)
    yield start
    for k in range(1, turn + 1):
        yield start + k
        yield start - k
    side = 1 if high - start > start - low else -1
    for k in range(turn + 1, max(high - start, start - low) + 1):
        yield start + side * k
    d = 1
    while True:
        if highest is None or high + d <= highest:
            yield high + d
        if lowest is None or low - d >= lowest:
            yield low - d
        if highest is not None and lowest is not None and high + d > highest and low - d < lowest:
            return
        d += 1


def chosen(term: Callable[[int], arb], total: arb, order: Iterator[int], digits: Digits) -> int:
    """Return the place whose partial sums enclose the number times the total."""
    least, most = digits.times(total)
    running = arb(0)
    for tried, place in enumerate(order):
        running = running + term(place)
        if running > most:
            return place
        if not running <= least or tried > 1_000_000:
            raise Open
    raise Open


def decided(
    exact: Callable[[int], Exact], digits: Digits, attempt: Callable[[Exact, Digits], int], bits: int = FIRST_BITS
) -> int:
    """Repeat an attempt with more precision and digits until it is decided; `exact` gives the law to so many bits."""
    while bits <= MOST_BITS:
        with working_precision(bits):
            try:
                return attempt(exact(bits), digits)
            except Open:
                digits.more()
                bits += 64
    raise ArithmeticError("a draw stayed undecided at the largest precision")


def accept(
    exact: Callable[[int], Exact], stream: Stream, stated: Callable[[Exact], arb], true: Callable[[Exact], arb]
) -> None:
    """Keep a total beyond a window with probability true/stated ≤ 1, or raise Restart; `exact` is as in `decided`."""
    digits = Digits(stream.bits(64), 64, lambda: stream)

    def attempt(law: Exact, number: Digits) -> int:
        least, most = number.times(stated(law))
        value = true(law)
        if value >= most:
            return 1
        if value <= least:
            return 0
        raise Open

    if not decided(exact, digits, attempt):
        raise Restart


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
