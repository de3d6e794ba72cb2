"""The part of a spec that a certificate publishes: everything about the tables and the promise, no place or key."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from holdfast.release.spec.spec import Spec
from holdfast.release.spec.table import TableSpec

#: What is published of a spec besides its tables; whatever is not listed here stays inside.
PUBLISHED: dict[str, Any] = {
    **dict.fromkeys(("title", "privacy", "accept_disclosure", "distributed", "about"), True),
    "data": {"domain", "values", "labels", "nulls", "outside"},
}
#: The key by which the records of a person are chosen is no one's business.
KEPT_BACK: dict[str, Any] = {"privacy": {"unit": {"key"}}, "distributed": {"keys"}}


def public_part(spec: Spec) -> dict[str, Any]:
    """Return what a spec says, without the source, the ledger, the output and the key of the persons.

    Public files are named by their last names alone; `public_files` of the certificate has their hashes.
    """
    content = spec.model_dump(mode="json", by_alias=True, exclude_defaults=True, include=PUBLISHED, exclude=KEPT_BACK)
    data = content.get("data", {})
    if "domain" in data:
        data["domain"] = _name(data["domain"])
    if "values" in data:
        data["values"] = {column: _name(found) for column, found in data["values"].items()}
    content["tables"] = [_table(table) for table in spec.tables]
    return content


def _table(table: TableSpec) -> dict[str, Any]:
    found = table.model_dump(mode="json", exclude_defaults=True)
    if isinstance(table.guess, str):
        found["guess"] = _name(table.guess)
    return found


def _name(found: Any) -> Any:
    """The last name of a file; anything else as it is."""
    return Path(found).name if isinstance(found, str) else found
