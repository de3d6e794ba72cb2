"""The figures of several tables under common names, and which of them are sums of others.

Columns that are levels of one hierarchy make one *dimension*, and every other column one of its own. A figure is a node
in each dimension; node 0 is all of it. A *margin* is a depth in each dimension, and its figures are all its nodes.
Figures of margins agree if and only if each margin agrees with the next finer ones; margins in common are among them
(docs/theory/together.md).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import Any

import numpy as np
from scipy import sparse

from holdfast.arguments import Refused
from holdfast.release.storage.tables import Named, texts

#: A figure: a node in each dimension.
Key = tuple[int, ...]
#: Labels of one dimension, from its first column on.
Path = tuple[str, ...]
#: The same where labels of coarser columns are not told.
Told = tuple[str | None, ...]
#: Figures that are combined at most.
MOST = 20_000


@dataclass(frozen=True, eq=False)
class Rows:
    """The names of the rows of one source: who it is, its dimensions as columns from coarse to fine, its labels.

    `part`: the column that says which part of all records it has, one label for all its rows. `some`: not all
    labels need be there.
    """

    who: str
    chains: tuple[tuple[str, ...], ...]
    columns: Mapping[str, Sequence[str | None]]
    part: str | None = None
    some: bool = False

    @classmethod
    def of(cls, who: str, table: Any, columns: Named, part: tuple[str, str] | None) -> Rows:
        """The names of a loaded table's rows, without a root that all of them have; `part`: a column for all rows."""
        places, groups = list(table.places), {each.name: each.axis for each in table.recoded}
        named = {name: texts(columns[name]).tolist() for name in table.columns if name != "level"}
        if len(places) > 1 and places[0] == table.levels[0] and len(set(named[places[0]])) == 1:
            del named[places.pop(0)]
        chains = [tuple(places)] if places else []
        for name in (each for each in named if each not in (*places, *groups)):
            coarser = [group for group, axis in groups.items() if axis == name]
            if len(coarser) > 1:
                raise Refused(
                    f"{who} groups {name!r} in two ways, {coarser[0]!r} and {coarser[1]!r}: combine needs one"
                )
            chains.append((*coarser, name))
        if part is not None:
            named[part[0]] = [part[1]] * table.rows
            chains.append((part[0],))
        return cls(who, tuple(chains), named, None if part is None else part[0])


@dataclass(frozen=True, eq=False)
class Dimension:
    """Columns from coarse to fine, and the nodes that their labels make, all of it first."""

    columns: tuple[str, ...]
    paths: tuple[Path, ...]

    @cached_property
    def place(self) -> dict[Path, int]:
        return {path: node for node, path in enumerate(self.paths)}

    @cached_property
    def below(self) -> list[list[int]]:
        found: list[list[int]] = [[] for _ in self.paths]
        for node, path in enumerate(self.paths[1:], 1):
            found[self.place[path[:-1]]].append(node)
        return found

    def at(self, depth: int) -> list[int]:
        return [node for node, path in enumerate(self.paths) if len(path) == depth]

    def parts(self, node: int, depth: int) -> list[int]:
        """The nodes of a depth that make up a node; a node without parts stands for itself."""
        if len(self.paths[node]) >= depth or not self.below[node]:
            return [node]
        return [part for child in self.below[node] for part in self.parts(child, depth)]

    @classmethod
    def of(cls, columns: tuple[str, ...], sources: Sequence[Rows]) -> tuple[Dimension, list[list[int]]]:
        """The dimension of these columns, and for every source the node of each row."""
        told = [_told(columns, rows) for rows in sources]
        if any(columns == (rows.part,) for rows in sources):  # each has its own label, and together they have all
            labels_of = dict.fromkeys((str(each[0]),) for labels in told for each in labels if each)
            found = cls(columns, ((), *labels_of))
            return found, [[found.place[tuple(map(str, each))] for each in labels] for labels in told]
        levels: list[dict[Path, None]] = [{(): None}]
        for depth in range(1, len(columns) + 1):
            levels.append({})
            for rows, labels in zip(sources, told, strict=True):
                pair = {*columns[max(depth - 2, 0) : depth]}  # who tells both of two columns tells which holds which
                if not rows.some and any(pair <= {*chain} for chain in rows.chains):
                    for each in (each for each in dict.fromkeys(labels) if len(each) == depth):
                        levels[-1][*_resolved(each[:-1], levels[-2], rows.who, columns), str(each[-1])] = None
        found = cls(columns, tuple(path for level in levels for path in level))
        nodes = []
        for rows, labels in zip(sources, told, strict=True):
            seen = {
                each: found.place[_resolved(each, levels[len(each)], rows.who, columns)]
                for each in dict.fromkeys(labels)
            }
            nodes.append([seen[each] for each in labels])
            for depth in () if rows.some else {len(each) for each in seen}:
                for node in {*found.at(depth)}.difference(nodes[-1]):
                    raise Refused(
                        f"{rows.who} has no {columns[depth - 1]!r} called {' / '.join(found.paths[node])!r}, which "
                        "others have: only tables of the same figures are combined"
                    )
        return found, nodes


