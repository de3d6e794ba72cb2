"""How c(x) = P(x + U ∈ C) grows when one cell rises by 1, where bounds on differences connect cells as a tree.

Cells are summed out one after the other towards the cell that rises: the message of a cell is the sum of its weights
times its own messages, over the values that the edge allows. All terms are positive balls. Messages are made relative
to the table and kept by what they depend on, so that the cells of a long chain share them. Values are cut off far below
the table, which can only raise the price (docs/theory/orders-and-lines.md, Lemma 3); above, what is left of the last
sum is bounded by log-concavity.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy.typing as npt
from flint import arb

from holdfast.arrays import Ints
from holdfast.given.prices.differences import NONE
from holdfast.noise.precision import ball

#: Values are summed this many scales around a cell.
REACH = 40
#: Balls that are added at most for all prices of one mechanism.
MOST_WORK = 1_000_000


@dataclass(frozen=True, eq=False)
class Table:
    """Ends of each cell relative to its value in a table, ±NONE without end, and edges z_i ≤ z_k + slack, likewise."""

    low: Ints
    high: Ints
    edges: tuple[tuple[int, int, int], ...]

    def ends(self, cell: int) -> tuple[int, int]:
        return int(self.low[cell]), int(self.high[cell])


@dataclass(frozen=True, eq=False)
class Message:
    """Partial sums of a cell's weights times its messages, from `low` on; the first entry is 0."""

    number: int
    low: int
    partial: list[arb]

    def between(self, first: int, last: int) -> arb:
        """The sum over the values first, …, last, as far as they are there."""
        end = min(last - self.low + 1, len(self.partial) - 1)
        start = max(first - self.low, 0)
        if end <= start:
            return arb(0)
        return self.partial[end] if start == 0 else self.partial[end] - self.partial[start]


#: A message, and how far below and above the cell it comes to its own cell may lie.
Arrived = tuple[Message, int, int]


@dataclass(eq=False)
class Sums:
    """Prices of raising one cell, for independent integer Laplace noise with these rates 1/λ.

    Guarantee: `rise` encloses or exceeds the supremum over tables of log c(x + e_j) − log c(x) for cells that edges of
    the table connect with cell j (docs/theory/orders-and-lines.md, Proposition 1).
    """

    inverse_scales: Sequence[Fraction]
    work: int = MOST_WORK
    kept: dict[Any, Message] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.rates = [ball(rate) for rate in self.inverse_scales]
        self.reach = math.ceil(REACH / min(self.inverse_scales))
        self._powers: dict[int, list[arb]] = {}

    def rise(self, table: Table, laws: npt.NDArray[Any], j: int) -> arb | None:
        """log c(x + e_j) − log c(x) at the table, rounded upwards; None where cells form no tree or sums are long."""
        order = _towards(table, j)
        if order is None:
            return None
        own: dict[int, list[Arrived]] = {}
        for cell, parent, down, up in reversed(order[1:]):
            found = self.message(int(laws[cell]), table.ends(cell), own.get(cell, []))
            if found is None:
                return None
            own.setdefault(parent, []).append((found, down, up))
        return self.last(int(laws[j]), table.ends(j), own.get(j, []))

    def message(self, law: int, ends: tuple[int, int], own: list[Arrived]) -> Message | None:
        """What a cell with these ends and messages sends on; None where sums are long."""
        low, high = self._window(ends)
        key = (law, low, high, tuple(sorted((message.number, down, up) for message, down, up in own)))
        found = self.kept.get(key)
        if found is None:
            if not self._affordable(low, high, own):
                return None
            weights, total, partial = self._weights(law), arb(0), [arb(0)]
            for value in range(low, high + 1):
                total += weights[abs(value)] * _product(own, value)
                partial.append(total)
            found = self.kept[key] = Message(len(self.kept), low, partial)
        return found

    def _window(self, ends: tuple[int, int]) -> tuple[int, int]:
        """The values over which a cell is summed; what lies below is cut off."""
        return max(ends[0], -self.reach), min(ends[1], self.reach + 1)

    def _affordable(self, low: int, high: int, own: list[Arrived]) -> bool:
        self.work -= (high - low + 1) * (1 + len(own))
        return self.work >= 0

    def _weights(self, law: int) -> list[arb]:
        """The weights e^{−k/λ} of k = 0, 1, …"""
        if law not in self._powers:
            alpha, power, found = (-self.rates[law]).exp(), arb(1), []
            for _ in range(self.reach + 3):
                found.append(power)
                power *= alpha
            self._powers[law] = found
        return self._powers[law]

    def last(self, law: int, ends: tuple[int, int], own: list[Arrived]) -> arb | None:
        """The logarithm of the ratio of the sums over the cell that rises, after and before; None where unknown."""
        if not own and ends[0] <= -NONE:
            return arb(0)
        low, high = self._window(ends)
        if not self._affordable(low, high, own):
            return None
        weights, before, after = self._weights(law), arb(0), arb(0)
        last = product = arb(1)
        for value in range(low, high + 1):
            last, product = product, _product(own, value)
            before += weights[abs(value)] * product
            after += weights[abs(value - 1)] * product
        if high < ends[1]:
            # Messages form a log-concave sequence: beyond the window they grow no faster than at its end.
            growth = (product / last).max(arb(1)) if own else arb(1)
            share = weights[1] * growth
            if not share < 1:
                return None
            after += weights[high - 1] * product * share / (1 - share)
        rise = (after / before).log()
        return rise.max(arb(0)).min(self.rates[law]) if rise.is_finite() else None


def _product(own: list[Arrived], value: int) -> arb:
    """The product of the messages of all neighbours, at one value of the cell they come to."""
    result = arb(1)
    for message, down, up in own:
        result *= message.between(value - down if down < NONE else -NONE, value + up if up < NONE else NONE)
    return result


def _towards(table: Table, j: int) -> list[tuple[int, int, int, int]] | None:
    """Cells connected with j, nearest first: (cell, the next one towards j, how far below and above it it may lie).

    None where they form no tree.
    """
    joins: dict[int, dict[int, tuple[int, int]]] = {}
    for i, k, slack in table.edges:  # z_i ≤ z_k + slack
        for cell, other, below in ((i, k, False), (k, i, True)):
            down, up = joins.setdefault(cell, {}).get(other, (NONE, NONE))
            joins[cell][other] = (slack, up) if below else (down, slack)
    order = [(j, -1, NONE, NONE)]
    seen = {j}
    for cell, parent, _, _ in order:
        for other in joins.get(cell, {}):
            if other == parent:
                continue
            if other in seen:
                return None
            seen.add(other)
            down, up = joins[other][cell]
            order.append((other, cell, down, up))
    return order
