"""Least squares onto the consistency of margins in every area of a hierarchy: one hierarchy of scalars per set of axes.

Weighted by the noise this is the best linear estimate, in O(nodes × cells) (THEORY §10, H7;
docs/theory/areas-and-margins.md). The equalities hold up to the rounding of sums of doubles.
"""

from __future__ import annotations

import numpy as np
from scipy import special

from holdfast.arrays import Array, Floats, kept
from holdfast.noise import Independent
from holdfast.noise.spread import STUDY, Spread, simulated_quantiles
from holdfast.onto.problem import MOST_SIMULATED, Problem, Ties, simulated_errors
from holdfast.trees.normal.residuals import Residuals


def accepts(problem: Problem) -> bool:
    """Whether real values are moved by least squares, alike in each group, onto such a query's consistency alone."""
    if problem.integer or problem.norm != "l2" or problem.depends_on_data:
        return False
    return _residuals(problem) is not None


@kept
def _residuals(problem: Problem) -> Residuals | None:
    return Residuals.of_system(problem.system, problem.spreads)


def image(problem: Problem, noisy: Array, right: Array, ties: Ties = None) -> Floats:
    """Move noisy values, (size, n), to the nearest that agree and add up."""
    del right, ties  # all sides are 0, and the nearest point is the only one
    residuals = _residuals(problem)
    assert residuals is not None
    return np.stack([residuals.estimated(row.astype(np.float64)) for row in noisy])


def spread(problem: Problem, law: Independent) -> Spread | None:
    """Errors in closed form where the weights are the noise's own; otherwise simulated, where that is not too much."""
    residuals = _residuals(problem)
    assert residuals is not None
    small = STUDY * problem.n <= MOST_SIMULATED
    if not np.allclose(problem.spreads, law.variances, rtol=1e-12, atol=0.0):
        return None
    errors: Floats = np.sqrt(residuals.variances())
    if law.kind == "gaussian" and not law.integer:
        return Spread(errors, residuals.variance_of, lambda p: errors * special.ndtri(p))
    if not small:
        return None
    quantiles = simulated_quantiles(lambda: simulated_errors(problem, law, image)(STUDY))
    return Spread(errors, residuals.variance_of, quantiles, measured=True)
