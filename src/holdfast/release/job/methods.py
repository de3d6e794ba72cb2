"""The methods that can make a table: each a sentence of the two verbs over the same noise."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from holdfast.arguments import Refused
from holdfast.constraints import Constraint
from holdfast.mechanism.base_mechanisms import gaussian, laplace
from holdfast.mechanism.correlated.over_time import AdditiveOverTime
from holdfast.mechanism.extended import extend
from holdfast.mechanism.mechanism import Mechanism
from holdfast.mechanism.noise_source import Conditioned, Plain
from holdfast.noise.over_time import Factor
from holdfast.privacy import Guarantee
from holdfast.privacy.rounding import inward
from holdfast.queries import Neighbours, Query
from holdfast.release.job.steps import Moved, SumDifferences
from holdfast.release.table.holding import Holding
from holdfast.release.table.wording import REAL
from holdfast.subspace import GAUSSIAN, LAWS
from holdfast.subspace.cube_spaces import CubeSpaces

#: Methods whose noise is made for what is exact, and the law of each (SDP §3).
EXTENDED = {f"extend-{law}": law for law in LAWS}
#: Outputs of a table without structure for which `auto` looks for the optimal law: a plan takes seconds.
MOST_SEARCHED = 100
#: Noise of a smaller variance changes a whole figure once in 10¹⁸ releases: there is none.
NEGLIGIBLE = 1e-18
NO_NOISE = "so much is asked for that no noise is left: ask for less, or publish the figures as exact"
#: Steps that a record moves a sum by at most where `auto` compares methods that draw from a conditional law.
MOST_DRAWN = 50
#: Methods that draw from a conditional law.
DRAWN = ("given", "given-then-onto")


@dataclass(frozen=True, eq=False)
class OverTime:
    """How noise hangs together over periods, in how many a person counts, and by how many records in each."""

    factor: Factor
    several: int
    kept: int


@dataclass(frozen=True, eq=False)
class Problem:
    """Everything that a method must respect: the query, what must hold, and how the noise is shared out.

    `on_residuals`: noise is on residuals, with the shares `residuals`; None: all alike. `protected`: which changes of
    records the statements are about, where a record moves sums by what is `moved`: `neighbours` are then changes of
    single steps. None: both are the same (docs/theory/sums.md).
    """

    query: Query
    equal: Constraint | None
    unequal: Constraint | None
    neighbours: Neighbours
    shares: dict[str, Any] | None
    whole: bool
    scope: str
    on_residuals: bool = False
    residuals: Mapping[Any, Fraction] | None = None
    protected: Neighbours | None = None
    moved: Moved | None = None
    over_time: OverTime | None = None

    @classmethod
    def of_sums(
        cls, query: Query, holding: Holding, protected: Neighbours, moved: Moved, *, whole: bool, scope: str
    ) -> Problem:
        """The problem of a table of sums: records that come, go or change are so many steps that come or go."""
        made = cls(query, holding.equal, holding.unequal, moved.steps(protected), None, whole, scope)
        return replace(made, protected=protected, moved=moved)

    def about_records(self, statement: Guarantee) -> Guarantee:
        """What a statement about single steps says about records: each change of these is one of so many steps."""
        if self.protected is None or self.moved is None:
            return statement
        records = self.moved.records(self.protected.kind, statement.records)
        return replace(statement, neighbours=records, exact=statement.exact and records.adds, losses=())

    def about(self, mechanism: Mechanism, records: int, kind: str | None = None) -> Guarantee | None:
        """What a mechanism promises about so many records, perhaps of another kind of change."""
        if self.protected is None or self.moved is None:
            return mechanism.about(records, kind)
        relation = Neighbours(kind or self.protected.kind, records)
        if self.by_norms(mechanism):
            return mechanism.statement_for(self._differences(relation))
        found = mechanism.about(self.moved.steps(relation).records)
        return None if found is None else replace(self, protected=relation).about_records(found)

    def statements(self, mechanism: Mechanism) -> tuple[Guarantee, ...]:
        """Every statement about records, best first."""
        if self.protected is not None and self.by_norms(mechanism):
            return (mechanism.statement_for(self._differences(self.protected)),)
        return tuple(map(self.about_records, mechanism.guarantees))

    def counted(self, mechanism: Mechanism) -> Guarantee:
        """The statement about records that the budget counts."""
        if self.protected is not None and self.by_norms(mechanism):
            return self.statements(mechanism)[0]
        return self.about_records(counted(mechanism, self.scope))

    def in_steps(self, mechanism: Mechanism, target: dict[str, Fraction]) -> dict[str, Fraction]:
        """What single steps must meet for records to meet a target: more, where these cannot do all that steps can."""
        if self.protected is None or not self.by_norms(mechanism):
            return target
        base = mechanism.base
        records, steps = (base.loss(each).value for each in (self._differences(self.protected), base.everything()))
        more = steps / records if records else Fraction(1)
        return {name: Fraction(inward(Fraction(inward(much)) * more)) for name, much in target.items()}

    def by_norms(self, mechanism: Mechanism) -> bool:
        """Whether statements are norms of changes: noise by itself or given equalities, whatever is made of it."""
        source = mechanism.source
        if isinstance(source, Conditioned):
            held = source.system
            return source.method is None and not (held.has_inequalities or held.invariants.count or held.branches)
        return isinstance(source, Plain)

    def _differences(self, relation: Neighbours) -> SumDifferences:
        assert self.moved is not None
        return SumDifferences(self.query, relation, self.moved)

    @property
    def free(self) -> Problem:
        """The same without bounds: how it is far from them."""
        return replace(self, unequal=None)

    def divided(self, shares: dict[str, Any] | None) -> Problem:
        return replace(self, shares=shares)

    @property
    def is_union(self) -> bool:
        return self.unequal is not None and self.unequal.is_union

    def noise(self, law: str, method: str) -> Mechanism:
        """The noise alone, at some scale: real where values need not be whole and the method does not move them.

        Moved values are a function of the noisy answers, and whole noise does not leak through the bits of doubles.
        """
        whole = self.whole or method not in DRAWN
        if self.on_residuals:
            much: dict[str, Any] = {"rho": 1, "neighbours": self.neighbours, "integer": whole}
            return gaussian(self.query, shares=self.residuals, residuals=True, **much)
        if law == "laplace":
            return laplace(self.query, epsilon=1, neighbours=self.neighbours, shares=self.shares, integer=whole)
        found = gaussian(self.query, rho=1, neighbours=self.neighbours, shares=self.shares, integer=whole)
        if self.over_time is None:
            return found
        several, kept = self.over_time.several, self.over_time.kept
        return found.over(AdditiveOverTime.of(found.base, self.over_time.factor, several, kept))


def suited(problem: Problem, law: str) -> tuple[str, ...]:
    """The methods that `auto` compares for a law of noise."""
    if problem.equal is None and problem.unequal is None:
        return ("noise",)
    if problem.over_time is not None:
        return ("onto", *(("topdown", "bluedown") if problem.query.tree is not None and not problem.is_union else ()))
    if problem.on_residuals:
        return ("onto",)  # it adds up by itself, and cannot be conditioned
    if problem.neighbours.records > MOST_DRAWN and problem.protected is not None:
        return ("onto",)
    both = ("given-then-onto",) if problem.equal is not None and problem.unequal is not None else ()
    level_by_level = ("topdown", "bluedown") if problem.query.tree is not None and not problem.is_union else ()
    return ("given", "onto", *both, *level_by_level, *_made_for(problem, law))


def _made_for(problem: Problem, law: str) -> tuple[str, ...]:
    """The methods for exact figures in real tables without bounds."""
    if problem.whole or problem.unequal is not None or problem.equal is None or not problem.equal.has_invariants:
        return ()
    if problem.shares is not None:
        return ("project",)
    # With one scale for all outputs, onto moves by the orthogonal projection already.
    searched = problem.query.n <= MOST_SEARCHED or CubeSpaces.of(problem.query, problem.equal.system(problem.query.n))
    return tuple(name for name in compared_extensions(law) if searched or name != "extend-optimal")


def extensions(law: str) -> tuple[str, ...]:
    """The methods whose noise is made for what is exact, for a law of noise."""
    return tuple(name for name, form in EXTENDED.items() if (form in GAUSSIAN) == (law == "gaussian"))


def fits(method: str, law: str) -> bool:
    return method not in EXTENDED or method in extensions(law)


def compared_extensions(law: str) -> tuple[str, ...]:
    """Those of them that are worth comparing: the correlated law never has less squared error than the optimal one."""
    return tuple(name for name in extensions(law) if name != "extend-correlated")


def asked_for(method: str, law: str) -> tuple[str, ...]:
    return compared_extensions(law) if method == "extend" else (method,)


def made(method: str, noise: Mechanism, problem: Problem) -> Mechanism:
    equal, unequal = problem.equal, problem.unequal
    everything = equal if unequal is None else unequal if equal is None else equal & unequal
    if everything is None:
        return noise
    if method == "noise":
        raise Refused("noise alone holds nothing: choose another method, or leave hold out")
    if method == "project" or method in EXTENDED:
        return _equalities_only(method, noise, problem)
    if method == "given":
        return noise.given(everything)
    if method == "given-then-onto":
        if equal is None:
            raise Refused("given-then-onto needs something to be given, such as consistent: use onto")
        return noise.given(equal) if unequal is None else noise.given(equal).onto(unequal, integer=problem.whole)
    named = method if method in ("topdown", "bluedown") else None
    return noise.onto(everything, integer=problem.whole, method=named)


def _equalities_only(method: str, noise: Mechanism, problem: Problem) -> Mechanism:
    """Project the noise, or make it on the null space of what is equal."""
    if problem.unequal is not None:
        raise Refused(
            f"{method} holds sums, exact figures and other equalities, and not bounds, orders or either: leave those "
            "out, or use given, onto or given-then-onto"
        )
    assert problem.equal is not None
    if method == "project" and problem.whole:
        raise Refused(f"{method} makes values that are not whole: write {REAL} in the table, or use given")
    if method == "project":
        return noise.onto(problem.equal, weights=None, integer=False)
    if problem.on_residuals:
        raise Refused(f"{method} makes noise of its own: leave residuals out, or use onto")
    law, kind = EXTENDED[method], noise.base.law.kind
    if not fits(method, kind):
        others = " or ".join(extensions(kind))
        budget = "noise: laplace" if kind == "gaussian" else "delta beside epsilon, or rho"
        raise Refused(f"{method} is not {kind.capitalize()} noise: write {budget} under privacy, or use {others}")
    if problem.shares is not None:
        raise Refused(f"{method} makes one law of noise for all levels: leave shares out, or use project")
    # Whole noise is made wide, and then brought to its budget: noise of about a step may be too slow to draw.
    amount: dict[str, Any] = {"rho": Fraction(1, 100) if problem.whole else 1} if law in GAUSSIAN else {"epsilon": 1}
    return extend(problem.query, problem.equal, law=law, neighbours=problem.neighbours, integer=problem.whole, **amount)


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
    if not (np.asarray(result.base.law.variances) > NEGLIGIBLE).all():
        raise Refused(NO_NOISE)
    return result


def evidence(mechanism: Mechanism) -> tuple[str, ...]:
    """How good noise made for exact figures is, in sentences; known from the law alone, never from data."""
    if mechanism.source.law is None:
        return ()
    known, notes = mechanism.evidence, mechanism.evidence.notes
    if np.isfinite(known.gap):
        above = max(known.objective / known.lower_bound - 1, 0)
        return (f"its total squared error is within {100 * above:.2g} % of the least of any Gaussian noise", *notes)
    return (
        (f"total squared errors at loss 1: {', '.join(notes)}",)
        if mechanism.source.law == "laplace" and notes
        else notes
    )


def lists_tables(mechanism: Mechanism) -> bool:
    """Whether drawing lists all possible tables, of which the data can allow too many."""
    return "enumeration" in mechanism.method.split(", ")
