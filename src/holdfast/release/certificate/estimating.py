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
#: How far the end of a ratio's interval may lie beyond what is proved, as a share of the interval; and rounding.
FINE, ROUNDING = 1e-3, 1e-12
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


def shown_rank(size: int, tail: float) -> int | None:
    """How many of `size` simulated |e| lie within a limit that they keep but for 2·`tail` of the time.

    None where so few cannot show it. *Law:* as many of `size` independent |e| lie below their quantile as a binomial
    law says, or fewer; the limit is inside it MISSED of the time.
    """
    from scipy import stats  # a second, which whoever only reads a release need not wait

    rank = int(stats.binom.isf(MISSED, size, 1 - 2 * tail)) + 1
    return None if rank > size else rank


def reach(errors: Floats, tail: float) -> float | None:
    """How far an error reaches on either side, 2·`tail` of the time at most: a limit measured on simulated ones."""
    rank = shown_rank(len(errors), tail)
    return None if rank is None else _smallest(np.abs(errors), rank)


def _smallest(sizes: Floats, rank: int) -> float:
    return float(np.partition(sizes, rank - 1)[rank - 1])


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


def fieller(a: float, b: float, covariance: Floats, factor: float) -> Ends:
    """Ends between which a ratio lies whose sums, and all sums of these, reach `factor` standard errors (Fieller).

    At the true ratio r, a − r·b has the errors e − r·f: these are the ratios with (a − rb)² ≤ factor²·var(e − rf).
    """
    k = factor**2
    square, middle, rest = b * b - k * covariance[1, 1], a * b - k * covariance[0, 1], a * a - k * covariance[0, 0]
    if square <= 0:
        return -math.inf, math.inf
    root = math.sqrt(max(middle**2 - square * rest, 0.0))
    return (middle - root) / square, (middle + root) / square


def studied_ratio(a: float, b: float, errors: tuple[Floats, Floats], tail: float) -> Ends | None:
    """Ends between which a ratio lies, by simulated errors of both sums; None where so few cannot show them.

    The ratios r with |a − rb| ≤ q(r), q(r) the `reach` of e − rf, include the true one as often as its own q says. A
    ratio is a direction u = (cos, sin) of (a, b). On the way from u to v errors are at most the larger of both, one by
    one, so the reach of these is above all q between, and a way on which |a·cos − b·sin| is larger has none of these
    ratios. Ways are halved from b = 0 on until that is so; the first that is short and left is the end.
    """
    scale = [float(part.std()) or 1.0 for part in errors]
    drawn = np.column_stack([part / each for part, each in zip(errors, scale, strict=True)])
    values = np.array([a / scale[0], b / scale[1]])
    near = ROUNDING * float(np.abs(values).sum())

    def sums(angle: float) -> tuple[float, Floats]:
        turned = np.array([math.cos(angle), -math.sin(angle)])
        return abs(float(values @ turned)), np.abs(drawn @ turned)

    rank = shown_rank(len(drawn), tail)
    if rank is None:
        return None
    if abs(values[1]) <= _smallest(np.abs(drawn[:, 1]), rank) + near:
        return -math.inf, math.inf
    middle = math.atan(values[0] / values[1])

    def end(last: float) -> float:
        ways = [(middle, last)]
        while ways:
            first, far = ways.pop()
            (here, some), (there, others) = sums(first), sums(far)
            if min(here, there) > _smallest(np.maximum(some, others), rank) + near:
                continue
            if abs(far - first) <= FINE * abs(far - middle) or abs(far - middle) <= ROUNDING:
                return math.tan(far) * scale[0] / scale[1]
            ways += [(first, (first + far) / 2), ((first + far) / 2, far)]
        raise AssertionError("the way at the ratio itself is never left out")

    return end(-math.pi / 2), end(math.pi / 2)


def within(ends: Ends, certain: Ends) -> Ends:
    """Cut an interval to limits that are certain; the nearest allowed point where nothing is left."""
    low, high = (min(max(end, certain[0]), certain[1]) for end in ends)
    return low, high


def weighted(errors: Floats, weights: Floats) -> Floats:
    """Errors of a weighted sum, of errors (size, n)."""
    used = np.flatnonzero(weights)
    return np.asarray(errors[:, used] @ weights[used])
