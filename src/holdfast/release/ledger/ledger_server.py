"""A ledger on a PostgreSQL server, for teams: one table to which rows can only be added, one writer at a time.

Its address is in the environment, so that no spec and no history of commands holds it. Whoever may only add rows is
granted SELECT and INSERT; the triggers stop everybody else who does not own the table.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

import sqlalchemy as sa
from sqlalchemy.pool import NullPool

from holdfast.arguments import Refused
from holdfast.release.ledger.store import COLUMNS, TABLE, Row, Table, first_row

#: What a spec calls a ledger on a server, where its address is, and how addresses begin.
WORD, VARIABLE, ADDRESSES = "postgresql", "HOLDFAST_LEDGER", ("postgresql:", "postgres:")
#: The lock under which one connection at a time writes ("Hold").
LOCK = 0x486F6C64
PATIENCE = 30
#: Keys are compared byte by byte, whatever the language of the database is.
_TEXTS = ", ".join(f'{name} TEXT COLLATE "C" NOT NULL' for name in COLUMNS[1:])
_REFUSES = " BEGIN RAISE EXCEPTION 'the ledger is append-only'; END "
SCHEMA = (
    f"CREATE TABLE {TABLE} (number BIGINT PRIMARY KEY, {_TEXTS})",
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
                for words in SCHEMA:
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
            raise Refused(self._meaning(error)) from None

    def _meaning(self, error: sa.exc.DBAPIError) -> str:
        text, state = str(error.orig), getattr(error.orig, "sqlstate", None)
        if "append-only" in text or state == "23505":
            return f"the ledger {self} is append-only: nothing in it can be changed"
        if state == "55P03":
            return f"the ledger {self} is being written by another release: try again when it has finished"
        if state == "42501":
            return f"the ledger {self} must not be written by this user: ask for SELECT and INSERT on {TABLE}"
        if state is None or state.startswith(("08", "28", "3D", "57")):
            return f"the ledger {self} cannot be reached: check {VARIABLE}, that the server runs, user and password"
        return f"the ledger {self} cannot be used: check that it is whole, or restore it from a copy"


def _is_there(connection: sa.Connection) -> bool:
    found = connection.exec_driver_sql(f"SELECT to_regclass('{TABLE}')").scalar_one()
    return found is not None
