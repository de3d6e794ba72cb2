"""What a mechanism draws, before anything is moved: noise by itself, or noise conditioned on what must hold.

Noise made for its constraint is a source too (`extended.py`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any, Protocol

import numpy.typing as npt

from holdfast import given as revision
from holdfast.arguments import Refused, known, of_type
from holdfast.constraints import Constraint, System
from holdfast.evidence import NOTHING_KNOWN, Evidence
from holdfast.mechanism.correlated.over_time import AdditiveOverTime
from holdfast.noise.spread import Spread, independent_spread
from holdfast.privacy import Additive, Differences, Guarantee, Promise
from holdfast.queries import Moves, Neighbours
from holdfast.randomness import Stream

NO_VERBS = (
    "noise made for its constraint cannot be conditioned or moved again: give extend() all equalities at once, or use "
    "laplace() or gaussian() with given() and onto()"
)
#: The name of the law of noise on residuals.
RESIDUALS = "residuals"
ON_RESIDUALS = (
    "noise on residuals cannot be conditioned and keeps no exact figures: use onto() without an invariant, or leave "
    "residuals out"
)
UNMEASURED = "some outputs are not measured: use given() or onto() with what determines them"


class Source(Protocol):
    """Noise for a query, and what it promises."""

    @property
    def base(self) -> Additive:
        """The query, its neighbours, the scale of the noise, and the target."""

    @property
    def law(self) -> str | None:
        """The name of a law that was made for its constraint; None for noise of laplace() and gaussian()."""

    @property
    def constraint(self) -> Constraint | None:
        """What the noise obeys, as it was asked for; None where nothing was."""

    @property
    def system(self) -> System | None:
        """The same, written out."""

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the ways in use; refused where none is known."""

    @property
    def depends_on_data(self) -> bool:
        """Whether the law of the noise depends on the confidential truth."""

    @property
    def evidence(self) -> Evidence:
        """How good a law is that was made for its constraint."""

    def over(self, base: Additive) -> Source:
        """The same for rescaled noise."""

    def noise(self, truth: npt.NDArray[Any] | None, size: int, stream: Stream) -> npt.NDArray[Any]:
        """Draw noise, (size, n), 0 where an output is not measured; no truth where the law does not depend on it."""

    def spread(self) -> Spread | None:
        """Errors in units of the grid, where they are known before data is seen."""

    def promise(self, neighbours: Neighbours | None = None) -> Promise:
        """Every statement that holds; for other neighbours than those of `base` if they are given."""

    def statement_for(self, differences: Differences, **words: Any) -> Guarantee:
        """The statement about some of the changes that keep every equality."""


def refuse_second_law(source: Source, constraint: Constraint, *, moved: bool) -> None:
    """Refuse to condition or move noise that has a law of its own, but for structural moves of noise on residuals."""
    if source.law == RESIDUALS and (constraint.has_invariants or not moved):
        raise Refused(ON_RESIDUALS)
    if source.law not in (None, RESIDUALS):
        raise Refused(NO_VERBS)
    if isinstance(source.base, AdditiveOverTime) and not moved:
        raise Refused("noise over time cannot be conditioned: use onto()")


def is_drawn(source: Source) -> bool:
    """Whether a way to draw this noise is known."""
    try:
        return source.names is not None
    except Refused:
        return False


def of_neighbours(base: Additive, neighbours: Neighbours | None) -> Additive:
    return base if neighbours is None else replace(base, neighbours=neighbours)


def _differences(base: Additive, differences: Differences) -> Differences:
    return base.everything() if isinstance(differences, Moves) and differences.everything else differences


@dataclass(frozen=True, eq=False)
class Plain:
    """Independent noise. Law: q(x) + U. Guarantee: THEORY §1."""

    base: Additive
    law: None = None
    constraint: None = None
    system: None = None
    names: tuple[str, ...] = ()
    depends_on_data: bool = False
    evidence: Evidence = NOTHING_KNOWN

    def __str__(self) -> str:
        law = self.base.law
        return f"{'integer' if law.integer else 'continuous'} {law.kind.capitalize()} noise on {self.base.query!r}"

    def over(self, base: Additive) -> Plain:
        return Plain(of_type("base", base, Additive))

    def noise(self, truth: npt.NDArray[Any] | None, size: int, stream: Stream) -> npt.NDArray[Any]:
        """Draw noise; outputs that are not measured only a move can then determine."""
        del truth
        return self.base.law.measured_draw(size, stream)

    def spread(self) -> Spread | None:
        if None in self.base.law.laws:
            raise Refused(UNMEASURED)
        return independent_spread(self.base.law)

    def promise(self, neighbours: Neighbours | None = None) -> Promise:
        """The one statement about all neighbours, about what is measured."""
        return Promise((of_neighbours(self.base, neighbours).statement(),), is_base=True)

    def statement_for(self, differences: Differences, **words: Any) -> Guarantee:
        return self.base.statement(_differences(self.base, differences), **words)


@dataclass(frozen=True, eq=False)
class Conditioned:
    """Noise given that the output obeys a constraint."""

    base: Additive
    constraint: Constraint
    system: System
    method: str | None = None
    law: None = None
    evidence: Evidence = NOTHING_KNOWN

    def __getstate__(self) -> dict[str, Any]:
        # What was computed on the way (plans, tables of balls) is not part of the mechanism.
        return {item.name: getattr(self, item.name) for item in fields(self)}

    def __str__(self) -> str:
        return f"{Plain(self.base)}, given {self.constraint}"

    def over(self, base: Additive) -> Conditioned:
        return replace(self, base=of_type("base", base, Additive))

    @cached_property
    def plan(self) -> revision.Plan:
        """How it is drawn; refused where no way is known."""
        return known(revision.choose(revision.Problem(self.base.law, self.system, self.base.unit), self.method))

    @property
    def names(self) -> tuple[str, ...]:
        return self.plan.names

    @property
    def depends_on_data(self) -> bool:
        """Whether bounds or a union make the law depend on the truth."""
        return self.plan.problem.depends_on_data

    def noise(self, truth: npt.NDArray[Any] | None, size: int, stream: Stream) -> npt.NDArray[Any]:
        revision.forget(self.system)
        return self.plan.draw(truth, size, stream)

    def spread(self) -> Spread | None:
        """Errors where they are known before data is seen."""
        return self.plan.spread()

    def _refuse_lawless(self) -> None:
        """Nothing is said of what cannot be drawn: noise that may have no law, or a way asked for that cannot."""
        if None in self.base.law.laws or self.method is not None:
            _ = self.plan

    def promise(self, neighbours: Neighbours | None = None) -> Promise:
        """Every statement about the conditional law; none for a baseline that only comes near it."""
        try:
            self._refuse_lawless()
        except Refused as refusal:
            return Promise((), str(refusal))
        if self.method == "metropolis":
            return Promise((), revision.UNMEASURED)
        return revision.promise(of_neighbours(self.base, neighbours), self.system)

    def statement_for(self, differences: Differences, **words: Any) -> Guarantee:
        """The statement about some of the changes that keep every equality."""
        self._refuse_lawless()
        chosen = _differences(self.base, differences)
        if self.method == "metropolis":
            return Guarantee(epsilon=math.inf, neighbours=chosen.neighbours, because=revision.UNMEASURED, **words)
        return revision.statement_for(self.base, self.system, chosen, **words)
