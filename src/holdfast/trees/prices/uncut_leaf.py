"""What it costs to move a record from one leaf of a hierarchy to another, given bounds (THEORY H11).

Leaf i loses what leaf j gains. Where i has no upper bound, log(c_{x−e_i+e_j}/c_x) is at most its limit as x_i grows and
all other leaves stand at their bounds: that of a tree whose leaf i is uncut, before and after j was raised by one.
There the noise of every output follows from that of the other leaves and one number s, the noise of the root (0 below
an exact output), and sums over s of products of powers are closed forms. Proofs: docs/theory/nonnegativity.md,
Propositions 6 to 8.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from flint import arb

from holdfast.noise.precision import ball
from holdfast.trees.prices.nonnegativity import Prices


@dataclass(frozen=True)
class Sum:
    """The value at some x of a sum over counts of products of powers of x, and x times its derivative there."""

    value: arb
    slope: arb

    def times(self, other: Sum) -> Sum:
        return Sum(self.value * other.value, self.value * other.slope + self.slope * other.value)

    def plus(self, other: Sum, factor: arb) -> Sum:
        return Sum(self.value + factor * other.value, self.slope + factor * other.slope)


ONE = Sum(arb(1), arb(0))


def largest_exchange(loss: Fraction, rate: Fraction, width: float, steps: Fraction, integer: bool) -> arb:
    """An upper bound of the price of moving `steps` to a leaf of this rate, where one step costs `loss`.

    Guarantee: docs/theory/nonnegativity.md, Proposition 7: log(1 + p·(Σ_{t≤a} e^{t(ε−2/λ)} − what is lost at the top)),
    p the share of a geometric law at 0; for continuous noise its density there, and an integral.
    """
    if loss == 0:
        return arb(0)
    slope, endless = loss - 2 * rate, math.isinf(width)
    if not integer:
        far = arb(0) if endless else (-ball(loss) * arb(width)).exp()
        gained = (ball(steps * slope).exp() - 1) / ball(slope) if slope else ball(steps)
        grown = ball(loss) * gained - far * (ball(steps * loss).exp() - 1)
        return (1 + grown.max(arb(0)) / (1 - far)).log().min(ball(steps * loss))
    away = ball(-loss).exp()
    far = arb(0) if endless else away ** int(width)
    if steps == 1:
        gained = ball(slope).exp() - far
    else:
        gained = (ball(steps * slope).exp() - 1) / (1 - ball(-slope).exp()) if slope else ball(steps)
    grown = (1 - away) / (1 - away * far) * gained
    return (1 + grown.max(arb(0))).log().min(ball(steps * loss))


class UncutLeaf:
    """A hierarchy whose leaf i is uncut and all others stand at their bounds; made once for each losing leaf.

    v_0, …, v_m are the outputs from the lowest exact one above i, or from the root, down to i. Leaves that branch off
    at v_{h−1} are group h; they are geometric with the weights of their own path down from v_{h−1}, tilted by the
    outputs above (A, as at the lowest table) or by those on i's side (B).
    """

    def __init__(self, prices: Prices, leaf: int) -> None:
        self.prices, self.leaf = prices, leaf
        b = prices.bounds
        path = [leaf]
        while path[0] != b.top[leaf] and b.parents[path[0]] >= 0:
            path.insert(0, int(b.parents[path[0]]))
        self.path, self.exact = path, bool(b.top[leaf] >= 0)
        self.loss = prices.path_loss(leaf)
        counts = [self._classes(v) for v in path]
        groups = [_without(counts[h - 1], counts[h]) for h in range(1, len(path))]
        #: Twice the loss above the place where group h branches off, less the loss of i: an exchange costs less by it.
        self.shared = [2 * prices.path_loss(v) - self.loss for v in path[:-1]]
        self.outer = [self._sum(group, Fraction(0)) if not self.exact else ONE for group in groups]
        self.inner = [self._sum(group, shared) for group, shared in zip(groups, self.shared, strict=True)]
        self.above = [prices.path_loss(v) for v in path]  # A_t = e^−above[t]
        self.beside = [self.loss - (self.above[t - 1] if t else 0) for t in range(len(path))]  # B_t = e^−beside[t]

    @property
    def proper(self) -> bool:
        """Whether the sums are finite: no leaf beside i can take what i gives without any loss."""
        return all(each.value.is_finite() for each in self.inner)

    def meeting(self, other: int) -> int | None:
        """The output where the path of another leaf meets that of i; None in another tree."""
        parents = self.prices.bounds.parents
        while other >= 0 and other not in self.path:
            other = int(parents[other])
        return other if other >= 0 else None

    def ratio(self, other: int) -> arb:
        """c_{e_j}/c_0 with leaf i uncut; j another leaf of its tree with the same lowest exact output."""
        b, meeting = self.prices.bounds, self.meeting(other)
        assert meeting is not None
        assert b.top[other] == b.top[self.leaf]
        assert self.prices.integer
        below, h = [other], self.path.index(meeting) + 1
        while int(b.parents[below[-1]]) != meeting:
            below.append(int(b.parents[below[-1]]))
        loss, width = self.prices.path_loss(other), float(b.width[other])
        inner_loss = loss - self.shared[h - 1]
        stays = _geometric(inner_loss, width)
        if self.exact:
            gained = self._chained(below, h, stays)
            return 1 + (gained - _far(inner_loss, width)) / stays.value
        whole = self._whole(self.outer, self.inner)
        outside = _geometric(loss, width)
        psi_outer = self._shifted(below, self.outer[h - 1], Fraction(0), outside)
        psi_inner = self._shifted(below, self.inner[h - 1], self.shared[h - 1], stays)
        gained = self._raised(h, psi_outer, psi_inner)
        lost = arb(0)
        if not math.isinf(width):
            outer, inner = list(self.outer), list(self.inner)
            outer[h - 1] = _at_top(self.outer[h - 1], outside, loss, width)
            inner[h - 1] = _at_top(self.inner[h - 1], stays, inner_loss, width)
            lost = self._whole(outer, inner)
        return 1 + (gained - lost) / whole

    def _classes(self, output: int) -> dict[int, int]:
        b = self.prices.bounds
        if b.is_leaf[output]:
            return {int(b.leaf_class[output]): 1}
        return {int(kind): int(count) for kind, count in zip(*b.classes_below(output), strict=True)}

    def _sum(self, classes: dict[int, int], shared: Fraction) -> Sum:
        """∏ over leaves of Σ_u e^{−u·loss}, the losses less by what is shared, and its slope."""
        b, value, slope = self.prices.bounds, arb(1), arb(0)
        for kind, count in classes.items():
            example = int(b.examples[kind])
            each = _geometric(self.prices.path_loss(example) - shared, float(b.width[example]))
            value, slope = value * each.value**count, slope + count * each.slope / each.value
        return Sum(value, value * slope)

    def _chained(self, below: list[int], h: int, stays: Sum) -> arb:
        """The weight of j at −1 where an exact output fixes the sum: one chain of outputs from j to i."""
        prices, before = self.prices, arb(1)
        chain = [(v, self._none(v, below[0], self.shared[h - 1])) for v in below[1:]]
        product = 1 / stays.value
        for g, v in enumerate(self.path[1:], start=1):
            product = product * self.inner[g - 1].value
            if g >= h:
                chain.append((v, 1 / product))
        lower, total = prices.rate(below[0]), arb(0)
        height = sum((prices.rate(v) for v, _ in chain), Fraction(0))
        for v, none in chain:
            total = total + (before - none) * ball(height - lower).exp()
            before, height = none, height - 2 * prices.rate(v)
        return total + before * ball(height - lower).exp()

    def _none(self, output: int, leaf: int, shared: Fraction) -> arb:
        """The probability that all leaves below an output but one stand at their bounds."""
        others = _without(self._classes(output), self._classes(leaf))
        return 1 / self._sum(others, shared).value

    def _shifted(self, below: list[int], group: Sum, shared: Fraction, stays: Sum) -> Sum:
        """The sum over a group in which leaf j stands at −1, the outputs between j and i's path with it."""
        prices, leaf = self.prices, below[0]
        rest = _quotient(group, stays)
        height = sum((prices.rate(v) for v in below[1:]), Fraction(0)) - prices.rate(leaf)
        total, before = Sum(arb(0), arb(0)), ONE
        for v in below[1:]:
            others = _without(self._classes(v), self._classes(leaf))
            none = _quotient(ONE, self._sum(others, shared))
            total = total.plus(before, ball(height).exp()).plus(none, -ball(height).exp())
            before, height = none, height - 2 * prices.rate(v)
        return rest.times(total.plus(before, ball(height).exp()))

    def _whole(self, outer: list[Sum], inner: list[Sum]) -> arb:
        """c_0, as a sum over s by where it falls among the partial sums of the groups."""
        m = len(outer)
        front, back = _products([each.value for each in outer]), _products([each.value for each in inner[::-1]])[::-1]
        end = ball(-self.loss).exp()
        total = (front[m] + back[0] * end) / (1 - end)
        for t in range(m):
            step = self._divided(outer[t], inner[t], t)
            total = total + front[t] * back[t + 1] * ball(-self.beside[t + 1]).exp() * step
        return total

    def _raised(self, h: int, psi_outer: Sum, psi_inner: Sum) -> arb:
        """The weight of j, in group h, at −1."""
        m, end = len(self.outer), ball(-self.loss).exp()
        outer, inner = [each.value for each in self.outer], [each.value for each in self.inner]
        front, back = _products(outer), _products(inner[::-1])[::-1]
        total = front[h - 1] * back[h] * self._divided(psi_outer, psi_inner, h - 1)
        ahead = front[h - 1] * psi_outer.value * ball(self.above[h - 1]).exp()
        for t in range(h, m):
            step = self._divided(self.outer[t], self.inner[t], t)
            total = total + ahead * back[t + 1] * ball(-self.above[t]).exp() * step
            ahead = ahead * outer[t]
        total = total + ahead * end / (1 - end)
        behind = back[h] * psi_inner.value * ball(self.beside[h]).exp()
        for t in range(h - 2, -1, -1):
            step = self._divided(self.outer[t], self.inner[t], t)
            total = total + front[t] * behind * ball(-self.beside[t + 1]).exp() * step
            behind = behind * inner[t]
        return total + behind * end / (1 - end)

    def _divided(self, outer: Sum, inner: Sum, t: int) -> arb:
        """(F(B) − F(A))/(B − A) for a sum F over group t + 1, A = A_t, B = B_{t+1}; F'(A) where they are equal."""
        if self.above[t] == self.beside[t + 1]:
            return outer.slope * ball(self.above[t]).exp()
        gap = ball(-self.beside[t + 1]).exp() - ball(-self.above[t]).exp()
        return (inner.value - outer.value) / gap


