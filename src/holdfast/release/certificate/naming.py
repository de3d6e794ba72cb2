"""What the names of an analyst mean: the rows of a published table, and the weights that add them up."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from holdfast.arguments import Refused, reals
from holdfast.arrays import Floats
from holdfast.release.facts import TableCertificate
from holdfast.release.standalone_verifier.table import told_by
from holdfast.release.storage.tables import Named, label_column, missing, texts

#: Names of rows, each a value of a column or several that are added up.
Where = Mapping[str, str | int | Sequence[str | int]]
#: The column that says to which of several linked tables a row belongs.
TABLE = "table"


def weights_of(
    table: TableCertificate, columns: Named, where: Where | None, weights: npt.ArrayLike | None = None
) -> Floats:
    """Return one weight per row: those given, or 1 for every row that has these names at the level that they mean."""
    if (where is None) == (weights is None):
        raise Refused("say what to add up by one of where (names) and weights (one number per row)")
    if where is None:
        return reals("weights", weights, (table.rows,))
    return rows_where(table, columns, where).astype(np.float64)


def rows_where(table: TableCertificate, columns: Named, where: Where) -> npt.NDArray[np.bool_]:
    """Return the rows of one level or margin whose names are those in `where`, such as {"borough": "North"}.

    Several values of a column are added up, and columns that are not named too.
    """
    if not isinstance(where, Mapping):
        raise Refused(f"where must map columns to values, such as {{'borough': 'North'}}, found {type(where).__name__}")
    named = [name for name in table.columns if name != "level"]
    labels = {label_column(name): name for name in table.labels}
    chosen = np.ones(table.rows, dtype=bool)
    for column, wanted in where.items():
        if column not in (*named, *labels):
            raise Refused(f"there is no column {column!r} in where{_nearest(str(column), [*named, *labels])}")
        found = texts(columns[column])
        known = [text for text in dict.fromkeys(found.tolist()) if text is not None]
        values = [wanted] if isinstance(wanted, str) or not np.iterable(wanted) else list(wanted)
        for value in map(str, values):
            if value not in known:
                raise Refused(f"{column!r} has no value {value!r} in where{_nearest(value, known)}")
        chosen &= np.isin(found.astype(str), [str(value) for value in values]) & (found != None)  # noqa: E711
    where = {labels.get(column, column): wanted for column, wanted in where.items()}
    level = level_named(table, set(where), _linked_table(table, where))
    chosen &= np.asarray(columns["level"]).astype(str) == level
    if table.rows > table.outputs and table.places:  # a total over categories stands for them
        categories = [name for name in table.columns[1:] if name not in table.places]
        chosen[: table.outputs] &= any(name in where for name in categories)
        chosen[table.outputs :] &= not any(name in where for name in categories)
        for name in categories:
            chosen[table.outputs :] &= missing(columns[name])[table.outputs :]
    if not chosen.any():
        raise Refused(f"no row has the names {dict(where)!r} together")
    return chosen


def standing_of(table: TableCertificate) -> npt.NDArray[np.object_]:
    """How every figure is known: published exactly, follows from exact figures, by definition, or noisy."""
    from holdfast.release.standalone_verifier.facts import FOLLOWS, PUBLISHED
    from holdfast.release.table.wording import DEFINED, NOISY  # whoever only verifies needs none

    found = np.full(table.rows, NOISY, dtype=object)
    found[table.holds.impossible] = DEFINED
    for each in table.unprotected:
        for first, last in each.rows if each.why in (PUBLISHED, FOLLOWS) else ():
            found[first : last + 1] = each.why
    return found


def record_names(table: TableCertificate, columns: Named) -> list[str]:
    """The columns of records: those that name rows, without the level and a root that all records have."""
    top = table.columns[1]
    alike = len(table.levels) > 1 and top == table.levels[0] and len(set(texts(columns[top]).tolist())) == 1
    coarse = [each.name for each in table.recoded]
    return [name for name in table.columns[2 if alike else 1 :] if name not in coarse]


def sums_of(table: TableCertificate, columns: Named) -> Any:
    """The 0/1 matrix that adds up the outputs to the rows behind them, found from the names alone."""
    found = {name: texts(columns[name]) for name in table.columns}
    level, outputs = found["level"].astype(str), table.outputs
    groups: dict[tuple[Any, ...], dict[tuple[Any, ...], list[int]]] = {}
    rows: list[list[int]] = []
    for row in range(outputs, table.rows):
        named = tuple(name for name in table.columns[1:] if found[name][row] is not None)
        source = level_named(table, set(named), measured=True)
        if (source, named) not in groups:
            places: dict[tuple[Any, ...], list[int]] = {}
            for other in np.flatnonzero(level[:outputs] == source).tolist():
                places.setdefault(tuple(found[name][other] for name in named), []).append(other)
            groups[source, named] = places
        rows.append(groups[source, named].get(tuple(found[name][row] for name in named), []))
    indptr = np.concatenate([[0], np.cumsum([len(each) for each in rows])])
    indices = np.array([other for each in rows for other in each], dtype=np.int64)
    ones = np.ones(indices.size, dtype=np.int64)
    from scipy import sparse  # whoever only verifies a table without such rows does not need it

    return sparse.csr_array((ones, indices, indptr), shape=(len(rows), outputs))


def _linked_table(table: TableCertificate, where: Mapping[Any, Any]) -> str | None:
    """Which of several linked tables is meant; None where there is only one."""
    if not table.linked:
        return None
    names = [each.name for each in table.linked]
    asked = where.get(TABLE)
    if isinstance(asked, str):
        return asked
    meant = [each.name for each in table.linked if set(where) - {TABLE, *table.places} <= set(each.axes)]
    if len(meant) != 1:
        raise Refused(f"where must say which table is meant, {{'table': {names[0]!r}}} or another of {names!r}")
    return meant[0]


def level_named(table: TableCertificate, named: set[str], of: str | None = None, *, measured: bool = False) -> str:
    """The highest level that has all these names, and the smallest margin there; `measured`: among the outputs."""
    deep = max((d for d, place in enumerate(table.places, 1) if place in named), default=0)
    wanted = named - {*table.places, TABLE} if table.linked else named - set(table.places)
    listed = list(zip(table.levels, table.margins, strict=True))[: len(table.measured) if measured else None]
    mine = [(level, margin) for level, margin in listed if of in (None, margin.table)]
    recoded = {"recoded": [each.model_dump() for each in table.recoded]}
    holding = [each for each in mine if each[1].places >= deep and wanted <= told_by(recoded, each[1].axes)]
    if not holding:
        listed_names, there = ", ".join(map(repr, sorted(named))), ", ".join(level for level, _ in mine)
        raise Refused(f"no margin has all of {listed_names}: those that are measured are {there}")
    smallest = min(holding, key=lambda each: (each[1].places, len(each[1].axes), not wanted <= set(each[1].axes)))
    return smallest[0]


def _nearest(word: str, options: list[Any]) -> str:
    close = difflib.get_close_matches(word, [str(option) for option in options], 1, 0.5)
    if close:
        return f"; did you mean {close[0]!r}?"
    shown = ", ".join(map(repr, options[:6]))
    return f": choose one of {shown}{' and others' if len(options) > 6 else ''}"
