"""Filling in the certificate of a release from its job."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, cast

from holdfast.privacy import Guarantee
from holdfast.release.certificate.certificate import (
    Certificate,
    Holds,
    Interval,
    Kind,
    Protects,
    PublicFile,
    ReleasedFile,
    Software,
    TableCertificate,
    Unprotected,
)
from holdfast.release.certificate.registry import (
    CENTRAL,
    DISTRIBUTED,
    Accounting,
    Deployment,
    Flavour,
    Implementation,
    Parameter,
    PrivacyLoss,
    Product,
    TrustModel,
)
from holdfast.release.job.caveats import as_sentence
from holdfast.release.job.methods import MOVES

if TYPE_CHECKING:
    from holdfast.release.job.job import Job
    from holdfast.release.job.table import Table
    from holdfast.release.job.unprotected import Unprotected as OpenFigures


def statements_of(table: Table) -> tuple[Guarantee, ...]:
    """Return every statement about a table, the one that the budget counts first."""
    return tuple(dict.fromkeys((table.counted, *table.guarantees)))


def table_certificate(
    table: Table,
    ways: str,
    interval: Interval,
    files: tuple[str, str, str | None],
    determined: Sequence[OpenFigures] = (),
    ties: int | None = None,
) -> TableCertificate:
    """Describe one released table; `determined` lists what the exact figures give away besides themselves.

    `ties` is the public coin that decided between equally near whole tables.
    """
    parquet, csv, measurements = files
    return TableCertificate(
        name=table.name,
        kind=cast(Kind, table.layout.asked.kind),
        rows=table.layout.query.n,
        levels=list(table.layout.levels),
        columns=list(table.layout.columns),
        method=table.chosen.method,
        ways=ways,
        mechanism=repr(table.mechanism),
        statements=list(statements_of(table)),
        holds=Holds.model_validate_json(json.dumps(table.holding.account)),
        unprotected=[
            Unprotected.model_validate_json(json.dumps(each.as_mapping())) for each in (*table.unprotected, *determined)
        ],
        protects=(
            None if table.protects is None else Protects.model_validate_json(json.dumps(table.protects.as_mapping()))
        ),
        interval=interval,
        parquet=parquet,
        csv=csv,
        measurements=measurements,
        ties=None if ties is None else f"{ties:016x}",
    )


def certificate_of(
    job: Job,
    release: str,
    date: str,
    tables: Sequence[TableCertificate],
    files: Sequence[ReleasedFile],
    determined: Sequence[str] = (),
) -> Certificate:
    """Return the sealed certificate of a release; `determined` says what the exact figures give away in words."""
    statements = job.guarantees
    unprotected = [*job.unprotected, *determined]
    caveats = [*job.caveats, *(item for statement in statements for item in statement.caveats)]
    return Certificate(
        release=release,
        title=job.title,
        software=Software(),
        spec_hash=job.spec.hash,
        public_files=[
            PublicFile(name=Path(file).name, sha256=f"sha256:{found}") for file, found in job.public_files.items()
        ],
        unit=job.unit,
        asked={cast(Parameter, name): str(value) for name, value in job.target.items()},
        statements=list(statements),
        unprotected=unprotected,
        caveats=list(dict.fromkeys(caveats)),
        tables=list(tables),
        deployment=_deployment(job, date, tables, unprotected),
        files=list(files),
    ).sealed()


def _deployment(job: Job, date: str, tables: Sequence[TableCertificate], unprotected: Sequence[str]) -> Deployment:
    best = job.guarantee
    names = ", ".join(f"{table.name} ({table.kind}, {table.rows} figures)" for table in tables)
    methods = "; ".join(f"{table.name}: {table.mechanism}, computed by {table.ways}" for table in tables)
    treated = " ".join(as_sentence(words, job.tables) for words in job.caveats)
    moved = [table.name for table in tables if table.method in (*MOVES, "given-then-onto")]
    return Deployment(
        product=Product(
            name=job.title,
            data_product_type="Summary statistics",
            description=f"Tables of counts: {names}",
            publication_date=date,
        ),
        dp_flavor=_flavour(best, unprotected),
        privacy_loss=PrivacyLoss(
            privacy_unit="Record-level" if job.unit == "record" else "Person-level",
            privacy_unit_description=f"Unit: {job.unit}. Neighbouring data: {best.neighbours}.",
            privacy_parameters=_parameters(best),
            privacy_parameters_description=str(best),
        ),
        model=TrustModel(model_name=CENTRAL if job.spec.distributed is None else DISTRIBUTED),
        accounting=Accounting(
            post_processing=(
                f"{', '.join(moved)}: noisy answers moved to a near table in which everything holds"
                if moved
                else "none: what must hold was part of the law of the noise, or nothing had to hold"
            ),
            composition=best.because,
        ),
        implementation=Implementation(
            pre_processing_eda_hyperparameter_tuning=treated or "none",
            mechanisms=methods,
        ),
    )


def _flavour(best: Guarantee, unprotected: Sequence[str]) -> Flavour:
    metric = "symmetric distance" if best.neighbours.adds else "change-one distance"
    if best.pure:
        name, measure, bound = "Pure DP", "max divergence", f"epsilon = {best.epsilon!r}"
    elif best.epsilon is not None and not math.isinf(best.epsilon):
        name, measure = "Approximate DP", "smoothed max divergence"
        bound = f"epsilon = {best.epsilon!r}, delta = {best.delta!r}"
    else:
        name, measure, bound = "Zero-concentrated DP", "Rényi divergence", f"rho = {best.rho!r}"
    return Flavour(
        name=name,  # type: ignore[arg-type]  # one of the three literals
        input_metric=metric,
        bound_on_input_distance=best.records,
        output_measure=measure,
        bound_on_output_distance=bound,
        data_domain="counts over the keys of a public domain file; scope of the statement: " + best.scope,
        unprotected_quantities="; ".join(unprotected) or "none",
    )


def _parameters(best: Guarantee) -> dict[Parameter, float]:
    found: dict[Parameter, float] = {}
    if best.epsilon is not None and not best.void:
        found["epsilon"] = best.epsilon
        if best.delta:
            found["delta"] = best.delta
    if best.rho is not None:
        found["rho"] = best.rho
    return found
