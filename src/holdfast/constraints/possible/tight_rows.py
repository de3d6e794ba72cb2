"""Which inequalities are tight at every allowed point, in systems of hundreds of values: a linear program for each.

A few programs find points at which rows are loose, as many as possible each. For every row that is left the solver
proposes multipliers of rows; in rationals they give an upper bound of the row (weak duality), and the row is tight if
no value above its side is within that bound. What the bound does not show is not taken for tight.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
from scipy import sparse

from holdfast.arguments import LARGEST
from holdfast.arrays import Bools, Floats, Ints
from holdfast.constraints.system.rows import Rows
from holdfast.exact.rationals import ExactVector
from holdfast.exact.solver import OPTIMAL, linear_program, solved

#: Values, rows with bounds, and programs up to which systems are decided.
MOST_VALUES, MOST_ROWS, MOST_PROGRAMS = 1_000, 4_000, 200
#: Multipliers are tried with these denominators; those of tables are small.
DENOMINATORS = (1, 2, 12, 2520, 10**6)
#: A slack below this is the solver's rounding error.
NEARLY = 1e-6


def tight_rows(
    rows: Rows, equality: Bools, bounds: tuple[ExactVector, ExactVector], *, whole: bool
) -> tuple[dict[int, Fraction], Bools]:
    """The values that bounds fix at some positions, and which rows (A z ≥ b unless `equality`) are always tight."""
    values: dict[int, Fraction] = {}
    tight = np.zeros(rows.count, dtype=bool)
    n = rows.A.shape[1]
    ends = [(j, 1, Fraction(value)) for j, value in enumerate(bounds[0].tolist()) if value > -LARGEST]
    ends += [(j, -1, -Fraction(value)) for j, value in enumerate(bounds[1].tolist()) if value < LARGEST]
    if n > MOST_VALUES or rows.count + len(ends) > MOST_ROWS or not rows.count:
        return values, tight
    signs, places = np.array([sign for _, sign, _ in ends], np.int64), [j for j, _, _ in ends]
    units = sparse.csr_array((signs, (np.arange(len(ends)), places)), shape=(len(ends), n))
    loose = np.flatnonzero(~equality)
    A = sparse.csr_array(sparse.vstack([rows.A[loose], units], format="csr"))
    sides = [Fraction(side) for side in rows.b[loose].tolist()] + [side for _, _, side in ends]
    spans = zip(A.indptr[:-1].tolist(), A.indptr[1:].tolist(), strict=True)
    steps = [math.gcd(*A.data[start:end].tolist()) or 1 if whole else 1 for start, end in spans]
    if whole:
        sides = [Fraction(math.ceil(side / step) * step) for side, step in zip(sides, steps, strict=True)]
    enough, left = (1 - NEARLY if whole else NEARLY), np.arange(A.shape[0])
    while left.size:  # every round finds a point at which some more are loose, or none
        slack = _slack(rows, equality, A, sides, steps, left)
        still = left[:0] if slack is None else left[slack[left] < enough]
        if still.size in (0, left.size):
            left = still
            break
        left = still
    for i in left[:MOST_PROGRAMS].tolist():
        above = _upper_bound(rows, equality, bounds, A[[i]])
        if above is None or (above >= sides[i] + steps[i] if whole else above > sides[i]):
            continue
        if i < loose.size:
            tight[loose[i]] = True
        else:
            j, sign, _ = ends[i - loose.size]
            values[j] = sign * sides[i]
    return values, tight


def _slack(
    rows: Rows, equality: Bools, A: sparse.csr_array, sides: list[Fraction], steps: list[int], chosen: Ints
) -> Floats | None:
    """The slack of each inequality, in its steps and at most 1, at a point where the sum of chosen ones is largest."""
    m, n = A.shape
    equal = rows.A[np.flatnonzero(equality)]
    program = sparse.vstack(
        [
            sparse.hstack([A, -sparse.diags_array(np.array(steps, float), shape=(m, m))]),
            sparse.hstack([equal, sparse.csr_array((equal.shape[0], m))]),
        ],
        format="csr",
    )
    right = np.array([float(side) for side in (*sides, *rows.b[equality].tolist())])
    ends = np.repeat([-np.inf, 0.0], [n, m]), np.repeat([np.inf, 1.0], [n, m])
    most = np.where(np.arange(right.size) < m, np.inf, right)
    costs = np.zeros(n + m)
    costs[n + chosen] = -1.0
    point = solved(linear_program(program, costs, ends, (right, most)))
    return None if point is None else point[n:]


def _upper_bound(
    rows: Rows, equality: Bools, bounds: tuple[ExactVector, ExactVector], row: sparse.csr_array
) -> Fraction | None:
    """The least proved upper bound of a weighted sum; None where the solver's multipliers prove none.

    For y ≥ 0 on inequalities a·z ≥ b (of any sign on equalities) and t = g + Σ y a: g·z ≤ t·z − Σ y b, and t·z is at
    most what the bounds allow.
    """
    low, high = (side.tolist() for side in bounds)
    ends = (
        [-np.inf if value <= -LARGEST else float(value) for value in low],
        [np.inf if value >= LARGEST else float(value) for value in high],
    )
    right = np.array([float(side) for side in rows.b.tolist()])
    program = linear_program(rows.A, -row.toarray().ravel(), ends, (right, np.where(equality, right, np.inf)))
    program.run()
    if program.getModelStatus() != OPTIMAL:
        return None
    proposed = np.array(program.getSolution().row_dual)
    best: Fraction | None = None
    for denominator in DENOMINATORS:
        y = {i: Fraction(float(proposed[i])).limit_denominator(denominator) for i in np.flatnonzero(proposed).tolist()}
        above = _weak_duality(rows, (low, high), row, {i: v for i, v in y.items() if v > 0 or equality[i]})
        if above is not None and (best is None or above < best):
            best = above
    return best


def _weak_duality(
    rows: Rows, bounds: tuple[list[Any], list[Any]], row: sparse.csr_array, y: dict[int, Fraction]
) -> Fraction | None:
    """The upper bound that multipliers prove; None where a value has no bound."""
    total = {int(j): Fraction(int(g)) for j, g in zip(row.indices, row.data, strict=True)}
    bound = Fraction(0)
    for i, many in y.items():
        bound -= many * Fraction(rows.b[i : i + 1].tolist()[0])
        for k in range(rows.A.indptr[i], rows.A.indptr[i + 1]):
            j = int(rows.A.indices[k])
            total[j] = total.get(j, Fraction(0)) + many * int(rows.A.data[k])
    for j, t in total.items():
        end = bounds[1 if t > 0 else 0][j]
        if t and abs(end) >= LARGEST:
            return None
        bound += t * Fraction(end) if t else 0
    return bound
