"""What became of a release, in one of four sentences: each is said only where it is true; and what ends it at once.

The ledger has a mark for every step, durable before the step is taken, so it is the ledger that is asked, also by
`holdfast ledger list` after a release was killed.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import duckdb

from holdfast.arguments import Refused
from holdfast.release.ledger.entries import STATES, Entry
from holdfast.release.ledger.ledger import Ledger
from holdfast.release.signing.keys import read_key
from holdfast.release.spec.spec import Spec
from holdfast.release.storage.files import refuse_inside
from holdfast.release.storage.reading import files_of

NOTHING = "nothing was charged, drawn or published"
CHARGED = "the ledger keeps the charge, and nothing was drawn or published"
KEPT = "the ledger keeps the charge, since what was drawn cannot be drawn again for free; nothing was published"
PUBLISHED = "the release is published"
#: Where the ledger itself cannot be asked.
UNSURE = "the ledger cannot be read now: holdfast ledger list says what became of the release when it can be"
_SENTENCES = {STATES["charge"]: CHARGED, STATES["drawing"]: KEPT, STATES["published"]: PUBLISHED}


def became_of(entry: Entry | None) -> str:
    """Return the sentence about a release of which the ledger has this charge, or none."""
    return NOTHING if entry is None else _SENTENCES.get(entry.state, KEPT)


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
        error.add_note(words)
        raise


@contextmanager
def saying_nothing_happened() -> Iterator[None]:
    """Let everything that goes wrong and says nothing else say that nothing happened."""
    try:
        yield
    except BaseException as error:
        said = "\n".join((str(error), *getattr(error, "__notes__", [])))
        if not any(words in said for words in (NOTHING, CHARGED, KEPT, PUBLISHED, UNSURE)):
            error.add_note(NOTHING)
        raise


@contextmanager
def told(what: str) -> Iterator[None]:
    """Say in one sentence what the system says."""
    try:
        yield
    except (OSError, duckdb.Error) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else type(error).__name__
        became = "; ".join(getattr(error, "__notes__", [NOTHING]))
        raise Refused(f"{what} ({reason}): make room or check permissions, then try again; {became}") from None


def refuse_early(
    spec: Spec, output: str | Path | None = None, ledger: str | Path | None = None, *, records: bool = True
) -> None:
    """Refuse a folder that exists, a key or a ledger that cannot be read, and `records` of the spec that are not there.

    Everything is looked at again when the release is made; here nothing is opened for writing. `output` and `ledger`
    replace those of the spec.
    """
    with saying_nothing_happened():
        folder = Path(spec.output if output is None else output).absolute()
        if os.path.lexists(folder):
            raise Refused(f"{folder} exists already: name another output folder, or move this one away")
        refuse_inside(folder)
        if spec.key_file is not None:
            read_key(spec.key_file)
        source = spec.data.source
        if records and isinstance(source, str) and "://" not in source and not files_of(spec.resolve(source)):
            raise spec.at["data"]["source"].refuse(f"there is no file {source!r}", found=source)
        book = Ledger(spec.ledger_file, spec.witness) if ledger is None else Ledger(ledger)
        book.look()
