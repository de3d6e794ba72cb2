"""The k-norm mechanism: density ∝ exp(−‖u‖_K), K the convex hull of 𝒟_N (Hardt, Talwar 2010; SDP §3.4; THEORY §6).

Every u in N is Π_N W z for cells z, and ‖u‖_K is the least ‖z‖₁ (add-remove), or the least ½‖z‖₁ with Σz = 0
(replace-one). It is drawn from the cells where z is determined by u, or up to a multiple of one vector of signs; from
the facets of K where they can be listed; and otherwise by a walk in K (docs/theory/subspace.md).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
from scipy import linalg, special

from holdfast.arrays import Floats
from holdfast.evidence import Evidence
from holdfast.noise.laplace import laplace_numbers
from holdfast.noise.spread import STUDY, Spread, simulated_quantiles
from holdfast.queries import Moves, Neighbours
from holdfast.randomness import Stream, seeded
from holdfast.subspace.geometry import Geometry
from holdfast.subspace.k_norm.blocks import Blocks
from holdfast.subspace.k_norm.body import Body, listed
from holdfast.subspace.k_norm.facets import Facets
from holdfast.subspace.k_norm.groups import groups
from holdfast.subspace.k_norm.parts import KNormParts, Part
from holdfast.subspace.k_norm.relations import Relations
from holdfast.subspace.k_norm.walk import Walk
from holdfast.subspace.law import SLACK, shown, times_one_record

#: Entries of a vector count as equal in size within this.
ALIKE = 1e-9
#: Up to so many dimensions facets are listed in any case.
FEW_DIMENSIONS = 7


@dataclass(frozen=True, eq=False)
class Cells:
    """A law of noise z on m cells at scale 1, exchangeable up to `signs`.

    "free": independent, density exp(−‖z‖₁). "balanced": Σz = 0, density exp(−½‖z‖₁). "centred": signs·z has one 0 as
    its (lower) median, density exp(−‖z‖₁): one representative of each line z + t·signs.
    """

    which: str
    signs: Floats
    largest: float = 1.0
    distance: float = 0.0
    name: str = "k-norm"
    note: str = ""

    @property
    def count(self) -> int:
        """The number of cells."""
        return int(self.signs.size)

    def draw(self, size: int, stream: Stream) -> Floats:
        """Draw z, (size, m)."""
        m = self.count
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

    def study(self, size: int, stream: Stream) -> Floats:
        """Independent draws."""
        return self.draw(size, stream)

    @property
    def moments(self) -> Floats:
        """E[z zᵀ]."""
        own, joint = self.sizes
        return np.asarray((own - joint) * np.eye(self.count) + joint * np.outer(self.signs, self.signs))

    @property
    def sizes(self) -> tuple[float, float]:
        """The second moment of each entry of signs·z, and the mean product of two of them."""
        m = self.count
        if self.which == "free":
            return 2.0, 0.0
        if self.which == "balanced":
            each = 4 * (2 * m - 1) * (m - 1) / (m * (m + 1))
            return each, -each / max(1, m - 1)
        above = m // 2 - (m - 1 - m // 2)
        total = (m - 1) + above**2  # the mean square of the sum
        return 2 * (m - 1) / m, (total - 2 * (m - 1)) / (m * (m - 1)) if m > 1 else 0.0


@dataclass(frozen=True, eq=False)
class KNorm:
    """Law: u = Π_N W z (`apply`, on rows), density ∝ exp(−‖u‖_K). Every difference of one record has ‖d‖_K ≤ 1."""

    cells: Cells
    apply: Callable[[Floats], Floats]
    transposed: Callable[[Floats], Floats]
    diagonal: Callable[[], tuple[Floats, Floats]]
    neighbours: Neighbours
    name: str = "k-norm"
    exact: bool = False
    kind: str = "laplace"

    @property
    def largest(self) -> Fraction:
        """The gauge of as many records as may change."""
        return self.neighbours.records * (1 + SLACK)

    @cached_property
    def _variances(self) -> Floats:
        """From Σ_j G_ij² and Σ_j G_ij·sign_j of the map G = Π_N W."""
        squares, sums = self.diagonal()
        own, joint = self.cells.sizes
        return np.asarray((own - joint) * squares + joint * sums**2)

    @property
    def evidence(self) -> Evidence:
        """The total squared error."""
        return shown(float(self._variances.sum()) * float(self.largest) ** 2)

    def draw(self, size: int, stream: Stream) -> Floats:
        """Draw the cells' noise and apply the map."""
        return self.apply(self.cells.draw(size, stream))

    def spread(self) -> Spread:
        """Errors with the covariance of the law; unbiased. Quantiles are simulated."""
        own, joint = self.cells.sizes

        def variance_of(weights: Floats) -> float:
            turned = self.transposed(weights[None])[0] * self.cells.signs
            return float((own - joint) * (turned**2).sum() + joint * turned.sum() ** 2)

        quantiles = simulated_quantiles(lambda: self.draw(STUDY, seeded(0)))
        return Spread(np.sqrt(np.maximum(self._variances, 0.0)), variance_of, quantiles, measured=True)

    def sharing(self, moves: Moves) -> Fraction:
        """By the triangle inequality."""
        return times_one_record(self.largest, 1, self.neighbours.records, self.neighbours.adds, moves)


def k_norm(geometry: Geometry, neighbours: Neighbours) -> KNorm | KNormParts:
    """Recognise the structure of K from the columns; where there is none, list its facets, or walk in it."""
    points = geometry.points
    if not geometry.pairs:
        lengths = np.linalg.norm(points, axis=0)
        points = points[:, lengths > ALIKE * lengths.max()]
    cells = _structure(points, geometry.pairs)
    if cells is None:
        return _in_parts(geometry, points, neighbours)
    image = geometry.basis @ points
    return KNorm(
        cells,
        lambda numbers: np.asarray(numbers @ image.T),
        lambda weights: np.asarray(weights @ image),
        lambda: ((image**2).sum(axis=1), image @ cells.signs),
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


def _in_parts(geometry: Geometry, points: Floats, neighbours: Neighbours) -> KNormParts:
    """Every group of points by itself; single points together."""
    if geometry.pairs:
        parts = [_part(geometry.basis, points, pairs=True)]
    else:
        found = groups(points)
        single = np.array([each[0] for each in found if each.size == 1], dtype=np.int64)
        several = [each for each in found if each.size > 1]
        parts = [_part(geometry.basis, points[:, each], pairs=False) for each in several]
        if single.size:
            parts.append((Cells("free", np.ones(single.size)), geometry.basis @ points[:, single]))
    names = sorted({part.name for part, _ in parts}, key=len)
    return KNormParts(tuple(part for part, _ in parts), tuple(onto for _, onto in parts), neighbours, names[-1])


def _part(basis: Floats, points: Floats, pairs: bool) -> tuple[Part, Floats]:
    """The law of one group, and the map from its coordinates to the outputs."""
    left, upper, _ = linalg.qr(points, mode="economic", pivoting=True)
    lengths = np.abs(np.diagonal(upper))
    span = left[:, : lengths.size][:, lengths > ALIKE * lengths[0]]
    inside = span.T @ points
    cells: Part | None = Blocks.of(inside) if pairs else _structure(inside, pairs)
    if cells is None and len(inside) > FEW_DIMENSIONS:
        cells = Relations.of(inside, pairs)
    if cells is not None:
        return cells, basis @ points
    body = Body.of(listed(inside, pairs))
    return Facets.of(body) or Walk.of(body), basis @ span @ body.turn
