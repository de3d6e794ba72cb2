"""Belief changes with limits: what is learned is accepted only where the belief allows, or is what another run leaked.

*Screened* revision (Makinson 1997) keeps a core that is never given up; *credibility-limited* revision (Hansson, Fermé,
Cantwell and Falappa 2001) accepts only what the belief finds credible enough. *Bounded leakage* (Ligett, Peale and
Reingold 2020) conditions a mechanism M on the outcome of another, M'(D) = o, that ran with the same randomness; its
twin by imaging moves every run to the nearest one with that outcome. TV §5 names all of them as future work.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from fractions import Fraction
from typing import Any, TypeVar

from holdfast.arguments import Number, Refused, rational
from holdfast.beliefs.change import belief, condition, image, push
from holdfast.beliefs.oracle import log_ratio

World = TypeVar("World", bound=Hashable)
Output = TypeVar("Output", bound=Hashable)
Nearest = Mapping[World, World] | Callable[[World], World]


def screened(
    p: Mapping[World, Any], event: Iterable[World], core: Iterable[World], nearest: Nearest[World] | None = None
) -> dict[World, Fraction]:
    """Learn that the event holds unless that contradicts the core, which is believed for sure and never given up.

    *Law:* p itself where the event and the core have no world in common, or, for revision, no possible one; otherwise p
    conditioned on both, or with `nearest` imaged onto both. The core keeps probability 1 in either case.
    """
    prior, kept = belief(p), set(core)
    if sum((value for world, value in prior.items() if world in kept), Fraction(0)) != 1:
        raise Refused("core must be believed for sure: its worlds must have probability 1 together")
    both = set(event) & kept
    if nearest is not None:
        return image(prior, both, nearest) if both else prior
    return condition(prior, both) if any(prior.get(world) for world in both) else prior


def credible(
    p: Mapping[World, Any], event: Iterable[World], least: Number, nearest: Nearest[World] | None = None
) -> dict[World, Fraction]:
    """Learn that the event holds if its probability is at least `least`, above 0; otherwise keep the belief.

    *Law:* p given the event (or imaged onto it, with `nearest`) where p(event) ≥ least, otherwise p.
    """
    prior, inside = belief(p), set(event)
    if not _accepts(prior, inside, _threshold(least)):
        return prior
    return condition(prior, inside) if nearest is None else image(prior, inside, nearest)


def credible_mechanism(
    mechanism: Mapping[Any, Mapping[World, Any]], event: Iterable[World], least: Number
) -> dict[Any, dict[World, Fraction]]:
    """A mechanism, a belief for every dataset, changed by `credible`; refused where datasets decide differently.

    *Guarantee:* where all datasets accept, that of conditioning; where none does, that of the mechanism. Where some do
    and some do not, the release shows which, and no pure ε is left. Laws must be listed: for noise on unboundedly many
    values the chance of the event would have to be compared for all datasets, and such a mechanism is refused.
    """
    if not isinstance(mechanism, Mapping):
        raise Refused(
            f"mechanism must map every dataset to its law, a finite belief, found {type(mechanism).__name__}: whether "
            "noise makes a constraint credible depends on the data and would show; mechanism.given(c) accepts it for "
            "all data, and mechanism.then(function, name) may decide by the noisy output"
        )
    laws, inside, threshold = {x: belief(p) for x, p in mechanism.items()}, set(event), _threshold(least)
    decisions = {_accepts(p, inside, threshold) for p in laws.values()}
    if len(decisions) > 1:
        raise Refused("some datasets find the event credible and some do not, which a release would show: change least")
    return {x: credible(p, inside, threshold) for x, p in laws.items()}


def _threshold(least: Number) -> Fraction:
    found = rational("least", least)
    if not 0 < found <= 1:
        raise Refused(f"least must be above 0 and at most 1, found {float(found):g}")
    return found


def _accepts(p: Mapping[World, Fraction], event: set[World], least: Fraction) -> bool:
    return sum((value for world, value in p.items() if world in event), Fraction(0)) >= least


def leaked(joint: Mapping[tuple[Output, Any], Any], outcome: object) -> dict[Output, Fraction]:
    """The law of the output given that the other mechanism's outcome was this one.

    `joint`: the law of pairs (output, outcome) of one dataset. Where the outcome tells only whether the output lies in
    C, this is conditioning on C.
    """
    inside = [pair for pair, value in belief(joint, "joint").items() if pair[1] == outcome and value]
    if not inside:
        raise Refused(f"the outcome {outcome!r} must be possible to be conditioned on")
    return push({pair: value for pair, value in condition(joint, inside).items() if value}, _output)


def leaked_onto(
    joint: Mapping[tuple[Output, Any], Any], outcome: object, nearest: Nearest[tuple[Output, Any]]
) -> dict[Output, Fraction]:
    """The update twin of `leaked`: every pair is moved to the nearest one with that outcome.

    *Guarantee:* where `nearest` does not depend on the data, that of the pair: it is a function of it.
    """
    found = {_checked(nearest, pair, outcome) for pair in belief(joint, "joint")}
    moved = image(joint, found, lambda pair: _moved(nearest, pair, outcome))
    return push({pair: value for pair, value in moved.items() if value}, _output)


def _output(pair: tuple[Output, Any]) -> Output:
    return pair[0]


def _moved(nearest: Nearest[tuple[Output, Any]], pair: tuple[Output, Any], outcome: object) -> tuple[Output, Any]:
    if pair[1] == outcome:
        return pair
    return nearest[pair] if isinstance(nearest, Mapping) else nearest(pair)


def _checked(nearest: Nearest[tuple[Output, Any]], pair: tuple[Output, Any], outcome: object) -> tuple[Output, Any]:
    found = _moved(nearest, pair, outcome)
    if found[1] != outcome:
        raise Refused(f"nearest must lead to pairs with the outcome {outcome!r}, but {pair!r} is sent to {found!r}")
    return found


def leakage_loss(one: Mapping[tuple[Output, Any], Any], other: Mapping[tuple[Output, Any], Any]) -> float:
    """The ε of bounded leakage between two datasets: the largest log ratio given an outcome that both can have."""
    outcomes = [{pair[1] for pair, value in belief(joint, "joint").items() if value} for joint in (one, other)]
    both = outcomes[0] & outcomes[1]
    if not both:
        raise Refused("the two datasets have no outcome in common, so that the outcome alone tells them apart")
    found = []
    for outcome in both:
        first, second = leaked(one, outcome), leaked(other, outcome)
        found += [log_ratio(first, second), log_ratio(second, first)]
    return max(found)
