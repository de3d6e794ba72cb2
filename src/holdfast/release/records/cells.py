"""From the names in records to the cells of tables: in Python for a few distinct names, otherwise in the engine.

Both say the same: a record is missing in a table if some key has no value, outside if some key has another value than
the public ones or the cell is impossible, and counts only if every table has a cell for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import duckdb
import numpy as np
import numpy.typing as npt

from holdfast.release.table.laid import LaidTable

#: Positions that stand for a missing value and for one outside the domain.
MISSING, OUTSIDE = -1, -2
MARKS = (MISSING, OUTSIDE)
#: The distinct values of the records and how many have them, a table of one session.
VALUES = "distinct_values"


@dataclass(frozen=True)
class Counted:
    """The counts of one table's cells, and whether some record is missing or outside in any of the tables."""

    cells: npt.NDArray[np.int64]
    found: tuple[bool, ...]


def columns_of(tables: Sequence[LaidTable]) -> tuple[str, ...]:
    """The columns of the records that address cells, each once."""
    return tuple(dict.fromkeys(column for table in tables for key in table.layout.keys for column in key.columns))


def size_of(table: LaidTable) -> int:
    """The number of cells."""
    return int(np.prod([key.size for key in table.layout.keys], dtype=np.int64))


# --- in Python -----------------------------------------------------------------------------------------------------


def count_few(rows: Sequence[tuple[Any, ...]], tables: Sequence[LaidTable]) -> list[Counted]:
    """Count distinct names: each row has a text or None per used column, and how many records have them."""
    used = columns_of(tables)
    numbers = np.array([row[-1] for row in rows], dtype=np.int64)
    addressed = [np.array([_cell_of(row, table, used) for row in rows], dtype=np.int64) for table in tables]
    kept = np.all([cells >= 0 for cells in addressed], axis=0)
    found = tuple(any(bool((cells == mark).any()) for cells in addressed) for mark in MARKS)
    results = []
    for table, cells in zip(tables, addressed, strict=True):
        result = np.zeros(size_of(table), dtype=np.int64)
        np.add.at(result, cells[kept], numbers[kept])
        results.append(Counted(result, found))
    return results


def _cell_of(row: tuple[Any, ...], table: LaidTable, used: Sequence[str]) -> int:
    cell, marks = 0, set()
    for key in table.layout.keys:
        names = tuple(row[used.index(column)] for column in key.columns)
        if None in names:
            position = _or(key.missing, MISSING)
        else:
            position = key.positions.get(names, _or(key.outside, OUTSIDE))
        marks.add(position)
        cell = cell * key.size + position
    for mark in MARKS:
        if mark in marks:
            return mark
    impossible = table.holding.impossible
    return _foreign(table) if impossible is not None and impossible[cell] else cell


# --- in the engine -------------------------------------------------------------------------------------------------


def count_many(engine: duckdb.DuckDBPyConnection, tables: Sequence[LaidTable]) -> list[Counted]:
    """Count distinct names in the engine, which has them as a table of a text t0, t1, ... per used column, and n."""
    records = addressed(engine, tables)
    everywhere = [f"cell{number}" for number in range(len(tables))]
    kept = " AND ".join(f"{cell} >= 0" for cell in everywhere)
    marks = ", ".join(f"bool_or({' OR '.join(f'{cell} = {mark}' for cell in everywhere)})" for mark in MARKS)
    results = []
    for number, table in enumerate(tables):
        sums = f"SELECT cell{number}, coalesce(sum(n) FILTER (WHERE {kept}), 0)::BIGINT, {marks}"
        found = list(engine.execute(f"{sums} FROM ({records}) GROUP BY 1").fetchnumpy().values())
        cell, count = (np.asarray(column, dtype=np.int64) for column in found[:2])
        result = np.zeros(size_of(table), dtype=np.int64)
        result[cell[cell >= 0]] = count[cell >= 0]
        results.append(Counted(result, tuple(bool(np.asarray(some).any()) for some in found[2:])))
    return results


def addressed(engine: duckdb.DuckDBPyConnection, tables: Sequence[LaidTable], beside: str = "") -> str:
    """Words for the distinct names of the records, with their cell in every table: cell0, cell1, ..., and n.

    `beside`: one more column of the names that is kept, such as t3.
    """
    used = columns_of(tables)
    for number, table in enumerate(tables):
        _give_domain(engine, number, table)
    joins = " ".join(_join(number, table, used) for number, table in enumerate(tables))
    positions = ", ".join(_positions(number, table, used) for number, table in enumerate(tables))
    cells = ", ".join(f"{_cell(number, table)} AS cell{number}" for number, table in enumerate(tables))
    more = f", {beside}" if beside else ""
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
    """Look every key of a table up."""
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
