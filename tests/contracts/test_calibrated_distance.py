"""How near draws must come to a law that no way draws exactly: asked for, chosen, carried along and paid for."""

from __future__ import annotations

import math
import pickle
from fractions import Fraction

import numpy as np
import pytest

import holdfast as hf
from holdfast.given.near import walk
from holdfast.given.problem import LEAST_TAU, PRICE, TAU, needed_tau, refuse_rounding

TWO_SUMS = hf.invariant([[1, 1, 1, 1, 1, 1], [1, 2, 3, 4, 5, 6]])


def walking(scale=1.0, **how):
    return hf.laplace(hf.histogram(6), scale=scale).given(TWO_SUMS, method="walk", **how)


def distance(mechanism):
    return sum(each.distance for each in mechanism.source.plan.evidence)


def test_the_distance_asked_for_is_paid_for():
    for tau in (1e-3, 1e-8):
        statement = walking(tau=tau).guarantee
        assert statement.epsilon == 4.0
        assert statement.delta == statement.numerical_delta
        assert Fraction(statement.delta) >= (1 + Fraction(math.e) ** 4) * Fraction(tau) * (1 - Fraction(1, 10**12))
        assert statement.delta == pytest.approx((1 + math.exp(4)) * tau, rel=1e-12)
        assert statement.status == "estimated"
        assert any(f"{tau:.3g}" in caveat for caveat in statement.caveats)


def test_the_distance_travels():
    """Through pickles, words, more constraints, moves and calibration."""
    mechanism = walking(tau=1e-8)
    assert "within 1e-08" in repr(mechanism)
    assert "within" not in repr(walking())
    again = pickle.loads(pickle.dumps(mechanism))
    assert again.guarantee == mechanism.guarantee
    more = mechanism.given(hf.invariant([[0, 0, 0, 0, 0, 1]]), method="walk")
    assert distance(more) == 1e-8
    assert distance(mechanism.given(hf.invariant([[0, 0, 0, 0, 0, 1]]), method="walk", tau=1e-7)) == 1e-7
    moved = mechanism.onto(hf.nonnegative())
    assert moved.guarantee.numerical_delta == mechanism.guarantee.delta
    assert distance(mechanism.calibrated(epsilon=1)) == 1e-8


def test_large_epsilon_gets_a_smaller_distance():
    """At ε = 8 a distance of 1e-6 would cost a delta of 0.003."""
    for scale, epsilon in ((4, 1.0), (0.5, 8.0)):
        statement = walking(scale).guarantee
        assert statement.epsilon == epsilon
        assert 0 < statement.delta <= PRICE
    assert distance(walking(4)) == TAU
    assert distance(walking(0.5)) == 1e-9


def test_a_small_delta_asked_for_leaves_room():
    for delta in (1e-5, 1e-8):
        mechanism = walking().calibrated(epsilon=1, delta=delta)
        assert mechanism.guarantee.delta <= delta
        assert mechanism.guarantee.epsilon == pytest.approx(1, rel=1e-9)
    noise = hf.gaussian(hf.histogram(6), epsilon=1, delta=1e-6).given(TWO_SUMS, method="walk")
    assert noise.guarantee.delta <= 1e-6
    assert 0 < noise.guarantee.numerical_delta <= 0.5e-6


def test_nothing_is_released_where_the_distance_costs_everything():
    mechanism = walking(0.12, tau=1e-4)
    with pytest.raises(hf.Refused, match="delta of 1 or more"):
        mechanism.release([1] * 6)
    assert all(statement.void for statement in mechanism.guarantees)
    costly = walking(0.3, tau=1e-8).guarantee
    assert costly.delta > PRICE
    assert any("grows as e to the epsilon" in caveat for caveat in costly.caveats)


def test_rounding_sets_a_floor():
    """A distance below what rounding may add is neither chosen nor granted."""
    mechanism = walking(0.2)
    problem = mechanism.source.plan.shares[0].problem
    assert problem.tau == walk.least_tau(problem) > needed_tau(20.0, PRICE)
    with pytest.raises(hf.Refused, match="tau must be at least"):
        walking(0.2, tau=1e-15).release([1] * 6)
    with pytest.raises(hf.Refused, match="rounding in 30 steps"):
        refuse_rounding(1e-9, 1e-10, 30)
    refuse_rounding(1e-8, 1e-10, 30)
    exact = hf.invariant(hf.exact_margins((3, 3), [(0,), (1,)]))
    table = hf.laplace(hf.margins((3, 3)), scale=4)
    assert table.given(exact, tau=1e-10).guarantee == table.given(exact).guarantee  # proved, far below
    with pytest.raises(hf.Refused, match=r"tau must be at least 1\.37e-11"):
        table.given(exact, tau=1e-13).release(np.ones(9, dtype=int))


def test_exact_draws_need_no_distance():
    statement = hf.laplace(hf.histogram(4), scale=1).given(hf.invariant([[1, 1, 1, 1]]), tau=1e-3).guarantee
    assert (statement.delta, statement.status) == (0.0, "proved")


@pytest.mark.slow
def test_shorter_distances_are_walked_longer():
    steps = []
    for tau in (1e-3, 1e-8):
        problem = walking(0.7, tau=tau).source.plan.shares[0].problem
        steps.append(walk._run(problem, None).steps)
    assert steps[1] > 1.5 * steps[0]


@pytest.mark.parametrize(("tau", "sentence"), [(0, "above 0"), (1e-2, "between"), (1e-16, "between"), ("x", "number")])
def test_what_is_not_a_distance_is_refused(tau, sentence):
    with pytest.raises(hf.Refused, match=sentence):
        walking(tau=tau)


def test_the_distance_that_epsilon_needs():
    assert needed_tau(0.0, PRICE) == TAU
    assert needed_tau(1000.0, PRICE) == LEAST_TAU
    for epsilon in (2.1, 3.0, 8.0, 14.0):
        tau = needed_tau(epsilon, PRICE)
        assert (1 + math.exp(epsilon)) * tau <= PRICE
        assert tau == TAU or (1 + math.exp(epsilon)) * 10 * tau > PRICE
