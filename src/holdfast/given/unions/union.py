"""A union of sides that exclude each other: choose a side by its weight, then draw from that side.

Given the union, the law is the mixture of the laws given each side, with weights that depend on the truth (TV Thm 12,
part 1). The weights are computed in balls, and random bits are compared with them until they decide: exact for integer
noise. Proofs: docs/theory/unions.md.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
import numpy.typing as npt
from flint import arb

from holdfast.arguments import Refused
from holdfast.arrays import kept
from holdfast.constraints import Constraint, Part, System
from holdfast.constraints.possible.feasibility import conflict, whole_point
from holdfast.given.problem import Problem, Truth
from holdfast.given.unions.sides import Side
from holdfast.noise.draws.comparison import Comparison
from holdfast.noise.draws.finite import Weighed
from holdfast.noise.spread import Spread
from holdfast.randomness import Stream


def accepts(problem: Problem) -> bool:
    """Whether the noise is Laplace and the weight of every side is known."""
    return sides(problem) is not None


def draw(problem: Problem, truth: Truth, size: int, stream: Stream) -> npt.NDArray[Any]:
    """Draw noise that leads from the truth into the union, (size, n)."""
    found = sides(problem)
    assert found is not None
    assert truth is not None
    which = Comparison.of(Weights(found, truth)).draw(size, stream)
    noise = np.empty((size, problem.law.n), dtype=np.int64 if problem.law.integer else np.float64)
    for k, side in enumerate(found):
        mine = which == k
        if mine.any():
            noise[mine] = side.draw(truth, int(mine.sum()), stream)
    return noise


def spread(problem: Problem) -> Spread | None:
    """Not known before data is seen."""
    del problem
    return None


@kept
def sides(problem: Problem) -> tuple[Side, ...] | None:
    """The sides of a union, taken apart; None where the weight of one is not known."""
    system, law = problem.system, problem.law
    if not system.branches or system.invariants.count or law.kind != "laplace" or None in law.laws:
        return None
    found, adds_up = [], any(part.kind == "consistent" for part in system.parts)
    for branch in system.branches:
        if law.integer and branch.integer_obstacle(problem.unit) is not None:
            continue  # no whole table lies on this side
        side = Side.of(Problem(law, branch, problem.unit), adds_up=adds_up)
        if side is None:
            return None
        found.append(side)
    return tuple(found)


@dataclass(frozen=True, eq=False)
class Weights(Weighed):
    """The law of the side of a union, for one truth."""

    sides: tuple[Side, ...]
    truth: npt.NDArray[Any]

    def weights(self) -> Iterable[arb]:
        """The weight of each side."""
        return (side.weight(self.truth) for side in self.sides)


def refuse_overlap(problem: Problem) -> None:
    """Refuse a union whose sides are not known to exclude each other for the values that this noise can reach."""
    found = overlap(problem)
    if found is not None:
        raise Refused(found)


def overlap(problem: Problem) -> str | None:
    """The sentence that refuses sides which are not known to exclude each other, or None.

    A contradiction over the reals is proved in exact arithmetic; for whole numbers, where there is none, branch and
    bound decides.
    """
    return _overlap(problem.system, problem.law.integer and problem.unit == 1)


@kept
def _overlap(system: System, whole: bool) -> str | None:
    pairs = combinations(system.branches, 2)
    return next((_overlapping(*pair, whole) for pair in pairs if not _disjoint(*pair, whole)), None)


def _overlapping(left: System, right: System, whole: bool) -> str:
    one, other = (Constraint(_structural(side)) for side in (left, right))
    values = "whole numbers" if whole else "the values this noise can reach"
    return (
        f"the sides of a union must be disjoint: ({one}) and ({other}) are not known to exclude each other for "
        f"{values}; leave a gap between them"
    )


def _structural(side: System) -> tuple[Part, ...]:
    return tuple(part for part in side.parts if part.origin == "structural")


def _disjoint(left: System, right: System, whole: bool) -> bool:
    both = list(dict.fromkeys([*_structural(left), *_structural(right)]))
    return conflict(both, left.n) is not None or (whole and whole_point(both, left.n)[1])
