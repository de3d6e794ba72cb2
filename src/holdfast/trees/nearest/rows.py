"""Rows of noisy values, moved one after the other in compiled code.

`forest` is (leaf_start, inner_start, leaves, inner); `weights` is (leaves' weights, leaves' variances, common
variances, inner weights); `bounds` are those on values: leaves' lower, leaves' upper (empty: none at all), inner lower,
inner upper, ∓2**62 where there is none. `ends` are the inner bounds as they were asked for, with those that the
children's bounds imply. `limits` are the bounds on moves in the order of `bounds`, ∓inf where there is none.
"""

from __future__ import annotations

import numpy as np

from holdfast.arguments import LARGEST
from holdfast.arrays import compiled
from holdfast.trees.nearest.curves import curves
from holdfast.trees.nearest.integer import whole_least_squares
from holdfast.trees.nearest.real import least_squares, slopes_at


@compiled(inner=True)
def _read(forest, weights, bounds, noisy, inner_y, gap, limits):  # type: ignore[no-untyped-def]
    """Sort the noisy values of inner outputs, find the gap between each and the sum of its children, and the limits.

    Inner outputs that are neither measured nor exact start from the sum of their children.
    """
    leaf_start, inner_start, leaves, inner = forest
    leaf_low, leaf_high, low, high = bounds
    lo, hi, inner_lo, inner_hi = limits
    for k in range(inner_y.size - 1, -1, -1):
        total = noisy.dtype.type(0)
        for j in range(leaf_start[k], leaf_start[k + 1]):
            total += noisy[leaves[j]]
        for c in range(inner_start[k], inner_start[k + 1]):
            total += inner_y[c]
        inner_y[k] = noisy[inner[k]]
        if weights[3][k] == 0.0 and low[k] < high[k]:
            inner_y[k] = total
        gap[k] = total - inner_y[k]
    for j in range(lo.size):
        lo[j] = leaf_low[j] - noisy[leaves[j]] if leaf_low[j] > -LARGEST else -np.inf
    for j in range(hi.size):
        hi[j] = leaf_high[j] - noisy[leaves[j]] if leaf_high[j] < LARGEST else np.inf
    for k in range(inner_y.size):
        inner_lo[k] = low[k] - inner_y[k] if low[k] > -LARGEST else -np.inf
        inner_hi[k] = high[k] - inner_y[k] if high[k] < LARGEST else np.inf


@compiled(inner=True)
def _room(bounds):  # type: ignore[no-untyped-def]
    """Room for the limits on moves, empty where there are no upper bounds on leaves."""
    leaf_low, leaf_high, low, high = bounds
    return np.empty(leaf_low.size), np.empty(leaf_high.size), np.empty(low.size), np.empty(high.size)


@compiled(inner=True)
def _answer(forest, limits, variance, price, leaf_x):  # type: ignore[no-untyped-def]
    """The real moves of leaves at the prices found; those that are roots stay as near to 0 as their bounds allow."""
    leaf_start, (lo, hi, _, _) = forest[0], limits
    for j in range(leaf_start[0]):
        x = max(0.0, lo[j])
        leaf_x[j] = min(x, hi[j]) if hi.size > 0 else x
    for k in range(price.size):
        for j in range(leaf_start[k], leaf_start[k + 1]):
            x = max(price[k] * variance[j], lo[j])
            leaf_x[j] = min(x, hi[j]) if hi.size > 0 else x


@compiled(inner=True)
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


@compiled(inner=True)
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


@compiled(beyond=20_000)
def real_rows(forest, weights, bounds, ends, bounded, noisy, result):  # type: ignore[no-untyped-def]
    """Least squares over the reals; return how many rows were moved before one did not settle."""
    leaves, inner = forest[2].size, forest[3].size
    inner_y, gap, limits = np.empty(inner, noisy.dtype), np.empty(inner), _room(bounds)
    found = (np.zeros(inner), np.empty(inner), np.zeros(inner), np.zeros(inner))
    leaf_x = np.empty(leaves)
    for row in range(noisy.shape[0]):
        _read(forest, weights, bounds, noisy[row], inner_y, gap, limits)
        if not least_squares(forest, weights, limits, gap, bounded, found):
            return row
        _answer(forest, limits, weights[1], found[0], leaf_x)
        _write_real(forest, bounds, ends, noisy[row], leaf_x, result[row])
    return noisy.shape[0]


