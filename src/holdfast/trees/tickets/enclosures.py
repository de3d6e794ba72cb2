"""Messages of halves in ball arithmetic, and draws from the laws by which their totals are divided.

A message is known on a window, up to a bound on all that is missing: the sum, over all places, of what lies beyond the
window and of what windows below have cut off. It is scaled by a power of two so that its sum is at most 1; so the
missing parts of two messages add up in the message of both.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import numpy.typing as npt
from flint import arb, arb_poly

from holdfast.noise import IntegerGaussian, IntegerLaplace
from holdfast.noise.draws.decisions import Digits, chosen
from holdfast.noise.precision import ball
from holdfast.trees.tickets.halves import Kind

Law = IntegerLaplace | IntegerGaussian

#: There are 2**32 tickets: a word of 32 bits each.
TICKETS = 1 << 32


def reach(law: Law, bits: int) -> int:
    """How far from 0 a law's weights are above about 2^−bits."""
    fall = bits * math.log(2)
    return math.ceil(fall * law.scale if isinstance(law, IntegerLaplace) else math.sqrt(2 * fall * law.sigma2))


@dataclass(frozen=True, eq=False)
class Message:
    """Values on lo, lo + 1, …, and a bound on the sum of all that is missing."""

    lo: int
    values: list[arb]
    missing: arb

    @property
    def hi(self) -> int:
        """The last place of the window."""
        return self.lo + len(self.values) - 1

    def at(self, s: int) -> arb:
        """A ball around the value at any place."""
        return self.values[s - self.lo] + self._unknown if self.lo <= s <= self.hi else self._unknown

    @cached_property
    def _unknown(self) -> arb:
        return _up_to(self.missing)

    def doubles(self) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
        """Lower and upper bounds on the values without what is missing."""
        middle = np.array([float(value) for value in self.values])
        radius = np.array([float(value.rad()) for value in self.values]) + 2.0**-50 * np.abs(middle) + 1e-300
        return np.maximum(middle - 1.01 * radius, 0.0), middle + 1.01 * radius


def _up_to(most: arb) -> arb:
    """A ball around all numbers from 0 to a bound."""
    return arb(0) if most == 0 else arb(0).union(most)


def _trimmed(lo: int, values: list[arb], missing: arb, bits: int) -> Message:
    """Cut off ends that hardly count, and scale so that the sum of everything is at most 1."""
    faint = arb(2) ** -bits
    first, last = 0, len(values) - 1
    while first < last and not values[first] > faint:
        missing = missing + values[first].abs_upper()
        first += 1
    while last > first and not values[last] > faint:
        missing = missing + values[last].abs_upper()
        last -= 1
    kept = values[first : last + 1]
    total = missing
    for value in kept:
        total = total + value
    scale = arb(2) ** -math.ceil(math.log2(float(total)) + 1e-9)
    return Message(lo + first, [value * scale for value in kept], (missing * scale).upper())


@dataclass(eq=False)
class Enclosures:
    """The messages of all kinds at one precision, made when they are asked for.

    The working precision must be `bits` whenever a method is called.
    """

    kinds: list[Kind]
    laws: list[Law]
    bits: int
    _known: dict[int, Message] = field(default_factory=dict)
    _weights: dict[tuple[int, int], arb] = field(default_factory=dict)
    _totals: dict[tuple[int, int], arb] = field(default_factory=dict)

    def weight(self, law: int, b: int) -> arb:
        """The weight of noise b."""
        place = law, abs(b)
        if place not in self._weights:
            each = self.laws[law]
            exponent = abs(b) / each.scale if isinstance(each, IntegerLaplace) else b * b / (2 * each.sigma2)
            self._weights[place] = (-ball(exponent)).exp()
        return self._weights[place]

    def message(self, k: int) -> Message:
        """The message of a kind; those of its parts are made first, without deep recursion."""
        stack = [k]
        while stack:
            now = stack[-1]
            missing = [part for part in (self.kinds[now].left, self.kinds[now].right) if part >= 0]
            missing = [part for part in missing if part not in self._known]
            stack += missing
            if not missing:
                stack.pop()
                if now not in self._known:
                    self._known[now] = self._made(self.kinds[now])
        return self._known[k]

    def _made(self, kind: Kind) -> Message:
        if kind.left < 0:
            return self._leaf(kind)
        lo, values, missing = self._before(kind)
        weighed = []
        for s, value in enumerate(values, lo):
            own = arb(1) if kind.law < 0 else self.weight(kind.law, s)
            weighed.append(value * own if kind.low <= s <= kind.high else arb(0))
        return _trimmed(lo, weighed, missing, self.bits)

    def _before(self, kind: Kind) -> tuple[int, list[arb], arb]:
        """A message before its own weight and bounds."""
        one = self._known[kind.left]
        if kind.right < 0:
            return one.lo, one.values, one.missing
        other = self._known[kind.right]
        product = arb_poly(one.values) * arb_poly(other.values)
        size = len(one.values) + len(other.values) - 1
        return one.lo + other.lo, [product[i] for i in range(size)], one.missing + other.missing

    def _leaf(self, kind: Kind) -> Message:
        far = reach(self.laws[kind.law], self.bits)
        lo, hi = max(kind.low, -far), min(kind.high, far)
        missing = arb(0)
        for end, bound in ((hi, kind.high), (-lo, -kind.low)):
            if end < bound:  # weights are log-concave: they fall at least as fast as a geometric series
                first, second = (self.weight(kind.law, end + i) for i in (1, 2))
                missing = missing + first / (1 - second / first)
        return _trimmed(lo, [self.weight(kind.law, b) for b in range(lo, hi + 1)], missing, self.bits)

    def part(self, k: int, s: int, tickets: dict[int, int], digits: Digits) -> int:
        """Draw the left part of a total s that no ticket has decided.

        Part a has p_a·2^32 − n_a of the remaining tickets, if p_a is its probability and n_a are the tickets that it
        has had. The order of places does not depend on the precision.
        """
        kind = self.kinds[k]
        one, other = self.message(kind.left), None if kind.top else self.message(kind.right)
        low, high, missing = one.lo, one.hi, one.missing
        if other is not None:
            low, high, missing = max(low, s - other.hi), min(high, s - other.lo), missing + other.missing

        def weight(a: int) -> arb:
            return one.at(a) if other is None else one.at(a) * other.at(s - a)

        if (k, s) not in self._totals:
            self._totals[k, s] = sum((weight(a) for a in range(low, high + 1)), _up_to(missing))
        total = self._totals[k, s]
        had = sum(tickets.values())
        return chosen(
            lambda a: TICKETS * weight(a) - tickets.get(a, 0) * total,
            (TICKETS - had) * total,
            _outwards(s // 2, low, high),
            digits,
        )


def _outwards(start: int, low: int, high: int) -> Iterator[int]:
    """Places from a start to both sides, as far as a window reaches on either side."""
    yield start
    for d in range(1, max(high - start, start - low) + 1):
        yield start + d
        yield start - d
