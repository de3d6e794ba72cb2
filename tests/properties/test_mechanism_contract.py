"""What every mechanism offers, through the public names."""

import pickle
from fractions import Fraction

import numpy as np
import pytest

import holdfast as hf

TREE = hf.Hierarchy.from_parents([-1, 0, 0, 1, 1, 1, 2, 2])
QUERY = hf.counts(TREE)
LEAVES = [1, 0, 2, 0, 3]
TRUTH = QUERY.answer(LEAVES)
TOTAL = hf.invariant(np.ones((1, 5), dtype=int))


def test_a_budget_is_met_exactly():
    for epsilon in (0.1, 1, 2.5, Fraction(1, 3)):
        assert Fraction(hf.laplace(QUERY, epsilon=epsilon).guarantee.epsilon) >= Fraction(epsilon)
        assert hf.laplace(QUERY, epsilon=epsilon).guarantee.epsilon == pytest.approx(float(epsilon), rel=2e-16)
    for rho in (0.1, 2):
        for integer in (True, False):
            assert hf.gaussian(QUERY, rho=rho, integer=integer).guarantee.rho == pytest.approx(rho, rel=2e-16)
    for integer in (True, False):
        statement = hf.gaussian(QUERY, epsilon=1, delta=1e-6, integer=integer).guarantee
        assert (statement.epsilon, statement.delta) == (1.0, 1e-6)


def test_shares_split_the_budget():
    mechanism = hf.laplace(QUERY, epsilon=1, shares={"level 0": 1, "level 1": 1, "level 2": 2})
    assert mechanism.guarantee.epsilon == 1.0
    assert mechanism.base.law.scale_values == (Fraction(4), Fraction(4), Fraction(2))
    by_depth = hf.laplace(QUERY, epsilon=1, shares={0: 1, 1: 1, 2: 2})
    assert by_depth.base.law.scale_values == mechanism.base.law.scale_values
    partly = hf.gaussian(QUERY, rho=1, shares={1: 0.25, 2: 0.75})
    assert partly.base.law.scale_values[0] is None
    assert partly.guarantee.rho == 1.0


def test_unmeasured_outputs_are_determined_by_the_others():
    base = hf.gaussian(QUERY, rho=1, shares={1: 0.25, 2: 0.75}, integer=False)
    for mechanism in (base.given(hf.consistent(TREE)), base.onto(hf.consistent(TREE))):
        release = mechanism.release(TRUTH, rng=hf.seeded(3))
        assert np.abs(release.values - TREE.sum_up(release.values[TREE.leaves])).max() < 1e-8
        assert np.isfinite(mechanism.standard_error()).all()
    # The unmeasured root must not carry its true value into the result.
    far = base.onto(hf.consistent(TREE)).simulate(TREE.sum_up([0, 0, 0, 0, 10_000]), 200, rng=hf.seeded(1))
    assert far[:, 0].std() > 0.5
    # given and onto are one law here as well: Gaussian noise, weighted least squares.
    given, onto = base.given(hf.consistent(TREE)), base.onto(hf.consistent(TREE))
    assert given.standard_error() == pytest.approx(onto.standard_error(), rel=1e-9)


def test_levels_may_have_their_own_scale():
    mechanism = hf.laplace(QUERY, scale={"level 0": 1, 1: 2, 2: 4})
    assert mechanism.guarantee.epsilon == 1.75
    assert mechanism.base.law.variances[0] < mechanism.base.law.variances[1] < mechanism.base.law.variances[3]


def test_given_twice_is_given_both():
    base = hf.laplace(hf.histogram(5), scale=1)
    twice = base.given(TOTAL).given(hf.nonnegative())
    both = base.given(TOTAL & hf.nonnegative())
    assert twice.guarantees == both.guarantees
    assert np.array_equal(twice.simulate(LEAVES, 5, hf.seeded(1)), both.simulate(LEAVES, 5, hf.seeded(1)))


def test_a_chain_of_given_and_onto_costs_nothing_more():
    base = hf.laplace(hf.histogram(5), epsilon=1)
    chain = base.given(hf.fixed(1, 0)).onto(hf.nonnegative())
    assert chain.guarantee.epsilon == 1.0
    draws = chain.simulate(LEAVES, 200, rng=hf.seeded(4))
    assert draws.dtype == np.int64
    assert draws.min() >= 0
    assert not draws[:, 1].any()


def test_what_was_asked_before_goes_on_to_hold():
    """given(a).onto(b) and onto(a).onto(b) hold a and b together, or are refused; nothing is dropped in silence."""
    base = hf.laplace(QUERY, epsilon=1)
    for mechanism in (base.given(hf.consistent(TREE)), base.onto(hf.consistent(TREE), integer=False)):
        both = mechanism.onto(hf.nonnegative())
        assert both.guarantee.epsilon == 1.0
        values = both.release(TRUTH, rng=hf.seeded(5)).values
        assert values.min() >= 0
        assert values == pytest.approx(TREE.sum_up(values[TREE.leaves]))
    with pytest.raises(hf.Refused, match="earlier onto"):
        base.onto(hf.consistent(TREE), integer=False).onto(hf.nonnegative(), integer=True)
    cells = hf.laplace(hf.histogram(4), epsilon=1).given(hf.equals([[1, 1, 1, 1]], [5]))
    values = cells.onto(hf.nonnegative()).release([1, 2, 2, 0], rng=hf.seeded(5)).values
    assert values.sum() == 5
    assert values.min() >= 0
    with pytest.raises(hf.Refused, match="cannot hold together"):
        hf.laplace(hf.histogram(2), epsilon=1).given(hf.fixed(0, 3)).onto(hf.between(0, 2))


