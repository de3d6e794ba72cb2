"""Hierarchies drawn in parts: the law of every total is the conditional one, also where many are rejected."""

import itertools

import numpy as np
import pytest

from holdfast.arguments import LARGEST
from holdfast.noise import Independent, IntegerGaussian, IntegerLaplace
from holdfast.randomness import Keys
from holdfast.release.pieces.conditioned import accepted
from holdfast.trees import Forest
from holdfast.trees.joined.part import Part
from holdfast.trees.joined.top import Top
from holdfast.trees.messages import leaf_kinds, messages

REACH = 60
SUBTREE = np.array([-1, 0, 0])
TOP = Forest(np.array([-1, 0, 0]), np.zeros(3, dtype=bool))


class Kept:
    """Two parts whose messages are made once; `alone` each begins again by itself where it is rejected: wrong."""

    def __init__(self, parts: list[Part], alone: bool) -> None:
        self.parts, self.alone, self.keys, self.noise = parts, alone, [], [None, None]

    def drawn(self, some, totals, attempts):
        rejected = {}
        for i in some.tolist():
            at_roots = [np.array([each[i], 0, 0]) for each in (totals, attempts)]
            self.noise[i], refused = self.parts[i].drawn(*at_roots, self.keys[i])
            while self.alone and refused[0] and at_roots[1][0] < 20:
                at_roots[1] += 1
                self.noise[i], refused = self.parts[i].drawn(*at_roots, self.keys[i])
            rejected[i] = refused[:1] & (not self.alone)
        return rejected


def drawn(law, low: list[int], size: int, alone: bool = False) -> np.ndarray:
    """Noise of the four leaves below two subtrees, (size, 4)."""
    laws, none = Independent((law,), None, 3), np.full(3, LARGEST)
    lows = [np.array([-LARGEST, *low[2 * i : 2 * i + 2]]) for i in range(2)]
    parts = [Part(Forest(SUBTREE, np.zeros(3, dtype=bool)), laws, each, none) for each in lows]
    below = tuple(part.told()[0] for part in parts)
    given = (TOP, laws, np.full(3, -LARGEST), none)
    slopes, _ = Top.of(*given, below).pulls
    parts = [
        Part(part.forest, laws, part.low, none, pull=np.array([slope, 0, 0]))
        for part, slope in zip(parts, slopes, strict=True)
    ]
    top = Top.of(*given, tuple(part.grafts()[0] for part in parts))
    tasks, found = Kept(parts, alone), np.empty((size, 4), dtype=np.int64)
    for i in range(size):
        keys = Keys.of(i.to_bytes(16, "little"))
        tasks.keys = [Keys.drawn_from(keys.at(part)) for part in range(2)]
        accepted(top, slice(1, 3), 1, tasks.drawn, Keys.drawn_from(keys.at("top")))
        found[i] = np.concatenate([noise[1:] for noise in tasks.noise])
    return found


def weights(law, low: list[int]) -> dict[tuple[int, int], float]:
    """The law of the totals of both subtrees, by listing the noise of all leaves."""
    alone = {u: float(np.exp(law.log_density(np.array([u]))[0])) for u in range(-2 * REACH, 2 * REACH + 1)}
    both = []
    for first, second in (low[:2], low[2:]):
        sums: dict[int, float] = {}
        for a, b in itertools.product(range(max(first, -REACH), REACH + 1), range(max(second, -REACH), REACH + 1)):
            sums[a + b] = sums.get(a + b, 0.0) + alone[a] * alone[b] * alone[a + b]
        both.append(sums)
    top = np.exp(law.log_density(np.arange(-4 * REACH, 4 * REACH + 1))).tolist()
    joint = {
        (s, t): f * g * top[s + t + 4 * REACH] for (s, f), (t, g) in itertools.product(both[0].items(), both[1].items())
    }
    total = sum(joint.values())
    return {key: value / total for key, value in joint.items()}


def distance(found: np.ndarray, expected: dict[tuple[int, int], float]) -> float:
    """Standard deviations of Pearson's statistic over pairs of totals, rare ones together."""
    size = len(found)
    seen: dict[tuple[int, int], int] = {}
    for row in found.tolist():
        key = (row[0] + row[1], row[2] + row[3])
        seen[key] = seen.get(key, 0) + 1
    common = {key: p for key, p in expected.items() if p * size >= 5}
    rest = 1 - sum(common.values())
    statistic = sum((seen.get(key, 0) - size * p) ** 2 / (size * p) for key, p in common.items())
    other = size - sum(seen.get(key, 0) for key in common)
    if rest * size >= 5:
        statistic += (other - size * rest) ** 2 / (size * rest)
    return (statistic - len(common)) / (2 * len(common)) ** 0.5


def shift(found: np.ndarray, expected: dict[tuple[int, int], float]) -> float:
    """How many standard errors the mean of all noise is off."""
    mean = sum(p * sum(key) for key, p in expected.items())
    variance = sum(p * (sum(key) - mean) ** 2 for key, p in expected.items())
    return float((found.sum(axis=1).mean() - mean) / (variance / len(found)) ** 0.5)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("law", "low"), [(IntegerLaplace(2), [0, 0, 0, -1]), (IntegerGaussian(4), [-LARGEST, -1, 0, 0])]
)
def test_parts_draw_the_conditional_law(law, low):
    assert abs(distance(drawn(law, low, 400), weights(law, low))) < 5


@pytest.mark.slow
def test_parts_are_accepted_together(monkeypatch):
    """Bounds that messages leave out reject half of all tables: the law is right only if all parts begin again."""
    law, low = IntegerLaplace(6), [-3, -3, -3, -3]
    monkeypatch.setattr(leaf_kinds, "limits", lambda *_: np.array([[3], [180]]))
    monkeypatch.setattr(messages, "SELDOM", np.inf)
    expected = weights(law, low)
    assert abs(shift(drawn(law, low, 400), expected)) < 5
    assert shift(drawn(law, low, 400, alone=True), expected) < -6
