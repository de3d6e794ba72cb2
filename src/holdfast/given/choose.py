"""The ways to compute `given`, best first, and the choice among them.

Outputs that no row connects are independent and are treated as problems of their own. The choice looks at the
law and the system alone, never at the data. A new way is one new file and one line here.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import ModuleType
from typing import Protocol, cast

import numpy as np

from holdfast.arguments import NoWay, Refused, one_of
from holdfast.arrays import Array, Ints
from holdfast.constraints.system.independent_blocks import independent_outputs, split_system
from holdfast.constraints.system.own_sums import OwnSums
from holdfast.given import metropolis, union
from holdfast.given.exact import (
    boxes,
    enumeration,
    free,
    hierarchy,
    line,
    rejection,
    solved,
    tied_totals,
    total,
    under_totals,
)
from holdfast.given.exact.normal import areas, gaussian, gaussian_tree, lattice
from holdfast.given.problem import Problem, Truth
from holdfast.noise.spread import Spread, joined_spread
from holdfast.randomness import Stream
from holdfast.trees.shape.proper import endless


class Way(Protocol):
    """One way to draw from a conditional law."""

    __name__: str

    def accepts(self, problem: Problem) -> bool:
        """Whether this way can draw from the law of this problem, exactly unless it must be asked for."""

    def draw(self, problem: Problem, truth: Truth, size: int, stream: Stream) -> Array:
        """Draw noise, (size, n), such that truth + noise satisfies the system."""

    def spread(self, problem: Problem) -> Spread | None:
        """Errors known before data is seen; None where they depend on the data."""


WAYS: tuple[ModuleType, ...] = (
    gaussian_tree,
    areas,
    free,
    boxes,
    line,
    total,
    solved,
    gaussian,
    hierarchy,
    under_totals,
    union,
    tied_totals,
    enumeration,
    lattice,
    rejection,
)
#: Baselines, used only when they are asked for by name. Their draws only come near the law, and promise nothing.
ASKED_FOR: tuple[ModuleType, ...] = (metropolis,)


def ways() -> tuple[Way, ...]:
    """All ways, best first, then those that must be asked for."""
    return cast("tuple[Way, ...]", WAYS + ASKED_FOR)


def name_of(way: Way) -> str:
    return way.__name__.rsplit(".", 1)[-1]


@dataclass(frozen=True, eq=False)
class Share:
    """Some outputs that are independent of the others, and the way that draws them."""

    outputs: Ints
    problem: Problem
    way: Way


@dataclass(frozen=True, eq=False)
class Plan:
    """How a conditional law is drawn: one way for each independent share of the outputs."""

    problem: Problem
    shares: tuple[Share, ...]

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(sorted({name_of(share.way) for share in self.shares}))

    def draw(self, truth: Truth, size: int, stream: Stream) -> Array:
        if len(self.shares) == 1:
            return self.shares[0].way.draw(self.shares[0].problem, truth, size, stream)
        integer = self.problem.law.integer
        noise = np.empty((size, self.problem.law.n), dtype=np.int64 if integer else np.float64)
        for share in self.shares:
            part = None if truth is None else truth[share.outputs]
            noise[:, share.outputs] = share.way.draw(share.problem, part, size, stream)
        return noise

    def spread(self) -> Spread | None:
        parts = [share.way.spread(share.problem) for share in self.shares]
        return joined_spread(self.problem.law.n, [share.outputs for share in self.shares], parts)


def choose(problem: Problem, method: str | None = None) -> Plan | NoWay:
    candidates = ways()[: len(WAYS)]
    if method is not None:
        one_of("method", method, [name_of(way) for way in ways()])
        candidates = tuple(way for way in ways() if name_of(way) == method)
    if isinstance(problem.system.equalities, OwnSums):
        known = areas.accepts(problem) and cast("Way", areas) in candidates
        whole = Share(np.arange(problem.law.n), problem, cast("Way", areas))
        return Plan(problem, (whole,)) if known else NoWay(_no_way(problem, method))
    refuse_improper(problem)
    union.refuse_overlap(problem)
    # Ways whose work grows with the number of outputs see independent shares only.
    alone = next((way for way in candidates if way not in (lattice, rejection) and way.accepts(problem)), None)
    if alone is not None:
        return Plan(problem, (Share(np.arange(problem.law.n), problem, alone),))
    shares = []
    for outputs, part in _independent(problem):
        way = next((way for way in candidates if way.accepts(part)), None)
        if way is None:
            return NoWay(_no_way(problem, method))
        shares.append(Share(outputs, part, way))
    return Plan(problem, tuple(shares))


def _independent(problem: Problem) -> list[tuple[Ints, Problem]]:
    """Split the outputs into independent shares; those in no row together form one share."""
    if problem.system.branches:
        return [(np.arange(problem.law.n), problem)]
    groups = independent_outputs(problem.system, problem.space.rows)
    if len(groups) == 1:
        return [(groups[0], problem)]
    return [
        (outputs, Problem(problem.law.at(outputs), system, problem.unit))
        for outputs, system in zip(groups, split_system(problem.system, groups), strict=True)
    ]


def _no_way(problem: Problem, method: str | None) -> str:
    if method == "metropolis":
        return metropolis.refusal(problem)
    law = ("integer " if problem.law.integer else "continuous ") + problem.law.kind.capitalize()
    if isinstance(problem.system.equalities, OwnSums):
        given = f"the sums of {problem.law.n:,} figures in areas, which are not written out"
        return f"no way is known to draw {law} noise given {given}: use onto(...), or continuous Gaussian noise"
    what = "a union" if problem.system.branches else "these equalities"
    if problem.system.has_inequalities and not problem.system.branches:
        what = "these equalities and inequalities" if problem.space.rank else "these inequalities"
    asked = f"method {method!r} cannot draw" if method else "no exact way is known to draw"
    left = hierarchy.unmeasured(problem) if problem.law.integer and method in (None, "hierarchy") else None
    if left is not None:
        where = f"on a hierarchy whose output at position {left} is not measured, nor all that is below it"
        return f"{asked} {law} noise {where}: measure it, or use onto(...)"
    if problem.law.integer and hierarchy.too_wide(problem):
        return f"{asked} {law} noise that is so wide on so many outputs: use a larger epsilon or onto(...)"
    if None in problem.law.laws:
        what += " with outputs that are not measured"
    remedy = "use Gaussian noise, or onto(..., integer=False)"
    if problem.depends_on_data:
        remedy = "use onto(...), other noise or fewer constraints"
    elif problem.law.kind == "gaussian":
        remedy = "use onto(..., integer=False)"
    return f"{asked} {law} noise given {what}: {remedy}"


def refuse_improper(problem: Problem) -> None:
    """Refuse a hierarchy on which some noise can grow without end, unnoticed by all that is measured."""
    if None not in problem.law.laws:
        return
    forest = problem.forest
    if forest is None:
        return
    low, high = (np.isfinite(side) for side in problem.system.real_bounds())
    found = sorted(endless(forest.parents, np.isfinite(problem.law.variances) | forest.exact, low, high))
    if len(found) == 2:
        raise Refused(
            f"this noise has no law: how the outputs at positions {found[0]} and {found[1]} share their sum is "
            "limited by no measured output; measure one of them"
        )
    if found:
        raise Refused(
            f"this noise has no law: the output at position {found[0]} is limited by no measured output; "
            "measure it, or what is below it"
        )
