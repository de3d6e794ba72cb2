"""Published figures as rows over a table's outputs or cells."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from holdfast.arrays import Ints
from holdfast.constraints import invariant
from holdfast.disclosure.figures import Known
from holdfast.queries import histogram
from holdfast.release.disclosure.public_words import (
    MOST_LEAVES,
    Figures,
    Group,
    Relation,
    named_columns,
    path_texts,
    relations,
    renamed,
)
from holdfast.release.storage.tables import Texts

if TYPE_CHECKING:
    from holdfast.release.job.table import Table


# --- Figures about columns that a table lacks: summed over them where they are complete
# Proposition (docs/theory/pinned.md, *Foreign columns*): figures that are complete over their foreign columns, none of
# which two groups share, tell about a table exactly what their sums over these columns tell.


def all_groups(figures: Figures) -> list[Group]:
    return [*figures["groups"], *figures["implied"]]


def domain_of(figures: Figures) -> list[Relation]:
    return [(tuple(each["columns"]), [tuple(row) for row in each["values"]]) for each in figures["domain"]]


def values_of(domain: Iterable[Relation], column: str) -> frozenset[str]:
    return frozenset(row[columns.index(column)] for columns, rows in domain if column in columns for row in rows)


def summed(group: Group, domain: Sequence[Relation], keep: Sequence[str]) -> Group:
    """Sum figures over the columns that are not kept, wherever there is a figure for each of their values."""
    at = [group["columns"].index(name) for name in keep]
    sums: dict[tuple[str, ...], int] = {}
    found: Counter[tuple[str, ...]] = Counter()
    for values, count in dict(zip(map(tuple, group["values"]), group["counts"], strict=True)).items():
        kept = tuple(values[k] for k in at)
        found[kept] += 1
        sums[kept] = sums.get(kept, 0) + count
    wanted = _how_many(domain, group["columns"], keep)
    whole = [kept for kept in sums if found[kept] == wanted(kept)]
    return {
        "columns": list(keep),
        "values": [list(kept) for kept in whole],
        "counts": [sums[kept] for kept in whole],
    }


def _how_many(domain: Sequence[Relation], columns: Sequence[str], keep: Sequence[str]) -> Any:
    """Tell how many combinations of values the columns can have, given those of the kept ones."""
    factors = []
    for own, rows in domain:
        used = [k for k, name in enumerate(own) if name in columns]
        if used:
            distinct = {tuple(row[k] for k in used) for row in rows}
            fixed = [k for k, name in enumerate(own) if name in keep]
            inside = [used.index(k) for k in fixed]
            counts = Counter(tuple(row[k] for k in inside) for row in distinct)
            factors.append(([list(keep).index(own[k]) for k in fixed], counts))

    def wanted(kept: tuple[str, ...]) -> int:
        total = 1
        for places, counts in factors:
            total *= counts[tuple(kept[k] for k in places)]
        return total

    return wanted


def related(group: Group, domain: Sequence[Relation]) -> set[str]:
    """The columns of a group, and those that the domain ties to them, such as the leaves below nodes of a hierarchy."""
    own = set(group["columns"])
    return own.union(*(columns for columns, _ in domain if own & set(columns)))


def tells_all(groups: Sequence[tuple[Group, Sequence[Relation]]], own: set[str]) -> bool:
    """Whether sums over foreign columns tell everything: each group is complete, and none share a foreign column.

    Columns that the domain ties to foreign ones are looked at too: none may be the table's.
    """
    seen: set[str] = set()
    for group, domain in groups:
        tied = related(group, domain)
        foreign = tied - own
        if foreign & seen or not tied & own <= set(group["columns"]):
            return False
        keep = [name for name in group["columns"] if name in own]
        combinations = {tuple(values[group["columns"].index(name)] for name in keep) for values in group["values"]}
        if len(summed(group, domain, keep)["values"]) < len(combinations):
            return False
        seen |= foreign
    return True


def linked(groups: Sequence[tuple[Group, Any]], own: Iterable[str]) -> list[tuple[Group, Any]]:
    """The groups with foreign columns that share a column with the table, or with another such group."""
    reached, waiting, found = set(own), list(groups), []
    grown = True
    while grown:
        grown = False
        for each in list(waiting):
            columns = related(*each)
            if columns & reached:
                waiting.remove(each)
                reached |= columns
                grown = True
                if set(each[0]["columns"]) - set(own):
                    found.append(each)
    return found


#: By the name of a level: the column of the leaves, and the node of every leaf.
Groupings = dict[str, tuple[str, dict[str, str]]]


def groupings(domain: Iterable[Relation]) -> Groupings:
    """The levels of hierarchies whose leaves have different names: the leaf's column, and the node of every leaf."""
    found = {}
    for columns, rows in domain:
        if len({row[-1] for row in rows}) == len(rows):
            for k, name in enumerate(columns[:-1]):
                found[name] = (columns[-1], {row[-1]: row[k] for row in rows})
    return found


