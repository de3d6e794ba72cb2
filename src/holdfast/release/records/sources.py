"""What is asked of confidential records, and the one thing that every kind of source does: count itself.

A kind of source is one class with the methods of `Source`; `tabulate.py` says which kind reads what.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import duckdb
import numpy as np

from holdfast.arguments import LARGEST, Refused
from holdfast.domains.data_frames import text_of
from holdfast.release.spec.origin import RECORDS, Origin
from holdfast.release.spec.places import At
from holdfast.release.spec.spec import Spec
from holdfast.release.spec.table import DECIMALS, Added
from holdfast.release.storage.engine import WHOLE_TEXT, as_person, as_text, quoted_name, quoted_text, session

#: The most records that are counted: every figure is below 2⁶².
MOST_RECORDS = LARGEST - 1


@dataclass(frozen=True)
class Persons:
    """Of each value of a column at most so many records are kept, by the order of a keyed hash.

    `nobody`: whether records without a value are left out; otherwise nothing is counted if there is one. `period`: the
    number of the column of periods: so many are kept in each of the first `periods`, in the `order` of a list or texts.
    """

    column: str
    max_records: int
    key: str
    nobody: bool
    period: int | None = None
    periods: int | None = None
    order: tuple[str, ...] = ()


@dataclass(frozen=True)
class Asked:
    """What a source is asked to count by: columns, as the records call them.

    `count`: the column that says how many records a row stands for; None: every row is a record. `persons`: whose
    records are limited before anything is counted. A spec has at most one of the two. `sums`: columns of numbers that
    are added up, and what is added of each; `left_out`: records without such a number are.
    """

    columns: tuple[str, ...]
    count: str | None = None
    persons: Persons | None = None
    sums: tuple[tuple[str, Added], ...] = ()
    left_out: bool = False

    @property
    def grouping(self) -> tuple[str, ...]:
        """The columns that decide what a record is counted and added as."""
        more = [*([] if self.count is None else [self.count]), *(column for column, _ in self.sums)]
        return tuple(dict.fromkeys([*self.columns, *more]))


class Source(Protocol):
    """Confidential records, wherever they are."""

    @property
    def origin(self) -> Origin:
        """How the rows were made from records: what a statement assumes of that, and what a reader must know."""

    def kinds(self) -> Mapping[str, str]:
        """Return the columns and the types of their values, in the words of the local engine."""

    def counted(self, asked: Asked) -> str:
        """Count the records by their values, where they are; return the words that name the result in the local engine.

        The result has a text or nothing per column asked for (t0, t1, ...) and the number n of records that have these
        values; combinations may occur more than once. n is missing where some row has no count, a whole number from 0
        to MOST_RECORDS, or some record no person though it must have one. Behind it stand the sums s0, s1, ... in
        steps, missing where some record has no such number.
        """

    def uncounted(self, count: str) -> int | None:
        """Return the number of the first row, from 1, whose count is missing or not whole; None: rows have no order."""


@dataclass(frozen=True)
class Place:
    """Where records are, as a text says it: files, or the address of a database.

    `path` is the text as an absolute path, `ending` ends what was opened. `hidden`: the text is written elsewhere,
    since there is something secret in it.
    """

    engine: duckdb.DuckDBPyConnection
    spec: Spec
    text: str
    path: Path
    ending: ExitStack
    hidden: bool = False

    @property
    def at(self) -> At:
        return self.spec.at["data"]

    @property
    def table(self) -> str | None:
        return self.spec.data.table

    @property
    def query(self) -> str | None:
        return self.spec.data.query

    @property
    def called(self) -> str:
        return "that is written elsewhere" if self.hidden else repr(self.text)

    def refuse(
        self, sentence: str, key: str = "source", found: str | None = None, allowed: Iterable[str] = ()
    ) -> Refused:
        return self.at[key].refuse(sentence, found, allowed)


# --- records that the local engine reads itself, streaming: files, tables of a database file, frames in memory -------


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
    origin: Origin = RECORDS

    def kinds(self) -> Mapping[str, str]:
        rows = self.engine.sql(f"FROM {self.words}")
        return dict(zip(rows.columns, map(str, rows.types), strict=True))

    def counted(self, asked: Asked) -> str:
        """Group the records by the values themselves; the few distinct ones that are left are turned into texts."""
        kinds, records = self.kinds(), self.words
        raw = [f"{quoted_name(column)} AS c{i}" for i, column in enumerate(asked.columns)]
        raw += [
            f"{in_steps(quoted_name(name), kinds[name], each)} AS v{i}" for i, (name, each) in enumerate(asked.sums)
        ]
        own = [f"c{i}" for i in range(len(asked.columns))]
        values = [f"v{i}" for i in range(len(asked.sums))]
        times = "1" if self.times is None else quoted_name(self.times)
        number = "count(*)" if self.times is None else f"CASE WHEN bool_and({times} IS NOT NULL) THEN sum({times}) END"
        if asked.persons is not None:
            records = f"({_kept(asked, asked.persons, records, ', '.join(raw), kinds)})"
            number, times = "CASE WHEN bool_and(person IS NOT NULL) THEN count(*) END", "1"
        elif asked.sums:
            records = f"(SELECT {', '.join(raw)}{'' if self.times is None else f', {times}'} FROM {records})"
        else:
            own = raw
        if asked.count is not None:
            each = whole(quoted_name(asked.count), kinds[asked.count])
            number = f"CASE WHEN bool_and({each} IS NOT NULL) THEN sum({each} * {times}) END"
        if asked.left_out and values:
            records = f"{records} WHERE {' AND '.join(f'{value} IS NOT NULL' for value in values)}"
        texts = [f"{as_text(f'c{i}', kinds[column])} AS t{i}" for i, column in enumerate(asked.columns)]
        many = "" if times == "1" else f" * {times}"
        sums = [f"CASE WHEN count({value}) = count(*) THEN sum({value}{many}) END" for value in values]
        added = [f"{words} AS s{i}" for i, words in enumerate(sums)]
        grouped = f"SELECT {', '.join([*own, f'{number} AS n', *added])} FROM {records} GROUP BY ALL"
        return f"(SELECT {', '.join([*texts, 'n', *(f's{i}' for i in range(len(sums)))])} FROM ({grouped}))"

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


def held(engine: duckdb.DuckDBPyConnection, content: Any, origin: Origin = RECORDS) -> Rows:
    """Rows in memory: an Arrow table, or an array per column."""
    engine.register("records", content)
    return Rows(engine, "records", ordered=True, held=content, origin=origin)


def fetched(engine: duckdb.DuckDBPyConnection, names: Sequence[str], number: str | None, pieces: Iterable[Any]) -> str:
    """Put rows of texts that come in pieces into a table of the session; return its name.

    `number`: the name of a whole number, or nothing, that every row has besides.
    """
    columns = [*names, *([] if number is None else [number])]
    kinds = [f"{quoted_name(name)} {'VARCHAR' if i < len(names) else 'HUGEINT'}" for i, name in enumerate(columns)]
    engine.execute(f"CREATE OR REPLACE TEMP TABLE fetched ({', '.join(kinds)})")
    for piece in pieces:
        # The last text makes it a column of texts, even if all are missing; it is left out again.
        texts = {
            f"t{i}": np.array([*(text_of(row[i]) for row in piece), ""], dtype=object) for i in range(len(columns))
        }
        engine.register("piece", texts)
        engine.execute(f"INSERT INTO fetched FROM piece LIMIT {len(piece)}")
        engine.unregister("piece")
    return "fetched"


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


def in_steps(column: str, kind: str, asked: Added) -> str:
    """Words for a number as whole steps, brought within the bounds; nothing where it is no finite number.

    Numbers are decimals of nine places from here on, so that 0.15 is 15 hundredths whatever a double holds; halves are
    rounded up. Whatever is done, it is done to this record alone, and ends within the bounds.
    """
    (low, high), step = asked.ends, int(asked.unit * 10**DECIMALS)
    number = f"TRY_CAST(trim({column}) AS DOUBLE)" if kind == "VARCHAR" else f"CAST({column} AS DOUBLE)"
    if (
        asked.most * step < 2**51
    ):  # a double tells nine places of such a number, and its product is off by less than 1/2
        moved = f"least(greatest({number}, {float(low * asked.unit)!r}), {float(high * asked.unit)!r})"
        places = f"CAST(round({moved} * 1e{DECIMALS}) AS BIGINT)"
        return f"(CASE WHEN isfinite({number}) THEN {low} + (2 * ({places} - {low * step}) + {step}) // {2 * step} END)"
    text = f"trim({column})" if kind == "VARCHAR" else column
    ninths = f"CAST(TRY_CAST({text} AS DECIMAL(38, {DECIMALS})) * {10**DECIMALS} AS HUGEINT)"
    inside = f"({low} + (2 * ({ninths} - {low * step}) + {step}) // {2 * step})"
    ends = (float(end * asked.unit) for end in (low, high))
    below, above = (f"{number} {sign} {end!r}" for sign, end in zip(("<=", ">="), ends, strict=True))
    within = f"CASE WHEN {below} THEN {low} WHEN {above} THEN {high} ELSE {inside} END"
    return f"(CASE WHEN isfinite({number}) THEN greatest({low}, least({high}, {within})) END)::HUGEINT"


def _kept(asked: Asked, persons: Persons, records: str, used: str, kinds: Mapping[str, str]) -> str:
    """Keep at most max_records records of each person, whatever other persons' records are.

    Equal records of one person are numbered, so that the choice among copies is fair; the number depends on that
    person's own records alone. Only what is needed is passed on, under names of our own.
    """
    row, key = unused("holdfast_row", kinds), quoted_text(persons.key)
    person = as_person(quoted_name(persons.column), kinds[persons.column])
    person = f'({person}) COLLATE "binary"'  # the column may say that A and a are equal, and two persons would be one
    copies = f"SELECT {used}, {person} AS person, CAST({row} AS VARCHAR) AS record FROM {records} AS {row}"
    somebody = "WHERE person IS NOT NULL" if persons.nobody else ""
    numbered = f"SELECT *, row_number() OVER (PARTITION BY person, record) AS copy FROM ({copies}) {somebody}"
    mark = f"sha256(concat_ws(chr(31), '{key}', person, copy, record))"
    within, first = "person", ""
    if persons.period is not None:
        name = as_text(f"c{persons.period}", kinds[asked.columns[persons.period]])
        listed = ", ".join(f"'{quoted_text(each)}'" for each in persons.order)  # 9 and 10, Jan and Feb are no texts
        place = f"list_position([{listed}], {name})" if listed else name
        within = f"person, {name}"
        if persons.periods is not None:
            first = f" AND dense_rank() OVER (PARTITION BY person ORDER BY {place}) <= {persons.periods}"
    ranked = f"row_number() OVER (PARTITION BY {within} ORDER BY {mark}) <= {persons.max_records}{first}"
    return f"SELECT * FROM ({numbered}) QUALIFY {ranked}"


def unused(name: str, columns: Iterable[str]) -> str:
    """Return a name that no column has, in whatever case."""
    taken = {column.lower() for column in columns}
    while name in taken:
        name += "_"
    return name
