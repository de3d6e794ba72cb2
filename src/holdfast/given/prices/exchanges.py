"""The price of bounds where equalities leave one total of tied numbers: a table of two rows with exact margins.

On what the equalities leave open every output is ± one of a few numbers t_l that add up to 0, with weights β_l^|t_l|;
bounds cut each number at both ends. Records move whole steps from one number to another. Proof:
docs/theory/orders-and-lines.md, §4.
"""

from __future__ import annotations

import itertools
from collections import Counter
from fractions import Fraction
from typing import Any

import numpy as np
from flint import arb

from holdfast.constraints import System
from holdfast.given.exact import two_rows
from holdfast.given.prices.bounds import PRECISION, each_cell_its_own_output
from holdfast.given.prices.lines import along_lines, held_rate
from holdfast.given.problem import Problem
from holdfast.noise.precision import ball, working_precision
from holdfast.privacy import Additive, Differences, Guarantee

#: Different rates among the numbers up to which all pairs are compared.
MOST_RATES = 40


def exchange_price(base: Additive, system: System, differences: Differences, **words: Any) -> Guarantee | None:
    """The guarantee of integer Laplace noise on tied numbers with an exact total, given bounds; None for other systems.

    Guarantee (docs/theory/orders-and-lines.md, Proposition 8): for each exchange at least the supremum over all tables,
    and the supremum itself for up to three numbers that bounds hold on both sides.
    """
    if base.law.kind != "laplace" or not base.law.integer or not each_cell_its_own_output(base):
        return None
    problem = Problem(base.law, system, base.unit)
    ties = two_rows.Ties.of(problem) if two_rows.accepts(problem) else None
    if ties is None:
        return None
    kinds = np.zeros(ties.law.n, np.int64) if ties.law.which is None else ties.law.which
    rates = Counter(1 / Fraction(ties.law.scale_values[int(kind)] or 1) for kind in kinds[1:])  # the first is the total
    sizes = np.sort(np.bincount(ties.group[ties.group >= 0]))
    relation = differences.neighbours
    exchanges = relation.records * (1 if relation.adds else 2) // int(sizes[0] + sizes[1])
    if len(rates) > MOST_RATES or not exchanges:
        return None
    words["because"] = "exchanges within an exact total between two ends (docs/theory/orders-and-lines.md)"
    with working_precision(PRECISION):
        worst = arb(0)
        for gains, loses in itertools.combinations_with_replacement(rates, 2):
            if gains != loses or rates[gains] > 1:
                worst = worst.max(ball(gains + loses) + _rise(rates, gains, loses).log())
        loss, saved = base.loss(differences).value, held_rate(base, system)
        most = ball(loss) + along_lines(loss, saved, integer=True)
        return base.pure(most.min(worst * exchanges), **words)


def _rise(rates: Counter[Fraction], gains: Fraction, loses: Fraction) -> arb:
    """Bound c(x + d)/c(x) for one step from a number of one rate to a number of another, over all tables and bounds."""
    others = rates - Counter([gains, loses])
    up, down = (-ball(gains)).exp(), (-ball(loses)).exp()
    both = up * down
    values = [(1 + both * (1 - both), arb(1))]  # what the other numbers add up to: nothing, more, less
    for near, far in ((up, down), (down, up)):
        weight = arb(1)
        for rate, count in others.items():
            weight *= (1 - (-ball(rate)).exp() * far) ** count
        values.append((1 + near / far * (1 - both), 1 / weight - 1))
    (still, one), (above, more), (below, less) = values
    largest = still
    for x, y in itertools.product((arb(0), more), (arb(0), less)):
        largest = largest.max((still + above * x + below * y) / (one + x + y))
    return largest
