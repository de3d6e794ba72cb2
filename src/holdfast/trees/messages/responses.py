"""How totals answer to slopes: mean and variance when a message is multiplied by e^{τs}, on a grid of slopes τ.

Leaves answer by their law and bounds. Means and variances of two pieces add, and an own weight shifts the slope. A
message that is known tells its responses itself, better than the guess. Between slopes of the grid, and from a mean
back to its slope, numbers are interpolated so that means which run off to a pole are followed well.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy import special

from holdfast.arrays import BORROWED, Floats, Ints, compiled
from holdfast.compiler import put

#: Gaussian slopes stand so far apart, as logarithms; with one so steep, hardly one of e^24 empty leaves is above 0.
_STEP, _STEEPEST = 0.7, 24.0
#: How near the grid of slopes comes to a pole, as powers of 1/2.
_NEAR = np.array([0.4, 2.0, 4.5, 8.0, 13.0])
#: Means beyond a pole, in scales: larger than any before it.
_FAR = 2.0**14
#: The least variance of a leaf.
_LEAST = 1e-12


class Known(NamedTuple):
    """How a total that is known from elsewhere answers to the slopes of a grid."""

    grid: Floats
    mean: Floats
    variance: Floats


@dataclass(frozen=True, eq=False)
class Leaves:
    """The kinds of leaves: law (−1: not measured) and bounds on noise (∓2**62: none).

    The last kinds stand for totals that are known from elsewhere.
    """

    law: Ints
    low: Ints
    high: Ints
    known: tuple[Known, ...] = ()


@dataclass(frozen=True, eq=False)
class Laws:
    """The laws of noise: Laplace with rate 1/λ, or Gaussian with rate 1/(2σ²)."""

    laplace: bool
    rate: Floats

    @property
    def slope(self) -> Floats:
        """A slope that goes with each law: 1/λ or 1/σ."""
        return self.rate if self.laplace else np.sqrt(2 * self.rate)

    def resistance(self, law: Ints, pull: Floats, bound: Ints) -> Floats:
        """About −log of the probability that noise under a slope against it goes beyond a bound at so many units.

        Under a slope, Laplace noise falls off as e^−(rate ± slope), and the mean of Gaussian noise moves by σ²·slope.
        """
        rate = self.rate[law]
        if self.laplace:
            return np.asarray(np.maximum((rate + pull) * bound, 0.0))
        return np.asarray(rate * np.maximum(bound + pull / (2 * rate), 0.0) ** 2)


def slopes(laws: Laws, depth: int) -> Floats:
    """The grid of slopes: up to what so many outputs above one another can pull, and close to the poles of leaves.

    A Laplace leaf without a bound has its mean run off as the slope comes near 1/λ.
    """
    unit, least = float(laws.slope.max()), float(laws.slope.min())
    if laws.laplace:
        poles = np.unique(np.quantile(laws.rate, [0.0, 0.5, 1.0], method="nearest"))
        half = np.concatenate([p * np.concatenate([1 - 0.5**_NEAR, [1.06, 1.3]]) for p in poles])
        half = np.concatenate([half, unit * np.geomspace(1.7, depth + 2, 5)])
    else:
        half = np.exp(np.arange(np.log(least / 8), np.log(max(6 * unit * depth, _STEEPEST)) + _STEP, _STEP))
    half = np.unique(half)
    return np.concatenate([-half[::-1], [0.0], half])


def leaf_responses(leaves: Leaves, laws: Laws, grid: Floats) -> tuple[Floats, Floats]:
    """Mean and variance of every kind of leaf under every slope."""
    measured = leaves.law >= 0
    rate = np.where(
        measured, laws.rate[np.maximum(leaves.law, 0)], laws.rate.min() / (50.0 if laws.laplace else 2500.0)
    )
    of_law = _laplace_responses if laws.laplace else _gaussian_responses
    mean, variance = of_law(rate, leaves.low.astype(float), leaves.high.astype(float), grid)
    for i, each in enumerate(leaves.known, leaves.law.size - len(leaves.known)):
        _read_off(each, grid, mean[i], variance[i])
    return mean, variance


@compiled
def _read_off(known: Any, grid: Any, mean: Any, variance: Any) -> None:
    """Put what is known over one grid on another."""
    for g in range(grid.size):
        mean[g], variance[g] = at(known.mean, known.variance, known.grid, grid[g])


@compiled(inner=True)
def _run(ratio: Any, count: Any) -> Any:
    """Σ_{j=1..count} ratio^j, its mean j and mean j²; a ratio of 1 or more with many terms is led to the far end."""
    if count <= 0:
        return 0.0, 0.0, 0.0
    count = min(count, 1e9)
    if ratio < 1 - 1e-9:
        last = ratio**count
        total = ratio * (1 - last) / (1 - ratio)
        if total <= 0:
            return 0.0, 0.0, 0.0
        first = (ratio / (1 - ratio) ** 2) * (1 - (count + 1) * last + count * last * ratio)
        second = ratio * (1 + ratio) / (1 - ratio) ** 3
        second -= (
            last
            * ratio
            * ((count * count) / (1 - ratio) + (2 * count) / (1 - ratio) ** 2 + (1 + ratio) / (1 - ratio) ** 3)
            + last * 0
        )
        return total, max(first, 0.0), max(second, first)
    if ratio <= 1 + 1e-9:
        return count, count * (count + 1) / 2, count * (count + 1) * (2 * count + 1) / 6
    # more weight at the far end: count it from there
    return np.inf, count, count * count


@compiled
def _laplace_responses(rate: Any, low: Any, high: Any, grid: Any) -> Any:
    mean = np.empty((rate.size, grid.size))
    variance = np.empty((rate.size, grid.size))
    for q in range(rate.size):
        for g in range(grid.size):
            up = np.exp(-rate[q] + grid[g])
            down = np.exp(-rate[q] - grid[g])
            if up >= 1 - 1e-9 and high[q] * rate[q] > 2 * _FAR:
                mean[q, g] = _FAR / rate[q] * (1 + grid[g] / rate[q])
                variance[q, g] = (_FAR / rate[q]) ** 2
                continue
            if down >= 1 - 1e-9 and -low[q] * rate[q] > 2 * _FAR:
                mean[q, g] = -_FAR / rate[q] * (1 - grid[g] / rate[q])
                variance[q, g] = (_FAR / rate[q]) ** 2
                continue
            top = 0.0
            if up > 1:
                top = max(top, (grid[g] - rate[q]) * high[q])
            if down > 1:
                top = max(top, (-grid[g] - rate[q]) * -low[q])
            if top > 500:  # all weight near an end
                ratio = np.exp(rate[q] - abs(grid[g]))
                mean[q, g] = high[q] - ratio / (1 - ratio) if grid[g] > 0 else low[q] + ratio / (1 - ratio)
                variance[q, g] = max(ratio / (1 - ratio) ** 2, _LEAST)
                continue
            if up < 1 - 1e-9 and down < 1 - 1e-9:
                a0, a1, a2 = _run(up, high[q])
                b0, b1, b2 = _run(down, -low[q])
                total = 1 + a0 + b0
                m = (a1 - b1) / total
                mean[q, g] = m
                variance[q, g] = max((a2 + b2) / total - m * m, _LEAST)
            else:  # a short sum, term by term
                total, first, second = 1.0, 0.0, 0.0
                term = 1.0
                for j in range(1, np.int64(min(high[q], 4000.0)) + 1):
                    term *= up
                    total += term
                    first += j * term
                    second += j * j * term
                    if up < 1 and j * j * term < 1e-12 * second:
                        break
                term = 1.0
                for j in range(1, np.int64(min(-low[q], 4000.0)) + 1):
                    term *= down
                    total += term
                    first -= j * term
                    second += j * j * term
                    if down < 1 and j * j * term < 1e-12 * second:
                        break
                m = first / total
                mean[q, g] = m
                variance[q, g] = max(second / total - m * m, _LEAST)
    return mean, variance


def _gaussian_responses(rate: Floats, low: Floats, high: Floats, grid: Floats) -> tuple[Floats, Floats]:
    """Means and variances of normal laws cut to bounds."""
    sigma2 = (0.5 / rate)[:, None]
    sigma = np.sqrt(sigma2)
    centre = sigma2 * grid[None, :]
    a = (np.maximum(low, -1e15)[:, None] - 0.5 - centre) / sigma
    b = (np.minimum(high, 1e15)[:, None] + 0.5 - centre) / sigma
    flip = a > 0  # count from the nearer tail
    a, b = np.where(flip, -b, a), np.where(flip, -a, b)
    mass = special.log_ndtr(b) + np.log1p(-np.exp(np.minimum(special.log_ndtr(a) - special.log_ndtr(b), -1e-12)))
    constant = 0.5 * np.log(2 * np.pi)
    pa, pb = np.exp(-a * a / 2 - constant - mass), np.exp(-b * b / 2 - constant - mass)
    with np.errstate(invalid="ignore"):
        shift = pa - pb
        inner = np.where(np.isfinite(a) & (pa > 0), a * pa, 0.0) - np.where(np.isfinite(b) & (pb > 0), b * pb, 0.0)
    variance = np.clip(1 + inner - shift * shift, 1e-4, 1.0)
    mean = centre + sigma * np.where(flip, -shift, shift)
    mean = np.clip(mean, np.maximum(low, -1e15)[:, None], np.minimum(high, 1e15)[:, None])
    variance = np.maximum(sigma2 * variance, _LEAST)
    _near_bounds(rate, low, high, grid, mean, variance)
    return mean, variance


@compiled
def _near_bounds(rate: Any, low: Any, high: Any, grid: Any, mean: Any, variance: Any) -> None:
    """Where a slope presses a Gaussian leaf against a bound, sum over the few whole numbers that count."""
    for q in range(rate.size):
        for g in range(grid.size):
            for side in range(2):
                bound, sign = (low[q], 1.0) if side == 0 else (high[q], -1.0)
                other = high[q] if side == 0 else low[q]
                if abs(bound) > 1e12 or not 2 * rate[q] * sign * bound - sign * grid[g] + rate[q] > 0.05:
                    continue
                total, first, second = 0.0, 0.0, 0.0
                for j in range(2_000):
                    if j > abs(other - bound):
                        break
                    term = np.exp(sign * grid[g] * j - rate[q] * j * (2 * sign * bound + j))
                    total += term
                    first += j * term
                    second += j * j * term
                    if term < 1e-12 * total:
                        break
                first, second = first / total, second / total
                mean[q, g] = bound + sign * first
                variance[q, g] = max(second - first * first, _LEAST)


@compiled(inner=True, **BORROWED)
def between(a: Any, b: Any, rise_a: Any, rise_b: Any, part: Any, step: Any) -> Any:
    """A curve that goes up, and its rise, a part of the way between two places where both are known.

    A quotient of parabolas (Gregory and Delbourgo 1982): it goes up whatever the rises are, and follows lines, and
    means that run off to a pole, exactly.
    """
    secant = (b - a) / step
    if not secant > 0.0:
        return a + (b - a) * part, rise_a + (rise_b - rise_a) * part
    rest = 1 - part
    mixed = part * rest
    under = secant + (rise_a + rise_b - 2 * secant) * mixed
    value = a + (b - a) * ((secant * part * part + rise_a * mixed) / under)
    rise = rise_b * part * part + 2 * secant * mixed + rise_a * rest * rest
    return value, rise * (secant / under) * (secant / under)


@compiled(inner=True, **BORROWED)
def _interval(values: Any, x: Any) -> Any:
    """The place of x among increasing values, of which there are two or more: that of the last one before it."""
    low, high = np.int64(0), np.int64(values.size - 1)
    while high - low > 1:
        middle = (low + high) // 2
        if values[middle] <= x:
            low = middle
        else:
            high = middle
    return low


@compiled(inner=True, **BORROWED)
def at(means: Any, variances: Any, grid: Any, slope: Any) -> Any:
    """The mean and the variance under a slope: the means go up as the variances say; constant beyond the grid."""
    i = _interval(grid, slope)
    step = grid[i + 1] - grid[i]
    part = min(max((slope - grid[i]) / step, 0.0), 1.0)
    return between(np.float64(means[i]), np.float64(means[i + 1]), variances[i], variances[i + 1], part, step)


@compiled(inner=True, **BORROWED)
def slope_for(means: Any, variances: Any, grid: Any, m: Any) -> Any:
    """The slope at which a total has mean m, between the ends of the grid."""
    i = _interval(means, m)
    step, further = grid[i + 1] - grid[i], np.float64(means[i + 1]) - means[i]
    share = min(max((m - means[i]) / further, 0.0), 1.0) if further > 0.0 else 0.0
    # the parabola that `between` divides, less the share of the other one
    secant = further / step
    linear = variances[i] - share * (variances[i] + variances[i + 1] - 2 * secant)
    root = np.sqrt(max(linear * linear + 4 * (secant - linear) * share * secant, 0.0))
    return grid[i] + step * (2 * share * secant / (linear + root) if share > 0.0 else 0.0)


@compiled
def upward(some: Any, pieces: Any, leaf: Any, weight: Any, grid: Any, responses: Any) -> None:
    """Responses of some kinds, before and after their own weight; those of their parts are known.

    `leaf` holds means and variances of leaves, `weight` the rates of laws and whether they are Laplace.
    """
    rate, laplace = weight
    before_mean, before_variance, mean, variance = responses
    means, variances = np.empty(grid.size), np.empty(grid.size)
    room = np.empty(grid.size), np.empty(grid.size)
    for k in some:
        _parts_together(k, pieces, leaf, mean, variance, means, variances)
        put(means, before_mean[k])
        put(variances, before_variance[k])
        if pieces.law[k] < 0:
            put(means, mean[k])
            put(variances, variance[k])
        else:
            _weighed(rate[pieces.law[k]], laplace, grid, (means, variances), room, mean[k], variance[k])


@compiled(inner=True, **BORROWED)
def _parts_together(k: Any, pieces: Any, leaf: Any, mean: Any, variance: Any, means: Any, variances: Any) -> None:
    """The mean and the variance of a kind's parts together, under every slope."""
    leaf_mean, leaf_variance = leaf
    for g in range(np.uint64(means.size)):
        means[g], variances[g] = 0.0, 0.0
    if pieces.kind_left[k] >= 0:
        for part in range(2):
            child = pieces.kind_right[k] if part else pieces.kind_left[k]
            if child >= 0:
                _add(means, 1.0, mean[child])
                _add(variances, 1.0, variance[child])
        return
    j = pieces.first[pieces.example[k]]
    last = j + pieces.members[pieces.example[k]]
    while j < last:  # leaves that are alike stand together
        q, alike = pieces.leaf_kind[j], 0
        while j < last and pieces.leaf_kind[j] == q:
            alike += 1
            j += 1
        _add(means, np.float64(alike), leaf_mean[q])
        _add(variances, np.float64(alike), leaf_variance[q])


