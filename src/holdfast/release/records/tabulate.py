"""Counting confidential records into cells, in the engine and streaming: the one place that touches them.

The order is fixed: first at most `max_records` records of each person are kept, chosen by a keyed hash of person and
record alone; then missing values and values outside the public domain are treated as the spec says; then all tables and
all exact figures are computed from the same records. A refusal never says how many records it is about, or which.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import numpy.typing as npt

from holdfast.arguments import Refused
from holdfast.release.records.cells import (
    MARKS,
    MISSING,
    OUTSIDE,
    VALUES,
    Groups,
    columns_of,
    count_cells,
    nearest,
    of_linked,
    refuse_households,
    sums_of,
)
from holdfast.release.records.databases import opened_database
from holdfast.release.records.file_sources import opened_files, opened_frame
from holdfast.release.records.sources import MOST_RECORDS, Asked, Persons, Place, Source
from holdfast.release.records.spark_frames import Cluster, spark_frame
from holdfast.release.records.spelling import respell
from holdfast.release.spec.origin import LAZY, Origin, of_rows
from holdfast.release.spec.places import At
from holdfast.release.spec.sections import COUNTS, SECRET, Elsewhere
from holdfast.release.spec.spec import Spec
from holdfast.release.storage.engine import CSV, Unreadable, as_person, counting_session, watched
from holdfast.release.table.laid import Laid, LaidTable

# --- Where confidential records come from: which kind of source reads what the spec names, or what was passed on
# No message here repeats what an engine says about a source: it may quote records, or what is secret in an address.


@contextmanager
def opened(engine: duckdb.DuckDBPyConnection, spec: Spec, source: Any) -> Iterator[Source]:
    """Open the records of a spec, or others instead; whatever was made for them goes when this ends."""
    with ExitStack() as ending:
        place = _place(engine, spec, source, ending)
        frame = spark_frame(source)
        if frame is not None:
            yield Cluster(engine, frame, of_rows(spec, LAZY))
        elif place is None:
            yield opened_frame(engine, spec, source, ending)
        elif "://" in place.text:
            yield opened_database(place)
        else:
            yield opened_files(place)


def _expanded(path: Path) -> Path:
    try:
        return path.expanduser()
    except RuntimeError:
        raise Refused(f"{str(path)!r} names the home of a user who is not here: write the whole path") from None


def _place(engine: duckdb.DuckDBPyConnection, spec: Spec, source: Any, ending: ExitStack) -> Place | None:
    """What is named by a text: in the spec or elsewhere, or passed on; None for a frame."""
    data, at = spec.data, spec.at["data"]
    if isinstance(source, (str, Path)):
        path = str(source) if "://" in str(source) else str(_expanded(Path(source)).absolute())
        hidden = SECRET.search(str(source)) is not None
        return Place(engine, spec, path, Path(path), ending, hidden)
    if source is not None:
        return None
    if data.source is None:
        raise at.refuse("data.source is missing: name a file of records, or pass a data frame from Python")
    if isinstance(data.source, Elsewhere):
        text = data.source.read(at["source"])
        return Place(engine, spec, text, spec.resolve(text), ending, hidden=True)
    return Place(engine, spec, data.source, spec.resolve(data.source), ending)


#: The key of the spec that says what happens to records with a mark, and what is wrong with them.
REASONS = {
    MISSING: ("nulls", "has no value in a column that the tables use"),
    OUTSIDE: ("outside", "lies outside the public domain"),
}
#: Types whose values are no names; a type that ends in a bracket is a list.
_NO_NAMES = ("BLOB", "STRUCT", "MAP", "UNION")
#: Types of counts; a text may be one.
_NUMBERS = (
    *("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT", "UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT"),
    *("UHUGEINT", "FLOAT", "DOUBLE", "DECIMAL", "VARCHAR"),
)


def tabulate(
    job: Laid,
    source: Any = None,
    aside: Callable[[str], None] = lambda _: None,
    made: Callable[[Origin], None] = lambda _: None,
    period: str | None = None,
) -> list[Any]:
    """Return the true cell counts of every table, of one period if there are such; of linked ones, {name: cells}.

    `source=None` reads the spec's data.source; otherwise a file, an address, or any data frame that narwhals reads.
    `aside` is told for the curator's eyes, and for nobody else's, that records were dropped; `made` is told, without a
    look at any record, how the rows came from records.
    """
    flat = job.counting
    with distinct_values(flat, source, made=made) as engine:
        if period is not None:
            _keep_period(engine, flat, period, aside)
        for table in job.tables:
            if table.layout.parts:
                refuse_households(engine, flat, table)
        filled = count_cells(engine, flat.tables, groups_of(flat))
    for counted in filled:
        _refuse(job, counted.found)
    if flat.tables != job.tables and any(table.layout.parts for table in job.tables):
        return [of_linked(flat, [counted.cells for counted in filled])]
    for table, counted in zip(job.tables, filled, strict=True):
        if violated(table, counted.cells):
            sentence = (
                "the data violate what is said to hold for every possible dataset: correct the bounds, orders and sums "
                "in hold"
            )
            raise table.layout.at["hold"].refuse(sentence)
    if any(filled[0].found):
        aside("some records were dropped, since they do not fit the spec: holdfast check shows which and how many")
    return [counted.cells for counted in filled]


def _keep_period(engine: duckdb.DuckDBPyConnection, job: Laid, period: str, aside: Callable[[str], None]) -> None:
    """Keep the counts of one period; the curator alone is told that there are none."""
    column = f"t{len(asked_of(job).columns) - 1}"
    if engine.execute(f"SELECT count(*) FROM {VALUES} WHERE {column} IS NULL").fetchall()[0][0]:
        sentence = "some record has no period: give every record one, or leave it out of the source"
        raise job.spec.at["time"]["column"].refuse(sentence)
    engine.execute(f"DELETE FROM {VALUES} WHERE {column} <> ?", [period])
    if not engine.execute(f"SELECT count(*) FROM {VALUES}").fetchall()[0][0]:
        aside(f"no record is of the period {period}: its table is made of zeros")


def refuse_unopened(job: Laid, source: Any = None) -> None:
    """Refuse records that are not there, cannot be opened or lack a column; no record is counted."""
    flat = job.counting
    with counting_session() as engine, _readable(flat, source), opened(engine, flat.spec, source) as records:
        _refuse_columns(flat, asked_of(flat), records.kinds())


def suggested_columns(job: Laid) -> tuple[dict[str, str], str | None, tuple[str, ...]]:
    """How a source seems to call columns of the tables, its column of counts, and further ones; by names and types.

    Further ones only where a column of the tables is there: a record can stand where the names of a CSV file should.
    """
    asked = asked_of(job)
    with counting_session() as engine, _readable(job, None), opened(engine, job.spec, None) as records:
        kinds = records.kinds()
    others = [name for name in kinds if name not in asked.columns]
    near = {column: nearest(column, others) for column in asked.columns if column not in kinds}
    counts = (name for name in others if name.lower() in COUNTS and kinds[name].startswith(_NUMBERS))
    renamed, count = {column: each[0] for column, each in near.items() if each is not None}, next(counts, None)
    further = tuple(name for name in others if name not in (count, *renamed.values()))
    return renamed, count, further if any(column in kinds for column in asked.columns) else ()


@contextmanager
def distinct_values(
    job: Laid, source: Any, *, nobody: bool = False, made: Callable[[Origin], None] = lambda _: None
) -> Iterator[duckdb.DuckDBPyConnection]:
    """Let the source count itself; the session has the result as a table VALUES of its own while this lasts.

    `nobody`: records without a person, and rows without a count, are left out whatever the spec says.
    """
    asked = asked_of(job, nobody)
    with counting_session() as engine, watched(engine):
        try:
            with _readable(job, source), opened(engine, job.spec, source) as records:
                made(records.origin)
                _refuse_columns(job, asked, records.kinds())
                engine.execute(f"CREATE TEMP TABLE {VALUES} AS FROM {records.counted(asked)}")
                if groups_of(job) is not None:
                    whose = as_person(f"t{len(asked.columns) - 1}", "VARCHAR")
                    nothing = "DELETE FROM {0}" if asked.left_out else "UPDATE {0} SET n = NULL"
                    engine.execute(f"{nothing.format(VALUES)} WHERE {whose} IS NULL")
                if nobody:
                    engine.execute(f"UPDATE {VALUES} SET n = 0 WHERE n IS NULL")
                _refuse_uncounted(engine, job, records, asked)
                respell(engine, job)
            yield engine
        except duckdb.OutOfMemoryException:
            raise Refused("counting the records ran out of memory and disk: free space for temporary files") from None


def asked_of(job: Laid, nobody: bool = False) -> Asked:
    """What the tables of a job ask of the records; `nobody`: those without a person are left out."""
    unit, left_out = job.spec.privacy.unit, nobody or job.spec.data.nulls.rule == "drop"
    persons = None
    if job.spec.linked:  # households are looked at one by one, and none is cut
        assert job.spec.person is not None
        return Asked((*columns_of(job.tables), job.spec.person))
    columns = columns_of(job.tables)
    if unit is not None and job.spec.person is not None:
        if unit.max_records is not None:
            persons = Persons(job.spec.person, unit.max_records, unit.key or job.dataset, left_out)
        if unit.max_groups is not None:
            columns = (*columns, job.spec.person)
    called = job.spec.data.columns
    if job.spec.period_column is not None:  # the last one, so that those of the tables keep their numbers
        if job.spec.period_column in columns:
            raise job.spec.at["time"]["column"].refuse("the column of the periods cannot be one of a table too")
        if persons is not None and unit is not None:
            order = () if job.spec.time is None or isinstance(job.spec.time.periods, int) else job.spec.time.periods
            persons = replace(persons, period=len(columns), periods=unit.max_periods, order=order)
        columns = (*columns, job.spec.period_column)
    sums = tuple((called.get(each.column, each.column), each) for each in sums_of(job.tables))
    return Asked(columns, job.spec.data.count, persons, sums, left_out)


def groups_of(job: Laid) -> Groups | None:
    """In how many cells the tables of a job count a person; None: in all of them."""
    unit = job.spec.privacy.unit
    if unit is None or unit.max_groups is None:
        return None
    return Groups(unit.max_groups, unit.max_records or 1, unit.key or job.dataset)


@contextmanager
def _readable(job: Laid, source: Any) -> Iterator[None]:
    """Say in one sentence that a source cannot be read; the engine's own words may quote records."""
    try:
        yield
    except duckdb.OutOfMemoryException:
        raise
    except (duckdb.Error, Unreadable):
        raise _unreadable(job, source) from None


