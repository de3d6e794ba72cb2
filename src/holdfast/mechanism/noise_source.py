"""What a mechanism draws, before anything is moved: noise by itself, or noise conditioned on what must hold.

Noise made for its constraint is a source too (`extended.py`).
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any, Protocol

import numpy.typing as npt

from holdfast import given as revision
from holdfast.arguments import Refused, known, of_type
from holdfast.constraints import Constraint, System
from holdfast.evidence import Evidence
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
    def evidence(self) -> tuple[Evidence, ...]:
        """How near draws come to their law, one for each share of the outputs; none where no way to draw is known."""

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
    evidence: tuple[Evidence, ...] = (Evidence(),)

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
    """Noise given that the output obeys a constraint. `tau`: how near draws must come, where it was asked for."""

    base: Additive
    constraint: Constraint
    system: System
    method: str | None = None
    tau: float | None = None
    law: None = None

    def __getstate__(self) -> dict[str, Any]:
        # What was computed on the way (plans, tables of balls) is not part of the mechanism.
        return {item.name: getattr(self, item.name) for item in fields(self)}

    def __str__(self) -> str:
        within = "" if self.tau is None else f" within {self.tau:.3g}"
        return f"{Plain(self.base)}, given {self.constraint}{within}"

    def over(self, base: Additive) -> Conditioned:
        return replace(self, base=of_type("base", base, Additive))

    @cached_property
    def plan(self) -> revision.Plan:
        """How it is drawn; refused where no way is known."""
        problem = revision.Problem(self.base.law, self.system, self.base.unit, self.tau or revision.TAU)
        plan = known(revision.choose(problem, self.method))
        distance = revision.distance_of(plan.evidence)
        if self.tau is not None and distance > self.tau:
            raise Refused(
                f"tau must be at least {float(distance):.3g}, since rounding does not let these draws come nearer to "
                f"their law, found {self.tau:.3g}"
            )
        if self.tau is None and distance:
            needed = revision.default_tau(self.base, self.system)
            if needed < min(float(distance), problem.tau):
                plan = known(revision.choose(replace(problem, tau=needed), self.method))
        return plan

    @property
    def names(self) -> tuple[str, ...]:
        return self.plan.names

    @property
    def depends_on_data(self) -> bool:
        """Whether bounds or a union make the law depend on the truth."""
        return self.plan.problem.depends_on_data

    @cached_property
    def evidence(self) -> tuple[Evidence, ...]:
        """How near draws come to their law, one for each share of the outputs; none where no way to draw is known."""
        try:
            return self.plan.evidence
        except Refused:
            return ()

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
        """Every statement about the conditional law, as near as it is drawn."""
        try:
            self._refuse_lawless()
        except Refused as refusal:
            return Promise((), str(refusal))
        return revision.promise(of_neighbours(self.base, neighbours), self.system, self.evidence)

    def statement_for(self, differences: Differences, **words: Any) -> Guarantee:
        """The statement about some of the changes that keep every equality."""
        self._refuse_lawless()
        chosen = _differences(self.base, differences)
        return revision.statement_for(self.base, self.system, chosen, self.evidence, **words)
