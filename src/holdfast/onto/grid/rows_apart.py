"""What ways that move one table at a time share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from holdfast.noise import Independent
from holdfast.noise.spread import STUDY, Spread, simulated_spread
from holdfast.onto.problem import MOST_SIMULATED, Problem, Ties
from holdfast.randomness import seeded

#: A study moves so many tables one by one: errors are not simulated for larger ones.
MOST_OUTPUTS = 2_000


def stacked(
    problem: Problem, noisy: npt.NDArray[Any], ties: Ties, one: Callable[[npt.NDArray[Any], int], npt.NDArray[Any]]
) -> npt.NDArray[Any]:
    """Move each row of (size, n) by itself, with its coin."""
    result = np.empty(noisy.shape, dtype=np.int64 if problem.integer else np.float64)
    for k, row in enumerate(noisy):
        result[k] = one(row, 0 if ties is None else int(ties[k]))
    return result


def simulated(
    problem: Problem,
    law: Independent,
    image: Callable[[Problem, npt.NDArray[Any], npt.NDArray[Any], Ties], npt.NDArray[Any]],
) -> Spread | None:
    """Errors from simulated draws where the map does not depend on the data and the study is short; otherwise None."""
    if problem.system.has_inequalities or problem.n > MOST_OUTPUTS or STUDY * problem.n > MOST_SIMULATED:
        return None
    zero = np.zeros(problem.space.rows.shape[0], dtype=np.int64)
    stream = seeded(0)
    return simulated_spread(lambda size: image(problem, law.measured_draw(size, stream), zero, stream.words(size)))
