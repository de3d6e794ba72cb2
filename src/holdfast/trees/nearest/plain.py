"""The nearest whole tables to many rows at once, by least squares, in plain numpy: what integer.py finds.

A unit at an output costs the change of Σ w·x² when its move goes from x to x+1. The units of an output stand in one
array for each row, cheapest first, from the move `before` on. A parent's units are its children's, sorted by cost and
then by the hash of the child, each with the parent's own cost added. Only units near the real optimum are looked at, so
of the units before `first` and from `last` on it is known that they come before and after the others, and no more.
Where the best table lies beyond what is known, more units are looked at: real prices say where to look, never what is
best. Proof that units in this order are the global optimum's: docs/theory/update-on-trees.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from holdfast.arguments import LARGEST
from holdfast.arrays import Array, Bools, Floats, Ints, Words
from holdfast.trees.shape.layout import Layout
from holdfast.trees.shape.ties import tie_hash

#: Numbers of all rows, inner outputs, and rows for which this is better than compiling; rows of one turn hold so many.
MOST_NUMBERS, MOST_INNER, FEWEST_ROWS, TURN = 600_000, 1_000, 10, 1 << 17
#: Numbers of fewer rows from which this is better, too.
MANY = 2_000
#: Units of a leaf that are looked at on either side of its real move, at first and at last.
UNITS, MOST_UNITS = 2, 64
#: Rounds in which real prices are looked for, and those before prices go half the way, which ends most circles.
ROUNDS, FIRM = 30, 8
#: Moves that are larger are left to integer.py, which says where they end.
SURE = 2.0**50


def serves(layout: Layout, rows: int) -> bool:
    """Whether so many rows are moved here; it depends on sizes alone, never on what is compiled."""
    n = layout.leaves.size + layout.inner.size
    enough = rows >= FEWEST_ROWS or rows * n >= MANY
    return enough and rows * n <= MOST_NUMBERS and 0 < layout.inner.size <= MOST_INNER


class Weights(NamedTuple):
    """Of leaves, their inverses (0 at exact leaves), and of inner outputs."""

    leaf: Floats
    variance: Floats
    inner: Floats


@dataclass(frozen=True)
class Rows:
    """Noisy values as moves: limits of leaves' and inner outputs' moves, (rows, …), ∓inf where there is none.

    The sum of the children's moves plus `gap` is the parent's move.
    """

    lo: Floats
    hi: Floats
    low: Floats
    high: Floats
    gap: Ints

    def chosen(self, rows: Bools) -> Rows:
        return Rows(self.lo[rows], self.hi[rows], self.low[rows], self.high[rows], self.gap[rows])


class Units(NamedTuple):
    """Units of some outputs of one parent, (rows, units), and of each output, (rows, outputs): what is known of them.

    `before` is the move before the first unit; known are the units from `first` up to `last`. `below` and `above` tell
    whether there may be more units beyond these.
    """

    costs: Floats
    before: Ints
    first: Ints
    last: Ints
    below: Bools
    above: Bools


class Merged(NamedTuple):
    """The place of each unit of an output's children in the row of all of them, and where each child's units start.

    `before` is the children's move before the first of these units, and `base` the output's own.
    """

    place: Ints
    starts: Ints
    before: Ints
    base: Ints


def move_whole(
    layout: Layout, weights: Weights, bounds: tuple[Ints, ...], noisy: Ints, coins: Ints, result: Ints
) -> int:
    """Write the nearest whole tables; return how many rows were moved before one could not be.

    `bounds` are those of leaves and of inner outputs, lower and upper, tightened; `coins` decide ties.
    """
    step = max(1, TURN // (layout.leaves.size + layout.inner.size))
    for begin in range(0, len(noisy), step):
        rows = slice(begin, begin + step)
        good = _turn(layout, weights, bounds, noisy[rows], coins[rows], result[rows])
        if not good.all():
            return begin + int(good.argmin())
    return len(noisy)


def _turn(layout: Layout, weights: Weights, bounds: tuple[Ints, ...], noisy: Ints, coins: Ints, result: Ints) -> Bools:
    """Write some tables, and tell which ones are right."""
    rows = read(layout, weights, bounds, noisy)
    price = prices(layout, weights, rows)
    moves = np.zeros((len(noisy), layout.leaves.size), dtype=np.int64)
    roots = layout.leaf_start[0]  # leaves without a parent stay as near as they may
    moves[:, :roots] = np.clip(0.0, rows.lo[:, :roots], rows.hi[:, :roots])
    waiting, units = np.ones(len(noisy), dtype=bool), UNITS
    while waiting.any() and units <= MOST_UNITS:
        found, sure = best(layout, weights, rows.chosen(waiting), price[waiting], coins[waiting], units)
        done = np.flatnonzero(waiting)[sure]
        moves[done, roots:], waiting[done], units = found[sure, roots:], False, 2 * units
    result[:, layout.leaves] = noisy[:, layout.leaves] + moves
    sum_up(layout, result)
    ends = (result[:, layout.leaves], result[:, layout.inner])
    within = [
        ((low <= each) & (each <= high)).all(1) for each, low, high in zip(ends, bounds[::2], bounds[1::2], strict=True)
    ]
    return ~waiting & within[0] & within[1] & (np.abs(moves).max(1, initial=0) < SURE)


def _children(layout: Layout, k: int) -> tuple[slice, slice]:
    leaf, inner = layout.leaf_start, layout.inner_start
    return slice(leaf[k], leaf[k + 1]), slice(inner[k], inner[k + 1])


def sum_up(layout: Layout, values: Array) -> None:
    """Make all inner values the sums of their children's."""
    for k in range(layout.inner.size - 1, -1, -1):
        leaves, inner = _children(layout, k)
        below = np.concatenate([layout.leaves[leaves], layout.inner[inner]])
        values[:, layout.inner[k]] = values[:, below].sum(axis=1)


