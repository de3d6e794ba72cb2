"""What adds up, by the names of rows alone: margins inside an area, and an area with those below it.

A hierarchy is one of areas with an entry each, or with one for each category; a cube is a single area. Inside an area
two margins need no comparison where each was compared with a third that keeps what they share; nor do levels, over
less than what was compared already, since inside an area all margins agree.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from typing import Any

from holdfast.release.standalone_verifier.reading import Broken, Json

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


# --- what must hold by the numbers of rows: exactly for whole numbers, else within 1e-9 of the size of the figures

Findings = Iterator[str]
Values = Sequence[Any]
BEYOND = "the certificate speaks of rows that the table does not have"


def room_of(sizes: Sequence[Any]) -> Fraction:
    """How far real numbers of such sizes may miss; whole numbers not at all."""
    if all(isinstance(size, int) for size in sizes):
        return Fraction(0)
    return Fraction(NEAR) * max([Fraction(1), *(abs(Fraction(size)) for size in sizes)])


def within(values: Values, rows: Sequence[int], low: str | None, high: str | None) -> Findings:
    whole = not rows or isinstance(values[rows[0]], int)
    for text, sign, side in ((low, 1, "below"), (high, -1, "above")):
        if text is None:
            continue
        least: Any = sign * Fraction(text) - (0 if whole else room_of([float(Fraction(text))]))
        least = -(-least.numerator // least.denominator) if whole else float(least)  # whole numbers pass it by steps
        for row in rows:
            if sign * values[row] < least:
                yield f"row {row} is {side} {text}"
                break


def bounds(values: Values, told: Json) -> Findings:
    for each in told["bounds"]:
        yield from within(values, each["rows"], each["low"], each["high"])


def orders(values: Values, told: Json) -> Findings:
    """Check that ordered values never fall."""
    for chain in told["orders"]:
        room = room_of([values[row] for row in chain])
        for before, after in itertools.pairwise(chain):
            if values[after] < values[before] and Fraction(values[before]) - Fraction(values[after]) > room:
                yield f"row {after} is below row {before}"


def linear(values: Values, told: Json) -> Findings:
    """Check weighted sums, added in fractions, which lose nothing."""
    for number, each in enumerate(told["linear"], 1):
        if len(each["weights"]) != len(each["rows"]):
            yield f"the weighted sum {number} does not have one weight per row"
            continue
        terms = [Fraction(w) * Fraction(values[row]) for w, row in zip(each["weights"], each["rows"], strict=True)]
        whole = all(isinstance(values[row], int) for row in each["rows"])
        total, room = sum(terms, Fraction(0)), Fraction(0) if whole else room_of([0.0, *terms])
        if each["low"] is not None and total < Fraction(each["low"]) - room:
            yield f"the weighted sum {number} is below {each['low']}"
        if each["high"] is not None and total > Fraction(each["high"]) + room:
            yield f"the weighted sum {number} is above {each['high']}"


def signs(values: Values, told: Json) -> Findings:
    """Check that no value is negative."""
    if told["nonnegative"]:
        yield from within(values, range(len(values)), "0", None)


def either(values: Values, told: Json) -> Findings:
    """Look for a side on which nothing is wrong, for every union."""
    for number, sides in enumerate(told["either"], 1):
        wrong = [next(side_wrong(values, side), None) for side in sides]
        if None not in wrong:
            yield f"no side of the union {number} holds ({'; '.join(map(str, wrong))})"


def side_wrong(values: Values, side: Json) -> Findings:
    if not (side["nonnegative"] or side["bounds"] or side["orders"] or side["linear"]):
        yield "a side has no rules"
    for rule in (signs, bounds, orders, linear):
        yield from rule(values, side)


def impossible(values: Values, told: Json) -> Findings:
    """Check that cells which cannot be are 0."""
    yield from within(values, told["impossible"], "0", "0")


def listed_sums(values: Values, told: Json) -> Findings:
    """Check the sums that are listed by row numbers."""
    listed = told["sums"] if isinstance(told["sums"], list) else []
    for row, parts in listed:
        if unequal([values[row]], (values[part] for part in parts)):
            yield f"row {row} is not the sum of its parts"


def counts(values: Values, told: Json) -> Findings:
    for figure in told["exact"]:
        for rows in figure["rows"]:
            own = [values[row] for row in rows]
            near = round(sum(own)) if own else -1
            if near < 0 or unequal([near], own):
                yield f"the exact figure {figure['figure']} is not a count"


def rows_told(told: Json) -> Iterator[int]:
    """Every row of which rules, sums and exact figures speak."""
    for part in (told, *itertools.chain(*told["either"])):
        for each in (*part["bounds"], *part["linear"]):
            yield from each["rows"]
        for chain in part["orders"]:
            yield from chain
    yield from told["impossible"]
    for figure in told["exact"]:
        yield from itertools.chain(*figure["rows"])
    for row, parts in told["sums"] if isinstance(told["sums"], list) else ():
        yield row
        yield from parts


#: What is checked by the numbers of rows alone.
BY_ROWS = {
    "signs": signs,
    "bounds": bounds,
    "orders": orders,
    "linear rules": linear,
    "either": either,
    "impossible": impossible,
}
