"""Public tables: whole tables that satisfy what must hold and share the figures that are published exactly.

They are found by linear programs that see the held figures and the bounds, and nothing else of the data.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from holdfast.arguments import LARGEST, Refused
from holdfast.arrays import Ints
from holdfast.exact.solver import linear_program, solved
from holdfast.given.problem import Problem
from holdfast.randomness import seeded

#: How many corners are looked for, and nodes of branch and bound and steps of the simplex method for each: amounts of
#: work and no time, since they decide what is measured, and with it how long walks are and whether they are refused.
CORNERS, NODES, STEPS = 4, 500, 200_000
NO_TABLE = "no public table was found at which the walk can be measured: use onto(), or ask for fewer constraints"


def public_tables(problem: Problem, held: Ints) -> list[Ints]:
    """A few different whole tables with these held figures, at corners of what bounds and inequalities allow."""
    system, n = problem.system, problem.law.n
    low, high = system.integer_bounds(problem.unit)
    equal = problem.space.rows
    # A cell is pulled towards a bound it has, so that every program has an end.
    words = seeded(CORNERS).uniforms(CORNERS * n).reshape(CORNERS, n)
    pull = np.where(low > -LARGEST, 1.0, 0.0) - np.where(high < LARGEST, 1.0, 0.0)
    both = (low > -LARGEST) & (high < LARGEST)
    found: dict[bytes, Ints] = {}
    for costs in np.where(both, 2 * words - 1, words * pull):
        values = solved(_program(problem, held, costs, whole=True, mip_max_nodes=NODES))
        if values is not None and np.abs(values).max(initial=0.0) < 2.0**53:
            table = np.rint(values).astype(np.int64)
            if np.array_equal(equal @ table, held) and system.holds(table, problem.unit):
                found[table.tobytes()] = table
    if not found:
        raise Refused(NO_TABLE)
    return list(found.values())


def _program(problem: Problem, held: Ints, costs: Any, **options: Any) -> Any:
    """The tables with these held figures, the values of `problem.space.rows`, within bounds and inequalities."""
    low, high = problem.system.integer_bounds(problem.unit)
    more, limits = problem.system.integer_inequalities(problem.unit)
    ends = np.where(low > -LARGEST, low, -np.inf), np.where(high < LARGEST, high, np.inf)
    sides = np.append(held, limits), np.append(held, np.full(limits.size, np.inf))
    A = sparse.vstack([problem.space.rows, more], format="csr")
    return linear_program(A, costs, ends, sides, simplex_iteration_limit=STEPS, **options)
