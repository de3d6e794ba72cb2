"""Filling in the page: a function of the certificate, the released figures, public sentences and what the ledger says.

The page has a content security policy: its own style and its own script by their hashes, nothing else. The script adds
filter and sort; without it everything can be read.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import resources
from typing import Any

import numpy.typing as npt
from jinja2 import Environment, PackageLoader, StrictUndefined, Template, select_autoescape
from markupsafe import Markup

from holdfast.pictures import hundred, number
from holdfast.privacy import odds
from holdfast.privacy.words import describe
from holdfast.release.certificate.certificate import Certificate
from holdfast.release.certificate.verify import foretold
from holdfast.release.job.errors import LAW
from holdfast.release.job.sizes import Sizes
from holdfast.release.ledger.accounts import Budget
from holdfast.release.report import label
from holdfast.release.report.figures import FEW, figures
from holdfast.release.table.wording import HOW, ways_in_words

REPORT = "report.html"
#: The parts of the script, in an order in which each needs only those before it.
SCRIPTS = ("law.js", "noise.js", "table.js", "compare.js", "ask.js", "form.js", "report.js")


def report(
    certificate: Certificate,
    tables: Sequence[Mapping[str, npt.NDArray[Any]]],
    sizes: Sequence[Sizes | None],
    data: str,
) -> str:
    """Return the page.

    `tables` hold the columns of the released files, `sizes` how errors depend on sizes, `data` what answers questions.
    """
    shown = []
    for table, columns, size in zip(certificate.tables, tables, sizes, strict=True):
        text, rows = figures(table, columns)
        lowest = table.columns[-1]
        example = {lowest: next((str(name) for name in columns[lowest].tolist() if name is not None), "")}
        about = {"example": example, "few": rows <= FEW, "intervals": table.interval.basis is not None, "sizes": size}
        shown.append({"table": table, "figures": Markup(text), "rows": rows, **about})
    style, script = text_of("report.css"), "\n".join(map(text_of, SCRIPTS))
    return _page().render(
        certificate=certificate,
        tables=shown,
        asked=str(Budget.from_mapping(certificate.asked)),
        ways_in_words=ways_in_words,
        odds=odds,
        hundred=hundred,
        checks=_checks(certificate),
        date=certificate.deployment.basic.publication_date,
        curators=certificate.deployment.basic.data_curators,
        label=label,
        law=LAW,
        how=HOW,
        describe=describe,
        number=number,
        svg=lambda picture: Markup(str(picture)),
        style=Markup(style),
        script=Markup(script),
        data=Markup(data),
        policy=(
            f"default-src 'none'; style-src '{hashed(style)}'; script-src '{hashed(script)}'; base-uri 'none'; "
            "form-action 'none'"
        ),
    )


def _checks(certificate: Certificate) -> list[tuple[str, str]]:
    """What was checked; the name of the only table need not be said."""
    found = foretold(certificate)
    if len(certificate.tables) > 1:
        return found
    return [(name.removeprefix(f"{certificate.tables[0].name}: "), words) for name, words in found]


def hashed(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


@cache
def text_of(name: str) -> str:
    return resources.files("holdfast.release").joinpath("templates", name).read_text(encoding="utf-8")


@cache
def _page() -> Template:
    return template(REPORT)


def template(name: str) -> Template:
    """A page to fill in, in which every text is escaped."""
    environment = Environment(
        loader=PackageLoader("holdfast.release"),
        autoescape=select_autoescape(default=True),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template(name)
