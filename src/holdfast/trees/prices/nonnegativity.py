"""What bounds on the leaves cost on a hierarchy with Laplace noise (THEORY H1), in closed form.

c_x is the probability that the noise, given consistency and the exact outputs, keeps every leaf of the table x within
its bounds. The largest ratio c_{x+e_j}/c_x is at the table of lower bounds, the largest c_{x−e_j}/c_x at that of upper
bounds, and by symmetry both have one formula. At its lower bounds every leaf's noise is at least 0, so every output's
is, and all weights factorise: leaf l, with an interval of w_l + 1 values, is geometric with ratio β_l = e^{−ε_l},
ε_l = Σ 1/λ_v over its path, and stands at its bound with probability p_l = (1−β_l)/(1−β_l^{w_l+1}). With a_1, …, a_m
the outputs above leaf j from its parent to the root and q_i = ∏ p_l over the leaves l ≠ j below a_i (q_0 = 1):

    c_{e_j}/c_0 = 1 + p_j·( α_j·[ Σ_i (q_{i−1} − q_i)·∏_{t<i} α_t·∏_{t≥i} α_t^{−1} + q_m·∏_t α_t ] − β_j^{w_j} ).

A record that changes its leaf by a steps costs at most a times that, and at most log(1 + p_j·Σ_{t≤a} e^{κt}),
κ = ε_j − 2/λ_j. Below an exact output c_{e_j}/c_0 = 1 + Σ_l e^{−ε_{jl}} over the other leaves l with the same lowest
exact output, ε_{jl} the loss of moving one record from j to l. Proofs: docs/theory/nonnegativity.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import AbstractContextManager
from fractions import Fraction
from typing import Any

import numpy as np
from flint import arb

from holdfast.arrays import Bools, Floats, Ints
from holdfast.domains.breadth_first import families
from holdfast.noise import Independent
from holdfast.noise.precision import ball, working_precision
from holdfast.trees.prices.leaf_bounds import MOST_ENTRIES, LeafBounds, alike

#: Bits of the final evaluation, beside those that large losses use up.
BITS = 192
#: Leaves whose figure in doubles is this near to the largest are evaluated in balls; doubles err by far less.
NEAR = 1e-10
#: Logarithms of probabilities in doubles, relative to 1 plus their size, err by far less than this.
ROUNDING = 1e-9
#: A factor below e^−80 times the largest loss (if that is below 1) counts as some number between 0 and that.
NEGLIGIBLE = 80.0
#: The price of continuous noise below an exact output, where c is 0 at the lowest table.
ENDLESS = 1e300
#: A larger loss on one path is absurd: the general bound will do.
LARGEST_LOSS = 2000.0


def prices(bounds: LeafBounds, law: Independent) -> Prices | None:
    """What bounds cost under Laplace noise; None where c is not finite or losses are absurd."""
    rates = np.array([0.0 if scale is None else 1 / float(scale) for scale in law.scale_values])[bounds.which]
    loss = rates.copy()
    for level in bounds.levels[1:]:
        loss[level] += loss[bounds.parents[level]]
    if loss.max() > LARGEST_LOSS:
        return None
    with np.errstate(invalid="ignore"):
        width = np.where(loss * bounds.width > _negligible(loss), np.inf, bounds.width)
    found = Prices(bounds.with_width(width), law, rates, loss)
    return found if np.isfinite(found.price[bounds.changeable]).all() else None


class Prices:
    """The price of one record in each leaf, in doubles for all and in balls for the few that may be the largest.

    Upper bounds where a leaf is not bounded, where a record is more than one step or noise is continuous; else exact.
    """

    def __init__(self, bounds: LeafBounds, law: Independent, rates: Floats, loss: Floats) -> None:
        self.bounds, self.loss, self.integer = bounds, loss, law.integer
        self.exact_rates = [Fraction(0) if scale is None else 1 / scale for scale in law.scale_values]
        self.steps = np.minimum(bounds.steps, bounds.width)
        figures = _figures if law.integer else _continuous_figures
        self.price, self.at_bound = figures(bounds, self.steps, rates, loss)
        self.negligible = _negligible(loss)
        self.tiny = arb(0, math.exp(1 - self.negligible))
        self._products: dict[int, arb] = {}
        self._sums: dict[int, arb] = {}
        self._losses: dict[int, Fraction] = {}

    def alone(self) -> arb | None:
        """A ball of the largest loss with its price, over the leaves that one record can change alone."""
        bounded = self.bounds.low | self.bounds.high
        return self._largest(self.bounds.alone, self.steps * self.loss + np.where(bounded, self.price, 0.0), True)

    def rise(self) -> arb | None:
        """A ball of the largest log(c_{x+d}/c_x), d one record."""
        return self._largest(self.bounds.changeable & self.bounds.low, self.price, False)

    def fall(self) -> arb | None:
        """A ball of the largest log(c_{x−d}/c_x), d one record."""
        return self._largest(self.bounds.changeable & self.bounds.high, self.price, False)

    def precision(self) -> AbstractContextManager[None]:
        return working_precision(BITS + int(12 * self.loss.max()))

    def _largest(self, among: Bools, figures: Floats, with_loss: bool) -> arb | None:
        """The largest price of these leaves, with the loss; None where too many with unlike ancestors compete."""
        candidates = self._candidates(np.flatnonzero(among), figures)
        if candidates is None:
            return None
        best = arb(0)
        with self.precision():
            for leaf in candidates.tolist():
                loss = ball(Fraction(self.steps[leaf]) * self.path_loss(leaf))
                bounded = self.bounds.low[leaf] or self.bounds.high[leaf]
                price = self._price(leaf) if bounded else arb(0)
                best = best.max(loss + price if with_loss else price)
        return best

    def _candidates(self, among: Ints, figures: Floats) -> Ints | None:
        """One leaf of each kind among those whose figure is nearly the largest."""
        if among.size == 0:
            return among
        b, largest = self.bounds, figures[among].max()
        near = among[figures[among] >= largest - NEAR * max(1.0, largest)]
        if not self.integer:
            return near[alike(b.leaf_class[near][:, None])[0]]
        near = near[alike((b.leaf_class[near] * (b.parents.size + 1) + b.parents[near])[:, None])[0]]
        # Leaves of one class are alike if the outputs above them, up to an exact one, count equal leaves below.
        tops = np.where(b.top[near] < 0, 0, 1 + b.depth[b.top[near]])
        kind = b.leaf_class[near] * (1 + int(tops.max())) + tops
        rows, logs, above = [kind], [np.zeros(near.size)], b.parents[near]
        while (above >= 0).any():
            if near.size * len(rows) > MOST_ENTRIES:
                return None
            some = (above >= 0) & (tops == 0) & self._surely_some(above, near)
            seen = above if b.counted is None else b.counted[0][above]
            rows.append(np.where(above < 0, -1, np.where(some, -2, seen)))
            logs.append(np.where(above < 0, 0.0, np.where(some, -np.inf, self.at_bound[above] - self.at_bound[near])))
            above = np.where((above < 0) | b.exact[above], -1, b.parents[above])
        table, figures = np.stack(rows, axis=1), np.stack(logs, axis=1)
        kinds = alike(table)[0]
        return near[kinds[_not_exceeded(table[kinds], figures[kinds])]]

    def _surely_some(self, above: Any, leaf: Any) -> Any:
        """Whether some other leaf below an output is away from its bound with all but negligible probability."""
        return self.at_bound[above] - self.at_bound[leaf] < -self.negligible

    def rate(self, output: int) -> Fraction:
        """1/λ of an output; 0 where it is not measured."""
        return self.exact_rates[self.bounds.which[output]]

    def path_loss(self, output: int) -> Fraction:
        """ε of an output: the sum of the rates on its path."""
        kind = int(self.bounds.leaf_class[output])  # the laws on the path are those of every leaf of this class
        key = kind if kind >= 0 else -1 - output
        if key not in self._losses:
            total = Fraction(0)
            while output >= 0:
                total += self.rate(output)
                output = int(self.bounds.parents[output])
            self._losses[key] = total
        return self._losses[key]

    def _price(self, leaf: int) -> arb:
        """The ball of log(c_d/c_0), d one record."""
        steps, loss = Fraction(self.steps[leaf]), self.path_loss(leaf)
        if not self.integer:
            return arb(ENDLESS) if self.bounds.top[leaf] >= 0 else self._continuous(leaf, steps).min(ball(steps * loss))
        price = self._step(leaf) * ball(steps)
        if self.bounds.top[leaf] >= 0:
            return price
        if steps != 1:
            slope = loss - 2 * self.rate(leaf)
            grown = (ball(steps * slope).exp() - 1) / (1 - ball(-slope).exp()) if slope else ball(steps)
            price = price.min((1 + self._stays(leaf) * grown).log())
        return price.min(ball(steps * loss))

    def _step(self, leaf: int) -> arb:
        """The ball of log(c_{e_j}/c_0) under integer noise."""
        grown = self._exchanges(leaf) if self.bounds.top[leaf] >= 0 else self._free(leaf)
        return (1 + grown).log().max(arb(0))

    def _free(self, leaf: int) -> arb:
        """The growth of c where no output above the leaf is exact."""
        b, loss, mine = self.bounds, self.path_loss(leaf), self._stays(leaf)
        share, before, lower = arb(0), arb(1), Fraction(0)
        above = int(b.parents[leaf])
        while above >= 0:
            if self._surely_some(above, leaf):
                share, before = share + before * ball(-2 * lower).exp(), self.tiny
                break
            q = self._none_below(above) / mine
            share = share + (before - q) * ball(-2 * lower).exp()
            lower, before = lower + self.rate(above), q
            above = int(b.parents[above])
        share = share + before * ball(-2 * lower).exp()
        return mine * (ball(loss - 2 * self.rate(leaf)).exp() * share - self._power(loss, b.width[leaf]))

    def _exchanges(self, leaf: int) -> arb:
        """The growth of c below an exact output: one term for each leaf that can give way."""
        b, loss = self.bounds, self.path_loss(leaf)
        total, before = arb(0), ball(-loss).exp()
        above = leaf
        while above != b.top[leaf]:
            above = int(b.parents[above])
            reached = self._weights_below(above)
            total = total + ball(2 * self.path_loss(above) - loss).exp() * (reached - before)
            before = reached
        return total

    def _stays(self, leaf: int) -> arb:
        """The probability p_l that a leaf stands at its bound."""
        loss, width = self.path_loss(leaf), self.bounds.width[leaf]
        if loss == 0:
            return 1 / (1 + _width(width))
        return (1 - ball(-loss).exp()) / (1 - self._power(loss, width + 1))

    def _power(self, loss: Fraction, exponent: float) -> arb:
        """β^exponent; a far bound and none at all give a ball of tiny numbers."""
        return self.tiny if math.isinf(exponent) else (-ball(loss) * _width(exponent)).exp()

    def _none_below(self, output: int) -> arb:
        """∏ p_l over the leaves below an output."""

        def times(total: arb, leaf: int, count: int) -> arb:
            return total * self._stays(leaf) ** count

        return self._below(output, self._products, times, arb(1))

    def _weights_below(self, output: int) -> arb:
        """Σ e^{−ε_l} over the leaves below an output that can give way."""

        def added(total: arb, leaf: int, count: int) -> arb:
            return total + count * ball(-self.path_loss(leaf)).exp() if self.bounds.width[leaf] >= 1 else total

        return self._below(output, self._sums, added, arb(0))

    def _below(self, output: int, kept: dict[int, arb], joined: Callable[[arb, int, int], arb], start: arb) -> arb:
        counted = self.bounds.counted
        key = output if counted is None else int(counted[0][output])
        if key not in kept:
            total = start
            for kind, count in zip(*self.bounds.classes_below(output), strict=True):
                total = joined(total, int(self.bounds.examples[kind]), int(count))
            kept[key] = total
        return kept[key]

    def _continuous(self, leaf: int, steps: Fraction) -> arb:
        """An upper bound of log(c_d/c_0) for continuous noise: the noise of the outputs above is taken as large."""
        loss, width = self.path_loss(leaf), self.bounds.width[leaf]
        slope = loss - 2 * self.rate(leaf)
        gained = (ball(steps * slope).exp() - 1) / ball(slope) if slope else ball(steps)
        far = self._power(loss, width)
        lost = (self._power(loss, width - float(steps)) - far) / (1 - far)
        return (1 + ball(loss) * gained / (1 - far) - lost).log().max(arb(0))


def largest_exchange(loss: Fraction, rate: Fraction, steps: Fraction, integer: bool) -> arb:
    """An upper bound of the price of moving `steps` to a leaf of this rate, where one step costs `loss`.

    Guarantee: docs/theory/nonnegativity.md, Proposition 7, for a losing leaf without an upper bound.
    """
    if loss == 0:
        return arb(0)
    slope = loss - 2 * rate
    if not integer:
        gained = (ball(steps * slope).exp() - 1) / ball(slope) if slope else ball(steps)
        grown = ball(loss) * gained
    elif steps == 1:
        grown = (1 - ball(-loss).exp()) * ball(slope).exp()
    else:
        gained = (ball(steps * slope).exp() - 1) / (1 - ball(-slope).exp()) if slope else ball(steps)
        grown = (1 - ball(-loss).exp()) * gained
    return (1 + grown).log().min(ball(steps * loss))


def _negligible(loss: Floats) -> float:
    """Minus the logarithm of a factor that does not count beside the largest loss."""
    return NEGLIGIBLE + max(0.0, -math.log(loss.max())) if loss.max() > 0 else np.inf


def _not_exceeded(table: Ints, logs: Floats) -> Ints:
    """The leaves that no other of their kind (first column) surely exceeds.

    A smaller figure at an ancestor never makes the price smaller. Two figures are equal for sure where their entries of
    the table are, and differ for sure where they are farther apart than rounding can be.
    """
    size = np.where(np.isinf(logs), -1e6, logs).sum(axis=1)
    order = np.lexsort((size, table[:, 0]))
    kept = []
    for group in np.split(order, np.flatnonzero(np.diff(table[order, 0])) + 1):
        left = group
        while left.size:
            best, left = left[0], left[1:]
            kept.append(best)
            smaller = logs[best] < logs[left] - ROUNDING * (1 + np.abs(logs[left]))
            left = left[~(smaller | (table[left] == table[best]) | np.isneginf(logs[best])).all(axis=1)]
    return np.array(kept)


def _width(value: float) -> arb:
    """A ball of a difference of bounds, which beyond 2^53 was rounded to a double."""
    exact = arb(value)
    return exact if abs(value) < 2.0**53 else exact * arb(1, 2.0**-50)


def _log_stays(loss: Floats, width: Floats) -> Floats:
    """The logarithm of the probability that a leaf stands at its bound."""

    def log_rest(exponent: Floats) -> Floats:
        return np.where(exponent > 0.5, np.log1p(-np.exp(-exponent)), np.log(-np.expm1(-exponent)))

    with np.errstate(divide="ignore", invalid="ignore"):
        stays = np.where(loss == 0, -np.log(width + 1), log_rest(loss) - log_rest(loss * (width + 1)))
    return np.where(width == 0, 0.0, stays)


def _figures(bounds: LeafBounds, steps: Floats, rates: Floats, loss: Floats) -> tuple[Floats, Floats]:
    """Return log(c_d/c_0) of every leaf, d one record, and log ∏ p_l over the leaves at or below each output.

    Below an exact output the second figure is minus the sum of the weights of the leaves below.
    """
    n, parents, leaf, width = bounds.parents.size, bounds.parents, bounds.is_leaf, bounds.width
    free, held = bounds.top < 0, (bounds.top >= 0) & ~bounds.exact
    at_bound = bounds.summed(np.where(free & leaf, _log_stays(loss, width), 0.0))
    inside, near = (leaf & held & (width >= 1)).astype(np.float64), np.zeros(n)
    for level in reversed(bounds.levels):
        some = level[held[level]]
        near[some] = inside[some] * np.exp(-rates[some])
        above, first = families(parents, some)
        if some.size:
            inside[above] += np.add.reduceat(near[some], first)
    at_bound = np.where(free, at_bound, -inside)
    share, outside = np.ones(n), np.zeros(n)
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        for level in bounds.levels[1:]:
            some = level[free[level]]
            step = at_bound[parents[some]] - at_bound[some]
            share[some] = -np.expm1(step) + np.exp(step - 2 * rates[parents[some]]) * share[parents[some]]
            some = level[held[level]]
            above = parents[some]
            outside[some] = np.maximum(inside[above] - near[some], 0.0)
            outside[some] += np.where(bounds.exact[above], 0.0, np.exp(-rates[above]) * outside[above])
        gain = at_bound + loss - 2 * rates
        price = np.log1p(np.exp(gain) * share - np.exp(at_bound - loss * width))
        price = np.where(gain > 500, gain + np.log(share), price)
        slope = loss - 2 * rates
        grown = np.where(slope == 0, steps, np.expm1(steps * slope) / -np.expm1(-slope))
        several = np.minimum(steps * price, np.minimum(np.log1p(np.exp(at_bound) * grown), steps * loss))
        price = np.where(width >= 1, np.where(steps == 1, price, several), 0.0)
        below_exact = steps * np.log1p(np.exp(-rates) * outside)
    return np.where(leaf & free, price, np.where(leaf & held, below_exact, 0.0)), at_bound


def _continuous_figures(bounds: LeafBounds, steps: Floats, rates: Floats, loss: Floats) -> tuple[Floats, Floats]:
    """Return an upper bound of log(c_d/c_0), d one record, under continuous noise; endless below exact outputs."""
    width, slope = bounds.width, loss - 2 * rates
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        gained = np.where(slope == 0, steps, np.expm1(steps * slope) / slope)
        all_of_it = -np.expm1(-loss * width)
        # What is lost is e^{−ε(w−a)} − e^{−εw}, divided by 1 − e^{−εw}; written so that small losses do not cancel.
        lost = np.exp(-loss * (width - steps)) * -np.expm1(-loss * steps) / all_of_it
        price = np.fmin(steps * loss, np.log1p(loss * gained / all_of_it - lost))
    price = np.where(bounds.top < 0, price, ENDLESS)
    return np.where(bounds.is_leaf & ~bounds.exact & (width > 0), price, 0.0), np.zeros(width.size)
