"""Rows that leave one direction free, for a truth that need not satisfy them: whole noise a + t·v, t whole.

Its exponent Σ|a_i + t·v_i|/λ_i is convex and piecewise linear in t. Between two places where a term changes its sign
the weights are geometric, so each such segment has a weight in closed form and is drawn exactly.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt
from flint import arb
from scipy import sparse

from holdfast.arguments import LARGEST
from holdfast.constraints import NullSpace
from holdfast.given.problem import Problem
from holdfast.noise import IntegerLaplace
from holdfast.noise.draws.comparison import Comparison
from holdfast.noise.precision import ball
from holdfast.randomness import Stream

#: Segments up to this length are drawn by a table of thresholds.
LONGEST_TABLE = 4096

Values = npt.NDArray[Any]


@dataclass(frozen=True)
class Segment:
    """The places start + k·step, k = 0 … count − 1 (None: no end), with weights e^{−first − k·slope}, slope ≥ 0."""

    start: int
    step: int
    count: int | None
    first: Fraction
    slope: Fraction

    def weight(self) -> arb:
        """Enclose the sum of the weights."""
        if self.slope == 0:
            assert self.count is not None
            return self.count * ball(-self.first).exp()
        length = arb(-1) if self.count is None else ball(-self.slope * self.count).expm1()
        return ball(-self.first).exp() * length / ball(-self.slope).expm1()

    def draw(self, size: int, stream: Stream) -> npt.NDArray[np.int64]:
        """Draw places."""
        if self.count is not None and self.count <= LONGEST_TABLE:
            return self._placed(Comparison.of(Run(self.slope, self.count)).draw(size, stream))
        if self.count is not None and self.slope * self.count <= 1:
            return self._placed(np.array([self._flat(self.count, stream) for _ in range(size)], dtype=np.int64))
        law, found = IntegerLaplace(1 / self.slope), np.empty(0, dtype=np.int64)
        while found.size < size:  # at least one draw in four is kept
            drawn = law.draw(4 * size + 16, stream)
            kept = drawn >= 0 if self.count is None else (drawn >= 0) & (drawn < self.count)
            found = np.concatenate([found, drawn[kept]])
        return self._placed(found[:size])

    def _placed(self, offsets: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        return np.asarray(self.start + self.step * offsets)

    def _flat(self, count: int, stream: Stream) -> int:
        """A nearly flat segment: a uniform offset k, kept with probability e^{−k·slope}, at least 1/e."""
        while True:
            offset = stream.bits(count.bit_length())
            if offset < count and Comparison.of(Coin(offset * self.slope)).draw(1, stream)[0] == 0:
                return offset


@dataclass(frozen=True)
class Run:
    """Cumulative probabilities of 0 … count − 1 with weights e^{−k·slope}."""

    slope: Fraction
    count: int

    @property
    def size(self) -> int:
        """Number of values."""
        return self.count

    def at(self, k: int) -> arb:
        """Enclose the probability of the first k values."""
        if self.slope == 0:
            return ball(Fraction(k, self.count))
        return ball(-k * self.slope).expm1() / ball(-self.count * self.slope).expm1()

    def run(self) -> Iterator[arb]:
        """Enclose the cumulative probabilities in turn, without the last."""
        return (self.at(k) for k in range(1, self.count))


@dataclass(frozen=True)
class Coin:
    """0 with probability e^{−exponent}, otherwise 1."""

    exponent: Fraction

    @property
    def size(self) -> int:
        """Two values."""
        return 2

    def at(self, k: int) -> arb:
        """Enclose the probability of the first k values."""
        return arb(k) if k != 1 else ball(-self.exponent).exp()

    def run(self) -> Iterator[arb]:
        """Enclose the probability of 0."""
        return iter([self.at(1)])


@dataclass(frozen=True, eq=False)
class Choice:
    """Cumulative probabilities of segments, by their weights."""

    segments: tuple[Segment, ...]

    @property
    def size(self) -> int:
        """Number of segments."""
        return len(self.segments)

    def at(self, k: int) -> arb:
        """Enclose the probability of the first k segments."""
        weights = [segment.weight() for segment in self.segments]
        return arb(min(k, 1)) if k in (0, self.size) else sum(weights[:k], arb(0)) / sum(weights, arb(0))

    def run(self) -> Iterator[arb]:
        """Enclose the cumulative probabilities in turn, without the last."""
        return (self.at(k) for k in range(1, self.size))


@dataclass(frozen=True, eq=False)
class Line:
    """Whole tables point + t·direction within bounds and inequalities; no table at all if `point` is None."""

    problem: Problem
    point: list[int] | None
    direction: list[int]

    @classmethod
    def of(cls, problem: Problem) -> Line | None:
        """The piece, if its equalities leave at most one direction free."""
        if problem.space.dimension > 1:
            return None
        point = whole_solution(problem)
        if problem.space.dimension == 0:
            return cls(problem, point, [0] * problem.law.n)
        direction = problem.space.lattice_basis().toarray()[:, 0]
        return cls(problem, point, [int(entry) for entry in direction])

    def weight(self, truth: Values) -> arb:
        """Enclose the sum of the segments' weights."""
        total = arb(0)
        for segment in self._segments(truth):
            total = total + segment.weight()
        return total

    def draw(self, truth: Values, size: int, stream: Stream) -> Values:
        """Draw a segment, then a place on it."""
        segments = self._segments(truth)
        which = Comparison.of(Choice(segments)).draw(size, stream)
        places = np.empty(size, dtype=np.int64)
        for k, segment in enumerate(segments):
            mine = which == k
            if mine.any():
                places[mine] = segment.draw(int(mine.sum()), stream)
        return np.asarray(np.array(self.point, dtype=np.int64) - truth + np.multiply.outer(places, self.direction))

    def _range(self) -> tuple[int | None, int | None]:
        """The least and largest t that bounds and inequalities allow; None for no end."""
        assert self.point is not None
        ends: list[tuple[int, Fraction]] = []  # factor·t ≥ right
        system, unit = self.problem.system, self.problem.unit
        bounds = zip(*(side.tolist() for side in system.integer_bounds(unit)), strict=True)
        for z, v, (low, high) in zip(self.point, self.direction, bounds, strict=True):
            if low > -LARGEST:
                ends.append((v, Fraction(low - z)))
            if high < LARGEST:
                ends.append((-v, Fraction(z - high)))
        rows = system.inequalities
        for i in range(rows.count):
            row = rows.A[[i]]
            terms = list(zip(row.indices.tolist(), row.data.tolist(), strict=True))
            reached = sum(a * self.point[j] for j, a in terms)
            ends.append((sum(a * self.direction[j] for j, a in terms), Fraction(rows.b.item(i)) / unit - reached))
        least: int | None = None
        most: int | None = None
        for factor, right in ends:
            if factor == 0 and right > 0:
                return 1, 0
            if factor > 0:
                bottom = math.ceil(right / factor)
                least = bottom if least is None else max(least, bottom)
            elif factor < 0:
                top = math.floor(right / factor)
                most = top if most is None else min(most, top)
        return least, most

    def _segments(self, truth: Values) -> tuple[Segment, ...]:
        """The line cut where a term of the exponent changes its sign."""
        if self.point is None:
            return ()
        least, most = self._range() if any(self.direction) else (0, 0)
        if not any(self.direction) and self._range() == (1, 0):
            return ()
        law, terms = self.problem.law, []
        for k, z, v, x in zip(law.complete.tolist(), self.point, self.direction, truth.tolist(), strict=True):
            scale = law.scale_values[k]
            assert scale is not None
            terms.append((z - int(x), v, 1 / scale))

        def exponent(t: int) -> Fraction:
            return sum((abs(a + t * v) * rate for a, v, rate in terms), Fraction(0))

        turns = sorted({-a // v for a, v, _ in terms if v})
        starts = [least, *(turn + 1 for turn in turns)]
        ends = [*turns, most]
        found = []
        for start, end in zip(starts, ends, strict=True):
            first = start if least is None else least if start is None else max(start, least)
            last = end if most is None else most if end is None else min(end, most)
            if first is not None and last is not None:
                if first > last:
                    continue
                slope = exponent(first + 1) - exponent(first) if last > first else Fraction(0)
                step = 1 if slope >= 0 else -1
                begin = first if step > 0 else last
                found.append(Segment(begin, step, last - first + 1, exponent(begin), abs(slope)))
            elif last is not None:
                found.append(Segment(last, -1, None, exponent(last), exponent(last - 1) - exponent(last)))
            elif first is not None:
                found.append(Segment(first, 1, None, exponent(first), exponent(first + 1) - exponent(first)))
        return tuple(found)


def whole_solution(problem: Problem) -> list[int] | None:
    """A whole z with A z = b, in steps; None if there is none.

    The whole vectors (z, t) with A z − t·b = 0 form a lattice; solutions are those with t = 1.
    """
    rows, n = problem.system.equalities, problem.law.n
    right = [Fraction(b) / problem.unit for b in rows.b.tolist()]
    if any(value.denominator != 1 for value in right):
        return None
    if not any(right):
        return [0] * n
    column = sparse.csr_array(np.array([[-int(value)] for value in right], dtype=np.int64))
    wide = sparse.csr_array(sparse.hstack([rows.A, column], format="csr"))
    basis = NullSpace.of(wide).lattice_basis().tocsc()
    solution, reached = [0] * (n + 1), 0
    for k in basis.tocsr()[[-1]].indices.tolist():
        vector = [int(entry) for entry in basis[:, [k]].toarray().ravel()]
        reached, one, other = _bezout(reached, vector[-1])
        solution = [one * a + other * b for a, b in zip(solution, vector, strict=True)]
    return solution[:n] if reached == 1 else None


def _bezout(a: int, b: int) -> tuple[int, int, int]:
    """(g, p, q) with g = gcd(a, b) = p·a + q·b ≥ 0."""
    p, q, r, s = 1, 0, 0, 1
    while b:
        k = a // b
        a, b, p, q, r, s = b, a - k * b, r, s, p - k * r, q - k * s
    return (a, p, q) if a >= 0 else (-a, -p, -q)
