"""What a release would promise and how wrong each figure will be, before any confidential data is read."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from decimal import Decimal, InvalidOperation
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from holdfast.arguments import Refused, array, listed, whole
from holdfast.domains.data_frames import frame_of
from holdfast.mechanism.mechanism import DATA_DEPENDENT
from holdfast.pictures import Picture, bars, card, number, rows_of, table_of
from holdfast.privacy import Guarantee
from holdfast.privacy.odds import amounts, heading, in_hundred, promise_rows
from holdfast.queries import Query
from holdfast.randomness import Stream, seeded
from holdfast.release.certificate.load import LoadedRelease
from holdfast.release.disclosure.disclosure import so_far
from holdfast.release.explain import budget_of, foreseen
from holdfast.release.facts import Level
from holdfast.release.job.errors import SEED
from holdfast.release.job.job import Job
from holdfast.release.job.methods import evidence
from holdfast.release.job.table import Table, public_answer
from holdfast.release.ledger.ledger import Ledger
from holdfast.release.pieces.areas import share_of
from holdfast.release.pieces.passes import Share
from holdfast.release.spec.rules import Exactly
from holdfast.release.spec.sections import MOST_ASKED
from holdfast.release.spec.spec import Spec
from holdfast.release.table.laid import table_bytes
from holdfast.release.table.wording import sentence_about

#: Memory of the loaded library, as measured on releases of the examples and of nations of 81,000 and 270,000 blocks
#: (docs/reference/command.md).
BASE_BYTES = 340 * 2**20
#: Memory for one record of the source where the records of each person are chosen.
RECORD_BYTES = 500
#: The typical count of a cell for timing a table of which nobody guesses one.
TYPICAL = 10.0


@dataclass(frozen=True, eq=False, repr=False)
class Plan:
    """The plan of a job; `times`: seconds to draw each table, None where they cannot be told."""

    job: Job
    times: tuple[float | None, ...]
    disclosed: tuple[str, ...] = ()
    spending: tuple[str, ...] = ()

    @property
    def tables(self) -> tuple[Table, ...]:
        return self.job.tables

    @cached_property
    def shares(self) -> tuple[Share, ...]:
        """How a cluster shares the work of each table, where one draws."""
        cluster = self.job.spec.engine == "spark"
        return tuple(share_of(table.mechanism) for table in self.job.tables) if cluster else ()

    @property
    def seconds(self) -> float | None:
        """Time to draw all tables, measured on public guesses; None where it cannot be told."""
        known = [seconds for seconds in self.times if seconds is not None]
        return sum(known) if len(known) == len(self.times) else None

    @property
    def timed(self) -> str:
        """What `seconds` were measured on."""
        guessed = any(table.layout.asked.guess is not None for table in self.tables)
        return "counts of the guessed size" if guessed else f"counts of about {TYPICAL:.0f}, since none is guessed"

    @property
    def bytes(self) -> int:
        """Memory at the peak beside the records, estimated from the number of figures."""
        return BASE_BYTES + max(table_bytes(table.layout) for table in self.job.tables)

    @property
    def bytes_per_record(self) -> int:
        """Memory that every record of the source takes besides; a plan does not know how many there are."""
        return 0 if self.job.spec.privacy.unit is None else RECORD_BYTES

    @property
    def unprotected(self) -> tuple[str, ...]:
        """What is published exactly or not protected."""
        return self.job.unprotected

    def __repr__(self) -> str:
        lines = [f"Plan of {self.job.title!r}: {heading(self.job.guarantee)}"]
        for table in self.tables:
            what = sentence_about(table.name, f"{table.kind}, method {table.method}")
            lines.append(f"  {what}, expected absolute error by level:")
            lines += [f"    {level.level}: {_error(level)}" for level in table.levels]
        lines += [f"  not protected: {words}" for words in self.unprotected]
        return "\n".join(lines)

    def plot(self) -> Picture:
        """Draw the expected absolute error of every level; the line ends at half the width of 95 in 100 errors."""
        several = len(self.tables) > 1
        rows = [
            (f"{table.name}: {level.level}" if several else level.level, *level.errors)
            for table in self.tables
            for level in table.levels
        ]
        return bars(rows, "expected absolute error; the line reaches 95 in 100 errors")

    def _repr_html_(self) -> str:
        promised = {
            "promises": heading(self.job.guarantee),
            **promise_rows(self.job.guarantee),
            "methods": "; ".join(f"{table.name}: {table.method}" for table in self.tables),
            "not protected": "; ".join(self.unprotected),
        }
        return card("Plan", self.job.title, rows_of(promised), str(self.plot()))

    def as_mapping(self) -> dict[str, Any]:
        job = self.job
        return {
            "title": job.title,
            "spec_hash": job.spec.hash,
            "dataset": job.dataset,
            "unit": job.unit,
            "neighbours": {"kind": job.neighbours.kind, "records": job.neighbours.records},
            "asked": {name: str(value) for name, value in job.target.items()},
            "statements": [statement.as_mapping() for statement in job.guarantees],
            "in_words": [str(statement) for statement in job.guarantees],
            "unprotected": list(self.unprotected),
            "disclosed": list(self.disclosed),
            "caveats": list(job.caveats),
            "spending": list(self.spending),
            "seconds_to_draw": self.seconds,
            "bytes_at_peak": self.bytes,
            "bytes_per_record": self.bytes_per_record,
            "cluster": [asdict(share) for share in self.shares],
            "tables": [_as_mapping(table) for table in self.tables],
        }


def _error(level: Level) -> str:
    error = level.expected_absolute_error
    known = "unknown" if error is None else f"{error:,.3g}"
    return f"exact ({level.in_words.removeprefix('none: ')})" if level.exact else known


def _as_mapping(table: Table) -> dict[str, Any]:
    return {
        "name": table.name,
        "kind": table.kind,
        "method": table.method,
        "ways": table.ways,
        "levels": [level.model_dump(mode="json") for level in table.levels],
        "evidence": list(evidence(table.mechanism)),
        "errors_known": table.errors.basis,
        "simulated_tables": table.errors.tables,
        "published_exactly": list(table.holding.exact),
        "unprotected": [each.model_dump(mode="json") for each in table.unprotected],
        "protects": None if table.protects is None else table.protects.as_mapping(),
        "statements": [statement.as_mapping() for statement in table.guarantees],
        "comparison": [each.model_dump() for each in table.comparison],
    }


def plan(job: Job, step: Callable[[str], None] = lambda _: None) -> Plan:
    """Plan a job from its spec and public guesses; `step` is told what happens next."""
    _ = Plan(job, ()).shares  # what a cluster does not draw is refused first
    ledger = Ledger(job.spec.ledger_file, job.spec.witness)
    past = ledger.past(job.dataset, job.unit)
    step("computing what exact figures give away")
    told = (*so_far(job, past.figures), *(words for table in job.tables for words in _each_category(table)))
    step("simulating the errors and timing one table")
    times = tuple(_seconds(table) for table in job.tables)
    _ = [table.levels for table in job.tables]  # measured now
    return Plan(job, times, told, tuple(foreseen(job, ledger, past)))


def _each_category(table: Table) -> list[str]:
    """Say of a level or node that is exact in every category how its totals alone would be."""
    asked = table.layout.asked
    rules = [rule for rule in asked.hold if rule.rule == "exact" and asked.categories]
    named = [item for rule in rules for item in rule.exact if not isinstance(item, Exactly | dict)]
    texts = (item if isinstance(item, str) else "[" + ", ".join(map(str, item)) + "]" for item in named)
    said = f"is exact for each {' and '.join(asked.categories)}; totals alone are"
    return [f"{text} {said} {{of: {text}, by: []}}." for text in texts]


def _seconds(table: Table) -> float | None:
    """Time one simulated release of uneven counts: those of a table whose counts are all alike are drawn faster."""
    truth = _uneven(table)
    start = time.perf_counter()
    try:
        table.mechanism.simulate(truth, 1, seeded(SEED))
    except Refused:
        return None
    return time.perf_counter() - start


def _uneven(table: Table) -> npt.NDArray[np.int64]:
    """The guess of the spec if it is a whole table, or else public counts that vary as much as a typical one is large.

    Where these would violate what must hold, the guess or an empty table.
    """
    asked, cells = table.layout.asked.guess, table.layout.query.cells
    otherwise = np.zeros(table.layout.query.n, dtype=np.int64) if table.guess is None else table.guess
    if isinstance(asked, str) or cells is None:
        return otherwise
    mean = (TYPICAL if asked is None else float(asked)) * table.layout.asked.typical
    counts = np.random.default_rng(SEED).exponential(mean, cells).astype(np.int64)
    found = public_answer(table, counts)
    return otherwise if found is None else found


# --- other budgets ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class WhatIf:
    """The same job at several budgets, before anything is read or spent; `parameter` is epsilon or rho."""

    title: str
    parameter: str
    jobs: tuple[tuple[Decimal, Job], ...]
    spent: str

    def as_mapping(self) -> dict[str, Any]:
        budgets = [
            {
                self.parameter: float(amount),
                "right_guesses_in_100": in_hundred(job.guarantee),
                "statement": job.guarantee.as_mapping(),
                "tables": [
                    {
                        "name": table.name,
                        "method": table.method,
                        "error_bars": bool(table.chosen.error_bars),
                        "levels": [level.model_dump(mode="json") for level in table.levels],
                    }
                    for table in job.tables
                ],
            }
            for amount, job in self.jobs
        ]
        return {"title": self.title, "parameter": self.parameter, "spent": self.spent, "budgets": budgets}


def read_amounts(parameter: str, text: str) -> tuple[Decimal, ...]:
    found = []
    for part in text.split(","):
        try:
            number = Decimal(part.strip())
        except InvalidOperation:
            raise Refused(
                f"{parameter} must be numbers with commas between them, such as 0.5,1,2; found {part!r}"
            ) from None
        if not 0 < number <= MOST_ASKED:
            raise Refused(f"{parameter} must be above 0 and at most {MOST_ASKED}, found {part.strip()}")
        found.append(number)
    return tuple(found)


def what_if(spec: Spec, parameter: str, numbers: Sequence[Decimal]) -> WhatIf:
    """Plan a spec at other budgets: methods are chosen and calibrated anew for each."""
    if getattr(spec.privacy, parameter) is None:
        other = "rho" if parameter == "epsilon" else "epsilon"
        raise Refused(f"the spec asks for {other}: use --{other} in place of --{parameter}")
    jobs = []
    for amount in numbers:
        privacy = spec.privacy.model_copy(update={parameter: amount})
        jobs.append((amount, Job.from_spec(spec.model_copy(update={"privacy": privacy}))))
    job = jobs[-1][1]
    account = Ledger(spec.ledger_file, spec.witness).account(job.dataset, job.unit)
    words = replace(account, budget=account.budget or budget_of(job)).words
    return WhatIf(spec.title, parameter, tuple(jobs), words)


# --- mechanisms, plans and releases side by side: what each promises, how wrong it is by level, what it leaves open

EXPECTED = "a list of mechanisms, plans, releases or functions"


@dataclass(frozen=True)
class Compared:
    """One of those compared. `errors`: expected absolute error by level, infinite where nobody can tell it.

    `guarantee` is None for a function, of which only the errors are known.
    """

    name: str
    guarantee: Guarantee | None
    errors: Mapping[str, float]
    unprotected: tuple[str, ...]


@dataclass(frozen=True)
class Comparison:
    """Several mechanisms, plans or releases side by side."""

    rows: tuple[Compared, ...]

    @property
    def levels(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(level for row in self.rows for level in row.errors))

    def frame(self, backend: str | None = None) -> Any:
        """Return a data frame with one row per name and level; `backend` as in `Release.to_frame`."""
        pairs = [(row, level) for row in self.rows for level in row.errors]
        columns: dict[str, Any] = {"name": [row.name for row, _ in pairs], "level": [level for _, level in pairs]}
        columns["expected_absolute_error"] = [_known(row.errors[level]) for row, level in pairs]
        for field in ("epsilon", "delta", "rho", "mu", "scope", "status"):
            columns[field] = [getattr(row.guarantee, field, None) for row, _ in pairs]
        columns["records"] = [getattr(row.guarantee, "records", None) for row, _ in pairs]
        columns["right_guesses_in_100"] = [row.guarantee and in_hundred(row.guarantee) for row, _ in pairs]
        columns["unprotected"] = ["; ".join(row.unprotected) for row, _ in pairs]
        return frame_of(columns, backend)

    def plot(self) -> Picture:
        """Draw the expected absolute errors, level by level; the least of each level stands out."""
        pairs = [(row, level) for level in self.levels for row in self.rows if level in row.errors]
        rows = [
            (f"{level}: {row.name}" if len(self.levels) > 1 else row.name, row.errors[level], 0.0)
            for row, level in pairs
        ]
        least = {level: min(row.errors[level] for row, its in pairs if its == level) for level in self.levels}
        best = [i for i, (row, level) in enumerate(pairs) if row.errors[level] == least[level]]
        if len(best) == len(pairs):
            return bars(rows, "expected absolute error")
        dark = "the least of its level" if len(self.levels) > 1 else "the least"
        return bars(rows, f"expected absolute error; dark: {dark}", best)

    def __repr__(self) -> str:
        told = (
            f"{row.name}: {', '.join(f'{level} {number(error)}' for level, error in row.errors.items())}"
            for row in self.rows
        )
        return f"<Comparison of expected absolute errors: {'; '.join(told)}>"

    def __str__(self) -> str:
        """A table for a terminal: a line for each, with its expected absolute error by level."""
        lines = [tuple(line[:-1]) for line in (self._head, *self._lines)]
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        return "\n".join("  ".join(map(str.ljust, line, widths)).rstrip() for line in lines)

    def _repr_html_(self) -> str:
        table = table_of(self._head, self._lines)
        return card("Comparison", "expected absolute error by level", table, str(self.plot()))

    @property
    def _head(self) -> tuple[str, ...]:
        return ("", *self.levels, "promises", "not protected")

    @property
    def _lines(self) -> list[tuple[str, ...]]:
        return [
            (
                row.name,
                *(number(row.errors[level]) if level in row.errors else "" for level in self.levels),
                ", ".join(f"{sign} = {amount}" for sign, amount in amounts(row.guarantee)) if row.guarantee else "?",
                "; ".join(row.unprotected) or ("nothing is exact" if row.guarantee else "?"),
            )
            for row in self.rows
        ]


def compare(
    items: Sequence[object] | Mapping[str, object],
    truth: npt.ArrayLike | None = None,
    size: int = 400,
    rng: Stream | None = None,
) -> Comparison:
    """Compare mechanisms, plans (`hf.job(spec).plan()`) and releases (`hf.load(folder)`), side by side.

    Args:
        items: what is compared; a mapping gives them names. A function of your own takes the truth and returns values
            in its place; its errors are measured, and nothing is said about its promise.
        truth: a public or a study's table, on which errors of mechanisms are measured; None: of the noise itself, where
            its law does not depend on the data.
        size: how many simulated releases.
        rng: None is a fixed seed.

    Example:
        >>> import holdfast as hf
        >>> tree = hf.Hierarchy.from_parents([-1, 0, 0])
        >>> plain = hf.laplace(hf.counts(tree), epsilon=1)
        >>> hf.compare({"plain": plain, "adds up": plain.given(hf.consistent(tree))}).levels
        ('level 0', 'level 1')
    """
    named = items.items() if isinstance(items, Mapping) else [(None, item) for item in listed("items", items, EXPECTED)]
    count = whole("size", size, at_least=1)
    found: list[Compared] = []
    query = next((item.query for _, item in named if hasattr(item, "query")), None)
    for name, item in named:
        for row in _rows(item, truth, count, seeded(SEED) if rng is None else rng, query):
            called = row.name if name is None else f"{name}: {row.name}" if _several(item) else str(name)
            taken = sum(each.name == called or each.name.startswith(f"{called} #") for each in found)
            unlike = f"{called} #{taken + 1}" if taken else called
            found.append(Compared(unlike, row.guarantee, row.errors, row.unprotected))
    if not found:
        raise Refused("items must hold at least one mechanism, plan or release, found none")
    return Comparison(tuple(found))


def _several(item: Any) -> bool:
    return isinstance(item, (Plan, LoadedRelease)) and len(item.tables) > 1


def _rows(item: Any, truth: Any, size: int, stream: Stream, query: Query | None) -> list[Compared]:
    """What one of those compared says, one row per table."""
    if isinstance(item, Plan):
        return [
            Compared(
                table.name if _several(item) else item.job.title,
                table.statements[0],
                {level.level: level.errors[0] for level in table.levels},
                tuple(map(str, table.unprotected)),
            )
            for table in item.tables
        ]
    if isinstance(item, LoadedRelease):
        return [
            Compared(
                table.name if _several(item) else item.certificate.title,
                table.statements[0],
                {level.level: level.errors[0] for level in table.noise_by_level},
                tuple(f"{each.level} ({each.figures:,} of {each.of:,} figures)" for each in table.unprotected),
            )
            for table in item.certificate.tables
        ]
    if callable(item) and not isinstance(item, type):
        if truth is None:
            raise Refused("the errors of a function are measured on a table: give truth")
        drawn = [item(np.array(truth)) for _ in range(size)]
        return [Compared(getattr(item, "__name__", "function"), None, _by_level(drawn, truth, query), ())]
    if not hasattr(item, "simulate") or not hasattr(item, "guarantee"):
        raise Refused(f"items must be mechanisms, plans, releases or functions, found {type(item).__name__}")
    statement: Guarantee = item.guarantee
    return [Compared(_short(item), statement, _errors(item, truth, size, stream), statement.unprotected)]


def _short(mechanism: Any) -> str:
    return repr(mechanism).strip("<>").partition(": ")[2] or repr(mechanism)


def _errors(mechanism: Any, truth: Any, size: int, stream: Stream) -> dict[str, float]:
    """Mean absolute errors by level, measured; infinite where they depend on the data and no truth is given."""
    query = mechanism.query
    if truth is not None:
        return _by_level(mechanism.simulate(truth, size, stream), truth, query)
    try:
        return _by_level(mechanism.noise(size, stream), np.zeros(query.n), query)
    except Refused as refusal:
        if str(refusal) != DATA_DEPENDENT:
            raise
        return dict.fromkeys(["all figures"] if query.levels is None else dict(query.levels), math.inf)


def _by_level(drawn: Sequence[object] | npt.NDArray[Any], truth: Any, query: Query | None) -> dict[str, float]:
    """Mean absolute errors of tables that were drawn for a true one."""
    exact = np.asarray(truth)
    values = array("values", drawn)
    if values.shape != (len(drawn), *exact.shape):
        raise Refused(f"each result must have a value for every true one, {exact.shape}, found {values.shape[1:]}")
    absolute = np.abs(values - exact).mean(axis=0)
    if query is None or query.levels is None or query.level_of is None or query.n != exact.size:
        return {"all figures": float(absolute.mean())}
    return {name: float(absolute[query.level_of == number].mean()) for name, number in dict(query.levels).items()}


def _known(error: float) -> float | None:
    return None if math.isinf(error) else error
