"""Intervals for sums of the true figures behind published tables, and for ratios and differences of two of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import special

from holdfast.arguments import Refused, probability
from holdfast.arrays import Floats
from holdfast.noise.inversion import Sums
from holdfast.noise.spread import MISSED
from holdfast.release.storage.tables import in_unit
from holdfast.release.table.wording import percent

if TYPE_CHECKING:
    from holdfast.mechanism.published.error_bars import ErrorBars

#: Sums that are ranked at once: each is compared with every other.
MOST_RANKED = 40
#: Two ends of an interval.
Ends = tuple[float, float]
#: How far the end of a ratio's interval may lie beyond what is proved, as a share of the interval; and rounding. Ways
#: are halved, so that the share is compared with whole numbers: none of them is 1000.5, whatever is rounded how.
FINE, ROUNDING = 1 / 1000.5, 1e-12
#: Ends so near to a whole number are this number, but for rounding.
NEAR = 1e-6


@dataclass(frozen=True)
class Estimate:
    """What published figures tell about a true one: the table's own figure, its error, and an interval.

    `standard_error` is None where the law of the errors depends on the data. The interval covers the true figure at
    least as often as `confidence` says; infinite ends mean that there is no limit on that side. Where bounds moved the
    table, the interval stands around the noisy answers behind it, and `value` can lie outside: `centre` is what it
    would be without them, unbiased. Of one figure believe the interval; values are for what must add up.
    """

    value: float
    standard_error: float | None
    low: float
    high: float
    confidence: float
    centre: float | None = field(default=None, compare=False)

    def times(self, unit: Fraction) -> Estimate:
        """The same in the unit of which one step is so much."""
        names = ("value", "standard_error", "low", "high", "centre")
        known = ((name, getattr(self, name)) for name in names)
        scaled: dict[str, Any] = {name: None if each is None else in_unit(each, unit) for name, each in known}
        return replace(self, **scaled)

    def __str__(self) -> str:
        error = "" if self.standard_error is None else f", standard error {self.standard_error:,.3g}"
        width, most = self.high - self.low, max(abs(self.low), abs(self.high))
        places = None
        if 0 < width < math.inf:  # two digits of the width, and seven in all
            places = min(1 - math.floor(math.log10(width)), 6 - math.floor(math.log10(most)))
        value = _shown(self.value, places, round)
        low, high = _shown(self.low, places, math.floor), _shown(self.high, places, math.ceil)
        moved = ""
        if self.centre is not None and max(width / 4, NEAR * abs(self.value)) < abs(self.value - self.centre):
            without = _shown(self.centre, places, round)
            moved = f"; bounds moved the value from {without}: believe the interval, keep the value for sums"
        return f"{value} ({low} to {high} at {percent(self.confidence)}{error}{moved})"


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


def places(values: Sequence[float], apart: Callable[[int, int, float], Ends], confidence: float) -> list[Estimate]:
    """The places of sums with these values; `apart` gives the ends of a difference of two of them."""
    n, missed = len(values), 1 - float(probability("confidence", confidence))
    if not 2 <= n <= MOST_RANKED:
        raise Refused(f"ranks are told of 2 to {MOST_RANKED} sums, found {n}")
    low, high = [1] * n, [n] * n
    pairs = list(combinations(range(n), 2))
    for i, j in pairs:
        ends = apart(i, j, 1 - missed / len(pairs))
        if ends[0] > 0 or ends[1] < 0:
            above, below = (i, j) if ends[0] > 0 else (j, i)
            high[above] -= 1
            low[below] += 1
    own = [1 + sum(other > value for other in values) for value in values]
    return [Estimate(*each, confidence) for each in zip(own, [None] * n, low, high, strict=True)]


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


#: The part of what may be missed that is spent on turning from one direction of a ratio to the next.
RARE = 1e-3
#: The part of the widest noise below which an error is rounding.
NOTHING = 1e-9
#: Figures of a sum whose own intervals are added up where its errors cannot be simulated.
FEW = 1_000


def is_normal(bars: ErrorBars) -> bool:
    return bars.spread is not None and bars.spread.model is not None and bars.spread.model.kind == "normal"


def farthest(bars: ErrorBars, tail: float) -> float:
    """How many standard errors any weighted sum of a table reaches at most."""
    if is_normal(bars):
        return -float(special.ndtri(tail))
    reach = None if bars.spread is None else bars.spread.reach
    return chebyshev(tail) if reach is None else min(chebyshev(tail), reach(tail))


@dataclass(frozen=True, eq=False)
class Summed:
    """A sum of true figures with these weights: what is published of it, what is certain, and what errors it has.

    `study` gives simulated errors of all figures, None where there are too many. `own`: of a published figure, its own
    interval.
    """

    value: float
    weights: Floats
    bars: ErrorBars
    certain: Ends
    study: Callable[[], Floats | None]
    own: Callable[[], Ends] | None = None

    @property
    def centre(self) -> float:
        return float(self.weights @ self.bars.centre)

    @property
    def unbiased(self) -> float | None:
        """The centre, where errors around it have a known law."""
        return None if self.bars.spread is None else self.centre

    @cached_property
    def error(self) -> float | None:
        """The standard error; None where the law of the errors depends on the data."""
        spread = self.bars.spread
        return None if spread is None else math.sqrt(max(spread.variance_of(self.weights), 0.0))

    @property
    def sure(self) -> bool:
        """Whether its interval does not hang on the noise: it is exact, or no law of errors is known."""
        return self.bars.spread is None or self.certain[0] == self.certain[1]

    @property
    def told(self) -> bool:
        """Whether it is sure, or other figures tell it: all that is left of its error is rounding."""
        spread = self.bars.spread
        if self.sure or spread is None or self.error is None:
            return self.sure
        most = float(spread.standard_errors.max(initial=0.0))
        if spread.model is not None:
            squares = spread.model.law.variances
            most = spread.model.unit * math.sqrt(squares[np.isfinite(squares)].max(initial=0.0))
        return bool(self.error <= NOTHING * most * np.abs(self.weights).max(initial=0.0))

    def errors(self) -> Floats | None:
        study = self.study()
        return None if study is None else weighted(study, self.weights)

    def rare(self, tail: float) -> float:
        """How far the error reaches at most where simulated ones cannot show it."""
        assert self.bars.spread is not None
        used, error = np.flatnonzero(self.weights), self.error or 0.0
        limit = error * farthest(self.bars, tail)
        if (sums := _sums(self)) is not None:
            limit = min(limit, sums.proved_reach(tail))
        if used.size > FEW:
            return limit
        try:
            share = tail / max(used.size, 1)
            each = np.maximum(*(np.abs(self.bars.spread.quantiles(p)[used]) for p in (share, 1 - share)))
        except Refused:
            return limit
        return min(limit, float(np.abs(self.weights[used]) @ each))

    def interval(self, tail: float) -> Ends:
        """Ends between which the sum lies, 2·`tail` of the time apart; the certain limits where no law is known."""
        if self.own is not None:
            return self.own()
        if self.sure:
            return self.certain
        return _around(self.centre, self.far(tail), self.certain, self.weights)

    def far(self, tail: float) -> float:
        """How far the error reaches: from its law, measured on simulated ones, or at most."""
        found = from_law(tail, self)
        if found is None and (errors := self.errors()) is not None:
            found = reach(errors, tail)
        if found is None:
            found = from_law(tail, self, wide=True)
        return self.rare(tail) if found is None else found


def from_law(tail: float, *independent: Summed, wide: bool = False) -> float | None:
    """How far the errors of independent sums reach together, from their law; None where that is not known.

    `wide`: also where a little more than that is.
    """
    if all(is_normal(each.bars) for each in independent):
        return math.hypot(*(each.error or 0.0 for each in independent)) * farthest(independent[0].bars, tail)
    sums = _sums(*independent)
    if sums is None:
        return None
    found = None if wide else sums.least_reach(tail)
    return sums.wide_reach(tail) if found is None and (wide or all(map(_cheap, independent))) else found


def _cheap(sum_: Summed) -> bool:
    """Whether little is added to its law where all its weights count: as little as simulated errors do."""
    spread = sum_.bars.spread
    return spread is not None and spread.model is not None and spread.model.kind == "moved"


def _sums(*independent: Summed) -> Sums | None:
    parts, square = [], 0.0
    for each in independent:
        spread, error = each.bars.spread, each.error
        if spread is None or spread.characteristic is None or error is None:
            return None
        parts.append((spread.characteristic, each.weights))
        square += error**2
    return Sums(parts, math.sqrt(square))


def difference(here: Summed, there: Summed, tail: float) -> tuple[float | None, Ends]:
    """Standard error and ends of how much larger a sum is than another with independent errors.

    Where one is sure their intervals are subtracted: that covers as often as the other's does.
    """
    first, second = here.error, there.error
    error = None if first is None or second is None else math.hypot(first, second)
    if error is None or here.sure or there.sure:
        (low, high), (least, most) = here.interval(tail), there.interval(tail)
        return error, (low - most, high - least)
    far = from_law(tail, here, there)
    if far is None and (drawn := here.errors()) is not None and (more := there.errors()) is not None:
        size = min(len(drawn), len(more))
        far = reach(drawn[:size] - more[:size], tail)
    if far is None:
        far = from_law(tail, here, there, wide=True)
    if far is None:
        far = min(error * chebyshev(tail), here.rare(tail / 2) + there.rare(tail / 2))
    certain = here.certain[0] - there.certain[1], here.certain[1] - there.certain[0]
    return error, _around(here.centre - there.centre, far, certain, here.weights)


def ratio(above: Summed, below: Summed, tail: float) -> tuple[float | None, Ends]:
    """Standard error and ends of the ratio of two sums of one table."""
    joint, a, b = _covariance(above, below), above.centre, below.centre
    error = None
    if joint is not None and b:
        r = a / b
        square, most = joint[0, 0] - 2 * r * joint[0, 1] + r * r * joint[1, 1], joint[0, 0] + r * r * joint[1, 1]
        error = math.sqrt(square) / abs(b) if square > ROUNDING * most else 0.0
    if joint is None or above.told or below.told:
        return error, quotient(above.interval(tail), below.interval(tail))
    if b and (above.weights * b == below.weights * a).all():  # one sum is a multiple of the other, noise and all
        return error, (a / b, a / b)
    interval = _ends_of_ratio(above, below, tail)
    if interval is None:
        interval = fieller(a, b, joint, farthest(above.bars, tail))
    certain = quotient(above.certain, below.certain)
    if interval[1] < certain[0] or certain[1] < interval[0]:  # a rare draw, of which only what is certain is left
        return error, certain
    return error, within(interval, certain)


def ratio_apart(above: Summed, below: Summed, tail: float) -> tuple[float | None, Ends]:
    """Standard error and ends of the ratio of two sums with independent errors, such as a mean."""
    a, b, one, other = above.centre, below.centre, above.error, below.error
    error = None if one is None or other is None or not b else math.hypot(one, other * a / b) / abs(b)
    certain, interval = quotient(above.certain, below.certain), None
    if error is None or above.told or below.told:
        return error, within(quotient(above.interval(tail), below.interval(tail)), certain)
    if is_normal(above.bars) and is_normal(below.bars):
        variances = np.diag([(one or 0.0) ** 2, (other or 0.0) ** 2])
        interval = fieller(a, b, variances, farthest(above.bars, tail))
    elif (drawn := above.errors()) is not None and (more := below.errors()) is not None:
        size = min(len(drawn), len(more))
        interval = studied_ratio(a, b, (drawn[:size], more[:size]), tail)
    if interval is None:  # both sums are within their ends at once
        interval = quotient(above.interval(tail / 2), below.interval(tail / 2))
    if interval[1] < certain[0] or certain[1] < interval[0]:
        return error, certain
    return error, within(interval, certain)


def ratio_by_law(above: Summed, below: Summed, tail: float) -> Ends | None:
    """Ends between which a ratio lies, by the law of moved independent noise; None where that is too much work.

    Directions as in `studied_ratio`, but for the middle of a way of half width h: turned by δ ≤ h an error is at most
    |e| + sin h·|f|, f across e, and f is beyond what is proved of it RARE of the tail at most.
    """
    spread, one, other = above.bars.spread, above.error, below.error
    if spread is None or spread.characteristic is None or not one or not other:
        return None
    scale, law, variance_of = (one, other), spread.characteristic, spread.variance_of
    values = np.array([above.centre / scale[0], below.centre / scale[1]])
    near = ROUNDING * float(np.abs(values).sum())

    def turned(x: float, y: float) -> Sums:
        weights = x * above.weights / scale[0] + y * below.weights / scale[1]
        return Sums([(law, weights)], math.sqrt(max(variance_of(weights), 0.0)))

    def left(first: float, far: float) -> bool | None:
        """Whether nothing between two directions is in the set; None where that is too much work."""
        centre = (first + far) / 2
        here, across = turned(math.cos(centre), -math.sin(centre)), turned(math.sin(centre), math.cos(centre))
        away = min(abs(float(values @ [math.cos(angle), -math.sin(angle)])) for angle in (first, far)) - near
        away -= math.sin(abs(far - first) / 2) * across.proved_reach(RARE * tail)
        if away <= 0 or away > here.proved_reach((1 - RARE) * tail):
            return away > 0
        far_away = here.wide_reach((1 - RARE) * tail)
        return None if far_away is None else away > far_away

    reach = turned(0.0, 1.0).wide_reach(tail)
    if reach is None or abs(values[1]) <= reach + near:
        return None if reach is None else (-math.inf, math.inf)
    middle = math.atan(values[0] / values[1])

    def end(last: float) -> float | None:
        ways = [(middle, last)]
        while ways:
            first, far = ways.pop()
            found = left(first, far)
            if found is None:
                return None
            if found:
                continue
            if abs(far - first) <= FINE * abs(far - middle) or abs(far - middle) <= ROUNDING:
                return math.tan(far) * scale[0] / scale[1]
            ways += [(first, (first + far) / 2), ((first + far) / 2, far)]
        raise AssertionError("the way at the ratio itself is never left out")

    low, high = end(-math.pi / 2), end(math.pi / 2)
    return None if low is None or high is None else (low, high)


def _ends_of_ratio(above: Summed, below: Summed, tail: float) -> Ends | None:
    """Ends from the law where it is known, and otherwise from simulated errors; None where neither tells enough."""
    if is_normal(above.bars):  # Fieller's ends are exact
        return None
    interval = ratio_by_law(above, below, tail) if _cheap(above) else None
    if interval is None and (above.bars.spread is None or above.bars.spread.model is None):
        drawn, more = above.errors(), below.errors()
        interval = (
            None if drawn is None or more is None else studied_ratio(above.centre, below.centre, (drawn, more), tail)
        )
    far = [None if interval is not None else _half(tail, each) for each in (above, below)]
    if far[0] is not None and far[1] is not None:  # both sums are within their ends at once
        a, b = above.centre, below.centre
        interval = quotient((a - far[0], a + far[0]), (b - far[1], b + far[1]))
    return interval


def _half(tail: float, sum_: Summed) -> float | None:
    """How far the error of one of two sums reaches, half of the time that both may; None where its law is not known."""
    least = from_law(tail / 2, sum_)
    return from_law(tail / 2, sum_, wide=True) if least is None else least


def _covariance(above: Summed, below: Summed) -> Floats | None:
    """Variances and covariance of the errors of two sums of one table; None where their law is not known."""
    spread = above.bars.spread
    if spread is None:
        return None
    first, second = (spread.variance_of(each.weights) for each in (above, below))
    both = spread.variance_of(above.weights + below.weights)
    return np.array([[first, (both - first - second) / 2], [(both - first - second) / 2, second]])


def _around(middle: float, far: float, certain: Ends, weights: Floats) -> Ends:
    """An interval of this reach cut to what is certain; a sum of counts, each so many times, is whole."""
    ends = within((middle - far, middle + far), certain)
    return ends if (weights % 1).any() else whole_ends(*ends)
