"""Lines of prices and moves: what an output of a hierarchy answers to a price (curves.py).

A line is points (price, move) that rise in both, and the slopes of a ray at either end: 0 is level, inf upright.
"""

from __future__ import annotations

import numpy as np

from holdfast.arrays import compiled

#: No move is larger than 2**62, so prices beyond this size are never asked for; lines end before them.
FARTHEST = 1e30


@compiled(inner=True)
def longer(values, count, size):  # type: ignore[no-untyped-def]
    """A longer array that begins with the first `count` values."""
    result = np.empty(size)
    for i in range(count):
        result[i] = values[i]
    return result


@compiled(inner=True)
def _between(x, x0, y0, x1, y1):  # type: ignore[no-untyped-def]
    """The height at x of the line through two points, reckoned from the nearer one."""
    slope = (y1 - y0) / (x1 - x0)
    return y0 + (x - x0) * slope if x - x0 < x1 - x else y1 - (x1 - x) * slope


@compiled
def insert(price, move, points, left, right, x):  # type: ignore[no-untyped-def]
    """Make x a point of the line if the line passes through it; return the number of points."""
    i = 0
    while i < points and move[i] < x:
        i += 1
    if i < points and move[i] == x:
        return points
    if i == 0:
        if left == 0.0:
            return points
        at = price[0] if np.isinf(left) else price[0] - (move[0] - x) / left
    elif i == points:
        if right == 0.0:
            return points
        at = price[i - 1] if np.isinf(right) else price[i - 1] + (x - move[i - 1]) / right
    else:
        at = _between(x, move[i - 1], price[i - 1], move[i], price[i])
    for k in range(points, i, -1):
        price[k], move[k] = price[k - 1], move[k - 1]
    price[i], move[i] = at, x
    return points + 1


@compiled(inner=True)
def cut(price, move, points, left, right, low, high):  # type: ignore[no-untyped-def]
    """Cut a line to the moves between low and high; return the number of points and the rays' slopes."""
    if low > -np.inf:
        points = insert(price, move, points, left, right, low)
        first = 0
        while first < points - 1 and move[first] < low:
            first += 1
        for i in range(first, points):
            price[i - first], move[i - first] = price[i], move[i]
        points, left = points - first, 0.0
    if high < np.inf:
        points = insert(price, move, points, left, right, high)
        while points > 1 and move[points - 1] > high:
            points -= 1
        right = 0.0
    return points, left, right


@compiled(inner=True)
def own_cost(absolute, weight, price, move, points, left, right, out_price, out_move):  # type: ignore[no-untyped-def]
    """Add an output's own cost to its line; return the number of points and the rays' slopes.

    For absolute values, 0 is a point of the line if the line passes through it.
    """
    if absolute:
        made = 0
        for i in range(points):
            if move[i] != 0.0:
                out_price[made] = price[i] + (weight if move[i] > 0.0 else -weight)
                out_move[made] = move[i]
                made += 1
                continue
            if i == 0 or move[i - 1] != 0.0:
                out_price[made], out_move[made] = price[i] - weight, 0.0
                made += 1
            if i == points - 1 or move[i + 1] != 0.0:
                out_price[made], out_move[made] = price[i] + weight, 0.0
                made += 1
        return made, left, right
    for i in range(points):
        out_price[i], out_move[i] = price[i] + weight * move[i], move[i]
    if weight > 0.0:
        left = 1.0 / weight if np.isinf(left) else left / (1.0 + weight * left)
        right = 1.0 / weight if np.isinf(right) else right / (1.0 + weight * right)
    return points, left, right


@compiled(inner=True)
def answer(price, move, points, left, right, wanted):  # type: ignore[no-untyped-def]
    """The least and the largest move of a line at a price; ∓inf on an endless upright ray."""
    if wanted < price[0]:
        x = move[0] if left == 0.0 or np.isinf(left) else move[0] + (wanted - price[0]) * left
        return x, x
    if wanted > price[points - 1]:
        x = (
            move[points - 1]
            if right == 0.0 or np.isinf(right)
            else move[points - 1] + (wanted - price[points - 1]) * right
        )
        return x, x
    first = np.searchsorted(price[:points], wanted)
    if price[first] > wanted:
        x = _between(wanted, price[first - 1], move[first - 1], price[first], move[first])
        return x, x
    last = np.searchsorted(price[:points], wanted, side="right") - 1
    least = -np.inf if first == 0 and np.isinf(left) else move[first]
    most = np.inf if last == points - 1 and np.isinf(right) else move[last]
    return least, most


@compiled(inner=True)
def price_at(price, move, points, left, right, x):  # type: ignore[no-untyped-def]
    """A price at which the line takes the move x; the middle one where there are many."""
    if x < move[0]:
        return price[0] if left == 0.0 or np.isinf(left) else price[0] - (move[0] - x) / left
    if x > move[points - 1]:
        end = price[points - 1]
        return end if right == 0.0 or np.isinf(right) else end + (x - move[points - 1]) / right
    first = np.searchsorted(move[:points], x)
    if move[first] > x:
        return _between(x, move[first - 1], price[first - 1], move[first], price[first])
    last = np.searchsorted(move[:points], x, side="right") - 1
    return price[first] if first == last else price[first] + 0.5 * (price[last] - price[first])


