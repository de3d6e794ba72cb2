"""Rows of noisy values, moved one after the other in compiled code.

`forest` is (leaf_start, inner_start, leaves, inner); `weights` is (leaves' weights, leaves' variances, common
variances, inner weights); `bounds` are those on values: leaves' lower, leaves' upper (empty: none at all), inner lower,
inner upper, ∓2**62 where there is none. `ends` are the inner bounds as they were asked for, with those that the
children's bounds imply.
"""

from __future__ import annotations

import numba
import numpy as np

from holdfast.arguments import LARGEST
from holdfast.trees.nearest_curves import curves
from holdfast.trees.nearest_integer import whole_least_squares
from holdfast.trees.nearest_real import least_squares, slopes_at


@numba.njit(cache=True, nogil=True)
def _read(forest, weight, low, high, noisy, inner_y, gap):  # type: ignore[no-untyped-def]
    """Sort the noisy values of inner outputs, and find the gap between each and the sum of its children.

    Inner outputs that are neither measured nor exact start from the sum of their children.
    """
    leaf_start, inner_start, leaves, inner = forest
    for k in range(inner_y.size - 1, -1, -1):
        total = noisy.dtype.type(0)
        for j in range(leaf_start[k], leaf_start[k + 1]):
            total += noisy[leaves[j]]
        for c in range(inner_start[k], inner_start[k + 1]):
            total += inner_y[c]
        inner_y[k] = noisy[inner[k]]
        if weight[k] == 0.0 and low[k] < high[k]:
            inner_y[k] = total
        gap[k] = total - inner_y[k]


@numba.njit(cache=True, nogil=True)
def _moves_within(low, high, outputs, noisy, lo, hi):  # type: ignore[no-untyped-def]
    """Bounds on moves of outputs, ∓inf where there is none."""
    for i in range(lo.size):
        lo[i] = low[i] - noisy[outputs[i]] if low[i] > -LARGEST else -np.inf
    for i in range(hi.size):
        hi[i] = high[i] - noisy[outputs[i]] if high[i] < LARGEST else np.inf


@numba.njit(cache=True, nogil=True)
def _answer(forest, lo, hi, variance, price, leaf_x):  # type: ignore[no-untyped-def]
    """The real moves of leaves at the prices found; those that are roots stay as near to 0 as their bounds allow."""
    leaf_start = forest[0]
    for j in range(leaf_start[0]):
        x = max(0.0, lo[j])
        leaf_x[j] = min(x, hi[j]) if hi.size > 0 else x
    for k in range(price.size):
        for j in range(leaf_start[k], leaf_start[k + 1]):
            x = max(price[k] * variance[j], lo[j])
            leaf_x[j] = min(x, hi[j]) if hi.size > 0 else x


@numba.njit(cache=True, nogil=True)
def _write_real(forest, bounds, ends, noisy, move, result):  # type: ignore[no-untyped-def]
    """Leaves within their bounds exactly; parents the sums of their children, and within their bounds exactly."""
    leaf_start, inner_start, leaves, inner = forest
    leaf_low, leaf_high, _, _ = bounds
    low, high = ends
    for j in range(move.size):
        z = max(noisy[leaves[j]] + move[j], leaf_low[j])
        result[leaves[j]] = min(z, leaf_high[j]) if leaf_high.size > 0 else z
    for k in range(low.size - 1, -1, -1):
        total = 0.0
        for j in range(leaf_start[k], leaf_start[k + 1]):
            total += result[leaves[j]]
        for c in range(inner_start[k], inner_start[k + 1]):
            total += result[inner[c]]
        result[inner[k]] = min(max(total, low[k]), high[k])


@numba.njit(cache=True, nogil=True)
def _write_whole(forest, bounds, noisy, move, result):  # type: ignore[no-untyped-def]
    """Leaves and sums; tell whether every bound and exact value holds, as it must."""
    leaf_start, inner_start, leaves, inner = forest
    leaf_low, leaf_high, low, high = bounds
    for j in range(move.size):
        z = noisy[leaves[j]] + np.int64(move[j])
        if z < leaf_low[j] or (leaf_high.size > 0 and z > leaf_high[j]):
            return False
        result[leaves[j]] = z
    for k in range(low.size - 1, -1, -1):
        total = 0
        for j in range(leaf_start[k], leaf_start[k + 1]):
            total += result[leaves[j]]
        for c in range(inner_start[k], inner_start[k + 1]):
            total += result[inner[c]]
        if total < low[k] or total > high[k]:
            return False
        result[inner[k]] = total
    return True


@numba.njit(cache=True, nogil=True)
def real_rows(forest, weights, bounds, ends, bounded, noisy, result):  # type: ignore[no-untyped-def]
    """Least squares over the reals; return how many rows were moved before one did not settle."""
    leaf_start, inner_start, leaves, inner = forest
    leaf_low, leaf_high, low, high = bounds
    _, variance, same, weight = weights
    inner_y, places = np.empty(inner.size, noisy.dtype), np.arange(inner.size)
    gap, x, leaf_x = np.empty(inner.size), np.empty(inner.size), np.empty(leaves.size)
    lo, hi, inner_lo, inner_hi = np.empty(leaves.size), np.empty(leaf_high.size), np.empty(gap.size), np.empty(gap.size)
    price, slope, response = np.zeros(gap.size), np.zeros(gap.size), np.zeros(gap.size)
    for row in range(noisy.shape[0]):
        _read(forest, weight, low, high, noisy[row], inner_y, gap)
        _moves_within(leaf_low, leaf_high, leaves, noisy[row], lo, hi)
        _moves_within(low, high, places, inner_y, inner_lo, inner_hi)
        settled = least_squares(
            leaf_start,
            inner_start,
            lo,
            hi,
            variance,
            same,
            gap,
            inner_lo,
            inner_hi,
            weight,
            bounded,
            price,
            x,
            slope,
            response,
        )
        if not settled:
            return row
        _answer(forest, lo, hi, variance, price, leaf_x)
        _write_real(forest, bounds, ends, noisy[row], leaf_x, result[row])
    return noisy.shape[0]


