"""Refusing noise that has no law: on a hierarchy, outputs whose noise nothing measured, bounded or exact limits."""

from __future__ import annotations

import numpy as np

from holdfast.arguments import Refused
from holdfast.given.problem import Problem
from holdfast.trees.shape.proper import endless


def refuse_improper(problem: Problem) -> None:
    """Refuse a hierarchy on which some noise can grow without end, unnoticed by all that is measured."""
    if None not in problem.law.laws:
        return
    forest = problem.forest
    if forest is None:
        return
    low, high = (np.isfinite(side) for side in problem.system.real_bounds())
    found = sorted(endless(forest.parents, np.isfinite(problem.law.variances) | forest.exact, low, high))
    if len(found) == 2:
        raise Refused(
            f"this noise has no law: how the outputs at positions {found[0]} and {found[1]} share their sum is "
            "limited by no measured output; measure one of them"
        )
    if found:
        raise Refused(
            f"this noise has no law: the output at position {found[0]} is limited by no measured output; "
            "measure it, or what is below it"
        )
