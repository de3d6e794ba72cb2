"""From the names in records to the cells of tables, in the engine.

A record is missing in a table if some key has no value, outside if some key has another value than the public ones or
the cell is impossible, and counts only if every table has a cell for it.
"""

from __future__ import annotations

import difflib
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import duckdb
import numpy as np
import numpy.typing as npt

from holdfast.arrays import Ints
from holdfast.queries.areas.linked import LinkedCounts
from holdfast.release.spec.table import Added
from holdfast.release.storage.engine import as_person, quoted_text
from holdfast.release.table.laid import Laid, LaidTable

#: Positions that stand for a missing value and for one outside the domain.
MISSING, OUTSIDE = -1, -2
MARKS = (MISSING, OUTSIDE)
#: The distinct values of the records and how many have them, a table of one session.
VALUES = "distinct_values"


@dataclass(frozen=True)
class Groups:
    """Persons are counted in at most so many cells of a table, with at most so many of their records in each."""

    most: int
    records: int
    key: str

    def words(self, records: str, person: str, cell: str, each: str, kept: str, cells: Sequence[str], ends: Any) -> str:
        """Words for what every person adds to the cells that a keyed hash of both chooses, within these ends.

        Records that do not fit stay as they are, and are not counted.
        """
        whose, (low, high) = as_person(person, "VARCHAR"), ends
        added = f"SELECT {cell} AS cell, {whose} AS whose, greatest({low}, least({high}, sum({each}))) AS {each}"
        mark = f"sha256(concat_ws(chr(31), '{quoted_text(self.key)}', whose, cell))"
        place = f"row_number() OVER (PARTITION BY whose ORDER BY {mark})"
        chosen = f"FROM ({added} FROM ({records}) WHERE {kept} GROUP BY ALL) QUALIFY {place} <= {self.most}"
        fitting = ", ".join("cell" if name == cell else "0" for name in cells)
        others = f"SELECT {', '.join(cells)}, {each} FROM ({records}) WHERE NOT ({kept})"
        return f"SELECT {fitting}, {each} {chosen} UNION ALL {others}"


@dataclass(frozen=True)
class Counted:
    """The counts of one table's cells, and whether some record is missing or outside in any of the tables."""

    cells: npt.NDArray[np.int64]
    found: tuple[bool, ...]


def columns_of(tables: Sequence[LaidTable]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(column for table in tables for key in table.layout.keys for column in key.columns))


def count_cells(
    engine: duckdb.DuckDBPyConnection, tables: Sequence[LaidTable], groups: Groups | None = None
) -> list[Counted]:
    """Count distinct names in the engine, which has them as a table of texts t0, t1, ..., n and sums s0, s1, ...

    `groups`: persons, the last of the texts, are counted in so many cells of a table.
    """
    sums, person = sums_of(tables), [] if groups is None else [f"t{len(columns_of(tables))}"]
    records = addressed(engine, tables, *(f"s{i}" for i in range(len(sums))), *person)
    everywhere = [f"cell{number}" for number in range(len(tables))]
    kept = " AND ".join(f"{cell} >= 0" for cell in everywhere)
    marks = ", ".join(f"bool_or({' OR '.join(f'{cell} = {mark}' for cell in everywhere)})" for mark in MARKS)
    results = []
    for number, table in enumerate(tables):
        added = table.layout.asked.sum_of
        each = "n" if added is None else f"s{sums.index(added)}"
        counted = records
        if groups is not None:
            ends = (0, groups.records) if added is None else added.ends
            words = groups.words(records, person[0], f"cell{number}", each, kept, everywhere, ends)
            counted = f"SELECT * FROM ({words}) AS counted({', '.join([*everywhere, each])})"
        asked = f"SELECT cell{number}, coalesce(sum({each}) FILTER (WHERE {kept}), 0)::BIGINT, {marks}"
        found = list(engine.execute(f"{asked} FROM ({counted}) GROUP BY 1").fetchnumpy().values())
        cell, count = (np.asarray(column, dtype=np.int64) for column in found[:2])
        result = np.zeros(int(np.prod([key.size for key in table.layout.keys], dtype=np.int64)), dtype=np.int64)
        result[cell[cell >= 0]] = count[cell >= 0]
        results.append(Counted(result, tuple(bool(np.asarray(some).any()) for some in found[2:])))
    return results


