"""All solutions of A t = b at once, t = t₀ + K y, and the cheapest of them where few dimensions y are free.

A refinement that meets k known combinations leaves k of them free, however many answers there are: the programs here
have k unknowns, and their exact solutions k × k systems.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import highspy
import numpy as np
from flint import fmpq, fmpq_mat

from holdfast.exact.rational_matrices import as_floats, as_fraction, from_fraction, pivots
from holdfast.exact.solver import linear_program, solved


@dataclass(frozen=True)
class Cheapest:
    """A vector with A t = b and its cost."""

    cost: Fraction
    t: tuple[Fraction, ...]


@dataclass(frozen=True, eq=False)
class Solutions:
    """The vectors t = start + directions·y: `start` has n entries, `directions` is (n, k) with independent columns."""

    start: list[fmpq]
    directions: fmpq_mat

    @classmethod
    def of(cls, A: fmpq_mat, right: fmpq_mat) -> Solutions:
        """Write down the solutions of A t = right, A in reduced row echelon form with independent rows."""
        n = A.ncols()
        leading = pivots(A)[1]
        free = sorted(set(range(n)) - set(leading))
        start = [fmpq(0)] * n
        for i, j in enumerate(leading):
            start[j] = right[i, 0]
        table = [[fmpq(0)] * len(free) for _ in range(n)]
        for k, f in enumerate(free):
            table[f][k] = fmpq(1)
            for i, j in enumerate(leading):
                table[j][k] = -A[i, f]
        return cls(start, fmpq_mat(table) if free else fmpq_mat(n, 0))

    @property
    def free(self) -> int:
        return int(self.directions.ncols())

    def at(self, y: fmpq_mat) -> list[fmpq]:
        """Return start + directions·y."""
        moved = (self.directions * y).entries()
        return [a + b for a, b in zip(self.start, moved, strict=True)]


def cheapest_near(solutions: Solutions, weights: list[Fraction]) -> Cheapest | None:
    """Return the solution of least Σ wᵢ|tᵢ|, proved, or None where the solver's proposal is not the optimum exactly.

    u·t = u·t₀ for every t if Kᵀu = 0, so no t costs less than u·t₀ if |uᵢ| ≤ wᵢ too. A program in doubles proposes
    which k entries of t are 0 and the signs of the others; t and u then follow exactly, and are checked.
    """
    prices = [from_fraction(weight) for weight in weights]
    if not solutions.free:
        return _priced(solutions.start, weights)
    K = solutions.directions
    values, basic = _bounded_program(solutions, weights)
    inner = sorted(range(len(prices)), key=lambda i: (not basic[i], abs(values[i]) - 1))
    rows = K.tolist()
    chosen = [inner[k] for k in pivots(fmpq_mat([rows[i] for i in inner]).transpose())[1]]
    table = fmpq_mat([rows[i] for i in chosen])
    t = solutions.at(table.solve(fmpq_mat([[-solutions.start[i]] for i in chosen])))
    zero = set(chosen)
    u = [fmpq(0)] * len(prices)
    for i, price in enumerate(prices):
        if i not in zero:
            positive = t[i] > 0 if t[i] != 0 else values[i] > 0
            u[i] = price if positive else -price
    rest = K.transpose() * fmpq_mat([[value] for value in u])
    for i, value in zip(chosen, table.transpose().solve(-rest).entries(), strict=True):
        if not -prices[i] <= value <= prices[i]:
            return None
    return _priced(t, weights)


def shortest(solutions: Solutions, weights: list[Fraction]) -> Cheapest:
    """Return the solution of least Σ wᵢtᵢ², exactly: y solves KᵀWK y = −KᵀW t₀."""
    if not solutions.free:
        return _priced(solutions.start, weights, 2)
    K = solutions.directions
    heavy = fmpq_mat([[from_fraction(w) * x for x in row] for row, w in zip(K.tolist(), weights, strict=True)])
    load = heavy.transpose() * fmpq_mat([[value] for value in solutions.start])
    return _priced(solutions.at((K.transpose() * heavy).solve(-load)), weights, 2)


def _priced(t: list[fmpq], weights: list[Fraction], power: int = 1) -> Cheapest:
    exact = tuple(as_fraction(value) for value in t)
    return Cheapest(sum((w * abs(x) ** power for w, x in zip(weights, exact, strict=True)), Fraction(0)), exact)


def _bounded_program(solutions: Solutions, weights: list[Fraction]) -> tuple[list[float], list[bool]]:
    """Propose the u of greatest u·t₀ with Kᵀu = 0 and |uᵢ| ≤ wᵢ: u as parts of w, and which are basic."""
    n = len(weights)
    prices = np.array([float(weight / max(weights)) for weight in weights])
    start = np.array([float(as_fraction(value)) for value in solutions.start])
    table = as_floats(solutions.directions).T
    table = table / np.abs(table).max(axis=1, keepdims=True)
    cost = -start / max(float(np.abs(start).max()), 1e-300)
    solver = linear_program(table, cost, (-prices, prices), (0.0, 0.0))
    values, statuses = solved(solver), list(solver.getBasis().col_status)
    if values is None or len(statuses) != n:
        return [0.0] * n, [False] * n
    return (values / prices).tolist(), [each == highspy.HighsBasisStatus.kBasic for each in statuses]
