"""Calls of Clarabel (least squares) and HiGHS (L1). They propose moves and prices; others test them.

Programs are scaled to units of the table. Where a solver finds nothing the answer is None.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import clarabel
import highspy
import numpy as np
from scipy import linalg, sparse

from holdfast.arrays import Floats, Ints
from holdfast.exact.solver import linear_program, solved
from holdfast.onto.grid.grid import Task

#: How the solver ends near the best point: where bounds are far and moves small, its last digits do not settle.
NEAR = (
    clarabel.SolverStatus.Solved,
    clarabel.SolverStatus.AlmostSolved,
    clarabel.SolverStatus.InsufficientProgress,
)
#: Rows up to which a solver's point is polished.
MOST_POLISHED = 2_000


@dataclass(frozen=True, eq=False)
class Proposal:
    """Moves in steps, and prices of the equalities and of the inequalities (zeros where there are none known)."""

    moves: Floats
    prices: tuple[Floats, Floats]


def least_squares(task: Task) -> Proposal | None:
    """The real moves with the least Σ w x²; None where the solver does not come near them."""
    scale = float(1 / task.grid)
    low, high = (bound / scale for bound in task.real_bounds)
    below, above = np.flatnonzero(np.isfinite(low)), np.flatnonzero(np.isfinite(high))
    right = np.concatenate([task.gap / scale, -task.least / scale, -low[below], high[above]])
    solver = _kept_solver(task, below, above, right)
    found: Any = solver.solve()
    if found.status not in NEAR or not np.isfinite(found.x).all():
        return None
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
    held: Any = shape.inequalities.A[tight]  # the types of stacked matrices take mypy seconds
    rows = sparse.csr_array(sparse.vstack([shape.rows, held], format="csr")).astype(np.float64)
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
    # at corners many prices fit: those that let a bound pull instead of press prove little
    pulls = (2 * shape.weights * moves - rows.T @ prices) * np.where(moves <= low, 1.0, -1.0)
    if (pulls[held] < -1e-9 * (1.0 + np.abs(rows.T @ prices)[held])).any():
        return Proposal(moves, found.prices)
    return Proposal(moves, (prices[:count], more))


def _kept_solver(task: Task, below: Ints, above: Ints, right: Floats) -> Any:
    """The solver of this problem with its factorisation's plan; only right-hand sides change from table to table.

    Each thread has its own. An interior-point solver starts afresh every time, and also the first table's right-hand
    side is handed over as an update, whose rounding differs: so no table leaves a trace in it.
    """
    key, here = (below.tobytes(), above.tobytes()), task.shape.in_thread
    if getattr(here, "key", None) != key:
        here.key, here.solver = key, _new_solver(task, below, above, right)
    here.solver.update(b=right)
    return here.solver


def _new_solver(task: Task, below: Ints, above: Ints, right: Floats) -> Any:
    shape, n = task.shape, task.start.size
    unit = sparse.identity(n, format="csr")
    rows, more = shape.in_doubles
    matrix = sparse.vstack([rows, -more, -unit[below], unit[above]], format="csc")
    cones = [clarabel.ZeroConeT(task.gap.size), clarabel.NonnegativeConeT(right.size - task.gap.size)]
    settings = clarabel.DefaultSettings()
    settings.verbose, settings.presolve_enable, settings.max_threads = False, False, 1
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-11
    weights = sparse.csc_matrix(sparse.diags_array(2 * shape.weights))
    return clarabel.DefaultSolver(weights, np.zeros(n), sparse.csc_matrix(matrix), right, cones, settings)


def least_absolute(task: Task) -> Proposal | None:
    """The real moves with the least Σ w|x|; x = up − down, each 0 or more. None where the solver finds none."""
    shape, scale = task.shape, float(1 / task.grid)
    low, high = (bound / scale for bound in task.real_bounds)
    ends = (
        np.concatenate([np.maximum(low, 0.0), np.maximum(-high, 0.0)]),
        np.concatenate([np.maximum(high, 0.0), np.maximum(-low, 0.0)]),
    )
    n, count = task.start.size, task.gap.size
    sides = np.concatenate([task.gap, task.least]) / scale
    above = np.concatenate([task.gap / scale, np.full(task.least.size, np.inf)])
    found = _linear(shape.twins, ends, np.tile(shape.weights, 2), (sides, above))
    if found is None:
        return None
    values, duals = found
    return Proposal((values[:n] - values[n:]) * scale, (duals[:count], duals[count:]))


def inner_point(task: Task) -> Floats | None:
    """Real moves at which as many rows as possible have slack, up to one unit of the table; None if none are found."""
    shape, scale, n = task.shape, float(1 / task.grid), task.start.size
    low, high = (bound / scale for bound in task.real_bounds)
    rows, more = shape.in_doubles
    unit = sparse.identity(n, format="csr")
    below, above = np.flatnonzero(np.isfinite(low)), np.flatnonzero(np.isfinite(high))
    limits = sparse.csr_array(sparse.vstack([more, unit[below], -unit[above]], format="csr"))
    slack = sparse.csr_array(sparse.identity(limits.shape[0], format="csr"))
    matrix = sparse.csr_array(sparse.block_array([[rows, None], [limits, -slack]], format="csr"))
    asked = np.concatenate([task.gap / scale, task.least / scale, low[below], -high[above]])
    most = np.concatenate([task.gap / scale, np.full(limits.shape[0], np.inf)])
    ends = np.concatenate([low, np.zeros(limits.shape[0])]), np.concatenate([high, np.ones(limits.shape[0])])
    found = _linear(matrix, ends, np.concatenate([np.zeros(n), -np.ones(limits.shape[0])]), (asked, most))
    return None if found is None else found[0][:n] * scale


def _linear(
    matrix: sparse.csr_array, ends: tuple[Floats, Floats], cost: Floats, sides: tuple[Floats, Floats]
) -> tuple[Floats, Floats] | None:
    """Solve a linear program; return its values and the prices of its rows. None where there are none."""
    near = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}
    solver = linear_program(matrix, cost, ends, sides, presolve="off", **near)  # presolve is worst at twin columns
    values, duals = solved(solver), np.array(solver.getSolution().row_dual)
    if values is None or solver.getInfo().primal_solution_status != highspy.kSolutionStatusFeasible:
        return None
    return values, duals if duals.size == matrix.shape[0] and np.isfinite(duals).all() else np.zeros(matrix.shape[0])