def sums_of(tables: Sequence[LaidTable]) -> list[Added]:
    """What is added up of the records beside their number, each once."""
    return list(dict.fromkeys(each for table in tables if (each := table.layout.asked.sum_of) is not None))


def addressed(engine: duckdb.DuckDBPyConnection, tables: Sequence[LaidTable], *beside: str) -> str:
    """Words for the distinct names of the records, with their cell in every table: cell0, cell1, ..., and n.

    `beside`: further columns that are kept, such as t3.
    """
    used = columns_of(tables)
    for number, table in enumerate(tables):
        _give_domain(engine, number, table)
    joins = " ".join(_join(number, table, used) for number, table in enumerate(tables))
    positions = ", ".join(_positions(number, table, used) for number, table in enumerate(tables))
    cells = ", ".join(f"{_cell(number, table)} AS cell{number}" for number, table in enumerate(tables))
    more = "".join(f", {column}" for column in beside)
    return f"SELECT {cells}, n{more} FROM (SELECT {positions}, n{more} FROM {VALUES} AS grouped {joins})"


def foreign(number: int, table: LaidTable, key: int, used: Sequence[str]) -> dict[tuple[str, ...], str]:
    """Words for values of one key that are not public, with how many records have them: column by column, and then
    combinations of public values that are none, by all columns.
    """
    columns, name = table.layout.keys[key].columns, f"key_{number}_{key}"
    texts = [f"t{used.index(column)}" for column in columns]
    strange = [f"{text} NOT IN (SELECT v{j} FROM {name})" for j, text in enumerate(texts)]
    found: dict[tuple[str, ...], str] = {
        (column,): f"SELECT {text}, sum(n) AS n FROM {VALUES} WHERE {text} IS NOT NULL AND {which} GROUP BY ALL"
        for column, text, which in zip(columns, texts, strange, strict=True)
    }
    if len(columns) > 1:
        which = " AND ".join([*(f"NOT ({each})" for each in strange), f"{name}.position IS NULL"])
        joined = f"{VALUES} AS grouped {_join(number, table, used)}"
        found[columns] = f"SELECT {', '.join(texts)}, sum(n) AS n FROM {joined} WHERE {which} GROUP BY ALL"
    return found


def _give_domain(engine: duckdb.DuckDBPyConnection, number: int, table: LaidTable) -> None:
    """Give the engine the public tables from names to positions, and the impossible cells."""
    for i, key in enumerate(table.layout.keys):
        content: dict[str, Any] = {f"v{j}": values for j, values in enumerate(key.values)}
        engine.register(f"key_{number}_{i}", content | {"position": np.arange(key.size, dtype=np.int64)})
    impossible = table.holding.impossible
    if impossible is not None:
        engine.register(f"impossible_{number}", {"cell": np.flatnonzero(impossible).astype(np.int64)})


def _join(number: int, table: LaidTable, used: Sequence[str]) -> str:
    words = []
    for i, key in enumerate(table.layout.keys):
        name = f"key_{number}_{i}"
        pairs = (f"{name}.v{j} = grouped.t{used.index(column)}" for j, column in enumerate(key.columns))
        words.append(f"LEFT JOIN {name} ON {' AND '.join(pairs)}")
    return " ".join(words)


def _positions(number: int, table: LaidTable, used: Sequence[str]) -> str:
    """The position of a record in every key, or MISSING or OUTSIDE."""
    words = []
    for i, key in enumerate(table.layout.keys):
        no_value = " OR ".join(f"t{used.index(column)} IS NULL" for column in key.columns)
        missing, outside = _or(key.missing, MISSING), _or(key.outside, OUTSIDE)
        position = f"CASE WHEN {no_value} THEN {missing} ELSE coalesce(key_{number}_{i}.position, {outside}) END"
        words.append(f"{position} AS p{number}_{i}")
    return ", ".join(words)


