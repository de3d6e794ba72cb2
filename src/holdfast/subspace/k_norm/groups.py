"""Groups of points whose spans are independent: no relation goes from one to another."""

from __future__ import annotations

import numpy as np
from scipy import linalg, sparse
from scipy.sparse import csgraph

from holdfast.arrays import Floats, Ints

#: Coefficients below this are rounding; larger ones connect points.
NONE = 1e-12


def groups(points: Floats) -> list[Ints]:
    """The places of the points (r, count) of each group, which span the space.

    Every point outside a basis is a sum of points of it, and belongs to their group.
    """
    rank, count = points.shape
    upper, order = linalg.qr(points, mode="r", pivoting=True)
    shares = linalg.solve_triangular(upper[:rank, :rank], upper[:rank, rank:])
    inside, outside = np.nonzero(np.abs(shares) > NONE)
    links = sparse.coo_array((np.ones(inside.size), (order[inside], order[rank + outside])), shape=(count, count))
    number, labels = csgraph.connected_components(links, directed=False)
    return [np.flatnonzero(labels == k) for k in range(number)]
