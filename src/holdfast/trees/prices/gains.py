"""How much c grows when several leaves of a hierarchy are raised from their bounds, exactly (THEORY H1, H11).

At the lowest table all noise is at least 0, and the weights factorise: every leaf is geometric. A table raised by g_l
at the leaves l allows noise down to −g_l. If leaves below an output stand at −m in all, and the others there, at least
0, add up to r, its weight is α^{|r−m|} instead of α^r. Nothing depends on r beyond the sum K of all gains, so each
output needs a table of (K+1)² figures only. Where leaf i is uncut below an exact output, the same holds for the tree
hung up at i.
Proof: docs/theory/nonnegativity.md, Proposition 9.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping
from fractions import Fraction

from flint import arb

from holdfast.noise.precision import ball
from holdfast.trees.prices.nonnegativity import Prices

#: The weight of −m below an output beside a sum r of the others, by (m, r); r = K stands for K and more.
Table = dict[tuple[int, int], arb]


class Gains:
    """The gains g of some leaves, in whole steps within their bounds."""

    def __init__(self, prices: Prices, gains: Mapping[int, int]) -> None:
        self.prices, self.gains = prices, dict(gains)
        self.most = sum(self.gains.values())
        self.touched = {v for leaf in self.gains for v in _upwards(prices, leaf)}

    def from_lowest(self) -> arb:
        """c_{L+g}/c_L, L the lowest table; no leaf that gains may have an exact output above it."""
        assert self.prices.integer
        assert all(self.prices.bounds.top[leaf] < 0 for leaf in self.gains)
        total = arb(1)
        for root in sorted(v for v in self.touched if self.prices.bounds.parents[v] < 0):
            total = total * _total(self._below(root, Fraction(0)))
        return total

    def beside(self, leaf: int) -> arb:
        """c_g/c_0 with one leaf uncut, all other leaves at their bounds; the leaves share their lowest exact output."""
        b, prices = self.prices.bounds, self.prices
        assert prices.integer
        assert b.top[leaf] >= 0
        assert all(b.top[other] == b.top[leaf] for other in self.gains)
        path = [leaf]
        while path[0] != b.top[leaf]:
            path.insert(0, int(b.parents[path[0]]))
        loss, table = prices.path_loss(leaf), {(0, 0): arb(1)}
        for above, below in itertools.pairwise(path):
            shared = 2 * prices.path_loss(above) - loss
            table = self._joined(table, self._children(above, below, shared))
            table = self._weighed(table, prices.rate(below))
        return _total(table)

    def _below(self, output: int, shared: Fraction) -> Table:
        if self.prices.bounds.is_leaf[output]:
            table = self._leaf(output, self.gains.get(output, 0), shared)
        else:
            table = self._children(output, None, shared)
        return self._weighed(table, self.prices.rate(output))

    def _children(self, output: int, without: int | None, shared: Fraction) -> Table:
        """The table of everything below an output but one child, which share its lowest exact output."""
        b = self.prices.bounds
        own = [
            int(c) for c in b.children_of(output) if c in self.touched and c != without and b.top[c] == b.top[output]
        ]
        left = self._classes(output)
        for child in own if without is None else [*own, without]:
            for kind, count in self._classes(child).items():
                left[kind] -= count
        table: Table = {(0, 0): arb(1)}
        for kind, count in left.items():
            if count:
                table = self._joined(table, self._power(self._leaf(int(b.examples[kind]), 0, shared), count))
        for child in own:
            table = self._joined(table, self._below(child, shared))
        return table

    def _classes(self, output: int) -> dict[int, int]:
        b = self.prices.bounds
        if b.is_leaf[output]:
            return {int(b.leaf_class[output]): 1}
        return {int(kind): int(count) for kind, count in zip(*b.classes_below(output), strict=True)}

    def _leaf(self, leaf: int, gain: int, shared: Fraction) -> Table:
        """A geometric count, cut at its top; at −1, …, −gain it has the weight of 0 until the outputs weigh it."""
        loss, width = self.prices.path_loss(leaf) - shared, float(self.prices.bounds.width[leaf])
        x, endless = ball(-loss).exp(), math.isinf(width)
        if loss == 0:
            stays = arb(0) if endless else 1 / arb(int(width) + 1)
        else:
            stays = (1 - x) / (1 - (arb(0) if endless else x ** (int(width) + 1)))
        last = math.inf if endless else int(width) - gain
        table = {(0, r): stays * x**r for r in range(self.most) if r <= last}
        if endless:
            table[0, self.most] = x**self.most
        elif last >= self.most:
            count = last - self.most + 1
            table[0, self.most] = stays * (arb(count) if loss == 0 else (x**self.most - x ** (last + 1)) / (1 - x))
        return table | {(m, 0): stays for m in range(1, gain + 1)}

    def _weighed(self, table: Table, rate: Fraction) -> Table:
        """Replace α^r by α^|r−m|."""
        return {(m, r): value * ball(-rate * (abs(r - m) - r)).exp() if m else value for (m, r), value in table.items()}

    def _joined(self, one: Table, other: Table) -> Table:
        result: Table = {}
        for (m, r), value in one.items():
            for (n, s), weight in other.items():
                key = (m + n, min(r + s, self.most))
                result[key] = result.get(key, arb(0)) + value * weight
        return result

    def _power(self, table: Table, count: int) -> Table:
        result: Table = {(0, 0): arb(1)}
        while count:
            if count & 1:
                result = self._joined(result, table)
            count >>= 1
            if count:
                table = self._joined(table, table)
        return result


def _upwards(prices: Prices, leaf: int) -> Iterable[int]:
    while leaf >= 0:
        yield leaf
        leaf = int(prices.bounds.parents[leaf])


def _total(table: Table) -> arb:
    return sum(table.values(), arb(0))
