"""BlueDown: generalised least squares over the whole hierarchy, then level by level with its covariance.

Given a parent's final value, only what was measured at and below each child tells the children apart; so the step is
TopDown's, with the estimates and variances of generalised least squares at and below each child in place of its own
noisy value (docs/theory/levelwise.md). Without bounds and over the reals it is generalised least squares itself. A
baseline: it is used only when it is asked for.
"""

from __future__ import annotations

from typing import Any

import numpy.typing as npt

from holdfast.noise import Independent
from holdfast.noise.spread import Spread
from holdfast.onto.baselines.level_by_level import fits, moved, simulated
from holdfast.onto.problem import Problem, Ties
from holdfast.onto.ways import projection

#: It finds a point near the nearest one.
NEAREST = False


def accepts(problem: Problem) -> bool:
    """Whether the system is a hierarchy and the norm L2."""
    return fits(problem, combined=True)


def image(problem: Problem, noisy: npt.NDArray[Any], right: npt.NDArray[Any], ties: Ties = None) -> npt.NDArray[Any]:
    """Move the noisy values, (size, n)."""
    return moved(problem, noisy, right, ties, combined=True)


def spread(problem: Problem, law: Independent) -> Spread | None:
    """Errors of generalised least squares over the reals, simulated for whole numbers; None where there are bounds."""
    if projection.accepts(problem):
        return projection.spread(problem, law)
    return simulated(problem, law, combined=True)
