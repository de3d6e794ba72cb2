"""A weighted sum of outputs' noise on a large hierarchy, from the messages of its pieces: variance and phases.

As on a small one (plain/sums.py) something of what is contributed at and below a total goes up with the messages, and
below one weight nothing has to be computed. A piece *bends* where weights below it differ: of a nation's pieces only
those above the outputs of a sum do. Bending pieces of one kind with alike parts share what is found, and inside a
parcel alike leaves with one weight stand together. Where what is left is too much work, the variance is measured on
simulated draws: STUDY of them, fewer on very large hierarchies, but at least 100 (then a standard error is known to
about 7 %).
"""

from __future__ import annotations

from collections import Counter
from functools import cached_property
from typing import NamedTuple

import numpy as np

from holdfast.arrays import Array, Bools, Floats
from holdfast.noise.spread import STUDY
from holdfast.progress import Progress
from holdfast.randomness import seeded
from holdfast.trees.messages.messages import Messages
from holdfast.trees.messages.sampler import Sampler
from holdfast.trees.plain.message import ANY, HARD, NOTHING, End, Message
from holdfast.trees.plain.sums import Share, Way, convolved, joined
from holdfast.trees.steps.ends import HIGH, LOW

#: Totals that bend and differ, and about how many places their parts' messages have, in a sum that is not simulated:
#: some minutes.
MOST_JOINED, MOST_PLACES = 400_000, 4e8
#: Messages of alike leaves end where they are below this share of their largest value.
FAINT = 1e-15
#: Values drawn in all and at a time, about; and the least number of draws.
MOST_DRAWN, CHUNK, FEWEST = 1 << 26, 1 << 24, 100

#: Alike leaves: how many of each kind stand together.
Alike = tuple[tuple[int, int], ...]


class Part(NamedTuple):
    """A piece as a sum sees it: all that makes a difference above it."""

    kind: int
    own: float  # the weight of its own output; of all below where it does not bend
    parts: tuple[int, ...] = ()
    groups: tuple[tuple[int, float, int], ...] = ()  # of a parcel: kind of leaves, their weight, how many


class WeightedSum:
    """Σ weights·noise: where it bends, and whether so many times the work of its variance is too much."""

    def __init__(self, up: Messages, weights: Floats, times: int = 1) -> None:
        self.up = up
        self.slopes, self.bends = _slopes(up, weights)
        self.bending = _Bending(up, weights, self.slopes, self.bends, times)

    @property
    def too_much(self) -> bool:
        """Whether it is."""
        return not self.bending.few

    def found(self, way: Way, nothing: Array) -> Array:
        """What a way finds of the sum."""
        p = self.up.pieces
        tops = np.flatnonzero((p.root == 1) & ~self.bends & (self.slopes != 0))
        tops = tops[np.argsort(p.kind[tops], kind="stable")]
        result = self.bending.found(way, nothing)
        for some in np.split(tops, np.flatnonzero(np.diff(p.kind[tops])) + 1) if tops.size else []:
            slopes, counts = np.unique(self.slopes[some], return_counts=True)
            message = self.bending.messages.root(int(p.kind[some[0]]))
            result = way.together(result, way.of_straight(message, slopes, counts.astype(np.float64)), 1)
        return result


