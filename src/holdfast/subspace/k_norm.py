"""The k-norm mechanism: density ∝ exp(−‖u‖_K), K the convex hull of 𝒟_N (Hardt, Talwar 2010; SDP §3.4; THEORY §6).

Every u in N is Π_N W z for cells z, and ‖u‖_K is the least ‖z‖₁ (add-remove), or the least ½‖z‖₁ with Σz = 0
(replace-one). It is drawn from the cells where z is determined by u, or up to a multiple of one vector of signs
(docs/theory/subspace.md), and refused elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from scipy import linalg, special

from holdfast.arguments import Refused
from holdfast.arrays import Floats
from holdfast.evidence import Evidence
from holdfast.noise.laplace import laplace_numbers
from holdfast.noise.spread import STUDY, Spread, simulated_quantiles
from holdfast.queries import Moves, Neighbours
from holdfast.randomness import Stream, seeded
from holdfast.subspace.geometry import Geometry
from holdfast.subspace.law import SLACK, shown, times_one_record

#: Entries of a vector count as equal in size within this.
ALIKE = 1e-9


@dataclass(frozen=True, eq=False)
class Cells:
    """A law of noise z on m cells at scale 1, exchangeable up to `signs`.

    "free": independent, density exp(−‖z‖₁). "balanced": Σz = 0, density exp(−½‖z‖₁). "centred": signs·z has one 0 as
    its (lower) median, density exp(−‖z‖₁): one representative of each line z + t·signs.
    """

    which: str
    signs: Floats

    def draw(self, size: int, stream: Stream) -> Floats:
        """Draw z, (size, m)."""
        m = self.signs.size
        if self.which == "free":
            return laplace_numbers(size, m, stream)
        if self.which == "balanced":  # THEORY H3, the continuous twin at λ = 2
            radius = special.gammaincinv(2 * m - 1, stream.uniforms(size))
            parts = -np.log(stream.uniforms(2 * size * m)).reshape(2, size, m)
            parts /= parts.sum(axis=2, keepdims=True)
            return np.asarray(radius[:, None] * (parts[0] - parts[1]))
        # A random order says which cell is the median and which half lies above it.
        order = np.argsort(stream.words(size * m).reshape(size, m), axis=1)
        lengths = -np.log(stream.uniforms(size * (m - 1))).reshape(size, m - 1)
        ranked = np.concatenate([np.zeros((size, 1)), lengths], axis=1)
        ranked[:, m // 2 + 1 :] *= -1
        result = np.empty((size, m))
        np.put_along_axis(result, order, ranked, axis=1)
        return result * self.signs

    def variances(self, squares: Floats, sums: Floats) -> Floats:
        """The variances of weighted sums of z, from Σ_j g_j² and Σ_j g_j·sign_j of their weights g."""
        m = self.signs.size
        if self.which == "free":
            own, joint = 2.0, 0.0
        elif self.which == "balanced":
            own = 4 * (2 * m - 1) * (m - 1) / (m * (m + 1))
            joint = -own / max(1, m - 1)
        else:
            above = m // 2 - (m - 1 - m // 2)
            total = (m - 1) + above**2  # the mean square of the sum
            own, joint = 2 * (m - 1) / m, (total - 2 * (m - 1)) / (m * (m - 1)) if m > 1 else 0.0
        return np.asarray((own - joint) * squares + joint * sums**2)

    def variance_of(self, weights: Floats) -> float:
        return float(self.variances((weights**2).sum(), (weights * self.signs).sum()))


@dataclass(frozen=True, eq=False)
class KNorm:
    """Noise u = `apply`(z), z rows of `law`: density ∝ exp(−‖u‖_K). `transposed` turns weights of u into those of z."""

    law: Cells
    apply: Callable[[Floats], Floats]
    transposed: Callable[[Floats], Floats]
    variances: Floats
    neighbours: Neighbours
    name: str = "k-norm"
    exact: bool = False
    kind: str = "laplace"

    @property
    def largest(self) -> Fraction:
        return self.neighbours.records * (1 + SLACK)

    @property
    def evidence(self) -> Evidence:
        return shown(float(self.variances.sum()) * float(self.largest) ** 2)

    def draw(self, size: int, stream: Stream) -> Floats:
        return self.apply(self.law.draw(size, stream))

    def spread(self) -> Spread:
        """Errors with the covariance of the law; unbiased. Quantiles are simulated."""

        def variance_of(weights: Floats) -> float:
            return self.law.variance_of(self.transposed(weights[None])[0])

        quantiles = simulated_quantiles(lambda: self.draw(STUDY, seeded(0)))
        return Spread(np.sqrt(np.maximum(self.variances, 0.0)), variance_of, quantiles, measured=True)

    def sharing(self, moves: Moves) -> Fraction:
        return times_one_record(self.largest, 1, self.neighbours.records, self.neighbours.adds, moves)


def k_norm(geometry: Geometry, neighbours: Neighbours) -> KNorm:
    """Recognise from the columns what the cells are; refuse where u does not tell them."""
    points = geometry.points
    if not geometry.pairs:
        lengths = np.linalg.norm(points, axis=0)
        points = points[:, lengths > ALIKE * lengths.max()]
    law = _structure(points, geometry.pairs)
    if law is None:
        raise Refused(
            "k-norm noise is known where the answer tells every cell, alone or beside an exact total: use law='laplace'"
        )
    image = geometry.basis @ points
    return KNorm(
        law,
        lambda numbers: np.asarray(numbers @ image.T),
        lambda weights: np.asarray(weights @ image),
        law.variances((image**2).sum(axis=1), image @ law.signs),
        neighbours,
    )


def _structure(points: Floats, pairs: bool) -> Cells | None:
    """The law of noise on the cells by which points (r, count) are multiplied; None where no structure is known."""
    rank, count = points.shape
    if pairs:
        return Cells("balanced", np.ones(count)) if rank == count - 1 else None
    if rank == count:
        return Cells("free", np.ones(count))
    if rank == count - 1:
        kernel = linalg.qr(points.T)[0][:, -1]
        if np.ptp(np.abs(kernel)) <= ALIKE * np.abs(kernel).max():
            return Cells("centred", np.sign(kernel))
    return None
