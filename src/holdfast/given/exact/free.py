"""Nothing must hold: the noise itself."""

from __future__ import annotations

from holdfast.arrays import Array
from holdfast.given.problem import Problem, Truth
from holdfast.noise.spread import Spread, independent_spread
from holdfast.randomness import Stream


def accepts(problem: Problem) -> bool:
    """Whether no row and no bound is asked for, and every output is measured."""
    system = problem.system
    if system.branches or system.has_inequalities or None in problem.law.laws:
        return False
    return problem.space.rank == 0


def draw(problem: Problem, truth: Truth, size: int, stream: Stream) -> Array:
    del truth  # the law does not depend on it
    return problem.law.draw(size, stream)


def spread(problem: Problem) -> Spread:
    return independent_spread(problem.law)