@compiled(beyond=20_000)
def whole_rows(forest, weights, bounds, bounded, noisy, coins, result, start, known):  # type: ignore[no-untyped-def]
    """Least squares over the whole numbers; return how many rows were moved before one could not be.

    `known`: the real optimum (leaves' moves, inner moves, prices) is in `start`; otherwise it is looked for. `coins`
    decide ties, one for each row.
    """
    leaf_start, inner_start, leaves, inner = forest
    leaf_x, x, price = start
    inner_y, gap, limits = np.empty(inner.size, np.int64), np.empty(inner.size, np.int64), _room(bounds)
    lo, hi, _, _ = limits
    found = (price, x, np.zeros(inner.size), np.zeros(inner.size))
    least, most = np.empty(inner.size, np.int64), np.empty(inner.size, np.int64)
    move, inner_move = np.empty(leaves.size, np.int64), np.zeros(inner.size, np.int64)
    for row in range(noisy.shape[0]):
        _read(forest, weights, bounds, noisy[row], inner_y, gap, limits)
        if known:
            slopes_at(forest, weights, limits, leaf_x, found)
        elif not least_squares(forest, weights, limits, gap.astype(np.float64), bounded, found):
            return row
        for k in range(inner.size):
            low, high = bounds[2][k], bounds[3][k]
            least[k] = low - inner_y[k] if low > -LARGEST else -LARGEST
            most[k] = high - inner_y[k] if high < LARGEST else LARGEST
        for j in range(leaf_start[0]):
            move[j] = np.int64(max(0.0, lo[j]))
            if hi.size > 0:
                move[j] = np.int64(min(max(0.0, lo[j]), hi[j]))
        named = (leaf_start, inner_start, leaves ^ coins[row], inner ^ coins[row])
        if not whole_least_squares(named, weights, (lo, hi, least, most), leaf_x, gap, found, move, inner_move):
            return row
        if not _write_whole(forest, bounds, noisy[row], move, result[row]):
            return row
    return noisy.shape[0]


@compiled(beyond=20_000)
def curve_rows(forest, weights, bounds, absolute, whole, noisy, coins, moves, inner_x, price):  # type: ignore[no-untyped-def]
    """Find the moves of leaves, (size, leaves), by curves: absolute values or least squares; whole ones if `whole`.

    The moves of inner outputs and the prices of the last row are kept, for `whole_rows`.
    """
    leaf_start, inner_start, leaves, inner = forest
    inner_y, gap, limits = np.empty(inner.size, noisy.dtype), np.empty(inner.size), _room(bounds)
    lo, hi, _, _ = limits
    for row in range(noisy.shape[0]):
        _read(forest, weights, bounds, noisy[row], inner_y, gap, limits)
        for j in range(leaf_start[0]):
            x = max(0.0, lo[j])
            moves[row, j] = min(x, hi[j]) if hi.size > 0 else x
        named = (leaf_start, inner_start, leaves ^ coins[row], inner ^ coins[row])
        curves(named, weights, limits, absolute, whole, gap, price, moves[row], inner_x)


@compiled(beyond=20_000)
def write_real_rows(forest, bounds, ends, noisy, moves, result):  # type: ignore[no-untyped-def]
    for row in range(noisy.shape[0]):
        _write_real(forest, bounds, ends, noisy[row], moves[row], result[row])


@compiled(beyond=20_000)
def write_whole_rows(forest, bounds, noisy, moves, result):  # type: ignore[no-untyped-def]
    """Write whole tables from the moves of leaves; tell whether everything holds as it must."""
    sound = True
    for row in range(noisy.shape[0]):
        sound = sound and _write_whole(forest, bounds, noisy[row], moves[row], result[row])
    return sound
