"""Filling in the certificate of a release from its job."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, cast

from holdfast.mechanism.correlated.residual_noise import OnResiduals
from holdfast.queries.areas.linked import LinkedCounts
from holdfast.release.certificate.certificate import (
    Certificate,
    Parameter,
    PublicFile,
    ReleasedFile,
)
from holdfast.release.facts import (
    Interval,
    Kind,
    LinkedTable,
    Margin,
    Protects,
    RecodedAxis,
    ResidualNoise,
    Software,
    SumOf,
    TableCertificate,
    TableNeighbours,
    Unprotected,
)
from holdfast.release.job.job import protected
from holdfast.release.spec.spec import public_part

if TYPE_CHECKING:
    from holdfast.release.job.job import Job
    from holdfast.release.job.table import Table
    from holdfast.release.table.shape import Layout


class TableFiles(NamedTuple):
    """The names of a table's files, each a folder of so many parts where it has any, and whether these are runs."""

    parquet: str
    csv: str
    measurements: str | None = None
    measurements_csv: str | None = None
    records: str | None = None
    records_csv: str | None = None
    parts: int = 0
    runs: bool = False


def table_certificate(
    table: Table,
    ways: str,
    interval: Interval,
    files: TableFiles,
    determined: Sequence[Unprotected] = (),
    ties: int | None = None,
) -> TableCertificate:
    """Describe one released table; `determined` lists what the exact figures give away besides themselves.

    `ties` is the public coin that decided between equally near whole tables.
    """
    protects, places = table.protects, (*table.layout.parts, table.layout)[0].places
    return TableCertificate(
        name=table.name,
        kind=cast(Kind, table.kind),
        places=[] if places is None else list(places.levels),
        rows=table.layout.query.n + (0 if table.derived is None else len(table.derived.exact)),
        outputs=table.layout.query.n,
        levels=_level_names(table),
        margins=_margins(table),
        columns=list(table.layout.columns),
        labels=list(table.layout.labels),
        recoded=_recoded(table),
        residuals=_residuals(table),
        domain_hash=domain_hash(table.layout),
        grid=str(table.mechanism.base.unit),
        method=table.chosen.method,
        ways=ways,
        mechanism=repr(table.mechanism),
        noise_by_level=list(table.levels),
        errors_known=table.errors.basis,
        simulated_tables=table.errors.tables,
        compared=list(table.comparison),
        statements=list(table.statements),
        holds=table.holding.holds,
        linked=_linked(table),
        unprotected=[*table.unprotected, *determined],
        protects=None if protects is None else Protects.model_validate(protects.as_mapping(), strict=False),
        interval=interval,
        neighbours=TableNeighbours.model_validate(table.mechanism.base.neighbours, from_attributes=True),
        record_columns=[] if files.records is None else list(table.record_columns),
        figures=list(table.layout.asked.written),
        sum_of=_sum_of(table),
        ties=None if ties is None else f"{ties:016x}",
        **files._asdict(),
    )


def _sum_of(table: Table) -> SumOf | None:
    added = table.layout.asked.sum_of
    if added is None:
        return None
    low, high = (str(Fraction(end)) for end in added.between or ())
    return SumOf(column=added.column, low=low, high=high, step=str(added.unit), weight=added.weight is not None)


def _recoded(table: Table) -> list[RecodedAxis]:
    cube = table.layout.query.domain[1]
    listed = () if cube is None else cube.recoded
    return [
        RecodedAxis(name=each.name, axis=table.layout.asked.recode[each.name].of, groups=list(each.of))
        for each in listed
    ]


def _residuals(table: Table) -> list[ResidualNoise]:
    source, query = table.mechanism.source, table.layout.query
    if not isinstance(source, OnResiduals):
        return []
    tree, cube = query.domain
    assert cube is not None
    return [
        ResidualNoise(
            level=None if tree is None else tree.levels[depth],
            axes=[cube.all_names[axis] for axis in axes],
            square=str(square),
        )
        for (depth, axes), square in source.squares.items()
    ]


def _linked(table: Table) -> list[LinkedTable]:
    query = table.layout.query
    if not isinstance(query, LinkedCounts):
        return []
    return [
        LinkedTable(name=name, axes=list(part.table.names), shape=list(part.table.shape), most=most, ties=ties.tolist())
        for name, part, most, ties in zip(query.names, query.parts, query.most, query.ties, strict=True)
    ]


def domain_hash(layout: Layout) -> str:
    """Return the hash of the names of all rows, in their order: two tables with the same one have the same domain."""
    found, columns = hashlib.sha256(), layout.columns
    if layout.in_parts is not None:
        return layout.in_parts.domain_hash
    for name, texts in columns.items():
        found.update(json.dumps([name, texts.tolist()], ensure_ascii=False, separators=(",", ":")).encode())
    return f"sha256:{found.hexdigest()}"


def certificate_of(
    job: Job,
    release: str,
    date: str,
    tables: Sequence[TableCertificate],
    files: Sequence[ReleasedFile],
    determined: Sequence[str] = (),
    spent: Sequence[str] = (),
) -> Certificate:
    """Return the sealed certificate of a release.

    `determined` says what the exact figures give away in words, `spent` what the ledger says after the charge.
    """
    statements = job.guarantees
    caveats = [*job.caveats, *_synthetic(tables), *(item for statement in statements for item in statement.caveats)]
    return Certificate(
        release=release,
        title=job.title,
        date=date,
        software=Software(),
        spec_hash=job.spec.hash,
        spec=public_part(job.spec),
        public_files=[
            PublicFile(name=Path(file).name, sha256=f"sha256:{found}") for file, found in job.public_files.items()
        ],
        unit=job.unit,
        protected=protected(job.spec, job.guarantee),
        asked={cast(Parameter, name): str(value) for name, value in job.target.items()},
        statements=list(statements),
        unprotected=[*job.unprotected, *determined],
        caveats=list(dict.fromkeys(caveats)),
        spent=list(spent),
        tables=list(tables),
        files=list(files),
    ).sealed()


def _level_names(table: Table) -> list[str]:
    """The levels of a table, and the exact margins that are written besides."""
    more = () if table.derived is None else table.derived.columns["level"].tolist()
    return list(dict.fromkeys([*table.layout.levels, *more]))


def _margins(table: Table) -> list[Margin]:
    more = [] if table.derived is None or table.layout.places is not None else table.holding.holds.exact
    beside = (each for each in more if each.figure not in table.layout.levels)
    return [*table.layout.margins, *(Margin(places=0, axes=each.axes or [], table=None) for each in beside)]


def _synthetic(tables: Sequence[TableCertificate]) -> list[str]:
    """Say what synthetic records are and what they carry."""
    counted = {table.name: f"the table {table.name}" if len(tables) > 1 else "the table" for table in tables}
    return [
        f"the file {table.records} holds synthetic records, one row for every one that {counted[table.name]} counts; "
        f"no row is a person's: together they carry the counts by {', '.join(table.record_columns)}, noise included, "
        "and nothing else"
        for table in tables
        if table.records is not None
    ]
