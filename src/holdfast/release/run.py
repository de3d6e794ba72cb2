"""Release a job: charge the ledger, draw, write beside the output, verify as a stranger, then give the folder its name.

Killed at any point, either no release is visible or a whole one, and the ledger never shows less than what was drawn:
the charge is durable before the first draw, and the folder gets its name in one step after everything in it is on the
disk and was verified. Nothing that depends on the data is written except the released tables: no timings, counts or
seeds (THEORY §9).
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cached_property
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import numpy as np

from holdfast.arguments import Refused
from holdfast.mechanism.release import Release
from holdfast.privacy import Guarantee
from holdfast.release.certificate.certificate import CONFIDENCE, FILE, Interval, ReleasedFile
from holdfast.release.certificate.verify import budget_findings, verify
from holdfast.release.certifying import TableFiles, certificate_of, statements_of, table_certificate
from holdfast.release.disclosure.disclosure import GivenAway, given_away, refuse_disclosure, refuse_foretold
from holdfast.release.disclosure.public_words import Figures, published
from holdfast.release.job.sizes import Sizes, errors_by_size
from holdfast.release.ledger.accounts import Budget
from holdfast.release.ledger.ledger import Ledger, now
from holdfast.release.pieces.drawing import drawing
from holdfast.release.records.tabulate import tabulate
from holdfast.release.report.figures import SHOWN
from holdfast.release.report.page import REPORT, report
from holdfast.release.storage.files import publish, refuse_without_room, sha256_of, workplace, write_text
from holdfast.release.writing import PACKAGE, data_package, write_table_files

if TYPE_CHECKING:
    from holdfast.release.job.job import Job
    from holdfast.release.job.table import Table

KEPT = "the ledger keeps the charge, since what was drawn cannot be drawn again for free"
#: Bytes set aside for the report and the ends of files, for the figures of one row in all files, and on the page.
SHEETS, FIGURES_OF_ROW, ON_THE_PAGE = 1 << 20, 160, 120
#: Rows whose names are measured to guess the size of the files.
SAMPLE = 1000


@dataclass(frozen=True)
class Run:
    """One attempt to release a job: where, in which ledger, under which name, since when, and at what cost."""

    job: Job
    folder: Path
    ledger: Ledger
    identity: str
    when: str
    parts: tuple[tuple[Guarantee, ...], ...]
    budget: Budget | None

    @classmethod
    def of(cls, job: Job, output: str | Path | None, ledger: Ledger | None) -> Run:
        """Begin an attempt, with the spec's own folder and ledger unless others are given."""
        folder = Path(job.spec.output if output is None else output).absolute()
        book = Ledger(job.spec.ledger_file) if ledger is None else ledger
        parts = tuple(statements_of(table) for table in job.tables)
        return cls(job, folder, book, secrets.token_hex(16), now(), parts, _budget(job))

    @property
    def date(self) -> str:
        """The day on which it began."""
        return self.when[:10]

    @cached_property
    def sizes(self) -> tuple[Sizes | None, ...]:
        """How errors depend on sizes, table by table: simulated from public things, once."""
        return tuple(errors_by_size(table) for table in self.job.tables)

    @contextmanager
    def workplace(self) -> Iterator[Path]:
        """Give a folder to write to, after everything public that can be refused was."""
        if self.job.spec.distributed is not None:
            sentence = "this release is made by agents: run holdfast agent for each of them, then holdfast gather"
            raise self.job.spec.at["distributed"].refuse(sentence)
        with told(f"{self.folder.parent} cannot be written"), workplace(self.folder) as place:
            self.ledger.check(self.job.dataset, self.job.unit, self.parts, self.budget)
            _rehearse(self, place)
            yield place

    def charge(self) -> None:
        """Charge the ledger; durable when this returns."""
        self.ledger.charge(
            self.job.dataset,
            self.job.unit,
            self.parts,
            release=self.identity,
            title=self.job.title,
            spec_hash=self.job.spec.hash,
            when=self.when,
            budget=self.budget,
        )

    def keep_figures(self, figures: Sequence[Figures]) -> None:
        """Keep the exact figures in the ledger, for releases to come; durable when this returns."""
        job = self.job
        self.ledger.keep_figures(job.dataset, job.unit, figures, release=self.identity, when=self.when)

    @property
    def charged(self) -> bool:
        """Whether the ledger has the charge."""
        entries = self.ledger.entries(self.job.dataset, self.job.unit)
        return any(entry.release == self.identity for entry in entries)


def could_release(job: Job, output: str | Path | None = None, ledger: Ledger | None = None) -> None:
    """Refuse what `release` would refuse before it reads a record; nothing is charged, and nothing is left behind."""
    run = Run.of(job, output, ledger)
    with run.workplace():
        refuse_foretold(job, run.ledger.figures(job.dataset))


def release(
    job: Job,
    *,
    source: Any = None,
    output: str | Path | None = None,
    ledger: Ledger | None = None,
    engine: str | None = None,
    step: Callable[[str], None] = lambda _: None,
    aside: Callable[[str], None] = lambda _: None,
) -> Path:
    """Release the tables of a job into a new folder and return it.

    `source` replaces the spec's data source, `output` its folder, `ledger` its ledger and `engine` who draws. `step` is
    told in public words what happens next, `aside` what only the curator may know: that records were dropped. Refused
    before anything is charged: an output folder that exists, one that cannot be written, a budget with too little left,
    data that do not fit the spec, exact figures that determine others where the spec does not accept it, and what a
    cluster cannot draw.
    """
    step("checking the ledger")
    run = Run.of(job, output, ledger)
    draw = drawing(job, source, engine)
    with run.workplace() as place:
        step("counting")
        with told("the records cannot be counted"):
            cells = tabulate(job, source, aside)
        answers = [table.layout.query.answer(counted) for table, counted in zip(job.tables, cells, strict=True)]
        exact = any(table.holding.exact for table in job.tables)
        earlier = run.ledger.figures(job.dataset)
        disclosed = given_away(job, earlier, answers if exact else None)
        refuse_disclosure(job, disclosed)
        with _told_of_charge(run):
            step("charging the ledger")
            run.charge()
            step("drawing")
            drawn = [draw(*each) for each in zip(job.tables, cells, answers, strict=True)]
            step("writing")
            write_release(run, drawn, place, disclosed)
            step("verifying")
            wrong = verify(place).differences
            if wrong:
                raise RuntimeError(
                    f"nothing is released: {wrong[0].name} misses ({wrong[0].sentence}); this is a fault of holdfast"
                )
            step("publishing")
            if exact:
                run.keep_figures(published(job, answers))
            publish(place, run.folder)
    return run.folder


