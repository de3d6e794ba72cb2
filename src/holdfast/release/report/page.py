"""Filling in the page: a function of the certificate, the released figures, public sentences and what the ledger says.

The page has a content security policy: its own style and its own script by their hashes, nothing else. The script adds
filter and sort; without it everything can be read.
"""

from __future__ import annotations

import math
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy.typing as npt
from markupsafe import Markup

from holdfast.arguments import Refused
from holdfast.pictures import Picture, hundred, line_over_time, number
from holdfast.pictures.pages import filled, policy_of, text_of
from holdfast.privacy import odds
from holdfast.privacy.words import describe, grounds
from holdfast.release.certificate.certificate import Certificate, read_certificate
from holdfast.release.certificate.verify import foretold, verify
from holdfast.release.job.errors import LAW
from holdfast.release.job.table import Sizes
from holdfast.release.ledger.accounts import Budget
from holdfast.release.report import label
from holdfast.release.report.figures import FEW, figures
from holdfast.release.standalone_verifier.reading import figure_columns
from holdfast.release.storage.files import CERTIFICATE, sha256_of
from holdfast.release.storage.tables import read_table
from holdfast.release.table.wording import HOW, ways_in_words

ROOM, REPORT = "holdfast.release", "report.html"
#: Figures of a series that are drawn over time: the first ones.
MOST_LINES = 4


def over_time(certificate: Certificate, place: Path, above: Path) -> list[tuple[str, Picture]]:
    """The first figures of the first table in all periods up to this one, as far as their folders lie `above`."""
    series, table = certificate.series, certificate.tables[0]
    if series is None or table.parts:
        return []
    hashes = {each.period: each.certificate for each in series.drawn}
    found: dict[str, Any] = {series.period: read_table(place, table.parquet, 0)}
    for name in hashes:
        folder = above / name
        if (folder / table.parquet).is_file() and sha256_of(folder / CERTIFICATE) == hashes[name]:
            found[name] = read_table(folder, table.parquet, 0)
    names = series.periods[: max(series.periods.index(each) for each in found) + 1]
    names = names[min(series.periods.index(each) for each in found) :]
    own, ends = found[series.period], figure_columns(table.figure)
    lines = []
    for row in range(min(MOST_LINES, table.rows)):
        rows = []
        for name in names:
            value, low, high = (float(found[name][end][row]) if name in found else math.nan for end in ends)
            rows.append((name, value, low, high))
        called = " / ".join(str(own[each][row]) for each in table.columns[1:] if own[each][row] is not None) or "total"
        lines.append((called, line_over_time(rows, f"{called}: value, and the band of its 95 % interval")))
    return lines


#: The parts of the script, in an order in which each needs only those before it.
SCRIPTS = ("law.js", "noise.js", "table.js", "compare.js", "ask.js", "form.js", "report.js")


def report(
    certificate: Certificate,
    tables: Sequence[Mapping[str, npt.NDArray[Any]]],
    sizes: Sequence[Sizes | None],
    data: str,
    lines: Sequence[tuple[str, Picture]] = (),
) -> str:
    """Return the page.

    `tables` hold the columns of the released files, `sizes` how errors depend on sizes, `data` what answers questions,
    `lines` figures over the periods of a series, by name.
    """
    shown = []
    for table, columns, size in zip(certificate.tables, tables, sizes, strict=True):
        text, rows = figures(table, columns)
        lowest = table.columns[-1]
        example = {lowest: next((str(name) for name in columns[lowest].tolist() if name is not None), "")}
        about = {"example": example, "few": rows <= FEW, "intervals": table.interval.basis is not None, "sizes": size}
        shown.append({"table": table, "figures": Markup(text), "rows": rows, **about})
    style = text_of(ROOM, "report.css")
    script = "\n".join(text_of(ROOM, name) for name in SCRIPTS)
    return filled(
        ROOM,
        REPORT,
        certificate=certificate,
        tables=shown,
        asked=str(Budget.from_mapping(certificate.asked)),
        ways_in_words=ways_in_words,
        odds=odds,
        hundred=hundred,
        checks=_checks(certificate),
        date=certificate.date,
        curators=certificate.curators,
        label=label,
        law=LAW,
        how=HOW,
        describe=describe,
        grounds=grounds,
        number=number,
        style=Markup(style),
        script=Markup(script),
        data=Markup(data),
        lines=lines,
        policy=policy_of(style, script),
    )


def _checks(certificate: Certificate) -> list[tuple[str, str]]:
    """What was checked; the name of the only table need not be said."""
    found = foretold(certificate)
    if len(certificate.tables) > 1:
        return found
    return [(name.removeprefix(f"{certificate.tables[0].name}: "), words) for name, words in found]


# --- A site of releases: one page for each, as it was certified, and an index of what was promised and spent ---------

INDEX = "index.html"


def site(folders: Sequence[Path], output: Path) -> Path:
    """Write a site into a new folder from releases that verify; return its index. Nothing else of them goes there."""
    if output.exists():
        raise Refused(f"{str(output)!r} exists already: name a new folder for the site")
    found: dict[str, tuple[Path, Certificate, int]] = {}
    for folder in folders:
        verdict = verify(folder)
        if not verdict.ok:
            raise Refused(f"{folder} is not as it was released: {verdict.differences[0].sentence}")
        certificate = read_certificate(folder)
        found.setdefault(_file(certificate), (folder, certificate, len(verdict.checks)))
    if not found:
        raise Refused("name at least one folder of a release")
    datasets: dict[str, list[dict[str, Any]]] = {}
    for _, certificate, checks in sorted(found.values(), key=_when, reverse=True):
        datasets.setdefault(_dataset(certificate), []).append(_row(certificate, checks))
    output.mkdir(parents=True)
    for folder, certificate, _ in found.values():
        shutil.copyfile(folder / REPORT, output / _file(certificate))
    style = text_of(ROOM, "report.css")
    page = filled(ROOM, "site.html", datasets=datasets, style=Markup(style), policy=policy_of(style))
    (output / INDEX).write_text(page, encoding="utf-8")
    return output / INDEX


def _when(found: tuple[Path, Certificate, int]) -> tuple[str, int]:
    """The day of a release, and on one day its line in the ledger."""
    return found[1].date, 0 if found[1].ledger is None else found[1].ledger.row


def _row(certificate: Certificate, checks: int) -> dict[str, Any]:
    return {
        "title": certificate.title,
        "page": _file(certificate),
        "date": certificate.date,
        "asked": str(Budget.from_mapping(certificate.asked)),
        "contents": label.contents(certificate),
        "spent": certificate.spent,
        "checks": checks,
    }


def _dataset(certificate: Certificate) -> str:
    """The name that a ledger knows the records by."""
    data = certificate.spec.get("data") or {}
    return str(data.get("name") or data.get("source") or certificate.title)


def _file(certificate: Certificate) -> str:
    series = certificate.series
    return f"{certificate.release}{'' if series is None else f'-{series.periods.index(series.period) + 1}'}.html"
