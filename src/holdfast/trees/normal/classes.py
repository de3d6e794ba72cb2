"""A forest in which alike nodes are one: nodes with subtrees of the same shape below one parent, with their number."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from holdfast.arrays import Floats, Ints
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
        """The classes by depth."""
        depth = np.zeros(self.parents.size, np.int64)
        for c in range(self.parents.size):
            depth[c] = 0 if self.parents[c] < 0 else depth[self.parents[c]] + 1
        return [np.flatnonzero(depth == d) for d in range(int(depth.max()) + 1)]

    @cached_property
    def nodes(self) -> Floats:
        """How many nodes each class has in all."""
        total = self.times.astype(np.float64)
        for here in self.levels[1:]:
            total[here] *= total[self.parents[here]]
        return total

    @cached_property
    def inner(self) -> Ints:
        """Whether each class has children."""
        found = np.zeros(self.parents.size, bool)
        found[self.parents[self.parents >= 0]] = True
        return found

    def below(self, values: Floats) -> Floats:
        """Return for each class the sum over the children of one of its nodes."""
        result = np.zeros(self.parents.size)
        on = self.parents >= 0
        np.add.at(result, self.parents[on], (self.times * values)[on])
        return result

    def error(self, precision: Floats, wanted: Floats) -> tuple[float, Floats]:
        """Return Σ wanted·variance over all nodes given that parents are sums, and its derivatives by precision.

        Both are given by kind. A node without a law of its own takes what its siblings leave, so that the law of its
        parent is the parent's own.
        """
        own = np.where(self.kind < 0, 0.0, precision[self.kind])
        asked = np.where(self.kind < 0, 0.0, wanted[self.kind]) * self.nodes
        free = np.zeros(self.parents.size, bool)  # has a child without a law of its own
        free[self.parents[(self.kind < 0) & (self.parents >= 0)]] = True
        with np.errstate(divide="ignore", invalid="ignore"):
            upward, sums = self._upwards(own, free)
            ratio = np.where(self.kind < 0, 0.0, upward / sums[self.parents])  # V_c/S
            loose = (self.parents < 0) | free[self.parents]
            ratio = np.where(loose | ~np.isfinite(ratio), 0.0, ratio)
            spread = upward.copy()
            for here in self.levels[1:]:
                tied = here[~loose[here]]
                spread[tied] += ratio[tied] * (ratio[tied] * spread[self.parents[tied]] - upward[tied])
            value = float((asked * np.where(asked > 0, spread, 0.0)).sum())
            slope = self._slopes(asked, upward, sums, ratio, spread, free)
        by_kind: Floats = np.bincount(
            self.kind[self.kind >= 0], slope[self.kind >= 0], minlength=precision.size
        ).astype(np.float64)
        return value, by_kind

    def _upwards(self, own: Floats, free: Ints) -> tuple[Floats, Floats]:
        """Return V and S of a node of each class."""
        upward, sums = np.zeros(self.parents.size), np.zeros(self.parents.size)
        for here in reversed(self.levels):
            tied = self.inner[here] & ~free[here]
            upward[here] = np.where(tied, 1 / (own[here] + 1 / sums[here]), 1 / own[here])
            upward[here[self.kind[here] < 0]] = 0.0
            on = here[self.parents[here] >= 0]
            np.add.at(sums, self.parents[on], self.times[on] * upward[on])
        return upward, sums

    def _slopes(self, asked: Floats, upward: Floats, sums: Floats, ratio: Floats, spread: Floats, free: Ints) -> Floats:
        """Return the derivative of the error by the precision of a class: the passes backwards.

        D_c = V_c − V_c²/S + (V_c/S)² D with D, S of the parent, V = 1/(w + 1/S); asked counts all nodes of a class.
        """
        down = asked.copy()  # by D
        for here in reversed(self.levels[1:]):
            np.add.at(down, self.parents[here], down[here] * ratio[here] ** 2)
        above = np.where(self.parents >= 0, spread[self.parents], 0.0)
        by_upward = down * (1 - 2 * ratio)
        total = np.where(self.parents >= 0, sums[self.parents], 1.0)
        by_upward += np.where(ratio > 0, down * 2 * ratio * above / total, 0.0)
        by_sums = np.zeros(self.parents.size)
        on = self.parents >= 0
        part = np.where(ratio > 0, down * ratio**2 * (1 - 2 * above / total), 0.0)
        np.add.at(by_sums, self.parents[on], part[on])
        for here in self.levels:
            tied = here[self.inner[here] & ~free[here]]
            gain = np.where(sums[tied] > 0, upward[tied] / sums[tied], 1.0)
            by_sums[tied] += by_upward[tied] * gain**2
            below = np.flatnonzero(np.isin(self.parents, tied))
            # by_sums counts all nodes of the parent's class; each node of a child's class adds once to its parent's S
            by_upward[below] += by_sums[self.parents[below]] * self.times[below]
        return np.where(np.isfinite(upward), -by_upward * upward**2, -np.inf)


def _shapes(parents: Ints, kind: Ints) -> Ints:
    """Return a number for the shape of the subtree below each node: equal exactly where shapes and kinds are."""
    start, children, order, _, _ = breadth_first(parents)
    shape = np.zeros(parents.size, np.int64)
    seen: dict[bytes, int] = {}
    for node in order[::-1].tolist():
        below = np.sort(shape[children[start[node] : start[node + 1]]])
        key = np.append(below, kind[node]).tobytes()
        shape[node] = seen.setdefault(key, len(seen))
    return shape
