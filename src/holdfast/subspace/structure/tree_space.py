"""Noise of variance 1 in every direction of the consistent tables of a hierarchy with exact nodes, in O(n).

Independent noise given consistency and zeros has covariance Π_N (SDP Thm 22), so the passes are those of normal
messages: upwards V = S/(1 + S) with S the children's sum (1 at a leaf, 0 at an exact node), downwards a child takes
the share V_c/S of its parent's noise. The same shares give ‖Π_N w‖², the variance of the sum along a path, for all
leaves at once (docs/theory/subspace.md).
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np

from holdfast.arrays import Bools, Floats, Ints
from holdfast.constraints import System
from holdfast.domains.intervals import output_parents
from holdfast.evidence import Evidence
from holdfast.noise.spread import Spread
from holdfast.queries import Moves, Neighbours, Query
from holdfast.queries.exact_weights import Weights
from holdfast.randomness import Stream
from holdfast.subspace.law import SLACK, normal_spread, shown
from holdfast.trees import Forest

#: Normal numbers that are drawn at once.
BATCH = 1 << 22


@dataclass(frozen=True, eq=False)
class TreeSpace:
    """Outputs in breadth-first order, level by level: siblings stand together, parents before children."""

    order: Ints
    above: Ints  # the parent's place in the order, −1 at roots
    levels: tuple[slice, ...]
    exact: Bools

    @classmethod
    def of(cls, query: Query, system: System) -> TreeSpace | None:
        """Recognise the counts of a hierarchy that must add up, with exact nodes; None for anything else."""
        forest = Forest.of(system)
        if forest is None or query.tree is None or system.has_inequalities:
            return None
        if not np.array_equal(forest.parents, output_parents(query.tree.parents, query.n // query.tree.n)):
            return None
        order, depth = forest.order, forest.depth
        place = np.empty(forest.n, np.int64)
        place[order] = np.arange(forest.n)
        parents = forest.parents[order]
        ends = np.searchsorted(depth[order], np.arange(int(depth.max()) + 2))
        levels = tuple(slice(a, b) for a, b in pairwise(ends.tolist()))
        return cls(order, np.where(parents < 0, -1, place[parents]), levels, forest.exact[order])

    @property
    def n(self) -> int:
        return int(self.order.size)

    @cached_property
    def leaf(self) -> Bools:
        result = np.ones(self.n, dtype=bool)
        result[self.above[self.above >= 0]] = False
        return result

    @cached_property
    def messages(self) -> tuple[Floats, Floats]:
        """V of every output and S, the sum of its children's V."""
        own, below = np.where(self.exact, 0.0, 1.0), np.zeros(self.n)
        for here in reversed(self.levels):
            inner = ~self.leaf[here]
            sums = below[here][inner]
            own[here][inner] = np.where(self.exact[here][inner], 0.0, sums / (1 + sums))
            if here.start:
                up = self.above[here]
                below += np.bincount(up, weights=own[here], minlength=self.n)
        return own, below

    @cached_property
    def shares(self) -> tuple[Floats, Floats]:
        """What part of its parent's noise an output takes, and the variance of what it has beside that."""
        own, below = self.messages
        share, rest = np.zeros(self.n), own.copy()
        child = self.above >= 0
        sums = below[self.above[child]]
        with np.errstate(invalid="ignore", divide="ignore"):
            part = np.where(sums > 0, own[child] / sums, 0.0)
        share[child] = part
        rest[child] = np.maximum(own[child] * (1 - part), 0.0)
        return share, rest

    @property
    def dimension(self) -> int:
        """The dimension of N: the trace of Π_N."""
        return round(float(self.variances.sum()))

    @cached_property
    def path_moments(self) -> tuple[Floats, Floats]:
        """The variance of every output's noise, and of the sum of the noise along the path to it."""
        share, rest = self.shares
        own, joint, path = rest.copy(), rest.copy(), rest.copy()
        for here in self.levels[1:]:
            up, part = self.above[here], share[here]
            own[here] = part**2 * own[up] + rest[here]
            joint[here] = part * joint[up] + own[here]
            path[here] = path[up] + 2 * part * joint[up] + own[here]
        return own, path

    @property
    def variances(self) -> Floats:
        return self.path_moments[0]

    @cached_property
    def classes(self) -> Ints:
        """The lowest exact output at or above each output, in places; −1 where there is none."""
        result = np.where(self.exact, np.arange(self.n), -1)
        for here in self.levels[1:]:
            result[here] = np.where(self.exact[here], result[here], result[self.above[here]])
        return result

    @property
    def separated(self) -> bool:
        """Whether nothing above an exact output is open: then what lies below different ones is independent."""
        above = self.above[self.exact & (self.above >= 0)]
        return not bool((self.variances[above] > 0).any())

    def turned(self, normals: Floats) -> Floats:
        """Turn standard normal numbers (size, n), in the order of the passes, into noise; parents are exact sums."""
        own, below = self.messages
        noise = normals * np.sqrt(own)
        for lower in self.levels[1:]:
            up = self.above[lower]
            starts = np.flatnonzero(np.diff(up, prepend=-1))
            parents = up[starts]
            left = noise[:, parents] - np.add.reduceat(noise[:, lower], starts, axis=1)
            wide = np.repeat(left, np.diff(np.append(starts, up.size)), axis=1)
            with np.errstate(invalid="ignore", divide="ignore"):
                noise[:, lower] += np.where(below[up] > 0, own[lower] / below[up], 0.0) * wide
        for lower in reversed(self.levels[1:]):
            up = self.above[lower]
            starts = np.flatnonzero(np.diff(up, prepend=-1))
            noise[:, up[starts]] = np.add.reduceat(noise[:, lower], starts, axis=1)
            noise[:, up[starts]] *= ~self.exact[up[starts]]
        return noise

    def squared_length(self, weights: Floats) -> float:
        """‖Π_N w‖² for a weight on every output: the variance of the weighted sum."""
        own, below = self.messages
        weight, total = weights[self.order].astype(np.float64), 0.0
        for lower in reversed(self.levels[1:]):
            up = self.above[lower]
            mean = np.bincount(up, weights=own[lower] * weight[lower], minlength=self.n)
            with np.errstate(invalid="ignore", divide="ignore"):
                mean = np.where(below > 0, mean / below, 0.0)
            total += float((own[lower] * (weight[lower] - mean[up]) ** 2).sum())
            parents = np.unique(up)
            weight[parents] += mean[parents]
        roots = self.levels[0]
        return total + float((own[roots] * weight[roots] ** 2).sum())


