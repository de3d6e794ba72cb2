"""What doubles leave open, decided in balls from the messages' own doubles: choices, and the test of drawn totals.

A choice goes through the places in the order of the compiled passes and compares the same random bits, with more of
them where they do not tell. A total is tested by c, what its message stands for beside the message (plain/message.py);
a constant does not matter, so both are measured at a place of the window. Proofs: docs/theory/exact-trees.md.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

import numpy as np
from flint import arb

from holdfast.arguments import LARGEST
from holdfast.arrays import Floats, Ints
from holdfast.noise import IntegerLaplace
from holdfast.noise.draws.decisions import Digits, accept, chosen, decided, places
from holdfast.randomness import Stream
from holdfast.trees.messages import passes
from holdfast.trees.messages.messages import Messages
from holdfast.trees.messages.parcels import Shelf
from holdfast.trees.plain.balls import powers
from holdfast.trees.plain.message import ANY, HARD, Alone, Division, End, Message, Weight
from holdfast.trees.steps.ends import HIGH, LOW, SMALLEST

#: Beyond its table a Gaussian weight falls as at its last place, or a little faster.
FASTER = 1 - 1e-12


@dataclass(frozen=True, eq=False)
class LaplaceLeaf(Message):
    """The powers of one double, between two bounds."""

    alpha: float = 0.0
    low: int = -LARGEST
    high: int = LARGEST

    def ball(self, t: int) -> arb:
        """The message itself at any noise."""
        return arb(self.alpha) ** abs(t) if self.low <= t <= self.high else arb(0)

    def balls(self, first: int, last: int) -> list[arb]:
        """The same at all noise of a range."""
        found = [arb(1), *powers(1.0, self.alpha, max(-first, last))]
        return [found[abs(t)] if self.low <= t <= self.high else arb(0) for t in range(first, last + 1)]


class Node(NamedTuple):
    """A total that is tested: its message, what this stands for, and the total."""

    purpose: str
    slot: int
    message: Message
    stands: Callable[[int], arb]
    total: int

    @property
    def inside(self) -> bool:
        """Whether the total lies inside the window."""
        return self.message.lo <= self.total <= self.message.hi

    def share(self) -> arb:
        """c: the probability with which the total is accepted."""
        stands = self.stands(self.total)
        if stands.is_zero():
            return stands
        message = self.message
        core = min(max(0, message.lo), message.hi)
        share = stands / message.ball(self.total) * message.ball(core) / self.stands(core) * (1 - arb(message.excess))
        if share > 1:
            raise ArithmeticError("a message is below what it stands for")
        return share


def _end(height: float, ratio: float, hard: bool) -> End:
    return HARD if hard else End(height, ratio)


def _on(shelf: Shelf, i: int) -> Message:
    lo, hi, head, hard = (int(each[i]) for each in (shelf.lo, shelf.hi, shelf.offset, shelf.hard))
    values = shelf.values[head : head + hi - lo + 1]
    below = _end(float(values[0]), float(shelf.r_lo[i]), bool(hard & LOW))
    above = _end(float(values[-1]), float(shelf.r_hi[i]), bool(hard & HIGH))
    return Message(lo, values, below, above, float(shelf.excess[i]), ANY, 0)


def _support(message: Message) -> tuple[int, int]:
    """Where a message is positive."""
    return (
        message.lo if message.below is HARD else -LARGEST,
        message.hi if message.above is HARD else LARGEST,
    )


@dataclass(frozen=True, eq=False)
class Exact:
    """One row of totals, decided in balls: choices that the compiled passes left open, and the test."""

    up: Messages
    stream: Callable[[str, int], Stream]  # of a purpose and a slot
    word: Callable[[int], int]  # of a slot

    # --- messages ------------------------------------------------------------------------------------------------

    def piece(self, k: int) -> Message:
        """The message of a kind of pieces."""
        return _on(self.up.shelf, k)

    def prefix(self, k: int, j: int) -> Message:
        """The message of a parcel's leaves from 0 to j."""
        scratch, kinds, base = self.up.prefixes_of(k)
        if j >= base:
            return _on(scratch, j - base + 1)
        shelf, slots, _ = self.up.blocks
        return _on(shelf, int(slots[int(kinds[0]), j + 1]))

    def leaf(self, q: int) -> Message:
        """The message of one leaf of a kind: the weights as they are tabled."""
        kit = self.up.kit
        low, high, powers = int(kit.leaf_low[q]), int(kit.leaf_high[q]), kit.weights[int(kit.leaf_law[q])]
        powers = powers[powers > SMALLEST]  # tables are as long as the widest law's
        longest, excess = powers.size - 1, float(passes.leaf_excess(kit.weights))
        lo, hi = max(low, -longest), min(high, longest)
        values: Floats = powers[np.abs(np.arange(lo, hi + 1))]
        ratio = float(powers[1]) if kit.laplace else float(powers[-1] / powers[-2] * FASTER)
        ends = (_end(float(powers[-1]), ratio, lo == low), _end(float(powers[-1]), ratio, hi == high))
        if kit.laplace:
            return LaplaceLeaf(lo, values, *ends, excess, ANY, 0, alpha=float(powers[1]), low=low, high=high)
        return Message(lo, values, *ends, excess, ANY, 0)

    def weight(self, law: int, tilt: float, low: int, high: int) -> Weight:
        """The weight of a measured law (−1: none) between bounds."""
        if law < 0:
            return Weight(Fraction(0), False, tilt, low, high)
        each = [one for one in self.up.law.laws if one is not None][law]
        laplace = isinstance(each, IntegerLaplace)
        rate = 1 / each.scale if laplace else 1 / (2 * each.sigma2)  # type: ignore[union-attr]
        return Weight(Fraction(rate), not laplace, tilt, low, high)

    # --- choices -------------------------------------------------------------------------------------------------

    def _choose(
        self, slot: int, ways: Alone | Division, start: int, span: tuple[int, int], support: tuple[int, int]
    ) -> int:
        low, high = span if span[0] <= span[1] else (start, start)
        ends = (None if support[0] <= -LARGEST else support[0], None if support[1] >= LARGEST else support[1])
        return decided(
            lambda _: ways.total(),
            Digits(self.word(slot), 64, lambda: self.stream("more", slot)),
            lambda total, number: chosen(ways.term, total, places(start, low, high, *ends), number),
        )

    def root(self, p: int, slot: int) -> int:
        """Draw the total of a piece that has none above it."""
        k = int(self.up.pieces.kind[p])
        message = self.piece(k)
        span = message.lo, message.hi
        start = int(passes.part_start(self.up.guess.centre[k], 0.0, 0.0, 0, *span))
        return self._choose(slot, Alone(message, -float(self.up.shelf.tilt[k])), start, span, _support(message))

    def _divided(self, k: int, s: int) -> Division:
        """The ways to divide a total of a pair."""
        p, tilt = self.up.pieces, self.up.shelf.tilt
        a, b = int(p.kind_left[k]), int(p.kind_right[k])
        return Division(self.piece(a), self.piece(b), s, arb(float(tilt[b])) - arb(float(tilt[a])))

    def pair(self, p: int, s: int) -> int:
        """Divide the total of a pair; return the left part."""
        guess, k = self.up.guess, int(self.up.pieces.kind[p])
        ways = self._divided(k, s)
        start = int(passes.part_start(guess.left_mean[k], guess.share[k], guess.centre[k], s, ways.low, ways.high))
        (low, high), (other_low, other_high) = _support(ways.a), _support(ways.b)
        low = max(low, s - other_high if other_high < LARGEST else -LARGEST)
        high = min(high, s - other_low if other_low > -LARGEST else LARGEST)
        return self._choose(p, ways, start, (ways.low, ways.high), (low, high))

    def parcel(self, p: int, s: int) -> list[int]:
        """Divide the total of a parcel; return the noise of its leaves in their order."""
        pieces, kit = self.up.pieces, self.up.kit
        k, first, size = int(pieces.kind[p]), int(pieces.first[p]), int(pieces.members[p])
        noise = [0] * size
        for j in range(size - 1, 0, -1):
            leaf, rest = self.leaf(int(pieces.leaf_kind[first + j])), self.prefix(k, j - 1)
            q, longest = int(pieces.leaf_kind[first + j]), kit.weights.shape[1] - 1
            low = max(int(kit.leaf_low[q]), -longest, s - rest.hi)
            high = min(int(kit.leaf_high[q]), longest, s - rest.lo)
            start = int(passes.leaf_start(kit.laplace, s, 1.0 / (j + 1), low, high))
            slot = pieces.size + first + j
            noise[j] = self._choose(slot, Division(leaf, rest, s), start, (low, high), _support(leaf))
            s -= noise[j]
        noise[0] = s
        return noise

    # --- the test ------------------------------------------------------------------------------------------------

    def node(self, p: int, total: int) -> Node:
        """The total of a piece."""
        pieces, shelf = self.up.pieces, self.up.shelf
        k, a, b = (int(each) for each in (pieces.kind[p], pieces.left[p], pieces.right[p]))
        tilts = shelf.tilt[k], 0.0 if a < 0 else shelf.tilt[pieces.kind[b if b >= 0 else a]]
        low, high = max(int(pieces.low[k]), int(pieces.lowest[k])), min(int(pieces.high[k]), int(pieces.highest[k]))
        weight = self.weight(int(pieces.law[k]), 0.0, low, high)

        def stands(t: int) -> arb:
            own = weight.ball(t) * ((arb(float(tilts[0])) - arb(float(tilts[1]))) * t).exp()
            if own.is_zero():
                return own
            if a < 0:
                return own * self.prefix(k, int(pieces.members[p]) - 1).ball(t)
            return own * (self.piece(int(pieces.kind[a])).ball(t) if b < 0 else self._divided(k, t).total())

        return Node("coin", p, self.piece(k), stands, total)

    def inside_parcel(self, p: int, noise: Ints) -> Iterator[Node]:
        """The totals of a parcel's first leaves, and its leaves but the first."""
        pieces, kit = self.up.pieces, self.up.kit
        k, first = int(pieces.kind[p]), int(pieces.first[p])
        totals = np.cumsum(noise).tolist()
        for j, total in enumerate(totals):
            q, slot = int(pieces.leaf_kind[first + j]), pieces.size + first + j
            message = self.prefix(k, j)
            weight = self.weight(int(kit.leaf_law[q]), 0.0, int(kit.leaf_low[q]), int(kit.leaf_high[q]))
            if j == 0:
                yield Node("coin", slot, message, weight.ball, total)
                continue
            leaf, rest = self.leaf(q), self.prefix(k, j - 1)

            def stands(t: int, leaf: Message = leaf, rest: Message = rest) -> arb:
                return Division(leaf, rest, t).total()

            yield Node("coin", slot, message, stands, total)
            yield Node("leaf", slot, leaf, weight.ball, int(noise[j]))

    def accept(self, purpose: str, slot: int, nodes: list[Node]) -> None:
        """Keep some totals with the probability ∏c, or raise Restart."""

        def shares(_: int) -> arb:
            result = arb(1)
            for node in nodes:
                result = result * node.share()
            return result

        accept(shares, self.stream(purpose, slot), lambda _: arb(1), lambda product: product)
