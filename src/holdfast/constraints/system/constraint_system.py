"""A constraint written out for n coordinates: equalities, invariants, inequalities and bounds, all exact."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse

from holdfast.arguments import LARGEST, Refused, array, rational, reals, shown, whole_numbers
from holdfast.arrays import Array, Bools, Floats, Ints, Owner, kept, only_read
from holdfast.constraints.system.exact_figures import ExactMargins
from holdfast.constraints.system.null_space import BesideSums, NullSpace, TreeShape
from holdfast.constraints.system.own_sums import OwnSums, apart, in_front, written
from holdfast.constraints.system.parts import EQUALITIES, Part
from holdfast.constraints.system.rows import TOLERANCE, Rows, divided, missed_real, missed_whole, raised, stacked
from holdfast.exact.elimination import eliminate
from holdfast.exact.lattice_bases import lattice_basis
from holdfast.exact.rationals import ExactVector, compact

#: Values up to which bounds that are alike everywhere are written out for each.
FEW = 1_000_000


def part_bounds(part: Part, n: int) -> tuple[ExactVector, ExactVector] | None:
    """Return the bounds a part puts on n coordinates: its own, or those of its rows with one coordinate."""
    if part.bounds is not None:
        return part.bounds.applied(n)
    if part.kind != "at_least" or part.rows is None:
        return None
    single = np.flatnonzero(part.rows.sizes == 1)
    if single.size == 0:
        return None
    low: ExactVector = np.full(n, -LARGEST, dtype=object)
    high: ExactVector = np.full(n, LARGEST, dtype=object)
    A, b = part.rows.A, part.rows.b
    for i in single.tolist():
        position, factor = int(A.indices[A.indptr[i]]), int(A.data[A.indptr[i]])
        limit = Fraction(b[i] if b.dtype == object else int(b[i])) / factor
        if factor > 0:
            low[position] = max(low[position], limit)
        else:
            high[position] = min(high[position], limit)
    return low, high


def merged_bounds(parts: Iterable[Part], n: int) -> tuple[ExactVector, ExactVector]:
    """Return the tightest bounds that the parts put on each of n coordinates; ∓2**62 where there is none."""
    parts = list(parts)
    low: ExactVector = np.full(1, -LARGEST, dtype=np.int64)
    high: ExactVector = np.full(1, LARGEST, dtype=np.int64)
    for part in parts:
        alike = part.bounds is not None and part.bounds.at is None and part.bounds.low.size == 1
        found = (part.bounds.low, part.bounds.high) if alike and part.bounds is not None else part_bounds(part, n)
        if found is not None:
            low, high = np.maximum(low, found[0]), np.minimum(high, found[1])
    low, high = (np.array(np.broadcast_to(side, n)) if n <= FEW else np.broadcast_to(side, n) for side in (low, high))
    if low.dtype == object:
        low = compact((Fraction(value) for value in low), n)
    if high.dtype == object:
        high = compact((Fraction(value) for value in high), n)
    return low, high


def inequality_rows(part: Part) -> Rows | None:
    """Return a part's inequalities that are not bounds on a single coordinate."""
    if part.rows is None or part.kind not in ("ordered", "at_least"):
        return None
    return part.rows.chosen(part.rows.sizes != 1) if part.kind == "at_least" else part.rows


