"""The ledger: an append-only record of budgets and charges in one SQLite file, durable before anything is drawn.

One transaction reads what was spent, checks the budget and adds the charge, under a lock that admits one writer at a
time, so two releases at once cannot overspend. A charge is never taken back: a release that dies after it may have
been seen.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from holdfast.arguments import Refused
from holdfast.privacy import Guarantee
from holdfast.release.ledger.accounts import Account, Budget
from holdfast.release.ledger.ledger_file import (
    BUDGETS,
    CHARGES,
    FIGURES,
    add_table,
    engine_of,
    fill,
    meaning_of,
    recognise,
    remove_draft,
)
from holdfast.release.ledger.units import RECORD, Unit
from holdfast.release.storage.files import locked_folder, sync_folder


def now() -> str:
    """Return the time in UTC, to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds")


class Overspent(Refused):
    """The budget has too little left for the release; nothing was charged or drawn."""


@dataclass(frozen=True)
class Entry:
    """One charge. `parts` has all statements of every table of the release, the counted one first."""

    when: str
    dataset: str
    unit: str
    release: str
    title: str
    spec_hash: str
    parts: tuple[tuple[Guarantee, ...], ...]

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
            "parts": [[statement.as_mapping() for statement in part] for part in self.parts],
        }


class Ledger:
    """The ledger in a file; the file is made by the first budget or charge."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path).absolute()
        if self.path.is_dir():
            raise Refused(f"the ledger {self.path} is a folder: name a file, such as {self.path.name}/book.sqlite")
        self._engine = engine_of(self.path)

    @property
    def exists(self) -> bool:
        """Whether the file is there."""
        return self.path.exists()

    # --- reading -----------------------------------------------------------------------------------------------

    def entries(self, dataset: str | None = None, unit: str | None = None) -> list[Entry]:
        """Return the charges, oldest first: all, or those of one dataset or of a unit's account."""
        with self._reading() as connection:
            return [] if connection is None else _entries(connection, dataset, unit)

    def datasets(self) -> list[tuple[str, str]]:
        """Return every dataset with the units that have an account: a budget or a charge, in order of appearance."""
        with self._reading() as connection:
            if connection is None:
                return []
            found = [
                (row.dataset, Unit.read(row.unit).who)
                for table in (BUDGETS, CHARGES)
                for row in connection.execute(sa.select(table.c.dataset, table.c.unit).order_by(table.c.number))
            ]
        return list(dict.fromkeys(found))

    def account(self, dataset: str, unit: str) -> Account:
        """Return what was spent on a dataset for a unit, and its budget.

        A person has one account, whatever number of records each release keeps: `unit` may name one or none.
        """
        with self._reading() as connection:
            if connection is None:
                return Account(dataset, Unit.read(unit).who, None, ())
            return _account(connection, dataset, unit)

    def beside(self, dataset: str, unit: str) -> tuple[str, ...]:
        """Say which charges on the same dataset are not in the account of a unit, one sentence per other account."""
        own = Unit.read(unit).who
        others = [entry.account for entry in self.entries(dataset)]
        sum_of = f"the sum per {Unit.read(own).words}"
        return tuple(
            f"{_charges_of(others.count(other), other)} not in {sum_of}: {_meaning(own, other)}"
            for other in dict.fromkeys(others)
            if other != own
        )

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

    def figures(self, dataset: str) -> list[dict[str, Any]]:
        """Return the exact figures of every release of a dataset, table by table, as they were kept, oldest first.

        `release` says which release published them: its title and its day.
        """
        with self._reading() as connection:
            if connection is None or not sa.inspect(connection).has_table(FIGURES.name):
                return []
            titles = {row.release: row.title for row in connection.execute(sa.select(CHARGES))}
            wanted = sa.select(FIGURES).where(FIGURES.c.dataset == dataset).order_by(FIGURES.c.number)
            return [
                {**table, "release": f"{titles.get(row.release, row.release)!r} of {row.at[:10]}"}
                for row in connection.execute(wanted)
                for table in json.loads(row.tables)
            ]

    # --- writing -----------------------------------------------------------------------------------------------

    def keep_figures(
        self, dataset: str, unit: str, tables: Sequence[dict[str, Any]], *, release: str, when: str
    ) -> None:
        """Keep the figures that a release is about to publish exactly; durable when this returns."""
        with self.writing() as connection:
            if not sa.inspect(connection).has_table(FIGURES.name):
                add_table(connection, FIGURES)  # a ledger that was made before figures were kept
            text = json.dumps(list(tables), ensure_ascii=False)
            values = {"at": when, "dataset": dataset, "unit": unit, "release": release, "tables": text}
            connection.execute(FIGURES.insert().values(**values))

    def set_budget(self, dataset: str, unit: str, *, epsilon: Any = None, delta: Any = None, rho: Any = None) -> None:
        """Set what may be spent in all on a dataset for a unit; the newest budget counts, older ones stay listed."""
        budget = Budget.of(epsilon=epsilon, delta=delta, rho=rho)
        _named(dataset)
        Unit.read(unit)
        with self.writing() as connection:
            _set_budget(connection, dataset, unit, budget, now())

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
    ) -> None:
        """Record what a release costs, if every budget admits it; durable when this returns.

        `budget` is the spec's own: it is kept where the ledger has none yet, and otherwise must admit the release
        besides the ledger's.
        """
        _named(dataset)
        _charged(unit)
        with self.writing() as connection:
            account = _account(connection, dataset, unit)
            _refuse_overspending(account, unit, parts, budget)
            if account.budget is None and budget is not None:
                _set_budget(connection, dataset, unit, budget, when)
            text = json.dumps([[statement.as_mapping() for statement in part] for part in parts], ensure_ascii=False)
            connection.execute(
                CHARGES.insert().values(
                    at=when,
                    dataset=dataset,
                    unit=unit,
                    release=release,
                    title=title,
                    spec_hash=spec_hash,
                    statements=text,
                )
            )

    def check(self, dataset: str, unit: str, parts: Sequence[Sequence[Guarantee]], budget: Budget | None) -> None:
        """Refuse a release that the ledger would refuse now; nothing is written."""
        _refuse_overspending(self.account(dataset, unit), unit, parts, budget)

    # --- within ------------------------------------------------------------------------------------------------

    @contextmanager
    def _reading(self) -> Iterator[sa.Connection | None]:
        """Give a connection, or None where nothing was written yet."""
        if not self.exists:
            yield None
            return
        with self._told(), self._engine.connect() as connection, connection.begin():
            recognise(connection, self.path)
            yield connection

    @contextmanager
    def writing(self) -> Iterator[sa.Connection]:
        """Give the only connection that may write now; what it adds is durable when this ends."""
        with self._told():
            if not self.exists:
                self._make()
            with self._engine.connect().execution_options(immediate=True) as connection, connection.begin():
                recognise(connection, self.path)
                yield connection

    def _make(self) -> None:
        """Make the file, whole at once: a ledger without anything in it is then never one that was being made."""
        if self.path.is_symlink():
            raise Refused(f"the ledger {self.path} is a link that leads nowhere: mend it, so that no charge is lost")
        with locked_folder(self.path.parent):
            if self.exists:
                return  # made by another process meanwhile
            draft = self.path.with_name(f".{self.path.name}.partial")
            remove_draft(draft)  # what a killed process left
            try:
                with engine_of(draft).connect() as connection, connection.begin():
                    fill(connection)
                os.rename(draft, self.path)
            except BaseException:
                remove_draft(draft)
                raise
            sync_folder(self.path.parent)

    @contextmanager
    def _told(self) -> Iterator[None]:
        """Say what the database or the system says in one sentence."""
        try:
            yield
        except sa.exc.DBAPIError as error:
            raise Refused(meaning_of(str(error.orig), self.path)) from None
        except OSError as error:
            raise Refused(meaning_of(f"unable to open: {error.strerror}", self.path)) from None