def _cell(number: int, table: LaidTable) -> str:
    """The cell of a record, or MISSING or OUTSIDE; impossible cells lie outside the domain."""
    listed = ", ".join(f"p{number}_{i}" for i in range(len(table.layout.keys)))
    cell = "0"
    for i, key in enumerate(table.layout.keys):
        cell = f"({cell}) * {key.size} + p{number}_{i}"
    marks = f"WHEN {MISSING} IN ({listed}) THEN {MISSING} WHEN {OUTSIDE} IN ({listed}) THEN {OUTSIDE}"
    if table.holding.impossible is not None:
        marks += f" WHEN {cell} IN (SELECT cell FROM impossible_{number}) THEN {_foreign(table)}"
    return f"CASE {marks} ELSE {cell} END"


def _or(position: int | None, otherwise: int) -> int:
    return otherwise if position is None else position


def _foreign(table: LaidTable) -> int:
    """The cell of a record that lies in an impossible one: foreign in every key, if that cell is possible."""
    cell = 0
    for key in table.layout.keys:
        if key.outside is None:
            return OUTSIDE
        cell = cell * key.size + key.outside
    impossible = table.holding.impossible
    return OUTSIDE if impossible is not None and impossible[cell] else cell


# --- Households one by one, before linked tables are counted: every one has its rows in one place and keeps the ties
# The statement is about households of this kind; one that is not is refused, and nothing is cut. A refusal never says
# which household it is about, or how many there are.

#: What can be wrong with a household but for the ties, and what to do.
REMEDIES = {
    "has no name": "give every record its household",
    "has records in two places": "give every household one place",
    "has more records than max_records, or than most of a linked table": "raise the limit",
}


def refuse_households(engine: duckdb.DuckDBPyConnection, flat: Laid, table: LaidTable) -> None:
    """Refuse a household in two places, with more rows than it may have, or that breaks a tie; and records of none."""
    found, at = faults(engine, flat, table), flat.spec.at["privacy"]["unit"]
    for words, households in found.items():
        if households:
            place = at if words in REMEDIES else table.layout.at["ties"]
            remedy = REMEDIES.get(words, "correct the data, or the tie")
            raise place.refuse(f"some household {words}: {remedy}; holdfast check shows how many")


def faults(engine: duckdb.DuckDBPyConnection, flat: Laid, table: LaidTable) -> dict[str, int]:
    """Return how many households have each fault, in words: confidential, for the curator's eyes alone."""
    query, unit = table.layout.query, flat.spec.privacy.unit
    assert isinstance(query, LinkedCounts)
    assert unit is not None
    household = f"t{len(columns_of(flat.tables))}"
    named = as_person(household, "VARCHAR")
    records = addressed(engine, flat.tables, household)
    joins, sums = [], [f"count(DISTINCT cell0 // {_inside(flat.tables[0])})", "sum(n)"]
    for number, (part, ties) in enumerate(zip(flat.tables, query.ties, strict=True)):
        weights = {"rows": np.ones(ties.shape[1], np.int64)} | {f"tie{t}": tie for t, tie in enumerate(ties)}
        spread = {name: _each(part, each) for name, each in weights.items()}
        engine.register(f"tied_{number}", spread | {"inside": np.arange(_inside(part))})
        joins.append(f"LEFT JOIN tied_{number} ON tied_{number}.inside = cell{number} % {_inside(part)}")
        sums.append(f"sum(n * tied_{number}.rows)")
    numbers = range(len(flat.tables))
    sums += [" + ".join(f"sum(n * tied_{number}.tie{t})" for number in numbers) for t in range(len(query.ties[0]))]
    listed = ", ".join(f"({words})::BIGINT AS s{i}" for i, words in enumerate(sums))
    fitting = " AND ".join(f"cell{number} >= 0" for number in range(len(flat.tables)))
    grouped = (
        f"SELECT {named} IS NULL AS nobody, {listed} FROM ({records}) {' '.join(joins)} WHERE {fitting} "
        f"GROUP BY {named}"
    )
    limits = [1, unit.records, *query.most]
    over = [f"s{i} > {limit}" for i, limit in enumerate(limits)]
    broken = [f"s{i} <> 0" for i in range(len(limits), len(sums))]
    asked = ["nobody", over[0], " OR ".join(over[1:]), *broken]
    counts = ", ".join(f"count(*) FILTER (WHERE {each})" for each in asked)
    told = [*REMEDIES, *(f"breaks tie {t + 1}" for t in range(len(broken)))]
    (row,) = engine.execute(f"SELECT {counts} FROM ({grouped})").fetchall()
    return dict(zip(told, row, strict=True))


