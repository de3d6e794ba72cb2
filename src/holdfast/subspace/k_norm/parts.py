"""k-norm noise that is drawn in coordinates of the space that 𝒟_N spans, in one or several independent parts.

Where the points split into groups whose spans are independent, ‖u‖_K is the sum of the groups' gauges (add-remove), so
each group has k-norm noise of its own.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Protocol

import numpy as np

from holdfast.arrays import Floats
from holdfast.noise.spread import STUDY, Spread, simulated_quantiles
from holdfast.queries import Moves, Neighbours
from holdfast.randomness import Stream, seeded
from holdfast.subspace.law import SLACK, Evidence, times_one_record


class Part(Protocol):
    """Noise in coordinates of its own, at scale 1."""

    @property
    def name(self) -> str:
        """What the noise is called."""

    @property
    def moments(self) -> Floats:
        """The second moments."""

    @property
    def largest(self) -> float:
        """The greatest loss of one difference."""

    @property
    def distance(self) -> float:
        """How far draws may be from the law, in total variation; 0 if they are exact."""

    @property
    def note(self) -> str:
        """What was found; empty if there is nothing to say."""

    def draw(self, size: int, stream: Stream) -> Floats:
        """Draw the noise, (size, width)."""

    def study(self, size: int, stream: Stream) -> Floats:
        """Draws for measured errors: they need not be independent of each other."""


@dataclass(frozen=True, eq=False)
class KNormParts:
    """Law: u = Σ maps[k]·parts[k], density exp(−Σ‖u_k‖)."""

    parts: tuple[Part, ...]
    maps: tuple[Floats, ...]
    neighbours: Neighbours
    name: str = "k-norm"
    exact: bool = False
    kind: str = "laplace"

    @cached_property
    def largest(self) -> Fraction:
        """The loss of as many records as may change: one record is a difference in one part."""
        return max(Fraction(part.largest) for part in self.parts) * self.neighbours.records * (1 + SLACK)

    @cached_property
    def _moments(self) -> tuple[Floats, ...]:
        return tuple(part.moments for part in self.parts)

    @cached_property
    def _variances(self) -> Floats:
        found = [
            np.einsum("ij,jk,ik->i", m, c, m, optimize=True) for m, c in zip(self.maps, self._moments, strict=True)
        ]
        return np.asarray(np.sum(found, axis=0))

    @cached_property
    def evidence(self) -> Evidence:
        """The total squared error, what was found, and how near the draws come to the law."""
        notes = tuple(dict.fromkeys(part.note for part in self.parts if part.note))
        distance = sum(part.distance for part in self.parts)
        return Evidence(float(self._variances.sum()) * float(self.largest) ** 2, notes=notes, distance=distance)

    def draw(self, size: int, stream: Stream) -> Floats:
        """Draw every part and add up."""
        return self._sum([part.draw(size, stream) for part in self.parts])

    def _sum(self, noise: list[Floats]) -> Floats:
        return np.asarray(sum(each @ onto.T for each, onto in zip(noise, self.maps, strict=True)))

    def spread(self) -> Spread:
        """Errors with the covariance of the law; unbiased. Quantiles are simulated."""

        def variance_of(weights: Floats) -> float:
            turned = [weights @ onto for onto in self.maps]
            return float(sum(row @ c @ row for row, c in zip(turned, self._moments, strict=True)))

        stream = seeded(0)
        quantiles = simulated_quantiles(lambda: self._sum([part.study(STUDY, stream) for part in self.parts]))
        return Spread(np.sqrt(np.maximum(self._variances, 0.0)), variance_of, quantiles, measured=True)

    def sharing(self, moves: Moves) -> Fraction:
        """By the triangle inequality."""
        return times_one_record(self.largest, 1, self.neighbours.records, self.neighbours.adds, moves)
