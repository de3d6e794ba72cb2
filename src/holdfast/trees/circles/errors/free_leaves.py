"""Errors of outputs that nothing measures, which are filled in from those of the others (shape/free_leaves.py)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy import fft

from holdfast.arrays import Array, Floats, Ints
from holdfast.trees.circles.errors.marginals import TIE, Marginals
from holdfast.trees.shape.free_leaves import FreeLeaves

#: How many standard errors of a sum its law reaches on either side: log-concave, it has at most e^(1−40) beyond them.
REACH = 40


@dataclass(frozen=True, eq=False)
class FilledMarginals:
    """Errors of all outputs from the laws of those kept, without bounds: the parts of a free one are independent."""

    leaves: FreeLeaves
    found: Marginals

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
