"""A job in words that a privacy officer can sign: whom it protects, how strongly, and what it gives away."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from holdfast.arguments import Refused
from holdfast.privacy import Guarantee, odds
from holdfast.privacy.words import describe, figure, learnt
from holdfast.release.disclosure.disclosure import so_far
from holdfast.release.job.job import Job, protected
from holdfast.release.job.methods import evidence
from holdfast.release.job.protecting import in_words, outside_words
from holdfast.release.job.table import Table
from holdfast.release.job.unprotected import FIXED
from holdfast.release.ledger.accounts import Account, Budget, Incomparable, Overspent, Unit
from holdfast.release.ledger.entries import STATES, Entry
from holdfast.release.ledger.ledger import Ledger, Past
from holdfast.release.standalone_verifier.facts import SHARED
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
        LEARN: learnt(job.guarantee),
        "Who is protected": [protected(job.spec, job.guarantee)],
        "What is asked for": [_asked(job)],
        "What the release promises": odds.promised(job.guarantee),
        **_protects(job, outside),
        "What holds in every table": [
            sentence_about(
                table.name, f"{table.kind}, {table.layout.query.n:,} figures: {held(table.holding.holds, exact=False)}."
            )
            for table in job.tables
        ],
        "What is given away": [*_given_away(job, told), *told],
        "What was spent": foreseen(job, book, past),
        "How the records are treated": [
            as_sentence(words, job.tables) for words in job.caveats if words not in (*outside, SHARED)
        ],
        "How the noise is drawn": [_drawn(table) for table in job.tables],
    }
    others = [describe(statement, columns=False) for statement in job.guarantees[1:]]
    if others:
        found["What else holds"] = others
    return found


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


NO_BUDGET = "no budget is set: ledger: {budget: {epsilon: 10}} in the spec, or holdfast ledger budget, sets one"


def budget_of(job: Job) -> Budget | None:
    """The budget of the spec, if it has one."""
    asked = job.spec.budget
    return None if asked is None else Budget.of(epsilon=asked.epsilon, delta=asked.delta, rho=asked.rho)


def foreseen(job: Job, ledger: Ledger, past: Past) -> list[str]:
    """Say what was spent on the dataset, what a release of the job would cost, and what would be left of the budget."""
    account, own = past.account, budget_of(job)
    now = replace(account, budget=account.budget or own)
    parts, most = tuple(table.statements for table in job.tables), Unit.read(job.unit).max_records
    sentences = [] if ledger.exists else [f"There is no ledger {ledger.path} yet: the first release makes it."]
    sentences.append(now.words if now.budget else f"{now.words.split(';')[0].rstrip('.')}; {NO_BUDGET}.")
    sentences += [f"{words[0].upper()}{words[1:]}." for words in unfinished(past)]
    sentences += [f"{words[0].upper()}{words[1:]}." for words in past.sums.beside(job.dataset, job.unit)]
    try:
        past.sums.refuse_overspending(job.dataset, job.unit, parts, own)
    except (Overspent, Incomparable) as refusal:
        return [*sentences, f"A release would be refused: {refusal}."]
    cost = now.of(parts, most).amount
    after = now.joined(now.of(parts, most))
    left = "" if after.budget is None else f", and leave {after.rest} of the budget"
    return [*sentences, f"This release would cost {cost}{left}.", *_beside_wider(job, now, parts)]


def _beside_wider(job: Job, now: Account, parts: Sequence[Sequence[Guarantee]]) -> list[str]:
    """Say what a release costs beside others that must count more records than its own budget does."""
    counted, most = job.guarantee, Unit.read(job.unit).max_records
    rows = [row for table in job.tables if table.protects is not None for row in table.protects.rows]
    records = max(((row.records or 0) * row.kept for row in rows), default=0)
    if counted.scope != "invariant-sharing" or counted.records >= records:
        return []
    wider = [[each for each in part if each.records >= records] for part in parts]
    told = f"The budget counts it for {counted.neighbours}; everything that can change changes with {records} of them"
    if not all(wider):
        return [
            f"{told}, and nothing is stated about these: a later release that counts them cannot be added to this one, "
            "and the budget refuses it. To keep the ledger open leave privacy.records out."
        ]
    return [f"{told}: beside a release that counts these it costs {now.of(wider, most).amount}."]


def unfinished(past: Past) -> list[str]:
    """Say which charges on the dataset have no published table, because their release ended early."""
    ended = [entry for entry in past.unfinished if entry.state != STATES["published"]]
    return [_ended(entry) for entry in ended]


def _ended(entry: Entry) -> str:
    amount = Account(entry.dataset, entry.unit, None, entry.parts).amount
    when = entry.when[:16].replace("T", " ")
    return (
        f"the ledger has a charge of {amount} for {entry.title!r} of {when} that was {entry.state}: unless it is still "
        "at work it ended early; its charge counts, and a release now is charged anew"
    )


def spent(ledger: Ledger, charge: Entry) -> tuple[str, ...]:
    """What the ledger says about the dataset after the charge of a release, in sentences."""
    try:
        before, account, beside = ledger.around(charge)
    except Refused:  # a page that says less is better than a charge for nothing
        return ("The ledger could not be read again when this page was written.",)
    own = before.of(charge.parts, Unit.read(charge.unit).max_records)
    this = f"Before this release {before.amount} was spent on this dataset; this release costs {own.amount}."
    return (this, account.words, *(f"{words[0].upper()}{words[1:]}." for words in beside))
