"""The cheapest vector t with A t = b at cost Σ wᵢ|tᵢ|, exactly in rationals, and in whole numbers.

A linear program in doubles proposes a basis; an exact simplex method starts from it, usually finds nothing to improve,
and ends with a vector and multipliers whose values agree. The value is therefore exact, not rounded.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import highspy
import numpy as np
from flint import fmpq, fmpq_mat, fmpz_mat

from holdfast.exact.rational_matrices import as_floats, as_fraction, from_fraction, pivots
from holdfast.exact.solver import linear_program, solved
from holdfast.exact.whole_rows import WholeRows


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


#: Nodes of a search for a cheap whole vector, and steps of the simplex method: amounts of work and no time, since the
#: bound that is found enters statements. What was found by then is a valid bound.
NODES, STEPS = 2_000, 1_000_000


def independent_rows(A: fmpq_mat, b: list[Fraction]) -> tuple[fmpq_mat, fmpq_mat] | None:
    """Return independent rows and right-hand sides with the same solutions, or None where there is no solution."""
    n = A.ncols()
    if A.nrows() == 0:
        return A, fmpq_mat(0, 1)
    rows = [[*row, from_fraction(side)] for row, side in zip(A.tolist(), b, strict=True)]
    reduced, found = pivots(fmpq_mat(rows))
    if found and found[-1] == n:
        return None
    kept = reduced.tolist()[: len(found)]
    if not kept:
        return fmpq_mat(0, n), fmpq_mat(0, 1)
    return fmpq_mat([row[:n] for row in kept]), fmpq_mat([[row[n]] for row in kept])


def cheapest(A: fmpq_mat, b: list[Fraction], weights: list[Fraction]) -> Cheapest | None:
    """Return the real vector of least cost with A t = b, or None where there is none."""
    system = independent_rows(A, b)
    if system is None:
        return None
    A, right = system
    n = len(weights)
    if all(value == 0 for value in right.entries()):
        return Cheapest(Fraction(0), (Fraction(0),) * n)
    if 2 * A.nrows() > n:
        found = cheapest_near(Solutions.of(A, right), weights)
        if found is not None:
            return found
    prices = [from_fraction(weight) for weight in weights]
    columns, signs = _start(A, right, weights)
    rows = A.tolist()
    while True:
        B = fmpq_mat([[row[j] for j in columns] for row in rows])
        x = B.solve(right).entries()
        # Both signs of every column are there: a basic vector with a sign of its own for each entry is never negative.
        signs = [sign if value == 0 else (1 if value > 0 else -1) for value, sign in zip(x, signs, strict=True)]
        y = B.transpose().solve(fmpq_mat([[prices[j] * sign] for j, sign in zip(columns, signs, strict=True)]))
        gains = (y.transpose() * A).entries()
        entering = next((j for j in range(n) if gains[j] > prices[j] or -gains[j] > prices[j]), None)
        if entering is None:
            t = [Fraction(0)] * n
            for j, value in zip(columns, x, strict=True):
                t[j] = as_fraction(value)
            return Cheapest(sum((weights[j] * abs(t[j]) for j in columns), Fraction(0)), tuple(t))
        sign = 1 if gains[entering] > 0 else -1
        step = B.solve(fmpq_mat([[sign * row[entering]] for row in rows])).entries()
        slopes = [value * s for value, s in zip(step, signs, strict=True)]
        sizes = [value * s for value, s in zip(x, signs, strict=True)]
        # The smallest numbers first, coming and going (Bland): the method cannot go round in circles.
        leaving = min(
            (i for i, slope in enumerate(slopes) if slope > 0),
            key=lambda i: (as_fraction(sizes[i] / slopes[i]), columns[i]),
        )
        columns[leaving], signs[leaving] = entering, sign


def least_squares(A: fmpq_mat, b: list[Fraction], weights: list[Fraction]) -> Cheapest | None:
    """Return the vector of least Σ wᵢtᵢ² with A t = b, exactly, or None where there is none."""
    system = independent_rows(A, b)
    return None if system is None else shortest(Solutions.of(*system), weights)


def _start(A: fmpq_mat, right: fmpq_mat, weights: list[Fraction]) -> tuple[list[int], list[int]]:
    """Return independent columns, those that a program in doubles uses first, and their signs."""
    values = _program(as_floats(A), as_floats(right).ravel(), weights, integer=False)
    order = np.argsort(-np.abs(values), kind="stable").tolist()
    _, found = pivots(fmpq_mat([[row[j] for j in order] for row in A.tolist()]))
    columns = [order[k] for k in found]
    return columns, [1 if values[j] >= 0 else -1 for j in columns]


def cheapest_whole(A: fmpq_mat, b: list[Fraction], weights: list[Fraction]) -> Cheapest | None:
    """Return a cheap vector of whole numbers with A t = b, or None where there is none.

    Whether there is one is decided exactly. The vector is that of branch and bound if it satisfies A t = b exactly, so
    that its cost is never below the least cost.
    """
    known = whole_solution(A, b)
    if known is None:
        return None
    best = tuple(known)
    system = independent_rows(A, b)
    assert system is not None
    if system[0].nrows():
        values = _program(as_floats(system[0]), as_floats(system[1]).ravel(), weights, integer=True)
        proposal = tuple(int(value) for value in np.rint(values)) if np.abs(values).max() < 2.0**53 else best
        if _solves(A, b, proposal) and _cost(weights, proposal) < _cost(weights, best):
            best = proposal
    return Cheapest(_cost(weights, best), tuple(Fraction(value) for value in best))


def _cost(weights: list[Fraction], t: tuple[int, ...]) -> Fraction:
    return sum((w * abs(value) for w, value in zip(weights, t, strict=True)), Fraction(0))


def _solves(A: fmpq_mat, b: list[Fraction], t: tuple[int, ...]) -> bool:
    image = (A * fmpq_mat([[from_fraction(value)] for value in t])).entries()
    return all(value == from_fraction(side) for value, side in zip(image, b, strict=True))


def whole_solution(A: fmpq_mat, b: list[Fraction]) -> list[int] | None:
    """Return whole numbers with A t = b, or None where there are none; exact."""
    n = A.ncols()
    if A.nrows() == 0:
        return [0] * n
    rows, denominator = A.numer_denom()
    target = [side * int(denominator) for side in b]
    if any(side.denominator != 1 for side in target):
        return None
    found = WholeRows.of(fmpz_mat(rows).tolist(), n).solution([int(side) for side in target])
    return None if found is None or found[1] > 1 else found[0]


def _program(A: Any, b: Any, weights: list[Fraction], *, integer: bool) -> Any:
    """Return the solver's proposal for t (zeros where it has none)."""
    n, largest = A.shape[1], max(weights)
    cost = np.tile([float(weight / largest) for weight in weights], 2)
    most = {"mip_max_nodes": NODES, "simplex_iteration_limit": STEPS}
    values = solved(linear_program(np.hstack([A, -A]), cost, (0.0, np.inf), (b, b), whole=integer, **most))
    return np.zeros(n) if values is None else values[:n] - values[n:]
