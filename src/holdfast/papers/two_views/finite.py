"""Small finite mechanisms in exact fractions: what the statements about all mechanisms are tried on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fractions import Fraction
from itertools import combinations, product

import numpy as np

from holdfast.beliefs import log_ratio

World = int
Belief = dict[World, Fraction]
#: A mechanism on two neighbouring datasets.
Pair = tuple[Belief, Belief]


def listed(worlds: int, parts: int) -> Iterator[Belief]:
    """Every belief about so many worlds whose probabilities are multiples of 1/parts."""
    for bars in combinations(range(parts + worlds - 1), worlds - 1):
        ends = [-1, *bars, parts + worlds - 1]
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