def read(layout: Layout, weights: Weights, bounds: tuple[Ints, ...], noisy: Ints) -> Rows:
    """Turn values into moves.

    Inner outputs that are neither measured nor exact start from their children's sum.
    """
    leaf_low, leaf_high, low, high = bounds
    leaf_y, inner_y = noisy[:, layout.leaves], noisy[:, layout.inner]
    gap = np.zeros_like(inner_y)
    for k in range(layout.inner.size - 1, -1, -1):
        leaves, inner = _children(layout, k)
        total = leaf_y[:, leaves].sum(axis=1) + inner_y[:, inner].sum(axis=1)
        if weights.inner[k] == 0.0 and low[k] < high[k]:
            inner_y[:, k] = total
        gap[:, k] = total - inner_y[:, k]
    of_leaves = (_limits(leaf_low, leaf_y), _limits(leaf_high, leaf_y))
    return Rows(*of_leaves, _limits(low, inner_y), _limits(high, inner_y), gap)


def _limits(bound: Ints, values: Ints) -> Floats:
    none = np.where(bound <= -LARGEST, -np.inf, np.inf)
    return np.where(np.abs(bound) < LARGEST, bound - values, none)


def prices(layout: Layout, weights: Weights, rows: Rows) -> Floats:
    """Prices of the real optimum, (rows, inner), nearly: policy iteration as in real.py, a few rounds of it."""
    size, count = rows.gap.shape
    price, above, at_bound = np.zeros((size, count)), np.zeros((size, count)), rows.low == rows.high
    answer, response = np.empty((size, count)), np.empty((size, count))
    parent = np.repeat(np.arange(count), np.diff(layout.leaf_start))
    lo, hi, variance = (each[..., layout.leaf_start[0] :] for each in (rows.lo, rows.hi, weights.variance))
    starts = np.minimum(layout.leaf_start[:-1] - layout.leaf_start[0], max(parent.size - 1, 0))
    childless = np.diff(layout.leaf_start) == 0
    held = rows.low.copy()
    for turn in range(ROUNDS):
        before, x = price.copy(), price[:, parent] * variance
        free = (lo < x) & (x < hi)
        shares = np.where(free, 0.0, np.clip(x, lo, hi)), np.where(free, variance, 0.0)
        constant, slope = (_added(each, starts, childless) for each in shares)
        constant = constant + rows.gap
        for k in range(count - 1, -1, -1):
            inner = _children(layout, k)[1]
            constant[:, k] += answer[:, inner].sum(axis=1)
            slope[:, k] += response[:, inner].sum(axis=1)
            scale = 1.0 + weights.inner[k] * slope[:, k]
            answer[:, k] = np.where(at_bound[:, k], held[:, k], constant[:, k] / scale)
            response[:, k] = np.where(at_bound[:, k], 0.0, slope[:, k] / scale)
        for k in range(count):
            a, b, pull, weight = constant[:, k], slope[:, k], above[:, k], weights.inner[k]
            wanted = (a + b * pull) / (1.0 + weight * b)
            held[:, k] = np.clip(wanted, rows.low[:, k], rows.high[:, k])
            at_bound[:, k] = (held[:, k] != wanted) | (rows.low[:, k] == rows.high[:, k])
            bound_price = np.where(b > 0.0, (held[:, k] - a) / np.where(b > 0.0, b, 1.0), price[:, k])
            price[:, k] = np.where(at_bound[:, k], bound_price, (pull - weight * a) / (1.0 + weight * b))
            above[:, _children(layout, k)[1]] = price[:, k, None]
        if np.allclose(before, price, rtol=1e-9, atol=1e-9):
            break
        if turn >= FIRM:
            price = (price + before) / 2.0
    return price