def test_onto_after_an_invariant_keeps_only_the_shared_statement():
    mechanism = hf.laplace(hf.histogram(5), epsilon=1, integer=False).given(TOTAL)
    assert {s.scope for s in mechanism.guarantees} == {"subspace", "invariant-sharing"}
    assert {s.scope for s in mechanism.onto(hf.nonnegative()).guarantees} == {"invariant-sharing"}


@pytest.mark.parametrize("target", [0.5, 1.0, 3.0])
def test_calibrated_meets_its_total_from_below(target):
    mechanism = hf.laplace(hf.histogram(4), epsilon=1).given(hf.nonnegative())
    total = mechanism.calibrated(epsilon=target).guarantee.epsilon
    assert target * (1 - 1e-9) <= total <= target
    plain = hf.laplace(QUERY, scale=2).given(hf.consistent(TREE)).calibrated(epsilon=target).guarantee.epsilon
    assert target * (1 - 1e-9) <= plain <= target
    rho = hf.gaussian(QUERY, scale=2).given(hf.consistent(TREE)).calibrated(rho=target).guarantee.rho
    assert target * (1 - 1e-9) <= rho <= target


def test_calibrated_meets_epsilon_and_delta():
    mechanism = hf.gaussian(QUERY, epsilon=1, delta=1e-6).given(hf.consistent(TREE))
    assert mechanism.guarantee.epsilon > 1  # on the lattice only ρ is kept, and the conversion costs
    total = mechanism.calibrated(epsilon=1, delta=1e-6).guarantee
    assert 1 - 1e-9 <= total.epsilon <= 1
    assert total.delta <= 1e-6


def test_a_release_says_what_it_is():
    release = hf.laplace(hf.histogram(5), epsilon=1).given(TOTAL).release(LEAVES)
    assert release.values.dtype == np.int64
    assert release.values.sum() == sum(LEAVES)
    assert release.guarantee.scope == "invariant-sharing"
    assert not any("seed" in caveat for caveat in release.guarantee.caveats)
    seeded = hf.laplace(hf.histogram(5), epsilon=1).given(TOTAL).release(LEAVES, rng=hf.seeded(1))
    assert any("seed" in caveat for caveat in seeded.guarantee.caveats)
    assert not hasattr(release, "truth")


@pytest.mark.parametrize("backend", ["polars", "pandas", "pyarrow", None])
def test_a_release_becomes_a_frame(backend):
    release = hf.laplace(QUERY, epsilon=1).release(TRUTH, rng=hf.seeded(1))
    frame = release.to_frame(backend)
    assert list(frame.column_names if backend == "pyarrow" else frame.columns) == ["name", "value", "standard_error"]
    assert len(frame) == QUERY.n


MECHANISMS = {
    "independent integer": hf.laplace(hf.histogram(5), scale=3),
    "independent continuous": hf.gaussian(hf.histogram(5), scale=3, integer=False),
    "integer total": hf.laplace(hf.histogram(5), scale=3).given(TOTAL),
    "continuous total": hf.laplace(hf.histogram(5), scale=3, integer=False).given(TOTAL),
    "gaussian total": hf.gaussian(hf.histogram(5), scale=3, integer=False).given(TOTAL),
    "integer gaussian total": hf.gaussian(hf.histogram(5), scale=3).given(TOTAL),
    "projected": hf.laplace(hf.histogram(5), scale=3).onto(TOTAL),
    "uneven, projected": hf.laplace(hf.histogram(5), scale=[1, 2, 3, 4, 5]).onto(TOTAL),
    "a line and free cells": hf.laplace(hf.histogram(5), scale=3).given(hf.invariant([[1, 1, 0, 0, 0]])),
}


