"""The job: a spec with its public domain, every table's mechanism calibrated, and what all of them promise together."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from holdfast.arguments import Refused
from holdfast.constraints import Constraint
from holdfast.mechanism.mechanism import Mechanism
from holdfast.privacy import Guarantee, best_first, compose, rho_for
from holdfast.privacy.guarantee import SCOPES
from holdfast.privacy.protection import Protection
from holdfast.queries import Neighbours, Query
from holdfast.release.job.caveats import caveats, persons_together
from holdfast.release.job.choosing import Choice, Compared, choose, choose_among
from holdfast.release.job.errors import Errors, errors, guessed
from holdfast.release.job.methods import MOVES, Problem, counted
from holdfast.release.job.protecting import most, needed, protection_of
from holdfast.release.job.slices import shared_noise
from holdfast.release.job.unprotected import Unprotected, in_words, unprotected
from holdfast.release.ledger.units import Unit
from holdfast.release.spec.spec import Spec
from holdfast.release.table.division import Division, against_outsiders, division_of
from holdfast.release.table.domain import Key, Layout, layout
from holdfast.release.table.holding import Holding, holding
from holdfast.release.table.public import PublicFiles, Texts


@dataclass(frozen=True, eq=False)
class Table:
    """One table of a job: its public shape, what must hold, and the mechanism that makes it."""

    choice: Choice
    comparison: tuple[Compared, ...]
    mechanism: Mechanism

    @property
    def name(self) -> str:
        """The name of its files."""
        return self.layout.asked.name

    @property
    def layout(self) -> Layout:
        """Its public shape."""
        return self.choice.layout

    @property
    def holding(self) -> Holding:
        """What must hold in it."""
        return self.choice.holding

    @property
    def problem(self) -> Problem:
        """What its method must respect."""
        return self.choice.problem

    @property
    def guess(self) -> npt.NDArray[np.int64] | None:
        """The answer for the public guess of the spec."""
        return self.choice.guess

    @property
    def chosen(self) -> Compared:
        """The method that was chosen among those compared."""
        return next(each for each in self.comparison if each.chosen)

    @property
    def method(self) -> str:
        """The method that makes it."""
        return self.chosen.method

    @property
    def noise(self) -> str:
        """The law of its noise."""
        return self.chosen.noise

    @cached_property
    def counted(self) -> Guarantee:
        """The statement that the budget counts."""
        found = counted(self.mechanism, self.problem.scope)
        if self.division is None:
            return found
        (same,) = against_outsiders(self.mechanism, [found])
        return next(each for each in self.guarantees if each == same)

    @cached_property
    def guarantees(self) -> tuple[Guarantee, ...]:
        """Every statement that holds."""
        found = self.mechanism.guarantees
        return found if self.division is None else against_outsiders(self.mechanism, found)

    @cached_property
    def division(self) -> Division | None:
        """Who makes the table, where agents do."""
        return division_of(self.layout)

    @property
    def kind(self) -> str:
        """What the table is: hierarchy, histogram or cube."""
        return self.layout.asked.kind

    @property
    def query(self) -> Query:
        """What is asked."""
        return self.layout.query

    @property
    def keys(self) -> tuple[Key, ...]:
        """How records are addressed."""
        return self.layout.keys

    @property
    def columns(self) -> dict[str, Texts]:
        """The public names of every output, in output order; None where something is summed over."""
        return self.layout.columns

    @property
    def levels(self) -> tuple[str, ...]:
        """The names of the levels or margins."""
        return self.layout.levels

    @property
    def level_of(self) -> npt.NDArray[np.int64]:
        """The number of each output's level or margin."""
        return self.layout.level_of

    @property
    def unmeasured(self) -> tuple[str, ...]:
        """The levels or margins to which `shares` gives nothing of the budget."""
        shares = self.problem.shares
        return () if shares is None else tuple(level for level in self.levels if not shares.get(level))

    @property
    def constraint(self) -> Constraint | None:
        """Everything that must hold."""
        return self.holding.all

    @property
    def holds(self) -> dict[str, Any]:
        """What must hold, in plain values, for certificates."""
        return self.holding.account

    @property
    def onto(self) -> bool:
        """Whether the values are a function of noisy measurements, which may then be published too."""
        return self.method in MOVES

    @cached_property
    def unprotected(self) -> tuple[Unprotected, ...]:
        """Everything in the table that no statement protects."""
        return unprotected(self)

    @cached_property
    def protects(self) -> Protection | None:
        """How many records must change together, column by column, and how strongly that is hidden (THEORY §12).

        None where no figure is exact.
        """
        return protection_of(self)

    @cached_property
    def errors(self) -> Errors:
        """Expected errors per level, measured on simulated tables when first asked for."""
        return self.chosen.errors or errors(self.layout, self.problem, self.mechanism, self.method, self.guess)


