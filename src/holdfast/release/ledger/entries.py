"""What the rows of a ledger say: charges, what became of them, and exact figures that were published."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from holdfast.arguments import Refused
from holdfast.privacy import Guarantee
from holdfast.release.ledger.accounts import RECORD, Account, Budget, Unit, alike, for_each_record
from holdfast.release.ledger.store import FIRST, Row
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
#: The kinds of rows of a series: a period is about to be drawn from data with this mark; it was drawn with this noise.
OF_PERIODS = ("period", "noise")
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
    series: Mapping[str, Any] | None = None

    @property
    def account(self) -> str:
        """Whose account was charged: that of the records, or of the persons in a column."""
        return Unit.read(self.unit).who

    @property
    def statements(self) -> tuple[Guarantee, ...]:
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
    parts: Sequence[Sequence[Guarantee]],
    title: str,
    spec_hash: str,
    commitment: Mapping[str, str] | None = None,
    series: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Return what the row of a charge says; a charge without a statement would be one of nothing."""
    if not parts or not all(parts):
        raise Refused("a charge needs a statement of every table, found none: say what the release promises")
    statements = [[statement.as_mapping() for statement in part] for part in parts]
    fixed: dict[str, Any] = {} if commitment is None else {"commitment": dict(commitment)}
    fixed |= {} if series is None else {"series": dict(series)}
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
        last_of = folder, fixed, nonces.get(row.key), told.get("series")
        entries.append(_settled(Entry(*about, state, sealed, *last_of)))
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
        elif row.kind not in (*STATES, FIRST, WITNESS, "figures", "secret", "nonce", *OF_PERIODS):
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


Parts = tuple[tuple[Guarantee, ...], ...]


@dataclass
class _Sum:
    """One account: its newest budget, and how often which charge was made for which unit."""

    budget: Budget | None = None
    charges: Counter[tuple[str, str]] = field(default_factory=Counter)


class Sums:
    """What rows add up to, taken one by one."""

    def __init__(self, rows: Iterable[Row] = ()) -> None:
        self._accounts: dict[tuple[str, str], _Sum] = {}
        self._parts: dict[str, Parts] = {}
        for row in rows:
            self.take(row)

    def take(self, row: Row) -> None:
        """Take one more row; refused where it cannot be read."""
        if row.kind == "charge":
            if row.content not in self._parts:  # most charges say the same
                self._parts[row.content] = charge_of(row)[1]
            self._of(row.dataset, row.unit).charges[row.unit, row.content] += 1
        elif row.kind == "budget":
            self._of(row.dataset, row.unit).budget = budget_of(row)

    def account(self, dataset: str, unit: str) -> Account:
        """Return what was spent on a dataset for a unit, and its budget; records have what is spent on persons too.

        Refused where the ledger knows a dataset or a column whose name is easily taken for this one.
        """
        who = Unit.read(unit).who
        self._refuse_look_alikes(dataset, who)
        own = self._accounts.get((dataset, who), _Sum())
        listed = [
            (part, Unit.read(charged).max_records, times)
            for (charged, text), times in own.charges.items()
            for part in self._parts[text]
        ]
        if who == RECORD:
            listed += [
                (part, None, times)
                for (of, other), account in self._accounts.items()
                if of == dataset and other != RECORD
                for (_, text), times in account.charges.items()
                for part in for_each_record(self._parts[text])
            ]
        parts, kept, times = zip(*listed, strict=True) if listed else ((), (), ())
        return Account(dataset, who, own.budget, parts, tuple(number for number in kept if number is not None), times)

    def _refuse_look_alikes(self, dataset: str, who: str) -> None:
        names = {of for of, _ in self._accounts}
        columns = {other for of, other in self._accounts if of == dataset}
        for what, name, known in (("dataset", dataset, names), ("unit", who, columns)):
            taken = None if name in known else next((each for each in known if alike(each, name)), None)
            if taken is not None:
                raise Refused(
                    f"the ledger has the {what} {taken!a}, for which {name!a} is easily taken: write it as the ledger "
                    "does, so that what was spent on it counts, or give what is another one another name (data.name)"
                )

    def refuse_overspending(
        self, dataset: str, unit: str, parts: Sequence[Sequence[Guarantee]], budget: Budget | None
    ) -> None:
        """Refuse a release that a budget does not admit: the unit's, a second one, or, beside persons, the records'."""
        account, whose = self.account(dataset, unit), Unit.read(unit)
        limits = dict.fromkeys((account.budget, budget))
        refusals = [replace(account, budget=limit).refusal(parts, whose.max_records) for limit in limits]
        if whose.column is not None:
            refusals.append(self.account(dataset, RECORD).refusal(for_each_record(parts)))
        for refusal in refusals:
            if refusal is not None:
                raise refusal

    def beside(self, dataset: str, unit: str) -> tuple[str, ...]:
        """Say what charges of other accounts on the same dataset mean for a unit, one sentence per other account."""
        own = Unit.read(unit).who
        return tuple(
            f"{_charges_of(count, other)} {_meaning(own, other)}"
            for other, count in self.charges(dataset).items()
            if other != own and count
        )

    def accounts(self) -> list[tuple[str, str]]:
        """Return every dataset with the units that have an account, in order of appearance."""
        return list(self._accounts)

    def charges(self, dataset: str) -> dict[str, int]:
        return {who: found.charges.total() for (of, who), found in self._accounts.items() if of == dataset}

    def _of(self, dataset: str, unit: str) -> _Sum:
        return self._accounts.setdefault((dataset, Unit.read(unit).who), _Sum())


def _charges_of(count: int, who: str) -> str:
    whom = Unit.read(who).words
    return f"1 charge per {whom} is" if count == 1 else f"{count} charges per {whom} are"


def _meaning(own: str, other: str) -> str:
    """Say what charges of another account mean for those whom one account protects."""
    sum_of = f"in the sum per {Unit.read(own).words}"
    if own == RECORD:
        return f"{sum_of} too: what protects a person protects each of their records"
    if other == RECORD:
        return f"not {sum_of}: it bounds what is spent on one record, and so nothing for somebody with many"
    return f"not {sum_of}: the same records are behind both"
