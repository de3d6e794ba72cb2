"""A table as its CSV files have it, checked against what is certified; in runs area after area, whatever its size."""

from __future__ import annotations

import csv
import hashlib
import itertools
import json
import math
import os
import sys
from array import array
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from fractions import Fraction
from typing import Any

from holdfast.release.standalone_verifier.reading import (
    Broken,
    Json,
    Rows,
    columns_of,
    figure_columns,
    mean_of,
    means,
    names_of,
    rows_of,
)
from holdfast.release.standalone_verifier.sums import (
    BEYOND,
    BY_ROWS,
    Areas,
    Level,
    counts,
    listed_sums,
    rows_told,
    unequal,
)

Findings = Iterator[str]
#: What goes wrong where a file or a certificate is not what it says.
UNREADABLE = (OSError, ValueError, KeyError, IndexError, TypeError, AttributeError, ArithmeticError, csv.Error)
#: A level whose errors are at least so wide has no interval without width, unless its figure is certain.
WIDE = 4.0
#: Digits of a whole number that is read as one.
LONGEST = 24


def asked(told: Json) -> dict[str, str]:
    """What is checked of a table, each with the sentence that is said where it holds."""
    holds, kind = told["holds"], "whole numbers" if told["holds"]["whole"] else "numbers"
    wanted = {
        "rows": (f"{told['rows']} rows of {kind} with the certified columns", True),
        "labels": ("every code has one label", told["labels"]),
        "sums": ("everything adds up", holds["consistent"]),
        "signs": ("no value is negative", holds["nonnegative"]),
        "bounds": ("every bounded value is within its bounds", holds["bounds"]),
        "orders": ("ordered values never fall", holds["orders"]),
        "linear rules": ("every weighted sum is within its limits", holds["linear"]),
        "either": ("one side of every union holds", holds["either"]),
        "impossible": ("every impossible cell is 0", holds["impossible"]),
        "exact figures": ("they are counts that agree with each other", holds["exact"]),
        "further rows": ("every one is a sum of others", told["rows"] > told["outputs"]),
        "intervals": (told["interval"]["sentence"], True),
        "measurements": ("every measurement belongs to a row", told["measurements_csv"]),
        "records": ("they count to the table", told["records_csv"]),
    }
    return {name: sentence for name, (sentence, there) in wanted.items() if there}


def told_by(told: Json, axes: Iterable[str]) -> set[str]:
    """The columns that have values in the rows of a margin: its axes, and what is coarser than these."""
    size = {each["name"]: max(each["groups"]) for each in told["recoded"]}
    own = {each["name"]: each["axis"] for each in told["recoded"]}
    coarser = {
        name
        for name, axis in own.items()
        for kept in axes
        if kept == axis or (own.get(kept) == axis and size[kept] >= size[name])
    }
    return {*axes, *coarser}


def named_by(told: Json, level: str, *, further: bool = False) -> tuple[set[str], set[str]]:
    """The columns that rows of a level have names in: at least, and at most; `further`: sums of other rows."""
    margin = told["margins"][told["levels"].index(level)]
    above = {*told["places"][: margin["places"]], *(["table"] if margin["table"] is not None else [])}
    return above if further else above | set(margin["axes"]), above | told_by(told, margin["axes"])


