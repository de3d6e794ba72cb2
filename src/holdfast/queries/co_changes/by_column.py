"""How many records must change together before one value of a column can become another (THEORY §12).

Rows are labelled: row r goes from a cell p to a cell q. A change of k rows is *allowed* if everything that is kept
exactly stays. k(a, b) is the least number of records of an allowed change, none of whose proper parts is allowed, that
turns a row's a into b and alters the answer. Under add-remove a row may also come or go, which is one record; a row
that changes its value is two, one that goes and one that comes. Proofs: docs/theory/what-can-change.md.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array

from holdfast.arguments import Refused
from holdfast.arrays import Bools, Ints
from holdfast.domains import Cube
from holdfast.queries.co_changes.cube import complete_margins, records_of_axes
from holdfast.queries.co_changes.signatures import Signatures, independent, signatures
from holdfast.queries.columns import equal_columns
from holdfast.queries.linear_query import Query
from holdfast.queries.margin_counts import MarginCounts
from holdfast.queries.neighbours import ADD_REMOVE, Neighbours

#: Rows up to which it is looked whether they are the margins of a cube.
MOST_ROWS = 200_000
#: Groups of values of which every two are looked at.
MOST_GROUPS = 3_000
#: So many pairs of values are named one by one.
NAMED = 6


@dataclass(frozen=True, eq=False)
class Column:
    """A column of the records: the number of the value of every cell (−1: the cell cannot hold records), and names."""

    name: str
    codes: Ints
    values: npt.NDArray[np.object_]

    @classmethod
    def of(cls, name: str, codes: Any, values: Iterable[Any]) -> Column:
        return cls(name, np.asarray(codes, np.int64), np.array([str(value) for value in values], dtype=object))


@dataclass(frozen=True)
class Step:
    """Pairs of values of a column that need the same number of records; `exact` False: so many do, fewer may."""

    records: int
    pairs: int
    example: tuple[str, str]
    exact: bool = True

    def as_mapping(self) -> dict[str, Any]:
        return asdict(self) | {"example": list(self.example)}


@dataclass(frozen=True)
class CoChanges:
    """How many records must change together, for the pairs of values of one column, the fewest first.

    `kind` is the relation that counts them. `fixed` names the first of the `fixed_pairs` that no number of records
    changes. For `undecided` pairs the search stopped: they need more than `beyond` records, or never change.
    """

    column: str
    kind: str
    steps: tuple[Step, ...]
    fixed: tuple[tuple[str, str], ...] = ()
    fixed_pairs: int = 0
    undecided: int = 0
    beyond: int = 0

    @property
    def records(self) -> int | None:
        """k_column: with so many records every value becomes any other that it can become; None: none can."""
        return self.steps[-1].records if self.steps else None

    @property
    def exact(self) -> bool:
        return not self.undecided and (not self.steps or self.steps[-1].exact)

    @property
    def one(self) -> int:
        """What one record that changes its value counts in this relation."""
        return 2 if self.kind == ADD_REMOVE else 1

    @property
    def alone(self) -> Step | None:
        return self.steps[0] if self.steps and self.steps[0].records <= self.one else None

    @property
    def pairs(self) -> int:
        return sum(step.pairs for step in self.steps) + self.fixed_pairs + self.undecided

    def as_mapping(self) -> dict[str, Any]:
        steps, fixed = [step.as_mapping() for step in self.steps], [list(pair) for pair in self.fixed]
        counted = {name: getattr(self, name) for name in ("fixed_pairs", "undecided", "beyond")}
        named = {name: getattr(self, name) for name in ("column", "kind", "records", "exact")}
        return named | {"steps": steps, "fixed": fixed} | counted


@dataclass(frozen=True)
class Groups:
    """Values of a column that behave alike, and what every two of them need.

    members: the values of each group. within, between: the records that two values of one group, or of two groups,
    need; 0: they never change; −1: not decided. `between` None: what `across` says for each group alone, the least of
    the two (0 counts as most).
    """

    members: tuple[Ints, ...]
    within: Ints
    between: Ints | None
    across: Ints


def told(
    column: Column, kind: str, groups: Groups, exact: Mapping[int, bool] | None = None, beyond: int = 0
) -> CoChanges:
    """Say what groups of values need, in pairs with an example each."""
    counts: dict[int, int] = {}
    examples: dict[int, list[tuple[str, str]]] = {}
    for records, number, firsts in _pairs(groups):
        counts[records] = counts.get(records, 0) + number
        shown = examples.setdefault(records, [])
        for a, b in firsts:
            if len(shown) < NAMED:
                shown.append((str(column.values[a]), str(column.values[b])))
    sure = exact or {}
    steps = tuple(
        Step(records, counts[records], examples[records][0], sure.get(records, True))
        for records in sorted(counts)
        if records > 0
    )
    return CoChanges(column.name, kind, steps, tuple(examples.get(0, ())), counts.get(0, 0), counts.get(-1, 0), beyond)


def _pairs(groups: Groups) -> Iterable[tuple[int, int, list[tuple[int, int]]]]:
    """Yield (records, how many pairs, the first pairs) for pairs within a group and between two."""
    sizes = np.array([members.size for members in groups.members], np.int64)
    for g in np.flatnonzero(sizes > 1).tolist():
        first = groups.members[g]
        listed = [(int(first[0]), int(other)) for other in first[1 : NAMED + 1]]
        yield int(groups.within[g]), int(sizes[g] * (sizes[g] - 1) // 2), listed
    if groups.between is not None:
        a, b = np.triu_indices(sizes.size, 1)
        needed = groups.between[a, b]
        for records in np.unique(needed).tolist():
            chosen = np.flatnonzero(needed == records)
            number = int((sizes[a[chosen]] * sizes[b[chosen]]).sum())
            listed = [(int(groups.members[a[i]][0]), int(groups.members[b[i]][0])) for i in chosen[:NAMED]]
            yield records, number, listed
        return
    # The least of the two: all pairs among groups that need at least so many, less those among the later ones.
    rank = np.where(groups.across == 0, np.iinfo(np.int64).max, groups.across)
    order = np.argsort(rank, kind="stable")
    after = np.concatenate([np.cumsum(sizes[order][::-1])[::-1][1:], [0]])
    for records in np.unique(rank).tolist():
        places = np.flatnonzero(rank[order] == records)
        number = int((sizes[order[places]] * after[places]).sum())
        if number:
            g, others = order[places[0]], order[places[0] + 1 : places[0] + 1 + NAMED]
            listed = [(int(groups.members[g][0]), int(groups.members[h][0])) for h in others]
            yield int(groups.across[g]), number, listed


def records_together(
    query: Query, rows: Any, neighbours: Any, columns: tuple[Column, ...], allowed: Any = None
) -> tuple[CoChanges, ...]:
    """Return for each column how many records must change together while rows @ answer stays (THEORY §12).

    rows: everything that is kept, all rows of complete margins among them. allowed: which cells can hold records.
    """
    if query.cells is None:
        raise Refused("query must have known columns for a count of the records that change together")
    relation = Neighbours.of(neighbours)
    mask = query.mask(allowed)
    found = signatures(rows, query.columns, mask)
    columns = tuple(Column(each.name, np.where(found.classes < 0, -1, each.codes), each.values) for each in columns)
    closed = _of_cube(query, found, mask, relation)
    if closed is not None and all(each.name in closed for each in columns):
        least = min((k for k in closed.values() if k is not None), default=0)
        # Where margins are asked, one more than the least suffices, and fewer may (what-can-change, Proposition 2),
        # unless the least is one record: alone it cannot change a column of a kept margin.
        alone = least == (2 if relation.adds else 1)
        bounds = {} if query.identity or alone else {k: k == least for k in closed.values() if k is not None}
        return tuple(alike(each, relation.kind, closed[each.name], bounds) for each in columns)
    kinds = _kinds(query, found)
    used = np.unique(kinds[kinds >= 0], return_index=True)[1]
    cells = np.flatnonzero(kinds >= 0)[used]
    # Classes take it that cells differ in the answer from each other and, where records come and go, from none.
    counted = not relation.adds or bool((np.diff(query.columns.indptr)[cells] > 0).all())
    distinct = counted and cells.size == np.count_nonzero(kinds >= 0)
    alone = independent(found.distinct())
    classes = _classes(found, kinds, relation, alone)
    if distinct and (classes.moves or alone):
        return tuple(_by_classes(relation.kind, classes, each) for each in columns)
    return tuple(alike(each, relation.kind, -1, beyond=1) for each in columns)


def _kinds(query: Query, found: Signatures) -> Ints:
    """A number for each cell that exactly the cells with equal answers share; −1: it cannot hold records."""
    used = found.classes >= 0
    if query.identity or query.tree is not None:
        return np.where(used, np.cumsum(used) - 1, -1)
    kinds = equal_columns(query.columns)
    numbered = np.full(kinds.size, -1, np.int64)
    numbered[used] = np.unique(kinds[used], return_inverse=True)[1].ravel()
    return numbered


def _classes(found: Signatures, kinds: Ints, relation: Neighbours, alone: bool) -> Classes:
    """The classes of cells; under add-remove a row that is not there belongs to those of signature 0."""
    used = found.classes >= 0
    count = int(found.classes.max(initial=0)) + 1
    pairs = distinct_pairs(found.classes[used], kinds[used])
    number = np.bincount(pairs[0], minlength=count)
    if relation.adds:
        number[0] += 1
    return Classes(found.classes, number > 1, 0 if relation.adds else None, alone)


def _of_cube(query: Query, found: Signatures, mask: Any, relation: Neighbours) -> dict[str, int | None] | None:
    """The records that each axis needs, where all cells are possible and complete margins are kept."""
    cube = query.cube
    if cube is None and query.identity:
        cube = Cube((query.n,))
    if cube is None or cube.recoded or mask is not None or found.matrix.shape[0] > MOST_ROWS:
        return None
    if not query.identity and not isinstance(query, MarginCounts):
        return None
    kept = complete_margins(cube, found.matrix)
    if not kept:
        return None
    asked = (tuple(range(len(cube.shape))),) if not isinstance(query, MarginCounts) else query.keep
    needed = records_of_axes(cube.shape, kept, asked)
    if needed is None:
        return None
    times = 2 if relation.adds else 1  # a kept margin keeps the number of records: as many come as go
    return {name: None if k is None else k * times for name, k in zip(cube.names, needed, strict=True)}


def alike(
    column: Column, kind: str, records: int | None, exact: Mapping[int, bool] | None = None, beyond: int = 0
) -> CoChanges:
    """Say that all pairs of values of a column need as many records; None: they never change, −1: not decided."""
    needed = np.full(1, records or 0, np.int64)
    values = np.unique(column.codes[column.codes >= 0])
    return told(column, kind, Groups((values,), needed, None, needed), exact, beyond)


@dataclass(frozen=True, eq=False)
class Classes:
    """The class of every cell (−1: none), which classes are rich, and the class of signature 0 under add-remove.

    Cells of a class add the same to everything that is kept; it is *rich* if two of them differ in the answer. Within a
    class one record changes alone. A record that goes from one class to another needs a way back: one more record if
    either class is rich, two more by way of any rich class. These numbers always suffice; they are the least where the
    distinct signatures are linearly independent, since every allowed change is then a union of circles through
    different classes (docs/theory/what-can-change.md, Proposition 1).
    """

    of: Ints
    rich: Bools
    zero: int | None
    independent: bool

    @property
    def moves(self) -> bool:
        """Whether some change of records alters the answer within a class."""
        return bool(self.rich.any())


def _by_classes(kind: str, classes: Classes, column: Column) -> CoChanges:
    """What the values of a column need, by the classes of their cells; cells must differ in the answer."""
    adds = classes.zero is not None
    used = (classes.of >= 0) & (column.codes >= 0)
    pairs = distinct_pairs(column.codes[used], classes.of[used])
    members, incidence = _grouped(pairs, classes.rich.size)
    touches = np.asarray(incidence @ classes.rich.astype(np.int64) > 0)
    apart = np.full(len(members), _otherwise(classes), np.int64)
    apart[touches] = 4 if adds else 2
    if adds:
        of_zero = np.zeros(classes.rich.size, np.int64)
        of_zero[classes.zero] = 1
        apart[np.asarray(incidence @ of_zero > 0)] = 3
    alone = np.full(len(members), 2 if adds else 1, np.int64)
    between = None
    if int(np.asarray(incidence.sum(axis=0)).max(initial=0)) > 1 and len(members) <= MOST_GROUPS:
        lowest = np.where(apart == 0, 99, apart)
        between = np.minimum(lowest[:, None], lowest[None, :])
        between = np.where((incidence @ incidence.T).toarray() > 0, alone[0] if alone.size else 1, between)
        between = np.where(between == 99, 0, between)
    # One record alone, and a way back through a class of its own, are the least in any case.
    sure = dict.fromkeys((4, 5, 6) if adds else (3,), classes.independent)
    if between is None and len(members) > MOST_GROUPS and int(np.asarray(incidence.sum(axis=0)).max(initial=0)) > 1:
        sure |= {2: False, 3: False}  # values may share a class that was not looked at
    return told(column, kind, Groups(members, alone, between, apart), sure)


def _otherwise(classes: Classes) -> int:
    """What a record needs that goes between two classes neither of which is rich; 0: it never can."""
    if classes.zero is None:
        return 3 if classes.moves else 0
    if classes.rich[classes.zero]:
        return 5
    return 6 if classes.moves else 0


def _grouped(pairs: Ints, classes: int) -> tuple[tuple[Ints, ...], csr_array[Any]]:
    """Group the values (of pairs of value and class, sorted) by the sets of their classes."""
    values, start = np.unique(pairs[0], return_index=True)
    length = np.diff(np.append(start, pairs.shape[1]))
    key: dict[bytes, int] = {}
    group = np.empty(values.size, np.int64)
    single = length == 1
    found, inverse = np.unique(pairs[1][start[single]], return_inverse=True)
    group[single] = inverse.ravel()
    sets = [np.array([each]) for each in found]
    for i in np.flatnonzero(~single).tolist():
        chosen = pairs[1][start[i] : start[i] + length[i]]
        place = key.setdefault(chosen.tobytes(), len(sets))
        if place == len(sets):
            sets.append(chosen)
        group[i] = place
    order = np.argsort(group, kind="stable")
    cuts = np.searchsorted(group[order], np.arange(1, len(sets)))
    members = tuple(values[part] for part in np.split(order, cuts)) if sets else ()
    rows = np.repeat(np.arange(len(sets)), [each.size for each in sets])
    listed = np.concatenate(sets) if sets else np.zeros(0, np.int64)
    return members, csr_array((np.ones(listed.size, np.int64), (rows, listed)), shape=(len(sets), classes))


def distinct_pairs(first: Ints, second: Ints) -> Ints:
    """Return the different pairs of two lists of numbers ≥ 0, as two rows, sorted."""
    width = int(second.max(initial=0)) + 1
    if (int(first.max(initial=0)) + 1) * width < 2**62:
        keys = np.sort(first.astype(np.int64) * width + second)
        keys = keys[np.diff(keys, prepend=-1) > 0]
        return np.stack([keys // width, keys % width])
    return np.unique(np.stack([first, second]), axis=1)
