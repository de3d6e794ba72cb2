"""A mended table in words and pictures: sentences, a card for notebooks, a page, and a mapping for scripts."""

from __future__ import annotations

import json
from html import escape
from pathlib import Path
from typing import Any

import numpy as np

from holdfast.arguments import LARGEST, Refused
from holdfast.pictures import Picture, bars, card, number, rows_of, table_of
from holdfast.version import __version__

#: What this is, and what it is not.
STATEMENT = (
    "This table was computed from published figures alone. No confidential data were read and no privacy budget was "
    "spent: it carries no privacy statement of its own, and what was promised for the published figures holds for it "
    "as far as it held for them."
)
#: A Mended; to import its name would close a circle.
Mended = Any
#: Rows of the tables of a page, and bars of a picture.
SHOWN, BARS = 25, 10
#: Sizes of moves that are counted together.
SIZES = ((0, 0), (1, 1), (2, 2), (3, 5), (6, 10), (11, 100), (101, None))

_STYLE = (
    "body{font-family:system-ui,sans-serif;max-width:60em;margin:2em auto;padding:0 1em;line-height:1.45}"
    "table{border-collapse:collapse}td,th{padding:.15em 1em .15em 0;text-align:left}"
    ".stated{border-left:4px solid #1f78b4;padding:.4em 1em;background:#1f78b412}"
    "@media(prefers-color-scheme:dark){body{background:#16181c;color:#e6e6e6}}"
)


def sentences(mended: Mended) -> list[str]:
    """Say what was done, what was found and what it is."""
    words = [_moves(mended), *_compared(mended)]
    words += [f"{each[0].upper()}{each[1:]}." for each in mended.hierarchies]
    words.append(f"{mended.errors[0].upper()}{mended.errors[1:]}.")
    if mended.filled.size:
        words.append(_filled(mended))
    words += [f"{note[0].upper()}{note[1:]}." for note in mended.notes]
    return [*words, STATEMENT]


def _moves(mended: Mended) -> str:
    count = int(np.isfinite(mended.published).sum())
    if not mended.changed.size:
        return f"None of {count:,} published figures had to move."
    furthest = number(abs(float(mended.moved[mended.changed[0]])))
    mean = number(float(np.nanmean(np.abs(mended.moved))))
    return (
        f"{mended.changed.size:,} of {count:,} published figures moved, by {mean} on average and {furthest} at most: "
        f"{_nearness(mended)}."
    )


def _nearness(mended: Mended) -> str:
    """Whether it is the nearest table, and otherwise how much nearer one could be."""
    evidence, norm = mended.evidence, mended.norm.upper()
    if evidence.nearest:
        return f"the nearest table in {norm} in which everything holds"
    share = f", {100 * evidence.relative_gap:.2g} %" if 0 < evidence.relative_gap < np.inf else ""
    return (
        f"near the nearest table in {norm} in which everything holds, not proved to be it: of its distance of "
        f"{number(evidence.objective)} at most {number(evidence.gap)}{share}, could be saved"
    )


def _compared(mended: Mended) -> list[str]:
    """Which sums and which other rules the published figures broke, by kind."""
    found = []
    if mended.sums or not mended.rules:
        most = f", the largest by {number(abs(mended.contradictions[0].gap))}" if mended.contradictions else ""
        found.append(
            f"{mended.sums:,} sums of published figures were compared with them: {mended.contradicted:,} did not "
            f"hold{most}."
        )
    told = [(kind, kind.largest(1)) for kind in mended.rules if kind.rows.size]
    found += [
        f"{kind.name}: {kind.rows.size:,} of {kind.compared:,} did not hold, the most: {most[0]}."
        for kind, most in told
    ]
    return found


def _filled(mended: Mended) -> str:
    verb, sure = ("figure is", "it is") if mended.filled.size == 1 else ("figures are", "they are")
    return (
        f"{mended.filled.size:,} {verb} missing in the table and filled by what the others imply; {sure} marked, with "
        f"the range that the mended figures leave ({int(mended.pinned.sum()):,} of them with one value only)."
    )


