"""The report: one page in plain words for whoever must sign or read a release; it works offline and loads nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from itertools import islice
from typing import Any

import numpy.typing as npt
from jinja2 import Environment, PackageLoader, StrictUndefined, Template, select_autoescape

from holdfast.release.certificate import Certificate

REPORT = "report.html"
#: Rows of each table that the page shows; the files hold all.
SHOWN = 50


def report(
    certificate: Certificate, values: Sequence[npt.NDArray[Any]], names: Sequence[Mapping[str, npt.NDArray[Any]]]
) -> str:
    """Return the page: the promise in words, what is not protected, what holds, and the first rows of every table."""
    rows = [
        list(islice(zip(*columns.values(), figures.tolist(), strict=True), SHOWN))
        for columns, figures in zip(names, values, strict=True)
    ]
    return _page().render(
        certificate=certificate,
        tables=list(zip(certificate.tables, rows, strict=True)),
        date=certificate.deployment.product.publication_date,
    )


@cache
def _page() -> Template:
    environment = Environment(
        loader=PackageLoader("holdfast.release"),
        autoescape=select_autoescape(default=True),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template(REPORT)
