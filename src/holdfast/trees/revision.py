"""Exact revision on a hierarchy: integer noise given that parents equal the sum of their children.

Sum-product messages (THEORY §4): m_v = w_v · (m_{c1} * … * m_{ck}) going up; going down the root's noise is drawn and
every output's noise is split over its children. Alike leaves of one parent form a block. Everything is enclosed by
balls, and a draw that they do not decide is decided at a higher precision: the law is exact.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
from flint import ctx

from holdfast.arguments import LARGEST, Refused
from holdfast.noise import Independent, IntegerGaussian, IntegerLaplace
from holdfast.noise.comparison import Comparison
from holdfast.noise.precision import double, working_precision
from holdfast.randomness import Stream
from holdfast.trees.blocks import LONGEST, Leaf, reach_at, weight
from holdfast.trees.choice import Choice, Support, Window
from holdfast.trees.compositions import uniform_compositions
from holdfast.trees.forest import Forest, Ints
from holdfast.trees.message import Message
from holdfast.trees.pairs import spread_evenly

#: Precision at which modes are looked for and first comparisons are made.
BITS = 192
#: A bound further than this many scales from the truth is left out of the messages; a table that breaks it (of
#: probability below 1e-19 each) is drawn again as a whole, which is the same law.
FAR_LAPLACE, FAR_GAUSSIAN = 45, 10
TOO_WIDE = (
    "the noise is too wide for exact draws on a hierarchy so far: use onto(..., integer=False) or a larger epsilon"
)
#: Whole tables drawn again before giving up; one is nearly always enough.
MOST_TRIES = 1_000


@dataclass(frozen=True, eq=False)
class Part:
    """Part of a sibling group: one inner output, or a block of alike leaves."""

    members: Ints
    leaf: Leaf | None
    support: Support


@dataclass(eq=False)
class Revision:
    """The conditional law of integer noise on a forest, for given bounds on the noise of each output."""

    forest: Forest
    law: Independent
    low: Ints
    high: Ints
    _parts: dict[int, list[Part]] = field(default_factory=dict)
    _bounds: dict[int, tuple[int | None, int | None]] = field(default_factory=dict)
    _messages: dict[Any, Message] = field(default_factory=dict)
    _tables: dict[Any, tuple[Choice, Comparison]] = field(default_factory=dict)
    _supports: dict[int, Support] = field(default_factory=dict)
    _kinds: dict[Any, int] = field(default_factory=dict)
    _kind: dict[int, int] = field(default_factory=dict)
    _part_kinds: dict[int, tuple[tuple[int, int], ...]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for law in self.law.laws:
            if law is not None and reach_at(self._integer(law), BITS) > LONGEST:
                raise Refused(TOO_WIDE)
        far = np.zeros(self.forest.n, dtype=bool)
        lowest, highest = self.low.copy(), self.high.copy()
        for v in reversed(self.forest.downward):
            children = self.forest.children_of(v)
            law = self.law_of(v)
            low, high = int(self.low[v]), int(self.high[v])
            if children.size:
                # A bound that the children's bounds imply need not be cut again.
                reached_low = self._sum(lowest[children], -LARGEST)
                reached_high = self._sum(highest[children], LARGEST)
                low = -LARGEST if reached_low >= low else low
                high = LARGEST if reached_high <= high else high
                lowest[v], highest[v] = max(lowest[v], reached_low), min(highest[v], reached_high)
            elif law is not None:
                limit = int(
                    FAR_LAPLACE * law.scale
                    if isinstance(law, IntegerLaplace)
                    else FAR_GAUSSIAN * float(law.sigma2) ** 0.5
                )
                far[v] = (-LARGEST < low < -limit) or (limit < high < LARGEST)
                low = -LARGEST if low < -limit else low
                high = LARGEST if high > limit else high
            if self.forest.exact[v]:
                low = high = 0
            self._bounds[v] = (None if low <= -LARGEST else low, None if high >= LARGEST else high)
            self._group(v, children)
        self._far = np.flatnonzero(far)

    @staticmethod
    def _sum(ends: Ints, endless: int) -> int:
        return endless if (ends == endless).any() else int(ends.sum())

    @staticmethod
    def _integer(law: Any) -> IntegerLaplace | IntegerGaussian:
        assert isinstance(law, (IntegerLaplace, IntegerGaussian))
        return law

    def law_of(self, v: int) -> IntegerLaplace | IntegerGaussian | None:
        """The law of one output's noise; None: not measured."""
        law = self.law.laws[0 if self.law.which is None else int(self.law.which[v])]
        return None if law is None else self._integer(law)

    def _group(self, v: int, children: Ints) -> None:
        """Sort an output's children into parts, and find the noise it can have."""
        parts: list[Part] = []
        blocks: dict[Leaf, list[int]] = {}
        for child in children.tolist():
            if self.forest.exact[child]:
                continue
            if self.forest.is_leaf[child]:
                blocks.setdefault(Leaf(self.law_of(child), *self._bounds[child]), []).append(child)
            else:
                parts.append(Part(np.array([child]), None, self._supports[child]))
        for leaf, members in blocks.items():
            parts.append(Part(np.array(members), leaf, leaf.support.times(len(members))))
        # Outputs with the same law, bounds and kinds of parts share their messages and tables.
        keyed = sorted(((self._kind_of_part(part), part) for part in parts), key=lambda pair: pair[0])
        parts = [part for _, part in keyed]
        self._parts[v] = parts
        self._part_kinds[v] = tuple(kind for kind, _ in keyed)
        place = 0 if self.law.which is None else int(self.law.which[v])
        exact = bool(self.forest.exact[v])
        shape = (place, self._bounds[v], exact, bool(children.size), self._part_kinds[v])
        self._kind[v] = self._kinds.setdefault(shape, len(self._kinds))
        support = Support(*self._bounds[v])
        if children.size:
            support = self._joint_support(v, 0, len(parts)).within(*self._bounds[v])
        if support.empty or (self.forest.exact[v] and not _holds_zero(support)):
            raise Refused(f"what must hold cannot be reached below output {v}")
        self._supports[v] = support

    def _kind_of_part(self, part: Part) -> tuple[int, int]:
        if part.leaf is None:
            return (self._kind[int(part.members[0])], 0)
        return (self._kinds.setdefault(part.leaf, len(self._kinds)), int(part.members.size))

    # --- messages ----------------------------------------------------------------------------------------------

    def _kept(self, key: Any, make: Callable[[], Message]) -> Message:
        place = (int(ctx.prec), key)
        if place not in self._messages:
            self._messages[place] = make()
        return self._messages[place]

    def block(self, leaf: Leaf, count: int) -> Message:
        """The joint message of so many alike leaves."""
        return self._kept(
            (leaf, count), lambda: leaf.message() if count == 1 else self._kept((leaf, 1), leaf.message).power(count)
        )

    def part_message(self, part: Part) -> Message:
        """The joint message of a part."""
        if part.leaf is not None:
            return self.block(part.leaf, part.members.size)
        return self.message(int(part.members[0]))

    def _run(self, v: int, i: int, j: int) -> Message:
        """The joint message of an output's parts i, …, j−1, made of two halves; alike runs share it."""
        parts = self._parts[v]
        if i == j:
            return Message.at_zero()
        if j - i == 1:
            return self.part_message(parts[i])
        middle = (i + j) // 2
        return self._kept(("run", self._part_kinds[v][i:j]), lambda: self._run(v, i, middle) * self._run(v, middle, j))

    def bounds_of(self, v: int) -> tuple[int | None, int | None]:
        """The bounds on an output's noise that the messages know of."""
        return self._bounds[v]

    def part_kinds_of(self, v: int) -> tuple[tuple[int, int], ...]:
        """The kinds of an output's parts; equal kinds have equal messages."""
        return self._part_kinds[v]

    def parts_of(self, v: int) -> list[Part]:
        """The parts into which an output's children fall."""
        return self._parts[v]

    def message(self, v: int) -> Message:
        """The message of an output that is not exact: its own weight times its children's joint message."""

        def make() -> Message:
            law = self.law_of(v)
            if self.forest.is_leaf[v]:
                return Leaf(law, *self._bounds[v]).message()
            joint = self._run(v, 0, len(self._parts[v]))
            own = None if law is None else (lambda u: weight(law, u))
            return joint.weighted(own).cut(*self._bounds[v])

        return self._kept(("message", self._kind[v]), make)

    def upward(self) -> None:
        """Make the messages of all outputs, children first, so that no recursion is deep."""
        for v in reversed(self.forest.downward):
            if not (self.forest.exact[v] or self.forest.is_leaf[v]):
                self.message(v)

    # --- draws -------------------------------------------------------------------------------------------------

    def draw(self, size: int, stream: Stream) -> npt.NDArray[np.int64]:
        """Draw the noise of all outputs, (size, n)."""
        with working_precision(BITS):
            self.upward()
        noise = self._draw_all(size, stream)
        for _ in range(MOST_TRIES):
            broken = self._broken(noise)
            if broken.size == 0:
                return noise
            noise[broken] = self._draw_all(broken.size, stream)
        raise Refused("the bounds are too narrow for this noise: drawing did not end; use onto() or less noise")

    def _broken(self, noise: npt.NDArray[np.int64]) -> Ints:
        """Draws that break a far bound, which the messages left out."""
        if self._far.size == 0:
            return np.zeros(0, dtype=np.int64)
        chosen = noise[:, self._far]
        out = (chosen < self.low[self._far]) | (chosen > self.high[self._far])
        return np.flatnonzero(out.any(axis=1))

    def _draw_all(self, size: int, stream: Stream) -> npt.NDArray[np.int64]:
        noise = np.zeros((size, self.forest.n), dtype=np.int64)
        for v in self.forest.downward:
            if self.forest.parents[v] < 0 and not self.forest.exact[v]:
                noise[:, v] = self._chosen(
                    ("root", self._kind[v]), partial(self._root, v), np.zeros(size, dtype=np.int64), stream
                )
            if not self.forest.is_leaf[v]:
                self._split(v, noise, stream)
        return noise

    def _split(self, v: int, noise: npt.NDArray[np.int64], stream: Stream) -> None:
        """Spread an output's noise over its parts, half by half, and each block's total over its leaves."""
        parts = self._parts[v]
        stack = [(0, len(parts), noise[:, v])] if parts else []
        while stack:
            i, j, totals = stack.pop()
            if j - i > 1:
                middle = (i + j) // 2
                key = ("run", self._part_kinds[v][i:j])
                first = self._chosen(key, partial(self._first, v, i, j), totals, stream)
                stack += [(middle, j, totals - first), (i, middle, first)]
            elif (leaf := parts[i].leaf) is None:
                noise[:, parts[i].members[0]] = totals
            else:
                noise[:, parts[i].members] = self._spread(leaf, parts[i].members.size, totals, stream)

    def _spread(self, leaf: Leaf, count: int, totals: Ints, stream: Stream) -> npt.NDArray[np.int64]:
        if count == 1:
            return totals[:, None]
        if leaf.free:
            assert isinstance(leaf.law, IntegerLaplace)
            return spread_evenly(totals, count, leaf.law.scale, stream)
        if leaf.geometric:
            return uniform_compositions(totals, count, stream)
        half = count // 2
        first = self._chosen((leaf, count), partial(self._half, leaf, count), totals, stream)
        return np.hstack(
            [self._spread(leaf, half, first, stream), self._spread(leaf, count - half, totals - first, stream)]
        )

    def _chosen(self, key: Any, choice: Callable[[int], Choice], totals: Ints, stream: Stream) -> Ints:
        """Draw one number for each total; equal totals share a table."""
        result = np.empty_like(totals)
        distinct, member = np.unique(totals, return_inverse=True)
        order = np.argsort(member, kind="stable")
        for total, places in zip(distinct.tolist(), np.split(order, np.cumsum(np.bincount(member))[:-1]), strict=True):
            if (key, total) not in self._tables:
                made = choice(total)
                self._tables[key, total] = (made, Comparison.of(made))
            chosen, table = self._tables[key, total]
            result[places] = chosen.numbers(table.draw(places.size, stream))
        return result

    # --- choices -----------------------------------------------------------------------------------------------

    def _root(self, v: int, _total: int) -> Choice:
        def window() -> Window:
            message = self.message(v)
            return message.low, list(message.values), message.outside

        return _at_mode(window, self._supports[v])

    def _first(self, v: int, i: int, j: int, total: int) -> Choice:
        """The first half's share of what the parts i, …, j−1 have together."""
        middle = (i + j) // 2
        one, other = (self._joint_support(v, *ends) for ends in ((i, middle), (middle, j)))
        return _pair(lambda: self._run(v, i, middle), lambda: self._run(v, middle, j), one, other, total)

    def _joint_support(self, v: int, i: int, j: int) -> Support:
        result = Support(0, 0)
        for part in self._parts[v][i:j]:
            result = result + part.support
        return result

    def _half(self, leaf: Leaf, count: int, total: int) -> Choice:
        half = count // 2
        first, second = leaf.support.times(half), leaf.support.times(count - half)
        return _pair(lambda: self.block(leaf, half), lambda: self.block(leaf, count - half), first, second, total)


def _holds_zero(support: Support) -> bool:
    return (support.low is None or support.low <= 0) and (support.high is None or support.high >= 0)


def _pair(
    first: Callable[[], Message], second: Callable[[], Message], one: Support, other: Support, total: int
) -> Choice:
    """The first of two numbers with a given total, weighed by both messages."""

    def window() -> Window:
        a, b = first(), second()
        low, high = max(a.low, total - b.high), min(a.high, total - b.low)
        missing = a.outside * b.largest + b.outside * a.largest
        weights = [a.values[u - a.low] * b.values[total - u - b.low] for u in range(low, high + 1)]
        return low, weights, missing

    reflected = other.reflected(total)
    return _at_mode(window, one.within(reflected.low, reflected.high))


def _at_mode(window: Callable[[], Window], support: Support) -> Choice:
    """A choice whose order starts at the most likely number, as far as a first look can tell."""
    with working_precision(BITS):
        low, weights, _ = window()
        seen = [double(weight) for weight in weights]
    mode = low + int(np.argmax(seen)) if seen else (support.low if support.low is not None else support.high or 0)
    mode = mode if support.low is None else max(mode, support.low)
    return Choice(window, mode if support.high is None else min(mode, support.high), support)
