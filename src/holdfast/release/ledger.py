"""The ledger: an append-only record of budgets and charges in one SQLite file, durable before anything is drawn.

One transaction reads what was spent, checks the budget and adds the charge, under a lock that admits one writer at a
time, so two releases at once cannot overspend. A charge is never taken back: a release that dies after it may have
been seen.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy import event
from sqlalchemy.pool import NullPool

from holdfast.arguments import Refused
from holdfast.privacy import Guarantee
from holdfast.release.accounts import Account, Budget
from holdfast.release.files import sync_folder

#: What an SQLite file says of itself when it is a ledger ("Hold"), and the version of its tables.
APPLICATION, VERSION = 0x486F6C64, 1
#: Seconds to wait for another release that is writing.
PATIENCE = 30

_ABORT = "BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END"

_tables = sa.MetaData()
_budgets = sa.Table(
    "budgets",
    _tables,
    sa.Column("number", sa.Integer, primary_key=True),
    sa.Column("at", sa.Text, nullable=False),
    sa.Column("dataset", sa.Text, nullable=False),
    sa.Column("unit", sa.Text, nullable=False),
    sa.Column("budget", sa.Text, nullable=False),
)
_charges = sa.Table(
    "charges",
    _tables,
    sa.Column("number", sa.Integer, primary_key=True),
    sa.Column("at", sa.Text, nullable=False),
    sa.Column("dataset", sa.Text, nullable=False),
    sa.Column("unit", sa.Text, nullable=False),
    sa.Column("release", sa.Text, nullable=False, unique=True),
    sa.Column("title", sa.Text, nullable=False),
    sa.Column("spec_hash", sa.Text, nullable=False),
    sa.Column("statements", sa.Text, nullable=False),
)


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
    def statements(self) -> tuple[Guarantee, ...]:
        """What the tables of the release promise together, the counted statement first."""
        return Account(self.dataset, self.unit, None, self.parts).spent

    def as_mapping(self) -> dict[str, Any]:
        """Return the charge as plain values that JSON can hold."""
        return {
            "when": self.when,
            "dataset": self.dataset,
            "unit": self.unit,
            "release": self.release,
            "title": self.title,
            "spec_hash": self.spec_hash,
            "parts": [[statement.as_mapping() for statement in part] for part in self.parts],
        }


class Ledger:
    """The ledger in a file; the file is made by the first budget or charge."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path).absolute()
        address = sa.URL.create("sqlite", database=str(self.path))
        # No pool: a connection is open only while it is used, and none is shared with a forked process.
        self._engine = sa.create_engine(address, poolclass=NullPool, connect_args={"timeout": PATIENCE})
        event.listen(self._engine, "connect", _durable)
        event.listen(self._engine, "begin", _begin)

    @property
    def exists(self) -> bool:
        """Whether the file is there."""
        return self.path.exists()

    # --- reading -----------------------------------------------------------------------------------------------

    def entries(self, dataset: str | None = None, unit: str | None = None) -> list[Entry]:
        """Return the charges, oldest first: all, or those of one dataset or unit."""
        with self._reading() as connection:
            return [] if connection is None else _entries(connection, dataset, unit)

    def datasets(self) -> list[tuple[str, str]]:
        """Return every dataset and unit that has a budget or a charge, in order of appearance."""
        with self._reading() as connection:
            if connection is None:
                return []
            found = [
                (row.dataset, row.unit)
                for table in (_budgets, _charges)
                for row in connection.execute(sa.select(table.c.dataset, table.c.unit).order_by(table.c.number))
            ]
        return list(dict.fromkeys(found))

    def account(self, dataset: str, unit: str) -> Account:
        """Return what was spent on a dataset for a unit, and its budget."""
        with self._reading() as connection:
            return Account(dataset, unit, None, ()) if connection is None else _account(connection, dataset, unit)

    def spent(self, dataset: str, unit: str) -> Guarantee | None:
        """Return what all releases promise together, or None where there is none; refused where they do not add up."""
        account = self.account(dataset, unit)
        if account.trouble:
            raise Refused(f"what was spent on {dataset!r} per {unit} cannot be added up: {account.trouble}")
        return account.spent[0] if account.spent else None

    def budget(self, dataset: str, unit: str) -> dict[str, float] | None:
        """Return the budget as numbers, or None where none was set."""
        budget = self.account(dataset, unit).budget
        return None if budget is None else {name: float(Fraction(text)) for name, text in budget.as_mapping().items()}

    def remaining(self, dataset: str, unit: str) -> dict[str, float] | None:
        """Return what is left in the budget's own terms, rounded down, or None where no budget was set."""
        account = self.account(dataset, unit)
        if account.budget is None or account.remaining is None:
            return None
        if account.budget.epsilon is None:
            return {"rho": account.remaining}
        delta = {} if account.budget.delta is None else {"delta": float(account.budget.delta)}
        return {"epsilon": account.remaining, **delta}

    # --- writing -----------------------------------------------------------------------------------------------

    def set_budget(self, dataset: str, unit: str, *, epsilon: Any = None, delta: Any = None, rho: Any = None) -> None:
        """Set what may be spent in all on a dataset for a unit; the newest budget counts, older ones stay listed."""
        budget = Budget.of(epsilon=epsilon, delta=delta, rho=rho)
        _named(dataset, unit)
        with self._writing() as connection:
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
        _named(dataset, unit)
        with self._writing() as connection:
            account = _account(connection, dataset, unit)
            _refuse_overspending(account, parts, budget)
            if account.budget is None and budget is not None:
                _set_budget(connection, dataset, unit, budget, when)
            text = json.dumps([[statement.as_mapping() for statement in part] for part in parts], ensure_ascii=False)
            connection.execute(
                _charges.insert().values(
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
        _refuse_overspending(self.account(dataset, unit), parts, budget)

    # --- within ------------------------------------------------------------------------------------------------

    @contextmanager
    def _reading(self) -> Iterator[sa.Connection | None]:
        """Give a connection, or None where nothing was written yet."""
        if not self.exists:
            yield None
            return
        with self._told(), self._engine.connect() as connection, connection.begin():
            yield connection if _recognised(connection, self.path) else None

    @contextmanager
    def _writing(self) -> Iterator[sa.Connection]:
        fresh = not self.exists
        with self._told():
            with self._engine.connect().execution_options(immediate=True) as connection, connection.begin():
                if not _recognised(connection, self.path):
                    _make(connection)
                yield connection
            if fresh:
                sync_folder(self.path.parent)

    @contextmanager
    def _told(self) -> Iterator[None]:
        """Say what the database says in one sentence."""
        try:
            yield
        except sa.exc.DBAPIError as error:
            raise Refused(_sentence(str(error.orig), self.path)) from None


def _durable(connection: Any, _: Any) -> None:
    # SQLAlchemy begins transactions itself (see _begin); the driver must not.
    connection.isolation_level = None
    # EXTRA syncs the folder too after a commit: with less, a power cut could bring the journal back and undo it.
    connection.execute("PRAGMA synchronous = EXTRA")
    connection.execute("PRAGMA fullfsync = ON")


def _begin(connection: sa.Connection) -> None:
    immediate = connection.get_execution_options().get("immediate", False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if immediate else "BEGIN")


def _recognised(connection: sa.Connection, path: Path) -> bool:
    """Say whether the file is a ledger (False: it is empty); refuse any other file."""
    application = connection.exec_driver_sql("PRAGMA application_id").scalar_one()
    version = connection.exec_driver_sql("PRAGMA user_version").scalar_one()
    if application == 0 and not connection.exec_driver_sql("SELECT count(*) FROM sqlite_master").scalar_one():
        return False
    if application != APPLICATION:
        raise Refused(f"{path} is not a ledger of holdfast: name another file")
    if version != VERSION:
        raise Refused(f"the ledger {path} has version {version}, and this holdfast reads {VERSION}: use a newer one")
    return True


def _make(connection: sa.Connection) -> None:
    _tables.create_all(connection)
    for table in _tables.sorted_tables:
        for action in ("UPDATE", "DELETE"):
            connection.exec_driver_sql(
                f"CREATE TRIGGER {table.name}_no_{action.lower()} BEFORE {action} ON {table.name} {_ABORT}"
            )
        # INSERT OR REPLACE would delete a row without the trigger of DELETE.
        same = " OR ".join(
            f"{column.name} = NEW.{column.name}" for column in table.c if column.primary_key or column.unique
        )
        connection.exec_driver_sql(
            f"CREATE TRIGGER {table.name}_no_replace BEFORE INSERT ON {table.name} "
            f"WHEN EXISTS (SELECT 1 FROM {table.name} WHERE {same}) {_ABORT}"
        )
    connection.exec_driver_sql(f"PRAGMA application_id = {APPLICATION}")
    connection.exec_driver_sql(f"PRAGMA user_version = {VERSION}")


def _refuse_overspending(account: Account, parts: Sequence[Sequence[Guarantee]], budget: Budget | None) -> None:
    for limit in (account.budget, budget):
        sentence = replace(account, budget=limit).refusal(parts)
        if sentence:
            raise Overspent(sentence)


def _set_budget(connection: sa.Connection, dataset: str, unit: str, budget: Budget, when: str) -> None:
    text = json.dumps(budget.as_mapping())
    connection.execute(_budgets.insert().values(at=when, dataset=dataset, unit=unit, budget=text))


def _account(connection: sa.Connection, dataset: str, unit: str) -> Account:
    newest = sa.select(_budgets.c.budget).where(_budgets.c.dataset == dataset, _budgets.c.unit == unit)
    text = connection.execute(newest.order_by(_budgets.c.number.desc()).limit(1)).scalar_one_or_none()
    budget = None if text is None else Budget.from_mapping(json.loads(text))
    return Account(dataset, unit, budget, tuple(_parts(_entries(connection, dataset, unit))))


def _parts(entries: Iterable[Entry]) -> Iterator[tuple[Guarantee, ...]]:
    for entry in entries:
        yield from entry.parts


def _entries(connection: sa.Connection, dataset: str | None, unit: str | None) -> list[Entry]:
    wanted = sa.select(_charges).order_by(_charges.c.number)
    if dataset is not None:
        wanted = wanted.where(_charges.c.dataset == dataset)
    if unit is not None:
        wanted = wanted.where(_charges.c.unit == unit)
    return [
        Entry(row.at, row.dataset, row.unit, row.release, row.title, row.spec_hash, _statements(row))
        for row in connection.execute(wanted)
    ]


def _statements(row: Any) -> tuple[tuple[Guarantee, ...], ...]:
    try:
        return tuple(tuple(map(Guarantee.from_json, part)) for part in json.loads(row.statements))
    except (ValueError, TypeError, KeyError):
        raise Refused(
            f"charge {row.number} of the ledger cannot be read, so nothing can be added up: restore it from a copy"
        ) from None


def _named(dataset: Any, unit: Any) -> None:
    for name, value in (("dataset", dataset), ("unit", unit)):
        if not isinstance(value, str) or not value.strip():
            raise Refused(f"{name} must be a name that is not empty, found {value!r}")


def _sentence(trouble: str, path: Path) -> str:
    """Return what an error of the database means to the user."""
    if "locked" in trouble:
        return f"the ledger {path} is being written by another release: try again when it has finished"
    if "full" in trouble:
        return f"the disk has no room for the ledger {path}, so nothing was drawn: free some space and try again"
    if "readonly" in trouble or "unable to open" in trouble:
        return f"the ledger {path} cannot be written, so nothing was drawn: check its folder and permissions"
    if "append-only" in trouble:
        return f"the ledger {path} is append-only: nothing in it can be changed"
    if "not a database" in trouble or "malformed" in trouble:
        return f"{path} is not a ledger of holdfast, or is damaged: restore it from a copy, or name another file"
    return f"the ledger {path} cannot be used ({trouble}): nothing was drawn"