def moves(mended: Mended) -> list[tuple[str, int]]:
    """How many published figures moved by how much, in steps."""
    size = np.abs(mended.steps - mended.published)[np.isfinite(mended.published)]
    unit = float(mended.unit)
    found = []
    for low, high in SIZES:
        count = int(((size >= low) & (size <= (np.inf if high is None else high))).sum())
        name = number(low * unit) if low == high else f"{number(low * unit)} or more"
        if high is not None and high > low:
            name = f"{number(low * unit)} to {number(high * unit)}"
        if count:
            found.append((f"moved by {name}" if low else "did not move", count))
    return found


def picture(mended: Mended) -> Picture:
    """The largest contradictions, a bar for each; where there are none, how far figures moved."""
    rows = [(each.figure, abs(each.gap), 0.0) for each in mended.contradictions[:BARS]]
    return bars(rows, "published figure less the sum of its parts") if rows else moves_picture(mended)


def moves_picture(mended: Mended) -> Picture:
    return bars([(name, float(count), 0.0) for name, count in moves(mended)], "published figures")


def shown(mended: Mended) -> str:
    """A card for notebooks."""
    facts = {
        "did not hold": " ".join(_compared(mended)),
        "moved": _moves(mended),
        "filled": _filled(mended) if mended.filled.size else "",
        "carries": STATEMENT,
    }
    return card("Mended table", f"{mended.n:,} figures", rows_of(facts), str(picture(mended)))


def page(mended: Mended) -> str:
    """A page that works without a network: what was found, what was done, what it is."""
    parts = [
        "<!doctype html><html lang='en'><head><meta charset='utf-8'><title>A table that adds up</title>",
        "<meta http-equiv='Content-Security-Policy' content=\"default-src 'none'; style-src 'unsafe-inline'\">",
        f"<meta name='viewport' content='width=device-width'><style>{_STYLE}</style></head><body>",
        "<h1>A table that adds up</h1>",
        f"<p class='stated'>{escape(STATEMENT)}</p>",
        "".join(f"<p>{escape(words)}</p>" for words in sentences(mended)[:-1]),
        f"<h2>How far figures moved</h2>{moves_picture(mended)}",
    ]
    if mended.contradictions:
        gaps = [
            (each.figure, each.column, number(each.published), number(each.sum), number(each.gap))
            for each in mended.contradictions[:SHOWN]
        ]
        heads = ("figure", "along", "published", "sum of its parts", "gap")
        parts.append(f"<h2>What contradicted what, the largest first</h2>{picture(mended)}{table_of(heads, gaps)}")
    if mended.broken:
        rules = [(each.rule, number(each.found), f"{each.relation} {number(each.asked)}") for each in mended.broken]
        parts.append(f"<h2>Rules that were broken</h2>{table_of(('rule', 'published', 'asked'), rules[:SHOWN])}")
    if mended.changed.size:
        rows = [
            (mended.figures.name(i), number(float(mended.published[i]) * float(mended.unit)),
             number(float(mended.values[i])), number(float(mended.moved[i])))
            for i in mended.changed[:SHOWN].tolist()
        ]  # fmt: skip
        parts.append(f"<h2>What moved furthest</h2>{table_of(('figure', 'published', 'mended', 'moved'), rows)}")
    if mended.filled.size and mended.ranges is not None:
        low, high = mended.ranges
        holes = [
            (mended.figures.name(i), number(float(mended.values[i])), _range(mended, int(low[i]), int(high[i])))
            for i in mended.filled[:SHOWN].tolist()
        ]
        parts.append(
            f"<h2>What was filled</h2>{table_of(('figure', 'filled with', 'the mended figures allow'), holes)}"
        )
    return "".join(parts) + "</body></html>\n"


def _range(mended: Mended, low: int, high: int) -> str:
    unit = float(mended.unit)
    if low == high:
        return f"only {number(low * unit)}"
    least = f"from {number(low * unit)}" if low > -LARGEST else "from below"
    return f"{least} to {number(high * unit)}" if high < LARGEST else f"{least} up"


