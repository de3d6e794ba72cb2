"""A function of what a mechanism releases, and of nothing else: it promises what the mechanism promises."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NoReturn

import numpy.typing as npt

from holdfast import arguments
from holdfast.arguments import Refused
from holdfast.mechanism.release import Release
from holdfast.pictures import card, rows_of
from holdfast.privacy import Guarantee, Promise
from holdfast.queries import Query
from holdfast.randomness import Stream

NO_VERBS = (
    "after then() the values are no longer answers to the query, so there is nothing to condition or to move: use "
    "given() and onto() first, then then()"
)
NOTHING_LEFT = (
    "before then() only a subspace statement holds, and a function of the whole output may read the exact figures, "
    "which it does not cover: nothing can be promised about the result"
)


class Promising:
    """What mechanisms, mixtures and projected mechanisms have in common: a promise, and functions of what they release.

    Each has a property `promise` and a `query`.
    """

    promise: Any

    @property
    def guarantees(self) -> tuple[Guarantee, ...]:
        """Every statement that holds, the best one first."""
        found: Promise = self.promise
        return found.statements

    @property
    def guarantee(self) -> Guarantee:
        """The best statement that holds; refused where none does."""
        found: Promise = self.promise
        return found.best

    def _repr_html_(self) -> str:
        return shown(self)

    def then(self, function: Callable[[npt.NDArray[Any]], Any], name: str) -> Processed:
        """Post-processing: release function(values) instead of the values. The function must read nothing else.

        `name` is what statements call it.

        Guarantee: the statements about all neighbours and about those that share the exact figures go on to hold;
        subspace statements do not cover functions that read the exact figures, and go (THEORY §3).
        """
        return then(self, function, name)


@dataclass(frozen=True, eq=False, repr=False)
class ProcessedRelease:
    """What a function made of one release: `values`, and the statements that hold for it, best first."""

    values: Any
    guarantees: tuple[Guarantee, ...]
    name: str

    def __repr__(self) -> str:
        return f"<Release: {self.name} of released values; print .guarantee for what it promises>"

    @property
    def guarantee(self) -> Guarantee:
        return self.guarantees[0]


@dataclass(frozen=True, eq=False, repr=False)
class Processed:
    """A mechanism followed by a function of its released values. Made by `mechanism.then(function, name)`.

    Law: the function's, at values drawn by the mechanism. Guarantee: the mechanism's statements about all neighbours
    and about neighbours that share the exact figures (post-processing: Dwork and Roth 2014, Proposition 2.1; Rényi
    divergences and trade-offs obey the same inequality). A subspace statement is silent about the exact figures, which
    the function may read, and goes (THEORY §3).
    """

    source: Any
    function: Callable[[npt.NDArray[Any]], Any]
    name: str

    def __repr__(self) -> str:
        return f"{repr(self.source)[:-1]}, then {self.name}>"

    def _repr_html_(self) -> str:
        return shown(self)

    @property
    def query(self) -> Query:
        found: Query = self.source.query
        return found

    @property
    def guarantees(self) -> tuple[Guarantee, ...]:
        return passed_on(self.source.guarantees, self.name)

    @property
    def guarantee(self) -> Guarantee:
        _ = self.source.guarantee  # refused with its own reason
        if not self.guarantees or self.guarantees[0].void:
            raise Refused(NOTHING_LEFT)
        return self.guarantees[0]

    def then(self, function: Callable[[Any], Any], name: str) -> Processed:
        return then(self, function, name)

    def calibrated(self, **budget: Any) -> Processed:
        """The same function of the mechanism with its noise rescaled, as `Mechanism.calibrated` says."""
        return replace(self, source=self.source.calibrated(**budget))

    def given(self, *_: object, **__: Any) -> NoReturn:
        raise Refused(NO_VERBS)

    def onto(self, *_: object, **__: Any) -> NoReturn:
        raise Refused(NO_VERBS)

    def simulate(self, truth: npt.ArrayLike, size: int, rng: Stream | None = None) -> list[Any]:
        """The results of `size` independent releases of this truth: for planning, tests and studies."""
        drawn = self.source.simulate(truth, size) if rng is None else self.source.simulate(truth, size, rng)
        return [self.function(values) for values in drawn]

    def release(self, truth: npt.ArrayLike, rng: Stream | None = None) -> ProcessedRelease:
        """Release once, and give the function's result with the statements; refused when no statement holds."""
        _ = self.guarantee
        made: Release | ProcessedRelease
        made = self.source.release(truth) if rng is None else self.source.release(truth, rng)
        statements = passed_on(made.guarantees, self.name)
        values = made.values.copy() if isinstance(made, Release) else made.values
        return ProcessedRelease(self.function(values), statements, self.name)


def shown(mechanism: Any) -> str:
    """Return a mechanism as a card for notebooks: what it does and what it promises, or why nothing."""
    from holdfast.privacy.odds import heading, promise_rows  # only notebooks need it

    kind, _, what = repr(mechanism).strip("<>").partition(": ")
    try:
        promise = {"promises": heading(mechanism.guarantee), **promise_rows(mechanism.guarantee)}
    except Refused as refusal:
        promise = {"promises nothing": str(refusal)}
    return card(kind, what, rows_of({"figures": f"{mechanism.query.n:,}", **promise}))


def passed_on(statements: tuple[Guarantee, ...], name: str) -> tuple[Guarantee, ...]:
    """The statements that hold after a function of the whole output."""
    words = f"then {name}, a function of the released values alone (post-processing, THEORY §3)"
    return tuple(
        each if each.void else replace(each, because=f"{each.because.rstrip('. ')}; {words}", exact=False)
        for each in statements
        if each.scope != "subspace"
    )


def then(source: Any, function: Any, name: Any) -> Processed:
    """Follow a mechanism by a function of its released values, which must read nothing else about the data."""
    if not callable(function):
        raise Refused(f"function must take the released values and return a result, found {type(function).__name__}")
    if not isinstance(name, str) or not name.strip():
        raise Refused(f"name must say in a few words what the function does, found {arguments.shown(name)}")
    return Processed(source, function, name.strip())
