"""What TopDown and BlueDown share: the hierarchy, its exact values and bounds, and errors before data is seen."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from holdfast.arguments import LARGEST
from holdfast.imaging.problem import Problem
from holdfast.noise import Independent
from holdfast.noise.spread import STUDY, Spread, simulated_spread
from holdfast.randomness import seeded
from holdfast.trees import Forest
from holdfast.trees.levelwise import Levelwise

#: Errors are simulated up to this many numbers; beyond it a study does not fit in memory.
MOST_SIMULATED = 1 << 28


def fits(problem: Problem, *, combined: bool) -> bool:
    """Whether the system is a hierarchy, the norm is L2 and the measured outputs tell enough.

    Every leaf must be measured or exact, or something above it; without bounds nothing may be left to share out.
    """
    made = _levelwise(problem, combined) if problem.norm == "l2" else None
    return made is not None and made.roots_known and (problem.system.has_inequalities or made.determined)


def moved(problem: Problem, noisy: npt.NDArray[Any], right: npt.NDArray[Any], *, combined: bool) -> npt.NDArray[Any]:
    """Move the noisy values, (size, n), level by level; `right` holds the right-hand sides of `problem.space.rows`."""
    made = _levelwise(problem, combined)
    assert made is not None
    low, high = _bounds(problem)
    rows, outputs = _single_rows(problem)
    factors = problem.space.rows.data[problem.space.rows.indptr[rows]]
    exact = [Fraction(b) / int(a) for b, a in zip(np.asarray(right)[rows].tolist(), factors.tolist(), strict=True)]
    low[outputs] = high[outputs] = np.array(exact, dtype=low.dtype)
    return made.move(noisy, low, high)


def simulated(problem: Problem, law: Independent, *, combined: bool) -> Spread | None:
    """Errors from simulated draws where the map does not depend on the data and they fit in memory."""
    if problem.system.has_inequalities or STUDY * problem.n > MOST_SIMULATED:
        return None
    zero = np.zeros(problem.space.rows.shape[0], dtype=np.int64)
    return simulated_spread(lambda size: moved(problem, law.measured_draw(size, seeded(0)), zero, combined=combined))


def _bounds(problem: Problem) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """Bounds in steps of the unit, whole or real, ∓2**62 where there is none; the caller may write on them."""
    if problem.integer:
        low, high = problem.system.integer_bounds(problem.unit)
        return low.copy(), high.copy()
    least, most = (bound / float(problem.unit) for bound in problem.system.real_bounds())
    return np.maximum(least, -float(LARGEST)), np.minimum(most, float(LARGEST))


def _single_rows(problem: Problem) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """The independent rows that make one output exact or fixed, and those outputs; the rows left out follow."""
    rows = problem.space.rows
    single = np.flatnonzero(np.diff(rows.indptr) == 1)
    return single, rows.indices[rows.indptr[single]].astype(np.int64)


def _levelwise(problem: Problem, combined: bool) -> Levelwise | None:
    """The prepared passes, made once per problem; None where the system is not a hierarchy."""
    kept: dict[bool, Levelwise | None] = problem.__dict__.setdefault("_levelwise", {})
    if combined not in kept:
        forest = Forest.of(problem.system)
        if forest is None:
            kept[combined] = None
        else:
            exact = np.zeros(problem.n, dtype=bool)
            exact[_single_rows(problem)[1]] = True
            kept[combined] = Levelwise.of(forest, exact, problem.spreads, combined=combined)
    return kept[combined]
