"""Counting confidential records into cells, in the engine and streaming: the one place that touches them.

The order is fixed: first at most `max_records` records of each person are kept, chosen by a keyed hash of person and
record alone; then missing values and values outside the public domain are treated as the spec says; then all tables and
all exact figures are computed from the same records. A refusal never says how many records it is about, or which.
"""

from __future__ import annotations

import atexit
import difflib
import os
import shutil
import sys
import tempfile
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import numpy.typing as npt

from holdfast.arguments import Refused
from holdfast.progress import PAUSE, Progress
from holdfast.release.job import Job, Table
from holdfast.release.places import Place
from holdfast.release.reading import CSV, Unreadable, as_text, lasting, quoted_name, quoted_text
from holdfast.release.sources import closed, opened, unused

#: Positions that stand for a missing value and for one outside the domain.
MISSING, OUTSIDE = -1, -2
#: The key of the spec that says what happens to such records, and what is wrong with them.
MARKS = {
    MISSING: ("nulls", "has no value in a column that the tables use"),
    OUTSIDE: ("outside", "lies outside the public domain"),
}
#: Types whose values are no names; a type that ends in a bracket is a list.
_NO_NAMES = ("BLOB", "STRUCT", "MAP", "UNION")


def tabulate(job: Job, source: Any = None) -> list[npt.NDArray[np.int64]]:
    """Return the true cell counts of every table.

    `source=None` reads the spec's data.source; otherwise any data frame that narwhals reads, or a DuckDB relation.
    """
    with _engine() as engine, _watched(engine):
        try:
            return _counted(engine, job, source)
        except duckdb.OutOfMemoryException:
            raise Refused("counting the records ran out of memory and disk: free space for temporary files") from None
        except (duckdb.Error, Unreadable):
            raise _unreadable(job) from None
        finally:
            closed(engine)


def _engine() -> duckdb.DuckDBPyConnection:
    """Return a new session of the engine; what it makes is its own and goes with it."""
    return _started(os.getpid())[0].cursor()


@cache
def _started(process: int) -> tuple[duckdb.DuckDBPyConnection, Path]:
    """Start the engine once per process: that takes longer than counting millions of records.

    What does not fit into memory goes to a private folder, which is removed when the process ends.
    """
    folder = Path(tempfile.mkdtemp(prefix="holdfast-"))
    engine = duckdb.connect(config={"temp_directory": str(folder), "preserve_insertion_order": False})

    def end() -> None:
        if os.getpid() == process:  # a forked process must leave the folder of its parent alone
            shutil.rmtree(folder, ignore_errors=True)

    atexit.register(end)  # runs after the engine is closed
    lasting(engine, process)
    return engine, folder


@contextmanager
def _watched(engine: duckdb.DuckDBPyConnection) -> Iterator[None]:
    """Show how far counting has come, where somebody watches."""
    if not sys.stderr.isatty():
        yield
        return
    engine.execute("SET enable_progress_bar_print = false")  # the engine only tells, and we show
    engine.execute("SET enable_progress_bar = true")
    done = threading.Event()

    def watch(progress: Progress) -> None:
        shown = 0
        while not done.wait(PAUSE):
            reached = int(engine.query_progress())  # of the statement that runs; −1 where it does not know
            progress.advance(max(0, reached - shown))
            shown = max(shown, reached)

    with Progress("counting", 100) as progress:
        watcher = threading.Thread(target=watch, args=(progress,), daemon=True)
        watcher.start()
        try:
            yield
        finally:
            done.set()
            watcher.join()


def _unreadable(job: Job) -> Refused:
    """The engine's own words may quote records and are not repeated."""
    name = job.spec.data.source
    what = "the records" if name is None else f"the source {name!r}"
    return job.spec.error(
        ("data", "source"),
        f"{what} cannot be read: the file is damaged or not of the kind its name says (every row of a CSV file has as "
        "many values as its header, in UTF-8)",
    )