@dataclass(frozen=True, eq=False)
class TreeGaussian:
    """Law: N(0, Π_N) on a hierarchy (SDP Cor 15)."""

    space: TreeSpace
    query: Query
    neighbours: Neighbours
    name: str = "extended Gaussian"
    kind: str = "gaussian"

    @cached_property
    def _loss(self) -> tuple[Fraction, bool]:
        value, exact = _largest(self.space, self.query, self.neighbours)
        return value * self.neighbours.records**2, exact

    @property
    def largest(self) -> Fraction:
        return self._loss[0]

    @property
    def exact(self) -> bool:
        return self._loss[1]

    @property
    def evidence(self) -> Evidence:
        """The error (n − n_c)Δ² (SDP Cor 15)."""
        return shown(self.space.dimension * float(self.largest))

    def draw(self, size: int, stream: Stream) -> Floats:
        """Draw whole hierarchies, some at a time."""
        result = np.empty((size, self.space.n))
        rows = max(1, BATCH // self.space.n)
        for begin in range(0, size, rows):
            count = min(rows, size - begin)
            normals = stream.normals(count * self.space.n).reshape(count, self.space.n)
            result[begin : begin + count, self.space.order] = self.space.turned(normals)
        return result

    def spread(self) -> Spread:
        variances = np.empty(self.space.n)
        variances[self.space.order] = self.space.variances
        return normal_spread(variances, self.space.squared_length)

    def sharing(self, moves: Moves) -> Fraction:
        """‖d‖²: moves lie in N."""
        return moves.largest([1], None, 2)


def _largest(space: TreeSpace, query: Query, neighbours: Neighbours) -> tuple[Fraction, bool]:
    """The greatest ‖Π_N d‖² for one record, and whether it is attained."""
    path = space.path_moments[1][space.leaf]
    if neighbours.adds:
        return Fraction(float(path.max())) * (1 + SLACK), True
    label = space.classes[space.leaf]
    by_output = np.empty(space.n, np.int64)
    by_output[space.order] = space.classes
    leaves = np.zeros(space.n, dtype=bool)
    leaves[space.order] = space.leaf
    one: Any = Weights.of([1], None, query.n)
    # Outputs of cells stand in the order of the cells; leaves that are exact themselves are in no pair that stays in N.
    inside = query.pair(one, 2, by_output[leaves] + 1).value
    tops = np.full(space.n + 1, -1.0)
    np.maximum.at(tops, label + 1, path)
    tops[0] = -1.0 if not (label < 0).any() else tops[0]
    ordered = np.sort(tops[tops >= 0])[::-1]
    if ordered.size < 2:
        return inside, True
    if space.separated:
        across = Fraction(float(ordered[0] + ordered[1])) * (1 + SLACK)
        return max(inside, across), True
    several = min(Fraction(4 * float(ordered[0])) * (1 + SLACK), query.pair(one, 2, None).value)  # Π_N shortens
    return max(inside, several), False
