"""Exact figures in public words: how many records have these values in these columns, and which values there can be.

A figure in public words can be read again as a sum of cells of any other table that has the columns. The domain goes
with it, so that whoever lacks a column can tell whether figures are about all of its values: only then their sum is a
figure without the column.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from holdfast.arguments import Refused
from holdfast.arrays import Ints
from holdfast.constraints.system.rows import products
from holdfast.disclosure import closed_forms
from holdfast.disclosure.figures import Known
from holdfast.domains import Hierarchy
from holdfast.release.storage.tables import Texts

if TYPE_CHECKING:
    from holdfast.release.job.job import Job
    from holdfast.release.job.table import Table

#: One table's figures in plain values: its name, how its records were treated, groups of figures with one set of
#: columns each, groups of nodes of a hierarchy that these determine, and its domain.
Figures = dict[str, Any]
#: Figures with one set of columns: `columns`, `values` (one list for each figure) and `counts`.
Group = dict[str, Any]
#: A part of a domain: columns, and the combinations of their values that there are.
Relation = tuple[tuple[str, ...], list[tuple[str, ...]]]
#: Hierarchies of up to so many leaves keep with their figures which leaves each node has.
MOST_LEAVES = 5_000


def treatment(job: Job) -> str:
    """Say which records are counted: figures are about the same records only where this is the same.

    Where records are not refused, it is the public values of all tables that decide which of them are kept.
    """
    data, unit = job.spec.data, job.spec.privacy.unit
    parts: dict[str, Any] = {"unit": None}
    if unit is not None:
        parts["unit"] = unit.model_dump(mode="json") | {"column": job.spec.person}
    # Rows that count as one record each are others than those that stand for many, and so are those of a query.
    parts |= {key: asked for key in ("count", "query") if (asked := getattr(data, key)) is not None}
    if data.name is None and data.table is not None:
        parts["table"] = data.table
    if data.nulls.rule != "refuse" or data.outside.rule != "refuse":
        parts |= {"nulls": data.nulls.model_dump(mode="json"), "outside": data.outside.model_dump(mode="json")}
        parts["kept"] = _which_fit(job.tables)
    return json.dumps(parts, sort_keys=True)


def _which_fit(tables: Sequence[Table]) -> str:
    """The hash of what records must have to be counted: values that each table knows, in cells that are possible."""
    wanted = set()
    for table in tables:
        keys, impossible = table.layout.keys, table.holding.impossible
        for key in keys:
            wanted.add(json.dumps([key.columns, sorted(key.positions)]))
        if impossible is not None:
            points = np.unravel_index(np.flatnonzero(impossible), [key.size for key in keys])
            texts = [texts[point].tolist() for key, point in zip(keys, points, strict=True) for texts in key.values]
            columns = [column for key in keys for column in key.columns]
            wanted.add(json.dumps(["none of", columns, sorted(zip(*texts, strict=True))]))
    return hashlib.sha256(json.dumps(sorted(wanted)).encode()).hexdigest()


def published(job: Job, answers: Sequence[npt.NDArray[Any]]) -> list[Figures]:
    """Return the exact figures of every table, read from the true answers."""
    treated = treatment(job)
    return [
        _in_words(table, exact_values(table, truth), treated)
        for table, truth in zip(job.tables, answers, strict=True)
        if table.holding.exact
    ]


def _in_words(table: Table, values: Ints, treated: str) -> Figures:
    A = system_of(table).invariants.A
    groups = _groups(table, A.indptr, A.indices, values)
    outputs, counts = _implied(table, values)
    implied = _groups(table, np.arange(outputs.size + 1), outputs, counts)
    used = with_leaves(table, {name for group in (*groups, *implied) for name in group["columns"]})
    domain = [
        {"columns": list(columns), "values": [list(row) for row in rows]} for columns, rows in relations(table, used)
    ]
    found = {"table": table.name, "treatment": treated, "groups": groups, "implied": implied, "domain": domain}
    return renamed(found, table.layout.spec.data.columns)


def exact_values(table: Table, truth: npt.NDArray[Any]) -> Ints:
    """The values of the exact figures, in the order of their rows."""
    rows = system_of(table).invariants
    return np.asarray(products(rows.A, np.asarray(truth, dtype=np.int64)[:, None])[:, 0], dtype=np.int64)


def system_of(table: Table) -> Any:
    assert table.holding.all is not None
    return table.holding.all.system(table.layout.query.n)


def named_columns(table: Table) -> list[str]:
    left_out = ("level", table.layout.asked.root, *table.layout.asked.recode)
    return [name for name in table.layout.columns if name not in left_out]


def with_leaves(table: Table, used: set[str]) -> set[str]:
    """The columns, and the lowest level of a hierarchy with not too many leaves if they have one of its levels."""
    tree = table.layout.places
    if tree is None or tree.n_leaves > MOST_LEAVES or not used & set(tree.levels):
        return used
    return used | {tree.levels[-1]}


def renamed(figures: Figures, names: Mapping[str, str]) -> Figures:
    if not names:
        return figures
    listed: dict[str, Any] = {
        key: [{**each, "columns": [names.get(name, name) for name in each["columns"]]} for each in figures[key]]
        for key in ("groups", "implied", "domain")
    }
    return {**figures, **listed}


def relations(table: Table, used: set[str] | None = None) -> list[Relation]:
    """The domain of a table, as far as these columns go: its cells are the product of the relations, last one fastest.

    The levels of a hierarchy are one relation, every other column is one of its own.
    """
    tree = table.layout.places
    names = named_columns(table)
    parts: list[tuple[tuple[str, ...], list[Texts]]]
    if tree is None:
        parts = [((name,), [table.layout.keys[a].values[-1]]) for a, name in enumerate(table.layout.names)]
    else:
        levels = tuple(name for name in names if name in tree.levels)
        parts = [(levels, [path_texts(tree, name) for name in levels])]
        parts += [
            ((name,), [key.values[-1]])
            for name, key in zip(table.layout.asked.axes, table.layout.keys[1:], strict=True)
        ]
    found = []
    for columns, texts in parts:
        kept = [k for k, name in enumerate(columns) if used is None or name in used]
        if kept:
            rows = zip(*(map(str, texts[k]) for k in kept), strict=True)
            found.append((tuple(columns[k] for k in kept), list(dict.fromkeys(rows))))
    return found


def path_texts(tree: Hierarchy, level: str) -> Texts:
    depth, node = tree.levels.index(level), tree.leaves
    for _ in range(len(tree.levels)):
        node = np.where(tree.depth[node] > depth, tree.parents[node], node)
    return np.asarray(tree.names[node], dtype=object)


def _implied(table: Table, values: Ints) -> tuple[Ints, Ints]:
    """The nodes of a hierarchy that its own exact ones determine, with their counts; none elsewhere.

    A node is a sum where all below it are known, a difference where all beside it are, and 0 below a 0.
    """
    none = np.zeros(0, dtype=np.int64)
    known = [Known(table.layout.query, system_of(table), values)]
    if not closed_forms.accepts(known, table.layout.query):
        return none, none
    try:
        low, high = closed_forms.ranges(known, table.layout.query)
    except Refused:
        return none, none
    single = low == high
    single[system_of(table).invariants.A.indices] = False
    return np.flatnonzero(single), low[single]


def _groups(table: Table, starts: Any, outputs: Any, values: Ints) -> list[Group]:
    """Write sums of outputs down by the columns and values that all their records share."""
    if not outputs.size:
        return []
    names, count = named_columns(table), starts.size - 1
    shared = np.zeros((len(names), count), dtype=bool)
    texts = []
    for k, name in enumerate(names):
        column: Texts = table.layout.columns[name][outputs]
        labels, codes = np.unique([str(text) if text is not None else "" for text in column], return_inverse=True)
        codes = np.where(column == None, -1, codes)  # noqa: E711
        least, most = (ends.reduceat(codes, starts[:-1]) for ends in (np.minimum, np.maximum))
        shared[k] = (least == most) & (least >= 0)
        texts.append(labels[np.maximum(least, 0)])
    groups = []
    for pattern in np.unique(shared.T, axis=0):
        members = np.flatnonzero((shared == pattern[:, None]).all(axis=0))
        used = np.flatnonzero(pattern)
        groups.append(
            {
                "columns": [names[k] for k in used],
                "values": [[str(texts[k][i]) for k in used] for i in members.tolist()],
                "counts": values[members].tolist(),
            }
        )
    return groups