def mapping(mended: Mended) -> dict[str, Any]:
    """What was done, for scripts."""
    return {
        "figures": mended.n,
        "sums": mended.sums,
        "contradicted": mended.contradicted,
        "rules": [
            {"rule": kind.name, "compared": kind.compared, "broken": int(kind.rows.size)} for kind in mended.rules
        ],
        "moved": int(mended.changed.size),
        "moved_most": abs(float(mended.moved[mended.changed[0]])) if mended.changed.size else 0.0,
        "filled": int(mended.filled.size),
        "pinned": int(mended.pinned.sum()),
        "exact": int(mended.exact.size),
        "norm": mended.norm,
        "step": str(mended.unit),
        "nearest": mended.evidence.nearest,
        "distance": mended.evidence.objective,
        "gap": mended.evidence.gap if np.isfinite(mended.evidence.gap) else None,
        "hierarchies": list(mended.hierarchies),
        "errors": mended.errors,
        "contradictions": [
            {"figure": each.figure, "along": each.column, "published": each.published, "sum": each.sum, "gap": each.gap}
            for each in mended.contradictions[:SHOWN]
        ],
        "notes": list(mended.notes),
        "statement": STATEMENT,
    }


# --- The files of a mended table: the table, what every column is (Data Package), a page, and what was done as JSON

TABLE, PACKAGE, PAGE, SUMMARY = "table.csv", "datapackage.json", "report.html", "mend.json"
ABOUT = {
    "published": "the figure as it was published; empty where it was missing or suppressed",
    "moved": "the mended figure less the published one",
    "status": "published (unmoved), moved, filled (missing in the published table) or exact (known)",
    "low": "lower end of the interval for the true figure by the stated law; of filled figures what the others allow",
    "high": "upper end of the same",
}


def write(mended: Mended, folder: Path) -> Path:
    """Write all files into a new folder; never over an existing one."""
    try:
        folder.mkdir(parents=True)
    except FileExistsError:
        raise Refused(f"{str(folder)!r} exists already: name another folder for the mended table") from None
    except OSError as error:
        raise Refused(f"{str(folder)!r} cannot be made: {error.strerror}") from None
    from holdfast.release.storage.tables import write_csv

    columns = {name: _column(found) for name, found in mended.columns().items()}
    write_csv(columns, folder / TABLE)
    (folder / PACKAGE).write_text(_json(_package(mended, columns)), encoding="utf-8")
    (folder / SUMMARY).write_text(_json(mapping(mended)), encoding="utf-8")
    (folder / PAGE).write_text(page(mended), encoding="utf-8")
    return folder


def _column(found: Any) -> Any:
    """A column as it is written: empty where a number is not known or has no end; whole numbers without a fraction."""
    if isinstance(found, list):
        texts = np.empty(len(found), dtype=object)
        texts[:] = found
        return texts
    if found.dtype.kind != "f":
        return found
    known = np.isfinite(found)
    if (found[known] == np.rint(found[known])).all():
        return np.ma.MaskedArray(np.where(known, found, 0).astype(np.int64), mask=~known)
    return np.ma.MaskedArray(np.where(known, found, 0.0), mask=~known)


def _package(mended: Mended, columns: dict[str, Any]) -> dict[str, Any]:
    fields = []
    for name, found in columns.items():
        kind = "string" if found.dtype == object else "integer" if found.dtype.kind in "iu" else "number"
        about = ABOUT.get(name, "a label of the published table")
        if name == mended.name:
            about = "the mended figure: the nearest table in which everything holds"
        fields.append({"name": name, "type": kind, "description": about})
    described = {"schema": {"fields": fields, "missingValues": [""]}, "encoding": "utf-8", "mediatype": "text/csv"}
    return {
        "$schema": "https://datapackage.org/profiles/2.0/datapackage.json",
        "name": "mended-table",
        "title": "A table that adds up",
        "description": STATEMENT,
        "version": __version__,
        "resources": [{"name": "table", "path": TABLE, "type": "table", "format": "csv", **described}],
    }


def _json(content: Any) -> str:
    return json.dumps(content, ensure_ascii=False, indent=2, allow_nan=False) + "\n"
