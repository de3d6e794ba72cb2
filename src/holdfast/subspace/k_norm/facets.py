"""k-norm noise in few dimensions: all facets of K, and the cones over them.

The density exp(−‖u‖_K) gives the cone over a facet with corners v the weight |det v|, and in it u = Σ e_i v_i with
independent exponential e. The facets are found by Qhull and are not trusted: that every direction lies in exactly one
cone, and that no difference is longer than 1 by any of them, is checked here (docs/theory/subspace.md).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import linalg
from scipy.spatial import ConvexHull, QhullError

from holdfast.arrays import Floats, Ints
from holdfast.randomness import Stream, seeded
from holdfast.subspace.k_norm.body import Body

#: Facets, and dimensions beyond which there are more of them for any K of interest.
MOST_FACETS, MOST_DIMENSIONS = 100_000, 14
#: Draws that are made at once.
BATCH = 1 << 16
#: A corner beyond a ridge is at least so far beyond it, in coordinates of the cone; rays by which cones are counted.
BEYOND, RAYS = 1e-9, 8
#: Largest condition of the corners of a facet: slopes are then right to far less than the slack of a loss.
MOST_UNEVEN = 1e5


@dataclass(frozen=True, eq=False)
class Facets:
    """`corners` (facets, r, r): the corners of each facet are rows. `chances` add up to 1.

    `largest` is the greatest length of a difference by any facet; the density is exp(−‖u‖) with a continuous ‖·‖ that
    is linear on every cone, so no difference changes its logarithm by more.
    """

    corners: Floats
    chances: Floats
    largest: float
    distance: float = 0.0
    name: str = "k-norm (facets)"

    @classmethod
    def of(cls, body: Body) -> Facets | None:
        """Find the facets and check them; None where they are too many, or doubles do not tell them apart."""
        if body.rank == 1:
            end = np.abs(body.points).max()
            return cls(np.array([[[end]], [[-end]]]), np.full(2, 0.5), 1.0)
        if body.rank > MOST_DIMENSIONS:
            return None
        hull = _hull(body)
        return None if hull is None else _checked(body, *hull)

    @property
    def note(self) -> str:
        """What was found."""
        return f"K has {len(self.corners)} facets"

    @property
    def moments(self) -> Floats:
        """E[u uᵀ]: given the facet, Σ v_i vᵢᵀ + s sᵀ with s = Σ v_i."""
        sums = self.corners.sum(axis=1)
        each = np.einsum("f,fij,fik->jk", self.chances, self.corners, self.corners, optimize=True)
        return np.asarray(each + (sums.T * self.chances) @ sums)

    def draw(self, size: int, stream: Stream) -> Floats:
        """Draw the facet, then the exponentials."""
        rank = self.corners.shape[1]
        ends = np.cumsum(self.chances)
        result = np.empty((size, rank))
        for begin in range(0, size, BATCH):
            count = min(BATCH, size - begin)
            chosen = np.searchsorted(ends, stream.uniforms(count) * ends[-1])
            parts = -np.log(stream.uniforms(count * rank)).reshape(count, 1, rank)
            result[begin : begin + count] = (parts @ self.corners[np.minimum(chosen, ends.size - 1)])[:, 0]
        return result

    def study(self, size: int, stream: Stream) -> Floats:
        """Independent draws."""
        return self.draw(size, stream)


def _hull(body: Body) -> tuple[Floats, Ints, Ints] | None:
    """Moved points with both signs, the corners of every facet, and the facet beyond each ridge; None if too many.

    Points come in by how far they are outside, some at a time, until no difference is outside.
    """
    moved, rank = body.moved, body.rank
    chosen = linalg.qr(moved.T, mode="r", pivoting=True)[1][:rank]
    hull = ConvexHull(np.concatenate([moved[chosen], -moved[chosen]]), incremental=True)
    try:
        while True:
            normals = hull.equations[:, :-1] / -hull.equations[:, -1:]
            farthest = _farthest(normals, body.points)
            outside = np.argsort(-farthest)[: 1 + hull.npoints // 8]
            outside = outside[farthest[outside] > 1]
            if not outside.size:
                return hull.points.copy(), hull.simplices.astype(np.int64), hull.neighbors.astype(np.int64)
            if len(normals) > MOST_FACETS:
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
    rank = body.rank
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
