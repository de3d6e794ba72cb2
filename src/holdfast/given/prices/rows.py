"""The price of one inequality between outputs with noise of their own: a sum with entries 0 and ±1.

c depends on the slack s of the row alone: c(s) = P(V ≥ −s), V the sum of the noise in the row. V has a log-concave law,
so log c rises fastest at slack 0. Proofs: docs/theory/orders-and-lines.md, §3.
"""

from __future__ import annotations

import math
from collections import Counter
from fractions import Fraction
from typing import Any

import numpy as np
from flint import arb

from holdfast.constraints import System
from holdfast.given.prices.bounds import PRECISION
from holdfast.noise.precision import ball, working_precision
from holdfast.privacy import Additive, Differences, Guarantee

#: Points at which a transform is summed at most, times the number of different laws.
MOST_POINTS = 400_000
#: What the transform leaves out weighs less than e to the minus this.
LEFT_OUT = 60


def row_price(base: Additive, system: System, differences: Differences, **words: Any) -> Guarantee | None:
    """The guarantee of independent integer noise given one row Σ ±z_i ≥ h and nothing else; None where more is asked.

    Guarantee (docs/theory/orders-and-lines.md, Proposition 5). Laplace: ε + log(c(m)/c(0)), m the most by which the
    records that change can raise the row. Gaussian: ρ at integer Rényi orders.
    """
    law, rows = base.law, system.inequalities
    if not law.integer or base.query.cells is None or not base.query.integer or system.has_bounds or system.branches:
        return None
    if rows.count != 1 or system.equalities.count or system.invariants.count or len(set(np.abs(rows.A.data))) != 1:
        return None
    groups = law.complete[rows.A.indices]
    found = Counter(base.inverse_scales[int(group)] for group in groups)
    if 0 in found:
        return None  # an output in the row is not measured: the sum has no law
    loss = base.loss(differences).value
    if law.kind == "gaussian":
        because = "integer Gaussian noise given one sum keeps ρ at integer orders (docs/theory/orders-and-lines.md)"
        return base.integer_gaussian(loss, None, **(words | {"because": because, "orders": "integer"}))
    with working_precision(PRECISION):
        rise = _rise(found, _most(base, system, differences))
        if rise is None:
            return None
        words["because"] = "the price of one sum: log c rises fastest at slack 0 (THEORY §2, one row)"
        size = ball(loss)
        return base.pure(size + rise.min(size), **words)


def _most(base: Additive, system: System, differences: Differences) -> int:
    """The most by which the records that change can raise the row, its entries read as ±1."""
    signs = np.sign(system.inequalities.A.toarray()[0])
    each = np.asarray(signs @ base.query.columns).ravel()
    relation = differences.neighbours
    most = np.abs(each).max() if relation.adds else each.max() - each.min()
    return int(most) * relation.records


def _rise(rates: Counter[Fraction], most: int) -> arb | None:
    """Enclose log(P(V ≥ −most)/P(V ≥ 0)) from above; P(V ≥ 0) = (1 + P(V = 0))/2, since V is symmetric."""
    if most == 0:
        return arb(0)
    found = sum_masses(rates, most)
    if found is None:
        return None
    masses, missed = found
    gain = arb(0)
    for mass in masses[1:]:
        gain += mass
    return (1 + 2 * gain / (1 + (masses[0] - missed).max(arb(0)))).log()


def sum_masses(rates: Counter[Fraction], most: int) -> tuple[list[arb], arb] | None:
    """P(V = t) for t = 0, …, most, V a sum of integer Laplace noise with these rates 1/λ; None where that is long.

    A sum of the transform of V over N points is Σ_k P(V = t + kN): at least P(V = t), and at most so much more as the
    second value says, by a Chernoff bound.
    """
    slope = min(rates) / 2
    tilt = arb(1)  # E e^{V·slope}
    for rate, count in rates.items():
        alpha, up, down = (-ball(rate)).exp(), (ball(slope) - ball(rate)).exp(), (-ball(slope) - ball(rate)).exp()
        tilt *= ((1 - alpha) ** 2 / ((1 - up) * (1 - down))) ** count
    points = most + math.ceil((LEFT_OUT + float(tilt.log().mid())) / slope)
    if points * (len(rates) + most) > MOST_POINTS:
        return None
    missed = 2 * tilt * (-ball(slope) * (points - most)).exp() / (1 - (-ball(slope) * points).exp())
    return _masses(rates, most, points), missed


def _masses(rates: Counter[Fraction], most: int, points: int) -> list[arb]:
    """Σ_k P(V = t + k·points) for t = 0, …, most, from the transform of V at `points` angles."""
    masses = [arb(0)] * (most + 1)
    alphas = [((-ball(rate)).exp(), count) for rate, count in rates.items()]
    for k in range(points // 2 + 1):
        angle = arb(2 * k) / points
        cosine, transform = angle.cos_pi(), arb(1 if k in (0, Fraction(points, 2)) else 2)
        for alpha, count in alphas:
            transform *= ((1 - alpha) ** 2 / (1 - 2 * alpha * cosine + alpha * alpha)) ** count
        for t in range(most + 1):
            masses[t] += transform * (angle * t).cos_pi() if t > 1 else transform * (cosine if t else 1)
    return [mass / points for mass in masses]
