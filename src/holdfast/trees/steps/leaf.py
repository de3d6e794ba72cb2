"""A leaf added to a message, whatever its law, and what of the sum may lean on tails without room.

A Laplace leaf is added by recursions (laplace_leaf.py), a Gaussian one is a short message of its own. Proofs:
docs/theory/exact-trees.md.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from holdfast.arrays import BORROWED, compiled
from holdfast.trees.steps.ends import HIGH, LEANING, LOW, TRIMS, trimmed
from holdfast.trees.steps.joining import BESIDE, add_piece, extend
from holdfast.trees.steps.laplace_leaf import add_leaf

#: How many σ a Gaussian leaf is written out first.
NEARLY_ALL = 9.0


@compiled(**BORROWED)
def leaf_leans(
    f: Any, lo: Any, hi: Any, r: Any, up: Any, powers: Any, laplace: Any, b_lo: Any, b_hi: Any, s: Any
) -> Any:
    """As `_leans` of passes.py, for the upper or lower tail of f and one leaf; a bound."""
    longest = powers.size - 1
    far, previous = 0.0, 0.0
    term = f[hi - lo] if up else f[0]
    away = s - hi if up else lo - s  # noise that leads to the end of the window, counted outwards
    least, most = (b_lo, b_hi) if up else (-b_hi, -b_lo)
    d = 0
    while True:
        d += 1
        term *= r
        b = away - d
        if b < least or (b < -longest and not laplace):
            return 1.01 * far
        if b > most or (b > longest and not laplace):
            continue
        more = d * term * (powers[abs(b)] if abs(b) <= longest else powers[1] ** np.float64(abs(b)))
        far += more
        if not far < np.inf or d > 1 << 22:
            return np.inf
        # terms are log-concave in d: beyond, they fall at least as fast as here
        ratio = more / previous if previous > 0.0 else 1.0
        if ratio < 1.0 and more * ratio < 1e-2 * far * (1 - ratio):
            return 1.05 * far
        if more == 0.0 and far > 0.0:
            return 1.05 * far
        previous = more


@compiled(inner=True, **BORROWED)
def leaf_onto(laplace: Any, leaf: Any, message: Any, hard: Any, out: Any, out_lo: Any, out_hi: Any, room: Any) -> Any:
    """Convolve a message with one leaf's weights; return where this is right, and the relative error that it adds.

    What is right stands at the front of `out`. `leaf` holds weights and bounds, `message` values, window and ratios.
    """
    powers, low, high = leaf
    f, lo, hi, r_lo, r_hi = message
    if laplace:
        return out_lo, out_hi, add_leaf(f, lo, hi, r_lo, r_hi, powers, low, high, out, out_lo, out_hi, room)
    return _gaussian_onto(leaf, message, hard, out, out_lo, out_hi, room)


@compiled(inner=True)
def _gaussian_onto(leaf: Any, message: Any, hard: Any, out: Any, out_lo: Any, out_hi: Any, room: Any) -> Any:
    """As `leaf_onto`, for a Gaussian leaf."""
    powers, low, high = leaf
    f, lo, hi, r_lo, r_hi = message
    longest = powers.size - 1
    good_lo, good_hi, error = out_lo, out_lo - 1, np.inf
    usual = min(np.int64(NEARLY_ALL * np.sqrt(-0.5 / np.log(powers[1]))) + 4, longest)
    for most in (usual, longest):  # nearly always the first is enough
        b_lo, b_hi = max(low, -most), min(high, most)
        b_hard = (LOW if b_lo == low else 0) | (HIGH if b_hi == high else 0)
        extra = most + max(lo - out_lo, out_hi - hi, 0)
        size, places = hi - lo + 1 + 2 * (extra + BESIDE), b_hi - b_lo + 1 + 2 * BESIDE
        if room.size < size + places:
            room = np.empty(size + places)
        wide, kernel = room[:size], room[size : size + places]
        below, above = extend(f, lo, hi, r_lo, r_hi, extra, wide)
        kernel[:BESIDE] = kernel[places - BESIDE :] = 0.0
        zero = np.uint64(BESIDE - b_lo)
        for b in range(np.uint64(b_hi + 1)):
            kernel[zero + b] = powers[b]
        for b in range(np.uint64(-b_lo)):
            kernel[zero - b - np.uint64(1)] = powers[b + np.uint64(1)]
        one, other = (kernel, b_lo, b_hi, b_hard), (wide, lo - below, hi + above, hard)
        good_lo, good_hi, error = add_piece(one, other, out, out_lo, out_hi)
        if good_lo == out_lo and good_hi == out_hi:
            break
    if good_lo > good_hi:
        return out_lo, out_hi, np.inf
    if good_lo > out_lo:
        for s in range(good_lo, good_hi + 1):
            out[s - good_lo] = out[s - out_lo]
    return good_lo, good_hi, error


@compiled(inner=True, **BORROWED)
def kept(kit: Any, q: Any, message: Any, leaning: Any, out: Any, first: Any, final: Any) -> Any:
    """Keep to sums that hardly use a tail without room; return them and the mean distance."""
    f, lo, hi, r_lo, r_hi = message
    powers = kit.weights[kit.leaf_law[q]]
    b_lo, b_hi = kit.leaf_low[q], kit.leaf_high[q]
    start = first
    error = 0.0
    for side in range(2):
        if not leaning & (HIGH if side else LOW):
            continue
        added = 0.0
        for turn in range(TRIMS):
            s = final if side else first
            far = leaf_leans(f, lo, hi, r_hi if side else r_lo, side == 1, powers, kit.laplace, b_lo, b_hi, s)
            added = 1.1 * far / out[s - start]
            if added <= LEANING or final - first < 16:
                break
            first, final = trimmed(first, final, side, turn)
        error += added
    return first, final, error
