"""From the errors that are wanted to a budget, and to its split: what the page moves when an error is moved."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any

from holdfast.arguments import Refused
from holdfast.page.planning import Planned, Planner
from holdfast.page.splitting import with_shares
from holdfast.release.spec.privacy import MOST_ASKED
from holdfast.release.spec.spec import Spec
from holdfast.release.wanted.outlook import Outlook
from holdfast.release.wanted.scaling import best_split
from holdfast.release.wanted.solving import LEAST, Wish, at_amount, excess, parameter_of, rounded_up

#: How often an amount is brought nearer: what it costs to hold bounds changes with it a little.
ROUNDS = 4
#: Errors that miss what is wanted by less than this part meet it.
NEAR = 1e-3


@dataclass(frozen=True)
class Solved:
    """A budget, and the shares of every table; None: as they were."""

    amount: Decimal
    shares: tuple[Mapping[str, Fraction] | None, ...]


def wishes_of(planned: Planned, wanted: Any) -> tuple[Wish, ...]:
    """Read the errors that are wanted: by table, a mapping from levels to numbers."""
    found = []
    for t, (table, given) in enumerate(zip(planned.job.tables, wanted, strict=False)):
        for name, error in given.items() if isinstance(given, Mapping) else ():
            if name not in table.layout.levels:
                raise Refused(f"there is no level {str(name)[:60]!r}: reload the page")
            found.append(Wish(t, table.layout.levels.index(name), _error(name, error)))
    if not found:
        raise Refused("no error is wanted yet: say how large the error of a level may be")
    for wish in found:
        level = planned.outlooks[wish.table].levels[wish.level]
        if not level.known:
            raise Refused(f"nobody can tell the errors of {level.name} without a guess: add one to the table")
    return tuple(found)


def solved(planner: Planner, spec: Spec, wanted: Sequence[Any], *, split: bool) -> Solved:
    """Find the least budget, and the split if asked, at which no error is larger than wanted."""
    planned = planner.at_once(spec)
    wishes = wishes_of(planned, wanted)
    wishes = tuple(wish for wish in wishes if wish.reached(planned.outlooks) > 0)
    if not wishes:
        raise Refused("these levels are exact already: no budget changes their errors")
    shares: tuple[Mapping[str, Fraction] | None, ...] = (None,) * len(planned.job.tables)
    if split:
        shares = tuple(_split(planned, t, wishes) for t in range(len(shares)))
        spec = with_shares(spec, [None if each is None else in_decimals(each) for each in shares])
    spec = at_amount(spec, getattr(spec.privacy, parameter_of(spec)), planned.methods)
    power = 2 if parameter_of(spec) == "rho" else 1
    for _ in range(ROUNDS):
        planned = planner.at_once(spec)
        over = excess(planned.outlooks, wishes)
        amount = float(getattr(spec.privacy, parameter_of(spec)))
        if 1 - 10 * NEAR <= over <= 1 + NEAR:
            break
        wanted_amount = amount * over**power
        if not LEAST <= wanted_amount <= MOST_ASKED:
            raise Refused(
                f"these errors ask for {parameter_of(spec)} {wanted_amount:.3g}, and it must be between {LEAST:g} and "
                f"{MOST_ASKED}: allow {'larger' if over > 1 else 'smaller'} ones"
            )
        spec = at_amount(spec, Decimal(repr(rounded_up(wanted_amount))), planned.methods)
    return Solved(getattr(spec.privacy, parameter_of(spec)), shares)


def best(planner: Planner, spec: Spec) -> tuple[Mapping[str, Fraction] | None, ...]:
    """The split of every table with the least mean over its levels of their mean absolute errors."""
    planned = planner.at_once(spec)
    found = tuple(best_split(*pair) for pair in zip(planned.job.tables, planned.outlooks, strict=True))
    if not any(found):
        raise Refused("there is nothing to divide: shares divide a budget over several levels that have noise")
    return found


def in_decimals(shares: Mapping[str, Fraction]) -> dict[str, Decimal]:
    """Hundredths as the spec writes them."""
    return {name: Decimal(int(share * 100)) / 100 for name, share in shares.items()}


def _split(planned: Planned, number: int, wishes: Sequence[Wish]) -> Mapping[str, Fraction] | None:
    """The split of one table that brings the worst of its errors nearest to what is wanted of it."""
    own = [Wish(0, wish.level, wish.error) for wish in wishes if wish.table == number]
    if not own:
        return None

    def judged(then: Outlook) -> float:
        # Where several are met alike, the other levels decide a little.
        return excess([then], own) + 1e-3 * then.score / planned.outlooks[number].score

    return best_split(planned.job.tables[number], planned.outlooks[number], judged)


def _error(name: str, value: Any) -> float:
    try:
        found = float(value)
    except (TypeError, ValueError, OverflowError):
        found = 0.0
    if not 0 < found < 1e12:
        raise Refused(f"the error wanted of {name} must be a number above 0, found {str(value)[:60]!r}")
    return found