def _unreadable(job: Laid, source: Any) -> Refused:
    name = job.spec.data.address if source is None else str(source) if isinstance(source, (str, Path)) else None
    what = "the records" if name is None or SECRET.search(name) else f"the source {name!r}"
    reason = "the file is damaged or not of the kind its name says"
    if name is not None and name.endswith(CSV):
        reason = "every row of a CSV file has as many values as its header, in UTF-8"
    return job.spec.at["data"]["source"].refuse(f"{what} cannot be read: {reason}")


# --- what is refused -----------------------------------------------------------------------------------------------


def _refuse_columns(job: Laid, asked: Asked, kinds: Mapping[str, str]) -> None:
    """Refuse a column that is not there or holds no names."""
    persons = [] if asked.persons is None else [asked.persons.column]
    for column in (*asked.columns, *persons):
        if column not in kinds:
            remedy = f"{_written(job, column)}: NAME"
            remedy = f"{remedy} in columns" if job.spec.data.columns else f"columns: {{{remedy}}}"
            raise _no_column(_asked_for(job, column), column, kinds, remedy)
        if kinds[column].startswith(_NO_NAMES) or kinds[column].endswith("]"):
            sentence = f"the column {column!r} has the type {kinds[column]}; texts, whole numbers or dates are needed"
            raise _asked_for(job, column).refuse(sentence, found=kinds[column])
    for column, _ in asked.sums:
        if column not in kinds:
            remedy = f"{_written(job, column)}: NAME"
            raise _no_column(job.spec.at["data"]["source"], column, kinds, f"columns: {{{remedy}}}")
        if not kinds[column].startswith(_NUMBERS):
            sentence = f"the column {column!r} has the type {kinds[column]}; numbers are needed to be added up"
            raise job.spec.at["data"]["source"].refuse(sentence, found=kinds[column])
    if asked.count is not None:
        at = job.spec.at["data"]["count"]
        if asked.count not in kinds:
            raise _no_column(at, asked.count, kinds, "count: NAME")
        if not kinds[asked.count].startswith(_NUMBERS):
            sentence = f"the column {asked.count!r} has the type {kinds[asked.count]}; whole numbers are needed"
            raise at.refuse(sentence, found=kinds[asked.count])
    elif not job.spec.data.rows_are_records:
        used = (*asked.columns, *persons, *(column for column, _ in asked.sums))
        _refuse_counted(job, {column: kinds[column] for column in kinds if column not in used})


