"""The oracle's fast mode: the same enumeration in doubles, for sweeps over larger windows.

A `Grid` lists all noisy values of a window once; laws on it are arrays of log probabilities. Conditions and
maps are written for whole arrays: they receive the outputs, shape (m, n). Sums are of positive numbers, so
results are right to about 1e-12; use the exact oracle where that is not enough.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from holdfast.arguments import Refused
from holdfast.arrays import Bools, Floats, Ints
from holdfast.beliefs.oracle import Table, Window, tables_for

Whole = Ints


@dataclass(frozen=True, eq=False)
class Grid:
    """All outputs of a window, and laws on them as arrays of log probabilities (−inf for impossible)."""

    window: Window
    outputs: Whole

    @classmethod
    def of(cls, window: Window) -> Grid:
        """List the outputs of a window, last coordinate fastest."""
        axes = [np.arange(low, high + 1, dtype=np.int64) for low, high in window]
        mesh = np.meshgrid(*axes, indexing="ij")
        return cls(tuple(window), np.stack([axis.ravel() for axis in mesh], axis=1))

    def base(self, truth: Sequence[int], weights: Table | Sequence[Table]) -> Floats:
        """Return the log law of truth + noise."""
        total = np.zeros(len(self.outputs))
        for i, (x, table) in enumerate(zip(truth, tables_for(truth, weights), strict=True)):
            low, high = self.window[i]
            if low - x < min(table) or high - x > max(table):
                raise Refused("the weights do not reach across the window; use a larger reach")
            column = np.array([math.log(table[z - x]) for z in range(low, high + 1)])
            total += column[self.outputs[:, i] - low]
        return _normalised(total)

    def given(self, law: Floats, holds: Callable[[Whole], Bools]) -> Floats:
        return _normalised(np.where(holds(self.outputs), law, -np.inf))

    def onto(self, law: Floats, nearest: Callable[[Whole], Whole]) -> Mapping[tuple[int, ...], float]:
        """Return the probabilities of nearest(output), by target."""
        targets, index = np.unique(nearest(self.outputs), axis=0, return_inverse=True)
        sums = np.bincount(index.ravel(), weights=np.exp(law), minlength=len(targets))
        return {tuple(map(int, target)): float(value) for target, value in zip(targets, sums, strict=True)}

    def log_ratio(self, p: Floats, q: Floats) -> float:
        """Return the largest log p/q over the outputs; infinite when q lacks an output that p has."""
        here = np.isfinite(p)
        return float(np.max(p[here] - q[here]))

    def hockey_stick(self, p: Floats, q: Floats, epsilon: float) -> float:
        """Return Σ [p − e^ε q]₊, the δ at this ε for this ordered pair."""
        return float(np.maximum(np.exp(p) - np.exp(q + epsilon), 0.0).sum())

    def renyi(self, p: Floats, q: Floats, alpha: float) -> float:
        """Return the Rényi divergence of order alpha > 1 of p from q."""
        here = np.isfinite(p)
        if not np.isfinite(q[here]).all():
            return math.inf
        terms = alpha * p[here] + (1 - alpha) * q[here]
        top = terms.max()
        return float((top + np.log(np.exp(terms - top).sum())) / (alpha - 1))


def _normalised(law: Floats) -> Floats:
    top = law.max()
    if not np.isfinite(top):
        raise Refused("a law needs at least one output with positive mass, found none")
    result: Floats = law - top
    return result - np.log(np.exp(result).sum())