@compiled(inner=True)
def leaf_line(absolute, weight, lo, hi, price, move, scratch_price, scratch_move):  # type: ignore[no-untyped-def]
    """The line of a leaf: any move within its bounds at price 0, and then its own cost."""
    points, left, right = 0, np.inf, np.inf
    if lo > -np.inf:
        scratch_price[0], scratch_move[0] = 0.0, lo
        points, left = 1, 0.0
    if hi < np.inf:
        if points == 0 or hi > lo:
            scratch_price[points], scratch_move[points] = 0.0, hi
            points += 1
        right = 0.0
    if points == 0:
        scratch_price[0], scratch_move[0] = 0.0, 0.0
        points = 1
    if absolute:
        points = insert(scratch_price, scratch_move, points, left, right, 0.0)
    return own_cost(absolute, weight, scratch_price, scratch_move, points, left, right, price, move)


@compiled(inner=True)
def _started(price, move, left, right, wanted):  # type: ignore[no-untyped-def]
    """The least finite move of a line at a price, and the slope just below that price."""
    points = price.size
    first = np.searchsorted(price, wanted)
    if first == 0:
        if wanted == price[0]:
            return move[0], 0.0 if np.isinf(left) else left
        return (move[0], 0.0) if np.isinf(left) else (move[0] + (wanted - price[0]) * left, left)
    if first == points:
        return (
            (move[points - 1], 0.0)
            if np.isinf(right)
            else (move[points - 1] + (wanted - price[points - 1]) * right, right)
        )
    slope = (move[first] - move[first - 1]) / (price[first] - price[first - 1])
    return _between(wanted, price[first - 1], move[first - 1], price[first], move[first]), slope


@compiled(inner=True)
def added(price, move, start, left, right, gap, out_price, out_move):  # type: ignore[no-untyped-def]
    """Add lines at equal prices; line c has the points start[c], …, start[c+1]−1. Return as `cut` does.

    The sum is begun at price 0 and carried on to either side, so that far points do not blur near ones.
    """
    lines = left.size
    lowest, highest = -np.inf, np.inf
    for c in range(lines):
        if np.isinf(left[c]):
            lowest = max(lowest, price[start[c]])
        if np.isinf(right[c]):
            highest = min(highest, price[start[c + 1] - 1])
    middle = min(max(0.0, lowest), highest)
    total, slope, sloping, size = gap, 0.0, 0, 3
    for c in range(lines):
        begin, end = start[c], start[c + 1]
        x, steep = _started(price[begin:end], move[begin:end], left[c], right[c], middle)
        total += x
        slope += steep
        sloping += steep > 0.0
        size += 2 * (end - begin)
    where, jump, turn = np.empty(size), np.zeros(size), np.zeros(size)
    where[0] = middle
    events = 1
    if lowest > -np.inf:
        where[events] = lowest
        events += 1
    if highest < np.inf:
        where[events] = highest
        events += 1
    for c in range(lines):
        begin, end = start[c], start[c + 1]
        if 0.0 < left[c] < np.inf:
            where[events], turn[events] = price[begin], -left[c]
            events += 1
        if 0.0 < right[c] < np.inf:
            where[events], turn[events] = price[end - 1], right[c]
            events += 1
        for i in range(begin, end - 1):
            if price[i + 1] == price[i]:
                where[events], jump[events] = price[i], move[i + 1] - move[i]
                events += 1
            elif move[i + 1] > move[i]:
                steep = (move[i + 1] - move[i]) / (price[i + 1] - price[i])
                where[events], turn[events] = price[i], steep
                where[events + 1], turn[events + 1] = price[i + 1], -steep
                events += 2
    order = np.argsort(where[:events], kind="mergesort")
    split = np.searchsorted(where[:events][order], middle)
    made, left_slope = _swept(
        order[:split][::-1], where, jump, turn, -1, middle, total, slope, sloping, lowest, out_price, out_move
    )
    for i in range(made // 2):
        k = made - 1 - i
        out_price[i], out_price[k] = out_price[k], out_price[i]
        out_move[i], out_move[k] = out_move[k], out_move[i]
    more, right_slope = _swept(
        order[split:], where, jump, turn, 1, middle, total, slope, sloping, highest, out_price[made:], out_move[made:]
    )
    return made + more, np.inf if lowest > -np.inf else left_slope, np.inf if highest < np.inf else right_slope


@compiled(inner=True)
def _swept(order, where, jump, turn, side, at, total, slope, sloping, limit, out_price, out_move):  # type: ignore[no-untyped-def]
    """Carry a sum of lines on to one side (±1), event by event; return the number of points and the last slope.

    Events that neither jump nor turn leave no point behind, but for the one where the sum began.
    """
    made, i, began = 0, 0, at
    while i < order.size:
        here = where[order[i]]
        if (here - limit) * side > 0.0 or abs(here) > FARTHEST:
            break
        total += slope * (here - at)
        at = here
        leap, bend = 0.0, 0.0
        while i < order.size and where[order[i]] == here:
            e = order[i]
            leap += jump[e]
            bend += turn[e]
            if turn[e] != 0.0:
                sloping += side if turn[e] > 0.0 else -side
            i += 1
        slope += side * bend
        if sloping == 0:
            slope = 0.0  # not what rounding left of it
        if leap == 0.0 and bend == 0.0 and here != began and here != limit:
            continue
        out_price[made], out_move[made] = here, total
        made += 1
        if leap > 0.0:
            total += side * leap
            out_price[made], out_move[made] = here, total
            made += 1
    return made, slope
