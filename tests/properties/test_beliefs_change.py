"""The characterisations of conditioning and imaging (TV Props 1 and 2, equation (2), minimal change)."""

from __future__ import annotations

import itertools
import math
import random
from fractions import Fraction

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from holdfast.arguments import Refused
from holdfast.beliefs import belief, condition, image, kl, mixture, push, total_variation

F = Fraction
WORLDS = range(6)
quick = settings(max_examples=40, deadline=None, derandomize=True)


@st.composite
def beliefs(draw):
    masses = draw(st.lists(st.integers(0, 30), min_size=6, max_size=6).filter(sum))
    return {world: F(mass, sum(masses)) for world, mass in zip(WORLDS, masses, strict=True)}


events = st.sets(st.sampled_from(list(WORLDS)), min_size=1)
shares = st.fractions(0, 1, max_denominator=50)


def nearest_in(event):
    """Return the nearest world of the event on a line; the smaller one on a tie."""
    return lambda world: min(sorted(event), key=lambda other: abs(other - world))


def probability(p, event):
    return sum((p.get(world, F(0)) for world in event), F(0))


@quick
@given(beliefs(), events)
def test_conditioning_keeps_relative_beliefs(p, event):
    # TV Prop 1 [2.1], "only if": nothing outside, ratios inside unchanged for all pairs of sub-events.
    assume(probability(p, event) > 0)
    after = condition(p, event)
    assert probability(after, set(WORLDS) - event) == 0
    subsets = [set(c) for r in range(len(event) + 1) for c in itertools.combinations(sorted(event), r)]
    pairs = [(probability(p, subset), probability(after, subset)) for subset in subsets]
    for (one, one_after), (other, other_after) in itertools.product(pairs, pairs):
        if other > 0:
            assert one_after * other == one * other_after
            assert other_after > 0


@quick
@given(beliefs(), beliefs(), events)
def test_only_conditioning_keeps_relative_beliefs(p, other, event):
    # TV Prop 1 [2.1], "if": any belief on the event with the same ratios is the conditional one.
    assume(probability(p, event) > 0 and probability(other, event) > 0)
    candidate = condition(other, event)
    reference = next(world for world in sorted(event) if p[world] > 0)
    same = candidate[reference] > 0 and all(
        candidate[world] * p[reference] == p[world] * candidate[reference] for world in event
    )
    assert same == (candidate == condition(p, event))


@quick
@given(beliefs(), events, events)
def test_conditioning_on_a_disjoint_union_is_a_mixture(p, one, other):
    # TV Prop 2 [2.2].
    other = other - one
    assume(other and probability(p, one) > 0 and probability(p, other) > 0)
    weight = probability(p, one) / (probability(p, one) + probability(p, other))
    parts = [(weight, condition(p, one)), (1 - weight, condition(p, other))]
    assert condition(p, one | other) == mixture(parts)


@quick
@given(beliefs(), beliefs(), events, shares)
def test_imaging_commutes_with_mixtures(p, q, event, share):
    # TV equation (2).
    nearest = nearest_in(event)
    both = [(share, image(p, event, nearest)), (1 - share, image(q, event, nearest))]
    assert image(mixture([(share, p), (1 - share, q)]), event, nearest) == mixture(both)


def test_conditioning_does_not_commute_with_mixtures():
    # The named example: half of a sure world outside the event, half of one inside it.
    p = {0: F(1, 2), 1: F(1, 2), 2: F(0)}
    q = {0: F(0), 1: F(1, 4), 2: F(3, 4)}
    event, half = {1, 2}, F(1, 2)
    mixed = mixture([(half, condition(p, event)), (half, condition(q, event))])
    assert condition(mixture([(half, p), (half, q)]), event) != mixed
    assert mixed[2] == F(3, 8)
    assert condition(mixture([(half, p), (half, q)]), event)[2] == F(1, 2)