def simulated_variance(sampler: Sampler, weights: Floats) -> float:
    """The variance of Σ weights·noise, measured on draws."""
    n, stream = sampler.forest.n, seeded(0)
    size, rows = int(np.clip(MOST_DRAWN // n, FEWEST, STUDY)), max(1, CHUNK // n)
    sums = [sampler.draw(min(rows, size - start), stream) @ weights for start in range(0, size, rows)]
    return float(np.concatenate(sums).var())


def _slopes(up: Messages, weights: Floats) -> tuple[Floats, Bools]:
    """The one weight of what is at and below each piece, and which pieces bend: they have none."""
    p = up.pieces
    if not p.size:
        return np.zeros(0), np.zeros(0, dtype=bool)
    slopes = np.where(p.output >= 0, weights[p.output], 0.0)
    bends = np.zeros(p.size, dtype=bool)
    parcels, of_leaf = np.flatnonzero(p.left < 0), weights[p.leaves]
    least, most = (ends.reduceat(of_leaf, p.first[parcels]) for ends in (np.minimum, np.maximum))
    slopes[parcels] += least
    bends[parcels] = least != most
    for level in up.levels[1:]:
        a, b = p.left[level], p.right[level]
        differ = bends[b] | (slopes[a] != slopes[b])  # −1: none, and not looked at
        bends[level] = bends[a] | ((b >= 0) & differ)
        slopes[level] += slopes[a]
    return slopes, bends


class _Bending:
    """The distinct pieces that bend in one sum, and what stands below them."""

    def __init__(self, up: Messages, weights: Floats, slopes: Floats, bends: Bools, times: int) -> None:
        self.most_joined, self.most_places = MOST_JOINED / times, MOST_PLACES / times
        self.messages, self.pieces = _PlainMessages(up), up.pieces
        self.parts: list[Part] = []
        self.number: dict[Part, int] = {}
        self.joined, self.places = 0, 0.0
        self.roots: Counter[tuple[int, int]] = Counter()  # with what they are: free, or 0
        self.few = self._find(weights, slopes, bends)

    def _find(self, weights: Floats, slopes: Floats, bends: Bools) -> bool:
        """Find the pieces that differ, parts first; return whether they are few enough."""
        p, at = self.pieces, dict[int, int]()

        def below(piece: int) -> int:
            return at[piece] if bends[piece] else self._numbered(Part(int(p.kind[piece]), float(slopes[piece])))

        for i in np.flatnonzero(bends).tolist():
            kind, own = int(p.kind[i]), float(weights[p.output[i]]) if p.output[i] >= 0 else 0.0
            if p.left[i] < 0:
                place = slice(p.first[i], p.first[i] + p.members[i])
                alike = Counter(zip(p.leaf_kind[place].tolist(), weights[p.leaves[place]].tolist(), strict=True))
                groups = tuple(sorted((leaf, weight, count) for (leaf, weight), count in alike.items()))
                at[i] = self._numbered(Part(kind, own, (), groups))
            else:
                parts = tuple(below(part) for part in (int(p.left[i]), int(p.right[i])) if part >= 0)
                at[i] = self._numbered(Part(kind, own, parts))
            if p.root[i]:
                self.roots[at[i], int(p.root[i])] += 1
            if self.joined > self.most_joined or self.places > self.most_places:
                return False
        return True

    def _numbered(self, part: Part) -> int:
        """The number of a piece, a new one if there is none alike."""
        if part not in self.number:
            self.number[part] = len(self.parts)
            self.parts.append(part)
            if part.groups:
                self.joined += len(part.groups) - 1
                self.places += (len(part.groups) - 1) * self.messages.width(part.groups)
            elif len(part.parts) > 1:
                self.joined += 1
                self.places += sum(self.messages.size(self.parts[each].kind) for each in part.parts)
        return self.number[part]

    def found(self, way: Way, nothing: Array) -> Array:
        """What a way finds of what all bending roots contribute."""
        shares: dict[int, Share] = {}
        left = Counter(part for each in self.parts for part in each.parts)
        result, order = nothing, self._order()
        with Progress("adding up errors", len(order)) as progress:
            for i in order:
                part = self.parts[i]
                shares[i] = self._share(way, part, [shares[each] for each in part.parts])
                if free := self.roots[i, 1]:
                    result = way.together(result, way.of_root(self.messages.root(part.kind), shares[i]), free)
                if fixed := self.roots[i, 2]:
                    result = way.together(result, way.of_nothing(self.messages.of(part.kind), shares[i]), fixed)
                left.subtract(part.parts)
                for each in {i, *part.parts}:  # what is not needed again goes
                    if not left[each]:
                        del shares[each]
                progress.advance(1)
        return result

    def _order(self) -> list[int]:
        """Parts before what they are parts of, one branch after the other: few shares are kept at a time."""
        order, seen, stack = [], set[int](), [i for i, _ in self.roots]
        while stack:
            i = stack.pop()
            if i < 0:
                order.append(~i)
            elif i not in seen:
                seen.add(i)
                stack += [~i, *self.parts[i].parts]
        return order

    def _share(self, way: Way, part: Part, below: list[Share]) -> Share:
        if part.groups:
            return self._parcel(way, part)
        if not below:
            return Share(part.own)
        kinds = [self.parts[each].kind for each in part.parts]
        first, second = [*below, Share(0.0)][:2]
        return joined(way, self.messages.pair(part.kind, kinds), part.own, first, second)

    def _parcel(self, way: Way, part: Part) -> Share:
        """Alike leaves are joined, few of them first; the last are divided on the window of the parcel."""
        made, kind = self.messages, part.kind
        some: list[tuple[Alike, Share]] = [(((leaf, count),), Share(weight)) for leaf, weight, count in part.groups]
        while len(some) > 1:
            some.sort(key=lambda each: made.alike(each[0], kind).values.size)
            (a, first), (b, second), *some = some
            both = made.together(a, b, kind)
            whole, own = (made.alike(both, kind), 0.0) if some else (made.of(kind), part.own)
            parts = made.alike(a, kind), made.alike(b, kind)
            some.append((both, joined(way, _divided(whole, parts), own, first, second)))
        return some[0][1]


def _divided(message: Message, parts: tuple[Message, Message]) -> Message:
    """A message of two others; only its window counts."""
    return Message(message.lo, message.values, HARD, HARD, 0.0, ANY, 0, parts)


class _PlainMessages:
    """Messages of pieces and of alike leaves as plain/sums.py wants them.

    Those of the two parts of a piece have one tilt; which it is makes no difference.
    """

    def __init__(self, up: Messages) -> None:
        self.up, self.shelf = up, up.shelf
        self._leaves: dict[tuple[Alike, float], Message] = {}

    @cached_property
    def _middle(self) -> Floats:
        """The slope that the leaves of a parcel meet from above."""
        return np.asarray(self.up.guess.below.mean(axis=1))

    def size(self, k: int) -> int:
        """The number of places of a kind's window."""
        return int(self.shelf.hi[k] - self.shelf.lo[k] + 1)

    def width(self, groups: tuple[tuple[int, float, int], ...]) -> float:
        """About the number of places of the messages of a parcel's leaves."""
        kit, square = self.up.kit, 0.0
        for leaf, _, count in groups:
            rate = float(kit.rate[kit.leaf_law[leaf]])
            square += count * (2 / rate**2 if kit.laplace else 0.5 / rate)
        return 2 * (-2 * np.log(FAINT) * square) ** 0.5

    def of(self, k: int, tilt: float | None = None) -> Message:
        """The message of a kind of pieces, with another tilt if it is given."""
        shelf = self.shelf
        lo, start = int(shelf.lo[k]), int(shelf.offset[k])
        values = shelf.values[start : start + self.size(k)]
        change = 0.0 if tilt is None else tilt - float(shelf.tilt[k])
        if change:
            values = values * np.exp(change * (np.arange(values.size) - values.size // 2))
        down = HARD if shelf.hard[k] & LOW else End(float(values[0]), float(shelf.r_lo[k] * np.exp(-change)))
        up = HARD if shelf.hard[k] & HIGH else End(float(values[-1]), float(shelf.r_hi[k] * np.exp(change)))
        return Message(lo, values, down, up, 0.0, ANY, 0)

    def root(self, k: int) -> Message:
        """The message of a kind of pieces that nothing is above."""
        return self.of(k, 0.0)

    def pair(self, k: int, kinds: list[int]) -> Message:
        """The message of a kind of pairs, with those of its parts, or of the only one."""
        a = self.of(kinds[0])
        b = self.of(kinds[1], float(self.shelf.tilt[kinds[0]])) if len(kinds) > 1 else NOTHING
        return _divided(self.of(k), (a, b))

    def alike(self, leaves: Alike, parcel: int) -> Message:
        """The message of some leaves together, as they stand in a parcel of some kind."""
        key = leaves, float(self._middle[parcel])
        if key not in self._leaves:
            ((kind, count),) = leaves  # others were put together
            if count == 1:
                self._leaves[key] = self._leaf(kind, key[1])
            else:
                self.together(((kind, count // 2),), ((kind, count - count // 2),), parcel)
        return self._leaves[key]

    def together(self, first: Alike, second: Alike, parcel: int) -> Alike:
        """Put some leaves and others together."""
        counts = Counter(dict(first))
        counts.update(dict(second))
        both = tuple(sorted(counts.items()))
        key = both, float(self._middle[parcel])
        if key not in self._leaves:
            a, b = self.alike(first, parcel), self.alike(second, parcel)
            self._leaves[key] = _kept(a.lo + b.lo, convolved(a.values, b.values))
        return both

    def _leaf(self, kind: int, tilt: float) -> Message:
        """The message of one leaf."""
        kit = self.up.kit
        powers = kit.weights[kit.leaf_law[kind]]
        longest = powers.size - 1
        places = np.arange(max(kit.leaf_low[kind], -longest), min(kit.leaf_high[kind], longest) + 1)
        with np.errstate(over="ignore"):
            values = powers[abs(places)] * np.exp(tilt * places)
        return _kept(int(places[0]), values)


def _kept(lo: int, values: Floats) -> Message:
    """A message on the places where it is not faint, 1 where it is largest."""
    values = values / values.max()
    kept = np.flatnonzero(values > FAINT)
    first, last = int(kept[0]), int(kept[-1])
    return Message(lo + first, values[first : last + 1], HARD, HARD, 0.0, ANY, 0)
