"""Exact draws of integer Gaussian noise around a centre that is not whole, and the mass of such a law.

*Law:* P(z) ∝ e^{−(z−c)²/2σ²} on the whole numbers, c a multiple of 2^−bits. Rejection from integer Laplace proposals y
around the nearest whole number (after Canonne, Kamath, Steinke 2020, Algorithm 3): with f the rest of the centre,
|f| ≤ 1/2, and s the sign of y, y is accepted with probability e^{−x},
x = (|y| − s·f − σ²/t)²/2σ² + (|f| − s·f)/t ≥ 0, since e^{−|y|/t}·e^{−x} is e^{−(y−f)²/2σ²} times a constant.
For σ < 1, t is 1, and the least x that a whole y has is subtracted, that of the |y| = 0 or 1 nearest to |f| + σ².

The mass θ(c) = Σ_z e^{−(z−c)²/2σ²} is largest at whole c (docs/theory/lattice-gaussian.md). Doubles decide what their
error bounds allow, within 2^−40 of e^{−x} for x < 44 as in gaussian_draws.py (t is a power of two above σ, so that the
second part of x is exact); balls and more random digits decide the rest.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
from flint import arb, ctx

from holdfast.arrays import Bools, Floats, Ints
from holdfast.noise.draws.gaussian_draws import COIN_BITS, _exponentials, coin
from holdfast.noise.draws.geometric import laplace_sampler
from holdfast.noise.draws.theta import total
from holdfast.noise.precision import ball, double, working_precision
from holdfast.randomness import Stream

#: How far, as a part of it, an estimate of e^{−x} may be from it.
ACCURACY = 2.0**-40
#: From this variance on, masses at different centres differ by less than 2^−26.
WIDE = 1
# Whole numbers beyond this distance carry less than 2^−60 of the mass of a variance below 1.
_REACH = 9


def powers(x: Floats) -> tuple[Floats, Floats]:
    """Bounds of e^{−x}, x ≥ 0 known to within 2^−43: a table times a short series, or 0 and 2^−63 from 44 on."""
    known = x < 44.0
    index = np.where(known, x * 64.0, 0.0).astype(np.int64)
    r = np.where(known, x - index * 0.015625, 0.0)
    series = 1.0 - r * (1.0 - r / 2 * (1.0 - r / 3 * (1.0 - r / 4 * (1.0 - r / 5 * (1.0 - r / 6)))))
    estimate = _exponentials()[index] * series
    low, high = estimate * (1.0 - ACCURACY), estimate * (1.0 + ACCURACY)
    return np.where(known, low, 0.0), np.where(known, high, 2.0**-63)


@dataclass(frozen=True)
class ShiftedGaussian:
    """Integer Gaussian laws of one parameter σ² around centres that are multiples of 2^−bits, bits ≤ 40."""

    sigma2: Fraction
    bits: int

    @cached_property
    def _scale(self) -> int:
        """The scale t of the proposals: the least power of two above σ."""
        return 1 << (math.isqrt(int(self.sigma2))).bit_length()

    @cached_property
    def _constants(self) -> tuple[float, float]:
        """σ²/t and 1/(σ√2), nearest doubles."""
        with working_precision(128):
            return float(self.sigma2 / self._scale), double(1 / (2 * ball(self.sigma2)).sqrt())

    def parts(self, centres: Ints) -> tuple[Ints, Ints]:
        """The whole number nearest to each centre, and the rest of the centre in steps of 2^−bits."""
        half = np.int64(1 << (self.bits - 1))
        nearest = (centres + half) >> self.bits
        return nearest, centres - (nearest << self.bits)

    def draw(self, centres: Ints, stream: Stream) -> Ints:
        """Draw one whole number around each centre, exactly."""
        nearest, rest = self.parts(centres)
        result = np.empty(centres.size, dtype=np.int64)
        left = np.arange(centres.size)
        while left.size:
            proposals = laplace_sampler(Fraction(self._scale)).draw(left.size, stream)
            accepted = self._accepted(proposals, rest[left], stream)
            result[left[accepted]] = proposals[accepted]
            left = left[~accepted]
        return result + nearest

    def _accepted(self, proposals: Ints, rest: Ints, stream: Stream) -> Bools:
        values = (stream.words(proposals.size) >> np.uint64(64 - COIN_BITS)).astype(np.int64)
        low, high = powers(self._exponents(proposals, rest))
        uniform = values * 2.0**-COIN_BITS
        verdicts = uniform + 2.0**-COIN_BITS <= low
        for i in np.flatnonzero(~verdicts & (uniform < high)):
            verdicts[i] = coin(self._exponent(int(proposals[i]), int(rest[i])), int(values[i]), COIN_BITS, stream)
        return verdicts

    def _exponents(self, proposals: Ints, rest: Ints) -> Floats:
        """x in doubles, within 2^−43 where it is below 44."""
        f = rest * 2.0**-self.bits
        size, turned = np.abs(proposals), np.where(proposals < 0, -f, f)
        beside = np.abs(f) - turned
        if self.sigma2 >= 1:
            centre, inverse = self._constants
            return np.asarray(np.square((size - turned - centre) * inverse) + beside / self._scale)
        # A difference of two squares, by its factors: the first is exact, and x is small where the second is.
        best = np.abs(rest) >= self._turn
        sums = size + best - turned - np.abs(f) - 2 * float(self.sigma2)
        return np.asarray((size - best + beside) * sums / (2 * float(self.sigma2)) + beside)

    @cached_property
    def _turn(self) -> int:
        """The least size of the rest, in steps, from which 1 is not farther from |f| + σ² than 0."""
        return math.ceil((Fraction(1, 2) - self.sigma2) * (1 << self.bits))

    def _exponent(self, proposal: int, rest: int) -> Fraction:
        f = Fraction(rest, 1 << self.bits)
        turned = -f if proposal < 0 else f
        centre = self.sigma2 / self._scale
        x = (abs(proposal) - turned - centre) ** 2 / (2 * self.sigma2) + (abs(f) - turned) / self._scale
        if self.sigma2 >= 1:
            return x
        return x - ((abs(rest) >= self._turn) - abs(f) - centre) ** 2 / (2 * self.sigma2)

    # --- masses ------------------------------------------------------------------------------------------------

    def ratio(self, rest: int) -> arb:
        """Enclose θ(c)/θ(0) at the working precision, c = rest·2^−bits with |c| ≤ 1/2.

        Directly for σ² < 1, where the terms beyond K fall by more than half each; by Poisson summation otherwise:
        θ(c) is √(2πσ²)·(1 + 2·Σ_j q^{j²} cos 2πjc) with q = e^{−2π²σ²}.
        """
        c = Fraction(rest, 1 << self.bits)
        if self.sigma2 < 1:
            last = 3 + math.isqrt(int(Fraction(14, 10) * self.sigma2 * ctx.prec) + 1)
            mass = sum((ball(-((m - c) ** 2) / (2 * self.sigma2)).exp() for m in range(-last, last + 1)), arb(0))
            rest_of_it = 4 * ball(-((last + Fraction(1, 2)) ** 2) / (2 * self.sigma2)).exp()
            return (mass + arb(0).union(rest_of_it)) / total(self.sigma2)
        exponent = -2 * arb.pi() ** 2 * ball(self.sigma2)
        last = 1 + math.isqrt(int(ctx.prec / (28 * self.sigma2)))
        mass, whole = arb(1), arb(1)
        for j in range(1, last + 1):
            term = 2 * (exponent * j**2).exp()
            mass, whole = mass + term * (2 * j * ball(c)).cos_pi(), whole + term
        left_out = 4 * (exponent * (last + 1) ** 2).exp()
        return (mass + (-left_out).union(left_out)) / (whole + arb(0).union(left_out))

    @cached_property
    def least_ratio(self) -> float:
        """A double at or below θ(c)/θ(0) for every c: that of c = 1/2, where the mass is least."""
        return self._lower(1 << (self.bits - 1))

    def _lower(self, rest: int) -> float:
        with working_precision(128):
            return max(0.0, float(np.nextafter(double(self.ratio(rest).lower()), 0.0)))

    @cached_property
    def room(self) -> float:
        """About √(2πσ²)/θ(0): a part of the mass that every centre has, at least."""
        with working_precision(128):
            return double((2 * arb.pi() * ball(self.sigma2)).sqrt() / total(self.sigma2))

    @cached_property
    def mass(self) -> float:
        with working_precision(128):
            return double(total(self.sigma2))

    def ratios(self, rest: Ints) -> tuple[Floats, Floats]:
        """Bounds of θ(c)/θ(0) in doubles."""
        if self.sigma2 >= WIDE:
            return np.full(rest.shape, self.least_ratio), np.ones(rest.shape)
        f = rest * 2.0**-self.bits
        inverse = float(1 / (2 * self.sigma2))
        low, high = np.zeros(rest.shape), np.zeros(rest.shape)
        for m in range(-_REACH, _REACH + 1):
            least, most = powers(np.square(m - f) * inverse)
            low, high = low + least, high + most
        # Sums, the mass at 0, the quotient and what lies beyond the reach move the bounds by far less than 2^−44.
        return low / self.mass * (1 - 2.0**-44), np.minimum((high / self.mass) * (1 + 2.0**-44), 1.0)
