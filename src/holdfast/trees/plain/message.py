"""Messages from above: positive functions on the whole numbers that are nowhere below what they stand for.

A message holds doubles on a window and a geometric series beyond either end. What it stands for is the weight of an
output times the sum, over all ways to divide a total, of the products of the two messages below. Inside the window it
is at most a share `excess` too large, which is proved; beyond it may be too large by any factor. One test of the drawn
table makes up for all of it (docs/theory/plain-trees.md).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from operator import mul
from typing import NamedTuple

import numpy as np
from flint import arb
from scipy import fft
from scipy.linalg.blas import dtbsv

from holdfast.arguments import LARGEST
from holdfast.arrays import Floats, Ints
from holdfast.noise.precision import ball
from holdfast.trees.plain.balls import powers, series, tilted

LN2 = math.log(2)
#: A bound on the relative error of one double operation, with room; and of sums that only have to be from above.
UNIT, LIFT = 2.3e-16, 1e-6
#: Windows end where sums of products are smaller.
LEAST_SUM = 1e-250
#: Slopes of ends keep this share of those below, so that series have sums.
GENTLER = 0.99
#: Sums of more products come from transforms; the relative error of one in the mean square is at most this many units
#: for each doubling of its length.
WIDE, TRANSFORM = 1_000_000_000, 32.0
#: Sums that a transform makes too large by more than the first share are made by others too, under so many tilts at
#: most, and windows end where they are too large by the second.
CLEAR, MOST_BLUR, TILTS = 1e-6, 0.1, 24
#: Series fall no faster than e^−STEEPEST, no slower than e^−LEAST_FALL; those that begin e^TALL too high grow in sums.
STEEPEST, LEAST_FALL, TALL = 600.0, 1e-11, 20.0
#: Windows end at e^−DEEPEST of the largest value.
DEEPEST = 400.0


class TooNarrow(Exception):
    """No series is above a message beyond its window; a wider one helps."""


class Weight(NamedTuple):
    """e^{−rate·|t| + tilt·t}, or e^{−rate·t² + tilt·t}, between two bounds."""

    rate: Fraction
    square: bool
    tilt: float
    low: int
    high: int

    def log(self, t: Floats) -> Floats:
        """The logarithm at totals within the bounds, up to `error`."""
        return np.asarray(self.tilt * t - float(self.rate) * (t * t if self.square else abs(t)))

    def error(self, t: Floats) -> Floats:
        """A bound on the error of `log`."""
        return np.asarray(4 * UNIT * (1 + abs(self.tilt * t) + float(self.rate) * (t * t if self.square else abs(t))))

    def slope(self, end: int, side: int) -> float:
        """A slope that the logarithm does not exceed beyond an end, going up (side 1) or down (side −1).

        It is concave, so that of the first step: (|end| ± 1)² − end² is 1 ± 2·|end|.
        """
        away = 1 if side * end >= 0 else -1
        return side * self.tilt - float(self.rate) * (2 * abs(end) * away + 1 if self.square else away)

    def ball(self, t: int) -> arb:
        """The exact value at a total, in a ball."""
        if not self.low <= t <= self.high:
            return arb(0)
        return (arb(self.tilt) * t - ball(self.rate) * (t * t if self.square else abs(t))).exp()


#: The weight of a total that is not an output's.
ANY = Weight(Fraction(0), False, 0.0, -LARGEST, LARGEST)


class End(NamedTuple):
    """Beyond an end of the window: height·ratio^d at distance d, and 0 where the support ends."""

    height: float
    ratio: float

    def rate(self) -> float:
        """How fast the series falls, ∞ where there is none."""
        return -math.log(self.ratio) if self.height > 0 and self.ratio > 0 else math.inf


HARD = End(0.0, 0.0)


@dataclass(frozen=True, eq=False)
class Message:
    """Doubles from `lo` on, series beyond both ends; `scale` twos are divided out, and inside 1 − c ≤ excess."""

    lo: int
    values: Floats
    below: End
    above: End
    excess: float
    weight: Weight
    scale: int
    parts: tuple[Message, Message] | None = None
    whole: Floats | None = None  # the sums of products that are divided, inside the window
    blur: Floats | None = None  # the share by which each may be too large, beside its rounding, if it is a transform's

    @property
    def hi(self) -> int:
        """The last place of the window."""
        return self.lo + self.values.size - 1

    @property
    def mean(self) -> float:
        """The mean of a total that has the message for its law."""
        return self.lo + float(self.values @ np.arange(self.values.size)) / float(self.values.sum())

    def alone(self) -> Message:
        """The same function, without what it stands for."""
        return replace(self, parts=None, whole=None, blur=None)

    def blurred(self, totals: Ints) -> Floats:
        """A bound on what the blur adds to 1 − c, at totals inside the window; 0 at others."""
        assert self.blur is not None
        inside = (self.lo <= totals) & (totals <= self.hi)
        return np.where(inside, 2.1 * self.blur[np.where(inside, totals - self.lo, 0)], 0.0)

    def on(self, first: int, last: int) -> Floats:
        """The message on a range that holds its window."""
        down = self.below.height * self.below.ratio ** np.arange(self.lo - first, 0, -1.0)
        up = self.above.height * self.above.ratio ** np.arange(1.0, last - self.hi + 1)
        return np.concatenate([down, self.values, up])

    def ball(self, t: int) -> arb:
        """The message itself at any total: its doubles are what it is."""
        if t < self.lo:
            return arb(self.below.height) * arb(self.below.ratio) ** (self.lo - t)
        if t > self.hi:
            return arb(self.above.height) * arb(self.above.ratio) ** (t - self.hi)
        return arb(float(self.values[t - self.lo]))

    def balls(self, first: int, last: int) -> list[arb]:
        """The same at all totals of a range that holds the window."""
        down = powers(self.below.height, self.below.ratio, self.lo - first)
        up = powers(self.above.height, self.above.ratio, last - self.hi)
        return [*down[::-1], *map(arb, self.values.tolist()), *up]

    def share(self, t: int) -> arb:
        """c(t): what the message stands for, divided by the message."""
        stands = self.weight.ball(t) * arb(2) ** -self.scale
        if self.parts is not None and not stands.is_zero():
            stands = stands * Division(*self.parts, t).total()
        return arb(0) if stands.is_zero() else stands / self.ball(t)

    @cached_property
    def _logs(self) -> Floats:
        return np.log(self.values)

    def sum(self, slope: float) -> float:
        """The logarithm of a bound on the sum of m(t)·e^{slope·(t − lo)} over all totals."""
        terms = self._logs + slope * np.arange(self.values.size)
        top = float(terms.max())
        total = top + math.log(float(np.exp(terms - top).sum()))
        for end, at, tilt in ((self.above, self.hi - self.lo, slope), (self.below, 0, -slope)):
            if end.height > 0:
                falls = math.log(end.ratio) + tilt
                if falls >= 0:
                    return math.inf
                tail = math.log(end.height) + slope * at + falls - math.log(-math.expm1(falls))
                total = float(np.logaddexp(total, tail))
        return total + LIFT


#: A total that is always 0: what an exact output is to those above it.
NOTHING = Message(0, np.ones(1), HARD, HARD, 0.0, ANY, 0)


def leaf(weight: Weight, lo: int, hi: int) -> Message:
    """The message of one leaf: its weight."""
    lo, hi = max(lo, weight.low), min(hi, weight.high)
    places = np.arange(lo, hi + 1.0)
    logs = weight.log(places)
    kept = np.flatnonzero(logs > logs.max() - DEEPEST)
    lo, hi = lo + int(kept[0]), lo + int(kept[-1])
    places, logs = places[kept], logs[kept]
    scale = math.ceil(float(logs.max()) / LN2)
    error = weight.error(places) + 4 * UNIT * (1 + abs(scale))
    values = np.exp(logs - scale * LN2) * (1 + 2 * error)
    ends = []
    for end, side, bound in ((lo, -1, weight.low), (hi, 1, weight.high)):
        ratio = math.exp(max(min(weight.slope(end, side), 0.0), -STEEPEST)) * (1 + 1e-12)
        if end != bound and not ratio < 1:
            raise TooNarrow
        ends.append(HARD if end == bound else End(float(values[0] if side < 0 else values[-1]) * (1 + LIFT), ratio))
    return Message(lo, values, ends[0], ends[1], float((4 * error).max()), weight, scale)


def merged(a: Message, b: Message, weight: Weight, lo: int, hi: int, blurs: bool = False) -> Message:
    """The message of the sum of two totals, times a weight, on a window that ends where its doubles would."""
    base = a.lo + b.lo
    lo, hi = max(lo, weight.low, base), min(hi, weight.high, a.hi + b.hi)
    if lo > hi:
        raise TooNarrow
    sums, error, blur = _sums(a, b, blurs, (lo - base, hi - base))
    places = np.arange(lo, hi + 1.0)
    inside = sums[lo - base : hi - base + 1]
    logs = np.log(np.maximum(inside, 1e-300)) + weight.log(places)
    top = int(np.argmax(logs))
    is_poor = (inside < LEAST_SUM) | (logs < logs[top] - DEEPEST)
    if blur is not None:
        blur = blur[lo - base : hi - base + 1]
        is_poor |= blur > MOST_BLUR
    poor = np.flatnonzero(is_poor)
    i = int(np.searchsorted(poor, top))
    first, last = (int(poor[i - 1]) + 1 if i else 0), (int(poor[i]) if i < poor.size else inside.size)
    if first >= last:
        raise TooNarrow
    places, inside = places[first:last], inside[first:last]
    scale = math.ceil(float(logs[top]) / LN2)
    rounding = weight.error(places) + error + 4 * UNIT * (2 + abs(scale))
    values = inside * np.exp(weight.log(places) - scale * LN2) * (1 + 2 * rounding)
    blur = None if blur is None else blur[first:last]
    ends = int(places[0]), int(places[-1])
    down, up = (_end(a, b, weight, ends[side > 0], sums, scale, side) for side in (-1, 1))
    return Message(ends[0], values, down, up, float((4 * rounding).max()), weight, scale, (a, b), inside, blur)


def _sums(a: Message, b: Message, blurs: bool, wanted: tuple[int, int]) -> tuple[Floats, float, Floats | None]:
    """(a * b)(t) from a.lo + b.lo to a.hi + b.hi, with all series, and a bound on its relative error.

    Sums of two wide messages may come from transforms, which make each too large by another share, the last result.
    """
    few, many, size = a.values.size, b.values.size, a.values.size + b.values.size - 1
    error, blur = UNIT * (2 * min(few, many) + 4 * (few + many) + 32), None
    if blurs and min(few, many) > 1 and few * many > WIDE:
        sums, blur, rounding = _transformed(a, b, *wanted)
        error += rounding
    else:
        sums = np.convolve(a.values, b.values)
    for flip, end, opposite, own in ((1, a.above, b.below, b.above), (-1, a.below, b.above, b.below)):
        if end.height > 0:  # a beyond its window, b anywhere
            met = opposite.height * opposite.ratio ** np.arange(few, 0.0, -1.0)
            part = _followed(end, np.concatenate([met, b.values[::flip]]))[:size]
            far = opposite.height * opposite.ratio ** (few + 1.0) / (1 - end.ratio * opposite.ratio)
            sums += (part + far * end.height * end.ratio ** np.arange(2.0, size + 2))[::flip]
        if own.height > 0:  # b beyond its window, a inside
            part = np.concatenate([np.zeros(many), _followed(own, a.values[::flip])[: few - 1]])
            sums += part[::flip]
    return sums, error, blur


def _transformed(a: Message, b: Message, first: int, last: int) -> tuple[Floats, Floats, float]:
    """Sums of products by fast Fourier transforms, the share by which each may be too large, and a relative error.

    Σ a(x)·b(y) = e^{−slope·t}·Σ a(x)e^{slope·x}·b(y)e^{slope·y} over x + y = t, for every slope. Each transform is
    lifted by a bound on its error, which is small where it is large, and the least is taken at every place. The next
    slope is the one at the last place that is clear, until all that are wanted are.
    """
    sums, blur, rounding = _tilted(a, b, 0.0)
    for side, end in ((1, last), (-1, first)):
        edge = -sums.size
        for _ in range(TILTS):
            clear = np.flatnonzero(blur <= CLEAR)[::side]
            little = (last - first) // 100  # sums that fall so fast hardly count
            if not clear.size or abs(clear[-1] - edge) <= little or side * (end - clear[-1]) <= 0:
                break
            edge = int(clear[-1])
            before = edge - side if clear.size < 2 else int(clear[-min(clear.size, 8 + sums.size // 1000)])
            slope = (math.log(sums[before]) - math.log(sums[edge])) / (edge - before)
            found, share, error = _tilted(a, b, slope)
            better = found < sums
            sums, blur = np.where(better, found, sums), np.where(better, share, blur)
            rounding = max(rounding, error)
    return sums, blur, rounding


def _tilted(a: Message, b: Message, slope: float) -> tuple[Floats, Floats, float]:
    """The same by one transform: lifted sums, the share by which each may be too large, and a relative error."""
    size = a.values.size + b.values.size - 1
    length = int(fft.next_fast_len(size, real=True))
    logs = [m._logs + slope * np.arange(m.values.size) for m in (a, b)]
    tops = [float(each.max()) for each in logs]
    p, q = (np.exp(each - top) for each, top in zip(logs, tops, strict=True))
    sums = np.maximum(fft.irfft(fft.rfft(p, length) * fft.rfft(q, length), length)[:size], 0.0)
    one, other = float(np.linalg.norm(p)), float(np.linalg.norm(q))
    share = TRANSFORM * UNIT * math.log2(length)
    error = 1.01 * share * (3 * one * other + min(one * float(q.sum()), other * float(p.sum())))
    exponents = max(float(abs(m._logs).max()) + abs(top) for m, top in zip((a, b), tops, strict=True))
    rounding = 16 * UNIT * (4 + 2 * exponents + 2 * abs(slope) * size)
    with np.errstate(over="ignore"):
        back = np.exp(sum(tops) - slope * np.arange(size))
    return (sums + error) * back * (1 + rounding), 2 * error / np.maximum(sums, error), 2 * rounding


def _followed(end: End, values: Floats) -> Floats:
    """u(k) = Σ_{i ≤ k} height·ratio^{k−i+1}·values(i): values met by a series that begins one place behind them."""
    band = np.full((2, values.size), -end.ratio, order="F")  # u(k) − ratio·u(k−1) = height·ratio·values(k)
    return np.asarray(dtbsv(1, band, end.ratio * end.height * values, lower=1, diag=1))


def _slope(values: Floats) -> float:
    """How fast the logarithm falls at the last places, as far as it does; below 0 where it rises up to the last."""
    some = np.log(np.maximum(values[-9:], 1e-300))
    some = some[int(np.argmax(some)) % max(some.size - 1, 1) :]
    return float(some[0] - some[-1]) / max(some.size - 1, 1)


def _end(a: Message, b: Message, weight: Weight, end: int, sums: Floats, scale: int, side: int) -> End:
    """A series that is above the message beyond an end of its window.

    As far as the sums are known they are looked at one by one; further out a part is beyond its window, and
    Σ h·r^{t−y}·m(y) ≤ h·e^{−rate·t}·Σ e^{rate·y}·m(y) for every rate that is gentler than the series'.
    """
    parts = [(m, m.above if side > 0 else m.below, m.hi if side > 0 else m.lo) for m in (a, b)]
    base = a.lo + b.lo
    rest = np.log(np.maximum(sums[end - base + 1 :] if side > 0 else sums[: end - base][::-1], 1e-300))
    if end == (weight.high if side > 0 else weight.low) or (not rest.size and not any(e.height for _, e, _ in parts)):
        return HARD
    steepest = min([GENTLER * e.rate() for _, e, _ in parts] + [STEEPEST])
    local = _slope(sums[: end - base + 1] if side > 0 else sums[end - base :][::-1])
    own = float(weight.log(np.array(float(end)))) - scale * LN2
    high = own + math.log(max(float(sums[end - base]), 1e-300)) + TALL
    best: tuple[float, End] | None = None
    gentler = [steepest / slower for slower in (1, 2, 4, 8, 16, 32)]
    shares = (0.8, 0.9, 1.0, 1.2, 2.0) if local > 0 else (1.0, 1.2, 2.0) if local < 0 else ()  # sums may rise
    near = {min(local * share, steepest) for share in shares}
    for rate in [*near, *gentler]:
        if best is not None and rate not in near and math.log(best[1].height) <= high:
            break
        logs = [float((rest + rate * np.arange(1, rest.size + 1)).max())] if rest.size else []
        for (_, tail, edge), (other, _, _) in (parts, parts[::-1]):
            if tail.height > 0:
                logs.append(math.log(tail.height) + side * rate * (edge + other.lo - end) + other.sum(side * rate))
        falls = max(weight.slope(end, side) - rate, -STEEPEST)
        if not falls < -LEAST_FALL or not max(logs) < 600:
            continue
        height = own + max(logs) + math.log(len(logs)) + LIFT
        mass = height + falls - math.log(-math.expm1(falls)) + max(height - high, 0.0)
        if height < 600 and (best is None or mass < best[0]):
            best = mass, End(max(math.exp(height), 1e-280), math.exp(falls) * (1 + 1e-12))
    if best is None:
        raise TooNarrow
    return best[1]


class Alone:
    """All totals of a message times e^{tilt·t}, exactly."""

    def __init__(self, message: Message, tilt: float = 0.0) -> None:
        self.message, self.low, self.high = message, message.lo, message.hi
        self.tilt = arb(tilt)

    def term(self, total: int) -> arb:
        """The weight of a total."""
        return self.message.ball(total) * (self.tilt * total).exp()

    def total(self) -> arb:
        """The sum over all totals."""
        result = tilted(self.message.balls(self.low, self.high), self.tilt, self.low)
        for end, beyond, tilt in (
            (self.message.below, self.low - 1, -self.tilt),
            (self.message.above, self.high + 1, self.tilt),
        ):
            result = result + series(self.term(beyond), arb(end.ratio) * tilt.exp())
        return result


class Division:
    """All ways to divide a total between two messages, times e^{tilt·part} for the first part, exactly."""

    def __init__(self, a: Message, b: Message, total: int, tilt: float | arb = 0.0) -> None:
        self.a, self.b, self.at = a, b, total
        self.tilt = arb(tilt)
        self.low, self.high = max(a.lo, total - b.hi), min(a.hi, total - b.lo)
        self.first, self.last = min(a.lo, total - b.hi), max(a.hi, total - b.lo)

    def term(self, part: int) -> arb:
        """The weight of a's part."""
        weight = self.a.ball(part) * self.b.ball(self.at - part)
        return weight if self.tilt == 0 else weight * (self.tilt * part).exp()

    def total(self) -> arb:
        """The sum over all parts: one by one as far as a window reaches, and two geometric series beyond."""
        first, last = self.first, self.last
        others = self.b.balls(self.at - last, self.at - first)[::-1]
        result = tilted(list(map(mul, self.a.balls(first, last), others)), self.tilt, first)
        for beyond, one, other, tilt in (
            (self.last + 1, self.a.above, self.b.below, self.tilt),
            (self.first - 1, self.a.below, self.b.above, -self.tilt),
        ):
            result = result + series(self.term(beyond), arb(one.ratio) * arb(other.ratio) * tilt.exp())
        return result
