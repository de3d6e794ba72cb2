"""Values of records that mean a public name: a list of the curator's own, as confidential as the records.

Each value is read as one name, whatever other records say, so that a row goes on to be made from one record alone. The
statement takes the list as fixed, and the certificate says that there is one, and nothing of what is in it.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import duckdb
import numpy as np

from holdfast.release.records.cells import VALUES, columns_of
from holdfast.release.signing import write_private
from holdfast.release.storage.files import read_plain
from holdfast.release.table.laid import Laid

#: The columns of a list, and one more that is not read: in what a value and its name differ.
HEADER, DIFFERENCE = ("column", "value", "name"), "difference"


def respell(engine: duckdb.DuckDBPyConnection, job: Laid) -> None:
    """Give distinct values of the records their public names."""
    if job.spec.data.spelling is None:
        return
    used = columns_of(job.tables)
    for column, names in _read(job).items():
        texts = {"value": np.array([*names], dtype=object), "name": np.array([*names.values()], dtype=object)}
        engine.register("spelling", texts)
        text = f"t{used.index(column)}"
        engine.execute(f"UPDATE {VALUES} SET {text} = spelling.name FROM spelling WHERE {text} = spelling.value")
        engine.unregister("spelling")


def write(path: Path, rows: Iterable[Sequence[str]]) -> None:
    """Write a list with rows of a column, a value, a name and their difference, which its owner alone can read."""
    made = io.StringIO()
    csv.writer(made, lineterminator="\n").writerows([(*HEADER, DIFFERENCE), *rows])
    write_private(path, made.getvalue().encode(), 0o600)


def _read(job: Laid) -> Mapping[str, Mapping[str, str]]:
    """The names by columns, as the records call these, and values; a refusal says the line and no value."""
    at, called = job.spec.at["data"]["spelling"], job.spec.data.columns
    known: dict[str, set[str]] = {}
    for table in job.tables:
        for key in table.layout.keys:
            for column, texts in zip(key.columns, key.values, strict=True):
                known.setdefault(column, set()).update(texts.tolist())
    names: dict[str, dict[str, str]] = {}
    assert job.spec.data.spelling is not None
    try:
        content = read_plain(job.spec.resolve(job.spec.data.spelling)).decode("utf-8-sig")
        rows = csv.DictReader(io.StringIO(content), strict=True)
        if not {*HEADER} <= {*(rows.fieldnames or ())}:
            raise at.refuse(f"the list of spellings needs the columns {', '.join(HEADER)}")
        for row in rows:
            column, value, name = (row[part] or "" for part in HEADER)
            column = called.get(column, column)
            where = f"line {rows.line_num} of the list of spellings"
            if column not in known:
                raise at.refuse(f"{where} is about a column that no table has", allowed=sorted(known))
            if name not in known[column]:
                raise at.refuse(f"{where} has a name that is not public: write a public one, or leave the line out")
            if not value or value in known[column] or names.setdefault(column, {}).setdefault(value, name) != name:
                raise at.refuse(f"{where} has a value that is empty, a public name itself, or listed with another name")
    except (OSError, UnicodeError, csv.Error):
        raise at.refuse("the list of spellings cannot be read: a CSV file in UTF-8 is needed") from None
    return names
