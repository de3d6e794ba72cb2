"""One side of a union: how much noise weighs on it, and draws from it, for a truth that may lie on another side.

Outputs that no row connects are independent, so a side is made of pieces: outputs with bounds alone, a total, rows that
leave one direction free, or few tables that can be listed; or it is one small hierarchy. The weight of a piece is the
sum (or the integral) of e^{−Σ|u_i|/λ_i} over it, in balls of any precision; a draw is exact for integer noise. What a
piece is, is decided by the public rows alone.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
from flint import arb
from scipy import sparse
from scipy.sparse import csgraph

from holdfast.arguments import LARGEST, Refused
from holdfast.constraints import System
from holdfast.given.exact import boxes, enumeration
from holdfast.given.problem import Problem
from holdfast.given.unions.segments import Line
from holdfast.given.unions.tree_side import Tree
from holdfast.noise.precision import ball
from holdfast.randomness import Stream
from holdfast.trees.totals.exchanged import Exchanged, spread_evenly

Values = npt.NDArray[Any]


class Piece(Protocol):
    """Some outputs of a side that are independent of the others."""

    def weight(self, truth: Values) -> arb:
        """Enclose the sum or integral of e^{−Σ|u_i|/λ_i} over all noise that leads from the truth to this piece."""

    def draw(self, truth: Values, size: int, stream: Stream) -> Values:
        """Draw noise that leads from the truth to this piece, (size, n)."""


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
        """The piece, if every output is constrained by itself."""
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
class Total:
    """Integer noise of one scale and one row with coefficients ±c on all outputs (THEORY H3)."""

    problem: Problem
    signs: npt.NDArray[np.int64]
    right: Fraction

    @classmethod
    def of(cls, problem: Problem) -> Total | None:
        """The piece, if that is what the rows say."""
        system = problem.system
        rows = system.equalities
        if rows.count != 1 or system.has_inequalities or not problem.uniform_scale():
            return None
        sizes = np.abs(rows.A.data)
        if rows.A.nnz != problem.law.n or (sizes != sizes[0]).any():
            return None
        signs = np.empty(problem.law.n, dtype=np.int64)
        signs[rows.A.indices] = np.sign(rows.A.data)
        return cls(problem, signs, Fraction(rows.b.item(0)) / int(sizes[0]) / problem.unit)

    @property
    def _scale(self) -> Fraction:
        scale = self.problem.law.scale_values[0]
        assert scale is not None
        return scale

    def _surplus(self, truth: Values) -> int | None:
        """What the noise must add up to; None where no whole noise does."""
        missing = self.right - sum(int(s) * int(v) for s, v in zip(self.signs, truth, strict=True))
        return int(missing) if missing.denominator == 1 else None

    def weight(self, truth: Values) -> arb:
        """Enclose (1−α²)ⁿ·α^|s|·Σ_j C(n+j−1, j)·C(n+|s|+j−1, |s|+j)·α^{2j}, since α^|u| = (1−α²)·Σ_{a−b=u} α^{a+b}."""
        surplus = self._surplus(truth)
        if surplus is None:
            return arb(0)
        n, rate, s = self.problem.law.n, 1 / self._scale, abs(surplus)
        pairs = Exchanged(n, self._scale, s).total()
        return (-ball(-2 * rate).expm1()) ** n * ball(-rate * s).exp() * pairs

    def draw(self, truth: Values, size: int, stream: Stream) -> Values:
        """Draw two uniform compositions."""
        surplus = self._surplus(truth)
        assert surplus is not None
        drawn = spread_evenly(np.full(size, surplus, dtype=np.int64), self.problem.law.n, self._scale, stream)
        return np.asarray(drawn * self.signs)


@dataclass(frozen=True, eq=False)
class Listed:
    """Few tables, all of them listed."""

    problem: Problem
    tables: npt.NDArray[np.int64]

    @classmethod
    def of(cls, problem: Problem) -> Listed | None:
        """The piece, if its tables are few enough to be listed."""
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
        """Draw one of the tables."""
        return enumeration.drawn_among(self.problem, self.tables - truth, size, stream)


@dataclass(frozen=True, eq=False)
class Side:
    """One side of a union, as independent pieces."""

    pieces: tuple[tuple[npt.NDArray[np.int64], Piece], ...]

    @classmethod
    def of(cls, problem: Problem, *, adds_up: bool) -> Side | None:
        """Take a side apart; None where the weight of some piece is not known.

        `adds_up` says that the truth obeys the consistency of every hierarchy in the side.
        """
        found = []
        for outputs in _shares(problem.system):
            part = problem
            if outputs.size < problem.law.n:
                part = Problem(problem.law.at(outputs), problem.system.restricted(outputs), problem.unit)
            piece = _piece(part)
            if piece is None:
                tree = Tree.of(problem) if adds_up else None
                return None if tree is None else cls(((np.arange(problem.law.n), tree),))
            found.append((outputs, piece))
        return cls(tuple(found))

    def weight(self, truth: Values) -> arb:
        """Enclose the weight of all noise that leads from the truth to this side."""
        total = arb(1)
        for outputs, piece in self.pieces:
            total = total * piece.weight(truth[outputs])
        return total

    def draw(self, truth: Values, size: int, stream: Stream) -> Values:
        """Draw noise that leads from the truth to this side, (size, n)."""
        noise = np.empty((size, truth.size), dtype=truth.dtype)
        for outputs, piece in self.pieces:
            noise[:, outputs] = piece.draw(truth[outputs], size, stream)
        return noise


def _piece(part: Problem) -> Piece | None:
    alone = Boxes.of(part)
    if alone is not None:
        continuous = not part.law.integer
        return None if continuous and part.system.equalities.count else alone
    if not part.law.integer:
        return None
    return Total.of(part) or Line.of(part) or Listed.of(part)


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
