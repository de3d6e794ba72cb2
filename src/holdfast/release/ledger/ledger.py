"""The ledger: an append-only record of budgets, charges and seals, durable before anything is drawn.

One transaction reads what was spent, checks the budget and adds the charge, under a lock that admits one writer at a
time, so two releases at once cannot overspend. A charge is never taken back: a release that dies after it may have
been seen. Every row carries the hash of the one before it (`chain`), and nothing is read or written where that chain is
broken: a release reads it from the first row on before its charge (`past`), and under the lock from there on. A second
copy (`witness`) follows row by row, and must never know more than the ledger does.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from holdfast.arguments import Refused, shown
from holdfast.privacy import Guarantee
from holdfast.release.ledger.accounts import RECORD, Account, Budget, Unit
from holdfast.release.ledger.entries import (
    STATES,
    WITNESS,
    Entry,
    Sums,
    charge_content,
    content_of,
    entries_of,
    readable,
    release_of,
)
from holdfast.release.ledger.store import ADDRESSES, WORD, Entered, LedgerFile, LedgerServer, Row, Table, behind

# --- a second copy of a ledger, which follows row by row and must never know more than the ledger does ---------------


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
        seen = theirs.all()[-1] if whole else theirs.last()
        if mine is None or mine.since(seen.number)[:1] != (seen,):
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
    with witness.writing() as theirs, book.reading() as mine:
        rows = () if mine is None else mine.after(theirs.last())
        if rows:
            theirs.insert(rows)


# --- what a release needs of those before it: read once from the first row on, and later from where that ended -------


class Past:
    """The charges, unfinished releases and exact figures of a dataset, and what was spent on it per unit.

    Its chain is checked while it is read.
    """

    def __init__(self, dataset: str, unit: str) -> None:
        self._dataset, self._unit = dataset, unit
        self._last: Row | None = None
        #: What the rows add up to, for all datasets.
        self.sums = Sums()
        self._open: dict[str, list[Row]] = {}
        #: The exact figures of every release, table by table, as they were kept; `release` says which one it was.
        self.figures: list[dict[str, Any]] = []

    def read(self, table: Table | None) -> Past:
        """Take the rows behind the last one that was taken; refused where they do not follow from it."""
        last = self._last
        if last is not None and (table is None or table.since(last.number)[:1] != (last,)):
            raise Refused(
                "the ledger is not the one that was read when this began: an old copy was put back, or it was removed; "
                "find out which, and restore it"
            )
        for row in () if table is None else table.after(self._last, self._takes):
            charge = None if table is None else table.find("charge", row.key)
            title = row.key if charge is None else content_of(charge).get("title")
            told = f"{title!r} of {row.at[:10]}"
            self.figures += [{**each, "release": told} for each in content_of(row)["tables"]]
        return self

    @property
    def account(self) -> Account:
        return self.sums.account(self._dataset, self._unit)

    @property
    def unfinished(self) -> list[Entry]:
        """The charges that have no mark of a published release, oldest first."""
        return entries_of((row for rows in self._open.values() for row in rows), self._dataset, self._unit)

    def _takes(self, row: Row) -> bool:
        """Take a row; tell whether it has figures of the dataset."""
        self.sums.take(row)
        self._last = row
        if row.kind == "published":
            self._open.pop(release_of(row), None)
        elif row.kind in STATES:
            self._open.setdefault(release_of(row), []).append(row)
        return row.kind == "figures" and row.dataset == self._dataset


def now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


#: Adds a row behind all others: its kind, its content, and what `Entered` says besides.
Adds = Callable[..., Row]


class Ledger:
    """The ledger in a file or on a server; the first budget or charge makes it.

    `place` is the path of a file, the word postgresql (its address is in the environment) or an address. `witness` is
    the place of a second copy.
    """

    def __init__(self, place: str | Path, witness: str | Path | None = None) -> None:
        self._book = _book(place)
        self._witness = None if witness is None else _book(witness)
        if self._witness is not None and str(self._witness) == str(self._book):
            raise Refused(f"the witness of the ledger {self._book} is the ledger itself: name another place")
        self.path: Any = self._book.path

    @property
    def exists(self) -> bool:
        return self._book.exists

    # --- reading -----------------------------------------------------------------------------------------------

    def rows(self) -> tuple[Row, ...]:
        """Return all rows, oldest first, whose chain is unbroken and agrees with the witness; refused otherwise."""
        return self._every(lambda _: True)

    def look(self) -> None:
        """Refuse at once what cannot be read, or whose last rows do not follow; the whole chain is read later."""
        with self._reading() as mine:
            if mine is not None:
                mine.last()

    def verify(self) -> tuple[Row, ...]:
        """Check file, chain, witness and every row; refused with the first thing that is wrong."""
        with self._reading(whole=True) as mine:
            found = () if mine is None else mine.all()
        readable(found)
        Sums(found)
        return found

    def entries(self, dataset: str | None = None, unit: str | None = None) -> list[Entry]:
        """Return the charges, oldest first: all, or those of one dataset or of a unit's account."""
        return entries_of(self.rows(), dataset, unit)

    def entry(self, release: str) -> Entry | None:
        """Return the charge of a release, if there is one."""
        rows = self._every(lambda row: row.key.partition(" ")[0] == release)
        return next((entry for entry in entries_of(rows, None, None) if entry.release == release), None)

    def became(self, release: str) -> Entry | None:
        """Return the charge of a release that was just made, without reading other rows."""
        with self._reading() as mine:
            rows = () if mine is None else mine.about(release)
        return next(iter(entries_of(rows, None, None)), None)

    def datasets(self) -> list[tuple[str, str]]:
        """Return every dataset with the units that have an account: a budget or a charge, in order of appearance."""
        return Sums(self.rows()).accounts()

    def account(self, dataset: str, unit: str) -> Account:
        """Return what was spent on a dataset for a unit, and its budget.

        A person has one account, whatever number of records each release keeps: `unit` may name one or none.
        """
        return Sums(self.rows()).account(dataset, unit)

    def around(self, charge: Entry) -> tuple[Account, Account, tuple[str, ...]]:
        """Return the account that was charged as it was before, as it is now, and what `beside` says now."""
        with self._reading() as mine:
            rows = () if mine is None else mine.all()
        sums = Sums(rows[: charge.number - 1])
        before = sums.account(charge.dataset, charge.unit)
        for row in rows[charge.number - 1 :]:
            sums.take(row)
        return before, sums.account(charge.dataset, charge.unit), sums.beside(charge.dataset, charge.unit)

    def beside(self, dataset: str, unit: str) -> tuple[str, ...]:
        """Say what charges of other accounts on the same dataset mean for a unit, one sentence per other account."""
        return Sums(self.rows()).beside(dataset, unit)

    def spent(self, dataset: str, unit: str) -> Guarantee | None:
        """Return what all releases promise together, or None where there is none; refused where they do not add up."""
        account = self.account(dataset, unit)
        if account.trouble:
            whom = Unit.read(unit).words
            raise Refused(f"what was spent on {dataset!r} per {whom} cannot be added up: {account.trouble}")
        return account.spent[0] if account.spent else None

    def budget(self, dataset: str, unit: str) -> dict[str, float] | None:
        """Return the budget as numbers, or None where none was set."""
        return self.account(dataset, unit).allowed

    def remaining(self, dataset: str, unit: str) -> dict[str, float] | None:
        """Return what is left in the budget's own terms, rounded down, or None where no budget was set."""
        return self.account(dataset, unit).left

    def past(self, dataset: str, unit: str, since: Past | None = None) -> Past:
        """Return what a release needs of those before it; `since` is what was read before, and goes on from there.

        Every release asks for it before it is charged.
        """
        with self._reading() as mine:
            return (Past(dataset, unit) if since is None else since).read(mine)

    def figures(self, dataset: str) -> list[dict[str, Any]]:
        """Return the exact figures of every release of a dataset, table by table, as they were kept, oldest first."""
        return self.past(dataset, RECORD).figures

    # --- writing -----------------------------------------------------------------------------------------------

    def set_budget(self, dataset: str, unit: str, *, epsilon: Any = None, delta: Any = None, rho: Any = None) -> None:
        """Set what may be spent in all on a dataset for a unit; the newest budget counts, older ones stay listed."""
        budget = Budget.of(epsilon=epsilon, delta=delta, rho=rho)
        _named(dataset)
        Unit.read(unit)
        with self.writing() as (mine, add):
            Sums(mine.all()).account(dataset, unit)  # refused where the ledger knows it by another name
            add("budget", {"budget": budget.as_mapping()}, dataset=dataset, unit=unit)

    def charge(
        self,
        dataset: str,
        unit: str,
        parts: Sequence[Sequence[Guarantee]],
        *,
        release: str,
        title: str,
        spec_hash: str,
        when: str,
        budget: Budget | None = None,
        since: Past | None = None,
        commitment: Mapping[str, str] | None = None,
        series: Mapping[str, Any] | None = None,
    ) -> bool:
        """Record what a release costs, if every budget admits it; durable when this returns.

        `budget` is the spec's own: it is kept where the ledger has none yet, and otherwise must admit the release
        besides the ledger's. `since` is what was read before: refused where the ledger does not go on from there, and
        nothing is written, and False returned, where exact figures were kept meanwhile, which `since` knows then.
        `commitment` is what a witnessed release fixes before its draw, `series` what one does for all its periods,
        which are charged once.
        """
        known = 0 if since is None else len(since.figures)
        _named(dataset)
        _charged(unit)
        content = charge_content(parts, title, spec_hash, commitment, series)
        past = self.past(dataset, unit, since)  # before a ledger that is gone is made anew
        with self.writing() as (mine, add):
            if len(past.read(mine).figures) > known and since is not None:
                return False
            if series is not None and mine.find("charge", release) is not None:
                return True  # another process charged it just now
            past.sums.refuse_overspending(dataset, unit, parts, budget)
            if budget is not None and past.sums.account(dataset, unit).budget is None:
                add("budget", {"budget": budget.as_mapping()}, at=when, dataset=dataset, unit=unit)
            add("charge", content, at=when, dataset=dataset, unit=unit, key=release)
        return True

    def check(self, dataset: str, unit: str, parts: Sequence[Sequence[Guarantee]], budget: Budget | None) -> None:
        """Refuse a release that the ledger would refuse now; nothing is written."""
        self.past(dataset, unit).sums.refuse_overspending(dataset, unit, parts, budget)

    def mark(self, kind: str, release: str, when: str) -> None:
        """Say that a release begins to draw ("drawing"), or has got its name ("published"); durable on return."""
        with self.writing() as (mine, add):
            if mine.find(kind, release) is None:
                add(kind, {}, at=when, key=release)

    def give_nonce(self, nonce: str, release: str, when: str) -> None:
        """Say that a witnessed release begins to draw with a nonce; durable on return, and said once for both."""
        with self.writing() as (mine, add):
            used, begun = mine.find("nonce", nonce), mine.find("drawing", release)
            if used is not None and content_of(used).get("release") != release:
                raise Refused("this nonce drew another release: ask for a new one, made for this commitment")
            if begun is not None and content_of(begun).get("nonce") != nonce:
                raise Refused("this release has its nonce already, and nothing is drawn twice: give the same one again")
            if begun is None:
                add("nonce", {"release": release}, at=when, key=nonce)
                add("drawing", {"nonce": nonce}, at=when, key=release)

    def seal(
        self,
        dataset: str,
        unit: str,
        *,
        release: str,
        certificate: str,
        folder: Path,
        when: str,
        figures: Sequence[dict[str, Any]] = (),
        since: Past | None = None,
    ) -> bool:
        """Bind the hash of its certificate to a release that is about to get its name, with its exact figures.

        Durable on return. `since` is what the certificate knows of earlier figures: where others were kept meanwhile,
        nothing is written, `since` knows them, and False is returned.
        """
        with self.writing() as (mine, add):
            known = 0 if since is None else len(since.figures)
            if since is not None and len(since.read(mine).figures) > known:
                return False
            if figures and mine.find("figures", release) is None:
                add("figures", {"tables": list(figures)}, at=when, dataset=dataset, unit=unit, key=release)
            key = f"{release} {certificate}"
            if mine.find("seal", key) is None:
                content = {"certificate": certificate, "folder": str(folder)}
                add("seal", content, at=when, dataset=dataset, unit=unit, key=key)
        return True

    # --- within ------------------------------------------------------------------------------------------------

    @contextmanager
    def writing(self) -> Iterator[tuple[Table, Adds]]:
        """Give what is there and what adds a row, to the only one who may write now; durable when this ends."""
        with self._book.writing() as mine:
            rows = [mine.last()]

            def add(kind: str, content: Any, *, at: str | None = None, key: str = "", **about: str) -> Row:
                text = json.dumps(content, ensure_ascii=False)
                rows.append(behind(rows[-1], Entered(at or now(), kind, text, key=key, **about)))
                mine.insert(rows[-1:])
                return rows[-1]

            if self._witness is not None:
                begin_witness(mine, self._witness, self.path, add)
            yield mine, add
            if mine.since(rows[0].number) != tuple(rows):
                raise Refused(
                    f"the ledger {self.path} does not keep what is written: it is damaged, restore it from a copy"
                )
        if self._witness is not None:
            follow(self._book, self._witness)

    def _every(self, wanted: Callable[[Row], bool]) -> tuple[Row, ...]:
        with self._reading() as mine:
            return () if mine is None else mine.all(wanted)

    @contextmanager
    def _reading(self, whole: bool = False) -> Iterator[Table | None]:
        """Give what is there, None where there is nothing, if it is what the witness has seen."""
        with self._book.reading(whole) as mine:
            if self._witness is not None:
                agree(mine, self._witness, self.path, whole)
            yield mine


def _book(place: str | Path) -> LedgerFile | LedgerServer:
    if isinstance(place, str) and (place == WORD or place.startswith(ADDRESSES)):
        return LedgerServer(place)
    return LedgerFile(place)


def _named(dataset: Any) -> None:
    if not isinstance(dataset, str) or not dataset.strip():
        raise Refused(f"dataset must be a name that is not empty, found {shown(dataset)}")


def _charged(unit: Any) -> None:
    found = Unit.read(unit)
    if found.column is not None and found.max_records is None:
        raise Refused(f"a charge per person says how many records are kept, as in '{unit}, at most 5 records'")
