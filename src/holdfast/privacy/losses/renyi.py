"""Rényi curves over whole orders: add them, then convert the sum once.

D_α of independent (also adaptively chosen) mechanisms adds at every order (Mironov 2017). A
curve keeps upper bounds at a list of whole orders α ≥ 2, which is all that THEORY H6 proves for integer
Gaussian noise under non-negativity.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np

from holdfast.arguments import Refused, probability, whole
from holdfast.arrays import Floats
from holdfast.privacy.losses.conversion import epsilon_at, log_delta, pure_divergence
from holdfast.privacy.losses.gaussian import not_negative
from holdfast.privacy.rounding import ball, outward, settled


def _default_orders() -> tuple[int, ...]:
    """Return every order to 64, then steps of about 4 % up to a million, enough for ρ down to 1e-10."""
    orders = list(range(2, 65))
    while orders[-1] < 10**6:
        orders.append(math.ceil(orders[-1] * 1.04))
    return tuple(orders)


#: The orders a curve keeps unless told otherwise.
ORDERS = _default_orders()


@dataclass(frozen=True)
class RenyiCurve:
    """Upper bounds of D_α, both ways between neighbours, at whole orders α ≥ 2."""

    orders: tuple[int, ...]
    values: tuple[float, ...]

    def __post_init__(self) -> None:
        orders = tuple(whole("an order", order, at_least=2) for order in self.orders)
        if not orders or any(a >= b for a, b in pairwise(orders)):
            raise Refused("orders must be at least one whole number from 2 on, increasing")
        values = tuple(outward(not_negative("a divergence", value)) for value in self.values)
        if len(values) != len(orders):
            raise Refused(f"values must hold one divergence per order ({len(orders)}), found {len(values)}")
        object.__setattr__(self, "orders", orders)
        object.__setattr__(self, "values", values)

    @classmethod
    def of_rho(cls, rho: Any, orders: Sequence[int] = ORDERS) -> RenyiCurve:
        """Return the curve αρ of concentrated privacy."""
        r = not_negative("rho", rho)
        return cls(tuple(orders), tuple(outward(order * r) for order in orders))

    @classmethod
    def of_pure(cls, epsilon: Any, orders: Sequence[int] = ORDERS) -> RenyiCurve:
        """Return the curve of randomized response, the largest that pure ε allows at each order."""
        e = not_negative("epsilon", epsilon)
        if e == 0:
            return cls(tuple(orders), tuple(0.0 for _ in orders))
        values = (outward(settled(partial(pure_divergence, e, Fraction(a)))) for a in orders)
        return cls(tuple(orders), tuple(values))

    def __add__(self, other: RenyiCurve) -> RenyiCurve:
        """Return the curve of both mechanisms together, at the orders that both know."""
        if not isinstance(other, RenyiCurve):
            return NotImplemented
        mine, theirs = (
            dict(zip(self.orders, self.values, strict=True)),
            dict(zip(other.orders, other.values, strict=True)),
        )
        common = sorted(mine.keys() & theirs.keys())
        if not common:
            raise Refused("two Rényi curves can only be added when they share an order")
        sums = (outward(Fraction(mine[order]) + Fraction(theirs[order])) for order in common)
        return RenyiCurve(tuple(common), tuple(sums))

    def epsilon(self, delta: Any) -> float:
        """Return a double at or above the best ε at this δ over the orders."""
        d = probability("delta", delta)
        values = dict(zip(self.orders, self.values, strict=True))
        found = (outward(settled(partial(_epsilon, a, values[a], d))) for a in self.best_at_delta(d))
        return max(0.0, min(found))

    def delta(self, epsilon: Any) -> float:
        """Return a double at or above the best δ at this ε over the orders."""
        e = not_negative("epsilon", epsilon)
        if not any(self.values):
            return 0.0
        values = dict(zip(self.orders, self.values, strict=True))
        return min(1.0, *(outward(settled(partial(_delta, a, values[a], e))) for a in self.best_at_epsilon(e)))

    def best_at_delta(self, delta: Fraction) -> tuple[int, ...]:
        """Return the few orders whose approximate ε at this δ are smallest: every order gives a true bound."""
        level = math.log(delta.numerator) - math.log(delta.denominator)
        return self._best(
            [
                value - (math.log(order) + level) / (order - 1) + math.log1p(-1 / order)
                for order, value in zip(self.orders, self.values, strict=True)
            ]
        )

    def best_at_epsilon(self, epsilon: Fraction) -> tuple[int, ...]:
        """Return the few orders whose approximate δ at this ε are smallest: every order gives a true bound."""
        limit = float(epsilon)
        return self._best(
            [
                (order - 1) * (value - limit + math.log1p(-1 / order)) - math.log(order)
                for order, value in zip(self.orders, self.values, strict=True)
            ]
        )

    def _best(self, rough: list[float]) -> tuple[int, ...]:
        ranked = sorted(range(len(rough)), key=rough.__getitem__)
        return tuple(sorted(self.orders[i] for i in ranked[:3]))


def rough_pure(epsilon: float, orders: Floats) -> Floats:
    """Return the curve of pure ε in plain doubles: near the truth, and on neither side of it for certain."""
    return (_log_cosh((orders - 0.5) * epsilon) - _log_cosh(np.full_like(orders, epsilon / 2))) / (orders - 1)


def _log_cosh(x: Floats) -> Floats:
    near = x * x / 2 - x**4 / 12
    return np.where(x < 0.01, near, x + np.log1p(np.exp(-2 * x)) - math.log(2))


def _epsilon(order: int, divergence: float, delta: Fraction) -> Any:
    return epsilon_at(Fraction(order), ball(divergence), delta)


def _delta(order: int, divergence: float, epsilon: Fraction) -> Any:
    return log_delta(Fraction(order), ball(divergence), epsilon).exp()
