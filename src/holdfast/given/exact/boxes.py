"""Bounds and fixed values on single outputs: each output is drawn by itself, and again while it is out of bounds.

Law: the outputs are independent, so this is the conditional law itself; exact for integers.
"""

from __future__ import annotations

import numpy as np

from holdfast.arguments import Refused
from holdfast.arrays import Array, Bools
from holdfast.given.problem import Problem, Truth
from holdfast.noise.error_model import ErrorModel, of_independent
from holdfast.noise.spread import Spread
from holdfast.randomness import Stream

#: Narrowest room between two bounds on an output, in standard deviations of its noise: a try succeeds there with a
#: probability of some 1/5,000, wherever the truth lies between them. Bounds are public, and so is this refusal; what is
#: begun is drawn until it ends, since giving up would tell about the data.
NARROWEST = 1e-3


def accepts(problem: Problem) -> bool:
    """Whether only bounds and fixed values on single outputs are asked for, and every free output is measured."""
    system = problem.system
    if system.branches or not system.coordinatewise:
        return False
    if None not in problem.law.laws:
        return True
    unmeasured = np.isinf(problem.law.variances)
    return bool(problem.space.pinned_coordinates()[unmeasured].all())


def draw(problem: Problem, truth: Truth, size: int, stream: Stream) -> Array:
    n = problem.law.n
    pinned = problem.space.pinned_coordinates()
    low, high = _bounds(problem)
    if truth is not None:
        _refuse_narrow(problem, ~pinned)
    noise = np.zeros((size, n), dtype=np.int64 if problem.law.integer else np.float64)
    open_outputs = np.tile(~pinned, size)
    pending = np.flatnonzero(open_outputs)
    if truth is not None:
        low, high = low - truth, high - truth
    flat = noise.reshape(-1)
    while pending.size:
        output = pending % n
        drawn = problem.law.at(output).draw(1, stream)[0]
        if truth is None:
            flat[pending] = drawn
            return noise
        kept = (drawn >= low[output]) & (drawn <= high[output])
        flat[pending[kept]] = drawn[kept]
        pending = pending[~kept]
    return noise


def _refuse_narrow(problem: Problem, open_outputs: Bools) -> None:
    """Refuse bounds between which noise hardly ever falls; whole numbers are a step wide."""
    low, high = _bounds(problem)
    room = high.astype(np.float64) - low.astype(np.float64) + (1.0 if problem.law.integer else 0.0)
    if (room[open_outputs] < NARROWEST * np.sqrt(problem.law.variances[open_outputs])).any():
        raise Refused("the bounds are too narrow for this noise to be drawn within them: use onto() or less noise")


def _bounds(problem: Problem) -> tuple[Array, Array]:
    if problem.law.integer:
        return problem.system.integer_bounds(problem.unit)
    low, high = problem.system.real_bounds()
    return low / float(problem.unit), high / float(problem.unit)


def spread(problem: Problem) -> Spread | None:
    if problem.depends_on_data:
        return None
    variances = np.where(problem.space.pinned_coordinates(), 0.0, problem.law.variances)
    pinned = problem.space.pinned_coordinates()
    return Spread(
        np.sqrt(variances),
        lambda weights: float((weights**2 * variances).sum()),
        lambda p: np.where(pinned, 0, problem.law.quantiles(p)),
        characteristic=of_independent(problem.law, lambda weights: np.where(pinned, 0.0, weights)),
        model=ErrorModel("moved", problem.law, lambda: problem.space.rows, problem.law.variances),
    )
