"""Weighted sums, ratios and differences of the true figures behind published tables, with intervals."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from holdfast.arrays import Floats
from holdfast.noise.spread import MISSED
from holdfast.release.table.wording import percent

#: Two ends of an interval.
Ends = tuple[float, float]
#: Directions in which the errors of a numerator and its denominator are compared, by so many of them: all round, and
#: between the ends that are then left.
DIRECTIONS, ROUND, BETWEEN = 61, 5_000, 9
#: Ends so near to a whole number are this number, but for rounding.
NEAR = 1e-6


@dataclass(frozen=True)
class Estimate:
    """What published figures tell about a true one: the table's own figure, its error, and an interval.

    `standard_error` is None where the law of the errors depends on the data. The interval covers the true figure at
    least as often as `confidence` says; infinite ends mean that there is no limit on that side. Where bounds moved the
    table, the interval stands around the noisy answers behind it, and `value` can lie outside.
    """

    value: float
    standard_error: float | None
    low: float
    high: float
    confidence: float

    def __str__(self) -> str:
        error = "" if self.standard_error is None else f", standard error {self.standard_error:,.3g}"
        width = self.high - self.low
        places = 1 - math.floor(math.log10(width)) if 0 < width < math.inf else None  # two digits of the width
        value = _shown(self.value, places, round)
        low, high = _shown(self.low, places, math.floor), _shown(self.high, places, math.ceil)
        return f"{value} ({low} to {high} at {percent(self.confidence)}{error})"


def _shown(number: float, places: int | None, rounded: Callable[[float], int]) -> str:
    """A number for people, to so many places: whole ones and large ones in full, and no zero with a sign."""
    if math.isinf(number) or math.isnan(number):
        return "not known" if math.isnan(number) else "no end"
    if number == math.floor(number):
        shown = f"{number:,.0f}"
    elif places is None or places > 15:
        shown = f"{number:,.6g}"
    else:
        places = max(places, 0)
        shown = f"{rounded(number * 10.0**places) / 10.0**places:,.{places}f}"
    return shown.removeprefix("-") if not float(shown.replace(",", "")) else shown


def whole_ends(low: float, high: float) -> Ends:
    """Ends of an interval for a whole number: the whole numbers between them, or around them where there is none."""
    inner = float(math.ceil(low - NEAR)) if math.isfinite(low) else low
    outer = float(math.floor(high + NEAR)) if math.isfinite(high) else high
    return (inner, outer) if inner <= outer else (float(math.floor(low)), float(math.ceil(high)))


def reach(errors: Floats, tail: float) -> float | None:
    """How far an error reaches on either side, 2·`tail` of the time at most: a limit measured on simulated ones.

    None where so few cannot show it. *Law:* as many of `size` independent |e| lie below their quantile as a binomial
    law says, or fewer; the limit is inside it MISSED of the time.
    """
    from scipy import stats  # a second, which whoever only reads a release need not wait

    size = len(errors)
    rank = int(stats.binom.isf(MISSED, size, 1 - 2 * tail)) + 1
    return None if rank > size else float(np.partition(np.abs(errors), rank - 1)[rank - 1])


def chebyshev(tail: float) -> float:
    """How many standard errors an error of any law reaches at most: P(|e| ≥ ks) ≤ 1/k²."""
    return 1 / math.sqrt(2 * tail)


def quotient(above: Ends, below: Ends) -> Ends:
    """Ends of a ratio of two numbers that lie between theirs; infinite where the lower one may be 0."""
    if below[0] < 0 or below[1] <= 0:
        return -math.inf, math.inf
    if below[0] == 0:
        return (above[0] / below[1] if above[0] >= 0 else -math.inf), math.inf
    return above[0] / below[above[0] >= 0], above[1] / below[above[1] < 0]


def fieller(
    numerator: float,
    denominator: float,
    covariance: Floats,
    errors: tuple[Floats, Floats] | None,
    tail: float,
    otherwise: float,
) -> Ends:
    """Ends between which a ratio a/b lies (Fieller); `errors`: simulated ones of both sums.

    Where there are none, every sum reaches `otherwise` standard errors at most.

    At the true ratio r, a − r·b has the errors e − r·f. Let their quantile be at most k(r) standard deviations: the
    ratios with (a − rb)² ≤ k(r)²·var(e − rf) include the true one. All of them lie among those of the largest k, and
    therefore among those of the largest k between the ends of these; where the denominator may be 0 they have no end.
    """
    first = otherwise if errors is None else _farthest((errors[0][:ROUND], errors[1][:ROUND]), tail)
    ends = _between(numerator, denominator, covariance, first)
    if errors is None or math.isinf(ends[0]):
        return ends
    return _between(numerator, denominator, covariance, _farthest(errors, tail, ends, BETWEEN))


def _between(a: float, b: float, covariance: Floats, factor: float) -> Ends:
    """The ratios r with (a − rb)² ≤ factor²·var(e − rf)."""
    k = factor**2
    square, middle, rest = b * b - k * covariance[1, 1], a * b - k * covariance[0, 1], a * a - k * covariance[0, 0]
    if square <= 0:
        return -math.inf, math.inf
    root = math.sqrt(max(middle**2 - square * rest, 0.0))
    return (middle - root) / square, (middle + root) / square


def _farthest(
    errors: tuple[Floats, Floats], tail: float, ratios: Ends = (-math.inf, math.inf), directions: int = DIRECTIONS
) -> float:
    """The largest quantile of |e − rf| in its own standard deviations, over ratios r between these, as a limit."""
    first, second = errors
    scale = [float(part.std()) or 1.0 for part in errors]
    begin, end = (math.atan(ratio * scale[1] / scale[0]) for ratio in ratios)
    largest = 0.0
    for angle in np.linspace(begin, end, directions):
        sums = first / scale[0] * math.cos(angle) - second / scale[1] * math.sin(angle)
        spread = float(np.sqrt((sums**2).mean()))
        if spread > 0:
            found = reach(sums, tail)
            largest = max(largest, chebyshev(tail) if found is None else found / spread)
    return largest


def within(ends: Ends, certain: Ends) -> Ends:
    """Cut an interval to limits that are certain; the nearest allowed point where nothing is left."""
    low, high = (min(max(end, certain[0]), certain[1]) for end in ends)
    return low, high


def weighted(errors: Floats, weights: Floats) -> Floats:
    """Errors of a weighted sum, of errors (size, n)."""
    used = np.flatnonzero(weights)
    return np.asarray(errors[:, used] @ weights[used])