@dataclass(frozen=True, eq=False)
class System(Owner):
    """What must hold for n values z: A z = b, C z = C q(x), G z ≥ h and lower ≤ z ≤ upper.

    `equalities` holds the structural rows (fixed values included), `invariants` the rows of C (their
    right-hand side is read from the data later; the stored one is zero and means nothing), `inequalities` the
    rows of G that are not simple bounds. `lower` and `upper` are exact, with ∓2**62 for no bound. `branches`
    are the sides of a union, each with everything outside the union included; it is empty if there is no
    union.
    """

    n: int
    parts: tuple[Part, ...]
    equalities: Rows
    invariants: Rows
    inequalities: Rows
    lower: ExactVector
    upper: ExactVector
    branches: tuple[System, ...] = ()

    @classmethod
    def of(cls, parts: Sequence[Part], n: int, branches: Sequence[System] = ()) -> System:
        """Write parts out for n values; refuse if a part speaks of another number of values."""
        for part in parts:
            part.refuse_unless_fits(n)
        equalities = [part.rows for part in parts if part.kind in EQUALITIES and part.rows is not None]
        invariants = [part.rows for part in parts if part.kind == "invariant" and part.rows is not None]
        inequalities = [rows for part in parts if (rows := inequality_rows(part)) is not None]
        low, high = merged_bounds(parts, n)
        return cls(
            n,
            tuple(parts),
            in_front(equalities, n),
            stacked(invariants, n),
            stacked(inequalities, n),
            low,
            high,
            tuple(branches),
        )

    @cached_property
    def has_bounds(self) -> bool:
        return bool((self.lower > -LARGEST).any() or (self.upper < LARGEST).any())

    @property
    def has_inequalities(self) -> bool:
        """Whether there are bounds or other inequalities (in a union: on any side)."""
        return self.has_bounds or self.inequalities.count > 0 or any(b.has_inequalities for b in self.branches)

    @property
    def coordinatewise(self) -> bool:
        """Whether every coordinate is constrained by itself: bounds and single values only, and no union."""
        rows = (self.equalities, self.invariants)
        alone = all(not isinstance(part, OwnSums) and part.sizes.max(initial=0) <= 1 for part in rows)
        return alone and self.inequalities.count == 0 and not self.branches

    def integer_bounds(self, scale: Any = 1) -> tuple[Ints, Ints]:
        """Return the least and largest whole number within each bound, ∓2**62 for none; they can only be read.

        With a scale, for whole numbers whose value in the table is that number times `scale`.
        """
        step = rational("scale", scale)
        low = _whole_bounds(self.lower, step, -LARGEST, math.ceil)
        high = _whole_bounds(self.upper, step, LARGEST, math.floor)
        return only_read(low), only_read(high)

    def integer_inequalities(self, unit: Fraction) -> tuple[sparse.csr_array, Ints]:
        """Return G and the least whole numbers that G·z may be, for whole numbers z of steps of `unit`."""
        limits = raised(divided(self.inequalities.b, unit))
        if any(abs(limit) > LARGEST for limit in limits.tolist()):
            raise Refused("a side divided by the scale must stay below 2**62 in size")
        return self.inequalities.A, limits.astype(np.int64)

    def real_bounds(self) -> tuple[Floats, Floats]:
        """Return the bounds as doubles, ∓inf for none."""
        low, high = self.lower.astype(np.float64), self.upper.astype(np.float64)
        low[np.asarray(self.lower <= -LARGEST, dtype=bool)] = -np.inf
        high[np.asarray(self.upper >= LARGEST, dtype=bool)] = np.inf
        return low, high

    def null_space(self, structural: bool = True, invariants: bool = True) -> NullSpace:
        """Return the null space of the equality rows: structural ones, invariants or both; each is made once."""
        return self._null_space(structural, invariants)

    @kept
    def _null_space(self, structural: bool, invariants: bool) -> NullSpace:
        if self.branches:
            raise Refused("a union has no null space of its own; ask each of its branches")
        chosen = [
            part
            for part in self.parts
            if part.rows is not None
            and ((structural and part.kind in EQUALITIES) or (invariants and part.kind == "invariant"))
        ]
        if len(chosen) == 1:
            (part,) = chosen
            if part.kind == "invariant" and isinstance(part.source, ExactMargins):
                return part.source.null_space()
            if part.kind == "consistent" and isinstance(part.source, TreeShape):
                return NullSpace(self.n, stacked([part.rows], self.n).A, tree=part.source)  # type: ignore[list-item]
        wanted = [written(self.equalities)] * structural + [self.invariants] * invariants
        kind = BesideSums if structural and isinstance(self.equalities, OwnSums) else NullSpace
        return kind.of(stacked(wanted, self.n).A)

    def right_hand_sides(self, scale: Any = 1) -> Array:
        """Return b / scale for the independent structural rows, in the order of `null_space().rows`.

        Refused when there are invariants, whose right-hand sides are in the data.
        """
        if self.invariants.count:
            raise Refused("the right-hand sides of invariants are read from the data")
        space, rows = self.null_space(), written(self.equalities)
        kept = np.arange(rows.count) if space.rank == rows.count else eliminate(rows.A).independent
        return divided(rows.b[kept], rational("scale", scale))

    def restricted(self, positions: Ints) -> System:
        """Return what must hold for some of the values, which no row connects with the others."""
        inside = np.zeros(self.n, dtype=bool)
        inside[positions] = True

        def of(rows: Rows) -> Rows:
            touches = np.zeros(rows.count, dtype=bool)
            entry_rows = np.repeat(np.arange(rows.count), rows.sizes)
            touches[entry_rows[inside[rows.A.indices]]] = True
            kept = rows.chosen(touches)
            return Rows(sparse.csr_array(kept.A[:, positions]), kept.b, kept.names)

        return System(
            len(positions),
            (),
            of(self.equalities),
            of(self.invariants),
            of(self.inequalities),
            self.lower[positions],
            self.upper[positions],
        )

    def holds(self, values: Any, scale: Any = 1) -> Any:
        """Tell whether values (n,), or each row of values (size, n), satisfy the structural constraints.

        Whole numbers (an integer array) are tested exactly; reals within 1e-9 of the size of each row or
        bound. The values in the table are `values` times `scale`.
        """
        flat, step = self._values(values, scale)
        result = self._holds(np.atleast_2d(flat).T, step)
        return bool(result[0]) if flat.ndim == 1 else result

    def violation(self, values: Any, scale: Any = 1) -> str | None:
        """Return the name of the first structural row or bound that the values (n,) miss, or None.

        Whole numbers are tested exactly; reals within 1e-9 of the size of each row or bound.
        """
        flat, step = self._values(values, scale)
        if flat.ndim != 1:
            raise Refused(f"values must have shape ({self.n},), found shape {flat.shape}")
        column = flat[:, None]
        broken, equal = apart(self.equalities, column)
        if broken.any():
            return self.equalities.names[0]
        for rows, equality in ((equal, True), (self.inequalities, False)):
            missed = _missed(rows, column, equality, step)[:, 0]
            if missed.any():
                return rows.names[int(np.flatnonzero(missed)[0])]
        if self.has_bounds:
            below, above = self._outside(column, step)
            outside = np.flatnonzero(below[:, 0] | above[:, 0])
            if outside.size:
                position = int(outside[0])
                return self.bound_name(position, bool(below[position, 0]))
        if self.branches and not any(branch._holds(column, step)[0] for branch in self.branches):
            found = [branch.violation(values, scale) for branch in self.branches]
            return "every side of the union (" + "; ".join(str(name) for name in found) + ")"
        return None

    def bound_name(self, position: int, low: bool) -> str:
        """Return the name of the part that gives a coordinate its lower (or upper) bound."""
        side = 0 if low else 1
        wanted = (self.lower, self.upper)[side][position]
        for part in self.parts:
            found = part_bounds(part, self.n)
            if found is not None and found[side][position] == wanted:
                return f"{part.name} at position {position}"
        return f"the bound at position {position}"  # a restricted system has no parts to name

    def integer_obstacle(self, scale: Any = 1) -> str | None:
        """Return why no whole numbers can satisfy the structural equalities and bounds, or None if unknown.

        Found: a row whose coefficients have a common divisor that its right-hand side lacks, a bound interval
        without a whole number, and equalities without a common solution in whole numbers. With a scale, for
        whole numbers whose value in the table is that number times `scale`.
        """
        step = rational("scale", scale)
        words = "whole numbers" if step == 1 else "steps of the grid"
        rows = written(self.equalities)
        if step != 1:
            rows = Rows(rows.A, compact(divided(rows.b, step), rows.count), rows.names)
        obstacle = _row_obstacle(rows)
        if obstacle is not None:
            return f"{obstacle} has no solution in {words}"
        low, high = self.integer_bounds(step)
        empty = np.flatnonzero(low > high)
        if empty.size:
            position = int(empty[0])
            names = dict.fromkeys((self.bound_name(position, True), self.bound_name(position, False)))
            return f"no {'whole number' if step == 1 else 'step of the grid'} satisfies {' and '.join(names)}"
        if not self._one_tree() and not solvable(rows):
            return f"the equalities have no common solution in {words}"
        found = [branch.integer_obstacle(step) for branch in self.branches]
        if found and all(name is not None for name in found):
            return f"every side of the union is impossible in {words} ({found[0]})"
        return None

    def _one_tree(self) -> bool:
        """Whether the equalities are those of one hierarchy and fixed values: whole ones have whole solutions."""
        equalities = [part for part in self.parts if part.kind in EQUALITIES]
        trees = [part for part in equalities if part.kind == "consistent"]
        known = len(trees) == 1 and isinstance(trees[0].source, TreeShape)
        return known and all(part.kind == "fixed" for part in equalities if part is not trees[0])

    def _values(self, values: Any, scale: Any) -> tuple[Array, Fraction]:
        found = array("values", values)
        checked = whole_numbers("values", found, copy=False) if found.dtype.kind in "iu" else reals("values", found)
        if checked.ndim not in (1, 2) or checked.shape[-1] != self.n:
            raise Refused(f"values must have shape ({self.n},) or (size, {self.n}), found shape {checked.shape}")
        step = rational("scale", scale)
        if step <= 0:
            raise Refused(f"scale must be above 0, found {shown(scale)}")
        return checked, step

    def _outside(self, columns: Array, step: Fraction) -> tuple[Array, Array]:
        """Tell for each coordinate and column (n, size) whether it lies below, or above, its bounds."""
        if columns.dtype.kind == "i":
            low, high = self.integer_bounds(step)  # ∓2**62 for none, beyond every value
            return columns < low[:, None], columns > high[:, None]
        real_low, real_high = (side[:, None] / float(step) for side in self.real_bounds())
        size = np.abs(columns)
        slack_low = TOLERANCE * np.maximum(size + np.where(np.isfinite(real_low), np.abs(real_low), 0.0), 1.0)
        slack_high = TOLERANCE * np.maximum(size + np.where(np.isfinite(real_high), np.abs(real_high), 0.0), 1.0)
        return columns < real_low - slack_low, columns > real_high + slack_high

    def _holds(self, columns: Array, step: Fraction) -> Bools:
        bad, equal = apart(self.equalities, columns)
        bad |= _missed(equal, columns, True, step).any(axis=0)
        bad |= _missed(self.inequalities, columns, False, step).any(axis=0)
        if self.has_bounds:
            below, above = self._outside(columns, step)
            bad |= below.any(axis=0) | above.any(axis=0)
        if self.branches:
            bad |= ~np.any([branch._holds(columns, step) for branch in self.branches], axis=0)
        return np.asarray(~bad, dtype=bool)


