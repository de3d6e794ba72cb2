"""Whether structural parts can hold together: an exact point, or a contradiction proved in exact arithmetic.

A solver's word is never taken for a contradiction. It proposes multipliers (Farkas); they are made rational,
and the contradiction they prove is verified in rationals. What cannot be verified counts as possible.
Searches end after an amount of work, never after a time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import highspy
import numpy as np
from scipy import sparse

from holdfast.arguments import LARGEST
from holdfast.arrays import Bools, Floats, Ints
from holdfast.constraints.possible.propagation import carried, crossing_in_areas, crossing_on_tree, written_later
from holdfast.constraints.system.constraint_system import inequality_rows, part_bounds, solvable
from holdfast.constraints.system.parts import EQUALITIES, Part
from holdfast.constraints.system.rows import Names, Rows, missed_whole
from holdfast.exact.elimination import eliminate
from holdfast.exact.lattice_bases import rational_basis
from holdfast.exact.rationals import ExactVector, compact
from holdfast.exact.solver import OPTIMAL, linear_program

#: Systems with more non-zeros than this are searched for contradictions coordinate by coordinate only.
LARGEST_PROGRAM = 2_000_000
#: Multipliers are tried with these denominators; vertex multipliers of tables have very small ones.
_DENOMINATORS = (1, 2, 12, 2520, 10**6)
#: A multiplier or coefficient below this (relative to the largest) is the solver's rounding error.
_NOISE = 1e-7
#: Steps of a solver times the size of its program: for the first look, which settles nearly all cases that can hold,
#: and for the search for multipliers. What is not decided by then counts as possible.
_GLANCE, _PROOF = 10**9, 10**10
#: Bounds are carried over all rows at most so often, a hierarchy needs twice its depth; and so often over many entries.
_ROUNDS, _FEW_ROUNDS, _MANY_ENTRIES = 64, 6, 1_000_000
#: Systems up to this many non-zeros are searched for whole points; nodes of that search times non-zeros, and the most.
_LARGEST_WHOLE, _NODES, _MOST_NODES = 200_000, 10**7, 20_000


@dataclass(frozen=True, eq=False)
class Model:
    """Structural parts over n coordinates, each row and bound with the number of the part it comes from.

    Equality rows with one coordinate are bounds here. `origins` and `bound_parts` hold numbers of parts (−1:
    none).
    """

    n: int
    rows: Rows
    equality: Bools
    origins: Ints
    lower: ExactVector
    upper: ExactVector
    bound_parts: Ints


@dataclass(frozen=True, eq=False)
class Conflict:
    """A proved contradiction: the numbers of the parts it uses, and the names of the rows."""

    parts: frozenset[int]
    rows: tuple[str, ...] = ()


def model(parts: Sequence[Part], n: int) -> Model:
    lower: ExactVector = np.full(n, -LARGEST, dtype=object)
    upper: ExactVector = np.full(n, LARGEST, dtype=object)
    bound_parts = np.full((2, n), -1, dtype=np.int64)
    blocks: list[tuple[Rows, bool, int]] = []

    def tighten(low: ExactVector, high: ExactVector, number: int) -> None:
        for side, (kept, found) in enumerate(((lower, low), (upper, high))):
            better = np.asarray(found > kept if side == 0 else found < kept, dtype=bool)
            kept[better] = found[better]
            bound_parts[side, better] = number

    def fix(position: int, value: Fraction, number: int) -> None:
        if value > lower[position]:
            lower[position], bound_parts[0, position] = value, number
        if value < upper[position]:
            upper[position], bound_parts[1, position] = value, number

    for number, part in enumerate(parts):
        found = part_bounds(part, n)
        if found is not None:
            tighten(found[0], found[1], number)
        rows = part.rows if part.kind in EQUALITIES else inequality_rows(part)
        if rows is None or rows.count == 0:
            continue
        wide = rows.widened(n)
        if part.kind in EQUALITIES:
            for i in np.flatnonzero(wide.sizes == 1).tolist():
                start, side = wide.A.indptr[i], wide.b[i : i + 1].tolist()[0]
                fix(int(wide.A.indices[start]), Fraction(side) / int(wide.A.data[start]), number)
            wide = wide.chosen(wide.sizes > 1)
        if wide.count:
            blocks.append((wide, part.kind in EQUALITIES, number))
    if blocks:
        A = sparse.csr_array(sparse.vstack([rows.A for rows, _, _ in blocks], format="csr"))
        b = np.concatenate([rows.b for rows, _, _ in blocks])
        names = Names(tuple(block for rows, _, _ in blocks for block in rows.names.blocks))
        stacked = Rows(A, b, names)
    else:
        stacked = Rows.none(n)
    counts = [rows.count for rows, _, _ in blocks]
    equality = np.repeat(np.array([flag for _, flag, _ in blocks], dtype=bool), counts)
    origins = np.repeat(np.array([number for _, _, number in blocks], dtype=np.int64), counts)
    return Model(n, stacked, equality, origins, lower, upper, bound_parts)


def _crossing(found: Model) -> Conflict | None:
    """Return two parts whose bounds on one coordinate exclude each other."""
    crossed = np.flatnonzero(np.asarray(found.lower > found.upper, dtype=bool))
    if crossed.size == 0:
        return None
    return Conflict(frozenset(int(number) for number in found.bound_parts[:, crossed[0]]))


def simple_point(found: Model) -> Ints | None:
    """Return the whole point nearest to zero within the bounds, if it satisfies every row exactly."""
    point = np.zeros(found.n, dtype=np.int64)
    for i in np.flatnonzero(np.asarray((found.lower > 0) | (found.upper < 0), dtype=bool)).tolist():
        low, high = (Fraction(side[i : i + 1].tolist()[0]) for side in (found.lower, found.upper))
        value = -(-low.numerator // low.denominator) if low > 0 else high.numerator // high.denominator
        if not low <= value <= high:
            return None
        point[i] = value
    return point if _satisfies(found, point) else None


def _satisfies(found: Model, point: Ints) -> bool:
    column = point[:, None]
    for equality in (True, False):
        rows = found.rows.chosen(found.equality == equality)
        if missed_whole(rows, column, equality).any():
            return False
    return not bool(np.any(found.lower > point) or np.any(found.upper < point))


def _program(found: Model, work: int, *, elastic: bool = False, integer: bool = False) -> highspy.Highs:
    """Return the linear program "rows and bounds", run; elastic: rows may be missed at a cost of 1 per unit.

    `work` limits the steps of a linear program.
    """
    m, n = found.rows.count, found.n
    extra = m + int(found.equality.sum()) if elastic else 0
    A = found.rows.A.astype(np.float64)
    lengths = np.ones(m) if integer else np.maximum(abs(A).max(axis=1).toarray().ravel(), 1.0)
    A = sparse.csr_array(sparse.diags_array(1 / lengths, format="csr") @ A)
    if elastic:
        missing = sparse.identity(m, format="csr")
        over = missing[:, np.flatnonzero(found.equality)]
        A = sparse.csr_array(sparse.hstack([A, missing, -over], format="csr"))
    side = found.rows.b.astype(np.float64) / lengths
    low, high = found.lower.astype(np.float64), found.upper.astype(np.float64)
    low = np.append(np.where(low <= -LARGEST, -np.inf, low), np.zeros(extra))
    high = np.append(np.where(high >= LARGEST, np.inf, high), np.full(extra, np.inf))
    if integer:
        options = {"mip_max_nodes": min(_MOST_NODES, 10 + _NODES // max(1, A.nnz))}
    else:
        options = {"simplex_iteration_limit": max(100, work // (A.nnz + m + n + extra))}
    costs, sides = np.append(np.zeros(n), np.ones(extra)), (side, np.where(found.equality, side, np.inf))
    solver = linear_program(A, costs, (low, high), sides, whole=integer, **options)
    solver.run()
    return solver


def _solved(solver: Any) -> bool:
    return bool(solver.getModelStatus() == OPTIMAL)


def _multipliers(found: Model) -> Floats | None:
    """Return the solver's proposal of multipliers that prove a contradiction, or None if it sees none."""
    solver = _program(found, _PROOF, elastic=True)
    if not _solved(solver) or solver.getObjectiveValue() <= 0:
        return None
    lengths = np.maximum(abs(found.rows.A.astype(np.float64)).max(axis=1).toarray().ravel(), 1.0)
    y = np.array(solver.getSolution().row_dual) / lengths
    largest = np.max(np.abs(y), initial=0.0)
    if largest == 0:
        return None
    y /= largest
    y[np.abs(y) < _NOISE] = 0.0
    y[~found.equality & (y < 0)] = 0.0
    return np.asarray(y)