def test_conditioning_is_the_nearest_belief_in_kl():
    # Minimal change: among all p' with p'(event) = 1 (here thousands of random rational ones) none is nearer.
    rng = random.Random(20240)
    for _ in range(40):
        masses = [rng.randint(1, 40) for _ in WORLDS]
        p = {world: F(mass, sum(masses)) for world, mass in zip(WORLDS, masses, strict=True)}
        event = set(rng.sample(list(WORLDS), rng.randint(1, 4)))
        best = condition(p, event)
        distance = kl(best, p)
        assert distance == pytest.approx(-math.log(probability(p, event)), rel=1e-14, abs=1e-15)
        for _ in range(50):
            other = [rng.randint(0, 40) if world in event else 0 for world in WORLDS]
            if sum(other) == 0:
                continue
            rival = {world: F(mass, sum(other)) for world, mass in zip(WORLDS, other, strict=True)}
            if rival != best:
                assert kl(rival, p) > distance


@quick
@given(beliefs(), events)
def test_imaging_moves_the_least(p, event):
    # Minimal change: the nearest map minimises Σ p(w)·|w − T(w)| over *all* maps into the event.
    nearest = nearest_in(event)
    moved = sum(p[w] * abs(w - nearest(w)) for w in WORLDS)
    targets = sorted(event)
    # Every map is chosen world by world, so the best map's cost is the sum of the best costs.
    assert moved == sum(p[w] * min(abs(w - t) for t in targets) for w in WORLDS)
    if len(targets) <= 3:
        costs = (
            sum(p[w] * abs(w - t) for w, t in zip(WORLDS, choice, strict=True))
            for choice in itertools.product(targets, repeat=len(WORLDS))
        )
        assert moved == min(costs)


@quick
@given(beliefs(), events)
def test_imaging_is_a_push_along_the_nearest_map(p, event):
    nearest = nearest_in(event)
    after = image(p, event, nearest)
    assert {w: v for w, v in after.items() if v} == {w: v for w, v in push(p, nearest).items() if v}
    assert sum(after.values()) == 1
    table = {world: nearest(world) for world in WORLDS}
    assert image(p, event, table) == after
    assert image(after, event, nearest) == after


@quick
@given(beliefs(), beliefs())
def test_distances(p, q):
    assert total_variation(p, p) == 0 == kl(p, p)
    assert total_variation(p, q) == total_variation(q, p) <= 1
    # Pinsker: TV² ≤ KL/2.
    assert float(total_variation(p, q)) ** 2 <= kl(p, q) / 2 + 1e-12
    if any(p[w] and not q[w] for w in WORLDS):
        assert kl(p, q) == math.inf


def test_what_is_not_a_belief_is_refused():
    with pytest.raises(Refused, match="sum to exactly 1"):
        belief({1: 0.7, 2: 0.3})
    assert belief({1: 0.5, 2: 0.5}) == {1: F(1, 2), 2: F(1, 2)}
    with pytest.raises(Refused, match="negative"):
        belief({1: F(3, 2), 2: F(-1, 2)})
    with pytest.raises(Refused, match="map worlds"):
        belief([0.5, 0.5])
    with pytest.raises(Refused, match="probability 0"):
        condition({1: 1, 2: 0}, {2})
    with pytest.raises(Refused, match="at least one world"):
        condition({1: 1}, set())
    with pytest.raises(Refused, match="set of worlds"):
        condition({1: 1}, "1")
    with pytest.raises(Refused, match="lead into the event"):
        image({1: 1, 2: 0}, {2}, {1: 3})
    with pytest.raises(Refused, match="lead into the event"):
        image({1: 1, 2: 0}, {2}, {})
    with pytest.raises(Refused, match="leave worlds of the event alone"):
        image({1: 1, 2: 0}, {1, 2}, {1: 2})
    with pytest.raises(Refused, match="weights of a mixture"):
        mixture([(F(1, 2), {1: 1})])
