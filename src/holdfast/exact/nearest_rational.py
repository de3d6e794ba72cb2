"""The nearest real point in rationals, for small problems: the dual active-set method of Goldfarb and Idnani.

It starts where nothing is asked for and takes in one violated row after the other, with prices that stay 0 or more; the
dual objective rises with every row, so no set of tight rows comes back and the end is reached whatever rows are tight,
twins or nearly parallel. Nothing is rounded: the last point satisfies everything and is the nearest one, or some rows
are proved to contradict each other, by multipliers (Farkas). Used where solvers in doubles give up.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import flint
import numpy as np

from holdfast.arrays import Floats

#: Outputs, and rows with bounds, up to which rationals are used.
MOST_OUTPUTS, MOST_ROWS = 40, 240


@dataclass(frozen=True, eq=False)
class ExactRows:
    """The rows C x = c (the first `equalities`) and C x ≥ c (the others, bounds last), in whole numbers.

    `between` counts the inequalities that are not bounds.
    """

    C: Any
    sides: tuple[int, ...]
    equalities: int
    between: int

    @property
    def count(self) -> int:
        return len(self.sides)

    def row(self, i: int) -> list[int]:
        return [int(self.C[i, j]) for j in range(self.C.ncols())]

    def slacks(self, point: Sequence[Fraction]) -> list[Fraction]:
        found = flint.fmpq_mat(self.C) * _column(point)
        return [_fraction(found[i, 0]) - side for i, side in enumerate(self.sides)]


@dataclass(frozen=True, eq=False)
class Nearest:
    """A point, and the slope of Σ w x² along each row."""

    point: list[Fraction]
    prices: list[Fraction]

    def of_rows(self, rows: ExactRows) -> tuple[Floats, Floats]:
        """The prices of the equalities and of the inequalities between outputs, as doubles."""
        prices = np.array([float(price) for price in self.prices])
        last = rows.equalities + rows.between
        return prices[: rows.equalities], prices[rows.equalities : last]


@dataclass(frozen=True, eq=False)
class Impossible:
    """Multipliers of rows, 0 or more for inequalities, whose sum asks 0 to be more than 0."""

    multipliers: dict[int, Fraction]


def nearest(rows: ExactRows, weights: Floats, start: Sequence[Fraction]) -> Nearest | None:
    """The point with the least Σ w (x − start)² that satisfies all rows; None where there is none."""
    found = nearest_or_proof(rows, weights, start)
    return found if isinstance(found, Nearest) else None


def nearest_or_proof(rows: ExactRows, weights: Floats, start: Sequence[Fraction]) -> Nearest | Impossible:
    """The same, with a proof where there is no such point.

    Only the rows' products in the norm of 1/w are needed: x = start + V Cᵀu for prices u.
    """
    spreads = [Fraction(1 / w) for w in weights.tolist()]
    spread = flint.fmpq_mat(len(spreads), len(spreads))
    for i, value in enumerate(spreads):
        spread[i, i] = _rational(value)
    C = flint.fmpq_mat(rows.C)
    weighed = C * spread
    gram = weighed * C.transpose()
    slack = [_rational(value) for value in rows.slacks(start)]
    steps = _Steps(gram, slack, rows.equalities)
    if not steps.finished():
        return Impossible({row: _fraction(value) for row, value in steps.proof.items() if value != 0})
    prices = flint.fmpq_mat(rows.count, 1)
    for row, price in zip(steps.tight, steps.prices, strict=True):
        prices[row, 0] = price
    moves = weighed.transpose() * prices
    point = [Fraction(at) + _fraction(moves[j, 0]) for j, at in enumerate(start)]
    return Nearest(point, [2 * _fraction(prices[i, 0]) for i in range(rows.count)])


class _Steps:
    """The changing state of one search: tight rows, their prices, and what all rows have more than they ask for."""

    def __init__(self, gram: Any, slack: list[Any], equalities: int) -> None:
        self.gram, self.slack, self.equalities = gram, slack, equalities
        self.lengths = [max(float(gram[i, i]), 1e-300) ** 0.5 for i in range(len(slack))]
        self.tight: list[int] = []
        self.prices: list[Any] = []
        self.proof: dict[int, Any] = {}

    def finished(self) -> bool:
        """Take in rows until none is violated; return whether that is possible."""
        for row in range(self.equalities):
            if not self._take_in(row):
                return False
        while True:
            violated = [i for i in range(self.equalities, len(self.slack)) if self.slack[i] < 0]
            if not violated:
                return True
            if not self._take_in(min(violated, key=lambda i: float(self.slack[i]) / self.lengths[i])):
                return False

    def _take_in(self, row: int) -> bool:
        """Make one row tight; rows whose price would fall below 0 are let go on the way."""
        price = flint.fmpq(0)
        while True:
            shares = self._shares(row)
            fall = self.gram[row, row] - sum(
                (self.gram[row, k] * s for k, s in zip(self.tight, shares, strict=True)), 0
            )
            blocking = [
                (self.prices[k] / share, k)
                for k, share in enumerate(shares)
                if share > 0 and self.tight[k] >= self.equalities
            ]
            first = min(blocking, default=None)
            if fall == 0:
                if row < self.equalities and self.slack[row] == 0:
                    return True
                if row < self.equalities or first is None:
                    self._keep_proof(row, shares)
                    return False
                length, full = first[0], False
            else:
                length = -self.slack[row] / fall
                full = first is None or length <= first[0] or row < self.equalities
                if not full and first is not None:
                    length = first[0]
            price += length
            self.prices = [p - length * share for p, share in zip(self.prices, shares, strict=True)]
            for i in range(len(self.slack)):
                change = self.gram[i, row]
                for k, share in zip(self.tight, shares, strict=True):
                    change -= self.gram[i, k] * share
                self.slack[i] += length * change
            if full:
                self.tight.append(row)
                self.prices.append(price)
                return True
            assert first is not None
            del self.tight[first[1]], self.prices[first[1]]

    def _keep_proof(self, row: int, shares: list[Any]) -> None:
        """The row is a sum of tight rows, and yet it asks for something else than these give."""
        sign = -1 if self.slack[row] > 0 else 1
        self.proof = {row: flint.fmpq(sign)} | {k: -sign * s for k, s in zip(self.tight, shares, strict=True)}

    def _shares(self, row: int) -> list[Any]:
        """How the tight rows take part in a step along another row."""
        count = len(self.tight)
        if count == 0:
            return []
        matrix = flint.fmpq_mat(count, count, [self.gram[i, k] for i in self.tight for k in self.tight])
        right = flint.fmpq_mat(count, 1, [self.gram[i, row] for i in self.tight])
        found = matrix.solve(right)
        return [found[k, 0] for k in range(count)]


def _rational(value: Fraction | int) -> Any:
    exact = Fraction(value)
    return flint.fmpq(exact.numerator, exact.denominator)


def _fraction(value: Any) -> Fraction:
    return Fraction(int(value.p), int(value.q))


def _column(values: Sequence[Fraction]) -> Any:
    return flint.fmpq_mat(len(values), 1, [_rational(value) for value in values])
