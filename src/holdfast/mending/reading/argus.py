"""Tables and hierarchies in the formats of τ-ARGUS: `.tab` with its metadata `.rda`, and `.hrc`.

A hierarchy has one code per line, preceded by a character for every level it lies deeper; the total is not written. The
metadata name the columns of the table, which has no header, and say which are codes, figures and states of cells.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from holdfast.arguments import Refused
from holdfast.mending.reading.classification import Classification, from_pairs

#: What stands before a code for every level it lies deeper, where nothing else is said.
LEAD = "@"
#: What the total is called where nothing else is said.
TOTAL = "Total"
#: What a variable of the metadata can be.
KINDS = ("RECODEABLE", "NUMERIC", "FREQUENCY", "MAXSCORE", "STATUS", "HOLDING", "WEIGHT", "REQUEST", "DISTANCE")


@dataclass
class Variable:
    """One column of a table, as its metadata describe it."""

    name: str
    kind: str = ""
    words: dict[str, str] = field(default_factory=dict)


def hierarchy(path: Path, total: str = TOTAL, lead: str = LEAD) -> Classification:
    """Read a `.hrc` file: the codes below a total, each deeper by as many levels as characters stand before it."""
    lines = _text(path).splitlines()
    above: list[str] = [total]
    pairs: list[tuple[str, str]] = []
    seen: dict[str, int] = {}
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        text = line.strip()
        code = text.lstrip(lead)
        depth = len(text) - len(code)
        if depth % len(lead):
            raise Refused(f"line {number} of {path.name!r} begins with a part of {lead!r} only")
        depth //= len(lead)
        code = code.strip()
        if depth > len(above) - 1:
            raise Refused(
                f"line {number} of {path.name!r} jumps from depth {len(above) - 1} to depth {depth + 1}: "
                f"{code!r} needs a code one level above it"
            )
        if not code or code == total:
            raise Refused(f"line {number} of {path.name!r} must hold a code other than the total's, {total!r}")
        if code in seen:
            raise Refused(
                f"code {code!r} stands on lines {seen[code]} and {number} of {path.name!r}: it must occur once"
            )
        seen[code] = number
        del above[depth + 1 :]
        pairs.append((code, above[-1]))
        above.append(code)
    if not pairs:
        raise Refused(f"{path.name!r} holds no code")
    return from_pairs(pairs, f"{len(seen):,} codes of {path.name!r} below {total!r}")


def metadata(path: Path) -> tuple[str, list[Variable]]:
    """Read a `.rda` file: the separator of the table, and its variables in order."""
    separator, variables = ",", []
    for number, line in enumerate(_text(path).splitlines(), start=1):
        text = line.strip()
        if not text:
            continue
        if not text.startswith("<"):
            variables.append(Variable(text.split()[0].strip('"')))
            continue
        word, _, rest = text[1:].partition(">")
        word, rest = word.upper(), rest.strip().strip('"')
        if word == "SEPARATOR":
            separator = rest or " "
        elif not variables:
            raise Refused(f"line {number} of {path.name!r} describes <{word}> before any variable is named")
        elif word in KINDS:
            variables[-1].kind = word
        else:
            variables[-1].words[word] = rest
    if not any(each.kind == "RECODEABLE" for each in variables):
        raise Refused(f"{path.name!r} describes no column of codes: one must be <RECODEABLE>")
    return separator, variables


def table(path: Path) -> dict[str, npt.NDArray[Any]]:
    """Read a `.tab` file by its metadata: columns of codes and of figures, without those of cells that are not safe."""
    data, description = path.with_suffix(".tab"), path.with_suffix(".rda")
    for file in (data, description):
        if not file.exists():
            raise Refused(f"a table of τ-ARGUS is two files, and there is no {str(file)!r}")
    separator, variables = metadata(description)
    rows = list(csv.reader(_text(data).splitlines(), delimiter=separator, skipinitialspace=True))
    for number, row in enumerate(rows, start=1):
        if row and len(row) != len(variables):
            raise Refused(
                f"line {number} of {data.name!r} has {len(row)} fields where {description.name!r} describes "
                f"{len(variables)}, separated by {separator!r}"
            )
    rows = [row for row in rows if row]
    columns = {each.name: [row[i].strip() for row in rows] for i, each in enumerate(variables)}
    figures = [each for each in variables if each.kind in ("NUMERIC", "FREQUENCY")]
    if not figures:
        raise Refused(f"{description.name!r} describes no column of figures: one must be <NUMERIC> or <FREQUENCY>")
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
        if "HIERCODELIST" in each.words:
            file = description.parent / each.words["HIERCODELIST"].replace("\\", "/")
            found[each.name] = hierarchy(
                file, each.words.get("TOTCODE", TOTAL), each.words.get("HIERLEADSTRING", LEAD) or LEAD
            )
    return found


def totals(path: Path) -> dict[str, str]:
    """What the total of each column of codes is called."""
    described = metadata(path.with_suffix(".rda"))[1]
    return {each.name: each.words.get("TOTCODE", TOTAL) for each in described if each.kind == "RECODEABLE"}


def _text(path: Path) -> str:
    try:
        content = path.read_bytes()
    except OSError as error:
        raise Refused(f"{str(path)!r} cannot be read: {error.strerror}") from None
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        return content.decode("cp1252", errors="replace")
