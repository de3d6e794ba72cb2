"""What inequalities leave of a null space: which of them can never be slack, and public tables at its corners.

Linear programs see the held figures and the bounds, and nothing else of the data.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from holdfast.arguments import Refused
from holdfast.arrays import Bools, Floats
from holdfast.exact.solver import OPTIMAL, linear_program, solved
from holdfast.given.problem import Problem, Truth
from holdfast.randomness import seeded

#: A slack below this, relative to the figures, counts as none.
TOLERANCE = 1e-7
#: Public tables at corners.
CORNERS = 4
NO_TABLE = "no public table was found at which the chains can be measured: use onto(), or ask for fewer constraints"


@dataclass(frozen=True, eq=False)
class Polytope:
    """Tables z with A z = held and low ≤ (z, G z) ≤ high: outputs first, then the inequalities that are no bounds."""

    rows: sparse.csr_array
    held: Floats
    more: sparse.csr_array
    low: Floats
    high: Floats

    @classmethod
    def of(cls, problem: Problem, truth: Truth) -> Polytope:
        """Read the held figures from the truth; no truth is needed where nothing but equalities holds."""
        system, unit, n = problem.system, float(problem.unit), problem.law.n
        low, high = system.real_bounds()
        more = system.inequalities
        limits = np.array([float(value) for value in more.b]) / unit
        centre = np.zeros(n) if truth is None else np.asarray(truth, dtype=np.float64)
        return cls(
            problem.space.rows,
            np.asarray(problem.space.rows @ centre, dtype=np.float64),
            sparse.csr_array(more.A.astype(np.float64)),
            np.concatenate([low / unit, limits]),
            np.concatenate([high / unit, np.full(more.count, np.inf)]),
        )

    @property
    def n(self) -> int:
        return int(self.rows.shape[1])

    def _solved(self, costs: Floats, extra: int = 0, pairs: Any = None) -> Floats | None:
        """Minimise costs over the tables (and `extra` numbers from 0 to 1, each at most a slack); None if unsolved."""
        n, g = self.n, int(self.more.shape[0])
        blocks = [sparse.hstack([self.rows, sparse.csr_array((self.rows.shape[0], extra))], format="csr")]
        blocks.append(sparse.hstack([self.more, sparse.csr_array((g, extra))], format="csr"))
        lower, upper = [self.held, self.low[n:]], [self.held, self.high[n:]]
        if extra:
            signs, places, limits = pairs
            both = sparse.vstack([sparse.eye_array(n), self.more], format="csr")[places]
            blocks.append(sparse.hstack([sparse.diags_array(signs) @ both, -sparse.eye_array(extra)], format="csr"))
            lower.append(signs * limits)
            upper.append(np.full(extra, np.inf))
        A = sparse.vstack(blocks, format="csr")
        ends = np.append(self.low[:n], np.zeros(extra)), np.append(self.high[:n], np.ones(extra))
        solver = linear_program(A, costs, ends, (np.concatenate(lower), np.concatenate(upper)))
        values = solved(solver)
        return values if solver.getModelStatus() == OPTIMAL else None

    def interior(self) -> tuple[Bools, Floats | None]:
        """Tell for each bound, low ones first, whether no table has it slack; and a table with all others slack.

        The table is public: it depends on the held figures alone. None where there is no bound.
        """
        limits = np.concatenate([self.low, self.high])
        signs = np.repeat([1.0, -1.0], self.low.size)
        places = np.tile(np.arange(self.low.size), 2)
        open_bounds = np.flatnonzero(np.isfinite(limits))
        size = TOLERANCE * max(1.0, float(np.abs(self.held).max(initial=0.0)))
        tables = []
        while open_bounds.size:
            pairs = signs[open_bounds], places[open_bounds], limits[open_bounds]
            costs = np.concatenate([np.zeros(self.n), -np.ones(open_bounds.size)])
            found = self._solved(costs, open_bounds.size, pairs)
            if found is None:
                raise Refused(NO_TABLE)
            tables.append(found[: self.n])
            slack = found[self.n :] > size
            if not slack.any():
                break
            open_bounds = open_bounds[~slack]
        tight = np.zeros(limits.size, dtype=bool)
        tight[open_bounds] = True
        # Every bound that is not tight is slack in one of the tables, so it is in their mean.
        return tight, np.mean(tables, axis=0) if tables else None

    def corners(self) -> list[Floats]:
        """A few tables at corners, and the one in their middle."""
        low, high = self.low[: self.n], self.high[: self.n]
        shares = seeded(CORNERS).uniforms(CORNERS * self.n).reshape(CORNERS, self.n)
        # An output is pulled towards a bound that it has, so that most programs have an end.
        pull = np.isfinite(low) * 1.0 - np.isfinite(high) * 1.0
        costs = np.where(np.isfinite(low) & np.isfinite(high), 2 * shares - 1, shares * pull)
        found = [table for each in (*costs, np.zeros(self.n)) if (table := self._solved(each)) is not None]
        if not found:
            raise Refused(NO_TABLE)
        return [*found, np.mean(found, axis=0)]
