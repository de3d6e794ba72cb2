"""Gaussian noise F g with a dense factor F: any covariance on the span of the difference set."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
from scipy import linalg

from holdfast.arguments import Refused
from holdfast.arrays import Floats
from holdfast.constraints import NullSpace
from holdfast.constraints.system.null_space import for_alike
from holdfast.evidence import Evidence
from holdfast.noise.spread import Spread
from holdfast.privacy.projected_losses import sensitivity_within
from holdfast.queries import Moves, Neighbours, Query
from holdfast.randomness import Stream
from holdfast.subspace.ellipsoids import dual_weights, enclosing_ellipsoid
from holdfast.subspace.geometry import Geometry, moments, squares
from holdfast.subspace.law import SLACK, normal_spread, shown, times_one_record

#: How far, as a part of its length, a difference may lie from what the factor gives back.
MISSED = 1e-9


@dataclass(frozen=True, eq=False)
class DenseGaussian:
    """Law: N(0, F Fᵀ), F = `factor` (n, r) with independent columns in N. μ² = max ‖F⁺d‖² over all of 𝒟_N."""

    name: str
    factor: Floats
    largest: Fraction
    neighbours: Neighbours
    least: float
    evidence: Evidence
    exact: bool = False
    kind: str = "gaussian"

    @classmethod
    def of(
        cls,
        name: str,
        geometry: Geometry,
        neighbours: Neighbours,
        axes: Floats,
        variances: Floats,
        bound: float = -math.inf,
        notes: tuple[str, ...] = (),
        costs: Floats | None = None,
    ) -> DenseGaussian:
        """Make the law with these principal axes (r, r) and variances; its loss is taken over the whole set.

        `bound` is the dual lower bound of the (weighted) error at loss 1; `costs` weigh the outputs' squared errors.
        """
        roots = np.sqrt(variances)
        whitened = (axes.T @ geometry.points) / roots[:, None]
        missed = np.linalg.norm((axes * roots) @ whitened - geometry.points, axis=0)
        if (missed > MISSED * np.linalg.norm(geometry.points, axis=0).max()).any():
            raise Refused("the answer's directions differ too much in length for doubles: rescale the rows")
        square = Fraction(float(geometry.squares(whitened).max())) * geometry.records**2 * (1 + SLACK)
        factor = geometry.basis @ (axes * roots)
        weight = np.ones(len(factor)) if costs is None else costs
        error = float((weight @ factor**2).sum()) * float(square)
        evidence = shown(error, bound * geometry.records**2, notes)
        return cls(name, factor, square, neighbours, float(variances.min()), evidence)

    def draw(self, size: int, stream: Stream) -> Floats:
        rank = self.factor.shape[1]
        return np.asarray(stream.normals(size * rank).reshape(size, rank) @ self.factor.T)

    def spread(self) -> Spread:
        """Normal errors with covariance F Fᵀ; unbiased (SDP Cor 21)."""
        return normal_spread((self.factor**2).sum(axis=1), lambda weights: float(((weights @ self.factor) ** 2).sum()))

    def sharing(self, moves: Moves) -> Fraction:
        """Bound dᵀΣ⁺d by the triangle inequality, and by ‖d‖² over the least variance."""
        several = times_one_record(self.largest, 2, self.neighbours.records, self.neighbours.adds, moves)
        shortest = moves.largest([1], None, 2) / Fraction(self.least) * (1 + SLACK)
        return min(several, shortest)


# The Gaussian noise on N of least total (or weighted) squared error (THEORY H4).
#
# min tr GΣ subject to aᵀΣ⁻¹a ≤ 1 for all a ∈ 𝒟_N has the dual max over weights w of (tr M^{1/2})², M = Σ w_j b_j b_jᵀ
# with b = G^{1/2}a, and the optimum is Σ ∝ G^{−1/2} M^{1/2} G^{−1/2}. Any weights give both a law and a lower bound.

#: Eigenvalues of M below this part of the largest are raised to it: the law needs noise in every direction.
LEAST = 1e-13
#: Eigenvalues of M count in the lower bound only above this part of the largest: smaller ones may be rounding.
COUNTED = 1e-12


def optimal(geometry: Geometry, neighbours: Neighbours, costs: Floats | None = None) -> DenseGaussian:
    """Return the optimal law, its lower bound among its evidence; `costs` weigh the outputs' squared errors."""
    points, root = geometry.points, np.eye(geometry.rank)
    if costs is not None:  # the metric G of the weighted error, in coordinates of the span
        values, vectors = linalg.eigh((geometry.basis.T * costs) @ geometry.basis)
        root = (vectors * np.sqrt(values)) @ vectors.T
        points = root @ points

    def whiten(found: Floats) -> tuple[Floats, float]:
        values, vectors = _axes(found)
        trace = float(np.sqrt(values).sum())
        return vectors.T / (math.sqrt(trace) * values[:, None] ** 0.25), 2 * math.log(trace)

    values, vectors = _axes(moments(points, geometry.pairs, dual_weights(points, geometry.pairs, whiten)))
    bound = float(np.sqrt(values[values > COUNTED * values[-1]]).sum()) ** 2
    if costs is None:
        return DenseGaussian.of("optimal Gaussian", geometry, neighbours, vectors, np.sqrt(values), bound)
    half = linalg.solve(root, vectors * values**0.25)  # Σ = half halfᵀ
    variances, axes = linalg.eigh(half @ half.T)
    return DenseGaussian.of("optimal Gaussian", geometry, neighbours, axes, variances, bound, costs=costs)


