"""A job from Python as from the command: check, plan, explain and release."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from holdfast.privacy import Guarantee
from holdfast.release.certificate.load import LoadedRelease, load
from holdfast.release.explain import explain
from holdfast.release.job.job import Job
from holdfast.release.ledger.ledger import Ledger
from holdfast.release.plan import Plan, plan
from holdfast.release.records.check import Check, check
from holdfast.release.run import release
from holdfast.release.spec.spec import Spec, read_spec


@dataclass(frozen=True, eq=False, repr=False)
class ReadyJob:
    """A spec with its public domain, every table's mechanism calibrated. Nothing in it was read from the records."""

    made: Job

    @property
    def spec(self) -> Spec:
        """The spec, checked."""
        return self.made.spec

    @property
    def guarantees(self) -> tuple[Guarantee, ...]:
        """What all tables promise together, the statement that the budget counts first."""
        return self.made.guarantees

    @property
    def guarantee(self) -> Guarantee:
        """The statement about all tables together that the budget counts."""
        return self.made.guarantee

    def check(self, source: Any = None) -> Check:
        """Look at the records: which fit, which do not and why. For the curator's eyes; charges and writes nothing.

        `source` takes the place of the spec's: a data frame that narwhals reads, a file or the address of a database.
        """
        return check(self.made, source)

    def plan(self) -> Plan:
        """Say what a release would promise and how wrong each figure will be; reads no confidential data."""
        return plan(self.made)

    def explain(self) -> dict[str, list[str]]:
        """Say in words what a release protects and what it gives away; reads no confidential data."""
        return explain(self.made)

    def release(
        self,
        source: Any = None,
        output: str | Path | None = None,
        ledger: str | Path | None = None,
        engine: str | None = None,
    ) -> LoadedRelease:
        """Make the release and return it as `load` reads it; the ledger is charged before anything is drawn.

        `source`, `output`, `ledger` and `engine` ("local" or "spark") take the place of what the spec says.
        """
        book = None if ledger is None else Ledger(ledger)
        return load(release(self.made, source=source, output=output, ledger=book, engine=engine))

    def __repr__(self) -> str:
        tables = ", ".join(table.name for table in self.made.tables)
        return f"job({self.made.title!r}, tables {tables}, {self.made.guarantee})"


def job(spec: str | Path | Mapping[str, Any]) -> ReadyJob:
    """Read a spec and its public files, choose methods and calibrate them; reads no records.

    Args:
        spec: a path, a mapping or a YAML text.

    Guarantee:
        What `plan` and `explain` print is what `release` will promise; the ledger is charged before anything is drawn.

    Example:
        >>> import holdfast as hf
        >>> job = hf.job({
        ...     "title": "Ages", "data": {"source": "people.csv", "values": {"age": ["young", "old"]}},
        ...     "privacy": {"epsilon": 1.0}, "table": {"histogram": "age"}, "method": "noise", "output": "out",
        ... })
        >>> job.plan().as_mapping()["title"]
        'Ages'
    """
    return ReadyJob(Job.from_spec(read_spec(spec)))