class Checks:
    """What is checked of the rows of a table that were read."""

    told: Json
    holds: Json
    places: list[str]
    values: Any
    folder: str
    single: set[int]
    known: bytearray
    open: Counter[str]
    narrow: Counter[str]
    step: Fraction

    def labels(self, rows: Rows) -> Findings:
        for name in self.told["labels"]:
            pairs = set(zip(rows[name], rows[f"{name}_label"], strict=True))
            codes = {code for code, _ in pairs}
            if len(pairs) > len(codes) or any((code is None) != (label is None) for code, label in pairs):
                yield f"a code in {name} has no label, or two"

    def intervals(self, rows: Rows, first: int) -> Findings:
        """Check that the ends of intervals can be what they are said to be."""
        basis, sign = self.told["interval"]["basis"], self.holds["nonnegative"]
        lows, highs = ([None if text is None else float(text) for text in rows[end]] for end in ("low", "high"))
        if basis is None and any(end is not None for end in (*lows, *highs)):
            yield "intervals are given although nothing certifies them"
        if basis in ("law", "simulation") and (None in lows or None in highs):
            yield "intervals are missing"
        if basis is None:
            return
        levels, values, last = rows["level"], self.values[first:], min(len(lows), self.told["outputs"] - first)
        if any(low is not None and high is not None and not low <= high for low, high in zip(lows, highs, strict=True)):
            yield "an interval ends before it begins"
        own = (row - first for row in self.single if first <= row < first + len(lows))
        if any(not lows[row] == highs[row] == values[row] for row in own):
            yield "the interval of an exact figure is not the figure"
        if basis == "bounds":
            for value, low, high in zip(values, lows, highs, strict=True):
                if not ((low is None or low <= value) and (high is None or value <= high)):
                    yield "a value lies outside the limits that are certain"
            return
        known = self.known[first : first + last]
        self.open.update(itertools.compress(levels, (not each for each in known)))
        self.narrow.update(
            level
            for level, low, high, certain in zip(levels, lows, highs, known, strict=False)
            if low == high and not certain and not (sign and low == 0)
        )

    def widths(self) -> Findings:
        """Check that figures whose errors are wide have intervals with a width.

        Where limits are certain besides zero, an interval may be cut to one: some figure of the level has a width then.
        """
        cut = any(self.holds[name] for name in ("exact", "bounds", "orders", "linear", "either"))
        for each in self.told["noise_by_level"]:
            name, width = each["level"], each["interval_width"]
            if (
                width is not None
                and width >= WIDE * self.step
                and self.narrow[name] >= max(1, self.open[name] if cut else 1)
            ):
                yield f"the errors of {name} are wide, and intervals of its figures have no width"

    def further(self, rows: Rows) -> Findings:
        """Check rows behind the outputs: each is the sum of the outputs with its names."""
        told, outputs = self.told, self.told["outputs"]
        level = rows[told["columns"][0]]
        named = {name: rows[name] for name in told["columns"][1:]}
        levels = list(dict.fromkeys(level[:outputs]))
        axes = {name: named_by(told, name)[0] for name in levels}
        groups: Any = {}
        for row in range(outputs, len(level)):
            names = tuple(name for name in named if named[name][row] is not None)
            having = [
                name for name in levels if set(names) <= axes[name] and set(self.places) & axes[name] <= set(names)
            ]
            source = min(having, key=lambda name: len(axes[name])) if having else None
            if (source, names) not in groups:
                group: Any = defaultdict(list)
                for other in range(outputs):
                    if level[other] == source:
                        group[tuple(named[name][other] for name in names)].append(other)
                groups[source, names] = group
            parts = groups[source, names][tuple(named[name][row] for name in names)]
            if unequal([self.values[row]], map(self.values.__getitem__, parts)):
                yield f"row {row} is not the sum that its names say"

    def agreeing(self, rows: Rows) -> Findings:
        """Check that exact margins of a cube have the same sums over what they share."""
        if not self.places and self.single:
            own = sorted(self.single)
            level = Level(tuple(tuple(rows[name][row] for row in own) for name in self.told["columns"]))
            if level.disagrees([self.values[row] for row in own]):
                yield "exact margins have different sums over what they share"

    def exact(self) -> Findings:
        """Check that exact figures are counts, and that none is said to be protected."""
        yield from counts(self.values, self.holds)
        if self.holds["exact"] and not self.told["unprotected"]:
            yield "there are exact figures, and the certificate names nothing that is not protected"
        runs = sorted(run for each in self.told["unprotected"] for run in each["rows"])
        known, end = set(self.holds["impossible"]), 0
        single = sorted(self.single - known)
        for row in single:
            while end < len(runs) and runs[end][1] < row:
                end += 1
            if end == len(runs) or row < runs[end][0]:
                yield f"the exact figure in row {row} is not among what is not protected"

    def noisy(self, rows: Rows) -> Findings:
        """Check noisy answers, which are named as the rows of the table are."""
        columns, name = self.told["columns"], self.told["measurements_csv"]
        answers = rows_of(self.folder, name, self.told["parts"])
        if list(answers) != [*columns, "standard_deviation", "count"]:
            yield f"{name} does not have the certified columns"
            return
        named = list(zip(*(answers[name] for name in columns), strict=True))
        if len(set(named)) < len(named) or not set(named) <= set(zip(*(rows[each] for each in columns), strict=True)):
            yield f"{name} speaks of rows that the table does not have"
        yield from self.measured(answers)

    def measured(self, answers: Rows) -> Findings:
        name = self.told["measurements_csv"]
        if None in answers["standard_deviation"] or None in answers["count"]:
            yield f"{name} has empty entries"
        elif not all(float(text) >= 0 for text in answers["standard_deviation"]):
            yield f"{name} has standard deviations below 0"
        elif not all(math.isfinite(float(text)) for text in answers["count"]):
            yield f"{name} has answers that are not finite"


