"""Release a job: charge the ledger, draw, write beside the output, verify, seal, then give the folder its name.

Killed at any point, either no release is visible or a whole one, and the ledger never shows less than what was drawn:
the charge is durable before the first draw, and the folder gets its name in one step after everything in it is on the
disk, was verified from its files alone, and the hash of its certificate is in the ledger (the seal). What a release
that ends early leaves in the ledger says how far it came (`ends`). Nothing that depends on the data is written except
the released tables: no timings, counts or seeds (THEORY §9).
"""

from __future__ import annotations

import itertools
import os
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from holdfast.arguments import Fault, Refused
from holdfast.mechanism.release import Release
from holdfast.privacy import Guarantee
from holdfast.randomness import seeded
from holdfast.release.certificate.certificate import (
    FILE,
    PACKAGE,
    Certificate,
    Commitment,
    LedgerHead,
    ReleasedFile,
    SeriesPart,
)
from holdfast.release.certificate.verify import budget_findings, verify
from holdfast.release.certifying import TableFiles, certificate_of, table_certificate
from holdfast.release.disclosure.disclosure import GivenAway, given_away, refuse_disclosure, refuse_foretold
from holdfast.release.disclosure.public_words import Figures, published
from holdfast.release.ends import identity_of, saying, saying_nothing_happened, time_of, told, wait_until
from holdfast.release.explain import budget_of, spent, unfinished
from holdfast.release.facts import CONFIDENCE, Interval
from holdfast.release.job.table import Sizes, errors_by_size
from holdfast.release.job.unprotected import DETERMINED, listed
from holdfast.release.ledger.accounts import Budget
from holdfast.release.ledger.entries import STATES, Entry
from holdfast.release.ledger.ledger import Ledger, Past, now
from holdfast.release.pieces.drawing import drawing
from holdfast.release.pieces.parts import Folder, Parts
from holdfast.release.plan import BASE_BYTES
from holdfast.release.records.tabulate import tabulate
from holdfast.release.report.asked import HELD, asked
from holdfast.release.report.page import REPORT, over_time, report
from holdfast.release.signing import SIGNED, Signer, read_key, signature_text
from holdfast.release.spec.origin import Origin
from holdfast.release.standalone_verifier.facts import about_time, facts
from holdfast.release.storage.files import publish, refuse_without_room, sha256_of, workplace, write_text
from holdfast.release.table.laid import table_bytes
from holdfast.release.table.wording import in_words_of_the_spec
from holdfast.release.writing import NAME, data_package, describe_parts, one_file, write_table_files
from holdfast.system import memory

if TYPE_CHECKING:
    from holdfast.release.job.job import Job
    from holdfast.release.job.table import Table

