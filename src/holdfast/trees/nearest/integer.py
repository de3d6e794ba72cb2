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

import numpy as np

from holdfast.arrays import compiled, put
from holdfast.trees.nearest.price_lines import longer
from holdfast.trees.shape.ties import tie_hash

#: Units kept on either side of the crossing at first; more where the real and the whole prices may differ more.
UNITS = 2
#: Widenings before giving up; each doubles the units and the difference of prices allowed for.
MOST_WIDENINGS = 24
#: Units looked at before giving up: some for each output, and a fixed number. Only wildly different weights need more.
PATIENCE_EACH, PATIENCE = 64, 1 << 22
#: Moves up to this size have exact costs; larger ones are refused.
SURE = 2.0**50
#: Columns of `windows`: where the costs begin, how many there are, the move before the first, whether an end is cut.
START, LENGTH, POSITION, LOW_CUT, HIGH_CUT = range(5)
#: Rows of `places`: a child's units taken, where its window's costs begin, whether the window is cut below or above.
AT, OFFSET, CUT_BELOW, CUT_ABOVE = range(4)
#: Rows of `sizes`: a leaf's weight (−1 at an inner child), and the least and the most units that can be taken.
WEIGHT, BOTTOM, TOP = range(3)


@compiled(inner=True)
def _units_below(price, weight):  # type: ignore[no-untyped-def]
    """The move x for which exactly the units that end at or below it cost less than the price."""
    x = np.ceil((price / weight - 1.0) / 2.0)
    if abs(x) < SURE:
        while weight * (2.0 * x - 1.0) >= price:
            x -= 1.0
        while weight * (2.0 * x + 1.0) < price:
            x += 1.0
    return x


@compiled(inner=True)
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


@compiled(inner=True)
def _cheaper(costs, start, length, price):  # type: ignore[no-untyped-def]
    """How many units of a window cost less than the price."""
    low, high = 0, length
    while low < high:
        middle = (low + high) // 2
        if costs[start + middle] < price:
            low = middle + 1
        else:
            high = middle
    return low


@compiled(inner=True)
def _begin(k, price, forest, leaf_weight, limits, hint, costs, windows, places, sizes, key):  # type: ignore[no-untyped-def]
    """Write k's children down, each at the move where its units that cost less than the price are taken.

    Return the sum of the children's moves and whether all windows reach around the price.
    """
    leaf_start, inner_start, leaves, inner = forest
    lo, hi, _, _ = limits
    total, sound, i = 0, True, 0
    for j in range(leaf_start[k], leaf_start[k + 1]):
        weight, least, most = leaf_weight[j], lo[j], hi[j] if hi.size > 0 else np.inf
        sizes[WEIGHT, i], sizes[BOTTOM, i], sizes[TOP, i] = weight, least, most
        x = _units_below(price, weight) if weight > 0.0 else np.rint(hint[j])
        places[AT, i] = np.int64(min(max(x, least), most))
        places[CUT_BELOW, i] = places[CUT_ABOVE, i] = 0
        # an unmeasured leaf's units all cost 0 and go after every tie
        key[i] = tie_hash(leaves[j]) if weight > 0.0 else ~np.uint64(0)
        total += places[AT, i]
        i += 1
    for c in range(inner_start[k], inner_start[k + 1]):
        start, length = windows[c, START], windows[c, LENGTH]
        taken = _cheaper(costs, start, length, price)
        sizes[WEIGHT, i], sizes[BOTTOM, i], sizes[TOP, i] = -1.0, 0.0, length
        places[AT, i], places[OFFSET, i] = taken, start
        places[CUT_BELOW, i], places[CUT_ABOVE, i] = windows[c, LOW_CUT], windows[c, HIGH_CUT]
        key[i] = tie_hash(inner[c])
        if (taken == 0 and windows[c, LOW_CUT] == 1) or (taken == length and windows[c, HIGH_CUT] == 1):
            sound = False
        total += windows[c, POSITION] + taken
        i += 1
    return total, sound