def _added(values: Floats, starts: Ints, childless: Bools) -> Floats:
    """The sums of leaves' values below each inner output."""
    if not values.shape[1]:
        return np.zeros((len(values), starts.size))
    return np.where(childless, 0.0, np.add.reduceat(values, starts, axis=1))


def best(layout: Layout, weights: Weights, rows: Rows, price: Floats, coins: Ints, units: int) -> tuple[Ints, Bools]:
    """The best moves of leaves as far as so many units of each leaf tell, and the rows in which they do."""
    made, merged, sure = upward(layout, weights, rows, price, coins, units)
    move = np.zeros(price.shape, dtype=np.int64)
    for k in range(layout.inner_start[0]):
        move[:, k], sound = _root(made[k], _hashed(layout.inner[k] ^ coins))
        sure &= sound
    leaf_moves = np.zeros((len(price), layout.leaves.size), dtype=np.int64)
    for k in range(price.shape[1]):
        leaves, inner = _children(layout, k)
        place, starts, before, base = merged[k]
        below = before + np.add.reduceat(place < (move[:, k] - base)[:, None], starts, axis=1, dtype=np.int64)
        leaf_moves[:, leaves], move[:, inner] = np.split(below, [leaves.stop - leaves.start], axis=1)
    return leaf_moves, sure


def upward(
    layout: Layout, weights: Weights, rows: Rows, price: Floats, coins: Ints, units: int
) -> tuple[dict[int, Units], dict[int, Merged], Bools]:
    """The units of roots, how those of all children are merged, and the rows in which enough is known of each."""
    made: dict[int, Units] = {}
    merged: dict[int, Merged] = {}
    sure = np.ones(len(price), dtype=bool)
    for k in range(price.shape[1] - 1, -1, -1):
        leaves, inner = _children(layout, k)
        parts = [leaf_units(weights.leaf[leaves], rows.lo[:, leaves], rows.hi[:, leaves], price[:, k], units)]
        parts += [made.pop(c) for c in range(inner.start, inner.stop)]
        below = np.concatenate([layout.leaves[leaves], layout.inner[inner]])
        widths = np.concatenate([np.full(part.before.shape[1], _width(part)) for part in parts])
        together = Units(*(np.concatenate(each, axis=1) for each in zip(*parts, strict=True)))
        merged[k] = _merge(together, widths, _hashed(below ^ coins[:, None]), rows.gap[:, k])
        made[k], sound = _own(together, merged[k], weights.inner[k], rows.low[:, k], rows.high[:, k])
        sure &= sound
    return made, merged, sure


