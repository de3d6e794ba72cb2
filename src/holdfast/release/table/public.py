"""Reading public files: the domain of the tables, the values and labels of their columns, guesses of counts."""

from __future__ import annotations

import csv
import difflib
import hashlib
import io
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import duckdb
import numpy as np

from holdfast.arguments import Refused
from holdfast.release.spec.places import At
from holdfast.release.spec.sections import DataSpec
from holdfast.release.spec.spec import Spec
from holdfast.release.spec.table import TableSpec
from holdfast.release.storage.argus import levels
from holdfast.release.storage.engine import PARQUET, Unreadable, as_text, header_of, quoted_name, rows_of, session
from holdfast.release.storage.tables import Texts, label_column
from holdfast.release.table.area_names import distinct

#: A hierarchy of τ-ARGUS: its columns are called level_1, level_2, …
HIERARCHY = ".hrc"
#: The name for people of every code of a column.
Labels = dict[str, dict[str, str]]
#: Ends of the names of public files.
ENDS = (PARQUET, ".csv", HIERARCHY)


@dataclass
class PublicFiles:
    """The public files of one spec, each read once; `hashes` tells which content was read. `at` is where `data` is."""

    data: DataSpec
    at: At
    hashes: dict[str, str] = field(default_factory=dict)
    _read: dict[tuple[str, str], Texts] = field(default_factory=dict)

    def column(self, file: str, name: str, at: At, asked: At | None = None) -> Texts:
        """Return one column as texts, None where there is no value, in the order of the rows.

        `at` is where the spec names the file, `asked` where it asks for the column if that is elsewhere.
        """
        if (file, name) not in self._read:
            self._read[file, name] = self._texts(file, name, at, asked or at)
        return self._read[file, name]

    def _texts(self, file: str, name: str, at: At, asked: At) -> Texts:
        path = self.at.places.resolve(file)
        if not path.name.endswith(ENDS):
            raise at.refuse(f"the public file {file!r} must end in {' or '.join(ENDS)}", found=file)
        try:
            if os.path.exists(path) and not os.path.isfile(path):
                raise at.refuse(f"{file!r} is no plain file: name a file of rows", found=file)
            if file not in self.hashes:
                with path.open("rb") as content:
                    self.hashes[file] = hashlib.file_digest(content, "sha256").hexdigest()
        except FileNotFoundError:
            near = (
                [each.name for each in path.parent.glob("*") if each.suffix in ENDS]
                if os.path.isdir(path.parent)
                else []
            )
            raise at.refuse(f"there is no file {file!r}", file, difflib.get_close_matches(file, near)) from None
        except OSError as error:
            raise at.refuse(f"the file {file!r} cannot be read: {error.strerror}", found=file) from None
        if path.suffix == HIERARCHY:
            try:
                columns = levels(path)
            except Refused as error:
                raise at.refuse(str(error), found=file) from None
            if name not in columns:
                raise asked.refuse(f"the file {file!r} has no column {name!r}", name, columns)
            return np.array(columns[name], dtype=object)
        with session() as engine:
            try:
                rows = rows_of(path)
                kinds = {row[0]: str(row[1]) for row in engine.execute(f"DESCRIBE FROM {rows}").fetchall()}
                if name not in kinds:
                    sentence = f"the file {file!r} has no column {name!r}"
                    raise asked.refuse(f"{sentence}: correct the name, or list values under data.values", name, kinds)
                texts = f"SELECT {as_text(quoted_name(name), kinds[name])} AS v FROM {rows}"
                found = engine.execute(texts).fetchnumpy()["v"]
            except (duckdb.Error, Unreadable):
                if path.suffix == PARQUET:
                    raise at.refuse(f"the file {file!r} is not readable as Parquet", found=file) from None
                return _line_by_line(path, name, file, at)
        column: Any = np.ma.asarray(found, dtype=object)
        return np.where(np.ma.getmaskarray(column), np.array(None, dtype=object), np.ma.getdata(column))

    def values(self, column: str, at: At) -> Texts:
        """Return the public values of a column, each once, in the order of the spec or of first appearance."""
        data = self.data
        listed: Any = data.values.get(column)
        if isinstance(listed, tuple):
            where = self.at["values"][column]
            twice = next((value for i, value in enumerate(listed) if value in listed[:i]), None)
            if twice is not None:
                raise where.refuse(f"the value {twice!r} occurs twice", found=twice)
            if not listed:
                raise where.refuse("at least one value is needed, found none")
            return np.array(listed, dtype=object)
        if listed is None and data.domain is None:
            sentence = (
                f"the values of {column!r} must be public: list them under data.values, or name a data.domain file"
            )
            raise at.refuse(sentence, found=column)
        where = self.at["domain"] if listed is None else self.at["values"][column]
        texts = self.column(data.domain if listed is None else listed, column, where, at)  # type: ignore[arg-type]
        known = list(dict.fromkeys(text for text in texts.tolist() if text is not None))
        if not known:
            raise where.refuse(f"the column {column!r} has no values", found=column)
        return np.array(known, dtype=object)


