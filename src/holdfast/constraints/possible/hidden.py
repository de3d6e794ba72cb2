"""Equalities that inequalities hide: bounds and rows that are tight at every allowed point.

`between(5, 5)`, two opposite rows, or values that are not negative and add up to 0 fix what they speak of. A statement
about records that change it would speak of data that do not exist, so such inequalities become equalities of the system
before anything is promised or drawn. Nothing is taken for an equality without a proof in whole numbers or rationals:
bounds are carried from row to row, opposite rows are compared, and up to hundreds of values a program per row is asked
(`tight_rows`). What is not found stays an inequality.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
from scipy import sparse

from holdfast.arguments import LARGEST
from holdfast.arrays import Bools, Ints
from holdfast.constraints.possible.feasibility import Model, carried_between, whole_point_of
from holdfast.constraints.possible.tight_rows import tight_rows
from holdfast.constraints.system.constraint_system import System
from holdfast.constraints.system.null_space import TreeShape
from holdfast.constraints.system.own_sums import OwnSums
from holdfast.constraints.system.parts import FOLLOWS, Part
from holdfast.constraints.system.rows import Names, Rows, divided, stacked
from holdfast.exact.rationals import ExactVector, compact

Truth = Bools


def revealed(system: System, step: Fraction | None) -> System:
    """Return the system with its hidden equalities as equalities, and without the inequalities that hid them.

    `step`: values are whole multiples of it; None: they are real. The allowed values stay the same. The sides of a
    union keep their form where values are whole, since its price lists or bounds its tables anyway.
    """
    if system.branches:
        return (
            system if step is not None else replace(system, branches=tuple(revealed(b, None) for b in system.branches))
        )
    if not system.has_inequalities or _open_tree(system) or isinstance(system.equalities, OwnSums):
        return system  # of sums that are not written out nothing is found, and what is not found stays as it is
    unit, whole = (Fraction(1), False) if step is None else (step, True)
    bounds = system.integer_bounds(step) if whole else (system.lower, system.upper)
    values, tight = _tight(system, bounds, unit, whole=whole)
    return _with(system, values, tight, unit, whole=whole) if values or tight.any() else system


def _open_tree(system: System) -> bool:
    """Whether the system is one hierarchy with lower bounds only: then every value can grow, and nothing is tight."""
    if (system.upper < LARGEST).any() or system.inequalities.count:
        return False
    rows = [part for part in system.parts if part.rows is not None and part.kind != "invariant"]
    return all(part.kind == "consistent" and isinstance(part.source, TreeShape) for part in rows) and len(rows) == 1


def _tight(
    system: System, bounds: tuple[ExactVector, ExactVector], unit: Fraction, *, whole: bool
) -> tuple[dict[int, Fraction], Truth]:
    """The values, in units, that bounds fix at some positions, and which inequality rows are always tight."""
    rows = stacked([system.equalities, system.inequalities], system.n)
    rows = Rows(rows.A, divided(rows.b, unit), rows.names)
    equality = np.arange(rows.count) < system.equalities.count
    low, high = carried_between(rows, equality, bounds, whole=whole) or bounds
    same = np.flatnonzero(np.asarray((low == high) & (abs(low) < LARGEST), dtype=bool))
    values, always = tight_rows(rows, equality, (low, high), whole=whole)
    always |= _opposite(rows, equality, whole=whole)
    return values | {int(j): Fraction(low[j : j + 1].tolist()[0]) for j in same}, always[~equality]


def _opposite(rows: Rows, equality: Truth, *, whole: bool) -> Truth:
    """Inequality rows a·z ≥ h beside which −a·z ≥ −h is asked for."""
    least: dict[tuple[Any, ...], Fraction] = {}
    keys: dict[int, tuple[Any, ...]] = {}
    for i in np.flatnonzero(~equality & (rows.sizes > 0)).tolist():
        span = slice(int(rows.A.indptr[i]), int(rows.A.indptr[i + 1]))
        columns, data = rows.A.indices[span].tolist(), rows.A.data[span].tolist()
        common = math.gcd(*data)
        key = keys[i] = tuple(sorted((j, a // common) for j, a in zip(columns, data, strict=True)))
        side = Fraction(rows.b[i : i + 1].tolist()[0]) / common
        side = Fraction(math.ceil(side)) if whole else side
        least[key] = max(side, least.get(key, side))
    found = np.zeros(rows.count, dtype=bool)
    for i, key in keys.items():
        found[i] = least.get(tuple((j, -a) for j, a in key)) == -least[key]
    return found


def _with(system: System, values: dict[int, Fraction], tight: Truth, unit: Fraction, *, whole: bool) -> System:
    """The system in which fixed values and tight rows stand among the equalities."""
    parts, n = list(system.parts), system.n
    known = set(system.equalities.chosen(system.equalities.sizes == 1).A.indices.tolist())
    new = np.array(sorted(set(values) - known), dtype=np.int64)
    if new.size:
        A = sparse.csr_array((np.ones(new.size, dtype=np.int64), new, np.arange(new.size + 1)), shape=(new.size, n))
        b = compact((values[int(j)] * unit for j in new), new.size)
        rows = Rows(A, b, Names.numbered("the one value that is left at position {}", new))
        parts.append(Part(_named(system, "bounds that leave one value"), "fixed", 0, n=n, rows=rows, source=FOLLOWS))
    elsewhere = ~np.isin(np.arange(n), [*known, *values])
    rows = system.inequalities.chosen(tight)
    rows = rows.chosen(np.asarray(abs(rows.A) @ elsewhere, dtype=bool) & _first_of_each(rows))  # the others follow
    if rows.count:
        sides = (
            _reached(rows, i, unit) if whole else Fraction(rows.b[i : i + 1].tolist()[0]) for i in range(rows.count)
        )
        made = Rows(rows.A, compact(sides, rows.count), rows.names)
        parts.append(Part(_named(system, "rows that are always tight"), "equals", 0, n=n, rows=made, source=FOLLOWS))
    lower, upper, at = system.lower.copy(), system.upper.copy(), list(values)
    lower[at], upper[at] = -LARGEST, LARGEST
    return replace(System.of(parts, n), inequalities=system.inequalities.chosen(~tight), lower=lower, upper=upper)


def _named(system: System, what: str) -> str:
    """The name of what was found, behind those of the parts that hid it."""
    kinds = {"nonnegative", "between", "ordered", "at_least"}
    return f"{', '.join(part.name for part in system.parts if part.kind in kinds)} ({what})"


def _first_of_each(rows: Rows) -> Truth:
    """Whether a row is the first one of its direction, forwards or backwards."""
    seen: set[tuple[Any, ...]] = set()
    first = []
    starts, columns, data = rows.A.indptr.tolist(), rows.A.indices.tolist(), rows.A.data.tolist()
    for start, end in itertools.pairwise(starts):
        common = math.gcd(*data[start:end]) * (1 if data[start] > 0 else -1)
        key = (*columns[start:end], *(a // common for a in data[start:end]))
        first.append(key not in seen)
        seen.add(key)
    return np.array(first, dtype=bool)


def _reached(rows: Rows, i: int, unit: Fraction) -> Fraction:
    """The least value at or above its side that row i takes at whole multiples of the unit."""
    step = unit * math.gcd(*rows.A.data[rows.A.indptr[i] : rows.A.indptr[i + 1]].tolist())
    return math.ceil(Fraction(rows.b[i : i + 1].tolist()[0]) / step) * step


#: Values up to which a pair is searched; up to so many among all listed changes, in larger systems among a few.
MOST_VALUES, FEW_VALUES, FEW_CHANGES = 1_000, 40, 32
#: Changes of which no more are listed.
MOST_CHANGES = 600


def none_possible(system: System, own: Rows, changes: Ints, unit: Fraction, *, complete: bool) -> bool | None:
    """Tell whether it is proved that no whole z and z + d, in units, both satisfy the system, for any listed change d.

    `own` are equalities of the answer itself. Changes (count, n) that break an equality or an invariant do not count.
    False where a pair is known, or where not even one whole z satisfies it: that is refused elsewhere, by name. None
    where nothing was decided, as where the list is not `complete`.
    """
    if system.branches or system.n > MOST_VALUES:
        return None
    equal = stacked([system.equalities, own], system.n)
    kept = ~np.asarray(equal.A @ changes.T).any(axis=0) & ~np.asarray(system.invariants.A @ changes.T).any(axis=0)
    rows = stacked([equal, system.inequalities], system.n)
    rows = Rows(rows.A, divided(rows.b, unit), rows.names)
    equality = np.arange(rows.count) < equal.count
    bounds, moving = system.integer_bounds(unit), changes[kept & changes.any(axis=1)]
    most = len(moving) if system.n <= FEW_VALUES else FEW_CHANGES
    apart = []
    for change in moving[:most]:
        point, none = _between(rows, equality, bounds, change)
        if point is not None:
            return False
        apart.append(none)
    if not all(apart) or len(moving) > most or not complete:
        return None
    return not _between(rows, equality, bounds, np.zeros(system.n, dtype=np.int64))[1]


def _between(rows: Rows, equality: Bools, bounds: tuple[Ints, Ints], change: Ints) -> tuple[Ints | None, bool]:
    """A whole z for which z and z + change both satisfy rows and bounds, or whether it is proved that there is none."""
    low, high = bounds
    # z and z + d satisfy g·z ≥ h if and only if g·z ≥ h + max(0, −g·d)
    more = np.where(equality, 0, np.maximum(0, -np.asarray(rows.A @ change)))
    lower = np.where(low > -LARGEST, low + np.maximum(0, -change), low)
    upper = np.where(high < LARGEST, high - np.maximum(0, change), high)
    origins, parts = np.zeros(rows.count, dtype=np.int64), np.zeros((2, change.size), dtype=np.int64)
    found = Model(change.size, Rows(rows.A, rows.b + more, rows.names), equality, origins, lower, upper, parts)
    return whole_point_of(found)
