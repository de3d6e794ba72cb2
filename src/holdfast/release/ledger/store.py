"""Rows that each carry a hash of themselves and of the row before, so that the last hash stands for all of them.

A row that was removed, put elsewhere, changed or renamed contradicts its own hash or that of the next row. Whoever can
write the file can write a whole new chain too: that one contradicts the heads which certificates have published, and a
second copy. The first row holds a random name, so that no hash tells anything about what it stands for.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from json.encoder import encode_basestring_ascii as quoted
from pathlib import Path
from typing import Any, NamedTuple

import sqlalchemy as sa
from sqlalchemy import event
from sqlalchemy.pool import NullPool

from holdfast.arguments import Refused, later, path_of
from holdfast.release.storage.files import kept_out, locked_folder, network_of
from holdfast.system import sync_folder

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
    number, before = (1, BEGINNING) if last is None else (last.number + 1, last.hash)
    found = hash_of(before, number, entered)
    return Row(number, entered.at, entered.kind, entered.dataset, entered.unit, entered.key, entered.content, found)


def first_row() -> Row:
    return behind(None, Entered("", FIRST, json.dumps({"name": secrets.token_hex(16)})))


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


# --- the table of a ledger, in a file or on a server

TABLE = "holdfast_ledger"
SELECT = f"SELECT {', '.join(COLUMNS)} FROM {TABLE}"
INSERT = sa.text(f"INSERT INTO {TABLE} ({', '.join(COLUMNS)}) VALUES ({', '.join(f':{name}' for name in COLUMNS)})")


class Table:
    """The rows of a ledger within one transaction."""

    def __init__(self, connection: sa.Connection, where: str) -> None:
        self._connection, self._where = connection, where

    def all(self, wanted: Callable[[Row], bool] | None = None) -> tuple[Row, ...]:
        """Return the rows that are wanted; refused where the chain of all is broken."""
        return unbroken(self._found("TRUE"), self._where, wanted)

    def last(self) -> Row:
        """Return the last row; refused where it does not follow from the one before it."""
        return self.since(_last(self._connection))[-1]

    def since(self, number: int) -> tuple[Row, ...]:
        """Return the row of a number and those behind it; refused where their chain is broken."""
        return self.after(next((Row(*values) for values in self._found("number = :n", n=number - 1)), None))

    def after(self, last: Row | None, wanted: Callable[[Row], bool] | None = None) -> tuple[Row, ...]:
        """Return the rows behind one, those that are wanted; refused where their chain is broken."""
        if last is None:
            return self.all(wanted)
        return unbroken(self._found("number > :n", n=last.number), self._where, wanted, (last.number, last.hash))

    def find(self, kind: str, key: str) -> Row | None:
        """Return the row of a kind with a key; every key that is not empty is there once."""
        found = (Row(*values) for values in self._found("key = :key AND key <> ''", key=key))
        return next((row for row in found if (row.kind, row.key) == (kind, key)), None)

    def about(self, release: str) -> tuple[Row, ...]:
        """Return the rows whose key names a release, oldest first."""
        # A key is the name, or the name and more behind a space; "!" comes after the space.
        found = self._found("key >= :key AND key < :end AND key <> ''", key=release, end=f"{release}!")
        return tuple(row for row in (Row(*values) for values in found) if row.key.split(" ")[0] == release)

    def insert(self, rows: Sequence[Row]) -> None:
        self._connection.execute(INSERT, [row._asdict() for row in rows])

    def _found(self, condition: str, **values: Any) -> Iterable[Sequence[Any]]:
        words = f"{SELECT} WHERE {condition} ORDER BY number"
        if values:
            return self._connection.execute(sa.text(words), values)
        if self._connection.dialect.name == "sqlite":  # the driver's own cursor takes a third of the time
            found: Iterable[Sequence[Any]] = self._connection.connection.cursor().execute(words)
            return found
        return self._connection.exec_driver_sql(words)


# --- a ledger in a file: one SQLite table to which rows can only be added, and commits that last ---------------------

#: What an SQLite file says of itself when it is a ledger ("Hold"), and the version of its table. The number that SQLite
#: keeps for a version has the number of rows besides, so that a row cut off at the end is missed.
APPLICATION, VERSION, VERSIONS = 0x486F6C64, 1, 16
#: Seconds to wait for another release that is writing.
PATIENCE = 30
_ABORT = "BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END"
_TEXTS = ", ".join(f"{name} TEXT NOT NULL" for name in COLUMNS[1:])
#: Everything that a ledger holds besides rows. INSERT OR REPLACE would delete a row without the trigger of DELETE.
#: The index only finds rows: what a row says is read in the row.
SCHEMA = {
    TABLE: f"CREATE TABLE {TABLE} (number INTEGER PRIMARY KEY, {_TEXTS})",
    f"{TABLE}_no_update": f"CREATE TRIGGER {TABLE}_no_update BEFORE UPDATE ON {TABLE} {_ABORT}",
    f"{TABLE}_no_delete": f"CREATE TRIGGER {TABLE}_no_delete BEFORE DELETE ON {TABLE} {_ABORT}",
    f"{TABLE}_no_replace": f"CREATE TRIGGER {TABLE}_no_replace BEFORE INSERT ON {TABLE} "
    f"WHEN EXISTS (SELECT 1 FROM {TABLE} WHERE number = NEW.number) "
    f"OR EXISTS (SELECT 1 FROM {TABLE} WHERE key = NEW.key AND kind = NEW.kind AND key <> '') {_ABORT}",
    f"{TABLE}_once": f"CREATE UNIQUE INDEX {TABLE}_once ON {TABLE} (key, kind) WHERE key <> ''",
}


class LedgerFile:
    """The rows of a ledger in a file, which the first row makes."""

    def __init__(self, path: str | Path) -> None:
        self.path = path_of("ledger", path).absolute()
        if os.path.isdir(self.path):
            raise Refused(f"the ledger {self.path} is a folder: name a file, such as {self.path.name}/book.sqlite")
        # No pool: a connection is open only while it is used, and none is shared with a forked process.
        address = sa.URL.create("sqlite", database=str(self.path))
        self._engine = _engine(address)

    def __str__(self) -> str:
        return str(self.path)

    @property
    def exists(self) -> bool:
        return os.path.exists(self.path)

    @contextmanager
    def reading(self, whole: bool = False) -> Iterator[Table | None]:
        """Give the rows as they are now, None where nothing was written yet; `whole` checks the file page by page."""
        if not self.exists:
            yield None
            return
        with self._told(), self._engine.connect() as connection, connection.begin():
            self._recognise(connection)
            if whole:
                self._refuse_damage(connection, "integrity_check")
            yield Table(connection, str(self))

    @contextmanager
    def writing(self, first: tuple[Row, ...] = ()) -> Iterator[Table]:
        """Give the rows to the only one who may write now; durable when this ends.

        `first` are the rows of a new file; without any it begins a ledger of its own.
        """
        with self._told():
            if not self.exists:
                self._make(first)
            with self._engine.connect().execution_options(immediate=True) as connection, connection.begin():
                self._recognise(connection)
                # A new page comes behind all others, unless the file says that some in between are free.
                pages, size, free = (
                    _pragma(connection, name) for name in ("page_count", "page_size", "freelist_count")
                )
                if free or pages * size != self.path.stat().st_size:
                    self._refuse_damage(connection, "quick_check")
                yield Table(connection, str(self))
                _count(connection)

    def _refuse_damage(self, connection: sa.Connection, check: str) -> None:
        if connection.exec_driver_sql(f"PRAGMA {check}(1)").scalars().all() != ["ok"]:
            raise Refused(f"the ledger {self} is damaged: restore it from a copy")

    def _recognise(self, connection: sa.Connection) -> None:
        """Refuse a file that is no ledger, or was one and lost its content."""
        application = _pragma(connection, "application_id")
        schema = {row[0]: row[1] for row in connection.exec_driver_sql("SELECT name, sql FROM sqlite_master")}
        counted, version = divmod(_pragma(connection, "user_version"), VERSIONS)
        if application == 0 and not schema:
            raise Refused(
                f"the ledger {self} is empty, and holdfast never makes an empty one: restore it from a copy, or remove "
                "it if nothing was ever charged there"
            )
        if application != APPLICATION:
            raise Refused(f"{self} is not a ledger of holdfast, or is damaged: restore it from a copy")
        if version != VERSION:
            raise Refused(
                f"the ledger {self} has version {version}, and this holdfast reads {VERSION}: use a newer one"
            )
        if schema != SCHEMA:
            raise Refused(
                f"the ledger {self} has lost what makes it append-only, or is damaged: restore it from a copy"
            )
        if counted != _last(connection):
            raise Refused(
                f"the ledger {self} has not the number of rows that it says it has: some were cut off at its end; "
                "restore it from a copy"
            )

    def _make(self, rows: tuple[Row, ...]) -> None:
        """Make the file, whole at once: a ledger without anything in it is then never one that was being made."""
        if self.path.is_symlink():
            raise Refused(f"the ledger {self} is a link that leads nowhere: mend it, so that no charge is lost")
        network = network_of(self.path.parent)
        if network is not None:
            raise Refused(
                f"the ledger {self} is on a network ({network}), where two releases at once cannot be kept apart: put "
                "it on a disk of this machine, or use ledger: postgresql"
            )
        with locked_folder(self.path.parent):
            if self.exists:
                return  # made by another process meanwhile
            draft = self.path.with_name(f".{self.path.name}.partial")
            _remove(draft)  # what a killed process left
            try:
                os.close(os.open(draft, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
                with _engine(sa.URL.create("sqlite", database=str(draft))).connect() as connection, connection.begin():
                    _fill(connection, rows or (first_row(),))
                os.replace(draft, self.path)
            except BaseException:
                _remove(draft)
                raise
            sync_folder(self.path.parent)

    @contextmanager
    def _told(self) -> Iterator[None]:
        """Say what the database or the system says in one sentence."""
        try:
            yield
        except sa.exc.DBAPIError as error:
            raise meaning_of(str(error.orig), str(self)) from None
        except (sqlite3.Error, UnicodeError, OverflowError) as error:  # what a damaged file makes the driver say
            raise meaning_of(str(error), str(self)) from None
        except OSError as error:
            raise meaning_of(f"unable to open: {error.strerror}", str(self)) from None


def _engine(address: sa.URL) -> sa.Engine:
    engine = sa.create_engine(address, poolclass=NullPool, connect_args={"timeout": PATIENCE})
    event.listen(engine, "connect", _durable)
    event.listen(engine, "begin", _begin)
    return engine


def _durable(connection: Any, _: Any) -> None:
    # SQLAlchemy begins transactions itself (see _begin); the driver must not.
    connection.isolation_level = None
    # EXTRA syncs the folder too after a commit: with less, a power cut could bring the journal back and undo it.
    connection.execute("PRAGMA synchronous = EXTRA")
    connection.execute("PRAGMA fullfsync = ON")
    # Whatever is read must be in the table itself.
    connection.execute("PRAGMA cell_size_check = ON")


def _begin(connection: sa.Connection) -> None:
    immediate = connection.get_execution_options().get("immediate", False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if immediate else "BEGIN")


def _pragma(connection: sa.Connection, name: str) -> int:
    return int(connection.exec_driver_sql(f"PRAGMA {name}").scalar_one())


def _last(connection: sa.Connection) -> int:
    return int(connection.exec_driver_sql(f"SELECT coalesce(max(number), 0) FROM {TABLE}").scalar_one())


def _count(connection: sa.Connection) -> None:
    """Keep the number of rows beside the version."""
    connection.exec_driver_sql(f"PRAGMA user_version = {_last(connection) * VERSIONS + VERSION}")


def _fill(connection: sa.Connection, rows: tuple[Row, ...]) -> None:
    """Make the table of a new ledger with its first rows."""
    for words in SCHEMA.values():
        connection.exec_driver_sql(words)
    connection.exec_driver_sql(f"PRAGMA application_id = {APPLICATION}")
    Table(connection, TABLE).insert(rows)
    _count(connection)


def _remove(draft: Path) -> None:
    for path in (draft, draft.with_name(f"{draft.name}-journal")):
        path.unlink(missing_ok=True)


def meaning_of(trouble: str, where: str) -> Refused:
    """Return what an error of the database means to the user."""
    if "locked" in trouble:
        return later(Refused(f"the ledger {where} is being written by another release: try again when it has finished"))
    if "full" in trouble:
        return Refused(f"the disk has no room for the ledger {where}: free some space and try again")
    if "readonly" in trouble or "unable to open" in trouble or "disk I/O" in trouble:
        return Refused(
            f"the ledger {where} cannot be written: check its folder, its disk and permissions, then try again"
        )
    if "append-only" in trouble:
        return Refused(f"the ledger {where} is append-only: nothing in it can be changed")
    return Refused(f"{where} is not a ledger of holdfast, or is damaged: restore it from a copy, or name another file")


# --- A ledger on a PostgreSQL server, for teams: one table to which rows can only be added, one writer at a time -----
# Its address is in the environment, so that no spec and no history of commands holds it. Whoever may only add rows is
# granted SELECT and INSERT; the triggers stop everybody else who does not own the table.

#: What a spec calls a ledger on a server, where its address is, and how addresses begin.
WORD, VARIABLE, ADDRESSES = "postgresql", "HOLDFAST_LEDGER", ("postgresql:", "postgres:")
#: The lock under which one connection at a time writes ("Hold").
LOCK = 0x486F6C64
#: Keys are compared byte by byte, whatever the language of the database is.
_SERVER_TEXTS = ", ".join(f'{name} TEXT COLLATE "C" NOT NULL' for name in COLUMNS[1:])
_REFUSES = " BEGIN RAISE EXCEPTION 'the ledger is append-only'; END "
SERVER_SCHEMA = (
    f"CREATE TABLE {TABLE} (number BIGINT PRIMARY KEY, {_SERVER_TEXTS})",
    f"CREATE UNIQUE INDEX {TABLE}_once ON {TABLE} (key, kind) WHERE key <> ''",
    f"CREATE FUNCTION {TABLE}_refuse() RETURNS trigger LANGUAGE plpgsql AS $${_REFUSES}$$",
    f"CREATE TRIGGER {TABLE}_no_change BEFORE UPDATE OR DELETE ON {TABLE} "
    f"FOR EACH ROW EXECUTE FUNCTION {TABLE}_refuse()",
    f"CREATE TRIGGER {TABLE}_no_truncate BEFORE TRUNCATE ON {TABLE} "
    f"FOR EACH STATEMENT EXECUTE FUNCTION {TABLE}_refuse()",
    # Also in a session that says it only copies what another server did.
    f"ALTER TABLE {TABLE} ENABLE ALWAYS TRIGGER {TABLE}_no_change",
    f"ALTER TABLE {TABLE} ENABLE ALWAYS TRIGGER {TABLE}_no_truncate",
)
#: What the triggers must be: before every row that is changed or deleted, and before the table is emptied.
_TRIGGERS = {f"{TABLE}_no_change": 1 | 2 | 8 | 16, f"{TABLE}_no_truncate": 2 | 32}
_THERE = (
    "SELECT tgname, tgtype, prosrc FROM pg_trigger JOIN pg_proc ON pg_proc.oid = tgfoid "
    f"WHERE tgrelid = '{TABLE}'::regclass AND tgenabled IN ('O', 'A') AND tgqual IS NULL"
)


class LedgerServer:
    """The rows of a ledger on a server; the first row makes its table."""

    def __init__(self, address: str) -> None:
        text = os.environ.get(VARIABLE, "") if address == WORD else address
        if not text.startswith(ADDRESSES):
            raise Refused(
                f"the address of the ledger is missing: set {VARIABLE} to postgresql://HOST/DATABASE, and user and "
                "password as PGUSER and PGPASSWORD"
            )
        try:
            url = sa.make_url(text).set(drivername="postgresql+psycopg")
            self._engine = sa.create_engine(url, poolclass=NullPool, connect_args={"connect_timeout": PATIENCE})
        except (sa.exc.ArgumentError, ValueError):
            raise Refused("the address of a ledger is written postgresql://HOST/DATABASE") from None
        except ModuleNotFoundError as error:
            raise Refused(f"a ledger on a server needs {error.name}: install holdfast[postgres]") from None
        self.path = f"{WORD}://{url.host or ''}/{url.database or ''}"

    def __str__(self) -> str:
        return self.path

    @property
    def exists(self) -> bool:
        with self._told(), self._engine.connect() as connection:
            return _is_there(connection)

    @contextmanager
    def reading(self, whole: bool = False) -> Iterator[Table | None]:
        """Give the rows as they are now, None where nothing was written yet; the server checks its own files."""
        del whole
        with self._told(), self._engine.connect() as connection, connection.begin():
            connection.exec_driver_sql("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
            yield self._table(connection) if _is_there(connection) else None

    @contextmanager
    def writing(self, first: tuple[Row, ...] = ()) -> Iterator[Table]:
        """Give the rows to the only one who may write now; durable when this ends."""
        with self._told(), self._engine.connect() as connection, connection.begin():
            connection.exec_driver_sql(f"SET LOCAL lock_timeout = '{PATIENCE}s'")
            connection.exec_driver_sql("SET LOCAL synchronous_commit = on")
            connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({LOCK})")
            if not _is_there(connection):
                for words in SERVER_SCHEMA:
                    connection.exec_driver_sql(words)
                self._table(connection).insert(first or (first_row(),))
            yield self._table(connection)

    def _table(self, connection: sa.Connection) -> Table:
        found = {name: kind for name, kind, code in connection.exec_driver_sql(_THERE) if code == _REFUSES}
        if not found.items() >= _TRIGGERS.items():
            raise Refused(f"the ledger {self} has lost what makes it append-only: restore it from a copy")
        return Table(connection, str(self))

    @contextmanager
    def _told(self) -> Iterator[None]:
        """Say what the server says in one sentence, without repeating it: it may quote the address."""
        try:
            yield
        except sa.exc.DBAPIError as error:
            raise self._meaning(error) from None

    def _meaning(self, error: sa.exc.DBAPIError) -> Refused:
        text, state = str(error.orig), getattr(error.orig, "sqlstate", None)
        if "append-only" in text or state == "23505":
            return Refused(f"the ledger {self} is append-only: nothing in it can be changed")
        if state == "55P03":
            return later(
                Refused(f"the ledger {self} is being written by another release: try again when it has finished")
            )
        if state == "42501":
            return Refused(f"the ledger {self} must not be written by this user: ask for SELECT and INSERT on {TABLE}")
        words = kept_out(text)
        if words is not None:
            return Refused(f"the ledger {self} {words} ({VARIABLE})")
        if state is None or state.startswith(("08", "57")):
            return later(Refused(f"the ledger {self} cannot be reached: check {VARIABLE}, and that the server runs"))
        return Refused(f"the ledger {self} cannot be used: check that it is whole, or restore it from a copy")


def _is_there(connection: sa.Connection) -> bool:
    found = connection.exec_driver_sql(f"SELECT to_regclass('{TABLE}')").scalar_one()
    return found is not None
