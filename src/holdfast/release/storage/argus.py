"""Files of τ-ARGUS: hierarchies of codes (`.hrc`), tables (`.tab`) and the metadata that describe them (`.rda`).

A hierarchy has one code per line, preceded by a character for every level it lies deeper; the total is not written. The
metadata name the columns of the table, which has no header, and say which are codes, figures and states of cells.
"""

from __future__ import annotations

import csv
import os
from dataclasses import dataclass, field
from pathlib import Path

from holdfast.arguments import Refused

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

    @property
    def total(self) -> str:
        return self.words.get("TOTCODE", TOTAL)


def codes(path: Path, total: str = TOTAL, lead: str = LEAD) -> list[tuple[str, str]]:
    """Read a `.hrc` file: each code with the code above it, the total where none is."""
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
    return pairs


def codes_of(variable: Variable, description: Path) -> list[tuple[str, str]]:
    """Read the hierarchy of a column of codes; none where the metadata name no file of it."""
    if "HIERCODELIST" not in variable.words:
        return []
    file = description.parent / variable.words["HIERCODELIST"].replace("\\", "/")
    return codes(file, variable.total, variable.words.get("HIERLEADSTRING", LEAD) or LEAD)


def levels(path: Path) -> dict[str, list[str]]:
    """Read a `.hrc` file as columns `level_1`, `level_2`, … a row per lowest code, which fills what lies below."""
    above = dict(codes(path))
    inner = set(above.values())
    rows = []
    for code in above:
        if code not in inner:
            row = [code]
            while (code := above[code]) in above:
                row.insert(0, code)
            rows.append(row)
    depth = max(map(len, rows))
    return {f"level_{i + 1}": [row[min(i, len(row) - 1)] for row in rows] for i in range(depth)}


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


def cells(path: Path) -> tuple[list[Variable], list[list[str]]]:
    """Read a `.tab` file by its metadata: the variables, and a row of texts for each cell."""
    data, description = path.with_suffix(".tab"), path.with_suffix(".rda")
    for file in (data, description):
        if not os.path.exists(file):
            raise Refused(f"a table of τ-ARGUS is two files, and there is no {str(file)!r}")
    separator, variables = metadata(description)
    rows = list(csv.reader(_text(data).splitlines(), delimiter=separator, skipinitialspace=True))
    for number, row in enumerate(rows, start=1):
        if row and len(row) != len(variables):
            raise Refused(
                f"line {number} of {data.name!r} has {len(row)} fields where {description.name!r} describes "
                f"{len(variables)}, separated by {separator!r}"
            )
    return variables, [[text.strip() for text in row] for row in rows if row]


def lowest_cells(path: Path) -> dict[str, list[str | None]]:
    """Read the cells of a `.tab` file that are no sums of others, by column; None where nothing is written."""
    variables, rows = cells(path)
    for i, each in enumerate(variables):
        if each.kind == "RECODEABLE":
            sums = {each.total, *(above for _, above in codes_of(each, path.with_suffix(".rda")))}
            rows = [row for row in rows if row[i] not in sums]
    return {each.name: [row[i] or None for row in rows] for i, each in enumerate(variables)}


def _text(path: Path) -> str:
    try:
        content = path.read_bytes()
    except OSError as error:
        raise Refused(f"{str(path)!r} cannot be read: {error.strerror}") from None
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        return content.decode("cp1252", errors="replace")
