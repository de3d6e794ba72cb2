"""The gauge ‖u‖_K of a convex hull of differences, and membership in it, by linear programs (THEORY §6).

K = conv(± points): ‖u‖_K is the least ‖z‖₁ with points·z = u. K = conv(differences of two points): the least ½‖z‖₁
with points·z = u and Σz = 0.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy import linalg

from holdfast.arrays import Floats, Ints
from holdfast.exact.solver import OPTIMAL, linear_program

#: A point farther from the span of K than this part of its length is outside; so near 1 a gauge counts as 1.
NEAR = 1e-9


def gauge(points: Floats, pairs: bool, point: Floats) -> float:
    """‖u‖_K for K = conv(± the columns of `points`), or of their differences (`pairs`); inf outside its span."""
    return float(gauges(points, pairs, point[None])[0])


def contains(points: Floats, pairs: bool, point: Floats) -> bool:
    """Whether a point lies in K, up to rounding."""
    return gauge(points, pairs, point) <= 1 + NEAR


def gauges(points: Floats, pairs: bool, targets: Floats) -> Floats:
    """‖u‖_K for every row u; one program, whose right-hand side changes."""
    count = points.shape[1]
    centre = points.mean(axis=1, keepdims=True) if pairs else np.zeros((len(points), 1))
    # Rows that depend on others disturb the solver: the equalities are written in a basis of the span.
    left, lengths, _ = linalg.svd(points - centre, full_matrices=False)
    basis = left[:, : int((lengths > NEAR * lengths.max(initial=0.0)).sum())]
    table = basis.T @ np.hstack([points - centre, centre - points])
    if pairs:
        table = np.vstack([table, np.repeat([1.0, -1.0], count)])
    solver = _solver(table, 0.5 if pairs else 1.0)
    found = np.empty(len(targets))
    for k, target in enumerate(targets):
        length = float(np.linalg.norm(target))
        inside = basis.T @ target
        if length == 0.0 or np.linalg.norm(target - basis @ inside) > NEAR * length:
            found[k] = 0.0 if length == 0.0 else math.inf
            continue
        _solve(solver, inside / length)
        found[k] = solver.getInfo().objective_function_value * length
    return found


def corners_towards(points: Floats, target: Floats) -> Ints:
    """The corners of the facet of conv(± points) that a ray meets; numbers from the count on are opposite points."""
    solver = _solver(np.hstack([points, -points]), 1.0)
    _solve(solver, target / np.linalg.norm(target))
    return np.flatnonzero(np.array(solver.getSolution().col_value) > 0)


def _solver(table: Floats, cost: float) -> Any:
    """The program: least cost·Σz with table·z = 0 and z ≥ 0."""
    near = {"primal_feasibility_tolerance": NEAR, "dual_feasibility_tolerance": NEAR}
    return linear_program(table, cost, (0.0, np.inf), (0.0, 0.0), **near)


def _solve(solver: Any, right: Floats) -> None:
    """Solve with this right-hand side on the first rows."""
    for row, value in enumerate(right.tolist()):
        solver.changeRowBounds(row, value, value)
    solver.run()
    if solver.getModelStatus() != OPTIMAL:
        raise RuntimeError("a gauge was not found by the solver; this is a fault of holdfast")
