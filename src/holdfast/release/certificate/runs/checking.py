"""Check a table in runs from its files: part after part what concerns one part, and then what concerns all of them."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from holdfast.arrays import Ints
from holdfast.release.certificate.bars import ends_findings, value_findings
from holdfast.release.certificate.certificate import TableCertificate
from holdfast.release.certificate.runs.adding import Adding
from holdfast.release.certificate.runs.reading import (
    UNREADABLE,
    kinds_of,
    numbered,
    other_copy,
    other_records,
    read_part,
)
from holdfast.release.storage.coded import Coded, hash_names
from holdfast.release.storage.parts import ROW, part_names
from holdfast.release.storage.tables import FIGURES, MEASUREMENTS, Columns, label_column, missing

Findings = Iterator[str]
#: What is wrong, by the name of the check that finds it: the first thing of each.
Wrong = dict[str, str]


@dataclass(eq=False)
class Runs:
    """A table in runs, read part after part; `values` of all rows are kept."""

    folder: Path
    table: TableCertificate
    wrong: Wrong = field(default_factory=dict)
    read: int = 0

    @cached_property
    def values(self) -> Any:
        """The values of all rows, as far as they were read."""
        return np.zeros(self.table.rows, np.int64 if self.table.holds.whole else np.float64)

    @cached_property
    def adding(self) -> Adding:
        """What was seen of the areas."""
        return Adding(self.table.places, self.values)

    def checked(self) -> Wrong:
        """Read everything; return what is wrong, by the names of checks."""
        table, hashed = self.table, hashlib.sha256()
        if table.kind != "areas" or not table.places or table.rows != table.outputs:
            return {"rows": "only tables of areas are written in runs"}
        for number in range(table.parts):
            if not self._part(number, hashed):
                return self.wrong
        if self.read != table.rows:
            self._note("rows", iter([f"{table.parquet} has {self.read} rows and not {table.rows}"]))
        if f"sha256:{hashed.hexdigest()}" != table.domain_hash:
            self._note("rows", iter(["the names of the rows are not those of the certified domain"]))
        if table.holds.consistent and "sums" not in self.wrong:
            self._note("sums", self.adding.between())
        return self.wrong

    def _note(self, check: str, findings: Findings) -> None:
        """Keep the first thing that is found wrong."""
        try:
            found = next(findings, None)
        except UNREADABLE as error:
            found = f"a file cannot be read ({type(error).__name__})"
        if found is not None:
            self.wrong.setdefault(check, found)

    def _files(self, number: int, name: str | None) -> Path:
        return self.folder / part_names(str(name), number + 1)[number]

    def _part(self, number: int, hashed: Any) -> bool:
        """Check a part; False where its rows are not what they must be, and nothing else can be said."""
        table, path, first = self.table, self._files(number, self.table.parquet), self.read
        try:
            kinds = kinds_of(path)
            if list(kinds) != [ROW, *table.columns, *FIGURES, *map(label_column, table.labels)]:
                self._note("rows", iter([f"{table.parquet} does not have the certified columns"]))
                return False
            names, columns = read_part(path, [*table.columns, *map(label_column, table.labels)])
        except UNREADABLE as error:
            self._note("rows", iter([f"{table.parquet} cannot be read ({type(error).__name__})"]))
            return False
        labels = {name: names.pop(label_column(name)) for name in table.labels}
        self._note("rows", self._shape(names, columns, first))
        if "rows" in self.wrong:
            return False
        last = self.read = first + len(columns[ROW])
        self.values[first:last] = columns["value"]
        for name in table.columns:
            hash_names(hashed, name, names[name])
        own = np.array(self._exact[(self._exact >= first) & (self._exact < last)] - first)
        csv = self._files(number, table.csv)
        findings: dict[str, Callable[[], Findings]] = {
            "copies": lambda: other_copy(path, csv, kinds, str(csv.relative_to(self.folder))),
            "labels": lambda: _labels(names, labels),
            "sums": lambda: self.adding.read(names, first) if table.holds.consistent else iter(()),
            "intervals": lambda: ends_findings(
                self.values[first:last], columns["low"], columns["high"], table.interval.basis, own
            ),
            "measurements": lambda: self._measurements(number, first, last),
            "records": lambda: self._records(number, path),
        }
        for name, find in findings.items():
            if name not in self.wrong:
                self._note(name, find())
        return True

    @cached_property
    def _exact(self) -> Ints:
        """The rows of exact figures that are single figures."""
        figures = self.table.holds.exact
        return np.array([rows[0] for each in figures for rows in each.rows if len(rows) == 1], dtype=np.int64)

    def _shape(self, names: dict[str, Coded], columns: Columns, first: int) -> Findings:
        table, value = self.table, columns["value"]
        if not numbered(columns, first, None) or first + len(value) > table.rows:
            yield "its parts do not have every row once, in their order"
        if len(value) == 0:
            yield f"{table.parquet} has a part without rows"
        yield from value_findings(value, table)
        level = names[table.columns[0]]
        if not level.told.all() or not {text for text in level.texts if text is not None} <= set(table.levels):
            yield f"{table.parquet} has rows of a level that is not certified"

    def _measurements(self, number: int, first: int, last: int) -> Findings:
        """Say what is wrong with the noisy answers of a part."""
        if self.table.measurements is None or self.table.measurements_csv is None:
            return
        path, csv = self._files(number, self.table.measurements), self._files(number, self.table.measurements_csv)
        kinds, called = kinds_of(path), self.table.measurements
        if list(kinds) != [ROW, *MEASUREMENTS]:
            yield f"{called} does not have the columns {', '.join(MEASUREMENTS)}"
            return
        _, columns = read_part(path, [])
        if any(missing(columns[each]).any() for each in MEASUREMENTS):
            yield f"{called} has empty entries"
        elif not numbered(columns, first, last):
            yield f"{called} speaks of rows that the table does not have"
        elif not (np.asarray(columns["standard_deviation"]) >= 0).all():
            yield f"{called} has standard deviations below 0"
        copy = {ROW: kinds[ROW], MEASUREMENTS[1]: kinds[MEASUREMENTS[1]], "count": kinds[MEASUREMENTS[0]]}
        yield from other_copy(path, csv, copy, str(csv.relative_to(self.folder)), {"count": MEASUREMENTS[0]})

    def _records(self, number: int, path: Path) -> Findings:
        """Say what is wrong with the synthetic records of a part."""
        for name in (self.table.records, self.table.records_csv):
            if name is not None:
                records = self._files(number, name)
                called = str(records.relative_to(self.folder))
                yield from other_records(path, records, self.table.record_columns, called)


def _labels(names: dict[str, Coded], labels: dict[str, Coded]) -> Findings:
    """Say which codes do not have one label each."""
    for name, said in labels.items():
        pairs = np.unique(np.stack([names[name].codes, said.codes]), axis=1).T.tolist()
        known = [(names[name].texts[code], said.texts[label]) for code, label in pairs]
        if len({code for code, _ in known}) < len(known) or any(
            (code is None) != (text is None) for code, text in known
        ):
            yield f"a code in {name} has no label, or two"
