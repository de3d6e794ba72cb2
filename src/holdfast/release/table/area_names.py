"""The names of figures in the areas of a hierarchy, made where they are written: a census has no room for all of them.

A figure is called by its place, with the places above, and by its entry inside a place: its margin and its values.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise

import numpy as np

from holdfast.arrays import Ints
from holdfast.domains import Hierarchy
from holdfast.queries.areas.area_margins import AreaMargins
from holdfast.release.storage.tables import Coded, Texts, hash_names
from holdfast.release.table.area_cut import AreaCut

#: Figures of the largest table that is written as one file; larger ones are written in parts of about so many.
MOST_IN_A_FILE = 1_000_000


@dataclass(frozen=True, eq=False)
class AreaNames(Mapping[str, Texts]):
    """Columns of names of the outputs of margins in areas; `of_axes` are the values of the axes, recoded ones last.

    A value stands also in the column of a recoded axis: its group. A column is made whenever it is asked for. Of a
    stretch of areas `beyond` are the names above it, level by level, for every area.
    """

    query: AreaMargins
    of_axes: Sequence[Texts]
    beyond: Mapping[str, Texts] = field(default_factory=dict)

    def __iter__(self) -> Iterator[str]:
        return iter(self._small)

    def __len__(self) -> int:
        return len(self._small)

    def __getitem__(self, name: str) -> Texts:
        return self._coded(name, *self._where(0, self.query.n)).column

    def of(self, first: int, last: int) -> dict[str, Coded]:
        where = self._where(first, last)
        return {name: self._coded(name, *where) for name in self}

    @cached_property
    def parts(self) -> list[tuple[int, int]]:
        """The first and last row, this one excluded, of every part in which the table is written: areas are whole.

        Below the cut they are the runs of its stretches, level by level.
        """
        starts, cut = self.query.starts, AreaCut.of(self.query)
        ends, first, behind = [0], 0, len(starts) - 1 if cut is None else cut.above
        while first < behind:
            beyond = int(np.searchsorted(starts, starts[first] + MOST_IN_A_FILE, side="right")) - 1
            first = min(max(beyond, first + 1), behind)
            ends.append(int(starts[first]))
        runs = [] if cut is None else [run for level in cut.runs for run in level]
        return [pair for pair in (*pairwise(ends), *runs) if pair[0] < pair[1]]

    @cached_property
    def domain_hash(self) -> str:
        """The hash of all names, part by part: two tables in parts with the same one have the same domain."""
        found = hashlib.sha256()
        for part in self.parts:
            for name, column in self.of(*part).items():
                hash_names(found, name, column)
        return f"sha256:{found.hexdigest()}"

    def distinct(self, name: str) -> list[str | None]:
        return list(self._small[name].texts)

    def _where(self, first: int, last: int) -> tuple[Ints, Ints]:
        """The node of each row, and its entry among those of all depths."""
        starts, depth = self.query.starts, self.query.hierarchy.depth
        rows = np.arange(first, last)
        low, high = np.searchsorted(starts, [first, last - 1], side="right")
        nodes = np.arange(low - 1, high)
        begin = np.maximum(starts[nodes], first)
        node = np.repeat(nodes, np.minimum(starts[nodes + 1], last) - begin)
        return node, rows - starts[node] + self._first[depth[node]]

    def _coded(self, name: str, node: Ints, entry: Ints) -> Coded:
        return self._small[name].at(node if name in self._above else entry)

    @cached_property
    def _first(self) -> Ints:
        width = np.zeros(len(self.query.keep) + 1, np.int64)
        np.add.at(width, [depth + 1 for depth, _ in self.query.groups], self.query.sizes)
        return np.cumsum(width)

    @cached_property
    def _above(self) -> dict[str, Texts]:
        return {**self.beyond, **ancestors(self.query.hierarchy)}

    @cached_property
    def _small(self) -> dict[str, Coded]:
        """Every column by its distinct names: of the nodes, or of the entries of all depths."""
        table, count = self.query.table, int(self._first[-1])
        entries: dict[str, Texts] = {name: np.full(count, None, dtype=object) for name in ("level", *table.all_names)}
        at = 0
        for (_, axes), name, size in zip(self.query.groups, self.query.levels, self.query.sizes.tolist(), strict=True):
            entries["level"][at : at + size] = name
            for axis, texts in enumerate(self.of_axes):
                if table.tells(axes, (axis,)):
                    entries[table.all_names[axis]][at : at + size] = texts[table.within(axes, (axis,))]
            at += size
        listed = {"level": entries.pop("level"), **self._above, **entries}
        return {name: _coded(column) for name, column in listed.items()}


def distinct(columns: Mapping[str, Texts], name: str) -> list[str]:
    known = columns.distinct(name) if isinstance(columns, AreaNames) else dict.fromkeys(columns[name].tolist())
    return [text for text in known if text is not None]


def ancestors(tree: Hierarchy) -> dict[str, Texts]:
    """Each node's ancestor at every level (itself at its own), None below it."""
    above: dict[str, Texts] = {}
    for d, level in enumerate(tree.levels):
        node = np.where(tree.depth == d, np.arange(tree.n), -1)
        for deeper in range(d + 1, len(tree.levels)):
            nodes = tree.order[tree.level_start[deeper] : tree.level_start[deeper + 1]]
            node[nodes] = node[tree.parents[nodes]]
        above[level] = tree.names[node]
        above[level][node < 0] = None
    return above


def _coded(column: Texts) -> Coded:
    number: dict[str | None, int] = {}
    codes = np.array([number.setdefault(text, len(number)) for text in column.tolist()], dtype=np.int64)
    return Coded(np.array(list(number), dtype=object), codes)
