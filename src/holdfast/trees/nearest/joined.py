"""The nearest whole table of a forest whose lower parts are moved apart: units of roots go up, totals come down.

A root's units, cheapest first, are all that what is above it needs to know of what is below (plain.py): a part tells
those around a price, and the top merges them as it merges those of its own leaves. Where the best table lies beyond
what is known, parts are asked again at better prices. Prices say where to look, never what is best, so the table is
that of the whole (docs/theory/pieces.md).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from holdfast.arguments import LARGEST
from holdfast.arrays import Bools, Floats, Ints
from holdfast.trees.nearest.nearest import Nearest
from holdfast.trees.nearest.plain import SURE, Units, Weights, best, leaf_units, prices, read, sum_up, upward


class Told(NamedTuple):
    """What a part tells about a root: the value from which it moves, its units around a price, and how it answers.

    In real numbers its move is `answer` + `response`·price, near the price that it was asked at.
    """

    start: int
    answer: float
    response: float
    units: Units


def told(
    part: Nearest, noisy: Ints, bounds: tuple[Ints, Ints], price: Floats, coin: int, looked: tuple[int, int]
) -> list[Told]:
    """What a part tells about its roots, in the order of their numbers, each asked at its price from above.

    `looked`: how many units of each leaf are looked at on either side, and how many of a root are told.
    """
    layout, (units, most) = part.layout, looked
    (leaf_low, leaf_high, low, high), _ = part.bounds(*bounds)
    weights = Weights(part.leaf_weight, part.variance, part.weight)
    rows, inner_y = read(layout, weights, (leaf_low, leaf_high, low, high), noisy[None])
    leaf_roots, inner_roots = layout.leaves[: layout.leaf_start[0]], layout.inner[: layout.inner_start[0]]
    numbers = np.sort(np.concatenate([leaf_roots, inner_roots]))
    found: dict[int, Told] = {}
    for j, root in enumerate(leaf_roots.tolist()):
        pull = price[np.searchsorted(numbers, [root])]
        one = slice(j, j + 1)
        lo, hi, variance = rows.lo[:, one], rows.hi[:, one], part.variance[j]
        made = leaf_units(weights.leaf[one], lo, hi, pull, units)
        x = float(np.clip(pull[0] * variance, lo[0, 0], hi[0, 0]))
        free = lo[0, 0] < x < hi[0, 0]
        found[root] = Told(int(noisy[root]), 0.0 if free else x, variance if free else 0.0, _near(made, pull[0], most))
    pulls = price[np.searchsorted(numbers, inner_roots)]
    real, answer, response = prices(layout, weights, rows, pulls)
    coins = np.array([coin], dtype=np.int64)
    made_up, _, _ = upward(layout, _names(part), weights, rows, real, coins, units)
    for k, root in enumerate(inner_roots.tolist()):
        near = _near(made_up[k], pulls[k], most)
        found[root] = Told(int(inner_y[0, k]), float(answer[0, k]), float(response[0, k]), near)
    return [found[root] for root in numbers.tolist()]


def joined(
    top: Nearest, noisy: Ints, bounds: tuple[Ints, Ints], below: Sequence[Told], coin: int, units: int
) -> tuple[Ints | None, Floats]:
    """The values of the top's own outputs and of the roots of all parts, which are its last outputs; None where what is
    known does not tell. And the prices at which these roots should be looked at.
    """
    layout, own = top.layout, len(noisy)
    start = np.concatenate([noisy, [each.start for each in below]])[None]
    low, high = (each.copy() for each in bounds)
    low[own:], high[own:] = -LARGEST, LARGEST  # what bounds a root is in its units
    whole, _ = top.bounds(low, high)
    grafted = np.flatnonzero(layout.leaves >= own)
    part_of = layout.leaves[grafted] - own
    variance, gap = top.variance.copy(), np.zeros(layout.inner.size)
    variance[grafted] = np.array([below[i].response for i in part_of])
    parent = np.searchsorted(layout.leaf_start, grafted, side="right") - 1
    np.add.at(gap, parent, np.array([below[i].answer for i in part_of]))
    weights = Weights(top.leaf_weight, variance, top.weight)
    rows, _ = read(layout, weights, whole, start)
    answering = replace(rows, gap=rows.gap + gap)  # type: ignore[arg-type]
    real, _, _ = prices(layout, weights, answering)
    wanted = np.empty(len(below))
    wanted[part_of] = real[0, parent]
    grafts = {int(j): below[i].units for j, i in zip(grafted, part_of, strict=True)}
    coins = np.array([coin], dtype=np.int64)
    moves, sure = best(layout, _names(top), weights, rows, real, coins, units, grafts)
    if not sure[0] or np.abs(moves).max(initial=0) >= SURE:
        return None, wanted
    roots = np.setdiff1d(np.arange(layout.leaf_start[0]), grafted)  # leaves without a parent stay as near as they may
    moves[:, roots] = np.clip(0.0, rows.lo[:, roots], rows.hi[:, roots])
    values = np.empty(start.shape, dtype=np.int64)
    values[:, layout.leaves] = start[:, layout.leaves] + moves
    sum_up(layout, values)
    return values[0], wanted


def covered(below: Sequence[Told], price: Floats) -> Bools:
    """Whether what is known of roots reaches to both sides of their prices."""
    found = np.empty(len(below), dtype=bool)
    for i, (each, at) in enumerate(zip(below, 2.0 * price, strict=True)):
        costs, units = each.units.costs[0], each.units
        known = units.last[0, 0] > 0
        under = not units.below[0, 0] or (known and costs[0] < at)
        found[i] = under and (not units.above[0, 0] or (known and costs[-1] > at))
    return found


def _near(units: Units, price: float, most: int) -> Units:
    """At most so many known units on either side of a price."""
    first, last = int(units.first[0, 0]), int(units.last[0, 0])
    costs = units.costs[0, first : max(first, last)]
    middle = int(np.searchsorted(costs, 2.0 * price))
    begin, end = max(0, middle - most), min(costs.size, middle + most)
    before = units.before + first + begin
    below, above = units.below | (begin > 0), units.above | (end < costs.size)
    nothing = np.zeros((1, 1), dtype=np.int64)
    told = costs[None, begin:end] if end > begin else np.full((1, 1), np.inf)  # a row of units is never empty
    return Units(told, before, nothing, nothing + end - begin, below, above)


def _names(nearest: Nearest) -> Ints:
    return np.arange(len(nearest.exact)) if nearest.names is None else nearest.names
