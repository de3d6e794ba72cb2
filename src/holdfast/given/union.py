"""A union of sides that exclude each other: choose a side by its weight, then draw from that side.

Given the union, the law is the mixture of the laws given each side, with weights that depend on the truth (TV Thm 12,
part 1). Outputs that no row of a side connects are independent, so a side is made of pieces: outputs with bounds alone,
or few tables that can be listed. The weight of a piece is the sum (or the integral) of e^{−Σ|u_i|/λ_i} over it, in
balls, and random bits are compared with the weights until they decide: exact for integer noise. What a piece is, is
decided by the public rows alone. Proofs: docs/theory/unions.md.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from itertools import combinations
from typing import Any

import numpy as np
import numpy.typing as npt
from flint import arb
from scipy import sparse
from scipy.sparse import csgraph

from holdfast.arguments import LARGEST, Refused
from holdfast.arrays import kept
from holdfast.constraints import Constraint, Part, System
from holdfast.constraints.possible.feasibility import conflict, whole_point
from holdfast.given.exact import boxes, enumeration
from holdfast.given.problem import Problem, Truth
from holdfast.noise.draws.comparison import Comparison, Weighed
from holdfast.noise.precision import ball
from holdfast.noise.spread import Spread
from holdfast.randomness import Stream

Values = npt.NDArray[Any]


def accepts(problem: Problem) -> bool:
    """Whether the noise is Laplace and the weight of every side is known."""
    return sides(problem) is not None


def draw(problem: Problem, truth: Truth, size: int, stream: Stream) -> npt.NDArray[Any]:
    found = sides(problem)
    assert found is not None
    assert truth is not None
    which = Comparison.of(Weights(found, truth)).draw(size, stream)
    noise = np.empty((size, problem.law.n), dtype=np.int64 if problem.law.integer else np.float64)
    for k, side in enumerate(found):
        mine = which == k
        if mine.any():
            noise[mine] = side.draw(truth, int(mine.sum()), stream)
    return noise


def spread(problem: Problem) -> Spread | None:
    del problem
    return None


@kept
def sides(problem: Problem) -> tuple[Side, ...] | None:
    """The sides of a union, taken apart; None where the weight of one is not known."""
    system, law = problem.system, problem.law
    if not system.branches or system.invariants.count or law.kind != "laplace" or None in law.laws:
        return None
    found = []
    for branch in system.branches:
        if law.integer and branch.integer_obstacle(problem.unit) is not None:
            continue  # no whole table lies on this side
        side = Side.of(Problem(law, branch, problem.unit))
        if side is None:
            return None
        found.append(side)
    return tuple(found)


def interval_weight(rate: Fraction, low: Fraction | None, high: Fraction | None, *, integer: bool) -> arb:
    """Enclose Σ e^{−rate·|u|} over the whole u with low ≤ u ≤ high, or the integral over the reals; None: no end."""
    if low is not None and high is not None and low > high:
        return arb(0)
    if high is not None and high < 0:  # the law is symmetric
        return interval_weight(rate, -high, None if low is None else -low, integer=integer)
    if low is not None and low > 0:
        return _one_sided(rate, low, high, integer)
    sides = _one_sided(rate, Fraction(0), high, integer) + _one_sided(
        rate, Fraction(0), None if low is None else -low, integer
    )
    return sides - 1 if integer else sides


def _one_sided(rate: Fraction, low: Fraction, high: Fraction | None, integer: bool) -> arb:
    """The same for 0 ≤ low."""
    first = ball(-rate * low).exp()
    step = -ball(-rate).expm1() if integer else ball(rate)
    if high is None:
        return first / step
    length = high - low + 1 if integer else high - low
    return first * -ball(-rate * length).expm1() / step


@dataclass(frozen=True, eq=False)
class Boxes:
    """Outputs with bounds and fixed values of their own.

    Law of a draw: e^{−|z−x|/λ} within bounds keeps its shape when a truth outside is moved to the nearest bound, so
    each output is drawn around a truth within its bounds.
    """

    problem: Problem

    @classmethod
    def of(cls, problem: Problem) -> Boxes | None:
        return cls(problem) if problem.system.coordinatewise else None

    @cached_property
    def ends(self) -> tuple[list[Fraction | None], list[Fraction | None]]:
        """Bounds in steps, fixed values included; None for no bound."""
        system, unit = self.problem.system, self.problem.unit
        low: list[Fraction | None] = [None if v <= -LARGEST else Fraction(v) / unit for v in system.lower.tolist()]
        high: list[Fraction | None] = [None if v >= LARGEST else Fraction(v) / unit for v in system.upper.tolist()]
        rows = system.equalities.chosen(system.equalities.sizes == 1)
        for position, factor, right in zip(rows.A.indices.tolist(), rows.A.data.tolist(), rows.b.tolist(), strict=True):
            value = Fraction(right) / int(factor) / unit
            before, after = low[position], high[position]
            low[position] = value if before is None else max(value, before)
            high[position] = value if after is None else min(value, after)
        if self.problem.law.integer:
            low = [None if end is None else Fraction(math.ceil(end)) for end in low]
            high = [None if end is None else Fraction(math.floor(end)) for end in high]
        return low, high

    def weight(self, truth: Values) -> arb:
        """Enclose the product of the outputs' own weights; equal ones are computed once."""
        law, (low, high) = self.problem.law, self.ends
        which = law.complete.tolist()
        counted: dict[tuple[Any, ...], int] = {}
        for at, bottom, top, value in zip(which, low, high, truth.tolist(), strict=True):
            here = Fraction(value)
            key = (at, None if bottom is None else bottom - here, None if top is None else top - here)
            counted[key] = counted.get(key, 0) + 1
        total = arb(1)
        for (at, bottom, top), count in counted.items():
            total = total * interval_weight(self._rate(at), bottom, top, integer=law.integer) ** count
        return total

    def _rate(self, which: int) -> Fraction:
        scale = self.problem.law.scale_values[which]
        assert scale is not None
        return 1 / scale

    def draw(self, truth: Values, size: int, stream: Stream) -> Values:
        """Draw each output around the point within its bounds that is nearest to the truth."""
        number = int if self.problem.law.integer else float
        inside = truth.copy()
        for i, (bottom, top) in enumerate(zip(*self.ends, strict=True)):
            if bottom is not None and inside[i] < bottom:
                inside[i] = number(bottom)
            if top is not None and inside[i] > top:
                inside[i] = number(top)
        return np.asarray(boxes.draw(self.problem, inside, size, stream) + (inside - truth))


