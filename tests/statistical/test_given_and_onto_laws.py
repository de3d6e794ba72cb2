"""Draws of every way against the exact law of the enumeration oracle: the right law is accepted, a wrong one rejected.

For each law of integer noise × verb × constraint the oracle lists every output with its exact probability; draws are
counted and compared by Pearson's test. The same draws must reject the law of noise with a scale 30 % off. Seeds are
fixed; a fresh seed would fail a right sampler with probability 10^−6 per test.
"""

import functools
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

import holdfast as hf
from holdfast import beliefs

ALARM = 1e-6
DRAWS = 8_000


def pearson(draws, law):
    """Pearson's test of counted outputs against exact probabilities; rare outputs share a cell."""
    outputs, counts = np.unique(draws, axis=0, return_counts=True)
    seen = {tuple(int(v) for v in output): int(count) for output, count in zip(outputs, counts, strict=True)}
    observed, wanted, rest_seen, rest_wanted = [], [], sum(seen.values()), 1.0
    for output, mass in law.masses.items():
        expected = mass / law.total * len(draws)
        if expected >= 25:
            count = seen.get(output, 0)
            observed.append(count)
            wanted.append(expected)
            rest_seen, rest_wanted = rest_seen - count, rest_wanted - mass / law.total
    impossible = [output for output in seen if output not in law.masses]
    assert len(impossible) <= DRAWS * 1e-4  # only outputs beyond the oracle's window
    if rest_wanted * len(draws) >= 5:
        observed.append(rest_seen)
        wanted.append(rest_wanted * len(draws))
    statistic = ((np.array(observed) - np.array(wanted)) ** 2 / np.array(wanted)).sum()
    return stats.chi2.sf(statistic, max(len(wanted) - 1, 1))


@functools.cache
def tables(kind, scales, tail=1e-6):
    parameters = [Fraction(s) if kind == "laplace" else Fraction(s) ** 2 for s in scales]
    return [beliefs.weights(kind, p, beliefs.reach_for(kind, p, tail), bits=128) for p in parameters]


TREE = hf.Hierarchy.from_parents([-1, 0, 0])
TOTAL = [[1, 1, 1]]

# name: query, scales, truth, constraint, what holds for an output, ways that may draw it
GIVEN = {
    "nothing": (hf.histogram(2), (1, Fraction(3, 2)), [3, 1], None, lambda z: True, "independent noise"),
    "exact total": (
        hf.histogram(3),
        (1, 1, 1),
        [2, 0, 5],
        hf.invariant(TOTAL),
        lambda z: sum(z) == 7,
        "tied_totals",
    ),
    "total by definition": (
        hf.histogram(3),
        (1, 1, 1),
        [2, 0, 5],
        hf.equals(TOTAL, [7]),
        lambda z: sum(z) == 7,
        "tied_totals",
    ),
    "unequal scales": (
        hf.histogram(3),
        (1, Fraction(1, 2), 1),
        [2, 0, 5],
        hf.invariant(TOTAL),
        lambda z: sum(z) == 7,
        "tied_totals",
    ),
    "parent and children": (
        hf.counts(TREE),
        (1, 1, 1),
        [5, 2, 3],
        hf.consistent(TREE),
        lambda z: z[0] == z[1] + z[2],
        "hierarchy",
    ),
    "one direction free": (hf.histogram(2), (1, 2), [4, 4], hf.equals([[1, -1]], [0]), lambda z: z[0] == z[1], "line"),
    "not negative": (hf.histogram(2), (1, Fraction(3, 2)), [0, 1], hf.nonnegative(), lambda z: min(z) >= 0, "boxes"),
    "between": (hf.histogram(2), (2, 1), [0, 3], hf.between(0, 3), lambda z: min(z) >= 0 and max(z) <= 3, "boxes"),
    "a fixed cell": (hf.histogram(2), (1, 1), [0, 3], hf.fixed(0, 0), lambda z: z[0] == 0, "boxes"),
    "an exact cell": (hf.histogram(2), (1, 1), [4, 3], hf.invariant([[1, 0]]), lambda z: z[0] == 4, "boxes, line"),
    "total, not negative": (
        hf.histogram(3),
        (1, 1, 1),
        [1, 0, 2],
        hf.invariant(TOTAL) & hf.nonnegative(),
        lambda z: sum(z) == 3 and min(z) >= 0,
        "tied_totals",
    ),
    "an order": (hf.histogram(2), (1, 1), [1, 2], hf.ordered([0, 1]), lambda z: z[0] <= z[1], "rejection"),
    "consistent, not negative": (
        hf.counts(TREE),
        (1, 1, 1),
        [1, 0, 1],
        hf.consistent(TREE) & hf.nonnegative(),
        lambda z: z[0] == z[1] + z[2] and min(z) >= 0,
        "hierarchy",
    ),
    "a union": (
        hf.histogram(2),
        (1, 1),
        [1, 1],
        hf.between(0, 1) | hf.between(3, 4),
        lambda z: {*z} <= {0, 1} or {*z} <= {3, 4},
        "enumeration, union",
    ),
    "an open union": (
        hf.histogram(2),
        (1, 1),
        [1, 1],
        hf.at_least([[1, 1]], [2]) | hf.at_least([[-1, -1]], [1]),
        lambda z: sum(z) >= 2 or sum(z) <= -1,
        "rejection",
    ),
    "two groups and a free cell": (
        hf.histogram(3),
        (1, 1, 2),
        [1, 1, 4],
        hf.invariant([[1, 1, 0]]),
        lambda z: z[0] + z[1] == 2,
        "free, line",
    ),
}


