"""Leaves that are not measured: their noise has weight 1 everywhere, so it is what their parent and siblings leave.

Let v be such a leaf, without bounds, and p its parent. Whatever the noise of p and of v's siblings, one value of v
makes them add up, and it costs nothing. So p becomes a leaf, v's siblings become roots of trees of their own, and v is
filled in afterwards. If p is not measured either, it is now such a leaf itself, and so on upwards
(docs/theory/exact-trees.md, section 6).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import fft

from holdfast.arrays import Array, Bools, Floats, Ints, compiled
from holdfast.trees.plain.marginals import TIE, PlainMarginals
from holdfast.trees.shape.forest import Forest
from holdfast.trees.spread.marginals import Marginals

#: How many standard errors of a sum its law reaches on either side: log-concave, it has at most e^(1−40) beyond them.
REACH = 40


def unmeasured_ends(forest: Forest, measured: Bools) -> Ints:
    """Outputs whose noise their own law and what is below them leave free, parents before children.

    They are not measured and not exact, and are leaves or have such a child.
    """
    stopped = measured | forest.exact
    if stopped[forest.is_leaf].all():
        return np.zeros(0, dtype=np.int64)
    order = forest.order
    return np.asarray(order[_unstopped(forest.parents, order, stopped, forest.is_leaf)[order]])


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
        _fill(result, self.whole.parents, *self.whole.children, self.free, values.dtype.type(sign))
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


@dataclass(frozen=True, eq=False)
class FilledMarginals:
    """Errors of all outputs from the laws of those kept, without bounds: the parts of a free one are independent."""

    leaves: FreeLeaves
    found: Marginals | PlainMarginals

    @cached_property
    def variances(self) -> Floats:
        """The variance of every output's noise."""
        return np.asarray(self.leaves.filled(self.found.variances[None, :], sign=1)[0])

    def variance_of_sum(self, weights: Floats) -> float:
        """The variance of Σ weights·noise."""
        return self.found.variance_of_sum(self.leaves.moved(weights))

    def characteristic(self, weights: Floats, frequencies: Array) -> Floats | None:
        """The mean of e^{iωx} of x = Σ weights·noise for some ω, if it is real; None where it is too much work."""
        return self.found.characteristic(self.leaves.moved(weights), frequencies)

    def quantiles(self, p: float) -> Ints:
        """For every output, the smallest place whose cumulative probability reaches p."""
        result = self.leaves.filled(self.found.quantiles(p)[None, :])[0]
        for v, (places, cumulative) in zip(self.leaves.free.tolist(), self._laws, strict=True):
            result[v] = places[min(int(np.searchsorted(cumulative, p - TIE)), places.size - 1)]
        return np.asarray(result)

    @cached_property
    def _laws(self) -> list[tuple[Ints, Floats]]:
        """Places and cumulative probabilities of every free output; alike ones share theirs."""
        single: dict[int, tuple[int, Floats]] = {}
        known: dict[bytes, tuple[Ints, Floats]] = {}
        result = []
        for v in self.leaves.free.tolist():
            parts = self.leaves.parts(v)
            kinds, first, counts = np.unique(self.found.kind_of[parts], return_index=True, return_counts=True)
            key = np.concatenate([kinds, counts]).tobytes()
            if key not in known:
                for kind, part in zip(kinds.tolist(), parts[first].tolist(), strict=True):
                    if kind not in single:
                        single[kind] = self.found.law(part)
                laws = [single[kind] for kind in kinds.tolist()]
                known[key] = _sum_of(laws, counts.tolist(), float(np.sqrt(self.variances[v])))
            result.append(known[key])
        return result


def _sum_of(laws: list[tuple[int, Floats]], counts: list[int], error: float) -> tuple[Ints, Floats]:
    """Places and cumulative probabilities of a sum of independent noise, so many of each symmetric law.

    From the characteristic functions. Absolute errors are about 1e−16 for each part.
    """
    widest = max(law.size for _, law in laws)
    size = fft.next_fast_len(int(2 * REACH * error) + 2 * widest + 1, real=True)
    product = np.ones(size // 2 + 1, dtype=np.complex128)
    for (low, law), count in zip(laws, counts, strict=True):
        around = np.zeros(size)
        around[(low + np.arange(law.size)) % size] = law
        product *= fft.rfft(around) ** count
    chances = fft.fftshift(np.maximum(fft.irfft(product, size), 0.0))
    places = np.arange(size) - size // 2
    return places, np.cumsum(chances) / chances.sum()


@compiled
def _unstopped(parents: Any, order: Any, stopped: Any, leaf: Any) -> Any:
    result = leaf.copy()
    for i in range(parents.size - 1, -1, -1):
        v = order[i]
        if stopped[v]:
            result[v] = False
        elif result[v] and parents[v] >= 0:
            result[parents[v]] = True
    return result


@compiled
def _fill(values: Any, parents: Any, children: Any, start: Any, free: Any, sign: Any) -> None:
    for row in range(values.shape[0]):
        for v in free:
            above = parents[v]
            total = values[row, above]
            for i in range(start[above], start[above + 1]):
                if children[i] != v:
                    total += sign * values[row, children[i]]
            values[row, v] = total
