"""Interaction spaces of a cube: noise of one variance on each, without a matrix (docs/theory/subspace.md).

The answers of a cube's cells or of stacked margins split into one space for each set S of axes that some margin keeps,
of dimension Π_{a∈S}(n_a − 1). Exact margins remove the sets they keep; every symmetric covariance on what is left is
Σ = Σ_S c_S P_S, so losses are sums of a few fractions, exact, and the optimum is a program in the c_S.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import combinations
from typing import Any

import numpy as np

from holdfast.arrays import Floats
from holdfast.constraints import ExactMargins, System
from holdfast.evidence import Evidence
from holdfast.noise.spread import Spread
from holdfast.queries import Moves, Neighbours, Query
from holdfast.randomness import Stream
from holdfast.subspace.ellipsoids import MOST_ROUNDS, ascend
from holdfast.subspace.law import normal_spread, shown, times_one_record

Axes = tuple[int, ...]

#: Sets of axes are listed up to this many axes of two or more values.
MOST_AXES = 9


@dataclass(frozen=True, eq=False)
class CubeSpaces:
    """Margins `keep` of a cube are asked (the cells: one margin with all axes); N is made of the sets `free`."""

    shape: tuple[int, ...]
    keep: tuple[Axes, ...]
    free: tuple[Axes, ...]

    @classmethod
    def of(cls, query: Query, system: System) -> CubeSpaces | None:
        """Recognise cells with exact margins or a total, and consistent margins of which some are exact; else None."""
        found = _asked(query, system)
        if found is None or system.branches or system.has_inequalities:
            return None
        shape, keep = found
        exact = _exact_margins(query, system, shape, keep)
        moving = {a for a, size in enumerate(shape) if size > 1}
        if exact is None or len(moving) > MOST_AXES:
            return None
        sets = {
            chosen
            for axes in keep
            for size in range(len(axes) + 1)
            for chosen in combinations(sorted(moving & set(axes)), size)
        }
        free = sorted((s for s in sets if not any(set(s) <= set(e) for e in exact)), key=lambda s: (len(s), s))
        return cls(shape, keep, tuple(free)) if free else None

    @property
    def n(self) -> int:
        return sum(self._size(axes) for axes in self.keep)

    def _size(self, axes: Axes) -> int:
        return math.prod(self.shape[a] for a in axes)

    def _sides(self, axes: Axes) -> tuple[int, ...]:
        return tuple(self.shape[a] for a in axes)

    def _margins_with(self, chosen: Axes) -> list[int]:
        return [m for m, axes in enumerate(self.keep) if set(chosen) <= set(axes)]

    @cached_property
    def dimensions(self) -> list[int]:
        return [math.prod(self.shape[a] - 1 for a in chosen) for chosen in self.free]

    @cached_property
    def lengths(self) -> list[Fraction]:
        """e_S = Σ 1/|m| over the margins m that keep S: a cell's column has ‖P_S w‖² = e_S·dimension."""
        return [
            sum((Fraction(1, self._size(self.keep[m])) for m in self._margins_with(chosen)), Fraction(0))
            for chosen in self.free
        ]

    def squares(self, adds: bool) -> list[list[Fraction]]:
        """‖P_S d‖² for each kind of difference (rows) and each S: one kind of cell, or pairs by where they differ."""
        if adds:
            return [[e * d for e, d in zip(self.lengths, self.dimensions, strict=True)]]
        moving = [a for a, size in enumerate(self.shape) if size > 1]
        found = []
        for count in range(1, len(moving) + 1):
            for differ in combinations(moving, count):
                row = []
                for chosen, e, dimension in zip(self.free, self.lengths, self.dimensions, strict=True):
                    agree = math.prod(-1 if a in differ else self.shape[a] - 1 for a in chosen)
                    row.append(2 * e * (dimension - agree))
                found.append(row)
        return found

    def variances(self, c: Floats) -> Floats:
        """The variance of every output for Σ_S c_S P_S."""
        parts = []
        for m, axes in enumerate(self.keep):
            size = self._size(axes)
            each = sum(
                c[k] * d / (size**2 * float(e))
                for k, (chosen, e, d) in enumerate(zip(self.free, self.lengths, self.dimensions, strict=True))
                if m in self._margins_with(chosen)
            )
            parts.append(np.full(size, float(each)))
        return np.concatenate(parts)

    def costs(self, weights: Floats | None) -> Floats | None:
        """tr G P_S for each S, where the outputs' weights are one per margin; None where they are not."""
        if weights is None:
            return np.array(self.dimensions, dtype=np.float64)
        parts = np.split(weights, np.cumsum([self._size(axes) for axes in self.keep])[:-1])
        if any((part != part[0]).any() for part in parts):
            return None
        result = []
        for chosen, e, dimension in zip(self.free, self.lengths, self.dimensions, strict=True):
            heavy = sum(float(parts[m][0]) / self._size(self.keep[m]) for m in self._margins_with(chosen))
            result.append(dimension * heavy / float(e))
        return np.array(result)

    def normals(self, size: int, stream: Stream) -> list[Floats]:
        """Centred tables of normal numbers on the free sets."""
        return [
            _centred(stream.normals(size * math.prod(self._sides(chosen))).reshape((size, *self._sides(chosen))))
            for chosen in self.free
        ]

    def spread_out(self, parts: list[Floats], size: int) -> Floats:
        """Turn tables on the free sets (size, sides of S), in orthonormal scale, into outputs (size, n)."""
        outputs = []
        for m, axes in enumerate(self.keep):
            total: Any = np.zeros((size, *self._sides(axes)))
            for k, (chosen, e) in enumerate(zip(self.free, self.lengths, strict=True)):
                if m in self._margins_with(chosen):
                    factor = math.sqrt(self._size(chosen) / float(e)) / self._size(axes)
                    total += factor * parts[k].reshape((size, *(self.shape[a] if a in chosen else 1 for a in axes)))
            outputs.append(total.reshape(size, -1))
        return np.concatenate(outputs, axis=1)

    def gathered(self, values: Floats) -> list[Floats]:
        """The components of vectors (size, n) in every free space, as centred tables (size, sides of S)."""
        parts = np.split(values, np.cumsum([self._size(axes) for axes in self.keep])[:-1], axis=1)
        result = []
        for chosen, e in zip(self.free, self.lengths, strict=True):
            table: Any = np.zeros((len(values), *self._sides(chosen)))
            for m in self._margins_with(chosen):
                axes = self.keep[m]
                summed = tuple(place + 1 for place, a in enumerate(axes) if a not in chosen)
                factor = math.sqrt(self._size(chosen) / float(e)) / self._size(axes)
                table += factor * parts[m].reshape((len(values), *self._sides(axes))).sum(axis=summed)
            result.append(_centred(table))
        return result

    def project(self, values: Floats) -> Floats:
        """Π_N of vectors (size, n)."""
        return self.spread_out(self.gathered(values), len(values))


