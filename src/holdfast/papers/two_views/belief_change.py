"""What marks conditioning and imaging (TV Props 1, 2; (1), (2); Example 3), on every belief of a small grid."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fractions import Fraction
from itertools import combinations, product

import numpy as np

from holdfast.beliefs import condition, image, kl, log_ratio, mixture
from holdfast.papers.reproduction import Claim, Findings, Row, Study
from holdfast.pictures import bars

World = int
Belief = dict[World, Fraction]
#: A mechanism on two neighbouring datasets.
Pair = tuple[Belief, Belief]


def listed(worlds: int, parts: int) -> Iterator[Belief]:
    """Every belief about so many worlds whose probabilities are multiples of 1/parts."""
    for ends_of in combinations(range(parts + worlds - 1), worlds - 1):
        ends = [-1, *ends_of, parts + worlds - 1]
        yield {w: Fraction(ends[w + 1] - ends[w] - 1, parts) for w in range(worlds)}


def events(worlds: int) -> list[frozenset[int]]:
    found = (frozenset(w for w, chosen in enumerate(each) if chosen) for each in product([0, 1], repeat=worlds))
    return [event for event in found if event]


def pairs(rng: np.random.Generator, count: int, worlds: int) -> Iterator[Pair]:
    """Random mechanisms: what two neighbouring datasets give, every world possible."""
    for _ in range(count):
        both = rng.integers(1, 12, size=(2, worlds))
        yield _belief(both[0].tolist()), _belief(both[1].tolist())


def _belief(weights: list[int]) -> Belief:
    total = sum(weights)
    return {w: Fraction(weight, total) for w, weight in enumerate(weights)}


def moves(rng: np.random.Generator, worlds: int, event: frozenset[int]) -> dict[int, int]:
    inside = sorted(event)
    return {w: inside[int(rng.integers(len(inside)))] for w in range(worlds) if w not in event}


def loss(pair: tuple[Mapping[int, Fraction], Mapping[int, Fraction]]) -> float:
    """The pure ε of a mechanism on two datasets."""
    return max(log_ratio(pair[0], pair[1]), log_ratio(pair[1], pair[0]))


def same(p: Mapping[int, Fraction], q: Mapping[int, Fraction]) -> bool:
    """Whether two beliefs are equal; worlds that are left out have probability 0."""
    return all(p.get(w, 0) == q.get(w, 0) for w in {*p, *q})


def response(p: Fraction = Fraction(9, 10)) -> Pair:
    """Randomized response: the answer is right with probability p."""
    return {1: p, 0: 1 - p}, {1: 1 - p, 0: p}


WORLDS, PARTS = 3, 4
#: Worlds of Example 3: a and b, a alone, b alone, neither.
APPLE = {1: Fraction(0), 2: Fraction(7, 10), 3: Fraction(3, 10), 4: Fraction(0)}


def belief_change(study: Study) -> Findings:
    """Try every belief, event and rule of a small grid."""
    del study  # nothing is random, and it is quick
    revised, updated = condition(APPLE, {3, 4}), image(APPLE, {3, 4}, {1: 3, 2: 4})
    rows = (
        Row("Example 3: p(ω₃ | no apple)", 1.0, float(revised[3])),
        Row("Example 3: p(ω₄ | no apple)", 0.0, float(revised[4])),
        Row("Example 3: p imaged, ω₃", 0.3, float(updated[3])),
        Row("Example 3: p imaged, ω₄", 0.7, float(updated[4])),
    )
    picture = bars(
        [
            ("believed: apple", 0.7, 0.0),
            ("believed: banana", 0.3, 0.0),
            ("revised: banana", float(revised[3]), 0.0),
            ("updated: banana", float(updated[3]), 0.0),
            ("updated: empty", float(updated[4]), 0.0),
        ],
        "probability of what is in the box",
    )
    return Findings(_claims(rows), rows, (("Learning that there is no apple, in the two ways.", picture),))


def _claims(rows: tuple[Row, ...]) -> tuple[Claim, ...]:
    right = all(row.printed == row.computed for row in rows)
    first, tried = _proposition_1()
    second, cases = _proposition_2()
    linear, mixed = _homomorphic()
    least, compared = _least_change()
    only, rule = _another_homomorphic_rule()
    return (
        Claim("Example 3 comes out as printed", right, "exact fractions"),
        Claim("Proposition 1: conditioning is marked by no relative change", first, f"{tried:,} pairs of beliefs"),
        Claim("Proposition 2: on a disjoint union conditioning mixes", second, f"{cases:,} beliefs and events"),
        Claim("(2): imaging goes through mixtures", linear, f"{mixed:,} pairs of beliefs, every map"),
        Claim("conditioning is nearest in KL divergence", least, f"{compared:,} other beliefs with P(C) = 1"),
        Claim("imaging is the only rule that goes through mixtures", not only, rule),
        Claim(
            "it is the only such rule that sends every single world to a single one",
            _sure_rules_are_images(),
            "a rule that goes through mixtures is fixed by what it does to the single worlds, so it moves each to one",
            ours=True,
        ),
    )


def _proposition_1() -> tuple[bool, int]:
    grid, tried = list(listed(WORLDS, PARTS)), 0
    for p, event in product(grid, events(WORLDS)):
        if not sum(p[w] for w in event):
            continue
        revised = condition(p, event)
        for other in [*grid, revised]:
            tried += 1
            if _no_relative_change(p, other, event) != same(other, revised):
                return False, tried
    return True, tried


def _no_relative_change(p: Belief, other: Belief, event: frozenset[int]) -> bool:
    """The two conditions of Proposition 1, ratios multiplied out: for single worlds, from which all B follow."""
    outside = sum(other[w] for w in other if w not in event)
    return not outside and all(other[a] * p[b] == p[a] * other[b] for a in event for b in event)


def _proposition_2() -> tuple[bool, int]:
    tried = 0
    for p, one, other in product(listed(WORLDS, PARTS), events(WORLDS), events(WORLDS)):
        weights = [sum(p[w] for w in event) for event in (one, other)]
        if one & other or not all(weights):
            continue
        share = Fraction(weights[0]) / sum(weights)
        tried += 1
        if not same(condition(p, one | other), mixture([(share, condition(p, one)), (1 - share, condition(p, other))])):
            return False, tried
    return True, tried


def _homomorphic() -> tuple[bool, int]:
    tried, third = 0, Fraction(1, 3)
    for event in events(WORLDS):
        outside = [w for w in range(WORLDS) if w not in event]
        for targets in product(sorted(event), repeat=len(outside)):
            nearest = dict(zip(outside, targets, strict=True))
            for p, q in product(listed(WORLDS, 2), repeat=2):
                tried += 1
                whole = image(mixture([(third, p), (1 - third, q)]), event, nearest)
                if not same(whole, mixture([(third, image(p, event, nearest)), (1 - third, image(q, event, nearest))])):
                    return False, tried
    return True, tried


def _least_change() -> tuple[bool, int]:
    tried = 0
    grid = list(listed(WORLDS, PARTS))
    for p, event in product(grid, events(WORLDS)):
        if not sum(p[w] for w in event):
            continue
        least = kl(condition(p, event), p)
        for other in grid:
            if sum(other[w] for w in event) == 1:
                tried += 1
                if kl(other, p) < least - 1e-12:
                    return False, tried
    return True, tried


def _another_homomorphic_rule() -> tuple[bool, str]:
    """A rule that shares a world's mass between two nearest ones: it mixes, and is no imaging by one nearest world."""
    kernel = {0: {1: Fraction(1, 2), 2: Fraction(1, 2)}, 1: {1: Fraction(1)}, 2: {2: Fraction(1)}}

    def shared(p: Belief) -> Belief:
        return {w: sum((p[v] * kernel[v].get(w, Fraction(0)) for v in p), Fraction(0)) for w in range(3)}

    third = Fraction(1, 3)
    mixes = all(
        same(shared(mixture([(third, p), (1 - third, q)])), mixture([(third, shared(p)), (1 - third, shared(q))]))
        for p, q in product(listed(3, 2), repeat=2)
    )
    at_zero = shared({0: Fraction(1), 1: Fraction(0), 2: Fraction(0)})
    words = (
        "sharing a world's mass evenly between two worlds of C goes through mixtures too (Gärdenfors' general imaging)"
    )
    return mixes and max(at_zero.values()) < 1, words


def _sure_rules_are_images() -> bool:
    """Every rule given by single worlds for single worlds is an image: all maps of three worlds that keep an event."""
    for event in events(WORLDS):
        outside = [w for w in range(WORLDS) if w not in event]
        for targets in product(sorted(event), repeat=len(outside)):
            nearest = dict(zip(outside, targets, strict=True))
            for p in listed(WORLDS, 2):
                by_worlds = mixture(
                    [(p[w], {v: Fraction(int(v == nearest.get(w, w))) for v in range(WORLDS)}) for w in p]
                )
                if not same(by_worlds, image(p, event, nearest)):
                    return False
    return True
