"""From errors to budgets: the least amount at which a spec meets the errors that are wanted, judged by its plans."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, Context, Decimal

from holdfast.arguments import Refused
from holdfast.release.job.errors import TABLES
from holdfast.release.job.job import Job
from holdfast.release.spec.privacy import MOST_ASKED
from holdfast.release.spec.spec import Spec
from holdfast.release.wanted.outlook import Outlook, outlook

#: Digits of an amount that is found, and how often a plan is made for it at most.
DIGITS, ROUNDS = 3, 12
#: The least amount that is looked at, how near to the least sufficient one the answer comes, and how far a step goes
#: beyond the amount that a law of proportion proposes, so that both sides close in.
LEAST, NEAR, BEYOND = 1e-3, 1.01, 1.004


@dataclass(frozen=True)
class Wish:
    """An error that is wanted at a level of a table: of the mean, or of this part of the figures."""

    table: int
    level: int
    error: float
    confidence: float | None = None

    def reached(self, outlooks: Sequence[Outlook]) -> float:
        """The error that a plan has there."""
        return outlooks[self.table].levels[self.level].within(self.confidence)

    def met(self, outlooks: Sequence[Outlook]) -> bool:
        """Whether a plan has no larger error there."""
        return self.reached(outlooks) <= self.error


def excess(outlooks: Sequence[Outlook], wishes: Sequence[Wish]) -> float:
    """How many times too large the errors are, where they are farthest from what is wanted."""
    return max(wish.reached(outlooks) / wish.error for wish in wishes)


def parameter_of(spec: Spec) -> str:
    """What a spec asks for: epsilon or rho."""
    return "rho" if spec.privacy.epsilon is None else "epsilon"


def at_amount(spec: Spec, amount: Decimal, methods: Sequence[str]) -> Spec:
    """The same spec with another budget, each table made by its method."""
    privacy = spec.privacy.model_copy(update={parameter_of(spec): amount})
    tables = tuple(t.model_copy(update={"method": m}) for t, m in zip(spec.tables, methods, strict=True))
    return spec.model_copy(update={"privacy": privacy, "tables": tables})


def least_amount(job: Job, wishes: Sequence[Wish], tables: int = TABLES) -> Decimal | None:
    """The least budget, to three digits, at which the methods of a job meet what is wanted; None: no budget does.

    Errors fall as the noise does, which is in proportion to 1/ε, or 1/√ρ: this proposes amounts, and each is judged by
    the errors of its own plan.
    """
    spec, methods = job.spec, [table.chosen.method for table in job.tables]
    power = 2.0 if parameter_of(spec) == "rho" else 1.0

    def too_large(amount: float) -> float:
        try:
            made = Job.from_spec(at_amount(spec, Decimal(repr(amount)), methods))
            return excess([outlook(table, tables) for table in made.tables], wishes)
        except Refused:
            return math.nan  # so much is asked that no noise is left, or so little that it cannot be drawn

    start = float(getattr(spec.privacy, parameter_of(spec)))
    return _searched(too_large, start, power)


def _searched(too_large: Callable[[float], float], start: float, power: float) -> Decimal | None:
    """Find the least amount where something that falls as amount^(−1/power) is 1 or less, by narrowing both sides."""
    below, above, amount = LEAST, None, start
    tried = set()
    for _ in range(ROUNDS):
        amount = rounded_up(min(max(amount, LEAST), MOST_ASKED))
        if amount in tried:
            break
        tried.add(amount)
        here = too_large(amount)
        if not math.isfinite(here) or (here > 1 and amount >= MOST_ASKED):
            return None
        if here <= 1:
            above = amount
        else:
            below = amount
        if above is not None and above <= below * NEAR:
            break
        proposed = amount * here**power * (BEYOND if here > 1 else 1 / BEYOND)
        inside = below < proposed < (above or math.inf)
        amount = proposed if inside else math.sqrt(below * (above or MOST_ASKED))
    return None if above is None else Decimal(repr(above)).normalize()


def rounded_up(amount: float) -> float:
    """An amount to three digits, not below the one given."""
    return float(Context(prec=DIGITS, rounding=ROUND_CEILING).create_decimal(Decimal(amount)))
