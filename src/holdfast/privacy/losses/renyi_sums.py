"""The sum of Rényi curves of many statements, at the few orders that are best for what is asked."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from typing import NamedTuple

import numpy as np

from holdfast.arrays import Floats
from holdfast.privacy.guarantee import Counted, Guarantee
from holdfast.privacy.losses.conversion import pure_divergence
from holdfast.privacy.losses.renyi import ORDERS, RenyiCurve, rough_pure
from holdfast.privacy.rounding import outward, settled


class _Numbers(NamedTuple):
    """What a Rényi curve is made of: pure ε, ρ, μ."""

    pure: float | None
    rho: float | None
    mu: float | None


def summed_curve(parts: Counted, best: Callable[[RenyiCurve], tuple[int, ...]]) -> RenyiCurve:
    """Return the summed Rényi curve at the few orders that are best for what is asked.

    The orders are chosen in plain doubles, since every order gives a true bound; the sums there are rigorous.
    """
    orders = np.array(ORDERS, dtype=np.float64)
    distinct: Counter[_Numbers] = Counter()
    for part, number in parts:
        distinct[_numbers(part)] += number
    rough = sum((count * _rough(part, orders) for part, count in distinct.items()), np.zeros(orders.size))
    chosen = best(RenyiCurve(ORDERS, tuple(rough.tolist())))
    values = (
        outward(sum((count * Fraction(_divergence(part, a)) for part, count in distinct.items()), Fraction(0)))
        for a in chosen
    )
    return RenyiCurve(chosen, tuple(values))


def _numbers(part: Guarantee) -> _Numbers:
    return _Numbers(part.epsilon if part.pure else None, part.rho, part.mu)


def _divergence(part: _Numbers, order: int) -> float:
    """Return a double at or above D_α of a part; pure parts have a curve better than any ρ."""
    choices = []
    if part.pure is not None:
        pure = partial(pure_divergence, Fraction(part.pure), Fraction(order))
        choices.append(outward(settled(pure)) if part.pure else 0.0)
    if part.rho is not None:
        choices.append(outward(order * Fraction(part.rho)))
    if part.mu is not None:
        choices.append(outward(order * Fraction(part.mu) ** 2 / 2))
    return min(choices)


def _rough(part: _Numbers, orders: Floats) -> Floats:
    """Return about the same at many orders, in plain doubles."""
    choices = []
    if part.pure is not None:
        choices.append(rough_pure(part.pure, orders))
    if part.rho is not None:
        choices.append(orders * part.rho)
    if part.mu is not None:
        choices.append(orders * part.mu**2 / 2)
    return np.maximum(np.min(choices, axis=0), 0.0)
