"""What a release would promise and how wrong each figure will be, before any confidential data is read."""

from __future__ import annotations

import math
import time
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from holdfast.arguments import Refused
from holdfast.pictures import Picture, bars, card, rows_of
from holdfast.privacy import Guarantee
from holdfast.privacy.odds import heading, promise_rows
from holdfast.privacy.protection import Protection
from holdfast.randomness import seeded
from holdfast.release.disclosure.disclosure import so_far
from holdfast.release.job.choosing import Compared
from holdfast.release.job.errors import SEED
from holdfast.release.job.job import Job
from holdfast.release.job.levels import Level, levels_of
from holdfast.release.job.methods import evidence
from holdfast.release.job.sizes import public_answer
from holdfast.release.job.table import Table
from holdfast.release.job.unprotected import Unprotected
from holdfast.release.ledger.ledger import Ledger
from holdfast.release.pieces.whole import Pieces, Share
from holdfast.release.spending import foreseen
from holdfast.release.table.laying import figure_bytes
from holdfast.release.table.wording import sentence_about
from holdfast.release.wanted.accepting import Accepted, accepted

#: Memory of the loaded library, as measured on releases of the examples and of nations of 81,000 and 270,000 blocks
#: (docs/reference/command.md); and of one cell of one area where cells are shared out.
BASE_BYTES, CELL_BYTES = 340 * 2**20, 24
#: Memory for one record of the source where the records of each person are chosen.
RECORD_BYTES = 500
#: The typical count of a cell for timing a table of which nobody guesses one.
TYPICAL = 10.0


@dataclass(frozen=True, eq=False)
class TablePlan:
    """One table: what is known about its errors, and what it promises by itself."""

    name: str
    kind: str
    method: str
    ways: str
    levels: tuple[Level, ...]
    basis: str
    simulated: int
    statements: tuple[Guarantee, ...]
    exact: tuple[str, ...]
    unprotected: tuple[Unprotected, ...]
    comparison: tuple[Compared, ...]
    seconds: float | None
    evidence: tuple[str, ...] = ()
    protects: Protection | None = None


def table_bytes(table: Table) -> int:
    """The memory of a table's figures with their names, and of the cells of all areas that are shared out."""
    listed = [each.areas for each in (table.layout, *table.layout.parts)]
    cells = sum(each.hierarchy.n * each.table.cells for each in listed if each is not None)
    return figure_bytes(table.layout) * table.layout.query.n + CELL_BYTES * cells


@dataclass(frozen=True, eq=False, repr=False)
class Plan:
    """The plan of a job."""

    job: Job
    tables: tuple[TablePlan, ...]
    disclosed: tuple[str, ...] = ()
    accepted: Accepted | None = None
    spending: tuple[str, ...] = ()

    @cached_property
    def shares(self) -> tuple[Share, ...]:
        """How a cluster shares the work of each table, where one draws."""
        cluster = self.job.spec.engine == "spark"
        return tuple(Pieces.of(table.mechanism).share for table in self.job.tables) if cluster else ()

    @property
    def seconds(self) -> float | None:
        """Time to draw all tables, measured on public guesses; None where it cannot be told."""
        known = [table.seconds for table in self.tables if table.seconds is not None]
        return sum(known) if len(known) == len(self.tables) else None

    @property
    def timed(self) -> str:
        """What `seconds` were measured on."""
        guessed = any(table.layout.asked.guess is not None for table in self.job.tables)
        return "counts of the guessed size" if guessed else f"counts of about {TYPICAL:.0f}, since none is guessed"

    @property
    def bytes(self) -> int:
        """Memory at the peak beside the records, estimated from the number of figures."""
        return BASE_BYTES + max(table_bytes(table) for table in self.job.tables)

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
            lines += [f"    {level.name}: {_error(level)}" for level in table.levels]
        lines += [f"  not protected: {words}" for words in self.unprotected]
        return "\n".join(lines)

    def plot(self) -> Picture:
        """Draw the expected absolute error of every level; the line ends at half the width of 95 in 100 errors."""
        several = len(self.tables) > 1
        rows = [
            (f"{table.name}: {level.name}" if several else level.name, level.absolute_error, level.interval_width / 2)
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
        """Return plain values that JSON can hold."""
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
    known = "unknown" if math.isinf(level.absolute_error) else f"{level.absolute_error:,.3g}"
    return f"exact ({level.noise.removeprefix('none: ')})" if level.exact else known


def _as_mapping(table: TablePlan) -> dict[str, Any]:
    return {
        "name": table.name,
        "kind": table.kind,
        "method": table.method,
        "ways": table.ways,
        "levels": [level.as_mapping() for level in table.levels],
        "evidence": list(table.evidence),
        "errors_known": table.basis,
        "simulated_tables": table.simulated,
        "published_exactly": list(table.exact),
        "unprotected": [each.as_mapping() for each in table.unprotected],
        "protects": None if table.protects is None else table.protects.as_mapping(),
        "statements": [statement.as_mapping() for statement in table.statements],
        "comparison": [each.as_mapping() for each in table.comparison],
    }


def plan(job: Job) -> Plan:
    """Plan a job from its spec and public guesses."""
    ledger = Ledger(job.spec.ledger_file, job.spec.witness)
    past = ledger.past(job.dataset, job.unit)
    told = tuple(so_far(job, past.figures))
    tables = tuple(_planned(table) for table in job.tables)
    return Plan(job, tables, told, accepted(job), tuple(foreseen(job, ledger, past)))


def _planned(table: Table) -> TablePlan:
    found = table.errors
    return TablePlan(
        table.name,
        table.layout.asked.kind,
        table.chosen.method,
        table.mechanism.method,
        levels_of(table),
        found.basis,
        found.tables,
        table.guarantees,
        table.holding.exact,
        table.unprotected,
        table.comparison,
        _seconds(table),
        evidence(table.mechanism),
        table.protects,
    )


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
