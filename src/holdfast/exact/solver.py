"""HiGHS as everybody here uses it: silent, and one thread, since what runs side by side has threads of its own."""

from __future__ import annotations

from typing import Any

import highspy
import numpy as np
from scipy import sparse

from holdfast.arrays import Floats

#: The rule of presolve that merges parallel rows and columns: undoing it writes to the standard output, silent or not.
PARALLEL_RULE = 1 << 13

OPTIMAL = highspy.HighsModelStatus.kOptimal


def linear_program(A: Any, costs: Any, ends: Any, sides: Any, *, whole: Any = False, **options: Any) -> Any:
    """A new solver, not run yet: least costs·x with sides[0] ≤ A x ≤ sides[1] and ends[0] ≤ x ≤ ends[1].

    A is dense or sparse, (m, n); costs, ends and sides are arrays, or one number for all. `whole` says which columns
    take whole numbers. A search ends after a number of nodes or steps (`mip_max_nodes`, `simplex_iteration_limit`),
    never after a time.
    """
    matrix = sparse.csr_array(A)
    m, n = matrix.shape
    program = highspy.HighsLp()
    program.num_row_, program.num_col_ = m, n
    program.col_cost_ = _filled(costs, n)
    program.col_lower_, program.col_upper_ = (_filled(end, n) for end in ends)
    program.row_lower_, program.row_upper_ = (_filled(side, m) for side in sides)
    program.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
    program.a_matrix_.start_ = matrix.indptr.astype(np.int32)
    program.a_matrix_.index_ = matrix.indices.astype(np.int32)
    program.a_matrix_.value_ = matrix.data.astype(np.float64)
    if np.any(whole):
        kinds = highspy.HighsVarType.kContinuous, highspy.HighsVarType.kInteger
        program.integrality_ = [kinds[int(each)] for each in np.broadcast_to(whole, n)]
    solver: Any = highspy.Highs()  # type: ignore[no-untyped-call]
    for name, value in {"output_flag": False, "threads": 1, "presolve_rule_off": PARALLEL_RULE, **options}.items():
        solver.setOptionValue(name, value)
    solver.passModel(program)
    return solver


def _filled(values: Any, count: int) -> Floats:
    return np.array(np.broadcast_to(values, count), dtype=np.float64)


def solved(solver: Any) -> Floats | None:
    """Run a program; its values, optimal or not, or None where it has none."""
    solver.run()
    values = np.array(solver.getSolution().col_value)
    return values if values.size == solver.getNumCol() and np.isfinite(values).all() else None
