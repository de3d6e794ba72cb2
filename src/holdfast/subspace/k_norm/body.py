"""K = conv(± points) made simplicial: every point moves outwards by about one part in a million, each by another.

The body that is drawn from is the hull K′ of the moved points. It contains all differences, so that its noise is
private, and lies within three parts in a million of K. No r + 1 of its points lie on one facet.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy import linalg

from holdfast.arguments import Refused
from holdfast.arrays import Floats
from holdfast.randomness import seeded

#: Points move outwards by this part of their length, and by up to as much again.
WIDER = 1e-6
#: Differences, up to sign, that are listed.
MOST_LISTED = 2_000


@dataclass(frozen=True, eq=False)
class Body:
    """`points` (count, r) are one of each pair of opposite differences, in coordinates in which K is round.

    `turn` (r, r) gives the coordinates of the geometry back: u = turn·x.
    """

    points: Floats
    turn: Floats

    @classmethod
    def of(cls, points: Floats) -> Body:
        """Make K round by the second moments of the points (r, count), which span the space."""
        lower = np.linalg.cholesky(points @ points.T / points.shape[1])
        return cls(np.ascontiguousarray(linalg.solve_triangular(lower, points, lower=True).T), lower)

    @cached_property
    def moved(self) -> Floats:
        """The points that span K′, (count, r)."""
        shares = seeded(len(self.points)).uniforms(len(self.points))
        return np.ascontiguousarray(self.points * (1 + WIDER * (1 + shares))[:, None])

    @property
    def rank(self) -> int:
        """The dimension."""
        return int(self.points.shape[1])


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
