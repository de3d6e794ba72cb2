"""The ranges of sums of cells by linear programs, and by branch and bound where these leave something open.

A bound is entered only with a proof in whole numbers: the program's multipliers are rounded to simple fractions, and
what they prove is computed exactly. An end of a range counts as attained only by a table of whole counts that has all
figures, checked exactly; a walk from one such table finds many. Programs are solved for what these two leave open, each
from the last one's vertex. Branch and bound decides which outputs are pinned, and the ends of narrow ranges.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, field
from typing import Any

import highspy
import numpy as np
import numpy.typing as npt
from scipy import sparse
from scipy.sparse import csgraph

from holdfast.arguments import LARGEST, Refused
from holdfast.arrays import Ints
from holdfast.disclosure.figures import SAFE, TOO_LARGE, CellRows, Contradiction
from holdfast.disclosure.walk import moves_of, walk
from holdfast.exact.solver import linear_program

#: Multipliers are rounded to fractions with these denominators, one after another.
DENOMINATORS = (1, 2, 3, 4, 12, 60, 2**20)
#: Directions tried at first: their vertices attain many ends at once.
DIRECTIONS = 8
#: Walks from the first whole table that is found, and searches for tables in which many values differ from it, with
#: the seconds that each may take.
WALKS, SEARCHES, SEARCH_TIME = 4, 6, 2.0
#: The widest range whose ends are settled by branch and bound although it is not pinned, and the part of the time that
#: all such ranges together may take it to.
NARROW, NARROW_TIME = 3, 0.25
#: Parts with more cells than this are left with the bounds that were carried from row to row.
MOST_CELLS = 100_000
#: Solvers are right within this.
TOLERANCE = 1e-6


@dataclass(frozen=True, eq=False)
class Ranges:
    """Least and largest values, 2**62 for no limit; whether tables attain both, and whether two tables differ."""

    low: Ints
    high: Ints
    attained: npt.NDArray[np.bool_]
    varies: npt.NDArray[np.bool_]


def ranges(rows: CellRows, targets: sparse.csr_array, seconds: float) -> Ranges:
    """Return the ranges of the targets (m, cells) over all whole tables; what time leaves open may be too wide."""
    start = time.monotonic()
    largest = np.maximum(rows.low, np.where(rows.high < LARGEST, rows.high, 0)).astype(np.float64)
    if any((abs(of.astype(np.float64)) @ largest).max(initial=0.0) >= SAFE for of in (rows.A, rows.G, targets)):
        raise Refused(TOO_LARGE)
    settled = rows.low == rows.high
    low = np.asarray(targets[:, settled] @ rows.low[settled], dtype=np.int64).ravel()
    high = low.copy()
    attained = np.ones(low.size, dtype=bool)
    endless, bottomless, varies = (np.zeros(low.size, dtype=bool) for _ in range(3))
    for block in _blocks(rows, targets):
        block.solve(start + seconds, start + NARROW_TIME * seconds)
        low[block.owners] += np.where(block.low > -LARGEST, block.low, 0)[block.which]
        bottomless[block.owners] |= block.low[block.which] <= -LARGEST
        endless[block.owners] |= block.high[block.which] >= LARGEST
        high[block.owners] += np.where(block.high < LARGEST, block.high, 0)[block.which]
        attained[block.owners] &= block.attained[block.which]
        varies[block.owners] |= (block.most_seen > block.least_seen)[block.which]
    low[bottomless], high[endless] = -LARGEST, LARGEST
    return Ranges(low, high, attained, varies)


def _blocks(rows: CellRows, targets: sparse.csr_array) -> list[_Block]:
    """Split the cells that are still open into parts that no row connects."""
    open_cells = np.flatnonzero(rows.low < rows.high)
    if open_cells.size == 0:
        return []
    fixed = np.where(rows.low == rows.high, rows.low, 0)
    b, h = rows.b - rows.A @ fixed, rows.h - rows.G @ fixed
    A, G = (sparse.csr_array(of[:, open_cells]) for of in (rows.A, rows.G))
    T = sparse.csr_array(targets[:, open_cells])
    M = sparse.csr_array(sparse.vstack([A, G], format="csr"))
    graph = sparse.csr_array((np.ones(M.nnz), M.indices, M.indptr), shape=M.shape)
    _, label = csgraph.connected_components(sparse.csr_array(graph.T @ graph), directed=False)
    found = []
    order = np.argsort(label, kind="stable")
    for cells in np.split(order, np.flatnonzero(np.diff(label[order])) + 1):
        sides = []
        for part, side in ((A, b), (G, h)):
            own = sparse.csr_array(part[:, cells])
            touched = np.flatnonzero(np.diff(own.indptr))
            sides.append((sparse.csr_array(own[touched]), side[touched]))
        wanted = sparse.csr_array(T[:, cells])
        owners = np.flatnonzero(np.diff(wanted.indptr))
        distinct, which = _distinct(sparse.csr_array(wanted[owners]))
        at = open_cells[cells]
        own_rows = CellRows(*sides[0], *sides[1], rows.low[at], rows.high[at])
        found.append(_Block(own_rows, distinct, owners, which))
    return found


def _distinct(T: sparse.csr_array) -> tuple[sparse.csr_array, Ints]:
    """Return each row once, and which of them every row is."""
    T.sort_indices()
    keys: dict[tuple[bytes, bytes], int] = {}
    first: list[int] = []
    which = np.empty(T.shape[0], dtype=np.int64)
    for i in range(T.shape[0]):
        at = slice(T.indptr[i], T.indptr[i + 1])
        key = (T.indices[at].tobytes(), T.data[at].tobytes())
        if key not in keys:
            keys[key] = len(first)
            first.append(i)
        which[i] = keys[key]
    return sparse.csr_array(T[first]), which


@dataclass(eq=False)
class _Block:
    """One part: its rows, the targets in it, and the ranges as they become known."""

    rows: CellRows
    targets: sparse.csr_array
    owners: Ints
    which: Ints
    low: Ints = field(init=False)
    high: Ints = field(init=False)
    least_seen: Ints = field(init=False)
    most_seen: Ints = field(init=False)
    least_real: npt.NDArray[np.float64] = field(init=False)
    most_real: npt.NDArray[np.float64] = field(init=False)
    table: Ints | None = field(init=False, default=None)
    moves: sparse.csc_array | None = field(init=False, default=None)
    walks: int = field(init=False, default=0)
    deadline: float = field(init=False, default=math.inf)
    solver: Any = field(init=False, default=None)
    costs: npt.NDArray[np.float64] = field(init=False)

    def __post_init__(self) -> None:
        T, rows = self.targets, self.rows
        positive, negative = T.maximum(0), T.minimum(0)
        open_end = np.asarray(abs(positive) @ (rows.high >= LARGEST) > 0).ravel()
        finite = np.where(rows.high < LARGEST, rows.high, 0)
        self.low = np.asarray(positive @ rows.low + negative @ finite, dtype=np.int64).ravel()
        self.high = np.asarray(positive @ finite + negative @ rows.low, dtype=np.int64).ravel()
        self.high[open_end] = LARGEST
        self.low[np.asarray(abs(negative) @ (rows.high >= LARGEST) > 0).ravel()] = -LARGEST
        self.least_seen, self.most_seen = np.full_like(self.low, LARGEST), np.full_like(self.low, -LARGEST)
        self.least_real, self.most_real = np.full(self.low.size, np.inf), np.full(self.low.size, -np.inf)

    @property
    def attained(self) -> npt.NDArray[np.bool_]:
        """Whether both ends were seen in tables (an end without limit needs none), or the range is a single value."""
        below = (self.least_seen <= self.low) | (self.low <= -LARGEST)
        above = (self.most_seen >= self.high) | (self.high >= LARGEST)
        return np.asarray((below & above) | (self.low == self.high))

    def solve(self, deadline: float, first_deadline: float) -> None:
        """Find the ranges: vertices in a few directions, a walk, a program for each end, then branch and bound."""
        if self.rows.A.shape[0] + self.rows.G.shape[0] == 0:
            self.least_seen, self.most_seen = self.low.copy(), self.high.copy()  # cells that no figure speaks of
            return
        if self.rows.n > MOST_CELLS:
            return
        self.deadline = deadline
        self._load(integer=False)
        rng = np.random.default_rng(0)
        for _ in range(DIRECTIONS):
            self._run(rng.normal(size=self.rows.n))
            if time.monotonic() > deadline:
                return
        self._walk_from_a_table()
        self._load(integer=False)
        for sign in (-1, 1):
            for i in range(self.low.size):
                if time.monotonic() > deadline:
                    return
                if self._open(i, sign) and self._improvable(i, sign):
                    self._program(i, sign)
        self._load(integer=True)
        self._move_many()
        for targets, end in ((self._still(), deadline), (self._narrow(), first_deadline)):
            for i in targets:
                for sign in (1, -1):
                    if time.monotonic() > end:
                        return
                    if self._open(i, sign):
                        self._branch(i, sign, end)

    def _open(self, i: int, sign: int) -> bool:
        """Whether an end (sign 1: the least value) of a range that may be wide is not known to be attained."""
        if self.low[i] == self.high[i]:
            return False
        return bool(self.least_seen[i] > self.low[i] if sign > 0 else self.most_seen[i] < self.high[i])

    def _improvable(self, i: int, sign: int) -> bool:
        """Whether a program could give a better bound: no vertex that was met has the value of the bound already."""
        if sign > 0:
            return bool(math.ceil(min(self.least_real[i], 2.0**62) - TOLERANCE) > self.low[i])
        return bool(math.floor(max(self.most_real[i], -(2.0**62)) + TOLERANCE) < self.high[i])

    def _still(self) -> list[int]:
        """The targets that may be pinned: no two tables with different values are known."""
        return np.flatnonzero(~self.attained & (self.most_seen <= self.least_seen)).tolist()

    def _narrow(self) -> list[int]:
        """The targets with a narrow range of which an end is not attained yet, narrowest first."""
        width = np.where((self.high < LARGEST) & (self.low > -LARGEST), self.high - self.low, LARGEST)
        chosen = np.flatnonzero(~self.attained & (width <= NARROW))
        return chosen[np.argsort(width[chosen], kind="stable")].tolist()

    def _walk_from_a_table(self) -> None:
        """Find one whole table, and walk from it to many."""
        if self.table is None:
            self._load(integer=True)
            self.solver.setOptionValue("mip_max_improving_sols", 1)
            self._run(np.zeros(self.rows.n))
        if self.table is not None:
            self.moves = moves_of(self.rows)
            for _ in range(WALKS):
                self._walk()

    def _walk(self) -> None:
        """Walk on from the last table, and note the values that are met."""
        if self.moves is None or self.table is None:
            return
        self.walks += 1
        end, least, most = walk(self.rows, self.moves, self.table, self.walks)
        single = np.flatnonzero((np.diff(self.targets.indptr) == 1) & (self.targets.max(axis=1).toarray().ravel() == 1))
        cells = self.targets.indices[self.targets.indptr[single]]
        self.least_seen[single] = np.minimum(self.least_seen[single], least[cells])
        self.most_seen[single] = np.maximum(self.most_seen[single], most[cells])
        self._see(end.astype(np.float64))

    def _move_many(self) -> None:
        """Search for tables in which many of the values that were never seen to differ are larger, or smaller."""
        for _ in range(SEARCHES):
            still = self._still()
            if not still or time.monotonic() > self.deadline:
                return
            # up where the one value that was seen is the least possible, down elsewhere
            signs = np.where(self.least_seen[still] <= self.low[still], -1.0, 1.0)
            costs = np.asarray(signs @ self.targets[still].astype(np.float64)).ravel()
            self._start_from_table()
            self._run(costs, SEARCH_TIME)
            self._walk()

    # --- programs ----------------------------------------------------------------------------------------------

    def _load(self, integer: bool) -> None:
        rows = self.rows
        M = sparse.csr_array(sparse.vstack([rows.A, rows.G], format="csr"))
        ends = rows.low, np.where(rows.high < LARGEST, rows.high, np.inf)
        sides = np.append(rows.b, rows.h), np.append(rows.b, np.full(rows.h.size, np.inf))
        # only costs change: the last vertex stays a table of reals, and the primal method goes on from it
        options: dict[str, Any] = {} if integer else {"presolve": "off", "simplex_strategy": 4}
        self.costs = np.zeros(rows.n)
        self.solver = linear_program(M, self.costs, ends, sides, whole=integer, **options)

    def _run(self, costs: npt.NDArray[np.float64], seconds: float = math.inf) -> Any:
        """Solve for these costs, for so long at most and never past the deadline; note the values that are met."""
        remaining = min(seconds, self.deadline - time.monotonic())
        self.solver.setOptionValue("time_limit", float(self.solver.getRunTime()) + max(0.01, remaining))
        changed = np.flatnonzero(costs != self.costs).astype(np.int32)
        self.costs = costs
        if changed.size:
            self.solver.changeColsCost(changed.size, changed, costs[changed])
        self.solver.run()
        status = self.solver.getModelStatus()
        if status == highspy.HighsModelStatus.kInfeasible:
            raise Contradiction
        values = np.array(self.solver.getSolution().col_value)
        if values.size == self.rows.n and np.isfinite(values).all():
            if status == highspy.HighsModelStatus.kOptimal:
                reached = np.asarray(self.targets @ values).ravel()
                np.minimum(self.least_real, reached, out=self.least_real)
                np.maximum(self.most_real, reached, out=self.most_real)
            self._see(values)
        return status

    def _cost(self, i: int, sign: int) -> npt.NDArray[np.float64]:
        costs = np.zeros(self.rows.n)
        at = slice(self.targets.indptr[i], self.targets.indptr[i + 1])
        costs[self.targets.indices[at]] = sign * self.targets.data[at]
        return costs

    def _see(self, values: npt.NDArray[np.float64]) -> None:
        """Take a vertex over if it is a table of whole counts that has all figures."""
        near = np.rint(values)
        if np.abs(values - near).max() > TOLERANCE or np.abs(near).max() >= 2.0**53:
            return
        x, rows = near.astype(np.int64), self.rows
        if (x < rows.low).any() or (x > rows.high).any():
            return
        if (rows.A @ x != rows.b).any() or (rows.G @ x < rows.h).any():
            return
        self.table = x
        seen = np.asarray(self.targets @ x)
        np.minimum(self.least_seen, seen, out=self.least_seen)
        np.maximum(self.most_seen, seen, out=self.most_seen)

    def _program(self, i: int, sign: int) -> None:
        """Solve for one end, and enter what its multipliers prove."""
        costs = self._cost(i, sign)
        status = self._run(costs)
        unbounded = (highspy.HighsModelStatus.kUnbounded, highspy.HighsModelStatus.kUnboundedOrInfeasible)
        if status in unbounded or status != highspy.HighsModelStatus.kOptimal:
            return
        prices = np.array(self.solver.getSolution().row_dual)
        value = float(self.solver.getObjectiveValue())
        bound = self._proved(costs.astype(np.int64), prices, math.ceil(value - TOLERANCE))
        if bound is not None:
            self._enter(i, sign, bound)

    def _proved(self, cost: Ints, prices: npt.NDArray[np.float64], hoped: int) -> int | None:
        """Return a whole number that cost·x reaches in every table, as near to the hoped one as the prices prove.

        For prices y (not below 0 for inequalities) cost·x ≥ y·(b, h) + Σ_j min over x_j of (cost − yᵀM)_j x_j.
        """
        rows, best = self.rows, None
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

    def _enter(self, i: int, sign: int, bound: int) -> None:
        if sign > 0:
            self.low[i] = max(self.low[i], bound)
        else:
            self.high[i] = min(self.high[i], -bound)

    def _start_from_table(self) -> None:
        """Tell the solver the last table."""
        if self.table is not None:
            known = highspy.HighsSolution()
            known.col_value = self.table.astype(np.float64).tolist()
            self.solver.setSolution(known)

    def _branch(self, i: int, sign: int, end: float) -> None:
        """Settle one end by branch and bound, whose bounds are those of doubles; refuse figures without a table."""
        self._start_from_table()
        status = self._run(self._cost(i, sign), end - time.monotonic())
        if status == highspy.HighsModelStatus.kOptimal:
            self._enter(i, sign, math.ceil(float(self.solver.getInfo().mip_dual_bound) - TOLERANCE))