def _refuse_counted(job: Laid, others: Mapping[str, str]) -> None:
    """Refuse to take counted rows for records: a column beside those of the tables looks like counts."""
    # Where there is nothing but texts, as in a CSV file, a text may be a number.
    numbers = _NUMBERS if set(others.values()) == {"VARCHAR"} else _NUMBERS[:-1]
    looks = next((name for name in others if name.lower() in COUNTS and others[name].startswith(numbers)), None)
    if looks is not None:
        sentence = (
            f"the column {looks!r} looks as if a row stood for that many records: write count: {looks}, or "
            "rows_are_records: true if every row is one record"
        )
        raise job.spec.at["data"].refuse(sentence)


def _written(job: Laid, column: str) -> str:
    """How the spec calls a column of the records."""
    return next((name for name, there in job.spec.data.columns.items() if there == column), column)


def _asked_for(job: Laid, column: str) -> At:
    written = _written(job, column)
    if written in job.spec.data.columns:
        return job.spec.at["data"]["columns"][written]
    return job.spec.at["privacy"]["unit"]["column"] if column == job.spec.person else job.spec.at["data"]["source"]


def _no_column(at: At, column: str, kinds: Mapping[str, str], remedy: str) -> Refused:
    """Name the columns that there are; where all are texts only similar ones, since a record can stand where the names
    of a CSV file or a sheet should. `remedy`: how the spec says that it has the name NAME.
    """
    sentence, available = f"the records have no column {column!r}", list(kinds)
    if set(kinds.values()) <= {"VARCHAR"}:
        sentence += "; the first line of a CSV file or a sheet names the columns"
        available = difflib.get_close_matches(column, available, n=1)
    near = nearest(column, list(kinds))
    if near is None:
        return at.refuse(f"{sentence}; write {remedy} under data if it has another name there", column, available)
    remedy = remedy.replace("NAME", near[0])
    return at.refuse(f"{sentence}; write {remedy} under data if it has that name there", column, [near[0]])


