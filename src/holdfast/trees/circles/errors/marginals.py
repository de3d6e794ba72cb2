"""The law of each output's noise on a hierarchy: what comes from below times what comes from above.

A node's law is p(t) = S(t)·g(t), S the sum of its children's messages and g its *share*, all else. A child's share is
its own weight times Σ_t g(t)·S'(t − a), g its parent's share and S' the sum of its siblings' messages, on the parent's
circle. Used for standard errors and quantiles, so doubles are enough; draws do not use this file
(docs/theory/circles.md).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from scipy import fft

from holdfast.arrays import Array, Floats, Ints
from holdfast.trees.circles.errors.weighted import FAINT, BareRows, Jets, Phases, WeightedSum, moved
from holdfast.trees.circles.leaf_tables import FAR, LeafTable, kinds_of
from holdfast.trees.circles.messages import Messages
from holdfast.trees.circles.outline import outline
from holdfast.trees.circles.rows import TooShort
from holdfast.trees.circles.sampler import Sampler

#: What wraps round is below e^−ALIASES of what is computed, first; circles are made longer, so many times at most,
#: until all but LOST of every law is on its circle, or a longer one does not lose ROUNDED times less: that is rounding.
ALIASES, LOST, TRIES, ROUNDED = 80.0, 1e-11, 3, 16.0
#: Cumulative probabilities that miss a level by less have reached it.
TIE = 1e-12
#: Frequencies that go up together, and places of rows in a characteristic function that is not too much work.
ROUND, MOST_PLACES = 16, 4e9


@dataclass(frozen=True, eq=False)
class Marginals:
    """The laws of the noise of all outputs of a sampler, for the bounds that it has."""

    sampler: Sampler
    _known: dict[float, Ints] = field(default_factory=dict)

    @property
    def means(self) -> Floats:
        """The mean of every output's noise."""
        return self._made[1][0]

    @property
    def variances(self) -> Floats:
        """The variance of every output's noise."""
        return self._made[1][1]

    def quantiles(self, p: float) -> Ints:
        """For every output, the smallest place whose cumulative probability reaches p."""
        if p not in self._known:
            levels, down = (p, 1 - p), self._down
            result = np.zeros((2, down.count), dtype=np.int64)
            for numbers, first, laws in down.laws():
                sums = laws.cumsum(axis=1)
                for k, level in enumerate(levels):
                    result[k, numbers] = first + np.minimum((sums < level - TIE).sum(axis=1), sums.shape[1] - 1)
            self._known.clear()  # two levels are enough to keep: intervals ask for both
            self._known.update({level: result[k][down.number] for k, level in enumerate(levels)})
        return self._known[p]

    def law(self, output: int) -> tuple[int, Floats]:
        """The first place and the probabilities of one output's noise."""
        number = int(self._down.number[output])
        for numbers, first, laws in self._down.laws(number):
            for row in np.flatnonzero(numbers == number).tolist():
                used = np.flatnonzero(laws[row])
                return int(first[row] + used[0]), laws[row, used[0] : used[-1] + 1].copy()
        return 0, np.ones(1)

    def variance_of_sum(self, weights: Floats) -> float:
        """The variance of Σ weights·noise."""
        return float(self._sum(weights).find(Jets()))

    def characteristic(self, weights: Floats, frequencies: Array) -> Floats | None:
        """The mean of e^{iωx} of x = Σ weights·noise for some ω, if it is real; None where it is too much work."""
        whole = self._sum(weights)
        if whole.work * frequencies.size > MOST_PLACES:
            return None
        parts = np.split(frequencies, range(ROUND, frequencies.size, ROUND))
        return np.concatenate([whole.find(Phases(some)) for some in parts]).real

    def _sum(self, weights: Floats) -> WeightedSum:
        return WeightedSum(self._down.rows, weights, self._down.alone)

    @property
    def _down(self) -> Downwards:
        return self._made[0]

    @cached_property
    @np.errstate(all="ignore")  # circles on which nothing is left are no use
    def _made(self) -> tuple[Downwards, Floats]:
        """The laws on circles that hold nearly all of them, or the most, and their means and variances."""
        tries: list[tuple[float, Downwards, Floats]] = []
        for k in range(TRIES):
            try:
                down = Downwards(self.sampler, ALIASES * 1.5**k)
            except TooShort:
                continue
            result = np.zeros((2, down.count))
            for numbers, first, laws in down.laws():
                places = np.arange(laws.shape[1])
                means = laws @ places
                result[0, numbers] = first + means
                result[1, numbers] = (laws * (places - means[:, None]) ** 2).sum(axis=1)
            tries.append((down.lost if np.isfinite(result).all() else np.inf, down, result[:, down.number]))
            if tries[-1][0] < LOST or (len(tries) > 1 and tries[-2][0] < ROUNDED * tries[-1][0] < np.inf):
                break
        return min(tries, key=lambda each: each[0])[1:]


