"""A message: a non-negative function on the whole numbers, up to a factor, enclosed by balls.

Inside a window every value is known up to the radius of its ball; on each side of the window the sum of all values is
bounded (exactly 0: there are none). All operations keep the enclosure, so a draw that is decided from messages is
decided rightly; a wider window or more precision only makes more draws decidable.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

from flint import arb, arb_poly, ctx

# A window is trimmed where what is left out sums to less than 2^-(precision + 16) of the whole.
_GUARD = 16
# Messages are scaled when their largest value leaves 2^±64, so that they stay within the range of doubles.
_SMALL_POWER = 64


def up_to(bound: arb) -> arb:
    """Return a ball around [0, bound]."""
    if bound == 0:
        return arb(0)
    half = bound.upper() / 2
    return arb(half.mid(), half.upper())


@dataclass(frozen=True, eq=False)
class Message:
    """Values on low, low+1, …; `below` and `above` bound the sums of all values beyond the window on either side."""

    low: int
    values: tuple[arb, ...]
    below: arb
    above: arb

    @classmethod
    def at_zero(cls) -> Message:
        """All weight on 0: the neutral element of convolution, and the message of an exact node."""
        return cls(0, (arb(1),), arb(0), arb(0))

    @property
    def high(self) -> int:
        """The last place of the window."""
        return self.low + len(self.values) - 1

    @cached_property
    def inside(self) -> arb:
        """The sum of the values in the window."""
        return _sum(self.values)

    @property
    def outside(self) -> arb:
        """An upper bound on the sum of the values beyond the window."""
        return self.below + self.above

    @property
    def total(self) -> arb:
        """The sum of all values."""
        return self.inside + up_to(self.outside)

    @cached_property
    def largest(self) -> arb:
        """An upper bound on every value, inside and outside."""
        bound = self.outside
        for value in self.values:
            bound = bound.max(value)
        return bound.upper()

    def at(self, place: int) -> arb:
        """The value at one place."""
        if place < self.low:
            return up_to(self.below)
        if place > self.high:
            return up_to(self.above)
        return self.values[place - self.low]

    def weighted(self, weight: Callable[[int], arb] | None) -> Message:
        """Multiply by a weight that is at most 1 everywhere and falls away from 0; None: weight 1."""
        if weight is None:
            return self
        values = tuple(value * weight(self.low + i) for i, value in enumerate(self.values))
        below = self.below * weight(min(self.low, 0))
        above = self.above * weight(max(self.high, 0))
        return Message(self.low, values, below, above).trimmed().scaled()

    def cut(self, low: int | None, high: int | None) -> Message:
        """Set the values below `low` and above `high` to zero (None: no bound)."""
        first = self.low if low is None else max(self.low, low)
        last = self.high if high is None else min(self.high, high)
        values = self.values[first - self.low : max(last, first - 1) - self.low + 1]
        below = arb(0) if low is not None and low >= self.low else self.below
        above = arb(0) if high is not None and high <= self.high else self.above
        if not values:  # the window misses the bounds: nothing is known but the sums
            return Message(first, (up_to(self.outside),), below, above)
        return Message(first, values, below, above)

    def trimmed(self) -> Message:
        """Shorten the window where almost nothing is left out."""
        limit = self.inside.lower() * arb(2) ** -(int(ctx.prec) + _GUARD)
        start, stop = 0, len(self.values)
        left, right = arb(0), arb(0)
        while stop - start > 1 and left + self.values[start] < limit:
            left = left + self.values[start]
            start += 1
        while stop - start > 1 and right + self.values[stop - 1] < limit:
            right = right + self.values[stop - 1]
            stop -= 1
        if stop - start == len(self.values):
            return self
        below = self.below + left if start else self.below
        above = self.above + right if stop < len(self.values) else self.above
        return Message(self.low + start, self.values[start:stop], below, above)

    def scaled(self) -> Message:
        """Divide by a power of two near the largest value, exactly; only ratios of values matter."""
        mantissa, exponent = (int(part) for part in self.largest.mid().man_exp())
        power = mantissa.bit_length() + exponent
        if abs(power) < _SMALL_POWER:
            return self
        factor = arb(2) ** -power
        values = tuple(value * factor for value in self.values)
        return Message(self.low, values, self.below * factor, self.above * factor)

    def __mul__(self, other: Message) -> Message:
        """Convolve: Σ_u a(u)·b(s−u). What involves a place beyond a window becomes uncertainty."""
        product = arb_poly(list(self.values)) * arb_poly(list(other.values))
        values = [product[i] for i in range(len(self.values) + len(other.values) - 1)]
        missed = self.outside * other.largest + other.outside * self.largest
        if not missed == 0:  # noqa: SIM201 - a ball that may be 0 is neither equal to 0 nor certainly different
            slack = up_to(missed)
            values = [value + slack for value in values]
        beyond = self.outside * other.total + self.inside * other.outside
        # Nothing lies below the new window if nothing lies below the old ones, and likewise above.
        below = arb(0) if self.below == 0 and other.below == 0 else beyond
        above = arb(0) if self.above == 0 and other.above == 0 else beyond
        return Message(self.low + other.low, tuple(values), below, above).trimmed().scaled()

    def power(self, count: int) -> Message:
        """The convolution of `count` copies."""
        result, base = Message.at_zero(), self
        while count:
            if count & 1:
                result = result * base
            count >>= 1
            if count:
                base = base * base
        return result


def _sum(values: tuple[arb, ...]) -> arb:
    total = arb(0)
    for value in values:
        total = total + value
    return total
