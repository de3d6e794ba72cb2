"""Exact draws from a law on 0, 1, 2, … by comparing random bits with its cumulative probabilities.

A uniform number U is known by its first `bits` binary digits, a whole number v: U lies in
[v/2^bits, (v+1)/2^bits). The symbol of U is the number of cumulative probabilities F_1 ≤ F_2 ≤ … that are at
most U. With thresholds T_k = floor(2^bits·F_k), computed with proof:

- v < T_k: U < F_k for certain;  v > T_k: U > F_k for certain;
- v = T_k: F_k lies in the interval of U; nothing is known, and more digits of U are drawn.

Where 2^bits·F_k may be a whole number (two equal weights: F = 1/2), no precision tells its floor. Then both candidates,
T_k − 1 and T_k, count as undecided.

No rounding error reaches the law (proof: docs/theory/exact-draws.md).
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import accumulate
from typing import Protocol

import numpy as np
import numpy.typing as npt
from flint import arb, ctx, fmpz

from holdfast.arrays import Ints, Owner, Words, compiled, kept
from holdfast.noise.precision import MOST_BITS, ball, working_precision
from holdfast.randomness import Stream

#: Digits of U in the first comparison. Undecided draws are then rarer than one in 2**50 for tables of 2**14.
WORD_BITS = 64
#: So many words and more are worth compiled code.
FEW = 1 << 20
# Digits drawn when a comparison is undecided.
_MORE_BITS = 64
# Precision beyond the digits compared: the ball of F is then far narrower than the interval of U.
_GUARD_BITS = 128
# Most leading digits with which a lookup starts: 2**12 entries of 4 bytes stay in the first cache.
_GUIDE_BITS = 12


class Cumulative(Protocol):
    """The cumulative probabilities of a law on 0, 1, 2, …: F_k = P(symbol < k)."""

    @property
    def size(self) -> int | None:
        """Number of symbols, None for infinitely many (then every F_k is below 1)."""

    def at(self, k: int) -> arb:
        """Enclose F_k at the working precision, 0 ≤ k (and k ≤ size)."""

    def run(self) -> Iterator[arb]:
        """Enclose F_1, F_2, … in turn at the working precision, without F_size."""


def below(enclose: Callable[[], arb], value: int, bits: int, stream: Stream) -> bool:
    """Return whether U is below a probability that `enclose` encloses, given first digits of U; more are drawn."""
    while bits <= MOST_BITS:
        with working_precision(bits + _MORE_BITS):
            scaled = enclose() * arb(2) ** bits
            if scaled >= arb(fmpz(value + 1)):
                return True
            if scaled <= arb(fmpz(value)):
                return False
        value = value << _MORE_BITS | stream.bits(_MORE_BITS)
        bits += _MORE_BITS
    raise ArithmeticError("a draw stayed undecided after a million bits")


@compiled
def _locate(words, shift, thresholds, lowest, guide, guide_shift, symbols):  # type: ignore[no-untyped-def]
    """Write the symbol k of each word, or −1−k where threshold k does not decide it; return how many.

    `symbols` may be the memory of `words`: each entry is read before it is written.
    """
    undecided = 0
    last = thresholds.size
    for i in range(words.size):
        value = words[i] >> shift
        bucket = np.int64(value >> guide_shift)
        low = np.int64(guide[bucket])
        high = np.int64(guide[bucket + 1])
        while low < high:
            middle = (low + high) >> 1
            if thresholds[middle] < value:
                low = middle + 1
            else:
                high = middle
        if low < last and lowest[low] <= value:
            symbols[i] = -1 - low
            undecided += 1
        else:
            symbols[i] = low
    return undecided


def _searched(values: Words, thresholds: Words, lowest: Words, symbols: Ints) -> bool:
    """What `_locate` writes, from the first digits; return whether some are undecided."""
    found = np.searchsorted(thresholds, values)
    undecided = np.append(lowest, np.iinfo(np.uint64).max)[found] <= values
    undecided &= found < thresholds.size
    symbols[:] = np.where(undecided, -1 - found, found)
    return bool(undecided.any())


@dataclass(frozen=True, eq=False)
class Comparison:
    """A law on 0, 1, 2, … ready to be drawn from.

    *Law:* exactly that of the cumulative probabilities, if the stream's bits are independent and uniform.
    """

    cumulative: Cumulative
    bits: int
    thresholds: npt.NDArray[np.uint64]
    lowest: npt.NDArray[np.uint64]
    guide: npt.NDArray[np.int32]
    guide_shift: int

    @classmethod
    def of(cls, cumulative: Cumulative, bits: int = WORD_BITS) -> Comparison:
        """Compute thresholds with proof; `bits` below 64 is for tests of the undecided path."""
        found = _thresholds(cumulative, bits)
        thresholds = np.array([high for _, high in found], dtype=np.uint64)
        lowest = np.array([low for low, _ in found], dtype=np.uint64)
        guide_bits = min(bits, _GUIDE_BITS, max(1, thresholds.size.bit_length() + 1))
        guide_shift = bits - guide_bits
        starts = np.arange(1 << guide_bits, dtype=np.uint64) << np.uint64(guide_shift)
        guide = np.append(np.searchsorted(thresholds, starts), thresholds.size).astype(np.int32)
        thresholds.setflags(write=False)
        guide.setflags(write=False)
        lowest.setflags(write=False)
        return cls(cumulative, bits, thresholds, lowest, guide, guide_shift)

    @cached_property
    def _settled(self) -> bool:
        """Whether every floor is known, so that an undecided word is its threshold."""
        return np.array_equal(self.thresholds, self.lowest)

    def draw(self, count: int, stream: Stream) -> npt.NDArray[np.int64]:
        words = stream.words(count)
        # The symbols take the place of the words, unless a word may be needed again to decide it.
        symbols = words.view(np.int64) if self._settled else np.empty(count, dtype=np.int64)
        shift, guide_shift = np.uint64(64 - self.bits), np.uint64(self.guide_shift)
        known = (self.thresholds, self.lowest)
        if count < FEW:
            some = _searched(words >> shift, *known, symbols)
        else:
            some = _locate(words, shift, *known, self.guide, guide_shift, symbols)
        if some:
            for i in np.flatnonzero(symbols < 0):
                value = int(self.thresholds[-1 - symbols[i]]) if self._settled else int(words[i] >> shift)
                symbols[i] = self.decide(value, stream)
        return symbols

    def decide(self, value: int, stream: Stream) -> int:
        """Return the symbol of U, given its first digits, drawing more of them while they do not decide."""
        bits = self.bits
        while bits <= MOST_BITS:
            symbol = self.symbol(value, bits)
            if symbol is not None:
                return symbol
            value = value << _MORE_BITS | stream.bits(_MORE_BITS)
            bits += _MORE_BITS
        raise ArithmeticError("a draw stayed undecided after a million bits")

    def symbol(self, value: int, bits: int) -> int | None:
        """Return the symbol that all U in [value, value + 1)/2^bits share, or None if not known to exist."""
        with working_precision(bits + _GUARD_BITS):
            unit = arb(2) ** bits

            def side(k: int) -> int:
                scaled = self.cumulative.at(k) * unit
                if scaled <= arb(fmpz(value)):
                    return -1
                return 1 if scaled >= arb(fmpz(value + 1)) else 0

            # Always F_low ≤ U, and U < F_high once the first loop has ended.
            low, high = 0, self.cumulative.size
            if high is None:
                high = self.thresholds.size + 1
                while (found := side(high)) < 0:
                    low, high = high, 2 * high
                if found == 0:
                    return None
            while high - low > 1:
                middle = (low + high) // 2
                found = side(middle)
                if found == 0:
                    return None
                low, high = (middle, high) if found < 0 else (low, middle)
            return low


def _thresholds(cumulative: Cumulative, bits: int) -> list[tuple[int, int]]:
    """Return floor(2^bits·F_k) for k = 1, 2, … up to the first that is 2^bits − 1, or for all symbols.

    Each as the two candidates between which it lies, nearly always equal; they differ by 1 where 2^bits·F_k may be
    whole. Later cumulative probabilities of an infinite law lie in the same last interval and have the same floor.
    """
    precision = bits + _GUARD_BITS
    top = (1 << bits) - 1
    while precision <= MOST_BITS:
        result: list[tuple[int, int]] = []
        with working_precision(precision):
            unit = arb(2) ** bits
            for probability in cumulative.run():
                scaled = probability * unit
                # F_k < 1 even where its ball cannot tell: the floor is never above the last word.
                low = high = fmpz(top) if scaled >= arb(fmpz(top)) else scaled.floor().unique_fmpz()
                if low is None:
                    low, high = (end.floor().unique_fmpz() for end in (scaled.lower(), scaled.upper()))
                if low is None or high is None or high > low + 1:
                    break
                result.append((int(low), min(int(high), top)))
                if result[-1][0] == top:
                    return result
            else:
                return result
        precision *= 2
    raise ArithmeticError("a threshold stayed undecided at the largest precision")


class Weighed(Owner):
    """A law on finitely many classes, by the weights of all of them."""

    @abstractmethod
    def weights(self) -> Iterable[arb]:
        """Enclose the weight of each class at the working precision."""

    @property
    def size(self) -> int | None:
        return len(self._sums(int(ctx.prec)))

    def total(self) -> arb:
        return self._sums(int(ctx.prec))[-1]

    def at(self, k: int) -> arb:
        sums = self._sums(int(ctx.prec))
        return arb(0) if k == 0 else arb(1) if k == len(sums) else sums[k - 1] / sums[-1]

    def run(self) -> Iterator[arb]:
        """Enclose the cumulative probabilities in turn, without the last."""
        sums = self._sums(int(ctx.prec))
        return (partial / sums[-1] for partial in sums[:-1])

    @kept
    def _sums(self, _bits: int) -> list[arb]:
        return list(accumulate(self.weights()))


@dataclass(frozen=True, eq=False)
class FiniteLaw(Weighed):
    """Classes of `counts` things each, all things of a class with the weight e^{−exponent}; *law:* on the classes."""

    exponents: Sequence[Fraction]
    counts: Sequence[int]

    def weights(self) -> Iterable[arb]:
        least = min(self.exponents)
        return (n * (-ball(exponent - least)).exp() for exponent, n in zip(self.exponents, self.counts, strict=True))
