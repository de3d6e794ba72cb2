"""Units of alike leaves under one parent, counted level by level.

The unit of a leaf from move x to x+1 costs w(2x+1) (`nearest_integer`). Leaves of one weight have equal costs at equal
moves, so the row of their units is told by how many leaves have the unit at level x: those with lo ≤ x < hi.
"""

from __future__ import annotations

import numba
import numpy as np

from holdfast.trees.ties import smallest, tie_hash


@numba.njit(cache=True, nogil=True)
def longer(values, count, size):  # type: ignore[no-untyped-def]
    """A longer array that begins with the first `count` values."""
    result = np.empty(size)
    for i in range(count):
        result[i] = values[i]
    return result


@numba.njit(cache=True, nogil=True)
def leaves_at(first, last, lo, hi, level):  # type: ignore[no-untyped-def]
    """The sum of the leaves' moves when each takes its units below the level."""
    total = 0.0
    if hi.size == 0:
        for j in range(first, last):
            total += max(level, lo[j])
    else:
        for j in range(first, last):
            total += min(max(level, lo[j]), hi[j])
    return total


@numba.njit(cache=True, nogil=True)
def _count(first, last, lo, hi, level, up):  # type: ignore[no-untyped-def]
    """How many leaves have a unit at the level, and the next level with units upwards or downwards (∓inf: none)."""
    count = 0
    if hi.size == 0:
        for j in range(first, last):
            count += lo[j] <= level
        if not up:
            return count, level - 1.0 if count > 0 else -np.inf
        following = level + 1.0
        if count == 0:
            following = lo[first]
            for j in range(first + 1, last):
                following = min(following, lo[j])
        return count, following
    following = np.inf if up else -np.inf
    for j in range(first, last):
        count += lo[j] <= level < hi[j]
        if up and hi[j] > level + 1.0:
            following = min(following, max(lo[j], level + 1.0))
        elif not up and lo[j] < level:
            following = max(following, min(hi[j], level) - 1.0)
    return count, following


@numba.njit(cache=True, nogil=True)
def explore_levels(first, last, lo, hi, weight, level, up, x, limits, found):  # type: ignore[no-untyped-def]
    """Do what `nearest_integer` does with a heap: walk along the parent's units until enough lie beyond the price.

    Return (found, how many, whether the walk came to a true end, the move).
    """
    price, far, seen, wanted, low, high, own, patience = limits
    made = 0
    if not up:
        level -= 1.0
    while True:
        count, following = _count(first, last, lo, hi, level, up)
        for _ in range(count):
            if (up and x >= high) or (not up and x <= low):
                return found, made, True, x
            if up:
                cost = weight * (2.0 * level + 1.0) + own * (2.0 * x + 1.0)
                x += 1
                inside = x > low
                seen += cost > price
                enough = seen >= wanted and cost >= price + far
            else:
                cost = weight * (2.0 * level + 1.0) + own * (2.0 * x - 1.0)
                x -= 1
                inside = x < high
                seen += cost < price
                enough = seen >= wanted and cost <= price - far
            if inside:
                if made == found.size:
                    found = longer(found, made, 2 * made)
                found[made] = cost
                made += 1
            patience -= 1
            if (inside and enough) or patience < 0:
                return found, made, False, x
        if np.isinf(following):
            return found, made, True, x
        level = following


@numba.njit(cache=True, nogil=True)
def take_levels(first, last, lo, hi, leaves, level, missing, keys, move):  # type: ignore[no-untyped-def]
    """Give the leaves their units below the level and `missing` more (or fewer): cheapest first, ties by hash."""
    for j in range(first, last):
        x = max(level, lo[j])
        move[j] = np.int64(min(x, hi[j]) if hi.size > 0 else x)
    up = missing > 0
    unit = 1 if up else -1
    if not up:
        level -= 1.0
    missing = abs(missing)
    while missing > 0:
        count, following = _count(first, last, lo, hi, level, up)
        limit = ~np.uint64(0)
        if count > missing:
            able = 0
            for j in range(first, last):
                if lo[j] <= level and (hi.size == 0 or level < hi[j]):
                    keys[able] = tie_hash(leaves[j]) if up else ~tie_hash(leaves[j])
                    able += 1
            limit = smallest(keys, count, missing)
        for j in range(first, last):
            if lo[j] <= level and (hi.size == 0 or level < hi[j]):
                key = tie_hash(leaves[j]) if up else ~tie_hash(leaves[j])
                if key <= limit:
                    move[j] += unit
        missing -= min(count, missing)
        level = following
