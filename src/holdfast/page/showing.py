"""What the page shows, as pieces of HTML made of what the library says; every word of a spec is escaped."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Sequence
from functools import cache
from importlib import resources
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape
from markupsafe import Markup

from holdfast.page.draft import KINDS, Base
from holdfast.page.planning import Planned
from holdfast.page.solving import Price
from holdfast.pictures import Picture, bars, hundred, number, spreads
from holdfast.privacy import odds
from holdfast.privacy.words import describe
from holdfast.release.job.caveats import protected
from holdfast.release.job.errors import Errors, LevelErrors
from holdfast.release.job.job import Job
from holdfast.release.job.table import Table
from holdfast.release.report.label import answered
from holdfast.release.spec.rules import WORDS
from holdfast.release.spec.table import METHODS
from holdfast.release.table.laid import Laid
from holdfast.version import __version__

#: The part of errors that a limit in the table of errors is about.
MOST = 0.95


def page(base: Base, shape: Laid) -> tuple[str, str]:
    """Return the whole page and the content security policy that it needs."""
    style, script = (
        _text("holdfast.release", "report.css") + _text("holdfast.page", "page.css"),
        _text("holdfast.page", "page.js"),
    )
    tables = [
        {
            "name": table.name,
            "levels": table.layout.levels,
            "exact": _can_be_exact(table),
            "minimise": table.layout.asked.minimise,
        }
        for table in shape.tables
    ]
    text = _filled(
        "page.html",
        title=shape.title,
        file=base.path.name,
        tables=tables,
        fields=base.fields,
        start=json.dumps(base.fields),
        kinds=KINDS,
        words=WORDS,
        methods=METHODS,
        version=__version__,
        style=Markup(style),
        script=Markup(script),
    )
    policy = (
        f"default-src 'none'; style-src '{_hash(style)}'; script-src '{_hash(script)}'; connect-src 'self'; "
        "img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )
    return text, policy


def _can_be_exact(table: Any) -> tuple[str, ...]:
    """What a box can make exact: levels of a hierarchy; the total and single axes of other tables."""
    laid = table.layout
    return tuple(laid.levels) if laid.tree is not None else ("total", *(laid.names if len(laid.names) > 1 else ()))


def plan(planned: Planned, disclosed: Sequence[str]) -> dict[str, str]:
    """The parts that a plan fills: what it promises, how wrong it is, what it protects and gives away."""
    return {
        "promise": _filled("promise.html", job=planned.job, promise=planned.job.guarantee),
        "errors": _filled("errors.html", planned=planned, tables=_tables(planned), most=MOST),
        "protects": _filled("protects.html", job=planned.job, disclosed=disclosed, protected=protected),
    }


def _tables(planned: Planned) -> list[dict[str, Any]]:
    several = len(planned.job.tables) > 1
    return [
        {
            "name": table.name if several else "",
            "method": table.chosen.method,
            "law": table.chosen.noise,
            "outlook": outlook,
            "shares": _shares(table),
            "picture": _distribution(outlook),
            "error_bars": table.chosen.error_bars,
        }
        for table, outlook in zip(planned.job.tables, planned.outlooks, strict=True)
    ]


def _shares(table: Table) -> dict[str, str] | None:
    """What part of the budget every level has; what costs nothing has all of it."""
    shares = table.problem.shares
    if shares is None:
        return None
    return {level: f"{min(float(shares.get(level, 0)), 1):.3g}" for level in table.layout.levels}


def _rough(value: float) -> str:
    return number(float(f"{value:.2g}"))


def _distribution(outlook: Errors) -> Picture:
    rows = [(level.name, level.bars.tolist(), level.reach, level.within(MOST)) for level in outlook.levels]
    return spreads(rows, "error; the line holds 95 in 100")


def methods(job: Job) -> dict[str, str]:
    shown = []
    for table in job.tables:
        known = [each for each in table.comparison if each.expected_absolute_error is not None]
        several = len({each.noise for each in table.comparison}) > 1
        rows = [(_named(each, several), each.expected_absolute_error or 0.0, 0.0) for each in known]
        chosen = [i for i, each in enumerate(known) if each.chosen]
        picture = bars(rows, "mean over levels of the expected absolute error", chosen) if len(rows) > 1 else None
        shown.append({"table": table, "picture": picture, "several": several})
    return {"methods": _filled("methods.html", tables=shown, named=_named)}


def _named(each: Any, several: bool) -> str:
    return f"{each.method} ({each.noise})" if several else str(each.method)


def prices(found: Sequence[Price], several: bool) -> dict[str, str]:
    return {"prices": _filled("prices.html", prices=found, several=several)}


def compare(kept: Planned, now: Planned) -> dict[str, str]:
    rows = []
    for t, (before, after) in enumerate(zip(kept.outlooks, now.outlooks, strict=True)):
        for a, b in zip(before.levels, after.levels, strict=True):
            name = f"{now.job.tables[t].name}: {a.name}" if len(now.outlooks) > 1 else a.name
            rows.append((name, a, b, _change(a, b)))
    return {"compare": _filled("compare.html", rows=rows, plans=(kept, now))}


def _change(a: LevelErrors, b: LevelErrors) -> str:
    if not (a.known and b.known):
        return "–"
    if a.absolute == b.absolute or max(a.absolute, b.absolute) == 0:
        return "the same"
    if min(a.absolute, b.absolute) == 0:
        return "now exact" if b.absolute == 0 else "no longer exact"
    part = b.absolute / a.absolute - 1
    return f"{'+' if part > 0 else '−'}{abs(100 * part):.0f} %"


def _error(level: LevelErrors) -> str:
    """An error for people: exact, unknown or a number."""
    if not level.known:
        return "depends on the data"
    return "exact" if level.absolute == 0 else number(level.absolute)


def _hash(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


@cache
def _text(room: str, name: str) -> str:
    return resources.files(room).joinpath("templates", name).read_text(encoding="utf-8")


def _filled(name: str, **values: Any) -> str:
    return (
        _environment()
        .get_template(name)
        .render(
            odds=odds,
            describe=describe,
            answered=answered,
            number=number,
            rough=_rough,
            error=_error,
            hundred=hundred,
            svg=lambda picture: Markup(str(picture)),
            **values,
        )
    )


@cache
def _environment() -> Environment:
    return Environment(
        loader=PackageLoader("holdfast.page"),
        autoescape=select_autoescape(default=True),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
