"""A weight that is no law of noise: any values, with geometric series beyond them."""

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
from flint import arb

from holdfast.arguments import Refused
from holdfast.arrays import Array, Floats, Ints
from holdfast.noise.precision import ball


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