@pytest.mark.parametrize("name", MECHANISMS)
def test_standard_errors_and_intervals_tell_the_truth(name):
    mechanism = MECHANISMS[name]
    size = 10_000
    noise = mechanism.noise(size, rng=hf.seeded(7))
    errors = mechanism.standard_error()
    # Kurtosis of these laws is at most 6: a variance over N draws is within 6·√(5/N) of its mean.
    assert noise.var(axis=0) == pytest.approx(errors**2, rel=6 * np.sqrt(6 / size) + 0.02)
    assert np.abs(noise.mean(axis=0)).max() <= 6 * errors.max() / np.sqrt(size)
    release = mechanism.release(LEAVES, rng=hf.seeded(8))
    weights = np.array([1.0, -2.0, 0.5, 0.0, 3.0])
    estimate = release.estimate(weights)
    assert estimate.value == pytest.approx(release.values @ weights)
    assert (noise @ weights).std() == pytest.approx(estimate.standard_error, rel=0.05)
    for confidence in (0.5, 0.9, 0.99):
        tail = (1 - confidence) / 2
        reach = np.maximum(*(np.abs(release.spread.quantiles(p)) for p in (tail, 1 - tail)))
        around = np.column_stack([release.values - reach, release.values + reach])
        inside = 1 if mechanism.base.law.integer else 1e-9  # the ends of whole figures are whole
        assert np.abs(release.interval(confidence) - around).max() <= inside
        covered = (np.abs(noise) <= reach + 1e-9).mean(axis=0)
        slack = 6 * np.sqrt(confidence * (1 - confidence) / size) + (
            0.005 if "projected" in name or "gaussian total" in name else 0
        )
        assert (covered >= confidence - slack).all()
        if not mechanism.base.law.integer:  # whole numbers cannot cover exactly
            assert (covered <= confidence + slack + 0.002).all()


def test_a_real_workload_on_a_grid():
    query = hf.workload([[0.5, 0.25], [1.0, 0.0]], grid=Fraction(1, 4))
    truth = query.answer([3, 2])
    assert truth == pytest.approx([2.0, 3.0])
    assert query.sensitivity(1) == 1.5
    mechanism = hf.laplace(query, epsilon=1)
    assert mechanism.guarantee.epsilon == 1.0
    draws = mechanism.simulate(truth, 20_000, rng=hf.seeded(2))
    assert np.array_equal(draws * 4, np.rint(draws * 4))
    assert draws.std(axis=0) == pytest.approx(mechanism.standard_error(), rel=0.05)
    assert mechanism.standard_error() == pytest.approx([1.5 * np.sqrt(2)] * 2, rel=0.02)
    by_scale = hf.laplace(query, scale=1.5)
    assert by_scale.guarantee.epsilon == 1.0
    bounded = mechanism.given(hf.between(0, 4)).simulate(truth, 500, rng=hf.seeded(3))
    assert bounded.min() >= 0
    assert bounded.max() <= 4
    clipped = mechanism.onto(hf.between(0, 4)).simulate(truth, 500, rng=hf.seeded(3))
    assert (clipped.min(), clipped.max()) == (0, 4)


def test_a_query_known_by_its_sensitivities():
    query = hf.query(3, l1=2, l2=1)
    assert hf.laplace(query, scale=2).guarantee.epsilon == 1.0
    assert hf.gaussian(query, scale=2, integer=False).guarantee.mu == 0.5
    mechanism = hf.laplace(query, scale=2).given(hf.invariant([[1, 1, 1]]))
    assert mechanism.guarantee.scope == "invariant-sharing"
    assert any("sensitivities only" in caveat for caveat in mechanism.guarantee.caveats)


def test_image_is_the_map_itself():
    mechanism = hf.laplace(QUERY, epsilon=1).onto(hf.consistent(TREE), integer=False)
    noisy = np.array([7, 3, 3, 1, 0, 2, 0, 3])
    moved = mechanism.image(noisy)
    assert np.abs(moved - TREE.sum_up(moved[TREE.leaves])).max() < 1e-12
    fixed = hf.laplace(hf.histogram(3), epsilon=1).onto(hf.equals([[1, 1, 1]], [9]), integer=False)
    assert fixed.image([1, 2, 3]) == pytest.approx([2, 3, 4])
    assert hf.laplace(hf.histogram(3), epsilon=1).onto(hf.between(0, 2)).image([[-1, 1, 5], [0, 2, 9]]).tolist() == [
        [0, 1, 2],
        [0, 2, 2],
    ]


def test_many_independent_totals_are_drawn_at_once():
    groups = np.repeat(np.eye(40, dtype=int), 25, axis=1)
    mechanism = hf.laplace(hf.histogram(1000), scale=4).given(hf.invariant(groups))
    noise = mechanism.noise(20, rng=hf.seeded(9))
    assert not (groups @ noise.T).any()
    assert noise.std() == pytest.approx(mechanism.standard_error()[0], rel=0.05)
    assert mechanism.method == "tied_totals"


@pytest.mark.parametrize("name", ["independent integer", "integer total", "projected"])
def test_mechanisms_and_releases_can_be_stored(name):
    mechanism = MECHANISMS[name]
    release = mechanism.release(LEAVES, rng=hf.seeded(8))
    interval = release.interval()
    again = pickle.loads(pickle.dumps(release))
    assert np.array_equal(again.values, release.values)
    assert again.guarantees == release.guarantees
    assert np.allclose(again.interval(), interval)
    stored = pickle.loads(pickle.dumps(mechanism))
    assert np.array_equal(stored.noise(3, rng=hf.seeded(1)), mechanism.noise(3, rng=hf.seeded(1)))
    tree = hf.laplace(QUERY, epsilon=1).given(hf.consistent(TREE))
    tree.release(TRUTH, rng=hf.seeded(1))
    assert np.array_equal(pickle.loads(pickle.dumps(tree)).noise(3, hf.seeded(2)), tree.noise(3, hf.seeded(2)))
