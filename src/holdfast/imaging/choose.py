"""The ways to compute `onto`, best first, and the choice among them. A new way is one new file and one line here."""

from __future__ import annotations

from types import ModuleType
from typing import Any, Protocol, cast

import numpy.typing as npt

from holdfast.arguments import Refused, one_of
from holdfast.imaging import bluedown, boxes, hierarchy, projection, topdown, union
from holdfast.imaging.problem import Problem
from holdfast.noise import Independent
from holdfast.noise.spread import Spread


class Way(Protocol):
    """One way to find the nearest point."""

    __name__: str

    def accepts(self, problem: Problem) -> bool:
        """Whether this way finds the nearest point for this problem."""

    def image(self, problem: Problem, noisy: npt.NDArray[Any], right: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Move noisy values, (size, n); `right` holds the right-hand sides of `problem.space.rows`."""

    def spread(self, problem: Problem, law: Independent) -> Spread | None:
        """Errors known before data is seen; None where they depend on the data."""


WAYS: tuple[ModuleType, ...] = (hierarchy, boxes, projection, union)
#: Baselines, used only when they are asked for by name.
ASKED_FOR: tuple[ModuleType, ...] = (topdown, bluedown)


def ways() -> tuple[Way, ...]:
    """All ways, best first, and then those that must be asked for."""
    return cast("tuple[Way, ...]", WAYS + ASKED_FOR)


def name_of(way: Way) -> str:
    """The name by which a user asks for a way."""
    return way.__name__.rsplit(".", 1)[-1]


def choose(problem: Problem, method: str | None = None) -> Way:
    """Return the first way that accepts the problem; `method` asks for one by name. Refuse where none is known."""
    candidates = ways()[: len(WAYS)]
    if method is not None:
        one_of("method", method, [name_of(way) for way in ways()])
        candidates = tuple(way for way in ways() if name_of(way) == method)
    if problem.system.branches:
        candidates = tuple(way for way in candidates if name_of(way) == "union")
    found = next((way for way in candidates if way.accepts(problem)), None)
    if found is None:
        raise Refused(_no_way(problem, method))
    return found


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
    if system.has_inequalities and problem.space.rank:
        return f"{asked} noisy values onto equalities and inequalities together: use one of the two"
    if system.has_inequalities:
        return f"{asked} noisy values onto inequalities between outputs: only bounds on single outputs are known"
    if problem.integer:
        return f"{asked} whole noisy values onto equalities and keep them whole: pass integer=False"
    if problem.norm != "l2":
        return f"{asked} noisy values onto equalities in the norm {problem.norm!r}: use norm='l2'"
    return f"{asked} noisy values onto equalities that leave unmeasured outputs open: measure them"
