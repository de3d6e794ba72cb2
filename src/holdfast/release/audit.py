"""Try to refute what a job would promise: each table's statements and the total, on made-up data, from public files."""

from __future__ import annotations

import re
import sqlite3
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import numpy.typing as npt
from scipy import sparse

from holdfast.arguments import Refused, of_type, positive, shown, whole_numbers
from holdfast.arrays import Ints
from holdfast.auditing import Audit
from holdfast.auditing import audit as audited
from holdfast.auditing.pairs import Subject
from holdfast.constraints import System, invariant
from holdfast.privacy import Guarantee
from holdfast.queries import Query, workload
from holdfast.randomness import Stream
from holdfast.refinement import Gain, knowledge_gain
from holdfast.release.job.job import Job
from holdfast.release.job.table import Table
from holdfast.release.records.cells import count_cells
from holdfast.release.records.file_sources import SQLITE, begins
from holdfast.release.records.tabulate import distinct_values, groups_of
from holdfast.release.spec.sections import Elsewhere
from holdfast.release.storage.engine import quoted_name, quoted_text

# --- What an adversary with some knowledge would learn from a table of a job: a file of worlds, read and put to the
# test
# The file is YAML: `worlds` lists the datasets that are thought possible, each with its `cells` (counts of all cells of
# the table, in the order of its public file), its `odds` (1 where left out) and whether it has the `secret`; `table`
# names the table where there are several. It holds guesses, never the confidential data.


def gain(job: Job, file: Path) -> tuple[str, Gain]:
    """The table that a file speaks of, and what its adversary gains from it."""
    content = _content(file)
    table = _table(job, content.get("table"))
    worlds = content.get("worlds")
    if not isinstance(worlds, list) or len(worlds) < 2:
        raise Refused(f"{str(file)!r} must list two or more worlds under 'worlds', each with its cells and its secret")
    odds: dict[tuple[int, ...], Fraction] = {}
    secret = set()
    for number, world in enumerate(worlds, 1):
        truth, weight, has_it = _world(table, world, number)
        if truth in odds:
            raise Refused(f"world {number} of {str(file)!r} is listed before: give each table once, with its odds")
        odds[truth] = weight
        if has_it:
            secret.add(truth)
    total = sum(odds.values(), Fraction(0))
    return table.name, knowledge_gain(table.mechanism, {x: w / total for x, w in odds.items()}, secret)


