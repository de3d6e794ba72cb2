"""TopDown and BlueDown: level by level, from the roots downwards. Baselines, used only when they are asked for.

TopDown is the algorithm of the 2020 US Census on one hierarchy: each level is fitted to its own noisy values and to the
final values above it, by non-negative least squares, and then rounded. BlueDown does the same with the estimates and
variances of generalised least squares at and below each child in place of its own noisy value: given a parent's final
value, only these tell the children apart. Without bounds and over the reals it is generalised least squares itself.
Both are heuristics for the nearest table (docs/theory/levelwise.md). With margins of a cube in every area the same goes
for the cells of each area's parts (onto/areas): told by their own measurements, or by those in and below them.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from holdfast.arrays import Array, kept
from holdfast.evidence import Evidence
from holdfast.noise import Independent
from holdfast.noise.spread import STUDY, Spread, simulated_spread
from holdfast.onto.areas.steps import BELOW, OWN
from holdfast.onto.independent_shares import Answer
from holdfast.onto.problem import MOST_SIMULATED, Problem, Ties, simulated_errors
from holdfast.onto.ways import areas, projection
from holdfast.trees.nearest.levelwise import Levelwise


class LevelByLevel:
    """One of the two; `combined`: with what was measured below each child."""

    NEAREST = False  # it finds a point near the nearest one

    def __init__(self, name: str, *, combined: bool) -> None:
        self.__name__, self.combined = name, combined

    def accepts(self, problem: Problem) -> bool:
        """Whether the system is a hierarchy, the norm is L2 and the measured outputs tell enough.

        Every leaf must be measured or exact, or something above it; without bounds nothing may be left to share out.
        TopDown leaves real values with exact nodes and no bounds to the projection: the statement made there is about
        that projection, and this map is another one.
        """
        if areas.goes_down(problem):
            return True
        system = problem.system
        another = system.invariants.count > 0 and not system.has_inequalities and not problem.integer
        if problem.norm != "l2" or (another and not self.combined):
            return False
        made = _levelwise(problem, self.combined)
        return made is not None and made.roots_known and (problem.system.has_inequalities or made.determined)

    def image(self, problem: Problem, noisy: Array, right: Array, ties: Ties = None) -> Array:
        if areas.goes_down(problem):
            coins = np.zeros(len(noisy), np.uint64) if ties is None else ties
            moved = (
                areas.moved_down(problem, row, right, int(coin), self._source)
                for row, coin in zip(noisy, coins, strict=True)
            )
            return np.stack([found.values for found in moved])
        made = _levelwise(problem, self.combined)
        assert made is not None
        return made.move(noisy, *problem.bounds(right), ties)

    def certified(self, problem: Problem, noisy: Array, right: Array, coin: int = 0) -> Answer:
        """Move one table, (n,); in areas with margins, with its evidence."""
        if areas.goes_down(problem):
            return areas.moved_down(problem, noisy, right, coin, self._source)
        values = self.image(problem, noisy[None, :], right, np.array([coin], dtype=np.uint64))[0]
        grid = Fraction(1) if problem.integer else None
        return Answer(values, Evidence(gap=math.inf, grid=grid, exact=problem.integer, nearest=False))

    @property
    def _source(self) -> str:
        return BELOW if self.combined else OWN

    def spread(self, problem: Problem, law: Independent) -> Spread | None:
        """Errors of generalised least squares, or from simulated draws; not known before data is seen with bounds."""
        if self.combined and projection.accepts(problem):
            return projection.spread(problem, law)
        if problem.system.has_inequalities or STUDY * problem.n > MOST_SIMULATED:
            return None
        return simulated_spread(simulated_errors(problem, law, self.image))


topdown, bluedown = LevelByLevel("topdown", combined=False), LevelByLevel("bluedown", combined=True)


@kept
def _levelwise(problem: Problem, combined: bool) -> Levelwise | None:
    """The prepared passes; None where the system is not a hierarchy."""
    if problem.forest is None:
        return None
    return Levelwise.of(problem.forest.parents, problem.exact, problem.spreads, combined=combined)
