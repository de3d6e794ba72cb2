"""Exact draws of integer Gaussian noise of any variance.

Small variances: one comparison with a table. Large ones: rejection from integer Laplace proposals Y of scale
t (Canonne, Kamath, Steinke 2020, Algorithm 3): accept with probability e^{−x}, x = (|Y| − σ²/t)²/(2σ²), since
e^{−|y|/t}·e^{−x} is e^{−y²/2σ²} times a constant, for any t; t just above σ accepts about 76 % of them.

The coin of probability e^{−x} compares `bits` digits of a uniform U with a double that is within 2^−40 of
e^{−x}, relatively; where that does not decide, balls and more digits do. Why 2^−40 holds for x < 44, with
u = 2^−53 and every operation rounded to nearest (a fused one is rounded less):

- |z| = |y − c|/(σ√2) < 6.7 and c = σ²/t < σ, so y < 10.5σ. Rounding y, c, y − c, 1/(σ√2) and the product
  moves z by at most (10.5/√2 + 1/√2 + 3·6.7)·u·1.01 < 30u < 2^−48;
- so x = z² moves by at most 2·6.7·2^−48 + 44u + … < 2^−44, and e^{−x} by that share;
- x = i/64 + r exactly; the table holds e^{−i/64} within u; the polynomial for e^{−r}, r < 1/64, leaves out
  r^7/5040 < 2^−54 and its roundings and the products move it by less than 8u.

Together below 2^−43. For x ≥ 44 only e^{−x} < 2^−63 is used.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from holdfast.arrays import compiled
from holdfast.noise.draws.comparison import WORD_BITS, Comparison, below
from holdfast.noise.draws.geometric import LaplaceSampler, laplace_sampler, unfold
from holdfast.noise.draws.theta import GaussianTails
from holdfast.noise.draws.zigzag import Zigzag
from holdfast.noise.precision import ball, double, working_precision
from holdfast.randomness import Stream

#: Up to σ = 512 one table of at most 2·9.4·σ thresholds makes the draw.
LARGEST_TABLE_SIGMA2 = 512**2
#: Digits of U in the first comparison with e^{−x}: whole numbers of 53 bits are exact as doubles.
COIN_BITS = 53
_STEPS = 64  # the table of e^{−x} has 64 entries per unit
_LIMIT = 44  # and ends here, where e^{−x} < 2^−63
# One more than 1/acceptance, √(2e/π) = 1.315…: most batches are enough.
_PROPOSALS_PER_DRAW = 1.33


@lru_cache(maxsize=1)
def _exponentials() -> npt.NDArray[np.float64]:
    """Return e^{−i/64}, i = 0 … 64·44, each the nearest double."""
    with working_precision(128):
        return np.array([double(ball(Fraction(-i, _STEPS)).exp()) for i in range(_STEPS * _LIMIT + 1)])


@compiled
def judge(
    proposals: npt.NDArray[np.int64],
    words: npt.NDArray[np.uint64],
    bits: int,
    centre: float,
    inverse: float,
    exponentials: npt.NDArray[np.float64],
    verdicts: npt.NDArray[np.int8],
) -> int:
    """Write 1 (U < e^{−x}), 0 (U > e^{−x}) or −1 (not known) for each proposal; return how many are −1."""
    undecided = 0
    shift = np.uint64(64 - bits)
    unit = 2.0**-bits
    for i in range(proposals.size):
        value = np.float64(words[i] >> shift)
        z = (np.float64(abs(proposals[i])) - centre) * inverse
        x = z * z
        if x < 44.0:
            index = np.int64(x * 64.0)
            r = x - index * 0.015625
            series = 1.0 - r * (1.0 - r / 2 * (1.0 - r / 3 * (1.0 - r / 4 * (1.0 - r / 5 * (1.0 - r / 6)))))
            estimate = exponentials[index] * series
            low, high = estimate * (1.0 - 2.0**-40), estimate * (1.0 + 2.0**-40)
        else:
            low, high = 0.0, 2.0**-63
        if (value + 1.0) * unit <= low:
            verdicts[i] = 1
        elif value * unit >= high:
            verdicts[i] = 0
        else:
            verdicts[i] = -1
            undecided += 1
    return undecided


def coin(exponent: Fraction, value: int, bits: int, stream: Stream) -> bool:
    """Return whether U < e^{−exponent}, given first digits of U."""
    return below(lambda: ball(-exponent).exp(), value, bits, stream)


@dataclass(frozen=True, eq=False)
class TableSampler:
    """Integer Gaussian noise by one comparison. *Law:* weights e^{−u²/2σ²}, exactly."""

    comparison: Comparison

    def draw(self, count: int, stream: Stream) -> npt.NDArray[np.int64]:
        result = self.comparison.draw(count, stream)
        unfold(result)
        return result


@dataclass(frozen=True, eq=False)
class RejectionSampler:
    """Integer Gaussian noise by rejection. *Law:* weights e^{−u²/2σ²}, exactly."""

    sigma2: Fraction
    scale: int
    proposals: LaplaceSampler
    bits: int
    centre: float
    inverse: float

    @classmethod
    def of(cls, sigma2: Fraction, word_bits: int = WORD_BITS, coin_bits: int = COIN_BITS) -> RejectionSampler:
        """Prepare the doubles of the fast comparison; fewer bits are for tests of the undecided path."""
        scale = math.isqrt(int(sigma2)) + 1
        with working_precision(128):
            inverse = double(1 / (2 * ball(sigma2)).sqrt())
        proposals = laplace_sampler(Fraction(scale), word_bits)
        return cls(sigma2, scale, proposals, coin_bits, float(sigma2 / scale), inverse)

    def verdicts(
        self, proposals: npt.NDArray[np.int64], words: npt.NDArray[np.uint64]
    ) -> tuple[npt.NDArray[np.int8], int]:
        """Return accept (1), reject (0) or not known (−1) for each proposal, and how many are not known."""
        verdicts = np.empty(proposals.size, dtype=np.int8)
        constants = (self.bits, self.centre, self.inverse, _exponentials())
        return verdicts, judge(proposals, words, *constants, verdicts)

    def exponent(self, proposal: int) -> Fraction:
        """Return x exactly: the proposal is accepted with probability e^{−x}."""
        return (abs(proposal) - self.sigma2 / self.scale) ** 2 / (2 * self.sigma2)

    def draw(self, count: int, stream: Stream) -> npt.NDArray[np.int64]:
        """Draw `count` independent whole numbers: the first accepted proposals, in order."""
        result = np.empty(count, dtype=np.int64)
        done = 0
        while done < count:
            batch = int((count - done) * _PROPOSALS_PER_DRAW) + 16
            proposals = self.proposals.draw(batch, stream)
            words = stream.words(batch)
            verdicts, undecided = self.verdicts(proposals, words)
            if undecided:
                for i in np.flatnonzero(verdicts < 0):
                    value = int(words[i]) >> (64 - self.bits)
                    verdicts[i] = coin(self.exponent(int(proposals[i])), value, self.bits, stream)
            accepted = proposals[verdicts == 1][: count - done]
            result[done : done + accepted.size] = accepted
            done += accepted.size
        return result


@lru_cache(maxsize=256)
def gaussian_sampler(sigma2: Fraction, bits: int = WORD_BITS) -> TableSampler | RejectionSampler:
    """Return the sampler of a variance parameter; `bits` below 64 is for tests of the undecided path."""
    if sigma2 <= LARGEST_TABLE_SIGMA2:
        return TableSampler(Comparison.of(Zigzag(GaussianTails(sigma2)), bits))
    return RejectionSampler.of(sigma2, bits, min(bits, COIN_BITS))
