"""Correlated Gaussian noise by halving the enclosing ellipsoid (SDP Algorithms 2 and 3, after Nikolov et al. 2013).

The shorter half of the ellipsoid's axes is a block; the longer half is treated again. Block i gets variance k·r_i², r_i
the longest difference in it, k blocks in all. The paper takes columns; under replace-one these are differences here.
"""

from __future__ import annotations

import numpy as np
from scipy import linalg

from holdfast.arrays import Floats
from holdfast.queries import Neighbours
from holdfast.subspace.gaussian.dense import DenseGaussian
from holdfast.subspace.geometry import Geometry, squares
from holdfast.subspace.optimum.ellipsoid import enclosing_ellipsoid


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
    axes = np.asarray(linalg.eigh(found.moments)[1])  # shortest first
    short = rank - rank // 2
    blocks, gap = _halved(axes[:, short:].T @ points, pairs)
    return [axes[:, :short], *(axes[:, short:] @ block for block in blocks)], max(gap, found.gap)
