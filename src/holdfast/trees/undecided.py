"""Draws that doubles leave open, decided in ball arithmetic by the same rules.

The messages are those of the compiled passes, read from their definition: the windows and tail ratios that the passes
chose, the values in balls. A choice goes through the places in the same order and compares the same random bits, with
more bits and more precision until it is decided (decisions.py). A total beyond a window is a proposal that is accepted
with the probability by which the message overstates it there; otherwise the whole table is drawn again.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from flint import arb, arb_poly

from holdfast.arguments import LARGEST
from holdfast.noise import IntegerLaplace
from holdfast.noise.precision import ball
from holdfast.randomness import Stream
from holdfast.trees import passes
from holdfast.trees.decisions import Digits, Open, accept, chosen, decided, places
from holdfast.trees.parcels import Shelf
from holdfast.trees.steps import HIGH, LOW

if TYPE_CHECKING:
    from holdfast.trees.sampler import Sampler


@dataclass(frozen=True, eq=False)
class Law:
    """A message: values on lo, lo+1, …, and geometric tails beyond; a ratio of 0 is a hard end."""

    lo: int
    values: list[arb]
    r_lo: arb
    r_hi: arb
    open_lo: bool = False  # beyond the window it goes on, log-concave, and does not count
    open_hi: bool = False

    @property
    def hi(self) -> int:
        """The last place of the window."""
        return self.lo + len(self.values) - 1

    def at(self, s: int) -> arb:
        """The value at any place."""
        if s < self.lo:
            return self.values[0] * self.r_lo ** (self.lo - s)
        if s > self.hi:
            return self.values[-1] * self.r_hi ** (s - self.hi)
        return self.values[s - self.lo]

    def tilted(self, tilt: arb) -> Law:
        """Multiply by e^{tilt·s}."""
        if tilt == 0:
            return self
        step = tilt.exp()
        powers = step**self.lo
        values = []
        for value in self.values:
            values.append(value * powers)
            powers = powers * step
        return Law(self.lo, values, self.r_lo / step, self.r_hi * step)

    def written(self, below: int, above: int) -> tuple[int, list[arb]]:
        """The values with so many places of the tails."""
        values = list(self.values)
        if self.r_lo > 0:
            head = []
            value = self.values[0]
            for _ in range(below):
                value = value * self.r_lo
                head.append(value)
            values = head[::-1] + values
        if self.r_hi > 0:
            value = self.values[-1]
            for _ in range(above):
                value = value * self.r_hi
                values.append(value)
        return self.lo - (below if self.r_lo > 0 else 0), values


def _sum_beyond(end: arb, before: arb) -> arb:
    """A ball around the sum of log-concave terms beyond an end, from the last two terms."""
    if end == 0:
        return arb(0)
    ratio = end / before
    if not ratio < arb(1):
        raise Open
    bound = (end * ratio / (1 - ratio)).upper()
    return arb(0, bound) if bound > 0 else arb(0)


def _certain(ratio: arb) -> arb:
    """A ratio that is known to be positive."""
    if not ratio > 0:
        raise Open
    return ratio


def _geometric(end: arb, ratio: arb) -> arb:
    """The sum of a geometric tail beyond an end."""
    if not ratio < 1:
        raise Open
    return end * ratio / (1 - ratio)


@dataclass(eq=False)
class Undecided:
    """The messages of one sampler in ball arithmetic, at one precision."""

    sampler: Sampler
    bits: int
    _laws: dict[tuple[str, int], Law] = field(default_factory=dict)
    _blocks: dict[tuple[int, int], Law] = field(default_factory=dict)
    _parcels: dict[int, tuple[int, list[Law]]] = field(default_factory=dict)

    # --- messages ------------------------------------------------------------------------------------------------

    def weight(self, law: int, b: int) -> arb:
        """The weight of noise b under a measured law."""
        measured = [each for each in self.sampler.law.laws if each is not None]
        each = measured[law]
        if isinstance(each, IntegerLaplace):
            return (-ball(abs(b) / each.scale)).exp()
        return (-ball(b * b / (2 * each.sigma2))).exp()  # type: ignore[union-attr]

    def _reach(self, q: arb) -> int:
        """How many places a geometric series with ratio q needs until it does not count."""
        slope = -float(q.log().mid())
        if not slope > 1e-6:
            raise Open
        return min(int(0.7 * (self.bits + 40) / slope) + 2, 200_000)

    def product(self, one: Law, other: Law, lo: int, hi: int) -> list[arb]:
        """Σ_a one(a)·other(s−a) for lo ≤ s ≤ hi."""
        down = self._reach(one.r_lo * other.r_hi) if one.r_lo > 0 and other.r_hi > 0 else 0
        up = self._reach(one.r_hi * other.r_lo) if one.r_hi > 0 and other.r_lo > 0 else 0
        # far enough that, for every s, both tails are reached and then do not count
        below = down + max(0, one.lo - (lo - other.hi)) + 2
        above = up + max(0, (hi - other.lo) - one.hi) + 2
        one_lo, first = one.written(below, above)
        one_hi = one_lo + len(first) - 1
        other_lo, second = other.written(max(0, other.lo - (lo - one_hi)), max(0, (hi - one_lo) - other.hi))
        product = arb_poly(first) * arb_poly(second)
        result = []
        for s in range(lo, hi + 1):
            value = product[s - one_lo - other_lo] if s >= one_lo + other_lo else arb(0)
            if one.r_lo > 0:
                value = value + _sum_beyond(
                    one.at(one_lo) * other.at(s - one_lo), one.at(one_lo + 1) * other.at(s - one_lo - 1)
                )
            if one.r_hi > 0:
                value = value + _sum_beyond(
                    one.at(one_hi) * other.at(s - one_hi), one.at(one_hi - 1) * other.at(s - one_hi + 1)
                )
            for is_open, b, inner in ((other.open_lo, other.lo, 1), (other.open_hi, other.hi, -1)):
                if is_open and (s - b < one.lo if inner > 0 else s - b > one.hi):
                    raise Open  # the terms may not fall yet: look further out
                if is_open:
                    value = value + _sum_beyond(
                        one.at(s - b) * other.at(b), one.at(s - b - inner) * other.at(b + inner)
                    )
            result.append(value)
        return result

    def leaf(self, q: int, around: Law) -> Law:
        """The weights of a kind of leaf; Laplace tails are geometric, Gaussian ones stay open far out."""
        kit = self.sampler.kit
        low, high, law = int(kit.leaf_low[q]), int(kit.leaf_high[q]), int(kit.leaf_law[q])
        far = 4
        if not kit.laplace:
            far = int((1.4 * (self.bits + 64) / (2 * kit.rate[law])) ** 0.5) + around.hi - around.lo + 4
        lo, hi = (-far if low == -LARGEST else low), (far if high == LARGEST else high)
        values = [self.weight(law, b) for b in range(lo, hi + 1)]
        ratio = self.weight(law, 1) if kit.laplace else arb(0)
        return Law(
            lo, values, arb(0) if lo == low else ratio, arb(0) if hi == high else ratio,
            not kit.laplace and lo > low, not kit.laplace and hi < high,
        )  # fmt: skip

    def _law(self, lo: int, values: list[arb], shelf: Shelf, i: int) -> Law:
        """Attach the tails that the compiled pass chose."""
        hard, defined = int(shelf.hard[i]), int(shelf.defined[i])
        r_lo, r_hi = arb(float(shelf.r_lo[i])), arb(float(shelf.r_hi[i]))
        if hard & LOW:
            r_lo = arb(0)
        elif defined & LOW:
            r_lo = _certain(values[0] / values[1])
        if hard & HIGH:
            r_hi = arb(0)
        elif defined & HIGH:
            r_hi = _certain(values[-1] / values[-2])
        return Law(lo, values, r_lo, r_hi)

    def block(self, q: int, count: int) -> Law:
        """So many leaves of one kind."""
        shelf, slots, _ = self.sampler.blocks
        for c in range(1, count + 1):
            if (q, c) in self._blocks:
                continue
            i = int(slots[q, c])
            lo, hi = int(shelf.lo[i]), int(shelf.hi[i])
            if c == 1:
                law = int(self.sampler.kit.leaf_law[q])
                values = [self.weight(law, b) for b in range(lo, hi + 1)]
            else:
                before = self._blocks[q, c - 1]
                values = self.product(before, self.leaf(q, before), lo, hi)
            self._blocks[q, c] = self._law(lo, values, shelf, i)
        return self._blocks[q, count]

    def parcel(self, k: int) -> tuple[int, list[Law]]:
        """How many leaves of a parcel stand in its first block, and the messages of its first leaves from there on."""
        if k not in self._parcels:
            scratch, kinds, base = self.sampler.prefixes_of(k)
            laws = [self.block(int(kinds[0]), base)]
            for j in range(base, kinds.size):
                i = j - base + 1
                lo, hi = int(scratch.lo[i]), int(scratch.hi[i])
                values = self.product(laws[-1], self.leaf(int(kinds[j]), laws[-1]), lo, hi)
                laws.append(self._law(lo, values, scratch, i))
            self._parcels[k] = (base, laws)
        return self._parcels[k]

    def before(self, k: int, lo: int, hi: int) -> list[arb]:
        """A piece's message before its own weight, with the tilt of its left part (none for a parcel)."""
        p = self.sampler.pieces
        a, b = int(p.kind_left[k]), int(p.kind_right[k])
        if a < 0:
            last = self.parcel(k)[1][-1]
            return [last.at(s) for s in range(lo, hi + 1)]
        one = self.message(a)
        if b < 0:
            return [one.at(s) for s in range(lo, hi + 1)]
        return self.product(one, self.message(b).tilted(self.between(a, b)), lo, hi)

    def between(self, a: int, b: int) -> arb:
        """How much more the message of one kind is tilted than that of another."""
        tilt = self.sampler.messages.tilt
        return arb(float(tilt[a])) - arb(float(tilt[b]))

    def weighed(self, k: int, lo: int, hi: int) -> list[arb]:
        """A piece's message by its definition, inside its window and outside."""
        p, shelf = self.sampler.pieces, self.sampler.messages
        a, law = int(p.kind_left[k]), int(p.law[k])
        change = arb(float(shelf.tilt[k])) - (arb(float(shelf.tilt[a])) if a >= 0 else arb(0))
        values = []
        for s, value in zip(range(lo, hi + 1), self.before(k, lo, hi), strict=True):
            if not max(int(p.low[k]), int(p.lowest[k])) <= s <= min(int(p.high[k]), int(p.highest[k])):
                values.append(arb(0))
                continue
            own = value * (change * s).exp()
            values.append(own if law < 0 else own * self.weight(law, s))
        return values

    def message(self, k: int) -> Law:
        """The message of a kind of piece."""
        stack = [k]
        p, shelf = self.sampler.pieces, self.sampler.messages
        while stack:  # children first, without deep recursion
            now = stack[-1]
            below = [
                int(c) for c in (p.kind_left[now], p.kind_right[now]) if c >= 0 and ("kind", int(c)) not in self._laws
            ]
            if below:
                stack += below
                continue
            stack.pop()
            if ("kind", now) not in self._laws:
                lo, hi = int(shelf.lo[now]), int(shelf.hi[now])
                self._laws["kind", now] = self._law(lo, self.weighed(now, lo, hi), shelf, now)
        return self._laws["kind", k]


