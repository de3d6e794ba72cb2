"""Working precision of ball arithmetic, one thread at a time.

FLINT's precision is one number for the whole process. Every computation with balls here holds a lock while
it has set that number. Should other code change it meanwhile, balls become wider or narrower but never wrong:
correctness rests on the balls alone, and every loop below asks for more precision until its ball is narrow.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from fractions import Fraction

from flint import arb, ctx, fmpq, fmpz

from holdfast.system import after_fork_in_child

#: Bits of the ball arithmetic behind a price; the result is then rounded outwards to a double.
PRICE_BITS = 256
#: A ball that is still too wide at this precision (bits) will not become narrow: an error, not a wait.
MOST_BITS = 1 << 20

_lock = threading.RLock()


def _after_fork_in_child() -> None:
    global _lock
    _lock = threading.RLock()  # in the child no thread is left that could release the old one


after_fork_in_child(_after_fork_in_child)


@contextmanager
def working_precision(bits: int) -> Iterator[None]:
    with _lock, ctx.workprec(bits):
        yield


def ball(number: Fraction | int) -> arb:
    """Return a ball around an exact number."""
    number = Fraction(number)
    return arb(fmpq(fmpz(number.numerator), fmpz(number.denominator)))


def double(ball_: arb) -> float:
    """Return the double nearest to the middle of a ball (FLINT's own conversion truncates)."""
    mantissa, exponent = (int(part) for part in ball_.mid().man_exp())
    if mantissa.bit_length() + exponent < -1100:  # below half the smallest double, 2**-1074
        return 0.0
    return float(mantissa * Fraction(2) ** exponent)


def nearest_double(compute: Callable[[], arb], start: int = 128) -> float:
    """Return the double nearest to a number that `compute` encloses; near a tie, one of the two nearest."""
    bits = start
    while bits <= MOST_BITS:
        with working_precision(bits):
            value = compute()
            # 70 bits leave room for doubt only within 2**-17 of a tie; 2**-1100 is zero among the doubles.
            if value.rel_accuracy_bits() >= 70 or abs(value) < arb(2) ** -1100:
                return double(value)
        bits *= 2
    raise ArithmeticError("a ball stayed wide at the largest precision")


def decided(compute: Callable[[], arb], bound: Fraction, start: int = 128) -> bool:
    """Return whether a number that `compute` encloses is at least `bound`; the two must differ."""
    bits = start
    while bits <= MOST_BITS:
        with working_precision(bits):
            value, limit = compute(), ball(bound)
            if value >= limit:
                return True
            if value < limit:
                return False
        bits *= 2
    raise ArithmeticError("a comparison stayed undecided at the largest precision")
