"""The nearest table where no formula gives it, for squares or sizes of moves: programs, with a proved gap.

Every move costs what a convex function says: between whole moves it is a line, and beyond a window around the best real
moves the last line goes on, which only makes it cheaper. So the least cost of this linear program is a bound for all
allowed whole tables. Its solution is mostly whole already, and always where sums nest or cross in two ways; elsewhere
branch and bound settles the rest. Searches end after a number of nodes, never after a time.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import clarabel
import numpy as np
from scipy import sparse

from holdfast.arguments import LARGEST, Refused
from holdfast.arrays import Floats, Ints
from holdfast.constraints import System
from holdfast.constraints.system.own_sums import written
from holdfast.exact.solver import linear_program, solved

#: Whole moves on either side of the best real ones that have lines of their own; times that the window is moved.
WINDOW, MOST_WINDOWS = 3, 4
#: Figures up to which there are programs, and up to which there is branch and bound; nodes times figures of it.
MOST_BOUNDED, MOST_BRANCHED, PATIENCE = 30_000, 6_000, 200_000
#: A share of the objective below which a gap is a matter of doubles.
DOUBLES = 1e-7
#: Cells that are exchanged together, and exchanges in a chain.
BLOCK, CHAIN = 600, 6
#: Levels of sums above cells.
MOST_LEVELS = 64
NOWHERE = "no whole figures near the best real ones satisfy what must hold: pass a smaller step"


@dataclass(frozen=True, eq=False)
class Target:
    """Figures y (n,) with weights that count how far a table z is from them, and what must hold of z, in steps.

    A z = b, G z ≥ h, low ≤ z ≤ high (∓2**62 where there is none). The distance is Σ w (z − y)², or Σ w |z − y|.
    """

    y: Floats
    weights: Floats
    A: sparse.csr_array
    b: Ints
    G: sparse.csr_array
    h: Ints
    low: Ints
    high: Ints
    absolute: bool = False

    @classmethod
    def of(cls, system: System, y: Floats, spreads: Floats, *, absolute: bool = False) -> Target:
        """What a system asks of whole figures; `spreads` are the variances of y."""
        equal = written(system.equalities)
        if any(Fraction(x).denominator != 1 for x in (equal.b.tolist() if equal.b.dtype == object else ())):
            raise Refused("a right-hand side is no whole number of steps: pass a smaller step")
        b, (low, high) = equal.b.astype(np.int64), (side.copy() for side in system.integer_bounds())
        alone = np.diff(equal.A.indptr) == 1
        at, factor = equal.A.indices[equal.A.indptr[:-1][alone]], equal.A.data[equal.A.indptr[:-1][alone]]
        if (b[alone] % factor).any():
            raise Refused("an exact figure is no whole number of steps: pass a smaller step")
        low[at] = high[at] = b[alone] // factor
        G, h = system.integer_inequalities(Fraction(1))
        weights = 1 / np.sqrt(spreads) if absolute else 1 / spreads
        return cls(y, weights, sparse.csr_array(equal.A[~alone]), b[~alone], G, h, low, high, absolute)

    @property
    def n(self) -> int:
        return int(self.y.size)

    @cached_property
    def ends(self) -> tuple[Floats, Floats]:
        low, high = self.low.astype(np.float64), self.high.astype(np.float64)
        return np.where(self.low <= -LARGEST, -np.inf, low), np.where(self.high >= LARGEST, np.inf, high)

    def costs(self, z: Any) -> Floats:
        """What each figure costs."""
        off = np.abs(z - self.y)
        return np.asarray(self.weights * (off if self.absolute else off**2))

    def distance(self, z: Any) -> float:
        return float(self.costs(z).sum())

    def missed(self, z: Ints) -> bool:
        return bool(
            (self.A @ z != self.b).any() or (self.G @ z < self.h).any() or (z < self.low).any() or (z > self.high).any()
        )


@dataclass(frozen=True, eq=False)
class Found:
    """Whole figures, their distance, and how much smaller it can be at most."""

    values: Ints
    distance: float
    gap: float

    @property
    def nearest(self) -> bool:
        return self.gap <= DOUBLES * (1.0 + self.distance)


def nearest_real(target: Target) -> Floats | None:
    """The nearest real figures, by least squares; None where the solver finds none."""
    low, high = target.ends
    below, above = np.flatnonzero(np.isfinite(low)), np.flatnonzero(np.isfinite(high))
    unit = sparse.identity(target.n, format="csr")
    matrix = sparse.vstack([target.A, -target.G, -unit[below], unit[above]], format="csc").astype(np.float64)
    right = np.concatenate([target.b, -target.h, -low[below], high[above]]).astype(np.float64)
    cones = [clarabel.ZeroConeT(target.b.size), clarabel.NonnegativeConeT(right.size - target.b.size)]
    settings = clarabel.DefaultSettings()
    settings.verbose, settings.max_threads = False, 1
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-10
    weights = target.weights / target.weights.max()
    curve = sparse.csc_matrix(sparse.diags_array(2 * weights))
    moved = right - np.asarray(matrix @ target.y)  # moves, not values: sums of large figures cancel
    found: Any = clarabel.DefaultSolver(
        curve, np.zeros(target.n), sparse.csc_matrix(matrix), moved, cones, settings
    ).solve()
    if found.status not in (clarabel.SolverStatus.Solved, clarabel.SolverStatus.AlmostSolved):
        return None
    return np.asarray(target.y + np.array(found.x))


def nearest_whole(target: Target, basis: sparse.csr_array | None = None, known: Ints | None = None) -> Found:
    """The nearest whole figures, with what is proved about them.

    `basis`: figures as sums of cells that are free but for their bounds; then chains of exchanges improve a table.
    `known`: whole figures that are allowed.
    """
    real = None if target.absolute or known is not None else nearest_real(target)
    start = target.y if real is None else real
    if basis is not None:
        start = start if known is None else known.astype(np.float64)
        near = exchanged(target, basis, _cells(target, basis, start))
        if target.missed(near):  # more must hold than that figures are sums of cells
            basis = None
        else:
            known = _better(target, known, near)
            start = known.astype(np.float64)
    centre = np.rint(start)
    bound = 0.0
    for _ in range(MOST_WINDOWS):
        values, least = _in_lines(target, centre, nodes=0)
        if values is None:
            break
        near = np.rint(values).astype(np.int64)
        whole = bool((np.abs(values - near) < 1e-6).all()) and not target.missed(near)
        bound = max(bound, least)
        if whole:
            known = _better(target, known, near)
        elif basis is not None:
            known = _better(target, known, exchanged(target, basis, _cells(target, basis, values)))
        if target.absolute or np.abs(values - centre).max() <= WINDOW + 0.5:
            break
        centre = np.rint(values)
    step = _step(target)
    if not _closed(target, known, bound, step) and target.n <= MOST_BRANCHED:
        start = centre if known is None else known.astype(np.float64)
        values, least = _in_lines(target, start, nodes=max(1, PATIENCE // target.n), step=step)
        bound = max(bound, least)
        if values is not None and not target.missed(near := np.rint(values).astype(np.int64)):
            known = _better(target, known, near)
    if known is None:
        raise Refused(NOWHERE)
    distance = target.distance(known)
    return Found(known, distance, 0.0 if _closed(target, known, bound, step) else max(0.0, distance - bound))


def _better(target: Target, one: Ints | None, other: Ints) -> Ints:
    return other if one is None or target.distance(other) < target.distance(one) else one


def _step(target: Target) -> float:
    """Distances of whole tables differ by this much at least; 0 where no such number is known."""
    alike = (target.weights == target.weights[0]).all() and (target.y == np.rint(target.y)).all()
    return float(target.weights[0]) if alike else 0.0


def _closed(target: Target, known: Ints | None, bound: float, step: float) -> bool:
    """Whether no allowed table is nearer than this one."""
    if known is None:
        return False
    distance = target.distance(known)
    return distance - bound <= max(step * (1 - 1e-6), DOUBLES * (1.0 + distance))


def _in_lines(target: Target, centre: Floats, nodes: int, step: float = 0.0) -> tuple[Floats | None, float]:
    """The cheapest figures and a bound for all; branch and bound with so many nodes, or real figures without."""
    n, sides = target.n, []
    figure = np.repeat(np.arange(n), WINDOW)
    place = np.tile(np.arange(WINDOW), n)
    for sign in (1, -1):
        at = centre[figure] + sign * place
        sides.append(
            target.weights[figure]
            * (
                np.abs(at + sign - target.y[figure]) - np.abs(at - target.y[figure])
                if target.absolute
                else (at + sign - target.y[figure]) ** 2 - (at - target.y[figure]) ** 2
            )
        )
    scale = float(np.median(np.abs(target.weights)))
    lines = sparse.csr_array((np.ones(figure.size), (figure, np.arange(figure.size))), shape=(n, figure.size))
    rows = sparse.vstack([target.A, target.G], format="csr").astype(np.float64)
    none = sparse.csr_array((rows.shape[0], 2 * figure.size))
    moves = sparse.hstack([sparse.identity(n, format="csr"), -lines, lines])
    matrix = sparse.csr_array(sparse.vstack([sparse.hstack([rows, none]), moves], format="csr"))
    last = np.where(place == WINDOW - 1, np.inf, 1.0)
    ends = np.concatenate([target.ends[0], np.zeros(last.size * 2)]), np.concatenate([target.ends[1], last, last])
    side = (
        np.concatenate([target.b, target.h, centre]),
        np.concatenate([target.b, np.full(target.h.size, np.inf), centre]),
    )
    costs = np.concatenate([np.zeros(n), *sides]) / scale
    options: dict[str, Any] = {"primal_feasibility_tolerance": 1e-9, "dual_feasibility_tolerance": 1e-9}
    if nodes:
        options |= {"mip_max_nodes": nodes, "mip_rel_gap": DOUBLES / 10, "mip_abs_gap": 0.999 * step / scale}
    whole = np.arange(costs.size) < n if nodes else False
    solver = linear_program(matrix, costs, ends, side, whole=whole, **options)
    values = solved(solver)
    if values is None:
        return None, -math.inf
    info = solver.getInfo()
    least = float(info.mip_dual_bound if nodes else info.objective_function_value) * scale
    return values[:n], target.distance(centre) + least - DOUBLES / 10 * abs(least)


# --- figures as sums of cells: a table is improved by chains of exchanges between cells ------------------------------


def _cells(target: Target, basis: sparse.csr_array, values: Floats) -> Ints:
    """Whole cells near real figures; cells are the figures that are sums of themselves alone."""
    own = np.flatnonzero(np.diff(basis.indptr) == 1)
    place = np.empty(basis.shape[1], dtype=np.int64)
    place[basis.indices[basis.indptr[own]][::-1]] = own[::-1]
    return np.asarray(np.clip(np.rint(values[place]).astype(np.int64), target.low[place], target.high[place]))


def exchanged(target: Target, basis: sparse.csr_array, cells: Ints) -> Ints:
    """Figures of cells after chains of single steps, each the best next one, as long as some chain brings them nearer.

    Cells are taken in blocks, and the next time in blocks that lie across the first ones.
    """
    least = _cell_ends(target, basis)
    B = basis.astype(np.float64)
    for shift in (0, BLOCK // 2, 0, BLOCK // 2):
        improved = False
        for start in range(-shift, cells.size, BLOCK):
            block = np.arange(max(start, 0), min(start + BLOCK, cells.size))
            improved |= _block(target, B, cells, block, least)
        if not improved:
            break
    return np.asarray(basis @ cells)


def _cell_ends(target: Target, basis: sparse.csr_array) -> tuple[Ints, Ints]:
    own = np.flatnonzero(np.diff(basis.indptr) == 1)
    low, high = np.full(basis.shape[1], -LARGEST), np.full(basis.shape[1], LARGEST)
    column = basis.indices[basis.indptr[own]]
    np.maximum.at(low, column, target.low[own])
    np.minimum.at(high, column, target.high[own])
    return low, high


def _block(target: Target, B: sparse.csr_array, cells: Ints, block: Ints, ends: tuple[Ints, Ints]) -> bool:
    """Improve the cells of a block in place; return whether that was possible."""
    part: Any = sparse.csr_array(B[:, block])
    used = np.flatnonzero(np.diff(part.indptr))
    part, w = part[used], target.weights[used]
    weighted = sparse.csr_array(sparse.diags_array(w) @ part)
    together = 2 * (part.T @ weighted).toarray()
    own = np.diagonal(together) / 2
    slope = 2 * (weighted.T @ (np.asarray(B[used] @ cells) - target.y[used]))
    x, (low, high) = cells[block], (end[block] for end in ends)
    changed = False
    for first in range(block.size):
        for sign in (1, -1):
            if (x[first] >= high[first]) if sign > 0 else (x[first] <= low[first]):
                continue
            z, s, chain, cost = x.copy(), slope.copy(), [], 0.0
            best, length, up_closed, down_closed = -1e-9, 0, z >= high, z <= low
            at, way = first, sign
            for _ in range(CHAIN):
                cost += way * s[at] + own[at]
                z[at] += way
                s += way * together[at]
                chain.append((at, way))
                (down_closed if way > 0 else up_closed)[at] = True  # nothing is taken back
                up_closed[at] |= z[at] >= high[at]
                down_closed[at] |= z[at] <= low[at]
                if cost < best:
                    best, length = cost, len(chain)
                up, down = np.where(up_closed, np.inf, own + s), np.where(down_closed, np.inf, own - s)
                i, j = int(np.argmin(up)), int(np.argmin(down))
                at, way = (i, 1) if up[i] <= down[j] else (j, -1)
                if not math.isfinite(min(up[i], down[j])):
                    break
            for at, way in chain[:length]:
                x[at] += way
                slope += way * together[at]
            changed |= length > 0
    cells[block] = x
    return changed


def basis_of(rows: sparse.csr_array, owners: Ints) -> sparse.csr_array | None:
    """Every figure as a sum of those that own no row; row k, which is 0, gives `owners[k]`. None where rows differ."""
    n = rows.shape[1]
    inner, first = np.unique(owners, return_index=True)
    lift = sparse.csr_array(
        (np.ones(inner.size, dtype=np.int64), (inner, np.arange(inner.size))), shape=(n, inner.size)
    )
    unit = sparse.csr_array(sparse.identity(n, dtype=np.int64, format="csr"))
    step = sparse.csr_array(unit - lift @ sparse.csr_array(rows[first]))
    basis = sparse.csr_array(unit[:, np.setdiff1d(np.arange(n), inner)])
    for _ in range(MOST_LEVELS):
        more = sparse.csr_array(step @ basis)
        if not abs(more - basis).sum():
            basis.eliminate_zeros()
            return basis if not abs(rows @ basis).sum() else None
        basis = more
    return None
