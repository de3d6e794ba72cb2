"""The methods that can make a table: each a sentence of the two verbs over the same noise."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from holdfast.arguments import Refused
from holdfast.constraints import Constraint
from holdfast.mechanism import Mechanism, gaussian, laplace
from holdfast.privacy import Guarantee
from holdfast.queries import Neighbours, Query

#: Methods whose values are a function of noisy measurements and of nothing else.
MOVES = ("onto", "topdown", "bluedown")


@dataclass(frozen=True, eq=False)
class Problem:
    """Everything that a method must respect: the query, what must hold, and how the noise is shared out."""

    query: Query
    equal: Constraint | None
    unequal: Constraint | None
    neighbours: Neighbours
    shares: dict[str, Any] | None
    whole: bool
    scope: str

    @property
    def free(self) -> Problem:
        """The same without bounds: how it is far from them."""
        return replace(self, unequal=None)

    def noise(self, law: str) -> Mechanism:
        """The noise alone, at some scale."""
        if law == "laplace":
            return laplace(self.query, epsilon=1, neighbours=self.neighbours, shares=self.shares)
        return gaussian(self.query, rho=1, neighbours=self.neighbours, shares=self.shares)


def suited(problem: Problem) -> tuple[str, ...]:
    """The methods that `auto` compares: exact ones, whose statements are proved."""
    if problem.equal is None and problem.unequal is None:
        return ("noise",)
    both = ("given-then-onto",) if problem.equal is not None and problem.unequal is not None else ()
    level_by_level = ("topdown", "bluedown") if problem.query.tree is not None else ()
    return ("given", "onto", *both, *level_by_level)


def made(method: str, noise: Mechanism, problem: Problem) -> Mechanism:
    """Apply a method to the noise."""
    equal, unequal = problem.equal, problem.unequal
    everything = equal if unequal is None else unequal if equal is None else equal & unequal
    if everything is None:
        return noise
    if method == "noise":
        raise Refused("noise alone holds nothing: choose another method, or leave hold out")
    if method in ("given", "metropolis"):
        return noise.given(everything, method="metropolis" if method == "metropolis" else None)
    if method == "given-then-onto":
        if equal is None:
            raise Refused("given-then-onto needs something to be given, such as consistent: use onto")
        return noise.given(equal) if unequal is None else noise.given(equal).onto(unequal, integer=problem.whole)
    named = method if method in ("topdown", "bluedown") else None
    return noise.onto(everything, integer=problem.whole, method=named)


def counted(mechanism: Mechanism, scope: str) -> Guarantee:
    """Return the statement that the budget counts: the one about all neighbours, or else that of the wanted scope."""
    if mechanism.guarantee.scope == "all":
        return mechanism.guarantee
    holds = [each for each in mechanism.guarantees if not each.void]
    found = next((each for each in holds if each.scope == scope), None)
    if found is None:
        others = ", ".join(dict.fromkeys(each.scope for each in holds))
        raise Refused(f"no statement of scope {scope} holds for this method; privacy.scope can be {others}")
    return found


def calibrated(mechanism: Mechanism, scope: str, target: dict[str, Any]) -> Mechanism:
    """Rescale the noise so that the counted statement meets its target; refuse what cannot be drawn."""
    result = mechanism.calibrated(**target, scope=counted(mechanism, scope).scope)
    _ = result.method  # a way to draw it must be known
    if not (np.asarray(result.base.law.variances) > 0).all():
        raise Refused("so much is asked for that no noise is left: ask for less, or publish the figures as exact")
    return result


def lists_tables(mechanism: Mechanism) -> bool:
    """Whether drawing lists all possible tables, of which the data can allow too many."""
    return "enumeration" in mechanism.method.split(", ")
