"""The figures of a table as HTML: a hierarchy as a tree that opens, a cube as cross tables, a histogram as a list.

Text is made here and not by a template: a page shows up to 50,000 rows. Everything is escaped. What is closed costs a
browser nothing, so long lists are cut into parts that open.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import Any

import numpy as np
import numpy.typing as npt

from holdfast.release.facts import TableCertificate
from holdfast.release.storage.tables import ROW, label_column

#: Rows of each table that the page lists, upper levels first; the page holds more to answer from, and the files all.
SHOWN = 5_000
#: Longer lists are cut into parts that open, and tables of at most so many rows are printed whole.
PART, FEW = 400, 1_000
#: A cross table has at most so many columns of figures.
ACROSS = 8
#: The cells of one figure as text: its value and its interval; None where the table has no intervals.
Cells = tuple[str, str | None]


@dataclass(eq=False)
class Place:
    """A node of a hierarchy on the page: its name, its own figures by category, and what is below it."""

    name: str
    own: list[tuple[tuple[str, ...], Cells]] = field(default_factory=list)
    below: dict[str, Place] = field(default_factory=dict)


def figures(table: TableCertificate, columns: Mapping[str, npt.NDArray[Any]]) -> tuple[str, int]:
    """Return the figures of a table as HTML, and how many of its rows they show."""
    level_of = {level: i for i, level in enumerate(table.levels)}
    order = np.argsort([level_of[level] for level in columns[table.columns[0]].tolist()], kind="stable")[:SHOWN]
    names = {name: _names(table, columns, name, order) for name in table.columns[1:]}
    for each in table.recoded:  # a group is not named beside its value
        finer = [
            other.name for other in table.recoded if other.axis == each.axis and max(other.groups) > max(each.groups)
        ]
        told = [any(row) for row in zip(*(names[name] for name in (each.axis, *finer)), strict=True)]
        names[each.name] = ["" if known else text for text, known in zip(names[each.name], told, strict=True)]
    cells = list(_cells(table, columns, order))
    if table.places and not table.linked:
        shown = _tree(table, names, cells)
    else:
        shown = "".join(_margins(_texts(columns[table.columns[0]][order]), names, cells))
    return shown, len(cells)


def written(value: float) -> str:
    """Write a figure: thousands separated, reals with two digits, a true minus sign."""
    shown = f"{int(value):,}" if float(value).is_integer() else f"{value:,.2f}"
    return shown.replace("-", "−")


def _names(
    table: TableCertificate, columns: Mapping[str, npt.NDArray[Any]], name: str, order: npt.NDArray[np.intp]
) -> list[str]:
    """The names of a column; codes that have labels stand behind these."""
    codes = _texts(columns[name][order])
    if name not in table.labels:
        return codes
    labels = _texts(columns[label_column(name)][order])
    return [
        label if label == code else f"{label} <small>{code}</small>" for label, code in zip(labels, codes, strict=True)
    ]


def _texts(column: npt.NDArray[Any]) -> list[str]:
    """The names of a column, escaped; no name is empty."""
    return ["" if name is None else escape(str(name)) for name in column.tolist()]


def _cells(
    table: TableCertificate, columns: Mapping[str, npt.NDArray[Any]], order: npt.NDArray[np.intp]
) -> Iterator[Cells]:
    exact = {rows[0] for figure in table.holds.exact for rows in figure.rows if len(rows) == 1}
    exact.update(table.holds.impossible)
    bars = table.interval.basis is not None
    rows = (np.ma.filled(columns[name][order], np.nan).tolist() for name in ("value", "low", "high"))
    numbers = columns[ROW] if ROW in columns else np.arange(len(columns["value"]))
    for row, value, low, high in zip(numbers[order].tolist(), *rows, strict=True):
        yield written(value), None if not bars else "exact" if row in exact else _interval(low, high)


def _interval(low: float, high: float) -> str:
    if low == high:
        return "exact"
    known = math.isfinite(low), math.isfinite(high)
    if all(known):
        return f"{written(low)} to {written(high)}"
    if any(known):
        return f"{written(low)} or more" if known[0] else f"{written(high)} or less"
    return "not known"


# --- hierarchies -----------------------------------------------------------------------------------------------------


def _tree(table: TableCertificate, names: Mapping[str, list[str]], cells: Sequence[Cells]) -> str:
    places = table.places
    levels = [name for name in names if name in places]
    categories = [name for name in names if name not in places]
    top = Place("")
    kinds = list(zip(*(names[name] for name in categories), strict=True)) if categories else [()] * len(cells)
    for path, kind, cell in zip(zip(*(names[level] for level in levels), strict=True), kinds, cells, strict=True):
        place = top
        for name in path:
            if name:
                place = place.below.setdefault(name, Place(name))
        place.own.append((kind, cell))
    head = [places[-1], *categories]
    only = next(iter(top.below.values())) if len(top.below) == 1 else None
    titles = "".join(f"<span>{title}</span>" for title in ("name", "value", "interval")[: 3 if cells[0][1] else 2])
    heading = f'<div class="heading" aria-hidden="true">{titles}</div>'
    return f'<div class="tree">{heading}{_places(top, head, only)}</div>'


def _places(place: Place, head: Sequence[str], open_one: Place | None) -> str:
    """What is below a place: first its lowest places as a list, then those that open."""
    leaves = [each for each in place.below.values() if not each.below]
    rows = [_row((each.name, *kind), cell) for each in leaves for kind, cell in each.own]
    parts = [_long(head, rows, [each.name for each in leaves for _ in each.own])]
    parts += [_opening(each, head, opened=each is open_one) for each in place.below.values() if each.below]
    return "".join(parts)


def _opening(place: Place, head: Sequence[str], *, opened: bool) -> str:
    """A place that opens: its figure over all categories beside its name; those by category as a list inside."""
    cells = "".join(
        f"<span>{value}</span>{'' if interval is None else f'<span>{interval}</span>'}"
        for kind, (value, interval) in place.own
        if not any(kind)
    )
    rows = [_row((place.name, *kind), cell) for kind, cell in place.own if any(kind)]
    own = _list(head, rows) if rows else ""
    return (
        f"<details{' open' if opened else ''}><summary><span>{place.name}</span>{cells}</summary>"
        f"{own}{_places(place, head, None)}</details>"
    )


# --- cubes and histograms --------------------------------------------------------------------------------------------


def _margins(level: Sequence[str], names: Mapping[str, list[str]], cells: Sequence[Cells]) -> Iterator[str]:
    """Every margin as a table of its own, those of fewer axes first."""
    rows_of: dict[str, list[int]] = {}
    for row, name in enumerate(level):
        rows_of.setdefault(name, []).append(row)
    axes_of = {name: [axis for axis in names if names[axis][rows[0]]] for name, rows in rows_of.items()}
    for name, rows in sorted(rows_of.items(), key=lambda each: len(axes_of[each[0]])):
        axes = axes_of[name]
        caption = f"<h4>{name}</h4>" if len(rows_of) > 1 else ""
        last = list(dict.fromkeys(names[axes[-1]][row] for row in rows)) if axes else []
        if len(axes) > 1 and 1 < len(last) <= ACROSS:
            yield caption + _crossed(axes, last, names, rows, cells)
        else:
            listed = [_row(tuple(names[axis][row] for axis in axes) or ("total",), cells[row]) for row in rows]
            first = [names[axes[0]][row] if axes else "total" for row in rows]
            yield caption + _long(axes or ["total"], listed, first)


def _crossed(
    axes: Sequence[str],
    across: Sequence[str],
    names: Mapping[str, list[str]],
    rows: Sequence[int],
    cells: Sequence[Cells],
) -> str:
    """A cross table: the values of the last axis side by side, each figure above its interval."""
    grouped: dict[tuple[str, ...], dict[str, Cells]] = {}
    for row in rows:
        key = tuple(names[axis][row] for axis in axes[:-1])
        grouped.setdefault(key, {})[names[axes[-1]][row]] = cells[row]
    head = "".join(f'<th scope="col">{escape(axis)}</th>' for axis in axes[:-1])
    head += "".join(f'<th scope="col" class="number">{value}</th>' for value in across)
    above = f'<th scope="colgroup" colspan="{len(across)}">{escape(axes[-1])}</th>'
    spread = f'<tr><td colspan="{len(axes) - 1}"></td>{above}</tr>'
    body = []
    for key, found in grouped.items():
        named = "".join(f'<th scope="row">{name}</th>' for name in key)
        body.append(f"<tr>{named}{''.join(_cell(found.get(value)) for value in across)}</tr>")
    firsts = [key[0] for key in grouped]
    return _parts(body, firsts, lambda rows: _table(f"{spread}<tr>{head}</tr>", rows, "crossed"))


def _cell(cell: Cells | None) -> str:
    if cell is None:
        return "<td></td>"
    value, interval = cell
    return f'<td class="number">{value}{f"<small>{interval}</small>" if interval else ""}</td>'


# --- lists -----------------------------------------------------------------------------------------------------------


def _row(names: Sequence[str], cell: Cells) -> str:
    value, interval = cell
    named = "".join(f'<th scope="row">{name or "all"}</th>' for name in names)
    return f"<tr>{named}<td>{value}</td>{'' if interval is None else f'<td>{interval}</td>'}</tr>"


def _list(head: Sequence[str], rows: Sequence[str]) -> str:
    """A list with one row per figure; the columns of names, the value, and its interval where there is one."""
    more = '<th scope="col" class="number interval">interval</th>' if rows[0].count("<td>") > 1 else ""
    named = "".join(f'<th scope="col">{escape(name)}</th>' for name in head)
    return _table(f'<tr>{named}<th scope="col" class="number value">value</th>{more}</tr>', rows, "list")


def _long(head: Sequence[str], rows: Sequence[str], names: Sequence[str]) -> str:
    return _parts(rows, names, lambda some: _list(head, some)) if rows else ""


def _parts(rows: Sequence[str], names: Sequence[str], table: Any) -> str:
    """One table, or several that open where it would be long."""
    if len(rows) <= PART:
        return str(table(rows))
    pieces = []
    for start in range(0, len(rows), PART):
        end = min(start + PART, len(rows))
        title = f"<span>{names[start]} … {names[end - 1]}</span><span>{end - start} rows</span>"
        pieces.append(f'<details class="part"><summary>{title}</summary>{table(rows[start:end])}</details>')
    return "".join(pieces)


def _table(head: str, rows: Sequence[str], kind: str) -> str:
    return f'<table class="{kind}"><thead>{head}</thead><tbody>{"".join(rows)}</tbody></table>'
