"""Continuous Gaussian noise on a hierarchy given consistency, exact and fixed nodes: two passes (THEORY §2, §4)."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import special

from holdfast.arrays import kept
from holdfast.given.problem import Problem, Truth
from holdfast.noise.error_model import ErrorModel
from holdfast.noise.spread import Spread
from holdfast.randomness import Stream
from holdfast.trees.normal.normal_passes import NormalPasses

#: Normal numbers that are drawn at once.
BATCH = 1 << 22


def accepts(problem: Problem) -> bool:
    """Whether the law is continuous Gaussian and all that must hold is a hierarchy with exact or fixed nodes."""
    if problem.law.kind != "gaussian" or problem.law.integer or problem.depends_on_data:
        return False
    return _passes(problem) is not None


@kept
def _passes(problem: Problem) -> NormalPasses | None:
    """The up-pass, made once; None where the system is no hierarchy, or has no edge, or the noise has no law."""
    forest = problem.forest
    if forest is None or (forest.parents < 0).all():
        return None
    return NormalPasses.of(forest.parents, problem.law.variances, forest.exact)


def draw(problem: Problem, truth: Truth, size: int, stream: Stream) -> npt.NDArray[Any]:
    """Draw noise for the whole hierarchy at once, (size, n).

    Law: independent Gaussian noise given that parents equal the sum of their children and exact and fixed outputs have
    no noise. Every other parent is the sum of its children in floating point, exact outputs are exactly 0.
    """
    del truth  # the law does not depend on it
    passes = _passes(problem)
    assert passes is not None
    n = problem.law.n
    result = np.empty((size, n))
    rows = max(1, BATCH // n)
    for begin in range(0, size, rows):
        count = min(rows, size - begin)
        normals = stream.normals(count * n).reshape(count, n)
        passes.noise(normals)
        result[begin : begin + count, passes.order] = normals
    return result


def spread(problem: Problem) -> Spread:
    """Normal errors; the variance of each output by one more pass down, that of a weighted sum by one pass up."""
    passes = _passes(problem)
    assert passes is not None
    errors = np.empty(problem.law.n)
    errors[passes.order] = np.sqrt(passes.variances())
    model = ErrorModel("normal", problem.law, lambda: problem.space.rows, problem.law.variances)
    return Spread(
        errors,
        lambda weights: passes.variance_of(weights[passes.order]),
        lambda p: errors * special.ndtri(p),
        model=model,
    )
