"""Whole points by branch and bound in rationals, for small lattices in which allowed points may be rare.

Each node is a real optimum (`dual_steps`). Branches are made on the whole coordinates of a lattice basis, not on
outputs, and the basis is reduced in the norm Σ (row·x / slack of the row)² at a point inside: in its coordinates what
is allowed is nearly round, so what is thin in some direction falls into few slices (Lenstra). The last coordinate that
is not whole is cut first. The search ends after a given number of nodes, never after a time.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import flint
import numpy as np

from holdfast.imaging.dual_steps import ExactRows, Nearest, nearest, nearest_absolute
from holdfast.imaging.grid import Ints, Task
from holdfast.imaging.inwards import Inside
from holdfast.imaging.whole_rows import WholeRows

#: Nodes of one search, and nodes after which it ends if an allowed point is known.
MOST_NODES, ENOUGH_NODES = 400, 80
#: What an output that is not measured weighs, as a share of the least weight.
HARDLY = 2.0**-30
#: Bits that are kept of lengths when a basis is reduced.
PRECISION = 24

Row = list[int]


@dataclass(frozen=True, eq=False)
class Branched:
    """The best whole moves found, and whether no others are nearer."""

    moves: Ints
    complete: bool


def nearest_branched(
    task: Task, rows: ExactRows, inside: Inside, real: Sequence[Fraction], known: Ints | None
) -> Branched | None:
    """The whole moves with the least Σ w x²; `real` are real ones, `known` are whole ones that are allowed."""
    n = task.start.size
    held = WholeRows.of([rows.row(i) for i in inside.always], n)
    base = held.beside([round(x) for x in real], [rows.sides[i] for i in inside.always])
    if base is None:
        return None
    coordinates = _coordinates(_round_basis(rows, inside, held.basis), n)
    origin = [_product(row, base) for row in coordinates]
    best, least = known, None if known is None else _cost(task, known.tolist())
    waiting: list[list[tuple[Row, int]]] = [[]]
    for node in range(MOST_NODES):
        if not waiting or (best is not None and node >= ENOUGH_NODES):
            break
        cuts = waiting.pop()
        found = least_squares(task, _cut(rows, cuts))
        if found is None or (least is not None and _cost(task, found.point) >= least):
            continue
        places = [_product(row, found.point) - start for row, start in zip(coordinates, origin, strict=True)]
        broken = [k for k, place in enumerate(places) if place.denominator != 1]
        if not broken:
            best, least = np.array([int(x) for x in found.point], dtype=np.int64), _cost(task, found.point)
            continue
        k = broken[-1]
        down = math.floor(places[k])
        lower = ([-a for a in coordinates[k]], -int(origin[k] + down))
        upper = (coordinates[k], int(origin[k] + down + 1))
        pair = [lower, upper] if places[k] - down > Fraction(1, 2) else [upper, lower]
        waiting += [[*cuts, cut] for cut in pair]
    return None if best is None else Branched(best, not waiting)


def _product(row: Sequence[int], point: Sequence[int | Fraction]) -> Fraction:
    return Fraction(sum((a * x for a, x in zip(row, point, strict=True) if a), Fraction(0)))


def real_optimum(task: Task, rows: ExactRows) -> Nearest | None:
    """The real moves with the least cost that satisfy some rows."""
    return nearest_absolute(rows, task.shape.weights) if task.problem.norm == "l1" else least_squares(task, rows)


def least_squares(task: Task, rows: ExactRows) -> Nearest | None:
    """The real moves with the least Σ w x² that satisfy some rows; outputs that are not measured hardly weigh."""
    weights = task.shape.weights
    least = weights[weights > 0].min(initial=1.0)
    return nearest(rows, np.where(weights > 0, weights, least * HARDLY), [Fraction(0)] * task.start.size)


def _cost(task: Task, moves: Sequence[int | Fraction]) -> Fraction:
    return sum((Fraction(w) * x * x for w, x in zip(task.shape.weights.tolist(), moves, strict=True)), Fraction(0))


def _cut(rows: ExactRows, cuts: Sequence[tuple[Row, int]]) -> ExactRows:
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
