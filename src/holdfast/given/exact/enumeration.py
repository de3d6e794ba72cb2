"""A tiny domain: list every table that may come out, and draw one of them exactly.

Accepted for integer noise where bounds and equalities leave finitely many tables for every truth. The list is
made by a depth-first search that cuts branches which no completion can save.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from fractions import Fraction

import highspy
import numpy as np
from scipy import sparse

from holdfast.arguments import LARGEST, Refused
from holdfast.arrays import Array, Ints
from holdfast.constraints import Rows
from holdfast.exact.solver import linear_program
from holdfast.given.problem import Problem, Truth
from holdfast.noise.draws.comparison import Comparison, FiniteLaw
from holdfast.noise.spread import Spread
from holdfast.randomness import Stream

#: Largest number of outputs, and of tables, that count as tiny.
MOST_OUTPUTS = 16
MOST_TABLES = 20_000
#: Partial tables looked at before a domain counts as too large; a few seconds.
MOST_VISITS = 150_000


TOO_MANY = "too many tables are possible here to list them all: use onto(), or publish more exact figures"


def accepts(problem: Problem) -> bool:
    """Whether integer noise on few outputs is confined to finitely many tables."""
    system = problem.system
    if not problem.law.integer or problem.law.n > MOST_OUTPUTS or not problem.depends_on_data:
        return False
    branches = system.branches or (system,)
    return all(_confined(Problem(problem.law, branch, problem.unit)) for branch in branches)


def _confined(problem: Problem) -> bool:
    """Whether no direction is free for ever: {v : A v = 0, G v ≥ 0, v ≥ 0 or ≤ 0 where bounded} is {0}."""
    system, n = problem.system, problem.law.n
    low, high = system.integer_bounds(problem.unit)
    ends = np.where(low > -LARGEST, 0.0, -1.0), np.where(high < LARGEST, 0.0, 1.0)
    A = sparse.vstack([problem.space.rows, system.inequalities.A], format="csr")
    most = np.repeat([0.0, np.inf], [problem.space.rank, system.inequalities.count])
    model = linear_program(A, 0.0, ends, (0.0, most))
    for i in range(n):
        for sense in (highspy.ObjSense.kMaximize, highspy.ObjSense.kMinimize):
            model.changeObjectiveSense(sense)
            model.changeColsCost(n, np.arange(n, dtype=np.int32), np.eye(n)[i])
            model.run()
            if abs(model.getInfo().objective_function_value) > 1e-6:
                return False
    return True


def draw(problem: Problem, truth: Truth, size: int, stream: Stream) -> Array:
    """Draw noise such that truth + noise is one of the listed tables, with its exact conditional probability."""
    assert truth is not None
    table = np.asarray(truth, dtype=np.int64)
    return drawn_among(problem, possible_tables(problem, table) - table, size, stream)


def spread(problem: Problem) -> Spread | None:
    del problem
    return None


def possible_tables(problem: Problem, truth: Ints) -> Ints:
    """List every whole table that satisfies the system and shares the truth's invariants."""
    branches = problem.system.branches or (problem.system,)
    found: list[tuple[int, ...]] = []
    for branch in branches:
        part = Problem(problem.law, branch, problem.unit)
        for table in _search(part, truth, in_branch=bool(problem.system.branches)):
            found.append(table)
            if len(found) > MOST_TABLES:
                raise Refused(TOO_MANY)
    return np.array(found, dtype=np.int64).reshape(len(found), problem.law.n)


