"""Public tables: whole tables that satisfy what must hold and share the figures that are published exactly.

They are found by linear programs that see the held figures and the bounds, and nothing else of the data.
"""

from __future__ import annotations

from typing import Any

import highspy
import numpy as np
from scipy import sparse

from holdfast.arguments import LARGEST, Refused
from holdfast.arrays import Floats, Ints
from holdfast.constraints.system.rows import divided, raised
from holdfast.exact.solver import quiet_solver
from holdfast.given.problem import Problem
from holdfast.randomness import seeded

#: How many corners are looked for, and nodes of branch and bound and steps of the simplex method for each: amounts of
#: work and no time, since they decide what is measured, and with it how long walks are and whether they are refused.
CORNERS, NODES, STEPS = 4, 500, 200_000
#: Steps of room of a cell, in standard deviations of its noise, and what each unit of it is worth.
ROOM = ((0.25, 16.0), (0.5, 8.0), (0.75, 4.0), (1.5, 2.0), (3.0, 1.0))
NO_TABLE = "no public table was found at which the walk can be measured: use onto(), or ask for fewer constraints"


def public_tables(problem: Problem, truth: Ints) -> list[Ints]:
    """A few different whole tables with the truth's held figures, at corners of what bounds and inequalities allow."""
    system, n = problem.system, problem.law.n
    low, high = system.integer_bounds(problem.unit)
    equal, program = problem.space.rows, _program(problem, truth)
    program.integrality_ = [highspy.HighsVarType.kInteger] * n
    # A cell is pulled towards a bound it has, so that every program has an end.
    words = seeded(CORNERS).uniforms(CORNERS * n).reshape(CORNERS, n)
    pull = np.where(low > -LARGEST, 1.0, 0.0) - np.where(high < LARGEST, 1.0, 0.0)
    both = (low > -LARGEST) & (high < LARGEST)
    found: dict[bytes, Ints] = {}
    for costs in np.where(both, 2 * words - 1, words * pull):
        program.col_cost_ = costs
        solver = quiet_solver(mip_max_nodes=NODES, simplex_iteration_limit=STEPS)
        solver.passModel(program)
        solver.run()
        values = np.array(solver.getSolution().col_value)
        if values.size == n and np.isfinite(values).all() and np.abs(values).max(initial=0.0) < 2.0**53:
            table = np.rint(values).astype(np.int64)
            if not (equal @ (table - truth)).any() and system.holds(table, problem.unit):
                found[table.tobytes()] = table
    if not found:
        raise Refused(NO_TABLE)
    return list(found.values())


def roomy_table(problem: Problem, truth: Ints) -> Floats | None:
    """A real table with the truth's held figures whose cells are far from their bounds; None where none was found.

    Room counts the less the more of it a cell has, in steps of the standard deviation of its noise.
    """
    n, widths = problem.law.n, np.sqrt(problem.law.variances)
    low, high = problem.system.integer_bounds(problem.unit)
    solver = quiet_solver(simplex_iteration_limit=STEPS)
    solver.passModel(_program(problem, truth))
    for k, (length, worth) in enumerate(ROOM, start=1):
        solver.addVars(n, np.zeros(n), length * widths)
        solver.changeColsCost(n, np.arange(k * n, k * n + n, dtype=np.int32), -worth / widths)
    for i in range(n):
        room = np.arange(i, n * (1 + len(ROOM)), n, dtype=np.int32)
        for bound, sign in ((low[i], 1.0), (-high[i], -1.0)):
            if bound > -LARGEST:
                values = np.concatenate([[sign], np.full(len(ROOM), -1.0)])
                solver.addRow(float(bound), highspy.kHighsInf, room.size, room, values)
    solver.run()
    found = np.array(solver.getSolution().col_value)[:n]
    return found if found.size == n and np.isfinite(found).all() else None


def _program(problem: Problem, truth: Ints) -> Any:
    """The tables that share the truth's held figures within bounds and inequalities, without costs."""
    system, n = problem.system, problem.law.n
    low, high = system.integer_bounds(problem.unit)
    equal, more = problem.space.rows, system.inequalities
    held = np.asarray(equal @ truth, dtype=np.float64)
    limits = np.asarray(raised(divided(more.b, problem.unit)), dtype=np.float64)
    A = sparse.csr_array(sparse.vstack([equal, more.A], format="csr"))
    program = highspy.HighsLp()
    program.num_col_, program.num_row_ = n, A.shape[0]
    program.col_lower_ = np.where(low > -LARGEST, low.astype(np.float64), -np.inf)
    program.col_upper_ = np.where(high < LARGEST, high.astype(np.float64), np.inf)
    program.row_lower_ = np.concatenate([held, limits])
    program.row_upper_ = np.concatenate([held, np.full(more.count, np.inf)])
    program.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
    program.a_matrix_.start_ = A.indptr.astype(np.int32)
    program.a_matrix_.index_ = A.indices.astype(np.int32)
    program.a_matrix_.value_ = A.data.astype(np.float64)
    program.col_cost_ = np.zeros(n)
    return program
