"""The labels of one column of a published table, and which of them are sums of others."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from holdfast.arguments import LARGEST, Refused
from holdfast.arrays import Bools, Floats, Ints
from holdfast.domains.breadth_first import breadth_first, sum_towards_roots


@dataclass(frozen=True, eq=False)
class Classification:
    """Labels, and one or more hierarchies over them.

    `parents[h][v]` is the label that label v adds to in hierarchy h, −1 where there is none. Several hierarchies share
    their leaves: a double classification. `words` say where this comes from. `levels` and `paths`: of columns that are
    the levels of one hierarchy their names, and of each label what stands in them.
    """

    labels: tuple[str, ...]
    parents: tuple[Ints, ...]
    words: str
    levels: tuple[str, ...] = ()
    paths: tuple[tuple[str, ...], ...] = ()

    @property
    def n(self) -> int:
        return len(self.labels)

    @cached_property
    def place(self) -> dict[str, int]:
        return {label: v for v, label in enumerate(self.labels)}

    @property
    def sums(self) -> bool:
        return any(bool((above >= 0).any()) for above in self.parents)

    @cached_property
    def _depths(self) -> list[Ints]:
        return [breadth_first(above)[3] for above in self.parents]

    @cached_property
    def kinds(self) -> Ints:
        """A number for each label that equal levels share: the depths in all hierarchies, and whether it has a part."""
        key = np.zeros(self.n, dtype=np.int64)
        for above, depth in zip(self.parents, self._depths, strict=True):
            inside = above >= 0
            inside[above[inside]] = True
            key = key * (int(depth.max()) + 2) + np.where(inside, depth, -1) + 1
        return np.unique(key, return_inverse=True)[1].reshape(-1).astype(np.int64)

    @cached_property
    def weights(self) -> list[Ints]:
        """For each hierarchy how many leaves each label stands for: sums that cover all of them are whole."""
        found = []
        for above in self.parents:
            start, _, order, *_ = breadth_first(above)
            count = (np.diff(start) == 0).astype(np.int64)[:, None]
            sum_towards_roots(above, start, order, count, LARGEST)
            found.append(count[:, 0])
        return found

    @cached_property
    def inner(self) -> Bools:
        found = np.zeros(self.n, dtype=bool)
        for above in self.parents:
            found[above[above >= 0]] = True
        return found


def flat(labels: Sequence[str], words: str) -> Classification:
    return Classification(tuple(labels), (np.full(len(labels), -1, dtype=np.int64),), words)


def from_pairs(pairs: Iterable[tuple[str, str]], words: str) -> Classification:
    """Return the classification of pairs (label, the label it adds to), each label with one parent at most."""
    place: dict[str, int] = {}
    parent_of: dict[int, int] = {}
    for child, parent in pairs:
        v, above = (place.setdefault(label, len(place)) for label in (child, parent))
        if parent_of.setdefault(v, above) != above:
            raise Refused(
                f"domain must let a label add to one other, but {child!r} adds to {list(place)[parent_of[v]]!r} and to "
                f"{parent!r}: give each of the two hierarchies by itself, in a list"
            )
    parents = np.full(len(place), -1, dtype=np.int64)
    parents[list(parent_of)] = list(parent_of.values())
    labels = tuple(place)
    depth = breadth_first(parents)[3]
    if (depth < 0).any():
        raise Refused(f"domain must not make a label part of itself, as {labels[int(np.argmax(depth < 0))]!r} is")
    return Classification(labels, (parents,), words)


def joined(hierarchies: Sequence[Classification], words: str) -> Classification:
    """Return several hierarchies over the same leaves as one classification."""
    labels = tuple(dict.fromkeys(label for each in hierarchies for label in each.labels))
    place = {label: v for v, label in enumerate(labels)}
    parents = []
    for each in hierarchies:
        at = np.array([place[label] for label in each.labels], dtype=np.int64)
        for own in each.parents:
            above = np.full(len(labels), -1, dtype=np.int64)
            above[at] = np.where(own >= 0, at[own], -1)
            parents.append(above)
    return Classification(labels, tuple(parents), words)


def from_children(children: Mapping[Any, Any], words: str) -> Classification:
    """Return the classification of a mapping from labels to the labels that add up to them."""
    pairs = []
    for parent, below in children.items():
        if isinstance(below, str) or not isinstance(below, Iterable):
            raise Refused(f"domain must give for {str(parent)!r} a list of the labels that add up to it")
        pairs += [(str(child), str(parent)) for child in below]
    return from_pairs(pairs, words)


def from_hierarchy(tree: Any, words: str) -> Classification:
    """Return the classification of a hf.Hierarchy whose labels are all different."""
    names = [str(name) for name in tree.names]
    if len(set(names)) < len(names):
        seen: set[str] = set()
        twice = next(name for name in names if name in seen or seen.add(name))  # type: ignore[func-returns-value]
        raise Refused(f"domain must give every label once, but {twice!r} stands for two nodes of the hierarchy")
    return Classification(tuple(names), (np.asarray(tree.parents, dtype=np.int64),), words)


# --- Hierarchies read from the labels of a table: words for totals, codes that begin with the codes above, nested
# columns
# What is read is said in words and can be corrected. Codes count as a hierarchy only where the figures agree that the
# longer ones add up to the shorter: "1" begins "10" to "19" too where they are ages.

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
    return len(label) <= LONGEST and label.lower().strip("()*. ") in TOTALS


@dataclass(frozen=True, eq=False)
class Column:
    """A column of labels: each once, in order of first appearance, and the number of every row's label."""

    labels: tuple[str, ...]
    codes: Ints

    @classmethod
    def of(cls, texts: Iterable[str]) -> Column:
        place: dict[str, int] = {}
        codes = np.array([place.setdefault(label, len(place)) for label in texts], dtype=np.int64)
        return cls(tuple(place), codes)

    @cached_property
    def totals(self) -> Bools:
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