class Table(Checks):
    """A table of a release, read once. `wrong`: what is wrong first, by the name of the check that finds it."""

    def __init__(self, folder: str, told: Json) -> None:
        self.folder, self.told, self.holds = folder, told, told["holds"]
        self.values = array("q" if self.holds["whole"] else "d")
        self.step = Fraction(told["sum_of"]["step"]) if told.get("sum_of") else Fraction(1)
        self.wrong: dict[str, str] = {}
        self.areas: dict[Any, Areas] = {}
        self.levels: dict[str, tuple[Any, int]] = {}  # of which table and depth
        self.places = told["places"]
        self.narrow = Counter()
        self.open = Counter()
        self.single = {rows[0] for figure in self.holds["exact"] for rows in figure["rows"] if len(rows) == 1}
        self.known = bytearray(told["rows"])  # rows that are certain, whose intervals have no width
        for first, last in (run for each in told["unprotected"] for run in each["rows"]):
            if not 0 <= first <= last < told["rows"]:
                raise Broken(BEYOND)
            self.known[first : last + 1] = b"\1" * (last + 1 - first)
        for row in rows_told(self.holds):
            if not 0 <= row < told["rows"]:
                raise Broken(BEYOND)
        for row in itertools.chain(self.holds["impossible"], self.single):
            self.known[row] = 1
        self.refuse_other_levels()
        self.read()

    def refuse_other_levels(self) -> None:
        """Refuse levels that occur twice or have no columns, and noise at a level that the table does not have."""
        told = self.told
        for name in ("levels", "columns", "labels", "places"):
            if len(set(told[name])) < len(told[name]):
                raise Broken(f"a name occurs twice among its {name}")
        first = 1 + bool(told["linked"])
        if told["columns"][first : first + len(told["places"])] != told["places"]:
            raise Broken("the names do not show the hierarchy: a level has no column, or another place")
        if len(told["margins"]) != len(told["levels"]):
            raise Broken("the certificate does not say of every level what its rows are")
        measured = {each["level"] for each in told["noise_by_level"] if each["noise"] or told["residuals"]}
        of_residuals = {each["level"] for each in told["residuals"]} - {None}
        axes = {axis for each in told["residuals"] for axis in each["axes"]}
        if not (
            measured <= set(told["levels"]) and of_residuals <= set(told["places"]) and axes <= set(told["columns"])
        ):
            raise Broken("the certificate speaks of noise at a level that the table does not have")

    def read(self) -> None:
        """Read the rows: all of them, or part after part where each holds whole areas."""
        told, domain = self.told, hashlib.sha256()
        if not told["runs"]:
            self.take(rows_of(self.folder, told["csv"], told["parts"], told["rows"]), None)
        elif told["linked"] or told["rows"] != told["outputs"] or not told["places"]:
            raise Broken("only tables of areas are written in runs")
        for number in range(told["parts"] if told["runs"] else 0):
            rows = columns_of(self.folder, names_of(told["csv"], number + 1)[number])
            first, numbers = len(self.values), rows.pop("row", [])
            if numbers != [str(row) for row in range(first, first + len(numbers))]:
                raise Broken(f"the parts of {told['csv']} do not have every row once, in their order")
            if not numbers:
                raise Broken(f"{told['csv']} has a part without rows")
            self.take(rows, number)
            for name in told["columns"]:
                known: dict[Any, int] = {}
                codes = array("I", [known.setdefault(text, len(known)) for text in rows[name]])
                domain.update(json.dumps([name, list(known)], ensure_ascii=False, separators=(",", ":")).encode())
                if sys.byteorder == "big":
                    codes.byteswap()
                domain.update(codes.tobytes())
        if len(self.values) != told["rows"]:
            raise Broken(f"{told['csv']} has {len(self.values)} rows and not {told['rows']}")
        if told["runs"] and "sha256:" + domain.hexdigest() != told["domain_hash"]:
            raise Broken("the names of the rows are not those of the certified domain")
        if list(self.levels) != told["levels"]:
            raise Broken("the levels are not those of the rows, in their order")

    def take(self, rows: Rows, number: int | None) -> None:
        """Take in all rows, or those of a part, and what lies beside them."""
        told, first = self.told, len(self.values)
        labels = [f"{name}_label" for name in told["labels"]]
        figures = [name for figure in told.get("figures", ["value"]) for name in figure_columns(figure)]
        if list(rows) != [*told["columns"], *figures, *labels]:
            raise Broken(f"{told['csv']} does not have the certified columns")
        if told.get("sum_of"):
            column = told["sum_of"]["column"]
            if mean_of(column) in told["figures"] and (wrong := next(means(rows, column), None)):
                raise Broken(wrong)
            own = zip(("value", "low", "high"), figure_columns(column), strict=True)
            steps = {name: [self.in_steps(text) for text in rows[column]] for name, column in own}
            rows = {name: rows[name] for name in (*told["columns"], *labels)} | steps
        if len(rows["value"]) != told["rows"] and number is None:
            raise Broken(f"{told['csv']} has {len(rows['value'])} rows and not {told['rows']}")
        self.values.extend(self.numbers(rows["value"]))
        if len(self.values) > told["rows"]:
            raise Broken(f"{told['csv']} has more than {told['rows']} rows")
        self.named(rows, first)
        if number is None:
            domain = hashlib.sha256()
            for name in told["columns"]:
                words = [name, rows[name][: told["outputs"]]]
                domain.update(json.dumps(words, ensure_ascii=False, separators=(",", ":")).encode())
            if "sha256:" + domain.hexdigest() != told["domain_hash"]:
                raise Broken("the names of the rows are not those of the certified domain")
        self.by_area(rows, first)
        self.note("labels", self.labels(rows))
        self.note("intervals", self.intervals(rows, first))
        self.note("further rows", self.further(rows))
        self.note("exact figures", self.agreeing(rows))
        if told["records_csv"] is not None:
            self.note("records", self.records(rows, first, number))
        if told["measurements_csv"] is not None:
            self.note("measurements", self.in_run(number, first) if number is not None else self.noisy(rows))

    def note(self, check: str, findings: Findings) -> None:
        try:
            wrong = next(findings, None)
        except Broken as broken:
            wrong = str(broken)
        except UNREADABLE as error:
            wrong = f"a file cannot be read ({type(error).__name__})"
        if wrong is not None:
            self.wrong.setdefault(check, wrong)

    def numbers(self, texts: list[Any]) -> list[Any]:
        name, joined = self.told["csv"], ",".join(text or "" for text in texts)
        if None in texts:
            raise Broken(f"{name} has empty values")
        if self.holds["whole"]:
            try:
                values: list[Any] = list(map(int, texts))
            except ValueError:
                values = []
            if ",".join(map(str, values)) != joined or max(map(abs, values), default=0) >= 2**63:
                raise Broken(f"the values of {name} are not whole numbers")
            return values
        values = list(map(float, texts))
        if "_" in joined or any(text.lstrip("-").isdigit() for text in texts):
            raise Broken(f"the values of {name} are not real numbers")
        if not all(map(math.isfinite, values)):
            raise Broken(f"{name} has values that are not finite")
        return values

    def in_steps(self, text: str | None) -> str | None:
        """A number of a column that is added up as so many steps of it."""
        if text is None:
            return None
        whole = text.lstrip("-").isdecimal() and len(text) < LONGEST
        found = Fraction(int(text) if whole else repr(float(text))) / self.step
        return str(found.numerator) if found.denominator == 1 else repr(float(found))

    def named(self, rows: Rows, first: int) -> None:
        """Check that every row has names of its own, and those that its level says."""
        told = self.told
        names = [rows[name] for name in told["columns"]]
        if told["rows"] > told["outputs"] and len(set(zip(*names, strict=True))) < len(names[0]):
            raise Broken("two rows have the same names")
        empty = [[text is None for text in column] for column in names[1:]]
        tables = rows["table"] if told["linked"] else itertools.repeat(None)
        more = (first + row >= told["outputs"] for row in range(len(names[0])))
        for table, level, further, *nothing in dict.fromkeys(zip(tables, names[0], more, *empty, strict=False)):
            if level not in told["levels"]:
                raise Broken("there are rows of a level that is not certified")
            there = {name for name, none in zip(told["columns"][1:], nothing, strict=True) if not none}
            least, most = named_by(told, level, further=further)
            margin = told["margins"][told["levels"].index(level)]
            if not least <= there <= most or margin["table"] != table:
                raise Broken(f"rows call themselves {level} and have the names of another level")
            self.levels.setdefault(level, (table, margin["places"]))

    def by_area(self, rows: Rows, first: int) -> None:
        """Take in the areas, which name their rows one after the other."""
        told, start = self.told, 0
        linked, count = bool(told["linked"]), min(told["outputs"], len(rows["value"]))
        beside = {*self.places, "table"} if linked else set(self.places)
        inside = [rows[name] for name in told["columns"] if name not in beside]
        for (table, depth), some in itertools.groupby(map(self.levels.__getitem__, rows["level"][:count])):
            end = start + sum(1 for _ in some)
            paths = list(zip(*(rows[name][start:end] for name in self.places[:depth]), strict=True))
            paths = paths or [()] * (end - start)
            width = next((row for row, path in enumerate(paths) if path != paths[0]), len(paths))
            entries = tuple(tuple(column[start : start + width]) for column in inside)
            areas, alike = paths[::width], [[*column[start:end]] for column in inside]
            if any(paths[row::width] != areas for row in range(width)) or any(
                column != list(entry) * len(areas) for column, entry in zip(alike, entries, strict=True)
            ):
                raise Broken("areas of one level do not have the same margins, or two rows the same names")
            if table not in self.areas:
                self.areas[table] = Areas(len(self.places), self.holds["consistent"])
            self.areas[table].take(areas, entries, self.values[first + start : first + end], first + start)
            start = end

    def records(self, rows: Rows, first: int, number: int | None) -> Findings:
        """Check that synthetic records count to the cells of the table, or of a part."""
        told, names = self.told, self.told["record_columns"]
        files = names_of(told["records_csv"], told["parts"])
        files = files if number is None else files[number : number + 1]
        records: Counter[Any] = Counter()
        for file in files:
            columns = columns_of(self.folder, file)
            if list(columns) != names:
                yield f"{file} does not have the certified columns"
                return
            records.update(zip(*columns.values(), strict=True))
        of_table = {each["name"]: set(each["axes"]) for each in told["linked"]}
        foreign = set().union(*of_table.values())
        full = {
            table: [i for i, name in enumerate(names) if name not in foreign - own] for table, own in of_table.items()
        }
        every, cells = list(range(len(names))), {}
        tables = rows["table"] if of_table else itertools.repeat(None)
        for table, value, *cell in zip(tables, self.values[first:], *(rows[name] for name in names), strict=False):
            if value and all(cell[i] is not None for i in full.get(table, every)):
                cells[tuple(cell)] = value
        if records != cells:
            yield f"the records of {told['records_csv']} do not count to the table"

    def in_run(self, number: int, first: int) -> Findings:
        """Check the noisy answers of a part, which are named by the numbers of their rows."""
        name = names_of(self.told["measurements_csv"], number + 1)[number]
        answers = columns_of(self.folder, name)
        if list(answers) != ["row", "standard_deviation", "count"]:
            yield f"{name} does not have the certified columns"
            return
        rows = [int(text) if text is not None and text.isdecimal() else -1 for text in answers["row"]]
        if any(two <= one for one, two in itertools.pairwise([first - 1, *rows, len(self.values)])):
            yield f"{name} speaks of rows that the table does not have"
        yield from self.measured(answers)

    def checked(self) -> dict[str, str]:
        """Check what concerns all rows; return everything that is wrong."""
        for name, rule in BY_ROWS.items():
            self.note(name, rule(self.values, self.holds))
        if self.holds["consistent"]:
            self.note("sums", listed_sums(self.values, self.holds))
            self.note("sums", (words for each in self.areas.values() if (words := each.wrong or each.between())))
        self.note("exact figures", self.exact())
        self.note("intervals", self.widths())
        return self.wrong


