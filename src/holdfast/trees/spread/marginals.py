"""The law of each output's noise on a hierarchy: what comes from below times what comes from above.

Used for standard errors and quantiles, so doubles are enough: all terms are positive, and windows are widened until
they leave out less than 1e-10 of any variance. One pass over the contexts finds variances and quantiles; laws are not
kept, since a nation has too many. Draws do not use this file.
"""

from __future__ import annotations

import heapq
import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from holdfast.arguments import Refused
from holdfast.arrays import Array, Floats, Ints
from holdfast.trees.messages.leaf_kinds import TOO_WIDE
from holdfast.trees.messages.messages import Messages
from holdfast.trees.messages.sampler import Sampler
from holdfast.trees.plain.message import TooNarrow
from holdfast.trees.plain.sums import Moments, Phases, Way, in_rounds
from holdfast.trees.spread.contexts import Contexts, find_contexts
from holdfast.trees.spread.outside import Found, Ways, visit, walk
from holdfast.trees.spread.weighted_sums import WeightedSum, simulated_variance

#: Totals are looked for where all but about e^−need of the law lies; the next one is tried where that was too little.
NEEDS = (40.0, 54.0, 72.0)
#: Most of a variance that may lie beyond the windows.
LEFT_OUT = 1e-10
#: So many frequencies are less work than a variance.
A_VARIANCE = 4
#: Contexts that one worker takes at a time, at least.
SHARE = 256


