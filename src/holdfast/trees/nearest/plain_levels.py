"""Many rows split level by level at once, in plain numpy: what levelwise.py gives bit for bit, compiling nothing.

Arrays are (outputs, rows), in the places of levelwise.py. Sums go through the outputs one after the other, as they do
there, so that rounding errors are the same too; an output that does not count adds 0.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from holdfast.arguments import LARGEST
from holdfast.arrays import Array, Bools, Floats, Ints, Words
from holdfast.trees.shape.ties import tie_hash

#: Numbers of all rows, parents, and rows for which this is better than compiling; rows of one turn hold so many.
MOST_NUMBERS, MOST_PARENTS, FEWEST_ROWS, TURN = 600_000, 1_000, 10, 1 << 17


class Levels(NamedTuple):
    """A forest of `Levelwise` with its bounds, by place; names are the numbers that are hashed."""

    names: Ints
    first: Ints
    exact: Bools
    gain: Floats
    variance: Floats
    low: Array
    high: Array


def serves(first: Ints, variance: Floats, rows: int) -> bool:
    """Whether so many rows are split here: it depends on sizes, and on whether everything has an estimate."""
    parents, numbers = np.count_nonzero(np.diff(first)), rows * variance.size
    few = rows >= FEWEST_ROWS and numbers <= MOST_NUMBERS and parents <= MOST_PARENTS
    return bool(few and np.isfinite(variance).all())


def split_rows(levels: Levels, noisy: Array, coins: Ints) -> Array:
    """Final values of noisy ones, both (rows, outputs) by place; whole where these are."""
    step = max(1, TURN // noisy.shape[1])
    parts = [slice(begin, begin + step) for begin in range(0, len(noisy), step)]
    return np.concatenate([_split(levels, noisy[part].T.copy(), coins[part]).T for part in parts])


def _split(levels: Levels, base: Array, coins: Ints) -> Array:
    names, first, _, _, variance, low, high = levels
    shift, value, whole = _estimated(levels, base), np.empty_like(base), base.dtype.kind == "i"
    hashed: Words = tie_hash.py_func(names[:, None] ^ coins)
    for i in range(first[0]):
        root = _nearest(base[i], shift[i], hashed[i]) if whole else base[i] + shift[i]
        value[i] = np.minimum(np.maximum(root, low[i]), high[i])
    for i in range(names.size):
        below = slice(first[i], first[i + 1])
        if below.start == below.stop:
            continue
        ends = (low[below, None], high[below, None])
        side, step = _balanced(value[i], base[below], shift[below], variance[below, None], *ends)
        if whole:
            value[below] = _rounded(value[i], base[below], side, step, *ends, hashed[below])
        else:
            value[below] = np.where(side == 0, base[below] + step, np.where(side < 0, *ends))
    return value


def _sum(values: Array, start: Array | float = 0.0) -> Array:
    """Add rows one after the other."""
    begin = np.broadcast_to(np.asarray(start, dtype=values.dtype), values.shape[1:])
    total: Array = np.add.accumulate(np.concatenate([begin[None], values]), axis=0)[-1]
    return total


def _estimated(levels: Levels, base: Array) -> Floats:
    """Turn own values into estimates base + shift, children first; return the shifts."""
    _, first, exact, gain, _, low, _ = levels
    shift = np.zeros(base.shape)
    for i in range(len(base) - 1, -1, -1):
        if exact[i]:
            base[i] = low[i]
        elif first[i + 1] > first[i] and gain[i] > 0.0:
            below, beside = (_sum(each[first[i] : first[i + 1]]) for each in (base, shift))
            if gain[i] == 1.0:
                base[i], shift[i] = below, beside
            else:
                shift[i] = gain[i] * ((below - base[i]) + beside)
    return shift


def _nearest(base: Ints, shift: Floats, hashed: Words) -> Ints:
    """The nearest whole numbers to base + shift; halves up or down by hash."""
    down, one = np.floor(shift), np.uint64(1)
    fraction = shift - down
    up: Bools = (fraction > 0.5) | ((fraction == 0.5) & (hashed & one == one))
    nearest: Ints = base + down.astype(np.int64) + up
    return nearest


def _balanced(
    total: Array, base: Array, shift: Floats, variance: Floats, low: Array, high: Array
) -> tuple[Ints, Floats]:
    """Fit children to estimates within bounds and with this total: at which bound each is, and its step from base."""
    fixed = np.broadcast_to(low == high, base.shape)
    side, step, open_ = np.where(fixed, -1, 0), np.zeros(base.shape), ~fixed
    rest = _sum(np.where(fixed, -low, base.dtype.type(0)), total)
    while open_.any():
        zero = base.dtype.type(0)
        short, beside = _sum(np.where(open_, -base, zero), rest), _sum(np.where(open_, -shift, 0.0))
        weight = _sum(np.where(open_, variance, 0.0))
        moved = shift + (short + beside) / np.where(weight > 0.0, weight, 1.0) * variance
        beneath = open_ & (low > -LARGEST) & (moved < low - base)
        beyond = open_ & ~beneath & (high < LARGEST) & (moved > high - base)
        step = np.where(open_, moved, step)
        missed_below = _sum(np.where(beneath, (low - base) - moved, 0.0))
        missed_above = _sum(np.where(beyond, moved - (high - base), 0.0))
        downwards = missed_below >= missed_above
        stopped = np.where(downwards, beneath, beyond)
        side = np.where(stopped, np.where(downwards, -1, 1), side)
        rest = _sum(np.where(stopped, np.where(downwards, -low, -high), zero), rest)
        open_ &= ~stopped & ((missed_below != 0.0) | (missed_above != 0.0))
    return side, step


def _rounded(total: Ints, base: Ints, side: Ints, step: Floats, low: Ints, high: Ints, hashed: Words) -> Ints:
    """Controlled rounding: all down, then the largest fractions up until the total is met; ties by hash."""
    down = np.floor(step)
    value = np.minimum(np.maximum(base + down.astype(np.int64), low), high)
    value = np.where(side == 0, value, np.where(side < 0, low, high))
    fraction = np.where(side == 0, step - down, 0.0)
    steps = (fraction * 2.0**32 + 0.5).astype(np.uint64)
    keys = ~((steps << np.uint64(31)) | (hashed >> np.uint64(33)))
    left = total - value.sum(axis=0)
    while left.any():
        up = left > 0
        stays = np.where(up, value >= high, value <= low)
        order = np.lexsort((np.where(up, keys, ~keys), stays), axis=0)
        place = np.empty_like(order)
        np.put_along_axis(place, order, np.arange(len(order))[:, None], axis=0)
        chosen = ~stays & (place < np.abs(left))
        value += np.where(chosen, np.where(up, 1, -1), 0)
        left = total - value.sum(axis=0)
    return value