#: Bytes set aside for the report and the ends of files, for the figures of one row in all files, and on the page.
SHEETS, FIGURES_OF_ROW, ON_THE_PAGE = 1 << 20, 160, 120
#: Steps that can take minutes.
SIMULATING, LOOKING = "simulating the errors", "computing what exact figures give away"
REHEARSING = "rehearsing with made-up counts"
#: Rows whose names are measured to guess the size of the files.
SAMPLE = 1000
#: Figures that are written and verified before the charge at most, and the count of every cell that is made up.
REHEARSED, TYPICAL = 20_000, 1000


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
    signer: Signer | None = None
    commitment: Commitment | None = None
    series: SeriesPart | None = None

    @classmethod
    def of(cls, job: Job, output: str | Path | None, ledger: Ledger | None, run_id: str | None = None) -> Run:
        """Begin an attempt, with the spec's own folder and ledger unless others are given."""
        folder = Path(job.spec.output if output is None else output).absolute()
        book = Ledger(job.spec.ledger_file, job.spec.witness) if ledger is None else ledger
        parts = tuple(table.statements for table in job.tables)
        signer = None if job.spec.key_file is None else read_key(job.spec.key_file)
        return cls(job, folder, book, identity_of(run_id), now(), parts, budget_of(job), signer)

    def reading(self, origin: Origin) -> Run:
        """The same attempt where rows are made in this way; the numbers of its statements stay."""
        job = self.job.reading(origin)
        if job is self.job:
            return self
        run = replace(self, job=job, parts=tuple(table.statements for table in job.tables))
        run.__dict__["sizes"] = self.sizes
        return run

    @property
    def exact(self) -> bool:
        """Whether some figures are published exactly."""
        return any(table.holding.exact for table in self.job.tables)

    @property
    def date(self) -> str:
        return self.when[:10]

    @property
    def midnight(self) -> float:
        """The time that files bear: when they were written would tell how long the draw took."""
        return datetime.fromisoformat(self.date).replace(tzinfo=UTC).timestamp()

    def prefix(self, table: Table) -> str:
        files = {each.layout.asked.file for each in self.job.tables}
        return "" if len(files) == 1 else f"{table.layout.asked.file}-"

    @cached_property
    def sizes(self) -> tuple[Sizes | None, ...]:
        """How errors depend on sizes, table by table: simulated from public things, once."""
        return tuple(errors_by_size(table) for table in self.job.tables)

    @contextmanager
    def workplace(self, step: Callable[[str], None] = lambda _: None, *, charged: bool = False) -> Iterator[Path]:
        """Give a folder to write to, after everything public that can be refused was; a charge that is not yet made
        must fit the budget.
        """
        if self.job.spec.time is not None and self.series is None:
            raise self.job.spec.at["time"].refuse("a series is released period by period: give --period (period=)")
        if self.job.spec.distributed is not None:
            sentence = "this release is made by agents: run holdfast agent for each of them, then holdfast gather"
            raise self.job.spec.at["distributed"].refuse(sentence)
        _refuse_without_memory(self.job)
        with told(f"{self.folder.parent} cannot be written"), workplace(self.folder) as place:
            if not charged:
                self.ledger.check(self.job.dataset, self.job.unit, self.parts, self.budget)
            step(SIMULATING)
            _ = self.sizes
            step(REHEARSING)
            _rehearse(self, place)
            yield place

    def of_series(self, certificate: Certificate) -> Certificate:
        """The certificate with what it says of the series that it is a period of, if it is one."""
        if self.series is None:
            return certificate
        more = about_time(self.series.model_dump(), certificate.spec["privacy"].get("unit"))
        return certificate.model_copy(update={"series": self.series, "caveats": [*certificate.caveats, *more]})

    def charge(self, since: Past | None = None, **fixed: Any) -> bool:
        """Charge the ledger, which must go on from what was read of it; durable when this returns.

        Not done, and False, where other releases kept exact figures since then, which are read now.
        """
        return self.ledger.charge(
            self.job.dataset,
            self.job.unit,
            self.parts,
            release=self.identity,
            title=self.job.title,
            spec_hash=self.job.spec.hash,
            when=self.when,
            budget=self.budget,
            since=since,
            **fixed,
        )

    def draws(self) -> None:
        """Mark in the ledger that drawing begins; durable when this returns."""
        self.ledger.mark("drawing", self.identity, self.when)

    def seal(self, place: Path, figures: Sequence[Figures], since: Past) -> bool:
        """Seal what was written, with the exact figures for releases to come.

        Not done, and False, where other releases kept theirs since the ledger was read, which is read again then.
        """
        return self.ledger.seal(
            self.job.dataset,
            self.job.unit,
            release=self.identity,
            certificate=sha256_of(place / FILE),
            folder=self.folder,
            when=self.when,
            figures=figures,
            since=since,
        )

    def publish(self, place: Path, aside: Callable[[str], None] = lambda _: None) -> None:
        try:
            publish(place, self.folder)
            self.ledger.mark("published", self.identity, self.when)
        except (OSError, Refused):
            if not self.published:
                raise
            aside("the release is published, but the disk did not confirm it: look at it again after the next start")

    @property
    def charge_row(self) -> Entry | None:
        """The charge in the ledger, if there is one."""
        return self.ledger.became(self.identity)

    @property
    def charged(self) -> bool:
        return self.charge_row is not None

    @property
    def published(self) -> bool:
        if self.series is not None:
            return os.path.exists(self.folder / FILE)
        found = self.charge_row
        return found is not None and found.state == STATES["published"]