def _budget(job: Job) -> Budget | None:
    asked = job.spec.budget
    return None if asked is None else Budget.of(epsilon=asked.epsilon, delta=asked.delta, rho=asked.rho)


def _rehearse(run: Run, place: Path) -> None:
    """Let everything public that can fail fail before the charge: the certificate, and the room for the files."""
    interval = Interval(confidence=CONFIDENCE, basis=None, sentence="")
    tables = [table_certificate(table, "", interval, TableFiles("table", "table")) for table in run.job.tables]
    certificate = certificate_of(run.job, run.identity, run.date, tables, [])
    _ = run.sizes
    wrong = next(budget_findings(certificate), None)
    if wrong is not None:
        raise Refused(f"what the release promises would not pass its own verification: {wrong}")
    sheet = len(certificate.to_json().encode())
    refuse_without_room(place, SHEETS + sheet + sum(map(_expected_bytes, run.job.tables)))


def _expected_bytes(table: Table) -> int:
    """Guess from the public names how many bytes the files of a table have, rather too many than too few."""
    rows = slice(None, None, -(-table.layout.query.n // SAMPLE))
    per_row = sum(
        np.mean([len(str(name).encode()) + 1 for name in column[rows]]) for column in table.layout.columns.values()
    )
    page = min(table.layout.query.n, SHOWN) * (per_row + ON_THE_PAGE)
    return int(table.layout.query.n * (2 * per_row + FIGURES_OF_ROW) + page)


@contextmanager
def told(what: str) -> Iterator[None]:
    """Say in one sentence what the system says."""
    try:
        yield
    except (OSError, duckdb.Error) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else type(error).__name__
        charged = "; ".join(getattr(error, "__notes__", ["nothing was charged or drawn"]))
        raise Refused(f"{what} ({reason}): make room or check permissions, then try again; {charged}") from None


@contextmanager
def _told_of_charge(run: Run) -> Iterator[None]:
    """Let everything that goes wrong after the charge say that the charge stays."""
    try:
        yield
    except BaseException as error:
        with suppress(Exception):  # what went wrong matters more than a ledger that cannot be read now
            if run.charged:
                error.add_note(KEPT)
        raise


def write_release(run: Run, drawn: Sequence[Release], place: Path, disclosed: Sequence[GivenAway]) -> None:
    """Write the tables of a job, their report and their certificate into an empty folder."""
    job = run.job
    determined = {found.table.name: found.entries for found in disclosed}
    also = [words for found in disclosed for words in found.words]
    written = [
        write_table_files(
            table,
            release,
            place,
            "" if len(job.tables) == 1 else f"{table.name}-",
            determined.get(table.name, ()),
        )
        for table, release in zip(job.tables, drawn, strict=True)
    ]
    tables = [certificate for certificate, _ in written]
    listed = [name for table in tables for name in table.files]
    files = [_described(place / name) for name in listed]
    told = _spent(run) if job.spec.ledger.in_report else ()
    draft = certificate_of(job, run.identity, run.date, tables, files, also, told)
    write_text(place / PACKAGE, data_package(draft))
    files.append(_described(place / PACKAGE))
    # The report is certified too, so it is made from a certificate that does not list it yet.
    draft = certificate_of(job, run.identity, run.date, tables, files, also, told)
    page = report(draft, [columns for _, columns in written], run.sizes)
    write_text(place / REPORT, page)
    files.append(_described(place / REPORT))
    write_text(place / FILE, certificate_of(job, run.identity, run.date, tables, files, also, told).to_json())
    # The time at which a file was written would tell how long the draw took.
    midnight = datetime.fromisoformat(run.date).replace(tzinfo=UTC).timestamp()
    for path in (*place.iterdir(), place):
        os.utime(path, (midnight, midnight))


def _spent(run: Run) -> tuple[str, ...]:
    """What the ledger says about the dataset after the charge, in sentences."""
    try:
        account = run.ledger.account(run.job.dataset, run.job.unit)
        beside = run.ledger.beside(run.job.dataset, run.job.unit)
        entries = run.ledger.entries(run.job.dataset, run.job.unit)
    except Refused:  # a page that says less is better than a charge for nothing
        return ("The ledger could not be read again when this page was written.",)
    earlier = takewhile(lambda entry: entry.release != run.identity, entries)
    first = sum(len(entry.parts) for entry in earlier)
    last = first + len(run.parts)
    before, own = (
        replace(account, parts=account.parts[part], kept=account.kept[part]).amount
        for part in (slice(first), slice(first, last))
    )
    this = f"Before this release {before} was spent on this dataset; this release costs {own}."
    return (this, account.words, *(f"{words[0].upper()}{words[1:]}." for words in beside))


def _described(path: Path) -> ReleasedFile:
    return ReleasedFile(name=path.name, bytes=path.stat().st_size, sha256=sha256_of(path))
