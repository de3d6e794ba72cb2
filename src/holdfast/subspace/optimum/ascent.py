"""Weights on the simplex that maximise the dual of a smallest noise (THEORY H4).

At the optimum every ratio φ_j is at most 1, with equality where w_j > 0. A few rounds w_j ← w_j·φ_j^p come near it;
then the dual is climbed in √w, where it has no bounds, by a quasi-Newton method (L-BFGS). The largest φ is the duality
gap's certificate: whatever the weights, the primal value they give is at most max φ times the dual one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.optimize import minimize

from holdfast.arrays import Floats

#: φ where there are weights, the dual value D at them with ∂D/∂w_j = φ_j, and the largest φ of all.
Ratios = Callable[[Floats], tuple[Floats, float, float]]

#: The first exponent, and its factors after a round that climbed and after one that fell.
FIRST_POWER, BOLDER, MEEKER = 3.0, 1.15, 0.6
#: The gap that is aimed at, and the gap that is good enough once the patience is over.
AIM, ENOUGH = 1e-6, 5e-4
#: Rounds by powers, quasi-Newton steps between two looks at weights that are too small, and the most rounds of all.
WARM, STEPS, PATIENCE, MOST_ROUNDS = 8, 25, 120, 3_000
#: Earlier steps that the quasi-Newton method remembers.
MEMORY = 20
#: A weight that is too small is raised to this many gaps of a usual weight.
RAISED = 10.0


class Ascent:
    """The best weights seen so far, their gap, and how often the ratios were asked for."""

    def __init__(self, ratios: Ratios, patience: int = PATIENCE, rounds: int = MOST_ROUNDS) -> None:
        self.ratios, self.patience, self.rounds = ratios, patience, rounds
        self.best: Any = None
        self.gap, self.count = np.inf, 0

    @property
    def over(self) -> bool:
        """Whether the gap is small enough, or the rounds are used up."""
        return (
            self.gap <= AIM or self.count >= self.rounds or (self.count >= self.patience and bool(self.gap <= ENOUGH))
        )

    def look(self, weights: Floats) -> tuple[Floats, float]:
        """The ratios and the dual value at these weights, which are remembered if they are the best."""
        phi, value, largest = self.ratios(weights)
        self.count += 1
        if largest - 1 < self.gap:
            self.best, self.gap = self.kept(weights), float(largest) - 1
        return phi, value

    def kept(self, weights: Floats) -> Any:
        """What is remembered of the best weights."""
        return weights

    def by_powers(self, weights: Floats, rounds: int) -> tuple[Floats, Floats]:
        """Multiply the weights by powers of their ratios: bolder while the dual climbs, again and meeker if it falls.

        Return the weights and their ratios.
        """
        phi, value = self.look(weights)
        power = FIRST_POWER
        for _ in range(rounds - 1):
            if self.over:
                break
            tried = weights * np.maximum(phi, 0.0) ** power
            tried /= tried.sum()
            found, reached = self.look(tried)
            if reached < value:
                power = max(1.0, MEEKER * power)
            else:
                weights, phi, value, power = tried, found, reached, BOLDER * power
        return weights, phi

    def raised(self, weights: Floats, phi: Floats) -> Floats:
        """Weights that are not too small for their ratios."""
        usual = float((weights**2).sum())
        return np.where(phi > 1 + self.gap / 4, np.maximum(weights, min(0.1, RAISED * self.gap) * usual), weights)

    def by_slopes(self, weights: Floats, steps: int) -> Floats:
        """Climb in √w."""

        def falling(roots: Floats) -> tuple[float, Floats]:
            size = float(roots @ roots)
            phi, value = self.look(roots**2 / size)
            return -value, (1 - phi) * roots * (2 / size)

        def stop(_: Any) -> None:
            if self.over:
                raise StopIteration

        options = {"maxiter": steps, "maxcor": MEMORY, "ftol": 0.0, "gtol": 0.0}
        climb: Any = minimize
        roots = climb(falling, np.sqrt(weights), jac=True, method="L-BFGS-B", callback=stop, options=options).x
        return np.asarray(roots**2 / float(roots @ roots))


def ascend(ratios: Ratios, start: Floats, patience: int = PATIENCE, rounds: int = MOST_ROUNDS) -> Floats:
    """Return the weights of the least gap that was found."""
    ascent = Ascent(ratios, patience, rounds)
    weights, phi = ascent.by_powers(start / start.sum(), WARM)
    while not ascent.over:
        before = ascent.gap
        weights = ascent.by_slopes(ascent.raised(weights, phi), STEPS)
        weights, phi = ascent.by_powers(weights, 1 if ascent.gap < before / 2 else WARM)
    return np.asarray(ascent.best)