def _width(units: Units) -> int:
    return units.costs.shape[1] // max(1, units.before.shape[1])


def _hashed(numbers: Ints) -> Words:
    hashed: Words = tie_hash.py_func(numbers)
    return hashed


def leaf_units(weight: Floats, lo: Floats, hi: Floats, price: Floats, units: int) -> Units:
    """Units of the leaves of one parent around their real moves; those outside the limits are forced or forbidden."""
    middle = np.clip(np.ceil((2.0 * price[:, None] / weight - 1.0) / 2.0), lo, hi)
    x = middle[:, :, None] + np.arange(-units, units)
    costs = weight[:, None] * (2.0 * x + 1.0)
    costs = np.where(x < lo[:, :, None], -np.inf, np.where(x >= hi[:, :, None], np.inf, costs))
    before, known = (middle - units).astype(np.int64), np.zeros(lo.shape, dtype=np.int64)
    return Units(costs.reshape(len(lo), -1), before, known, known + 2 * units, lo < middle - units, hi > middle + units)


def _merge(units: Units, widths: Ints, keys: Words, gap: Ints) -> Merged:
    """Put the units of all children into one row, cheapest first, ties by the hash of the child."""
    order = np.lexsort((np.repeat(keys, widths, axis=1), units.costs), axis=1)
    place = np.empty_like(order)
    np.put_along_axis(place, order, np.arange(order.shape[1])[None, :], axis=1)
    return Merged(place, np.cumsum(widths) - widths, units.before, units.before.sum(axis=1) + gap)


def _own(units: Units, merged: Merged, weight: float, low: Floats, high: Floats) -> tuple[Units, Bools]:
    """The units of an output from those of its children, and the rows in which some of them are known.

    What a child has beyond its known units may come anywhere before the first of them, or after the last.
    """
    place, starts, _, base = merged
    many = place.shape[1]
    sorted_costs = np.empty(place.shape)
    np.put_along_axis(sorted_costs, place, units.costs, axis=1)
    known = units.first < units.last
    first = np.take_along_axis(place, starts + np.minimum(units.first, many - 1 - starts), axis=1)
    last = np.take_along_axis(place, starts + np.maximum(units.last - 1, 0), axis=1) + 1
    least = np.where(units.below, first, 0).max(axis=1)
    most = np.where(units.above, last, many).min(axis=1)
    begin = np.clip(np.maximum(least, low - base), 0, many).astype(np.int64)
    end = np.clip(np.minimum(most, high - base), 0, many).astype(np.int64)
    sound = (known | ~(units.below | units.above)).all(axis=1) & (begin <= end)
    sound &= (least <= high - base) & (most >= low - base)
    x = base[:, None] + np.arange(many)
    costs = sorted_costs + weight * (2.0 * x + 1.0)
    costs = np.where(np.arange(many) < begin[:, None], -np.inf, np.where(np.arange(many) < end[:, None], costs, np.inf))
    below, above = units.below.any(axis=1) & (least > low - base), units.above.any(axis=1) & (most < high - base)
    return Units(costs, base[:, None], begin[:, None], end[:, None], below[:, None], above[:, None]), sound


def _root(units: Units, number: Words) -> tuple[Ints, Bools]:
    """The best move of a root: every unit below 0 and half of those that cost nothing; and whether it is sure."""
    below, free = (np.count_nonzero(each, axis=1) for each in (units.costs < 0.0, units.costs == 0.0))
    sure = (below > units.first[:, 0]) | ~units.below[:, 0]
    sure &= (below + free < units.last[:, 0]) | ~units.above[:, 0]
    one_more = (free % 2 == 1) & (number & np.uint64(1) == np.uint64(1))
    return units.before[:, 0] + below + free // 2 + one_more, sure