@dataclass(frozen=True, eq=False)
class Job:
    """A spec ready to be released. Nothing in it was read from confidential data."""

    spec: Spec
    tables: tuple[Table, ...]
    guarantees: tuple[Guarantee, ...]
    public_files: dict[str, str]

    @classmethod
    def from_spec(cls, spec: Spec) -> Job:
        """Read the public domain, choose methods and calibrate; refuse a job for which no statement holds."""
        files = PublicFiles(spec.data, spec.at["data"])
        listed = zip(spec.tables, spec.places_of_tables, strict=True)
        tables = [(laid, holding(laid)) for laid in (layout(spec, asked, at, files) for asked, at in listed)]
        together = needed(tables, spec.privacy.neighbours)
        choices = []
        for (laid, found), columns in zip(tables, together, strict=True):
            problem = _problem(laid, found, most(together))
            choices.append(Choice(laid, problem, found, guessed(laid, found, files), columns))
        _refuse_unused(spec)
        made = _calibrated(spec, choices)
        for table in made:
            _refuse_undivided(spec, table)
        return cls(spec, made, _joint(spec, made), files.hashes)

    @property
    def title(self) -> str:
        """The title of the release."""
        return self.spec.title

    @property
    def guarantee(self) -> Guarantee:
        """What the whole release promises: the statement that the budget counts."""
        return self.guarantees[0]

    @property
    def cost(self) -> tuple[Guarantee, ...]:
        """One statement per table; together they are `guarantee`."""
        return tuple(table.counted for table in self.tables)

    @property
    def dataset(self) -> str:
        """The name under which the ledger counts what is spent."""
        data = self.spec.data
        if data.name is not None:
            return data.name
        if data.source is None:
            raise self.spec.at["data"].refuse("a dataset without a source needs data.name, its name in the ledger")
        return str(self.spec.resolve(data.source))

    @property
    def unit(self) -> str:
        """Whom the release protects, as the ledger counts it: persons by the column of the records."""
        unit = self.spec.privacy.unit
        return str(Unit() if unit is None else Unit(self.spec.person, unit.max_records))

    @property
    def neighbours(self) -> Neighbours:
        """Which changes of the data are hidden."""
        return max((table.problem.neighbours for table in self.tables), key=lambda relation: relation.records)

    @property
    def target(self) -> dict[str, Fraction]:
        """What the spec asks for in total."""
        return _target(self.spec)

    @property
    def unprotected(self) -> tuple[str, ...]:
        """Everything that no statement protects, in words."""
        return tuple(words for table in self.tables for words in in_words(table.name, table.unprotected))

    @property
    def caveats(self) -> tuple[str, ...]:
        """What a reader must know about the records behind the tables, in sentences."""
        return caveats(self)


def _refuse_undivided(spec: Spec, table: Table) -> None:
    """Refuse a table that agents are to make and cannot."""
    if table.division is None:
        return
    if not table.mechanism.base.law.integer:
        sentence = "agents make whole numbers, and the noise of this table is real: write numbers: whole in the table"
        raise spec.at["distributed"].refuse(sentence)
    if table.holding.account["linear"] or table.holding.account["either"]:
        sentence = "no agent can test equals, at_least or either on its own records: leave these rules out"
        raise spec.at["distributed"].refuse(sentence)
    try:
        shared_noise(table.mechanism, table.division)
        _ = table.counted
    except Refused as refusal:
        raise spec.at["distributed"].refuse(
            f"agents cannot make this table by method: {table.method} ({refusal})"
        ) from None
    if table.holding.exact and not spec.accept_disclosure:
        sentence = (
            "no agent sees which other figures the exact ones determine before they are published: write "
            "accept_disclosure: true, and gather will list them"
        )
        raise spec.at["distributed"].refuse(sentence)


def _refuse_unused(spec: Spec) -> None:
    """Refuse another name for a column that no table has: most likely it is misspelt."""
    listed = ((*(asked.hierarchy or asked.cube or (asked.histogram,)), *asked.categories) for asked in spec.tables)
    used = [column for columns in listed for column in columns]
    if spec.privacy.unit is not None:
        used.append(spec.privacy.unit.column)
    for column in spec.data.columns:
        if column not in used:
            sentence = f"neither a table nor privacy.unit has a column {column!r}"
            raise spec.at["data"]["columns"][column].refuse(sentence, column, used)


