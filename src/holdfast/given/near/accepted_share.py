"""Two-way tables by rejection: how many proposals are accepted at least, and how far cut messages may be off.

Both are proved (docs/theory/walks.md, §1): the share because errors of proposals count 1/share times among those that
are accepted, the messages because the limits of the rows must hold for what is computed.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from scipy import special

from holdfast.arrays import Floats
from holdfast.given.near.rows_in_turn import TAIL, Table, Windows

#: Up to this y, log(1 − y) ≥ −y − y².
LARGEST_Y = 0.68
#: Parts of a lower sum, and points of an integral over the circle.
PARTS, POINTS = 2_000, 1 << 14
#: Taken off the logarithm of a share for the rounding of its own computation.
MARGIN = 1e-6


def missing_share(scale: float, rows: int, sizes: Windows) -> float:
    """The share of f_m(c), |c| within half a column's window, that windows cut away, at most (Lemma 3)."""
    half = (sizes.depth - sizes.core) // 2
    single = 2 * math.exp(-(sizes.reach - half) / scale) / -math.expm1(-1 / scale)
    return rows * (single + 2 * TAIL * (2 * half + 1) / (1 - TAIL))


def log_least_share(table: Table, limits: Floats, scales: Sequence[float]) -> float:
    """The log of the share of tables that are accepted, at least: P(row sums 0 | column sums 0) over all limits.

    Scales are λ of each class of columns. Two bounds; the first is good for few rows, the second for many.
    """
    rows, which = table.weights.shape[0], table.which
    depth, reach = table.below.shape[2] // 2, table.weights.shape[2] // 2
    places = np.arange(-reach, reach + 1)
    held, log_zero = [], []
    for k in range(len(scales)):
        law = table.weights[0, k] * table.below[1, k, depth - places]
        held.append(float((law * places**2).sum() / law.sum()))
        log_zero.append(_log_sum_is_zero(table.weights[0, k], rows))
    first = _by_columns(np.array(held)[which] * rows / (rows - 1), rows)
    second = _by_cells(np.array([0.5 / math.sinh(0.5 / scale) ** 2 for scale in scales])[which], rows)
    second -= float(np.array(log_zero)[which].sum())
    return min(0.0, max(first, second) - float(np.log(limits).sum()) - MARGIN)


def _log_sum_is_zero(weights: Floats, rows: int) -> float:
    """The log of the probability that so many noises sum to 0, or a little more: multiples of `points` count too."""
    points = max(POINTS, 1 << weights.size.bit_length())
    circle = np.zeros(points)
    circle[np.arange(weights.size) - weights.size // 2] = weights / weights.sum()
    return math.log(float((np.fft.fft(circle).real.clip(0.0) ** rows).mean()))


def _by_columns(each: Floats, rows: int) -> float:
    """log P(row sums 0 | column sums 0): columns are independent, each with a covariance of each·(I − 11ᵀ/rows)."""
    total = float(each.sum())
    parts = each / total
    most = min(LARGEST_Y / float(parts.max()), math.pi**2 * total / (2 * rows))
    ends = np.linspace(0.0, most, PARTS + 1)
    shares = np.diff(special.gammainc((rows - 1) / 2, ends))
    mean = float((shares * np.exp(-float((parts**2).sum()) * ends[1:] ** 2)).sum())
    if mean <= 0:
        return -math.inf
    log_volume = (rows - 1) * math.log(total) - math.log(rows)
    return -(rows - 1) / 2 * math.log(2 * math.pi) - log_volume / 2 + math.log(mean)


def _by_cells(variances: Floats, rows: int) -> float:
    """log of the mean of Π e^{−σ_j²(a_i + b_j)²/2} over all angles, of which one is 0, at least."""
    total, columns = float(variances.sum()), variances.size
    count = rows + columns - 1
    log_volume = (columns - 1) * math.log(rows) + (rows - 1) * math.log(total) + float(np.log(variances).sum())
    outside = (rows - 1) * math.erfc(math.pi * math.sqrt(total) / 2)
    spread = 1 / (rows * variances) + (1 - 1 / rows) / total
    outside += float(special.erfc(math.pi / np.sqrt(2 * spread)).sum())
    if outside >= 1:
        return -math.inf
    return -count / 2 * math.log(2 * math.pi) - log_volume / 2 + math.log1p(-outside)