@pytest.mark.parametrize("kind", ["laplace", "gaussian"])
@pytest.mark.parametrize("name", GIVEN)
def test_given_draws_the_exact_conditional_law(kind, name):
    query, scales, truth, constraint, holds, ways = GIVEN[name]
    make = hf.laplace if kind == "laplace" else hf.gaussian
    base = make(query, scale=[float(s) for s in scales])
    mechanism = base if constraint is None else base.given(constraint)
    draws = mechanism.simulate(truth, DRAWS, rng=hf.seeded(11))
    assert set(mechanism.method.split(", ")) <= set(ways.split(", "))
    exact = beliefs.given(truth, tables(kind, scales), holds)
    assert all(holds(tuple(row)) for row in draws[:2000].tolist())
    assert pearson(draws, exact) > ALARM
    wrong = beliefs.given(truth, tables(kind, tuple(Fraction(13, 10) * Fraction(s) for s in scales)), holds)
    assert pearson(draws, wrong) < ALARM


ONTO = {
    "not negative": (hf.nonnegative(), lambda z: tuple(max(v, 0) for v in z)),
    "between": (hf.between(-1, 2), lambda z: tuple(min(max(v, -1), 2) for v in z)),
    "a fixed cell": (hf.fixed(0, 0) & hf.nonnegative(), lambda z: (0, max(z[1], 0))),
}


@pytest.mark.parametrize("kind", ["laplace", "gaussian"])
@pytest.mark.parametrize("norm", ["l1", "l2"])
@pytest.mark.parametrize("name", ONTO)
def test_onto_bounds_draws_the_exact_image(kind, norm, name):
    constraint, nearest = ONTO[name]
    make = hf.laplace if kind == "laplace" else hf.gaussian
    mechanism = make(hf.histogram(2), scale=1).onto(constraint, norm=norm)
    draws = mechanism.simulate([0, 1], DRAWS, rng=hf.seeded(12))
    assert draws.dtype == np.int64
    assert pearson(draws, beliefs.onto([0, 1], tables(kind, (1, 1)), nearest)) > ALARM
    wrong = tables(kind, (Fraction(13, 10), Fraction(13, 10)))
    assert pearson(draws, beliefs.onto([0, 1], wrong, nearest)) < ALARM


@functools.cache
def thrice_the_image(kind, scale):
    return beliefs.onto([2, 0, 5], tables(kind, (scale,) * 3), lambda z: tuple(3 * v - (sum(z) - 7) for v in z))


@pytest.mark.parametrize("kind", ["laplace", "gaussian"])
@pytest.mark.parametrize("constraint", [hf.invariant(TOTAL), hf.equals(TOTAL, [7])], ids=["invariant", "structural"])
def test_onto_a_total_draws_the_exact_image(kind, constraint):
    make = hf.laplace if kind == "laplace" else hf.gaussian
    truth = [2, 0, 5]
    mechanism = make(hf.histogram(3), scale=1).onto(constraint, integer=False)
    # Three times the projected value is whole: 3z − (Σz − 7).
    draws = np.rint(3 * mechanism.simulate(truth, DRAWS, rng=hf.seeded(13))).astype(np.int64)
    assert pearson(draws, thrice_the_image(kind, 1)) > ALARM
    assert pearson(draws, thrice_the_image(kind, Fraction(13, 10))) < ALARM


def test_a_sampler_that_forgets_the_constraint_is_caught():
    exact = beliefs.given([2, 0, 5], tables("laplace", (1, 1, 1)), lambda z: sum(z) == 7)
    projected = hf.laplace(hf.histogram(3), scale=1).onto(hf.invariant(TOTAL)).simulate([2, 0, 5], DRAWS, hf.seeded(14))
    rounded = np.rint(projected).astype(np.int64)
    rounded[:, 2] = 7 - rounded[:, :2].sum(axis=1)  # sums to 7, but follows the law of `onto`, not of `given`
    assert pearson(rounded, exact) < ALARM


def test_words_of_the_stream_decide_every_draw_alike():
    mechanism = hf.laplace(hf.histogram(5), scale=3).given(hf.invariant(np.ones((1, 5), dtype=int)))
    first = mechanism.noise(50, rng=hf.seeded(3))
    again = mechanism.noise(50, rng=hf.seeded(3))
    other = mechanism.noise(50, rng=hf.seeded(4))
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)
    assert (first.sum(axis=1) == 0).all()