def could_release(
    job: Job,
    output: str | Path | None = None,
    ledger: Ledger | None = None,
    step: Callable[[str], None] = lambda _: None,
) -> None:
    """Refuse what `release` would refuse before it reads a record; nothing is charged, and nothing is left behind."""
    step("checking the ledger and the folder")
    run = Run.of(job, output, ledger)
    with run.workplace(step):
        step(LOOKING)
        refuse_foretold(job, run.ledger.figures(job.dataset))


def release(
    job: Job,
    *,
    source: Any = None,
    output: str | Path | None = None,
    ledger: Ledger | None = None,
    engine: str | None = None,
    at_least: float = 0.0,
    run_id: str | None = None,
    step: Callable[[str], None] = lambda _: None,
    aside: Callable[[str], None] = lambda _: None,
    note: Callable[[str], None] = lambda _: None,
) -> Path:
    """Release the tables of a job into a new folder and return it.

    `source` replaces the spec's data source, `output` its folder, `ledger` its ledger and `engine` who draws. Nothing
    is published before `at_least` seconds are over, and no two releases of a `run_id` are charged. `step` is told in
    public words what happens next, `aside` what only the curator may know: that records were dropped, which figures the
    exact ones determine; `note` which earlier charges have no table. Refused before anything is charged: an output
    folder that exists, one that cannot be written, a budget with too little left, data that do not fit the spec, exact
    figures that determine others where the spec does not accept it, and what a cluster cannot draw.
    """
    end = time_of(at_least)
    with saying_nothing_happened():
        step("checking the ledger")
        run = Run.of(job, output, ledger, run_id)
        who = drawing(job, source, engine)
        past = run.ledger.past(job.dataset, job.unit)
        for words in unfinished(past):
            note(words)
        with run.workplace(step) as place:
            run, cells, answers = counted(run, source, step, aside)
            job, exact = run.job, run.exact
            past = run.ledger.past(job.dataset, job.unit, since=past)
            step(LOOKING)
            disclosed = looked_at(job, past, answers, aside)
            who.refuse_unshared(place)
            with saying(run.ledger, run.identity):
                step("charging the ledger")
                while not run.charge(past):
                    disclosed = looked_at(job, past, answers, aside)
                step("drawing the tables")
                run.draws()
                folders = [Folder(str(place.resolve()), run.prefix(table), run.midnight) for table in job.tables]
                each = zip(job.tables, answers, folders, strict=True)
                drawn = [who.draw(table, cells.pop(0), truth, folder) for table, truth, folder in each]
                if not exact:
                    answers.clear()  # a census fills memory
                finish(run, drawn, answers, past, disclosed, place, end, step, aside)
    return run.folder


def counted(
    run: Run, source: Any, step: Callable[[str], None], aside: Callable[[str], None]
) -> tuple[Run, list[Any], list[npt.NDArray[Any]]]:
    """Count the records: the attempt as it reads them, the counts of cells, and the true answers, table by table."""
    step("counting the records")
    with told("the records cannot be counted"):
        origins: list[Origin] = []
        cells = tabulate(run.job, source, aside, origins.append, None if run.series is None else run.series.period)
    run = run.reading(origins[0])
    return run, cells, [table.answer(each) for table, each in zip(run.job.tables, cells, strict=True)]


def finish(
    run: Run,
    drawn: Sequence[Release | Parts],
    answers: Sequence[npt.NDArray[Any]],
    past: Past,
    disclosed: Sequence[GivenAway],
    place: Path,
    end: float | None,
    step: Callable[[str], None],
    aside: Callable[[str], None],
) -> None:
    """Write what was drawn, verify and seal it, and give the folder its name, not before `end`."""
    _write_and_verify(run, drawn, place, disclosed, step)
    wait_until(end, step, aside)
    step("publishing")
    figures = published(run.job, answers) if run.exact and run.series is None else ()
    while not run.seal(place, figures, past):
        disclosed = looked_at(run.job, past, answers, aside)
        _clear_but_parts(place, drawn)
        _write_and_verify(run, drawn, place, disclosed, step)
    run.publish(place, aside)


