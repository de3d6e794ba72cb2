"""The job: a spec with its public domain, every table's mechanism calibrated, and what all of them promise together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property

from holdfast.arguments import Refused
from holdfast.mechanism.correlated.over_time import AdditiveOverTime
from holdfast.mechanism.mechanism import Mechanism
from holdfast.mechanism.published.synthetic import NOT_COUNTS, cell_outputs
from holdfast.noise import Independent, IntegerGaussian
from holdfast.noise.over_time import Factor
from holdfast.noise.time_factors import Chosen, chosen, sums_of
from holdfast.privacy import Guarantee, best_first, compose, rho_for
from holdfast.privacy.guarantee import SCOPES
from holdfast.privacy.words import Learnable, Persons
from holdfast.queries import Neighbours
from holdfast.release.facts import ComparedMethod
from holdfast.release.job.choosing import Choice, choose, choose_among
from holdfast.release.job.errors import Errors, guessed
from holdfast.release.job.methods import OverTime, Problem, lists_tables
from holdfast.release.job.protecting import learnable, most, needed, outside_words, protection_of
from holdfast.release.job.sharing import residual_shares, shares_of
from holdfast.release.job.slices import Division, against_outsiders, division_of, shared_noise
from holdfast.release.job.steps import Moved
from holdfast.release.job.table import Table
from holdfast.release.job.unprotected import in_words, standing, unprotected
from holdfast.release.ledger.accounts import Unit
from holdfast.release.spec.origin import RECORDS, Origin, planned
from holdfast.release.spec.spec import Spec, public_part
from holdfast.release.standalone_verifier import facts
from holdfast.release.table.holding import Holding, derived
from holdfast.release.table.laid import Laid, laid
from holdfast.release.table.public import PublicFiles
from holdfast.release.table.shape import Layout
from holdfast.release.table.wording import words_about


@dataclass(frozen=True, eq=False)
class Job(Laid):
    """A spec ready to be released. Nothing in it was read from confidential data.

    `unprotected` says in words what no statement protects, `caveats` what a reader must know about the records, and
    `origin` how their rows are made.
    """

    tables: tuple[Table, ...]
    guarantees: tuple[Guarantee, ...]
    public_files: dict[str, str]
    unprotected: tuple[str, ...]
    caveats: tuple[str, ...]
    origin: Origin = RECORDS
    noise_over_time: Chosen | None = None

    @classmethod
    def from_spec(cls, spec: Spec) -> Job:
        """Read the public domain, choose methods and calibrate; refuse a job for which no statement holds."""
        return cls.of(*laid(spec))

    @classmethod
    def of(cls, shapes: Laid, files: PublicFiles, *, keeps: bool = False) -> Job:
        """The same for a spec whose tables are laid out; `keeps`: simulated errors are kept on this machine."""
        spec, origin = shapes.spec, planned(shapes.spec)
        tables = [(table.layout, table.holding) for table in shapes.tables]
        together = needed(tables, spec.privacy.neighbours)
        wanted = None if spec.time is None else _over_time(spec)
        choices = []
        for (shape, found), columns in zip(tables, together, strict=True):
            problem = _problem(shape, found, most(together))
            if wanted is not None:
                person = OverTime(wanted.factor, _several(spec), _kept(spec))
                problem = replace(problem, over_time=person)
            guess = guessed(shape, found, files)
            public = f"{spec.hash} {sorted(files.hashes.items())}" if keeps else None
            choices.append(Choice(shape, problem, found, guess, columns, derived(shape, found.holds.exact), public))
        made = _calibrated(spec, choices)
        _refuse_without_records(spec, made)
        statements = tuple(replace(each, columns=_learnable(spec, made, each)) for each in _joint(spec, made))
        open_ones = tuple(words for table in made for words in in_words(table.name, table.unprotected))
        told = caveats(spec, made, statements)
        job = cls(spec, made, statements, files.hashes, open_ones, told, noise_over_time=wanted)
        return job.reading(origin)

    def at_period(self, period: int, squares: Sequence[Sequence[str | None]], factor: Factor) -> Job:
        """The same job in another period of its series, from 0, with the noise that was fixed before the first one."""
        made = []
        for table, fixed in zip(self.tables, squares, strict=True):
            base = table.mechanism.base
            assert isinstance(base, AdditiveOverTime)
            of_first = replace(base, factor=factor, period=0)
            laws = [None if each is None else IntegerGaussian(Fraction(each) * factor.of_period(0)) for each in fixed]
            at = replace(of_first, law=Independent(tuple(laws), base.law.which, base.law.n)).at(period)
            made.append(replace(table, mechanism=table.mechanism.over(at), measured=None))
        return replace(self, tables=tuple(made))

    def reading(self, origin: Origin) -> Job:
        """The same job where rows are made in this way: every statement then assumes what is assumed of it."""
        if origin == self.origin:
            return self
        old, new = self.origin, origin
        made = tuple(table.assuming(old.assumes, new.assumes) for table in self.tables)
        told = [words for words in self.caveats if words not in old.told]
        joint = zip(_joint(self.spec, made), self.guarantees, strict=True)
        promised = tuple(replace(each, columns=same.columns) for each, same in joint)
        return replace(self, tables=made, guarantees=promised, caveats=(*told, *new.told), origin=new)

    @cached_property
    def guarantee(self) -> Guarantee:
        """What the whole release promises: the statement that the budget counts."""
        return self.guarantees[0]

    @cached_property
    def cost(self) -> tuple[Guarantee, ...]:
        """One statement per table; together they are `guarantee`."""
        return tuple(table.counted for table in self.tables)

    @cached_property
    def unit(self) -> str:
        """Whom the release protects, as the ledger counts it: persons by the column of the records."""
        unit = self.spec.privacy.unit
        if unit is not None and any(table.layout.kind.of_households for table in self.tables):
            return str(Unit(self.spec.person, 1))  # a household is one record of linked tables
        return str(Unit() if unit is None else Unit(self.spec.person, unit.records))

    @cached_property
    def neighbours(self) -> Neighbours:
        found = (table.problem.protected or table.problem.neighbours for table in self.tables)
        return max(found, key=lambda relation: relation.records)

    @cached_property
    def target(self) -> dict[str, Fraction]:
        return _target(self.spec)


def _table(
    choice: Choice, comparison: tuple[ComparedMethod, ...], mechanism: Mechanism, measured: Errors | None
) -> Table:
    """Say what a calibrated mechanism promises about its table; refuse what agents are to make and cannot."""
    laid, held, problem = choice.layout, choice.holding, choice.problem
    division, promised, first = division_of(laid), problem.statements(mechanism), problem.counted(mechanism)
    if division is not None:
        method = next(each.method for each in comparison if each.chosen)
        _refuse_undivided(laid.spec, held, mechanism, division, method)
        promised, first = tuple(map(against_outsiders, promised)), against_outsiders(first)
    more, persons = choice.more, _persons(laid)
    stands = standing(laid, held, more)
    return Table(
        laid.asked.name,
        laid,
        held,
        choice.problem,
        choice.guess,
        comparison,
        measured,
        mechanism,
        division,
        tuple(replace(each, unit=persons) for each in promised),
        replace(first, unit=persons),
        stands,
        more,
        unprotected(laid, held, mechanism, stands, more),
        protection_of(lambda k: problem.about(mechanism, k), choice.together, _kept(laid.spec)),
    )


def _several(spec: Spec) -> int:
    """In how many periods of a series a record, or all records of a person, may count."""
    assert spec.time is not None
    unit = spec.privacy.unit
    return 1 if unit is None else min(unit.max_periods or spec.time.count, spec.time.count)


def _over_time(spec: Spec) -> Chosen:
    """The noise that is best for the sums that a spec wants."""
    assert spec.time is not None
    spans = spec.time.spans
    try:
        wanted = sums_of(spec.time.count, spans, spec.time.weights)
    except Refused as refusal:
        raise spec.at["time"]["wanted"].refuse(str(refusal)) from None
    return chosen(wanted, [span for span in spans.values() if 1 < span < spec.time.count], _several(spec))


def _kept(spec: Spec) -> int:
    """How many records of a person are kept; 1 where records are protected."""
    return 1 if spec.privacy.unit is None else spec.privacy.unit.records


def _persons(laid: Layout) -> Persons | None:
    """The persons of a statement about a table; a household is one record of linked tables."""
    unit = laid.spec.privacy.unit
    return None if unit is None else Persons(unit.column, 1 if laid.kind.of_households else unit.records)


def _learnable(spec: Spec, tables: tuple[Table, ...], statement: Guarantee) -> tuple[Learnable, ...]:
    delta, kept = _target(spec).get("delta"), 1 if statement.unit is None else statement.unit.records
    return learnable(statement, tables, kept, lambda parts: _together(parts, delta))


def _refuse_undivided(spec: Spec, held: Holding, mechanism: Mechanism, division: Division, method: str) -> None:
    """Refuse a table that agents are to make and cannot."""
    at = spec.at["distributed"]
    if held.holds.linear or held.holds.either:
        raise at.refuse("no agent can test equals, at_least or either on its own records: leave these rules out")
    try:
        shared_noise(mechanism, division)
    except Refused as refusal:
        raise at.refuse(f"agents cannot make this table by method: {method} ({refusal})") from None
    if held.exact and not spec.accept_disclosure:
        raise at.refuse(
            "no agent sees which other figures the exact ones determine before they are published: write "
            "accept_disclosure: true, and gather will list them"
        )


def _refuse_without_records(spec: Spec, tables: tuple[Table, ...]) -> None:
    """Refuse synthetic records of a table that has none: one that is not whole, can be negative or lacks cells."""
    for table in tables if spec.written.records else ():
        holds, at = table.holding.holds, spec.at["output"]["records"]
        try:
            cell_outputs(table.layout.query)
        except Refused as refusal:
            raise at.refuse(f"{table.name}: {refusal}") from None
        adds_up = holds.consistent or table.layout.query.identity
        if not (holds.whole and holds.nonnegative and adds_up):
            raise at.refuse(f"{table.name}: {NOT_COUNTS}")


def _problem(laid: Layout, found: Holding, together: int) -> Problem:
    spec = laid.spec
    neighbours, whole = _neighbours(spec, found, together), laid.asked.numbers == "whole"
    if laid.kind.of_households:  # a record is a household with all its rows
        neighbours = Neighbours(spec.privacy.neighbours)
    moved = _moved(laid)
    if moved is not None:
        sums = Problem.of_sums(laid.query, found, neighbours, moved, whole=whole, scope=spec.privacy.scope)
        return sums.divided(shares_of(laid, sums, _laws(spec)[0]))
    alike = Problem(laid.query, found.equal, found.unequal, neighbours, None, whole, spec.privacy.scope)
    if laid.asked.residuals:
        _refuse_residuals(laid, found)
        return replace(alike, on_residuals=True, residuals=residual_shares(laid, neighbours))
    return alike.divided(shares_of(laid, alike, _laws(spec)[0]))


def _moved(laid: Layout) -> Moved | None:
    """What one record, or person, adds to a table of sums; None: records are counted."""
    unit, added = laid.spec.privacy.unit, laid.asked.sum_of
    low, high = (0, 1) if added is None else added.ends
    if unit is None or unit.max_groups is None:
        return None if added is None else Moved(low, high)
    if added is None and unit.max_records is not None:
        return Moved(0, unit.max_records)  # all of them may be in one cell
    return Moved(low, high, min(unit.max_groups, unit.max_records or unit.max_groups))


def _refuse_residuals(laid: Layout, found: Holding) -> None:
    """Refuse noise on residuals where nothing is proved about it, or nobody draws it."""
    spec, at = laid.spec, laid.at["residuals"]
    if "gaussian" not in _laws(spec):
        raise at.refuse("noise on residuals is Gaussian: ask for rho, or write delta beside epsilon, or leave it out")
    if found.exact:
        raise at.refuse("no statement is known for noise on residuals beside exact figures: leave one of them out")
    if spec.distributed is not None or spec.engine != "local":
        raise at.refuse("noise on residuals is drawn by one process: leave out residuals, or distributed and engine")


def _laws(spec: Spec) -> list[str]:
    """The laws of noise that come into question, for one table."""
    if spec.privacy.noise is not None:
        return [spec.privacy.noise]
    if spec.privacy.rho is not None or spec.time is not None:
        return ["gaussian"]
    return ["laplace"] if spec.privacy.delta is None else ["gaussian", "laplace"]


def _neighbours(spec: Spec, found: Holding, together: int) -> Neighbours:
    """Return which changes are hidden: those of a unit; where figures are exact, of as many as must change together.

    `together` is how many records change everything that can change at all in the tables of the job, where the spec
    does not say how many (THEORY §12).
    """
    privacy = spec.privacy
    one = 1 if privacy.unit is None else privacy.unit.records
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
    target, law = _target(spec), _laws(spec)[0]
    if len(choices) == 1 and choices[0].problem.protected is None:
        laws = ["gaussian"] if choices[0].problem.on_residuals else _laws(spec)
        return (_table(choices[0], *choose_among(choices[0], laws, lambda _: target)),)
    # Group privacy brings every table to the largest number of records that change together.
    first = [choice.problem.counted(choose(choice, law)) for choice in choices]
    records = max(statement.records for statement in first)
    whole_orders = any(statement.orders == "integer" for statement in first)
    total = Fraction(sum(Fraction(choice.layout.asked.share or 1) for choice in choices))
    tables = []
    for choice in choices:
        share = Fraction(choice.layout.asked.share or 1) / total

        def of_table(mechanism: Mechanism, choice: Choice = choice, share: Fraction = share) -> dict[str, Fraction]:
            steps = -(-records // choice.problem.counted(mechanism).records)
            if law == "laplace":
                amount = {"epsilon": share * target["epsilon"] / steps}
            elif "rho" in target:
                amount = {"rho": share * target["rho"] / steps**2}
            else:
                orders = "integer" if whole_orders else "all"
                amount = {"rho": share * Fraction(rho_for(target["epsilon"], target["delta"], orders)) / steps**2}
            return choice.problem.in_steps(mechanism, amount)

        tables.append(_table(choice, *choose_among(choice, [law], of_table)))
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
        if len(known) < len(parts) or all(part == table.counted for part, table in zip(parts, tables, strict=True)):
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


# --- what a reader must know besides the statements, in sentences ----------------------------------------------------

SHORTENED = (
    "sentences name the first figures of a long list only; the certificate lists the rows of all figures, by table"
)
SPELLED = (
    "some values of the records are read as the public names that a list of the curator's gives them; the statement "
    "takes the list as fixed, and it is not published"
)
LISTS = "a release fails where the data allow too many tables to list: that there is one tells that they do not"


def caveats(spec: Spec, tables: Sequence[Table], statements: Sequence[Guarantee]) -> tuple[str, ...]:
    """Say how the records behind the tables were treated, and what a reader must know of the methods."""
    exact = any(table.holding.exact for table in tables)
    about = facts.about_records(public_part(spec), spec.linked, statements[0].scope, exact)
    sentences = [*outside_words(tables, statements[0]), *about]
    if spec.data.count is not None:
        words = f"the rows are counted: {spec.data.count!r} says how many records each stands for"
        sentences.append(f"{words}, and what is protected is one of these records, not a row")
    if spec.data.spelling is not None:
        sentences.append(SPELLED)
    sentences += [words for table in tables for words in _not_measured(table)]
    if any(lists_tables(table.mechanism) for table in tables):
        sentences.append(LISTS)
    if any(" more (" in item for statement in statements for item in statement.unprotected):
        sentences.append(SHORTENED)
    return tuple(sentences)


def protected(spec: Spec, promised: Guarantee) -> str:
    """Say whom the release protects, and against which changes."""
    unit = spec.privacy.unit
    return facts.protected(None if unit is None else unit.model_dump(), spec.linked, promised.as_mapping())


def persons_together(spec: Spec, together: int, *, exact: bool) -> int:
    """How many persons change together: where figures are exact, one cannot come or go alone."""
    sharing = exact and spec.privacy.neighbours == "add-remove" and spec.privacy.scope == "invariant-sharing"
    return max(together, 2 if sharing else 1)


def _not_measured(table: Table) -> list[str]:
    """Name the levels or margins to which shares give nothing of the budget."""
    shares = table.problem.shares
    which = [repr(level) for level in table.layout.levels if shares is not None and not shares.get(level)]
    what = "level" if table.layout.tree is not None else "margin"
    told = f"no noisy answer is taken at the {what} {', '.join(which)}"
    return [words_about(table.name, f"{told}; its figures follow from the others")] if which else []
