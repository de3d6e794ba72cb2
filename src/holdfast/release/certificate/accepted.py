"""Errors that a spec accepts at most, beside those that the plan had: as a certificate states them, and checked."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field

from holdfast.release.certificate.statement import Model

if TYPE_CHECKING:
    from holdfast.release.certificate.certificate import TableCertificate


class AcceptedError(Model):
    """The largest error that is accepted of a level, on average or of a part of its figures, and that of the plan."""

    level: str
    error: Annotated[str, Field(pattern=r"^[0-9]+(\.[0-9]+)?$")]
    confidence: Annotated[str, Field(pattern=r"^0\.[0-9]+$")] | None
    reached: Annotated[float, Field(ge=0)]
    in_words: str


def accepted_findings(tables: Sequence[TableCertificate], spec: Mapping[str, Any]) -> Iterator[str]:
    """Say where an error is larger than accepted, is not that of its level, or is not what the spec accepts."""
    asked = spec.get("tables")
    if not isinstance(asked, list) or len(asked) != len(tables):
        yield "the published spec has other tables"
        return
    for table, wanted in zip(tables, asked, strict=True):
        said = [_limit(each.error, each.confidence) for each in table.accepted]
        found = wanted.get("accept") or {} if isinstance(wanted, Mapping) else {}
        if said != [_limit(each.get("error"), each.get("confidence")) for each in found.values()]:
            yield f"the errors of {table.name} that were put to the test are not those that the spec accepts"
        levels = {level.level: level for level in table.noise_by_level}
        for each in table.accepted:
            if each.level not in levels:
                yield f"there is no level {each.level} whose errors could be accepted"
            elif Fraction(each.reached) > Fraction(Decimal(each.error)):
                yield f"the errors of {each.level} are larger than accepted"
            elif each.confidence is None and not _same(each.reached, levels[each.level].expected_absolute_error):
                yield f"the mean error of {each.level} is not the one that the plan had"


def _limit(error: Any, confidence: Any) -> tuple[Decimal, Decimal | None]:
    return Decimal(str(error)), None if confidence is None else Decimal(str(confidence))


def _same(reached: float, planned: float | None) -> bool:
    """Whether two means of the same errors agree, however they were added up."""
    return planned is not None and math.isclose(reached, planned, rel_tol=1e-9)
