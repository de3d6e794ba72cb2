"""Counting confidential records into cells, in the engine and streaming: the one place that touches them.

The order is fixed: first at most `max_records` records of each person are kept, chosen by a keyed hash of person and
record alone; then missing values and values outside the public domain are treated as the spec says; then all tables and
all exact figures are computed from the same records. A refusal never says how many records it is about, or which.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import Any

import duckdb
import numpy as np
import numpy.typing as npt

from holdfast.arguments import Refused
from holdfast.release.job.job import Job
from holdfast.release.job.table import Table
from holdfast.release.records.cells import MARKS, MISSING, OUTSIDE, Counted, count_few, count_many, size_of
from holdfast.release.records.sources import closed, opened, unused
from holdfast.release.spec.places import At
from holdfast.release.storage.engine import counting_session, watched
from holdfast.release.storage.reading import CSV, PARQUET, Unreadable, as_text, quoted_name, quoted_text

#: Tables of so many cells or fewer are filled from Python, unless the records have far more distinct values.
FEW = 4096
#: The key of the spec that says what happens to records with a mark, and what is wrong with them.
REASONS = {
    MISSING: ("nulls", "has no value in a column that the tables use"),
    OUTSIDE: ("outside", "lies outside the public domain"),
}
#: Types whose values are no names; a type that ends in a bracket is a list.
_NO_NAMES = ("BLOB", "STRUCT", "MAP", "UNION")


def tabulate(job: Job, source: Any = None) -> list[npt.NDArray[np.int64]]:
    """Return the true cell counts of every table.

    `source=None` reads the spec's data.source; otherwise any data frame that narwhals reads, or a DuckDB relation.
    """
    with counting_session() as engine, watched(engine):
        try:
            return _counted(engine, job, source)
        except duckdb.OutOfMemoryException:
            raise Refused("counting the records ran out of memory and disk: free space for temporary files") from None
        except (duckdb.Error, Unreadable):
            raise _unreadable(job) from None
        finally:
            closed(engine, job.spec)


def _unreadable(job: Job) -> Refused:
    """The engine's own words may quote records and are not repeated."""
    name = job.spec.data.source
    what = "the records" if name is None else f"the source {name!r}"
    reason = "the file is damaged or not of the kind its name says"
    if name is not None and job.spec.resolve(name).is_dir():
        reason = f"it is a folder; {name.rstrip('/')}/*{PARQUET} names the files in it"
    elif name is not None and name.endswith(CSV):
        reason = "every row of a CSV file has as many values as its header, in UTF-8"
    return job.spec.at["data"]["source"].refuse(f"{what} cannot be read: {reason}")


def _counted(engine: duckdb.DuckDBPyConnection, job: Job, source: Any) -> list[npt.NDArray[np.int64]]:
    used = list(dict.fromkeys(column for table in job.tables for key in table.layout.keys for column in key.columns))
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
    counts = []
    filled = _cells(engine, job, f"SELECT {texts}, n FROM ({values})", used)
    for table, counted in zip(job.tables, filled, strict=True):
        _refuse(job, counted.found)
        _refuse_violations(table, counted.cells)
        counts.append(counted.cells)
    return counts


def _cells(engine: duckdb.DuckDBPyConnection, job: Job, names: str, used: list[str]) -> list[Counted]:
    """Fill the cells: small tables from Python, which saves the engine a plan that takes longer than the lookup.

    Records with far more distinct values than a small table has cells are read again, in the engine.
    """
    if sum(map(size_of, job.tables)) <= FEW:
        rows = engine.execute(f"{names} LIMIT {4 * FEW + 1}").fetchall()
        if len(rows) <= 4 * FEW:
            return count_few(rows, job.tables, used)
    return count_many(engine, f"({names}) AS grouped", job.tables, used)


# --- columns and persons -------------------------------------------------------------------------------------------


def _types(engine: duckdb.DuckDBPyConnection, job: Job, records: str, columns: list[str]) -> dict[str, str]:
    """Return the type of every column; refuse one that is not there or holds no names."""
    rows = engine.sql(f"FROM {records}")
    available = dict(zip(rows.columns, map(str, rows.types), strict=True))
    for column in columns:
        if column not in available:
            raise _no_column(job, _asked_for(job, column), column, list(available))
        if available[column].startswith(_NO_NAMES) or available[column].endswith("]"):
            sentence = (
                f"the column {column!r} has the type {available[column]}; texts, whole numbers or dates are needed"
            )
            raise _asked_for(job, column).refuse(sentence, found=available[column])
    return available


def _asked_for(job: Job, column: str) -> At:
    """Where the spec asks for a column of the records."""
    renamed = {new: old for old, new in job.spec.data.columns.items()}
    if column in renamed:
        return job.spec.at["data"]["columns"][renamed[column]]
    return job.spec.at["privacy"]["unit"]["column"] if column == job.spec.person else job.spec.at["data"]["source"]


def _no_column(job: Job, at: At, column: str, available: list[str]) -> Refused:
    """Name the columns that there are; of a CSV file only similar ones, since a record can stand where names should."""
    sentence = f"the records have no column {column!r}"
    if (job.spec.data.source or "").endswith(CSV):
        sentence += " in their first line, which names the columns"
        available = difflib.get_close_matches(column, available, n=1)
    return at.refuse(sentence, column, available)


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
        raise job.spec.at["data"]["nulls"].refuse(sentence)


# --- what is refused -----------------------------------------------------------------------------------------------


def _refuse(job: Job, found: tuple[bool, ...]) -> None:
    """Refuse records with missing or foreign values, unless the spec drops them or counts them as a category."""
    for mark, some in zip(MARKS, found, strict=True):
        key, what = REASONS[mark]
        if some and getattr(job.spec.data, key).rule != "drop":
            sentence = f"some record {what}: write {key}: drop or {key}: {{category: NAME}}, or correct the data"
            raise job.spec.at["data"][key].refuse(sentence)


def _refuse_violations(table: Table, cells: npt.NDArray[np.int64]) -> None:
    """Refuse counts outside the bounds of the spec, without saying which."""
    said = table.holding.all if table.holding.account["linear"] else table.holding.unequal
    # Sums of the table's own and exact figures hold for all counts, and impossible cells have none.
    if said is not None and said.system(table.layout.query.n).violation(table.layout.query.answer(cells)) is not None:
        sentence = (
            "the data violate what is said to hold for every possible dataset: correct the bounds, orders and sums in "
            "hold"
        )
        raise table.layout.at["hold"].refuse(sentence)