def _told(columns: tuple[str, ...], rows: Rows) -> list[Told]:
    """For every row its labels down to the finest one that it has; None where a coarser column is not told."""
    known = [rows.columns.get(name) for name in columns]
    count = len(next(iter(rows.columns.values()), ()))
    found = []
    for row in range(count):
        labels = [None if each is None else each[row] for each in known]
        deep = max((place for place, label in enumerate(labels, 1) if label is not None), default=0)
        found.append(tuple(labels[:deep]))
    return found


def _resolved(labels: Told, paths: Mapping[Path, None], who: str, columns: tuple[str, ...]) -> Path:
    """The one path that has these labels where they are told."""
    if labels in paths:
        return labels  # type: ignore[return-value]
    fitting = [path for path in paths if all(a in (None, b) for a, b in zip(labels, path, strict=True))]
    if len(fitting) != 1:
        name, label = columns[len(labels) - 1], labels[-1]
        why = f"the others have {len(fitting)} of this name" if fitting else "the others do not have it there"
        raise Refused(
            f"{label!r} in the column {name!r} of {who} cannot be placed, since {why}: give it the same names"
        )
    return fitting[0]


@dataclass(frozen=True, eq=False)
class Universe:
    """All figures of several sources: for every row of each its number among the figures, and which add up."""

    dimensions: tuple[Dimension, ...]
    keys: tuple[Key, ...]
    rows: tuple[np.ndarray[Any, Any], ...]
    named: int
    sums: Any

    @classmethod
    def of(cls, sources: Sequence[Rows]) -> Universe:
        """Put the rows of all sources under common names; the first `named` figures stand in some source."""
        chains = [chain for rows in sources for chain in rows.chains]
        found = [Dimension.of(columns, sources) for columns in _joined(chains)]
        dimensions = tuple(each for each, _ in found)
        number: dict[Key, int] = {}
        rows = tuple(
            np.array([number.setdefault(key, len(number)) for key in zip(*nodes, strict=True)], dtype=np.int64)
            for nodes in zip(*(nodes for _, nodes in found), strict=True)
        )
        for each, mine in zip(sources, rows, strict=True):
            if np.unique(mine).size < mine.size:
                raise Refused(f"{each.who} has two rows of one name: name the columns that tell them apart")
        named = len(number)
        equations = list(_equations(dimensions, number)) if named <= MOST else []
        if len(number) > MOST:
            raise Refused(f"the folders have {len(number):,} figures together, and at most {MOST:,} are combined")
        at = np.repeat(np.arange(len(equations)), [1 + len(parts) for _, parts in equations])
        columns = np.array([number[key] for whole, parts in equations for key in (whole, *parts)], dtype=np.int64)
        signs = np.array([sign for _, parts in equations for sign in (-1.0, *([1.0] * len(parts)))])
        sums = sparse.csr_array((signs, (at, columns)), shape=(len(equations), len(number)))
        return cls(dimensions, tuple(number), rows, named, sums)

    @property
    def n(self) -> int:
        return len(self.keys)

    def where(self, names: Mapping[str, Any]) -> list[int]:
        """The numbers of the fewest figures that add up to what has these names, a label or several for a column."""
        left, wanted = dict(names), []
        for each in self.dimensions:
            mine = {each.columns.index(name): left.pop(name) for name in each.columns if name in left}
            known = {
                at: {str(label)} if isinstance(label, str) or not np.iterable(label) else {*map(str, label)}
                for at, label in mine.items()
            }
            nodes = each.at(max(mine, default=-1) + 1)
            wanted.append([v for v in nodes if all(each.paths[v][at] in labels for at, labels in known.items())])
        place = {key: number for number, key in enumerate(self.keys[: self.named])}
        found = []
        for depths in {tuple(len(d.paths[v]) for d, v in zip(self.dimensions, key, strict=True)) for key in place}:
            parts = [
                [part for node in nodes for part in each.parts(node, depth)]
                for each, nodes, depth in zip(self.dimensions, wanted, depths, strict=True)
            ]
            if all(parts) and all(key in place for key in product(*parts)):
                found.append([place[key] for key in product(*parts)])
        if left or not found:
            listed = ", ".join(name for each in self.dimensions for name in each.columns)
            raise Refused(f"where must name figures by {listed}, and no figures add up to {dict(names)!r}")
        return min(found, key=len)

    def columns(self) -> dict[str, list[str | None]]:
        """The names of the figures that stand in some source."""
        found: dict[str, list[str | None]] = {}
        for place, each in enumerate(self.dimensions):
            for depth, name in enumerate(each.columns):
                labels = (each.paths[key[place]] for key in self.keys[: self.named])
                found[name] = [path[depth] if len(path) > depth else None for path in labels]
        return found


