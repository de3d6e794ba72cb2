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

#: How near the grid of slopes comes to a pole, as powers of 1/2.
_NEAR = np.array([0.4, 1.0, 2.0, 3.0, 4.5, 6.0, 8.0, 10.0, 13.0])
#: Means beyond a pole, in scales: larger than any before it.
_FAR = 2.0**14


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


def slopes(laws: Laws, depth: int, close: bool) -> Floats:
    """The grid of slopes: up to what so many outputs above one another can pull, and close to the poles of leaves.

    A Laplace leaf without a bound has its mean run off as the slope comes near 1/λ. Where messages tell the means, few
    slopes there do.
    """
    unit, least = float(laws.slope.max()), float(laws.slope.min())
    if laws.laplace:
        poles = np.unique(np.quantile(laws.rate, [0.0, 0.5, 1.0], method="nearest"))
        near = _NEAR if close else _NEAR[::2]
        half = np.concatenate([p * np.concatenate([1 - 0.5**near, [1.06, 1.3]]) for p in poles])
        half = np.concatenate([half, unit * np.geomspace(1.7, depth + 2, 5)])
    else:
        half = np.geomspace(least / 8, 6 * unit * depth, 2 * _NEAR.size)
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
    unit = float(1 / laws.slope.min())
    for i, each in enumerate(leaves.known, leaves.law.size - len(leaves.known)):
        mean[i], variance[i] = (
            _read_off(each.mean, each.grid, grid, unit),
            _read_off(each.variance, each.grid, grid, unit**2),
        )
    return mean, variance


def _read_off(values: Floats, where: Floats, grid: Floats, unit: float) -> Floats:
    """Interpolate values over one grid on another, as `at` does."""
    y = np.interp(grid, where, values / (unit + np.abs(values)))
    return np.asarray(unit * y / (1 - np.abs(y)))


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
                mean[q, g] = high[q] if grid[g] > 0 else low[q]
                variance[q, g] = 1.0
                continue
            if up < 1 - 1e-9 and down < 1 - 1e-9:
                a0, a1, a2 = _run(up, high[q])
                b0, b1, b2 = _run(down, -low[q])
                total = 1 + a0 + b0
                m = (a1 - b1) / total
                mean[q, g] = m
                variance[q, g] = max((a2 + b2) / total - m * m, 1e-3)
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
                variance[q, g] = max(second / total - m * m, 1e-3)
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
    variance = np.maximum(sigma2 * variance, 0.05)
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
                variance[q, g] = max(second - first * first, 1e-3)


@compiled(inner=True)
def between(a: Any, b: Any, part: Any, unit: Any) -> Any:
    """A number between two, so that means which run off to a pole are followed well: linear in x/(unit + |x|)."""
    y = a / (unit + abs(a))
    y += (b / (unit + abs(b)) - y) * part
    return unit * y / (1 - abs(y))


@compiled(inner=True)
def at(values: Any, where: Any, x: Any, unit: Any) -> Any:
    """Interpolate values over increasing places, constant beyond them."""
    n = where.size
    low, high = 0, n - 1
    if x <= where[0]:
        return values[0]
    if x >= where[high]:
        return values[high]
    while high - low > 1:
        middle = (low + high) // 2
        if where[middle] <= x:
            low = middle
        else:
            high = middle
    return between(values[low], values[high], (x - where[low]) / (where[high] - where[low]), unit)


@compiled(inner=True)
def slope_for(means: Any, grid: Any, m: Any, unit: Any) -> Any:
    """The slope at which a total has mean m, between the ends of the grid."""
    n = grid.size
    low, high = 0, n - 1
    if m <= means[0]:
        return grid[0]
    if m >= means[n - 1]:
        return grid[n - 1]
    while high - low > 1:
        middle = (low + high) // 2
        if means[middle] <= m:
            low = middle
        else:
            high = middle
    a, b, y = means[low] / (unit + abs(means[low])), means[high] / (unit + abs(means[high])), m / (unit + abs(m))
    return grid[low] + (grid[high] - grid[low]) * ((y - a) / (b - a) if b > a else 0.0)


@compiled
def upward(some: Any, pieces: Any, leaf: Any, weight: Any, grid: Any, unit: Any, responses: Any) -> None:
    """Responses of some kinds, before and after their own weight; those of their parts are known.

    `leaf` holds means and variances of leaves, `weight` the rates of laws and whether they are Laplace.
    """
    rate, laplace = weight
    before_mean, before_variance, mean, variance = responses
    means, variances = np.empty(grid.size), np.empty(grid.size)
    room = np.empty(grid.size), np.empty(grid.size), np.empty(grid.size)
    for k in some:
        _parts_together(k, pieces, leaf, mean, variance, means, variances)
        put(means, before_mean[k])
        put(variances, before_variance[k])
        if pieces.law[k] < 0:
            put(means, mean[k])
            put(variances, variance[k])
        else:
            _weighed(rate[pieces.law[k]], laplace, grid, unit, (means, variances), room, mean[k], variance[k])


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
def _weighed(own: Any, laplace: Any, grid: Any, unit: Any, before: Any, room: Any, mean: Any, variance: Any) -> None:
    """The mean and the variance with the own weight, under every slope; numbers between two as `between` does."""
    means, variances = before
    above, y, z = room  # the slope from above at which the slope below is grid[g], and both answers on a finite scale
    half, square = own * own / 2, unit * unit
    for g in range(np.uint64(grid.size)):
        m, v = means[g], variances[g]
        above[g] = grid[g] + (own * m / np.sqrt(m * m + v / (1 + half * v)) if laplace else 2 * own * m)
        y[g], z[g] = m / (unit + abs(m)), v / (square + abs(v))
    i = np.uint64(0)
    for g in range(np.uint64(grid.size)):
        while i < np.uint64(grid.size - 2) and above[i + np.uint64(1)] < grid[g]:
            i += np.uint64(1)
        j = i + np.uint64(1)
        part = min(max((grid[g] - above[i]) / (above[j] - above[i]), 0.0), 1.0)
        means[g], variances[g] = y[i] + (y[j] - y[i]) * part, z[i] + (z[j] - z[i]) * part
    for g in range(np.uint64(grid.size)):
        m, v = unit * means[g] / (1 - abs(means[g])), square * variances[g] / (1 - abs(variances[g]))
        width2 = v / (1 + half * v)
        far2 = m * m + width2
        bend = own * width2 / (far2 * np.sqrt(far2)) if laplace else 2 * own
        mean[g], variance[g] = m, v / (1 + v * bend)
