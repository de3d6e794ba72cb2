"""Weighted sums of whole noise on a hierarchy: what is proved of each, from shape, weights and laws alone.

Proofs: docs/theory/error-bars.md, section 3, and docs/theory/circles.md, section 8. A sum is one of leaves: the
weight of an output is that of every leaf below it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from holdfast.arrays import Floats, Ints
from holdfast.noise.independent import Independent
from holdfast.noise.inversion import same_size
from holdfast.trees.shape.forest import Forest

#: Standard errors, in weights, from which on equal weights hide that Gaussian noise is whole.
MANY_STEPS = 32


@dataclass(frozen=True, eq=False)
class TreeSums:
    """Sums over the outputs of a forest whose noise has these laws, given that all adds up."""

    forest: Forest
    law: Independent

    def at_leaves(self, weights: Floats) -> Floats:
        """The weights of the leaves whose sum is that of `weights` on all outputs; 0 elsewhere."""
        result = np.array(weights, dtype=np.float64)
        for depth, some in enumerate(self.forest.by_depth):
            if depth:
                result[some] += result[self.forest.parents[some]]
            result[some[self.forest.exact[some]]] = 0  # a total without noise
        result[~self.forest.is_leaf] = 0
        return result

    def tilted(self, weights: Floats, slope: float) -> float:
        """At least log E e^{slope·x} of x = Σ weights·noise; infinite where nothing is known.

        Each output below which weights agree has at most what its own law has, and at most what its children have.
        """
        weight = self.at_leaves(weights)
        agree, most = self.forest.is_leaf.copy(), np.where(self.forest.is_leaf, np.inf, 0.0)
        for depth in range(len(self.forest.by_depth) - 1, -1, -1):
            some = self.forest.by_depth[depth]
            own = np.where(weight[some] == 0, 0.0, self._alone(some, slope * weight[some]))
            own[self.forest.exact[some]] = 0
            most[some] = np.where(agree[some], np.minimum(most[some], own), most[some])
            if depth == 0:
                return float(most[some].sum())
            above = self.forest.parents[some]
            first = np.flatnonzero(np.diff(above, prepend=-1))
            low, high = (ends.reduceat(weight[some], first) for ends in (np.minimum, np.maximum))
            parents = above[first]
            agree[parents] = (low == high) & np.logical_and.reduceat(agree[some], first)
            weight[parents], most[parents] = low, np.add.reduceat(most[some], first)
        return 0.0

    def _alone(self, outputs: Ints, slopes: Floats) -> Floats:
        """At least log E e^{slope·u} of the noise u of some outputs by themselves."""
        if self.law.kind == "gaussian":
            return slopes**2 * self._parameters[outputs] / 2
        rest = 1 - self._parameters[outputs] * (np.cosh(np.minimum(np.abs(slopes), 700.0)) - 1)
        return -np.log(rest, where=rest > 0, out=np.full(rest.size, -np.inf))

    @cached_property
    def _parameters(self) -> Floats:
        """σ² of Gaussian noise, the variance of Laplace noise; infinite where nothing is measured."""
        law = self.law
        if law.kind == "laplace":
            return law.variances
        squares = np.array([np.inf if square is None else float(square) for square in law.scale_values])
        return np.full(law.n, squares[0]) if law.which is None else squares[law.which]


def many_steps(leaves: Floats, variance_of: Callable[[Floats], float], *, signed: bool) -> bool:
    """Whether a sum of whole Gaussian noise has the characteristic function of normal noise wherever that counts.

    All leaves that count have one weight, MANY_STEPS times smaller than the error; `signed`: or its negative. Other
    sums can be nearly always on few numbers.
    """
    size = same_size(leaves)
    if size is None or (not signed and leaves.min() < 0 < leaves.max()):
        return False
    return min(variance_of(leaves), variance_of(np.abs(leaves))) >= (MANY_STEPS * size) ** 2
