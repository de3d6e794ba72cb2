"""What a curator must see before a release, and nobody else may: which records do not fit, how many, and why.

Nothing is charged, drawn or written. Everything here is computed from the records without noise.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import duckdb
import numpy as np

from holdfast.release.records.cells import (
    MISSING,
    OUTSIDE,
    VALUES,
    addressed,
    columns_of,
    count_cells,
    faults,
    foreign,
    meant,
    sums_of,
)
from holdfast.release.records.sources import Asked
from holdfast.release.records.tabulate import asked_of, distinct_values, groups_of, opened, violated
from holdfast.release.spec.sections import Handling
from holdfast.release.standalone_verifier.facts import in_categories
from holdfast.release.storage.engine import as_person
from holdfast.release.table.laid import Laid, LaidTable

HEADING = "For the curator's eyes: exact and not protected; do not publish or keep it"
EMPTY = "There are no records: a table of zeros is a valid release."
#: Values and figures that are shown of each kind, values in a list of spellings, and how many are compared with every
#: public name, letter by letter.
SHOWN, LISTED, SPELLED = 10, 100_000, 200


@dataclass(frozen=True)
class Foreign:
    """A value that is not in the domain, how many records have it, and the public name it may mean."""

    columns: tuple[str, ...]
    value: tuple[str, ...]
    records: int
    nearest: str | None
    differs_in: str | None

    def __str__(self) -> str:
        meant = f"; {self.nearest!r} differs only in {self.differs_in}" if self.nearest is not None else ""
        if self.differs_in == "spelling":
            meant = f"; did you mean {self.nearest!r}?"
        return f"{' / '.join(map(repr, self.value))} in {_counted(self.records)}{meant}"


@dataclass(frozen=True)
class CheckedTable:
    """How the records fall into one table.

    `fitting`, `missing` and `outside` are numbers of records. `foreign` lists the most frequent values outside the
    domain, of `different` ones by columns. `figures`: the exact figures of the spec, and their true values, of `exact`.
    `elsewhere`: by levels, rows that name another place than the domain gives their lowest one, and what one of them
    says. `cut`: by levels, the largest part of a sum that its bounds take away or add. `groups`: persons in more cells
    than max_groups lets them be counted in, and records that fit and are not counted for it.
    """

    name: str
    fitting: int
    missing: int
    outside: int
    foreign: tuple[Foreign, ...]
    different: dict[str, int]
    figures: dict[str, int]
    exact: int
    violated: bool
    elsewhere: dict[str, tuple[int, str]]
    spellings: tuple[tuple[str, ...], ...]
    cut: dict[str, float]
    groups: dict[str, int]


@dataclass(frozen=True)
class Persons:
    """How many persons there are, how many have more than one record and more than are kept, and what is left out."""

    column: str
    persons: int
    several: int
    above: int
    left_out: int
    nobody: int


@dataclass(frozen=True)
class CountedRows:
    """Rows with counts in `column`: how many have the names of another one, and `uncounted` groups of equal names.

    These have a row whose count is missing or no whole number; `first` is the number of the first such row.
    """

    column: str
    repeated: int
    uncounted: int
    first: int | None


@dataclass(frozen=True, repr=False)
class Check:
    """Everything that was found. `records` are counted, of which `kept` fit every table.

    `alone`: so many have names that no other has, where rows may be counts of records.
    Besides them, `numberless` ones have no number where one is added up.
    """

    title: str
    records: int
    kept: int
    nulls: dict[str, int]
    rules: dict[str, Handling]
    tables: tuple[CheckedTable, ...]
    persons: Persons | None
    households: dict[str, int]
    rows: CountedRows | None
    alone: int = 0
    numberless: int = 0

    @property
    def spellings(self) -> list[tuple[str, ...]]:
        """Column, value, the public name that it may mean and in what the two differ, for a list of spellings."""
        return list(dict.fromkeys(each for table in self.tables for each in table.spellings))

    def as_mapping(self) -> dict[str, Any]:
        found = {name: getattr(self, name) for name in ("title", "records", "kept", "nulls")}
        tables = [{**vars(table), "foreign": [vars(each) for each in table.foreign]} for table in self.tables]
        persons = None if self.persons is None else vars(self.persons)
        rows = None if self.rows is None else vars(self.rows)
        more = {"persons": persons, "households": self.households, "rows": rows, "tables": tables}
        return {"confidential": HEADING, **found, **more}

    def sections(self) -> dict[str, list[str]]:
        """Return headings with their sentences, in reading order."""
        found = {HEADING: [self.title], "Records": self._records()}
        if self.spellings:
            found["Records"].append(
                f"{len(self.spellings):,} of the values outside the domain may mean public names: holdfast check "
                "--spelling FILE lists them for spelling: FILE under data; read the list first."
            )
        for table in self.tables:
            found[f"Table {table.name!r}" if len(self.tables) > 1 else "Table"] = self._table(table)
        return found

    def _records(self) -> list[str]:
        if self.records == 0 and (self.persons is None or not self.persons.nobody):
            return [EMPTY]
        left = self.records - self.kept
        bad = self.rows is not None and self.rows.uncounted
        start = f"{'Rows whose counts can be read: ' if bad else ''}{_counted(self.records)}"
        fit = "fit every table" if bad else "fit every table and are counted"
        told = [f"{start}; {self.kept:,} {fit}, {left:,} do not fit." if left else f"{start}; all {fit}."]
        if self.rows is None and self.alone > ALONE * max(self.records, MANY):
            told.append(
                f"{self.alone:,} of them have names that no other record has: where a row stands for several records, "
                "count: COLUMN under data says how many."
            )
        if self.persons is not None:
            told += _about(self.persons)
        told += [] if self.rows is None else _about_rows(self.rows)
        if self.numberless:
            told.append(
                f"Besides, {_counted(self.numberless)} without a finite number where one is added up: "
                f"{_happens(self.rules['nulls'])}."
            )
        for words, households in self.households.items():
            told.append(
                f"{households:,} household{'s' * (households > 1)} of which each {words}: a release is refused."
            )
        for column, records in self.nulls.items():
            told.append(f"{column!r} has no value in {_counted(records)}: {_happens(self.rules['nulls'])}.")
        return told

    def _table(self, table: CheckedTable) -> list[str]:
        told = [f"{_counted(table.fitting)} fit."]
        if any(table.groups.values()):
            persons, left = table.groups["persons"], _counted(table.groups["records"])
            who = f"{persons:,} person{'s are' if persons != 1 else ' is'}"
            told.append(f"max_groups: {who} in more cells than are counted; {left} left out.")
        for level, part in table.cut.items():
            told.append(f"The bounds change sums of {level!r} by up to {100 * part:.2g} %.")
        for level, (rows, one) in table.elsewhere.items():
            told.append(
                f"{rows:,} rows name another {level!r} than the domain gives their lowest place, such as {one}: they "
                "are counted by the lowest place alone; match: path would refuse them."
            )
        if table.missing:
            told.append(f"{_counted(table.missing)} without a value somewhere: {_happens(self.rules['nulls'])}.")
        if table.outside:
            told.append(f"{_counted(table.outside)} outside the domain: {_happens(self.rules['outside'])}.")
            if table.different == {}:
                told.append("They lie in impossible cells.")
        for columns, different in table.different.items():
            listed = [each for each in table.foreign if " / ".join(each.columns) == columns]
            more = f", the most frequent {len(listed)}" if different > len(listed) else ""
            told.append(f"{columns!r} has {different:,} value{'s' * (different > 1)} outside the domain{more}:")
            told += [f"  {each}" for each in listed]
        if table.violated:
            told.append("The counts violate what hold says about every possible dataset: a release is refused.")
        if table.figures:
            more = f", the first {len(table.figures)} of {table.exact:,}" if table.exact > len(table.figures) else ""
            told.append(f"Published exactly would be{more}:")
            told += [f"  {name}: {value:,}" for name, value in table.figures.items()]
        return told

    def __str__(self) -> str:
        return "\n\n".join("\n".join([title, *(f"  {s}" for s in told)]) for title, told in self.sections().items())

    __repr__ = __str__


def check(job: Laid, source: Any = None) -> Check:
    """Look at the records of a job; `source` as for a release."""
    linked = [table for table in job.tables if table.layout.parts]
    job = job.counting
    with distinct_values(job, source, nobody=True) as engine:
        used = columns_of(job.tables)
        sums = ", ".join(f"sum(n) FILTER (WHERE t{i} IS NULL)" for i in range(len(used)))
        (row,) = engine.execute(f"SELECT coalesce(sum(n), 0), {sums} FROM {VALUES}").fetchall()
        words = addressed(engine, job.tables)
        marks = [f"sum(n) FILTER (WHERE cell{i} {how})" for i in range(len(job.tables)) for how in _HOW]
        everywhere = " AND ".join(f"cell{i} >= 0" for i in range(len(job.tables)))
        kept, *found = engine.execute(
            f"SELECT sum(n) FILTER (WHERE {everywhere}), {', '.join(marks)} FROM ({words})"
        ).fetchall()[0]
        numbers = np.array([each or 0 for each in found], dtype=object).reshape(-1, len(_HOW))
        filled = count_cells(engine, job.tables, groups_of(job))
        tables = tuple(
            _table(engine, i, table, numbers[i].tolist(), counted.cells, used, _elsewhere(engine, job, source, table))
            for i, (table, counted) in enumerate(zip(job.tables, filled, strict=True))
        )
        limited = _limited(engine, job, tables, int(kept or 0))
        persons, rows = _persons(engine, job, source), _rows(engine, job, source)
        alone = 0
        if persons is None and not job.spec.data.rows_are_records:
            (alone,) = engine.execute(f"SELECT count(*) FILTER (WHERE n = 1) FROM {VALUES}").fetchall()[0]
        numberless = _numberless(engine, job, source) - int(row[0]) if sums_of(job.tables) else 0
        households = {words: many for table in linked for words, many in faults(engine, job, table).items() if many}
    nulls = {column: int(records) for column, records in zip(used, row[1:], strict=True) if records}
    tables = _cut(job, source, limited, [counted.cells for counted in filled])
    rules = {"nulls": job.spec.data.nulls, "outside": job.spec.data.outside}
    counted = (int(row[0]), int(kept or 0), nulls, rules, tables)
    return Check(job.title, *counted, persons, households, rows, alone, numberless)


#: Rows that may be counts of records: so many at least, of which this part has names of its own.
MANY, ALONE = 1_000, 0.9
#: Cells of records that fit, have no value somewhere, lie outside.
_HOW = (">= 0", f"= {MISSING}", f"= {OUTSIDE}")


def _table(
    engine: duckdb.DuckDBPyConnection,
    number: int,
    table: LaidTable,
    numbers: list[int],
    cells: Any,
    used: Sequence[str],
    elsewhere: dict[str, tuple[int, str]],
) -> CheckedTable:
    strange: list[Foreign] = []
    spellings: list[tuple[str, ...]] = []
    different: dict[str, int] = {}
    figures: dict[str, int] = {}
    for i, key in enumerate(table.layout.keys):
        for columns, words in foreign(number, table, i, used).items():
            (count,) = engine.execute(f"SELECT count(*) FROM ({words})").fetchall()[0]
            if not count:
                continue
            different[" / ".join(columns)] = int(count)
            known = [texts.tolist() for column, texts in zip(key.columns, key.values, strict=True) if column in columns]
            names = list(dict.fromkeys(" / ".join(each) for each in zip(*known, strict=True)))
            most = SHOWN if len(columns) > 1 else LISTED
            values = engine.execute(f"{words} ORDER BY n DESC, 1 LIMIT {most}").fetchall()
            all_near = meant((" / ".join(value) for *value, _ in values), names, SPELLED)
            for shown, ((*value, records), near) in enumerate(zip(values, all_near, strict=True)):
                if shown < SHOWN:
                    strange.append(Foreign(columns, tuple(value), int(records), *(near or (None, None))))
                if near is not None and len(columns) == 1:
                    spellings.append((*columns, *value, *near))
    labels, exact = table.layout.query.labels, 0
    answer = table.layout.query.answer(cells) if table.holding.holds.exact else np.zeros(0)
    for figure in table.holding.holds.exact:
        for rows in figure.rows:
            exact += 1
            if len(figures) < SHOWN:
                name = str(labels[rows[0]]) if len(rows) == 1 else _in_common(table, figure.figure, rows)
                figures[name] = int(answer[rows].sum())
    broken = violated(table, cells)
    fitting, missing, outside = numbers
    return CheckedTable(
        table.name,
        fitting,
        missing,
        outside,
        tuple(strange),
        different,
        figures,
        exact,
        broken,
        elsewhere,
        tuple(spellings),
        {},
        {},
    )


def _limited(
    engine: duckdb.DuckDBPyConnection, job: Laid, tables: tuple[CheckedTable, ...], kept: int
) -> tuple[CheckedTable, ...]:
    """Say what max_groups takes away: of a count also further records in one cell, of a sum none of these."""
    groups = groups_of(job)
    if groups is None:
        return tables
    person, cells = f"t{len(columns_of(job.tables))}", [f"cell{number}" for number in range(len(tables))]
    records, fit = addressed(engine, job.tables, person), " AND ".join(f"{cell} >= 0" for cell in cells)
    found = []
    for checked, table, cell in zip(tables, job.tables, cells, strict=True):
        most = groups.records if table.layout.asked.sum_of is None else kept
        counted = groups.words(records, person, cell, "n", fit, cells, (0, most))
        more = f"GROUP BY {as_person(person, 'VARCHAR')} HAVING count(DISTINCT {cell}) > {groups.most}"
        persons = f"SELECT count(*) FROM (SELECT 1 FROM ({records}) WHERE {fit} {more})"
        left = f"SELECT sum(n) FILTER (WHERE {fit}) FROM ({counted}) AS counted({', '.join([*cells, 'n'])})"
        (row,) = engine.execute(f"SELECT ({persons}), {kept} - coalesce(({left}), 0)").fetchall()
        found.append(replace(checked, groups={"persons": int(row[0]), "records": int(row[1])}))
    return tuple(found)


#: How many times as far as the bounds numbers are added up to see what the bounds do.
FARTHER = 1000


def _cut(job: Laid, source: Any, tables: tuple[CheckedTable, ...], cells: Sequence[Any]) -> tuple[CheckedTable, ...]:
    """Compare sums with those of much wider bounds, level by level."""
    wide = [_wider(table) for table in job.tables]
    if wide == list(job.tables):
        return tables
    with distinct_values(Laid(job.spec, wide), source, nobody=True) as engine:
        filled = count_cells(engine, wide, groups_of(job))
    found = []
    for checked, table, inside, counted in zip(tables, job.tables, cells, filled, strict=True):
        cut: dict[str, float] = {}
        if table.layout.asked.sum_of is not None:
            kept, all_of_it = table.answer(inside), table.answer(counted.cells)
            part = np.abs(kept - all_of_it) / np.maximum(np.abs(all_of_it), 1)
            levels = enumerate(table.layout.levels)
            cut = {name: float(part[table.layout.level_of == i].max()) for i, name in levels}
        found.append(replace(checked, cut={name: most for name, most in cut.items() if most}))
    return tuple(found)


def _wider(table: LaidTable) -> LaidTable:
    added = table.layout.asked.sum_of
    if added is None:
        return table
    far = FARTHER * max(map(abs, added.between or ()))
    asked = table.layout.asked.model_copy(update={"figures": (added.model_copy(update={"between": (-far, far)}),)})
    for cached in ("added", "sum_of"):
        asked.__dict__.pop(cached, None)
    return LaidTable(table.name, replace(table.layout, asked=asked), table.holding)


def _numberless(engine: duckdb.DuckDBPyConnection, job: Laid, source: Any) -> int:
    """How many records there are, with the numbers that are added up or without."""
    with opened(engine, job.spec, source) as records:
        words = records.counted(replace(asked_of(job, nobody=True), sums=(), left_out=False))
        (total,) = engine.execute(f"SELECT coalesce(sum(n), 0) FROM {words}").fetchall()[0]
    return int(total)


def _elsewhere(
    engine: duckdb.DuckDBPyConnection, job: Laid, source: Any, table: LaidTable
) -> dict[str, tuple[int, str]]:
    """Compare the upper levels that records name with those of their lowest place, by which they are counted."""
    layout = table.layout
    if layout.places is None or layout.asked.match == "path":
        return {}
    lowest, called = layout.names[-1], job.spec.data.columns
    with opened(engine, job.spec, source) as records:
        upper = [level for level in layout.names[:-1] if called.get(level, level) in records.kinds()]
        asked = Asked(tuple(called.get(level, level) for level in (*upper, lowest)))
        named = engine.execute(f"FROM {records.counted(asked)}").fetchall() if upper else []
    tree, nodes, texts = layout.places, layout.places.leaves, dict[str, Any]()
    for level in reversed(layout.names):
        texts[level], nodes = np.asarray(tree.names, dtype=object)[nodes].tolist(), tree.parents[nodes]
    inside = (
        dict(zip(texts[lowest], zip(*(texts[level] for level in upper), strict=True), strict=True)) if upper else {}
    )
    found: dict[str, tuple[int, str]] = {}
    for *places, place, rows in named:
        for level, said, known in zip(upper, places, inside.get(place, ()), strict=False):
            if said is not None and said != known:
                found[level] = (found.get(level, (0, ""))[0] + int(rows), f"{said!r} for {place!r}, in {known!r}")
    return found


def _in_common(table: LaidTable, figure: str, rows: Sequence[int]) -> str:
    texts = (column[rows].tolist() for name, column in table.layout.columns.items() if name != "level")
    shared = [str(values[0]) for values in texts if values[0] is not None and len(set(values)) == 1]
    return f"{figure}: {' / '.join(shared)}" if shared else figure


def _persons(engine: duckdb.DuckDBPyConnection, job: Laid, source: Any) -> Persons | None:
    """Count the records of every person, before they are limited."""
    limit = asked_of(job).persons
    if limit is None:
        return None
    with opened(engine, job.spec, source) as records:
        most = limit.max_records
        sums = "count(*) FILTER (WHERE n > {0}), sum(n - {0}) FILTER (WHERE n > {0})"
        several, above = sums.format(1).split(", ")[0], sums.format(most)
        person = as_person("t0", "VARCHAR")
        alike = f"SELECT {person} AS t0, sum(n) AS n FROM {records.counted(Asked((limit.column,)))} GROUP BY 1"
        named = f"SELECT count(*), {several}, {above} FROM ({alike}) WHERE t0 IS NOT NULL"
        persons, twice, more, left = engine.execute(named).fetchall()[0]
        (nobody,) = engine.execute(f"SELECT sum(n) FROM ({alike}) WHERE t0 IS NULL").fetchall()[0]
    return Persons(limit.column, int(persons), int(twice), int(more), int(left or 0), int(nobody or 0))


def _rows(engine: duckdb.DuckDBPyConnection, job: Laid, source: Any) -> CountedRows | None:
    """Look at rows that stand for several records each: at equal names, and at counts that are none."""
    asked = asked_of(job)
    if asked.count is None:
        return None
    with opened(engine, job.spec, source) as records:
        alike = f"SELECT * EXCLUDE n, sum(n) AS n FROM {records.counted(Asked(asked.columns))} GROUP BY ALL"
        (repeated,) = engine.execute(f"SELECT sum(n - 1) FROM ({alike})").fetchall()[0]
        missing = f"SELECT count(*) FROM {records.counted(asked)} WHERE n IS NULL"
        (uncounted,) = engine.execute(missing).fetchall()[0]
        first = records.uncounted(asked.count) if uncounted else None
    return CountedRows(asked.count, int(repeated or 0), int(uncounted), first)


def _about_rows(rows: CountedRows) -> list[str]:
    told = []
    if rows.repeated:
        told.append(f"{rows.repeated:,} rows have the names of another row: their counts {rows.column!r} are added up.")
    if rows.uncounted:
        where = "" if rows.first is None else f" (the first is row {rows.first:,})"
        told.append(
            f"{rows.column!r} is missing, or no whole number of 0 or more, in rows of {rows.uncounted:,} different "
            f"names{where}: a release is refused until they are corrected."
        )
    return told


def _about(persons: Persons) -> list[str]:
    told = [
        f"{persons.persons:,} persons by {persons.column!r}: {persons.several:,} have more than one record, and "
        f"{persons.above:,} more than are kept, so that {_counted(persons.left_out)} of theirs are left out."
    ]
    if persons.nobody:
        told.append(f"{_counted(persons.nobody)} have no {persons.column!r}.")
    return told


def _counted(records: int) -> str:
    return f"{records:,} record{'s' * (records != 1)}"


def _happens(rule: Handling) -> str:
    told = {"refuse": "a release is refused", "drop": "they are dropped"}
    return told.get(rule.rule, f"they are counted as {in_categories(rule.category)}")