def _refuse_uncounted(engine: duckdb.DuckDBPyConnection, job: Laid, records: Source, asked: Asked) -> None:
    """Refuse records of nobody (no category is a person), counts that are none, and more records than are counted."""
    some, total = engine.execute(f"SELECT count(*) > count(n), sum(n) > {MOST_RECORDS} FROM {VALUES}").fetchall()[0]
    if some and job.spec.privacy.unit is not None:
        sentence = f"some record has no {job.spec.person!r}: give every record its person, or write nulls: drop"
        raise job.spec.at["data"]["nulls"].refuse(sentence)
    if some and asked.count is not None:
        number = records.uncounted(asked.count)
        where = "some row" if number is None else f"row {number}"
        sentence = (
            f"the count {asked.count!r} of {where} is missing, or no whole number of 0 or more below 2⁶²: correct it"
        )
        raise job.spec.at["data"]["count"].refuse(sentence)
    for i, (column, each) in enumerate(asked.sums):
        missing, most = engine.execute(
            f"SELECT count(*) > count(s{i}), sum(abs(s{i})) > {MOST_RECORDS} FROM {VALUES}"
        ).fetchall()[0]
        if missing:
            sentence = f"{column!r} of some record is missing, or no finite number: correct it, or write nulls: drop"
            raise job.spec.at["data"]["nulls"].refuse(sentence)
        if most:
            sentence = f"the numbers {column!r} add up to 2⁶² steps of {each.step} or more, which no figure can hold"
            raise job.spec.at["data"]["source"].refuse(f"{sentence}: take a coarser step")
    if total:
        raise job.spec.at["data"]["count"].refuse("the counts add up to 2⁶² or more, which no figure can hold")


def _refuse(job: Laid, found: tuple[bool, ...]) -> None:
    """Refuse records with missing or foreign values, unless the spec drops them or counts them as a category."""
    for mark, some in zip(MARKS, found, strict=True):
        key, what = REASONS[mark]
        if some and getattr(job.spec.data, key).rule != "drop":
            remedy = f"write {key}: drop or {key}: {{category: NAME}} (a public value), or correct the data"
            sentence = f"some record {what}: {remedy}; holdfast check shows which"
            raise job.spec.at["data"][key].refuse(sentence)


def violated(table: LaidTable, cells: npt.NDArray[np.int64]) -> bool:
    """Whether counts lie outside the bounds of the spec."""
    said = table.holding.all if table.holding.holds.linear else table.holding.unequal
    if said is None:
        return False
    # Sums of the table's own and exact figures hold for all counts, and impossible cells have none.
    return said.system(table.layout.query.n).violation(table.answer(cells)) is not None
