"""How a spec divides a budget over levels: as it is written, and the best division, which may take long, once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any

from holdfast.queries import Neighbours
from holdfast.release.job.job import Job
from holdfast.release.job.sharing import linear_shares
from holdfast.release.spec.dividing import BEST
from holdfast.release.spec.spec import Spec
from holdfast.release.table.domain import INSIDE
from holdfast.release.table.laid import laid


def nested(shares: Mapping[str, Any], areas: bool) -> dict[str, Any]:
    """Shares by the names of levels as a spec writes them: in areas (a cube in every place) margins inside levels."""
    if not areas:
        return dict(shares)
    found: dict[str, Any] = {}
    for name, share in shares.items():
        level, _, margin = name.partition(INSIDE)
        found.setdefault(level, {})[margin] = share
    return found


def with_shares(spec: Spec, shares: Sequence[Mapping[str, Any] | None]) -> Spec:
    """The same spec with other shares where there are some."""
    tables = tuple(
        table if each is None else table.model_copy(update={"shares": nested(each, _has_areas(table))})
        for table, each in zip(spec.tables, shares, strict=True)
    )
    return spec.model_copy(update={"tables": tables})


def wants_best(spec: Spec) -> bool:
    """Whether a table of the spec leaves its shares to be searched."""
    return any(table.shares == BEST for table in spec.tables)


def found_by(job: Job) -> tuple[dict[str, Decimal] | None, ...]:
    """The best shares that a job has found; None: it did not look for any."""
    return tuple(
        None if asked.shares != BEST or table.problem.shares is None else _decimals(table.problem.shares)
        for asked, table in zip(job.spec.tables, job.tables, strict=True)
    )


def near(spec: Spec) -> tuple[dict[str, Decimal] | None, ...]:
    """Shares near the best ones, at once: those of Gaussian noise and best linear estimation (H7)."""
    relation = Neighbours(spec.privacy.neighbours)
    return tuple(
        None if table.layout.asked.shares != BEST else _decimals(linear_shares(table.layout, relation))
        for table in laid(spec)[0].tables
    )


def _decimals(shares: Mapping[str, Fraction]) -> dict[str, Decimal]:
    return {name: Decimal(share.numerator) / Decimal(share.denominator) for name, share in shares.items()}


def _has_areas(table: Any) -> bool:
    return table.hierarchy is not None and table.cube is not None