def _refuse_without_memory(job: Job) -> None:
    """Refuse a table in parts that this machine would not hold: to be killed after the charge would be in vain."""
    here = memory()
    for table in job.tables:
        needed = BASE_BYTES + table_bytes(table.layout)
        if here is not None and table.layout.in_parts is not None and needed > here:
            sentence = (
                f"{table.layout.query.n:,} figures take about {needed / 2**30:.0f} GiB of memory, and this machine has "
                f"{here / 2**30:.0f}: measure fewer margins at the lowest level, make one release for each place of an "
                "upper level, or use a larger machine"
            )
            raise table.layout.at["measure"].refuse(sentence)


def _write_and_verify(
    run: Run,
    drawn: Sequence[Release | Parts],
    place: Path,
    disclosed: Sequence[GivenAway],
    step: Callable[[str], None],
) -> None:
    """Write what was drawn, and verify it from its files alone, save parts, which those who drew them verified."""
    step("writing the files")
    write_release(run, drawn, place, disclosed)
    step("verifying what was written")
    apart = [table.name for table, each in zip(run.job.tables, drawn, strict=True) if isinstance(each, Parts)]
    _refuse_broken(place, apart)


def _refuse_broken(place: Path, apart: Sequence[str] = ()) -> None:
    """Refuse to go on with what is not as it says."""
    wrong = verify(place, apart=apart).differences
    if wrong:
        sentence = f"{wrong[0].name} misses ({wrong[0].sentence}); this is a fault of holdfast"
        raise Fault(f"nothing is released: {sentence}")


def _clear_but_parts(place: Path, drawn: Sequence[Release | Parts]) -> None:
    """Remove what is written again: everything but the parts of tables."""
    kept = {place / name for each in drawn if isinstance(each, Parts) for name in each.files}
    for path in place.rglob("*"):
        if path not in kept and not path.is_dir():
            path.unlink()


def looked_at(
    job: Job, past: Past, answers: Sequence[npt.NDArray[Any]], aside: Callable[[str], None]
) -> list[GivenAway]:
    """Return what exact figures give away, refused where the spec does not accept it.

    The figures for which it is are named to the curator alone: which they are depends on the data.
    """
    exact = any(table.holding.exact for table in job.tables)
    disclosed = given_away(job, past.figures, answers if exact else None)
    for each in disclosed:
        if each.rows.size and not job.spec.accept_disclosure:
            named = ", ".join(map(str, listed(each.table.layout, each.rows, DETERMINED)))
            aside(f"what the exact figures determine in the table {each.table.name!r}: {named}")
    refuse_disclosure(job, disclosed)
    return disclosed


def _rehearse(run: Run, place: Path) -> None:
    """Let everything public that can fail fail before the charge: certificate, room, the draw, and all files.

    Made-up counts are drawn from, written and verified as the records will be.
    """
    made = [_made_up(table) for table in run.job.tables if table.layout.in_parts is None]
    interval = Interval(confidence=CONFIDENCE, basis=None, sentence="")
    tables = [table_certificate(table, "", interval, TableFiles("table", "table")) for table in run.job.tables]
    certificate = run.of_series(certificate_of(run.job, run.identity, run.date, tables, []))
    sheets = certificate.as_mapping()
    wrong = next(itertools.chain(budget_findings(certificate), facts(sheets)), None)
    if wrong is not None:
        raise Refused(f"what the release promises would not pass its own verification: {wrong}")
    sheet = len(certificate.to_json().encode())
    refuse_without_room(place, SHEETS + sheet + sum(map(_expected_bytes, run.job.tables)))
    drawn = [each for each in made if each is not None]
    if len(drawn) == len(run.job.tables) and sum(each.values.size for each in drawn) <= REHEARSED:
        aside = place / "rehearsal"
        aside.mkdir()
        with told(f"{run.folder} cannot be written"):
            write_release(run, drawn, aside, ())
        _refuse_broken(aside)
        shutil.rmtree(aside)


