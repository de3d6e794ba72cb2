"""What background knowledge gains from a release: posterior odds and belief change of an adversary with a prior.

The adversary thinks some datasets possible, with probabilities, and wants to know whether the true one has a secret
property. Bayes' rule turns a release into a posterior; what is known besides (sums, orders, ranges) limits the prior.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeVar

import numpy as np
from scipy import sparse, stats

from holdfast.arguments import Number, Refused, whole
from holdfast.arrays import Bools, Floats, Ints
from holdfast.beliefs import belief
from holdfast.constraints import Constraint
from holdfast.mechanism import Mechanism
from holdfast.randomness import Stream, seeded

Table = TypeVar("Table")
Output = TypeVar("Output")
#: Releases that are simulated, and the fewest from one dataset.
SIZE, FEWEST = 20_000, 200
#: Classes of releases that an adversary tells apart who does not know their law.
CLASSES = 24
#: How often the limits of what classes tell may fail.
SURE = 1e-6


@dataclass(frozen=True)
class Gain:
    """What an adversary gains: shares of right guesses before and after, and how far a belief moves.

    Args:
        before: the prior probability of the secret.
        right_before: the share of right guesses without the release.
        right_after: the share of right guesses with it.
        log_odds: the largest change of the log odds of the secret, either way (the largest one met, in simulations).
        belief_change: the expected distance between posterior and prior probability.
        status: "exact"; "simulated"; or "at least", where the law of a release is not known in closed form and the
            adversary tells only some classes of releases apart.
        standard_error: that of `right_after`, where it is simulated.

    Example:
        >>> import holdfast as hf
        >>> silent = {"yes": {"nothing": 1}, "no": {"nothing": 1}}  # the same output whatever the data are
        >>> gain = hf.knowledge_gain(silent, {"yes": 0.5, "no": 0.5}, {"yes"})
        >>> gain.right_before == gain.right_after, gain.status
        (True, 'exact')
    """

    before: float
    right_before: float
    right_after: float
    log_odds: float
    belief_change: float
    status: str
    standard_error: float = 0.0

    def __str__(self) -> str:
        doubt = f" (± {self.standard_error:.2g}, simulated)"
        how = {"exact": "", "simulated": doubt, "at least": " at least (simulated)"}[self.status]
        factor = f"{math.exp(self.log_odds):.4g}" if self.log_odds < 700 else "infinity"
        return (
            f"an adversary who gives the secret a chance of {self.before:.3g} is right in "
            f"{100 * self.right_before:.1f} "
            f"of 100 cases before the release and in {100 * self.right_after:.1f} after it{how}; the odds change by a "
            f"factor of up to {factor}, the belief by {self.belief_change:.3g} on average"
        )

    def as_mapping(self) -> dict[str, Any]:
        found = {name: getattr(self, name) for name in self.__dataclass_fields__}
        return found | {"log_odds": self.log_odds if math.isfinite(self.log_odds) else None}


def knowledge_gain(
    mechanism: Mechanism | Mapping[Table, Mapping[Output, Number]],
    prior: Mapping[Table, Number],
    secret: Callable[[Table], bool] | Iterable[Table],
    *,
    knowledge: Constraint | None = None,
    size: int = SIZE,
    rng: Stream | None = None,
) -> Gain:
    """Return what an adversary with this prior about the data learns about a secret from one release.

    It is exact for laws that are given. Otherwise releases are simulated: with the adversary's own Bayes' rule for
    independent noise and noise given equalities; elsewhere with the classes of releases that such a rule tells apart,
    and then it says "at least".

    Args:
        mechanism: one of holdfast's, or a law of outputs for every dataset (exact fractions, as in `hf.beliefs`).
        prior: probabilities of the datasets that are thought possible, truths as tuples for holdfast's.
        secret: the datasets that have it, or a function of a dataset.
        knowledge: what holds besides, such as equals(A, b), ordered([0, 1]) or between(0, 10): datasets that violate it
            are left out.
        size: how many releases are simulated.
        rng: the stream of the simulations; None is a fixed seed.

    Example:
        >>> from fractions import Fraction
        >>> import holdfast as hf
        >>> third = Fraction(1, 3)  # randomised response: the truth is told two times in three
        >>> told = {"yes": {"y": 2 * third, "n": third}, "no": {"y": third, "n": 2 * third}}
        >>> gain = hf.knowledge_gain(told, {"yes": Fraction(1, 2), "no": Fraction(1, 2)}, {"yes"})
        >>> round(gain.right_before, 3), round(gain.right_after, 3)
        (0.5, 0.667)
    """
    believed = belief(prior, "prior")
    if knowledge is not None:
        believed = _restricted(believed, knowledge)
    held = {x: bool(secret(x) if callable(secret) else x in secret) for x, value in believed.items() if value}
    if len(set(held.values())) < 2:
        raise Refused("the prior must leave the secret open: some possible datasets must have it and some not")
    weights = {x: believed[x] for x in held}
    if isinstance(mechanism, Mapping):
        return _exact(mechanism, weights, held)
    if not isinstance(mechanism, Mechanism):
        raise Refused("mechanism must be made by laplace() or gaussian() and the verbs, or map datasets to laws")
    return _simulated(mechanism, weights, held, whole("size", size, at_least=2 * FEWEST), rng or seeded(1))


def _restricted(prior: dict[Any, Fraction], knowledge: Constraint) -> dict[Any, Fraction]:
    kept = {}
    for x, value in prior.items():
        truth = np.asarray(x)
        if truth.ndim != 1:
            raise Refused("knowledge is about tables of numbers: the prior's datasets must be tuples of them")
        if knowledge.system(truth.size).holds(truth):
            kept[x] = value
    total = sum(kept.values(), Fraction(0))
    if not total:
        raise Refused("no dataset that the prior holds possible satisfies the knowledge")
    return {x: value / total for x, value in kept.items()}


def _exact(laws: Mapping[Any, Mapping[Any, Any]], weights: dict[Any, Fraction], held: dict[Any, bool]) -> Gain:
    joint: dict[Any, list[Fraction]] = {}
    for x, weight in weights.items():
        if x not in laws:
            raise Refused(f"mechanism must have a law for every dataset of the prior, and has none for {x!r}")
        for output, chance in belief(laws[x], f"the law of {x!r}").items():
            both = joint.setdefault(output, [Fraction(0), Fraction(0)])
            both[held[x]] += weight * chance
    before = sum((weight for x, weight in weights.items() if held[x]), Fraction(0))
    right = sum((max(both) for both in joint.values()), Fraction(0))
    change = sum((abs(both[1] - before * sum(both)) for both in joint.values()), Fraction(0))
    odds = before / (1 - before)
    shifts = [
        math.inf if 0 in both else abs(math.log(both[1] / both[0] / odds)) for both in joint.values() if any(both)
    ]
    return Gain(float(before), float(max(before, 1 - before)), float(right), max(shifts), float(change), "exact")


def _simulated(
    mechanism: Mechanism, weights: dict[Any, Fraction], held: dict[Any, bool], size: int, stream: Stream
) -> Gain:
    truths = np.array([list(x) for x in weights])
    chances = np.array([float(value) for value in weights.values()])
    secret = np.array(list(held.values()))
    counts = np.maximum(FEWEST, np.round(size * chances)).astype(int)
    drawn = np.concatenate([mechanism.simulate(x, int(k), stream) for x, k in zip(truths, counts, strict=True)])
    source = np.repeat(np.arange(len(truths)), counts)
    known = _has_density(mechanism)
    logs = _likelihoods(mechanism, truths, drawn, known) + np.log(chances)[:, None]
    top = logs.max(axis=0)
    parts = np.exp(logs - top)
    posterior = parts[secret].sum(axis=0) / parts.sum(axis=0)
    before = float(chances[secret].sum())
    share = chances[source] / counts[source]
    if not known:
        return _by_classes(posterior, secret[source], share, before)
    right = np.maximum(posterior, 1 - posterior)
    error = math.sqrt(
        sum(c**2 * float(right[source == i].var()) / int(counts[i]) for i, c in enumerate(chances.tolist()))
    )
    change = float(share @ np.abs(posterior - before))
    return Gain(
        before,
        max(before, 1 - before),
        min(1.0, float(share @ right)),
        _shift(posterior, before),
        change,
        "simulated",
        error,
    )


def _shift(posterior: Floats, before: float) -> float:
    with np.errstate(divide="ignore"):
        odds = np.log(posterior) - np.log1p(-posterior)
    return float(np.abs(odds - math.log(before / (1 - before))).max())


def _has_density(mechanism: Mechanism) -> bool:
    """Whether likelihood ratios of releases are those of the independent noise: no moves, and equalities at most."""
    source = mechanism.source
    return not mechanism.moves and source.law is None and not source.depends_on_data and mechanism.base.unit == 1


def _likelihoods(mechanism: Mechanism, truths: Any, drawn: Any, known: bool) -> Floats:
    """Log likelihoods of every release under every truth, (truths, releases), up to what they share."""
    if not known:
        spread = np.sqrt(np.minimum(mechanism.base.law.variances, 1e300))
        return np.stack([-(np.abs(drawn - x) / spread).sum(axis=1) * 2**0.5 for x in truths])
    logs = np.stack([mechanism.base.law.log_density(drawn - x) for x in truths])
    system = mechanism.source.system
    if system is None:
        return logs
    rows = sparse.vstack([system.equalities.A, system.invariants.A], format="csr")
    # A release has the exact figures of its own truth, and none with other figures can have made it.
    seen = rows @ drawn.T
    for k, x in enumerate(truths):
        apart = np.abs(seen - (rows @ x)[:, None]) > 1e-6 * (1 + np.abs(seen))
        logs[k][apart.any(axis=0)] = -np.inf
    return logs


def _by_classes(score: Floats, secret: Bools, share: Floats, before: float) -> Gain:
    """Classes learned from one half of the releases, guesses judged on the other."""
    learns = np.arange(score.size) % 2 == 0
    edges = np.unique(np.quantile(score[learns], np.linspace(0, 1, CLASSES + 1)[1:-1]))
    place = np.searchsorted(edges, score)
    guess = np.zeros(edges.size + 1, dtype=bool)
    posterior = np.full(edges.size + 1, before)
    mass = np.zeros(edges.size + 1)
    for k in range(edges.size + 1):
        here, judged = learns & (place == k), ~learns & (place == k)
        guess[k] = float(share[here] @ secret[here]) > float(share[here].sum()) / 2
        mass[k] = 2 * float(share[judged].sum())
        if judged.sum() >= FEWEST / 4:
            posterior[k] = float(share[judged] @ secret[judged]) / float(share[judged].sum())
    weight = share[~learns] / share[~learns].sum()
    hits = (guess[place] == secret)[~learns]
    right = float(weight @ hits)
    error = math.sqrt(max(right * (1 - right), 0.0) * float((weight**2).sum()))
    change = float(mass @ np.abs(posterior - before))
    shift = _surely_shifted(place[~learns], secret[~learns], share[~learns], edges.size + 1)
    return Gain(before, max(before, 1 - before), right, shift, change, "at least", error)


def _surely_shifted(place: Ints, secret: Bools, share: Floats, classes: int) -> float:
    """How far the odds change at least in some class: by limits of how often either side falls into it (SURE)."""
    limits = []
    for side in (secret, ~secret):
        weights = share * side / max(float(share[side].sum()), np.finfo(float).tiny)
        size = 1 / max(float((weights**2).sum()), np.finfo(float).tiny)
        seen = np.bincount(place, weights, classes).clip(0.0, 1.0) * size
        low = np.where(seen > 0, stats.beta.ppf(SURE / classes, np.maximum(seen, 1e-9), size - seen + 1), 0.0)
        high = np.where(seen < size, stats.beta.ppf(1 - SURE / classes, seen + 1, np.maximum(size - seen, 1e-9)), 1.0)
        limits.append((low, high))
    (low, high), (other_low, other_high) = limits
    with np.errstate(divide="ignore"):
        return max(0.0, float(np.log(np.maximum(low / other_high, other_low / high)).max()))
