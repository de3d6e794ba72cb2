"""The two steps of a witnessed release: commit to everything that decides the draw, then draw with a nonce.

Killed at any point, either step is run again: the first charges once and finds its commitment, the second draws the
same table, since the ledger has one nonce for it. The opening is on the disk before the charge, and the nonce in the
ledger before the draw.
"""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from holdfast.arguments import Refused
from holdfast.release.certificate.certificate import Certificate, Commitment, read_certificate
from holdfast.release.certificate.verify import Check
from holdfast.release.ends import saying, saying_nothing_happened, time_of, told
from holdfast.release.explain import unfinished
from holdfast.release.facts.table import TableCertificate
from holdfast.release.job.job import Job
from holdfast.release.ledger.entries import Entry
from holdfast.release.ledger.ledger import Ledger
from holdfast.release.records.tabulate import tabulate
from holdfast.release.run import LOOKING, Run, counted, finish, looked_at
from holdfast.release.standalone_verifier.commitment import NONCE, commitment_of
from holdfast.release.storage.files import sha256_of
from holdfast.release.witnessed.opening import Opening, code_hash, opening_of, read_opening, write_opening
from holdfast.release.writing import write_table_files
from holdfast.system import sync_folder

Step = Callable[[str], None]


@dataclass(frozen=True)
class Committed:
    """A draw that was committed to: the hash that an officer is shown, the row of the ledger, and the opening."""

    commitment: str
    row: int
    opening: Path


def commit(
    job: Job,
    *,
    source: Any = None,
    output: str | Path | None = None,
    ledger: Ledger | None = None,
    step: Step = lambda _: None,
    aside: Step = lambda _: None,
    note: Step = lambda _: None,
) -> Committed:
    """Count the records and charge the ledger for one draw of them, which a nonce will decide; draw nothing.

    Run again, it returns the same commitment. Refused is what a release would refuse before its charge.
    """
    with saying_nothing_happened():
        step("checking the ledger")
        run = Run.of(job, output, ledger)
        if job.spec.engine != "local":
            raise Refused("a witnessed draw is made in this process, where it can be made again: write engine: local")
        path = opening_of(run.folder)
        if (known := _committed(run, path)) is not None:
            return known
        past = run.ledger.past(job.dataset, job.unit)
        for words in unfinished(past):
            note(words)
        with run.workplace(step) as place:
            if _committed(run, path) is not None:
                raise Refused(f"another process committed to {path} just now: run this again to see it")
            path.unlink(missing_ok=True)  # of a process that was killed before its charge
            run, _, answers = counted(run, source, step, aside)
            past = run.ledger.past(job.dataset, job.unit, since=past)
            step(LOOKING)
            looked_at(run.job, past, answers, aside)
            step("charging the ledger")
            with saying(run.ledger, run.identity):
                try:
                    with told(f"{path} cannot be written"):
                        fixed = {"opening": write_opening(Opening.of(run, answers), place, path), "code": code_hash()}
                        sync_folder(path.parent)
                    while not run.charge(past, fixed):
                        looked_at(run.job, past, answers, aside)
                except BaseException:
                    if not run.charged:
                        path.unlink(missing_ok=True)
                    raise
        made = _committed(run, path)
        assert made is not None
        return made


def draw_committed(
    job: Job,
    nonce: str,
    *,
    output: str | Path | None = None,
    ledger: Ledger | None = None,
    at_least: float = 0.0,
    step: Step = lambda _: None,
    aside: Step = lambda _: None,
) -> Path:
    """Draw the tables that were committed to, with a nonce that was given since, and release them; return the folder.

    Run again with the same nonce, it draws the same tables; with another one it is refused.
    """
    end = time_of(at_least)
    if not re.fullmatch(NONCE, nonce):
        raise Refused(f"a nonce has 16 to 64 bytes, in 32 to 128 hexadecimal digits, found {len(nonce)} characters")
    with saying_nothing_happened():
        step("reading the commitment")
        run = Run.of(job, output, ledger)
        path = opening_of(run.folder)
        if not path.exists():
            raise Refused(f"there is no {path}: commit to the draw first, by holdfast release SPEC --witnessed")
        opening, seal = read_opening(path)
        entry = run.ledger.entry(opening.release)
        if entry is None or (entry.commitment or {}).get("opening") != seal:
            raise Refused(f"the ledger has no commitment to {path}: it was changed, or the charge was never made")
        with saying(run.ledger, opening.release):
            run = _continued(run, opening, entry, nonce)
            past, answers = run.ledger.past(job.dataset, job.unit), opening.truths
            with run.workplace(step, charged=True) as place:
                step(LOOKING)
                disclosed = looked_at(run.job, past, answers, aside)
                run.ledger.give_nonce(nonce, run.identity, run.when)
                step("drawing the tables")
                streams = [opening.stream(_commitment_of(entry), nonce, table) for table in run.job.tables]
                each = zip(run.job.tables, answers, streams, strict=True)
                drawn = [table.mechanism.release(truth, stream) for table, truth, stream in each]
                finish(run, drawn, answers, past, disclosed, place, end, step, aside)
    return run.folder


