"""Learning to tell two laws apart: an event is chosen on one half of the draws and its ratio bounded on the other."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from holdfast.auditing.claims import SAMPLED, Claim, Evidence
from holdfast.auditing.counting import FalseAlarms, largest_probability, least_probability, rough_limits
from holdfast.auditing.events import Event, best_event
from holdfast.auditing.pairs import Pair
from holdfast.auditing.scores import Score, scores
from holdfast.auditing.subject import Subject
from holdfast.constraints import NullSpace
from holdfast.randomness import Stream

Values = npt.NDArray[Any]

#: Draws with which pairs are compared, and with which the best of them are then tested, round after round.
FIRST, ROUNDS = 1_000, ((12, 4_000), (5, 20_000), (3, 80_000), (2, 300_000), (1, 1_200_000))
#: Draws with which scores are fitted, and events chosen, at most; the others of that half would add little.
FITTED, CHOSEN = 15_000, 40_000
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
        return np.asarray(np.rint(values / grain) * grain)


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
        fitted: list[Score] = scores(
            one[:half][:FITTED], other[:half][:FITTED], self.seen_pair, low_bits=not self.view.real
        )
        found = []
        for turned in (False, True):
            a, b = (each[half:][:CHOSEN] for each in ((other, one) if turned else (one, other)))
            event = best_event(fitted, a, b, claim, confirming)
            if event is not None:
                found.append((event, not turned))
        return found

    def compared(self, size: int, claim: Claim) -> list[tuple[Event, bool]]:
        """What so many draws at each truth teach, for a comparison of pairs."""
        return self.learned(*self.samples(size), claim, ROUNDS[1][1])

    def tested(self, size: int, claim: Claim, alarms: FalseAlarms, later: int) -> tuple[Evidence, float]:
        """Learn on one half of so many draws at each truth, and bound what was found on the other half.

        Besides the evidence: about how far `later` draws might come, for the choice of pairs that go on.
        """
        one, other = self.samples(size)
        half = size // 2
        found, outlook = [], -math.inf
        for event, forward in self.learned(one[:half], other[:half], claim, half):
            fresh = (one[half:], other[half:]) if forward else (other[half:], one[half:])
            counts = event.count(fresh[0]), event.count(fresh[1])
            found.append(proved(event, counts, (size - half, size - half), claim, alarms))
            limits = rough_limits(np.array([counts[0]]), np.array([counts[1]]), (size - half, size - half), later)
            outlook = max(outlook, float(claim.margin(*limits)[0][0]))
        return max(found, key=lambda each: each.margin), outlook


def proved(
    event: Event, counts: tuple[int, int], sizes: tuple[int, int], claim: Claim, alarms: FalseAlarms
) -> Evidence:
    """What counts of fresh draws prove about an event that was chosen before (docs/theory/auditing.md, Prop 2)."""
    alpha = alarms.next() / 2
    low = least_probability(counts[0], sizes[0], alpha)
    high = largest_probability(counts[1], sizes[1], alpha)
    margins, at = claim.margin(low, high)
    claimed, delta = float(claim.epsilons[at[0]]), float(claim.deltas[at[0]])
    return Evidence(float(margins[0]), float(margins[0]) + claimed, delta, claimed, SAMPLED, str(event))


@dataclass
class Search:
    """The search for strong evidence by draws: every pair a little, then the best of them ever more."""

    claim: Claim
    trials: list[Trial]
    alarms: FalseAlarms
    clock: Clock
    draws: int = 0
    cost: float = 0.0
    most: int = 0
    best: Evidence | None = None

    def run(self) -> int:
        """Search until time ends or the claim is refuted; return how many pairs were tried."""
        first, _ = self.trials[0].samples(2)  # which may compile what it needs
        self.most = max(64, MOST_NUMBERS // first.shape[1])
        self._paced(16, lambda: self.trials[0].samples(16))
        ranked = self._compared(self.clock.part(0.4))
        tried = len(ranked)
        for (count, wanted), later in zip(ROUNDS, (*(size for _, size in ROUNDS[1:]), ROUNDS[-1][1]), strict=True):
            tested = []
            for _, k in ranked[:count]:
                size = self._affordable(wanted, 0.5)
                if self.best is not None and (self.clock.left <= 0 or size < wanted // 8):
                    return tried
                found, outlook = self._paced(size, partial(self.trials[k].tested, size, self.claim, self.alarms, later))
                tested.append((outlook, k))
                if self.best is None or found.margin > self.best.margin:
                    self.best = on_pair(found, self.trials[k].pair)
                if self.best.margin > 0:
                    return tried
            # What fresh draws showed decides which pairs go on.
            ranked = sorted(tested, reverse=True) + ranked[count:]
        return tried

    def _compared(self, clock: Clock) -> list[tuple[float, int]]:
        """Pairs by how much their best event promises, best first; as many as there is time for."""
        ranked = []
        for k, trial in enumerate(self.trials):
            if k and clock.left <= 0:
                break
            size = self._affordable(FIRST, 0.3 / len(self.trials))
            learned = self._paced(size, partial(trial.compared, size, self.claim))
            ranked.append((max((event.promise for event, _ in learned), default=-np.inf), k))
        return sorted(ranked, reverse=True)

    def _paced(self, size: int, work: Callable[[], Any]) -> Any:
        """Do work on so many draws at each truth, and remember how long one took."""
        start = time.perf_counter()
        found = work()
        self.cost = (time.perf_counter() - start) / size
        self.draws += 2 * size
        return found

    def _affordable(self, wanted: int, share: float) -> int:
        # What one call costs by itself is spread over ever more draws: twice as many may be tried as would fit.
        fit = 2 * self.clock.left * share / max(self.cost, 1e-9)
        return int(max(64, min(wanted, self.most, fit)))


def sampled_evidence(
    subject: Subject, claim: Claim, pairs: list[Pair], view: View, alarms: FalseAlarms, clock: Clock, stream: Stream
) -> tuple[Evidence | None, int, int]:
    """The strongest evidence that draws give against a claim; how many pairs were tried, and how many draws made."""
    if not pairs:
        return None, 0, 0
    search = Search(claim, [Trial(subject, pair, view, stream) for pair in pairs], alarms, clock)
    tried = search.run()
    return search.best, tried, search.draws


def on_pair(found: Evidence, pair: Pair) -> Evidence:
    """The evidence with the pair it was found on."""
    return replace(found, pair=pair.words, one=shown(pair.one), other=shown(pair.other))


def shown(values: Values, most: int = 200) -> tuple[float, ...]:
    """A made-up truth for the report; nothing where it is long, since words describe it."""
    return tuple(values.tolist()) if values.size <= most else ()
