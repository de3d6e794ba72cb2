"""Whether areas add up, by the names of their rows: inside an area, and an area with those below it."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

Entry = tuple[Any, ...]
#: Whether two lists of values do not have the same sum.
Unequal = Callable[[Sequence[Any], Sequence[Any]], bool]


class Level:
    """The areas of one depth: what the entries of each are called, the level first, and which add up to which."""

    def __init__(self, entries: list[Entry]) -> None:
        self.entries = entries
        self.values: dict[Entry, list[Any]] = {}
        self.below: dict[Entry, list[Any]] = {}
        self.margins: dict[frozenset[int], list[int]] = {}
        for i, entry in enumerate(entries):
            kept = frozenset(c for c, text in enumerate(entry) if c > 0 and text is not None)
            self.margins.setdefault(kept, []).append(i)
        ordered = sorted(self.margins, key=lambda kept: (-len(kept), sorted(kept)))
        self.pairs = []
        for i, j in itertools.combinations(range(len(ordered)), 2):
            shared = ordered[i] & ordered[j]
            if not any(shared <= ordered[k] for k in range(i)):
                both = [self.sums(self.margins[ordered[k]], shared) for k in (i, j)]
                self.pairs.append((both[0], both[1]))

    def sums(self, margin: list[int], shared: frozenset[int]) -> dict[Entry, list[int]]:
        """The entries of a margin that add up to each value of what is shared."""
        found: dict[Entry, list[int]] = {}
        for i in margin:
            found.setdefault(tuple(self.entries[i][c] for c in sorted(shared)), []).append(i)
        return found


class Areas:
    """The areas of a table, taken in one after the other, those of upper levels first."""

    def __init__(self, depths: int, unequal: Unequal) -> None:
        self.depths, self.unequal = depths, unequal
        self.levels: dict[int, Level] = {}

    def take(self, path: Entry, entries: list[Entry], values: list[Any], row: int) -> str | None:
        """Take in an area: its places, the names of its entries, its values and its first row; say what is wrong."""
        depth = sum(text is not None for text in path)
        if depth == 0 or None in path[:depth]:
            return "the names of a row skip a level"
        own = path[:depth]
        if any(d > depth for d in self.levels):
            return "areas of an upper level follow those of a lower one"
        if depth not in self.levels:
            if len(set(entries)) < len(entries):
                return "an area has two rows with the same names"
            before = {entry[0] for level in self.levels.values() for entry in level.entries}
            if before & {entry[0] for entry in entries}:
                return "areas of two levels call themselves alike"
        level = self.levels.get(depth) or self.levels.setdefault(depth, Level(entries))
        if level.entries != entries:
            return "areas of one level do not have the same margins"
        if own in level.values:
            return f"row {row} begins an area that has rows already"
        level.values[own] = values if depth < self.depths else []
        for one, two in level.pairs:
            for key in one.keys() | two.keys():
                if self.unequal([values[i] for i in one.get(key, [])], [values[i] for i in two.get(key, [])]):
                    return f"two margins of the area that begins at row {row} have different sums over what they share"
        above = max((d for d in self.levels if d < depth), default=None)
        if above is not None:
            if own[:above] not in self.levels[above].values:
                return f"row {row} has no row above it"
            sums = level.below.get(own[:above])
            level.below[own[:above]] = values if sums is None else [a + b for a, b in zip(sums, values, strict=True)]
        return None

    def between(self) -> Iterator[str]:
        """Say where an area is not the sum of those below it."""
        depths = sorted(self.levels)
        for above, depth in itertools.pairwise(depths):
            upper, lower = self.levels[above], self.levels[depth]
            compared: list[frozenset[int]] = []
            both = itertools.product(upper.margins, lower.margins)
            for kept, other in sorted(both, key=lambda pair: -len(pair[0] & pair[1])):
                shared = kept & other
                if any(shared <= before for before in compared):
                    continue
                compared.append(shared)
                mine, theirs = upper.sums(upper.margins[kept], shared), lower.sums(lower.margins[other], shared)
                for place, values in upper.values.items():
                    sums = lower.below.get(place, [0] * len(lower.entries))
                    for key in mine.keys() | theirs.keys():
                        left, right = [values[i] for i in mine.get(key, [])], [sums[i] for i in theirs.get(key, [])]
                        if self.unequal(left, right):
                            yield f"the area {' / '.join(map(str, place))} is not the sum of the areas below it"
                            return


def in_areas(told: dict[str, Any], rows_of: dict[str, list[Any]], values: Any, unequal: Unequal) -> Iterator[str]:
    """Check the areas of every table, columns by name, which name their rows one after the other."""
    places, linked = told["places"], told["kind"] == "linked"
    named = {name: rows_of[name] for name in told["columns"]}  # the level first
    inside = [column for name, column in named.items() if name not in places and not (linked and name == "table")]
    tables, above = named["table"] if linked else [None] * told["rows"], [named[name] for name in places]
    for table in dict.fromkeys(tables):
        areas = Areas(len(places), unequal)
        rows = (row for row in range(told["rows"]) if tables[row] == table)
        for path, some in itertools.groupby(rows, key=lambda row: tuple(column[row] for column in above)):
            own = list(some)
            entries = [tuple(column[row] for column in inside) for row in own]
            wrong = areas.take(path, entries, [values[row] for row in own], own[0])
            if wrong is not None:
                yield wrong
                return
        yield from areas.between()