def _refuse_overspending(
    account: Account, unit: str, parts: Sequence[Sequence[Guarantee]], budget: Budget | None
) -> None:
    for limit in (account.budget, budget):
        sentence = replace(account, budget=limit).refusal(parts, Unit.read(unit).max_records)
        if sentence:
            raise Overspent(sentence)


def _set_budget(connection: sa.Connection, dataset: str, unit: str, budget: Budget, when: str) -> None:
    text = json.dumps(budget.as_mapping())
    connection.execute(BUDGETS.insert().values(at=when, dataset=dataset, unit=unit, budget=text))


def _account(connection: sa.Connection, dataset: str, unit: str) -> Account:
    who = Unit.read(unit).who
    newest_first = sa.select(BUDGETS).where(BUDGETS.c.dataset == dataset).order_by(BUDGETS.c.number.desc())
    texts = (row.budget for row in connection.execute(newest_first) if Unit.read(row.unit).who == who)
    text = next(texts, None)
    budget = None if text is None else Budget.from_mapping(json.loads(text))
    charged = [
        (part, Unit.read(entry.unit).max_records)
        for entry in _entries(connection, dataset, unit)
        for part in entry.parts
    ]
    kept = tuple(number for _, number in charged if number is not None)
    return Account(dataset, who, budget, tuple(part for part, _ in charged), kept)


def _entries(connection: sa.Connection, dataset: str | None, unit: str | None) -> list[Entry]:
    wanted = sa.select(CHARGES).order_by(CHARGES.c.number)
    if dataset is not None:
        wanted = wanted.where(CHARGES.c.dataset == dataset)
    who = None if unit is None else Unit.read(unit).who
    return [
        Entry(row.at, row.dataset, row.unit, row.release, row.title, row.spec_hash, _statements(row))
        for row in connection.execute(wanted)
        if who in (None, Unit.read(row.unit).who)
    ]


def _statements(row: Any) -> tuple[tuple[Guarantee, ...], ...]:
    try:
        return tuple(tuple(map(Guarantee.from_json, part)) for part in json.loads(row.statements))
    except (ValueError, TypeError, KeyError):
        raise Refused(
            f"charge {row.number} of the ledger cannot be read, so nothing can be added up: restore it from a copy"
        ) from None


def _named(dataset: Any) -> None:
    if not isinstance(dataset, str) or not dataset.strip():
        raise Refused(f"dataset must be a name that is not empty, found {dataset!r}")


def _charged(unit: Any) -> None:
    """Refuse a charge per person that does not say how many records of a person its release keeps."""
    found = Unit.read(unit)
    if found.column is not None and found.max_records is None:
        raise Refused(f"a charge per person says how many records are kept, as in '{unit}, at most 5 records'")


def _charges_of(count: int, who: str) -> str:
    whom = Unit.read(who).words
    return f"1 charge per {whom} is" if count == 1 else f"{count} charges per {whom} are"


def _meaning(own: str, other: str) -> str:
    """Say what charges of another account mean for those whom one account protects."""
    if other == RECORD:
        return "it bounds what is spent on one record, and so nothing for somebody with many"
    if own == RECORD:
        return "what protects a person protects each record too, and is spent on both"
    return "the same records are behind both"
