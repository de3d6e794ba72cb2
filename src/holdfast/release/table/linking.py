"""Linked tables of one census laid out together: the ties in words, and the outputs of all tables after each other."""

from __future__ import annotations

from typing import Any

import numpy as np

from holdfast.arguments import Refused
from holdfast.arrays import Ints
from holdfast.queries.areas.linked import linked
from holdfast.release.spec.linked import TOTAL, Term
from holdfast.release.spec.places import At
from holdfast.release.spec.spec import Spec
from holdfast.release.spec.table import TableSpec
from holdfast.release.storage.coded import Texts
from holdfast.release.table.domain import Layout

#: The column that says to which of several linked tables a row belongs.
TABLE = "table"


def joined(spec: Spec, asked: TableSpec, at: At, parts: tuple[Layout, ...]) -> Layout:
    """Return the layout of linked tables from those of each."""
    tables, names = asked.linked or {}, tuple(part.asked.name for part in parts)
    ties = []
    for i, tie in enumerate(asked.ties):
        here = at["ties"][i]
        weights = {name: _weights(part, tie.get(name, ()), here[name]) for name, part in zip(names, parts, strict=True)}
        second = list(tie)[1]
        ties.append(weights | {second: -weights[second]})
    try:
        query: Any = linked(
            {name: part.query for name, part in zip(names, parts, strict=True)},
            ties,
            {name: tables[name].most for name in names},
        )
    except Refused as refusal:
        raise at["ties"].refuse(str(refusal)) from None
    columns: dict[str, Texts] = {"level": np.array(list(query.levels), dtype=object)[query.level_of]}
    columns[TABLE] = np.repeat(np.array(names, dtype=object), [part.query.n for part in parts])
    for column in dict.fromkeys(name for part in parts for name in list(part.columns)[1:]):
        empty = (np.full(part.query.n, None, dtype=object) for part in parts)
        columns[column] = np.concatenate(
            [part.columns.get(column, none) for part, none in zip(parts, empty, strict=True)]
        )
    labels = [f"{part.asked.name}: {label}" for part in parts for label in part.query.labels]
    laid = query.named(np.array(labels, dtype=object))
    return Layout(spec, asked, at, laid, (), parts[0].names, columns, tuple(query.levels), query.level_of, parts)


def _weights(part: Layout, terms: tuple[Term, ...], at: At) -> Ints:
    """Return the weights of the cells of a table's cube, in its shape."""
    areas = part.areas
    assert areas is not None
    total = np.zeros(areas.table.shape, np.int64)
    for term in terms:
        if term.sum is not None:
            total = total + _values(part, term.sum, at)
        elif term.of == TOTAL:
            total = total + term.times
        else:
            if not isinstance(term.of, dict):
                raise at.refuse("name values of columns, such as {relation: householder}, or total")
            chosen = np.ones(areas.table.shape, bool)
            for column, values in term.of.items():
                axis, texts = _axis(part, column, at)
                for value in values:
                    if value not in texts:
                        raise at.refuse(f"{column!r} has no value {value!r}", value, texts.tolist())
                shape = [-1 if a == axis else 1 for a in range(chosen.ndim)]
                chosen = chosen & np.isin(texts.astype(str), list(values)).reshape(shape)
            total = total + term.times * chosen
    return total


def _axis(part: Layout, column: str, at: At) -> tuple[int, Texts]:
    if column not in part.asked.axes:
        raise at.refuse(f"the table {part.asked.name!r} has no column {column!r}", column, part.asked.axes)
    axis = part.asked.axes.index(column)
    return axis, part.keys[1 + axis].values[0]


def _values(part: Layout, column: str, at: At) -> Ints:
    """Return the values of a column of whole numbers, along its axis."""
    axis, texts = _axis(part, column, at)
    try:
        numbers = np.array([int(text) for text in texts.tolist()], np.int64)
    except ValueError:
        sentence = f"the values of {column!r} are not all whole numbers, so they have no sum: write {{of: …, times: …}}"
        raise at.refuse(sentence, found=column) from None
    assert part.areas is not None
    return numbers.reshape([-1 if a == axis else 1 for a in range(len(part.areas.table.shape))])
