"""The messages in ball arithmetic: the windows and tail ratios that the compiled passes chose, the values enclosed.

They are read from their definition, one at a time as they are asked for, and settle what doubles leave open
(exact draws by hand: exact_draws.py).
"""

from __future__ import annotations

from dataclasses import dataclass, field

from flint import arb, arb_poly

from holdfast.arguments import LARGEST
from holdfast.arrays import kept
from holdfast.noise import IntegerLaplace
from holdfast.noise.draws.decisions import Open
from holdfast.noise.precision import ball
from holdfast.trees.messages.messages import Messages
from holdfast.trees.messages.parcels import Shelf
from holdfast.trees.messages.steps import HIGH, LOW


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


def geometric(end: arb, ratio: arb) -> arb:
    """The sum of a geometric tail beyond an end."""
    if not ratio < 1:
        raise Open
    return end * ratio / (1 - ratio)


@dataclass(eq=False)
class Undecided:
    """The messages in ball arithmetic, at one precision."""

    up: Messages
    bits: int
    _laws: dict[tuple[str, int], Law] = field(default_factory=dict)
    _blocks: dict[tuple[int, int], Law] = field(default_factory=dict)
    _parcels: dict[int, tuple[int, list[Law]]] = field(default_factory=dict)

    # --- messages ------------------------------------------------------------------------------------------------

    def weight(self, law: int, b: int) -> arb:
        """The weight of noise b under a measured law."""
        measured = [each for each in self.up.law.laws if each is not None]
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
        kit = self.up.kit
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
        shelf, slots, _ = self.up.blocks
        for c in range(1, count + 1):
            if (q, c) in self._blocks:
                continue
            i = int(slots[q, c])
            lo, hi = int(shelf.lo[i]), int(shelf.hi[i])
            if c == 1:
                law = int(self.up.kit.leaf_law[q])
                values = [self.weight(law, b) for b in range(lo, hi + 1)]
            else:
                before = self._blocks[q, c - 1]
                values = self.product(before, self.leaf(q, before), lo, hi)
            self._blocks[q, c] = self._law(lo, values, shelf, i)
        return self._blocks[q, count]

    def parcel(self, k: int) -> tuple[int, list[Law]]:
        """How many leaves of a parcel stand in its first block, and the messages of its first leaves from there on."""
        if k not in self._parcels:
            scratch, kinds, base = self.up.prefixes_of(k)
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
        p = self.up.pieces
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
        tilt = self.up.shelf.tilt
        return arb(float(tilt[a])) - arb(float(tilt[b]))

    def weighed(self, k: int, lo: int, hi: int) -> list[arb]:
        """A piece's message by its definition, inside its window and outside."""
        p, shelf = self.up.pieces, self.up.shelf
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
        p, shelf = self.up.pieces, self.up.shelf
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


@kept
def undecided(up: Messages, bits: int) -> Undecided:
    """The messages in ball arithmetic at a precision."""
    return Undecided(up, bits)
