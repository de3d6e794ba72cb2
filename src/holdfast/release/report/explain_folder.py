"""A published folder in words that a privacy officer can sign: everything from the certificate and the files alone."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path

from holdfast.privacy.words import describe
from holdfast.release.certificate.certificate import read_certificate
from holdfast.release.certificate.verify import verify
from holdfast.release.facts.table import Level, TableCertificate
from holdfast.release.ledger.accounts import Budget
from holdfast.release.report.label import about, contents, quotable
from holdfast.release.table.wording import (
    HOW,
    LEARN,
    as_sentence,
    held,
    percent,
    sentence_about,
    ways_in_words,
    words_about,
)

#: The heading of a folder that is not as it was released; nothing else is said of it.
CHANGED = "NOT as certified"
UNSAID = "The publisher keeps this out of the folder: whoever has the ledger sees it with holdfast ledger remaining."


def explain_folder(folder: str | Path) -> dict[str, list[str]]:
    """Return headings with their sentences, in reading order; only what is wrong if the folder was changed."""
    place = Path(folder)
    verdict = verify(place)
    if not verdict.ok:  # what it promises may be no more true than its files
        return {CHANGED: [f"{check.name}: {check.sentence}." for check in verdict.differences]}
    checked = [f"Every file is as certified; {len(verdict.checks)} checks passed, every sum and bound exactly."]
    certificate = read_certificate(place)
    basic, loss = certificate.deployment.basic, certificate.deployment.privacy_loss
    first = certificate.statements[0]
    software = certificate.software
    found = {
        LEARN: [f"{row.column}: {row.answer}." for row in first.columns],
        "Who is protected": [certificate.protected or loss.privacy_unit_details],
        "What this is": [
            f"{certificate.title}, released on {basic.publication_date} by holdfast {software.version} as "
            f"{certificate.release}; asked for: {Budget.from_mapping(certificate.asked)} in total.",
            *contents(certificate),
        ],
        "What was checked": checked,
        "What the release promises": [describe(first, columns=False)],
        "What is assumed of all data": [f"{words[:1].upper()}{words[1:]}." for words in first.assumes],
        "What may be quoted": quotable(certificate),
        "How many must change together": _together(certificate.tables),
        "What is given away": [as_sentence(words, certificate.tables) for words in certificate.unprotected]
        or ["Nothing is published exactly: every figure is protected."],
        "What was spent": certificate.spent or [UNSAID],
        "What holds in every table": [
            sentence_about(table.name, f"{held(table.holds)}.") for table in certificate.tables
        ],
        "How wrong the figures are": [words for table in certificate.tables for words in _errors(table)],
        "How the noise is drawn": [words for table in certificate.tables for words in _drawn(table)],
        "How the records are treated": [f"{words[:1].upper()}{words[1:]}." for words in certificate.caveats],
        "What else holds": [describe(each, columns=False) for each in certificate.statements[1:]],
    }
    return {heading: sentences for heading, sentences in found.items() if sentences}


def _together(tables: Sequence[TableCertificate]) -> list[str]:
    found = [
        words_about(table.name, f"{column.in_words}.")
        for table in tables
        if table.protects is not None
        for column in table.protects.columns
    ]
    return [HOW, *found] if found else []


def _errors(table: TableCertificate) -> list[str]:
    levels = [f"{level.level} {_error(level)}" for level in table.noise_by_level]
    sentences = [
        f"figures are off on average by: {'; '.join(levels)}.",
        f"errors {table.errors_known}.",
        f"{percent(table.interval.confidence)} intervals: {table.interval.sentence}.",
    ]
    return [sentence_about(table.name, words) for words in sentences]


def _error(level: Level) -> str:
    if level.exact:
        return f"0, {level.in_words.removeprefix('none: ')}"
    return "unknown" if level.expected_absolute_error is None else about(level.expected_absolute_error)


def _part(level: Level) -> str:
    return "" if level.share is None else f", share {float(Fraction(level.share)):.3g}"


def _drawn(table: TableCertificate) -> list[str]:
    levels = [
        f"{level.level}: {level.in_words.replace('none: ', 'no noise, ')}{_part(level)}"
        for level in table.noise_by_level
    ]
    others = [each for each in table.compared if not each.chosen]
    sentences = [f"method {table.method} ({ways_in_words(table.ways)}); {'; '.join(levels)}."]
    for each in others:
        known = each.expected_absolute_error
        why = each.refused or ("its error is unknown" if known is None else f"mean error {about(known)}")
        sentences.append(f"compared with {each.method} ({each.noise}): {why}.")
    return [sentence_about(table.name, words) for words in sentences]
