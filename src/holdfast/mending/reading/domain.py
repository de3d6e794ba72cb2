"""What is said about the labels of a table beside the table itself: hierarchies by column, in any of their forms."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

from holdfast.arguments import Refused
from holdfast.domains import Hierarchy
from holdfast.mending.reading import argus, tables
from holdfast.mending.reading.classification import (
    Classification,
    flat,
    from_children,
    from_hierarchy,
    from_pairs,
    joined,
)
from holdfast.mending.reading.labels import Column, is_total
from holdfast.release.storage.argus import TOTAL

#: What each column is said to be; None: nothing adds up in it.
Said = dict[str, "Classification | None"]


def read_domain(domain: Any, columns: Mapping[str, Column]) -> Said:
    """Read what is said: by column, or as one thing for the column whose labels it shares.

    For each column: None (nothing adds up in it), a hf.Hierarchy, a mapping from each label to those that add up to it,
    a frame or file with one row per leaf and one column per level, a `.hrc` file, or a list of these (several
    hierarchies over the same leaves).
    """
    if domain is None:
        return {}
    if isinstance(domain, Mapping) and set(map(str, domain)) <= set(columns):
        return {
            str(name): None if one is None else _one(one, columns[str(name)].labels) for name, one in domain.items()
        }
    known = {label for column in columns.values() for label in column.labels}
    if isinstance(domain, Mapping) and not known & set(map(str, domain)) and not _is_frame(domain, known):
        near = ", ".join(map(repr, columns))
        unknown = next(str(name) for name in domain if str(name) not in columns)
        raise Refused(f"domain speaks of {unknown!r}, which is neither a column nor a label: the columns are {near}")
    best = max(columns, key=lambda name: _shared(domain, columns[name].labels))
    return {best: _one(domain, columns[best].labels)}


def _is_frame(domain: Mapping[Any, Any], known: Collection[str]) -> bool:
    """Whether a mapping holds columns with one row per leaf: as long as each other, and with labels of the table."""
    if any(isinstance(column, (str, Mapping)) or not hasattr(column, "__len__") for column in domain.values()):
        return False
    shared = any(str(entry) in known for column in domain.values() for entry in column)
    return shared and len({len(column) for column in domain.values()}) == 1


def _shared(domain: Any, labels: Sequence[str]) -> int:
    """How many labels of a column a domain knows."""
    found = _one(domain, labels)
    return len(set(found.labels) & set(labels))


def _one(said: Any, labels: Sequence[str]) -> Classification:
    if isinstance(said, Classification):
        return said
    if isinstance(said, Hierarchy):
        return from_hierarchy(said, f"a hierarchy of {said.n:,} nodes was given")
    if isinstance(said, Mapping) and (set(map(str, said)) & set(labels) or not _is_frame(said, labels)):
        return from_children(said, f"sums of {len(said):,} labels were given")
    if isinstance(said, (list, tuple)):
        parts = [_one(each, labels) for each in said]
        if not parts:
            raise Refused("domain must not give an empty list of hierarchies")
        return joined(parts, f"{len(parts)} hierarchies over the same leaves were given")
    if isinstance(said, (str, Path)) and str(said).lower().endswith(".hrc"):
        total = next((label for label in labels if is_total(label)), TOTAL)
        return argus.hierarchy(Path(said), total)
    columns = {name: tables.labels_of(found) for name, found in tables.columns_of(said).items()}
    return from_levels(columns, labels, _name(said))


def _name(said: Any) -> str:
    return repr(Path(said).name) if isinstance(said, (str, Path)) else "the frame that was given"


def from_levels(columns: Mapping[str, Sequence[str]], labels: Sequence[str], name: str) -> Classification:
    """Read a frame with one row per leaf and one column per level; columns that do not nest are further hierarchies.

    The leaves are the column with the most different labels. Every other column is a level: columns nest where each
    label of one stands with one label of the other. A total that the table has stands above all.
    """
    if not columns or not len(next(iter(columns.values()))):
        raise Refused(f"domain must have at least one row, unlike {name}")
    distinct = {column: len(set(found)) for column, found in columns.items()}
    leaf = max(columns, key=lambda column: (distinct[column], list(columns).index(column)))
    chains: list[list[str]] = []
    for level in sorted((column for column in columns if column != leaf), key=lambda column: -distinct[column]):
        for chain in chains:
            if _determines(columns[chain[-1]], columns[level]):
                chain.append(level)
                break
        else:
            chains.append([level])
    total = next((label for label in labels if is_total(label)), None)
    parts = []
    known = set(labels)
    for chain in chains or [[]]:
        steps = [leaf, *chain]
        pairs: dict[tuple[str, str], None] = {}
        for below, above in pairwise(steps):
            pairs |= dict.fromkeys(zip(columns[below], columns[above], strict=True))
        if total is not None:
            pairs |= dict.fromkeys((label, total) for label in columns[steps[-1]] if label != total)
        if chains and not known & {above for _, above in pairs}:
            continue  # a column of names or codes beside the labels: no level of this table
        if pairs:
            parts.append(from_pairs(pairs, name))
    if not parts:
        return flat(list(dict.fromkeys(columns[leaf])), f"{name}: labels without sums")
    words = f"{name}: " + " and ".join(" > ".join(reversed([leaf, *chain])) for chain in chains or [[]])
    return parts[0] if len(parts) == 1 else joined(parts, words)


def _determines(below: Sequence[str], above: Sequence[str]) -> bool:
    """Whether each label of one column stands with one label of the other."""
    pairs = set(zip(below, above, strict=True))
    return len(pairs) == len({pair[0] for pair in pairs})


def placed(column: str, said: Classification, used: Sequence[str]) -> Classification:
    """The classification of a column, once all its labels are known to it; refused, with their names, otherwise."""
    unknown = [label for label in used if label not in said.place]
    if unknown:
        more = f" and {len(unknown) - 3:,} more" if len(unknown) > 3 else ""
        listed = ", ".join(map(repr, unknown[:3]))
        raise Refused(
            f"column {column!r} has labels of unknown level, {listed}{more}: add them to its domain, or take them out"
        )
    return Classification(said.labels, said.parents, f"column {column!r}: {said.words}")
