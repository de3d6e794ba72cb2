"""The file of the ledger: tables of an SQLite file to which rows can only be added, and commits that last."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy import event
from sqlalchemy.pool import NullPool

from holdfast.arguments import Refused

#: What an SQLite file says of itself when it is a ledger ("Hold"), and the version of its tables.
APPLICATION, VERSION = 0x486F6C64, 1
#: Seconds to wait for another release that is writing.
PATIENCE = 30

_ABORT = "BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END"

_tables = sa.MetaData()


def _table(name: str, *columns: sa.Column[str]) -> sa.Table:
    """A table of the ledger: its rows are numbered, and each is about a dataset and a unit."""
    about = [sa.Column(each, sa.Text, nullable=False) for each in ("at", "dataset", "unit")]
    return sa.Table(name, _tables, sa.Column("number", sa.Integer, primary_key=True), *about, *columns)


BUDGETS = _table("budgets", sa.Column("budget", sa.Text, nullable=False))
CHARGES = _table(
    "charges",
    sa.Column("release", sa.Text, nullable=False, unique=True),
    sa.Column("title", sa.Text, nullable=False),
    sa.Column("spec_hash", sa.Text, nullable=False),
    sa.Column("statements", sa.Text, nullable=False),
)
FIGURES = _table(
    "figures", sa.Column("release", sa.Text, nullable=False, unique=True), sa.Column("tables", sa.Text, nullable=False)
)


def remove_draft(draft: Path) -> None:
    """Remove a file that did not become a ledger."""
    for path in (draft, draft.with_name(f"{draft.name}-journal")):
        path.unlink(missing_ok=True)


def engine_of(path: Path) -> sa.Engine:
    """Return what opens the file for as long as it is used."""
    # No pool: a connection is open only while it is used, and none is shared with a forked process.
    address = sa.URL.create("sqlite", database=str(path))
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


def _begin(connection: sa.Connection) -> None:
    immediate = connection.get_execution_options().get("immediate", False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if immediate else "BEGIN")


def recognise(connection: sa.Connection, path: Path) -> None:
    """Refuse a file that is no ledger, or was one and lost its content."""
    application = connection.exec_driver_sql("PRAGMA application_id").scalar_one()
    version = connection.exec_driver_sql("PRAGMA user_version").scalar_one()
    if application == 0 and not connection.exec_driver_sql("SELECT count(*) FROM sqlite_master").scalar_one():
        raise Refused(
            f"the ledger {path} is empty, and holdfast never makes an empty one: restore it from a copy, or remove it "
            "if nothing was ever charged there"
        )
    if application != APPLICATION:
        raise Refused(f"{path} is not a ledger of holdfast: name another file")
    if version != VERSION:
        raise Refused(f"the ledger {path} has version {version}, and this holdfast reads {VERSION}: use a newer one")


def fill(connection: sa.Connection) -> None:
    """Make every table of a new ledger."""
    for table in _tables.sorted_tables:
        add_table(connection, table)
    connection.exec_driver_sql(f"PRAGMA application_id = {APPLICATION}")
    connection.exec_driver_sql(f"PRAGMA user_version = {VERSION}")


def add_table(connection: sa.Connection, table: sa.Table) -> None:
    """Make a table to which rows can only be added."""
    table.create(connection)
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


def meaning_of(trouble: str, path: Path) -> str:
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