def grouped_alike(one: tuple[str, dict[str, str]], other: tuple[str, dict[str, str]]) -> bool:
    return one[0] != other[0] or all(other[1].get(leaf, node) == node for leaf, node in one[1].items())


#: Tables with more cells than this are looked at only where their own closed form applies.
MOST_CELLS = 2_000_000
TOO_LARGE = (
    f"some exact figures of other tables or earlier releases are not looked at, since this table has more than "
    f"{MOST_CELLS:,} cells: what they determine together is not known"
)
NOT_JOINED = (
    "exact figures about other columns are summed over these and not combined further: what they determine together "
    "beyond the sums is not known"
)


@dataclass(frozen=True, eq=False)
class Readings:
    """Figures as rows of a table, the outputs that are figures or sums of them, and what was left out."""

    known: tuple[Known, ...]
    outputs: Ints
    notes: tuple[str, ...]


def in_names_of(table: Table, several: Iterable[Figures]) -> list[Figures]:
    """Call the columns of figures, which are those of the records, as a table calls them.

    A level that puts the leaves below other nodes than the table's level of this name, or than one of figures before
    it, is another column.
    """
    spec_names = table.layout.spec.data.columns
    own = {spec_names.get(name, name): name for name in named_columns(table)}
    tree = table.layout.places
    known = {} if tree is None or tree.n_leaves > MOST_LEAVES else groupings(relations(table))
    found = []
    for figures in several:
        used = {name for columns, _ in domain_of(figures) for name in columns}
        used |= {name for group in all_groups(figures) for name in group["columns"]}
        taken = {name for name in used if name not in own and name in own.values()}
        names = {name: f"{name} of the records" for name in taken} | {name: own[name] for name in used & set(own)}
        called = renamed(figures, {name: new for name, new in names.items() if name != new})
        other = {}
        for name, grouping in groupings(domain_of(called)).items():
            if not grouped_alike(known.setdefault(name, grouping), grouping):
                other[name] = f"{name} of {sorted(grouping[1].items())}"
        found.append(renamed(called, other))
    return found


def read_all(table: Table, several: Iterable[Figures]) -> Readings:
    """Read the figures of several tables as sums of a table's outputs where they are, otherwise of its cells."""
    found = [_read(table, figures) for figures in several]
    return Readings(
        tuple(known for each in found for known in each.known),
        np.unique(np.concatenate([*(each.outputs for each in found), np.zeros(0, dtype=np.int64)])),
        tuple(dict.fromkeys(note for each in found for note in each.notes)),
    )


def _read(table: Table, figures: Figures) -> Readings:
    found: list[Known | None] = []
    rows: list[Ints] = [np.zeros(0, dtype=np.int64)]
    notes: dict[str, None] = {}
    domain = domain_of(figures)
    above = _above_leaves(table, domain)
    for number, group in enumerate(all_groups(figures)):
        for read in _without_foreign_columns(table, group, domain, above):
            wanted = {tuple(values): i for i, values in enumerate(read["values"])}
            counts = np.array(read["counts"], dtype=np.int64)
            outputs = [] if above.keys() & read["columns"] else matches(outputs_of(table, read["columns"]), wanted)
            if len({row for _, row in outputs}) == len(wanted):
                found.append(_rows(table.layout.query, outputs, counts))
                if number < len(figures["groups"]):
                    rows.append(single(outputs))
            elif int(table.layout.query.cells or 0) <= MOST_CELLS:
                count = int(table.layout.query.cells or 0)
                cells = matches(enumerate(_rows_of(_cell_columns(table, read["columns"], above), count)), wanted)
                found.append(_rows(histogram(count), cells, counts))
            else:
                notes[TOO_LARGE] = None
    return Readings(tuple(each for each in found if each is not None), np.concatenate(rows), tuple(notes))


def _above_leaves(table: Table, domain: list[Relation]) -> Groupings:
    """Levels of other hierarchies over leaves that are a column of the table: its cells tell them."""
    own = named_columns(table)
    foreign = {name: each for name, each in groupings(domain).items() if name not in own and each[0] in own}
    leaves = {leaf: values_of(relations(table, {leaf}), leaf) for leaf, _ in foreign.values()}
    return {name: each for name, each in foreign.items() if leaves[each[0]] <= each[1].keys()}


def _without_foreign_columns(table: Table, group: Group, domain: list[Relation], above: Groupings) -> Iterator[Group]:
    """Figures with columns that the cells tell: as they are, and summed over those that it lacks or codes otherwise."""
    own, columns = {*named_columns(table), *above}, group["columns"]
    if set(columns) <= own:
        yield group
    values = [*relations(table, set(columns)), *(relation for relation in domain if set(relation[0]) & above.keys())]
    keep = [name for name in columns if name in own and values_of(domain, name) == values_of(values, name)]
    if len(keep) < len(columns):
        found = summed(group, domain, keep)
        if found["values"]:
            yield found


