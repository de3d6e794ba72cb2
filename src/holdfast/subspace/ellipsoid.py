"""The ellipsoid of least volume around points and their opposites (Khachiyan 1996; away steps: Todd, Yıldırım 2007).

E = {x : xᵀM⁻¹x ≤ r} with M = Σ w_j a_j a_jᵀ and r the dimension is optimal exactly if a_jᵀM⁻¹a_j ≤ r for all j. Each
step moves weight onto the farthest point, or away from the nearest one that has weight. Multiplicative rounds go
before: they move all weights at once.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import linalg

from holdfast.subspace.ascent import ascend

Floats = npt.NDArray[np.float64]

#: Distances are at most (1 + GAP) times those of the optimum's condition; the steps after which the search ends.
GAP, MOST_STEPS = 1e-3, 100_000
#: Multiplicative rounds before the steps.
ROUNDS = 200
#: Steps between two fresh factorisations, which remove the rounding errors of the updates.
FRESH = 200


@dataclass(frozen=True, eq=False)
class Ellipsoid:
    """`moments` is M; the points lie in {x : xᵀM⁻¹x ≤ (1 + gap)·r}."""

    moments: Floats
    gap: float


def enclosing_ellipsoid(points: Floats) -> Ellipsoid:
    """Return the ellipsoid around ± the points (r, m), which span their space."""
    rank, count = points.shape

    def ratios(weights: Floats) -> tuple[Floats, float]:
        moments = (points * weights) @ points.T
        return np.einsum("ij,ij->j", points, linalg.solve(moments, points)) / rank, float(np.linalg.slogdet(moments)[1])

    weights = ascend(ratios, np.ones(count), rounds=ROUNDS)
    inverse, distances = _fresh(points, weights)
    for step in range(1, MOST_STEPS + 1):
        far = int(np.argmax(distances))
        near = int(np.argmin(np.where(weights > 0, distances, np.inf)))
        if distances[far] <= (1 + GAP) * rank:
            break
        away = rank - distances[near] > distances[far] - rank
        chosen = near if away else far
        length = float(distances[chosen])
        size = (length - rank) / (rank * (length - 1)) if length > 1 else -np.inf
        if away:
            size = max(size, -weights[near] / (1 - weights[near]))
        direction = inverse @ points[:, chosen]
        spread = size / (1 - size)
        inverse = (inverse - spread / (1 + spread * length) * np.outer(direction, direction)) / (1 - size)
        distances = (distances - spread / (1 + spread * length) * (points.T @ direction) ** 2) / (1 - size)
        weights = weights * (1 - size)
        weights[chosen] = max(weights[chosen] + size, 0.0)
        if step % FRESH == 0:
            inverse, distances = _fresh(points, weights)
    distances = _fresh(points, weights)[1]
    return Ellipsoid((points * weights) @ points.T, float(distances.max()) / rank - 1)


def _fresh(points: Floats, weights: Floats) -> tuple[Floats, Floats]:
    factor = linalg.cho_factor((points * weights) @ points.T)
    solved = linalg.cho_solve(factor, points)
    return linalg.cho_solve(factor, np.eye(len(points))), np.einsum("ij,ij->j", points, solved)
