"""Weights on the simplex that maximise the dual of a smallest noise (THEORY H4), by multiplicative ascent.

At the optimum every ratio φ_j is at most 1, with equality where w_j > 0; w_j ← w_j·φ_j^p keeps the weights on the
simplex and climbs. The largest φ is the duality gap's certificate: whatever the weights, the primal value they give is
at most max φ times the dual one.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

#: The first exponent, and its factors after a step that climbed and after one that fell.
FIRST_POWER, BOLDER, MEEKER = 3.0, 1.05, 0.6
#: The gap that is aimed at, the gap that is good enough once `PATIENCE` rounds are over, and the most rounds.
AIM, ENOUGH = 1e-6, 5e-4
PATIENCE, MOST_ROUNDS = 60, 3_000


def ascend(
    ratios: Callable[[Floats], tuple[Floats, float]],
    start: Floats,
    patience: int = PATIENCE,
    rounds: int = MOST_ROUNDS,
) -> Floats:
    """Return weights; `ratios(w)` gives φ (the mean of which under w is 1) and the dual value at w."""
    weights, power, before = start / start.sum(), FIRST_POWER, -np.inf
    best, least = weights, np.inf
    for step in range(rounds):
        phi, value = ratios(weights)
        gap = float(phi.max()) - 1
        if gap < least:
            best, least = weights, gap
        if gap <= AIM or (step >= patience and least <= ENOUGH):
            break
        power = max(1.0, MEEKER * power) if value < before else BOLDER * power
        before = value
        weights = weights * np.maximum(phi, 0.0) ** power
        weights = weights / weights.sum()
    return best