def _axes(found: Floats) -> tuple[Floats, Floats]:
    """Eigenvalues, none too small, and eigenvectors of M."""
    values, vectors = linalg.eigh(found)
    return np.maximum(values, LEAST * values[-1]), vectors


@dataclass(frozen=True, eq=False)
class ProjectedGaussian:
    """Law: N(0, Π_N), by one sparse solve a draw."""

    space: NullSpace
    query: Query
    neighbours: Neighbours
    name: str = "extended Gaussian"
    kind: str = "gaussian"
    exact: bool = False

    @cached_property
    def largest(self) -> Fraction:
        step = Fraction(1) if self.query.grid is None else self.query.grid
        found = (Fraction(sensitivity_within(self.query, 2, self.neighbours, self.space)) / step) ** 2
        return min(found, self.query.largest([1], None, 2, self.neighbours))  # Π_N shortens

    @property
    def evidence(self) -> Evidence:
        """The error (n − n_c)Δ² (SDP Cor 15)."""
        return shown(self.space.dimension * float(self.largest))

    def draw(self, size: int, stream: Stream) -> Floats:
        noise = stream.normals(size * self.space.n).reshape(size, self.space.n)
        return np.ascontiguousarray(self.space.project(noise.T).T)

    def spread(self) -> Spread:
        """Normal errors with covariance Π_N; unbiased (SDP Cor 21)."""
        return normal_spread(
            projected_variances(self.space), lambda weights: float((self.space.project(weights) ** 2).sum())
        )

    def sharing(self, moves: Moves) -> Fraction:
        """‖d‖²: moves lie in N."""
        return moves.largest([1], None, 2)


def projected_variances(space: NullSpace) -> Floats:
    """The diagonal of Π_N; outputs with equal columns of the equalities share one value."""
    return for_alike(space, lambda units, chosen: space.project(units)[chosen, np.arange(len(chosen))])


# Correlated Gaussian noise by halving the enclosing ellipsoid (SDP Algorithms 2 and 3, after Nikolov et al. 2013).
#
# The shorter half of the ellipsoid's axes is a block; the longer half is treated again. Block i gets variance k·r_i²,
# r_i
# the longest difference in it, k blocks in all. The paper takes columns; under replace-one these are differences here.
# Axes that are equally long, as those of alike cells are, are turned towards the first columns, so that the law does
# not
# depend on rounding.

#: Squared lengths of axes that differ by less than this part are the same but for rounding.
ALIKE = 1e-6


def correlated(geometry: Geometry, neighbours: Neighbours) -> DenseGaussian:
    """Return the law; its loss is then taken over the whole difference set, so it is never above the paper's."""
    points, pairs = geometry.points, geometry.pairs
    blocks, gap = _halved(points, pairs)
    longest = [float(squares(block.T @ points, pairs).max()) for block in blocks]
    axes = np.hstack(blocks)
    variances = np.concatenate([np.full(block.shape[1], r) for block, r in zip(blocks, longest, strict=True)])
    notes = (f"{len(blocks)} blocks; the ellipsoids are within {gap:.1e} of the least ones",)
    return DenseGaussian.of("correlated Gaussian", geometry, neighbours, axes, variances, notes=notes)


def _halved(points: Floats, pairs: bool) -> tuple[list[Floats], float]:
    """Orthonormal blocks (r, k) from the shortest axes to the longest, and the largest gap of an ellipsoid."""
    rank = len(points)
    if rank == 1:
        return [np.ones((1, 1))], 0.0
    found = enclosing_ellipsoid(points, pairs)
    axes = _turned(*linalg.eigh(found.moments), points, alike=max(ALIKE, 10 * found.gap))  # shortest first
    short = rank - rank // 2
    blocks, gap = _halved(axes[:, short:].T @ points, pairs)
    return [axes[:, :short], *(axes[:, short:] @ block for block in blocks)], max(gap, found.gap)


def _turned(lengths: Floats, axes: Floats, points: Floats, alike: float) -> Floats:
    """The axes of an ellipsoid; of equally long ones each is what an earlier point has beside those before it."""
    ends = np.flatnonzero(np.diff(lengths) > alike * lengths[1:]) + 1
    turned = [_along(points.T @ group) @ group.T for group in np.split(axes, ends, axis=1)]
    return np.asarray(np.vstack(turned).T)


def _along(rows: Floats) -> Floats:
    """Orthonormal rows, the first along the first of these, each next one along what is new in a later one."""
    wanted, longest = rows.shape[1], float(np.linalg.norm(rows, axis=1).max())
    found = np.empty((0, wanted))
    for row in rows:
        new = row - found.T @ (found @ row)
        new = new - found.T @ (found @ new)  # again, to be orthogonal to the last digit
        length = float(np.linalg.norm(new))
        if length > 1e-6 * longest:
            found = np.vstack([found, new / length])
        if len(found) == wanted:
            break
    return found
