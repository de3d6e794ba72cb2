"""Where each piece's total will probably lie: windows for the messages, guessed before they are made.

A piece's total is followed under tilts: its mean and variance when its message is multiplied by e^{τs}, on a grid of
slopes τ. Going up, means and variances of two pieces add, and an own weight shifts the slope; going down, each piece's
slope is read off its parent's. From the slopes come windows that hold nearly all of the conditional law, also where it
sits far in the tail of the piece's own message (many empty leaves). An own weight has a kink at 0, and a guess through
many kinks is biased where bounds pull hard; then it is made again as messages become known, with their true means.
All of this is a guess: steps.py proves what the windows leave out, and wider ones are made where that is too much. No
guess reaches the law of a draw.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numba
import numpy as np
import numpy.typing as npt
from scipy import special

from holdfast.arguments import LARGEST
from holdfast.trees.pieces import Pieces

Reals = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
#: What runs a task on slices of some items.
Over = Callable[[Callable[[Ints], Any], Ints], Any]

_OPTIONS: dict[str, Any] = {"cache": True, "nogil": True, "error_model": "numpy"}
#: How near the grid of slopes comes to a pole, as powers of 1/2.
_NEAR = np.array([0.4, 1.0, 2.0, 3.0, 4.5, 6.0, 8.0, 10.0, 13.0])
#: How far messages inside parcels, which have no tilt, may fall: e^−420 and its square root are far from no doubles.
MOST_DECAY = 420.0
#: Means beyond a pole, in scales: larger than any before it.
_FAR = 2.0**14


@dataclass(frozen=True, eq=False)
class Leaves:
    """The kinds of leaves: law (−1: not measured) and bounds on noise (∓2**62: none)."""

    law: Ints
    low: Ints
    high: Ints


@dataclass(frozen=True, eq=False)
class Laws:
    """The laws of noise: Laplace with rate 1/λ, or Gaussian with rate 1/(2σ²)."""

    laplace: bool
    rate: Reals

    @property
    def slope(self) -> Reals:
        """A slope that goes with each law: 1/λ or 1/σ."""
        return self.rate if self.laplace else np.sqrt(2 * self.rate)


@dataclass(frozen=True, eq=False)
class Outlook:
    """Guesses for every kind of piece, and the responses of leaves."""

    low: Ints  # the window
    high: Ints
    tilt: Reals  # the slope from above at the place of the window
    below: Reals  # the same slope with that of the own weight, the least and the largest of all such pieces
    centre: Reals  # the mean of the total
    share: Reals  # how much of a move of the total the left part takes
    rest: Reals  # the variance with which what lies outside and the own weight let the total move
    hold: Reals  # how that bends, for moves up and down (see `_cost`)
    left_mean: Reals  # the mean of the left part
    grid: Reals
    unit: float
    leaf_mean: Reals
    leaf_variance: Reals
    leaf_steep: Reals


def slopes(laws: Laws, depth: int) -> Reals:
    """The grid of slopes: up to what so many outputs above one another can pull, and close to the poles of leaves.

    A Laplace leaf without a bound has its mean run off as the slope comes near 1/λ.
    """
    unit, least = float(laws.slope.max()), float(laws.slope.min())
    if laws.laplace:
        poles = np.unique(np.quantile(laws.rate, [0.0, 0.5, 1.0], method="nearest"))
        half = np.concatenate([p * np.concatenate([1 - 0.5**_NEAR, [1.06, 1.3]]) for p in poles])
        half = np.concatenate([half, unit * np.geomspace(1.7, depth + 2, 5)])
    else:
        half = np.geomspace(least / 8, 6 * unit * depth, 2 * _NEAR.size)
    half = np.unique(half)
    return np.concatenate([-half[::-1], [0.0], half])


def leaf_responses(leaves: Leaves, laws: Laws, grid: Reals) -> tuple[Reals, Reals]:
    """Mean and variance of every kind of leaf under every slope."""
    measured = leaves.law >= 0
    rate = np.where(
        measured, laws.rate[np.maximum(leaves.law, 0)], laws.rate.min() / (50.0 if laws.laplace else 2500.0)
    )
    if laws.laplace:
        return _laplace_responses(rate, leaves.low.astype(float), leaves.high.astype(float), grid)
    return _gaussian_responses(rate, leaves.low.astype(float), leaves.high.astype(float), grid)


@numba.njit(**_OPTIONS)
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


@numba.njit(**_OPTIONS)
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
                term = 1.0
                for j in range(1, np.int64(min(-low[q], 4000.0)) + 1):
                    term *= down
                    total += term
                    first -= j * term
                    second += j * j * term
                m = first / total
                mean[q, g] = m
                variance[q, g] = max(second / total - m * m, 1e-3)
    return mean, variance


def _gaussian_responses(rate: Reals, low: Reals, high: Reals, grid: Reals) -> tuple[Reals, Reals]:
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


@numba.njit(**_OPTIONS)
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


@numba.njit(**_OPTIONS)
def between(a: Any, b: Any, part: Any, unit: Any) -> Any:
    """A number between two, so that means which run off to a pole are followed well: linear in x/(unit + |x|)."""
    y = a / (unit + abs(a))
    y += (b / (unit + abs(b)) - y) * part
    return unit * y / (1 - abs(y))


@numba.njit(**_OPTIONS)
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


@numba.njit(**_OPTIONS)
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


@numba.njit(**_OPTIONS)
def _cost(d: Any, v: Any, bend: Any, pull: Any) -> Any:
    """Minus the log-probability of straying d from the mean, about, and its slope.

    Parabolic with variance v until the slope is bend[0]; from there the slope grows as with variance bend[1] up to
    bend[2]. `pull` is a slope that helps to stray.
    """
    first, last = bend[0] - pull, max(bend[2] - pull, 0.05 * bend[2])
    if first < 0.05 * bend[0]:
        first = last
    turn = v * first
    if d <= turn:
        return d * d / (2 * v), d / v
    cost = first * turn / 2
    x = d - turn
    straight = (last - first) * bend[1]
    if x <= straight:
        return cost + first * x + x * x / (2 * bend[1]), first + x / bend[1]
    cost += first * straight + straight * straight / (2 * bend[1]) if straight > 0 else 0.0
    return cost + last * (x - max(straight, 0.0)), last


@numba.njit(**_OPTIONS)
def reach(v: Any, bend: Any, pull: Any, other_v: Any, other_bend: Any, other_pull: Any, need: Any) -> Any:
    """How far a total strays with log-probability −need, while another goes back as far."""
    d = np.sqrt(2 * need / (1 / v + 1 / other_v))
    for _ in range(12):
        cost, slope = _cost(d, v, bend, pull)
        other_cost, other_slope = _cost(d, other_v, other_bend, other_pull)
        cost += other_cost
        if cost >= need * (1 - 1e-3):
            break
        d += (need - cost) / (slope + other_slope)
    return d


@numba.njit(**_OPTIONS)
def _along(means: Any, grid: Any, slope: Any, centre: Any, sign: Any, other_v: Any, other_bend: Any, need: Any) -> Any:
    """As `reach`, for a total that strays along its own responses: the cost is the slope that it takes, summed up."""
    d, cost, pull = 0.0, 0.0, 0.0
    g = np.searchsorted(grid, slope) if sign > 0 else np.searchsorted(grid, slope, "right") - 1
    while 0 <= g < grid.size:
        further, harder = sign * (means[g] - centre), sign * (grid[g] - slope)
        if further > d:
            length = further - d
            more = cost + length * (pull + harder) / 2
            held, _ = _cost(further, other_v, other_bend, 0.0)
            if more + held >= need:  # between the two, where the pull grows evenly
                low, high = 0.0, length
                for _ in range(24):
                    x = (low + high) / 2
                    held, _ = _cost(d + x, other_v, other_bend, 0.0)
                    if cost + x * (pull + x * (harder - pull) / (2 * length)) + held >= need:
                        high = x
                    else:
                        low = x
                return d + high
            d, cost = further, more
        pull = max(pull, harder)
        g += sign
    held, held_slope = _cost(d, other_v, other_bend, 0.0)
    return d + (need - cost - held) / (pull + held_slope)


@numba.njit(**_OPTIONS)
def _in_series(bend: Any, other: Any) -> None:
    """The bend of a sum of two totals, in place of the first: the softer one gives way."""
    bend[0], bend[1], bend[2] = min(bend[0], other[0]), bend[1] + other[1], min(bend[2], other[2])


@numba.njit(**_OPTIONS)
def _upward(
    some: Any, kind_left: Any, kind_right: Any, law: Any, example: Any, first: Any, count: Any, leaf_kind: Any,
    leaf_mean: Any, leaf_variance: Any, rate: Any, laplace: Any, grid: Any, unit: Any,
    before_mean: Any, before_variance: Any, mean: Any, variance: Any,
) -> None:  # fmt: skip
    """Responses of some kinds, before and after their own weight; those of their parts are known."""
    n = grid.size
    slope_below = np.empty(n)
    for k in some:
        for g in range(n):
            before_mean[k, g], before_variance[k, g] = 0.0, 0.0
        if kind_left[k] < 0:
            p = example[k]
            for j in range(first[p], first[p] + count[p]):
                q = leaf_kind[j]
                for g in range(n):
                    before_mean[k, g] += leaf_mean[q, g]
                    before_variance[k, g] += leaf_variance[q, g]
        else:
            for part in range(2):
                child = kind_right[k] if part else kind_left[k]
                if child >= 0:
                    for g in range(n):
                        before_mean[k, g] += mean[child, g]
                        before_variance[k, g] += variance[child, g]
        if law[k] < 0:
            for g in range(n):
                mean[k, g], variance[k, g] = before_mean[k, g], before_variance[k, g]
            continue
        own = rate[law[k]]
        for g in range(n):
            m, v = before_mean[k, g], before_variance[k, g]
            if laplace:
                width2 = 1 / (1 / v + own * own / 2)
                pull = own * m / np.sqrt(m * m + width2)
            else:
                pull = 2 * own * m
            slope_below[g] = grid[g] + pull  # the slope from above at which the slope below is grid[g]
        i = 0
        for g in range(n):
            while i < n - 2 and slope_below[i + 1] < grid[g]:
                i += 1
            part = (grid[g] - slope_below[i]) / (slope_below[i + 1] - slope_below[i])
            part = min(max(part, 0.0), 1.0)
            m = between(before_mean[k, i], before_mean[k, i + 1], part, unit)
            v = between(before_variance[k, i], before_variance[k, i + 1], part, unit * unit)
            mean[k, g] = m
            if laplace:
                width2 = 1 / (1 / v + own * own / 2)
                bend = own * width2 / (m * m + width2) ** 1.5
            else:
                bend = 2 * own
            variance[k, g] = v / (1 + v * bend)


@numba.njit(**_OPTIONS)
def _learned(
    some: Any, tilt: Any, grid: Any, mean: Any, variance: Any, values: Any, offset: Any, lo: Any, hi: Any, r_lo: Any,
    r_hi: Any,
) -> None:  # fmt: skip
    """Put what the messages of some kinds say into their responses, at slopes at which their windows hold it all."""
    for k in some:
        size = hi[k] - lo[k] + 1
        middle = size // 2
        least, most = np.inf, -np.inf
        first_known, last_known = grid.size, -1
        for g in range(grid.size):
            slope = grid[g] - tilt[k]
            if abs(slope) * size > 600.0:
                continue
            up, down = np.exp(slope), np.exp(-slope)
            mass, first, second = 0.0, 0.0, 0.0
            factor = 1.0
            for i in range(middle, size):
                value = values[offset[k] + i] * factor
                factor *= up
                mass += value
                first += value * (i - middle)
                second += value * (i - middle) ** 2
                last = value
            beyond = last * r_hi[k]
            factor = down
            last = 0.0
            for i in range(middle - 1, -1, -1):
                value = values[offset[k] + i] * factor
                factor *= down
                mass += value
                first += value * (i - middle)
                second += value * (i - middle) ** 2
                last = value
            beyond += last * r_lo[k]
            if beyond > 1e-4 * mass:
                continue
            first /= mass
            mean[k, g] = lo[k] + middle + first
            variance[k, g] = max(second / mass - first * first, 1e-2)
            least, most = min(least, mean[k, g]), max(most, mean[k, g])
            first_known, last_known = min(first_known, g), max(last_known, g)
        for g in range(first_known):
            mean[k, g] = min(mean[k, g], least)
        for g in range(last_known + 1, grid.size):
            mean[k, g] = max(mean[k, g], most)


@numba.njit(**_OPTIONS)
def _downward(
    kind: Any, left: Any, right: Any, root: Any, first: Any, count: Any, leaf_kind: Any, leaf_steep: Any,
    kind_law: Any, lowest: Any, highest: Any, rate: Any, laplace: Any, grid: Any, unit: Any, before_mean: Any,
    before_variance: Any, mean: Any, variance: Any, need: Any, endless: Any, height: Any, known: Any, rough: Any,
    slope: Any, below: Any, centre: Any, spread: Any, before: Any, bends: Any, low: Any, high: Any, kind_tilt: Any,
    kind_below: Any, kind_centre: Any, kind_share: Any, kind_rest: Any, kind_hold: Any, kind_left_mean: Any,
) -> None:  # fmt: skip
    """Windows and tilts of kinds higher than `known`; a kind's window holds those of all its pieces.

    Slopes and means go down; then how totals bend when they stray up [0] or down [1] goes up; then what holds a total
    from outside goes down: `rest`, the variance with which it lets the total move, and `hold`, how that bends. What
    is kept by piece (slope, …, bends) serves the next call.
    """
    pieces, kinds = kind.size, kind_law.size
    for p in range(pieces - 1, -1, -1):
        k = kind[p]
        if height[k] <= known:
            continue
        if root[p] > 0:
            slope[p] = 0.0
        centre[p] = 0.0 if root[p] == 2 else at(mean[k], grid, slope[p], unit)
        spread[p] = max(at(variance[k], grid, slope[p], unit * unit), 1e-2)
        below[p] = slope_for(before_mean[k], grid, centre[p], unit)
        before[p] = max(at(before_variance[k], grid, below[p], unit * unit), 1e-2)
        for side in range(2):
            child = right[p] if side else left[p]
            if child < 0:
                continue
            slope[child] = below[p]
            if height[kind[child]] <= known:  # its windows stay, its mean is better known
                centre[child] = at(mean[kind[child]], grid, slope[child], unit)
                spread[child] = max(at(variance[kind[child]], grid, slope[child], unit * unit), 1e-2)
    rigid = 1e9
    for p in range(pieces):
        if height[kind[p]] <= known:
            continue
        own_law = kind_law[kind[p]]
        for side in range(2):
            sign = 1.0 if side == 0 else -1.0
            bend = bends[p, side]
            if left[p] < 0:
                steep = np.inf
                for j in range(first[p], first[p] + count[p]):
                    steep = min(steep, leaf_steep[leaf_kind[j]])
                bend[0] = max(steep - sign * below[p], 0.02 * steep)
                bend[1] = 1.0
                bend[2] = bend[0]
            else:
                bend[:] = bends[left[p], side]
                if right[p] >= 0:
                    _in_series(bend, bends[right[p], side])
            if own_law >= 0:
                if laplace:
                    own = rate[own_law]
                    soft = max(own + sign * (below[p] - slope[p]), 0.02 * own)
                    bend[0], bend[1], bend[2] = soft, before[p], soft + bend[0]
                else:
                    bend[:] = rigid
    for k in range(kinds):
        if height[k] > known:
            low[k], high[k], kind_rest[k] = endless, -endless, 0.0
            kind_hold[k] = np.inf
            kind_below[k, 0], kind_below[k, 1] = np.inf, -np.inf
    rest = np.empty(pieces)
    hold = np.empty((pieces, 2, 3))
    for p in range(pieces - 1, -1, -1):
        k = kind[p]
        if height[k] <= known:
            continue
        fixed = root[p] == 2
        if root[p] > 0:
            rest[p] = 1e-9 if fixed else 1e18
            hold[p] = rigid if fixed else 1e-9
            hold[p, :, 1] = 1e18
        if fixed:
            lo, hi = max(lowest[k], np.int64(-2)), min(highest[k], np.int64(2))
        else:
            if rough:
                up = _along(mean[k], grid, slope[p], centre[p], 1, rest[p], hold[p, 0], need) + 3
                down = _along(mean[k], grid, slope[p], centre[p], -1, rest[p], hold[p, 1], need) + 3
            else:
                up = reach(spread[p], bends[p, 0], 0.0, rest[p], hold[p, 0], 0.0, need) + 3
                down = reach(spread[p], bends[p, 1], 0.0, rest[p], hold[p, 1], 0.0, need) + 3
            if laplace and left[p] < 0:
                hardest = rate.max()
                up = min(up, max(MOST_DECAY / hardest - centre[p], 4.0))
                down = min(down, max(MOST_DECAY / hardest + centre[p], 4.0))
            lo = min(max(np.int64(np.floor(centre[p] - down)), lowest[k]), max(highest[k] - 3, lowest[k]))
            hi = max(min(np.int64(np.ceil(centre[p] + up)), highest[k]), min(lowest[k] + 3, highest[k]))
        low[k] = min(low[k], lo)
        high[k] = max(high[k], hi)
        kind_tilt[k], kind_centre[k] = slope[p], centre[p]
        kind_below[k, 0], kind_below[k, 1] = min(kind_below[k, 0], below[p]), max(kind_below[k, 1], below[p])
        # what holds the total below the own weight: that weight and everything outside
        own_rest = rest[p]
        own_hold = hold[p].copy()
        if kind_law[k] >= 0 and not fixed:
            own = rate[kind_law[k]]
            if laplace:
                width2 = 1 / (1 / before[p] + own * own / 2)
                bend_by = own * width2 / (centre[p] * centre[p] + width2) ** 1.5
                for side in range(2):
                    sign = 1.0 if side == 0 else -1.0
                    soft = max(own + sign * (below[p] - slope[p]), 0.02 * own)
                    own_hold[side, 2] = soft + own_hold[side, 0]
                    own_hold[side, 1] = own_rest
                    own_hold[side, 0] = soft
            else:
                bend_by = 2 * own
                own_hold[:] = rigid
            own_rest = 1 / (1 / own_rest + bend_by)
        kind_rest[k] = max(kind_rest[k], own_rest)
        for side in range(2):
            if own_hold[side, 0] < kind_hold[k, side, 0]:
                kind_hold[k, side] = own_hold[side]
        a, b = left[p], right[p]
        if a < 0:
            continue
        if b < 0:
            rest[a] = own_rest
            hold[a] = own_hold
            continue
        rest[a], rest[b] = spread[b] + own_rest, spread[a] + own_rest
        for side in range(2):  # one goes up when the other goes down, or when the total goes up
            hold[a, side] = bends[b, 1 - side]
            hold[b, side] = bends[a, 1 - side]
            _in_series(hold[a, side], own_hold[side])
            _in_series(hold[b, side], own_hold[side])
        kind_share[k] = spread[a] / (spread[a] + spread[b])
        kind_left_mean[k] = centre[a]


class Prospect:
    """Guesses of windows for all kinds of pieces, which can be made again as messages become known."""

    def __init__(
        self, pieces: Pieces, leaves: Leaves, laws: Laws, need: float, over: Over, more: Reals | None = None
    ) -> None:
        """Guess windows beyond which totals lie with a probability of about e^{−need}; `over` runs tasks on slices.

        `more` are slopes for the grid.
        """
        grid = slopes(laws, 8)
        if more is not None:
            grid = np.unique(np.concatenate([grid, more]))
        unit = float(1 / laws.slope.min())
        leaf_mean, leaf_variance = leaf_responses(leaves, laws, grid)
        measured = leaves.law >= 0
        if laws.laplace:
            steep = np.where(measured, laws.rate[np.maximum(leaves.law, 0)], laws.rate.min() / 50)
        else:
            steep = np.where(measured, 1e9, 1e-3 * laws.slope.min())
        self._pieces, self._laws, self._need, self._over = pieces, laws, need, over
        self._rough = more is not None
        self._leaf = (leaf_mean, leaf_variance, steep)
        self._grid = (grid, unit)
        kinds, size = pieces.kinds, pieces.size
        self._responses: tuple[Reals, ...] = tuple(np.empty((kinds, grid.size)) for _ in range(4))
        self._by_piece: tuple[Reals, ...] = (*(np.zeros(size) for _ in range(5)), np.empty((size, 2, 3)))
        whole = [np.zeros(kinds, dtype=np.int64) for _ in range(2)]
        real = [np.zeros(kinds) for _ in range(5)]
        self.outlook = Outlook(
            whole[0], whole[1], real[0], np.zeros((kinds, 2)), real[1], real[2], real[3], np.empty((kinds, 2, 3)),
            real[4], grid, unit, leaf_mean, leaf_variance, steep,
        )  # fmt: skip
        order = np.argsort(pieces.height, kind="stable")
        ends = np.searchsorted(pieces.height[order], np.arange(int(pieces.height.max(initial=0)) + 2))
        self.heights = [order[ends[h] : ends[h + 1]] for h in range(ends.size - 1)]
        self._guess(-1)

    @property
    def is_rough(self) -> bool:
        """Whether leaves are pulled so hard that guesses through own weights are biased."""
        return self._pieces.kinds > 0 and bool(np.median(np.abs(self.outlook.below)) > self._laws.slope.min())

    @property
    def usual_slopes(self) -> Reals:
        """The slopes that are met most at each height."""
        o, unit = self.outlook, self._laws.slope.min()
        found = np.array([np.median(of[kinds]) for of in (o.tilt, o.below) for kinds in self.heights])
        return np.unique(np.round(found / unit, 3)) * unit

    def learn(self, height: int, shelf: Any) -> None:
        """Guess what is above a height again, now that all messages up to it are known."""
        o, (grid, _) = self.outlook, self._grid
        mean, variance = self._responses[2:]
        _learned(
            self.heights[height], o.tilt, grid, mean, variance, shelf.values, shelf.offset, shelf.lo, shelf.hi,
            shelf.r_lo, shelf.r_hi,
        )  # fmt: skip
        self._guess(height)

    def forget(self) -> None:
        """Let go of what only learning needs."""
        self._responses, self._by_piece = (), ()

    def _guess(self, known: int) -> None:
        p, laws, o = self._pieces, self._laws, self.outlook
        leaf_mean, leaf_variance, steep = self._leaf
        for kinds in self.heights[known + 1 :]:
            self._over(
                lambda some: _upward(
                    some, p.kind_left, p.kind_right, p.law, p.example, p.first, p.count, p.leaf_kind, leaf_mean,
                    leaf_variance, laws.rate, laws.laplace, *self._grid, *self._responses,
                ),
                kinds,
            )  # fmt: skip
        _downward(
            p.kind, p.left, p.right, p.root, p.first, p.count, p.leaf_kind, steep, p.law, p.lowest, p.highest,
            laws.rate, laws.laplace, *self._grid, *self._responses, self._need, LARGEST, p.height, known, self._rough,
            *self._by_piece, o.low, o.high, o.tilt, o.below, o.centre, o.share, o.rest, o.hold, o.left_mean,
        )  # fmt: skip
