"""Exact draws of integer noise on a hierarchy: totals of roots, divided from level to level, and one test of each.

Law: independent noise given that parents equal the sum of their children, exact outputs have none and all bounds hold;
exactly (THEORY H8, H13; docs/theory/circles.md).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np

from holdfast.arrays import Bools, Ints, Owner
from holdfast.noise import Independent, IntegerGaussian, IntegerLaplace
from holdfast.randomness import Keys, Stream
from holdfast.trees.circles.drawing import Drawing
from holdfast.trees.circles.messages import ALIASES, Messages
from holdfast.trees.circles.outline import MOST_LEAVES, Outline, outline
from holdfast.trees.circles.weights import GaussianWeight, LaplaceWeight, Weight
from holdfast.trees.shape.forest import Forest

#: Totals and leaves of tables that are drawn at once.
CHUNK = 1 << 23
#: Messages should be larger than what they stand for by no more than this in the mean, all of them together.
CLEAR = 0.05
#: Places of messages, and of one of them, up to which a hierarchy is drawn: some 4 GiB; a message has so many places
#: for each standard deviation of the widest noise.
MOST_PLACES, MOST_PLACES_OF_ONE, PLACES = 1e9, 2.0**26, 40.0


def reaches(forest: Forest, law: Independent) -> bool:
    """Whether tables can be drawn in time and memory, whatever the data: it depends on public sizes alone."""
    used = [each for each in map(law.laws.__getitem__, np.unique(law.complete)) if each is not None]
    places = PLACES * max((float(each.variance) for each in used), default=0.0) ** 0.5
    inner = np.unique(forest.parents).size + forest.n // MOST_LEAVES
    return places <= MOST_PLACES_OF_ONE and inner * places <= MOST_PLACES


def weight_of(law: object) -> Weight | None:
    """The weight of a law of noise; None where nothing is measured."""
    if isinstance(law, IntegerLaplace):
        return LaplaceWeight(1 / law.scale)
    if isinstance(law, IntegerGaussian):
        return GaussianWeight(law.sigma2)
    return None


@dataclass(frozen=True, eq=False)
class Sampler(Owner):
    """The conditional law of integer noise on a forest; bounds are on the noise of each output."""

    forest: Forest
    weights: Sequence[Weight]
    which: Ints
    low: Ints
    high: Ints
    aliases: float = ALIASES
    at_roots: Ints | None = None  # noise of every root that is not exact, where it is given; others are not read
    clear: ClassVar[float] = CLEAR

    @classmethod
    def of(cls, forest: Forest, law: Independent, low: Ints, high: Ints, **more: Any) -> Self:
        """The law of independent noise; outputs whose law is None are not measured."""
        weights = [weight_of(each) for each in law.laws]
        number = np.cumsum([each is not None for each in weights]) - 1
        number[[each is None for each in weights]] = -1
        return cls(forest, [each for each in weights if each is not None], number[law.complete], low, high, **more)

    @cached_property
    def shape(self) -> Outline:
        """The forest as the messages see it."""
        if self.at_roots is None:
            return outline(self.forest, self.which, self.low, self.high)
        # What a root weighs makes no difference to what is below it, but an output without weight would be left out.
        roots = (self.forest.parents < 0) & (self.which < 0)
        return outline(self.forest, np.where(roots, 0, self.which), self.low, self.high)

    @cached_property
    def messages(self) -> Messages:
        """The messages; on longer circles where little of a law would be clear."""
        aliases = self.aliases
        while True:
            result = self.made(aliases)
            if result.slack.sum() < self.clear or aliases > 2.5 * self.aliases:
                return result
            aliases *= 1.5

    def made(self, aliases: float) -> Messages:
        """The messages on circles of which so little wraps round."""
        return Messages(self.shape, self.weights, aliases, wound=True).made()

    def draw(self, size: int, stream: Stream) -> Ints:
        """Draw the noise of all outputs, (size, n)."""
        keys = Keys.drawn_from(stream)
        noise = np.zeros((size, self.forest.n), dtype=np.int64)
        rows = max(1, CHUNK // max(1, self.forest.n))
        for start in range(0, size, rows):
            some = noise[start : start + rows]
            left = np.ones((self.shape.trees, len(some)), dtype=bool)
            attempt = 0
            while left.any():
                chosen = np.flatnonzero(left.any(axis=0))
                leaves, accepted = Drawing(self, chosen.size, keys.at("rows", start, attempt)).run(self.at_roots)
                self._keep(some, chosen, leaves, accepted & left[:, chosen])
                left[:, chosen] &= ~accepted
                attempt += 1
        summed(self.forest, noise)
        return noise

    def _keep(self, noise: Ints, rows: Ints, leaves: Ints, accepted: Bools) -> None:
        """Take over the leaves of trees that are accepted now."""
        outputs, tree = self.shape.output_tree
        if accepted.all():
            noise[rows[:, None] if rows.size < len(noise) else slice(None), outputs] = leaves.T
            return
        for row, mine, values in zip(rows.tolist(), accepted.T, leaves.T, strict=True):
            now = mine[tree]
            noise[row, outputs[now]] = values[now]


def summed(forest: Forest, noise: Ints) -> None:
    """Make inner outputs the sums of their children, rows are tables."""
    order, depth, parents = forest.order, forest.depth, forest.parents
    noise[:, ~forest.is_leaf] = 0
    cuts = np.searchsorted(depth[order], np.arange(int(depth.max(initial=0)) + 2))
    for d in range(cuts.size - 2, 0, -1):
        some = order[cuts[d] : cuts[d + 1]]
        above = parents[some]
        first = np.flatnonzero(np.diff(above, prepend=-1))
        noise[:, above[first]] = np.add.reduceat(noise[:, some], first, axis=1)
