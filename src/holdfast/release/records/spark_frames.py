"""Records in a Spark frame, classic or Connect: the cluster counts them, and only distinct values and counts leave it.

Everything is said in Spark's SQL, which both kinds of frames understand. A person's records are chosen by the order of
a keyed hash of person and record, so the choice is the same however the frame is divided into partitions.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import duckdb
import narwhals as nw

from holdfast.arguments import Refused
from holdfast.release.records.sources import MOST_RECORDS, Asked, Persons, Rows, held, unused
from holdfast.release.spec.origin import Origin

#: How many records the distinct values stand for.
TIMES = "holdfast_count"
#: How the local engine calls Spark's types that are not texts, by the words with which their names begin.
KINDS = (
    (("interval",), "INTERVAL"),
    (("tinyint", "smallint", "int", "bigint"), "BIGINT"),
    (("float", "double"), "DOUBLE"),
    (("decimal",), "DECIMAL"),
    (("boolean",), "BOOLEAN"),
    (("binary",), "BLOB"),
    (("struct", "variant"), "STRUCT"),
    (("map",), "MAP"),
    (("array",), "VARCHAR[]"),
)
#: What a text must look like to be a count: 12, +12 and 12.0 do.
WHOLE_TEXT = "^[+]?[0-9]{1,19}([.]0*)?$"


def spark_frame(source: Any) -> Any | None:
    """Return the Spark frame that a source is or wraps; None where it is none."""
    native = source.to_native() if isinstance(source, nw.LazyFrame) else source
    # Nothing of Spark is imported here: whoever has a frame has done so.
    known = [sys.modules.get(f"pyspark.sql{kind}.dataframe") for kind in ("", ".connect")]
    return native if any(module is not None and isinstance(native, module.DataFrame) for module in known) else None


@dataclass(frozen=True)
class Cluster:
    """A Spark frame."""

    engine: duckdb.DuckDBPyConnection
    frame: Any
    origin: Origin

    def kinds(self) -> Mapping[str, str]:
        """Say it in the words of the local engine."""
        with told():
            found = self.frame.dtypes
        names = [name for name, _ in found]
        if any(" collate " in dtype.lower() for _, dtype in found):
            raise Refused("the Spark frame has a column in which different texts are equal: cast it to a plain string")
        twice = next((name for i, name in enumerate(names) if name in names[:i]), None)
        if twice is not None:
            raise Refused(f"the Spark frame has two columns {twice!r}: rename one of them")
        return {name: _kind(dtype) for name, dtype in found}

    def counted(self, asked: Asked) -> str:
        """Group in the cluster by the values themselves; the distinct ones that come here are turned into texts."""
        with told():
            apart = replace(asked, columns=asked.grouping) if asked.sums else asked
            values = distinct(self.frame, apart).toArrow()
        times = unused(TIMES, apart.columns)
        found = held(self.engine, values.rename_columns([*apart.columns, times]))
        listed = f"(SELECT * REPLACE (CAST({times} AS HUGEINT) AS {times}) FROM {found.words})"
        return Rows(self.engine, listed, times).counted(replace(asked, count=None, persons=None))

    def uncounted(self, count: str) -> None:
        """Rows of a cluster have no order."""


def distinct(frame: Any, asked: Asked) -> Any:
    """The frame of distinct values c0, c1, … of the columns asked for, and the number n of records that have them.

    n is missing where some row has no whole count from 0 to 2⁶², or some record no person though it must have one.
    """
    kinds = dict(frame.dtypes)
    named = [f"{quoted(column)} AS c{i}" for i, column in enumerate(asked.columns)]
    each = "CAST(1 AS DECIMAL(38, 0))" if asked.count is None else _whole(quoted(asked.count), kinds[asked.count])
    if asked.persons is not None:
        if asked.persons.period is not None:
            raise Refused("persons in a series are counted from files and databases, or a frame in memory")
        frame = _kept(frame, asked.persons, named, kinds)
        named, each = [f"c{i}" for i in range(len(named))], "CASE WHEN person IS NOT NULL THEN CAST(1 AS DECIMAL) END"
    rows = frame.selectExpr(*named, f"{each} AS w").selectExpr("*", "w IS NULL AS bad")
    columns = [f"c{i}" for i in range(len(asked.columns))]
    summed = rows.groupBy(*columns).agg({"w": "sum", "bad": "max"})
    return summed.selectExpr(*columns, "CASE WHEN NOT `max(bad)` THEN `sum(w)` END AS n")


def _kept(frame: Any, persons: Persons, named: list[str], kinds: Mapping[str, str]) -> Any:
    """Keep at most max_records records of each person, whatever other persons' records are.

    Equal records of one person are numbered, so that the choice among copies is fair; the number depends on that
    person's own records alone.
    """
    record = f"to_json(array({', '.join(_exactly(column, kinds[column]) for column in sorted(kinds))}))"
    person = as_person(quoted(persons.column), kinds[persons.column])
    rows = frame.selectExpr(*named, f"{person} AS person", f"{record} AS record")
    if persons.nobody:
        rows = rows.filter("person IS NOT NULL")
    rows = rows.selectExpr("*", "row_number() OVER (PARTITION BY person, record ORDER BY record) AS copy")
    key = f"CAST(X'{persons.key.encode().hex()}' AS STRING)"  # whatever the key is, nothing in it is read as SQL
    mark = f"sha2(concat_ws(chr(31), {key}, person, CAST(copy AS STRING), record), 256)"
    rows = rows.selectExpr("*", f"row_number() OVER (PARTITION BY person ORDER BY {mark}) AS place")
    return rows.filter(f"place <= {persons.max_records}")


def _exactly(column: str, kind: str) -> str:
    """Write a value so that different ones are different texts, whatever the time zone of the session."""
    name = quoted(column)
    if kind == "binary":
        return f"hex({name})"
    return f"CAST(unix_micros({name}) AS STRING)" if kind == "timestamp" else f"CAST({name} AS STRING)"


def as_text(column: str, kind: str) -> str:
    """Write a column as names, as the local engine does: whole numbers without a fraction, nothing for empty texts."""
    if kind in ("float", "double"):
        small = f"{column} = floor({column}) AND abs({column}) < 1e18"
        whole = f"CASE WHEN {small} THEN CAST(CAST({column} AS BIGINT) AS STRING)"
        return f"CASE WHEN isnan({column}) THEN NULL ELSE {whole} ELSE CAST({column} AS STRING) END END"
    if kind.startswith("decimal"):
        whole = f"CAST(CAST({column} AS DECIMAL(38, 0)) AS STRING)"
        return f"CASE WHEN {column} = floor({column}) THEN {whole} ELSE CAST({column} AS STRING) END"
    return f"nullif(CAST({column} AS STRING), '')"


def as_person(column: str, kind: str) -> str:
    """Write a column as persons, as the local engine does: without blanks around them, and 1.0 as 1."""
    name = as_text(column, kind)
    if kind != "string":
        return name
    bare = f"btrim({name}, concat(' ', chr(9), chr(10), chr(13), chr(160)))"
    return f"nullif(regexp_replace({bare}, '^([+-]?[0-9]+)[.]0*$', '$1'), '')"


def _whole(column: str, kind: str) -> str:
    """Words for a count as a whole number from 0 to 2⁶², nothing where it is none."""
    if kind == "string":
        digits = f"CAST(split_part(trim({column}), '.', 1) AS DECIMAL(38, 0))"
        number = f"CASE WHEN trim({column}) RLIKE '{WHOLE_TEXT}' THEN {digits} END"
    elif kind.startswith(("float", "double", "decimal")):  # what is no number counts as larger than all others
        inside = f"{column} BETWEEN 0 AND {MOST_RECORDS}"
        number = f"CASE WHEN {inside} AND {column} = floor({column}) THEN CAST({column} AS DECIMAL(38, 0)) END"
    else:
        number = f"CAST({column} AS DECIMAL(38, 0))"
    return f"(CASE WHEN {number} BETWEEN 0 AND {MOST_RECORDS} THEN {number} END)"


def _kind(dtype: str) -> str:
    return next((kind for words, kind in KINDS if dtype.startswith(words)), "VARCHAR")


def quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


@contextmanager
def told(what: str = "count the Spark frame") -> Iterator[None]:
    """Say in one sentence that the cluster failed; what it says may quote records and is not repeated."""
    try:
        yield
    except Refused:
        raise
    except ModuleNotFoundError:
        raise Refused("a Spark frame needs pyarrow beside Spark: install holdfast[spark]") from None
    except Exception as error:
        raise Refused(f"the cluster could not {what} ({type(error).__name__}): its own log says why") from None
