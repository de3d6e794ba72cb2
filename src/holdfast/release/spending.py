"""What the ledger says about a job: what was spent before, what it costs, what is left, and charges without a table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from holdfast.arguments import Refused
from holdfast.privacy import Guarantee
from holdfast.release.ledger.accounts import Account, Budget, Incomparable, Overspent, Unit
from holdfast.release.ledger.entries import STATES, Entry
from holdfast.release.ledger.ledger import Ledger, Past

if TYPE_CHECKING:
    from holdfast.release.job.job import Job

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
