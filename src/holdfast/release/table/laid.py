"""A spec with its public domain laid out: what can be counted, before anything is planned or calibrated."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from urllib.parse import urlsplit

from holdfast.release.spec.spec import Spec
from holdfast.release.table.holding import Holding, holding, nothing_held
from holdfast.release.table.laying import layout
from holdfast.release.table.public import PublicFiles, refuse_unused_labels
from holdfast.release.table.shape import Layout

#: The ports of servers that an address need not name.
PORTS = {"postgresql": 5432, "mysql": 3306, "mariadb": 3306, "mssql": 1433, "oracle": 1521}


@dataclass(frozen=True, eq=False)
class LaidTable:
    """The public shape of a table, and what must hold in it."""

    name: str
    layout: Layout
    holding: Holding


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
    shapes = [layout(spec, asked, at, files) for asked, at in listed]
    tables = tuple(LaidTable(shape.asked.name, shape, holding(shape)) for shape in shapes)
    _refuse_unused(spec)
    _refuse_counted_key(spec)
    refuse_unused_labels(spec)
    return Laid(spec, tables), files


def _refuse_unused(spec: Spec) -> None:
    """Refuse another name for a column that no table has: most likely it is misspelt."""
    used = [column for asked in spec.tables for column in asked.columns]
    if spec.privacy.unit is not None:
        used.append(spec.privacy.unit.column)
    for column in spec.data.columns:
        if column not in used:
            sentence = f"neither a table nor privacy.unit has a column {column!r}"
            raise spec.at["data"]["columns"][column].refuse(sentence, column, used)


def _refuse_counted_key(spec: Spec) -> None:
    """Refuse to count by the column of counts: one record more in a row would move all others of it."""
    used = [spec.data.columns.get(column, column) for asked in spec.tables for column in asked.columns]
    if spec.data.count in used:
        sentence = "the column that counts records is no column of a table: one record more would move all of its row"
        raise spec.at["data"]["count"].refuse(sentence, spec.data.count)