def _counted(engine: duckdb.DuckDBPyConnection, job: Job, source: Any) -> list[npt.NDArray[np.int64]]:
    used = list(dict.fromkeys(column for table in job.tables for key in table.keys for column in key.columns))
    person_column = job.spec.person
    records, weight = opened(engine, job.spec, source, used if person_column is None else None)
    types = _types(engine, job, records, used if person_column is None else [*used, person_column])
    raw = ", ".join(f"{quoted_name(column)} AS c{i}" for i, column in enumerate(used))
    if person_column is not None:
        person = as_text(quoted_name(person_column), types[person_column])
        _refuse_nameless(engine, job, records, person)
        records, raw = f"({_kept(job, records, raw, person, types)})", ", ".join(f"c{i}" for i in range(len(used)))
    texts = ", ".join(f"{as_text(f'c{i}', types[column])} AS t{i}" for i, column in enumerate(used))
    # Few distinct values are left to be turned into names once the records are grouped by the values themselves.
    values = f"SELECT {raw}, {weight} AS n FROM {records} GROUP BY ALL"
    grouped = f"(SELECT {texts}, n FROM ({values})) AS grouped"
    if len(job.tables) > 1:  # the records are read once, whatever the number of tables
        engine.execute(f"CREATE TEMP TABLE distinct_values AS FROM {grouped}")
        grouped = "distinct_values AS grouped"
    for number, table in enumerate(job.tables):
        _give_domain(engine, number, table)
    joins = " ".join(_join(number, table, used) for number, table in enumerate(job.tables))
    positions = ", ".join(_positions(number, table, used) for number, table in enumerate(job.tables))
    cells = ", ".join(f"{_cell(number, table)} AS cell{number}" for number, table in enumerate(job.tables))
    addressed = f"SELECT {cells}, n FROM (SELECT {positions}, n FROM {grouped} {joins})"
    everywhere = [f"cell{number}" for number in range(len(job.tables))]
    kept = " AND ".join(f"{cell} >= 0" for cell in everywhere)
    counts = []
    for number, table in enumerate(job.tables):
        marks = ", ".join(f"bool_or({' OR '.join(f'{cell} = {mark}' for cell in everywhere)})" for mark in MARKS)
        sums = f"SELECT cell{number}, coalesce(sum(n) FILTER (WHERE {kept}), 0)::BIGINT, {marks}"
        found = list(engine.execute(f"{sums} FROM ({addressed}) GROUP BY 1").fetchnumpy().values())
        _refuse(job, [bool(np.asarray(some).any()) for some in found[2:]])
        cell, number_of = (np.asarray(column, dtype=np.int64) for column in found[:2])
        result = np.zeros(int(np.prod([key.size for key in table.keys], dtype=np.int64)), dtype=np.int64)
        result[cell[cell >= 0]] = number_of[cell >= 0]
        _refuse_violations(job, number, table, result)
        counts.append(result)
    return counts


# --- columns and persons -------------------------------------------------------------------------------------------


def _types(engine: duckdb.DuckDBPyConnection, job: Job, records: str, columns: list[str]) -> dict[str, str]:
    """Return the type of every column; refuse one that is not there or holds no names."""
    available = {row[0]: str(row[1]) for row in engine.execute(f"DESCRIBE FROM {records}").fetchall()}
    renamed = {new: old for old, new in job.spec.data.columns.items()}
    for column in columns:
        place = ("privacy", "unit", "column") if column == job.spec.person else ("data", "source")
        if column in renamed:
            place = ("data", "columns", renamed[column])
        if column not in available:
            raise _no_column(job, place, column, list(available))
        if available[column].startswith(_NO_NAMES) or available[column].endswith("]"):
            sentence = (
                f"the column {column!r} has the type {available[column]}; texts, whole numbers or dates are needed"
            )
            raise job.spec.error(place, sentence, found=available[column])
    return available


def _no_column(job: Job, place: Place, column: str, available: list[str]) -> Refused:
    """Name the columns that there are; of a CSV file only similar ones, since a record can stand where names should."""
    sentence = f"the records have no column {column!r}"
    if (job.spec.data.source or "").endswith(CSV):
        sentence += " in their first line, which names the columns"
        available = difflib.get_close_matches(column, available, n=1)
    return job.spec.error(place, sentence, column, available)


def _kept(job: Job, records: str, used: str, person: str, columns: Iterable[str]) -> str:
    """Keep at most max_records records of each person, whatever other persons' records are.

    Equal records of one person are numbered, so that the choice among copies is fair; the number depends on that
    person's own records alone. Only what is needed is passed on, under names of our own.
    """
    unit = job.spec.privacy.unit
    assert unit is not None
    row, key = unused("holdfast_row", columns), quoted_text(unit.key or job.dataset)
    copies = f"SELECT {used}, {person} AS person, CAST({row} AS VARCHAR) AS record FROM {records} AS {row}"
    numbered = (
        f"SELECT *, row_number() OVER (PARTITION BY person, record) AS copy FROM ({copies}) WHERE person IS NOT NULL"
    )
    mark = f"sha256(concat_ws(chr(31), '{key}', person, copy, record))"
    ranked = f"row_number() OVER (PARTITION BY person ORDER BY {mark})"
    return f"SELECT * FROM ({numbered}) QUALIFY {ranked} <= {unit.max_records}"


