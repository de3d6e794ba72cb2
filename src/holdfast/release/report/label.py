"""The label of a release: what it is, who is protected, how strongly, what is not, and how wrong figures are, in words.

Every number stands in the certificate or follows from one there. Those of privacy are rounded to the side that promises
less, errors to a digit or two.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from markupsafe import Markup, escape

from holdfast.pictures import Picture, bands, bars, curves, number, parts
from holdfast.privacy import odds
from holdfast.privacy.words import Learnable, learnt
from holdfast.release.certificate.certificate import Certificate, read_certificate
from holdfast.release.certificate.verify import verify
from holdfast.release.facts import Level, TableCertificate
from holdfast.release.ledger.accounts import Budget
from holdfast.release.standalone_verifier.facts import SHARED
from holdfast.release.table.wording import (
    HOW,
    LEARN,
    NOT_COVERED,
    as_sentence,
    sentence_about,
)

if TYPE_CHECKING:
    from holdfast.release.job.table import Sizes


def contents(certificate: Certificate) -> list[str]:
    """Say what each table is."""
    several = len(certificate.tables) > 1
    return [
        f"{f'{table.name}: ' if several else ''}{table.rows:,} figures "
        f"({'; '.join(f'{level.level} {level.figures:,}' for level in table.noise_by_level)})."
        for table in certificate.tables
    ]


def answered(row: Learnable) -> Markup:
    """Write whether somebody can learn a column; that the promise does not cover it stands out."""
    return Markup(str(escape(row.answer)).replace(NOT_COVERED, f"<strong>{NOT_COVERED}</strong>"))


def quotable(certificate: Certificate) -> list[str]:
    """Return sentences that may be quoted about a release: each is true by itself, for its scope and its relation."""
    first = certificate.statements[0]
    covered = [row.column for row in first.columns if row.covered]
    uncovered = [row.column for row in first.columns if not row.covered]
    sentences = [odds.in_words(first)]
    if covered:
        sentences.append(f"The promise covers: {', '.join(covered)}.")
    if uncovered:
        sentences.append(f"The promise does not cover, or not wholly: {', '.join(uncovered)}.")
    if certificate.unprotected:
        sentences.append("Not every figure is protected: the report lists those that are not.")
    sentences += [f"The promise takes for granted: {words}." for words in first.assumes]
    return [*sentences, f"This is said of the release {certificate.release} alone."]


def treated(certificate: Certificate) -> list[str]:
    """What a reader must know of the records, but for what the promise says itself."""
    return [words for words in certificate.caveats if words != SHARED]


def how_wrong(table: TableCertificate) -> list[str]:
    """Say it level by level; of levels without noise only that they are as in the data."""
    return [f"{level.level}: {_wrong(level)}." for level in table.noise_by_level if not level.exact] + _as_in_the_data(
        table
    )


def _as_in_the_data(table: TableCertificate) -> list[str]:
    levels = [level.level for level in table.noise_by_level if level.exact]
    return [f"As in the data: {'; '.join(levels)}."] if levels else []


def _wrong(level: Level) -> str:
    if level.expected_absolute_error is None or level.interval_width is None:
        return "nobody can tell before the data are known"
    mean, width = about(level.expected_absolute_error), about(level.interval_width)
    return f"off by {mean} on average; 95 of 100 errors lie within a range {width} wide"


def about(value: float) -> str:
    """Write a number for a reader: one digit, or two of 10 and more."""
    return f"about {number(float(f'{value:.{1 if value < 10 else 2}g}'))}" if value else "0"


def error_bands(table: TableCertificate) -> Picture:
    return bands(
        [(name, mean, width / 2) for name, mean, width in _widths(table)],
        "inner band: mean error; outer band: 95 in 100",
    )


def error_bars(table: TableCertificate) -> Picture:
    """Draw the expected errors of every level, with half the width of the range of most errors."""
    rows = [(name, mean, width / 2) for name, mean, width in _widths(table)]
    return bars(rows, "expected absolute error; the line reaches 95 in 100 errors")


def _widths(table: TableCertificate) -> list[tuple[str, float, float]]:
    endless = float("inf")
    return [
        (level.level, 0.0, 0.0)
        if level.exact
        else (
            level.level,
            endless if level.expected_absolute_error is None else level.expected_absolute_error,
            endless if level.interval_width is None else level.interval_width,
        )
        for level in table.noise_by_level
    ]


def methods(table: TableCertificate) -> Picture | None:
    """Draw the errors of the methods that were compared; None where there was nothing to compare."""
    known = [each for each in table.compared if each.expected_absolute_error is not None]
    if len(known) < 2:
        return None
    several = len({each.noise for each in known}) > 1
    rows = [
        (f"{each.method} ({each.noise})" if several else each.method, each.expected_absolute_error or 0.0, 0.0)
        for each in known
    ]
    chosen = [i for i, each in enumerate(known) if each.chosen]
    return bars(rows, "mean over levels of the expected absolute error", chosen)


def sizes_picture(found: Sizes) -> Picture:
    series = [("mean absolute error", found.absolute), ("bias (mean error)", found.bias)]
    return curves(found.size, series, f"true size of a figure of {found.level}", "Error")


def budget(certificate: Certificate) -> list[tuple[str, Picture]]:
    """Draw who got which share: tables of the whole, and levels of each table whose shares the spec sets."""
    found = []
    between = _between_tables(certificate.tables)
    if between is not None:
        found.append(("Between the tables", parts(between)))
    for table in certificate.tables:
        shares = [(level.level, _share(level.share)) for level in table.noise_by_level if level.share is not None]
        if shares:
            of_table = f" of {table.name}" if len(certificate.tables) > 1 else ""
            found.append((f"Between the levels{of_table}", parts(shares)))
    return found


def _between_tables(tables: Sequence[TableCertificate]) -> list[tuple[str, float]] | None:
    """What each table takes of the whole, where all state the same kind of amount; None for one table."""
    statements = [table.statements[0] for table in tables]
    for kind in ("rho", "epsilon"):
        amounts = [getattr(statement, kind) for statement in statements]
        if len(tables) > 1 and all(amounts):
            return [(table.name, float(amount)) for table, amount in zip(tables, amounts, strict=True)]
    return None


def _share(text: str) -> float:
    above, _, below = text.partition("/")
    return int(above) / int(below or 1)


# --- A published folder in words that a privacy officer can sign: everything from the certificate and the files alone

#: The heading of a folder that is not as it was released; nothing else is said of it.
CHANGED = "NOT as certified"
NOT_HIDDEN = "No promise hides these figures: each is known as it is in the data."
UNSAID = "The publisher keeps this out of the folder: whoever has the ledger sees it with holdfast ledger remaining."


def explain_folder(folder: str | Path) -> dict[str, list[str]]:
    """Return headings with their sentences, in reading order; only what is wrong if the folder was changed."""
    place = Path(folder)
    verdict = verify(place)
    if not verdict.ok:  # what it promises may be no more true than its files
        return {CHANGED: [f"{check.name}: {check.sentence}." for check in verdict.differences]}
    certificate = read_certificate(place)
    first, version = certificate.statements[0], certificate.software.version
    exact = [as_sentence(words, certificate.tables) for words in certificate.unprotected]
    found = {
        "What this is": [
            f"{certificate.title}, released on {certificate.date} by holdfast {version} as {certificate.release}.",
            *contents(certificate),
            f"Every file is as certified; {len(verdict.checks)} checks passed, every sum and bound exactly.",
        ],
        "Who is protected": [certificate.protected],
        LEARN: [*learnt(first, together(certificate.tables)), *([HOW] if first.scope != "all" else [])],
        "What the release promises": odds.promised(first),
        "What is published exactly": [*exact, NOT_HIDDEN] if exact else ["Nothing: every figure is protected."],
        "What was spent": [*(certificate.spent or [UNSAID]), f"Asked for: {Budget.from_mapping(certificate.asked)}."],
        "How wrong the figures are": [words for table in certificate.tables for words in _errors(table)],
        "What a reader must know": [f"{words[:1].upper()}{words[1:]}." for words in treated(certificate)],
        "Where to read on": [
            f"{place / 'report.html'}: methods, noise and intervals, sentences to quote, and a place to sign."
        ],
    }
    return {heading: sentences for heading, sentences in found.items() if sentences}


def together(tables: Sequence[TableCertificate]) -> dict[str, str]:
    """How many records or persons must change together before a column can take any other value; the most of them."""
    columns = [column for table in tables if table.protects is not None for column in table.protects.columns]
    return {each.column: each.needed for each in sorted(columns, key=lambda each: each.records or 0)}


def _errors(table: TableCertificate) -> list[str]:
    levels = [f"{level.level} {_error(level)}" for level in table.noise_by_level if not level.exact]
    sentences = [f"figures are off on average by: {'; '.join(levels)}."] if levels else []
    return [sentence_about(table.name, words) for words in [*sentences, *_as_in_the_data(table)]]


def _error(level: Level) -> str:
    return "unknown" if level.expected_absolute_error is None else about(level.expected_absolute_error)
