"""What a spec says about records that do not fit: those with a missing value, or with one outside the domain."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator

from holdfast.release.spec.scalars import Name, one_of, shown, wrong
from holdfast.release.spec.sections import Part


class Handling(Part):
    """What happens to a record with a missing value, or with one outside the domain."""

    rule: Annotated[str, one_of("refuse", "drop", "category")]
    category: Name | None = None


class CategoryOf(Part):
    """Count such records as this value of the domain."""

    category: Name


def _handling(value: Any) -> Any:
    if isinstance(value, dict):
        return {"rule": "category", "category": CategoryOf.model_validate(value).category}
    if value not in ("refuse", "drop"):
        raise wrong(f"found {shown(value)}", found=value, allowed=("refuse", "drop", "{category: NAME}"))
    return {"rule": value}


HandlingRule = Annotated[
    Handling, BeforeValidator(_handling, json_schema_input_type=Literal["refuse", "drop"] | CategoryOf)
]
REFUSE = Handling(rule="refuse")
