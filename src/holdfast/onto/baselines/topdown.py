"""TopDown: level by level, each level fitted to its own noisy values and to the final values above it.

The algorithm of the 2020 US Census on one hierarchy: non-negative least squares against the parent's final value, then
controlled rounding. A heuristic for the nearest table, kept as a baseline: it is used only when it is asked for.
"""

from __future__ import annotations

from typing import Any

import numpy.typing as npt

from holdfast.noise import Independent
from holdfast.noise.spread import Spread
from holdfast.onto.baselines.level_by_level import fits, moved, simulated
from holdfast.onto.problem import Problem, Ties

#: It finds a point near the nearest one.
NEAREST = False


def accepts(problem: Problem) -> bool:
    """Whether the system is a hierarchy and the norm L2.

    Real values with exact nodes and no bounds are left to the projection: the statement made there is about that
    projection, and this map is another one.
    """
    system = problem.system
    another = system.invariants.count > 0 and not system.has_inequalities and not problem.integer
    return not another and fits(problem, combined=False)


def image(problem: Problem, noisy: npt.NDArray[Any], right: npt.NDArray[Any], ties: Ties = None) -> npt.NDArray[Any]:
    """Move the noisy values, (size, n); an output that is not measured is estimated by the sum of its children."""
    return moved(problem, noisy, right, ties, combined=False)


def spread(problem: Problem, law: Independent) -> Spread | None:
    """Simulated errors; not known before data is seen where there are bounds."""
    return simulated(problem, law, combined=False)
