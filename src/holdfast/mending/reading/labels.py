"""Hierarchies read from the labels of a table: words for totals, codes that begin with the codes above, nested columns.

What is read is said in words and can be corrected. Codes count as a hierarchy only where the figures agree that the
longer ones add up to the shorter: "1" begins "10" to "19" too where they are ages.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from holdfast.arguments import Refused
from holdfast.arrays import Bools, Floats, Ints
from holdfast.mending.reading.classification import Classification, flat

#: Labels that stand for a total, in the languages of large offices; an empty label does too (GROUP BY CUBE writes it).
TOTALS = frozenset(
    ["", "_t", "tot", "total", "totals", "all", "overall", "sum", "insgesamt", "gesamt", "summe", "ensemble"]
).union(["totale", "totaal", "totalt", "yhteensä", "celkem", "razem", "ogółem", "összesen"])
#: Characters of a label for a total, at most.
LONGEST = 16
#: How far, as a share of the larger one, a code's figure may lie from the sum of the codes that begin with it: the
#: median over all such codes. Noise and rounding stay far below it, and codes that are alike by chance far above.
FAR = 0.25
#: What stands between the labels of a path.
BETWEEN = " / "


def is_total(label: str) -> bool:
    """Whether a label stands for a total."""
    return len(label) <= LONGEST and label.lower().strip("()*. ") in TOTALS


@dataclass(frozen=True, eq=False)
class Column:
    """A column of labels: each once, in order of first appearance, and the number of every row's label."""

    labels: tuple[str, ...]
    codes: Ints

    @classmethod
    def of(cls, texts: Iterable[str]) -> Column:
        """Number labels."""
        place: dict[str, int] = {}
        codes = np.array([place.setdefault(label, len(place)) for label in texts], dtype=np.int64)
        return cls(tuple(place), codes)

    @cached_property
    def totals(self) -> Bools:
        """Whether each label stands for a total."""
        return np.array([is_total(label) for label in self.labels], dtype=bool)


def derived(column: str, found: Column, figures: Floats) -> Classification:
    """Read the hierarchy of a column; `figures` are the rows' figures."""
    labels, codes = found.labels, found.codes
    totals = np.flatnonzero(found.totals).tolist()
    if len(totals) > 1:
        raise Refused(
            f"column {column!r} has two totals, {labels[totals[0]]!r} and {labels[totals[1]]!r}: say with domain which "
            "labels add up to each"
        )
    above = _prefixes(labels, set(totals))
    count = int((above >= 0).sum())
    refused = ""
    if count and not _plausible(above, codes, figures):
        above = np.full(len(labels), -1, dtype=np.int64)
        refused, count = "; codes that begin with others were not taken for their parts, since figures differ", 0
    words = []
    if count:
        words.append(f"{count:,} codes begin with the code above them")
    if totals:
        tops = np.flatnonzero(above < 0)
        tops = tops[tops != totals[0]]
        above[tops] = totals[0]
        words.append(f"{labels[totals[0]]!r} is the total of {tops.size:,} labels")
    if not words:
        return flat(labels, f"column {column!r}: no total was found among {len(labels):,} labels{refused}")
    return Classification(tuple(labels), (above,), f"column {column!r}: {', and '.join(words)}{refused}")


def _prefixes(labels: Sequence[str], totals: set[int]) -> Ints:
    """The longest other label that each label begins with, or −1."""
    place = {label: v for v, label in enumerate(labels) if v not in totals}
    lengths = sorted({len(label) for label in place}, reverse=True)
    above = np.full(len(labels), -1, dtype=np.int64)
    for label, v in place.items():
        for length in lengths:
            if 0 < length < len(label) and (found := place.get(label[:length])) is not None:
                above[v] = found
                break
    return above


def _plausible(above: Ints, codes: Ints, figures: Floats) -> bool:
    """Whether figures of codes are about the sums of those that begin with them; median over the codes."""
    known = np.isfinite(figures)
    sums = np.bincount(codes[known], weights=figures[known], minlength=above.size)
    below = np.zeros(above.size)
    np.add.at(below, above[above >= 0], sums[above >= 0])
    inner = np.unique(above[above >= 0])
    size = np.maximum(np.abs(sums[inner]), np.abs(below[inner]))
    gaps = np.abs(sums[inner] - below[inner]) / np.where(size > 0, size, 1.0)
    return bool(np.median(gaps) <= FAR)


def nested_groups(columns: Mapping[str, Column]) -> list[list[str]]:
    """Columns that are the levels of one hierarchy together, top first; every other column by itself.

    One column is nested in another where it is total or empty wherever the other is, and not all of its labels stand
    with all of the other's. Then only sums inside the labels of the other can be read from the table anyway.
    """
    groups: list[list[str]] = []
    for name in columns:
        for group in groups:
            if _nested(columns[group[-1]], columns[name]):
                group.append(name)
                break
        else:
            groups.append([name])
    return groups


def _nested(above: Column, below: Column) -> bool:
    up, down = (column.totals[column.codes] for column in (above, below))
    if not (up.any() and down[up].all() and (down & ~up).any() and (~down).any()):
        return False
    one, two = above.codes[~down], below.codes[~down]
    pairs = np.unique(one * len(below.labels) + two).size
    return pairs < np.unique(one).size * np.unique(two).size


def paths(columns: Mapping[str, Column], names: Sequence[str]) -> tuple[Column, Classification]:
    """Read nested columns as paths: each row's label, and the hierarchy of all of them, missing totals included."""
    found: list[tuple[str, ...]] = [()]
    parents = [-1]
    at = np.zeros(columns[names[0]].codes.size, dtype=np.int64)
    inside = np.ones(at.size, dtype=bool)
    for name in names:
        column = columns[name]
        inside &= ~column.totals[column.codes]
        size = len(column.labels)
        keys, first, which = np.unique(at[inside] * size + column.codes[inside], return_index=True, return_inverse=True)
        order = np.argsort(first, kind="stable")  # places in order of first appearance
        rank = np.empty(keys.size, dtype=np.int64)
        rank[order] = np.arange(keys.size) + len(found)
        for key in keys[order].tolist():
            parents.append(key // size)
            found.append((*found[key // size], column.labels[key % size]))
        at[inside] = rank[which.reshape(-1)]
    above = np.array(parents, dtype=np.int64)
    if not (at == 0).any():  # no grand total in the table: none is added above the labels of the first column
        above[above == 0] = -1
    labels = tuple(BETWEEN.join(path) if path else "Total" for path in found)
    totals = [next((label for label in columns[name].labels if is_total(label)), "Total") for name in names]
    filled = tuple((*path, *totals[len(path) :]) for path in found)
    words = f"columns {' > '.join(map(repr, names))} are the levels of one hierarchy, {len(labels):,} places"
    return Column(labels, at), Classification(labels, (above,), words, tuple(names), filled)
