"""A spec with its public domain laid out: what can be counted, before anything is planned or calibrated."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import numpy as np
import numpy.typing as npt

from holdfast.release.spec.places import At
from holdfast.release.spec.spec import Spec
from holdfast.release.spec.table import TableSpec
from holdfast.release.standalone_verifier.reading import figure_columns
from holdfast.release.storage.tables import label_column
from holdfast.release.table.holding import Holding, holding, nothing_held
from holdfast.release.table.kinds.areas import Areas
from holdfast.release.table.kinds.cube import Flat
from holdfast.release.table.kinds.hierarchy import Tree
from holdfast.release.table.kinds.linked import Linked
from holdfast.release.table.public import PublicFiles, labels_of, refuse_unused_labels
from holdfast.release.table.shape import BETWEEN, INSIDE, RESERVED, Kind, Layout

#: Every kind of table by its name.
KINDS: dict[str, Kind] = {kind.name: kind for kind in (Tree(), Flat("histogram"), Flat("cube"), Areas(), Linked())}
#: Memory of one figure with up to five names at the peak of a release, and of each further name, as measured
#: (docs/reference/command.md); of one figure whose table is written in parts; and of one cell of one place where cells
#: are shared out.
FIGURE_BYTES, NAME_BYTES, PART_BYTES, CELL_BYTES = 2000, 200, 95, 24


def layout(spec: Spec, asked: TableSpec, at: At, files: PublicFiles) -> Layout:
    """Read a table's public domain and lay its outputs out."""
    kind = KINDS[asked.kind]
    taken = dict.fromkeys(RESERVED, "which the released files use") | kind.reserved()
    for key in ("root", "hierarchy", "categories", "histogram", "cube", "recode"):
        listed = getattr(asked, key) or ()
        for column in (listed,) if isinstance(listed, str) else listed:
            reason = taken.get(column.lower())
            if reason is None and BETWEEN in column and asked.cube is not None:
                reason = f"since {BETWEEN.strip()} stands between the axes of a margin"
            if reason is None and INSIDE in column and kind.nested:
                reason = f"since {INSIDE.strip()} stands between a level and its margin"
            if reason is not None:
                what = "the root" if key == "root" else "a column"
                sentence = f"{what} must not be called {column!r}, {reason}: rename it"
                raise at[key].refuse(sentence, found=column)
            taken[column.lower()] = "which is taken already, in whatever case"
    laid = kind.lay_out(spec, asked, at, files)
    return replace(laid, labels=labels_of(spec, asked, files, laid.columns)) if spec.data.labels else laid


def figure_bytes(layout: Layout) -> int:
    """The memory of one figure at the peak of a release, with its names unless these are made part by part."""
    names = len(layout.columns)
    return PART_BYTES if layout.in_parts is not None else FIGURE_BYTES + NAME_BYTES * max(names - 5, 0)


def table_bytes(layout: Layout) -> int:
    """The memory of a table's figures with their names, and of the cells of all places that are shared out."""
    return figure_bytes(layout) * layout.query.n + CELL_BYTES * layout.kind.shared_out(layout)


#: The ports of servers that an address need not name.
PORTS = {"postgresql": 5432, "mysql": 3306, "mariadb": 3306, "mssql": 1433, "oracle": 1521}


@dataclass(frozen=True, eq=False)
class LaidTable:
    """The public shape of a table, and what must hold in it."""

    name: str
    layout: Layout
    holding: Holding

    def answer(self, cells: Any) -> npt.NDArray[Any]:
        """The truth from counts or sums of the cells; sums below 0 are answered by what is above 0 and below."""
        query = self.layout.query
        if self.layout.asked.sum_of is not None and cells.min() < 0:
            return np.asarray(query.answer(np.maximum(cells, 0)) - query.answer(np.maximum(-cells, 0)))
        return np.asarray(query.answer(cells))


