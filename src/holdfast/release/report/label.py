"""The label of a release: what it is, who is protected, how strongly, what is not, and how wrong figures are, in words.

Every number stands in the certificate or follows from one there. Those of privacy are rounded to the side that promises
less, errors to a digit or two.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from markupsafe import Markup, escape

from holdfast.pictures import Picture, bands, bars, curves, number, parts
from holdfast.privacy import odds
from holdfast.privacy.words import Learnable
from holdfast.release.certificate.certificate import Certificate
from holdfast.release.facts.table import Level, TableCertificate
from holdfast.release.standalone_verifier.facts import FOLLOWS, PUBLISHED
from holdfast.release.table.wording import NOT_COVERED, as_sentence

if TYPE_CHECKING:
    from holdfast.release.job.sizes import Sizes


def contents(certificate: Certificate) -> list[str]:
    """Say what each table is."""
    several = len(certificate.tables) > 1
    return [
        f"{f'{table.name}: ' if several else ''}{table.rows:,} figures "
        f"({', '.join(f'{level.level} {level.figures:,}' for level in table.noise_by_level)})."
        for table in certificate.tables
    ]


def exact_figures(certificate: Certificate) -> list[str]:
    """Name the figures without noise, which the statement takes as given, with the reason."""
    several = len(certificate.tables) > 1
    return [
        f"{f'{table.name}: ' if several else ''}{each.level} ({_how_many(each.figures, each.of)}): {each.why}"
        for table in certificate.tables
        for each in table.unprotected
        if each.why in (PUBLISHED, FOLLOWS)
    ]


def _how_many(figures: int, of: int) -> str:
    return f"{figures:,} figure{'s' * (figures > 1)}" if figures == of else f"{figures:,} of {of:,} figures"


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
    bare = (as_sentence(words, certificate.tables) for words in certificate.unprotected)
    sentences += [f"These figures are not protected. {words}" for words in bare]
    sentences += [f"The promise takes for granted: {words}." for words in first.assumes]
    return [*sentences, f"This is said of the release {certificate.release} alone."]


def how_wrong(table: TableCertificate) -> list[str]:
    return [f"{level.level}: {_wrong(level)}." for level in table.noise_by_level]


def _wrong(level: Level) -> str:
    if level.exact:
        return f"as in the data ({level.in_words.removeprefix('none: ')})"
    if level.expected_absolute_error is None or level.interval_width is None:
        return "nobody can tell before the data are known"
    mean, width = about(level.expected_absolute_error), about(level.interval_width)
    return f"off by {mean} on average; 95 of 100 errors lie within a range {width} wide"


def about(value: float) -> str:
    """Write a number for a reader: one digit, or two of 10 and more."""
    return f"about {number(float(f'{value:.{1 if value < 10 else 2}g}'))}" if value else "0"


def error_bands(table: TableCertificate) -> Picture:
    return bands(
        [(name, mean, width / 2) for name, mean, width in _errors(table)],
        "inner band: mean error; outer band: 95 in 100",
    )


def error_bars(table: TableCertificate) -> Picture:
    """Draw the expected errors of every level, with half the width of the range of most errors."""
    rows = [(name, mean, width / 2) for name, mean, width in _errors(table)]
    return bars(rows, "expected absolute error; the line reaches 95 in 100 errors")


def _errors(table: TableCertificate) -> list[tuple[str, float, float]]:
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
