"""A released or mended table as SDMX-CSV 2.0: one observation per figure, with its state and its error as attributes.

Columns of labels become dimensions. A figure that was drawn or moved is an estimate (E), a filled one imputed (I), an
exact one normal (A), by the code list for the state of observations (CL_OBS_STATUS). `_T` stands for a total.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from holdfast.arguments import Refused

#: What a state is called in CL_OBS_STATUS.
STATES = {"published": "A", "exact": "A", "moved": "E", "drawn": "E", "filled": "I"}
TOTAL = "_T"
#: Attributes: the state, the ends of the interval, and how often it holds the true figure.
ATTRIBUTES = ("OBS_STATUS", "OBS_LOW", "OBS_HIGH", "OBS_CONFIDENCE")
#: Columns that SDMX-CSV begins with.
FIRST = ("STRUCTURE", "STRUCTURE_ID", "ACTION")


def sdmx_csv(
    dimensions: Mapping[str, Sequence[str | None]],
    values: Any,
    states: Sequence[str],
    ends: Any,
    *,
    flow: str,
    confidence: float,
) -> str:
    """Write observations; `ends` are (n, 2), not finite where nothing is known; `flow` is AGENCY:ID(version)."""
    if not re.fullmatch(r"[A-Za-z][\w.-]*:[A-Za-z]\w*\([0-9.]+\)", flow):
        raise Refused(f"a dataflow is written AGENCY:ID(1.0), found {flow!r}")
    names = _identifiers(list(dimensions))
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([*FIRST, *names, "OBS_VALUE", *ATTRIBUTES])
    columns = [
        [TOTAL if not label or label == "Total" else str(label) for label in found] for found in dimensions.values()
    ]
    rows = zip(zip(*columns, strict=True), np.asarray(values).tolist(), states, np.asarray(ends).tolist(), strict=True)
    for labels, value, state, (low, high) in rows:
        known = np.isfinite(low) or np.isfinite(high)
        level = f"{confidence:g}" if known else ""
        writer.writerow(["dataflow", flow, "R", *labels, value, STATES[state], _end(low), _end(high), level])
    return text.getvalue()


def _end(value: float) -> str:
    if not np.isfinite(value):
        return ""
    return str(int(value)) if float(value).is_integer() else repr(float(value))


def _identifiers(names: list[str]) -> list[str]:
    """Names of columns as identifiers of SDMX: capital letters, digits and underscores, each once."""
    taken = {*FIRST, "OBS_VALUE", *ATTRIBUTES}
    found = []
    for name in names:
        own = re.sub(r"\W+", "_", name).strip("_").upper() or "DIMENSION"
        own = own if own[0].isalpha() else f"D_{own}"
        while own in taken:
            own += "_"
        taken.add(own)
        found.append(own)
    return found


def of_release(folder: Any, name: str | None = None, agency: str = "HOLDFAST") -> str:
    """The table of a release folder as SDMX-CSV, from its published files alone."""
    from holdfast.release.certificate.certificate import read_certificate
    from holdfast.release.certificate.load import load

    told = next((each for each in read_certificate(Path(folder)).tables if name in (None, each.name)), None)
    if told is not None and told.runs:
        raise Refused(
            f"SDMX-CSV is one text, and {told.name} has {told.rows:,} figures in parts: read what is wanted from "
            f"{told.parquet}, or release fewer"
        )
    table = load(folder).table(name)
    ends = table.interval(table.certificate.interval.confidence)
    states = np.where(ends[:, 0] == ends[:, 1], "exact", "drawn").tolist()
    labels = {
        column: [None if text is np.ma.masked else text for text in np.ma.asarray(found, dtype=object).tolist()]
        for column, found in table.names.items()
    }
    flow = f"{agency}:{_identifiers([table.certificate.name])[0]}(1.0)"
    return sdmx_csv(labels, table.values, states, ends, flow=flow, confidence=table.certificate.interval.confidence)


def of_mended(mended: Any, agency: str = "HOLDFAST", confidence: float = 0.95) -> str:
    """A mended table as SDMX-CSV."""
    columns = mended.columns(confidence)
    own = {mended.name, "published", "moved", "status", "low", "high"}
    labels = {name: found for name, found in columns.items() if name not in own}
    none = np.full(mended.n, np.nan)
    ends = np.column_stack([columns.get("low", none), columns.get("high", none)])
    return sdmx_csv(labels, mended.values, mended.status, ends, flow=f"{agency}:MENDED(1.0)", confidence=confidence)
