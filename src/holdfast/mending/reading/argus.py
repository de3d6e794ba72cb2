"""Published tables and hierarchies in the formats of τ-ARGUS (`.tab` with its metadata `.rda`, `.hrc`)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from holdfast.arguments import Refused
from holdfast.mending.reading.classification import Classification, from_pairs
from holdfast.release.storage.argus import LEAD, TOTAL, cells, codes, codes_of, metadata


def hierarchy(path: Path, total: str = TOTAL, lead: str = LEAD) -> Classification:
    """Read a `.hrc` file: the codes below a total."""
    pairs = codes(path, total, lead)
    return from_pairs(pairs, f"{len(pairs):,} codes of {path.name!r} below {total!r}")


def table(path: Path) -> dict[str, npt.NDArray[Any]]:
    """Read a `.tab` file by its metadata: columns of codes and of figures, without those of cells that are not safe."""
    variables, rows = cells(path)
    columns = {each.name: [row[i] for row in rows] for i, each in enumerate(variables)}
    figures = [each for each in variables if each.kind in ("NUMERIC", "FREQUENCY")]
    if not figures:
        name = path.with_suffix(".rda").name
        raise Refused(f"{name!r} describes no column of figures: one must be <NUMERIC> or <FREQUENCY>")
    chosen = next((each for each in figures if each.kind == "NUMERIC"), figures[0])
    hidden = [False] * len(rows)
    for each in variables:
        if each.kind == "STATUS":
            safe = {each.words.get("SAFE", "S"), each.words.get("PROTECT", "P"), "S", "P"}
            hidden = [gone or state not in safe for gone, state in zip(hidden, columns[each.name], strict=True)]
    found: dict[str, Any] = {each.name: columns[each.name] for each in variables if each.kind == "RECODEABLE"}
    texts = zip(columns[chosen.name], hidden, strict=True)
    found[chosen.name] = [None if gone else text for text, gone in texts]
    return {name: np.array(column, dtype=object) for name, column in found.items()}


def hierarchies(path: Path) -> dict[str, Classification]:
    """Read the hierarchies that a table's metadata name, by column."""
    description = path.with_suffix(".rda")
    found = {}
    for each in metadata(description)[1]:
        if pairs := codes_of(each, description):
            found[each.name] = from_pairs(pairs, f"{len(pairs):,} codes of {each.words['HIERCODELIST']!r}")
    return found
