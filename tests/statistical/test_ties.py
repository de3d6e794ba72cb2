"""Ties in whole tables are decided by a public coin: no output gains, and the coin is all that decides."""

import numpy as np
import pytest

import holdfast as hf

TREE = hf.Hierarchy.from_parents([-1, 0, 0, 1, 1, 1, 2, 2])
CROSSED = np.vstack([np.kron(np.eye(2), np.ones(3)), np.kron(np.ones(2), np.eye(3))]).astype(int)
#: Equalities alone: by symmetry no output has a bias, whatever rule decides (docs/theory/update-in-general.md).
CASES = {
    "one sum": (hf.histogram(4), hf.equals([[1, 1, 1, 1]], [40]), {}),
    "one sum, L1": (hf.histogram(4), hf.equals([[1, 1, 1, 1]], [40]), {"norm": "l1"}),
    "hierarchy": (hf.counts(TREE), hf.consistent(TREE), {}),
    "hierarchy, L1": (hf.counts(TREE), hf.consistent(TREE), {"norm": "l1"}),
    "level by level": (hf.counts(TREE), hf.consistent(TREE), {"method": "topdown"}),
    "network": (hf.margins((2, 3)), hf.equals(CROSSED, [30, 30, 20, 20, 20]), {}),
}
SIZE = 1_500
#: Standard errors that a mean of SIZE tables may be away from 0: with some 60 means, a false-alarm rate below 1e-6.
MOST = 6.0


def truth_of(query):
    return query.answer(np.full(query.cells, 10))


def worst(errors):
    """The largest bias in standard errors."""
    return np.abs(errors.mean(axis=0) / np.maximum(errors.std(axis=0) / np.sqrt(len(errors)), 1e-9)).max()


@pytest.mark.parametrize("name", CASES)
def test_no_output_has_a_bias(name):
    query, constraint, how = CASES[name]
    truth = truth_of(query)
    mechanism = hf.laplace(query, scale=1).onto(constraint, **how)
    errors = mechanism.simulate(truth, SIZE, rng=hf.seeded(3)) - truth
    assert worst(errors) < MOST


@pytest.mark.parametrize("name", ["one sum", "hierarchy"])
def test_one_coin_for_all_releases_would_be_biased(name):
    """What the test above can see: the rule of a fixed coin favours the same outputs every time."""
    query, constraint, how = CASES[name]
    truth = truth_of(query)
    base = hf.laplace(query, scale=1)
    noisy = truth + base.noise(4 * SIZE, rng=hf.seeded(3))
    assert worst(base.onto(constraint, **how).image(noisy) - truth) > MOST


def test_ordered_values_are_rounded_up_as_often_as_down():
    """Two values out of order by one have the mean half a count away: up or down by the coin."""
    mechanism = hf.laplace(hf.histogram(2), scale=1).onto(hf.ordered([0, 1]))
    assert sorted(mechanism.image([6, 5], ties=coin).tolist() for coin in (0, 1)) == [[5, 5], [6, 6]]
    absolute = hf.laplace(hf.histogram(2), scale=1).onto(hf.ordered([0, 1]), norm="l1")
    assert sorted(absolute.image([9, 5], ties=coin).tolist() for coin in (0, 1)) == [[5, 5], [9, 9]]


def test_sides_equally_near_are_chosen_by_the_coin():
    union = hf.fixed([0], [0]) | hf.fixed([0], [10])
    mechanism = hf.laplace(hf.histogram(1), scale=1).onto(union)
    assert [int(mechanism.image([5], ties=coin)[0]) for coin in (0, 1)] == [0, 10]


@pytest.mark.parametrize("name", CASES)
def test_a_release_says_its_coin_and_the_coin_gives_it_again(name):
    query, constraint, how = CASES[name]
    mechanism = hf.laplace(query, scale=1).onto(constraint, **how)
    made = [mechanism.release(truth_of(query), rng=rng) for rng in (hf.seeded(4), hf.seeded(4), None, None)]
    assert made[0].ties == made[1].ties
    assert np.array_equal(made[0].values, made[1].values)
    assert made[2].ties != made[3].ties
    for release in made:
        assert 0 <= release.ties < 2**64
        assert np.array_equal(mechanism.image(release.measurements, ties=release.ties), release.values)


def test_the_coin_comes_after_the_noise():
    """The noise under a seed is what it is without a move, and tables without ties have no coin."""
    query = hf.histogram(3)
    base = hf.laplace(query, scale=2)
    moved = base.onto(hf.equals([[1, 1, 1]], [30])).release([10, 10, 10], rng=hf.seeded(5))
    assert np.array_equal(moved.measurements, base.release([10, 10, 10], rng=hf.seeded(5)).values)
    assert base.release([10, 10, 10], rng=hf.seeded(5)).ties is None
    assert base.onto(hf.equals([[1, 1, 1]], [30]), integer=False).release([10, 10, 10]).ties is None