def _proof(found: Model, multipliers: dict[int, Fraction]) -> Conflict | None:
    """Verify in rationals that Σ y_i (row i) asks for more than the bounds allow; return what it uses."""
    total: dict[int, Fraction] = {}
    asked = Fraction(0)
    A, sides = found.rows.A, found.rows.b.tolist()  # Python's whole numbers, which do not overflow
    for i, y in multipliers.items():
        if y < 0 and not found.equality[i]:
            return None
        asked += y * sides[i]
        for k in range(A.indptr[i], A.indptr[i + 1]):
            column = int(A.indices[k])
            total[column] = total.get(column, Fraction(0)) + y * int(A.data[k])
    allowed = Fraction(0)
    used = {int(found.origins[i]) for i in multipliers}
    for column, value in total.items():
        if value == 0:
            continue
        side = 1 if value > 0 else 0
        bound = (found.lower, found.upper)[side][column]
        if abs(bound) >= LARGEST:
            return None
        allowed += value * Fraction(int(bound) if isinstance(bound, np.integer) else bound)
        used.add(int(found.bound_parts[side, column]))
    if asked <= allowed:
        return None
    return Conflict(frozenset(used), tuple(found.rows.names[i] for i in sorted(multipliers)))


def _exact_multipliers(found: Model, y: Floats) -> dict[int, Fraction] | None:
    """Solve exactly for multipliers on the solver's support that cancel wherever the solver's cancel."""
    support = np.flatnonzero(y)
    part = sparse.csr_array(found.rows.A[support])
    total = part.T.astype(np.float64) @ y[support]
    size = abs(part.T.astype(np.float64)) @ np.abs(y[support])
    cancelled = np.flatnonzero((size > 0) & (np.abs(total) <= _NOISE * size))
    if support.size > 2000:
        return None
    basis = rational_basis(eliminate(sparse.csr_array(part.T[cancelled])))
    if basis.shape[1] != 1:
        return None
    exact = np.zeros(support.size, dtype=object)
    exact[basis.indices] = basis.data.tolist()
    sign = 1 if float(np.dot(exact.astype(np.float64), y[support])) > 0 else -1
    return {int(i): Fraction(sign * value) for i, value in zip(support, exact, strict=True) if value}


