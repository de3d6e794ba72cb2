"""Weighted sums, ratios and differences of the true figures behind published tables, with intervals."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from holdfast.arguments import Refused
from holdfast.arrays import Array, Floats
from holdfast.noise.spread import MISSED, simulated_quantiles
from holdfast.release.table.wording import percent

#: Directions in which the errors of a numerator and its denominator are compared.
DIRECTIONS = 61
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
        error = "" if self.standard_error is None else f", standard error {self.standard_error:,.4g}"
        value, low, high = (_shown(number) for number in (self.value, self.low, self.high))
        return f"{value} ({low} to {high} at {percent(self.confidence)}{error})"


def divided(found: Estimate, by: float) -> Estimate:
    """Return an estimate in units of `by`."""
    error = None if found.standard_error is None else found.standard_error / by
    return Estimate(found.value / by, error, found.low / by, found.high / by, found.confidence)


def _shown(number: float) -> str:
    """A number for people: whole ones and large ones in full, and no zero with a sign."""
    if math.isinf(number) or math.isnan(number):
        return "not known" if math.isnan(number) else "no end"
    shown = f"{number:,.0f}" if abs(number) >= 1e5 or number == math.floor(number) else f"{number:,.6g}"
    return shown.removeprefix("-") if not float(shown.replace(",", "")) else shown


def whole_ends(low: float, high: float) -> tuple[float, float]:
    """Ends of an interval for a whole number: the whole numbers between them, or around them where there is none."""
    inner = float(math.ceil(low - NEAR)) if math.isfinite(low) else low
    outer = float(math.floor(high + NEAR)) if math.isfinite(high) else high
    return (inner, outer) if inner <= outer else (float(math.floor(low)), float(math.ceil(high)))


def reach(errors: Array, standard_error: float, tail: float) -> float:
    """How far an error reaches on either side, `tail` of the time at most: measured on simulated ones, a limit."""
    found = simulated_quantiles(lambda: errors[:, None])
    try:
        return max(abs(float(found(tail)[0])), abs(float(found(1 - tail)[0])))
    except Refused:  # too rare for so few simulated errors
        return chebyshev(standard_error, tail)


def chebyshev(standard_error: float, tail: float) -> float:
    """A limit that holds for every law: P(|e| ≥ ks) ≤ 1/k²."""
    return standard_error / math.sqrt(2 * tail)


def fieller(
    numerator: float, denominator: float, errors: tuple[Array, Array], tail: float
) -> tuple[float, float, Callable[[float], float]]:
    """Ends between which a ratio lies (Fieller), and the standard deviation of numerator − r·denominator by r.

    At the true ratio r, a − r·b has the errors e − r·f. Their quantile is at most k times their standard deviation, k
    the largest such factor in any direction, so the ratios with (a − rb)² ≤ k²·var(e − rf) include the true one; where
    the denominator may be 0 they have no end.
    """
    first, second = errors
    covariance = np.cov(first, second)
    vee, veff, vef = covariance[0, 0], covariance[1, 1], covariance[0, 1]

    def deviation(ratio: float) -> float:
        return math.sqrt(max(vee - 2 * ratio * vef + ratio**2 * veff, 0.0))

    factor = _farthest(first, second, tail)
    a, b, k = numerator, denominator, factor**2
    square, middle, rest = b * b - k * veff, a * b - k * vef, a * a - k * vee
    if square <= 0 or middle**2 < square * rest:
        if square <= 0:
            return -math.inf, math.inf, deviation
        return a / b, a / b, deviation
    root = math.sqrt(middle**2 - square * rest)
    return (middle - root) / square, (middle + root) / square, deviation


def _farthest(first: Array, second: Array, tail: float) -> float:
    """The largest quantile of |e·cos − f·sin| in its own standard deviations, over directions, as a limit."""
    size = len(first)
    from scipy import stats  # a second, which whoever only reads a release need not wait

    rank = int(stats.binom.isf(MISSED, size, 1 - 2 * tail)) + 1
    if rank > size:
        return 1 / math.sqrt(2 * tail)
    scale = [float(part.std()) or 1.0 for part in (first, second)]
    largest = 0.0
    for angle in np.linspace(0, math.pi, DIRECTIONS):
        sums = np.abs(first / scale[0] * math.cos(angle) - second / scale[1] * math.sin(angle))
        spread = float(np.sqrt((sums**2).mean()))
        if spread > 0:
            largest = max(largest, float(np.partition(sums, rank - 1)[rank - 1]) / spread)
    return largest


def within(low: float, high: float, least: float, most: float) -> tuple[float, float]:
    """Cut an interval to limits that are certain; the nearest allowed point where nothing is left."""
    return min(max(low, least), most), max(min(high, most), least)


def weighted(errors: Floats, weights: Floats) -> Floats:
    """Errors of a weighted sum, of errors (size, n)."""
    used = np.flatnonzero(weights)
    return np.asarray(errors[:, used] @ weights[used])
