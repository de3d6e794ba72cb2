"""A forest in which alike nodes are one: nodes with subtrees of the same shape below one parent, with their number."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np
from scipy import sparse

from holdfast.arrays import Bools, Floats, Ints
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
    def inner(self) -> Bools:
        """Whether each class has children."""
        found = np.zeros(self.parents.size, bool)
        found[self.parents[self.parents >= 0]] = True
        return found

    @cached_property
    def _above(self) -> list[sparse.csr_array]:
        """For each depth but the last how the classes of the next are summed into its own, (next, own), with times."""
        place = np.empty(self.parents.size, np.int64)
        found = []
        for own, following in pairwise(self.levels):
            place[own] = np.arange(own.size)
            entries = (
                self.times[following].astype(np.float64),
                (np.arange(following.size), place[self.parents[following]]),
            )
            found.append(sparse.csr_array(entries, shape=(following.size, own.size)))
        return found

    @cached_property
    def _once(self) -> list[sparse.csr_array]:
        """The same sums with every class counted once."""
        return [
            sparse.csr_array((np.ones(rows.nnz), rows.indices, rows.indptr), shape=rows.shape) for rows in self._above
        ]

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
        lawful = self.kind >= 0
        own = np.where(lawful, precision[:, self.kind], 0.0)
        asked = np.where(lawful, wanted[:, self.kind], 0.0) * self.nodes
        with np.errstate(divide="ignore", invalid="ignore"):
            upward, sums = self._upwards(own)
            loose = (self.parents < 0) | self._free[self.parents] | ~lawful
            ratio = np.where(loose, 0.0, upward / sums[:, self.parents])  # V_c/S
            ratio = np.where(np.isfinite(ratio), ratio, 0.0)
            spread = upward.copy()
            for here in self.levels[1:]:
                part, above = ratio[:, here], spread[:, self.parents[here]]
                spread[:, here] += np.where(loose[here], 0.0, part * (part * above - upward[:, here]))
            value = (asked * np.where(asked > 0, spread, 0.0)).sum(axis=1)
            slope = self._slopes(asked, upward, sums, ratio, spread)
        by_kind = np.zeros_like(precision)
        for kind in np.unique(self.kind[lawful]).tolist():
            by_kind[:, kind] = slope[:, self.kind == kind].sum(axis=1)
        return value, by_kind

    def _upwards(self, own: Floats) -> tuple[Floats, Floats]:
        """Return V and S of a node of each class."""
        upward, sums = np.zeros_like(own), np.zeros_like(own)
        for depth in range(len(self.levels) - 1, -1, -1):
            here = self.levels[depth]
            tied = self.inner[here] & ~self._free[here]
            found = np.where(tied, 1 / (own[:, here] + 1 / sums[:, here]), 1 / own[:, here])
            upward[:, here] = np.where(self.kind[here] < 0, 0.0, found)
            if depth:
                sums[:, self.levels[depth - 1]] = upward[:, here] @ self._above[depth - 1]
        return upward, sums

    def _slopes(self, asked: Floats, upward: Floats, sums: Floats, ratio: Floats, spread: Floats) -> Floats:
        """Return the derivative of the error by the precision of a class: the passes backwards.

        D_c = V_c − V_c²/S + (V_c/S)² D with D, S of the parent, V = 1/(w + 1/S); asked counts all nodes of a class.
        """
        down = asked.copy()  # by D
        for depth in range(len(self.levels) - 1, 0, -1):
            here = self.levels[depth]
            down[:, self.levels[depth - 1]] += (down[:, here] * ratio[:, here] ** 2) @ self._once[depth - 1]
        tied = ratio > 0
        above = np.where(tied, spread[:, self.parents], 0.0)
        total = np.where(tied, sums[:, self.parents], 1.0)
        by_upward = down * (1 - 2 * ratio + 2 * ratio * above / total)
        part = down * ratio**2 * (1 - 2 * above / total)
        for depth, here in enumerate(self.levels[:-1]):
            below = self.levels[depth + 1]
            by_sums = part[:, below] @ self._once[depth]
            gain = np.where(sums[:, here] > 0, upward[:, here] / sums[:, here], 1.0)
            by_sums = np.where(self.inner[here] & ~self._free[here], by_sums + by_upward[:, here] * gain**2, 0.0)
            # by_sums counts all nodes of the parent's class; each node of a child's class adds once to its parent's S
            by_upward[:, below] += by_sums @ self._above[depth].T
        return np.where(np.isfinite(upward), -by_upward * upward**2, -np.inf)


def _shapes(parents: Ints, kind: Ints) -> Ints:
    """Return a number for the shape of the subtree below each node: equal exactly where shapes and kinds are."""
    start, children, order = (each.tolist() for each in breadth_first(parents)[:3])
    kinds, shape = kind.tolist(), [0] * parents.size
    seen: dict[tuple[int, ...], int] = {}
    for node in reversed(order):
        key = (kinds[node], *sorted(shape[child] for child in children[start[node] : start[node + 1]]))
        shape[node] = seen.setdefault(key, len(seen))
    return np.array(shape, dtype=np.int64)
