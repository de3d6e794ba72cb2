"""A commented spec to start from, made from a public domain file."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
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
  unit: record            # or {{column: person, max_records: 5}} where a person can have several records
  neighbours: add-remove  # or replace-one
  epsilon: 1.0            # with delta, or rho instead

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
CATEGORIES = "  # categories: [age]     # counts by these, too; their values under data: values: {age: [young, old]}"
GUESS = "  # guess: 100            # a public guess of a typical count, for the errors in the plan"


@dataclass(frozen=True)
class Suggested:
    """What a public file suggests: a kind of table with its columns (levels, the top one first), and one of counts.

    `renamed`: what the records call some of the columns; `further`: what other columns they have.
    """

    kind: str
    columns: tuple[str, ...]
    count: str | None
    renamed: dict[str, str] = field(default_factory=dict)
    further: tuple[str, ...] = ()


def suggested(domain: Path) -> Suggested:
    names, count, rows, distinct, nested = _columns(domain)
    levels = [name for name in names if nested[name] and distinct[name] <= rows]
    levels = sorted(levels, key=lambda name: distinct[name])
    if levels and distinct[levels[-1]] == rows and rows > 1:
        return Suggested("hierarchy", tuple(levels), count)
    return Suggested("histogram" if len(names) == 1 else "cube", tuple(names), count)


def starting_spec(found: Suggested, source: str, domain: Path, file: str, table: str | None = None) -> str:
    """Return the text of a spec; `domain` is how it names the public file, `table` the one inside a database."""
    if SECRET.search(source):
        raise Refused("a password has no place in a spec: leave it to the environment, and name a source without it")
    listed = ", ".join(map(_plain, found.columns))
    words = {
        "hierarchy": f"  hierarchy: [{listed}]   # levels, the top one first\n  root: all\n{CATEGORIES}",
        "histogram": f"  histogram: {listed}",
        "cube": f"  cube: [{listed}]   # axes; margins: [[a], [a, b], []] measures margins instead",
    }
    data = [f"  table: {_plain(table)}"] if table else []
    if found.renamed:
        names = ", ".join(f"{_plain(column)}: {_plain(name)}" for column, name in found.renamed.items())
        data.append(f"  columns: {{{names}}}   # how the records call columns of the domain: look at it")
    data.append(COUNTED.format(_plain(found.count)) if found.count else NOT_COUNTED)
    further = [_plain(name) for name in found.further if name not in found.columns]
    if further:
        names = ", ".join(further)
        data.append(f"  # the records also have: {names} (for categories, or the person of a unit)")
    first = "total" if found.kind == "histogram" else _plain(found.columns[0])
    exact = f"  # - exact: [{first}]    # published exactly, and so not protected"
    if found.kind == "hierarchy":
        exact += f"; beside categories: exact: [{{of: {first}, by: []}}] for totals over all of them"
    return SPEC.format(
        file=file,
        title=_plain(domain.stem.replace("_", " ").replace("-", " ").capitalize()),
        source=_plain(source),
        data="\n".join(data),
        domain=_plain(str(domain)),
        table=f"{words[found.kind]}\n{GUESS}",
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
