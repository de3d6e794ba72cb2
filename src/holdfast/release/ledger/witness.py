"""A second copy of a ledger, which follows row by row and must never know more than the ledger does."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from holdfast.arguments import Refused
from holdfast.release.ledger.entries import WITNESS
from holdfast.release.ledger.ledger_file import LedgerFile
from holdfast.release.ledger.server import LedgerServer
from holdfast.release.ledger.table import Table


def agree(mine: Table | None, witness: LedgerFile | LedgerServer, where: Any, whole: bool = False) -> None:
    """Refuse a ledger that is not what its witness has seen. A witness may be behind: it follows later."""
    with witness.reading(whole) as theirs:
        if theirs is None and mine is not None and mine.find(WITNESS, str(witness)) is not None:
            raise Refused(
                f"the witness {witness} of the ledger {where} is gone, and nobody can tell what it had seen: restore "
                "it from a copy, or name a new place for a witness"
            )
        if theirs is None:
            return
        seen = (theirs.all() if whole else theirs.recent())[-1]
        if seen not in (() if mine is None else mine.recent(seen.number + 1)):
            raise Refused(
                f"the ledger {where} contradicts its witness {witness}: an old copy was put back, or one of them was "
                "changed; find out which, and restore it from a copy"
            )


def begin_witness(mine: Table, witness: LedgerFile | LedgerServer, where: Any, add: Callable[..., Any]) -> None:
    """Make a second copy where there is none yet, and say so in the ledger, which misses it when it is gone."""
    agree(mine, witness, where)
    if mine.find(WITNESS, str(witness)) is None:
        with witness.writing(mine.all()):
            pass
        add(WITNESS, {}, key=str(witness))


def follow(book: LedgerFile | LedgerServer, witness: LedgerFile | LedgerServer) -> None:
    """Let a second copy have what the ledger has."""
    with witness.writing() as theirs, book.reading() as mine:
        rows = () if mine is None else mine.after(theirs.recent()[-1])
        if rows:
            theirs.insert(rows)
