"""Noise of variance 1 in every direction of any null space: independent noise, projected (SDP Cor 15, Thm 22)."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from holdfast.arrays import Floats
from holdfast.constraints import NullSpace
from holdfast.constraints.system.null_space import for_alike
from holdfast.evidence import Evidence
from holdfast.noise.spread import Spread
from holdfast.privacy.projected.subspace import sensitivity_within
from holdfast.queries import Moves, Neighbours, Query
from holdfast.randomness import Stream
from holdfast.subspace.law import normal_spread, shown


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
        """The greatest ‖Π_N d‖², rounded up."""
        step = Fraction(1) if self.query.grid is None else self.query.grid
        found = (Fraction(sensitivity_within(self.query, 2, self.neighbours, self.space)) / step) ** 2
        return min(found, self.query.largest([1], None, 2, self.neighbours))  # Π_N shortens

    @property
    def evidence(self) -> Evidence:
        """The error (n − n_c)Δ² (SDP Cor 15)."""
        return shown(self.space.dimension * float(self.largest))

    def draw(self, size: int, stream: Stream) -> Floats:
        """Draw independent noise and project it."""
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