def _made_up(table: Table) -> Release | None:
    """Draw a table from counts that somebody made up; refused where it cannot be drawn, None where none are allowed."""
    query, held = table.layout.query, table.holding
    for count in (TYPICAL, 0):
        if table.guess is None and query.cells is not None:
            cells = np.full(query.cells, count * table.layout.asked.typical, dtype=np.int64)
            truth = query.answer(cells if held.impossible is None else np.where(held.impossible, 0, cells))
        elif table.guess is not None:
            truth = table.guess
        else:
            return None
        if held.all is None or held.all.system(query.n).violation(truth) is None:
            try:
                return table.mechanism.release(truth, rng=seeded(count))
            except Refused as refusal:
                sentence = in_words_of_the_spec(table.layout, str(refusal))
                raise table.layout.at["method"].refuse(sentence, found=table.chosen.method) from None
    return None


def _expected_bytes(table: Table) -> int:
    """Guess from the public names how many bytes the files of a table have, rather too many than too few."""
    names, columns = table.layout.in_parts, table.layout.columns
    if names is not None:  # of a lowest area, whose names are the longest
        columns = {name: each.column for name, each in names.of(*names.parts[-1]).items()}
    rows = slice(None, None, -(-len(columns["level"]) // SAMPLE))
    per_row = sum(np.mean([len(str(name).encode()) + 1 for name in column[rows]]) for column in columns.values())
    page = min(table.layout.query.n, HELD) * (per_row + ON_THE_PAGE)
    return int(table.layout.query.n * (2 * per_row + FIGURES_OF_ROW) + page)


def write_release(run: Run, drawn: Sequence[Release | Parts], place: Path, disclosed: Sequence[GivenAway]) -> None:
    """Write the tables of a job, their report and their certificate into a folder, in which parts of tables may lie."""
    job = run.job
    determined = {found.table.name: found.entries for found in disclosed}
    also = [words for found in disclosed for words in found.words]
    written = []
    for _, group in itertools.groupby(zip(job.tables, drawn, strict=True), lambda one: one[0].layout.asked.file):
        made = list(group)
        table, release = made[0]
        if isinstance(release, Parts):
            given = place, run.prefix(table), determined.get(table.name, ())
            written.append(describe_parts(table, release, *given))
        else:
            of_one: list[Any] = made
            written += write_table_files(of_one, place, run.prefix(table), determined)
    tables = [certificate for certificate, _ in written]
    listed = list(dict.fromkeys(name for table in tables for name in table.files))
    there = {name: found for each in drawn if isinstance(each, Parts) for name, found in each.files.items()}
    files = [_described(place, name, there) for name in listed]
    write_text(place / NAME, one_file())
    files.append(_described(place, NAME))
    charge = run.charge_row
    head = None if charge is None else LedgerHead(row=charge.number, hash=charge.hash)
    told = spent(run.ledger, charge) if charge is not None and job.spec.ledger.in_report else ()

    def certified() -> Certificate:
        found = certificate_of(job, run.identity, run.date, tables, files, also, told)
        signed = None if run.signer is None else run.signer.fingerprint
        update = {"ledger": head, "commitment": run.commitment, "signed_by": signed}
        return run.of_series(found).model_copy(update=update).sealed()

    write_text(place / PACKAGE, data_package(certified()))
    files.append(_described(place, PACKAGE))
    lines = over_time(certified(), place, run.folder.parent)
    # The report is certified too, so it is made from a certificate that does not list it yet.
    page = report(certified(), [columns for _, columns in written], run.sizes, asked(place, certified()), lines)
    write_text(place / REPORT, page)
    files.append(_described(place, REPORT))
    text = certified().to_json()
    write_text(place / FILE, text)
    if run.signer is not None:
        write_text(place / f"{FILE}{SIGNED}", signature_text(run.signer, text.encode()))
    for path in (*place.rglob("*"), place):
        os.utime(path, (run.midnight, run.midnight))


def _described(place: Path, name: str, known: Mapping[str, tuple[int, str]] = MappingProxyType({})) -> ReleasedFile:
    """The size and hash of a file, as whoever wrote it says, or as it is."""
    size, found = known[name] if name in known else ((place / name).stat().st_size, sha256_of(place / name))
    return ReleasedFile(name=name, bytes=size, sha256=found)
