"""A spec with its public domain laid out: what can be counted, before anything is planned or calibrated."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from holdfast.release.spec.spec import Spec
from holdfast.release.table.domain import Layout
from holdfast.release.table.holding import Holding, holding
from holdfast.release.table.labels import refuse_unused
from holdfast.release.table.laying import layout
from holdfast.release.table.public import PublicFiles


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
            for each in ([LaidTable(part.asked.name, part, _nothing()) for part in table.layout.parts] or [table])
        ]
        return Laid(self.spec, tables)

    @cached_property
    def title(self) -> str:
        """The title of the release."""
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
        return data.address if "://" in data.address else str(self.spec.resolve(data.address))


def _nothing() -> Holding:
    """What a linked table holds by itself: all that it holds, it holds with the others."""
    return Holding(account={"exact": [], "linear": []})


def laid(spec: Spec) -> tuple[Laid, PublicFiles]:
    """Read the public domain of a spec, and refuse what is wrong in it: quick, beside what a plan takes."""
    files = PublicFiles(spec.data, spec.at["data"])
    listed = zip(spec.tables, spec.places_of_tables, strict=True)
    shapes = [layout(spec, asked, at, files) for asked, at in listed]
    tables = tuple(LaidTable(shape.asked.name, shape, holding(shape)) for shape in shapes)
    _refuse_unused(spec)
    refuse_unused(spec)
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
