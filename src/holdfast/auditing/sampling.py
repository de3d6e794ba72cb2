"""Learning to tell two laws apart: an event is chosen on one half of the draws and its ratio bounded on the other."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from holdfast.auditing.claims import Claim
from holdfast.auditing.counting import FalseAlarms, largest_probability, least_probability
from holdfast.auditing.events import Event, best_event
from holdfast.auditing.evidence import SAMPLED, Evidence
from holdfast.auditing.pairs import Pair
from holdfast.auditing.scores import Score, scores
from holdfast.auditing.subject import Subject
from holdfast.constraints import NullSpace
from holdfast.randomness import Stream

Values = npt.NDArray[Any]

#: Draws with which pairs are compared, and with which the best of them are then tested, round after round.
FIRST, ROUNDS = 1_200, ((4, 4_000), (4, 20_000), (3, 80_000), (1, 300_000))
#: Numbers that one sample holds at most.
MOST_NUMBERS = 12_000_000
#: Real outputs are rounded to this share of their spread where a statement is about real arithmetic.
GRAIN = 2.0**-22


class Clock:
    """How much effort is left. It decides how long to search, and nothing else."""

    def __init__(self, seconds: float) -> None:
        self._end = time.perf_counter() + seconds

    @property
    def left(self) -> float:
        """Seconds that are left."""
        return self._end - time.perf_counter()

    def part(self, share: float) -> Clock:
        """A clock for a share of what is left."""
        return Clock(max(self.left, 0.0) * share)


@dataclass(frozen=True, eq=False)
class View:
    """What a statement speaks of: the whole output, or its part that exact figures leave open; bits or real numbers."""

    space: NullSpace | None = None
    real: bool = False

    def seen(self, values: Values, grain: float) -> Values:
        """The part of draws (size, n) that the statement speaks of."""
        if self.space is not None:
            values = np.asarray(self.space.project(values.T.astype(np.float64)).T)
        if not self.real or values.dtype.kind != "f":
            return values
        return np.rint(values / grain)


@dataclass(frozen=True, eq=False)
class Trial:
    """One pair under test: how it is drawn and seen."""

    subject: Subject
    pair: Pair
    view: View
    stream: Stream

    def samples(self, size: int) -> tuple[Values, Values]:
        """Fresh draws at both truths, as the statement sees them."""
        drawn = [self.subject.draw(end, size, self.stream) for end in (self.pair.one, self.pair.other)]
        # A grain that comes from public figures alone: never from the draws that are counted.
        size_of = np.abs(np.concatenate([self.pair.one, self.pair.other])).max(initial=1.0)
        grain = GRAIN * 2.0 ** np.ceil(np.log2(max(float(size_of), 1.0)))
        one, other = (self.view.seen(values, grain) for values in drawn)
        return one, other

    @property
    def seen_pair(self) -> Pair:
        """The pair with truths as they can be compared with what is seen; with none where they cannot."""
        if self.view.space is None and not self.view.real:
            return self.pair
        nothing = np.zeros(0)
        return replace(self.pair, one=nothing, other=nothing)

    def learned(self, one: Values, other: Values, claim: Claim, confirming: int) -> list[tuple[Event, bool]]:
        """The best event in each direction; True where it speaks for the pair's one."""
        half = len(one) // 2
        fitted: list[Score] = scores(one[:half], other[:half], self.seen_pair, low_bits=not self.view.real)
        found = []
        for turned in (False, True):
            a, b = (other[half:], one[half:]) if turned else (one[half:], other[half:])
            event = best_event(fitted, a, b, claim, confirming)
            if event is not None:
                found.append((event, not turned))
        return found

    def tested(self, size: int, claim: Claim, alarms: FalseAlarms) -> Evidence:
        """Learn on one half of so many draws at each truth, and bound what was found on the other half."""
        one, other = self.samples(size)
        half = size // 2
        found = [
            counted(event, forward, (one[half:], other[half:]), claim, alarms)
            for event, forward in self.learned(one[:half], other[:half], claim, half)
        ]
        return max(found, key=lambda each: each.margin)


def counted(event: Event, forward: bool, draws: tuple[Values, Values], claim: Claim, alarms: FalseAlarms) -> Evidence:
    """What fresh draws prove about an event that was chosen before they were made (docs/theory/auditing.md, Prop 1)."""
    one, other = draws if forward else draws[::-1]
    alpha = alarms.next() / 2
    low = least_probability(event.count(one), len(one), alpha)
    high = largest_probability(event.count(other), len(other), alpha)
    margins, at = claim.margin(low, high)
    claimed, delta = float(claim.epsilons[at[0]]), float(claim.deltas[at[0]])
    return Evidence(float(margins[0]), float(margins[0]) + claimed, delta, claimed, SAMPLED, str(event))


def sampled_evidence(
    subject: Subject, claim: Claim, pairs: list[Pair], view: View, alarms: FalseAlarms, clock: Clock, stream: Stream
) -> tuple[Evidence | None, int, int]:
    """The strongest evidence that draws give against a claim; how many pairs were tried, and how many draws made."""
    if not pairs:
        return None, 0, 0
    trials = [Trial(subject, pair, view, stream) for pair in pairs]
    cost, width = _cost(trials[0])
    most = max(64, MOST_NUMBERS // width)
    ranked: list[tuple[float, int]] = []
    made = 0
    first, searching = _affordable(FIRST, cost, most, clock.left * 0.3 / len(trials)), clock.part(0.4)
    for k, trial in enumerate(trials):
        if k and searching.left <= 0:
            break
        learned = trial.learned(*trial.samples(first), claim, ROUNDS[1][1])
        made += 2 * first
        ranked.append((max((event.promise for event, _ in learned), default=-np.inf), k))
    ranked.sort(reverse=True)
    best: Evidence | None = None
    for count, wanted in ROUNDS:
        for _, k in ranked[:count]:
            size = _affordable(wanted, cost, most, clock.left * 0.5)
            if best is not None and (clock.left <= 0 or size < wanted // 8):
                return best, len(ranked), made
            found = trials[k].tested(size, claim, alarms)
            made += 2 * size
            if best is None or found.margin > best.margin:
                best = _on(found, pairs[k])
            if best.margin > 0:
                return best, len(ranked), made
    return best, len(ranked), made


def _cost(trial: Trial) -> tuple[float, int]:
    """Seconds for a draw at both truths (after the first, which may compile), and numbers per draw."""
    one, _ = trial.samples(2)
    start = time.perf_counter()
    trial.samples(16)
    return (time.perf_counter() - start) / 16, one.shape[1]


def _affordable(wanted: int, cost: float, most: int, seconds: float) -> int:
    return int(max(64, min(wanted, most, seconds / max(cost, 1e-9))))


def _on(found: Evidence, pair: Pair) -> Evidence:
    return replace(found, pair=pair.words, one=shown(pair.one), other=shown(pair.other))


def shown(values: Values, most: int = 200) -> tuple[float, ...]:
    """A made-up truth for the report; nothing where it is long, since words describe it."""
    return tuple(values.tolist()) if values.size <= most else ()
