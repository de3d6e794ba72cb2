"""Laplace noise, continuous and integer."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import ClassVar

import numpy as np
import numpy.typing as npt
from flint import arb

from holdfast.arguments import probability, reals, whole, whole_numbers
from holdfast.arrays import Floats, Ints
from holdfast.noise.draws.decisions import integer_scale, real_scale
from holdfast.noise.draws.geometric import LaplaceTails, laplace_sampler
from holdfast.noise.draws.zigzag import cdf, quantile
from holdfast.noise.precision import ball, nearest_double
from holdfast.randomness import Stream


@dataclass(frozen=True)
class Laplace:
    """Continuous Laplace noise of scale λ.

    *Law:* density e^{−|u|/λ}/(2λ). Draws are doubles, made from 63 random bits and a sign by inversion: the
    law holds in real arithmetic only, and low bits of doubles can betray the value they were added to
    (Mironov 2012). For counts use `IntegerLaplace`.
    """

    scale: Fraction
    integer: ClassVar[bool] = False
    kind: ClassVar[str] = "laplace"

    def __post_init__(self) -> None:
        object.__setattr__(self, "scale", real_scale("scale", self.scale))

    @property
    def variance(self) -> float:
        return float(2 * self.scale**2)

    def times(self, factor: Fraction) -> Laplace:
        return Laplace(self.scale * factor)

    def log_density(self, u: npt.ArrayLike) -> Floats:
        scale = float(self.scale)
        return np.asarray(-np.abs(reals("u", u)) / scale - math.log(2 * scale))

    def cdf(self, u: npt.ArrayLike) -> Floats:
        values = reals("u", u)
        half_tail = np.exp(-np.abs(values) / float(self.scale)) / 2
        return np.where(values < 0, half_tail, 1 - half_tail)

    def quantile(self, p: float | Fraction) -> float:
        level = probability("p", p)
        # The exact tail is made a double, not the level: near 1 doubles would lose it.
        size = 0.0 - float(self.scale) * _log(2 * min(level, 1 - level))
        return -size if level < Fraction(1, 2) else size

    def draw(self, count: int, stream: Stream) -> Floats:
        words = stream.words(whole("count", count, at_least=0))
        tails = ((words >> np.uint64(1)).astype(np.float64) + 0.5) * 2.0**-63
        sizes = np.log(tails) * -float(self.scale)
        return np.where((words & np.uint64(1)).astype(np.bool_), -sizes, sizes)


def laplace_numbers(size: int, width: int, stream: Stream) -> Floats:
    """Independent Laplace numbers of scale 1, (size, width)."""
    return Laplace(Fraction(1)).draw(size * width, stream).reshape(size, width)


def _log(number: Fraction) -> float:
    """Return the natural logarithm of a positive rational, also where it is no double."""
    return nearest_double(lambda: ball(number).log()) if number != 1 else 0.0


@dataclass(frozen=True)
class IntegerLaplace:
    """Integer Laplace (two-sided geometric) noise of scale λ, drawn exactly.

    *Law:* P(U = u) = (1−α)/(1+α)·α^|u|, α = e^{−1/λ}, λ a rational number; no rounding error reaches the law
    (docs/theory/exact-draws.md). A draw of size 2^62 or more cannot be stored and raises OverflowError: for
    the largest scale, 2^50, that has a probability below e^{−4000}.
    """

    scale: Fraction
    integer: ClassVar[bool] = True
    kind: ClassVar[str] = "laplace"

    def __post_init__(self) -> None:
        object.__setattr__(self, "scale", integer_scale("scale", self.scale))

    @property
    def variance(self) -> float:
        """The variance 2α/(1−α)², the nearest double."""
        return _constants(self.scale)[1]

    def times(self, factor: Fraction) -> IntegerLaplace:
        return IntegerLaplace(self.scale * factor)

    def log_density(self, u: npt.ArrayLike) -> Floats:
        """Return the logarithm of the probability of each whole number u, to a few last places."""
        # Both terms are negative: their rounding errors are not magnified.
        sizes = np.abs(whole_numbers("u", u)) / float(self.scale)
        return np.asarray(_constants(self.scale)[0] - sizes)

    def cdf(self, u: npt.ArrayLike) -> Floats:
        return cdf(LaplaceTails(self.scale), u)

    def quantile(self, p: float | Fraction) -> int:
        """Return the smallest u with P(U ≤ u) ≥ p, decided with proof."""
        return quantile(LaplaceTails(self.scale), p, Laplace(self.scale).quantile(p))

    def draw(self, count: int, stream: Stream) -> Ints:
        return laplace_sampler(self.scale).draw(whole("count", count, at_least=0), stream)


@lru_cache(maxsize=1024)
def _constants(scale: Fraction) -> tuple[float, float]:
    """Return log((1−α)/(1+α)) and 2α/(1−α)², nearest doubles.

    The first is log(tanh(1/2λ)) = log1p(−2α/(1+α)), the second 1/(2·sinh²(1/2λ)).
    """

    def log_mode() -> arb:
        ratio = ball(-1 / scale).exp()
        return (-2 * ratio / (1 + ratio)).log1p()

    def spread() -> arb:
        return 1 / (2 * ball(1 / (2 * scale)).sinh() ** 2)

    return nearest_double(log_mode), nearest_double(spread)
