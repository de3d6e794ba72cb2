"""Weighted least squares on a hierarchy over the whole numbers: marginal costs merged near the real optimum.

A unit at an output costs the change of Σ w·x² when its move goes from x to x+1. A leaf's units cost w(2x+1). At inner
output k the units of all children stand in one row, cheapest first, ties by the hash of the child; the unit from x to
x+1 of k costs the unit in that row plus w_k(2x+1). That row is the global optimum's: THEORY §4. Only a window of it is
made, around the unit whose cost crosses the price that the real optimum puts on k. A window's ends are either true ends
(no more units) or cut; merging stops where a child's window was cut, so every unit made is in its right place. If a
root's crossing of 0 is not found, the windows are widened and made again.

Costs are doubles. With equal weights they are whole numbers and compared exactly while they stay below 2**53.
"""

from __future__ import annotations

import numba
import numpy as np

from holdfast.trees.nearest_levels import explore_levels, leaves_at, longer, take_levels
from holdfast.trees.ties import tie_hash

#: Units kept on either side of the crossing at first; more where the real and the whole prices may differ more.
UNITS = 4
#: Widenings before giving up; each doubles the units and the difference of prices allowed for.
MOST_WIDENINGS = 24
#: Units looked at before giving up: some for each output, and a fixed number. Only wildly different weights need more.
PATIENCE_EACH, PATIENCE = 64, 1 << 22
#: Moves up to this size have exact costs, so that they can be put right one by one.
SURE = 2.0**50


@numba.njit(cache=True, nogil=True)
def _sift(cost, rank, child, i, count):  # type: ignore[no-untyped-def]
    """Restore a heap (least cost first, then least rank) below place i."""
    c, r, who = cost[i], rank[i], child[i]
    while True:
        k = 2 * i + 1
        if k >= count:
            break
        if k + 1 < count and (cost[k + 1] < cost[k] or (cost[k + 1] == cost[k] and rank[k + 1] < rank[k])):
            k += 1
        if c < cost[k] or (c == cost[k] and r <= rank[k]):
            break
        cost[i], rank[i], child[i] = cost[k], rank[k], child[k]
        i = k
    cost[i], rank[i], child[i] = c, r, who


@numba.njit(cache=True, nogil=True)
def _units_below(price, weight):  # type: ignore[no-untyped-def]
    """The move x for which exactly the units that end at or below it cost less than the price."""
    x = np.ceil((price / weight - 1.0) / 2.0)
    if abs(x) < SURE:
        while weight * (2.0 * x - 1.0) >= price:
            x -= 1.0
        while weight * (2.0 * x + 1.0) < price:
            x += 1.0
    return x


@numba.njit(cache=True, nogil=True)
def _begin(k, price, forest, leaf, window, group):  # type: ignore[no-untyped-def]
    """Write k's children down, each at the move where its units that cost less than the price are taken.

    Return the sum of the children's moves and whether all windows reach around the price.
    """
    leaf_start, inner_start, leaves, inner = forest
    lo, hi, leaf_weight, _, hint = leaf
    costs, start, length, position, low_end, high_end = window
    at, weight, offset, bottom, top, cut_below, cut_above, key = group
    first, last = leaf_start[k], leaf_start[k + 1]
    total, sound, i = 0, True, 0
    for j in range(first, last):
        weight[i], bottom[i], top[i] = leaf_weight[j], lo[j], hi[j] if hi.size > 0 else np.inf
        x = _units_below(price, weight[i]) if weight[i] > 0.0 else np.rint(hint[j])
        at[i] = np.int64(min(max(x, bottom[i]), top[i]))
        # an unmeasured leaf's units all cost 0 and go after every tie
        key[i] = tie_hash(leaves[j]) if weight[i] > 0.0 else ~np.uint64(0)
        cut_below[i] = cut_above[i] = False
        total += at[i]
        i += 1
    for c in range(inner_start[k], inner_start[k + 1]):
        weight[i], offset[i], bottom[i], top[i] = -1.0, start[c], 0.0, length[c]
        at[i] = np.searchsorted(costs[start[c] : start[c] + length[c]], price)
        key[i] = tie_hash(inner[c])
        cut_below[i], cut_above[i] = not low_end[c], not high_end[c]
        if (at[i] == 0 and cut_below[i]) or (at[i] == length[c] and cut_above[i]):
            sound = False
        total += position[c] + at[i]
        i += 1
    return total, sound


