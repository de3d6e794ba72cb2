"""Errors and statements on hierarchies with leaves that are not measured, against all tables."""

import numpy as np
import pytest

import holdfast as hf
from free_leaves import BOUNDED, CASES, THREE, TRUTH, law, mechanism, tables


@pytest.mark.parametrize("kind", ["laplace", "gaussian"])
@pytest.mark.parametrize("name", CASES)
def test_errors_are_those_of_enumeration(name, kind):
    tree = CASES[name][0]
    made = mechanism(CASES[name], kind)
    nodes = tables(tree)
    chances = law(CASES[name], kind, nodes)
    noise = nodes - tree.sum_up(TRUTH)
    assert made.standard_error() == pytest.approx(np.sqrt(noise.T**2 @ chances), rel=1e-8, abs=1e-8)
    release = made.release(tree.sum_up(TRUTH), rng=hf.seeded(1))
    for confidence in (0.5, 0.9, 0.99):
        below, above = release.values - release.interval(confidence).T[::-1]
        tail = (1 - confidence) / 2
        for v in range(tree.n):
            assert chances[noise[:, v] < below[v]].sum() <= tail + 1e-9
            assert chances[noise[:, v] <= below[v]].sum() > tail - 1e-9
            assert chances[noise[:, v] > above[v]].sum() <= tail + 1e-9
            assert chances[noise[:, v] >= above[v]].sum() > tail - 1e-9


@pytest.mark.slow
@pytest.mark.parametrize("name", ["up to the root", "two free leaves", "up to an exact root", "a forest"])
def test_weighted_sums(name):
    """One output, and weights on all."""
    tree = CASES[name][0]
    nodes = tables(tree)
    chances = law(CASES[name], "laplace", nodes)
    noise = nodes - tree.sum_up(TRUTH)
    release = mechanism(CASES[name], "laplace").release(tree.sum_up(TRUTH), rng=hf.seeded(1))
    for weights in [*np.eye(tree.n), np.array([0.5, 1, -1, 2, 1.5, -0.5])[: tree.n]]:
        wanted = np.sqrt((noise @ weights) ** 2 @ chances)
        assert release.estimate(weights).standard_error == pytest.approx(wanted, rel=1e-7)


def ratio(case, first, second):
    """The largest |log p/p′| over all tables for two truths of the leaves."""
    nodes = tables(case[0], reach=20)
    one, other = (law(case, "laplace", nodes, leaves) for leaves in (first, second))
    assert np.array_equal(one > 0, other > 0)
    return np.abs(np.log(one[one > 0] / other[one > 0])).max()


def test_a_leaf_that_is_not_measured_costs_nothing():
    case = CASES["up to the root"]
    for leaf, epsilon in ((0, 1 / 0.75 + 1 / 0.625), (1, 1 / 0.75), (2, 1 / 0.75 + 2 / 0.5)):
        assert ratio(case, TRUTH, TRUTH + np.eye(3, dtype=int)[leaf]) == pytest.approx(epsilon, rel=1e-9)
    assert mechanism(case, "laplace").guarantee.epsilon == pytest.approx(1 / 0.75 + 2 / 0.5, rel=1e-12)
    # where only records of the free leaf can come and go, they cost what is measured above it
    alone = (THREE, case[1], hf.fixed([3, 5], [2, 1]))
    assert mechanism(alone, "laplace").guarantee.epsilon == pytest.approx(1 / 0.75, rel=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("name", BOUNDED)
def test_statements_given_bounds_hold(name):
    case = BOUNDED[name]
    epsilon = mechanism(case, "laplace").guarantee.epsilon
    possible = [np.array([a, b, c]) for a in (0, 1, 3) for b in (0, 1) for c in (0, 1)]
    system = case[2].system(6)
    found = [
        ratio(case, leaves, leaves + move)
        for leaves in possible
        for move in np.eye(3, dtype=int)
        if system.holds(THREE.sum_up(leaves)) and system.holds(THREE.sum_up(leaves + move))
    ]
    assert len(found) > 3
    assert 0.4 * epsilon < max(found) <= epsilon * (1 + 1e-9)


@pytest.mark.parametrize("name", BOUNDED)
@pytest.mark.parametrize("bounded", [False, True])
def test_integer_gaussian_noise_keeps_rho(name, bounded):
    case = BOUNDED[name] if bounded else (*BOUNDED[name][:2], None)
    rho = mechanism(case, "gaussian").guarantee.rho
    nodes = tables(THREE, reach=12)
    divergences = []
    for order in (2, 4):
        for move in np.eye(3, dtype=int):
            one, other = law(case, "gaussian", nodes), law(case, "gaussian", nodes, TRUTH + move)
            inside = (one > 1e-280) & (other > 1e-280)
            moment = (one[inside] * (one[inside] / other[inside]) ** (order - 1)).sum()
            divergences.append(np.log(moment) / (order - 1) / order)
    assert 0.8 * rho < max(divergences) <= rho * (1 + 1e-9)