def matches(named: Iterable[tuple[int, tuple[Any, ...]]], wanted: dict[tuple[str, ...], int]) -> list[tuple[int, int]]:
    """The places whose values are wanted, and which of the wanted."""
    return [(place, wanted[values]) for place, values in named if values in wanted]


def outputs_of(table: Table, columns: Sequence[str]) -> list[tuple[int, tuple[Any, ...]]]:
    """The outputs that sum over all columns but these, with their values; a level of a hierarchy brings those above."""
    own = np.ones(table.layout.query.n, dtype=bool)
    levels = () if table.layout.places is None else table.layout.places.levels
    above = levels[: max((levels.index(name) for name in columns if name in levels), default=-1) + 1]
    for name in named_columns(table):
        own &= (table.layout.columns[name] != None) == (name in columns or name in above)  # noqa: E711
    for name, each in table.layout.asked.recode.items():  # no sums over all values are those of single groups
        own &= (table.layout.columns[name] != None) == (each.of in columns)  # noqa: E711
    found = np.flatnonzero(own)
    return list(
        zip(found.tolist(), _rows_of([table.layout.columns[name][found] for name in columns], found.size), strict=True)
    )


def single(entries: list[tuple[int, int]]) -> Ints:
    listed = np.array(entries, dtype=np.int64).reshape(-1, 2)
    counts = np.bincount(listed[:, 1]) if listed.size else np.zeros(0, dtype=np.int64)
    return listed[counts[listed[:, 1]] == 1, 0]


def _rows_of(columns: Sequence[Texts], count: int) -> list[tuple[str, ...]]:
    return list(zip(*([str(text) for text in column] for column in columns), strict=True)) if columns else [()] * count


def _cell_columns(table: Table, columns: Sequence[str], above: Groupings) -> list[Texts]:
    """The values of columns in every cell; of levels of other hierarchies those above its leaf."""
    if above:
        own = dict(zip(named_columns(table), _cell_columns(table, named_columns(table), {}), strict=True))
        told = {name: [nodes[str(text)] for text in own[leaf]] for name, (leaf, nodes) in above.items()}
        return [np.array(told[name], dtype=object) if name in told else own[name] for name in columns]
    points = np.indices([key.size for key in table.layout.keys]).reshape(len(table.layout.keys), -1)
    if table.layout.places is not None:
        return [_of_cells(table, name, points) for name in columns]
    axes = [table.layout.names.index(name) for name in columns]
    return [table.layout.keys[a].values[-1][points[a]] for a in axes]


def _of_cells(table: Table, name: str, points: Ints) -> Texts:
    """The values of a level, or of what divides places, in every cell of a hierarchy."""
    axes, tree = table.layout.asked.axes, table.layout.places
    assert tree is not None
    if name in axes:
        axis = axes.index(name) + 1
        return table.layout.keys[axis].values[-1][points[axis]]
    return path_texts(tree, name)[points[0]]


def _rows(query: Any, entries: list[tuple[int, int]], counts: Ints) -> Known | None:
    if not entries:
        return None
    outputs, rows = (np.array(side, dtype=np.int64) for side in zip(*entries, strict=True))
    used, row = np.unique(rows, return_inverse=True)
    C = sparse.csr_array((np.ones(outputs.size, dtype=np.int64), (row, outputs)), shape=(used.size, query.n))
    return Known(query, invariant(C).system(query.n), counts[used])


def sums_tell_less(table: Table, several: Iterable[Figures]) -> bool:
    """Whether figures about columns that a table lacks may tell more than their sums over these."""
    several = list(several)
    own = relations(table, {name for figures in several for group in all_groups(figures) for name in group["columns"]})
    groups: list[tuple[Group, list[Relation]]] = []
    for figures in several:
        called = renamed(figures, _names(domain_of(figures), own))
        groups += [(group, domain_of(called)) for group in all_groups(called)]
    above = (name for figures in several for name in _above_leaves(table, domain_of(figures)))
    columns = [*named_columns(table), *above]
    chosen = linked(groups, columns)
    return bool(chosen) and not tells_all(chosen, set(columns))


def _names(domain: list[Relation], own: list[Relation]) -> dict[str, str]:
    """Call a column that is coded otherwise than in the table by its values too, so that it is another column."""
    mine = {name for columns, _ in own for name in columns}
    found = {}
    for name in (name for columns, _ in domain for name in columns):
        values = values_of(domain, name)
        recoded = name in mine and values != values_of(own, name)
        found[name] = f"{name} of {sorted(values)}" if recoded else name
    return found