@compiled(inner=True, **BORROWED)
def _add(to: Any, times: Any, values: Any) -> None:
    """Add values so many times."""
    for g in range(np.uint64(to.size)):
        to[g] += times * values[g]


@compiled(inner=True, **BORROWED)
def _pull(own: Any, laplace: Any, m: Any, v: Any) -> Any:
    """The own weight's slope, on average over a total with some mean and variance, and how it grows with the mean."""
    if not laplace:
        return 2 * own * m, 2 * own
    width2 = v / (1 + own * own / 2 * v)
    far2 = m * m + width2
    far = np.sqrt(far2)
    return own * m / far, own * width2 / (far2 * far)


@compiled(inner=True, **BORROWED)
def _weighed(own: Any, laplace: Any, grid: Any, before: Any, room: Any, mean: Any, variance: Any) -> None:
    """The mean and the variance with the own weight, under every slope."""
    means, variances = before
    above, rise = room  # the slope from above at which the slope below is grid[g], and how fast this one grows with it
    near = 2e-3 * own if laplace else 2e-2 * np.sqrt(2 * own)
    for g in range(np.uint64(grid.size)):
        pull, bend = _pull(own, laplace, means[g], variances[g])
        above[g], rise[g] = grid[g] + pull, 1 / (1 + variances[g] * bend)
    i = np.uint64(0)
    for g in range(np.uint64(grid.size)):
        while i < np.uint64(grid.size - 2) and above[i + np.uint64(1)] < grid[g]:
            i += np.uint64(1)
        j = i + np.uint64(1)
        wide, step = above[j] - above[i], grid[j] - grid[i]
        part = min(max((grid[g] - above[i]) / wide, 0.0), 1.0)
        below, _ = between(grid[i], grid[j], rise[i], rise[j], part, wide)
        low, high, part = 0.0, 1.0, (below - grid[i]) / step
        m, v, bend = 0.0, 0.0, 0.0
        for turn in range(60):  # many leaves answer to a slope with much more than the own weight's width
            m, v = between(means[i], means[j], variances[i], variances[j], part, step)
            pull, bend = _pull(own, laplace, m, v)
            miss = grid[g] - pull - (grid[i] + part * step)
            if abs(miss) <= near:
                break
            low, high = (part, high) if miss > 0.0 else (low, part)
            part += miss / (step * (1 + v * bend))
            if turn % 6 == 5 or not low < part < high:
                part = (low + high) / 2
        mean[g], variance[g] = m, v / (1 + v * bend)
