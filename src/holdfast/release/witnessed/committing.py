"""The two steps of a witnessed release: commit to everything that decides the draw, then draw with a nonce.

Killed at any point, either step is run again: the first charges once and finds its commitment, the second draws the
same table, since the ledger has one nonce for it. The opening is on the disk before the charge, and the nonce in the
ledger before the draw.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from holdfast.arguments import Refused
from holdfast.release.certificate.certificate import Commitment
from holdfast.release.ends import saying, saying_nothing_happened, time_of, told
from holdfast.release.job.job import Job
from holdfast.release.ledger.entries import Entry
from holdfast.release.ledger.ledger import Ledger
from holdfast.release.run import LOOKING, Run, counted, finish, looked_at
from holdfast.release.spending import unfinished
from holdfast.release.standalone_verifier.commitment import NONCE, commitment_of
from holdfast.release.witnessed.opening import Opening, code_hash, opening_of, read_opening, write_opening
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
        known = _committed(run, path)
        if known is not None:
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
            past = run.ledger.past(job.dataset, job.unit)
            with run.workplace(step, charged=True) as place:
                answers = opening.truths
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
    if not path.exists():
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
