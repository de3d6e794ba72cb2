"""The law of each output's noise on a small hierarchy: the division of totals, seen from the roots down.

Used for standard errors and quantiles, so doubles are enough; draws do not use this file.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from holdfast.arrays import Array, Floats, Ints
from holdfast.trees.plain.laws import NONE, Law, divided, law_of_root, mean
from holdfast.trees.plain.message import TooNarrow
from holdfast.trees.plain.sampler import PlainSampler
from holdfast.trees.plain.sums import Moments, Phases, in_rounds, of_sum
from holdfast.trees.plain.table import Trees

#: Windows hold all but about e^−NEED of every law.
NEED = 40.0
#: Cumulative probabilities that miss a level by less have reached it.
TIE = 1e-12


@dataclass(frozen=True, eq=False)
class PlainMarginals:
    """The laws of the noise of all outputs of a sampler, for the bounds that it has."""

    sampler: PlainSampler

    @property
    def laws(self) -> list[Law]:
        """The law of every output; alike outputs share theirs."""
        return self._found[1]

    @cached_property
    def _found(self) -> tuple[Trees, list[Law]]:
        """Messages whose windows hold nearly all of every law, and these laws."""
        sampler, wider = replace(self.sampler, need=NEED, blurs=False), 0
        while True:
            trees = sampler._trees(wider)
            try:
                return trees, _laws(trees, self.sampler.forest.n)
            except TooNarrow:
                wider += 1

    @cached_property
    def variances(self) -> Floats:
        """The variance of every output's noise."""
        return np.array([float(law @ (np.arange(lo, lo + law.size) - mean((lo, law))) ** 2) for lo, law in self.laws])

    def variance_of_sum(self, weights: Floats) -> float:
        """The variance of Σ weights·noise."""
        return float(of_sum(self._found[0], weights, Moments(), np.zeros(())))

    def characteristic(self, weights: Floats, frequencies: Array) -> Floats:
        """The mean of e^{iωx} of x = Σ weights·noise for some ω, if it is real."""
        trees, parts = self._found[0], in_rounds(frequencies)
        return np.concatenate([of_sum(trees, weights, Phases(some), np.ones(some.size)) for some in parts]).real

    def law(self, output: int) -> Law:
        """The first place and the probabilities of one output's noise."""
        return self.laws[output]

    @cached_property
    def kind_of(self) -> Ints:
        """A number for every output, the same for outputs that share a law."""
        return np.unique([id(law) for law in self.laws], return_inverse=True)[1].astype(np.int64)

    def quantiles(self, p: float) -> Ints:
        """For every output, the smallest place whose cumulative probability reaches p."""
        return np.array([lo + min(int(np.searchsorted(law.cumsum(), p - TIE)), law.size - 1) for lo, law in self.laws])


def _laws(trees: Trees, outputs: int) -> list[Law]:
    """The law of every output, from the roots down."""
    totals: list[Law] = [NONE] * len(trees.pieces)
    known: dict[tuple[int, int], tuple[Law, Law]] = {}
    for i in trees.roots:
        message = trees.pieces[i].message
        known.setdefault((0, id(message)), (law_of_root(message), NONE))
        totals[i] = known[0, id(message)][0]
    result = [NONE] * outputs
    for i in range(len(trees.pieces) - 1, -1, -1):
        piece = trees.pieces[i]
        if piece.output >= 0:
            result[piece.output] = totals[i]
        if piece.parts is not None:
            key = id(totals[i]), id(piece.message)
            if key not in known:
                known[key] = divided(totals[i], piece.message)
            totals[piece.parts[0]], totals[piece.parts[1]] = known[key]
    return result
