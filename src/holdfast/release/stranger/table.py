"""A table as its CSV file has it, checked against what is certified: exactly for whole numbers, else within 1e-9."""

from __future__ import annotations

import hashlib
import itertools
import json
import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Any

from holdfast.release.stranger.areas import in_areas
from holdfast.release.stranger.reading import Broken, Json, rows_of

NEAR = Fraction(1, 10**9)
Findings = Iterator[str]


class Table:
    """A table of a release: its rows as the CSV file has them, and what is certified about it."""

    def __init__(self, folder: str, told: Json) -> None:
        self.told, self.holds, self.folder = told, told["holds"], folder
        self.count, self.outputs, self.whole = told["rows"], told["outputs"], self.holds["whole"]
        self.parts = told.get("parts", 0)
        self.rows = rows_of(folder, told["csv"], self.parts, self.count)
        labels = [f"{name}_label" for name in told.get("labels", [])]
        if list(self.rows) != [*told["columns"], "value", "low", "high", *labels]:
            raise Broken(f"{told['csv']} does not have the certified columns")
        if any(len(column) != self.count for column in self.rows.values()):
            raise Broken(f"{told['csv']} does not have {self.count} rows")
        self.values = [self.number(text) for text in self.rows["value"]]
        self.named = {name: self.rows[name] for name in told["columns"][1:]}
        levels = self.rows[told["columns"][0]]
        if None in levels or not set(levels) <= set(told["levels"]):
            raise Broken("there are rows of a level that is not certified")
        refuse_other_levels(told)
        found = hashlib.sha256()
        for name in told["columns"]:
            words = [name, self.rows[name][: self.outputs]]
            found.update(json.dumps(words, ensure_ascii=False, separators=(",", ":")).encode())
        if "sha256:" + found.hexdigest() != told["domain_hash"]:
            raise Broken("the names of the rows are not those of the certified domain")

    def number(self, text: str | None) -> Any:
        """Read a value."""
        if text is None:
            raise Broken(f"{self.told['csv']} has empty values")
        if self.whole:
            if not re.fullmatch(r"-?[0-9]{1,19}", text):
                raise Broken(f"the values of {self.told['csv']} are not whole numbers")
            return int(text)
        if re.fullmatch(r"-?[0-9]+", text):
            raise Broken(f"the values of {self.told['csv']} are not real numbers")
        value = float(text)
        if not math.isfinite(value):
            raise Broken(f"{self.told['csv']} has values that are not finite")
        return Fraction(value)

    def unequal(self, expected: Any, parts: Sequence[Any]) -> bool:
        """Say whether a value is not the sum of its parts."""
        room = 0 if self.whole else NEAR * max(1, sum(map(abs, parts)) + abs(expected))
        return abs(expected - sum(parts)) > room

    def take(self, rows: Sequence[int]) -> list[Any]:
        """Return the values of some rows."""
        return [self.values[row] for row in rows]

    def sums(self) -> Findings:
        """Check what adds up: by row numbers, and by names."""
        listed = self.holds["sums"]
        for row, parts in listed if isinstance(listed, list) else ():
            if self.unequal(self.values[row], self.take(parts)):
                yield f"row {row} is not the sum of its parts"
        if self.told["kind"] == "hierarchy":
            yield from self.by_levels()
        elif self.told["kind"] == "cube":
            yield from self.by_margins(range(self.count))
        elif self.told["kind"] in ("areas", "linked"):
            yield from in_areas(self.told, self.rows, self.values, lambda one, two: self.unequal(sum(one), two))

    def by_levels(self) -> Findings:
        """Check every node against the rows one level below that have its names."""
        steps = [name for name in self.named if name in self.told["levels"]]
        others = [name for name in self.named if name not in steps]
        if len(steps) < len(self.told["levels"]):
            yield "the names do not show the hierarchy: a level has no column"
            return
        below: Any = defaultdict(list)
        nodes: Any = {}
        for row in range(self.count):
            path = [self.named[name][row] for name in steps]
            depth = sum(text is not None for text in path)
            if depth == 0 or None in path[:depth]:
                yield "the names of a row skip a level"
                return
            beside = tuple(self.named[name][row] for name in others)
            if (tuple(path[:depth]), beside) in nodes:
                yield f"two rows of the level {steps[depth - 1]} have the same names"
                return
            nodes[tuple(path[:depth]), beside] = row
            if depth > 1:
                below[tuple(path[: depth - 1]), beside].append(row)
        for node, rows in below.items():
            if node not in nodes:
                yield f"row {rows[0]} has no row above it"
            elif self.unequal(self.values[nodes[node]], self.take(rows)):
                yield f"row {nodes[node]} is not the sum of the rows below it"

    def by_margins(self, rows: Any) -> Findings:
        """Check that every two margins have the same sums over the axes that they share."""
        margins: Any = defaultdict(list)
        for row in rows:
            margins[tuple(name for name in self.named if self.named[name][row] is not None)].append(row)
        for one, two in itertools.combinations(margins, 2):
            shared = [name for name in one if name in two]
            sums: Any = defaultdict(lambda: ([], []))
            for side, margin in enumerate((one, two)):
                for row in margins[margin]:
                    sums[tuple(self.named[name][row] for name in shared)][side].append(self.values[row])
            for left, right in sums.values():
                room: Any = 0 if self.whole else NEAR * max(1, sum(map(abs, left)) + 2 * sum(map(abs, right)))
                if abs(sum(left) - sum(right)) > room:
                    yield f"the margins {one} and {two} have different sums over what they share"
                    break

    def within(self, rows: Sequence[int], low: str | None, high: str | None) -> Findings:
        """Check inclusive limits of some rows."""
        for text, sign in ((low, 1), (high, -1)):
            if text is None:
                continue
            limit = Fraction(text)
            room = Fraction(0) if self.whole else NEAR * max(Fraction(1), abs(limit))
            least: Any = sign * limit - room
            least = least.numerator if least.denominator == 1 else least  # whole numbers compare faster
            for row in rows:
                if sign * self.values[row] < least:
                    yield f"row {row} is beyond {text}"

    def rules(self, told: Json) -> Findings:
        """Check signs, bounds, orders and weighted sums, of the table or of one side of a union."""
        if told["nonnegative"]:
            yield from self.within(range(self.count), "0", None)
        for bound in told["bounds"]:
            yield from self.within(bound["rows"], bound["low"], bound["high"])
        for chain in told.get("orders", []):
            found = self.take(chain)
            room = 0 if self.whole else NEAR * max(1, *map(abs, found))
            if any(after - before < -room for before, after in itertools.pairwise(found)):
                yield "ordered values fall"
        for each in told.get("linear", []):
            terms = [
                Fraction(weight) * value
                for weight, value in zip(each["weights"], self.take(each["rows"]), strict=False)
            ]
            room = 0 if self.whole else NEAR * max([Fraction(1), *map(abs, terms)])
            total = sum(terms, Fraction(0))
            if len(each["weights"]) != len(each["rows"]):
                yield "a weighted sum does not have one weight per row"
            if each["low"] is not None and total < Fraction(each["low"]) - room:
                yield f"a weighted sum is below {each['low']}"
            if each["high"] is not None and total > Fraction(each["high"]) + room:
                yield f"a weighted sum is above {each['high']}"

    def holding(self) -> Findings:
        """Check everything that must hold besides sums."""
        yield from self.rules(self.holds)
        for sides in self.holds.get("either", []):
            empty = [not (s["nonnegative"] or s["bounds"] or s["orders"] or s["linear"]) for s in sides]
            if all(none or next(self.rules(side), None) is not None for none, side in zip(empty, sides, strict=True)):
                yield "no side of a union holds"
        yield from self.within(self.holds["impossible"], "0", "0")

    def exact(self) -> Findings:
        """Check that exact figures are counts, that margins among them agree, and that none is said to be protected."""
        margins: list[int] = []
        runs = [run for each in self.told["unprotected"] for run in each["rows"]]
        if any(not 0 <= first <= last < self.count for first, last in runs):
            yield "the certificate speaks of rows that the table does not have"
        if self.holds["exact"] and not self.told["unprotected"]:
            yield "there are exact figures, and the certificate names nothing that is not protected"
        for figure in self.holds["exact"]:
            single = [rows[0] for rows in figure["rows"] if len(rows) == 1]
            if single and not any(first <= row <= last for row in single for first, last in runs):
                yield f"the exact figure {figure['figure']} is not among what is not protected"
            if not all(figure["rows"]):
                yield f"the exact figure {figure['figure']} has no rows"
                return
            for rows in figure["rows"]:
                found = self.take(rows)
                near = round(sum(found))
                if near < 0 or self.unequal(near, found):
                    yield f"the exact figure {figure['figure']} is not a count"
            if all(len(rows) == 1 for rows in figure["rows"]):
                margins += [rows[0] for rows in figure["rows"]]
        if self.told["kind"] == "cube":
            yield from self.by_margins(sorted(set(margins)))

    def further(self) -> Findings:
        """Check rows behind the outputs: each is the sum of the outputs with its names."""
        level = self.rows[self.told["columns"][0]]
        levels = list(dict.fromkeys(level[: self.outputs]))
        axes = {name: set() if name == "total" else set(name.split(" × ")) for name in levels}
        groups: Any = {}
        for row in range(self.outputs, self.count):
            names = tuple(name for name in self.named if self.named[name][row] is not None)
            source = level[row]
            if self.told["kind"] != "hierarchy":
                having = [name for name in levels if set(names) <= axes[name]]
                source = min(having, key=lambda name: len(axes[name])) if having else None
            if (source, names) not in groups:
                found: Any = defaultdict(list)
                for other in range(self.outputs):
                    if level[other] == source:
                        found[tuple(self.named[name][other] for name in names)].append(other)
                groups[source, names] = found
            parts = groups[source, names][tuple(self.named[name][row] for name in names)]
            if self.unequal(self.values[row], self.take(parts)):
                yield f"row {row} is not the sum that its names say"

    def intervals(self) -> Findings:
        """Check that the ends of intervals can be what they are said to be."""
        basis = self.told["interval"]["basis"]
        ends = [[None if text is None else float(text) for text in self.rows[end]] for end in ("low", "high")]
        exact = {rows[0] for figure in self.holds["exact"] for rows in figure["rows"] if len(rows) == 1}
        for row, (value, low, high) in enumerate(zip(self.values, *ends, strict=True)):
            yield from ends_wrong(basis, value, low, high, row in exact)

    def beside(self) -> Findings:
        """Check noisy answers and synthetic records beside the table."""
        columns = self.told["columns"]
        if self.told["measurements_csv"] is not None:
            noisy = rows_of(self.folder, self.told["measurements_csv"], self.parts)
            if list(noisy) != [*columns, "standard_deviation", "count"]:
                yield "the noisy answers do not have the certified columns"
                return
            known = set(zip(*(self.rows[name] for name in columns), strict=True))
            found = list(zip(*(noisy[name] for name in columns), strict=True))
            if len(set(found)) < len(found) or not set(found) <= known:
                yield "the noisy answers speak of rows that the table does not have"
            if any(text is None for name in ("standard_deviation", "count") for text in noisy[name]):
                yield "the noisy answers have empty entries"
            elif not all(float(text) >= 0 for text in noisy["standard_deviation"]):
                yield "the noisy answers have standard deviations below 0"
        if self.told["records_csv"] is not None:
            names = self.told["record_columns"]
            records = rows_of(self.folder, self.told["records_csv"], self.parts)
            cells = zip(*(self.rows[name] for name in names), self.values, strict=True)
            wanted = {tuple(cell[:-1]): cell[-1] for cell in cells if self._full(names, cell) and cell[-1]}
            if list(records) != names or Counter(zip(*(records[name] for name in names), strict=True)) != wanted:
                yield "the synthetic records do not count to the table"

    def _full(self, names: Any, cell: Any) -> bool:
        """Whether a row has every name of a cell: of linked tables, every place and the axes of its own table."""
        of_table = {each["name"]: each["axes"] for each in self.told.get("linked", [])}
        row = dict(zip(names, cell, strict=False))
        others = {name for table, axes in of_table.items() if table != row.get("table") for name in axes}
        others -= set(of_table.get(row.get("table"), ()))
        return all(row[name] is not None for name in names if name not in others)


def refuse_other_levels(told: Json) -> None:
    """Refuse noise at a level that the table does not have."""
    named = {each["level"] for each in told["noise_by_level"] if each["noise"] or told.get("residuals")}
    of_residuals = {each["level"] for each in told.get("residuals", [])} - {None}
    if not (named <= set(told["levels"]) and of_residuals <= set(told.get("places", []))):
        raise Broken("the certificate speaks of noise at a level that the table does not have")


def ends_wrong(basis: str | None, value: Any, low: float | None, high: float | None, exact: bool) -> Findings:
    """Check the ends of one interval."""
    if basis is None and (low is not None or high is not None):
        yield "intervals are given although nothing certifies them"
    if basis in ("law", "simulation") and (low is None or high is None):
        yield "intervals are missing"
    if low is not None and high is not None and low > high:
        yield "an interval ends before it begins"
    if basis is not None and exact and not low == high == value:
        yield "the interval of an exact figure is not the figure"
    if basis == "bounds" and not ((low is None or low <= value) and (high is None or value <= high)):
        yield "a value lies outside the limits that are certain"
