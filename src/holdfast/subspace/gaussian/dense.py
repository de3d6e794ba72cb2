"""Gaussian noise F g with a dense factor F: any covariance on the span of the difference set."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from holdfast.arguments import Refused
from holdfast.arrays import Floats
from holdfast.evidence import Evidence
from holdfast.noise.spread import Spread
from holdfast.queries import Moves, Neighbours
from holdfast.randomness import Stream
from holdfast.subspace.geometry import Geometry
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
        """Draw F g, (size, n)."""
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
