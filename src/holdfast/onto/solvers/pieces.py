"""Whole moves as a linear program in pieces: at given prices every output has its best whole move by itself, and a
model says what it costs to leave it.

For prices p of the equalities, m ≥ 0 of the inequalities and c = Aᵀp + Gᵀm, every allowed whole point has

    Σ f_i(x_i)  =  bound + m·(G x − h) + Σ_i excess_i(x_i),   excess_i(x) = f_i(x) − c_i x − min over whole moves ≥ 0 .

The pieces of the model are the slopes of the excess on both sides of the best move, so its numbers are small however
far points are moved. An excess above Δ at one output leaves nothing below bound + Δ: that gives every output a window.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import highspy
import numpy as np
from scipy import sparse

from holdfast.arrays import Floats, Ints
from holdfast.constraints.system.rows import products
from holdfast.exact.solver import OPTIMAL, linear_program
from holdfast.exact.solver import solved as run
from holdfast.onto.grid.checker import lower_bound
from holdfast.onto.grid.grid import FAR, Task

#: Tolerance of rows in a program.
TOLERANCE = 1e-9


@dataclass(frozen=True, eq=False)
class Centre:
    """Prices, the best whole move of every output at these prices, and the bound they prove for all allowed points."""

    task: Task
    prices: tuple[Floats, Floats]
    slopes: Floats
    moves: Ints
    bound: float

    @classmethod
    def of(cls, task: Task, prices: tuple[Floats, Floats], known: float, near: Floats) -> Centre:
        """Measure prices; the bound is for points that cost less than `known`. Outputs without a cost stay `near`."""
        rows, more = task.shape.in_doubles
        positive = np.maximum(prices[1], 0.0)
        slopes = np.asarray(task.shape.turned[0] @ prices[0] + task.shape.turned[1] @ positive)
        weights = task.shape.weights
        with np.errstate(divide="ignore", invalid="ignore"):
            best = np.rint(slopes / (2 * weights))
        if task.problem.norm == "l1":  # at slopes ±w all moves on one side cost the same
            best = np.where((np.abs(slopes) >= weights * (1 - 1e-7)) & (near * slopes > 0), near, 0.0)
        best = np.where(weights > 0, best, near)
        moves = np.clip(np.rint(np.clip(best, -4e18, 4e18)).astype(np.int64), task.low, task.high)
        sides = (rows, task.gap), (more, task.least)
        bound = lower_bound(
            task.problem.norm, weights, task.real_bounds, *sides, (prices[0], positive), known, whole=True
        )
        return cls(task, (prices[0], positive), slopes, moves, min(bound, known))

    def excess(self, moves: Floats) -> Floats:
        """What each output's moves cost above its best move."""
        weights = self.task.shape.weights

        def cost(x: Floats) -> Floats:
            return np.asarray(weights * (np.abs(x) if self.task.problem.norm == "l1" else x**2) - self.slopes * x)

        return np.maximum(cost(moves) - cost(self.moves.astype(np.float64)), 0.0)

    def window(self, above: float) -> tuple[Ints, Ints]:
        """The whole moves of each output whose excess is at most `above`, within bounds."""
        return self._end(-1, above), self._end(1, above)

    def _end(self, sign: int, above: float) -> Ints:
        """The last move on one side: the excess is convex, so steps are doubled and then halved."""
        limit = self.task.high if sign > 0 else self.task.low
        reached = self.moves.copy()
        step = np.ones_like(reached)
        open_ = self.task.shape.weights > 0
        for _ in range(40):
            tried = np.where(open_, reached + sign * step, reached)
            fits = open_ & (sign * (limit - tried) >= 0) & (self.excess(tried.astype(np.float64)) <= above)
            if not fits.any():
                break
            reached = np.where(fits, tried, reached)
            step = np.where(fits, step * 2, step)
            open_ = fits
        while (step > 1).any():
            step = np.maximum(step // 2, 1)
            tried = reached + sign * step
            fits = (sign * (limit - tried) >= 0) & (self.excess(tried.astype(np.float64)) <= above)
            reached = np.where(fits & (self.task.shape.weights > 0), tried, reached)
        return np.where(self.task.shape.weights > 0, reached, limit)


@dataclass(frozen=True, eq=False)
class Found:
    """Moves (real ones for a relaxation), whether the solver calls them best, and its prices."""

    moves: Floats
    best: bool
    prices: tuple[Floats, Floats]


def solved(
    centre: Centre, low: Ints, high: Ints, *, whole: bool, nodes: int = 0, enough: float = 0.0, costs: bool = True
) -> Found | None:
    """The cheapest moves in a window, whole or real in pieces; None where the solver finds none.

    The search ends after so many nodes, or when no point can be cheaper by `enough`. Without `costs` any point will do.
    """
    task, n = centre.task, centre.moves.size
    costed = np.flatnonzero(task.shape.weights > 0) if costs else np.zeros(0, dtype=np.int64)
    output, sign, length, cost = _pieces(centre, low, high, costed)
    matrix = _with_pieces(task.shape.stacked, costed, output, sign)
    left = task.gap - products(task.shape.rows, centre.moves[:, None])[:, 0]
    least = task.least - products(task.shape.inequalities.A, centre.moves[:, None])[:, 0]
    zero = np.zeros(costed.size)
    slack_prices = task.shape.turned[1] @ centre.prices[1]
    free = np.where(task.shape.weights > 0, 0.0, -centre.slopes)
    ends = low.astype(np.float64) - centre.moves, high.astype(np.float64) - centre.moves
    far = task.real_bounds
    ends = (
        np.append(np.where(np.isinf(far[0]) & (low <= task.low), -np.inf, ends[0]), 0 * cost),
        np.append(np.where(np.isinf(far[1]) & (high >= task.high), np.inf, ends[1]), length),
    )
    sides = np.concatenate([left, least, zero]), np.concatenate([left, np.full(least.size, np.inf), zero])
    options: dict[str, Any] = {"primal_feasibility_tolerance": TOLERANCE, "dual_feasibility_tolerance": TOLERANCE}
    if whole:
        options |= {"mip_max_nodes": nodes, "mip_rel_gap": 0.0, "mip_abs_gap": enough}
    costs_of = np.append((slack_prices + free) * float(costs), cost)
    kinds = whole & (np.arange(costs_of.size) < n)
    solver = linear_program(matrix, costs_of, ends, sides, whole=kinds, presolve="on" if whole else "off", **options)
    values = run(solver)
    if values is None or solver.getInfo().primal_solution_status != highspy.kSolutionStatusFeasible:
        return None
    duals = np.array(solver.getSolution().row_dual)
    count, both = task.gap.size, task.gap.size + task.least.size
    duals = duals[:both] if duals.size == matrix.shape[0] and not whole else np.zeros(both)
    prices = centre.prices[0] + duals[:count], duals[count:]
    return Found(centre.moves + values[:n], bool(solver.getModelStatus() == OPTIMAL), prices)


def _with_pieces(rows: sparse.csr_array, costed: Ints, output: Ints, sign: Floats) -> sparse.csr_array:
    """The rows, and below them for each output with a cost: its move is the sum of its pieces."""
    count, n = rows.shape
    order = np.argsort(output, kind="stable")
    lengths = 1 + np.bincount(output, minlength=n)[costed]
    first = np.cumsum(lengths) - lengths
    indices, data = np.empty(costed.size + output.size, dtype=np.int64), np.ones(costed.size + output.size)
    pieces = np.ones(indices.size, dtype=bool)
    pieces[first] = False
    indices[first], indices[pieces], data[pieces] = costed, n + order, -sign[order]
    starts = np.concatenate([rows.indptr, rows.nnz + first + lengths])
    entries = np.concatenate([rows.data, data]), np.concatenate([rows.indices, indices]), starts
    return sparse.csr_array(entries, shape=(count + costed.size, n + output.size))


def _pieces(centre: Centre, low: Ints, high: Ints, costed: Ints) -> tuple[Ints, Floats, Floats, Floats]:
    """Output, side, length and slope of all pieces of the excess in a window, in order from the best move outwards."""
    task, x = centre.task, centre.moves
    weights, slopes = task.shape.weights, centre.slopes
    found: list[tuple[Ints, Floats, Floats, Floats]] = []
    for sign, room in ((1, high - x), (-1, x - low)):
        if task.problem.norm == "l1":
            # up to the kink at 0, and beyond it
            towards = np.clip(np.where(sign * x < 0, np.abs(x), 0), 0, room)
            for length, slope in ((towards, -weights), (room - towards, weights)):
                some = costed[(length > 0)[costed]]
                cost = (slope - sign * slopes)[some]
                found.append(
                    (some, np.full(some.size, float(sign)), np.where(length >= FAR, np.inf, length)[some], cost)
                )
            continue
        counts = room[costed]
        output = np.repeat(costed, counts)
        place = np.arange(output.size) - np.repeat(np.cumsum(counts) - counts, counts)
        at = (x[output] + sign * place).astype(np.float64)
        cost = weights[output] * (2.0 * sign * at + 1.0) - sign * slopes[output]
        found.append((output, np.full(output.size, float(sign)), np.ones(output.size), cost))
    joined = [np.concatenate(parts) for parts in zip(*found, strict=True)]
    return joined[0], joined[1], joined[2], joined[3]