def conflict(parts: Sequence[Part], n: int) -> Conflict | None:
    """Return a proved contradiction between structural parts over n coordinates, or None."""
    if _nothing_excluded(parts):
        return None
    if crossing_in_areas(parts, n):
        return Conflict(frozenset(range(len(parts))))
    if written_later(parts):
        return None
    decided, crossing = crossing_on_tree(parts, n)
    if decided:
        return Conflict(crossing) if crossing else None
    found = model(parts, n)
    crossed = _crossing(found)
    if crossed is not None or found.rows.count == 0 or simple_point(found) is not None:
        return crossed
    if found.rows.A.nnz > LARGEST_PROGRAM:
        return _crossing_after_steps(found)
    glance = _program(found, _GLANCE)
    if _solved(glance):
        return None
    if glance.getModelStatus() == highspy.HighsModelStatus.kInfeasible:
        return _proved(found) or _crossing_after_steps(found)
    # a program that is slow to decide is slower still to explain: long chains, which propagation settles
    return _crossing_after_steps(found) or _proved(found)


def _nothing_excluded(parts: Sequence[Part]) -> bool:
    """Whether 0 everywhere satisfies all parts, told from their sides alone."""
    for part in parts:
        if part.bounds is not None and ((part.bounds.low > 0).any() or (part.bounds.high < 0).any()):
            return False
        if part.rows is not None and ((part.rows.b != 0) if part.kind in EQUALITIES else (part.rows.b > 0)).any():
            return False
    return True


