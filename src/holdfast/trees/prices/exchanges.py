"""The largest loss of a record that moves from leaf to leaf of a hierarchy, with the price of bounds (THEORY H11)."""

from __future__ import annotations

from fractions import Fraction

from flint import arb

from holdfast.noise.precision import ball
from holdfast.trees.prices.alike_leaves import NOWHERE, AlikeLeaves
from holdfast.trees.prices.nonnegativity import Prices
from holdfast.trees.prices.uncut_leaf import UncutLeaf, largest_exchange

#: More kinds of pairs than this are not told apart: then one bound serves for all.
MOST_PAIRS = 2000
#: So many kinds of pairs are evaluated exactly at most; the others keep their upper bounds.
MOST_EVALUATED = 60
#: Leaves of a star up to which its price is added up; beyond, it is that of endlessly many to any digit that matters.
MOST_LEAVES = 1_000


def exchanged(prices: Prices, steps: Fraction) -> arb | None:
    """A ball of the largest loss with its price, over all pairs of leaves that can exchange a record of so many steps.

    Guarantee: docs/theory/nonnegativity.md, Propositions 6 to 8, 11, 12. None where too many kinds of pairs compete.
    """
    pairs = AlikeLeaves(prices.bounds).pairs(MOST_PAIRS)
    if pairs is None:
        return None
    best = arb(0)
    with prices.precision():
        found = sorted((_Pair(prices, steps, *pair) for pair in pairs), key=lambda pair: -float(pair.most.upper()))
        uncut: dict[int, UncutLeaf] = {}
        for evaluated, pair in enumerate(found):
            if pair.most <= best:
                break
            if evaluated == MOST_EVALUATED:
                return best.max(pair.most)
            best = best.max(pair.total(uncut))
    return best


class _Pair:
    """Leaf i loses `steps` and leaf j gains them; their paths meet at an output, or nowhere."""

    def __init__(self, prices: Prices, steps: Fraction, i: int, j: int, meeting: int) -> None:
        b = prices.bounds
        self.prices, self.steps, self.i, self.j, self.meeting = prices, steps, i, j, meeting
        above = Fraction(0) if meeting == NOWHERE else prices.path_loss(meeting)
        step_loss = prices.path_loss(i) + prices.path_loss(j) - 2 * above
        self.loss, self.bounded = ball(steps * step_loss), bool(b.low[j])
        rise = prices.record(j) if self.bounded else arb(0)
        if b.high[i]:
            self.price = rise + prices.record(i)
        elif not self.bounded:
            self.price = arb(0)
        else:
            self.price = rise.min(largest_exchange(step_loss, prices.rate(j), b.width[j], steps, prices.integer))
        if self._trade_places():
            self.price = arb(0)
        self.price = self.price.min(self.loss)
        self.most = self.loss + self.price

    def _trade_places(self) -> bool:
        """Whether the exchange puts the two leaves in each other's place, and changes nothing else (Proposition 11)."""
        b, both = self.prices.bounds, [self.i, self.j]
        siblings = bool((b.parents[both] == self.meeting).all() and b.which[self.i] == b.which[self.j])
        return siblings and bool((b.low & b.high)[both].all() and (b.width[both] == float(self.steps)).all())

    def _in_a_star(self) -> arb | None:
        """The price of real noise of one scale on the leaves below an exact node (Proposition 12); None elsewhere."""
        b = self.prices.bounds
        leaves = b.children_of(self.meeting)
        alike = b.is_leaf[leaves] & ~b.exact[leaves] & (b.which[leaves] == b.which[self.i])
        if not (b.exact[self.meeting] and (alike & b.low[leaves] & ~b.high[leaves]).all()) or leaves.size > MOST_LEAVES:
            return None
        mean = ball(2 * self.prices.rate(self.i) * self.steps)
        term = below = (-mean).exp()  # the chances that a Poisson number of this mean is k, and at most k
        ratio = arb(1)
        for k in range(1, leaves.size):
            ratio += 1 - below
            term *= mean / k
            below += term
        return ratio.log()

    def total(self, uncut: dict[int, UncutLeaf]) -> arb:
        """The loss with the price, by Proposition 6 where it applies."""
        b = self.prices.bounds
        if b.high[self.i] or not self.bounded or self.meeting == NOWHERE:
            return self.most
        if not self.prices.integer:
            star = self._in_a_star()
            return self.most if star is None else self.loss + self.price.min(star)
        if self.i not in uncut:
            uncut[self.i] = UncutLeaf(self.prices, self.i)
        if not uncut[self.i].proper:
            return self.most
        price = uncut[self.i].ratio(self.j).log() * ball(self.steps)
        return self.loss + self.price.min(price.max(arb(0)))
