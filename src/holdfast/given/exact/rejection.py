"""Draw, look, draw again: where what must hold has positive probability.

Law: the conditional law, exact for integer noise. A problem whose equalities alone make success too rare is not
accepted at all. Laplace noise is given up by a coin: a fixed number of tries would tell how rare success is, since the
chance of a refusal, (1 − p)^N, differs between neighbours by any factor. Gaussian noise, for which no such rule is
known, is drawn until it holds.

Guarantee (docs/theory/rejection.md): for Laplace noise, and tries whose law given the equalities does not depend on
the data, the statement about the conditional law holds for the release *or refusal*, with the same ε.
"""

from __future__ import annotations

import math

import numpy as np

from holdfast.arguments import Refused
from holdfast.arrays import Array, Bools
from holdfast.given.problem import Problem, Truth
from holdfast.noise.spread import Spread, simulated_spread
from holdfast.randomness import Stream, seeded

#: A problem is accepted if its equalities alone would let through at least this share of draws.
LEAST_SHARE = 2e-5
#: Most inequalities on continuous noise: a table on all of their borders at once still leaves room, 1/9! for an order.
MOST_HALF_SPACES = 8
#: A try that fails is the last one with probability 2^−20: one draw in twenty is given up at LEAST_SHARE.
GIVING_UP_BITS = 20
#: Numbers drawn at once.
BATCH = 1 << 20

TOO_RARE = "what must hold is too rare under this noise: drawing did not end; use onto() or more noise"


def accepts(problem: Problem) -> bool:
    """Whether success has positive probability, and equalities do not make it too rare."""
    system = problem.system
    if None in problem.law.laws:
        return False
    if system.branches and system.invariants.count:
        return False  # whether a draw is on some side does not tell whether it keeps exact figures
    if system.branches:
        return all(_possible(Problem(problem.law, branch, problem.unit)) for branch in system.branches)
    return _possible(problem) and (problem.law.integer or _half_spaces(problem) <= MOST_HALF_SPACES)


def _possible(problem: Problem) -> bool:
    if problem.space.rank == 0:
        return True
    return problem.law.integer and equality_share(problem) >= LEAST_SHARE


def _half_spaces(problem: Problem) -> int:
    low, high = problem.system.real_bounds()
    return int(np.isfinite(low).sum() + np.isfinite(high).sum()) + problem.system.inequalities.count


def equality_share(problem: Problem) -> float:
    """About the probability that integer noise satisfies the equalities: one cell of a normal law on A·Zⁿ."""
    rows = problem.space.rows
    if rows.shape[0] > 60:
        return 0.0
    # The normal law counts noise of at least one unit's variance; narrower noise is counted by its mass at zero.
    variances = np.maximum(problem.law.variances, 1 / (2 * math.pi))
    covariance = (rows * variances) @ rows.T
    sign, log_volume = np.linalg.slogdet(2 * math.pi * np.asarray(covariance.todense(), dtype=np.float64))
    return math.exp(-0.5 * float(log_volume)) if sign > 0 else 0.0


def draw(problem: Problem, truth: Truth, size: int, stream: Stream) -> Array:
    n = problem.law.n
    kept: list[Array] = []
    found, batch = 0, 16
    while found < size:
        noise = problem.law.draw(batch, stream)
        held = _holds(problem, noise, truth)
        # A release is one draw; of many, for a study, only the first decides whether there are any.
        asked = np.cumsum(held) == 0 if problem.law.kind == "laplace" and not found else np.zeros(batch, dtype=bool)
        if asked.any() and (last_tries(batch, GIVING_UP_BITS, stream) & asked).any():
            raise Refused(TOO_RARE)
        kept.append(noise[held])
        found += int(held.sum())
        batch = min(2 * batch, max(16, BATCH // n))
    return np.concatenate(kept)[:size]


def last_tries(count: int, bits: int, stream: Stream) -> Bools:
    """Which of so many tries are the last ones if they fail: each with probability 2^−bits, exactly."""
    return np.asarray(stream.words(count) >> np.uint64(64 - bits) == 0)


def _holds(problem: Problem, noise: Array, truth: Truth) -> Bools:
    if problem.system.branches:
        return np.asarray(problem.system.holds(noise + truth, problem.unit))
    kept = problem.space.contains(noise.T) if problem.space.rank else np.ones(len(noise), dtype=np.bool_)
    if problem.system.has_inequalities:
        kept[kept] = problem.system.holds(noise[kept] + truth, problem.unit)
    return np.asarray(kept)


def spread(problem: Problem) -> Spread | None:
    if problem.depends_on_data:
        return None
    return simulated_spread(lambda size: draw(problem, None, size, seeded(0)))
