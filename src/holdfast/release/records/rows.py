"""Records that the local engine reads itself, streaming: files, tables of a database file, frames in memory."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import duckdb

from holdfast.release.records.source import MOST_RECORDS, Asked, Persons
from holdfast.release.storage.reading import WHOLE_TEXT, as_text, quoted_name, quoted_text, session


@dataclass(frozen=True)
class Rows:
    """Rows that `words` name in a query of the engine.

    `times`: the column that says how many equal rows one stands for. `ordered`: any session reads the same rows in
    their own order, so that a row has a number. `held`: the rows themselves, where they are in memory.
    """

    engine: duckdb.DuckDBPyConnection
    words: str
    times: str | None = None
    ordered: bool = False
    held: Any = None

    def kinds(self) -> Mapping[str, str]:
        """Ask the engine."""
        rows = self.engine.sql(f"FROM {self.words}")
        return dict(zip(rows.columns, map(str, rows.types), strict=True))

    def counted(self, asked: Asked) -> str:
        """Group the records by the values themselves; the few distinct ones that are left are turned into texts."""
        kinds, records = self.kinds(), self.words
        raw = ", ".join(f"{quoted_name(column)} AS c{i}" for i, column in enumerate(asked.columns))
        number = self._number(asked.count, kinds)
        if asked.persons is not None:
            records = f"({_kept(asked.persons, records, raw, kinds)})"
            raw = ", ".join(f"c{i}" for i in range(len(asked.columns)))
            number = "CASE WHEN bool_and(person IS NOT NULL) THEN count(*) END"
        texts = ", ".join(f"{as_text(f'c{i}', kinds[column])} AS t{i}" for i, column in enumerate(asked.columns))
        return f"(SELECT {texts}, n FROM (SELECT {raw}, {number} AS n FROM {records} GROUP BY ALL))"

    def _number(self, count: str | None, kinds: Mapping[str, str]) -> str:
        """Words for how many records equal rows stand for."""
        times = None if self.times is None else quoted_name(self.times)
        if count is None:
            return "count(*)" if times is None else f"sum({times})"
        each = whole(quoted_name(count), kinds[count])
        return f"CASE WHEN bool_and({each} IS NOT NULL) THEN sum({each} * {times or 1}) END"

    def uncounted(self, count: str) -> int | None:
        """Read the rows again, in their order."""
        if not self.ordered:
            return None
        each = whole(quoted_name(count), self.kinds()[count])
        numbered = f"SELECT {each} AS n, row_number() OVER () AS number FROM {self.words}"
        with session() as engine:
            if self.held is not None:
                engine.register(self.words, self.held)
            found = engine.execute(f"SELECT min(number) FROM ({numbered}) WHERE n IS NULL").fetchall()
        return None if found[0][0] is None else int(found[0][0])


def held(engine: duckdb.DuckDBPyConnection, content: Any) -> Rows:
    """Rows in memory: an Arrow table, or an array per column."""
    engine.register("records", content)
    return Rows(engine, "records", ordered=True, held=content)


def whole(column: str, kind: str) -> str:
    """Words for a count as a whole number of 0 or more below 2⁶², nothing where it is none."""
    if kind == "VARCHAR":
        digits = f"CAST(split_part(trim({column}), '.', 1) AS HUGEINT)"
        number = f"CASE WHEN regexp_full_match(trim({column}), '{WHOLE_TEXT}') THEN {digits} END"
    elif kind.startswith(("FLOAT", "DOUBLE", "DECIMAL")):  # a number that is none counts as larger than all others
        inside = f"{column} BETWEEN 0 AND {MOST_RECORDS}"
        number = f"CASE WHEN {inside} AND {column} = trunc({column}) THEN TRY_CAST({column} AS HUGEINT) END"
    else:
        number = f"CAST({column} AS HUGEINT)"
    return f"(CASE WHEN {number} BETWEEN 0 AND {MOST_RECORDS} THEN {number} END)"


def _kept(persons: Persons, records: str, used: str, kinds: Mapping[str, str]) -> str:
    """Keep at most max_records records of each person, whatever other persons' records are.

    Equal records of one person are numbered, so that the choice among copies is fair; the number depends on that
    person's own records alone. Only what is needed is passed on, under names of our own.
    """
    row, key = unused("holdfast_row", kinds), quoted_text(persons.key)
    person = as_text(quoted_name(persons.column), kinds[persons.column])
    copies = f"SELECT {used}, {person} AS person, CAST({row} AS VARCHAR) AS record FROM {records} AS {row}"
    somebody = "WHERE person IS NOT NULL" if persons.nobody else ""
    numbered = f"SELECT *, row_number() OVER (PARTITION BY person, record) AS copy FROM ({copies}) {somebody}"
    mark = f"sha256(concat_ws(chr(31), '{key}', person, copy, record))"
    ranked = f"row_number() OVER (PARTITION BY person ORDER BY {mark})"
    return f"SELECT * FROM ({numbered}) QUALIFY {ranked} <= {persons.max_records}"


def unused(name: str, columns: Iterable[str]) -> str:
    """Return a name that no column has, in whatever case."""
    taken = {column.lower() for column in columns}
    while name in taken:
        name += "_"
    return name
