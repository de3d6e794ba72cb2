"""Gaussian noise, continuous and integer."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import ClassVar

import numpy as np
import numpy.typing as npt
from scipy.special import ndtr, ndtri_exp

from holdfast.arguments import probability, reals, whole, whole_numbers
from holdfast.arrays import Floats, Ints
from holdfast.noise.draws.decisions import integer_scale, real_scale
from holdfast.noise.draws.gaussian_draws import gaussian_sampler
from holdfast.noise.draws.theta import GaussianTails, total, variance
from holdfast.noise.draws.zigzag import cdf, quantile
from holdfast.noise.precision import ball, nearest_double
from holdfast.randomness import Stream


def _sigma(sigma2: Fraction) -> float:
    return math.sqrt(float(sigma2))


@dataclass(frozen=True)
class Gaussian:
    """Continuous Gaussian noise of variance σ².

    *Law:* density e^{−u²/2σ²}/√(2πσ²). Draws are doubles: the law holds in real arithmetic only, and low bits
    of doubles can betray the value they were added to (Mironov 2012). For counts use `IntegerGaussian`.
    """

    sigma2: Fraction
    integer: ClassVar[bool] = False
    kind: ClassVar[str] = "gaussian"

    def __post_init__(self) -> None:
        object.__setattr__(self, "sigma2", real_scale("sigma2", self.sigma2))

    @property
    def variance(self) -> float:
        return float(self.sigma2)

    def times(self, factor: Fraction) -> Gaussian:
        return Gaussian(self.sigma2 * factor**2)

    def log_density(self, u: npt.ArrayLike) -> Floats:
        s = float(self.sigma2)
        return np.asarray(-(reals("u", u) ** 2) / (2 * s) - math.log(2 * math.pi * s) / 2)

    def cdf(self, u: npt.ArrayLike) -> Floats:
        return np.asarray(ndtr(reals("u", u) / _sigma(self.sigma2)))

    def quantile(self, p: float | Fraction) -> float:
        level = probability("p", p)
        # From the logarithm of the exact smaller tail: near 0 and 1 doubles would lose it.
        tail = min(level, 1 - level)
        size = -float(ndtri_exp(nearest_double(lambda: ball(tail).log()))) * _sigma(self.sigma2)
        if level == Fraction(1, 2):
            return 0.0
        return -size if level < Fraction(1, 2) else size

    def draw(self, count: int, stream: Stream) -> Floats:
        result = stream.normals(whole("count", count, at_least=0))
        result *= _sigma(self.sigma2)
        return result


@dataclass(frozen=True)
class IntegerGaussian:
    """Integer (discrete) Gaussian noise with parameter σ², drawn exactly.

    *Law:* P(U = u) = e^{−u²/2σ²}/Z on the whole numbers, σ² a rational number; no rounding error reaches the
    law (docs/theory/exact-draws.md). Its variance is slightly below σ². A draw of size 2^62 or more cannot be
    stored and raises OverflowError: for the largest σ, 2^50, that has a probability below e^{−8,000,000}.
    """

    sigma2: Fraction
    integer: ClassVar[bool] = True
    kind: ClassVar[str] = "gaussian"

    def __post_init__(self) -> None:
        object.__setattr__(self, "sigma2", integer_scale("sigma2", self.sigma2, power=2))

    @property
    def variance(self) -> float:
        """The true variance, the nearest double; it is below σ²."""
        return _constants(self.sigma2)[1]

    def times(self, factor: Fraction) -> IntegerGaussian:
        return IntegerGaussian(self.sigma2 * factor**2)

    def log_density(self, u: npt.ArrayLike) -> Floats:
        """Return the logarithm of the probability of each whole number u, to a few last places."""
        # Both terms are negative: their rounding errors are not magnified.
        squares = whole_numbers("u", u).astype(np.float64) ** 2
        return np.asarray(_constants(self.sigma2)[0] - squares / float(2 * self.sigma2))

    def cdf(self, u: npt.ArrayLike) -> Floats:
        return cdf(GaussianTails(self.sigma2), u)

    def quantile(self, p: float | Fraction) -> int:
        """Return the smallest u with P(U ≤ u) ≥ p, decided with proof."""
        return quantile(GaussianTails(self.sigma2), p, Gaussian(self.sigma2).quantile(p))

    def draw(self, count: int, stream: Stream) -> Ints:
        return gaussian_sampler(self.sigma2).draw(whole("count", count, at_least=0), stream)


@lru_cache(maxsize=1024)
def _constants(sigma2: Fraction) -> tuple[float, float]:
    """Return −log Z and the variance, nearest doubles."""
    return nearest_double(lambda: -total(sigma2).log()), nearest_double(lambda: variance(sigma2))
