"""A commented spec to start from, made from a public domain file."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import duckdb

from holdfast.arguments import Refused
from holdfast.release.spec.sections import COUNTS, SECRET
from holdfast.release.storage.engine import WHOLE_TEXT, Unreadable, quoted_name, rows_of, session
from holdfast.release.table.public import ENDS

SPEC = """\
# A spec for holdfast. `holdfast plan {file}` says what it promises and how wrong each figure will be, before any
# confidential data is read; `holdfast check {file}` shows you alone how the records fit, and `holdfast release {file}`
# makes the release. `holdfast schema` describes every key.
title: {title}

data:
  source: {source}        # confidential records: files, a folder, or a database (with table: or query:)
{data}
  domain: {domain}        # public: the names of all places or values, never read from the records
  nulls: refuse           # records with a missing value: refuse, drop, or {{category: NAME}}
  outside: refuse         # records that are not in the domain: refuse, drop, or {{category: NAME}}

privacy:
  unit: {unit}            # {other_unit}
  neighbours: add-remove  # or replace-one
  epsilon: {epsilon}            # with delta, or rho instead

table:
{table}

hold:
  - consistent            # sums add up
  - nonnegative
{exact}

method: auto              # compares the methods that hold all of this and takes the most accurate one
output: release           # the folder that is made
ledger: holdfast-ledger.sqlite
"""
COUNTED = "  count: {}            # a row stands for that many records; without it, every row is one record"
NOT_COUNTED = "  # count: trips          # a column that says how many records a row stands for, where rows are counted"
EXACT = "- exact: [{}]    # published exactly, and so not protected"
GUESS = "  # guess: 100            # a public guess of a typical count, for the errors in the plan"


@dataclass(frozen=True)
class Suggested:
    """What a public file suggests: a kind of table with its columns (levels, the top one first), and one of counts.

    `all` are the columns of the file that hold no counts.
    """

    kind: str
    columns: tuple[str, ...]
    count: str | None
    all: tuple[str, ...]

    @property
    def named(self) -> tuple[str, ...]:
        """The columns that the records must have: of a hierarchy the lowest level."""
        return self.columns[-1:] if self.kind == "hierarchy" else self.columns


@dataclass(frozen=True)
class Answers:
    """What a curator says besides: where the records are and how they call a column, and what is promised to whom.

    `unit`: the column that names a person and how many records of each are kept; None: single records are protected.
    """

    source: str = "records.parquet"
    table: str | None = None
    count: str | None = None
    columns: Mapping[str, str] = field(default_factory=dict)
    unit: tuple[str, int] | None = None
    epsilon: str = "1.0"
    exact: tuple[str, ...] = ()


def suggested(domain: Path) -> Suggested:
    names, count, rows, distinct, nested = _columns(domain)
    levels = [name for name in names if nested[name] and distinct[name] <= rows]
    levels = sorted(levels, key=lambda name: distinct[name])
    if levels and distinct[levels[-1]] == rows and rows > 1:
        return Suggested("hierarchy", tuple(levels), count, tuple(names))
    return Suggested("histogram" if len(names) == 1 else "cube", tuple(names), count, tuple(names))


def levels_among(found: Suggested, names: tuple[str, ...]) -> Suggested:
    """The same with the levels (or axes) that were named; refused where the file has no such column."""
    missing = next((name for name in names if name not in found.all), None)
    if missing is not None:
        raise Refused(f"the domain file has no column {missing!r}: it has {', '.join(found.all)}")
    if found.kind == "hierarchy" and names and names[-1] != found.columns[-1]:
        raise Refused(f"the last level must be {found.columns[-1]!r}, which names every row of the domain file")
    return replace(found, columns=names or found.columns)


def starting_spec(found: Suggested, answers: Answers, domain: Path, file: str = "spec.yaml") -> str:
    """Return the text of a spec; `domain` is how it names the public file."""
    if SECRET.search(answers.source):
        raise Refused("a password has no place in a spec: leave it to the environment, and name a source without it")
    listed = ", ".join(map(_plain, found.columns))
    words = {
        "hierarchy": f"  hierarchy: [{listed}]   # levels, the top one first\n  root: all",
        "histogram": f"  histogram: {listed}",
        "cube": f"  cube: [{listed}]   # axes; margins: [[a], [a, b], []] measures margins instead",
    }
    first = "total" if found.kind == "histogram" else _plain(found.columns[0])
    exact = (
        f"  {EXACT.format(', '.join(map(_plain, answers.exact)))}" if answers.exact else f"  # {EXACT.format(first)}"
    )
    data = [COUNTED.format(_plain(answers.count)) if answers.count else NOT_COUNTED]
    if answers.table:
        data.append(f"  table: {_plain(answers.table)}")
    if answers.columns:
        pairs = ", ".join(f"{_plain(name)}: {_plain(called)}" for name, called in answers.columns.items())
        data.append(f"  columns: {{{pairs}}}   # how the records call these columns")
    unit = (
        "record" if answers.unit is None else f"{{column: {_plain(answers.unit[0])}, max_records: {answers.unit[1]}}}"
    )
    person = "or {column: person, max_records: 5} where a person can have several records"
    return SPEC.format(
        unit=unit,
        other_unit=person if answers.unit is None else "or record, where every record is somebody else's",
        file=file,
        title=_plain(domain.stem.replace("_", " ").replace("-", " ").capitalize()),
        source=_plain(answers.source),
        data="\n".join(data),
        domain=_plain(str(domain)),
        epsilon=answers.epsilon,
        table=words[found.kind]
        + "\n  # guess: 100            # a public guess of a typical count, for the errors in the plan",
        exact=exact,
    )


def _plain(text: str) -> str:
    """Write a text so that YAML reads it back as it is."""
    simple = text.replace("_", "").replace("-", "").replace(" ", "").replace(".", "").replace("/", "")
    reserved = text.lower() in ("null", "true", "false", "yes", "no", "on", "off")
    if simple.isalnum() and simple[0].isalpha() and text == text.strip() and text[0].isalnum() and not reserved:
        return text
    return "'" + text.replace("'", "''") + "'"


def _columns(path: Path) -> tuple[list[str], str | None, int, dict[str, int], dict[str, bool]]:
    """Return the columns, the one of counts if there is one, the number of rows, and about the others: how many
    distinct values each has, and which nest in each other.
    """
    if not path.name.endswith(ENDS):
        raise Refused(f"a domain file must end in {' or '.join(ENDS)}, found {path.name!r}")
    if not os.path.exists(path):
        raise Refused(f"there is no domain file {str(path)!r}")
    with session() as engine:
        try:
            reader = rows_of(path)
            names = [row[0] for row in engine.execute(f"DESCRIBE FROM {reader}").fetchall()]
            counted = _counts(engine, reader, names)
            names = [name for name in names if name != counted]

            def count(*columns: str) -> int:
                listed = ", ".join(map(quoted_name, columns))
                query = f"SELECT count(*) FROM (SELECT DISTINCT {listed} FROM {reader})"
                return int(engine.execute(query).fetchall()[0][0])

            rows = int(engine.execute(f"SELECT count(*) FROM {reader}").fetchall()[0][0])
            distinct = {name: count(name) for name in names}
            # A chain from the finest column up: each further column must be determined by the one below it.
            nested, below = dict.fromkeys(names, False), None
            for name in sorted(names, key=lambda each: -distinct[each]):
                if below is None or (count(name, below) == distinct[below] and distinct[name] < distinct[below]):
                    nested[name], below = True, name
        except (duckdb.Error, Unreadable):
            raise Refused(f"the domain file {path.name!r} cannot be read: a CSV file needs a header") from None
    if rows == 0:
        raise Refused(f"the domain file {path.name!r} has no rows")
    return names, counted, rows, distinct, nested


def _counts(engine: duckdb.DuckDBPyConnection, reader: str, names: list[str]) -> str | None:
    """The column, not the only one, that is called like counts and holds whole numbers."""
    for name in names if len(names) > 1 else ():
        whole = f"regexp_full_match(trim(CAST({quoted_name(name)} AS VARCHAR)), '{WHOLE_TEXT}')"
        if name.lower() in COUNTS:
            return name if engine.execute(f"SELECT bool_and({whole}) FROM {reader}").fetchall()[0][0] else None
    return None