def _missed(rows: Rows, columns: Array, equality: bool, step: Fraction) -> Bools:
    test = missed_whole if columns.dtype.kind == "i" else missed_real
    return test(rows, columns, equality, step)


def _whole_bounds(bounds: ExactVector, step: Fraction, none: int, rounded: Any) -> Ints:
    if bounds.dtype != object and step == 1:
        return bounds.astype(np.int64, copy=False)
    if bounds.dtype != object and step.numerator == 1:
        open_end = bounds == none
        largest = np.abs(bounds, where=~open_end, out=np.zeros_like(bounds)).max(initial=0)
        if int(largest) * step.denominator < LARGEST:
            return np.where(open_end, none, np.where(open_end, 0, bounds) * step.denominator)
    found = [none if value == none else rounded(Fraction(value) / step) for value in bounds.tolist()]
    if any(abs(value) > LARGEST for value in found):
        raise Refused("a bound divided by the scale must stay below 2**62 in size")
    return np.array(found, dtype=np.int64)


def _row_obstacle(rows: Rows) -> str | None:
    """Return the name of a row a·z = b without solutions in whole numbers, or None."""
    filled = np.flatnonzero(rows.sizes > 0)
    if filled.size == 0:
        return None
    common = np.gcd.reduceat(rows.A.data, rows.A.indptr[filled])
    side = rows.b[filled]
    if side.dtype == object:
        bad = [Fraction(b) / int(g) for b, g in zip(side, common, strict=True)]
        broken = np.flatnonzero([value.denominator != 1 for value in bad])
    else:
        broken = np.flatnonzero(side % common != 0)
    return rows.names[int(filled[broken[0]])] if broken.size else None


def solvable(rows: Rows) -> bool:
    """Tell whether A z = b has a solution in whole numbers; True also where that is not known.

    The whole vectors (z, t) with A z − t b = 0 form a lattice; a solution is one with t = 1, and there is one
    if and only if the last entries of a lattice basis have no common divisor.
    """
    if rows.b.dtype == object or not rows.b.any():
        return True
    right = sparse.csr_array(-rows.b.reshape(-1, 1))
    try:
        basis = lattice_basis(eliminate(sparse.csr_array(sparse.hstack([rows.A, right], format="csr"))))
    except Refused:
        return True
    last = basis.tocsr()[[-1]].data
    return bool(last.size) and int(np.gcd.reduce(last)) == 1
