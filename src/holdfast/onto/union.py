"""The nearest point of a union: the nearest point of each side by that side's best way, and of these the nearest.

A structural union is public, so this is post-processing whatever the distances are. Where two sides are equally near,
to one part in 10¹², the one written first is taken, or the one written last if the coin is odd.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from holdfast.arguments import Refused
from holdfast.noise import Independent
from holdfast.noise.spread import Spread
from holdfast.onto.problem import Problem, Ties

if TYPE_CHECKING:
    from holdfast.onto.plan import Way

#: Sides whose distances differ by this share of them or less are equally near.
TIE = 1e-12


def accepts(problem: Problem) -> bool:
    """Whether there is a union without invariants, and a way to the nearest point of each side."""
    return bool(_sides(problem))


def image(problem: Problem, noisy: npt.NDArray[Any], right: npt.NDArray[Any], ties: Ties = None) -> npt.NDArray[Any]:
    """Move the noisy values, (size, n), each to its nearest side; the right-hand sides are those of the sides."""
    del right
    best: npt.NDArray[Any] | None = None
    least = np.full(len(noisy), np.inf)
    late = np.zeros(len(noisy), dtype=bool) if ties is None else ties % 2 == 1
    for side, way in _sides(problem):
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


def distances(problem: Problem, moves: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
    """How far each row of moves, (size, n), goes in the problem's norm and weights."""
    sizes = np.abs(moves.astype(np.float64)) / np.sqrt(problem.spreads)  # outputs that are not measured weigh nothing
    return np.asarray(sizes.sum(axis=1) if problem.norm == "l1" else (sizes**2).sum(axis=1))


def spread(problem: Problem, law: Independent) -> Spread | None:
    """Not known before data is seen: which side is near depends on the truth."""
    del problem, law
    return None


def _sides(problem: Problem) -> list[tuple[Problem, Way]]:
    """Each side that holds a point, with its way; empty where one has none. Kept with the problem."""
    kept: dict[str, Any] = problem.__dict__
    if "_sides" not in kept:
        kept["_sides"] = _chosen(problem)
    found: list[tuple[Problem, Way]] = kept["_sides"]
    return found


def _chosen(problem: Problem) -> list[tuple[Problem, Way]]:
    from holdfast.onto.choose import choose

    if problem.system.invariants.count:
        return []
    found = []
    for branch in problem.system.branches:
        if problem.integer and branch.integer_obstacle(problem.unit) is not None:
            continue
        side = replace(problem, system=branch)
        try:
            found.append((side, choose(side)))
        except Refused:
            return []
    return found