def _search(problem: Problem, truth: Ints, *, in_branch: bool) -> Iterator[tuple[int, ...]]:
    """Depth first over outputs; a row's remaining range tells whether it can still be met."""
    system, n = problem.system, problem.law.n
    low, high = (bounds.tolist() for bounds in system.integer_bounds(problem.unit))
    # A branch of a union may not hold the truth: its right-hand sides are its own, but for the invariants.
    equal = system.invariants.A if in_branch else problem.space.rows
    rows: list[tuple[dict[int, int], int | Fraction, bool]] = [
        (dict(zip(row.indices.tolist(), row.data.tolist(), strict=True)), int((row @ truth)[0]), True)
        for row in (equal[[i]] for i in range(equal.shape[0]))
    ]
    if in_branch:
        rows += [(*_row(system.equalities, i, problem.unit), True) for i in range(system.equalities.count)]
    rows += [(*_row(system.inequalities, i, problem.unit), False) for i in range(system.inequalities.count)]
    _tighten(rows, low, high)
    by_output = [[row for row in rows if j in row[0]] for j in range(n)]
    values = [0] * n
    visits = itertools.count(1)

    def room(depth: int) -> range:
        """The values of one output that every row with it can still complete, given the outputs before it."""
        first, last = low[depth], high[depth]
        for coefficients, right, equality in by_output[depth]:
            least = most = -right
            for j, a in coefficients.items():
                if j < depth:
                    least, most = least + a * values[j], most + a * values[j]
                elif j > depth:
                    ends = (a * low[j], a * high[j])
                    least, most = least + min(ends), most + max(ends)
            # 0 ≤ a·z + most; for an equality also a·z + least ≤ 0.
            own = coefficients[depth]
            for end, bounds_below in ((most, own > 0), (least, own < 0))[: 2 if equality else 1]:
                if bounds_below:
                    first = max(first, -(end // own))
                else:
                    last = min(last, -end // own)
        return range(first, last + 1)

    def descend(depth: int) -> Iterator[tuple[int, ...]]:
        if depth == n:
            yield tuple(values)
            return
        for value in room(depth):
            if next(visits) > MOST_VISITS:
                raise Refused(TOO_MANY)
            values[depth] = value
            yield from descend(depth + 1)

    yield from descend(0)


def _row(rows: Rows, i: int, unit: Fraction) -> tuple[dict[int, int], int | Fraction]:
    row = rows.A[[i]]
    right = Fraction(rows.b.item(i)) / unit
    whole = int(right) if right.denominator == 1 else right  # whole numbers are much faster than fractions
    return dict(zip(row.indices.tolist(), row.data.tolist(), strict=True)), whole


def _tighten(rows: list[tuple[dict[int, int], int | Fraction, bool]], low: list[int], high: list[int]) -> None:
    """Narrow the bounds by what each row leaves to each output, until nothing changes."""
    changed, rounds = True, 0
    while changed and rounds < 200:
        changed, rounds = False, rounds + 1
        for coefficients, right, equality in rows:
            for sign in (1, -1) if equality else (1,):
                # sign·(Σ a_j z_j − right) ≥ 0 bounds each z_j by the most the others can give.
                most = {j: max(sign * a * low[j], sign * a * high[j]) for j, a in coefficients.items()}
                unbounded = [j for j in most if _open(sign * coefficients[j], j, low, high)]
                total = sum(most.values())
                for j, a in coefficients.items():
                    if any(other != j for other in unbounded):
                        continue
                    slack = Fraction(sign * right - (total - most[j])) / (sign * a)
                    if sign * a > 0 and (bound := -((-slack) // 1)) > low[j]:
                        low[j], changed = int(bound), True
                    elif sign * a < 0 and (bound := slack // 1) < high[j]:
                        high[j], changed = int(bound), True
    if any(top - bottom > 10 * MOST_TABLES for bottom, top in zip(low, high, strict=True)):
        raise Refused(TOO_MANY)


def _open(signed: int, j: int, low: list[int], high: list[int]) -> bool:
    return high[j] >= LARGEST if signed > 0 else low[j] <= -LARGEST


def drawn_among(problem: Problem, noise: Ints, size: int, stream: Stream) -> Ints:
    """Draw some of these vectors of noise, by their weights."""
    comparison = Comparison.of(FiniteLaw(exponents(problem, noise), [1] * len(noise)))
    return np.asarray(noise[comparison.draw(size, stream)])


def exponents(problem: Problem, noise: Ints) -> list[Fraction]:
    """Σ|u_i|/λ_i or Σu_i²/2σ_i² of each vector, exactly: its weight is e to minus this."""
    law = problem.law
    which = law.complete
    power, factor = (1, Fraction(1)) if law.kind == "laplace" else (2, Fraction(1, 2))
    rates = [Fraction(0) if scale is None else factor / scale for scale in law.scale_values]
    sizes = np.zeros((len(noise), len(rates)), dtype=object)
    for i in range(law.n):
        sizes[:, which[i]] += np.abs(noise[:, i].astype(object)) ** power
    return [sum((rate * int(s) for rate, s in zip(rates, row, strict=True)), Fraction(0)) for row in sizes]
