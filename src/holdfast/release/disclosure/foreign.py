"""Figures about columns that a table lacks: summed over them where they are complete, or joined with its cells.

Proposition (docs/theory/pinned.md, *Foreign columns*): figures that are complete over their foreign columns, none of
which two groups share, tell about a table exactly what their sums over these columns tell.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from holdfast.arrays import Ints
from holdfast.release.disclosure.public_words import Figures, Group, Relation


def all_groups(figures: Figures) -> list[Group]:
    """The exact figures, and the nodes of a hierarchy that they determine."""
    return [*figures["groups"], *figures.get("implied", ())]


def domain_of(figures: Figures) -> list[Relation] | None:
    """The domain that was kept with figures; None where it was not, as in ledgers that are older than this."""
    if "domain" not in figures:
        return None
    return [(tuple(each["columns"]), [tuple(row) for row in each["values"]]) for each in figures["domain"]]


def values_of(domain: Iterable[Relation], column: str) -> frozenset[str]:
    """The values that a column can have."""
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


def related(group: Group, domain: Sequence[Relation] | None) -> set[str]:
    """The columns of a group, and those that the domain ties to them, such as the leaves below nodes of a hierarchy."""
    own = set(group["columns"])
    return own.union(*(columns for columns, _ in domain or () if own & set(columns)))


def tells_all(groups: Sequence[tuple[Group, Sequence[Relation] | None]], own: set[str]) -> bool:
    """Whether sums over foreign columns tell everything: each group is complete, and none share a foreign column.

    Columns that the domain ties to foreign ones are looked at too: none may be the table's.
    """
    seen: set[str] = set()
    for group, domain in groups:
        tied = related(group, domain)
        foreign = tied - own
        if domain is None or foreign & seen or not tied & own <= set(group["columns"]):
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


def groupings(domain: Iterable[Relation]) -> dict[str, tuple[str, dict[str, str]]]:
    """The levels of hierarchies whose leaves have different names: the leaf's column, and the node of every leaf."""
    found = {}
    for columns, rows in domain:
        if len({row[-1] for row in rows}) == len(rows):
            for k, name in enumerate(columns[:-1]):
                found[name] = (columns[-1], {row[-1]: row[k] for row in rows})
    return found


def grouped_alike(one: tuple[str, dict[str, str]], other: tuple[str, dict[str, str]]) -> bool:
    """Whether two levels of one name put the leaves that they share below nodes of the same names."""
    return one[0] != other[0] or all(other[1].get(leaf, node) == node for leaf, node in one[1].items())


def joined(parts: Sequence[Relation], most: int) -> Relation | None:
    """The combinations of all columns that every part of a domain allows (the natural join); None if beyond `most`."""
    columns: tuple[str, ...] = ()
    rows: list[tuple[str, ...]] = [()]
    waiting = list(parts)
    while waiting:
        # Parts that share most columns with what is there keep it small.
        part = max(waiting, key=lambda each: len(set(each[0]) & set(columns)))
        waiting.remove(part)
        shared = [name for name in part[0] if name in columns]
        fresh = [k for k, name in enumerate(part[0]) if name not in columns]
        of_part, of_rows = [part[0].index(name) for name in shared], [columns.index(name) for name in shared]
        more: dict[tuple[str, ...], dict[tuple[str, ...], None]] = {}
        for row in part[1]:
            more.setdefault(tuple(row[k] for k in of_part), {})[tuple(row[k] for k in fresh)] = None
        size = sum(len(more.get(tuple(row[k] for k in of_rows), ())) for row in rows)
        if size > most:
            return None
        rows = [row + end for row in rows for end in more.get(tuple(row[k] for k in of_rows), ())]
        columns += tuple(part[0][k] for k in fresh)
    return columns, rows


def places(relation: Relation, columns: Sequence[str], wanted: dict[tuple[str, ...], int]) -> tuple[Ints, Ints]:
    """The rows of a relation that have wanted values in these columns, and which of the wanted."""
    at = [relation[0].index(name) for name in columns]
    found = [(i, wanted.get(tuple(row[k] for k in at), -1)) for i, row in enumerate(relation[1])]
    kept = np.array([pair for pair in found if pair[1] >= 0], dtype=np.int64).reshape(-1, 2)
    return kept[:, 0], kept[:, 1]
