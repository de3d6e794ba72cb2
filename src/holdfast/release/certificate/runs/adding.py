"""Whether areas add up, found from the names of rows alone: area after area, level after level.

Inside an area every two margins must have the same sums over what they share; an area must have the sums of its parts.
Two margins need no comparison where each was compared with a third that keeps what they share (`_follows`), and so
between levels: the sums of both over s are those of the pair that was compared, since inside an area margins agree.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations, pairwise, product
from typing import Any

import numpy as np
from scipy import sparse

from holdfast.arrays import Array, Bools, Ints
from holdfast.release.certificate.sums import SAFE, TOLERANCE
from holdfast.release.storage.coded import Coded

Findings = Iterator[str]
Path = tuple[str, ...]
#: The entries of an area: what each is called, column by column.
Entry = tuple[str | None, ...]


@dataclass(frozen=True)
class Inside:
    """The entries of every area of a level: the level that each says, and columns that name it.

    Margins are known by the columns that they keep.
    """

    columns: tuple[str, ...]
    entries: tuple[Entry, ...]
    called: tuple[str | None, ...]

    def margins(self) -> dict[frozenset[str], Ints]:
        """The entries of each margin by what it keeps, those that keep most first."""
        found: dict[frozenset[str], list[int]] = {}
        for i, entry in enumerate(self.entries):
            kept = frozenset(name for name, text in zip(self.columns, entry, strict=True) if text is not None)
            found.setdefault(kept, []).append(i)
        ordered = sorted(found, key=lambda kept: (-len(kept), sorted(kept)))
        return {kept: np.array(found[kept]) for kept in ordered}

    def sums(self, margin: Ints, shared: frozenset[str], number: dict[Entry, int]) -> Any:
        """The 0/1 matrix (entries, sums) that adds a margin up over all but what is `shared`, numbered as told."""
        kept = [i for i, name in enumerate(self.columns) if name in shared]
        place = [
            number.setdefault(tuple(self.entries[entry][i] for i in kept), len(number)) for entry in margin.tolist()
        ]
        ones = np.ones(margin.size, np.int64)
        return sparse.csr_array((ones, (margin, place)), shape=(len(self.entries), len(number)))


@dataclass(eq=False)
class Level:
    """The areas of one depth: their places, and the row at which each begins."""

    inside: Inside
    place: dict[Path, int] = field(default_factory=dict)
    starts: list[int] = field(default_factory=list)


@dataclass(eq=False)
class Adding:
    """The areas that were read so far; `places` are the columns that name them, the top one first.

    `below`: for the areas of each depth the sums of their entries, by the areas above. `size`: how large sums can be.
    """

    places: Sequence[str]
    values: Array
    levels: dict[int, Level] = field(default_factory=dict)
    below: dict[int, Array] = field(default_factory=dict)
    size: float = 0.0

    def read(self, names: Mapping[str, Coded], first: int) -> Findings:
        """Take in the names of a part whose first row has this number, and say what does not add up in it."""
        told = np.stack([names[place].told for place in self.places])
        depth = told.sum(axis=0) - 1
        if (depth < 0).any() or (told != (np.arange(len(self.places))[:, None] <= depth)).any():
            yield "the names of a row skip a level"
            return
        codes = np.stack([names[place].codes for place in self.places])
        changes = np.flatnonzero((codes[:, 1:] != codes[:, :-1]).any(axis=0)) + 1
        starts = np.concatenate([[0], changes])
        widths = np.diff(np.concatenate([starts, [depth.size]]))
        inside = [name for name in names if name not in self.places]
        for d in np.unique(depth[starts]).tolist():
            mine = depth[starts] == d
            if np.unique(widths[mine]).size > 1:
                yield "areas of one level do not have the same margins"
                return
            yield from self._areas(d, names, inside, starts[mine], int(widths[mine][0]), first)

    def _areas(
        self, depth: int, names: Mapping[str, Coded], inside: Sequence[str], starts: Ints, width: int, first: int
    ) -> Findings:
        """Take in the areas of one depth in a part: every one has the same entries, and so has its level before.

        Of the columns `inside` the first says which level and margin a row belongs to.
        """
        rows = starts[:, None] + np.arange(width)
        for name in inside:
            block = names[name].codes[rows]
            if (block != block[0]).any():
                yield "areas of one level do not have the same margins"
                return
        if any(other > depth for other in self.levels):
            yield "areas of an upper level follow those of a lower one"
            return
        called, *named = (names[name].texts[names[name].codes[rows[0]]].tolist() for name in inside)
        found = Inside(tuple(inside[1:]), tuple(zip(*named, strict=True)), tuple(called))
        if len(set(zip(called, found.entries, strict=True))) < width:
            yield "an area has two rows with the same names"
            return
        if any(set(called) & set(each.inside.called) for other, each in self.levels.items() if other != depth):
            yield "areas of two levels call themselves alike"
            return
        level = self.levels.setdefault(depth, Level(found))
        if level.inside != found:
            yield "areas of one level do not have the same margins"
            return
        values = self.values[first + rows]
        self.size += float(np.abs(values, dtype=np.float64).sum())
        if values.dtype.kind == "i" and self.size >= SAFE:
            yield "the figures are too large to be added up"
            return
        yield from _agree(level.inside, values, first + starts)
        yield from self._add(depth, names, starts, values, level, first)

    def _add(
        self, depth: int, names: Mapping[str, Coded], starts: Ints, values: Array, level: Level, first: int
    ) -> Findings:
        """Add areas to those above them, which came before."""
        paths = list(
            zip(
                *([names[p].texts[code] for code in names[p].codes[starts]] for p in self.places[: depth + 1]),
                strict=True,
            )
        )
        for path, start in zip(paths, starts.tolist(), strict=True):
            if path in level.place:
                yield f"row {first + start} begins an area that has rows already"
                return
            level.place[path] = len(level.starts)
            level.starts.append(first + start)
        above = max((d for d in self.levels if d < depth), default=None)
        if above is None:
            return
        owner = np.array([self.levels[above].place.get(path[: above + 1], -1) for path in paths])
        if (owner < 0).any():
            yield f"row {first + starts[np.argmax(owner < 0)]} has no row above it"
            return
        if depth not in self.below:
            self.below[depth] = np.zeros((len(self.levels[above].starts), values.shape[1]), values.dtype)
        order = np.argsort(owner, kind="stable")
        cuts = np.flatnonzero(np.diff(owner[order], prepend=-1))
        self.below[depth][owner[order][cuts]] += np.add.reduceat(values[order], cuts, axis=0)

    def between(self) -> Findings:
        """Say where an area is not the sum of those below it, after all parts were read."""
        depths = sorted(self.levels)
        for above, depth in pairwise(depths):
            upper, lower = self.levels[above], self.levels[depth]
            width = len(upper.inside.entries)
            mine = self.values[np.array(upper.starts)[:, None] + np.arange(width)]
            sums = self.below[depth]
            checked: list[frozenset[str]] = []
            pairs = sorted(
                product(upper.inside.margins().items(), lower.inside.margins().items()),
                key=lambda pair: -len(pair[0][0] & pair[1][0]),
            )
            for (kept, one), (other, two) in pairs:
                shared = kept & other
                if any(shared <= before for before in checked):
                    continue
                checked.append(shared)
                wrong = _unequal(upper.inside, one, mine, lower.inside, two, sums, shared)
                if wrong is not None:
                    yield f"row {upper.starts[wrong]} begins an area that is not the sum of the areas below it"


def _agree(inside: Inside, values: Array, starts: Ints) -> Findings:
    """Say where two margins of an area have different sums over what they share; `values` are (areas, entries)."""
    margins = inside.margins()
    kept, listed = list(margins), list(margins.values())
    for i, j in combinations(range(len(kept)), 2):
        shared = kept[i] & kept[j]
        if any(shared <= kept[k] for k in range(min(i, j))):
            continue
        wrong = _unequal(inside, listed[i], values, inside, listed[j], values, shared)
        if wrong is not None:
            yield f"two margins of the area that begins at row {starts[wrong]} have different sums over what they share"


def _unequal(
    one: Inside, margin: Ints, values: Array, other: Inside, beside: Ints, sums: Array, shared: frozenset[str]
) -> int | None:
    """The first area whose two margins have different sums over what they share, or None."""
    number: dict[Entry, int] = {}
    first, second = one.sums(margin, shared, number), other.sums(beside, shared, number)
    first.resize((first.shape[0], len(number)))
    left, right = values @ first, sums @ second
    wrong: Bools = left != right
    if values.dtype.kind != "i":
        size = np.abs(values) @ first + np.abs(sums) @ second
        wrong = np.abs(left - right) > TOLERANCE * np.maximum(1.0, size)
    places = np.flatnonzero(wrong.any(axis=1))
    return int(places[0]) if places.size else None
