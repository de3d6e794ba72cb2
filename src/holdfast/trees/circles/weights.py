"""Weights of single outputs: what a law of noise is to the messages.

A weight is a positive function on the whole numbers, up to a factor: doubles of its logarithm, balls of its values, and
how fast it falls beyond a place. Under a tilt h it is multiplied by e^{ht}.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Protocol

import numpy as np
from flint import arb

from holdfast.arrays import Array, Floats, Ints
from holdfast.noise.precision import ball


class Weight(Protocol):
    """A weight on the whole numbers."""

    @property
    def poles(self) -> tuple[float, float]:
        """The tilts between which the weight can be summed up, without bounds."""

    @property
    def sizes(self) -> Floats:
        """Tilts, without signs, at which a table of means follows its bends."""

    def log(self, t: Array) -> Floats:
        """The logarithm at every t, at most 0; its error is at most 4 units in the last place of itself and of 1."""

    def ball(self, t: int) -> arb:
        """The weight at t, enclosed."""

    def steps(self, t: Ints) -> tuple[Floats, Floats]:
        """The largest log w(s − 1) − log w(s), s ≤ t, and the largest log w(s + 1) − log w(s), s ≥ t."""

    def slope(self, mean: Floats) -> Floats:
        """The tilt under which the mean is about this."""

    def window(self, tilt: float, low: Ints, high: Ints, need: float) -> tuple[Floats, Floats]:
        """Where, within bounds, the tilted weight is not below e^−need of its largest value; it falls beyond."""


#: Multiplications up to which libraries of linear algebra leave a product of matrices to one thread.
ONE_THREAD = 1 << 18


def product(rows: Array, columns: Array) -> Array:
    """rows @ columns, by so few rows that one thread does it: several would spend a processor on waiting."""
    step = max(1, ONE_THREAD // max(1, columns.size))
    if len(rows) <= step:
        return np.asarray(rows @ columns)
    result = np.empty((len(rows), columns.shape[1]), dtype=np.result_type(rows, columns))
    for a in range(0, len(rows), step):
        np.matmul(rows[a : a + step], columns, out=result[a : a + step])
    return result


def moments(rows: Floats) -> tuple[Floats, Floats, Floats]:
    """Sums of rows, their means, from the middle place on, and their variances."""
    places = np.arange(rows.shape[1]) - float(rows.shape[1] // 2)
    mass, mean, square = product(rows, np.stack([np.ones_like(places), places, places**2], axis=1)).T
    mean = mean / mass
    return mass, mean, square / mass - mean**2


#: Laws up to which places are looked for law by law.
FEW_LAWS = 8


def by_law(weights: Sequence[Weight], law: Ints) -> Iterator[tuple[Weight, Ints | slice]]:
    """Every weight that some places have, and these places; −1 stands for none."""
    used = np.flatnonzero(np.bincount(law + 1)) - 1
    if used.size == 1:
        parts: list[Ints | slice] = [slice(None)]
    elif used.size <= FEW_LAWS:
        parts = [np.flatnonzero(law == k) for k in used]
    else:
        order = np.argsort(law, kind="stable")
        parts = list(np.split(order, np.flatnonzero(np.diff(law[order])) + 1))
    for k, part in zip(used.tolist(), parts, strict=True):
        if k >= 0:
            yield weights[k], part


@dataclass(frozen=True)
class LaplaceWeight:
    """e^{−rate·|t|}."""

    rate: Fraction

    @cached_property
    def _rate(self) -> float:
        return float(self.rate)

    @property
    def poles(self) -> tuple[float, float]:
        return -self._rate, self._rate

    @property
    def sizes(self) -> Floats:
        near = 2.0 ** -np.array([1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 13, 15])
        inside, outside = 1 - near, 1 + near
        return self._rate * np.concatenate([[0.15, 0.3], inside, outside, [2, 3, 4, 6, 8, 12, 20, 40]])

    def log(self, t: Array) -> Floats:
        return np.abs(t) * -self._rate

    def ball(self, t: int) -> arb:
        return (ball(-self.rate * abs(t))).exp()

    def steps(self, t: Ints) -> tuple[Floats, Floats]:
        return np.where(t <= 0, -self._rate, self._rate), np.where(t >= 0, -self._rate, self._rate)

    def slope(self, mean: Floats) -> Floats:
        scaled = self._rate * mean
        return np.asarray(self._rate * scaled / (1 + np.hypot(1, scaled)))

    def window(self, tilt: float, low: Ints, high: Ints, need: float) -> tuple[Floats, Floats]:
        first, last = np.maximum(low, -(2.0**62)), np.minimum(high, 2.0**62)
        up = _fall(first, last, tilt, self._rate, need)
        return -_fall(-last, -first, -tilt, self._rate, need), up


def _fall(first: Floats, last: Floats, tilt: float, rate: float, need: float) -> Floats:
    """The last place, upwards, of e^{−rate·|t| + tilt·t} on first … last that is not below e^−need of the largest."""
    if tilt >= rate:
        return last
    from_zero = np.maximum(first, 0) + need / (rate - tilt)
    if tilt < -rate:
        from_zero = np.minimum(from_zero, np.maximum(first + need / (-rate - tilt), first))
    return np.minimum(np.ceil(from_zero), last)


@dataclass(frozen=True)
class GaussianWeight:
    """e^{−t²/2σ²}."""

    sigma2: Fraction

    @cached_property
    def _variance(self) -> float:
        return float(self.sigma2)

    @property
    def poles(self) -> tuple[float, float]:
        return -np.inf, np.inf

    @property
    def sizes(self) -> Floats:
        return np.asarray(1.35 ** np.arange(-8, 16) / self._variance**0.5)

    def log(self, t: Array) -> Floats:
        return np.square(t, dtype=np.float64) * (-0.5 / self._variance)

    def ball(self, t: int) -> arb:
        return (ball(-Fraction(t * t) / (2 * self.sigma2))).exp()

    def steps(self, t: Ints) -> tuple[Floats, Floats]:
        return (2 * t - 1) / (2 * self._variance), -(2 * t + 1) / (2 * self._variance)

    def slope(self, mean: Floats) -> Floats:
        return np.asarray(mean / self._variance)

    def window(self, tilt: float, low: Ints, high: Ints, need: float) -> tuple[Floats, Floats]:
        centre = tilt * self._variance
        first, last = np.maximum(low, -(2.0**62)), np.minimum(high, 2.0**62)
        above = np.ceil(centre + np.sqrt(np.maximum(first - centre, 0) ** 2 + 2 * need * self._variance))
        below = np.floor(centre - np.sqrt(np.maximum(centre - last, 0) ** 2 + 2 * need * self._variance))
        return np.clip(below, first, last), np.clip(above, first, last)
