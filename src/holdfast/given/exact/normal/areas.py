"""Continuous Gaussian noise on margins of a cube in every area of a hierarchy, given that all agree and add up (H7).

One hierarchy of scalars per set of axes, O(nodes × cells) in all (THEORY §10, docs/theory/areas-and-margins.md).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import special

from holdfast.arrays import Floats, kept
from holdfast.given.problem import Problem, Truth
from holdfast.noise.error_model import ErrorModel
from holdfast.noise.spread import Spread
from holdfast.randomness import Stream
from holdfast.trees.normal.residuals import Residuals


def accepts(problem: Problem) -> bool:
    """Whether the law is continuous Gaussian, alike on each group, and all that must hold is a query's consistency."""
    if problem.law.kind != "gaussian" or problem.law.integer or problem.depends_on_data:
        return False
    return _residuals(problem) is not None


@kept
def _residuals(problem: Problem) -> Residuals | None:
    return Residuals.of_system(problem.system, problem.law.variances)


def draw(problem: Problem, truth: Truth, size: int, stream: Stream) -> npt.NDArray[Any]:
    """Draw noise for all outputs, (size, n): independent Gaussian noise given that all agree and add up.

    The equalities hold up to the rounding of sums of doubles.
    """
    del truth  # the law does not depend on it
    residuals = _residuals(problem)
    assert residuals is not None
    result = np.empty((size, problem.law.n))
    for row in range(size):
        result[row] = residuals.noise(stream.normals(residuals.normals_needed))
    return result


def spread(problem: Problem) -> Spread:
    """Normal errors; the variance of a weighted sum is the squared length of its coordinates, each in its own law."""
    residuals = _residuals(problem)
    assert residuals is not None
    errors: Floats = np.sqrt(residuals.variances())
    model = ErrorModel("normal", problem.law, lambda: problem.space.rows, problem.law.variances)
    return Spread(errors, residuals.variance_of, lambda p: errors * special.ndtri(p), model=model)
