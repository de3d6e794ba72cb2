"""Try to refute what a job would promise: each table's statements and the total, on made-up data, from public files."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from holdfast.arguments import Refused, positive
from holdfast.arrays import Ints
from holdfast.auditing import Audit
from holdfast.auditing import audit as audited
from holdfast.auditing.subject import Subject
from holdfast.constraints import System, invariant
from holdfast.privacy import Guarantee
from holdfast.queries import Query, workload
from holdfast.randomness import Stream
from holdfast.release.job.job import Job
from holdfast.release.job.table import Table

#: Kinds of made-up records that all tables count together, and outputs of all tables up to which they are.
KINDS, MOST_OUTPUTS = 24, 20_000
#: The name under which the total is reported.
TOGETHER = "all tables together"


@dataclass(frozen=True)
class JobAudit:
    """One report for each table and one for all together, or the sentence with which an audit is refused."""

    title: str
    tables: tuple[tuple[str, Audit | str], ...]

    @property
    def violated(self) -> bool:
        """Whether a statement of any table, or the total, was refuted."""
        return any(isinstance(found, Audit) and found.violated for _, found in self.tables)

    def __str__(self) -> str:
        lines = [f"{self.title}: {'a statement is VIOLATED' if self.violated else 'nothing was refuted'}"]
        for name, found in self.tables:
            lines.append(f"{name}: {found if isinstance(found, Audit) else f'not audited: {found}'}")
        return "\n".join(lines)

    def as_mapping(self) -> dict[str, Any]:
        """Return plain values that JSON can hold."""
        tables = [
            {"name": name} | (found.as_mapping() if isinstance(found, Audit) else {"refused": found})
            for name, found in self.tables
        ]
        return {"title": self.title, "violated": self.violated, "tables": tables}


@dataclass(frozen=True, eq=False)
class _Together:
    """All tables of a job as one mechanism: the same made-up records, counted by every table, and the job's total."""

    tables: tuple[Table, ...]
    query: Query
    held: System | None
    guarantee: Guarantee

    @classmethod
    def of(cls, job: Job, seed: int = 1) -> _Together:
        """Make up kinds of records that every table can count."""
        if sum(table.layout.query.n for table in job.tables) > MOST_OUTPUTS:
            raise Refused(f"tables are audited together up to {MOST_OUTPUTS:,} values in all")
        cells = _cells(job.tables, np.random.default_rng(seed))
        counted = [table.layout.query.columns[:, found] for table, found in zip(job.tables, cells, strict=True)]
        systems = [table.mechanism.held for table in job.tables]
        rows = [
            sparse.csr_array((0, table.layout.query.n), dtype=np.int64) if system is None else system.invariants.A
            for table, system in zip(job.tables, systems, strict=True)
        ]
        exact = sparse.csr_array(sparse.block_diag(rows, format="csr"))
        held = invariant(exact).system(exact.shape[1]) if exact.shape[0] else None
        return cls(job.tables, workload(sparse.vstack(counted, format="csc")), held, job.guarantee)

    def simulate(self, truth: Any, size: int, stream: Stream) -> npt.NDArray[Any]:
        """Draw every table on its part of the truth, (size, all outputs)."""
        parts = np.split(truth, np.cumsum([table.layout.query.n for table in self.tables])[:-1])
        subjects = [Subject.of(table.mechanism, None, None) for table in self.tables]
        return np.hstack([each.draw(part, size, stream) for each, part in zip(subjects, parts, strict=True)])


def _cells(tables: tuple[Table, ...], rng: np.random.Generator) -> list[Ints]:
    """For each table the cells in which some made-up records are counted: equal columns have equal values."""
    places: dict[tuple[str, ...], Ints] = {}
    known: dict[str, tuple[tuple[str, ...], list[Any]]] = {}
    for key in (key for table in tables for key in table.layout.keys):
        for name, texts in zip(key.columns, key.values, strict=True):
            if known.setdefault(name, (key.columns, texts.tolist())) != (key.columns, texts.tolist()):
                raise Refused(f"tables with different values of the column {name} are not audited together")
        places.setdefault(key.columns, rng.integers(key.size, size=KINDS))
    return [
        np.ravel_multi_index(
            [places[key.columns] for key in table.layout.keys], [key.size for key in table.layout.keys]
        )
        for table in tables
    ]


def audit(job: Job, seconds: Any = 60, step: Callable[[str], None] = lambda _: None) -> JobAudit:
    """Audit the mechanism of every table, and several together against the total; refused where none can be audited."""
    several = len(job.tables) > 1
    effort = positive("seconds", seconds) / (len(job.tables) + several)
    made: list[tuple[str, Callable[[], Any]]] = [(t.name, lambda t=t: t.mechanism) for t in job.tables]  # type: ignore[misc]
    if several:
        made.append((TOGETHER, lambda: _Together.of(job)))
    found: list[tuple[str, Audit | str]] = []
    for name, mechanism in made:
        step(f"auditing {name}")
        try:
            found.append((name, audited(mechanism(), seconds=effort)))
        except Refused as refusal:
            found.append((name, str(refusal)))
    if not any(isinstance(each, Audit) for _, each in found):
        raise Refused("; ".join(f"{name}: {each}" for name, each in found))
    return JobAudit(job.title, tuple(found))