def _values(solver: Any, n: int) -> Floats | None:
    """Return the solver's point, if it has one of a size that doubles tell whole numbers in."""
    values = np.array(solver.getSolution().col_value)[:n]
    if values.size != n or not np.isfinite(values).all() or np.abs(values).max(initial=0.0) >= 2.0**53:
        return None
    return np.asarray(values)


def _rounded(found: Model, near: Floats | None) -> Ints | None:
    """Return the whole point next to a real one, if it satisfies everything exactly."""
    if near is None:
        return None
    point = np.rint(near).astype(np.int64)
    return point if _satisfies(found, point) else None


def _crossing_after_steps(found: Model, *, whole: bool = False) -> Conflict | None:
    """Return a contradiction found by carrying bounds from row to row; it may name more parts than are needed."""
    moved = carried_between(found.rows, found.equality, (found.lower, found.upper), whole=whole)
    if moved is None or (moved[0] <= moved[1]).all():
        return None
    return Conflict(frozenset(found.origins.tolist()) | frozenset(found.bound_parts.ravel().tolist()) - {-1})


def carried_between(
    rows: Rows, equality: Bools, bounds: tuple[ExactVector, ExactVector], *, whole: bool
) -> tuple[Ints, Ints] | None:
    """Bounds after they were carried from row to row; None where numbers are no moderate whole ones."""
    if not rows.count:
        return None
    low, high = (compact(side.tolist(), side.size) for side in bounds)
    if object in (rows.b.dtype, low.dtype, high.dtype):
        return None
    A = sparse.csr_array(sparse.vstack([rows.A, -rows.A[np.flatnonzero(equality)]], format="csr"))
    b = np.concatenate([rows.b, -rows.b[equality]]).astype(np.int64)
    rounds = _ROUNDS if A.nnz <= _MANY_ENTRIES else _FEW_ROUNDS
    return carried(A, b, (low, high), rounds, whole=whole)


def _proved(found: Model) -> Conflict | None:
    """Return a contradiction that follows from multipliers of the rows."""
    y = _multipliers(found)
    if y is None:
        return None
    support = np.flatnonzero(y).tolist()
    for denominator in _DENOMINATORS:
        near = {i: Fraction(float(y[i])).limit_denominator(denominator) for i in support}
        proof = _proof(found, {i: value for i, value in near.items() if value})
        if proof is not None:
            return proof
    exact = _exact_multipliers(found, y)
    return None if exact is None else _proof(found, exact)


def whole_point(parts: Sequence[Part], n: int) -> tuple[Ints | None, bool]:
    """Search for whole numbers that satisfy all parts exactly.

    Return (point, False) if one is found and verified, (None, True) if it is proved that there is none, and
    (None, False) if nothing was decided.
    """
    return whole_point_of(model(parts, n))


def whole_point_of(found: Model) -> tuple[Ints | None, bool]:
    """Search for whole numbers that satisfy a model exactly; the answer is that of `whole_point`."""
    n = found.n
    if _crossing(found) is not None:
        return None, True
    point = simple_point(found)
    if point is not None:
        return point, False
    if found.rows.count == 0:  # then the bounds on some coordinate hold no whole number
        return None, True
    if found.rows.A.nnz > LARGEST_PROGRAM:
        return None, False
    point = _rounded(found, _values(_program(found, _GLANCE), n))
    if point is None and found.rows.A.nnz <= _LARGEST_WHOLE:
        point = _rounded(found, _values(_program(found, _GLANCE, integer=True), n))
    if point is not None:
        return point, False
    none = _crossing_after_steps(found, whole=True) is not None or not _congruent(found) or _proved(found) is not None
    return None, none


def _congruent(found: Model) -> bool:
    """Whether the equalities, with coordinates that have one value, may have a common solution in whole numbers."""
    rows = found.rows.chosen(found.equality)
    if any(Fraction(side).denominator != 1 for side in rows.b.tolist()):
        return False
    return solvable(rows)


def is_searched(parts: Sequence[Part], n: int) -> bool:
    return model(parts, n).rows.A.nnz <= _LARGEST_WHOLE
