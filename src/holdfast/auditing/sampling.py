"""Learning to tell two laws apart: an event is chosen on one half of the draws and its ratio bounded on the other."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from holdfast.arrays import Floats
from holdfast.auditing.pairs import Pair, Subject, Values
from holdfast.auditing.tested_claims import (
    SAMPLED,
    Claim,
    Evidence,
    FalseAlarms,
    largest_probability,
    least_probability,
    rough_limits,
)
from holdfast.constraints import NullSpace
from holdfast.randomness import Stream

# --- Scores: numbers computed from one output by which two laws may be told apart. What they are is learned from draws

#: Outputs that are looked at one by one, and pairs of outputs.
COLUMNS, COUPLES = 8, 36
#: Outputs up to which a full covariance is estimated, and bins of an output whose density is estimated.
FULL, BINS = 60, 24
#: Distinct tables up to which each is an event of its own.
DISTINCT = 2_000


@dataclass(frozen=True, eq=False)
class Score:
    """A function of tables (size, n) with one number for each, and its name in words."""

    words: str
    of: Callable[[Values], Floats]


def scores(one: Values, other: Values, pair: Pair, low_bits: bool) -> list[Score]:
    """Every score worth trying for these two samples of draws, (size, n) each."""
    columns = _columns(one, other, pair)
    found = [Score(f"output {i}", lambda values, i=i: values[:, i].astype(np.float64)) for i in columns]  # type: ignore[misc]
    found += _linear(one, other, columns)
    found += _simple(one, pair)
    found += _couples(one, other, columns)
    found += _densities(one, other, columns)
    if _whole(one) and _whole(other):
        found += [Score(f"output {i} odd or even", lambda values, i=i: np.mod(values[:, i], 2.0)) for i in columns[:3]]  # type: ignore[misc]
        found.append(Score("the sum odd or even", lambda values: np.mod(values.sum(axis=1), 2.0)))
    elif low_bits:
        found += [
            Score(f"the lowest bit of output {i}", lambda values, i=i: lowest_bit(values[:, i]))  # type: ignore[misc]
            for i in columns
        ]
    found += _tables(one, other)
    return found


def lowest_bit(values: Values) -> Floats:
    """The exponent of the lowest bit that is set in each double; 1100 for 0 and what is not finite."""
    mantissa, exponent = np.frexp(values.astype(np.float64))
    usual = np.isfinite(mantissa) & (mantissa != 0)
    whole = np.where(usual, np.abs(mantissa) * 2.0**53, 1.0).astype(np.int64)
    lowest = np.log2((whole & -whole).astype(np.float64))
    return np.where(usual, exponent - 53 + lowest, 1100.0)


def _whole(values: Values) -> bool:
    return values.dtype.kind in "iu" or bool((values == np.rint(values)).all())


def _finite(values: Values) -> Floats:
    if values.dtype.kind in "iu":
        return values.astype(np.float64)
    return np.clip(values.astype(np.float64, copy=False), -1e150, 1e150)


def _columns(one: Values, other: Values, pair: Pair) -> list[int]:
    """The outputs whose draws differ most, those that the change touches, and the last."""
    a, b = _finite(one), _finite(other)
    spread = np.sqrt((a.var(axis=0) + b.var(axis=0)) / 2)
    shift = np.abs(a.mean(axis=0) - b.mean(axis=0)) / np.where(spread > 0, spread, 1e-12)
    shift += np.abs(a.std(axis=0) - b.std(axis=0)) / np.where(spread > 0, spread, 1e-12)
    if pair.one.size == one.shape[1]:
        shift += 0.05 * (pair.one != pair.other)
    chosen = np.argsort(-shift, kind="stable")[:COLUMNS].tolist()
    return list(dict.fromkeys([*chosen, one.shape[1] - 1]))


def _linear(one: Values, other: Values, columns: list[int]) -> Iterator[Score]:
    """Sums of outputs weighed as a linear classifier would."""
    a, b = _finite(one), _finite(other)
    shift = b.mean(axis=0) - a.mean(axis=0)
    variance = (a.var(axis=0) + b.var(axis=0)) / 2
    plain = shift / np.where(variance > 0, variance, 1.0)
    yield Score("a weighted sum of all outputs", lambda values: _finite(values) @ plain)
    sharp = plain[columns]
    yield Score("a weighted sum of the outputs that differ most", lambda values: _finite(values[:, columns]) @ sharp)
    if 1 < one.shape[1] <= FULL:
        covariance = (np.cov(a.T) + np.cov(b.T)) / 2
        ridge = 1e-9 * float(np.trace(covariance)) / one.shape[1] + 1e-300
        full = np.linalg.lstsq(covariance + ridge * np.eye(one.shape[1]), shift, rcond=None)[0]
        yield Score("a linear classifier", lambda values: _finite(values) @ full)


def _simple(one: Values, pair: Pair) -> Iterator[Score]:
    """Numbers that need no learning."""
    yield Score("the least output", lambda values: values.min(axis=1).astype(np.float64))
    yield Score("the largest output", lambda values: values.max(axis=1).astype(np.float64))
    yield Score("the sum of all outputs", lambda values: _finite(values).sum(axis=1))
    yield Score("the number of outputs that are 0", lambda values: (values == 0).sum(axis=1).astype(np.float64))
    if pair.one.size != one.shape[1]:
        return
    for end, words in ((pair.one, "one"), (pair.other, "other")):
        yield Score(
            f"the number of outputs equal to the {words} truth",
            lambda values, end=end: (values == end).sum(axis=1).astype(np.float64),  # type: ignore[misc]
        )
    changed = pair.one != pair.other
    if changed.any():
        size = np.abs(_finite(one[:, changed]) - pair.one[changed]).mean(axis=0)
        rate = 1 / np.where(size > 0, size, 1.0)

        def nearer(values: Values) -> Floats:
            seen = _finite(values[:, changed])
            return (np.abs(seen - pair.one[changed]) - np.abs(seen - pair.other[changed])) @ rate

        yield Score("how much nearer the output is to the other truth", nearer)


def _couples(one: Values, other: Values, columns: list[int]) -> Iterator[Score]:
    """Differences and sums of two outputs that take one value often, or lie elsewhere in the two samples."""
    n = one.shape[1]
    others = dict.fromkeys([*columns, *range(min(n, 12)), *((i + n // 2) % n for i in columns)])
    couples = [(i, j) for i in columns[:4] for j in others if i != j][:COUPLES]
    ranked = []
    for i, j in couples:
        for sign, words in ((-1, "minus"), (1, "plus")):
            a, b = (_finite(sample[:, i]) + sign * _finite(sample[:, j]) for sample in (one[:600], other[:600]))
            points = np.sort(np.concatenate([a, b]))
            apart = np.abs(_share(a, points) - _share(b, points)).max()
            usual = np.unique(np.round(a, 9), return_counts=True)[1].max() / len(a)
            ranked.append((apart + usual, i, j, sign, words))
    for _, i, j, sign, words in sorted(ranked, reverse=True)[:6]:

        def combined(values: Values, i: int = i, j: int = j, sign: int = sign) -> Floats:
            return np.round(_finite(values[:, i]) + sign * _finite(values[:, j]), 9)

        yield Score(f"output {i} {words} output {j}", combined)


def _share(sample: Floats, points: Floats) -> Floats:
    return np.searchsorted(np.sort(sample), points, side="right") / len(sample)


def _densities(one: Values, other: Values, columns: list[int]) -> Iterator[Score]:
    """Log-ratios of estimated densities, output by output, and their sum."""
    made = []
    for i in columns[:6]:
        a, b = _finite(one[:, i]), _finite(other[:, i])
        pooled = np.concatenate([a, b])
        values = np.unique(pooled)
        edges = values if len(values) <= BINS else np.unique(np.quantile(pooled, np.linspace(0, 1, BINS + 1)[1:-1]))
        counts = [np.bincount(np.searchsorted(edges, part, side="right"), minlength=len(edges) + 1) for part in (a, b)]
        made.append((i, edges, np.log(counts[0] + 0.5) - np.log(counts[1] + 0.5)))

    def ratio(values: Values) -> Floats:
        found = [table[np.searchsorted(edges, _finite(values[:, i]), side="right")] for i, edges, table in made]
        return np.asarray(np.sum(found, axis=0))

    yield Score("a sum of estimated log-ratios of the outputs that differ most", ratio)


def _tables(one: Values, other: Values) -> Iterator[Score]:
    """A log-ratio for every table that was seen often, where few different ones are seen."""
    both = _bytes(np.concatenate([one, other]))
    names, where = np.unique(both, return_inverse=True)
    if len(names) > DISTINCT or len(names) > len(both) // 2:
        return
    counts = [np.bincount(part, minlength=len(names)) for part in np.split(where.ravel(), [len(one)])]
    table = np.append(np.log(counts[0] + 0.5) - np.log(counts[1] + 0.5), 0.0)

    def ratio(values: Values) -> Floats:
        seen = _bytes(values.astype(one.dtype))
        at = np.minimum(np.searchsorted(names, seen), len(names) - 1)
        return table[np.where(names[at] == seen, at, len(names))]

    yield Score("an estimated log-ratio of whole tables", ratio)


def _bytes(values: Values) -> Values:
    rows = np.ascontiguousarray(values)
    return rows.view(np.dtype((np.void, rows.dtype.itemsize * rows.shape[1]))).ravel()


# --- events: which values of a score speak for one law; chosen on some draws, to be counted on others ----------------

#: Thresholds that are tried per score.
THRESHOLDS = 160
SIGNS = {"at least": np.greater_equal, "at most": np.less_equal, "equal to": np.equal}


@dataclass(frozen=True, eq=False)
class Event:
    """All outputs whose score is at least, at most or equal to a number."""

    score: Score
    sign: str
    threshold: float
    promise: float

    def __str__(self) -> str:
        return f"{self.score.words} {self.sign} {self.threshold:.6g}"

    def count(self, values: Values) -> int:
        """How many of the draws (size, n) lie in it."""
        return int(SIGNS[self.sign](self.score.of(values), self.threshold).sum())


def best_event(found: list[Score], one: Values, other: Values, claim: Claim, confirming: int) -> Event | None:
    """The event that speaks most against a claim, as P_one(E) > e^ε·P_other(E) + δ, by about what would be proved."""
    best: Event | None = None
    for score in found:
        a, b = np.sort(score.of(one)), np.sort(score.of(other))
        pooled = np.unique(np.concatenate([a, b]))
        if len(pooled) > THRESHOLDS:
            pooled = np.unique(np.quantile(pooled, np.linspace(0, 1, THRESHOLDS), method="nearest"))
            ends = np.quantile(np.concatenate([a, b]), np.linspace(0, 1, THRESHOLDS), method="nearest")
            pooled = np.unique(np.concatenate([pooled, ends]))
        ranks = [(np.searchsorted(part, pooled), np.searchsorted(part, pooled, side="right")) for part in (a, b)]
        counts = {
            "at least": [len(part) - low for part, (low, _) in zip((a, b), ranks, strict=True)],
            "at most": [high for _, high in ranks],
            "equal to": [high - low for low, high in ranks],
        }
        for sign, (mine, against) in counts.items():
            low, high = rough_limits(mine.astype(float), against.astype(float), (len(a), len(b)), confirming)
            margins, _ = claim.margin(low, high)
            k = int(np.argmax(margins))
            if best is None or margins[k] > best.promise:
                best = Event(score, sign, float(pooled[k]), float(margins[k]))
    return best


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
        return self._end - time.perf_counter()

    def part(self, share: float) -> Clock:
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
            # Where draws are dear, fewer pairs are tested; at last one, with all the time that is left.
            size, tested = self._affordable(wanted, 0.45), []
            last = size < wanted // 2
            for _, k in ranked[: 1 if last else min(count, self._affordable(count * wanted, 0.2) // wanted or 1)]:
                if self.best is not None and self.clock.left <= 0:
                    return tried
                found, outlook = self._paced(size, partial(self.trials[k].tested, size, self.claim, self.alarms, later))
                tested.append((outlook, k))
                if self.best is None or found.margin > self.best.margin:
                    self.best = on_pair(found, self.trials[k].pair)
                if self.best.margin > 0:
                    return tried
                size = self._affordable(wanted, 0.45)
            if last:
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
            size = self._affordable(FIRST, 0.2 / len(self.trials))
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
    return replace(found, pair=pair.words, one=shown(pair.one), other=shown(pair.other))


def shown(values: Values, most: int = 200) -> tuple[float, ...]:
    """A made-up truth for the report; nothing where it is long, since words describe it."""
    return tuple(values.tolist()) if values.size <= most else ()