def is_plain(folder: str, name: str, size: int) -> bool:
    """Say whether a file may be read: a plain one, of so many bytes at most; others might never end."""
    path = os.path.join(folder, name)
    return not os.path.lexists(path) or (
        os.path.isfile(path) and not os.path.islink(path) and os.lstat(path).st_size <= size
    )


def table_checks(folder: str, told: Json, sizes: dict[str, int]) -> Iterator[tuple[str, str, str | None]]:
    """Check one table: what is checked, what is said where it holds, and what is wrong."""
    for name in files_of(told):
        if not is_plain(folder, name, sizes.get(name, 0)):
            yield f"{told['name']}: rows", "", f"{name} is not the file that was certified, and is not read"
            return
    try:
        wrong = Table(folder, told).checked()
    except Broken as broken:
        wrong = {"rows": str(broken)}
    except UNREADABLE as error:
        wrong = {"rows": f"{told['csv']} cannot be read ({type(error).__name__})"}
    for name, words in asked(told).items():
        if name == "rows" or "rows" not in wrong:
            yield f"{told['name']}: {name}", words, wrong.get(name)


def files_of(told: Json) -> list[str]:
    keys = ("parquet", "csv", "measurements", "measurements_csv", "records", "records_csv")
    return [name for key in keys if told[key] is not None for name in names_of(told[key], told["parts"])]
