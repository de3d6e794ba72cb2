"""What a release would promise and how wrong each figure will be, before any confidential data is read."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from decimal import Decimal, InvalidOperation
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from holdfast.arguments import Refused
from holdfast.pictures import Picture, bars, card, rows_of
from holdfast.privacy.odds import heading, in_hundred, promise_rows
from holdfast.randomness import seeded
from holdfast.release.disclosure.disclosure import so_far
from holdfast.release.error_targets import Accepted, accepted
from holdfast.release.explain import budget_of, foreseen
from holdfast.release.facts.table import Level
from holdfast.release.job.errors import SEED
from holdfast.release.job.job import Job
from holdfast.release.job.methods import evidence
from holdfast.release.job.sizes import public_answer
from holdfast.release.job.table import Table
from holdfast.release.ledger.ledger import Ledger
from holdfast.release.pieces.pieces import Pieces, Share
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
    accepted: Accepted | None = None
    spending: tuple[str, ...] = ()

    @property
    def tables(self) -> tuple[Table, ...]:
        return self.job.tables

    @cached_property
    def shares(self) -> tuple[Share, ...]:
        """How a cluster shares the work of each table, where one draws."""
        cluster = self.job.spec.engine == "spark"
        return tuple(Pieces.of(table.mechanism).share for table in self.job.tables) if cluster else ()

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
            "accepted": None if self.accepted is None else self.accepted.as_mapping(),
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
    ledger = Ledger(job.spec.ledger_file, job.spec.witness)
    past = ledger.past(job.dataset, job.unit)
    step("computing what exact figures give away")
    told = (*so_far(job, past.figures), *(words for table in job.tables for words in _each_category(table)))
    step("simulating the errors and timing one table")
    times = tuple(_seconds(table) for table in job.tables)
    _ = [table.levels for table in job.tables]  # measured now
    return Plan(job, times, told, accepted(job), tuple(foreseen(job, ledger, past)))


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
    mean = TYPICAL if asked is None else float(asked)
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


def amounts(parameter: str, text: str) -> tuple[Decimal, ...]:
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
    for number in numbers:
        privacy = spec.privacy.model_copy(update={parameter: number})
        jobs.append((number, Job.from_spec(spec.model_copy(update={"privacy": privacy}))))
    job = jobs[-1][1]
    account = Ledger(spec.ledger_file, spec.witness).account(job.dataset, job.unit)
    words = replace(account, budget=account.budget or budget_of(job)).words
    return WhatIf(spec.title, parameter, tuple(jobs), words)
