"""Calls of Clarabel (least squares) and HiGHS (L1, whole numbers). They propose moves and prices; others test them.

Programs are scaled to units of the table, and what a solver cannot finish is refused.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import Any

import clarabel
import highspy
import numpy as np
import numpy.typing as npt
from scipy import linalg, sparse

from holdfast.arguments import LARGEST, Refused
from holdfast.constraints.solver import quiet_solver
from holdfast.imaging.closing import UNSOLVED
from holdfast.imaging.grid import Floats, Ints, Task

#: Seconds given to one program in whole numbers.
PATIENCE = 60.0
#: Rows up to which a solver's point is polished.
MOST_POLISHED = 2_000


@dataclass(frozen=True, eq=False)
class Proposal:
    """Moves in steps, and prices of the equalities and of the inequalities (zeros where there are none known)."""

    moves: Floats
    prices: tuple[Floats, Floats]


def least_squares(task: Task) -> Proposal:
    """The real moves with the least Σ w x²."""
    scale = float(1 / task.grid)
    low, high = (bound / scale for bound in task.real_bounds)
    below, above = np.flatnonzero(np.isfinite(low)), np.flatnonzero(np.isfinite(high))
    right = np.concatenate([task.gap / scale, -task.least / scale, -low[below], high[above]])
    solver = _kept_solver(task, below, above, right)
    found: Any = solver.solve()
    if found.status not in (clarabel.SolverStatus.Solved, clarabel.SolverStatus.AlmostSolved):
        raise Refused(UNSOLVED)
    duals = np.array(found.z) * scale  # the slope of Σ w x² in steps
    count, more = task.gap.size, task.gap.size + task.least.size
    proposal = Proposal(np.array(found.x) * scale, (-duals[:count], duals[count:more]))
    pressed = np.zeros(task.start.size)
    pressed[below], pressed[above] = duals[more : more + below.size], duals[more + below.size :]
    return _polished(task, proposal, pressed) or proposal


def _polished(task: Task, found: Proposal, pressed: Floats) -> Proposal | None:
    """The same point to the last digits: least squares with what presses kept tight; None where signs turn round.

    An interior-point solver stops a little inside. `pressed` holds the prices of the bounds.
    """
    shape = task.shape
    if (shape.weights == 0).any():
        return None
    slack = shape.inequalities.A @ found.moves - task.least
    tight = np.flatnonzero(found.prices[1] > np.maximum(slack, 0.0))
    rows = sparse.csr_array(sparse.vstack([shape.rows, shape.inequalities.A[tight]], format="csr")).astype(np.float64)
    if rows.shape[0] > MOST_POLISHED:
        return None
    low, high = task.real_bounds
    room = np.minimum(found.moves - low, high - found.moves)
    held = pressed > np.maximum(room, 0.0)
    moves = np.where(held, np.where(found.moves - low < high - found.moves, low, high), 0.0)
    spreads = np.where(held, 0.0, 0.5 / shape.weights)
    asked = np.concatenate([task.gap, task.least[tight]]).astype(np.float64)
    gram = (rows @ sparse.diags_array(spreads, format="csr") @ rows.T).toarray()
    prices = linalg.lstsq(gram, asked - rows @ moves)[0]
    moves = moves + spreads * (rows.T @ prices)
    blur = 1e-9 * (1.0 + np.abs(found.moves))
    count = task.gap.size
    inside = ((moves >= low - blur) & (moves <= high + blur)).all()
    if not inside or (prices[count:] < -1e-9 * (1 + np.abs(prices).max(initial=0.0))).any():
        return None
    if (np.abs(rows @ moves - asked) > 1e-9 * (1.0 + abs(rows) @ np.abs(moves))).any():
        return None
    more = np.zeros(task.least.size)
    more[tight] = prices[count:]
    return Proposal(moves, (prices[:count], more))


def _kept_solver(task: Task, below: Ints, above: Ints, right: Floats) -> Any:
    """The solver of this problem with its factorisation's plan; only right-hand sides change from table to table.

    Each thread has its own. An interior-point solver starts afresh every time, so no table leaves a trace in it.
    """
    shape = task.shape
    key = (threading.get_ident(), below.tobytes(), above.tobytes())
    kept: dict[Any, Any] = shape.__dict__.setdefault("_quadratic", {})
    if key in kept:
        kept[key].update(b=right)
        return kept[key]
    n = task.start.size
    unit = sparse.identity(n, format="csr")
    rows, more = shape.rows.astype(np.float64), shape.inequalities.A.astype(np.float64)
    matrix = sparse.vstack([rows, -more, -unit[below], unit[above]], format="csc")
    cones = [clarabel.ZeroConeT(task.gap.size), clarabel.NonnegativeConeT(right.size - task.gap.size)]
    settings = clarabel.DefaultSettings()
    settings.verbose, settings.presolve_enable, settings.max_threads = False, False, 1
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-11
    weights = sparse.csc_matrix(sparse.diags_array(2 * shape.weights))
    made = clarabel.DefaultSolver(weights, np.zeros(n), sparse.csc_matrix(matrix), right, cones, settings)
    kept[key] = made
    return made


def least_absolute(task: Task, *, whole: bool) -> tuple[Proposal, bool]:
    """The moves with the least Σ w|x|, and whether the solver proved it; x = up − down, each 0 or more."""
    shape, scale = task.shape, float(1 / task.grid)
    low, high = (bound / scale for bound in task.real_bounds)
    rows = sparse.csr_array(sparse.vstack([shape.rows, shape.inequalities.A], format="csr")).astype(np.float64)
    matrix = sparse.hstack([rows, -rows], format="csr")
    ends = (
        np.concatenate([np.maximum(low, 0.0), np.maximum(-high, 0.0)]),
        np.concatenate([np.maximum(high, 0.0), np.maximum(-low, 0.0)]),
    )
    n = task.start.size
    solver = _linear(task, matrix, ends, np.tile(shape.weights, 2), range(2 * n), whole)
    values = np.array(solver.getSolution().col_value)
    duals = np.array(solver.getSolution().row_dual)
    if duals.size != rows.shape[0] or whole:
        duals = np.zeros(rows.shape[0])
    moves = (values[:n] - values[n:]) * scale
    count = task.gap.size
    return Proposal(moves, (duals[:count], duals[count:])), _optimal(solver)


def whole_squares(task: Task, low: Ints, high: Ints) -> tuple[Ints, bool] | None:
    """The whole moves within a window with the least Σ w x², and whether the solver proved it; None if it has none.

    The cost at whole moves is piecewise linear: one unit step after the other, each dearer than the one before.
    """
    shape, n = task.shape, task.start.size
    stepped = np.flatnonzero((shape.weights > 0) & (low < high))
    counts = (high - low)[stepped]
    output = np.repeat(stepped, counts)
    place = np.arange(output.size) - np.repeat(np.cumsum(counts) - counts, counts)
    costs = shape.weights[output] * (2.0 * (low[output] + place) + 1.0)
    rows = sparse.vstack([shape.rows, shape.inequalities.A], format="csr").astype(np.float64)
    # x − Σ steps = low at outputs with a cost; steps lie in [0, 1] and x is whole, so they are filled in order.
    tied = sparse.identity(n, format="csr")[stepped]
    to_step = sparse.csr_array(
        (-np.ones(output.size), (np.repeat(np.arange(stepped.size), counts), np.arange(output.size))),
        shape=(stepped.size, output.size),
    )
    no_steps = sparse.csr_array((rows.shape[0], output.size))
    matrix = sparse.block_array([[rows, no_steps], [tied, to_step]])
    ends = (
        np.concatenate([np.where(low <= -LARGEST, -np.inf, low), np.zeros(output.size)]),
        np.concatenate([np.where(high >= LARGEST, np.inf, high), np.ones(output.size)]),
    )
    sides = (low[stepped].astype(np.float64), low[stepped].astype(np.float64))
    cost = np.concatenate([np.zeros(n), costs])
    try:
        solver = _linear(task, sparse.csr_array(matrix), ends, cost, range(n), True, sides)
    except Refused:
        return None
    values = np.array(solver.getSolution().col_value)[:n]
    return np.rint(values).astype(np.int64), _optimal(solver)


def _linear(
    task: Task,
    matrix: sparse.csr_array,
    ends: tuple[Floats, Floats],
    cost: Floats,
    columns: range,
    whole: bool,
    more: tuple[Floats, Floats] | None = None,
) -> Any:
    """Solve a linear program with the task's rows, and more; the first `columns` are whole if `whole`."""
    scale = float(1 / task.grid)
    none = np.zeros(0)
    extra = more if more is not None else (none, none)
    program = highspy.HighsLp()
    program.num_row_, program.num_col_ = matrix.shape
    program.col_cost_ = cost
    program.col_lower_, program.col_upper_ = ends
    program.row_lower_ = np.concatenate([task.gap / scale, task.least / scale, extra[0]])
    program.row_upper_ = np.concatenate([task.gap / scale, np.full(task.least.size, np.inf), extra[1]])
    program.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
    program.a_matrix_.start_ = matrix.indptr.astype(np.int32)
    program.a_matrix_.index_ = matrix.indices.astype(np.int32)
    program.a_matrix_.value_ = matrix.data
    if whole:
        kinds = np.full(matrix.shape[1], highspy.HighsVarType.kContinuous, dtype=object)
        kinds[columns.start : columns.stop] = highspy.HighsVarType.kInteger
        program.integrality_ = kinds.tolist()
    solver = quiet_solver(
        time_limit=PATIENCE,
        mip_rel_gap=0.0,
        mip_abs_gap=1e-9,
        primal_feasibility_tolerance=1e-10,
        dual_feasibility_tolerance=1e-10,
    )
    if not whole:
        solver.setOptionValue("presolve", "off")  # twin columns are what presolve is worst at
    solver.passModel(program)
    solver.run()
    values: npt.NDArray[Any] = np.array(solver.getSolution().col_value)
    has_point = solver.getInfo().primal_solution_status == highspy.kSolutionStatusFeasible
    if not has_point or values.size != matrix.shape[1] or not np.isfinite(values).all():
        raise Refused(UNSOLVED)
    return solver


def _optimal(solver: Any) -> bool:
    return bool(solver.getModelStatus() == highspy.HighsModelStatus.kOptimal)
