"""The nearest point of a union: the nearest point of each side by that side's best way, and of these the nearest.

A structural union is public, so this is post-processing whatever the distances are. Where two sides are equally near,
to one part in 10¹², the one written first is taken, or the one written last if the coin is odd.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from holdfast.arrays import Array, Floats
from holdfast.noise import Independent
from holdfast.noise.spread import Spread
from holdfast.onto.independent_shares import Way
from holdfast.onto.problem import Problem, Ties

#: The name by which a user asks for it.
NAME = "union"
#: Sides whose distances differ by this share of them or less are equally near.
TIE = 1e-12


@dataclass(frozen=True, eq=False)
class UnionPlan:
    """A way made of ways: one for each side of a union that holds a point."""

    sides: tuple[tuple[Problem, Way], ...]
    NEAREST: bool = False  # nobody bounds how far the ways of the sides are from the nearest points

    @property
    def __name__(self) -> str:
        return NAME

    def accepts(self, problem: Problem) -> bool:
        return all(side.n == problem.n for side, _ in self.sides)

    def image(self, problem: Problem, noisy: Array, right: Array, ties: Ties = None) -> Array:
        del right
        best: Array | None = None
        least = np.full(len(noisy), np.inf)
        late = np.zeros(len(noisy), dtype=bool) if ties is None else ties % 2 == 1
        for side, way in self.sides:
            right_here = side.system.right_hand_sides(side.unit)
            moved = way.image(side, noisy.copy(), right_here, ties)  # a move may work in place
            far = distances(problem, moved - noisy)
            if best is None:
                best, least = moved, far
                continue
            nearer = far < least * np.where(late, 1 + TIE, 1 - TIE)
            best[nearer], least[nearer] = moved[nearer], far[nearer]
        assert best is not None
        return best

    def spread(self, problem: Problem, law: Independent) -> Spread | None:
        del problem, law
        return None


def possible_sides(problem: Problem) -> Iterator[Problem]:
    """The sides of a union without invariants that can hold a point, each as a problem of its own."""
    if problem.system.invariants.count:
        return
    for branch in problem.system.branches:
        if not problem.integer or branch.integer_obstacle(problem.unit) is None:
            yield replace(problem, system=branch)


def distances(problem: Problem, moves: Array) -> Floats:
    """How far each row of moves, (size, n), goes in the problem's norm and weights."""
    sizes = np.abs(moves.astype(np.float64)) / np.sqrt(problem.spreads)  # outputs that are not measured weigh nothing
    return np.asarray(sizes.sum(axis=1) if problem.norm == "l1" else (sizes**2).sum(axis=1))
