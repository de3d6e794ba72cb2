"""Integer noise on a hierarchy given consistency, exact and fixed nodes, and bounds: messages (THEORY §4, H3)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from holdfast.arrays import Array, Floats, Ints, kept
from holdfast.given.problem import Problem, Truth
from holdfast.noise.error_model import ErrorModel, tilted
from holdfast.noise.independent import Independent
from holdfast.noise.inversion import Characteristic
from holdfast.noise.spread import Spread
from holdfast.randomness import Stream
from holdfast.trees.circles.errors.marginals import Marginals
from holdfast.trees.circles.sampler import Sampler, reaches
from holdfast.trees.shape.forest import Forest


def accepts(problem: Problem) -> bool:
    """Whether the system is a hierarchy, the noise is integer, and what is not measured follows from what is below it.

    What some data would not allow is not accepted for any, so that no refusal tells about the data.
    """
    if problem.forest is None or not problem.law.integer or too_wide(problem):
        return False
    return unmeasured(problem) is None


def too_wide(problem: Problem) -> bool:
    return problem.forest is not None and not reaches(problem.forest, problem.law)


def unmeasured(problem: Problem) -> int | None:
    """An output of a hierarchy that is measured neither itself nor by all that is below it, if any."""
    forest = problem.forest
    if forest is None or None not in problem.law.laws:
        return None
    stopped = np.isfinite(problem.law.variances) | forest.exact
    free = forest.is_leaf & ~stopped
    for some in forest.by_depth[:0:-1]:
        free[forest.parents[some[free[some]]]] = True
        free &= ~stopped
    return int(np.flatnonzero(free)[0]) if free.any() else None


def _sampler(problem: Problem, truth: Truth) -> Sampler:
    """The conditional law, with its messages where it is public."""
    return _made(problem, truth) if problem.depends_on_data else _public_sampler(problem)


@kept
def _public_sampler(problem: Problem) -> Sampler:
    return _made(problem, None)


def _made(problem: Problem, truth: Truth) -> Sampler:
    assert problem.forest is not None
    whole = None if truth is None or not problem.depends_on_data else np.asarray(truth, dtype=np.int64)
    low, high = problem.forest.noise_bounds(problem.system, whole, problem.unit)
    return Sampler.of(problem.forest, problem.law, low, high)


def draw(problem: Problem, truth: Truth, size: int, stream: Stream) -> Array:
    """Draw noise for the whole hierarchy at once, (size, n).

    Law: independent integer noise given that parents equal the sum of their children, exact and fixed outputs have no
    noise, and every bound holds; exact (docs/theory/circles.md).
    """
    return _sampler(problem, truth).draw(size, stream)


def spread(problem: Problem) -> Spread | None:
    """Errors from the messages where the law does not depend on the data: of single outputs and of weighted sums."""
    if problem.depends_on_data:
        return None
    assert problem.forest is not None
    found, sums = Marginals(_sampler(problem, None)), TreeSums(problem.forest, problem.law)
    model = ErrorModel("given", problem.law, lambda: problem.space.rows, problem.law.variances)
    characteristic = Characteristic(found.characteristic, sums.at_leaves, sums.tilted)
    errors = np.sqrt(found.variances)
    return Spread(errors, found.variance_of_sum, found.quantiles, characteristic=characteristic, model=model)


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
        result = np.full(outputs.size, np.inf)
        for k, one in enumerate(self.law.laws):
            some = slice(None) if self.law.which is None else self.law.which[outputs] == k
            if one is not None:
                result[some] = tilted(one, slopes[some])
        return result