class Downwards:
    """Shares of all nodes from the roots down; kept are those of nodes without leaves.

    Laws have numbers: first inner nodes, then leaves of one kind below one node, then kinds of leaves that are roots;
    the last one is that of no noise.
    """

    def __init__(self, sampler: Sampler, aliases: float) -> None:
        forest, which, weights = sampler.forest, sampler.which, sampler.weights
        # Outputs that nothing measures keep nodes of their own.
        self.shape = shape = outline(forest, which, sampler.low, sampler.high, kept=~forest.is_leaf)
        self.m = Messages(shape, weights, aliases).made()
        self.rows, self.lost = (
            BareRows(self.m),
            float(self.m.beyond(np.arange(shape.size)[~shape.fixed]).max(initial=0.0)),
        )
        self.alone: tuple[LeafTable, Ints] | None = None
        self._number(sampler)
        self.shares = np.empty(self.rows.flat.size)
        rows, leafy = self.rows, self.rows.leafy
        for some in rows.groups(np.flatnonzero(~leafy & (shape.parent < 0))):
            self.shares[rows.places_of(some)] = self._share(some, np.ones(1))[0]
        above = np.unique(shape.parent[~leafy & (shape.parent >= 0)])
        for level in range(shape.levels.size - 2):
            for some in rows.groups(np.intersect1d(above, rows.inner(level))):
                for part, outside in self._divided(some, ~leafy):
                    self.shares[rows.places_of(part)] = self._share(part, outside)[0]

    def _number(self, sampler: Sampler) -> None:
        """Number the laws."""
        shape, weights = self.shape, sampler.weights
        self.count = shape.size
        self.leaf_number = np.zeros(shape.leaf_output.size, dtype=np.int64)
        for some in self.rows.groups(np.flatnonzero(self.rows.leafy)):
            leaves, numbers = self.m.leaves_of(some)
            known = shape.leaf_law[leaves], shape.leaf_low[leaves], shape.leaf_high[leaves]
            kind = kinds_of(weights, float(self.m.tilt[some[0]]), *known, FAR)[1]
            codes, each = np.unique(np.repeat(some, numbers) * (kind.max() + 1) + kind, return_inverse=True)
            self.leaf_number[leaves] = self.count + each
            self.count += codes.size
        self.number = np.full(sampler.forest.n, -1, dtype=np.int64)
        noisy = np.flatnonzero((shape.output >= 0) & ~shape.fixed)
        self.number[shape.output[noisy]] = noisy
        self.number[shape.leaf_output] = self.leaf_number
        if shape.alone.size:
            known = sampler.which[shape.alone], sampler.low[shape.alone], sampler.high[shape.alone]
            kinds, kind = kinds_of(weights, 0.0, *known, FAR)
            self.alone = LeafTable(weights, kinds, 0.0), kind
            self.number[shape.alone] = self.count + kind
            self.count += kinds.law.size
        self.number[self.number < 0] = self.count
        self.count += 1

    def _share(self, some: Ints, outside: Floats) -> tuple[Floats, Floats]:
        """Shares and laws of a group from what comes from outside."""
        share = self.rows.own(some) * outside
        law = share * self.rows.sums(some)
        whole = law.sum(axis=1, keepdims=True)
        share, law = share / whole, law / whole
        ends = (law[:, 0] + law[:, -1]).max() * law.shape[1] / 16
        self._lose(ends, whole[self.shape.parent[some] >= 0])
        share[law <= FAINT * law.max(axis=1, keepdims=True)] = 0.0
        return share, law

    def _lose(self, ends: float, whole: Floats) -> None:
        self.lost = max(self.lost, ends, float(np.abs(whole - 1).max(initial=0.0)))

    def _divided(self, some: Ints, wanted: Array) -> Iterator[tuple[Ints, Floats]]:
        """What comes from outside to the children of a group, by groups of those that are wanted."""
        rows, length = self.rows, int(self.m.length[some[0]])
        spectra, children, first, shift = rows.spectra(some)
        shares = fft.rfft(moved(self.shares[rows.places_of(some)], -shift))
        owner = np.repeat(np.arange(some.size), np.diff(first, append=children.size))
        siblings = _others(spectra, first)
        for part in rows.groups(children[wanted[children]]):
            at = np.searchsorted(children, part)
            outside = fft.irfft(shares[owner[at]] * siblings[at].conj(), length)
            yield part, np.maximum(outside[:, : int(self.m.length[part[0]])], 0.0)

    def laws(self, only: int | None = None) -> Iterator[tuple[Ints, Ints, Floats]]:
        """Numbers, first places and probabilities of laws; all of them, or some among which is one that is wanted."""
        rows, shape, leafy = self.rows, self.shape, self.rows.leafy
        chosen = np.full(shape.size, only is None)
        if only is not None:
            chosen[[only] if only < shape.size else shape.leaf_parent[self.leaf_number == only]] = True
        for some in rows.groups(np.flatnonzero(~leafy & chosen)):
            yield some, self.m.start[some], self.shares[rows.places_of(some)] * rows.sums(some)
        for some in rows.groups(np.flatnonzero(leafy & chosen & (shape.parent < 0))):
            yield from self._leaf_laws(some, np.ones(1))
        chosen &= leafy & (shape.parent >= 0)
        for some in rows.groups(np.unique(shape.parent[chosen])):
            for part, outside in self._divided(some, chosen):
                yield from self._leaf_laws(part, outside)
        if self.alone is not None:
            table = self.alone[0]
            yield self.count - 1 - table.size + np.arange(table.size), np.full(table.size, table.first), table.values

    def _leaf_laws(self, some: Ints, outside: Floats) -> Iterator[tuple[Ints, Ints, Floats]]:
        """Laws of a group above leaves, and of the leaves."""
        m, length = self.m, int(self.m.length[some[0]])
        share, law = self._share(some, outside)
        yield some, m.start[some], law
        table, kind, numbers = self.rows.leaf_table(some)
        owner, logs = np.repeat(np.arange(some.size), numbers), table.logs(length)
        counts = np.bincount(owner * table.size + kind, minlength=some.size * table.size).reshape(some.size, -1)
        pairs, at = np.unique(self.leaf_number[m.leaves_of(some)[0]], return_index=True)
        owner, kind = owner[at], kind[at]
        siblings = np.exp((counts.astype(np.float64) @ logs)[owner] - logs[kind])
        shares = fft.rfft(moved(share, numbers * table.first - m.start[some]))
        outside = np.maximum(fft.irfft(shares[owner] * siblings.conj(), length), 0.0)
        # A leaf's law is looked at on one circle around its mean, and nowhere beyond its table.
        size = table.values.shape[1]
        first = np.rint(table.mean[kind]).astype(np.int64) - table.first - length // 2
        first = np.clip(first, 0, max(size - length, 0))
        places = first[:, None] + np.arange(min(length, size))
        laws = table.values[kind[:, None], places] * np.take_along_axis(outside, places % length, axis=1)
        whole = laws.sum(axis=1, keepdims=True)
        self._lose(0.0, whole)
        yield pairs, table.first + first, laws / whole


def _others(spectra: Array, first: Ints) -> Array:
    """For every child the product over its siblings."""
    numbers = np.diff(first, append=len(spectra))
    result = np.ones_like(spectra)
    before, after = np.ones_like(spectra[first]), np.ones_like(spectra[first])
    for j in range(int(numbers.max())):
        more = np.flatnonzero(numbers > j)
        ahead, back = first[more] + j, first[more] + numbers[more] - 1 - j
        result[ahead] *= before[more]
        result[back] *= after[more]
        before[more] *= spectra[ahead]
        after[more] *= spectra[back]
    return result
