"""Rows that each carry a hash of themselves and of the row before, so that the last hash stands for all of them.

A row that was removed, put elsewhere, changed or renamed contradicts its own hash or that of the next row. Whoever can
write the file can write a whole new chain too: that one contradicts the heads which certificates have published, and a
second copy. The first row holds a random name, so that no hash tells anything about what it stands for.
"""

from __future__ import annotations

import hashlib
import json
import secrets
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from json.encoder import encode_basestring_ascii as quoted
from typing import Any, NamedTuple

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


class Row(NamedTuple):
    """One row of a ledger; rows are numbered from 1 on without a gap."""

    number: int
    at: str
    kind: str
    dataset: str
    unit: str
    key: str
    content: str
    hash: str


COLUMNS = Row._fields


def hash_of(before: str, number: int, entered: Entered | Row) -> str:
    """Return the hash of a row that comes behind another one, given by its hash."""
    words = (entered.at, entered.kind, entered.dataset, entered.unit, entered.key, entered.content)
    # The text of a JSON list of them all, as json.dumps writes it, in a quarter of the time.
    text = f"[{quoted(before)}, {number}, {', '.join(map(quoted, words))}]"
    return f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"


def behind(last: Row | None, entered: Entered) -> Row:
    """Return what is entered as the next row."""
    number, before = (1, BEGINNING) if last is None else (last.number + 1, last.hash)
    found = hash_of(before, number, entered)
    return Row(number, entered.at, entered.kind, entered.dataset, entered.unit, entered.key, entered.content, found)


def first_row(at: str, **about: Any) -> Row:
    """Return the first row of a new ledger."""
    return behind(None, Entered(at, FIRST, json.dumps({"name": secrets.token_hex(16), **about})))


def unbroken(
    found: Iterable[Sequence[Any]],
    where: str,
    wanted: Callable[[Row], bool] | None = None,
    last: tuple[int, str] = (0, BEGINNING),
) -> tuple[Row, ...]:
    """Return rows whose chain is unbroken, those that are wanted; refused where it is not.

    `last` is what they stand on: the number and the hash of the row before them.
    """
    rows: list[Row] = []
    number, before = last
    for values in found:
        number += 1
        row = Row(*values)
        if (
            row.number != number
            or set(map(type, values[1:])) != {str}
            or row.hash != hash_of(before, number, row)
            or (row.kind == FIRST) != (number == 1)
        ):
            raise Refused(
                f"row {number} of the ledger {where} does not follow from the rows before it: something there was "
                "changed, removed or damaged, so nothing is charged; restore the ledger from a copy"
            )
        before = row.hash
        if wanted is None or wanted(row):
            rows.append(row)
    if number == 0:
        raise Refused(f"the ledger {where} has lost its first row, so nothing is charged: restore it from a copy")
    return tuple(rows)
