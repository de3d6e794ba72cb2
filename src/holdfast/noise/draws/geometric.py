"""Exact draws of integer Laplace noise of any scale, from small tables.

With α = e^{−1/λ}, a draw with weights α^|u| is g or −1−g, where the side (minus with probability α/(1+α)) and
g ≥ 0 with weights α^g are independent: the weights are α^g and α·α^g. In binary, g = a·2^h + b, and the parts
are independent because α^g is the product of their weights: a has weights (α^(2^h))^a and b is cut at 2^h.
The part b is cut again into digits of at most 12 bits, again independent. The side and a share one
comparison, each digit has its own; h = 0 for small scales, where one comparison makes the whole draw.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np
import numpy.typing as npt
from flint import arb

from holdfast.arguments import LARGEST
from holdfast.noise.draws.comparison import WORD_BITS, Comparison
from holdfast.noise.draws.zigzag import Zigzag
from holdfast.noise.precision import ball
from holdfast.randomness import Stream

# Up to this scale one table of at most 2·64·ln 2·λ ≈ 89·λ thresholds makes the draw.
_LARGEST_PLAIN = 128
# Above it the top part has a scale of at most this: a table of at most 711 thresholds.
_LARGEST_TOP = 8
# Digits of at most this many bits: tables of 4,096 thresholds.
_WIDEST_DIGIT = 12


@dataclass(frozen=True)
class LaplaceTails:
    """Upper tails Q(a) = α^a/(1+α) of integer Laplace noise (see `Tails`)."""

    scale: Fraction

    def at(self, a: int) -> arb:
        return ball(-a / self.scale).exp() / (1 + ball(-1 / self.scale).exp())

    def run(self) -> Iterator[arb]:
        ratio = ball(-1 / self.scale).exp()
        tail = 1 / (1 + ratio)
        while True:
            yield tail
            tail = tail * ratio


@dataclass(frozen=True)
class SideAndTop:
    """Cumulative probabilities of side and top part a, in the order (0, +), (0, −), (1, +), (1, −), …

    With β = α^(2^h): F_{2a} = 1 − β^a and F_{2a+1} = 1 − β^a·(α + β)/(1 + α).
    """

    scale: Fraction
    shift: int

    @property
    def size(self) -> None:
        return

    def at(self, k: int) -> arb:
        """Enclose the probability of the first k symbols."""
        a, odd = divmod(k, 2)
        exponent = Fraction(a << self.shift) / self.scale
        if not odd:
            return -ball(-exponent).expm1()
        return 1 - ball(-exponent).exp() * self._share_left()

    def _share_left(self) -> arb:
        """Enclose the probability of all but (0, +): 1 − (1 − β)/(1 + α)."""
        ratio = ball(-1 / self.scale).exp()
        return (ratio + ball(-Fraction(1 << self.shift) / self.scale).exp()) / (1 + ratio)

    def run(self) -> Iterator[arb]:
        block, share, left = ball(-Fraction(1 << self.shift) / self.scale).exp(), self._share_left(), arb(1)
        while True:
            yield 1 - left * share
            left = left * block
            yield 1 - left


@dataclass(frozen=True)
class Digit:
    """Cumulative probabilities of the bits `position` … `position + width − 1` of g, as a number.

    With γ = α^(2^position): F_k = (1 − γ^k)/(1 − γ^(2^width)), k ≤ 2^width.
    """

    scale: Fraction
    position: int
    width: int

    @property
    def size(self) -> int:
        return 1 << self.width

    def at(self, k: int) -> arb:
        step = Fraction(1 << self.position) / self.scale
        return ball(-k * step).expm1() / ball(-self.size * step).expm1()

    def run(self) -> Iterator[arb]:
        return (self.at(k) for k in range(1, self.size))


def unfold(symbols: npt.NDArray[np.int64]) -> None:
    """Turn symbols 2a + side into a or −1−a, in place."""
    sides = -(symbols & 1)
    symbols >>= 1
    symbols ^= sides


@dataclass(frozen=True, eq=False)
class LaplaceSampler:
    """The comparisons that together make one draw of integer Laplace noise.

    *Law:* weights e^{−|u|/scale}, exactly. A draw of size 2^62 or more raises OverflowError.
    """

    top: Comparison
    digits: tuple[Comparison, ...]
    widths: tuple[int, ...]

    def draw(self, count: int, stream: Stream) -> npt.NDArray[np.int64]:
        result = self.top.draw(count, stream)
        # Only an undecided comparison (chance 2**-50) leads to values beyond the table; it is checked all the
        # same, before the shift below could lose bits.
        if count and int(result.max()) >> 1 >= LARGEST >> sum(self.widths):
            raise OverflowError("a draw of noise does not fit: it is 2**62 or more in size")
        unfold(result)
        if not self.digits:
            return result
        # The bits below a draw are those of g, or for −1−g their complement: flipped by the sign.
        signs = result >> 63
        for comparison, width in zip(self.digits, self.widths, strict=True):
            digits = comparison.draw(count, stream)
            digits ^= signs & ((1 << width) - 1)
            result <<= width
            result |= digits
        return result


@lru_cache(maxsize=256)
def laplace_sampler(scale: Fraction, bits: int = WORD_BITS) -> LaplaceSampler:
    """Return the sampler of a scale; `bits` below 64 is for tests of the undecided path."""
    if scale <= _LARGEST_PLAIN:
        return LaplaceSampler(Comparison.of(Zigzag(LaplaceTails(scale)), bits), (), ())
    shift = 0
    while scale > _LARGEST_TOP << shift:
        shift += 1
    pieces = -(-shift // _WIDEST_DIGIT)
    widths = [shift * (i + 1) // pieces - shift * i // pieces for i in range(pieces)]
    digits, position = [], shift
    for width in widths:
        position -= width
        digits.append(Comparison.of(Digit(scale, position, width), bits))
    return LaplaceSampler(Comparison.of(SideAndTop(scale, shift), bits), tuple(digits), tuple(widths))
