"""A combined estimate as a folder, and whether it is what its sources tell."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np

from holdfast.arguments import Refused
from holdfast.release.certificate.verify import Check, Verdict
from holdfast.release.standalone_verifier.reading import json_of, seal_of
from holdfast.release.storage.files import publish, read_plain, sha256_of, workplace, write_text
from holdfast.release.storage.tables import read_parquet, texts, write_table

#: The columns that are numbers.
NUMBERS = ("value", "standard_error", "low", "high", "whole", "alone")
#: The form of the file that says what was combined, and its name beside the figures.
SCHEMA: Final = "holdfast-combined-1"
FILE, PARQUET, CSV = "combined.json", "combined.parquet", "combined.csv"
#: Figures agree with those computed again to so small a share of the largest.
NEAR = 1e-6


def write(folder: Path, said: dict[str, Any], listed: Mapping[str, list[Any]]) -> None:
    """Write the figures as Parquet and CSV, and what is said of them; the folder appears whole or not at all."""
    columns = {name: np.array(column, dtype=object) for name, column in listed.items()}
    columns |= {name: column.astype(np.float64) for name, column in columns.items() if name in NUMBERS}
    with workplace(folder) as place:
        write_table(columns, place / PARQUET, place / CSV)
        said["files"] = {name: sha256_of(place / name) for name in (PARQUET, CSV)}
        said["seal"] = seal_of(said)
        write_text(place / FILE, json.dumps(said, ensure_ascii=False, allow_nan=False, indent=1) + "\n")
        publish(place, folder)


def verified(folder: Path, mine: Mapping[str, Any], listed: Mapping[str, list[Any]]) -> Verdict:
    """Check a folder against what is said here of the same sources: its seal and files, its sources, its figures."""
    try:
        said = json_of(read_plain(folder / FILE))
    except (OSError, ValueError):
        raise Refused(f"{folder} holds no {FILE}: name the folder of a combined estimate") from None
    checks = []
    for name, words, found in (
        ("combined", "is as it was sealed", _sealed(said)),
        ("files", "are as they were written", _files(folder, said)),
        ("sources", "are these releases", _different(said, mine, ("sources", "figure"))),
        ("figures", "follow from the sources", _figures(folder, said, mine, listed)),
    ):
        wrong = next(found, None)
        checks.append(Check(name, wrong is None, wrong or words))
        if wrong is not None:
            break
    return Verdict(tuple(checks))


def _sealed(said: Any) -> Iterator[str]:
    if not isinstance(said, dict) or said.get("schema") != SCHEMA or said.get("seal") != seal_of(said):
        yield f"{FILE} was changed after it was sealed"


def _files(folder: Path, said: Mapping[str, Any]) -> Iterator[str]:
    for name in (PARQUET, CSV):
        try:
            if sha256_of(folder / name) != said["files"][name]:
                yield f"{name} was changed"
        except OSError:
            yield f"{name} cannot be read"


def _different(said: Mapping[str, Any], mine: Mapping[str, Any], names: Iterable[str]) -> Iterator[str]:
    for name in names:
        if said.get(name) != mine[name]:
            yield f"{name} in {FILE} is not what these releases tell, in this order"


def _figures(
    folder: Path, said: Mapping[str, Any], mine: Mapping[str, Any], wanted: Mapping[str, list[Any]]
) -> Iterator[str]:
    found = read_parquet(folder / PARQUET)
    if list(found) != list(wanted):
        yield "the figures have other columns"
        return
    for name, column in wanted.items():
        if name not in NUMBERS:
            same = texts(found[name]).tolist() == list(column)
        else:
            one: Any = np.ma.filled(np.ma.asarray(found[name], dtype=float), np.nan)
            other = np.array(column, dtype=float)
            near = NEAR * float(np.nanmax(np.abs(other), initial=1.0))
            same = one.shape == other.shape and np.allclose(one, other, rtol=0.0, atol=near, equal_nan=True)
        if not same:
            yield f"the column {name!r} is not what the sources tell"
    yield from _different(said, mine, ("known", "figures", "confidence", "contradictions", "assumes", "lost"))
    for name in ("gained", "chi2"):
        pairs = ((said[name][each], value) for each, value in mine[name].items())
        if not all(one == other or np.isclose(one, other, rtol=NEAR, atol=NEAR) for one, other in pairs):
            yield f"{name} in {FILE} is not what the sources tell"
