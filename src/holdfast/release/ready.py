"""A job from Python as from the command: check, plan, explain and release."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from holdfast.arguments import Frame, Refused, rational
from holdfast.pictures import card, rows_of
from holdfast.privacy import Guarantee
from holdfast.progress import command
from holdfast.release.audit import JobAudit, audit
from holdfast.release.certificate.certificate import read_certificate
from holdfast.release.certificate.load import LoadedRelease, load
from holdfast.release.ends import DAY, made_already, refuse_early
from holdfast.release.explain import explain
from holdfast.release.job.job import Job
from holdfast.release.ledger.ledger import Ledger
from holdfast.release.plan import Plan, plan
from holdfast.release.records.check import Check, check
from holdfast.release.run import release
from holdfast.release.series import release_period
from holdfast.release.spec.spec import Spec, read_spec
from holdfast.release.table.laid import Laid, laid
from holdfast.release.witnessed import Committed, commit, draw_committed


class Explained(dict[str, list[str]]):
    """Headings with their sentences, in reading order; shows itself as a text, and in notebooks as a card."""

    def __repr__(self) -> str:
        parts = (f"{heading}\n" + "\n".join(f"  {words}" for words in told) for heading, told in self.items())
        return "\n\n".join(parts)

    def _repr_html_(self) -> str:
        return card("Explained", "", rows_of({heading: " ".join(told) for heading, told in self.items()}))


@dataclass(frozen=True, eq=False, repr=False)
class ReadyJob:
    """A spec with its public domain laid out; methods are compared and calibrated when a plan is first asked for.

    Nothing in it was read from the records.
    """

    shapes: Laid

    @cached_property
    def made(self) -> Job:
        """The job with every table's mechanism calibrated; refused where no statement holds."""
        with command(quiet=False) as step:
            step("comparing methods and calibrating them")
            return Job.from_spec(self.spec)

    @property
    def spec(self) -> Spec:
        """The spec, checked."""
        return self.shapes.spec

    @property
    def guarantees(self) -> tuple[Guarantee, ...]:
        """What all tables promise together, the statement that the budget counts first."""
        return self.made.guarantees

    @property
    def guarantee(self) -> Guarantee:
        return self.made.guarantee

    def check(self, source: Frame | str | Path | None = None) -> Check:
        """Look at the records: which fit, which do not and why. For the curator's eyes; charges and writes nothing.

        `source` takes the place of the spec's: a data frame that narwhals reads, a file or the address of a database.
        """
        return check(self.shapes, source)

    def plan(self) -> Plan:
        """Say what a release would promise and how wrong each figure will be; reads no confidential data."""
        return plan(self.made)

    def explain(self) -> Explained:
        """Say in words what a release protects and what it gives away; reads no confidential data."""
        return Explained(explain(self.made))

    def audit(self, seconds: float = 60, *, source: bool = False) -> JobAudit:
        """Try to refute what a release would promise, on made-up neighbouring data; reads no records.

        Args:
            seconds: how long to try, about; bounds the effort and nothing else.
            source: run the source's query or view too, on made-up tables with the definitions of the real ones.
        """
        return audit(self.made, seconds, source=source)

    def release(
        self,
        source: Frame | str | Path | None = None,
        output: str | Path | None = None,
        ledger: str | Path | None = None,
        engine: str | None = None,
        at_least: float = 0.0,
        nonce: str | None = None,
        run_id: str | None = None,
        period: str | None = None,
    ) -> LoadedRelease:
        """Make the release and return it; the ledger is charged before anything is drawn.

        Its tables are read from the folder when they are first asked for.

        Args:
            source: records in place of the spec's: a frame that narwhals reads, a file, or the address of a database.
            output: the folder in place of the spec's; it must not exist.
            ledger: the ledger in place of the spec's.
            engine: "local" or "spark", in place of the spec's.
            at_least: seconds before which nothing is published: more than any data take, so that time does not tell.
            nonce: what decides the draw that `commit` committed to, 32 to 128 hexadecimal digits that were given since.
            run_id: a name of this run: where one of it has released already, that release is returned, at no charge.
            period: which period of a series; the folder is then one of its name inside `output`.
        """
        asked = rational("at_least", at_least)
        seconds = float(asked) if asked <= DAY else float(2 * DAY)
        if nonce is not None and any(each is not None for each in (source, engine, run_id)):
            raise Refused("what was committed to is drawn with the nonce: leave source, engine and run_id out")
        book = None if ledger is None else Ledger(ledger)
        made = None if run_id is None else made_already(self.shapes.spec, run_id, book)
        if made is not None:
            return load(made)
        if period is not None:
            if any(each is not None for each in (engine, run_id, nonce)):
                raise Refused("a period of a series is drawn here, and once: leave engine, run_id and nonce out")
            folder = release_period(self.made, period, source=source, output=output, ledger=book, at_least=seconds)
            return LoadedRelease(folder, read_certificate(folder))
        refuse_early(self.shapes, output, ledger, source, records=nonce is None)
        if nonce is None:
            folder = release(
                self.made, source=source, output=output, ledger=book, engine=engine, at_least=seconds, run_id=run_id
            )
        else:
            folder = draw_committed(self.made, nonce, output=output, ledger=book, at_least=seconds)
        return LoadedRelease(folder, read_certificate(folder))  # which was verified before it got its name

    def commit(
        self,
        source: Frame | str | Path | None = None,
        output: str | Path | None = None,
        ledger: str | Path | None = None,
    ) -> Committed:
        """Count the records and charge the ledger for one draw, which `release(nonce=…)` makes once a nonce is given.

        The arguments are those of `release`. What is returned has the commitment to show to whoever gives the nonce.
        """
        refuse_early(self.shapes, output, ledger, source)
        return commit(self.made, source=source, output=output, ledger=None if ledger is None else Ledger(ledger))

    def __repr__(self) -> str:
        tables = ", ".join(table.name for table in self.shapes.tables)
        return f"job({self.shapes.title!r}, tables {tables}; check(), plan(), explain(), release())"


def job(spec: str | Path | Mapping[str, object]) -> ReadyJob:
    """Read a spec and its public files, and refuse what is wrong in them; reads no records.

    Methods are compared and calibrated once a plan, an explanation or a release asks for it. The spec may say nothing
    of `output` until something is released.

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
    shapes, _ = laid(read_spec(spec, folder_needed=False))
    return ReadyJob(shapes)