def _problem(laid: Layout, found: Holding, together: int) -> Problem:
    spec, asked = laid.spec, laid.asked
    shares = None
    if asked.shares is not None:
        at = laid.at["shares"]
        if len(laid.levels) == 1:
            raise at.refuse("shares divide the budget over levels or margins, and this table has only one")
        shares = {laid.level(name, at[name]): Fraction(value) for name, value in asked.shares.items()}
        if not any(shares.values()):
            raise at.refuse("every share is 0, so nothing would be measured: give one level or margin more")
    whole = asked.numbers == "whole"
    return Problem(
        laid.query, found.equal, found.unequal, _neighbours(spec, found, together), shares, whole, spec.privacy.scope
    )


def _neighbours(spec: Spec, found: Holding, together: int) -> Neighbours:
    """Return which changes are hidden: those of a unit; where figures are exact, of as many as must change together.

    `together` is how many records change everything that can change at all in the tables of the job, where the spec
    does not say how many (THEORY §12).
    """
    privacy = spec.privacy
    one = 1 if privacy.unit is None else privacy.unit.max_records
    many = persons_together(spec, together, exact=bool(found.exact)) if privacy.unit is not None else together
    if privacy.scope == "subspace":
        many = 1
    return Neighbours(privacy.neighbours, records=one * (privacy.records or many))


def _target(spec: Spec) -> dict[str, Fraction]:
    privacy = spec.privacy
    given = {"epsilon": privacy.epsilon, "delta": privacy.delta, "rho": privacy.rho}
    return {name: Fraction(value) for name, value in given.items() if value is not None}


def _calibrated(spec: Spec, choices: list[Choice]) -> tuple[Table, ...]:
    """Choose a method for each table and calibrate it at its share of the budget."""
    target, law = _target(spec), spec.privacy.noise
    if len(choices) == 1:
        laws = [law] if law else ["gaussian"] if "rho" in target else ["laplace"]
        if law is None and "delta" in target:
            laws = ["gaussian", "laplace"]
        return (Table(choices[0], *choose_among(choices[0], laws, lambda _: target)),)
    law = law or ("laplace" if set(target) == {"epsilon"} else "gaussian")
    # Group privacy brings every table to the largest number of records that change together.
    first = [choose(choice, law) for choice in choices]
    records = max(counted(mechanism, spec.privacy.scope).records for mechanism in first)
    whole_orders = any(counted(mechanism, spec.privacy.scope).orders == "integer" for mechanism in first)
    total = Fraction(sum(Fraction(choice.layout.asked.share or 1) for choice in choices))
    tables = []
    for choice in choices:
        share = Fraction(choice.layout.asked.share or 1) / total

        def of_table(mechanism: Mechanism, share: Fraction = share) -> dict[str, Fraction]:
            steps = -(-records // counted(mechanism, spec.privacy.scope).records)
            if law == "laplace":
                return {"epsilon": share * target["epsilon"] / steps}
            if "rho" in target:
                return {"rho": share * target["rho"] / steps**2}
            orders = "integer" if whole_orders else "all"
            return {"rho": share * Fraction(rho_for(target["epsilon"], target["delta"], orders)) / steps**2}

        tables.append(Table(choice, *choose_among(choice, [law], of_table)))
    return tuple(tables)


def _joint(spec: Spec, tables: tuple[Table, ...]) -> tuple[Guarantee, ...]:
    """Every statement about all tables together: the counted one first, then the others, best first."""
    delta = _target(spec).get("delta")
    try:
        first = _together([table.counted for table in tables], delta)
    except Refused as refusal:
        sentence = f"the tables together promise nothing that can be stated ({refusal}): release them in separate jobs"
        raise spec.at["tables"].refuse(sentence) from None
    others = []
    for scope in SCOPES:
        parts = [_of_scope(table, scope) for table in tables]
        known = [part for part in parts if part is not None]
        if len(known) < len(parts) or all(part is table.counted for part, table in zip(parts, tables, strict=True)):
            continue
        try:
            others.append(_together(known, delta))
        except Refused:
            continue  # not every scope can be composed; the counted one was
    return (first, *best_first(dict.fromkeys(others)))


def _of_scope(table: Table, scope: str) -> Guarantee | None:
    """The table's statement of a scope, or the one about all neighbours, which covers every scope."""
    holds = [each for each in table.guarantees if not each.void]
    return next((each for each in holds if each.scope == scope), next((g for g in holds if g.scope == "all"), None))


def _together(parts: list[Guarantee], delta: Fraction | None) -> Guarantee:
    if delta is None:
        return parts[0] if len(parts) == 1 else compose(parts)
    return parts[0].at_delta(delta) if len(parts) == 1 else compose(parts, delta=delta)
