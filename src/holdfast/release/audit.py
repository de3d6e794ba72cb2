"""Try to refute what a job would promise: every table's mechanism, on made-up data, from public files only."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from holdfast.arguments import Refused, positive
from holdfast.auditing import Audit
from holdfast.auditing import audit as audited
from holdfast.release.job.job import Job


@dataclass(frozen=True)
class JobAudit:
    """One report for each table, or the sentence with which its audit is refused."""

    title: str
    tables: tuple[tuple[str, Audit | str], ...]

    @property
    def violated(self) -> bool:
        """Whether a statement of any table was refuted."""
        return any(isinstance(found, Audit) and found.violated for _, found in self.tables)

    def __str__(self) -> str:
        lines = [f"{self.title}: {'a statement is VIOLATED' if self.violated else 'nothing was refuted'}"]
        for name, found in self.tables:
            lines.append(f"{name}: {found if isinstance(found, Audit) else f'not audited: {found}'}")
        lines.append("Tables were audited one by one; that their statements add up is not tested here.")
        return "\n".join(lines if len(self.tables) > 1 else lines[:-1])

    def as_mapping(self) -> dict[str, Any]:
        """Return plain values that JSON can hold."""
        tables = [
            {"name": name} | (found.as_mapping() if isinstance(found, Audit) else {"refused": found})
            for name, found in self.tables
        ]
        return {"title": self.title, "violated": self.violated, "tables": tables}


def audit(job: Job, seconds: Any = 60, step: Callable[[str], None] = lambda _: None) -> JobAudit:
    """Audit the mechanism of every table; refused where none can be audited."""
    effort = positive("seconds", seconds) / len(job.tables)
    found: list[tuple[str, Audit | str]] = []
    for table in job.tables:
        step(f"auditing {table.name}")
        try:
            found.append((table.name, audited(table.mechanism, seconds=effort)))
        except Refused as refusal:
            found.append((table.name, str(refusal)))
    if not any(isinstance(each, Audit) for _, each in found):
        raise Refused("; ".join(f"{name}: {each}" for name, each in found))
    return JobAudit(job.title, tuple(found))
