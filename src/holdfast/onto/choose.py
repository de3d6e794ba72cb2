"""The ways to compute `onto`, best first, and the choice among them.

Formulas for the whole table come first. Otherwise outputs that no row connects are moved by themselves, each group by
the first way that accepts it. The choice looks at what must hold, the norm and the weights, never at the data. A new
way is one new file and one line here.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from holdfast.arguments import NoWay, one_of
from holdfast.arrays import kept
from holdfast.constraints.possible.contradiction import refuse_whole_contradiction
from holdfast.constraints.system.independent_blocks import independent_outputs
from holdfast.onto import union
from holdfast.onto.baselines import bluedown, topdown
from holdfast.onto.grid.grid import refuse_too_large
from holdfast.onto.independent_shares import Plan, Share, Way
from holdfast.onto.problem import Problem
from holdfast.onto.union import UnionPlan
from holdfast.onto.ways import (
    areas,
    boxes,
    hierarchy,
    linked,
    network,
    orders,
    program,
    projection,
    under_totals,
)

#: Ways that take the whole table at once, whether or not it falls apart.
WHOLE: tuple[Any, ...] = (hierarchy, under_totals, boxes, areas, linked, projection)
WAYS: tuple[Any, ...] = (*WHOLE, orders, network, program, union)
#: Baselines, used only when they are asked for by name.
ASKED_FOR: tuple[Way, ...] = (topdown, bluedown)


def ways() -> tuple[Way, ...]:
    """All ways, best first, and then those that must be asked for."""
    return WAYS + ASKED_FOR


def name_of(way: Way) -> str:
    return way.__name__.rsplit(".", 1)[-1]


@kept
def choose(problem: Problem, method: str | None = None) -> Way | NoWay:
    """Return the best way; `method` asks for one by name. Made once per problem."""
    if method is not None:
        one_of("method", method, [name_of(way) for way in ways()])
    if problem.system.branches:
        return _union(problem, method)
    candidates = ways()[: len(WAYS)]
    if method is not None:
        candidates = tuple(way for way in ways() if name_of(way) == method)
    apart = tuple(way for way in candidates if way not in (*WHOLE, union, *ASKED_FOR))
    found = next((way for way in candidates if way not in (*apart, union) and way.accepts(problem)), None)
    if found is not None:
        return found
    if not apart:
        return NoWay(_no_way(problem, method))
    groups = independent_outputs(problem.system, problem.space.rows)
    if len(groups) == 1:
        found = next((way for way in apart if way.accepts(problem)), None)
        if found is None:
            return NoWay(_no_way(problem, method))
        _refuse_impossible(problem, {found})
        return found
    shares, taken = [], {}
    for outputs, (part, rows) in zip(groups, problem.parts(groups), strict=True):
        if id(part) not in taken:
            way = next((way for way in (boxes, *apart) if way.accepts(part)), None)
            if way is None:
                return NoWay(_no_way(part, method))
            taken[id(part)] = way
        shares.append(Share(outputs, part, rows, taken[id(part)]))
    _refuse_impossible(problem, set(taken.values()))
    return Plan(tuple(shares))


def _union(problem: Problem, method: str | None) -> Way | NoWay:
    """A plan with a way for each side that can hold a point; none where some side has none."""
    if method not in (None, union.NAME):
        return NoWay(_no_way(problem, method))
    sides: list[tuple[Problem, Way]] = []
    for side in union.possible_sides(problem):
        way = choose(side)
        if isinstance(way, NoWay):
            return NoWay(_no_way(problem, method))
        sides.append((side, way))
    return UnionPlan(tuple(sides)) if sides else NoWay(_no_way(problem, method))


def _refuse_impossible(problem: Problem, used: set[Way]) -> None:
    """Refuse rows without whole solutions, by name; on trees, sums and networks whole data always have them.

    Refuse rows that leave no room for values as well.
    """
    if program in used:
        refuse_too_large(problem)
    if problem.integer and program in used and problem.unit == 1:
        refuse_whole_contradiction(problem.system.parts, problem.n)


def _no_way(problem: Problem, method: str | None) -> str:
    system = problem.system
    asked = f"method {method!r} cannot move" if method else "no way is known to move"
    if method in {name_of(way) for way in ways()[len(WAYS) :]}:
        return (
            f"{asked} these values level by level: it needs consistent(tree), bounds, fixed or exact nodes and no "
            "other rows, norm='l2', and for each leaf a measurement of it or above it; otherwise leave method out"
        )
    if system.branches:
        why = " together with invariants" if system.invariants.count else ", because of one of its sides"
        return f"{asked} noisy values onto a union{why}: use given()"
    if problem.forest is not None and method in (None, "hierarchy"):
        return f"{asked} noisy values onto a hierarchy that leaves unmeasured leaves open: measure them"
    if method is None or not np.isfinite(problem.spreads).all():
        return f"{asked} noisy values where what must hold leaves unmeasured outputs open: measure them"
    return f"{asked} noisy values onto what must hold here: leave method out"
