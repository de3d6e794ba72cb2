"""Linked tables of one census, such as persons and households: several cubes in the same areas, tied by sums."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np

from holdfast.arguments import Refused
from holdfast.arrays import Ints
from holdfast.domains import Cube, Hierarchy
from holdfast.queries.areas.linked import linked
from holdfast.release.facts import LinkedTable, Margin, Sum
from holdfast.release.spec.places import At
from holdfast.release.spec.spec import Spec
from holdfast.release.spec.table import TOTAL, LinkedSpec, TableSpec, Term
from holdfast.release.storage.tables import Texts
from holdfast.release.table.kinds.areas import Areas, refuse_too_many
from holdfast.release.table.kinds.domain import key_of
from holdfast.release.table.public import PublicFiles
from holdfast.release.table.shape import Layout

#: The column that says to which of several linked tables a row belongs.
TABLE = "table"
#: Figures of the largest linked tables together.
MOST_LINKED = 20_000_000


class Linked(Areas):
    """Several tables in the same areas, laid out after each other."""

    name = "linked"
    nested = False
    of_households = True

    def reserved(self) -> dict[str, str]:
        return super().reserved() | {TABLE: "which names the linked table"}

    def lay_out(self, spec: Spec, asked: TableSpec, at: At, files: PublicFiles) -> Layout:
        if {rule.rule for rule in asked.hold} != {"consistent", "nonnegative"}:
            raise at["hold"].refuse("linked tables hold consistent and nonnegative, both, and no other rule")
        tables = asked.linked or {}
        parts = tuple(_part(spec, asked, name, each, at["linked"][name], files) for name, each in tables.items())
        refuse_too_many(sum(part.query.n for part in parts), MOST_LINKED, at["linked"])
        names, ties = tuple(tables), []
        for i, tie in enumerate(asked.ties):
            here = at["ties"][i]
            weights = {n: _weights(part, tie.get(n, ()), here[n]) for n, part in zip(names, parts, strict=True)}
            second = list(tie)[1]
            ties.append(weights | {second: -weights[second]})
        try:
            queries = {name: part.query for name, part in zip(names, parts, strict=True)}
            query: Any = linked(queries, ties, {name: tables[name].most for name in names})
        except Refused as refusal:
            raise at["ties"].refuse(str(refusal)) from None
        columns: dict[str, Texts] = {"level": np.array(list(query.levels), dtype=object)[query.level_of]}
        columns[TABLE] = np.repeat(np.array(names, dtype=object), [part.query.n for part in parts])
        for column in dict.fromkeys(name for part in parts for name in list(part.columns)[1:]):
            own = (part.columns.get(column, np.full(part.query.n, None, dtype=object)) for part in parts)
            columns[column] = np.concatenate(list(own))
        labels = [f"{part.asked.name}: {label}" for part in parts for label in part.query.labels]
        margins = tuple(
            Margin(places=margin.places, axes=margin.axes, table=name)
            for name, part in zip(names, parts, strict=True)
            for margin in part.margins
        )
        return Layout(
            *(self, spec, asked, at, query.named(np.array(labels, dtype=object)), (), parts[0].names, columns),
            *(tuple(query.levels), query.level_of, margins),
            parts=parts,
        )

    def query(self, tree: Hierarchy | None, cubes: Sequence[Cube], margins: Sequence[Margin], by: int) -> Any:
        names = list(dict.fromkeys(margin.table for margin in margins))
        own = {name: [margin for margin in margins if margin.table == name] for name in names}
        return {
            name: super(Linked, self).query(tree, (cube,), own[name], by)
            for name, cube in zip(names, cubes, strict=True)
        }

    def linked(self, query: Any, tables: Sequence[LinkedTable]) -> Any:
        rules = [
            {each.name: np.array(tie).reshape(each.shape) for each, tie in zip(tables, ties, strict=True)}
            for ties in zip(*(each.ties for each in tables), strict=True)
        ]
        return linked(query, rules, {each.name: each.most for each in tables})

    def ties(self, query: Any) -> list[Sum]:
        rows = query.tied_rows()
        cuts = [slice(*ends) for ends in pairwise(rows.indptr.tolist())]
        return [
            Sum(rows=rows.indices[cut].tolist(), weights=[str(w) for w in rows.data[cut]], low="0", high="0")
            for cut in cuts
        ]

    def shared_out(self, layout: Layout) -> int:
        return sum(super(Linked, self).shared_out(part) for part in layout.parts)


def _part(spec: Spec, asked: TableSpec, name: str, each: LinkedSpec, at: At, files: PublicFiles) -> Layout:
    """Lay one of the tables out by itself, with the keys by which its records are chosen."""
    own = asked.model_copy(update={"name": name, "linked": None, "ties": (), "cube": each.cube})
    own = own.model_copy(update={"measure": each.measure, "shares": each.shares})
    for cached in ("kind", "axes", "columns"):
        own.__dict__.pop(cached, None)
    laid = Areas().lay_out(spec, own, at, files)
    keys, counted = laid.keys, np.ones(1, bool)
    for column, values in (each.rows or {}).items():
        here = at["rows"]
        key = key_of(spec, (column,), (files.values(column, here),))
        for value in values:
            if value not in key.values[0]:
                raise here[column].refuse(f"{column!r} has no value {value!r}", value, key.values[0].tolist())
        keys = (*keys, key)
        counted = np.logical_and.outer(counted, np.isin(key.values[0].astype(str), list(values))).ravel()
    return replace(laid, keys=keys, counted=counted)


def _weights(part: Layout, terms: tuple[Term, ...], at: At) -> Ints:
    """Return the weights of the cells of a table's cube, in its shape."""
    assert part.cube is not None
    total = np.zeros(part.cube.shape, np.int64)
    for term in terms:
        if term.sum is not None:
            total = total + _values(part, term.sum, at)
        elif term.of == TOTAL:
            total = total + term.times
        elif not isinstance(term.of, dict):
            raise at.refuse("name values of columns, such as {relation: householder}, or total")
        else:
            chosen = np.ones(part.cube.shape, bool)
            for column, values in term.of.items():
                texts = _along(part, column, at)
                for value in values:
                    if value not in texts:
                        raise at.refuse(f"{column!r} has no value {value!r}", value, texts.ravel().tolist())
                chosen = chosen & np.isin(texts.astype(str), list(values))
            total = total + term.times * chosen
    return total


def _along(part: Layout, column: str, at: At) -> Texts:
    axes = part.asked.axes
    if column not in axes:
        raise at.refuse(f"the table {part.asked.name!r} has no column {column!r}", column, axes)
    axis = axes.index(column)
    return np.asarray(part.keys[1 + axis].values[0].reshape([-1 if a == axis else 1 for a in range(len(axes))]))


def _values(part: Layout, column: str, at: At) -> Ints:
    """Return the values of a column of whole numbers, along its axis."""
    texts = _along(part, column, at)
    try:
        return np.array([int(text) for text in texts.ravel().tolist()], np.int64).reshape(texts.shape)
    except ValueError:
        sentence = f"the values of {column!r} are not all whole numbers, so they have no sum: write {{of: …, times: …}}"
        raise at.refuse(sentence, found=column) from None
