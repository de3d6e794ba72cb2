"""Which pairs of leaves of a hierarchy are alike: one pair stands for all that a symmetry of the tree maps to it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from holdfast.arrays import Ints
from holdfast.trees.prices.leaf_bounds import LeafBounds, numbered

#: The roots' common parent, where leaves of different trees meet.
NOWHERE = -1


@dataclass(frozen=True, eq=False)
class AlikeLeaves:
    """The leaves of a hierarchy up to its symmetries (laws, bounds, steps and exact outputs are kept by them)."""

    bounds: LeafBounds

    @cached_property
    def shape(self) -> Ints:
        """Outputs of one depth whose subtrees are alike share a number; others do not."""
        b = self.bounds
        own = numbered(b.which.astype(np.int64) * 2 + b.exact)
        for values in (b.width, b.steps, b.low * 2 + b.high):
            kinds = numbered(np.where(b.is_leaf, values, -1.0))
            own = numbered(own * (int(kinds.max()) + 1) + kinds)
        shape = np.zeros(own.size, np.int64)
        levels = np.split(b.order, np.flatnonzero(np.diff(b.depth[b.order])) + 1)
        used = 0
        for nodes, children in zip(levels[::-1], [np.zeros(0, np.int64), *levels[:0:-1]], strict=True):
            numbers = numbered(own[nodes] * (children.size + 1) + self._families(nodes, children, shape))
            shape[nodes] = used + numbers
            used += int(numbers.max()) + 1
        return shape

    def _families(self, nodes: Ints, children: Ints, shape: Ints) -> Ints:
        """Number the multisets of the children's shapes of all outputs of one depth, from 0."""
        family = np.zeros(nodes.size, np.int64)
        if children.size == 0:
            return family
        place = np.full(self.bounds.parents.size, -1, np.int64)
        place[nodes] = np.arange(nodes.size)
        above, kinds = place[self.bounds.parents[children]], numbered(shape[children])
        if kinds.max() == 0:
            return numbered(np.bincount(above, minlength=nodes.size))
        runs, counts = np.unique(above * (int(kinds.max()) + 1) + kinds, return_counts=True)
        owner, kind = np.divmod(runs, int(kinds.max()) + 1)
        word = numbered(kind * (int(counts.max()) + 1) + counts) + 1
        first = np.searchsorted(owner, np.arange(nodes.size + 1))
        for nth in range(int(np.diff(first).max())):  # read the runs of every family like a word, letter by letter
            letter = np.where(first[:-1] + nth < first[1:], word[np.minimum(first[:-1] + nth, word.size - 1)], 0)
            family = numbered(family * (int(word.max()) + 1) + letter)
        return family

    def _branches(self, output: int, without: int = NOWHERE) -> Ints:
        """One child of each shape, one of them left out."""
        children = self.bounds.children_of(output)
        children = children[children != without]
        return children[np.unique(self.shape[children], return_index=True)[1]]

    def _leaves_below(self, output: int, top: int | None) -> Iterator[int]:
        """One changeable leaf of each kind below an output, with this lowest exact output above it."""
        b, waiting = self.bounds, [output]
        while waiting:
            v = waiting.pop()
            if top is not None and b.top[v] != top:
                continue
            if b.is_leaf[v]:
                if b.changeable[v]:
                    yield v
            else:
                waiting.extend(self._branches(v).tolist())

    def pairs(self, most: int) -> list[tuple[int, int, int]] | None:
        """Leaves (i, j) that can exchange records, and the output where their paths meet; None if more than `most`."""
        found: list[tuple[int, int, int]] = []
        b = self.bounds
        for i in (leaf for root in self._branches(NOWHERE) for leaf in self._leaves_below(int(root), None)):
            top, below, above = int(b.top[i]), i, int(b.parents[i])
            while True:
                for branch in self._branches(above, without=below):
                    for j in self._leaves_below(int(branch), top):
                        if len(found) == most:
                            return None
                        found.append((i, j, above))
                if above in (NOWHERE, top):
                    break
                below, above = above, int(b.parents[above])
        return found
