"""A table in runs as its CSV files have it: read once, area after area, since it may be larger than memory."""

from __future__ import annotations

import csv
import hashlib
import json
import os
import sys
from array import array
from collections import Counter
from fractions import Fraction
from typing import Any

from holdfast.release.stranger.areas import Areas
from holdfast.release.stranger.reading import Broken, Json, content_of, names_of
from holdfast.release.stranger.table import Findings, Table, ends_wrong, refuse_other_levels


class Reals:
    """Real values, kept as doubles and read as fractions."""

    def __init__(self) -> None:
        self.numbers = array("d")

    def append(self, value: Fraction) -> None:
        """Keep a value."""
        self.numbers.append(float(value))

    def __len__(self) -> int:
        return len(self.numbers)

    def __getitem__(self, row: int) -> Fraction:
        return Fraction(self.numbers[row])


class Runs(Table):
    """A table whose parts follow each other, with whole areas in each; what is wrong is found while it is read."""

    def __init__(self, folder: str, told: Json) -> None:
        self.told, self.holds, self.folder = told, told["holds"], folder
        self.count, self.outputs, self.whole = told["rows"], told["outputs"], self.holds["whole"]
        self.parts, self.places = told["parts"], told["places"]
        if told["kind"] != "areas" or self.count != self.outputs or not self.places:
            raise Broken("only tables of areas are written in runs")
        refuse_other_levels(told)
        self.values: Any = array("q") if self.whole else Reals()
        self.rows = {}
        self.wrong: dict[str, str] = {}
        self.areas = Areas(len(self.places), self.different)
        self.alone = {rows[0] for figure in self.holds["exact"] for rows in figure["rows"] if len(rows) == 1}
        found = hashlib.sha256()
        for number in range(self.parts):
            self.part(number, found)
        if len(self.values) != self.count:
            raise Broken(f"{told['csv']} does not have {self.count} rows")
        if "sha256:" + found.hexdigest() != told["domain_hash"]:
            raise Broken("the names of the rows are not those of the certified domain")

    def different(self, one: Any, two: Any) -> bool:
        """Say whether two lists of values do not have the same sum."""
        return self.unequal(sum(one), two)

    def lines(self, name: str, number: int, head: list[str]) -> Any:
        """Read the lines of a part behind its head, one after the other."""
        file = names_of(name, number + 1)[number]
        content_of_file = content_of(os.path.join(self.folder, file), None).decode("utf-8")
        lines = csv.reader(content_of_file.splitlines(keepends=True), strict=True)
        if next(lines, None) != head:
            raise Broken(f"{file} does not have the certified columns")
        for line in lines:
            if len(line) != len(head):
                raise Broken(f"{file} has rows of unequal length")
            yield [text or None for text in line]

    def part(self, number: int, found: Any) -> None:
        """Read a part of the table, and what lies beside it."""
        columns, first = self.told["columns"], len(self.values)
        labels = [f"{name}_label" for name in self.told.get("labels", [])]
        numbers: list[dict[Any, int]] = [{} for _ in columns]
        codes = [array("I") for _ in columns]
        at = 1 + len(self.places), 1 + len(columns)
        area: Any = None
        entries: list[Any] = []
        cells: Counter[Any] = Counter()
        record = [columns.index(name) for name in self.told["record_columns"]]
        for line in self.lines(self.told["csv"], number, ["row", *columns, "value", "low", "high", *labels]):
            names = line[1 : at[1]]
            row = len(self.values)
            if line[0] != str(row):
                raise Broken(f"the parts of {self.told['csv']} do not have every row once, in their order")
            if names[0] not in self.told["levels"]:
                raise Broken("there are rows of a level that is not certified")
            for known, code, text in zip(numbers, codes, names, strict=True):
                code.append(known.setdefault(text, len(known)))
            value = self.number(line[at[1]])
            path = tuple(names[1 : at[0]])
            if path != area:
                self.take_area(area, entries, row)
                area, entries = path, []
            entries.append((names[0], *names[at[0] :]))
            self.values.append(value)
            self.ends(row, value, *line[at[1] + 1 : at[1] + 3])
            if record and value and all(names[i] is not None for i in record):
                cells[tuple(names[i] for i in record)] = value
        self.take_area(area, entries, len(self.values))
        for name, known, code in zip(columns, numbers, codes, strict=True):
            found.update(json.dumps([name, list(known)], ensure_ascii=False, separators=(",", ":")).encode())
            if sys.byteorder == "big":
                code.byteswap()
            found.update(code.tobytes())
        self.noisy(number, first)
        self.counted(number, cells)

    def take_area(self, area: Any, entries: list[Any], end: int) -> None:
        """Take in an area that was read to its end."""
        if area is not None and self.holds["consistent"] and "sums" not in self.wrong:
            first = end - len(entries)
            wrong = self.areas.take(area, entries, self.take(range(first, end)), first)
            if wrong is not None:
                self.wrong["sums"] = wrong

    def ends(self, row: int, value: Any, low: str | None, high: str | None) -> None:
        """Check that the ends of an interval can be what they are said to be."""
        basis, ends = self.told["interval"]["basis"], [None if text is None else float(text) for text in (low, high)]
        for wrong in ends_wrong(basis, value, ends[0], ends[1], row in self.alone):
            self.wrong.setdefault("intervals", wrong)

    def noisy(self, number: int, first: int) -> None:
        """Check the noisy answers of a part."""
        if self.told["measurements_csv"] is None:
            return
        before = first - 1
        for row, deviation, count in self.lines(
            self.told["measurements_csv"], number, ["row", "standard_deviation", "count"]
        ):
            if row is None or not row.isdecimal() or not before < int(row) < len(self.values):
                self.wrong.setdefault("beside", "the noisy answers speak of rows that the table does not have")
                return
            before = int(row)
            if deviation is None or count is None:
                self.wrong.setdefault("beside", "the noisy answers have empty entries")
            elif not float(deviation) >= 0 or float(count) != float(count):
                self.wrong.setdefault("beside", "the noisy answers have standard deviations below 0")

    def counted(self, number: int, cells: Any) -> None:
        """Check the synthetic records of a part."""
        if self.told["records_csv"] is not None:
            names = self.told["record_columns"]
            if Counter(map(tuple, self.lines(self.told["records_csv"], number, names))) != cells:
                self.wrong.setdefault("beside", "the synthetic records do not count to the table")

    def sums(self) -> Findings:
        """Say what does not add up."""
        if "sums" in self.wrong:
            yield self.wrong["sums"]
        else:
            yield from self.areas.between()

    def further(self) -> Findings:
        """There are no rows behind the outputs."""
        yield from ()

    def intervals(self) -> Findings:
        """Say what is wrong with intervals."""
        yield from [self.wrong["intervals"]] if "intervals" in self.wrong else []

    def beside(self) -> Findings:
        """Say what is wrong with noisy answers and records."""
        yield from [self.wrong["beside"]] if "beside" in self.wrong else []
