"""Draws given a union have the exact mixture law, by every kind of side, and a named wrong law is rejected."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

import holdfast as hf

ALARM = 1e-6
DRAWS = 6_000
TREE = hf.Hierarchy.from_parents([-1, 0, 0])
SUM = [[1, 1, 1]]

UNIONS = {
    "boxes, one far": (2, (1, 2), [4, 1], hf.between(0, 1) | (hf.between(3, None, at=0) & hf.nonnegative(at=1))),
    "fixed and free": (2, (1, 2), [1, 3], hf.fixed(0, 1) | (hf.fixed(0, 3) & hf.between(2, None, at=1))),
    "totals": (3, (1, 1, 1), [1, 2, 0], hf.equals(SUM, [3]) | hf.equals(SUM, [5])),
    "signs": (3, (1, 1, 1), [1, 2, 0], hf.equals([[1, -1, 1]], [-1]) | hf.equals([[2, -2, 2]], [4])),
    "lines": (2, (1, 2), [4, 1], hf.equals([[1, -1]], [0]) | hf.equals([[1, -1]], [3])),
    "lines in space": (
        3,
        (1, 2, 1),
        [4, 1, 1],
        hf.equals([[1, -1, 0], [0, 1, -2]], [0, 1]) | hf.equals([[1, -1, 0], [0, 1, -2]], [3, -1]),
    ),
    "lines within bounds": (
        2,
        (1, 2),
        [1, 1],
        (hf.equals([[1, -1]], [0]) | hf.equals([[2, 3]], [12])) & hf.nonnegative(),
    ),
    "listed": (3, (1, 1, 2), [1, 1, 1], (hf.equals(SUM, [3]) | hf.at_least([[-1, -1, -1]], [-1])) & hf.nonnegative()),
    "a total and a bound": (
        3,
        (1, 1, 2),
        [1, 1, 1],
        hf.equals([[1, 1, 0]], [2]) | (hf.equals([[1, 1, 0]], [4]) & hf.between(0, 1, at=2)),
    ),
}


#: Sides with rows and without end: tables are drawn again until they lie on one.
WITHOUT_END = {"totals", "signs", "lines", "lines in space", "lines within bounds", "a total and a bound"}


def law_of(scales, truth, union):
    """The law of all outputs up to 13 beside the truth, in doubles."""
    outputs = np.stack(np.meshgrid(*[np.arange(x - 13, x + 14) for x in truth], indexing="ij"), axis=-1)
    outputs = outputs.reshape(-1, len(truth))
    outputs = outputs[union.system(len(truth)).holds(outputs)]
    weights = np.exp(-(np.abs(outputs - truth) / np.array(scales, dtype=float)).sum(axis=1))
    return dict(zip(map(tuple, outputs.tolist()), (weights / weights.sum()).tolist(), strict=True))


def p_value(draws, law):
    seen = Counter(map(tuple, draws.tolist()))
    likely = [z for z in law if law[z] * len(draws) > 8]
    expected = np.array([law[z] for z in likely])
    observed = np.array([seen[z] for z in likely], dtype=float)
    if 1 - expected.sum() > 1e-4:
        expected, observed = np.append(expected, 1 - expected.sum()), np.append(observed, len(draws) - observed.sum())
    return stats.chisquare(observed, expected * observed.sum() / expected.sum()).pvalue


@pytest.mark.parametrize("name", UNIONS)
def test_a_union_is_drawn_from_its_exact_law(name):
    n, scales, truth, union = UNIONS[name]
    mechanism = hf.laplace(hf.histogram(n), scale=list(scales)).given(union)
    assert mechanism.method == ("rejection" if name in WITHOUT_END else "union")
    draws = mechanism.simulate(truth, DRAWS, rng=hf.seeded(5))
    assert union.system(n).holds(draws).all()
    assert p_value(draws, law_of(scales, truth, union)) > ALARM
    wrong = law_of([Fraction(13, 10) * s for s in scales], truth, union)
    assert p_value(draws, wrong) < ALARM


def test_a_hierarchy_without_end_is_drawn_from_its_exact_law():
    union = hf.consistent(TREE) & (hf.between(None, 2, at=0) | hf.between(5, None, at=0))
    mechanism = hf.laplace(hf.counts(TREE), scale=[1, 1, 2]).given(union)
    draws = mechanism.simulate([2, 1, 1], DRAWS, rng=hf.seeded(3))
    assert mechanism.method == "rejection"
    assert p_value(draws, law_of((1, 1, 2), [2, 1, 1], union)) > ALARM
    assert p_value(draws, law_of((1, 1, 3), [2, 1, 1], union)) < ALARM


def test_many_outputs_are_drawn_where_no_vector_would_ever_be_accepted():
    """500 outputs: the union has probability about 2^-500, and its sides weigh about the same."""
    n = 500
    union = (hf.between(0, 9, at=0) | hf.between(11, None, at=0)) & hf.nonnegative()
    truth = np.zeros(n, dtype=int)
    truth[0] = 9
    draws = hf.laplace(hf.histogram(n), scale=2).given(union).simulate(truth, 4_000, rng=hf.seeded(2))
    assert draws.min() == 0
    assert not (draws[:, 0] == 10).any()
    ratio = np.exp(-0.5)
    weights = {z: ratio ** abs(z - 9) for z in range(200) if z != 10}
    total = sum(weights.values())
    law = {(z,): weight / total for z, weight in weights.items()}
    assert p_value(draws[:, :1], law) > ALARM
    rest = draws[:, 1:].mean()
    assert abs(rest - ratio / (1 - ratio)) < 6 * 2.6 / np.sqrt(4_000 * (n - 1))


def test_continuous_noise_given_two_intervals():
    union = hf.between(0, 1) | hf.between(Fraction(5, 2), None)
    draws = (
        hf.laplace(hf.histogram(1), scale=2, integer=False).given(union).simulate([1], 20_000, rng=hf.seeded(4))[:, 0]
    )
    assert ((draws >= 0) & (draws <= 1) | (draws >= 2.5)).all()
    low, high = 1 - np.exp(-0.5), np.exp(-0.75)

    def cdf(z):
        below = np.where(z >= 1, low, np.exp((z - 1) / 2) - np.exp(-0.5))
        return (np.where(z < 0, 0, below) + np.where(z > 2.5, high - np.exp(-(z - 1) / 2), 0)) / (low + high)

    assert stats.kstest(draws, cdf).pvalue > ALARM
    assert stats.kstest(draws, lambda z: cdf(z) ** 1.1).pvalue < ALARM
