"""Where the noise of a two-way table lies when its margins are held and its cells are cut by bounds.

A bound pushes: a row of one large cell and many empty ones, which can only grow, pulls the large cell down by many
scales, so windows of a free cell are too narrow. The *typical* table is that of independent cut cells, tilted row by
row and column by column such that every margin is 0 in the mean: of all laws of independent cells with these margins it
has the largest entropy relative to the noise (Barvinok 2009). Windows lie around its means (docs/theory/walks.md, §2).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from holdfast.arrays import Floats, Ints, compiled

#: Newton steps for the tilts, the largest of one, and the imbalance of a margin, in deviations, at which they end.
STEPS, LONGEST, BALANCED = 200, 2.0, 1e-3
#: Places of a law on either side of its mode that are summed: what lies beyond weighs less than e^−40.
DEPTH = 40.0
#: Least distance of a tilt from the rate of Laplace noise, as a share of it: beyond, cells without bound have no mean.
ROOM = 1e-9


class Typical(NamedTuple):
    """Means and variances of cells, (rows, columns), their deviations once margins are held, and tilts of the rows."""

    means: Floats
    variances: Floats
    deviations: Floats
    tilts: Floats


@compiled(inner=True)
def _one_side(slope: float, first: float, last: float) -> tuple[float, float, float]:  # pragma: no cover (compiled)
    """Log of Σ e^{slope·u} over u = first … last, which may be far, and the mean and variance of u; slope < 0 if so."""
    count = last - first + 1
    if abs(slope) * count < 1e-7:
        return math.log(count) + slope * first, (first + last) / 2, (count * count - 1) / 12
    if slope > 0:
        log_sum, mean, variance = _one_side(-slope, -last, -first)
        return log_sum, -mean, variance
    rest = math.exp(slope * count) if slope * count > -700 else 0.0
    one = -math.expm1(slope)
    log_sum = slope * first + math.log1p(-rest) - math.log(one)
    mean = math.exp(slope) / one
    variance = mean / one
    if rest > 0.0:
        mean -= count * rest / (1 - rest)
        variance -= count * count * rest / (1 - rest) ** 2
    return log_sum, first + mean, max(variance, 0.0)


@compiled
def _cell(
    rate: float, square: bool, low: float, high: float, tilt: float
) -> tuple[float, float, float]:  # pragma: no cover (compiled)
    """Log of the sum, mean and variance of the law with weights e^{−rate·|u| + tilt·u}, or rate·u², within bounds."""
    if square:
        middle = min(max(math.floor(tilt / (2 * rate) + 0.5), low), high)
        reach = math.ceil(math.sqrt(DEPTH / rate) + 1)
        peak = -rate * middle * middle + tilt * middle
        total = first = second = 0.0
        for k in range(-reach, reach + 1):
            u = middle + k
            if low <= u <= high:
                weight = math.exp(-rate * u * u + tilt * u - peak)
                total, first, second = total + weight, first + weight * k, second + weight * k * k
        return peak + math.log(total), middle + first / total, second / total - (first / total) ** 2
    above, above_mean, above_variance = _one_side(tilt - rate, 0.0, high)
    if low > -1:
        return above, above_mean, above_variance
    below, below_mean, below_variance = _one_side(tilt + rate, low, -1.0)
    share = 1 / (1 + math.exp(min(700.0, max(-700.0, below - above))))
    gap = above_mean - below_mean
    mean = below_mean + share * gap
    variance = share * above_variance + (1 - share) * below_variance + share * (1 - share) * gap * gap
    return max(above, below) + math.log1p(math.exp(-abs(above - below))), mean, variance


@compiled
def _moments(
    rates: Floats, square: bool, low: Floats, high: Floats, tilts: Floats, means: Floats, variances: Floats
) -> float:  # pragma: no cover (compiled)
    total = 0.0
    for i in range(rates.shape[0]):
        for j in range(rates.shape[1]):
            one, means[i, j], variances[i, j] = _cell(rates[i, j], square, low[i, j], high[i, j], tilts[i, j])
            total += one
    return total


def typical(rates: Floats, square: bool, low: Ints, high: Ints, far: int) -> Typical:
    """The typical table of cells with weights e^{−rate·|u|}, or e^{−rate·u²}, from low ≤ 0 to high ≥ 0.

    Bounds at ∓far are none. The tilts minimise Σ log Σ_u w(u)·e^{(a_i + b_j)·u}, a convex function, by Newton steps.
    """
    rows, columns = rates.shape
    least, most = low.astype(np.float64), high.astype(np.float64)
    # A tilt beyond the rate leaves a cell without bound on that side no mean.
    edge = np.inf if square else rates * (1 - ROOM)
    floor, ceiling = np.where(low <= -far, -edge, -np.inf), np.where(high >= far, edge, np.inf)
    means, variances = np.empty(rates.shape), np.empty(rates.shape)
    steps = np.zeros(rows + columns)

    def value(at: Floats) -> float:
        tilts = at[:rows, None] + at[None, rows:]
        if (tilts <= floor).any() or (tilts >= ceiling).any():
            return math.inf
        return float(_moments(rates, square, least, most, tilts, means, variances))

    now = value(steps)
    for _ in range(STEPS):
        slope = np.concatenate([means.sum(axis=1), means.sum(axis=0)])
        curve = np.concatenate([variances.sum(axis=1), variances.sum(axis=0)])
        spread = np.sqrt(np.maximum(curve, 1e-12))
        if np.abs(slope / spread).max() < BALANCED:
            break
        # One direction changes nothing: all rows up, all columns down; cells that cannot move have no curve.
        towards = -_solved(variances, curve + 1e-9 * spread**2 + 1e-12, slope)
        towards *= min(1.0, LONGEST / max(1e-300, np.abs(towards).max()))
        length, before = 1.0, now
        while not (now := value(steps + length * towards)) <= before + 1e-4 * length * float(slope @ towards):
            length /= 2
            if length < 1e-9:
                break
        if length < 1e-9:
            value(steps)
            break
        steps = steps + length * towards
    return Typical(means, variances, conditional_deviations(variances), steps[:rows] - steps[:rows].mean())


def _solved(variances: Floats, diagonal: Floats, right: Floats) -> Floats:
    """Solve for the matrix with this diagonal and the variances beside it: what belongs to columns is eliminated."""
    rows = len(variances)
    shares = variances / diagonal[rows:]
    left = np.linalg.solve(np.diag(diagonal[:rows]) - shares @ variances.T, right[:rows] - shares @ right[rows:])
    return np.concatenate([left, (right[rows:] - variances.T @ left) / diagonal[rows:]])


def conditional_deviations(variances: Floats) -> Floats:
    """Deviations of cells given all margins, were they normal with these variances.

    Each is that of its cell less what its row and column tell, by any generalised inverse of their covariance: that of
    the rows alone, columns eliminated, is small.
    """
    across, down = variances.sum(axis=1), variances.sum(axis=0)
    inverse = np.where(down > 0, 1 / np.where(down > 0, down, 1.0), 0.0)
    shares = variances * inverse
    unit = np.where(across > 0, 1 / np.sqrt(np.where(across > 0, across, 1.0)), 0.0)
    sizes, axes = np.linalg.eigh(np.eye(len(across)) - unit[:, None] * (shares @ variances.T) * unit)
    open_axes = unit[:, None] * axes[:, sizes > 1e-12]  # rows that hang together through columns leave one direction
    own = (open_axes / sizes[sizes > 1e-12]) @ open_axes.T
    crossed = own @ shares
    columns = inverse + np.einsum("ij,ij->j", shares, crossed)
    held = variances * (own.diagonal()[:, None] + columns[None, :] - 2 * crossed)
    return np.asarray(np.sqrt(variances * np.clip(1 - held, 0.0, 1.0)))


def rounded(means: Floats) -> Ints:
    """Whole numbers less than 1 from the means whose rows sum to 0; the columns do so nearly."""
    sums = np.cumsum(means, axis=1)
    sums[:, -1] = 0.0
    offsets = (np.arange(len(means)) * 0.6180339887498949) % 1.0  # rows are rounded up at different places
    places = np.floor(sums + offsets[:, None]).astype(np.int64)
    return np.diff(places, axis=1, prepend=0)