def _commitment_of(charge: Entry) -> str:
    ledger = {"row": charge.number, "hash": charge.hash}
    about = {"release": charge.release, "spec_hash": charge.spec_hash, "ledger": ledger}
    return commitment_of({**about, "commitment": charge.commitment})


def _committed(run: Run, path: Path) -> Committed | None:
    """What was committed to before, if anything was charged for it."""
    if not os.path.exists(path):
        return None
    opening, seal = read_opening(path)
    entry = run.ledger.entry(opening.release)
    if entry is None:
        return None
    if entry.spec_hash != run.job.spec.hash or (entry.commitment or {}).get("opening") != seal:
        raise Refused(f"{path} is the opening of another release: move it away, its charge stays")
    if entry.nonce is not None:
        raise Refused(f"this release has its nonce already: draw with it, or move {path} away and commit anew")
    return Committed(_commitment_of(entry), entry.number, path)


def _continued(run: Run, opening: Opening, entry: Entry, nonce: str) -> Run:
    """The run that was committed to; refused where anything that was fixed is another thing now."""
    assert entry.commitment is not None
    if entry.spec_hash != run.job.spec.hash or opening.public_files != run.job.public_files:
        raise Refused("the spec or a public file is not the one that was committed to: restore it")
    if entry.commitment.get("code") != code_hash():
        raise Refused("another version of holdfast or its packages, or another processor, was committed to: draw there")
    if entry.nonce is not None and entry.nonce[1] != nonce:
        raise Refused("this release has its nonce already, and nothing is drawn twice: give the same one again")
    fixed = Commitment(**entry.commitment, nonce=nonce)
    run = replace(run.reading(opening.origin), identity=opening.release, commitment=fixed)
    if entry.parts != run.parts:
        raise Refused("the ledger was charged with other statements than this spec makes")
    return run


OPENED = "drawn again from what was committed to and the nonce, every file of figures is the same, byte for byte"


def reexecuted(
    folder: str | Path, file: str | Path, source: Any = None, step: Callable[[str], None] = lambda _: None
) -> Check:
    """Draw a witnessed release again from its opening; with a source, count its records again too.

    Refused: an opening of another release, and a table that another version of holdfast drew and this one does not.
    """
    certificate = read_certificate(Path(folder))
    fixed = certificate.commitment
    if fixed is None or certificate.ledger is None:
        raise Refused("this release is not witnessed: nothing was fixed before its draw, so none can be confirmed")
    opening, seal = read_opening(Path(file))
    if opening.release != certificate.release:
        raise Refused(f"{str(file)!r} is the opening of another release")
    if seal != fixed.opening:
        return Check("opened", False, "the opening is not the one that was committed to")
    step("drawing again")
    same = fixed.code == code_hash()
    try:
        with opening.job() as job:
            wrong = next(_differences(job, opening, certificate, Path(folder), source), None)
    except Refused:
        if same:
            raise
        wrong = "it cannot be drawn"
    if wrong is not None and not same:
        made = certificate.software
        packages = ", ".join(f"{name} {version}" for name, version in made.packages.items())
        raise Refused(
            f"this version cannot confirm the draw ({wrong}); holdfast {made.version} of the code {fixed.code}, "
            f"Python {made.python}, {packages}, made it on a processor of its kind; this is the code {code_hash()}"
        )
    return Check("opened", wrong is None, OPENED if wrong is None else wrong)


def _differences(job: Job, opening: Opening, certificate: Certificate, folder: Path, source: Any) -> Iterator[str]:
    """Say what is another thing in the release than what was committed to."""
    if job.spec.hash != certificate.spec_hash:
        yield "the certificate is that of another spec"
    if sorted(f"sha256:{each}" for each in job.public_files.values()) != sorted(
        each.sha256 for each in certificate.public_files
    ):
        yield "the certificate is that of other public files"
    if tuple(certificate.statements) != job.guarantees:
        yield "the certificate has other statements than the spec makes"
    truths = opening.truths
    if source is not None:
        cells = tabulate(job, source)
        answers = [table.layout.query.answer(each) for table, each in zip(job.tables, cells, strict=True)]
        if not all(map(np.array_equal, answers, truths)):
            yield "the records are not those that were committed to"
    hashes = {file.name: file.sha256 for file in certificate.files}
    commitment, nonce = commitment_of(certificate.as_mapping()), certificate.commitment.nonce  # type: ignore[union-attr]
    with tempfile.TemporaryDirectory() as place:
        for table, told, truth in zip(job.tables, certificate.tables, truths, strict=True):
            drawn = table.mechanism.release(truth, opening.stream(commitment, nonce, table))
            written, _ = write_table_files(table, drawn, Path(place), told.csv.removesuffix("table.csv"), ())
            # What is not protected speaks of other releases too.
            if _said(written) != _said(told):
                yield f"the certificate says something else of {told.name} than the draw does"
            for name in written.files:
                drawn_again = sha256_of(Path(place, name))
                if name.endswith(".csv") and not drawn_again == hashes[name] == sha256_of(folder / name):
                    yield f"{name} is not what was drawn"


def _said(table: TableCertificate) -> str:
    return table.model_dump_json(exclude={"unprotected"})