def _refuse_nameless(engine: duckdb.DuckDBPyConnection, job: Job, records: str, person: str) -> None:
    """Records of nobody are dropped where missing values are, and refused otherwise: no category is a person."""
    if job.spec.data.nulls.rule == "drop":
        return
    query = f"SELECT count(*) FROM (SELECT 1 FROM {records} WHERE ({person}) IS NULL LIMIT 1)"
    if engine.execute(query).fetchall()[0][0]:
        sentence = f"some record has no {job.spec.person!r}: give every record its person, or write nulls: drop"
        raise job.spec.error(("data", "nulls"), sentence)


# --- from names to cells -------------------------------------------------------------------------------------------


def _give_domain(engine: duckdb.DuckDBPyConnection, number: int, table: Table) -> None:
    """Give the engine the public tables from names to positions, and the impossible cells."""
    for i, key in enumerate(table.keys):
        content: dict[str, Any] = {f"v{j}": values for j, values in enumerate(key.values)}
        engine.register(f"key_{number}_{i}", content | {"position": np.arange(key.size, dtype=np.int64)})
    impossible = table.holding.impossible
    if impossible is not None:
        engine.register(f"impossible_{number}", {"cell": np.flatnonzero(impossible).astype(np.int64)})


def _join(number: int, table: Table, used: list[str]) -> str:
    """Look every key of a table up."""
    words = []
    for i, key in enumerate(table.keys):
        name = f"key_{number}_{i}"
        pairs = (f"{name}.v{j} = grouped.t{used.index(column)}" for j, column in enumerate(key.columns))
        words.append(f"LEFT JOIN {name} ON {' AND '.join(pairs)}")
    return " ".join(words)


def _positions(number: int, table: Table, used: list[str]) -> str:
    """The position of a record in every key, or MISSING or OUTSIDE."""
    words = []
    for i, key in enumerate(table.keys):
        no_value = " OR ".join(f"t{used.index(column)} IS NULL" for column in key.columns)
        missing, outside = _or(key.missing, MISSING), _or(key.outside, OUTSIDE)
        position = f"CASE WHEN {no_value} THEN {missing} ELSE coalesce(key_{number}_{i}.position, {outside}) END"
        words.append(f"{position} AS p{number}_{i}")
    return ", ".join(words)


def _cell(number: int, table: Table) -> str:
    """The cell of a record, or MISSING or OUTSIDE; impossible cells lie outside the domain."""
    listed = ", ".join(f"p{number}_{i}" for i in range(len(table.keys)))
    cell = "0"
    for i, key in enumerate(table.keys):
        cell = f"({cell}) * {key.size} + p{number}_{i}"
    marks = f"WHEN {MISSING} IN ({listed}) THEN {MISSING} WHEN {OUTSIDE} IN ({listed}) THEN {OUTSIDE}"
    if table.holding.impossible is not None:
        marks += f" WHEN {cell} IN (SELECT cell FROM impossible_{number}) THEN {_foreign(table)}"
    return f"CASE {marks} ELSE {cell} END"


def _or(position: int | None, otherwise: int) -> int:
    return otherwise if position is None else position


def _foreign(table: Table) -> int:
    """The cell of a record that lies in an impossible one: foreign in every key, if that cell is possible."""
    cell = 0
    for key in table.keys:
        if key.outside is None:
            return OUTSIDE
        cell = cell * key.size + key.outside
    impossible = table.holding.impossible
    return OUTSIDE if impossible is not None and impossible[cell] else cell


def _refuse(job: Job, found: list[bool]) -> None:
    """Refuse records with missing or foreign values, unless the spec drops them or counts them as a category."""
    for (key, what), some in zip(MARKS.values(), found, strict=True):
        if some and getattr(job.spec.data, key).rule != "drop":
            sentence = f"some record {what}: write {key}: drop or {key}: {{category: NAME}}, or correct the data"
            raise job.spec.error(("data", key), sentence)


def _refuse_violations(job: Job, number: int, table: Table, cells: npt.NDArray[np.int64]) -> None:
    """Refuse counts outside the bounds of the spec, without saying which."""
    bounds = table.holding.unequal  # sums and exact figures hold for all counts, impossible cells have none
    if bounds is not None and bounds.system(table.query.n).violation(table.query.answer(cells)) is not None:
        sentence = "the data violate what is said to hold for every possible dataset: correct the bounds of the spec"
        raise job.spec.error(job.spec.place(number, "hold"), sentence)
