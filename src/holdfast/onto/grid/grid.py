"""A problem in whole steps of a grid: every number that is released is a whole multiple of the step.

Whole numbers have the step 1. Reals have the step 2⁻ᵏ/q: q clears the denominators of what must hold, and k is as large
as leaves the noisy values below 2⁴⁶ steps and their sums below 2⁵⁵, 30 at most. So a double tells its multiple, sums
of dyadic values are exact in doubles, and everything that must hold is tested in whole numbers. Ways work in moves
x = z − y, in steps: only gaps matter, and these are exact however large the counts are.
"""

from __future__ import annotations

import math
import threading
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse

from holdfast.arguments import LARGEST, Refused
from holdfast.arrays import Array, Floats, Ints, Owner, kept
from holdfast.constraints.system.rows import Rows, divided, products, raised
from holdfast.exact.whole_rows import WholeRows
from holdfast.onto.problem import Problem

#: The finest dyadic step, 2**-30; the sizes in steps that numbers and sums stay below, 2**46 and 2**55; and how many
#: times finer a grid may be made where rows need fractions of a step.
FINEST, MOST_BITS, SUM_BITS, MOST_FINER = 30, 46, 55, 64
#: Denominators of bounds and right-hand sides are cleared up to this factor.
MOST_PARTS = 1 << 20
#: A bound this far away (in steps) is left to the final test: no value goes that far.
FAR = 2**60
#: Rows whose coefficients add up to this in size are refused: doubles do not tell such sums from each other.
HEAVIEST = 10.0**15
#: From this size on, and up to this many rows and outputs, solutions are tested for large denominators.
HEAVY, MOST_REDUCED = 2.0**12, 160


@dataclass(frozen=True, eq=False)
class Shape(Owner):
    """What all tables of a problem share: rows with several outputs, single outputs that are exact, and weights.

    `rows` are the equalities with two entries or more and `which` their numbers in `space.rows`; `weights` are 1/v
    (L2) or 1/√v (L1), relative to the largest.
    """

    rows: sparse.csr_array
    which: Ints
    single: Ints
    inequalities: Rows
    weights: Floats

    @cached_property
    def mirror(self) -> Shape:
        """The same for moves with the other sign: equalities are turned by their right-hand sides."""
        turned = replace(self.inequalities, A=sparse.csr_array(-self.inequalities.A))
        return replace(self, inequalities=turned)

    @cached_property
    def in_doubles(self) -> tuple[sparse.csr_array, sparse.csr_array]:
        return self.rows.astype(np.float64), self.inequalities.A.astype(np.float64)

    @cached_property
    def turned(self) -> tuple[sparse.csr_array, sparse.csr_array]:
        return sparse.csr_array(self.in_doubles[0].T), sparse.csr_array(self.in_doubles[1].T)

    @cached_property
    def stacked(self) -> sparse.csr_array:
        return sparse.csr_array(sparse.vstack(self.in_doubles, format="csr"))

    @cached_property
    def twins(self) -> sparse.csr_array:
        """All rows for moves written as up − down."""
        return sparse.csr_array(sparse.hstack([self.stacked, -self.stacked], format="csr"))

    @cached_property
    def columns(self) -> sparse.csc_array:
        found = sparse.csc_array(self.rows)
        found.sort_indices()
        return found

    @cached_property
    def in_thread(self) -> threading.local:
        """What each thread keeps for itself as long as it lives: a solver with its plan."""
        return threading.local()


@kept
def shape_of(problem: Problem) -> Shape:
    rows = problem.space.rows
    which = np.flatnonzero(np.diff(rows.indptr) > 1)
    finite = np.isfinite(problem.spreads)
    least = problem.spreads[finite].min(initial=np.inf)
    relative = np.where(finite, least / problem.spreads, 0.0)
    weights = np.sqrt(relative) if problem.norm == "l1" else relative
    chosen = rows if which.size == rows.shape[0] else sparse.csr_array(rows[which])
    return Shape(chosen, which, problem.single_rows[0], problem.system.inequalities, weights)


