"""The report: one page in plain words for whoever must sign or read a release; it works offline and loads nothing."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
from jinja2 import Environment, PackageLoader, StrictUndefined, Template, select_autoescape

from holdfast.release.certificate.certificate import Certificate
from holdfast.release.ledger.accounts import Budget
from holdfast.release.storage.tables import FIGURES

REPORT = "report.html"
#: Rows of each table that the page shows; the files hold all.
SHOWN = 50


def report(
    certificate: Certificate, tables: Sequence[Mapping[str, npt.NDArray[Any]]], protected: str, spent: Sequence[str]
) -> str:
    """Return the page: the promise in words, what is not protected, what was spent, what holds, and the first rows.

    `tables` hold the columns of the released files; `protected` says whom the release protects, and `spent` what the
    ledger says about the dataset.
    """
    return _page().render(
        certificate=certificate,
        tables=[
            (table, _rows(table.columns, columns), table.interval.basis is not None)
            for table, columns in zip(certificate.tables, tables, strict=True)
        ],
        asked=str(Budget.from_mapping(certificate.asked)),
        protected=protected,
        spent=spent,
        date=certificate.deployment.basic.publication_date,
    )


def _rows(names: Sequence[str], columns: Mapping[str, npt.NDArray[Any]]) -> list[tuple[list[str], list[str]]]:
    """The names and figures of the first rows, as they are shown."""
    words = [["" if name is None else str(name) for name in columns[column][:SHOWN].tolist()] for column in names]
    figures = [[_shown(number) for number in np.asarray(columns[column][:SHOWN]).tolist()] for column in FIGURES]
    return [
        (list(name), list(figure))
        for name, figure in zip(zip(*words, strict=True), zip(*figures, strict=True), strict=True)
    ]


def _shown(number: float) -> str:
    """Write whole numbers without a fraction, and others with a few digits of theirs."""
    if math.isnan(number):
        return ""
    return str(int(number)) if float(number).is_integer() else f"{number:.2f}"


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
