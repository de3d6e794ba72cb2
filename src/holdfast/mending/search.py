"""The nearest table where no formula gives it, for squares or sizes of moves: programs, with a proved gap.

Every move costs what a convex function says, between whole moves a line; beyond a window around the best real moves the
last line goes on, which is only cheaper. So the least cost of this program is a bound for whole tables. Its solution
is mostly whole, and branch and bound settles the rest: it ends after a number of nodes, never after a time.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any

import clarabel
import numpy as np
from highspy import HighsModelStatus
from scipy import sparse

from holdfast.arguments import LARGEST, Refused
from holdfast.arrays import Floats, Ints, ranges
from holdfast.constraints import System
from holdfast.constraints.system.own_sums import written
from holdfast.exact.solver import linear_program, solved

#: Whole moves on either side of the best real ones that have lines of their own, at first and at most; times that this
#: window is widened for figures that leave it.
WINDOW, WIDEST, MOST_WINDOWS = 3, 2_000, 6
#: Figures up to which there are programs, and up to which there is branch and bound; nodes times figures of it;
#: nodes beside figures that are whole already.
MOST_BOUNDED, MOST_BRANCHED, PATIENCE, MOST_DIVED = 30_000, 6_000, 200_000, 50
#: A share of the objective below which a gap is a matter of doubles.
DOUBLES = 1e-7
#: How HiGHS says that its values are a solution, and that they are none although they seem to be.
FEASIBLE = 2
NOTHING = (HighsModelStatus.kUnbounded, HighsModelStatus.kInfeasible, HighsModelStatus.kUnboundedOrInfeasible)
NOWHERE = "no whole figures in which everything holds were found near the best real ones: pass a smaller step"


@dataclass(frozen=True, eq=False)
class Target:
    """Σ w (z − y)² or Σ w |z − y| over whole z (n,) with A z = b, G z ≥ h, low ≤ z ≤ high (∓2**62: none), in steps."""

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

    def outside(self, z: Floats) -> bool:
        """Whether real figures miss an inequality or a bound."""
        room = DOUBLES * (1.0 + np.abs(z))
        beyond = (z < self.ends[0] - room) | (z > self.ends[1] + room)
        return bool(beyond.any() or (self.G @ z < self.h - DOUBLES * (1.0 + abs(self.G) @ np.abs(z))).any())


@dataclass(frozen=True, eq=False)
class Found:
    """Whole figures, their distance, and how much smaller it can be at most."""

    values: Ints
    distance: float
    gap: float

    @property
    def nearest(self) -> bool:
        return self.gap <= DOUBLES * (1.0 + self.distance)


def nearest_real(target: Target, factors: Floats | None = None) -> Floats | None:
    """The nearest real figures, by least squares over 1/weights + factors·factorsᵀ; None where none are found."""
    low, high = target.ends
    below, above = np.flatnonzero(np.isfinite(low)), np.flatnonzero(np.isfinite(high))
    unit = sparse.identity(target.n, format="csr")
    matrix = sparse.vstack([target.A, -target.G, -unit[below], unit[above]], format="csc").astype(np.float64)
    right = np.concatenate([target.b, -target.h, -low[below], high[above]]).astype(np.float64)
    cones = [clarabel.ZeroConeT(target.b.size), clarabel.NonnegativeConeT(right.size - target.b.size)]
    settings = clarabel.DefaultSettings()
    settings.verbose, settings.max_threads = False, 1
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-10
    moved = right - np.asarray(matrix @ target.y)  # moves, not values: sums of large figures cancel
    shared = np.zeros((target.n, 0)) if factors is None else factors
    weights = np.append(target.weights, np.ones(shared.shape[1])) / target.weights.max()
    curve = sparse.csc_matrix(sparse.diags_array(2 * weights))
    wide = sparse.csc_matrix(sparse.hstack([matrix, sparse.csc_array(matrix @ shared)]))
    found: Any = clarabel.DefaultSolver(curve, np.zeros(weights.size), wide, moved, cones, settings).solve()
    if found.status not in (clarabel.SolverStatus.Solved, clarabel.SolverStatus.AlmostSolved):
        return None
    moves = np.array(found.x)
    return np.asarray(target.y + moves[: target.n] + shared @ moves[target.n :])


def nearest_whole(target: Target, known: Ints | None = None) -> Found:
    """The nearest whole figures, with what is proved about them; `known`: some that are allowed."""
    real = None if target.absolute else nearest_real(target)
    centre = np.rint(target.y if real is None else real)
    bound, widths = 0.0, np.full(target.n, WINDOW)
    for _ in range(MOST_WINDOWS):
        values, least = _in_lines(target, centre, widths, nodes=0)
        if values is None:
            break
        bound = max(bound, least)
        near = np.rint(values).astype(np.int64)
        if not (sure := np.abs(values - near) < 1e-6).all():  # what is whole stays, and the rest is settled beside it
            ends = np.where(sure, near, target.low), np.where(sure, near, target.high)
            dived, _ = _in_lines(replace(target, low=ends[0], high=ends[1]), centre, widths, nodes=MOST_DIVED)
            near = near if dived is None else np.rint(dived).astype(np.int64)
        if not target.missed(near):
            known = _better(target, known, near)
        moves = np.abs(values - centre)
        if target.absolute or (moves <= widths + 0.5).all():
            break
        widths = np.where(moves > widths, np.minimum(moves + WINDOW, WIDEST), widths).astype(np.int64)
    step = _step(target)
    if not _closed(target, known, bound, step) and target.n <= MOST_BRANCHED:
        start = centre if known is None or target.absolute else known.astype(np.float64)  # sizes bend at y alone
        values, least = _in_lines(target, start, widths, nodes=max(1, PATIENCE // target.n), step=step)
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


def _in_lines(
    target: Target, centre: Floats, widths: Ints, nodes: int, step: float = 0.0
) -> tuple[Floats | None, float]:
    """The cheapest figures and a bound for all; branch and bound with so many nodes, or real figures without."""
    n, sides = target.n, []
    figure = np.repeat(np.arange(n), widths)
    place = ranges(np.zeros(n, dtype=np.int64), widths)
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
    last = np.where(place == widths[figure] - 1, np.inf, 1.0)
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
    values, info = solved(solver), solver.getInfo()
    if values is None or info.primal_solution_status != FEASIBLE or solver.getModelStatus() in NOTHING:
        return None, -math.inf  # what stands where a solution would
    least = float(info.mip_dual_bound if nodes else info.objective_function_value) * scale
    return values[:n], target.distance(centre) + least - DOUBLES / 10 * abs(least)
