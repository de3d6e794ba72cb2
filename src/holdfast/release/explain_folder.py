"""A published folder in words that a privacy officer can sign: everything from the certificate and the files alone."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path

from holdfast.privacy import odds
from holdfast.release.certificate.certificate import Holds, LevelCertificate, TableCertificate, read_certificate
from holdfast.release.certificate.verify import verify
from holdfast.release.ledger.accounts import Budget
from holdfast.release.table.wording import HOLDS, HOW, as_sentence, counted, percent, sentence_about, ways_in_words

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
        "What this is": [
            f"{certificate.title}, released on {basic.publication_date} by holdfast {software.version} as "
            f"{certificate.release}; asked for: {Budget.from_mapping(certificate.asked)} in total.",
            *(
                sentence_about(table.name, f"{table.kind} of {table.rows:,} figures ({', '.join(table.levels)}).")
                for table in certificate.tables
            ),
        ],
        "What was checked": checked,
        "Who is protected": [certificate.protected or loss.privacy_unit_details],
        "What the release promises": [str(first), odds.in_words(first)],
        "What is assumed of all data": [f"{words[:1].upper()}{words[1:]}." for words in first.assumes],
        "How many must change together": _together(certificate.tables),
        "What is given away": [as_sentence(words, certificate.tables) for words in certificate.unprotected]
        or ["Nothing is published exactly: every figure is protected."],
        "What was spent": certificate.spent or [UNSAID],
        "What holds in every table": [
            sentence_about(table.name, f"{_held(table.holds)}.") for table in certificate.tables
        ],
        "How wrong the figures are": [words for table in certificate.tables for words in _errors(table)],
        "How the noise is drawn": [words for table in certificate.tables for words in _drawn(table)],
        "How the records are treated": [f"{words[:1].upper()}{words[1:]}." for words in certificate.caveats],
        "What else holds": [str(statement) for statement in certificate.statements[1:]],
    }
    return {heading: sentences for heading, sentences in found.items() if sentences}


def _together(tables: Sequence[TableCertificate]) -> list[str]:
    found = [
        sentence_about(table.name, f"{column.in_words}.")
        for table in tables
        if table.protects is not None
        for column in table.protects.columns
    ]
    return [HOW, *found] if found else []


def _held(holds: Holds) -> str:
    words = [words for key, words in HOLDS.items() if getattr(holds, key)]
    for name, what in (
        ("bounds", ("bound", "bounds")),
        ("orders", ("order", "orders")),
        ("linear", ("weighted sum with limits", "weighted sums with limits")),
        ("either", ("union of which one side holds", "unions of which one side holds")),
        ("impossible", ("figure that is 0 by definition", "figures that are 0 by definition")),
    ):
        count = len(getattr(holds, name))
        words += [counted(count, *what)] if count else []
    if holds.exact:
        words.append(f"published exactly: {', '.join(figure.figure for figure in holds.exact)}")
    return ", ".join(words) or "nothing is required"


def _errors(table: TableCertificate) -> list[str]:
    levels = [f"{level.level} {_error(level)}" for level in table.noise_by_level]
    sentences = [
        f"expected absolute error by level: {'; '.join(levels)} (errors {table.errors_known}).",
        f"{percent(table.interval.confidence)} intervals: {table.interval.sentence}.",
    ]
    return [sentence_about(table.name, words) for words in sentences]


def _error(level: LevelCertificate) -> str:
    if level.exact:
        return f"0 ({level.in_words.removeprefix('none: ')})"
    return "unknown" if level.expected_absolute_error is None else f"{level.expected_absolute_error:,.3g}"


def _decimal(share: str) -> str:
    return f"{float(Fraction(share)):.3g}"


def _drawn(table: TableCertificate) -> list[str]:
    levels = [
        f"{level.level}: {level.in_words}{'' if level.share is None else f', share {_decimal(level.share)}'}"
        for level in table.noise_by_level
    ]
    others = [each for each in table.compared if not each.chosen]
    sentences = [f"method {table.method} ({ways_in_words(table.ways)}); {'; '.join(levels)}."]
    for each in others:
        known = each.expected_absolute_error
        why = each.refused or ("its error is unknown" if known is None else f"mean error {known:,.3g}")
        sentences.append(f"compared with {each.method} ({each.noise}): {why}.")
    return [sentence_about(table.name, words) for words in sentences]
