"""Records in a database at an address: counted there by its own GROUP BY, so that only distinct values come here.

Where persons' records are limited, whole records are needed: they are fetched in pieces into a table of the session,
which the engine keeps on a private disk where memory is short. Everything is read in one transaction.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import sqlalchemy as sql
from sqlalchemy import exc

from holdfast.arguments import Refused, later
from holdfast.domains.data_frames import text_of
from holdfast.release.records.sources import MOST_RECORDS, Asked, Place, Rows, Source, fetched, unused
from holdfast.release.spec.origin import Origin, origin, refusal
from holdfast.release.spec.rowwise import (
    DIALECTS,
    Lookup,
    NotRowByRow,
    Result,
    Stored,
    result_of_query,
    result_of_table,
)
from holdfast.release.storage.engine import WHOLE_TEXT, quoted_name
from holdfast.release.storage.files import kept_out

# --- what a database says about its own tables and views: the definitions behind a name, never a row of them ---------

#: Schemas of PostgreSQL that hold no records.
OF_THE_SYSTEM = ("pg_catalog", "information_schema", "pg_toast")
_RELATION = """
SELECT c.oid, n.nspname, c.relname, c.relkind::text, c.relrowsecurity,
  EXISTS (SELECT 1 FROM pg_inherits i WHERE i.inhrelid = c.oid OR i.inhparent = c.oid)
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.oid = to_regclass(:name)
"""
_COLUMNS = """
SELECT a.attname, CASE WHEN a.attgenerated <> '' THEN pg_get_expr(d.adbin, d.adrelid) END
FROM pg_attribute a LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
WHERE a.attrelid = :oid AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum
"""
#: Whether somebody made functions of these names, or operators or casts, beside those of the system and extensions.
_OWN = """
WITH own(class, object) AS (
  SELECT 'pg_proc'::regclass, oid FROM pg_proc
  WHERE pronamespace <> 'pg_catalog'::regnamespace AND proname = ANY (:names)
  UNION ALL SELECT 'pg_operator'::regclass, oid FROM pg_operator WHERE oprnamespace <> 'pg_catalog'::regnamespace
  UNION ALL SELECT 'pg_cast'::regclass, oid FROM pg_cast WHERE oid >= 16384 AND castfunc <> 0
)
SELECT count(*) FROM own WHERE NOT EXISTS (
  SELECT 1 FROM pg_depend WHERE classid = class AND objid = object AND deptype = 'e'
)
"""
OWN_FUNCTIONS = "functions, operators or casts that were made in the database: use those of the system"


def origin_in_database(place: Place, connection: sql.Connection, table: Sequence[str]) -> Origin:
    """How the rows of a table, view or query of a database are made."""
    kind = connection.dialect.name
    lookup = {"sqlite": _sqlite, "postgresql": _postgresql}.get(kind, lambda _: lambda _: None)(connection)

    def read() -> Result:
        result = _result(place, table, kind, lookup)
        if kind == "postgresql":
            _refuse_own(connection, result)
            if len(result.tables) > 1 and any(key.startswith("inherited ") for key in result.tables):
                raise NotRowByRow(
                    "a table that shares its rows with another (PARTITION OF, INHERITS): select one table"
                )
        return result

    return _origin(place, kind, read)


def origin_in_duckdb(place: Place, engine: duckdb.DuckDBPyConnection, database: str, table: str) -> Origin:
    """How the rows of a table or view of a DuckDB file are made."""

    def read() -> Result:
        result = _result(place, [table], "duckdb", _duckdb(engine, database))
        own = "SELECT count(*) FROM duckdb_functions() WHERE database_name = ? AND NOT internal"
        if (result.views or result.functions) and engine.execute(own, [database]).fetchall()[0][0]:
            raise NotRowByRow(OWN_FUNCTIONS)
        return result

    return _origin(place, "duckdb", read)


def _result(place: Place, table: Sequence[str], kind: str, lookup: Lookup) -> Result:
    return result_of_table(table, kind, lookup) if place.query is None else result_of_query(place.query, kind, lookup)


def _origin(place: Place, kind: str, read: Callable[[], Result]) -> Origin:
    try:
        return origin(place.spec, place.query, kind, read)
    except NotRowByRow as reason:
        key = "table" if place.query is None else "query"
        what = "the query" if place.query is not None else "this source"
        at = place.at if place.query is None and place.table is None else place.at[key]
        raise at.refuse(refusal(what, reason)) from None


# --- kinds of databases --------------------------------------------------------------------------------------------


def _sqlite(connection: sql.Connection) -> Lookup:
    def lookup(parts: Sequence[str]) -> Stored | None:
        *schema, name = parts
        if any(each.lower() != "main" for each in schema):
            return None
        listed = "SELECT name, type, sql FROM main.sqlite_master WHERE lower(name) = lower(:name)"
        rows = connection.execute(sql.text(f"{listed} AND type IN ('table', 'view')"), {"name": name}).all()
        if len(rows) != 1 or name.lower().startswith("sqlite_"):  # the system's own tables count rows of others
            return None
        ((own, kind, text),) = rows
        if kind == "view":
            return Stored(own.lower(), None, definition=text)
        columns = connection.exec_driver_sql(f"PRAGMA main.table_xinfo({quoted_name(own)})").all()
        opaque = not str(text).upper().startswith("CREATE TABLE")  # a virtual one is made by a program
        mixed = any(row[6] for row in columns)  # by functions of one row without chance: SQLite refuses others
        return Stored(own.lower(), tuple(row[1] for row in columns), mixed=mixed, opaque=opaque)

    return lookup


def _postgresql(connection: sql.Connection) -> Lookup:
    def lookup(parts: Sequence[str]) -> Stored | None:
        name = ".".join(quoted_name(part) for part in parts)
        row = connection.execute(sql.text(_RELATION), {"name": name}).one_or_none()
        if row is None or row[1] in OF_THE_SYSTEM:
            return None
        oid, schema, own, kind, policies, inherits = row
        key = f"{'inherited ' if inherits else ''}{schema}.{own}"
        if kind in ("v", "m"):
            words = connection.execute(sql.text("SELECT pg_get_viewdef(CAST(:oid AS oid))"), {"oid": oid}).scalar()
            return Stored(key, None, definition=str(words))
        columns = connection.execute(sql.text(_COLUMNS), {"oid": oid}).all()
        computed = tuple(words for _, words in columns if words is not None)
        opaque = kind not in ("r", "p") or bool(policies)  # a foreign table, or one whose policies hide rows
        return Stored(key, tuple(each for each, _ in columns), None, bool(computed), computed, opaque)

    return lookup


def _refuse_own(connection: sql.Connection, result: Result) -> None:
    expressions = (
        result.views or result.functions or result.drops or any(not each.plain for each in result.columns or ())
    )
    if expressions and connection.execute(sql.text(_OWN), {"names": sorted(result.functions)}).scalar():
        raise NotRowByRow(OWN_FUNCTIONS)


def _duckdb(engine: duckdb.DuckDBPyConnection, database: str) -> Lookup:
    def rows(words: str, *values: Any) -> list[Any]:
        return engine.execute(f"{words} WHERE database_name = ? AND schema_name = ?", [database, *values]).fetchall()

    def lookup(parts: Sequence[str]) -> Stored | None:
        *schemas, name = parts
        schema = schemas[0] if schemas else "main"
        views = {own.lower(): text for own, text in rows("SELECT view_name, sql FROM duckdb_views()", schema)}
        if name.lower() in views:
            return Stored(f"{schema}.{name}".lower(), None, definition=views[name.lower()])
        listed = "SELECT table_name, column_name, is_generated, generation_expression FROM duckdb_columns()"
        columns = [row for row in rows(listed, schema) if row[0].lower() == name.lower()]
        if not columns:
            return None
        computed = tuple(str(words) for _, _, generated, words in columns if generated)
        key = f"{schema}.{name}".lower()
        return Stored(key, tuple(row[1] for row in columns), mixed=bool(computed), computed=computed)

    return lookup


#: Rows that are fetched at a time, and groups that are asked for at once: a declared cursor has no parallel plan.
PIECE, GROUPS = 20_000, 100_000
#: The drivers that are asked for where an address names none, and the extra that brings them.
DRIVERS = {"postgres": ("postgresql+psycopg", "postgres"), "postgresql": ("postgresql+psycopg", "postgres")}
#: How many records a row of a grouped table stands for.
TIMES = "holdfast_count"
#: Whether a database has texts of which several are equal.
FOLDS = """
SELECT EXISTS (SELECT 1 FROM pg_collation WHERE NOT collisdeterministic) OR
  EXISTS (SELECT 1 FROM pg_type WHERE typname = 'citext')
