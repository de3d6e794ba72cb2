"""The loss of one change of the leaves of a hierarchy, with the price of its bounds (THEORY H1 and H11)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fractions import Fraction

from flint import arb

from holdfast.noise.precision import ball
from holdfast.trees.prices.gains import Gains
from holdfast.trees.prices.nonnegativity import Prices
from holdfast.trees.prices.uncut_leaf import UncutLeaf, largest_exchange

#: Ways to share gains among losing leaves that are tried at most; any one of them gives a bound.
MOST_WAYS = 40

#: Whole steps by leaf.
Steps = dict[int, int]


def changed(prices: Prices, change: Mapping[int, int]) -> arb:
    """A ball of the loss of a change, in whole steps by leaf, and of the price of bounds; integer noise only.

    Guarantee: docs/theory/nonnegativity.md, Propositions 6 to 10: the smallest of the bounds that apply.
    """
    b = prices.bounds
    gains = {leaf: by for leaf, by in change.items() if by > 0 and b.low[leaf]}
    losses = {leaf: -by for leaf, by in change.items() if by < 0}
    loss = ball(lost(prices, change))
    price = loss.min(_lowest(prices, gains) + _falls(prices, losses))
    if gains and not any(b.high[leaf] for leaf in losses):
        for tried, parts in enumerate(_ways(prices, list(losses.items()), gains)):
            if tried == MOST_WAYS:
                break
            price = price.min(sum((_part(prices, leaf, given) for leaf, given in parts), arb(0)))
    return loss + price.max(arb(0))


def lost(prices: Prices, change: Mapping[int, int]) -> Fraction:
    """Σ|d_v|/λ_v over all outputs."""
    by: Steps = {}
    for leaf, steps in change.items():
        above = leaf
        while above >= 0:
            by[above] = by.get(above, 0) + steps
            above = int(prices.bounds.parents[above])
    return sum((abs(steps) * prices.rate(v) for v, steps in by.items()), Fraction(0))


def _lowest(prices: Prices, gains: Steps) -> arb:
    """log(c_{L+g}/c_L), or a bound of it where leaves have exact outputs above."""
    free = {leaf: by for leaf, by in gains.items() if prices.bounds.top[leaf] < 0}
    total = Gains(prices, free).from_lowest().log() if free else arb(0)
    return total + sum((by * prices.step(leaf) for leaf, by in gains.items() if leaf not in free), arb(0))


def _falls(prices: Prices, losses: Steps) -> arb:
    """A bound of log(c_{H−g}/c_H), H the highest table."""
    return sum((by * prices.step(leaf) for leaf, by in losses.items() if prices.bounds.high[leaf]), arb(0))


def _ways(prices: Prices, losses: list[tuple[int, int]], gains: Steps) -> Iterator[list[tuple[int, Steps]]]:
    """Ways to take gains from losing leaves that lose at least as much; what is left over is taken from none (−1)."""
    if not losses:
        yield [(-1, gains)] if gains else []
        return
    (leaf, most), *others = losses
    for taken in _parts(gains, most):
        if any(prices.bounds.top[other] != prices.bounds.top[leaf] for other in taken):
            continue
        left = {other: by - taken.get(other, 0) for other, by in gains.items() if by > taken.get(other, 0)}
        for rest in _ways(prices, others, left):
            yield [(leaf, taken), *rest] if taken else rest


def _parts(gains: Steps, most: int) -> Iterator[Steps]:
    """Parts of gains that are `most` in all, or as much as there is; every one that cannot be made larger."""
    whole = min(most, sum(gains.values()))
    if not gains:
        yield {}
        return
    (leaf, by), *others = gains.items()
    rest = dict(others)
    for here in range(min(by, whole), max(0, whole - sum(rest.values())) - 1, -1):
        for part in _parts(rest, whole - here):
            yield ({leaf: here} if here else {}) | part


def _part(prices: Prices, leaf: int, gains: Steps) -> arb:
    """The price of gains that one leaf without an upper bound gives, by Propositions 6 to 9; or that nothing gives."""
    if leaf < 0:
        return _lowest(prices, gains)
    assert not prices.bounds.high[leaf]
    b, uncut = prices.bounds, UncutLeaf(prices, leaf)
    if b.top[leaf] >= 0 and uncut.proper:
        return Gains(prices, gains).beside(leaf).log()
    total = arb(0)
    for other, by in gains.items():
        above = uncut.meeting(other)
        if above is None:
            total = total + _lowest(prices, {other: by})
            continue
        loss = prices.path_loss(leaf) + prices.path_loss(other) - 2 * prices.path_loss(above)
        price = largest_exchange(loss, prices.rate(other), b.width[other], Fraction(by), True)
        price = price.min(_lowest(prices, {other: by}))
        if uncut.proper:
            price = price.min(by * uncut.ratio(other).log().max(arb(0)))
        total = total + price
    return total
