"""What adds up, by the names of rows alone: margins inside an area, and an area with those below it.

A hierarchy is one of areas with an entry each, or with one for each category; a cube is a single area. Inside an area
two margins need no comparison where each was compared with a third that keeps what they share; nor do levels, over
less than what was compared already, since inside an area all margins agree.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from holdfast.release.standalone_verifier.reading import Broken

#: Relative error that sums of real numbers may have.
NEAR = 1e-9
Path = tuple[Any, ...]
#: The columns that name the entries of an area, the level first.
Entries = tuple[tuple[Any, ...], ...]
#: Entries whose sum is the same as that of other entries.
Same = tuple[list[int], list[int]]


def unequal(one: Iterable[Any], two: Iterable[Any]) -> bool:
    """Say whether values have different sums: exactly for whole numbers, else within 1e-9 of their size."""
    left, right = list(one), list(two)
    if isinstance(sum(left), int) and isinstance(sum(right), int):
        return sum(left) != sum(right)
    size = math.fsum(map(abs, left)) + math.fsum(map(abs, right))
    return not abs(math.fsum(left) - math.fsum(right)) <= NEAR * max(1.0, size)


class Level:
    """The areas of one depth: their entries, their values, and the sums of the areas below those of the level above."""

    def __init__(self, entries: Entries) -> None:
        self.entries = entries
        self.places: set[Path] = set()
        self.values: dict[Path, Sequence[Any]] = {}
        self.below: dict[Path, Sequence[Any]] = {}
        self.margins: dict[frozenset[int], list[int]] = {}
        for i, names in enumerate(zip(*entries[1:], strict=True) if entries[1:] else ((),) * len(entries[0])):
            kept = frozenset(column for column, text in enumerate(names, 1) if text is not None)
            self.margins.setdefault(kept, []).append(i)
        ordered = sorted(self.margins, key=lambda kept: (-len(kept), sorted(kept)))
        self.pairs: list[Same] = []
        for i, j in itertools.combinations(range(len(ordered)), 2):
            if not any(ordered[i] & ordered[j] <= ordered[k] for k in range(i)):
                self.pairs += self.same(ordered[i], self, ordered[j])

    def same(self, kept: frozenset[int], other: Level, beside: frozenset[int]) -> Iterator[Same]:
        """The entries of a margin, and of another, that add up to each value of what both keep."""
        shared, sums = sorted(kept & beside), dict[Any, Same]()
        for side, (level, margin) in enumerate(((self, kept), (other, beside))):
            for i in level.margins[margin]:
                key = tuple(level.entries[column][i] for column in shared)
                sums.setdefault(key, ([], []))[side].append(i)
        return iter(sums.values())

    def disagrees(self, values: Sequence[Any]) -> bool:
        """Say whether two margins of an area have different sums over what they share."""
        get = values.__getitem__
        return any(unequal(map(get, one), map(get, two)) for one, two in self.pairs)


class Areas:
    """The areas of a table, taken in one by one, those of upper levels first; `wrong`: what does not add up."""

    def __init__(self, depths: int, consistent: bool) -> None:
        self.depths, self.consistent = depths, consistent
        self.levels: dict[int, Level] = {}
        self.wrong: str | None = None

    def take(self, paths: Sequence[Path], entries: Entries, values: Sequence[Any], row: int) -> None:
        """Take in areas of one level: the places of each, the names of its entries, all values and the first row."""
        depth, width = len(paths[0]), len(entries[0])
        level = self.levels.get(depth) or self.begun(depth, entries)
        if level.entries != entries:
            raise Broken("areas of one level do not have the same margins")
        if len(set(paths)) < len(paths) or not level.places.isdisjoint(paths):
            raise Broken(f"row {row} begins areas of which one has rows already")
        level.places.update(paths)
        starts = range(0, len(values), width)
        if depth < self.depths:
            level.values.update(zip(paths, (values[start : start + width] for start in starts), strict=True))
        if not self.consistent or self.wrong is not None:
            return
        for start in starts if level.pairs else ():
            if level.disagrees(values[start : start + width]):
                place = f"the area that begins at row {row + start}"
                self.wrong = f"two margins of {place} have different sums over what they share"
                return
        above = max((d for d in self.levels if d < depth), default=None)
        if above is not None:
            self.add(level, self.levels[above], [path[:above] for path in paths], values, row)

    def add(self, level: Level, above: Level, owners: Sequence[Path], values: Sequence[Any], row: int) -> None:
        """Add areas to those above them, which came before."""
        start, width = 0, len(level.entries[0])
        for owner, some in itertools.groupby(owners):
            end = start + width * sum(1 for _ in some)
            if owner not in above.places:
                raise Broken(f"row {row + start} has no row above it")
            sums = [sum(values[start + entry : end : width]) for entry in range(width)]
            before = level.below.get(owner)
            level.below[owner] = sums if before is None else list(map(sum, zip(before, sums, strict=True)))
            start = end

    def begun(self, depth: int, entries: Entries) -> Level:
        if any(d > depth for d in self.levels):
            raise Broken("areas of an upper level follow those of a lower one")
        if len(set(zip(*entries, strict=True))) < len(entries[0]):
            raise Broken("an area has two rows with the same names")
        if any(set(entries[0]) & set(level.entries[0]) for level in self.levels.values()):
            raise Broken("areas of two levels call themselves alike")
        return self.levels.setdefault(depth, Level(entries))

    def between(self) -> str | None:
        """Say where an area is not the sum of those below it, after all were taken in."""
        for (_, upper), (_, lower) in itertools.pairwise(sorted(self.levels.items())):
            compared: list[frozenset[int]] = []
            both = itertools.product(upper.margins, lower.margins)
            for kept, beside in sorted(both, key=lambda pair: -len(pair[0] & pair[1])):
                if any(kept & beside <= before for before in compared):
                    continue
                compared.append(kept & beside)
                same, nothing = list(upper.same(kept, lower, beside)), [0] * len(lower.entries[0])
                for place, values in upper.values.items():
                    mine, theirs = values.__getitem__, lower.below.get(place, nothing).__getitem__
                    if any(unequal(map(mine, one), map(theirs, two)) for one, two in same):
                        return f"the area {' / '.join(map(str, place))} is not the sum of the areas below it"
        return None
