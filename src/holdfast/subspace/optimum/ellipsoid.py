"""The ellipsoid of least volume around points and their opposites (Khachiyan 1996; away steps: Todd, Yıldırım 2007).

E = {x : xᵀM⁻¹x ≤ r} with M = Σ w_j a_j a_jᵀ and r the dimension is optimal exactly if a_jᵀM⁻¹a_j ≤ r for all j. Each
step moves weight onto the farthest point, or away from the nearest one that has weight. An ascent goes before: it moves
all weights at once, and leaves the steps little or nothing to do. Differences of points are never listed: weights and
distances are then tables.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import linalg

from holdfast.arrays import Floats
from holdfast.subspace.geometry import moments, squares
from holdfast.subspace.optimum.dual_weights import dual_weights

#: Distances are at most (1 + GAP) times those of the optimum's condition; the steps after which the search ends.
GAP, MOST_STEPS = 1e-3, 5_000
#: Moments below this part of the largest are raised to it while the weights are sought.
LEAST = 1e-13
#: Steps between two fresh factorisations, which remove the rounding errors of the updates.
FRESH = 200


@dataclass(frozen=True, eq=False)
class Ellipsoid:
    """`moments` is M; the points lie in {x : xᵀM⁻¹x ≤ (1 + gap)·r}."""

    moments: Floats
    gap: float


def enclosing_ellipsoid(points: Floats, pairs: bool = False) -> Ellipsoid:
    """Return the ellipsoid around ± the points (r, m), or (`pairs`) around their differences, which span the space."""
    rank = len(points)

    def whiten(found: Floats) -> tuple[Floats, float]:
        values, axes = linalg.eigh(found)
        values = np.maximum(values, LEAST * values[-1])
        return axes.T / np.sqrt(rank * values)[:, None], float(np.log(values).sum()) / rank

    weights = dual_weights(points, pairs, whiten, patience=0)
    inverse, distances = _fresh(points, pairs, weights)
    for step in range(1, MOST_STEPS + 1):
        far = np.unravel_index(int(np.argmax(distances)), distances.shape)
        if distances[far] <= (1 + GAP) * rank:
            break
        near = np.unravel_index(int(np.argmin(np.where(weights > 0, distances, np.inf))), distances.shape)
        away = rank - distances[near] > distances[far] - rank
        chosen = near if away else far
        length = float(distances[chosen])
        size = (length - rank) / (rank * (length - 1)) if length > 1 else -np.inf
        if away:
            size = max(size, -weights[near] / (1 - weights[near]))
        direction = inverse @ (points[:, chosen[0]] - (points[:, chosen[1]] if pairs else 0.0))
        along = points.T @ direction
        if pairs:
            along = along[:, None] - along[None, :]
        spread = size / (1 - size)
        share = spread / (1 + spread * length)
        inverse = (inverse - share * np.outer(direction, direction)) / (1 - size)
        distances = (distances - share * along**2) / (1 - size)
        weights = weights * (1 - size)
        weights[chosen] = max(weights[chosen] + size, 0.0)
        if step % FRESH == 0:
            inverse, distances = _fresh(points, pairs, weights)
    distances = _fresh(points, pairs, weights)[1]
    return Ellipsoid(moments(points, pairs, weights), float(distances.max()) / rank - 1)


def _fresh(points: Floats, pairs: bool, weights: Floats) -> tuple[Floats, Floats]:
    """M⁻¹, and every distance aᵀM⁻¹a."""
    lower = np.linalg.cholesky(moments(points, pairs, weights))
    turned = linalg.solve_triangular(lower, np.eye(len(points)), lower=True)
    return turned.T @ turned, squares(turned @ points, pairs)
