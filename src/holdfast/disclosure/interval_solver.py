"""Programs over all tables that have the figures, and what their multipliers prove in whole numbers.

How much is tried is counted in steps of the solver and never timed: the same figures give the same answer on every
machine, however busy it is.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import highspy
import numpy as np
from scipy import sparse

from holdfast.arguments import LARGEST
from holdfast.arrays import Floats, Ints
from holdfast.disclosure.figures import CellRows, Contradiction
from holdfast.exact.solver import linear_program

#: Entries of rows that the solver touches in a second of an ordinary machine: an iteration touches all of them and as
#: much again as ENTRIES_MORE, and one of branch and bound, with its cuts and heuristics, takes as long as several.
ENTRIES_PER_SECOND, ENTRIES_MORE, OF_BRANCHING = 40_000_000, 1_000, 4
#: Iterations of branch and bound that are expected for each row before it branches, and for each of its nodes.
FIRST_ITERATIONS, NODE_ITERATIONS = 4, 50
#: Multipliers are rounded to fractions with these denominators, one after another.
DENOMINATORS = (1, 2, 3, 4, 12, 60, 2**20)
#: Solvers are right within this.
TOLERANCE = 1e-6


@dataclass(eq=False)
class Effort:
    """How much may still be tried, in seconds of an ordinary machine; what is spent is counted, not timed."""

    total: float
    left: float = field(init=False)

    def __post_init__(self) -> None:
        self.left = self.total

    def remains(self, share: float = 1.0) -> bool:
        return self.total - self.left < share * self.total


@dataclass(frozen=True, eq=False)
class Answer:
    """Where the solver ended: whether at an optimum, the values of the cells, the multipliers of the rows and bounds.

    `value` is what the costs come to, `bound` what branch and bound knows that they come to at least.
    """

    optimal: bool
    values: Floats
    prices: Floats
    value: float
    bound: float


@dataclass(eq=False)
class Programs:
    """The solver with the rows of one part loaded; only costs change between programs."""

    rows: CellRows
    effort: Effort
    solver: Any = field(init=False, default=None)
    costs: Floats = field(init=False)
    integer: bool = field(init=False, default=False)

    @property
    def _step(self) -> float:
        entries = self.rows.A.nnz + self.rows.G.nnz + ENTRIES_MORE
        return entries * (OF_BRANCHING if self.integer else 1) / ENTRIES_PER_SECOND

    def load(self, integer: bool, most: int = LARGEST) -> None:
        """Begin anew, with counts that may be fractions or must be whole; none above `most`."""
        rows = self.rows
        M = sparse.csr_array(sparse.vstack([rows.A, rows.G], format="csr"))
        high = np.minimum(rows.high, most)
        ends = rows.low, np.where(high < LARGEST, high, np.inf)
        sides = np.append(rows.b, rows.h), np.append(rows.b, np.full(rows.h.size, np.inf))
        # only costs change: the last vertex stays a table of reals, and the primal method goes on from it
        options: dict[str, Any] = {} if integer else {"presolve": "off", "simplex_strategy": 4}
        self.costs = np.zeros(rows.n)
        self.solver = linear_program(M, self.costs, ends, sides, whole=integer, **options)
        self.integer = integer

    def run(
        self, costs: Floats, most: float = math.inf, start: Ints | None = None, any_table: bool = False
    ) -> Answer | None:
        """Solve for these costs, with so much effort at most; None where it does not suffice to begin.

        `start`: a whole table to begin with. `any_table`: the first whole table that is found will do.
        """
        allowed = min(most, self.effort.left)
        if not self._limit(allowed):
            return None
        if start is not None:
            known = highspy.HighsSolution()
            known.col_value = start.astype(np.float64).tolist()
            self.solver.setSolution(known)
        if any_table:
            self.solver.setOptionValue("mip_max_improving_sols", 1)
        changed = np.flatnonzero(costs != self.costs).astype(np.int32)
        self.costs = costs
        if changed.size:
            self.solver.changeColsCost(changed.size, changed, costs[changed])
        self.solver.run()
        info, solution = self.solver.getInfo(), self.solver.getSolution()
        self.effort.left -= max(int(info.simplex_iteration_count), 1) * self._step
        status = self.solver.getModelStatus()
        if status == highspy.HighsModelStatus.kInfeasible:
            raise Contradiction
        return Answer(
            status == highspy.HighsModelStatus.kOptimal,
            np.array(solution.col_value),
            np.array(solution.row_dual),
            float(info.objective_function_value),
            float(info.mip_dual_bound),
        )

    def _limit(self, allowed: float) -> bool:
        """Limit the next run in iterations or nodes; say whether it can begin."""
        iterations = allowed / self._step
        if not self.integer:
            self.solver.setOptionValue("simplex_iteration_limit", int(min(iterations, 2**31 - 1)))
            return iterations >= 1
        nodes = (iterations - FIRST_ITERATIONS * (self.rows.A.shape[0] + self.rows.G.shape[0])) / NODE_ITERATIONS
        self.solver.setOptionValue("mip_max_nodes", int(min(max(nodes, 1), 2**31 - 1)))
        return nodes >= 0


def proved(rows: CellRows, cost: Ints, prices: Floats, hoped: int) -> int | None:
    """Return a whole number that cost·x reaches in every table, as near to the hoped one as the prices prove.

    For prices y (not below 0 for inequalities) cost·x ≥ y·(b, h) + Σ_j min over x_j of (cost − yᵀM)_j x_j.
    """
    best = None
    m = rows.A.shape[0]
    for denominator in DENOMINATORS:
        scaled = prices * denominator
        if np.abs(scaled).max(initial=0.0) >= 2.0**40:
            break
        y = np.rint(scaled).astype(np.int64)
        np.maximum(y[m:], 0, out=y[m:])
        rest = cost * denominator - (rows.A.T @ y[:m] + rows.G.T @ y[m:])
        if ((rest < 0) & (rows.high >= LARGEST)).any():
            continue
        ends = np.where(rest < 0, rows.high, rows.low)
        parts = (y[:m], rows.b), (y[m:], rows.h), (rest, ends)
        size = sum(float(np.abs(one).astype(np.float64) @ np.abs(other).astype(np.float64)) for one, other in parts)
        if size >= 2.0**62:
            continue
        total = sum(int(one @ other) for one, other in parts)
        bound = -(-total // denominator)
        best = bound if best is None else max(best, bound)
        if best >= hoped:
            break
    return best