@numba.njit(cache=True, nogil=True)
def _unit(up, x, weight, offset, costs):  # type: ignore[no-untyped-def]
    """The cost of a child's next unit: upwards, or downwards with its sign turned round."""
    if weight >= 0.0:
        return weight * (2.0 * x + 1.0) if up else -weight * (2.0 * x - 1.0)
    return costs[offset + x] if up else -costs[offset + x - 1]


@numba.njit(cache=True, nogil=True)
def _line_up(up, children, at, weight, offset, bottom, top, key, costs, cost, rank, child):  # type: ignore[no-untyped-def]
    """Make a heap of the next unit of every child; downwards the dearest goes first. Return its size."""
    count = 0
    for i in range(children):
        if (up and at[i] < top[i]) or (not up and at[i] > bottom[i]):
            cost[count] = _unit(up, at[i], weight[i], offset[i], costs)
            rank[count] = key[i] if up else ~key[i]
            child[count] = i
            count += 1
    for i in range(count // 2 - 1, -1, -1):
        _sift(cost, rank, child, i, count)
    return count


@numba.njit(cache=True, nogil=True)
def _advance(up, at, weight, offset, bottom, top, costs, cost, rank, child, count):  # type: ignore[no-untyped-def]
    """Take the first unit of the heap and line up the next one of that child; return the heap's size."""
    i = child[0]
    at[i] += 1 if up else -1
    if (up and at[i] < top[i]) or (not up and at[i] > bottom[i]):
        cost[0] = _unit(up, at[i], weight[i], offset[i], costs)
    else:
        count -= 1
        cost[0], rank[0], child[0] = cost[count], rank[count], child[count]
    if count > 0:
        _sift(cost, rank, child, 0, count)
    return count


@numba.njit(cache=True, nogil=True)
def _explore(children, up, x, limits, group, costs, heap, found):  # type: ignore[no-untyped-def]
    """Walk along the parent's units from move x, upwards or downwards, until enough of them lie beyond the price.

    `limits` is (price, how far beyond it to go, units beyond it seen and wanted, the parent's bounds, its weight, the
    most units to look at). Units within the bounds are written to `found`, which grows. Return (found, how many,
    whether the walk came to a true end, the move).
    """
    price, far, seen, wanted, low, high, own, patience = limits
    at, weight, offset, bottom, top, cut_below, cut_above, key = group
    cost, rank, child = heap
    count = _line_up(up, children, at, weight, offset, bottom, top, key, costs, cost, rank, child)
    made = 0
    while True:
        if count == 0 or (up and x >= high) or (not up and x <= low):
            return found, made, True, x
        if up:
            found_cost = cost[0] + own * (2.0 * x + 1.0)
            x += 1
            inside = x > low
            seen += found_cost > price
            enough = seen >= wanted and found_cost >= price + far
        else:
            found_cost = -cost[0] + own * (2.0 * x - 1.0)
            x -= 1
            inside = x < high
            seen += found_cost < price
            enough = seen >= wanted and found_cost <= price - far
        if inside:
            if made == found.size:
                found = longer(found, made, 2 * made)
            found[made] = found_cost
            made += 1
        i, before = child[0], count
        count = _advance(up, at, weight, offset, bottom, top, costs, cost, rank, child, count)
        cut = count < before and (cut_above[i] if up else cut_below[i])
        patience -= 1
        if cut or (inside and enough) or patience < 0:
            return found, made, False, x


@numba.njit(cache=True, nogil=True)
def _kept(below, downs, above, ups, price, far, wanted):  # type: ignore[no-untyped-def]
    """How many units to leave out at either end of a row (below, backwards, and then above)."""
    first, seen = 0, 0
    for i in range(downs + ups - 1, -1, -1):
        cost = below[downs - 1 - i] if i < downs else above[i - downs]
        seen += cost < price
        if seen >= wanted and cost <= price - far:
            first = i
            break
    last, seen = downs + ups, 0
    for i in range(downs + ups):
        cost = below[downs - 1 - i] if i < downs else above[i - downs]
        seen += cost > price
        if seen >= wanted and cost >= price + far:
            last = i + 1
            break
    return first, last


@numba.njit(cache=True, nogil=True)
def _chosen(row, position, low_end, high_end, number):  # type: ignore[no-untyped-def]
    """The best move of a root: every unit below 0 and half of those that cost nothing; and whether it is sure."""
    below, free = 0, 0
    for i in range(row.size):
        below += row[i] < 0.0
        free += row[i] == 0.0
    sure = (below > 0 or low_end) and (below + free < row.size or high_end)
    taken = below + free // 2
    if free % 2 == 1 and tie_hash(number) & np.uint64(1) == np.uint64(1):
        taken += 1
    return position + taken, sure


@numba.njit(cache=True, nogil=True)
def _cutting_price(k, price, leaf_start, leaf):  # type: ignore[no-untyped-def]
    """The price at which k's children start; beside an unmeasured leaf that is free it is 0, with all ties taken."""
    lo, hi, weight, same, hint = leaf
    if same[k] == 0.0:
        for j in range(leaf_start[k], leaf_start[k + 1]):
            if weight[j] == 0.0:
                x = np.rint(hint[j])
                if x <= lo[j]:
                    return min(price, 0.0)
                if hi.size > 0 and x >= hi[j]:
                    return max(price, 5e-324)
                return 5e-324
    return price


@numba.njit(cache=True, nogil=True)
def whole_least_squares(forest, leaf, gap, low, high, own, price, slope, response, leaf_x, inner_x):  # type: ignore[no-untyped-def]
    """Find the best whole moves of leaves and inner outputs; tell whether they were found.

    `forest` is (leaf_start, inner_start, leaves, inner); `leaf` is (lo, hi, weight, same, hint): bounds on moves,
    weights, common variances, real moves. `gap`, `low`, `high` and `own` are the gaps, bounds on moves and weights of
    inner outputs. `price`, `slope` and `response` come from the reals: they say where windows lie, never what is best.
    """
    leaf_start, inner_start, _, inner = forest
    lo, hi, leaf_weight, same, _ = leaf
    count = own.size
    widest = 1
    for k in range(count):
        widest = max(widest, leaf_start[k + 1] - leaf_start[k] + inner_start[k + 1] - inner_start[k])
    base = np.empty(widest, np.int64)
    group = (
        np.empty(widest, np.int64),
        np.empty(widest),
        np.empty(widest, np.int64),
        np.empty(widest),
        np.empty(widest),
        np.empty(widest, np.bool_),
        np.empty(widest, np.bool_),
        np.empty(widest, np.uint64),
    )
    at = group[0]
    heap = (np.empty(widest), np.empty(widest, np.uint64), np.empty(widest, np.int64))
    above, below = np.empty(64), np.empty(64)
    ups = downs = top = bottom = 0
    top_end = bottom_end = False
    start, length = np.zeros(count, np.int64), np.zeros(count, np.int64)
    position = np.zeros(count, np.int64)
    low_end, high_end = np.zeros(count, np.bool_), np.zeros(count, np.bool_)
    cut_at, outer, doubt = np.empty(count), np.zeros(count), np.zeros(count)
    costs = np.empty(3 * UNITS * count + 64)
    for k in range(count):
        cut_at[k] = _cutting_price(k, 2.0 * price[k], leaf_start, leaf)
        for c in range(inner_start[k], inner_start[k + 1]):
            outer[c] = cut_at[k]
    patience = PATIENCE_EACH * (count + leaf_x.size) + PATIENCE
    for widening in range(MOST_WIDENINGS):
        wanted, times = UNITS << widening, 2.0**widening
        used, sound = 0, True
        for k in range(count - 1, -1, -1):
            first, last = leaf_start[k], leaf_start[k + 1]
            children = last - first + inner_start[k + 1] - inner_start[k]
            doubt[k] = children
            for c in range(inner_start[k], inner_start[k + 1]):
                doubt[k] += response[c] * doubt[c]
            doubt[k] = doubt[k] / slope[k] if slope[k] > 0.0 else 0.0  # 0 as well where the slope is infinite
            far = times * doubt[k]
            alike = same[k] > 0.0 and children == last - first
            if alike:
                level = _units_below(cut_at[k], leaf_weight[first])
                total = np.int64(leaves_at(first, last, lo, hi, level)) + gap[k]
            else:
                level = 0.0
                window = (costs, start, length, position, low_end, high_end)
                total, sound = _begin(k, cut_at[k], forest, leaf, window, group)
                if not sound:
                    break
                total += gap[k]
                for i in range(children):
                    base[i] = at[i]
            seen = np.int64(0)
            for turn in range(2):
                up = turn == 0
                row = above if up else below
                limits = (outer[k], far, seen, wanted, low[k], high[k], own[k], patience)
                if alike:
                    row, made, ended, x = explore_levels(
                        first, last, lo, hi, leaf_weight[first], level, up, total, limits, row
                    )
                else:
                    for i in range(children):
                        at[i] = base[i]
                    row, made, ended, x = _explore(children, up, total, limits, group, costs, heap, row)
                if up:
                    above, ups, top_end, top = row, made, ended, x
                    for i in range(ups):
                        seen += above[i] < outer[k]
                else:
                    below, downs, bottom_end, bottom = row, made, ended, x
            patience -= top - bottom
            if patience < 0:
                return False
            if top < low[k] or bottom > high[k]:
                sound = False
                break
            begin, end = _kept(below, downs, above, ups, outer[k], far, wanted)
            low_end[k] = begin == 0 and bottom_end
            high_end[k] = end == downs + ups and top_end
            position[k] = min(max(total, low[k]), high[k]) - downs + begin
            start[k], length[k] = used, end - begin
            if used + length[k] > costs.size:
                costs = longer(costs, used, 2 * (used + length[k]))
            for i in range(begin, end):
                costs[used] = below[downs - 1 - i] if i < downs else above[i - downs]
                used += 1
        if not sound:
            continue
        for k in range(inner_start[0]):
            row_of_root = costs[start[k] : start[k] + length[k]]
            inner_x[k], sure = _chosen(row_of_root, position[k], low_end[k], high_end[k], inner[k])
            sound = sound and sure
        if sound:
            window = (costs, start, length, position, low_end, high_end)
            _spread(forest, leaf, gap, cut_at, window, group, heap, leaf_x, inner_x)
            return True
    return False


@numba.njit(cache=True, nogil=True)
def _spread(forest, leaf, gap, cut_at, window, group, heap, leaf_x, inner_x):  # type: ignore[no-untyped-def]
    """Go down from the roots: k's move takes the first units of its row."""
    leaf_start, inner_start, outputs, _ = forest
    lo, hi, leaf_weight, same, _ = leaf
    costs, _, _, position, _, _ = window
    at, weight, offset, bottom, top, _, _, key = group
    cost, rank, child = heap
    for k in range(gap.size):
        first, last = leaf_start[k], leaf_start[k + 1]
        children = last - first + inner_start[k + 1] - inner_start[k]
        if same[k] > 0.0 and children == last - first:
            level = _units_below(cut_at[k], leaf_weight[first])
            missing = inner_x[k] - gap[k] - np.int64(leaves_at(first, last, lo, hi, level))
            take_levels(first, last, lo, hi, outputs, level, missing, rank, leaf_x)
            continue
        total, _sound = _begin(k, cut_at[k], forest, leaf, window, group)
        missing = inner_x[k] - gap[k] - total
        if missing != 0:
            up = missing > 0
            count = _line_up(up, children, at, weight, offset, bottom, top, key, costs, cost, rank, child)
            for _unit_taken in range(abs(missing)):
                count = _advance(up, at, weight, offset, bottom, top, costs, cost, rank, child, count)
        for i in range(last - first):
            leaf_x[first + i] = at[i]
        for c in range(inner_start[k], inner_start[k + 1]):
            inner_x[c] = position[c] + at[last - first + c - inner_start[k]]
