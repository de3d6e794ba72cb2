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
from holdfast.exact.solver import OPTIMAL, linear_program, solved

#: Whole moves on either side of the best real ones that have lines of their own, at first and at most; times that this
#: window is widened for figures that leave it.
WINDOW, WIDEST, MOST_WINDOWS = 3, 2_000, 6
#: Figures up to which there are programs, and up to which there is branch and bound; nodes times figures of it.
MOST_BOUNDED, MOST_BRANCHED, PATIENCE = 30_000, 6_000, 200_000
#: Figures are made whole in so many rounds at most, one in so many at a time, in the order of their products with this.
MOST_DIVED, SHARE, SCATTERED = 500, 50, np.int64(2_654_435_761)
#: A share of the objective below which a gap is a matter of doubles.
DOUBLES = 1e-7
#: How HiGHS says that its values are a solution, and that they are none although they seem to be.
FEASIBLE = 2
NOTHING = (HighsModelStatus.kUnbounded, HighsModelStatus.kInfeasible, HighsModelStatus.kUnboundedOrInfeasible)
NOWHERE = "no whole figures in which everything holds were found near the best real ones: pass a smaller step"


@dataclass(frozen=True, eq=False)
class Target:
    """Σ w (z − y)² or Σ w |z − y| over whole z (n,) with A z = b, G z ≥ h, low ≤ z ≤ high (∓2**62: none), in steps.

    `prices` of the equalities, at the best real figures, take most of the slopes away: where figures move by millions,
    no program sees the ones beside them.
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
    prices: Floats | None = None

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


def nearest_real(target: Target, factors: Floats | None = None) -> tuple[Floats, Floats] | None:
    """The nearest real figures, by least squares over 1/weights + factors·factorsᵀ, with prices of the equalities.

    None where none are found.
    """
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
    size = float(np.abs(moved[: target.b.size]).max(initial=1.0))
    shared = np.zeros((target.n, 0)) if factors is None else factors
    weights = np.append(target.weights, np.ones(shared.shape[1])) / target.weights.max()
    curve = sparse.csc_matrix(sparse.diags_array(2 * weights))
    wide = sparse.csc_matrix(sparse.hstack([matrix, sparse.csc_array(matrix @ shared)]))
    found: Any = clarabel.DefaultSolver(curve, np.zeros(weights.size), wide, moved / size, cones, settings).solve()
    if found.status not in (clarabel.SolverStatus.Solved, clarabel.SolverStatus.AlmostSolved):
        return None
    moves = size * np.array(found.x)
    prices = -size * target.weights.max() * np.array(found.z)[: target.b.size]
    return np.asarray(target.y + moves[: target.n] + shared @ moves[target.n :]), prices


def nearest_whole(target: Target, known: Ints | None = None) -> Found:
    """The nearest whole figures, with what is proved about them; `known`: some that are allowed."""
    real = None if target.absolute else nearest_real(target)
    if real is not None:
        target = replace(target, prices=real[1])
    centre = np.rint(target.y if real is None else real[0])
    bound, widths, step = 0.0, np.full(target.n, WINDOW), _step(target)
    for _ in range(MOST_WINDOWS):
        solver = _lines(target, centre, widths, nodes=0)
        values, least = _read(solver, target, centre)
        if values is None:
            break
        bound = max(bound, least)
        known = _better(target, known, values)
        if not _closed(target, known, bound, step):
            known = _better(target, known, _dived(solver, target, centre, values))
        moves = np.abs(values - centre)
        if target.absolute or (moves <= widths + 0.5).all():
            break
        widths = np.where(moves > widths, np.minimum(moves + WINDOW, WIDEST), widths).astype(np.int64)
    if not _closed(target, known, bound, step) and target.n <= MOST_BRANCHED:
        start = centre if known is None or target.absolute else known.astype(np.float64)  # sizes bend at y alone
        solver = _lines(target, start, widths, max(1, PATIENCE // target.n), step, known)
        values, least = _read(solver, target, start)
        bound = max(bound, least)
        known = known if values is None else _better(target, known, values)
    if known is None:
        raise Refused(NOWHERE)
    distance = target.distance(known)
    return Found(known, distance, 0.0 if _closed(target, known, bound, step) else max(0.0, distance - bound))


def _better(target: Target, one: Ints | None, other: Floats) -> Ints | None:
    """The nearer of two tables; the other is rounded, and may miss a rule."""
    near = np.rint(other).astype(np.int64)
    nearer = not target.missed(near) and (one is None or target.distance(near) < target.distance(one))
    return near if nearer else one


def _dived(solver: Any, target: Target, centre: Floats, values: Floats) -> Floats:
    """Figures made whole, some at a time, each time with what follows for all; as whole as that gets."""
    low, high = (end - centre for end in target.ends)
    moves = values - centre
    solver.setOptionValue("presolve", "off")  # every program goes on where the one before it ended
    for _ in range(MOST_DIVED):
        open_ = np.flatnonzero(np.abs(moves - np.rint(moves)) > 1e-6).astype(np.int32)
        if not open_.size:
            break
        some = open_[np.argsort(open_ * SCATTERED % 2**32)][: max(1, open_.size // SHARE)]
        down, near = np.floor(moves), np.rint(moves)
        for at, whole in ((some, near), (some[:1], near), (some[:1], 2 * down + 1 - near)):
            solver.changeColsBounds(at.size, at, whole[at], whole[at])
            solver.run()
            if solver.getModelStatus() == OPTIMAL:
                break
            solver.changeColsBounds(at.size, at, low[at], high[at])
        else:
            break
        moves = np.array(solver.getSolution().col_value)[: target.n]
    return np.asarray(centre + moves)


def _step(target: Target) -> float:
    """Distances of whole tables differ by this much at least; 0 where no such number is known."""
    alike = (target.weights == target.weights[0]).all() and (target.y == np.rint(target.y)).all()
    return float(target.weights[0]) * (1 + _of_one_parity(target)) if alike else 0.0


def _of_one_parity(target: Target) -> bool:
    """Whether the sum of all whole figures, and so their distance, is even in all tables or odd in all.

    That is so where rows add up to one that is odd at every figure which may move: elimination modulo 2.
    """
    if target.n > MOST_BRANCHED:
        return False
    bits = [1 << i if may else 0 for i, may in enumerate((target.low < target.high).tolist())]
    kept: dict[int, int] = {}
    rows = target.A.astype(np.int64)
    for row in [*np.split(np.arange(rows.nnz), rows.indptr[1:-1]), None]:
        odd = range(target.n) if row is None else rows.indices[row][rows.data[row] % 2 != 0].tolist()
        left = sum(bits[i] for i in odd)
        while left and (first := left.bit_length()) in kept:
            left ^= kept[first]
        if left and row is not None:
            kept[left.bit_length()] = left
    return not left


def _closed(target: Target, known: Ints | None, bound: float, step: float) -> bool:
    """Whether no allowed table is nearer than this one."""
    if known is None:
        return False
    distance = target.distance(known)
    return distance - bound <= max(step * (1 - 1e-6), DOUBLES * (1.0 + distance))


def _lines(
    target: Target, centre: Floats, widths: Ints, nodes: int, step: float = 0.0, known: Ints | None = None
) -> Any:
    """The program of moves from a centre; branch and bound with so many nodes, or real figures without."""
    n, off, weights = target.n, centre - target.y, target.weights
    figure = np.repeat(np.arange(n), widths)
    place = ranges(np.zeros(n, dtype=np.int64), widths)
    slopes = np.zeros(n) if target.absolute else 2 * weights * off
    sides = [weights[figure] * (2 * place + 1)] * 2
    if target.absolute:
        here = [off[figure] + sign * place for sign in (1, -1)]
        sides = [weights[figure] * (np.abs(at + sign) - np.abs(at)) for at, sign in zip(here, (1, -1), strict=True)]
    scale = _scale(target)
    lines = sparse.csr_array((np.ones(figure.size), (figure, np.arange(figure.size))), shape=(n, figure.size))
    rows = sparse.vstack([target.A, target.G], format="csr").astype(np.float64)
    none = sparse.csr_array((rows.shape[0], 2 * figure.size))
    moves = sparse.hstack([sparse.identity(n, format="csr"), -lines, lines])
    matrix = sparse.csr_array(sparse.vstack([sparse.hstack([rows, none]), moves], format="csr"))
    last = np.where(place == widths[figure] - 1, np.inf, 1.0)
    at = centre.astype(np.int64)  # programs see moves: tolerances of large figures would be whole ones
    low, high = (end - centre for end in target.ends)
    ends = np.concatenate([low, np.zeros(last.size * 2)]), np.concatenate([high, last, last])
    equal, least_, still = target.b - target.A @ at, target.h - target.G @ at, np.zeros(n)
    side = (
        np.concatenate([equal, least_, still]),
        np.concatenate([equal, np.full(least_.size, np.inf), still]),
    )
    taken = np.zeros(target.b.size) if target.prices is None else target.prices
    costs = np.concatenate([slopes - target.A.T @ taken, *sides]) / scale
    options: dict[str, Any] = {"primal_feasibility_tolerance": 1e-9, "dual_feasibility_tolerance": 1e-9}
    if nodes:
        options |= {"mip_max_nodes": nodes, "mip_rel_gap": DOUBLES / 10, "mip_abs_gap": 0.999 * step / scale}
    whole = np.arange(costs.size) < n if nodes else False
    solver = linear_program(matrix, costs, ends, side, whole=whole, **options)
    solver.changeObjectiveOffset(float(taken @ equal) / scale)
    if known is not None:
        solver.setSolution(n, np.arange(n, dtype=np.int32), (known - at).astype(np.float64))
    return solver


def _read(solver: Any, target: Target, centre: Floats) -> tuple[Floats | None, float]:
    """The cheapest figures, and a bound for the distance of all."""
    values, info, scale = solved(solver), solver.getInfo(), _scale(target)
    if values is None or info.primal_solution_status != FEASIBLE or solver.getModelStatus() in NOTHING:
        return None, -math.inf  # what stands where a solution would
    least = float(info.mip_dual_bound if info.mip_node_count >= 0 else info.objective_function_value) * scale
    return centre + values[: target.n], target.distance(centre) + least - DOUBLES / 10 * abs(least)


def _scale(target: Target) -> float:
    """What costs of a program are counted in."""
    return float(np.median(np.abs(target.weights)))
