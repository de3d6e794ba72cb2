"""What lower bounds on the leaves cost on a hierarchy with integer Laplace noise (THEORY H1), in closed form.

c_x is the probability that the noise, given consistency, keeps every leaf of the table x at or above its lower bound.
The largest ratio c_{x+e_j}/c_x is at the table of lower bounds. There every leaf's noise is at least 0, so every
output's is, and all weights factorise: leaf l is geometric with ratio β_l = e^{−ε_l}, ε_l = Σ 1/λ_v over its path.
Only u_j = −1 is new at x + e_j. With a_1, …, a_m the outputs above leaf j from its parent to the root and
q_i = ∏ (1 − β_l) over the leaves l ≠ j below a_i (q_0 = 1):

    c_{e_j}/c_0 = 1 + α_j(1−β_j)·[ Σ_i (q_{i−1} − q_i)·∏_{t<i} α_t·∏_{t≥i} α_t^{−1} + q_m·∏_t α_t ].

Proof: docs/theory/nonnegativity.md.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import numpy.typing as npt
from flint import arb

from holdfast.noise import Independent
from holdfast.noise.precision import ball, working_precision
from holdfast.trees.forest import Forest

#: Precision of the final evaluation.
BITS = 192
#: Leaves whose loss in doubles is this close to the largest are evaluated in balls; doubles err by far less.
NEAR = 1e-9


def worst_loss(forest: Forest, law: Independent) -> tuple[arb, arb]:
    """Return balls of max_j (ε_j + log(c_{e_j}/c_0)) and of max_j log(c_{e_j}/c_0)."""
    rates = _rates(law, forest.n)
    total, price = _in_doubles(forest, rates)
    leaves = np.flatnonzero(forest.is_leaf)
    best_total, best_price = arb(0), arb(0)
    with working_precision(BITS):
        for figures in (total, price):
            seen: set[tuple[float, float]] = set()
            for leaf in leaves[figures[leaves] >= figures[leaves].max() - NEAR].tolist():
                if (total[leaf], price[leaf]) in seen:
                    continue  # the same figures to the last bit: a leaf that is alike
                seen.add((total[leaf], price[leaf]))
                loss, extra = _exactly(forest, law, leaf)
                best_total, best_price = best_total.max(loss + extra), best_price.max(extra)
    return best_total, best_price


def _rates(law: Independent, n: int) -> npt.NDArray[np.float64]:
    """1/λ of every output; 0 where it is not measured."""
    each = np.array([0.0 if scale is None else 1 / float(scale) for scale in law.scale_values])
    return np.full(n, each[0]) if law.which is None else each[law.which]


def _in_doubles(
    forest: Forest, rates: npt.NDArray[np.float64]
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """ε_j + log(c_{e_j}/c_0) and log(c_{e_j}/c_0) for every leaf, in doubles."""
    path = rates.copy()
    for v in forest.downward:
        if forest.parents[v] >= 0:
            path[v] += path[forest.parents[v]]
    # log ∏(1 − β_l) over the leaves below each output.
    below = np.zeros(forest.n)
    below[forest.is_leaf] = np.log1p(-np.exp(-path[forest.is_leaf]))
    for v in reversed(forest.downward):
        if forest.parents[v] >= 0:
            below[forest.parents[v]] += below[v]
    price = np.zeros(forest.n)
    for leaf in np.flatnonzero(forest.is_leaf).tolist():
        above, mine = _above(forest, leaf), below[leaf]
        bracket, lower, before = 0.0, 0.0, 1.0
        upper = float(rates[above].sum())
        for v in above:
            q = float(np.exp(below[v] - mine))
            bracket += (before - q) * np.exp(upper - lower)
            upper, lower, before = upper - rates[v], lower + rates[v], q
        bracket += before * np.exp(-lower)
        price[leaf] = np.log1p(np.exp(-rates[leaf]) * np.exp(mine) * bracket)
    return path + price, price


def _above(forest: Forest, leaf: int) -> list[int]:
    result, v = [], int(forest.parents[leaf])
    while v >= 0:
        result.append(v)
        v = int(forest.parents[v])
    return result


def _exactly(forest: Forest, law: Independent, leaf: int) -> tuple[arb, arb]:
    """Balls of ε_j and of log(c_{e_j}/c_0) for one leaf."""

    def rate(v: int) -> Fraction:
        scale = law.scale_values[0 if law.which is None else int(law.which[v])]
        return Fraction(0) if scale is None else 1 / scale

    above = _above(forest, leaf)
    loss = rate(leaf) + sum((rate(v) for v in above), Fraction(0))
    bracket, lower, before = arb(0), Fraction(0), arb(1)
    upper = loss - rate(leaf)
    for v in above:
        q = _none_below(forest, rate, v, leaf)
        bracket = bracket + (before - q) * ball(upper - lower).exp()
        upper, lower, before = upper - rate(v), lower + rate(v), q
    bracket = bracket + before * (-ball(lower)).exp()
    extra = (-ball(rate(leaf))).exp() * (1 - (-ball(loss)).exp()) * bracket
    return ball(loss), (1 + extra).log()


def _none_below(forest: Forest, rate: object, v: int, leaf: int) -> arb:
    """∏ (1 − β_l) over the leaves l ≠ leaf below v; alike leaves are counted, not multiplied one by one."""
    assert callable(rate)
    counts: dict[Fraction, int] = {}
    start = sum((rate(u) for u in _above(forest, v)), Fraction(0))
    stack: list[tuple[int, Fraction]] = [(v, start)]
    while stack:
        u, before = stack.pop()
        path = before + rate(u)
        if forest.is_leaf[u]:
            if u != leaf:
                counts[path] = counts.get(path, 0) + 1
        else:
            stack.extend((child, path) for child in forest.children_of(u).tolist())
    result = arb(1)
    for path, count in counts.items():
        result = result * (1 - (-ball(path)).exp()) ** count
    return result
