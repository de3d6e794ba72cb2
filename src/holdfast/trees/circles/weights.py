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

from holdfast.arguments import Refused
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


@dataclass(frozen=True, eq=False)
class TableWeight:
    """Given values from one place on, and a geometric series with a given ratio beyond each end; ratio 0: nothing."""

    first: int
    values: tuple[Fraction, ...] | Floats
    below: Fraction = Fraction(0)
    above: Fraction = Fraction(0)

    def __post_init__(self) -> None:
        if not len(self.values) or self._array.min() < 0 or min(self.values[0], self.values[-1]) == 0:
            raise Refused("values must hold numbers of at least 0, the first and the last above 0")
        if not (0 <= self.below < 1 and 0 <= self.above < 1):
            raise Refused("below and above must be ratios of at least 0 and below 1")

    @property
    def last(self) -> int:
        """The last place with a value of its own."""
        return self.first + len(self.values) - 1

    @cached_property
    def _array(self) -> Array:
        return np.asarray(self.values)

    @cached_property
    def _logs(self) -> Floats:
        with np.errstate(divide="ignore"):
            return np.log((self._array / self._array.max()).astype(np.float64))

    @cached_property
    def _falls(self) -> tuple[float, float]:
        return tuple(float(-np.log(float(r))) if r else np.inf for r in (self.below, self.above))  # type: ignore[return-value]

    @property
    def poles(self) -> tuple[float, float]:
        below, above = self._falls
        return -below, above

    @property
    def sizes(self) -> Floats:
        spread = max(len(self.values) - 1, 1) / 4
        return np.asarray(1.35 ** np.arange(-8, 16) / spread)

    def log(self, t: Array) -> Floats:
        places = np.asarray(t, dtype=np.float64)
        near = np.minimum(np.maximum(places, self.first), self.last)
        result = np.array(self._logs[(near - self.first).astype(np.int64)])
        for beyond, fall in ((near - places, self._falls[0]), (places - near, self._falls[1])):
            far = beyond > 0
            if far.any():
                result[far] -= beyond[far] * fall
        return result

    def ball(self, t: int) -> arb:
        at = ball(Fraction(self.values[min(max(t, self.first), self.last) - self.first]) / Fraction(self._array.max()))
        if t < self.first:
            return at * ball(self.below) ** (self.first - t)
        return at * ball(self.above) ** (t - self.last) if t > self.last else at

    @cached_property
    def _steps(self) -> tuple[Floats, Floats]:
        """The largest falls downwards from each place and before, and upwards from each place and after."""
        with np.errstate(invalid="ignore"):
            up = np.nan_to_num(np.diff(self._logs), nan=-np.inf, posinf=np.inf, neginf=-np.inf)
        down = np.maximum.accumulate(np.concatenate([[-self._falls[0]], -up]))
        return down, np.maximum.accumulate(np.concatenate([up, [-self._falls[1]]])[::-1])[::-1]

    def steps(self, t: Ints) -> tuple[Floats, Floats]:
        place = np.minimum(np.maximum(np.asarray(t) - self.first, 0), len(self.values) - 1)
        return self._steps[0][place], self._steps[1][place]

    def whole_within(self, low: Ints, high: Ints) -> bool:
        """Whether there are no values but its own, and no bound cuts them."""
        ends = not (self.below or self.above)
        return ends and bool((low <= self.first).all() and (high >= self.last).all())

    @cached_property
    def means(self) -> tuple[Floats, Floats]:
        """Means under some tilts, and these."""
        tilts = np.concatenate([-self.sizes[::-1], [0.0], self.sizes])
        tilts = tilts[(tilts > self.poles[0] * 0.999) & (tilts < self.poles[1] * 0.999)]
        places = np.arange(self.first, self.last + 1.0)
        logs = self._logs + tilts[:, None] * (places - places.mean())
        laws = np.exp(logs - logs.max(axis=1, keepdims=True))
        return laws @ places / laws.sum(axis=1), tilts

    def slope(self, mean: Floats) -> Floats:
        return np.interp(mean, *self.means)

    def window(self, tilt: float, low: Ints, high: Ints, need: float) -> tuple[Floats, Floats]:
        ends = []
        for fall, place, sign in ((self._falls[0], self.first, -1), (self._falls[1], self.last, 1)):
            rate = fall - sign * tilt
            ends.append(place + sign * (need / rate if rate > 0 else 2.0**62))
        first, last = np.maximum(low, -(2.0**62)), np.minimum(high, 2.0**62)
        below, above = np.floor(ends[0]), np.ceil(ends[1])
        return np.minimum(np.maximum(below, first), last), np.minimum(np.maximum(above, first), last)