def _geometric(loss: Fraction, width: float) -> Sum:
    """Σ_{u=0}^{w} x^u at x = e^−loss."""
    if math.isinf(width):
        x = ball(-loss).exp()
        value = 1 / (1 - x) if loss > 0 else arb("inf")
        return Sum(value, x * value * value)
    top = int(width)
    if loss == 0:
        return Sum(arb(top + 1), arb(top * (top + 1)) / 2)
    x = ball(-loss).exp()
    far = x ** (top + 1)
    value = (1 - far) / (1 - x)
    return Sum(value, value * (x / (1 - x) - (top + 1) * far / (1 - far)))


def _far(loss: Fraction, width: float) -> arb:
    return arb(0) if math.isinf(width) else ball(-loss * int(width)).exp()


def _at_top(group: Sum, stays: Sum, loss: Fraction, width: float) -> Sum:
    """The sum over a group in which one leaf stands at its upper bound."""
    power = _far(loss, width)
    return _quotient(group, stays).times(Sum(power, int(width) * power))


def _quotient(one: Sum, other: Sum) -> Sum:
    return Sum(one.value / other.value, (one.slope - one.value * other.slope / other.value) / other.value)


def _without(classes: dict[int, int], fewer: dict[int, int]) -> dict[int, int]:
    left = {kind: count - fewer.get(kind, 0) for kind, count in classes.items()}
    return {kind: count for kind, count in left.items() if count}


def _products(values: list[arb]) -> list[arb]:
    """1, the first, the first two together, and so on."""
    result = [arb(1)]
    for value in values:
        result.append(result[-1] * value)
    return result
