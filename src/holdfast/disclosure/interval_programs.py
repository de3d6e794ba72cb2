"""The ranges of sums of cells by linear programs, and by branch and bound where these leave something open.

A bound is entered only with a proof in whole numbers: the program's multipliers are rounded to simple fractions, and
what they prove is computed exactly. An end of a range counts as attained only by a table of whole counts that has all
figures, checked exactly. Programs are solved for what these two leave open, each from the last one's vertex. Branch and
bound decides which outputs are pinned, and the ends of narrow ranges.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
from scipy import sparse

from holdfast.arguments import LARGEST, Refused
from holdfast.arrays import Bools, Floats, Ints
from holdfast.disclosure.figures import SAFE, TOO_LARGE, CellRows
from holdfast.disclosure.interval_solver import TOLERANCE, Answer, Effort, Programs, proved
from holdfast.rooms import csgraph

#: Directions tried at first: their vertices attain many ends at once.
DIRECTIONS = 8
#: Searches for tables in which many values differ from those that were seen, with the effort that each may take.
SEARCHES, SEARCH_EFFORT = 6, 2.0
#: The widest range whose ends are settled by branch and bound although it is not pinned, and the share of the effort
#: up to which all such ranges together may take it.
NARROW, NARROW_SHARE = 3, 0.25
#: Counts up to which tables that differ are searched, and the widest range that branch and bound is asked for.
MODERATE = 1 << 20
#: Parts with more cells than this are left with the bounds that were carried from row to row.
MOST_CELLS = 100_000


@dataclass(frozen=True, eq=False)
class Ranges:
    """Least and largest values, 2**62 for no limit; whether tables attain both, and whether two tables differ."""

    low: Ints
    high: Ints
    attained: Bools
    varies: Bools


def ranges(rows: CellRows, targets: sparse.csr_array, effort: float) -> Ranges:
    """Return the ranges of the targets (m, cells) over all whole tables; what the effort leaves open may be too wide.

    `effort` is counted in steps of the solver that take about so many seconds on an ordinary machine.
    """
    spent = Effort(effort)
    largest = np.maximum(rows.low, np.where(rows.high < LARGEST, rows.high, 0)).astype(np.float64)
    if any((abs(of.astype(np.float64)) @ largest).max(initial=0.0) >= SAFE for of in (rows.A, rows.G, targets)):
        raise Refused(TOO_LARGE)
    settled = rows.low == rows.high
    low = np.asarray(targets[:, settled] @ rows.low[settled], dtype=np.int64).ravel()
    high = low.copy()
    attained = np.ones(low.size, dtype=bool)
    endless, bottomless, varies = (np.zeros(low.size, dtype=bool) for _ in range(3))
    for block in _blocks(rows, targets):
        block.solve(spent)
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
    M = sparse.coo_array(sparse.vstack([A, G]))
    edges = np.ones(M.nnz), (M.coords[0], M.coords[1] + M.shape[0])  # from a row to its cells: totals are long
    graph = sparse.csr_array(edges, shape=(sum(M.shape), sum(M.shape)))
    label = csgraph.connected_components(graph, directed=False)[1][M.shape[0] :]
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
    keys = [(T.indices[start:end].tobytes(), T.data[start:end].tobytes()) for start, end in pairwise(T.indptr)]
    places = {key: number for number, key in enumerate(dict.fromkeys(keys))}
    which = np.array([places[key] for key in keys], dtype=np.int64)
    return sparse.csr_array(T[np.unique(which, return_index=True)[1]]), which


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
    least_real: Floats = field(init=False)
    most_real: Floats = field(init=False)
    table: Ints | None = field(init=False, default=None)
    programs: Programs = field(init=False)

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
    def attained(self) -> Bools:
        """Whether both ends were seen in tables (an end without limit needs none), or the range is a single value."""
        below = (self.least_seen <= self.low) | (self.low <= -LARGEST)
        above = (self.most_seen >= self.high) | (self.high >= LARGEST)
        return np.asarray((below & above) | (self.low == self.high))

    def solve(self, effort: Effort) -> None:
        """Find the ranges: vertices in a few directions, a program for each end, then branch and bound."""
        if self.rows.A.shape[0] + self.rows.G.shape[0] == 0:
            self.least_seen, self.most_seen = self.low.copy(), self.high.copy()  # cells that no figure speaks of
            return
        if self._one_total():
            return
        if self.rows.n > MOST_CELLS:
            return
        self.programs = Programs(self.rows, effort)
        self.programs.load(integer=False)
        rng = np.random.default_rng(0)
        for _ in range(DIRECTIONS):
            self._run(rng.normal(size=self.rows.n))
        if self.table is None:
            self.programs.load(integer=True)
            self._run(np.zeros(self.rows.n), any_table=True)
        self.programs.load(integer=False)
        for sign in (-1, 1):
            for i in range(self.low.size):
                if effort.remains() and self._open(i, sign) and self._improvable(i, sign):
                    self._program(i, sign)
        self._move_many()
        self.programs.load(integer=True)
        for targets, share in ((self._still(), 1.0), (self._narrow(), NARROW_SHARE)):
            for i in targets:
                for sign in (1, -1):
                    if effort.remains(share) and self._open(i, sign) and self.high[i] - self.low[i] <= MODERATE:
                        self._branch(i, sign)

    def _one_total(self) -> bool:
        """Write down the ranges of sums of cells where one total of all cells is all that is known beside bounds."""
        rows, total = self.rows, int(self.rows.b.max(initial=0))  # the same total of several releases is one
        if not rows.b.size or rows.b.min() < total or rows.G.shape[0] or rows.A.nnz < rows.b.size * rows.n:
            return False
        endless = rows.high >= LARGEST
        most = np.where(endless, 0, rows.high)
        ones = (self.targets.data == 1).all() and (rows.A.data == 1).all()
        if not ones or not rows.low.sum() <= total <= (LARGEST if endless.any() else most.sum()):
            return False
        outside = rows.low.sum() - self.targets @ rows.low, most.sum() - self.targets @ most
        open_end = endless.sum() > self.targets @ endless.astype(np.int64)
        self.low = np.maximum(self.low, np.where(open_end, -LARGEST, total - outside[1]))
        self.high = np.minimum(self.high, total - outside[0])
        self.least_seen, self.most_seen = self.low.copy(), self.high.copy()
        return True

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
        return np.flatnonzero((self.low < self.high) & (self.most_seen <= self.least_seen)).tolist()

    def _narrow(self) -> list[int]:
        """The targets with a narrow range of which an end is not attained yet, narrowest first."""
        width = np.where((self.high < LARGEST) & (self.low > -LARGEST), self.high - self.low, LARGEST)
        chosen = np.flatnonzero(~self.attained & (width <= NARROW))
        return chosen[np.argsort(width[chosen], kind="stable")].tolist()

    def _move_many(self) -> None:
        """Search for tables in which many of the values that were never seen to differ are larger, or smaller."""
        if self.table is None:
            return
        self.programs.load(integer=True, most=max(MODERATE, 2 * int(self.table.max(initial=0))))
        for _ in range(SEARCHES):
            still = self._still()
            if not still:
                return
            # up where the one value that was seen is the least possible, down elsewhere
            signs = np.where(self.least_seen[still] <= self.low[still], -1.0, 1.0)
            costs = np.asarray(signs @ self.targets[still].astype(np.float64)).ravel()
            self._run(costs, SEARCH_EFFORT)

    # --- programs ----------------------------------------------------------------------------------------------

    def _run(self, costs: Floats, most: float = math.inf, any_table: bool = False) -> Answer | None:
        """Solve for these costs, from the last table where counts must be whole; note the values that are met."""
        start = self.table if self.programs.integer else None
        found = self.programs.run(costs, most, start, any_table)
        if found is not None and found.values.size == self.rows.n and np.isfinite(found.values).all():
            if found.optimal:
                reached = np.asarray(self.targets @ found.values).ravel()
                np.minimum(self.least_real, reached, out=self.least_real)
                np.maximum(self.most_real, reached, out=self.most_real)
            self._see(found.values)
        return found

    def _cost(self, i: int, sign: int) -> Floats:
        costs = np.zeros(self.rows.n)
        at = slice(self.targets.indptr[i], self.targets.indptr[i + 1])
        costs[self.targets.indices[at]] = sign * self.targets.data[at]
        return costs

    def _see(self, values: Floats) -> None:
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
        found = self._run(costs)
        if found is not None and found.optimal:
            hoped = math.ceil(found.value - TOLERANCE)
            self._enter(i, sign, proved(self.rows, costs.astype(np.int64), found.prices, hoped))

    def _branch(self, i: int, sign: int) -> None:
        """Settle one end by branch and bound, whose bounds are those of doubles; refuse figures without a table."""
        found = self._run(self._cost(i, sign))
        if found is not None and found.optimal:
            self._enter(i, sign, math.ceil(found.bound - TOLERANCE))

    def _enter(self, i: int, sign: int, bound: int | None) -> None:
        if bound is not None and sign > 0:
            self.low[i] = max(self.low[i], bound)
        elif bound is not None:
            self.high[i] = min(self.high[i], -bound)
