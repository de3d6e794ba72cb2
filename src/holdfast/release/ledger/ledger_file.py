"""A ledger in a file: one SQLite table to which rows can only be added, and commits that last."""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy import event
from sqlalchemy.pool import NullPool

from holdfast.arguments import Refused
from holdfast.release.ledger.chain import COLUMNS, Entered, Row, behind, first_row
from holdfast.release.ledger.table import TABLE, Table
from holdfast.release.storage.files import locked_folder, network_of, sync_folder

#: What an SQLite file says of itself when it is a ledger ("Hold"), and the version of its table. The number that SQLite
#: keeps for a version has the number of rows besides, so that a row cut off at the end is missed.
APPLICATION, VERSION, VERSIONS = 0x486F6C64, 2, 16
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
#: The tables of the first version, with the columns that made a row's key and those of its content.
_OLD = {
    "budgets": ("budget", (), ("budget",)),
    "charges": ("charge", ("release",), ("title", "spec_hash", "statements")),
    "figures": ("figures", ("release",), ("tables",)),
    "secrets": ("secret", ("fingerprint",), ("release",)),
    "slices": ("slice", ("release", "agent"), ("commitment",)),
}
#: Columns of the first version that hold JSON themselves.
_JSON = ("budget", "statements", "tables")


class LedgerFile:
    """The rows of a ledger in a file, which the first row makes."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path).absolute()
        if self.path.is_dir():
            raise Refused(f"the ledger {self.path} is a folder: name a file, such as {self.path.name}/book.sqlite")
        # No pool: a connection is open only while it is used, and none is shared with a forked process.
        address = sa.URL.create("sqlite", database=str(self.path))
        self._engine = _engine(address)
        # How the chain of a ledger of the first version begins: the same whenever it is read, and when it is renewed.
        self._old_first = first_row("", from_version=1)

    def __str__(self) -> str:
        return str(self.path)

    @property
    def exists(self) -> bool:
        """Whether the file is there."""
        return self.path.exists()

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
            if _version(connection) == VERSION:
                yield Table(connection, str(self))
                return
            rows = _old_rows(connection, str(self), self._old_first)
            with _engine(sa.URL.create("sqlite")).connect() as copy, copy.begin():
                _fill(copy, rows)
                yield Table(copy, str(self))

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
                if _version(connection) < VERSION:
                    self._refuse_damage(connection, "quick_check")
                    _renew(connection, _old_rows(connection, str(self), self._old_first))
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
        found = {row[0]: row[1] for row in connection.exec_driver_sql("SELECT name, sql FROM sqlite_master")}
        version = _version(connection)
        if application == 0 and not found:
            raise Refused(
                f"the ledger {self} is empty, and holdfast never makes an empty one: restore it from a copy, or remove "
                "it if nothing was ever charged there"
            )
        if application != APPLICATION:
            raise Refused(f"{self} is not a ledger of holdfast, or is damaged: restore it from a copy")
        if not 1 <= version <= VERSION:
            raise Refused(
                f"the ledger {self} has version {version}, and this holdfast reads {VERSION}: use a newer one"
            )
        old = TABLE not in found and {"budgets", "charges"} <= set(found)
        if not (found == SCHEMA if version == VERSION else old):
            raise Refused(
                f"the ledger {self} has lost what makes it append-only, or is damaged: restore it from a copy"
            )
        if version == VERSION and _rows_counted(connection) != _last(connection):
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
                    _fill(connection, rows or (first_row(""),))
                os.rename(draft, self.path)
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
            raise Refused(meaning_of(str(error.orig), str(self))) from None
        except (sqlite3.Error, UnicodeError, OverflowError) as error:  # what a damaged file makes the driver say
            raise Refused(meaning_of(str(error), str(self))) from None
        except OSError as error:
            raise Refused(meaning_of(f"unable to open: {error.strerror}", str(self))) from None


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


def _version(connection: sa.Connection) -> int:
    return _pragma(connection, "user_version") % VERSIONS


def _rows_counted(connection: sa.Connection) -> int:
    return _pragma(connection, "user_version") // VERSIONS


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
    """Remove a file that did not become a ledger."""
    for path in (draft, draft.with_name(f"{draft.name}-journal")):
        path.unlink(missing_ok=True)


# --- the first version, whose rows had no chain -----------------------------------------------------------------------


def _old_rows(connection: sa.Connection, where: str, first: Row) -> tuple[Row, ...]:
    """Return what a ledger of the first version holds as a chain behind a first row, table by table."""
    found: list[Row] = [first]
    there = set(connection.exec_driver_sql("SELECT name FROM sqlite_master WHERE type = 'table'").scalars())
    for table, (kind, key, content) in _OLD.items():
        if table not in there:
            continue
        for row in connection.exec_driver_sql(f"SELECT * FROM {table} ORDER BY number").mappings():
            try:
                told = {name: json.loads(row[name]) if name in _JSON else row[name] for name in content}
            except (ValueError, TypeError):
                raise Refused(
                    f"row {row['number']} of {table} in the ledger {where} cannot be read, so nothing can be added up: "
                    "restore it from a copy"
                ) from None
            name = " ".join(str(row[part]) for part in key)
            text = json.dumps(told, ensure_ascii=False)
            entered = Entered(row["at"], kind, text, row.get("dataset", ""), row.get("unit", ""), name)
            found.append(behind(found[-1], entered))
    return tuple(found)


def _renew(connection: sa.Connection, rows: tuple[Row, ...]) -> None:
    """Turn a ledger of the first version into one of this, in one transaction; every row keeps what it says."""
    for table in _OLD:
        connection.exec_driver_sql(f"DROP TABLE IF EXISTS {table}")
    _fill(connection, rows)


def meaning_of(trouble: str, where: str) -> str:
    """Return what an error of the database means to the user."""
    if "locked" in trouble:
        return f"the ledger {where} is being written by another release: try again when it has finished"
    if "full" in trouble:
        return f"the disk has no room for the ledger {where}: free some space and try again"
    if "readonly" in trouble or "unable to open" in trouble or "disk I/O" in trouble:
        return f"the ledger {where} cannot be written: check its folder, its disk and permissions, then try again"
    if "append-only" in trouble:
        return f"the ledger {where} is append-only: nothing in it can be changed"
    return f"{where} is not a ledger of holdfast, or is damaged: restore it from a copy, or name another file"