def of_linked(flat: Laid, cells: list[npt.NDArray[np.int64]]) -> dict[str, Ints]:
    """Return the cells of every linked table without the records that it does not count."""
    found = {}
    for part, counted in zip(flat.tables, cells, strict=True):
        chosen = part.layout.counted
        assert chosen is not None
        found[part.name] = counted.reshape(-1, chosen.size)[:, chosen].sum(axis=1)
    return found


def _inside(part: LaidTable) -> int:
    """The number of cells of one place, those by which records are chosen included."""
    return int(np.prod([key.size for key in part.layout.keys[1:]], dtype=np.int64))


def _each(part: LaidTable, weights: Ints) -> Ints:
    """Return weights of the cells for every choice of records; 0 where a record is not counted."""
    chosen = part.layout.counted
    assert chosen is not None
    return np.outer(weights, chosen).ravel().astype(np.int64)


# --- the public name that a value outside the domain was most likely meant to be, and in what the two differ ---------

#: Domains of so many names or fewer are also searched for similar spellings.
MOST_COMPARED = 5_000


def _case(text: str) -> str:
    return text.casefold()


def _spaces(text: str) -> str:
    return "".join(text.split())


def _zeros(text: str) -> str:
    """Whole numbers without the zeros before them, and without a fraction of zeros behind them."""
    whole, _, fraction = text.partition(".")
    return (whole.lstrip("0") or "0") if whole.isdigit() and not fraction.strip("0") else text


def _encoding(text: str) -> str:
    """Undo what happens where UTF-8 is read as another encoding, and write every letter in one way."""
    for wrong in ("cp1252", "latin-1"):
        with suppress(UnicodeError):
            text = text.encode(wrong).decode("utf-8")
            break
    return unicodedata.normalize("NFKC", text)


def _accents(text: str) -> str:
    plain = unicodedata.normalize("NFKD", text)
    return "".join(each for each in plain if not unicodedata.combining(each))


def _all(text: str) -> str:
    return _zeros(_spaces(_case(_accents(_encoding(text)))))


#: What two names may differ in, the least first, and how a name is written where that does not matter.
DIFFERENCES: tuple[tuple[str, Callable[[str], str]], ...] = (
    ("upper and lower case", _case),
    ("spaces", _spaces),
    ("leading zeros", _zeros),
    ("encoding", _encoding),
    ("accents", _accents),
    ("case, spaces, zeros, encoding and accents", _all),
)


def nearest(value: str, names: Sequence[str]) -> tuple[str, str] | None:
    """Return the name meant and what it differs in, or nothing where no single name is near."""
    return next(meant([value], names))


def meant(values: Iterable[str], names: Sequence[str], spelled: int = 1) -> Iterator[tuple[str, str] | None]:
    """The same for many values; similar spellings, which take long, are looked for in the first `spelled` others."""
    alike: list[dict[str, set[str]]] = [{} for _ in DIFFERENCES]
    for (_, plain), found in zip(DIFFERENCES, alike, strict=True):
        for name in names:
            found.setdefault(plain(name), set()).add(name)
    for value in values:
        same = ((found.get(plain(value), ()), what) for (what, plain), found in zip(DIFFERENCES, alike, strict=True))
        near = next(((next(iter(some)), what) for some, what in same if len(some) == 1), None)
        if near is None and spelled and len(names) <= MOST_COMPARED:
            spelled -= 1
            similar = difflib.get_close_matches(value, names, n=1)
            near = (similar[0], "spelling") if similar else None
        yield near
