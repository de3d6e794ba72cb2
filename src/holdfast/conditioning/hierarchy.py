"""Integer noise on a hierarchy given consistency, exact and fixed nodes, and bounds: messages (THEORY §4, H3)."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from holdfast.conditioning.problem import Problem, Truth
from holdfast.noise.spread import Spread
from holdfast.randomness import Stream
from holdfast.trees import Forest, Sampler
from holdfast.trees.marginals import Marginals
from holdfast.trees.weighted_sums import variance_of_sum


def accepts(problem: Problem) -> bool:
    """Whether the system is a hierarchy, the noise is integer and every free leaf is measured."""
    if not problem.law.integer:
        return False
    forest = _forest(problem)
    return forest is not None and not np.isinf(problem.law.variances[forest.is_leaf & ~forest.exact]).any()


def _forest(problem: Problem) -> Forest | None:
    kept: dict[str, Any] = problem.__dict__
    if "_forest" not in kept:
        kept["_forest"] = Forest.of(problem.system)
    found: Forest | None = kept["_forest"]
    return found


def _sampler(problem: Problem, truth: Truth) -> Sampler:
    """The conditional law; where it does not depend on the truth it is kept, with its messages."""
    forest = _forest(problem)
    assert forest is not None
    kept: dict[str, Any] = problem.__dict__
    if problem.depends_on_data or "_sampler" not in kept:
        whole = None if truth is None or not problem.depends_on_data else np.asarray(truth, dtype=np.int64)
        made = Sampler(forest, problem.law, *forest.noise_bounds(problem.system, whole, problem.unit))
        if problem.depends_on_data:
            return made
        kept["_sampler"] = made
    sampler: Sampler = kept["_sampler"]
    return sampler


def draw(problem: Problem, truth: Truth, size: int, stream: Stream) -> npt.NDArray[Any]:
    """Draw noise for the whole hierarchy at once, (size, n).

    Law: independent integer noise given that parents equal the sum of their children, exact and fixed outputs have no
    noise, and every bound holds; exact (docs/theory/exact-trees.md).
    """
    return _sampler(problem, truth).draw(size, stream)


def spread(problem: Problem) -> Spread | None:
    """Errors from the messages where the law does not depend on the data; most weighted sums by simulated draws."""
    if problem.depends_on_data:
        return None
    found = Marginals(_sampler(problem, None))
    return Spread(np.sqrt(found.variances), partial(variance_of_sum, found), found.quantiles)
