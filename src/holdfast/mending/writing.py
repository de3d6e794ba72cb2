"""The files of a mended table: the table, what every column is (Data Package), a page, and what was done as JSON."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from holdfast.arguments import Refused
from holdfast.mending.telling import STATEMENT, Mended, mapping, page
from holdfast.release.storage.tables import write_csv
from holdfast.version import __version__

TABLE, PACKAGE, PAGE, SUMMARY = "table.csv", "datapackage.json", "report.html", "mend.json"
ABOUT = {
    "published": "the figure as it was published; empty where it was missing or suppressed",
    "moved": "the mended figure less the published one",
    "status": "published (unmoved), moved, filled (missing in the published table) or exact (known)",
    "low": "lower end of the interval for the true figure by the stated law; of filled figures what the others allow",
    "high": "upper end of the same",
}


def write(mended: Mended, folder: Path) -> Path:
    """Write all files into a new folder; never over an existing one."""
    try:
        folder.mkdir(parents=True)
    except FileExistsError:
        raise Refused(f"{str(folder)!r} exists already: name another folder for the mended table") from None
    except OSError as error:
        raise Refused(f"{str(folder)!r} cannot be made: {error.strerror}") from None
    columns = {name: _column(found) for name, found in mended.columns().items()}
    write_csv(columns, folder / TABLE)
    (folder / PACKAGE).write_text(_json(_package(mended, columns)), encoding="utf-8")
    (folder / SUMMARY).write_text(_json(mapping(mended)), encoding="utf-8")
    (folder / PAGE).write_text(page(mended), encoding="utf-8")
    return folder


def _column(found: Any) -> Any:
    """A column as it is written: empty where a number is not known or has no end; whole numbers without a fraction."""
    if isinstance(found, list):
        texts = np.empty(len(found), dtype=object)
        texts[:] = found
        return texts
    if found.dtype.kind != "f":
        return found
    known = np.isfinite(found)
    if (found[known] == np.rint(found[known])).all():
        return np.ma.MaskedArray(np.where(known, found, 0).astype(np.int64), mask=~known)
    return np.ma.MaskedArray(np.where(known, found, 0.0), mask=~known)


def _package(mended: Mended, columns: dict[str, Any]) -> dict[str, Any]:
    fields = []
    for name, found in columns.items():
        kind = "string" if found.dtype == object else "integer" if found.dtype.kind in "iu" else "number"
        about = ABOUT.get(name, "a label of the published table")
        if name == mended.name:
            about = "the mended figure: the nearest table in which everything holds"
        fields.append({"name": name, "type": kind, "description": about})
    return {
        "$schema": "https://datapackage.org/profiles/2.0/datapackage.json",
        "name": "mended-table",
        "title": "A table that adds up",
        "description": STATEMENT,
        "version": __version__,
        "resources": [
            {
                "name": "table",
                "path": TABLE,
                "type": "table",
                "format": "csv",
                "mediatype": "text/csv",
                "encoding": "utf-8",
                "schema": {"fields": fields, "missingValues": [""]},
            }
        ],
    }


def _json(content: Any) -> str:
    return json.dumps(content, ensure_ascii=False, indent=2, allow_nan=False) + "\n"