@dataclass(frozen=True, eq=False)
class Task:
    """One table to be moved, in steps of `grid`: moves x with A x = `gap`, G x ≥ `least`, `low` ≤ x ≤ `high`.

    `start` holds the noisy values in steps. Bounds are ∓2**62 where there is none. `exact` says that right-hand sides
    are multiples of the step. `turned`: every number has the other sign.
    """

    problem: Problem
    shape: Shape
    grid: Fraction
    exact: bool
    start: Ints
    gap: Ints
    least: Ints
    low: Ints
    high: Ints
    turned: bool = False

    @classmethod
    def of(cls, problem: Problem, noisy: Array, right: Array) -> Task:
        """Write one table (n,) in steps; `right` holds the right-hand sides of `problem.space.rows`."""
        shape = shape_of(problem)
        noisy = np.where(np.isfinite(problem.spreads), noisy, 0)
        grid = Fraction(1) if problem.integer else _grid(problem, noisy, right)
        start = _steps(noisy, grid)
        sides, exact = _sides(right, grid)
        if problem.integer and not exact:
            raise Refused("a right-hand side is not a whole number of steps: pass integer=False")
        low, high = (bound.copy() for bound in _bounds(problem, grid))
        rows, outputs = problem.single_rows
        if rows.size:
            factors = problem.space.rows.data[problem.space.rows.indptr[rows]]
            if problem.integer and (sides[rows] % factors).any():
                raise Refused("an exact or fixed value is not a whole number of steps: pass integer=False")
            exact = exact and not (sides[rows] % factors).any()
            low[outputs] = high[outputs] = np.rint(sides[rows] / factors).astype(np.int64)
        empty = low > high
        if empty.any():
            raise Refused(
                f"no {'whole number' if problem.integer else 'multiple of the grid'} lies between the bounds at "
                f"position {int(np.flatnonzero(empty)[0])}: widen them"
            )
        column = start[:, None]
        gap = _narrow(sides[shape.which] - products(shape.rows, column)[:, 0])
        asked = np.maximum(raised(divided(shape.inequalities.b, grid * problem.unit)), -FAR)  # no sum falls that low
        least = _narrow(asked - products(shape.inequalities.A, column)[:, 0])
        below = np.where(low <= -FAR, -LARGEST, np.where(low <= -FAR, 0, low) - start)
        above = np.where(high >= FAR, LARGEST, np.where(high >= FAR, 0, high) - start)
        return cls(problem, shape, grid, exact, start, gap, least, below, above)

    def turned_by(self, coin: int) -> Task:
        """The same table in whole numbers, or with all signs turned if the coin is odd: ties then go the other way.

        *Law:* for symmetric noise and equalities alone the mean error over coin and noise is 0, whatever rule decides
        ties: the error for noise u and one coin is that for −u and the other, turned (docs/theory/update-in-general).
        """
        if not self.problem.integer or coin % 2 == 0:
            return self
        moved = (-self.start, -self.gap, self.least, -self.high, -self.low)
        return Task(self.problem, self.shape.mirror, self.grid, self.exact, *moved, turned=not self.turned)

    def finer(self, parts: int) -> Task:
        """The same table in steps that go `parts` times into these."""

        def scaled(bound: Ints) -> Ints:
            return np.where(np.abs(bound) >= LARGEST, bound, np.where(np.abs(bound) >= LARGEST, 0, bound) * parts)

        start, gap, least = self.start * parts, self.gap * parts, self.least * parts
        ends = scaled(self.low), scaled(self.high)
        return Task(self.problem, self.shape, self.grid / parts, self.exact, start, gap, least, *ends)

    def in_whole_numbers(self) -> Task | None:
        """The same table, rounded, to be moved to whole numbers; None where a right-hand side is not whole."""
        parts, shape = self.grid.denominator, self.shape
        start = np.rint(self.start / parts).astype(np.int64)
        shift = (self.start - start * parts)[:, None]
        gap = self.gap + products(shape.rows, shift)[:, 0]
        if (gap % parts).any():
            return None
        least = -(-(self.least + products(shape.inequalities.A, shift)[:, 0]) // parts)
        low = np.where(self.low <= -LARGEST, -LARGEST, -(-(np.maximum(self.low, -FAR) + shift[:, 0]) // parts))
        high = np.where(self.high >= LARGEST, LARGEST, (np.minimum(self.high, FAR) + shift[:, 0]) // parts)
        if (low > high).any():
            return None
        problem, step = replace(self.problem, integer=True), Fraction(1)
        return Task(problem, shape, step, True, start, _narrow(gap // parts), _narrow(least), low, high)

    @property
    def most_finer(self) -> int:
        """How many times finer the grid may be made before sums leave 62 bits."""
        rows = (self.shape.rows, self.shape.inequalities.A)
        sizes = [abs(A).astype(np.float64) @ np.abs(self.start.astype(np.float64)) for A in rows]
        sizes += [np.abs(side.astype(np.float64)) for side in (self.gap, self.least)]
        largest = max(float(size.max(initial=1.0)) for size in sizes)
        return max(1, min(MOST_FINER, int(LARGEST / 4 / largest)))

    @property
    def real_bounds(self) -> tuple[Floats, Floats]:
        """Bounds on moves as doubles, ∓inf where there is none."""
        low, high = self.low.astype(np.float64), self.high.astype(np.float64)
        low[self.low <= -LARGEST] = -np.inf
        high[self.high >= LARGEST] = np.inf
        return low, high

    def missed(self, moves: Ints) -> str | None:
        """Return what the moves (n,) miss, tested in whole numbers, or None."""
        column = moves[:, None]
        if (moves < self.low).any() or (moves > self.high).any() or (np.abs(self.start + moves) >= FAR).any():
            return "a bound"
        if (products(self.shape.rows, column)[:, 0] != self.gap).any():
            return "an equality"
        if (products(self.shape.inequalities.A, column)[:, 0] < self.least).any():
            return "an inequality"
        return None

    def values(self, moves: Ints) -> Array:
        """The moved table: whole numbers, or doubles that stand for their multiples of the grid."""
        whole = self.start + moves
        if self.problem.integer:
            return whole
        return np.asarray(whole / float(1 / self.grid))

    def objective(self, moves: Array) -> float:
        """What is made small, in steps and with weights relative to the largest."""
        size = np.abs(moves.astype(np.float64))
        return float((self.shape.weights * (size if self.problem.norm == "l1" else size**2)).sum())

    @property
    def unit_of_objective(self) -> float:
        """The factor from `objective` to Σ|z−y|²/v or Σ|z−y|/√v in steps of the problem."""
        finite = self.problem.spreads[np.isfinite(self.problem.spreads)]
        step, least = float(self.grid), float(finite.min(initial=np.inf))
        return step / math.sqrt(least) if self.problem.norm == "l1" else step**2 / least


def _grid(problem: Problem, noisy: Array, right: Array) -> Fraction:
    """The step for one table of reals."""
    parts = 1
    system = problem.system
    for side, unit in ((right, Fraction(1)), (system.inequalities.b, problem.unit), *_finite_bounds(problem)):
        for value in set(side.tolist()) if side.dtype == object or unit != 1 else ():
            parts = math.lcm(parts, (Fraction(value) / unit).denominator)
            if parts > MOST_PARTS:
                break
    if parts > MOST_PARTS:
        parts = 1
    sides = float(np.abs(np.asarray(right, dtype=np.float64)).max(initial=1.0))
    largest = max(float(np.abs(noisy).max(initial=1)), _farthest(problem))
    asked = float(system.inequalities.b.astype(np.float64).max(initial=0.0) / problem.unit)
    sums = max(sides, asked, largest * _heaviest(problem))
    fine = MOST_BITS - math.ceil(math.log2(max(sides, largest) * parts)), SUM_BITS - math.ceil(math.log2(sums * parts))
    if largest * parts > 1 << MOST_BITS or sums * parts > LARGEST / 4:
        raise Refused("values are too large to be moved as doubles: use integer noise and integer=True")
    return Fraction(1, parts << max(0, min(FINEST, *fine)))


@kept
def _heaviest(problem: Problem) -> float:
    """The largest sum of the sizes of a row's entries."""
    rows = (problem.space.rows, problem.system.inequalities.A)
    return max(float(abs(A.astype(np.float64)).sum(axis=1).max()) if A.shape[0] else 1.0 for A in rows)


@kept
def _farthest(problem: Problem) -> float:
    """How far from 0 bounds push some output."""
    low, high = problem.system.real_bounds()
    return float(max(low.max(initial=0.0), (-high).max(initial=0.0)) / float(problem.unit))


def refuse_too_large(problem: Problem) -> None:
    """Refuse, before noise is drawn, rows and sides that leave no room for values in 62 bits."""
    if _heaviest(problem) >= HEAVIEST:
        raise Refused(
            f"the coefficients of a row add up to {HEAVIEST:.0e} or more in size: use smaller ones, or divide the row"
        )
    if problem.integer or problem.system.invariants.count:
        return
    right = problem.right_hand_sides()
    parts = _grid(problem, np.zeros(1), right).denominator
    rows = problem.space.rows
    if _heaviest(problem) < HEAVY or max(rows.shape) > MOST_REDUCED:
        return
    whole = [int(Fraction(value) * parts) for value in right.tolist()]
    found = WholeRows.of(rows.toarray().tolist(), problem.n).solution(whole)
    if found is None or found[1] // (found[1] & -found[1]) > MOST_FINER:
        raise Refused("what must hold leaves only fractions with large denominators: use smaller coefficients")


def _finite_bounds(problem: Problem) -> list[tuple[Array, Fraction]]:
    sides = (problem.system.lower, problem.system.upper)
    return [(side[np.asarray(abs(side) < LARGEST, dtype=bool)], problem.unit) for side in sides]


def _steps(noisy: Array, grid: Fraction) -> Ints:
    """Noisy values in steps; doubles go to the nearest one."""
    if noisy.dtype.kind == "i":
        return np.asarray(noisy * grid.denominator, dtype=np.int64)
    return np.rint(noisy * float(grid.denominator)).astype(np.int64)


def _sides(right: Array, grid: Fraction) -> tuple[Array, bool]:
    """Right-hand sides in steps, and whether all of them are whole multiples."""
    if right.dtype.kind == "i":
        return right * grid.denominator, True
    found = [Fraction(value) * grid.denominator for value in right.tolist()]
    whole = np.empty(len(found), dtype=object)
    whole[:] = [round(value) for value in found]
    return _narrow(whole), all(value.denominator == 1 for value in found)


@kept
def _bounds(problem: Problem, grid: Fraction) -> tuple[Ints, Ints]:
    """Bounds in steps, rounded inwards, without those that are far away."""
    step = grid * problem.unit
    far = math.floor(FAR * step)
    system = problem.system
    lower: Any = np.where(np.asarray(system.lower <= -far, dtype=bool), -LARGEST, system.lower)
    upper: Any = np.where(np.asarray(system.upper >= far, dtype=bool), LARGEST, system.upper)
    return replace(system, lower=lower, upper=upper).integer_bounds(step)


def _narrow(values: Array) -> Ints:
    """Whole numbers as int64; refused where they are too large."""
    if values.dtype == object and any(abs(value) >= LARGEST for value in values.tolist()):
        raise Refused("a sum of noisy values leaves 2**62: use fewer or smaller values")
    return values.astype(np.int64)
