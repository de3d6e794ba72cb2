"""Nearest tables on a hierarchy by merging whole curves of prices: L1, and every case of least squares.

The line of an output says which moves x it takes at which price: points (price, x) that rise in both, with a ray at
either end. An upright piece is a tie (every move between its ends is as good), a level one a bound or a kink. At inner
output k the children's lines are added at equal prices; k's bounds cut the line, and k's own cost then shifts each
point's price by its slope: w·x for least squares, ±w for absolute values. A root's line is read at price 0, and every
output below at the price that its parent's move puts on it. These are THEORY §4's messages by their slopes, exact but
for rounding; absolute values with whole data only ever add, so whole moves stay whole.

Ties are shared out evenly: tied siblings move by one common step, cut to their ends; what is left where moves are whole
goes in single units, in the order of the hash.
"""

from __future__ import annotations

import numpy as np

from holdfast.arrays import compiled, put
from holdfast.trees.nearest.price_lines import added, answer, cut, insert, leaf_line, longer, own_cost, price_at
from holdfast.trees.shape.ties import smallest, tie_hash


@compiled(inner=True)
def _inner_answer(absolute, weight, price, move, left, right, wanted):  # type: ignore[no-untyped-def]
    """The least and the largest move of an inner output at a price, its own cost included."""
    points = price.size
    own_price, own_move = np.empty(points + 1), np.empty(points + 1)
    points, left, right = own_cost(absolute, weight, price, move, points, left, right, own_price, own_move)
    return answer(own_price, own_move, points, left, right, wanted)


@compiled(inner=True)
def _common_step(least, most, count, total):  # type: ignore[no-untyped-def]
    """The step t with Σ (t, cut to least and most) = total, over the children whose ends differ."""
    starts, stops = np.empty(count), np.empty(count)
    started, stopped, climbing = 0, 0, 0
    for i in range(count):
        if least[i] < most[i]:
            if least[i] > -np.inf:
                starts[started] = least[i]
                started += 1
            else:
                climbing += 1
            if most[i] < np.inf:
                stops[stopped] = most[i]
                stopped += 1
    if started + stopped == 0:
        return total / climbing
    starts, stops = starts[:started], stops[:stopped]
    starts = starts[np.argsort(starts, kind="mergesort")]
    stops = stops[np.argsort(stops, kind="mergesort")]
    step = min(starts[0] if started > 0 else np.inf, stops[0] if stopped > 0 else np.inf)
    value = climbing * step
    for i in range(started):
        value += starts[i]
    if total <= value:
        return step - (value - total) / climbing if climbing > 0 else step
    i, j = 0, 0
    while True:
        while i < started and starts[i] <= step:
            i += 1
            climbing += 1
        while j < stopped and stops[j] <= step:
            j += 1
            climbing -= 1
        following = min(starts[i] if i < started else np.inf, stops[j] if j < stopped else np.inf)
        if np.isinf(following) or value + climbing * (following - step) >= total:
            return step + (total - value) / climbing if climbing > 0 else step
        value += climbing * (following - step)
        step = following


@compiled(inner=True)
def _share(least, most, count, total, whole, number, x):  # type: ignore[no-untyped-def]
    """Share a total out over children whose moves lie between `least` and `most`: one common step, cut to the ends."""
    for i in range(count):
        if least[i] == most[i]:
            x[i] = least[i]
            total -= x[i]
    step = _common_step(least, most, count, total)
    if whole:
        step = np.floor(step) + 1.0
    missing = -1.0
    while missing < 0.0:
        if whole:
            step -= 1.0
        missing = total
        for i in range(count):
            if least[i] < most[i]:
                x[i] = min(max(step, least[i]), most[i])
                missing -= x[i]
        if not whole:
            return
    if missing > 0.0:
        keys = np.empty(count, np.uint64)
        able = 0
        for i in range(count):
            if least[i] <= step < most[i]:
                keys[able] = tie_hash(number[i])
                able += 1
        limit = smallest(keys, able, min(able, np.int64(missing)))
        for i in range(count):
            if least[i] <= step < most[i] and tie_hash(number[i]) <= limit:
                x[i] += 1.0


