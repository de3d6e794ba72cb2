"""Random digits against balls: choices and acceptances that are made only where balls prove them.

A uniform number is known by its first binary digits, and terms and totals by balls. A choice goes through places in a
given order; where the digits and the balls do not tell which place it is, more digits are drawn and the precision
grows until they do. So the place is a function of the number alone, whatever the precision.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeVar

from flint import arb, fmpz

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
        """Draw 64 more digits."""
        if self._more is None:
            self._more = self.stream()
        self.value = self.value << 64 | self._more.bits(64)
        self.count += 64

    def times(self, total: arb) -> tuple[arb, arb]:
        """Bounds on the number times a positive total."""
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
