"""Integer noise on a hierarchy given consistency, exact and fixed nodes, and bounds: messages (THEORY §4, H3)."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from holdfast.conditioning.problem import Problem, Truth
from holdfast.noise.spread import STUDY, Spread
from holdfast.randomness import Stream, seeded
from holdfast.trees import Forest, Revision
from holdfast.trees.marginals import marginals

#: Inner outputs up to which messages are made, each in milliseconds; leaves with bounds have a message each.
MOST_INNER = 300
MOST_BOUNDED = 600


def accepts(problem: Problem) -> bool:
    """Whether the system is a hierarchy of moderate size, the noise is integer and every free leaf is measured."""
    forest = _forest(problem)
    if forest is None or not problem.law.integer or too_large(problem):
        return False
    return not np.isinf(problem.law.variances[forest.is_leaf & ~forest.exact]).any()


def too_large(problem: Problem) -> str:
    """Say by how much a hierarchy exceeds what can be drawn exactly so far; empty if it does not, or is none."""
    forest = _forest(problem)
    if forest is None or not problem.law.integer:
        return ""
    inner, leaves = int((~forest.is_leaf).sum()), int((forest.is_leaf & ~forest.exact).sum())
    if inner > MOST_INNER:
        return f"the hierarchy has {inner} inner nodes, and exact draws reach {MOST_INNER} so far"
    if problem.depends_on_data and leaves > MOST_BOUNDED:
        return f"the hierarchy has {leaves} leaves with bounds, and exact draws reach {MOST_BOUNDED} so far"
    return ""


def _forest(problem: Problem) -> Forest | None:
    kept: dict[str, Any] = problem.__dict__
    if "_forest" not in kept:
        kept["_forest"] = Forest.of(problem.system)
    found: Forest | None = kept["_forest"]
    return found


def _revision(problem: Problem, truth: Truth) -> Revision:
    """The conditional law; where it does not depend on the truth it is kept, with its messages and tables."""
    forest = _forest(problem)
    assert forest is not None
    kept: dict[str, Any] = problem.__dict__
    if problem.depends_on_data or "_revision" not in kept:
        whole = None if truth is None or not problem.depends_on_data else np.asarray(truth, dtype=np.int64)
        made = Revision(forest, problem.law, *forest.noise_bounds(problem.system, whole, problem.unit))
        if problem.depends_on_data:
            return made
        kept["_revision"] = made
    revision: Revision = kept["_revision"]
    return revision


def draw(problem: Problem, truth: Truth, size: int, stream: Stream) -> npt.NDArray[Any]:
    """Draw noise for the whole hierarchy at once, (size, n).

    Law: independent integer noise given that parents equal the sum of their children, exact and fixed outputs have no
    noise, and every bound holds; exact.
    """
    return _revision(problem, truth).draw(size, stream)


def spread(problem: Problem) -> Spread | None:
    """Errors from the messages where the law does not depend on the data; weighted sums by simulated draws."""
    if problem.depends_on_data:
        return None
    found = marginals(_revision(problem, None))
    variances = np.empty(problem.law.n)
    for marginal in found:
        variances[marginal.outputs] = marginal.variance

    def quantiles(p: float) -> npt.NDArray[Any]:
        result = np.empty(problem.law.n, dtype=np.int64)
        for marginal in found:
            result[marginal.outputs] = marginal.quantile(p)
        return result

    def variance_of(weights: npt.NDArray[np.float64]) -> float:
        return float((draw(problem, None, STUDY, seeded(0)) @ weights).var())

    return Spread(np.sqrt(variances), variance_of, quantiles)
