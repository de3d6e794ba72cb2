"""Weights on the simplex that maximise the dual of a smallest noise (THEORY H4).

At the optimum every ratio φ_j is at most 1, with equality where w_j > 0. A few rounds w_j ← w_j·φ_j^p come near it;
then the dual is climbed in √w, where it has no bounds, by a quasi-Newton method (L-BFGS). The largest φ is the duality
gap's certificate: whatever the weights, the primal value they give is at most max φ times the dual one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import linalg, sparse
from scipy.optimize import minimize

from holdfast.arrays import Floats, Ints
from holdfast.subspace.geometry import moments, squares

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


# Weights of the dual over a whole difference set, by the largest ratio φ of all its members.
#
# Under replace-one the differences are those of every two points, millions of them, and nearly all weights are 0: only
# pairs that have weight, or whose ratio calls for it, are climbed on, and they are chosen again every few steps. The
# ratios of all pairs together are one table of inner products.

#: From the moments M to a map T with φ = ‖T a‖², and the dual value.
Whiten = Callable[[Floats], tuple[Floats, float]]

#: The most heavy pairs on which the dual is climbed, with half as many for their ratios; doubled so often if need be.
MOST_CHOSEN, DOUBLED = 30_000, 5
#: Pairs whose weight is below this part of a usual one, and whose ratio asks for no more, are left out.
LIGHT = 1e-3
#: Multiplications after which a gap that is good enough ends the search.
PATIENT_WORK = 1e11
#: The most rounds where differences are points, and where they are pairs.
MOST_PAIR_ROUNDS = 600


def dual_weights(points: Floats, pairs: bool, whiten: Whiten, patience: int = PATIENCE) -> Floats:
    """Return weights of the points (m), or of their pairs as a table (m, m).

    Once a gap is good enough, the search goes on for `patience` rounds, or fewer where rounds are long.
    """
    rank, count = points.shape
    patience = min(patience, int(PATIENT_WORK / (rank * (10 * rank**2 + count * (count if pairs else rank)))))
    if pairs:
        return _Pairs(points, whiten, patience).climbed()

    def ratios(weights: Floats) -> tuple[Floats, float, float]:
        turn, value = whiten(moments(points, False, weights))
        phi = squares(turn @ points, False)
        return phi, value, float(phi.max())

    return ascend(ratios, np.ones(points.shape[1]), patience, MOST_ROUNDS)


class _Pairs(Ascent):
    """An ascent on a table of weights (m, m) above its diagonal, or on the weights of some pairs of points."""

    def __init__(self, points: Floats, whiten: Whiten, patience: int) -> None:
        super().__init__(self._ratios, patience, MOST_PAIR_ROUNDS)
        self.points, self.whiten, self.m = points, whiten, points.shape[1]
        self.most = MOST_CHOSEN
        self.first = self.second = np.zeros(0, np.int64)

    def kept(self, weights: Floats) -> Any:
        if weights.ndim == 2:
            return weights
        return sparse.csr_array((weights, (self.first, self.second)), shape=(self.m, self.m))

    def _ratios(self, weights: Floats) -> tuple[Floats, float, float]:
        turn, value = self.whiten(moments(self.points, True, self.kept(weights)))
        phi = squares(turn @ self.points, True)
        largest = float(phi.max())
        return phi if weights.ndim == 2 else phi[self.first, self.second], value, largest

    def climbed(self) -> Floats:
        """Return the table of the best weights."""
        table, phi = self.by_powers(np.triu(np.full((self.m, self.m), 2 / (self.m * (self.m - 1))), 1), 2 * WARM)
        while not self.over:
            before = self.gap
            table = self.kept(self.by_slopes(self._chosen(table, phi), STEPS)).toarray()
            phi, _ = self.look(table)
            if self.gap > before / 2:
                self.most = min(2 * self.most, MOST_CHOSEN << DOUBLED)
        return np.asarray(self.best.toarray() if isinstance(self.best, sparse.csr_array) else self.best)

    def _chosen(self, table: Floats, phi: Floats) -> Floats:
        """Choose the heaviest pairs and those whose ratios are too large, and return their weights."""
        weights = np.triu(self.raised(table, phi), 1).ravel()
        heavy = _greatest(weights, LIGHT * float((weights**2).sum()), self.most)
        calling = _greatest(np.triu(phi, 1).ravel(), 1 + self.gap / 4, self.most // 2)
        chosen = np.union1d(heavy, calling)
        self.first, self.second = np.divmod(chosen, self.m)
        return weights[chosen] / weights[chosen].sum()


def _greatest(values: Floats, least: float, most: int) -> Ints:
    """Where the values are above the least, but at most so many places."""
    found = np.flatnonzero(values > least)
    return found if found.size <= most else found[np.argpartition(values[found], -most)[-most:]]


# The ellipsoid of least volume around points and their opposites (Khachiyan 1996; away steps: Todd, Yıldırım 2007).
#
# E = {x : xᵀM⁻¹x ≤ r} with M = Σ w_j a_j a_jᵀ and r the dimension is optimal exactly if a_jᵀM⁻¹a_j ≤ r for all j. Each
# step moves weight onto the farthest point, or away from the nearest one that has weight. An ascent goes before: it
# moves
# all weights at once, and leaves the steps little or nothing to do. Differences of points are never listed: weights and
# distances are then tables.

#: Distances are at most (1 + GAP) times those of the optimum's condition; the steps after which the search ends.
GAP, MOST_STEPS = 1e-3, 5_000
#: Moments below this part of the largest are raised to it while the weights are sought.
LEAST = 1e-13
#: Moments whose triangular factor is no flatter are factored, and others taken apart along their axes.
WELL = 1e-9
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
        lower, flat = linalg.lapack.dpotrf(found, lower=1, clean=1)
        own = np.diag(lower) ** 2
        if not flat and own.min() > WELL * own.max():  # a fifth of the work
            turned = linalg.solve_triangular(lower, np.eye(rank), lower=True)
            return turned / np.sqrt(rank), float(np.log(own).sum()) / rank
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