@dataclass(eq=False)
class Hand:
    """Draws for one row of totals by hand: those that the compiled passes left open."""

    sampler: Sampler
    stream: Callable[[str, int], Stream]  # of a purpose and a slot
    word: Callable[[int], int]  # of a slot

    def _choose(
        self, slot: int, term: Callable[[Undecided, int], arb], total: Callable[[Undecided], arb],
        start: int, low: int, high: int, lowest: int, highest: int,
    ) -> int:  # fmt: skip
        low, high = (start, start) if low > high else (low, high)
        ends = (None if lowest <= -LARGEST else lowest, None if highest >= LARGEST else highest)
        digits = Digits(self.word(slot), 64, lambda: self.stream("more", slot))
        return decided(
            self.sampler.undecided,
            digits,
            lambda exact, number: chosen(
                lambda place: term(exact, place), total(exact), places(start, low, high, *ends), number
            ),
        )

    def root(self, p: int, slot: int) -> int:
        """Draw the total of a piece that has none above it."""
        pieces, shelf, guess = self.sampler.pieces, self.sampler.messages, self.sampler.guess
        k = int(pieces.kind[p])
        lo, hi, tilt = int(shelf.lo[k]), int(shelf.hi[k]), float(shelf.tilt[k])

        def total(exact: Undecided) -> arb:
            law = exact.message(k).tilted(arb(-tilt))
            result = _geometric(law.values[0], law.r_lo) + _geometric(law.values[-1], law.r_hi)
            for value in law.values:
                result = result + value
            return result

        start = int(passes.part_start(guess.centre[k], 0.0, 0.0, 0, lo, hi))
        lowest, highest = self._ends(k)
        s = self._choose(
            slot, lambda exact, s: exact.message(k).tilted(arb(-tilt)).at(s), total, start, lo, hi, lowest, highest
        )
        self.accept_piece(p, s)
        return s

    def _ends(self, k: int) -> tuple[int, int]:
        """Where the message of a kind is positive: it ends at hard ends only, not at those of its support."""
        shelf = self.sampler.messages
        hard = int(shelf.hard[k])
        return int(shelf.lo[k]) if hard & LOW else -LARGEST, int(shelf.hi[k]) if hard & HIGH else LARGEST

    def pair(self, p: int, s: int) -> int:
        """Divide the total of a pair; return the left part."""
        pieces, shelf, guess = self.sampler.pieces, self.sampler.messages, self.sampler.guess
        k, a, b = (int(pieces.kind[i]) for i in (p, pieces.left[p], pieces.right[p]))
        low, high = max(int(shelf.lo[a]), s - int(shelf.hi[b])), min(int(shelf.hi[a]), s - int(shelf.lo[b]))
        start = int(passes.part_start(guess.left_mean[k], guess.share[k], guess.centre[k], s, low, high))
        (lowest, highest), (other_lowest, other_highest) = self._ends(a), self._ends(b)
        lowest = max(lowest, s - other_highest if other_highest < LARGEST else -LARGEST)
        highest = min(highest, s - other_lowest if other_lowest > -LARGEST else LARGEST)
        part = self._choose(
            p,
            lambda exact, u: exact.message(a).at(u) * exact.message(b).tilted(exact.between(a, b)).at(s - u),
            lambda exact: exact.product(exact.message(a), exact.message(b).tilted(exact.between(a, b)), s, s)[0],
            start, low, high, lowest, highest,
        )  # fmt: skip
        self.accept_piece(int(pieces.left[p]), part)
        self.accept_piece(int(pieces.right[p]), s - part)
        return part

    def parcel(self, p: int, s: int) -> list[int]:
        """Divide the total of a parcel; return the noise of its leaves in their order."""
        sampler = self.sampler
        pieces, kit = sampler.pieces, sampler.kit
        k, first = int(pieces.kind[p]), int(pieces.first[p])
        kinds = [int(q) for q in pieces.leaf_kind[first : first + int(pieces.count[p])]]
        _, _, base = sampler.prefixes_of(k)
        longest = kit.weights.shape[1] - 1
        noise = [0] * len(kinds)
        for j in range(len(kinds) - 1, 0, -1):
            q = kinds[j]
            law, b_lo, b_hi = int(kit.leaf_law[q]), int(kit.leaf_low[q]), int(kit.leaf_high[q])

            def rest(exact: Undecided, j: int = j, q: int = q) -> Law:
                return exact.parcel(k)[1][j - base] if j >= base else exact.block(q, j)

            lo, hi = sampler.rest_window(k, j, q, base)
            low, high = max(b_lo, s - hi, -longest), min(b_hi, s - lo, longest)
            start = int(passes.leaf_start(kit.laplace, s, 1.0 / (j + 1), low, high))

            def term(
                exact: Undecided, b: int, s: int = s, law: int = law, rest: Callable[..., Law] = rest,
                b_lo: int = b_lo, b_hi: int = b_hi,
            ) -> arb:  # fmt: skip
                return exact.weight(law, b) * rest(exact).at(s - b) if b_lo <= b <= b_hi else arb(0)

            def total(exact: Undecided, s: int = s, q: int = q, rest: Callable[..., Law] = rest) -> arb:
                return exact.product(rest(exact), exact.leaf(q, rest(exact)), s, s)[0]

            b = self._choose(pieces.size + first + j, term, total, start, low, high, b_lo, b_hi)
            noise[j] = b
            s -= b
            if j >= base:
                self.accept_prefix(k, j - base, s, pieces.size + first + j)
            else:
                self.accept_block(q, j, s, pieces.size + first + j)
        noise[0] = s
        return noise

    # --- totals beyond a window ----------------------------------------------------------------------------------

    def _accept(
        self, inside: bool, slot: int, stated: Callable[[Undecided], arb], true: Callable[[Undecided], arb]
    ) -> None:
        if not inside:
            accept(self.sampler.undecided, self.stream("coin", slot), stated, true)

    def accept_piece(self, p: int, s: int) -> None:
        """Keep the total of a piece, and of those that must have the same total, or raise Restart.

        Every message has a coin of its own: its piece's, and for the leaves of a parcel that of its first leaf.
        """
        pieces, shelf = self.sampler.pieces, self.sampler.messages
        k = int(pieces.kind[p])
        if shelf.lo[k] <= s <= shelf.hi[k]:
            return
        self._accept(False, p, lambda exact: exact.message(k).at(s), lambda exact: exact.weighed(k, s, s)[0])
        if pieces.left[p] < 0:
            _, kinds, base = self.sampler.prefixes_of(k)
            self.accept_prefix(k, kinds.size - base, s, pieces.size + int(pieces.first[p]))
        elif pieces.right[p] < 0:
            self.accept_piece(int(pieces.left[p]), s)

    def accept_prefix(self, k: int, i: int, s: int, slot: int) -> None:
        """Keep a total of the first leaves of a parcel, or raise Restart."""
        scratch, kinds, base = self.sampler.prefixes_of(k)
        if i == 0:
            self.accept_block(int(kinds[0]), base, s, slot)
            return
        q = int(kinds[base + i - 1])
        self._accept(
            bool(scratch.lo[i] <= s <= scratch.hi[i]), slot,
            lambda exact: exact.parcel(k)[1][i].at(s),
            lambda exact: exact.product(
                exact.parcel(k)[1][i - 1], exact.leaf(q, exact.parcel(k)[1][i - 1]), s, s
            )[0],
        )  # fmt: skip

    def accept_block(self, q: int, count: int, s: int, slot: int) -> None:
        """Keep a total of alike leaves, or raise Restart."""
        shelf, slots, _ = self.sampler.blocks
        i, kit = int(slots[q, count]), self.sampler.kit

        def true(exact: Undecided) -> arb:
            if count > 1:
                return exact.product(exact.block(q, count - 1), exact.leaf(q, exact.block(q, count - 1)), s, s)[0]
            possible = bool(kit.leaf_low[q] <= s <= kit.leaf_high[q])
            return exact.weight(int(kit.leaf_law[q]), s) if possible else arb(0)

        self._accept(bool(shelf.lo[i] <= s <= shelf.hi[i]), slot, lambda exact: exact.block(q, count).at(s), true)
