"""Weights of the dual over a whole difference set, by the largest ratio φ of all its members.

Under replace-one the differences are those of every two points, millions of them, and nearly all weights are 0: only
pairs that have weight, or whose ratio calls for it, are climbed on, and they are chosen again every few steps. The
ratios of all pairs together are one table of inner products.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import sparse

from holdfast.arrays import Floats, Ints
from holdfast.subspace.geometry import moments, squares
from holdfast.subspace.optimum.ascent import PATIENCE, STEPS, WARM, Ascent, ascend

#: From the moments M to a map T with φ = ‖T a‖², and the dual value.
Whiten = Callable[[Floats], tuple[Floats, float]]

#: The most heavy pairs on which the dual is climbed, with half as many for their ratios; doubled so often if need be.
MOST_CHOSEN, DOUBLED = 100_000, 3
#: Pairs whose weight is below this part of a usual one, and whose ratio asks for no more, are left out.
LIGHT = 1e-3
#: Multiplications after which a gap that is good enough ends the search.
PATIENT_WORK = 1e11
#: The most rounds where differences are points, and where they are pairs.
MOST_ROUNDS, MOST_PAIR_ROUNDS = 3_000, 600


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
        """A table of all weights."""
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