"""
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
        if not os.path.exists(url.database):
            raise place.refuse("the address names a SQLite file that is not there")
        return opened_sqlite(place, Path(url.database).absolute())
    driver, extra = DRIVERS.get(url.drivername, (url.drivername, None))
    return _connected(place, url.set(drivername=driver), extra)


def opened_sqlite(place: Place, file: Path) -> Source:
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
    except exc.SQLAlchemyError as error:
        raise _unreached(place, str(getattr(error, "orig", ""))) from None
    place.ending.callback(connection.close)
    with _told(place):
        rows, name = _rows(place, connection)
        return Database(place, connection, rows, origin_in_database(place, connection, name))


def _unreached(place: Place, said: str) -> Refused:
    """Why there is no connection, from what a driver said."""
    words = kept_out(said)
    if words is not None:
        return place.refuse(f"the database {words}")
    return later(place.refuse("the database cannot be reached: check the address, and that it runs and lets this in"))


def _rows(place: Place, connection: sql.Connection) -> tuple[sql.FromClause, Sequence[str]]:
    """The table that is named, or the query, as something to select from, and the parts of the table's name."""
    if place.query is not None:
        return sql.text(place.query.rstrip().rstrip(";")).columns().subquery("records"), ()
    known = sql.inspect(connection)
    names = sorted([*known.get_table_names(), *known.get_view_names()])
    if place.table is None and len(names) != 1:
        raise place.at.refuse("a database needs data.table or data.query, where the records are", None, names)
    schema, _, name = (place.table or names[0]).rpartition(".")
    if not known.has_table(name, schema=schema or None):
        sentence = f"the database has no table {place.table!r} that can be read"
        raise place.refuse(sentence, "table", place.table, names)
    return sql.table(name, schema=schema or None), [*([schema] if schema else []), name]


