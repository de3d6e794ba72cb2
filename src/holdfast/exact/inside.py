"""A point inside, and whole coordinates in which what is allowed is nearly round, in rationals for small systems.

Rows that are tight at *every* allowed point are found, and a point at which no other row is tight. A basis of the whole
vectors that keep the former is reduced in the norm Σ (row·x / slack of the row)² at that point: in its coordinates what
is thin in some direction falls into few slices (Lenstra), and branch and bound finds a whole point, or proves that
there is none: each node is the allowed real point nearest to one inside. It ends after a number of nodes, never a time.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import flint
import numpy as np

from holdfast.exact.nearest_rational import ExactRows, nearest
from holdfast.exact.whole_rows import WholeRows

#: Bits that are kept of lengths when a basis is reduced.
PRECISION = 24
#: Nodes of one search: the least, the most, and that many entries of rows in all nodes together.
LEAST_NODES, MOST_NODES, MOST_ENTRIES = 60, 2_000, 400_000

Row = list[int]
Cut = tuple[Row, int]


@dataclass(frozen=True, eq=False)
class Inside:
    """A point at which only the rows `always` are tight, those that are tight at every allowed point."""

    point: list[Fraction]
    always: list[int]

    @classmethod
    def of(cls, rows: ExactRows, near: Sequence[Fraction], size: int) -> Inside | None:
        """Find it from an allowed point; `size` says how far to look. None where no point is allowed.

        A row g can be left from the allowed point p if and only if the allowed point nearest to p + t·g is another one.
        """
        plain = np.ones(len(near))
        first = nearest(rows, plain, near)
        if first is None:
            return None
        points, slacks = [first.point], rows.slacks(first.point)
        best = list(slacks)
        always = list(range(rows.equalities))
        for i in range(rows.equalities, rows.count):
            if best[i] > 0:
                continue
            row = rows.row(i)
            times = Fraction(size, max(1, *map(abs, row)))
            towards = [at + times * entry for at, entry in zip(first.point, row, strict=True)]
            found = nearest(rows, plain, towards)
            assert found is not None
            slacks = rows.slacks(found.point)
            if slacks[i] == 0:
                always.append(i)
                continue
            points.append(found.point)
            best = [max(a, b) for a, b in zip(best, slacks, strict=True)]
        middle = [sum(values, Fraction(0)) / len(points) for values in zip(*points, strict=True)]
        return cls(middle, always)


@dataclass(frozen=True, eq=False)
class Slices:
    """Whole rows that read off, from a point that keeps what is always tight, how often each basis vector is taken.

    `origin` holds what they give at a whole point that keeps it too.
    """

    coordinates: list[Row]
    origin: list[int]

    @classmethod
    def of(cls, rows: ExactRows, inside: Inside, near: Sequence[Fraction]) -> Slices | None:
        """Make them; None where no whole point keeps what is always tight."""
        held = WholeRows.of([rows.row(i) for i in inside.always], len(near))
        base = held.beside([round(x) for x in near], [rows.sides[i] for i in inside.always])
        if base is None:
            return None
        coordinates = _coordinates(_round_basis(rows, inside, held.basis), len(near))
        return cls(coordinates, [int(_product(row, base)) for row in coordinates])

    def cuts(self, point: Sequence[Fraction]) -> tuple[Cut, Cut] | None:
        """Two rows that leave out an allowed point and keep all whole ones, the nearer last; None where it is whole.

        The last coordinate that is not whole is cut.
        """
        for row, start in zip(reversed(self.coordinates), reversed(self.origin), strict=True):
            place = _product(row, point) - start
            if place.denominator == 1:
                continue
            down = math.floor(place)
            lower, upper = ([-a for a in row], -start - down), (row, start + down + 1)
            return (lower, upper) if place - down > Fraction(1, 2) else (upper, lower)
        return None


def _product(row: Sequence[int], point: Sequence[int | Fraction]) -> Fraction:
    return Fraction(sum((a * x for a, x in zip(row, point, strict=True) if a), Fraction(0)))


def with_cuts(rows: ExactRows, cuts: Sequence[Cut]) -> ExactRows:
    """The rows with some more inequalities."""
    entries = [x for row in rows.C.tolist() for x in row] + [x for row, _ in cuts for x in row]
    C = flint.fmpz_mat(rows.count + len(cuts), rows.C.ncols(), entries)
    return replace(rows, C=C, sides=(*rows.sides, *(side for _, side in cuts)))


def _round_basis(rows: ExactRows, inside: Inside, basis: list[Row]) -> list[Row]:
    """The same lattice with vectors that are short compared with what the rows leave open."""
    always = set(inside.always)
    slacks = rows.slacks(inside.point)
    limits = [(rows.row(i), slacks[i]) for i in range(rows.count) if i not in always]
    if len(basis) < 2 or not limits:
        return basis
    lengths = [[abs(_product(row, vector)) / slack for row, slack in limits] for vector in basis]
    unit = min((length for line in lengths for length in line if length), default=Fraction(1)) / 2**PRECISION
    scaled = [[round(_product(row, vector) / slack / unit) for row, slack in limits] for vector in basis]
    if flint.fmpz_mat(scaled).rank() < len(basis):  # some direction is open for ever: no row measures it
        return basis
    _, turned = flint.fmpz_mat(scaled).lll(True)
    return [[int(x) for x in line] for line in (turned * flint.fmpz_mat(basis)).tolist()]


def _coordinates(basis: list[Row], n: int) -> list[Row]:
    """Whole rows that read off how often each vector of the basis is taken."""
    vectors = WholeRows.of(basis, n)
    found = []
    for k in range(len(basis)):
        row = vectors.near([int(j == k) for j in range(len(basis))])
        assert row is not None
        found.append(row[0])
    return found


def whole_in(rows: ExactRows, nodes: int | None = None) -> tuple[list[int] | None, bool]:
    """Return (point, False) for a whole point, (None, True) if there is none, (None, False) if that stays open."""
    n = rows.C.ncols()
    first = nearest(rows, np.ones(n), [Fraction(0)] * n)
    inside = None if first is None else Inside.of(rows, first.point, 1)
    slices = None if inside is None else Slices.of(rows, inside, inside.point)
    if inside is None or slices is None:
        return None, True
    if nodes is None:
        nodes = min(MOST_NODES, max(LEAST_NODES, MOST_ENTRIES // (n * max(rows.count, 1))))
    waiting: list[list[Cut]] = [[]]
    for _ in range(nodes):
        if not waiting:
            break
        cuts = waiting.pop()
        found = nearest(with_cuts(rows, cuts), np.ones(n), inside.point)
        if found is None:
            continue
        pair = slices.cuts(found.point)
        if pair is None:
            return [int(x) for x in found.point], False
        waiting += [[*cuts, cut] for cut in pair]
    return None, not waiting