@dataclass(frozen=True, eq=False)
class Laid:
    """A spec and the public shapes of its tables: enough to count records. Nothing in it was read from them."""

    spec: Spec
    tables: Sequence[LaidTable]

    @cached_property
    def counting(self) -> Laid:
        """The same with a table for each of several linked ones, as records are counted."""
        tables = [
            each
            for table in self.tables
            for each in ([LaidTable(part.asked.name, part, nothing_held()) for part in table.layout.parts] or [table])
        ]
        return Laid(self.spec, tables)

    @cached_property
    def title(self) -> str:
        return self.spec.title

    @cached_property
    def dataset(self) -> str:
        """The name under which the ledger counts what is spent."""
        data = self.spec.data
        if data.name is not None:
            return data.name
        if data.address is None:
            sentence = "a dataset whose source the spec does not name needs data.name, its name in the ledger"
            raise self.spec.at["data"].refuse(sentence)
        return _place_name(self.spec, data.address)


def _place_name(spec: Spec, address: str) -> str:
    """The one name of a place, however it is written: a path without links, or a server's database without options."""
    if "://" not in address:
        return str(spec.resolve(address).resolve())
    url = urlsplit(address)
    kind = "postgresql" if url.scheme.startswith("postgres") else url.scheme.partition("+")[0]
    if kind == "sqlite":
        return str(Path(url.path[1:]).resolve())
    try:
        port = "" if url.port in (None, PORTS.get(kind)) else f":{url.port}"
    except ValueError:  # no port at all: opening it refuses it
        return address
    return f"{kind}://{url.hostname or ''}{port}{url.path}"


def laid(spec: Spec) -> tuple[Laid, PublicFiles]:
    """Read the public domain of a spec, and refuse what is wrong in it: quick, beside what a plan takes."""
    files = PublicFiles(spec.data, spec.at["data"])
    listed = zip(spec.tables, spec.places_of_tables, strict=True)
    shapes = [shape for asked, at in listed for shape in _of_figures(layout(spec, asked, at, files))]
    _refuse_alike(shapes)
    tables = tuple(LaidTable(shape.asked.name, shape, holding(shape)) for shape in shapes)
    _refuse_unused(spec)
    _refuse_counted_key(spec)
    refuse_unused_labels(spec)
    return Laid(spec, tables), files


def _of_figures(laid: Layout) -> list[Layout]:
    """The layout of a table for each of its figures, which are drawn one by one."""
    asked = laid.asked.of_figures
    if laid.in_parts is not None and asked != (laid.asked,):
        raise laid.at["figures"].refuse("tables that are written in parts have counts alone: measure fewer margins")
    taken = {each.lower() for column in laid.columns for each in (column, label_column(column))} | {*RESERVED}
    for column in (name for figure in laid.asked.called[laid.asked.counts :] for name in figure_columns(figure)):
        if column.lower() in taken:
            raise laid.at["figures"].refuse(f"the table has a column {column!r} already: rename one", found=column)
        taken.add(column.lower())
    return [laid if each == laid.asked else replace(laid, asked=each) for each in asked]


def _refuse_alike(shapes: Sequence[Layout]) -> None:
    """Refuse two tables of one name, of which one may be that of a sum."""
    names = [shape.asked.name for shape in shapes]
    for i, shape in enumerate(shapes):
        if shape.asked.name in names[:i]:
            sentence = f"two tables would be called {shape.asked.name!r}: give the table, or the column, another name"
            raise shape.at["figures"].refuse(sentence, found=shape.asked.name)


def _refuse_unused(spec: Spec) -> None:
    """Refuse another name, or a category, for a column that no table has: most likely it is misspelt."""
    used = [column for asked in spec.tables for column in (*asked.columns, *(each.column for each in asked.added))]
    if spec.privacy.unit is not None:
        used.append(spec.privacy.unit.column)
    for column in spec.data.columns:
        if column not in used:
            sentence = f"neither a table nor privacy.unit has a column {column!r}"
            raise spec.at["data"]["columns"][column].refuse(sentence, column, used)
    for key in ("nulls", "outside"):
        named = getattr(spec.data, key).category
        for column in named if isinstance(named, dict) else ():
            if column not in used:
                raise spec.at["data"][key].refuse(f"no table has a column {column!r}", column, used)


def _refuse_counted_key(spec: Spec) -> None:
    """Refuse to count by the column of counts: one record more in a row would move all others of it."""
    used = [spec.data.columns.get(column, column) for asked in spec.tables for column in asked.columns]
    if spec.data.count in used:
        sentence = "the column that counts records is no column of a table: one record more would move all of its row"
        raise spec.at["data"]["count"].refuse(sentence, spec.data.count)