def _joined(chains: Sequence[tuple[str, ...]]) -> list[tuple[str, ...]]:
    """Chains that share columns as one, from coarse to fine."""
    groups: list[list[tuple[str, ...]]] = []
    for chain in dict.fromkeys(chains):
        mine = [group for group in groups if any({*chain} & {*other} for other in group)]
        groups = [group for group in groups if group not in mine]
        groups.append([*(other for group in mine for other in group), chain])
    found = []
    for group in groups:
        after = {name: {a for chain in group if name in chain for a in chain[chain.index(name) + 1 :]}
                 for name in dict.fromkeys(name for chain in group for name in chain)}  # fmt: skip
        order = max(group, key=len)
        left = dict.fromkeys(after)
        made: list[str] = []
        while left:
            first = [name for name in left if not any(name in after[other] for other in left)]
            if len(first) != 1:
                two = first or list(left)[:2]
                raise Refused(
                    f"the columns {two[0]!r} and {two[-1]!r} are levels in an order that no table tells: combine needs "
                    "one hierarchy of them"
                )
            made.append(first[0])
            del left[first[0]]
        found.append(tuple(made) if len(made) > 1 else order)
    return found


def _equations(dimensions: Sequence[Dimension], number: dict[Key, int]) -> Iterator[tuple[Key, list[Key]]]:
    """Every figure with the figures of the next finer margins that it is the sum of; new figures are numbered."""
    depths = [np.array([len(path) for path in each.paths]) for each in dimensions]
    margins = {tuple(int(depth[node]) for depth, node in zip(depths, key, strict=True)) for key in number}
    fresh = set(margins)
    while fresh:  # also what two margins have in common
        fresh = {tuple(map(min, one, other)) for one in fresh for other in margins} - margins
        margins |= fresh
    for margin in sorted(margins):
        finer = [each for each in margins if each != margin and all(a <= b for a, b in zip(margin, each, strict=True))]
        next_finer = [
            each for each in finer
            if not any(other != each and all(a <= b for a, b in zip(other, each, strict=True)) for other in finer)
        ]  # fmt: skip
        for key in product(*(each.at(depth) for each, depth in zip(dimensions, margin, strict=True))):
            number.setdefault(key, len(number))
            for other in next_finer:
                parts = list(product(*(d.parts(v, t) for d, v, t in zip(dimensions, key, other, strict=True))))
                if parts == [key]:
                    continue
                for part in parts:
                    number.setdefault(part, len(number))
                yield key, parts
