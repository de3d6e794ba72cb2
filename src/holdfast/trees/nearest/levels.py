"""Units of alike leaves under one parent, counted level by level: what most parents of a large hierarchy look like.

The unit of a leaf from move x to x+1 costs w(2x+1) (integer.py). Leaves of one weight have equal costs at equal
moves, so the row of their units is told by how many leaves have the unit at level x: those with lo ≤ x < hi. Each pass
is one function over all such parents: handing arrays on for each of them would take longer than the work itself.
"""

from __future__ import annotations

import numpy as np

from holdfast.arrays import compiled
from holdfast.trees.shape.ties import smallest, tie_hash

#: Moves up to this size have exact costs, so that they can be put right one by one.
SURE = 2.0**50
#: Columns of `windows`: where the costs begin, how many there are, the move before the first, whether an end is cut.
START, LENGTH, POSITION, LOW_CUT, HIGH_CUT = range(5)


@compiled(inner=True)
def units_below(price, weight):  # type: ignore[no-untyped-def]
    """The move x for which exactly the units that end at or below it cost less than the price."""
    x = np.ceil((price / weight - 1.0) / 2.0)
    if abs(x) < SURE:
        while weight * (2.0 * x - 1.0) >= price:
            x -= 1.0
        while weight * (2.0 * x + 1.0) < price:
            x += 1.0
    return x


@compiled(inner=True)
def leaf_windows(forest, weights, limits, alike, gap, prices, wanted, patience, costs, windows, begun):  # type: ignore[no-untyped-def]
    """Make the windows of all parents of alike leaves, as `whole_least_squares` does with a heap for the others.

    `prices` is (cut_at, outer, doubt): where the leaves are cut, the price from above, how far windows go beyond it.
    Return how many costs were written (−1: there is no room) and what is left of the patience (below 0: none).
    """
    leaf_start, (lo, hi, low, high) = forest[0], limits
    weight, _, _, own = weights
    cut_at, outer, doubt = prices
    used = 0
    for k in range(alike.size):
        if not alike[k]:
            continue
        first, last, price, unit_weight = leaf_start[k], leaf_start[k + 1], outer[k], weight[leaf_start[k]]
        middle, total = units_below(cut_at[k], unit_weight), 0.0
        for j in range(first, last):
            x = max(middle, lo[j])
            total += min(x, hi[j]) if hi.size > 0 else x
        begun[k] = np.int64(total) + gap[k]
        begin, true_below, true_above = used, False, False
        for turn in range(2):
            up = turn == 1
            x, seen, level, going = begun[k], 0, middle if up else middle - 1.0, True
            while going:
                count, following = 0, level + 1.0 if up else level - 1.0
                if hi.size == 0:
                    for j in range(first, last):
                        count += lo[j] <= level
                    if count == 0 and up:
                        following = np.inf
                        for j in range(first, last):
                            following = min(following, lo[j])
                    elif count == 0:
                        following = -np.inf
                else:
                    following = np.inf if up else -np.inf
                    for j in range(first, last):
                        count += lo[j] <= level < hi[j]
                        if up and hi[j] > level + 1.0:
                            following = min(following, max(lo[j], level + 1.0))
                        elif not up and lo[j] < level:
                            following = max(following, min(hi[j], level) - 1.0)
                while count > 0 and going:
                    if (up and x >= high[k]) or (not up and x <= low[k]):
                        going, following = False, np.inf
                        break
                    cost = unit_weight * (2.0 * level + 1.0) + own[k] * (2.0 * x + 1.0 if up else 2.0 * x - 1.0)
                    x += 1 if up else -1
                    beyond = cost - price if up else price - cost
                    seen += beyond > 0.0
                    if (up and x > low[k]) or (not up and x < high[k]):
                        if used == costs.size:
                            return -1, patience
                        costs[used] = cost
                        used += 1
                        going = seen < wanted or beyond < doubt[k]
                    count -= 1
                    patience -= 1
                    going = going and patience >= 0
                if np.isinf(following):
                    true_above, true_below = true_above or up, true_below or not up
                    going = False
                level = following
            if up:
                windows[k, HIGH_CUT] = 0 if true_above else 1
                reached = x >= low[k]
            else:
                windows[k, LOW_CUT] = 0 if true_below else 1
                reached = x <= high[k]
                windows[k, POSITION] = min(max(begun[k], low[k]), high[k]) - (used - begin)
                for i in range((used - begin) // 2):
                    mirror = used - 1 - i
                    costs[begin + i], costs[mirror] = costs[mirror], costs[begin + i]
            if not reached or patience < 0:
                return used, -1
        windows[k, START], windows[k, LENGTH] = begin, used - begin
    return used, patience


@compiled(inner=True)
def leaf_moves(forest, weights, limits, alike, cut_at, begun, inner_x, keys, chosen, move):  # type: ignore[no-untyped-def]
    """Give alike leaves the first units of their parents' rows: cheapest first, ties by hash."""
    leaf_start, _, leaves, _ = forest
    weight, (lo, hi, _, _) = weights[0], limits
    for k in range(alike.size):
        if not alike[k]:
            continue
        first, last = leaf_start[k], leaf_start[k + 1]
        level = units_below(cut_at[k], weight[first])
        for j in range(first, last):
            x = max(level, lo[j])
            move[j] = np.int64(min(x, hi[j]) if hi.size > 0 else x)
        missing = abs(inner_x[k] - begun[k])
        up = inner_x[k] > begun[k]
        unit, turned = (1, np.uint64(0)) if up else (-1, ~np.uint64(0))
        if not up:
            level -= 1.0
        while missing > 0:
            count = 0
            for j in range(first, last):
                has = lo[j] <= level and (hi.size == 0 or level < hi[j])
                key = tie_hash(leaves[j]) ^ turned
                keys[j - first], chosen[count] = key, key
                count += has  # a key that is not needed is written over
            limit = smallest(chosen, count, missing) if count > missing else ~np.uint64(0)
            for j in range(first, last):
                has = lo[j] <= level and (hi.size == 0 or level < hi[j])
                move[j] += unit if has and keys[j - first] <= limit else 0
            missing -= min(count, missing)
            following = level + unit
            if count == 0:  # the next level that has units
                following = np.inf * unit
                for j in range(first, last):
                    if up and lo[j] > level:
                        following = min(following, lo[j])
                    elif not up and hi.size > 0 and hi[j] <= level:
                        following = max(following, hi[j] - 1.0)
            level = following