@dataclass(frozen=True, eq=False)
class Listed:
    """Few tables, all of them listed."""

    problem: Problem
    tables: npt.NDArray[np.int64]

    @classmethod
    def of(cls, problem: Problem) -> Listed | None:
        alone = Problem(problem.law, replace(problem.system, branches=(problem.system,)), problem.unit)
        if not enumeration.accepts(alone):
            return None
        try:
            tables = enumeration.possible_tables(alone, np.zeros(problem.law.n, dtype=np.int64))
        except Refused:
            return None
        return cls(problem, tables)

    def weight(self, truth: Values) -> arb:
        """Enclose the sum of the tables' weights."""
        if not len(self.tables):
            return arb(0)
        total = arb(0)
        for exponent in enumeration.exponents(self.problem, self.tables - truth):
            total = total + ball(-exponent).exp()
        return total

    def draw(self, truth: Values, size: int, stream: Stream) -> Values:
        return enumeration.drawn_among(self.problem, self.tables - truth, size, stream)


@dataclass(frozen=True, eq=False)
class Side:
    """One side of a union, as independent pieces."""

    pieces: tuple[tuple[npt.NDArray[np.int64], Boxes | Listed], ...]

    @classmethod
    def of(cls, problem: Problem) -> Side | None:
        """Take a side apart; None where the weight of some piece is not known."""
        found: list[tuple[npt.NDArray[np.int64], Boxes | Listed]] = []
        for outputs in _shares(problem.system):
            part = problem
            if outputs.size < problem.law.n:
                part = Problem(problem.law.at(outputs), problem.system.restricted(outputs), problem.unit)
            piece = _piece(part)
            if piece is None:
                return None
            found.append((outputs, piece))
        return cls(tuple(found))

    def weight(self, truth: Values) -> arb:
        """Enclose the weight of all noise that leads from the truth to this side."""
        total = arb(1)
        for outputs, piece in self.pieces:
            total = total * piece.weight(truth[outputs])
        return total

    def draw(self, truth: Values, size: int, stream: Stream) -> Values:
        noise = np.empty((size, truth.size), dtype=truth.dtype)
        for outputs, piece in self.pieces:
            noise[:, outputs] = piece.draw(truth[outputs], size, stream)
        return noise


def _piece(part: Problem) -> Boxes | Listed | None:
    alone = Boxes.of(part)
    if alone is not None:
        return alone if part.law.integer or not part.system.equalities.count else None
    return Listed.of(part) if part.law.integer else None


def _shares(system: System) -> Iterator[npt.NDArray[np.int64]]:
    """Outputs that rows connect, and all outputs without such rows together."""
    rows = sparse.vstack([system.equalities.A, system.inequalities.A], format="csr")
    rows = rows[np.diff(rows.indptr) > 1]
    graph = sparse.block_array([[None, rows], [rows.T, None]], format="csr")
    label = np.full(system.n, -1, dtype=np.int64)
    if rows.shape[0]:
        touched = np.unique(rows.indices)
        label[touched] = csgraph.connected_components(graph, directed=False)[1][rows.shape[0] :][touched]
    for name in np.unique(label):
        yield np.flatnonzero(label == name)


@dataclass(frozen=True, eq=False)
class Weights(Weighed):
    """The law of the side of a union, for one truth."""

    sides: tuple[Side, ...]
    truth: npt.NDArray[Any]

    def weights(self) -> Iterable[arb]:
        return (side.weight(self.truth) for side in self.sides)


def refuse_overlap(problem: Problem) -> None:
    """Refuse a union whose sides are not known to exclude each other for the values that this noise can reach."""
    found = overlap(problem)
    if found is not None:
        raise Refused(found)


def overlap(problem: Problem) -> str | None:
    """The sentence that refuses sides which are not known to exclude each other, or None.

    A contradiction over the reals is proved in exact arithmetic; for whole numbers, where there is none, branch and
    bound decides.
    """
    return _overlap(problem.system, problem.law.integer and problem.unit == 1)


@kept
def _overlap(system: System, whole: bool) -> str | None:
    pairs = combinations(system.branches, 2)
    return next((_overlapping(*pair, whole) for pair in pairs if not _disjoint(*pair, whole)), None)


def _overlapping(left: System, right: System, whole: bool) -> str:
    one, other = (Constraint(_structural(side)) for side in (left, right))
    values = "whole numbers" if whole else "the values this noise can reach"
    return (
        f"the sides of a union must be disjoint: ({one}) and ({other}) are not known to exclude each other for "
        f"{values}; leave a gap between them"
    )


def _structural(side: System) -> tuple[Part, ...]:
    return tuple(part for part in side.parts if part.origin == "structural")


def _disjoint(left: System, right: System, whole: bool) -> bool:
    both = list(dict.fromkeys([*_structural(left), *_structural(right)]))
    return conflict(both, left.n) is not None or (whole and whole_point(both, left.n)[1])
