"""The k-norm mechanism: density ∝ exp(−‖u‖_K), K the convex hull of 𝒟_N (Hardt, Talwar 2010; SDP §3.4; THEORY §6).

Every u in N is Π_N W z for cells z, and ‖u‖_K is the least ‖z‖₁ (add-remove), or the least ½‖z‖₁ with Σz = 0
(replace-one). It is drawn from the cells where z is determined by u, or up to a multiple of one vector of signs, and
otherwise, in few dimensions, from the facets of K (docs/theory/subspace.md).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from scipy import linalg, special
from scipy.spatial import ConvexHull, QhullError

from holdfast.arguments import Refused
from holdfast.arrays import Floats, Ints
from holdfast.evidence import Evidence
from holdfast.noise.laplace import laplace_numbers
from holdfast.noise.spread import STUDY, Spread, simulated_quantiles
from holdfast.queries import Moves, Neighbours
from holdfast.randomness import Stream, seeded
from holdfast.subspace.geometry import Geometry
from holdfast.subspace.law import SLACK, shown, times_one_record

#: Entries of a vector count as equal in size within this.
ALIKE = 1e-9
#: Differences, up to sign, that are listed; facets, and dimensions beyond which any K of interest has more of them.
MOST_LISTED, MOST_FACETS, MOST_DIMENSIONS = 2_000, 100_000, 14
#: Points move outwards by this part of their length, and by up to as much again.
WIDER = 1e-6
#: Draws that are made at once.
BATCH = 1 << 16
#: A corner beyond a ridge is at least so far beyond it, in coordinates of the cone; rays by which cones are counted.
BEYOND, RAYS = 1e-9, 8
#: Largest condition of the corners of a facet: slopes are then right to far less than the slack of a loss.
MOST_UNEVEN = 1e5


@dataclass(frozen=True, eq=False)
class Cells:
    """A law of noise z on m cells at scale 1, exchangeable up to `signs`.

    "free": independent, density exp(−‖z‖₁). "balanced": Σz = 0, density exp(−½‖z‖₁). "centred": signs·z has one 0 as
    its (lower) median, density exp(−‖z‖₁): one representative of each line z + t·signs.
    """

    which: str
    signs: Floats
    largest: float = 1.0
    name: str = "k-norm"
    notes: tuple[str, ...] = ()

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
class Body:
    """K = conv(± points) in coordinates in which it is round: `points` (count, r), and u = turn·x.

    The body that is drawn from is the hull K′ of the `moved` points, which lie outside by about a millionth, each by
    another. It contains all differences, so that its noise is private, and no r + 1 of its points lie on one facet.
    """

    points: Floats
    moved: Floats
    turn: Floats

    @classmethod
    def of(cls, points: Floats) -> Body:
        """Make K round by the second moments of the points (r, count), which span the space."""
        turn = np.linalg.cholesky(points @ points.T / points.shape[1])
        round_points = np.ascontiguousarray(linalg.solve_triangular(turn, points, lower=True).T)
        shares = seeded(len(round_points)).uniforms(len(round_points))
        return cls(round_points, round_points * (1 + WIDER * (1 + shares))[:, None], turn)


@dataclass(frozen=True, eq=False)
class Facets:
    """`corners` (facets, r, r): the corners of each facet are rows. `chances` add up to 1.

    The density exp(−‖u‖_K) gives the cone over a facet with corners v the weight |det v|, and in it u = Σ e_i v_i with
    independent exponential e. `largest` is the greatest length of a difference by any facet: the norm is continuous and
    linear on every cone, so no difference changes the log density by more.
    """

    corners: Floats
    chances: Floats
    largest: float
    name: str = "k-norm (facets)"

    @classmethod
    def of(cls, body: Body, most: int = MOST_FACETS) -> Facets | None:
        """Find the facets by Qhull and check them; None where they are too many, or doubles do not tell them apart."""
        rank = body.points.shape[1]
        if rank == 1:
            end = np.abs(body.points).max()
            return cls(np.array([[[end]], [[-end]]]), np.full(2, 0.5), 1.0)
        hull = _hull(body, most) if rank <= MOST_DIMENSIONS else None
        return None if hull is None else _checked(body, *hull)

    @property
    def notes(self) -> tuple[str, ...]:
        return (f"K has {len(self.corners)} facets",)

    @property
    def moments(self) -> Floats:
        """E[u uᵀ]: given the facet, Σ v_i vᵢᵀ + s sᵀ with s = Σ v_i."""
        sums = self.corners.sum(axis=1)
        each = np.einsum("f,fij,fik->jk", self.chances, self.corners, self.corners, optimize=True)
        return np.asarray(each + (sums.T * self.chances) @ sums)

    def draw(self, size: int, stream: Stream) -> Floats:
        rank = self.corners.shape[1]
        ends = np.cumsum(self.chances)
        result = np.empty((size, rank))
        for begin in range(0, size, BATCH):
            count = min(BATCH, size - begin)
            chosen = np.searchsorted(ends, stream.uniforms(count) * ends[-1])
            parts = -np.log(stream.uniforms(count * rank)).reshape(count, 1, rank)
            result[begin : begin + count] = (parts @ self.corners[np.minimum(chosen, ends.size - 1)])[:, 0]
        return result

    def variance_of(self, weights: Floats) -> float:
        return float(weights @ self.moments @ weights)


@dataclass(frozen=True, eq=False)
class KNorm:
    """Noise u = `apply`(z), z rows of `law`: density ∝ exp(−‖u‖_K). `transposed` turns weights of u into those of z."""

    law: Cells | Facets
    apply: Callable[[Floats], Floats]
    transposed: Callable[[Floats], Floats]
    variances: Floats
    neighbours: Neighbours
    exact: bool = False
    kind: str = "laplace"

    @property
    def name(self) -> str:
        return self.law.name

    @property
    def largest(self) -> Fraction:
        return Fraction(self.law.largest) * self.neighbours.records * (1 + SLACK)

    @property
    def evidence(self) -> Evidence:
        return shown(float(self.variances.sum()) * float(self.largest) ** 2, notes=self.law.notes)

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
    """Recognise the structure of K from the columns; where there is none, list its facets, or refuse."""
    points = geometry.points
    if not geometry.pairs:
        lengths = np.linalg.norm(points, axis=0)
        points = points[:, lengths > ALIKE * lengths.max()]
    law: Cells | Facets | None = _structure(points, geometry.pairs)
    image = geometry.basis @ points
    if isinstance(law, Cells):
        variances = law.variances((image**2).sum(axis=1), image @ law.signs)
    else:
        body = Body.of(listed(points, geometry.pairs))
        law = Facets.of(body)
        if law is None:
            raise Refused(
                f"k-norm noise without a structure that is known takes few dimensions and differences, and this query "
                f"has {len(points)} dimensions and {len(body.points)} differences: use law='laplace', or "
                "laplace(...).given(...)"
            )
        image = geometry.basis @ body.turn
        variances = np.einsum("ij,jk,ik->i", image, law.moments, image, optimize=True)
    return KNorm(
        law,
        lambda numbers: np.asarray(numbers @ image.T),
        lambda weights: np.asarray(weights @ image),
        variances,
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


def listed(points: Floats, pairs: bool) -> Floats:
    """One of each pair of opposite differences of the points (r, count); refused where there are too many."""
    count = points.shape[1]
    if (count * (count - 1) // 2 if pairs else count) > MOST_LISTED:
        raise Refused(
            f"k-norm noise without a structure that is known takes up to {MOST_LISTED} differences, and {count} "
            "columns have more: use law='laplace', or laplace(...).given(...)"
        )
    if not pairs:
        return points
    one, other = np.triu_indices(count, 1)
    return np.asarray(points[:, one] - points[:, other])


def _hull(body: Body, most: int = MOST_FACETS) -> tuple[Floats, Ints, Ints] | None:
    """Moved points with both signs, the corners of every facet, and the facet beyond each ridge; None if too many.

    Points come in by how far they are outside, some at a time, until no difference is outside.
    """
    moved = body.moved
    chosen = linalg.qr(moved.T, mode="r", pivoting=True)[1][: moved.shape[1]]
    hull = ConvexHull(np.concatenate([moved[chosen], -moved[chosen]]), incremental=True)
    try:
        while True:
            normals = hull.equations[:, :-1] / -hull.equations[:, -1:]
            farthest = _farthest(normals, body.points)
            outside = np.argsort(-farthest)[: 1 + hull.npoints // 8]
            outside = outside[farthest[outside] > 1]
            if not outside.size:
                return hull.points.copy(), hull.simplices.astype(np.int64), hull.neighbors.astype(np.int64)
            if len(normals) > most:
                return None
            hull.add_points(np.concatenate([moved[outside], -moved[outside]]))
    except QhullError:
        return None
    finally:
        hull.close()


def _farthest(normals: Floats, points: Floats) -> Floats:
    """max |a·p| over all normals a, for every point."""
    result = np.zeros(len(points))
    for begin in range(0, len(normals), BATCH):
        result = np.maximum(result, np.abs(normals[begin : begin + BATCH] @ points.T).max(axis=0))
    return result


def _checked(body: Body, points: Floats, corners: Ints, beyond: Ints) -> Facets | None:
    """Test that the cones cover every direction once; None if not.

    Beyond each ridge of a cone lies one with the same ridge and its other corner on the other side, and beyond that
    the first again. So the number of cones over a direction is the same on both sides of a ridge, and 1 everywhere if
    it is 1 for one ray.
    """
    tables = points[corners]
    volumes = np.abs(np.linalg.det(tables))
    if not (volumes > 0).all():
        return None
    inverses = np.linalg.inv(tables)
    if (np.linalg.norm(tables, axis=(1, 2)) * np.linalg.norm(inverses, axis=(1, 2))).max() > MOST_UNEVEN:
        return None
    rank = points.shape[1]
    for place in range(rank):
        other = corners[beyond[:, place]]
        shared = (other[:, :, None] == corners[:, None, :]).any(axis=2)
        kept = np.delete(corners, place, axis=1)
        same = (kept[:, :, None] == other[:, None, :]).any(axis=2).all(axis=1)
        if not (same & (shared.sum(axis=1) == rank - 1)).all():
            return None
        back = beyond[beyond[:, place], np.argmin(shared, axis=1)]
        across = np.einsum("fi,fi->f", points[other[~shared]], inverses[:, :, place])
        if not ((back == np.arange(len(corners))) & (across < -BEYOND)).all():
            return None
    for ray in seeded(0).normals(RAYS * rank).reshape(RAYS, rank):
        if (np.einsum("i,fij->fj", ray, inverses) >= 0).all(axis=1).sum() != 1:
            return None
    largest = float(_farthest(inverses.sum(axis=2), body.points).max())
    return Facets(tables, volumes / volumes.sum(), largest)
