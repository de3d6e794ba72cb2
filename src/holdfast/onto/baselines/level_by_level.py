"""What TopDown and BlueDown share: the hierarchy, its exact values and bounds, and errors before data is seen."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from holdfast.noise import Independent
from holdfast.noise.spread import STUDY, Spread, simulated_spread
from holdfast.onto.problem import MOST_SIMULATED, Problem, Ties
from holdfast.randomness import seeded
from holdfast.trees.nearest.levelwise import Levelwise


def fits(problem: Problem, *, combined: bool) -> bool:
    """Whether the system is a hierarchy, the norm is L2 and the measured outputs tell enough.

    Every leaf must be measured or exact, or something above it; without bounds nothing may be left to share out.
    """
    made = _levelwise(problem, combined) if problem.norm == "l2" else None
    return made is not None and made.roots_known and (problem.system.has_inequalities or made.determined)


def moved(
    problem: Problem, noisy: npt.NDArray[Any], right: npt.NDArray[Any], ties: Ties, *, combined: bool
) -> npt.NDArray[Any]:
    """Move the noisy values, (size, n), level by level; `right` holds the right-hand sides of `problem.space.rows`."""
    made = _levelwise(problem, combined)
    assert made is not None
    return made.move(noisy, *problem.bounds(right), ties)


def simulated(problem: Problem, law: Independent, *, combined: bool) -> Spread | None:
    """Errors from simulated draws where the map does not depend on the data and they fit in memory."""
    if problem.system.has_inequalities or STUDY * problem.n > MOST_SIMULATED:
        return None
    zero = np.zeros(problem.space.rows.shape[0], dtype=np.int64)
    stream = seeded(0)
    return simulated_spread(
        lambda size: moved(problem, law.measured_draw(size, stream), zero, stream.words(size), combined=combined)
    )


def _levelwise(problem: Problem, combined: bool) -> Levelwise | None:
    """The prepared passes, made once per problem; None where the system is not a hierarchy."""
    kept: dict[bool, Levelwise | None] = problem.__dict__.setdefault("_levelwise", {})
    if combined not in kept:
        forest = problem.forest
        kept[combined] = None
        if forest is not None:
            kept[combined] = Levelwise.of(forest.parents, problem.exact, problem.spreads, combined=combined)
    return kept[combined]