def _content(file: Path) -> dict[str, Any]:
    from ruamel.yaml import YAML
    from ruamel.yaml.error import YAMLError

    try:
        content = YAML(typ="safe", pure=True).load(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise Refused(f"{str(file)!r} cannot be read: {error.strerror}") from None
    except (YAMLError, UnicodeDecodeError):
        raise Refused(f"{str(file)!r} is no YAML") from None
    if not isinstance(content, dict):
        raise Refused(f"{str(file)!r} must map names to values: worlds, and table where there are several")
    return content


def _table(job: Job, name: Any) -> Table:
    if name is None and len(job.tables) == 1:
        return job.tables[0]
    for table in job.tables:
        if table.name == name:
            return table
    raise Refused(f"table must be one of {', '.join(table.name for table in job.tables)}, found {shown(name)}")


def _world(table: Table, world: Any, number: int) -> tuple[tuple[int, ...], Fraction, bool]:
    if not isinstance(world, dict) or "cells" not in world or not isinstance(world.get("secret"), bool):
        raise Refused(f"world {number} must have 'cells', a list of counts, and 'secret', true or false")
    query = table.layout.query
    cells = whole_numbers(f"cells of world {number}", world["cells"], (query.cells or 0,))
    truth = tuple(int(value) for value in query.answer(cells))
    return truth, positive(f"odds of world {number}", world.get("odds", 1)), world["secret"]


# --- Try to refute that one record changes one row: the real query or view, run on made-up neighbours of small tables
# Only the definitions of a SQLite or DuckDB file are copied, and never a row: its tables are filled with made-up
# records,
# one by one, and after each the rows are counted as for a release.

#: Records up to which tables are filled one by one, at first and then, and up to which for a number in the query.
FEW, STEPS, MOST = 9, 80, 20_000
#: Records that are added by one statement.
AT_ONCE = 100
NOT_COPIED = "only the definitions of a SQLite or DuckDB file are copied: make one with the same views, and audit that"
OWN = "database_name = 'source' AND NOT internal"
ROWS_ARE_RECORDS = "the rows of a file are the records themselves: there is nothing to try"


@dataclass(frozen=True)
class SourceAudit:
    """What was tried: so many neighbouring tables of up to so many records; the worst pair, and what is allowed."""

    pairs: int
    largest: int
    changed: int
    allowed: int
    worst: str

    @property
    def violated(self) -> bool:
        return self.changed > self.allowed

    def __str__(self) -> str:
        tried = f"{self.pairs:,} pairs of made-up neighbouring tables of up to {self.largest:,} records"
        if not self.violated:
            return f"nothing was refuted: {tried}; the counts never changed by more than {self.allowed}"
        return f"VIOLATED: {self.worst} changes counts by {self.changed:,}, and {self.allowed} are allowed ({tried})"

    def as_mapping(self) -> dict[str, Any]:
        return {"violated": self.violated, **vars(self)}


def audit_source(job: Job, seconds: float, seed: int = 1) -> SourceAudit | str:
    """Fill copies of the source's tables with made-up records, and count after each; or say why there is nothing to."""
    file = _file(job)
    if file is None:
        return ROWS_ARE_RECORDS
    with tempfile.TemporaryDirectory() as folder:
        made = _SQLite if begins(file, SQLITE) else _DuckDB
        return _Trial(job, made.of(file, Path(folder) / file.name), np.random.default_rng(seed)).run(seconds)


def _file(job: Job) -> Path | None:
    """The file of the database; None where the source is no database."""
    source = job.spec.data.source
    if source is None:
        raise Refused(f"audit of a source needs data.source in the spec: {NOT_COPIED}")
    text = source.read(job.spec.at["data"]["source"]) if isinstance(source, Elsewhere) else source
    text = re.sub(r"^sqlite(\+\w+)?:///", "", text)
    if "://" in text:
        raise Refused(f"a database at an address is not audited: {NOT_COPIED}")
    path = job.spec.resolve(text)
    if not path.suffix.endswith(("sqlite", "sqlite3", "db")):
        return None
    if not path.is_file():
        raise job.spec.at["data"]["source"].refuse("there is no such file, whose definitions would be copied")
    return path


# --- made-up databases ---------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _SQLite:
    """A copy of the definitions of a SQLite file."""

    path: Path
    words: str

    @classmethod
    def of(cls, file: Path, path: Path) -> _SQLite:
        listed = "SELECT sql FROM sqlite_master WHERE sql IS NOT NULL AND type IN ('table', 'view') ORDER BY type"
        with closing(sqlite3.connect(f"file:{file}?mode=ro", uri=True)) as book:
            texts = [text for (text,) in book.execute(listed)]
        made = cls(path, "\n".join(texts))
        with made.opened() as execute:
            for text in texts:
                with suppress(sqlite3.Error):  # the system's own, and what needs more than this file has
                    execute(text)
        return made

    @contextmanager
    def opened(self) -> Iterator[Any]:
        with closing(sqlite3.connect(self.path)) as book:
            yield lambda words, values=(): book.execute(words, values).fetchall()
            book.commit()

    def tables(self) -> dict[str, dict[str, tuple[str, bool]]]:
        """The tables with their columns: the type of each, and whether its values differ."""
        with self.opened() as execute:
            names = execute("SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite%'")
            return {
                name: {row[1]: (row[2].upper(), bool(row[5])) for row in execute(f"PRAGMA table_info({quoted})")}
                for (name,) in names
                for quoted in [quoted_name(name)]
            }


@dataclass(frozen=True)
class _DuckDB:
    """A copy of the definitions of a DuckDB file."""

    path: Path
    words: str

    @classmethod
    def of(cls, file: Path, path: Path) -> _DuckDB:
        with duckdb.connect() as engine:
            engine.execute(f"ATTACH '{quoted_text(str(file))}' AS source (READ_ONLY)")
            engine.execute("SET enable_external_access = false")
            texts = [
                text
                for kind in ("duckdb_tables", "duckdb_views")
                for (text,) in engine.execute(f"SELECT sql FROM {kind}() WHERE {OWN}").fetchall()
            ]
        made = cls(path, "\n".join(texts))
        with made.opened() as execute:
            for text in (*texts, *texts[::-1]):  # views may rest on views that are listed later
                with suppress(duckdb.Error):
                    execute(text)
        return made

    @contextmanager
    def opened(self) -> Iterator[Any]:
        with duckdb.connect(str(self.path), config={"autoload_known_extensions": False}) as engine:
            yield lambda words, values=(): engine.execute(words, list(values)).fetchall()

    def tables(self) -> dict[str, dict[str, tuple[str, bool]]]:
        """The tables with their columns: the type of each, and whether its values differ."""
        listed = (
            "SELECT table_name, column_name, data_type FROM duckdb_columns() WHERE NOT internal AND NOT is_generated"
        )
        tables: dict[str, dict[str, tuple[str, bool]]] = {}
        with self.opened() as execute:
            views = {name for (name,) in execute("SELECT view_name FROM duckdb_views() WHERE NOT internal")}
            for table, column, kind in execute(listed):
                if table not in views:
                    tables.setdefault(table, {})[column] = (kind, False)
        return tables


# --- neighbouring tables -------------------------------------------------------------------------------------------


@dataclass
class _Trial:
    job: Job
    made: _SQLite | _DuckDB
    rng: np.random.Generator
    number: int = 0

    def run(self, seconds: float) -> SourceAudit:
        """Fill each table in turn while the others stay."""
        tables, until = self.made.tables(), time.monotonic() + seconds
        for name, columns in tables.items():
            self._add(name, columns, 9)
        best = SourceAudit(0, 0, 0, self._allowed, "")
        for sizes in self._sizes():
            for name, columns in tables.items():
                best = self._filled(name, columns, sizes, until, best)
        if not best.pairs:
            raise Refused("no table of the source could be filled with made-up records: nothing was tried")
        return best

    def _filled(
        self, name: str, columns: dict[str, tuple[str, bool]], sizes: list[int], until: float, best: SourceAudit
    ) -> SourceAudit:
        """Walk one table through the sizes, by one record or person at a time."""
        with self.made.opened() as execute:
            execute(f"DELETE FROM {quoted_name(name)}")
        size, before = 0, self._counts()
        for target in sizes:
            if time.monotonic() > until or best.violated:
                break
            if target > size + 1:
                size += self._add(name, columns, target - 1 - size)
                before = self._counts()
            for words in ("more", "less", "more") if target % 4 == 0 else ("more",):
                size += (
                    self._add(name, columns, 1, same=True) if words == "more" else -self._remove(name, columns, size)
                )
                after = self._counts()
                changed = int(np.abs(after - before).sum())
                before = after
                best = replace(best, pairs=best.pairs + 1, largest=max(best.largest, size))
                if changed > best.changed:
                    who = "one record" if self.job.spec.person is None else "one person"
                    best = replace(best, changed=changed, worst=f"{who} {words} in {name!r}, of then {size:,} records,")
        return best

    def _remove(self, name: str, columns: dict[str, tuple[str, bool]], size: int) -> int:
        """Remove a record, the first every other time, or all of one person; return how many went."""
        person, table = self.job.spec.person, quoted_name(name)
        column = quoted_name(person) if person in columns and person is not None else "rowid"
        with self.made.opened() as execute:
            place = int(self.rng.integers(max(size, 1))) * int(self.rng.integers(2))
            one = f"(SELECT {column} FROM {table} LIMIT 1 OFFSET {place})"
            ((gone,),) = execute(f"SELECT count(*) FROM {table} WHERE {column} = {one}")
            execute(f"DELETE FROM {table} WHERE {column} = {one}")
        return int(gone)

    @property
    def _allowed(self) -> int:
        unit = self.job.spec.privacy.unit
        sums = (table.layout.asked.sum_of for table in self.job.counting.tables)
        return sum(1 if each is None else each.most for each in sums) * (1 if unit is None else unit.most)

    def _sizes(self) -> tuple[list[int], list[int]]:
        """The sizes at which a record is added: few, and those about the numbers in the SQL; then all up to STEPS."""
        words = f"{self.job.spec.data.query or ''} {self.made.words}"
        near = {int(digits) + more for digits in re.findall(r"\d{1,6}", words) for more in (-1, 0, 1, 2)}
        first = {*range(1, FEW + 1), *(size for size in near if 0 < size <= MOST)}
        return sorted(first), sorted({*range(1, STEPS + 1)} - first)

    def _counts(self) -> Ints:
        flat = self.job.counting
        with distinct_values(flat, self.made.path, nobody=True) as engine:
            return np.concatenate([counted.cells for counted in count_cells(engine, flat.tables, groups_of(flat))])

    def _add(self, name: str, columns: dict[str, tuple[str, bool]], records: int, same: bool = False) -> int:
        """Add made-up records, of one new person where `same`; return how many went in."""
        unit, person = self.job.spec.privacy.unit, self.job.spec.person
        if same and unit is not None and person in columns:
            records = int(self.rng.integers(1, unit.most + 2))
        self.number += 1
        whose, added, count = self.number, 0, self.job.spec.data.count
        places = ", ".join("?" for _ in columns)
        listed = ", ".join(map(quoted_name, columns))
        with self.made.opened() as execute:
            if same and count in columns and self.rng.random() < 0.5:  # one record more in a row that there is
                more = f"{quoted_name(count)} = {quoted_name(count)} + 1"
                execute(
                    f"UPDATE {quoted_name(name)} SET {more} WHERE rowid = (SELECT max(rowid) FROM {quoted_name(name)})"
                )
                return 0
            for start in range(0, records, AT_ONCE):
                rows = min(AT_ONCE, records - start)
                values = []
                for _ in range(rows):
                    self.number += not same
                    who = whose if same else self.number
                    values += [self._value(column, *kind, who) for column, kind in columns.items()]
                with suppress(sqlite3.Error, duckdb.Error):  # a rule of the table that made-up records do not keep
                    listed_rows = ", ".join([f"({places})"] * rows)
                    execute(f"INSERT INTO {quoted_name(name)} ({listed}) VALUES {listed_rows}", values)
                    added += rows
        return added

    def _value(self, column: str, kind: str, differs: bool, person: int) -> Any:
        """A made-up value: of the public ones where the column is one of a table, or may be under another name."""
        if differs:
            self.number += 1
            return self.number
        if column == self.job.spec.person:
            return person
        if column == self.job.spec.data.count:
            return 1
        known = self._known
        texts = known.get(column) or [text for values in known.values() for text in values]
        number = "INT" in kind
        if number:
            texts = [text for text in texts if re.fullmatch(r"-?\d{1,9}", text)]
        if texts and (column in known or self.rng.random() < 0.8):
            text = texts[int(self.rng.integers(len(texts)))]
            return int(text) if number else text
        if any(words in kind for words in ("INT", "REAL", "DOUBLE", "FLOAT", "DEC", "NUM")):
            return int(self.rng.integers(24))
        return f"2022-01-{int(self.rng.integers(1, 29)):02}" if "DATE" in kind or "TIME" in kind else "x"

    @property
    def _known(self) -> dict[str, list[str]]:
        return {
            column: values.tolist()
            for table in self.job.counting.tables
            for key in table.layout.keys
            for column, values in zip(key.columns, key.values, strict=True)
        }


#: Kinds of made-up records that all tables count together, and outputs of all tables up to which they are.
KINDS, MOST_OUTPUTS = 24, 20_000
#: The name under which the total is reported.
TOGETHER = "all tables together"
#: The name under which the query or view behind the records is reported.
SOURCE = "the source"


@dataclass(frozen=True)
class JobAudit:
    """A report for each table, one for all together and one for the source, or the sentence why there is none."""

    title: str
    tables: tuple[tuple[str, Audit | SourceAudit | str], ...]

    @property
    def violated(self) -> bool:
        return any(not isinstance(result, str) and result.violated for _, result in self.tables)

    def __str__(self) -> str:
        lines = [f"{self.title}: {'a statement is VIOLATED' if self.violated else 'nothing was refuted'}"]
        for name, found in self.tables:
            lines.append(f"{name}: {f'not audited: {found}' if isinstance(found, str) else found}")
        return "\n".join(lines)

    def as_mapping(self) -> dict[str, Any]:
        tables = [
            {"name": name} | ({"refused": found} if isinstance(found, str) else found.as_mapping())
            for name, found in self.tables
        ]
        return {"title": self.title, "violated": self.violated, "tables": tables}


@dataclass(frozen=True, eq=False)
class _Together:
    """All tables of a job as one mechanism: the same made-up records, counted by every table, and the job's total."""

    tables: tuple[Table, ...]
    query: Query
    held: System | None
    guarantee: Guarantee

    @classmethod
    def of(cls, job: Job, seed: int = 1) -> _Together:
        """Make up kinds of records that every table can count."""
        if sum(table.layout.query.n for table in job.tables) > MOST_OUTPUTS:
            raise Refused(f"tables are audited together up to {MOST_OUTPUTS:,} values in all")
        cells = _cells(job.tables, np.random.default_rng(seed))
        counted = [table.layout.query.columns[:, found] for table, found in zip(job.tables, cells, strict=True)]
        systems = [table.mechanism.held for table in job.tables]
        rows = [
            sparse.csr_array((0, table.layout.query.n), dtype=np.int64) if system is None else system.invariants.A
            for table, system in zip(job.tables, systems, strict=True)
        ]
        exact = sparse.csr_array(sparse.block_diag(rows, format="csr"))
        held = invariant(exact).system(exact.shape[1]) if exact.shape[0] else None
        return cls(job.tables, workload(sparse.vstack(counted, format="csc")), held, job.guarantee)

    def simulate(self, truth: Any, size: int, stream: Stream) -> npt.NDArray[Any]:
        """Draw every table on its part of the truth, (size, all outputs)."""
        parts = np.split(truth, np.cumsum([table.layout.query.n for table in self.tables])[:-1])
        subjects = [Subject.of(table.mechanism, None, None) for table in self.tables]
        return np.hstack([each.draw(part, size, stream) for each, part in zip(subjects, parts, strict=True)])


def _cells(tables: tuple[Table, ...], rng: np.random.Generator) -> list[Ints]:
    """For each table the cells in which some made-up records are counted: equal columns have equal values."""
    places: dict[tuple[str, ...], Ints] = {}
    known: dict[str, tuple[tuple[str, ...], list[Any]]] = {}
    for key in (key for table in tables for key in table.layout.keys):
        for name, texts in zip(key.columns, key.values, strict=True):
            if known.setdefault(name, (key.columns, texts.tolist())) != (key.columns, texts.tolist()):
                raise Refused(f"tables with different values of the column {name} are not audited together")
        places.setdefault(key.columns, rng.integers(key.size, size=KINDS))
    return [
        np.ravel_multi_index(
            [places[key.columns] for key in table.layout.keys], [key.size for key in table.layout.keys]
        )
        for table in tables
    ]


def audit(
    job: Job, seconds: Any = 60, step: Callable[[str], None] = lambda _: None, *, source: bool = False
) -> JobAudit:
    """Audit the mechanism of every table, and several together against the total; refused where none can be audited.

    `source`: first the query or view behind the records, on made-up tables with the definitions of the real ones.
    """
    several = len(job.tables) > 1
    of_type("source", source, bool)
    effort = positive("seconds", seconds) / (len(job.tables) + several + source)
    made: list[tuple[str, Callable[[], Any]]] = [(t.name, lambda t=t: t.mechanism) for t in job.tables]  # type: ignore[misc]
    if several:
        made.append((TOGETHER, lambda: _Together.of(job)))
    results: list[tuple[str, Audit | SourceAudit | str]] = []
    if source:
        step("running the source on made-up records")
        results.append((SOURCE, audit_source(job, float(effort))))
    for name, mechanism in made:
        step(f"auditing {name}")
        try:
            results.append((name, audited(mechanism(), seconds=effort)))
        except Refused as refusal:
            results.append((name, str(refusal)))
    if all(isinstance(each, str) for _, each in results):
        raise Refused("; ".join(f"{name}: {each}" for name, each in results))
    return JobAudit(job.title, tuple(results))
