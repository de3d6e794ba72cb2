"""Records in a database at an address: counted there by its own GROUP BY, so that only distinct values come here.

Where persons' records are limited, whole records are needed: they are fetched in pieces into a table of the session,
which the engine keeps on a private disk where memory is short. Everything is read in one transaction.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import sqlalchemy as sql
from sqlalchemy import exc

from holdfast.domains.names import text_of
from holdfast.release.records.rows import Rows, unused
from holdfast.release.records.source import MOST_RECORDS, Asked, Place, Source
from holdfast.release.storage.reading import WHOLE_TEXT, quoted_name

#: Rows that are fetched at a time.
PIECE = 20_000
#: The drivers that are asked for where an address names none, and the extra that brings them.
DRIVERS = {"postgres": ("postgresql+psycopg", "postgres"), "postgresql": ("postgresql+psycopg", "postgres")}
#: How many records a row of a grouped table stands for.
TIMES = "holdfast_count"
#: What the types of Python are in the engine.
KINDS = {bool: "BOOLEAN", int: "BIGINT", float: "DOUBLE", bytes: "BLOB", memoryview: "BLOB", dict: "STRUCT"}


def opened_database(place: Place) -> Source:
    """Connect to the address of a place; what the driver says is not repeated, since it may quote the address."""
    try:
        url = sql.make_url(place.text)
    except (exc.ArgumentError, ValueError):
        sentence = "the address of a database is written KIND://HOST/DATABASE, as postgresql://db.example.org/trips"
        raise place.refuse(sentence) from None
    if url.get_backend_name() == "sqlite" and url.database:  # which would make a file that is not there
        if not Path(url.database).exists():
            raise place.refuse("the address names a SQLite file that is not there")
        return opened_sqlite(place, Path(url.database).absolute())
    driver, extra = DRIVERS.get(url.drivername, (url.drivername, None))
    return _connected(place, url.set(drivername=driver), extra)


def opened_sqlite(place: Place, file: Path) -> Source:
    """Open a SQLite file for reading alone."""
    query = {"mode": "ro", "uri": "true"}
    return _connected(place, sql.URL.create("sqlite", database=f"file:{file}", query=query), None)


def _connected(place: Place, url: sql.URL, extra: str | None) -> Source:
    try:
        server = sql.create_engine(url, poolclass=sql.NullPool)
    except (exc.ArgumentError, exc.NoSuchModuleError):
        raise place.refuse(f"there is no kind of database {url.get_backend_name()!r}") from None
    except ModuleNotFoundError as error:
        remedy = f"holdfast[{extra}]" if extra else "it"
        sentence = f"reading this kind of database needs {error.name}, which is not installed: install {remedy}"
        raise place.refuse(sentence) from None
    try:
        connection = server.connect()
        if url.get_backend_name() == "postgresql":  # one view of the data, and nothing is written
            connection.execution_options(isolation_level="REPEATABLE READ", postgresql_readonly=True)
    except exc.SQLAlchemyError:
        sentence = "the database cannot be reached: check the address, that it runs, and the user and password"
        raise place.refuse(sentence) from None
    place.ending.callback(connection.close)
    with _told(place):
        return Database(place, connection, _rows(place, connection))


def _rows(place: Place, connection: sql.Connection) -> sql.FromClause:
    """The table that is named, or the query, as something to select from."""
    if place.query is not None:
        return sql.text(place.query.rstrip().rstrip(";")).columns().subquery("records")
    known = sql.inspect(connection)
    names = sorted([*known.get_table_names(), *known.get_view_names()])
    if place.table is None and len(names) != 1:
        raise place.at.refuse("a database needs data.table or data.query, where the records are", None, names)
    schema, _, name = (place.table or names[0]).rpartition(".")
    if not known.has_table(name, schema=schema or None):
        sentence = f"the database has no table {place.table!r} that can be read"
        raise place.refuse(sentence, "table", place.table, names)
    return sql.table(name, schema=schema or None)


@dataclass(frozen=True)
class Database:
    """A table, view or query of a database."""

    place: Place
    connection: sql.Connection
    rows: sql.FromClause

    def kinds(self) -> Mapping[str, str]:
        """Look at one row: databases have many more types than the engine."""
        with _told(self.place):
            found: sql.Result[Any] = self.connection.execute(
                sql.select(sql.literal_column("*")).select_from(self.rows).limit(1)
            )
            names, row = list(found.keys()), found.first()
        if len(set(names)) < len(names):
            raise self.place.refuse("two columns of the records have the same name: give each its own", self._key)
        values = row or [None] * len(names)
        return {name: KINDS.get(type(value), _kind(value)) for name, value in zip(names, values, strict=True)}

    def counted(self, asked: Asked) -> str:
        """Let the database group by everything that matters, the counts of rows included."""
        if asked.persons is not None:
            return self._fetched(list(self.kinds()), None).counted(asked)
        columns = list(dict.fromkeys([*asked.columns, *([] if asked.count is None else [asked.count])]))
        return self._fetched(columns, unused(TIMES, columns)).counted(asked)

    def uncounted(self, count: str) -> int | None:
        """Read the counts again, in the order in which the database tells its rows."""
        chosen: sql.ColumnElement[Any] = sql.column(count)
        statement, number = sql.select(chosen).select_from(self.rows), 0
        with _told(self.place):
            streamed = self.connection.execution_options(stream_results=True, yield_per=PIECE)
            with streamed.execute(statement) as found:
                for (value,) in found:
                    number += 1
                    text = str(text_of(value)).strip()
                    if not re.fullmatch(WHOLE_TEXT, text) or int(text.partition(".")[0]) > MOST_RECORDS:
                        return number
        return None

    def _fetched(self, names: Sequence[str], times: str | None) -> Rows:
        """Fetch distinct values and how often they occur, or whole records, in pieces."""
        engine = self.place.engine
        chosen: list[sql.ColumnElement[Any]] = [sql.column(name) for name in names]
        statement = sql.select(*chosen).select_from(self.rows)
        if times is not None:
            statement = sql.select(*chosen, sql.func.count()).select_from(self.rows).group_by(*chosen)
        texts = ", ".join(f"{quoted_name(name)} VARCHAR" for name in names)
        number = "" if times is None else f", {quoted_name(times)} BIGINT"
        engine.execute(f"CREATE OR REPLACE TEMP TABLE fetched ({texts}{number})")
        with _told(self.place):
            found = self.connection.execution_options(stream_results=True, yield_per=PIECE).execute(statement)
            for piece in found.partitions():
                columns: dict[str, Any] = {}
                for i in range(len(names)):
                    # The last text makes it a column of texts, even if all are missing; it is left out again.
                    columns[f"t{i}"] = np.array([*(text_of(row[i]) for row in piece), ""], dtype=object)
                if times is not None:
                    columns["n"] = np.array([*(row[-1] for row in piece), -1], dtype=np.int64)
                engine.register("piece", columns)
                engine.execute(f"INSERT INTO fetched FROM piece LIMIT {len(piece)}")
                engine.unregister("piece")
        return Rows(engine, "fetched", times)

    @property
    def _key(self) -> str:
        return "table" if self.place.query is None else "query"


def _kind(value: Any) -> str:
    return "VARCHAR[]" if isinstance(value, (list, tuple)) else "DECIMAL" if hasattr(value, "quantize") else "VARCHAR"


@contextmanager
def _told(place: Place) -> Iterator[None]:
    """Say in one sentence what the database says, which may quote records and what it was asked."""
    try:
        yield
    except exc.DBAPIError as error:
        key = "source" if place.query is None and place.table is None else "table" if place.query is None else "query"
        if error.connection_invalidated or isinstance(error, (exc.OperationalError, exc.InterfaceError)):
            sentence = "the database went away, or refused, while it was asked for the records: try again"
            raise place.refuse(sentence) from None
        sentence = "the database cannot answer: a column, table or view is not there, has changed or must not be read"
        raise place.refuse(sentence, key) from None
    except (exc.SQLAlchemyError, OverflowError):
        raise place.refuse("the database cannot be read: write a query whose columns are texts and numbers") from None