@dataclass(frozen=True, eq=False)
class CubeGaussian:
    """Law: N(0, Σ_S c_S P_S). Its loss is a maximum of exact fractions over the kinds of differences."""

    name: str
    spaces: CubeSpaces
    c: tuple[Fraction, ...]
    neighbours: Neighbours
    evidence: Evidence
    kind: str = "gaussian"
    exact: bool = True

    @cached_property
    def largest(self) -> Fraction:
        return _largest(self.spaces.squares(self.neighbours.adds), self.c) * self.neighbours.records**2

    def draw(self, size: int, stream: Stream) -> Floats:
        """Draw normal numbers on the free spaces, and add them up."""
        normals = self.spaces.normals(size, stream)
        return self.spaces.spread_out([math.sqrt(c) * each for c, each in zip(self.c, normals, strict=True)], size)

    def spread(self) -> Spread:
        c = np.array([float(value) for value in self.c])

        def variance_of(weights: Floats) -> float:
            parts = self.spaces.gathered(weights[None])
            return float(sum(each * (part**2).sum() for each, part in zip(c, parts, strict=True)))

        return normal_spread(self.spaces.variances(c), variance_of)

    def sharing(self, moves: Moves) -> Fraction:
        """‖d‖²/c where all variances are one; otherwise the least variance, or the triangle inequality."""
        several = times_one_record(self.largest, 2, self.neighbours.records, self.neighbours.adds, moves)
        return min(several, moves.largest([1], None, 2) / min(self.c))


