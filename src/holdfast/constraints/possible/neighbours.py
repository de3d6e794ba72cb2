"""Whether two possible answers can differ by one of some changes: otherwise a statement about them is about nothing."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from holdfast.arguments import LARGEST
from holdfast.arrays import Bools, Ints
from holdfast.constraints.possible.feasibility import Model, whole_point_of
from holdfast.constraints.system.rows import Rows, divided, stacked
from holdfast.constraints.system.system import System

#: Systems and lists of changes up to this size are searched for a pair; in larger ones a pair is taken for granted.
MOST_VALUES, MOST_CHANGES = 40, 600


def none_possible(system: System, own: Rows, changes: Ints, unit: Fraction) -> bool:
    """Tell whether it is proved that no whole z and z + d, in units, both satisfy the system, for any listed change d.

    `own` are equalities of the answer itself. Changes (count, n) that break an equality or an invariant do not count.
    False where not even one whole z satisfies it: that is refused elsewhere, by name.
    """
    if system.branches or system.n > MOST_VALUES or len(changes) > MOST_CHANGES:
        return False
    equal = stacked([system.equalities, own], system.n)
    kept = ~np.asarray(equal.A @ changes.T).any(axis=0) & ~np.asarray(system.invariants.A @ changes.T).any(axis=0)
    rows = stacked([equal, system.inequalities], system.n)
    rows = Rows(rows.A, divided(rows.b, unit), rows.names)
    equality = np.arange(rows.count) < equal.count
    bounds, moving = system.integer_bounds(unit), changes[kept & changes.any(axis=1)]
    if any(not _apart(rows, equality, bounds, change) for change in moving):
        return False
    return not _apart(rows, equality, bounds, np.zeros(system.n, dtype=np.int64))


def _apart(
    rows: Rows,
    equality: Bools,
    bounds: tuple[Ints, Ints],
    change: Ints,
) -> bool:
    """Whether it is proved that no z and z + change both satisfy rows and bounds."""
    low, high = bounds
    # z and z + d satisfy g·z ≥ h if and only if g·z ≥ h + max(0, −g·d)
    more = np.where(equality, 0, np.maximum(0, -np.asarray(rows.A @ change)))
    lower = np.where(low > -LARGEST, low + np.maximum(0, -change), low)
    upper = np.where(high < LARGEST, high - np.maximum(0, change), high)
    origins, parts = np.zeros(rows.count, dtype=np.int64), np.zeros((2, change.size), dtype=np.int64)
    found = Model(change.size, Rows(rows.A, rows.b + more, rows.names), equality, origins, lower, upper, parts)
    return whole_point_of(found)[1]
