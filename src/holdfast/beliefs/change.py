"""The two belief changes on finite worlds, in exact fractions.

A belief is a mapping from worlds (anything hashable) to fractions that are not negative and sum to exactly
1. Learning that an event holds changes it in one of two ways: *conditioning* (revision: the world is
static, keep what is possible and renormalise) or *imaging* (update: the world has changed, move every world
to the nearest one in the event). TV §2; numbers of the stored text in brackets.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Mapping, Set
from fractions import Fraction
from typing import Any, TypeVar

from flint import arb, ctx, fmpq

from holdfast.arguments import Refused, listed, rational

World = TypeVar("World", bound=Hashable)
Other = TypeVar("Other", bound=Hashable)

#: Bits of the logarithms in `kl`; the sum is rounded to a double once, at the end.
PRECISION = 256


def belief(p: Mapping[World, Any], name: str = "p") -> dict[World, Fraction]:
    """Return `p`, a mapping of worlds to probabilities, as exact fractions; refuse, by its `name`, what is no belief.

    Floats stand for the exact binary number they hold: 0.7 and 0.3 do not sum to 1, Fraction(7, 10) and
    Fraction(3, 10) do.
    """
    if not isinstance(p, Mapping):
        raise Refused(f"{name} must map worlds to probabilities, found {type(p).__name__}")
    exact = {world: rational(f"a probability of {name}", value) for world, value in p.items()}
    if any(value < 0 for value in exact.values()):
        raise Refused(f"{name} must not hold negative probabilities")
    total = sum(exact.values(), Fraction(0))
    if total != 1:
        raise Refused(
            f"{name} must sum to exactly 1, found a sum off by {float(total - 1):.3g}; use fractions, not floats"
        )
    return exact


def _event(event: Iterable[World]) -> Set[World]:
    try:
        found = event if isinstance(event, Set) else set(listed("event", event, "a set of worlds"))
    except TypeError:
        raise Refused("event must be a set of worlds, and one of these cannot be in a set") from None
    if not found:
        raise Refused("event must hold at least one world, found none")
    return found


def condition(p: Mapping[World, Any], event: Iterable[World]) -> dict[World, Fraction]:
    """Return the belief p(· | event): zero outside the event, renormalised inside it.

    *Law:* p(w)/p(event) for w in the event (TV Prop 1 [2.1]: no relative change of belief). It is the belief
    with p'(event) = 1 that is nearest to p in `kl`. Refused when p(event) = 0.
    """
    prior, inside = belief(p), _event(event)
    total = sum((value for world, value in prior.items() if world in inside), Fraction(0))
    if total == 0:
        raise Refused("event must have positive probability to be conditioned on, found probability 0")
    return {world: value / total if world in inside else Fraction(0) for world, value in prior.items()}


def image(
    p: Mapping[World, Any], event: Iterable[World], nearest: Mapping[World, World] | Callable[[World], World]
) -> dict[World, Fraction]:
    """Return the belief p_event: the mass of every world moved to its nearest world in the event.

    *Law:* p_event(w) = Σ p(w') over the worlds w' whose nearest world is w (TV equation (1)). It commutes
    with mixtures (equation (2)). Worlds of the event must be their own nearest world; both are checked.
    """
    prior, inside = belief(p), _event(event)
    find = nearest.__getitem__ if isinstance(nearest, Mapping) else nearest
    result = {world: Fraction(0) for world in prior}
    for world, value in prior.items():
        # A mapping may leave out what stays where it is.
        stays = isinstance(nearest, Mapping) and world not in nearest
        target = world if stays else find(world)
        if target not in inside:
            raise Refused(f"nearest must lead into the event, but {world!r} is sent to {target!r}")
        if world in inside and target != world:
            raise Refused(f"nearest must leave worlds of the event alone, but {world!r} is sent to {target!r}")
        result[target] = result.get(target, Fraction(0)) + value
    return result


def mixture(parts: Iterable[tuple[Any, Mapping[World, Any]]]) -> dict[World, Fraction]:
    """Return Σ weight·p over `parts`, pairs (weight, p); the weights must sum to exactly 1."""
    pairs = [(rational("a weight", weight), belief(p)) for weight, p in parts]
    if any(weight < 0 for weight, _ in pairs) or sum((weight for weight, _ in pairs), Fraction(0)) != 1:
        raise Refused("the weights of a mixture must not be negative and must sum to exactly 1")
    result: dict[World, Fraction] = {}
    for weight, p in pairs:
        for world, value in p.items():
            result[world] = result.get(world, Fraction(0)) + weight * value
    return result


def push(p: Mapping[World, Any], function: Callable[[World], Other]) -> dict[Other, Fraction]:
    """Return the law of function(w) for w drawn from p."""
    result: dict[Other, Fraction] = {}
    for world, value in belief(p).items():
        target = function(world)
        result[target] = result.get(target, Fraction(0)) + value
    return result


def kl(p_new: Mapping[World, Any], p_old: Mapping[World, Any]) -> float:
    """Return Σ p_new log(p_new/p_old), TV's I(p_old, p_new); infinite where only p_new has mass."""
    new, old = belief(p_new, "p_new"), belief(p_old, "p_old")
    if any(value > 0 and not old.get(world) for world, value in new.items()):
        return math.inf
    with ctx.workprec(PRECISION):
        total = arb(0)
        for world, value in new.items():
            if value > 0:
                ratio = value / old[world]
                total += _ball(value) * _ball(ratio).log()
        return max(0.0, float(total.mid()))


def _ball(value: Fraction) -> Any:
    return arb(fmpq(value.numerator, value.denominator))


def total_variation(p: Mapping[World, Any], q: Mapping[World, Any]) -> Fraction:
    """Return half the sum of |p − q|: the largest difference in the probability of any event."""
    one, other = belief(p), belief(q, "q")
    worlds = one.keys() | other.keys()
    return sum((abs(one.get(w, Fraction(0)) - other.get(w, Fraction(0))) for w in worlds), Fraction(0)) / 2
