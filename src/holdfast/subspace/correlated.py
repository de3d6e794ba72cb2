"""Correlated Gaussian noise by halving the enclosing ellipsoid (SDP Algorithms 2 and 3, after Nikolov et al. 2013).

The shorter half of the ellipsoid's axes is a block; the longer half is treated again. Block i gets variance k·r_i², r_i
the longest difference in it, k blocks in all. The paper takes columns; under replace-one these are differences here.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy import linalg

from holdfast.arguments import Refused
from holdfast.queries import Neighbours
from holdfast.subspace.dense_gaussian import DenseGaussian
from holdfast.subspace.ellipsoid import enclosing_ellipsoid
from holdfast.subspace.geometry import Geometry

Floats = npt.NDArray[np.float64]

#: Numbers in the list of differences.
MOST_LISTED = 4 * 10**7


def correlated(geometry: Geometry, neighbours: Neighbours) -> DenseGaussian:
    """Return the law; its loss is then taken over the whole difference set, so it is never above the paper's."""
    count = geometry.count * (geometry.count - 1) // 2 if geometry.pairs else geometry.count
    if count * geometry.rank > MOST_LISTED:
        raise Refused(f"law='correlated' lists {count} differences, which are too many: use law='optimal'")
    differences = geometry.listed()
    blocks, gap = _halved(differences)
    longest = [float(np.linalg.norm(block.T @ differences, axis=0).max()) for block in blocks]
    axes = np.hstack(blocks)
    variances = np.concatenate([np.full(block.shape[1], r**2) for block, r in zip(blocks, longest, strict=True)])
    notes = (f"{len(blocks)} blocks; the ellipsoids are within {gap:.1e} of the least ones",)
    return DenseGaussian.of("correlated Gaussian", geometry, neighbours, axes, variances, notes=notes)


def _halved(points: Floats) -> tuple[list[Floats], float]:
    """Orthonormal blocks (r, k) from the shortest axes to the longest, and the largest gap of an ellipsoid."""
    rank = len(points)
    if rank == 1:
        return [np.ones((1, 1))], 0.0
    found = enclosing_ellipsoid(points)
    axes = np.asarray(linalg.eigh(found.moments)[1])  # shortest first
    short = rank - rank // 2
    blocks, gap = _halved(axes[:, short:].T @ points)
    return [axes[:, :short], *(axes[:, short:] @ block for block in blocks)], max(gap, found.gap)
