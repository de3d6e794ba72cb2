"""Leaves that are not measured: their noise has weight 1 everywhere, so it is what their parent and siblings leave.

Let v be such a leaf, without bounds, and p its parent. Whatever the noise of p and of v's siblings, one value of v
makes them add up, and it costs nothing. So p becomes a leaf, v's siblings become roots of trees of their own, and v is
filled in afterwards. If p is not measured either, it is now such a leaf itself, and so on upwards
(docs/theory/circles.md, section 7).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from holdfast.arrays import Bools, Floats, Ints, ranges
from holdfast.trees.shape.forest import Forest


def unmeasured_ends(forest: Forest, measured: Bools) -> Ints:
    """Outputs whose noise their own law and what is below them leave free, parents before children.

    They are not measured and not exact, and are leaves or have such a child.
    """
    stopped = measured | forest.exact
    if stopped[forest.is_leaf].all():
        return np.zeros(0, dtype=np.int64)
    free = forest.is_leaf & ~stopped
    for some in forest.by_depth[:0:-1]:
        free[forest.parents[some[free[some]]]] = True
        free &= ~stopped
    return np.asarray(forest.order[free[forest.order]])


@dataclass(frozen=True, eq=False)
class FreeLeaves:
    """A forest in which some outputs, `free`, parents before children, are filled in once the others are known."""

    whole: Forest
    free: Ints

    @classmethod
    def of(cls, forest: Forest, measured: Bools, bounded: Bools) -> FreeLeaves | None:
        """Find the free outputs; None if one has a bound or is a root, or if two have one parent."""
        free = unmeasured_ends(forest, measured)
        above = forest.parents[free]
        if bounded[free].any() or (above < 0).any() or np.unique(above).size < above.size:
            return None
        return cls(forest, free)

    @cached_property
    def kept(self) -> Ints:
        """The outputs that are not filled in."""
        every = np.arange(self.whole.n)
        return np.delete(every, self.free) if self.free.size else every

    @cached_property
    def forest(self) -> Forest:
        """The forest of the outputs that are kept: parents of free ones are leaves, their other children are roots."""
        return self.of_some(self.kept)

    def alone(self, bounded: Bools) -> Bools:
        """Which of the outputs that are kept are trees of their own, without bounds: their noise is independent."""
        forest = self.forest
        return np.asarray((forest.parents < 0) & forest.is_leaf & ~forest.exact & ~bounded[self.kept])

    def of_some(self, outputs: Ints) -> Forest:
        """The trees of `forest` that consist of these outputs."""
        if outputs.size == self.whole.n:
            return self.whole
        parents = self.whole.parents
        opened = np.zeros(self.whole.n + 1, dtype=bool)  # the last place stands for no parent
        opened[parents[self.free]] = True
        number = np.full(self.whole.n + 1, -1, dtype=np.int64)
        number[outputs] = np.arange(outputs.size)
        above = parents[outputs]
        return Forest(np.where(opened[above], -1, number[above]), self.whole.exact[outputs])

    def filled(self, values: npt.NDArray[Any], sign: int = -1) -> npt.NDArray[Any]:
        """Rows for all outputs from rows for those kept: a free one is its parent's and `sign` × its siblings'."""
        if not self.free.size:
            return values
        result = np.empty((len(values), self.whole.n), dtype=values.dtype)
        result[:, self.kept] = values
        result[:, self.free] = 0
        children, start = self.whole.children
        depth = self.whole.depth[self.free]
        for some in np.split(self.free, np.flatnonzero(np.diff(depth)) + 1):
            above = self.whole.parents[some]
            numbers = start[above + 1] - start[above]
            siblings = children[ranges(start[above], numbers)]
            sums = np.add.reduceat(result[:, siblings], np.cumsum(numbers) - numbers, axis=1)
            result[:, some] = result[:, above] + sign * sums
        return result

    def moved(self, weights: Floats) -> Floats:
        """Weights on the outputs that are kept whose weighted sum is that of `weights` on all."""
        result = np.array(weights, dtype=np.float64)
        for v in self.free[::-1].tolist():
            above = int(self.whole.parents[v])
            weight = result[v]
            result[self.whole.children_of(above)] -= weight
            result[above] += weight
        return result[self.kept]

    def parts(self, v: int) -> Ints:
        """The kept outputs, numbered in `forest`, of whose noise a free output's is a sum, up to signs."""
        found = []
        while v in self._is_free:
            above = int(self.whole.parents[v])
            siblings = self.whole.children_of(above)
            found.append(siblings[siblings != v])
            v = above
        return np.searchsorted(self.kept, np.concatenate([*found, [v]]))

    @cached_property
    def _is_free(self) -> frozenset[int]:
        return frozenset(self.free.tolist())
