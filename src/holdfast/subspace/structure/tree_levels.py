"""A hierarchy whose nodes are alike level by level: one space for each level, without a matrix.

If all nodes of a level have equally many children, the symmetries of the tree split the leaves' numbers into one space
for each level ℓ: constant below every node of ℓ, and of sum 0 among siblings there. Exact levels remove their own space
and those above; every symmetric covariance on what is left is Σ_ℓ c_ℓ P_ℓ (docs/theory/subspace.md).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from holdfast.arrays import Floats
from holdfast.randomness import Stream
from holdfast.subspace.structure.tree_space import TreeSpace


@dataclass(frozen=True, eq=False)
class TreeLevels:
    """Level ℓ has `siblings`[ℓ] nodes below each node above it (1 at the root); N is made of the levels `free`."""

    tree: TreeSpace
    siblings: tuple[int, ...]
    free: tuple[int, ...]

    @classmethod
    def of(cls, tree: TreeSpace | None) -> TreeLevels | None:
        """Recognise one root, levels of nodes that are alike, and levels that are exact as a whole; else None."""
        if tree is None or tree.levels[0].stop != 1:
            return None
        siblings, last_exact = [1], -1
        for level, here in enumerate(tree.levels):
            count = here.stop - here.start
            if level:
                over = tree.levels[level - 1]
                each, odd = divmod(count, over.stop - over.start)
                parents = np.repeat(np.arange(over.start, over.stop), each)
                if odd or not np.array_equal(tree.above[here], parents):
                    return None
                siblings.append(each)
            if tree.exact[here].any():
                if not tree.exact[here].all():
                    return None
                last_exact = level
        free = tuple(k for k in range(last_exact + 1, len(siblings)) if k == 0 or siblings[k] > 1)
        return cls(tree, tuple(siblings), free) if free else None

    @cached_property
    def nodes(self) -> list[int]:
        return [here.stop - here.start for here in self.tree.levels]

    @cached_property
    def below(self) -> list[int]:
        return [self.nodes[-1] // count for count in self.nodes]

    @cached_property
    def dimensions(self) -> list[int]:
        return [self.nodes[k] - self.nodes[k - 1] if k else 1 for k in self.free]

    @cached_property
    def lengths(self) -> list[int]:
        """e_ℓ: numbers of length 1 on the leaves, in the space of ℓ, have outputs of squared length e_ℓ."""
        return [sum(self.below[k:]) for k in self.free]

    def squares(self, adds: bool) -> list[list[Fraction]]:
        """‖P_ℓ d‖² for one leaf (all are alike), or for two leaves by the level at which they meet."""
        own = [Fraction(1, self.below[k]) - (Fraction(1, self.below[k - 1]) if k else 0) for k in self.free]
        if adds:
            return [[e * part for e, part in zip(self.lengths, own, strict=True)]]
        found = []
        for meet in range(len(self.nodes) - 1):
            if self.siblings[meet + 1] == 1:
                continue
            row = []
            for k, e, part in zip(self.free, self.lengths, own, strict=True):
                apart = Fraction(1, self.below[k]) if k == meet + 1 else part
                row.append(2 * e * apart if k > meet else Fraction(0))
            found.append(row)
        return found

    def variances(self, c: Floats) -> Floats:
        """The variance of every output for Σ_ℓ c_ℓ P_ℓ."""
        result = np.empty(self.tree.n)
        for level, here in enumerate(self.tree.levels):
            each = sum(
                c[i] * self._factor(i, level) ** 2 * (1 - 1 / self.siblings[k] if k else 1.0)
                for i, k in enumerate(self.free)
                if k <= level
            )
            result[self.tree.order[here]] = each
        return result

    def costs(self, weights: Floats | None) -> Floats | None:
        """tr G P_ℓ for each ℓ, where the outputs' weights are one per level; None where they are not."""
        if weights is None:
            return np.array(self.dimensions, dtype=np.float64)
        levels = [weights[self.tree.order[here]] for here in self.tree.levels]
        if any((part != part[0]).any() for part in levels):
            return None
        heavy = [sum(float(levels[j][0]) * self.below[j] for j in range(k, len(levels))) for k in self.free]
        return np.array([d * h / e for d, h, e in zip(self.dimensions, heavy, self.lengths, strict=True)])

    def normals(self, size: int, stream: Stream) -> list[Floats]:
        """Normal numbers on the nodes of every free level, of sum 0 among siblings."""
        return [self._centred(k, stream.normals(size * self.nodes[k]).reshape(size, self.nodes[k])) for k in self.free]

    def spread_out(self, parts: list[Floats], size: int) -> Floats:
        """Turn numbers on the nodes of the free levels into outputs (size, n)."""
        result = np.empty((size, self.tree.n))
        for level, here in enumerate(self.tree.levels):
            total = np.zeros((size, self.nodes[level]))
            for i, k in enumerate(self.free):
                if k <= level:
                    total += self._factor(i, level) * np.repeat(parts[i], self.nodes[level] // self.nodes[k], axis=1)
            result[:, self.tree.order[here]] = total
        return result

    def gathered(self, values: Floats) -> list[Floats]:
        """The components of vectors (size, n) in every free space, as numbers on the nodes of its level."""
        result = []
        for i, k in enumerate(self.free):
            table = np.zeros((len(values), self.nodes[k]))
            for level in range(k, len(self.nodes)):
                part = values[:, self.tree.order[self.tree.levels[level]]]
                table += self._factor(i, level) * part.reshape(len(values), self.nodes[k], -1).sum(axis=2)
            result.append(self._centred(k, table))
        return result

    def _factor(self, i: int, level: int) -> float:
        """What a node of the level gets from the number on its ancestor at the free level i, in orthonormal scale."""
        return self.below[level] / math.sqrt(self.lengths[i] * self.below[self.free[i]])

    def _centred(self, level: int, numbers: Floats) -> Floats:
        if level == 0:
            return numbers
        families = numbers.reshape(len(numbers), -1, self.siblings[level])
        return (families - families.mean(axis=2, keepdims=True)).reshape(numbers.shape)