def spherical(spaces: CubeSpaces, neighbours: Neighbours) -> CubeGaussian:
    """Noise of variance 1 in every direction of N (SDP Cor 15)."""
    ones = tuple(Fraction(1) for _ in spaces.dimensions)
    largest = _largest(spaces.squares(neighbours.adds), ones) * neighbours.records**2
    return CubeGaussian("extended Gaussian", spaces, ones, neighbours, shown(sum(spaces.dimensions) * float(largest)))


def optimal(spaces: CubeSpaces, neighbours: Neighbours, costs: Floats) -> CubeGaussian:
    """The optimal variances: min Σ cost_S c_S subject to Σ_S ‖P_S d‖²/c_S ≤ 1 for every kind of difference."""
    squares = spaces.squares(neighbours.adds)
    table = np.array([[float(value) for value in row] for row in squares])

    def moments(weights: Floats) -> Floats:
        return np.maximum(weights @ table, np.finfo(float).tiny)

    def ratios(weights: Floats) -> tuple[Floats, float, float]:
        found = moments(weights)
        value = float(np.sqrt(costs * found).sum())
        phi = table @ np.sqrt(costs / found) / value
        return phi, 2 * math.log(value), float(phi.max())

    found = moments(ascend(ratios, np.ones(len(table)), patience=MOST_ROUNDS))  # rounds cost next to nothing here
    c = tuple(Fraction(value) for value in np.sqrt(found / costs))
    records = neighbours.records**2
    bound = float(np.sqrt(costs * found).sum()) ** 2 * records
    error = float(costs @ np.sqrt(found / costs)) * float(_largest(squares, c)) * records
    return CubeGaussian("optimal Gaussian", spaces, c, neighbours, shown(error, bound))


def _largest(squares: list[list[Fraction]], c: tuple[Fraction, ...]) -> Fraction:
    return max(sum((b / v for b, v in zip(row, c, strict=True)), Fraction(0)) for row in squares)


def _centred(tables: Floats) -> Floats:
    """Subtract the mean along every axis but the first."""
    for axis in range(1, tables.ndim):
        tables = tables - tables.mean(axis=axis, keepdims=True)
    return tables


def _asked(query: Query, system: System) -> tuple[tuple[int, ...], tuple[Axes, ...]] | None:
    """The shape of the cube and the margins that are asked, or None; cells have the shape of their exact margins."""
    if query.identity:
        shapes = {part.source.shape for part in system.parts if isinstance(part.source, ExactMargins)}
        if len(shapes) > 1:
            return None
        shape = next(iter(shapes), (query.n,))
        return shape, (tuple(range(len(shape))),)
    keep = getattr(query, "keep", None)
    return None if query.cube is None or query.cube.recoded or keep is None else (query.cube.shape, keep)


def _exact_margins(query: Query, system: System, shape: tuple[int, ...], keep: tuple[Axes, ...]) -> list[Axes] | None:
    """The margins that are exact, or None where something else must hold too."""
    exact: list[Axes] = []
    consistent = query.identity
    for part in system.parts:
        if part.kind == "consistent":
            same = part.rows is not None and _same_rows(part.rows.A, query.consistency())
            if not same:
                return None
            consistent = True
        elif query.identity and isinstance(part.source, ExactMargins):
            exact.extend(part.source.keep)
        elif part.kind == "invariant" and part.rows is not None:
            found = _whole_margins(part.rows.A, query.identity, shape, keep)
            if found is None:
                return None
            exact.extend(found)
        else:
            return None
    return exact if consistent else None


def _same_rows(left: Any, right: Any) -> bool:
    return left.shape == right.shape and (left != right).nnz == 0


def _whole_margins(rows: Any, identity: bool, shape: tuple[int, ...], keep: tuple[Axes, ...]) -> list[Axes] | None:
    """Rows that are the total of all cells, or that make single outputs exact, whole margins of them."""
    if identity:
        total = rows.shape[0] == 1 and rows.nnz == rows.shape[1] and (rows.data == rows.data[0]).all()
        return [()] if total else None
    if (np.diff(rows.indptr) != 1).any():
        return None
    pinned = np.zeros(rows.shape[1], dtype=bool)
    pinned[rows.indices] = True
    parts = np.split(pinned, np.cumsum([math.prod(shape[a] for a in axes) for axes in keep])[:-1])
    if any(part.any() and not part.all() for part in parts):
        return None
    return [axes for axes, part in zip(keep, parts, strict=True) if part.all()]
