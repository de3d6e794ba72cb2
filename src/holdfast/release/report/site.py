"""A site of releases: one page for each, as it was certified, and an index of what was promised and spent."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from markupsafe import Markup

from holdfast.arguments import Refused
from holdfast.privacy import odds
from holdfast.release.certificate.certificate import Certificate, read_certificate
from holdfast.release.certificate.verify import verify
from holdfast.release.ledger.accounts import Budget
from holdfast.release.report.page import REPORT, hashed, template, text_of

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
        found.setdefault(certificate.release, (folder, certificate, len(verdict.checks)))
    if not found:
        raise Refused("name at least one folder of a release")
    datasets: dict[str, list[dict[str, Any]]] = {}
    for _, certificate, checks in sorted(found.values(), key=lambda each: _date(each[1]), reverse=True):
        datasets.setdefault(_dataset(certificate), []).append(_row(certificate, checks))
    output.mkdir(parents=True)
    for folder, certificate, _ in found.values():
        shutil.copyfile(folder / REPORT, output / _page(certificate))
    style = text_of("report.css")
    policy = f"default-src 'none'; style-src '{hashed(style)}'; base-uri 'none'; form-action 'none'"
    page = template("site.html").render(datasets=datasets, style=Markup(style), policy=policy)
    (output / INDEX).write_text(page, encoding="utf-8")
    return output / INDEX


def _row(certificate: Certificate, checks: int) -> dict[str, Any]:
    return {
        "title": certificate.title,
        "page": _page(certificate),
        "date": _date(certificate),
        "asked": str(Budget.from_mapping(certificate.asked)),
        "promise": odds.in_words(certificate.statements[0]),
        "figures": sum(table.rows for table in certificate.tables),
        "spent": certificate.spent,
        "checks": checks,
    }


def _date(certificate: Certificate) -> str:
    return str(certificate.deployment.basic.publication_date)


def _dataset(certificate: Certificate) -> str:
    """The name that a ledger knows the records by."""
    data = certificate.spec.get("data") or {}
    return str(data.get("name") or data.get("source") or certificate.title)


def _page(certificate: Certificate) -> str:
    return f"{certificate.release}.html"
