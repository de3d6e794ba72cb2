"""The published JSON Schema of the spec: what editors check while a curator writes."""

from __future__ import annotations

from typing import Any

from holdfast.release.spec.spec import Spec
from holdfast.release.spec.table import KINDS, LINKED

DIALECT = "https://json-schema.org/draft/2020-12/schema"


def spec_schema() -> dict[str, Any]:
    """Return the JSON Schema of a spec as it is written, short forms included."""
    found: dict[str, Any] = _tidy(Spec.model_json_schema(by_alias=True))
    for name in ("nulls", "outside"):
        found["$defs"]["DataSpec"]["properties"][name]["default"] = "refuse"
    found["properties"]["ledger"].pop("default")
    either = [{"required": ["epsilon"]}, {"required": ["rho"]}]
    found["$defs"]["PrivacySpec"]["oneOf"] = found["$defs"]["BudgetSpec"]["oneOf"] = either
    found["$defs"]["TableSpec"]["oneOf"] = [
        {"required": [kind]} | ({"not": {"required": ["hierarchy"]}} if kind == "cube" else {})
        for kind in KINDS
        if kind != LINKED  # which goes with hierarchy
    ]
    found["oneOf"] = [{"required": ["table"]}, {"required": ["tables"]}]
    return {"$schema": DIALECT, "title": "holdfast spec", **found}


def _tidy(value: Any) -> Any:
    """Leave out the titles that repeat the names of keys."""
    if isinstance(value, dict):
        return {key: _tidy(each) for key, each in value.items() if not (key == "title" and isinstance(each, str))}
    return [_tidy(each) for each in value] if isinstance(value, list) else value