@numba.njit(cache=True, nogil=True)
def whole_rows(forest, weights, bounds, bounded, noisy, result, found, known):  # type: ignore[no-untyped-def]
    """Least squares over the whole numbers; return how many rows were moved before one could not be.

    `known`: the real optimum (leaves' moves, inner moves, prices) is in `found`; otherwise it is looked for.
    """
    leaf_start, inner_start, leaves, inner = forest
    leaf_low, leaf_high, low, high = bounds
    leaf_weight, variance, same, weight = weights
    leaf_x, x, price = found
    inner_y, gap, places = np.empty(inner.size, np.int64), np.empty(inner.size, np.int64), np.arange(inner.size)
    lo, hi, inner_lo, inner_hi = np.empty(leaves.size), np.empty(leaf_high.size), np.empty(gap.size), np.empty(gap.size)
    least, most = np.empty(gap.size, np.int64), np.empty(gap.size, np.int64)
    slope, response = np.zeros(gap.size), np.zeros(gap.size)
    move, inner_move = np.empty(leaves.size, np.int64), np.zeros(gap.size, np.int64)
    for row in range(noisy.shape[0]):
        _read(forest, weight, low, high, noisy[row], inner_y, gap)
        _moves_within(leaf_low, leaf_high, leaves, noisy[row], lo, hi)
        _moves_within(low, high, places, inner_y, inner_lo, inner_hi)
        if known:
            slopes_at(leaf_start, inner_start, lo, hi, variance, inner_lo, inner_hi, weight, leaf_x, x, slope, response)
        else:
            real_gap = gap.astype(np.float64)
            settled = least_squares(
                leaf_start,
                inner_start,
                lo,
                hi,
                variance,
                same,
                real_gap,
                inner_lo,
                inner_hi,
                weight,
                bounded,
                price,
                x,
                slope,
                response,
            )
            if not settled:
                return row
        for k in range(gap.size):
            least[k] = low[k] - inner_y[k] if low[k] > -LARGEST else -LARGEST
            most[k] = high[k] - inner_y[k] if high[k] < LARGEST else LARGEST
        leaf = (lo, hi, leaf_weight, same, leaf_x)
        for j in range(leaf_start[0]):
            move[j] = np.int64(max(0.0, lo[j]))
            if hi.size > 0:
                move[j] = np.int64(min(max(0.0, lo[j]), hi[j]))
        if not whole_least_squares(forest, leaf, gap, least, most, weight, price, slope, response, move, inner_move):
            return row
        if not _write_whole(forest, bounds, noisy[row], move, result[row]):
            return row
    return noisy.shape[0]


@numba.njit(cache=True, nogil=True)
def curve_rows(forest, weights, bounds, absolute, whole, noisy, moves, inner_x, price):  # type: ignore[no-untyped-def]
    """Find the moves of leaves, (size, leaves), by curves: absolute values or least squares; whole ones if `whole`.

    The moves of inner outputs and the prices of the last row are kept, for `whole_rows`.
    """
    leaf_start, _, leaves, inner = forest
    leaf_low, leaf_high, low, high = bounds
    leaf_weight, _, _, weight = weights
    inner_y, gap, places = np.empty(inner.size, noisy.dtype), np.empty(inner.size), np.arange(inner.size)
    lo, hi, inner_lo, inner_hi = np.empty(leaves.size), np.empty(leaf_high.size), np.empty(gap.size), np.empty(gap.size)
    for row in range(noisy.shape[0]):
        _read(forest, weight, low, high, noisy[row], inner_y, gap)
        _moves_within(leaf_low, leaf_high, leaves, noisy[row], lo, hi)
        _moves_within(low, high, places, inner_y, inner_lo, inner_hi)
        for j in range(leaf_start[0]):
            x = max(0.0, lo[j])
            moves[row, j] = min(x, hi[j]) if hi.size > 0 else x
        curves(
            forest, absolute, whole, lo, hi, leaf_weight, gap, inner_lo, inner_hi, weight, price, moves[row], inner_x
        )


@numba.njit(cache=True, nogil=True)
def write_real_rows(forest, bounds, ends, noisy, moves, result):  # type: ignore[no-untyped-def]
    """Write real tables from the moves of leaves."""
    for row in range(noisy.shape[0]):
        _write_real(forest, bounds, ends, noisy[row], moves[row], result[row])


@numba.njit(cache=True, nogil=True)
def write_whole_rows(forest, bounds, noisy, moves, result):  # type: ignore[no-untyped-def]
    """Write whole tables from the moves of leaves; tell whether everything holds as it must."""
    sound = True
    for row in range(noisy.shape[0]):
        sound = sound and _write_whole(forest, bounds, noisy[row], moves[row], result[row])
    return sound
