"""Rows that each carry a hash of themselves and of the row before, so that the last hash stands for all of them.

A row that was removed, put elsewhere, changed or renamed contradicts its own hash or that of the next row. Whoever can
write the file can write a whole new chain too: that one contradicts the heads which certificates have published, and a
second copy. The first row holds a random name, so that no hash tells anything about what it stands for.
"""

from __future__ import annotations

import hashlib
import json
import secrets
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from typing import Any

from holdfast.arguments import Refused

#: What the first row stands on, and its kind; everything else in a ledger comes behind it.
BEGINNING, FIRST = "sha256:" + 64 * "0", "ledger"


@dataclass(frozen=True)
class Entered:
    """What is entered in one row: what it is, about which dataset and unit, and under which key; `content` is JSON."""

    at: str
    kind: str
    content: str
    dataset: str = ""
    unit: str = ""
    key: str = ""


@dataclass(frozen=True)
class Row:
    """One row of a ledger; rows are numbered from 1 on without a gap."""

    number: int
    at: str
    kind: str
    dataset: str
    unit: str
    key: str
    content: str
    hash: str


COLUMNS = tuple(field.name for field in fields(Row))


def hash_of(before: str, number: int, entered: Entered | Row) -> str:
    """Return the hash of a row that comes behind another one, given by its hash."""
    words = [before, number, entered.at, entered.kind, entered.dataset, entered.unit, entered.key, entered.content]
    return f"sha256:{hashlib.sha256(json.dumps(words).encode()).hexdigest()}"


def behind(rows: Sequence[Row], entered: Entered) -> Row:
    """Return what is entered as the next row."""
    number, before = len(rows) + 1, rows[-1].hash if rows else BEGINNING
    found = hash_of(before, number, entered)
    return Row(number, entered.at, entered.kind, entered.dataset, entered.unit, entered.key, entered.content, found)


def first_row(at: str, **about: Any) -> Row:
    """Return the first row of a new ledger."""
    return behind((), Entered(at, FIRST, json.dumps({"name": secrets.token_hex(16), **about})))


def unbroken(found: Iterable[Sequence[Any]], where: str) -> tuple[Row, ...]:
    """Return rows whose chain is unbroken; refused where it is not."""
    rows: list[Row] = []
    before = BEGINNING
    for number, values in enumerate(found, 1):
        row = Row(*values)
        if (
            row.number != number
            or not all(type(value) is str for value in values[1:])
            or row.hash != hash_of(before, number, row)
        ):
            raise Refused(
                f"row {number} of the ledger {where} does not follow from the rows before it: something there was "
                "changed, removed or damaged, so nothing is charged; restore the ledger from a copy"
            )
        before = row.hash
        rows.append(row)
    if not rows or rows[0].kind != FIRST:
        raise Refused(f"the ledger {where} has lost its first row, so nothing is charged: restore it from a copy")
    return tuple(rows)
