"""Correlated Gaussian noise by halving the enclosing ellipsoid (SDP Algorithms 2 and 3, after Nikolov et al. 2013).

The shorter half of the ellipsoid's axes is a block; the longer half is treated again. Block i gets variance k·r_i², r_i
the longest difference in it, k blocks in all. The paper takes columns; under replace-one these are differences here.
Axes that are equally long, as those of alike cells are, are turned towards the first columns, so that the law does not
depend on rounding.
"""

from __future__ import annotations

import numpy as np
from scipy import linalg

from holdfast.arrays import Floats
from holdfast.queries import Neighbours
from holdfast.subspace.gaussian.dense import DenseGaussian
from holdfast.subspace.geometry import Geometry, squares
from holdfast.subspace.optimum.ellipsoid import enclosing_ellipsoid

#: Squared lengths of axes that differ by less than this part are the same but for rounding.
ALIKE = 1e-6


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
    axes = _turned(*linalg.eigh(found.moments), points, alike=max(ALIKE, 10 * found.gap))  # shortest first
    short = rank - rank // 2
    blocks, gap = _halved(axes[:, short:].T @ points, pairs)
    return [axes[:, :short], *(axes[:, short:] @ block for block in blocks)], max(gap, found.gap)


def _turned(lengths: Floats, axes: Floats, points: Floats, alike: float) -> Floats:
    """The axes of an ellipsoid; of equally long ones each is what an earlier point has beside those before it."""
    ends = np.flatnonzero(np.diff(lengths) > alike * lengths[1:]) + 1
    turned = [_along(points.T @ group) @ group.T for group in np.split(axes, ends, axis=1)]
    return np.asarray(np.vstack(turned).T)


def _along(rows: Floats) -> Floats:
    """Orthonormal rows, the first along the first of these, each next one along what is new in a later one."""
    wanted, longest = rows.shape[1], float(np.linalg.norm(rows, axis=1).max())
    found = np.empty((0, wanted))
    for row in rows:
        new = row - found.T @ (found @ row)
        new = new - found.T @ (found @ new)  # again, to be orthogonal to the last digit
        length = float(np.linalg.norm(new))
        if length > 1e-6 * longest:
            found = np.vstack([found, new / length])
        if len(found) == wanted:
            break
    return found