@compiled(inner=True)
def _children_lines(k, forest, leaf_weight, weight, limits, absolute, lines, prices, moves):  # type: ignore[no-untyped-def]
    """The lines of the children of k with their own costs: points, where each begins, and the slopes of their rays."""
    leaf_start, inner_start, _, _ = forest
    lo, hi, _, _ = limits
    start, points, left, right = lines
    first, last = leaf_start[k], leaf_start[k + 1]
    children = last - first + inner_start[k + 1] - inner_start[k]
    room = 4 * (last - first)
    for c in range(inner_start[k], inner_start[k + 1]):
        room += points[c] + 1
    price, move, begin = np.empty(room), np.empty(room), np.zeros(children + 1, np.int64)
    lefts, rights = np.empty(children), np.empty(children)
    scratch = (np.empty(8), np.empty(8))
    for i in range(children):
        made = begin[i]
        if i < last - first:
            j = first + i
            top = hi[j] if hi.size > 0 else np.inf
            found = leaf_line(absolute, leaf_weight[j], lo[j], top, price[made:], move[made:], scratch[0], scratch[1])
        else:
            c = inner_start[k] + i - (last - first)
            line = (prices[start[c] :], moves[start[c] :], points[c], left[c], right[c])
            found = own_cost(absolute, weight[c], *line, price[made:], move[made:])
        lefts[i], rights[i] = found[1], found[2]
        begin[i + 1] = made + found[0]
    return price, move, begin, lefts, rights


@compiled(inner=True)
def _upwards(forest, weights, limits, absolute, gap):  # type: ignore[no-untyped-def]
    """The lines of all inner outputs without their own costs: line k is start[k] … start[k] + points[k] − 1."""
    leaf_weight, _, _, weight = weights
    _, _, low, high = limits
    count = weight.size
    start, points = np.zeros(count + 1, np.int64), np.zeros(count, np.int64)
    lines = (start, points, np.zeros(count), np.zeros(count))
    prices, moves = np.empty(4 * count + 64), np.empty(4 * count + 64)
    used = 0
    for k in range(count - 1, -1, -1):
        below = _children_lines(k, forest, leaf_weight, weight, limits, absolute, lines, prices, moves)
        begin = below[2]
        room = 4 * begin[-1] + 2 * begin.size + 6
        if used + room > prices.size:
            prices, moves = longer(prices, used, 2 * (used + room)), longer(moves, used, 2 * (used + room))
        start[k] = used
        own_price, own_move = prices[used:], moves[used:]
        made, left, right = added(*below, gap[k], own_price, own_move)
        made, left, right = cut(own_price, own_move, made, left, right, low[k], high[k])
        if absolute:
            made = insert(own_price, own_move, made, left, right, 0.0)
        points[k], lines[2][k], lines[3][k] = made, left, right
        used += made
    return lines, prices, moves


@compiled(inner=True)
def curves(forest, weights, limits, absolute, whole, gap, price, leaf_x, inner_x):  # type: ignore[no-untyped-def]
    """Find the best moves of leaves and inner outputs, and the price at every inner output's children.

    `forest`, `weights` and `limits` are as in rows.py; the sum of the children's moves plus `gap` is the parent's move.
    `whole` shares ties out in whole units.
    """
    leaf_start, inner_start, leaves, inner = forest
    leaf_weight, _, _, weight = weights
    lo, hi, _, _ = limits
    (start, points, left, right), prices, moves = _upwards(forest, weights, limits, absolute, gap)
    leaf_price, leaf_move, scratch_price, scratch_move = np.empty(8), np.empty(8), np.empty(8), np.empty(8)
    for k in range(weight.size):
        own_price, own_move = prices[start[k] : start[k] + points[k]], moves[start[k] : start[k] + points[k]]
        if k < inner_start[0]:
            fewest, largest = _inner_answer(absolute, weight[k], own_price, own_move, left[k], right[k], 0.0)
            inner_x[k] = min(max(0.0, fewest), largest)
        price[k] = price_at(own_price, own_move, points[k], left[k], right[k], inner_x[k])
        first, last = leaf_start[k], leaf_start[k + 1]
        children = last - first + inner_start[k + 1] - inner_start[k]
        least, most, x = np.empty(children), np.empty(children), np.empty(children)
        number = np.empty(children, np.int64)
        tied = False
        for i in range(children):
            if i < last - first:
                j = first + i
                top = hi[j] if hi.size > 0 else np.inf
                made, ray, other = leaf_line(
                    absolute, leaf_weight[j], lo[j], top, leaf_price, leaf_move, scratch_price, scratch_move
                )
                least[i], most[i] = answer(leaf_price, leaf_move, made, ray, other, price[k])
                number[i] = leaves[j]
            else:
                c = inner_start[k] + i - (last - first)
                end = start[c] + points[c]
                line = (prices[start[c] : end], moves[start[c] : end], left[c], right[c])
                least[i], most[i] = _inner_answer(absolute, weight[c], *line, price[k])
                number[i] = inner[c]
            tied = tied or least[i] < most[i]
        if tied:
            _share(least, most, children, inner_x[k] - gap[k], whole, number, x)
        else:
            put(least, x)
        put(x[: last - first], leaf_x[first:last])
        put(x[last - first :], inner_x[inner_start[k] : inner_start[k + 1]])