@compiled(inner=True)
def _unit(up, x, weight, offset, costs):  # type: ignore[no-untyped-def]
    """The cost of a child's next unit: upwards, or downwards with its sign turned round."""
    if weight >= 0.0:
        return weight * (2.0 * x + 1.0) if up else -weight * (2.0 * x - 1.0)
    return costs[offset + x] if up else -costs[offset + x - 1]


@compiled(inner=True)
def _line_up(up, children, places, sizes, key, costs, cost, rank, child):  # type: ignore[no-untyped-def]
    """Make a heap of the next unit of every child; downwards the dearest goes first. Return its size."""
    count = 0
    for i in range(children):
        x = places[AT, i]
        if (up and x < sizes[TOP, i]) or (not up and x > sizes[BOTTOM, i]):
            cost[count] = _unit(up, x, sizes[WEIGHT, i], places[OFFSET, i], costs)
            rank[count] = key[i] if up else ~key[i]
            child[count] = i
            count += 1
    for i in range(count // 2 - 1, -1, -1):
        _sift(cost, rank, child, i, count)
    return count


@compiled(inner=True)
def _advance(up, places, sizes, costs, cost, rank, child, count):  # type: ignore[no-untyped-def]
    """Take the first unit of the heap and line up the next one of that child; return the heap's size."""
    i = child[0]
    x = places[AT, i] + (1 if up else -1)
    places[AT, i] = x
    if (up and x < sizes[TOP, i]) or (not up and x > sizes[BOTTOM, i]):
        cost[0] = _unit(up, x, sizes[WEIGHT, i], places[OFFSET, i], costs)
    else:
        count -= 1
        cost[0], rank[0], child[0] = cost[count], rank[count], child[count]
    if count > 0:
        _sift(cost, rank, child, 0, count)
    return count


@compiled(inner=True)
def _explore(children, up, x, aim, seen, rows, costs, found):  # type: ignore[no-untyped-def]
    """Walk along the parent's units from move x, upwards or downwards, until enough of them lie beyond the price.

    `aim` is (price, how far beyond it to go, units beyond it wanted, the parent's bounds, its weight, the most units
    to look at); `seen` of the units are already known. Costs of units within the bounds are written to row 0 (upwards)
    or 1 of `found`. Return how many (−1: there is no room), whether the walk came to a true end, and the move.
    """
    places, sizes, key, cost, rank, child = rows
    price, far, wanted, low, high, own, patience = aim
    count = _line_up(up, children, places, sizes, key, costs, cost, rank, child)
    made, row = 0, 0 if up else 1
    while True:
        if count == 0 or (up and x >= high) or (not up and x <= low):
            return made, True, x
        if up:
            here = cost[0] + own * (2.0 * x + 1.0)
            x += 1
            inside = x > low
            seen += here > price
            enough = seen >= wanted and here >= price + far
        else:
            here = -cost[0] + own * (2.0 * x - 1.0)
            x -= 1
            inside = x < high
            seen += here < price
            enough = seen >= wanted and here <= price - far
        if inside:
            if made == found.shape[1]:
                return -1, False, x
            found[row, made] = here
            made += 1
        i, before = child[0], count
        count = _advance(up, places, sizes, costs, cost, rank, child, count)
        cut = count < before and places[CUT_ABOVE if up else CUT_BELOW, i] == 1
        patience -= 1
        if cut or (inside and enough) or patience < 0:
            return made, False, x


@compiled(inner=True)
def _both_ways(children, x, aim, rows, costs, found):  # type: ignore[no-untyped-def]
    """Walk along the units from move x upwards, and from there downwards; what `_explore` returns, for each."""
    places = rows[0]
    base = places[AT, :children].copy()
    above = _explore(children, True, x, aim, np.int64(0), rows, costs, found)
    seen = np.int64(0)
    for i in range(above[0]):
        seen += found[0, i] < aim[0]
    put(base, places[AT])
    return above, _explore(children, False, x, aim, seen, rows, costs, found)


@compiled(inner=True)
def _kept(found, ups, downs, price, far, wanted):  # type: ignore[no-untyped-def]
    """The part to keep of a row of units (those found downwards, backwards, and then those found upwards)."""
    first, seen = 0, 0
    for i in range(downs + ups - 1, -1, -1):
        cost = found[1, downs - 1 - i] if i < downs else found[0, i - downs]
        seen += cost < price
        if seen >= wanted and cost <= price - far:
            first = i
            break
    last, seen = downs + ups, 0
    for i in range(downs + ups):
        cost = found[1, downs - 1 - i] if i < downs else found[0, i - downs]
        seen += cost > price
        if seen >= wanted and cost >= price + far:
            last = i + 1
            break
    return first, last


@compiled(inner=True)
def _chosen(costs, window, number):  # type: ignore[no-untyped-def]
    """The best move of a root: every unit below 0 and half of those that cost nothing; and whether it is sure."""
    below, free, length = 0, 0, window[LENGTH]
    for i in range(window[START], window[START] + length):
        below += costs[i] < 0.0
        free += costs[i] == 0.0
    sure = (below > 0 or window[LOW_CUT] == 0) and (below + free < length or window[HIGH_CUT] == 0)
    taken = below + free // 2
    if free % 2 == 1 and tie_hash(number) & np.uint64(1) == np.uint64(1):
        taken += 1
    return window[POSITION] + taken, sure


@compiled(inner=True)
def _doubts(leaf_start, inner_start, slope, response):  # type: ignore[no-untyped-def]
    """How far real and whole prices may differ: half a unit of each child, and what its own price may differ by."""
    doubt = np.zeros(slope.size)
    for k in range(slope.size - 1, -1, -1):
        doubt[k] = leaf_start[k + 1] - leaf_start[k] + inner_start[k + 1] - inner_start[k]
        for c in range(inner_start[k], inner_start[k + 1]):
            doubt[k] += response[c] * doubt[c]
        doubt[k] = doubt[k] / slope[k] if slope[k] > 0.0 else 0.0  # 0 as well where the slope is infinite
    return doubt


@compiled(inner=True)
def _cutting_price(price, first, last, lo, hi, weight, hint):  # type: ignore[no-untyped-def]
    """The price at which children start; beside an unmeasured leaf that is free it is 0, with all ties taken."""
    for j in range(first, last):
        if weight[j] == 0.0:
            x = np.rint(hint[j])
            if x <= lo[j]:
                return min(price, 0.0)
            if hi.size > 0 and x >= hi[j]:
                return max(price, 5e-324)
            return 5e-324
    return price


@compiled(inner=True)
def _starting_prices(forest, weights, limits, price, hint):  # type: ignore[no-untyped-def]
    """The price at which each output's children start, and the one from above.

    Prices of units are twice those of the reals: they are slopes of w·x² and not of w·x²/2.
    """
    leaf_start, inner_start, _, _ = forest
    weight, _, same, own = weights
    cut_at, outer = np.empty(own.size), np.zeros(own.size)
    for k in range(own.size):
        cut_at[k] = 2.0 * price[k]
        if same[k] == 0.0:
            first, last = leaf_start[k], leaf_start[k + 1]
            cut_at[k] = _cutting_price(cut_at[k], first, last, limits[0], limits[1], weight, hint)
        for c in range(inner_start[k], inner_start[k + 1]):
            outer[c] = cut_at[k]
    return cut_at, outer


@compiled(inner=True)
def _take(forest, weight, limits, hint, cut_at, begun, costs, windows, rows, leaf_x, inner_x):  # type: ignore[no-untyped-def]
    """Go down from the roots: each output's move takes the first units of its row."""
    leaf_start, inner_start, _, _ = forest
    places, sizes, key, cost, rank, child = rows
    for k in range(inner_x.size):
        _begin(k, cut_at[k], forest, weight, limits, hint, costs, windows, places, sizes, key)
        leaf_children = leaf_start[k + 1] - leaf_start[k]
        children = leaf_children + inner_start[k + 1] - inner_start[k]
        up, missing = inner_x[k] > begun[k], abs(inner_x[k] - begun[k])
        if missing > 0:
            waiting = _line_up(up, children, places, sizes, key, costs, cost, rank, child)
            for _ in range(missing):
                waiting = _advance(up, places, sizes, costs, cost, rank, child, waiting)
        for i in range(leaf_children):
            leaf_x[leaf_start[k] + i] = places[AT, i]
        for c in range(inner_start[k], inner_start[k + 1]):
            inner_x[c] = windows[c, POSITION] + places[AT, leaf_children + c - inner_start[k]]


@compiled(inner=True)
def whole_least_squares(forest, weights, limits, hint, gap, found_real, leaf_x, inner_x):  # type: ignore[no-untyped-def]
    """Find the best whole moves of leaves and inner outputs; tell whether they were found.

    `forest` and `weights` are as in rows.py; `limits` bound the moves of leaves and, in whole numbers with
    ∓2**62 for none, of inner outputs; `hint` holds real moves of unmeasured leaves. `found_real` is what
    `least_squares` found: its prices and slopes say where windows lie, never what is best.
    """
    leaf_start, inner_start, _, inner = forest
    weight, _, _, own = weights
    _, _, low, high = limits
    price, _, slope, response = found_real
    count, widest = own.size, 1
    for k in range(count):
        widest = max(widest, leaf_start[k + 1] - leaf_start[k] + inner_start[k + 1] - inner_start[k])
    cut_at, outer = _starting_prices(forest, weights, limits, price, hint)
    places, sizes, key = np.empty((4, widest), np.int64), np.empty((3, widest)), np.empty(widest, np.uint64)
    rank = np.empty(widest, np.uint64)
    rows = (places, sizes, key, np.empty(widest), rank, np.empty(widest, np.int64))
    found, costs = np.empty((2, 64)), np.empty(8 * UNITS * count + 64)
    windows, begun = np.zeros((count, 5), np.int64), np.zeros(count, np.int64)
    patience = PATIENCE_EACH * (count + leaf_x.size) + PATIENCE
    doubt = _doubts(leaf_start, inner_start, slope, response)
    sound, widening = False, 0
    while not sound and widening < MOST_WIDENINGS:
        wanted = UNITS << widening
        used, sound, k = 0, True, count - 1
        while k >= 0 and sound and patience >= 0:
            children = leaf_start[k + 1] - leaf_start[k] + inner_start[k + 1] - inner_start[k]
            total, sound = _begin(k, cut_at[k], forest, weight, limits, hint, costs, windows, places, sizes, key)
            begun[k] = total + gap[k]
            aim = (outer[k], doubt[k], wanted, low[k], high[k], own[k], patience)
            (ups, top_end, top), (downs, bottom_end, bottom) = _both_ways(children, begun[k], aim, rows, costs, found)
            if ups < 0 or downs < 0:
                found = np.empty((2, 2 * found.shape[1]))
                continue
            patience -= top - bottom
            sound = sound and top >= low[k] and bottom <= high[k]
            begin, end = _kept(found, ups, downs, outer[k], doubt[k], wanted)
            windows[k, START], windows[k, LENGTH] = used, end - begin
            windows[k, POSITION] = min(max(begun[k], low[k]), high[k]) - downs + begin
            windows[k, LOW_CUT] = 0 if begin == 0 and bottom_end else 1
            windows[k, HIGH_CUT] = 0 if end == downs + ups and top_end else 1
            if used + end - begin > costs.size:
                costs = longer(costs, used, 2 * (used + end - begin))
            for i in range(begin, end):
                costs[used] = found[1, downs - 1 - i] if i < downs else found[0, i - downs]
                used += 1
            k -= 1
        if patience < 0:
            return False
        for k in range(inner_start[0] if sound else 0):
            inner_x[k], sure = _chosen(costs, windows[k], inner[k])
            sound = sound and sure
        widening += 1
        for k in range(count):
            doubt[k] *= 2.0
    if not sound:
        return False
    _take(forest, weight, limits, hint, cut_at, begun, costs, windows, rows, leaf_x, inner_x)
    return leaf_x.size == 0 or np.abs(leaf_x).max() < SURE
