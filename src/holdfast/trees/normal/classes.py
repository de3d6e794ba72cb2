"""A forest in which alike nodes are one: nodes with subtrees of the same shape below one parent, with their number."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from holdfast.arrays import Bools, Floats, Ints, compiled
from holdfast.domains.breadth_first import breadth_first


@dataclass(frozen=True, eq=False)
class Classes:
    """Classes of nodes: parents first, each with how many of its nodes stand below one node of the class above."""

    parents: Ints
    times: Ints
    kind: Ints  # what the nodes of a class share beside their shape; −1: a node without a law of its own

    @classmethod
    def of(cls, parents: Ints, kind: Ints) -> Classes:
        """Return the classes of a forest whose nodes are of several kinds."""
        shape = _shapes(parents, kind)
        start, children, _, _, _ = breadth_first(parents)
        above: list[int] = []
        times: list[int] = []
        label: list[int] = []
        waiting = [(-1, np.flatnonzero(parents < 0))]
        while waiting:
            following = []
            for parent, nodes in waiting:
                _, first, count = np.unique(shape[nodes], return_index=True, return_counts=True)
                for node, many in zip(nodes[first].tolist(), count.tolist(), strict=True):
                    below = children[start[node] : start[node + 1]]
                    if below.size:
                        following.append((len(above), below))
                    above.append(parent)
                    times.append(many)
                    label.append(int(kind[node]))
            waiting = following
        return cls(np.array(above), np.array(times), np.array(label))

    @cached_property
    def levels(self) -> list[Ints]:
        depth = np.zeros(self.parents.size, np.int64)
        for c in range(self.parents.size):
            depth[c] = 0 if self.parents[c] < 0 else depth[self.parents[c]] + 1
        return [np.flatnonzero(depth == d) for d in range(int(depth.max()) + 1)]

    @cached_property
    def nodes(self) -> Floats:
        total = self.times.astype(np.float64)
        for here in self.levels[1:]:
            total[here] *= total[self.parents[here]]
        return total

    @cached_property
    def inner(self) -> Bools:
        found = np.zeros(self.parents.size, bool)
        found[self.parents[self.parents >= 0]] = True
        return found

    @cached_property
    def _free(self) -> Bools:
        """Whether each class has a child without a law of its own: it then leaves its own law alone."""
        found = np.zeros(self.parents.size, bool)
        found[self.parents[(self.kind < 0) & (self.parents >= 0)]] = True
        return found

    def error(self, precision: Floats, wanted: Floats) -> tuple[Floats, Floats]:
        """Return Σ wanted·variance over all nodes given that parents are sums, and its derivatives by precision.

        Both are given by kind, (rows, kinds): several problems at once. A node without a law of its own takes what its
        siblings leave, so that the law of its parent is the parent's own.
        """
        by_kind, values = np.zeros_like(precision, dtype=np.float64), np.zeros(len(precision))
        shape = (self.parents, self.times, self.kind, self.nodes, self.inner & ~self._free, self._free)
        _errors(*shape, np.asarray(precision, np.float64), np.asarray(wanted, np.float64), values, by_kind)
        return values, by_kind


@compiled
def _errors(
    parents: Any,
    times: Any,
    kind: Any,
    nodes: Any,
    tied: Any,
    free: Any,
    own: Any,
    wanted: Any,
    values: Any,
    slopes: Any,
) -> None:  # pragma: no cover (compiled)
    """Fill in the weighted variances of every problem and their derivatives, passes over classes in their order.

    V = 1/(w + 1/S) upwards; D_c = V_c − V_c²/S + (V_c/S)² D with D, S of the parent downwards; and both backwards.
    """
    count = parents.size
    for row in range(own.shape[0]):
        upward, sums, down = np.zeros(count), np.zeros(count), np.zeros(count)
        for c in range(count - 1, -1, -1):
            if kind[c] >= 0:
                precision = own[row, kind[c]]
                upward[c] = 1 / (precision + 1 / sums[c]) if tied[c] else 1 / precision
                down[c] = wanted[row, kind[c]] * nodes[c]
            if parents[c] >= 0:
                sums[parents[c]] += times[c] * upward[c]
        ratio, spread = np.zeros(count), upward.copy()
        for c in range(count):
            above = parents[c]
            if above >= 0 and kind[c] >= 0 and not free[above]:
                part = upward[c] / sums[above]  # V_c/S
                if np.isfinite(part) and part > 0:
                    ratio[c] = part
                    spread[c] += part * (part * spread[above] - upward[c])
            if down[c] > 0:
                values[row] += down[c] * spread[c]
        by_sums = np.zeros(count)
        for c in range(count - 1, -1, -1):
            if parents[c] >= 0:
                down[parents[c]] += down[c] * ratio[c] ** 2
        by_upward = down.copy()
        for c in range(count):
            if ratio[c] > 0:
                share = spread[parents[c]] / sums[parents[c]]
                by_upward[c] = down[c] * (1 - 2 * ratio[c] + 2 * ratio[c] * share)
                by_sums[parents[c]] += down[c] * ratio[c] ** 2 * (1 - 2 * share)
        for c in range(count):
            if parents[c] >= 0:  # each node of a class adds once to its parent's S
                by_upward[c] += times[c] * by_sums[parents[c]]
            if not tied[c]:
                by_sums[c] = 0.0
            else:
                gain = upward[c] / sums[c] if sums[c] > 0 else 1.0
                by_sums[c] += by_upward[c] * gain**2
            if kind[c] >= 0:
                slopes[row, kind[c]] += -by_upward[c] * upward[c] ** 2 if np.isfinite(upward[c]) else -np.inf


def _shapes(parents: Ints, kind: Ints) -> Ints:
    """Return a number for the shape of the subtree below each node: equal exactly where shapes and kinds are."""
    start, children, order = (each.tolist() for each in breadth_first(parents)[:3])
    kinds, shape = kind.tolist(), [0] * parents.size
    seen: dict[tuple[int, ...], int] = {}
    for node in reversed(order):
        key = (kinds[node], *sorted(shape[child] for child in children[start[node] : start[node + 1]]))
        shape[node] = seen.setdefault(key, len(seen))
    return np.array(shape, dtype=np.int64)
