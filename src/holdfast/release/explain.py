"""A job in words that a privacy officer can sign: whom it protects, how strongly, and what it gives away."""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.privacy import Guarantee, odds
from holdfast.privacy.words import describe, figure
from holdfast.release.disclosure.disclosure import so_far
from holdfast.release.job.caveats import protected
from holdfast.release.job.job import Job
from holdfast.release.job.methods import evidence
from holdfast.release.job.protecting import in_words, outside_words
from holdfast.release.job.table import Table
from holdfast.release.job.unprotected import FIXED
from holdfast.release.ledger.ledger import Ledger
from holdfast.release.spending import foreseen
from holdfast.release.table.wording import (
    HOW,
    LEARN,
    as_sentence,
    held,
    sentence_about,
    ways_in_words,
)


def explain(job: Job, ledger: Ledger | None = None) -> dict[str, list[str]]:
    """Return headings with their sentences, in reading order; `ledger` replaces the one of the spec.

    Of the data only figures are read that earlier releases have published exactly, as the ledger keeps them.
    """
    book = Ledger(job.spec.ledger_file, job.spec.witness) if ledger is None else ledger
    past = book.past(job.dataset, job.unit)
    told = so_far(job, past.figures)
    outside = outside_words(job.tables, job.guarantee)
    found = {
        LEARN: [f"{row.column}: {row.answer}." for row in job.guarantee.columns],
        "Who is protected": [protected(job.spec, job.guarantee)],
        "What is asked for": [_asked(job)],
        "What the release promises": [describe(job.guarantee, columns=False), *_odds(job.guarantee)],
        **_protects(job, outside),
        "What holds in every table": [
            sentence_about(table.name, f"{table.kind}, {table.layout.query.n:,} figures: {held(table.holding.holds)}.")
            for table in job.tables
        ],
        "What is given away": [*_given_away(job, told), *told],
        "What was spent": foreseen(job, book, past),
        "How the records are treated": [
            as_sentence(words, job.tables) for words in job.caveats if words not in outside
        ],
        "How the noise is drawn": [_drawn(table) for table in job.tables],
    }
    others = [describe(statement, columns=False) for statement in job.guarantees[1:]]
    if others:
        found["What else holds"] = others
    return found


def _odds(statement: Guarantee) -> list[str]:
    return [] if statement.void else [odds.in_words(statement)]


def _protects(job: Job, outside: Sequence[str]) -> dict[str, list[str]]:
    """Say by columns how many records must change together, and what stays outside; nothing without exact figures."""
    found = in_words(job.tables)
    if not found:
        return {}
    sentences = [as_sentence(words, job.tables) for words in outside]
    return {"How many must change together": [HOW, *found, *sentences]}


def _asked(job: Job) -> str:
    names = {"epsilon": "epsilon", "delta": "delta", "rho": "rho"}
    amount = ", ".join(f"{names[name]} {figure(float(value))}" for name, value in job.target.items())
    tables = f"{len(job.tables)} tables that share the budget" if len(job.tables) > 1 else "one table"
    return f"{job.title}: {tables}, with {amount} in total."


def _given_away(job: Job, told: Sequence[str]) -> list[str]:
    """Say everything that is not protected, and what follows from it; `told` is what figures published before tell."""
    nothing = not any(table.holding.exact for table in job.tables)
    if not job.unprotected:
        return [f"Nothing is published exactly{' by this release.' if told else ': every figure is protected.'}"]
    sentences = ["Nothing is published exactly by this release."] if nothing else []
    sentences += [as_sentence(words, job.tables) for words in job.unprotected]
    if any(each.why == FIXED for table in job.tables for each in table.unprotected):
        sentences.append(
            "What stays the same whatever records change follows from the exact figures and from what holds for all "
            "data. It is disclosed with them."
        )
    if any(table.holding.exact for table in job.tables):
        sentences.append("What is published exactly is not protected at all.")
        sentences.append(
            "Whoever already knows all but a few of the records behind an exact figure can work out the rest from it."
        )
    return sentences


def _drawn(table: Table) -> str:
    known = "".join(f"; {words}" for words in evidence(table.mechanism))
    ways = ways_in_words(table.mechanism.method)
    return sentence_about(table.name, f"{table.chosen.noise} noise, method {table.chosen.method} ({ways}){known}.")