@dataclass(frozen=True, eq=False)
class Marginals:
    """The laws of the noise of all outputs of a sampler, for the bounds that it has."""

    sampler: Sampler
    _known: dict[float, Ints] = field(default_factory=dict)

    @cached_property
    def variances(self) -> Floats:
        """The variance of every output's noise."""
        found = self._pass(np.zeros(0))
        return found.variance[self._outputs]

    def quantiles(self, p: float) -> Ints:
        """For every output, the smallest place whose cumulative probability reaches p."""
        if p not in self._known:
            found = self._pass(np.array([p, 1 - p]))
            self._known.clear()  # two levels are enough to keep: intervals ask for both
            for level, q in enumerate((p, 1 - p)):
                self._known[q] = found.quantile[self._outputs, level]
        return self._known[p]

    def variance_of_sum(self, weights: Floats) -> float:
        """The variance of Σ weights·noise, measured on simulated draws where it is too much work."""
        found = self._of_sum(weights, [(Moments(), np.zeros(()))])
        return simulated_variance(self.sampler, weights) if found is None else float(found[0])

    def characteristic(self, weights: Floats, frequencies: Array) -> Floats | None:
        """The mean of e^{iωx} of x = Σ weights·noise for some ω, if it is real; None where it is too much work."""

        def way(some: Array) -> tuple[Way, Array]:
            return Phases(some), np.ones(some.size)

        found = self._of_sum(
            weights, [way(some) for some in in_rounds(frequencies)], max(1, frequencies.size // A_VARIANCE)
        )
        return None if found is None else np.concatenate(found).real

    def _of_sum(self, weights: Floats, ways: list[tuple[Way, Array]], work: int = 1) -> list[Array] | None:
        """What ways find of Σ weights·noise, from what they find of nothing; None where it is too much work."""
        _ = self.variances  # then windows hold nearly all of every law
        for need in NEEDS:
            try:
                bending = WeightedSum(self._widened(need), weights, work)
                return None if bending.too_much else [bending.found(*way) for way in ways]
            except TooNarrow:
                continue
        return None

    def law(self, output: int) -> tuple[int, Floats]:
        """The first place and the probabilities of one output's noise."""
        number = int(self._outputs[output])
        if number == self._laws - 1:
            return 0, np.ones(1)
        found = self._pass(np.zeros(0), number)
        return int(found.window[0]), found.kept[: found.window[1]].copy()

    @property
    def kind_of(self) -> Ints:
        """A number for every output, the same for outputs that share a law."""
        return self._outputs

    # --- the pass ------------------------------------------------------------------------------------------------

    @cached_property
    def _contexts(self) -> tuple[Contexts, Ints, int]:
        return find_contexts(self.sampler.messages.pieces, self.sampler.forest.n)

    @property
    def _outputs(self) -> Ints:
        """The law of every output."""
        return self._contexts[1]

    @property
    def _laws(self) -> int:
        return self._contexts[2]

    def _pass(self, levels: Floats, wanted: int = -1) -> Found:
        """Find all laws' variances and quantiles, with the first windows that are wide enough."""
        for need in NEEDS:
            found, lost = _Pass(self._widened(need), self._contexts[0], self._laws, levels, wanted).run()
            if lost <= LEFT_OUT:
                return found
        raise Refused(TOO_WIDE)

    @cached_property
    def _widest(self) -> list[Messages]:
        """The messages with the widest windows so far."""
        return []

    def _widened(self, need: float) -> Messages:
        if not self._widest or self._widest[0].need < need:
            first = self.sampler.messages
            self._widest[:] = [replace(first, need=need, need_inside=need, cut=first.pieces).ready()]
        return self._widest[0]


@dataclass(eq=False)
class _Pass:
    """One pass from the roots down, over all contexts or along the way to one law."""

    up: Messages
    contexts: Contexts
    laws: int
    levels: Floats
    wanted: int

    def run(self) -> tuple[Found, float]:
        """What was found, and how much of a variance may have been left out at worst."""
        longest = self.widest + self.up.blocks[2] if self.contexts.kind.size else 0
        found = Found(
            self.levels, np.zeros(self.laws), np.zeros((self.laws, self.levels.size), dtype=np.int64), self.wanted,
            np.empty(longest if self.wanted >= 0 else 0), np.zeros(2, dtype=np.int64),
        )  # fmt: skip
        lost = 0.0
        size, on_the_way = self.contexts.size, self._on_the_way()
        # The largest part is opened until all are small enough for one worker.
        share = max(SHARE, int(size[self.contexts.above < 0].sum()) // 32) if self.wanted < 0 else 0
        heap = [(-int(size[c]), c, self._top(c)) for c in np.flatnonzero(self.contexts.above < 0).tolist()]
        heap = [item for item in heap if on_the_way is None or item[1] in on_the_way]
        heapq.heapify(heap)
        while heap and -heap[0][0] > share:
            _, c, outside = heapq.heappop(heap)
            parts = {
                int(p): np.zeros(self.window(p)) for p in (self.contexts.left[c], self.contexts.right[c]) if p >= 0
            }
            first, last = next(iter(parts.values()), np.zeros(0)), list(parts.values() or [np.zeros(0)])[-1]
            lost = max(lost, visit(c, outside, *self._tools, self.up.inside(), found, first, last))
            for part, seen in parts.items():
                if on_the_way is None or part in on_the_way:
                    heapq.heappush(heap, (-int(size[part]), part, seen))

        def rest(item: tuple[int, int, Floats]) -> float:
            room = np.empty((int(size[item[1]]).bit_length() + 2, self.widest))
            return float(walk(item[1], item[2], *self._tools, self.up.inside(), found, room))

        if len(heap) == 1:
            return found, max(lost, rest(heap[0]))
        with ThreadPoolExecutor(self.up.workers or os.cpu_count()) as pool:
            return found, max([lost, *pool.map(rest, sorted(heap, key=lambda item: item[:2]))])

    def window(self, c: int) -> int:
        """The number of places of a context's window."""
        k = self.contexts.kind[c]
        return int(self.up.shelf.hi[k] - self.up.shelf.lo[k] + 1)

    @cached_property
    def widest(self) -> int:
        """The number of places of the widest window."""
        messages = self.up.shelf
        return int((messages.hi - messages.lo).max(initial=0)) + 1

    def _top(self, c: int) -> Floats:
        """The outside of a context that has none above it: free, or a total of 0."""
        messages, k = self.up.shelf, self.contexts.kind[c]
        places = np.arange(messages.lo[k], messages.hi[k] + 1)
        if self.contexts.root[c] == 2:
            return (places == 0).astype(np.float64)
        exponent = -messages.tilt[k] * places
        return np.asarray(np.exp(exponent - exponent.max()))

    def _on_the_way(self) -> set[int] | None:
        """The contexts at and above that of the wanted law; None if all are wanted."""
        if self.wanted < 0:
            return None
        c = self.wanted
        if c >= self.contexts.kind.size:
            firsts = np.flatnonzero(self.contexts.leaf_law >= 0)
            order = firsts[np.argsort(self.contexts.leaf_law[firsts])]
            c = int(order[np.searchsorted(self.contexts.leaf_law[order], c, side="right") - 1])
        way = set()
        while c >= 0:
            way.add(c)
            c = int(self.contexts.above[c])
        return way

    @cached_property
    def _tools(self) -> tuple[object, ...]:
        """What compiled code needs besides a context and its outside."""
        p, g = self.up.pieces, self.up.guess
        ways = Ways(
            p.law, p.kind_left, p.kind_right, p.first[p.example], p.members[p.example], p.leaf_kind, g.low, g.high,
            g.below, g.rest, g.hold, p.lowest, p.highest,
        )  # fmt: skip
        return self.contexts, ways, self.up.shelf
