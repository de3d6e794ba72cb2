"""What the rows of a ledger say: charges, what became of them, and exact figures that were published."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from holdfast.arguments import Refused
from holdfast.privacy import Guarantee
from holdfast.release.ledger.accounts import Account, Budget, Unit
from holdfast.release.ledger.store import FIRST, SUMS, Row
from holdfast.release.storage.files import sha256_of

#: A witnessed release between its two steps.
COMMITTED = "committed, waits for its nonce"
#: How far a release came, by its last row. Between its seal and its last row the folder itself says if it is there.
STATES = {
    "charge": "charged, not drawn",
    "drawing": "drawn, not published",
    "slice": "drawn, not published",
    "seal": "drawn, not published",
    "published": "published",
}
#: The kind of rows that name a place where the ledger has a second copy.
WITNESS = "witness"
#: The file whose hash seals a release.
CERTIFICATE = "certificate.json"


@dataclass(frozen=True)
class Entry:
    """One charge. `parts` has all statements of every table of the release, the counted one first.

    `number` and `hash` are those of its row, `state` says how far the release came, `sealed` has the hash of its
    certificate (slices of agents may be joined more than once) and `folder` is where it was published. Of a witnessed
    release `commitment` has the hashes that were fixed with the charge, and `nonce` what was given afterwards, by row.
    """

    when: str
    dataset: str
    unit: str
    release: str
    title: str
    spec_hash: str
    parts: tuple[tuple[Guarantee, ...], ...]
    number: int
    hash: str
    state: str
    sealed: tuple[str, ...]
    folder: str | None
    commitment: Mapping[str, str] | None = None
    nonce: tuple[int, str] | None = None

    @property
    def account(self) -> str:
        """Whose account was charged: that of the records, or of the persons in a column."""
        return Unit.read(self.unit).who

    @property
    def statements(self) -> tuple[Guarantee, ...]:
        """What the tables of the release promise together, the counted statement first."""
        return Account(self.dataset, self.unit, None, self.parts).spent

    def as_mapping(self) -> dict[str, Any]:
        """Return the charge as plain values that JSON can hold."""
        return {
            "when": self.when,
            "dataset": self.dataset,
            "unit": self.unit,
            "account": self.account,
            "release": self.release,
            "title": self.title,
            "spec_hash": self.spec_hash,
            "state": self.state,
            "row": self.number,
            "hash": self.hash,
            "sealed": list(self.sealed),
            "commitment": None if self.commitment is None else dict(self.commitment),
            "nonce": None if self.nonce is None else self.nonce[1],
            "parts": [[statement.as_mapping() for statement in part] for part in self.parts],
        }


def charge_content(
    parts: Sequence[Sequence[Guarantee]], title: str, spec_hash: str, commitment: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """Return what the row of a charge says; a charge without a statement would be one of nothing."""
    if not parts or not all(parts):
        raise Refused("a charge needs a statement of every table, found none: say what the release promises")
    statements = [[statement.as_mapping() for statement in part] for part in parts]
    fixed = {} if commitment is None else {"commitment": dict(commitment)}
    return {"title": title, "spec_hash": spec_hash, "statements": statements, **fixed}


def entries_of(rows: Iterable[Row], dataset: str | None, unit: str | None) -> list[Entry]:
    """Return the charges among rows, oldest first: all, or those of one dataset or of a unit's account."""
    who = None if unit is None else Unit.read(unit).who
    listed = list(rows)
    last: dict[str, Row] = {}
    seals: dict[str, list[dict[str, Any]]] = {}
    nonces: dict[str, tuple[int, str]] = {}
    for row in listed:
        if row.kind in STATES:
            last[release_of(row)] = row
        if row.kind == "drawing" and "nonce" in content_of(row):
            nonces[row.key] = row.number, str(content_of(row)["nonce"])
        if row.kind == "seal":
            seals.setdefault(release_of(row), []).append(content_of(row))
    known: dict[str, tuple[dict[str, Any], tuple[tuple[Guarantee, ...], ...]]] = {}  # most charges say the same
    entries = []
    for row in listed:
        if row.kind != "charge" or dataset not in (None, row.dataset) or who not in (None, Unit.read(row.unit).who):
            continue
        if row.content not in known:
            known[row.content] = charge_of(row)
        told, parts = known[row.content]
        seal, state = seals.get(row.key, []), STATES[last[row.key].kind]
        about = (row.at, row.dataset, row.unit, row.key, told["title"], told["spec_hash"], parts, row.number, row.hash)
        sealed, fixed = tuple(str(each.get("certificate")) for each in seal), told.get("commitment")
        if fixed is not None and state == STATES["charge"]:
            state = COMMITTED
        folder = seal[-1].get("folder") if seal else None
        entries.append(_settled(Entry(*about, state, sealed, folder, fixed, nonces.get(row.key))))
    return entries


def release_of(row: Row) -> str:
    """The release that a row is about; rows of slices and seals say besides of which agent, and of what."""
    return row.key.split(" ")[0] if row.kind in ("slice", "seal") else row.key


def _settled(entry: Entry) -> Entry:
    """A release that was sealed and left no later mark is published where its folder has got its name."""
    if not entry.sealed or entry.state == STATES["published"] or not entry.folder:
        return entry
    try:
        there = sha256_of(Path(entry.folder) / CERTIFICATE) in entry.sealed
    except OSError:
        return entry
    return replace(entry, state=STATES["published"]) if there else entry


def content_of(row: Row) -> Any:
    """Return what a row says; refused where it cannot be read."""
    try:
        return json.loads(row.content)
    except (ValueError, RecursionError):
        raise unreadable(row) from None


def charge_of(row: Row) -> tuple[dict[str, Any], tuple[tuple[Guarantee, ...], ...]]:
    """Return what the row of a charge says, and its statements; refused where it cannot be read."""
    told = content_of(row)
    try:
        parts = tuple(tuple(map(Guarantee.from_json, part)) for part in told["statements"])
        fixed = told.get("commitment", {"opening": "", "code": ""})
        texts = (told["title"], told["spec_hash"], fixed["opening"], fixed["code"])
        named = all(isinstance(text, str) for text in texts) and len(fixed) == len(("opening", "code"))
    except (ValueError, TypeError, KeyError, AttributeError):
        raise unreadable(row) from None
    if not parts or not all(parts) or not named:
        raise unreadable(row)
    return told, parts


def budget_of(row: Row) -> Budget:
    try:
        return Budget.from_mapping(content_of(row)["budget"])
    except (ValueError, TypeError, KeyError, AttributeError, ZeroDivisionError):
        raise unreadable(row) from None


def readable(rows: Sequence[Row]) -> None:
    """Refuse rows of which one says nothing that can be read, or the same twice."""
    seen, read = set(), set()
    for row in rows:
        if row.kind == "charge":
            if row.content not in read:  # most charges say the same
                charge_of(row)
            read.add(row.content)
        elif row.kind == "budget":
            budget_of(row)
        elif row.kind not in (*STATES, FIRST, SUMS, WITNESS, "figures", "secret", "nonce"):
            raise unreadable(row)
        else:
            content_of(row)
        if row.key and (row.kind, row.key) in seen:
            raise unreadable(row)
        seen.add((row.kind, row.key))


def unreadable(row: Row) -> Refused:
    """The refusal of a row that cannot be read."""
    return Refused(
        f"row {row.number} of the ledger, a {row.kind}, cannot be read, so nothing can be added up: restore it from a "
        "copy"
    )
