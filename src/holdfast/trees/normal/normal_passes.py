"""Passes over a hierarchy whose messages are normal laws, so that a message is a mean and a variance (THEORY §4).

Upwards, the children's variances add up to S, and with the node's own variance σ² a node has V = (1/S + 1/σ²)⁻¹ (0
where it is exact, S where it is not measured). Downwards, with independent e_c of variance V_c at the children of a
node whose value is u, they become e_c + V_c/S·(u − Σe): values given their sum. At most one child may have an
infinite variance: it takes what the others leave.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from holdfast.arrays import Bools, Floats, Ints, compiled
from holdfast.domains.breadth_first import breadth_first


@dataclass(frozen=True, eq=False)
class NormalPasses:
    """The variances of the messages, in the order in which the passes go: siblings together, parents first."""

    order: Ints
    first: Ints  # place of the first child, and of the first child of the next node
    exact: Bools
    own: Floats
    upward: Floats
    below: Floats

    @classmethod
    def of(cls, parents: Ints, own: Floats, exact: Bools | None = None) -> NormalPasses | None:
        """Return the up-pass for these variances (inf: not measured); None where some node would have no law."""
        start, _, order, _, _ = breadth_first(parents)
        roots = int((parents < 0).sum())
        first = roots + np.concatenate([[0], np.cumsum(np.diff(start)[order])])
        given = np.zeros(own.size, bool) if exact is None else exact[order]
        upward, below, proper = _upwards(first, given, own[order])
        if not (proper and np.isfinite(upward[:roots]).all()):
            return None
        return cls(order, first, given, own[order], upward, below)

    def noise(self, normals: Floats) -> None:
        """Turn standard normal numbers, (rows, n) in this order, into noise given that parents are sums, in place."""
        deviation = np.where(np.isinf(self.upward), 0.0, np.sqrt(self.upward))
        normals *= deviation
        normals += 0.0  # exact nodes have no sign
        _settled(self.first, self.exact, self.upward, self.below, normals)

    def estimated(self, values: Floats) -> None:
        """Turn measured values, (rows, n) in this order, into the best linear estimates that add up, in place."""
        _means(self.first, self.own, self.upward, self.below, values)
        _settled(self.first, self.exact, self.upward, self.below, values)

    def from_below(self, values: Floats) -> None:
        """Turn measured values into the best linear estimates from what is measured at and below each node alone."""
        _means(self.first, self.own, self.upward, self.below, values)

    def variances(self) -> Floats:
        return np.asarray(_variances(self.first, self.upward, self.below))

    def variance_of(self, weights: Floats) -> float:
        """Return the variance of a weighted sum of the nodes, in this order."""
        return float(_variance_of(self.first, self.upward, self.below, np.ascontiguousarray(weights, dtype=np.float64)))


@compiled(beyond=20_000)
def _upwards(first: Any, exact: Any, own: Any) -> Any:  # pragma: no cover (compiled)
    """Return V and S of every output, and whether no output has two children without a law."""
    n = own.size
    upward, below = np.empty(n), np.zeros(n)
    proper = True
    for v in range(n - 1, -1, -1):
        endless = 0
        for c in range(first[v], first[v + 1]):
            below[v] += upward[c]
            endless += np.isinf(upward[c])
        proper = proper and endless < 2
        if exact[v] or (first[v + 1] > first[v] and below[v] == 0):
            upward[v] = 0.0
        elif first[v + 1] == first[v] or np.isinf(below[v]):
            upward[v] = own[v]
        elif np.isinf(own[v]):
            upward[v] = below[v]
        else:
            upward[v] = 1 / (1 / below[v] + 1 / own[v])
    return upward, below, proper


@compiled(beyond=20_000)
def _means(first: Any, own: Any, upward: Any, below: Any, measured: Any) -> None:  # pragma: no cover (compiled)
    """Turn measured values into the means of the messages, in place."""
    rows, n = measured.shape
    for row in range(rows):
        values = measured[row]
        for v in range(n - 1, -1, -1):
            if first[v + 1] == first[v] or np.isinf(below[v]):
                if np.isinf(own[v]):
                    values[v] = 0.0
                continue
            total = 0.0
            for c in range(first[v], first[v + 1]):
                total += values[c]
            if np.isinf(own[v]) or below[v] == 0:
                values[v] = total
            elif upward[v] > 0:
                values[v] = upward[v] * (total / below[v] + values[v] / own[v])


@compiled(beyond=20_000)
def _settled(first: Any, exact: Any, upward: Any, below: Any, drawn: Any) -> None:  # pragma: no cover (compiled)
    """Make the values of children, independent of each other, fit those of their parents, in place."""
    rows, n = drawn.shape
    for row in range(rows):
        values = drawn[row]
        for v in range(n):
            if below[v] == 0:
                continue  # a leaf, or children without noise
            left = values[v]
            for c in range(first[v], first[v + 1]):
                left -= values[c]
            for c in range(first[v], first[v + 1]):
                if np.isinf(upward[c]):
                    values[c] = left
                elif not np.isinf(below[v]):
                    values[c] += upward[c] / below[v] * left
        # Parents are the sums of their children, whatever was rounded on the way.
        for v in range(n - 1, -1, -1):
            if not exact[v] and first[v + 1] > first[v]:
                total = 0.0
                for c in range(first[v], first[v + 1]):
                    total += values[c]
                values[v] = total


@compiled(beyond=20_000)
def _variances(first: Any, upward: Any, below: Any) -> Any:  # pragma: no cover (compiled)
    """Return the variance of every output: V_c·T/S + (V_c/S)²·Var(parent), T the variance of the siblings."""
    n = upward.size
    result = upward.copy()  # at roots
    others = np.zeros(n)
    for v in range(n):
        total = 0.0
        for c in range(first[v], first[v + 1]):
            others[c] = total
            total += upward[c]
        total = 0.0
        for c in range(first[v + 1] - 1, first[v] - 1, -1):
            others[c] += total
            total += upward[c]
        for c in range(first[v], first[v + 1]):
            if np.isinf(upward[c]):
                result[c] = others[c] + result[v]
            elif upward[c] > 0 and not np.isinf(below[v]):
                share = upward[c] / below[v]
                result[c] = share * others[c] + share * share * result[v]
    return result


@compiled(beyond=20_000)
def _variance_of(first: Any, upward: Any, below: Any, weights: Any) -> Any:  # pragma: no cover (compiled)
    """Return the variance of a weighted sum: going up, it is weight·(noise of v) plus independent noise."""
    n = upward.size
    weight, variance = weights.copy(), 0.0
    for v in range(n - 1, -1, -1):
        if below[v] == 0:
            continue
        mean = 0.0
        for c in range(first[v], first[v + 1]):
            if np.isinf(below[v]):
                if np.isinf(upward[c]):
                    mean = weight[c]
            else:
                mean += upward[c] / below[v] * weight[c]
        for c in range(first[v], first[v + 1]):
            if not np.isinf(upward[c]):
                away = weight[c] - mean
                variance += upward[c] * (away * away)
        weight[v] += mean
    for v in range(first[0]):
        variance += upward[v] * (weight[v] * weight[v])
    return variance