@dataclass(frozen=True)
class Database:
    """A table, view or query of a database."""

    place: Place
    connection: sql.Connection
    rows: sql.FromClause
    origin: Origin

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
        columns = list(asked.grouping)
        grouped = self.connection.dialect.name in DIALECTS
        return self._fetched(columns, unused(TIMES, columns) if grouped else None).counted(asked)

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
        chosen: list[sql.ColumnElement[Any]] = [sql.column(name) for name in names]
        statement = sql.select(*chosen).select_from(self.rows)
        if times is not None:
            statement = sql.select(*chosen, sql.func.count()).select_from(self.rows).group_by(*self._exactly(chosen))
        with _told(self.place):
            pieces = self._pieces(statement, grouped=times is not None)
            return Rows(self.place.engine, fetched(self.place.engine, names, times, pieces), times)

    def _exactly(self, columns: Sequence[sql.ColumnElement[Any]]) -> list[sql.ColumnElement[Any]]:
        """What is grouped by, so that no two texts are one: which of them stands for all would depend on others."""
        if self.connection.dialect.name == "sqlite":
            return [sql.collate(column, "BINARY") for column in columns]
        with _told(self.place):
            folds = self.connection.execute(sql.text(FOLDS)).scalar()
        exact = [sql.collate(sql.cast(column, sql.Text), "C") for column in columns] if folds else []
        return [*columns, *exact]

    def _pieces(self, statement: sql.Select[Any], *, grouped: bool) -> Iterator[Sequence[sql.Row[Any]]]:
        """Fetch rows in pieces: few groups at once, whose number is bounded, and all others through a cursor."""
        if grouped:
            rows = self.connection.execute(statement.limit(GROUPS + 1)).all()
            if len(rows) <= GROUPS:
                yield from ([rows] if rows else [])
                return
            del rows
        streamed = self.connection.execution_options(stream_results=True, yield_per=PIECE)
        yield from streamed.execute(statement).partitions()

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
            raise later(place.refuse(sentence)) from None
        sentence = "the database cannot answer: a column, table or view is not there, has changed or must not be read"
        raise place.refuse(sentence, key) from None
    except (exc.SQLAlchemyError, OverflowError):
        raise place.refuse("the database cannot be read: write a query whose columns are texts and numbers") from None
