"""What became of a release, in one of four sentences: each is said only where it is true; and what ends it at once.

The ledger has a mark for every step, durable before the step is taken, so it is the ledger that is asked, also by
`holdfast ledger list` after a release was killed.
"""

from __future__ import annotations

import hashlib
import os
import secrets
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import duckdb

from holdfast.arguments import Refused, path_of, shown
from holdfast.release.ledger.entries import COMMITTED, STATES, Entry
from holdfast.release.ledger.ledger import Ledger
from holdfast.release.records.tabulate import refuse_unopened
from holdfast.release.signing import read_key
from holdfast.release.spec.spec import Spec
from holdfast.release.storage.files import refuse_inside
from holdfast.release.table.laid import Laid

NOTHING = "nothing was charged, drawn or published"
CHARGED = "the ledger keeps the charge, and nothing was drawn or published"
KEPT = "the ledger keeps the charge, since what was drawn cannot be drawn again for free; nothing was published"
PUBLISHED = "the release is published"
#: Of a period of a series, which is charged with all others.
BEGUN = "run it again with the same records and it is made as it would have been"
#: Where the ledger itself cannot be asked.
UNSURE = "the ledger cannot be read now: holdfast ledger list says what became of the release when it can be"
#: Seconds of a day: a release waits no longer.
DAY = 86_400
_SENTENCES = {STATES["charge"]: CHARGED, COMMITTED: CHARGED, STATES["drawing"]: KEPT, STATES["published"]: PUBLISHED}


def became_of(entry: Entry | None) -> str:
    """Return the sentence about a release of which the ledger has this charge, or none."""
    return NOTHING if entry is None else _SENTENCES.get(entry.state, KEPT)


def identity_of(run_id: object) -> str:
    """The name of a release in ledger and certificate: what follows from the id of its run, or a new one."""
    if run_id is None:
        return secrets.token_hex(16)
    if not isinstance(run_id, str) or not run_id.strip():
        raise Refused(f"run_id must be a text that is not empty, found {shown(run_id)}")
    return hashlib.sha256(f"holdfast run {run_id}".encode()).hexdigest()[:32]


def made_already(spec: Spec, run_id: str, ledger: Ledger | None = None) -> Path | None:
    """Where a run of this id published its release, None if there was none; refused where one was charged in vain."""
    book = Ledger(spec.ledger_file, spec.witness) if ledger is None else ledger
    entry = book.became(identity_of(run_id))
    if entry is None:
        return None
    if entry.spec_hash != spec.hash:
        raise Refused(f"run {run_id!r} of {entry.when[:10]} released another spec: give this one another id")
    if entry.state == STATES["published"] and entry.folder is not None:
        return Path(entry.folder)
    raise Refused(
        f"run {run_id!r} was charged on {entry.when[:10]} and did not publish: {became_of(entry)}; a run of another id "
        "is charged again"
    )


@contextmanager
def saying(ledger: Ledger, release: str) -> Iterator[None]:
    """Let everything that goes wrong from the charge on say what became of the release."""
    try:
        yield
    except BaseException as error:
        try:
            words = became_of(ledger.became(release))
        except Exception:  # what went wrong matters more than a ledger that cannot be read now
            words = UNSURE
        if words != NOTHING and isinstance(error, Refused):
            error.retry = False  # a second attempt would be charged again
        error.add_note(words)
        raise


@contextmanager
def saying_nothing_happened() -> Iterator[None]:
    """Let everything that goes wrong and says nothing else say that nothing happened."""
    try:
        yield
    except BaseException as error:
        said = "\n".join((str(error), *getattr(error, "__notes__", [])))
        if not any(words in said for words in (NOTHING, CHARGED, KEPT, PUBLISHED, UNSURE, BEGUN)):
            error.add_note(NOTHING)
        raise


@contextmanager
def told(what: str) -> Iterator[None]:
    try:
        yield
    except (OSError, duckdb.Error) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else type(error).__name__
        became = "; ".join(getattr(error, "__notes__", [NOTHING]))
        raise Refused(f"{what} ({reason}): make room or check permissions, then try again; {became}") from None


def refuse_early(
    shapes: Laid,
    output: str | Path | None = None,
    ledger: str | Path | None = None,
    source: Any = None,
    *,
    records: bool = True,
) -> None:
    """Refuse a folder that exists, a key or a ledger that cannot be read, and `records` that lack what is counted.

    Everything is looked at again when the release is made; here no record is counted and nothing is opened for writing.
    `output`, `ledger` and `source` replace those of the spec.
    """
    spec = shapes.spec
    with saying_nothing_happened():
        folder = path_of("output", spec.output if output is None else output).absolute()
        if os.path.lexists(folder):
            raise Refused(f"{folder} exists already: name another output folder, or move this one away")
        refuse_inside(folder)
        if spec.key_file is not None:
            read_key(spec.key_file)
        book = Ledger(spec.ledger_file, spec.witness) if ledger is None else Ledger(ledger)
        book.look()
        if records and (source is None or isinstance(source, str | Path)):  # a frame may be read once only
            refuse_unopened(shapes, source)


def time_of(at_least: float) -> float | None:
    """The time before which nothing is published, so many seconds from now; None for 0."""
    if not 0 <= at_least <= DAY:
        raise Refused(f"at_least must lie between 0 and {DAY:,} seconds, found {shown(at_least)}")
    return time.monotonic() + at_least if at_least else None


def wait_until(end: float | None, step: Callable[[str], None], aside: Callable[[str], None]) -> None:
    """Wait until a time that does not depend on the data; the curator alone is told where it is over already."""
    if end is None:
        return
    step("waiting until it may be published")
    left = end - time.monotonic()
    if left < 0:
        aside(f"the release took {-left:.1f} s longer than the least time: when it appears may tell of the data")
    while left > 0:
        time.sleep(left)
        left = end - time.monotonic()
