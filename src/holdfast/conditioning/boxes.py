"""Bounds and fixed values on single outputs: each output is drawn by itself, and again while it is out of bounds.

Law: the outputs are independent, so this is the conditional law itself; exact for integers.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from holdfast.arguments import Refused
from holdfast.conditioning.problem import Problem, Truth
from holdfast.noise.spread import Spread
from holdfast.randomness import Stream

#: Rounds of redrawing before giving up. A round keeps at least the share of noise that the bounds admit; with
#: bounds 1/1000 of a scale apart 60,000 rounds leave an output open with probability below e^-20.
MOST_ROUNDS = 60_000


def accepts(problem: Problem) -> bool:
    """Whether only bounds and fixed values on single outputs are asked for, and every free output is measured."""
    system = problem.system
    if system.branches or not system.coordinatewise:
        return False
    if None not in problem.law.laws:
        return True
    unmeasured = np.isinf(problem.law.variances)
    return bool(problem.space.pinned_coordinates()[unmeasured].all())


def draw(problem: Problem, truth: Truth, size: int, stream: Stream) -> npt.NDArray[Any]:
    """Draw noise that keeps truth + noise within every bound, (size, n)."""
    n = problem.law.n
    pinned = problem.space.pinned_coordinates()
    low, high = _bounds(problem)
    noise = np.zeros((size, n), dtype=np.int64 if problem.law.integer else np.float64)
    open_outputs = np.tile(~pinned, size)
    pending = np.flatnonzero(open_outputs)
    if truth is not None:
        low, high = low - truth, high - truth
    flat = noise.reshape(-1)
    for _ in range(MOST_ROUNDS):
        if pending.size == 0:
            return noise
        output = pending % n
        drawn = problem.law.at(output).draw(1, stream)[0]
        if truth is None:
            flat[pending] = drawn
            return noise
        kept = (drawn >= low[output]) & (drawn <= high[output])
        flat[pending[kept]] = drawn[kept]
        pending = pending[~kept]
    raise Refused("the bounds are too narrow for this noise: drawing within them did not end; use onto() or less noise")


def _bounds(problem: Problem) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    if problem.law.integer:
        return problem.system.integer_bounds(problem.unit)
    low, high = problem.system.real_bounds()
    return low / float(problem.unit), high / float(problem.unit)


def spread(problem: Problem) -> Spread | None:
    """Not known before data is seen, unless there are no bounds."""
    if problem.depends_on_data:
        return None
    variances = np.where(problem.space.pinned_coordinates(), 0.0, problem.law.variances)
    pinned = problem.space.pinned_coordinates()
    return Spread(
        np.sqrt(variances),
        lambda weights: float((weights**2 * variances).sum()),
        lambda p: np.where(pinned, 0, problem.law.quantiles(p)),
    )