def _line_by_line(path: Path, name: str, file: str, at: At) -> Texts:
    """Read a column of a CSV file whose lines end in different ways; a line that is wrong is refused by its number."""
    number, found, content = 1, [], path.read_bytes()
    wrong = "cannot be read: a CSV file is UTF-8, with a header and quotes in pairs"
    try:
        between, names = header_of(path)
        reader = csv.reader(io.StringIO(content.decode("utf-8-sig"), newline=""), delimiter=between, strict=True)
        for row in reader:
            if row and len(row) != len(names):
                wrong = (
                    f"does not have {len(names)} values, as the first has: a value with {between!r} in it needs quotes"
                )
                break
            found += [row[names.index(name)] or None] if row else []
            number = reader.line_num + 1
        else:
            return np.array(found[1:], dtype=object)
    except UnicodeDecodeError as error:
        number = content[: error.start].count(b"\n") + 1
    except (Unreadable, csv.Error, ValueError):
        pass
    raise at.refuse(f"line {number} of {file!r} {wrong}", found=file)


# --- names for people beside codes ------------------------------------------------------------------------------------


def labels_of(spec: Spec, asked: TableSpec, files: PublicFiles, columns: Mapping[str, Texts]) -> Labels:
    """Return what the codes of a table's columns are called, for those columns that have labels."""
    found: Labels = {}
    for column, said in spec.data.labels.items():
        if column not in asked.columns:
            continue
        at = spec.at["data"]["labels"][column]
        beside = label_column(column)
        if beside in columns:
            raise at.refuse(f"the labels of {column!r} would be called {beside!r}, as a column is already: rename it")
        codes = dict.fromkeys(distinct(columns, column))
        named = _listed(said, codes, column, at) if isinstance(said, dict) else _read(spec, column, said, files, at)
        found[column] = {code: named.get(code, code) for code in codes}
    return found


def label_columns(labels: Labels, names: Mapping[str, Texts]) -> dict[str, Texts]:
    """Return the columns of labels for some rows, empty where a row is a sum over the codes."""
    return {
        label_column(column): np.array([None if code is None else of[code] for code in names[column]], dtype=object)
        for column, of in labels.items()
    }


def refuse_unused_labels(spec: Spec) -> None:
    """Refuse labels of a column that no table has: most likely it is misspelt."""
    used = dict.fromkeys(column for asked in spec.tables for column in asked.columns)
    for column in spec.data.labels:
        if column not in used:
            raise spec.at["data"]["labels"].refuse(f"no table has a column {column!r}", column, list(used))


def _listed(said: Mapping[str, str], codes: Mapping[str, None], column: str, at: At) -> Mapping[str, str]:
    for code in said:
        if code not in codes:
            raise at.refuse(f"{column!r} has no value {code!r}", code, list(codes))
    return said


def _read(spec: Spec, column: str, beside: str, files: PublicFiles, at: At) -> dict[str, str]:
    """Read labels that stand in a column of the public file beside the codes."""
    listed = spec.data.values.get(column)
    file = listed if isinstance(listed, str) else spec.data.domain if listed is None else None
    if file is None:
        raise at.refuse(f"the values of {column!r} stand in the spec: write their labels there too, {{code: label}}")
    named: dict[str, str] = {}
    for code, label in zip(
        files.column(file, column, at).tolist(), files.column(file, beside, at).tolist(), strict=True
    ):
        if code is None or label is None:
            continue
        if named.setdefault(code, label) != label:
            sentence = f"{code!r} has two labels in {file!r}, {named[code]!r} and {label!r}: leave one of them"
            raise at.refuse(sentence, found=beside)
    return named
