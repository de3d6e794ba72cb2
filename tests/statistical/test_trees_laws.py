"""Draws on hierarchies against full enumeration: the right law is accepted, a scale 30 % off is rejected."""

import numpy as np
import pytest

import holdfast as hf
from samplers import enumerated, pearson

ALARM = 1e-6
DRAWS = 5_000

THREE = hf.Hierarchy.from_parents([-1, 0, 0, 1, 1, 2])
FOREST = hf.Hierarchy.from_parents([-1, -1, 0, 0, 1])

# name: tree, scale per node (inf: not measured), truth of the leaves, extra constraint
CASES = {
    "three levels": (THREE, [1, 1, 1, 1, 1, 1], [2, 0, 1], None),
    "scales per node": (THREE, [2, 1, 0.5, 1, 0.75, 1.5], [2, 0, 1], None),
    "an unmeasured root": (THREE, [np.inf, 1, 1, 1, 1, 1], [2, 0, 1], None),
    "an unmeasured middle": (THREE, [1, np.inf, 1, 1, 1, 1], [2, 0, 1], None),
    "an exact root": (THREE, [1, 1, 1, 1, 1, 1], [2, 0, 1], hf.invariant(hf.exact_nodes(THREE, [0]))),
    "an exact middle": (THREE, [1, 1, 1, 1, 1, 1], [2, 0, 1], hf.invariant(hf.exact_nodes(THREE, [1]))),
    "an impossible leaf": (THREE, [1, 1, 1, 1, 1, 1], [2, 0, 1], hf.fixed(4, 0)),
    "a forest": (FOREST, [1, 1, 0.5, 1, 1], [0, 3, 1], None),
    "not negative": (THREE, [1, 1, 1, 1, 1, 1], [0, 0, 1], hf.nonnegative()),
    "between": (THREE, [1, 1, 1, 1, 1, 1], [0, 2, 1], hf.between(0, 2, at=THREE.leaves)),
    "one side of a linear row": (THREE, [1, 1, 1, 1, 1, 1], [1, 2, 1], hf.at_least([[0, 0, 0, 2, 0, 0]], [0])),
    "a bounded root": (THREE, [1, 1, 1, 1, 1, 1], [0, 2, 1], hf.between(2, 4, at=0)),
}


@pytest.mark.parametrize("kind", ["laplace", "gaussian"])
@pytest.mark.parametrize("name", CASES)
def test_given_on_a_hierarchy_draws_the_exact_law(kind, name):
    tree, scales, leaves, extra = CASES[name]
    make = hf.laplace if kind == "laplace" else hf.gaussian
    must = hf.consistent(tree) if extra is None else hf.consistent(tree) & extra
    mechanism = make(hf.counts(tree), scale=scales).given(must, method="hierarchy")
    draws = mechanism.simulate(tree.sum_up(leaves), DRAWS, rng=hf.seeded(21))
    assert np.array_equal(draws, tree.sum_up(draws[:, tree.leaves].T).T)
    law = enumerated(tree, kind, scales, leaves, extra, 10)
    assert pearson(draws[:, tree.leaves], law, 20) > ALARM
    assert pearson(draws[:, tree.leaves], enumerated(tree, kind, scales, leaves, extra, 10, factor=1.3), 20) < ALARM


def test_categories_are_independent_trees():
    tree = hf.Hierarchy.from_parents([-1, 0, 0])
    query = hf.counts(tree, by=2)
    mechanism = hf.gaussian(query, scale=1).given(hf.consistent(query))
    truth = query.answer([[1, 2], [3, 4]])
    draws = mechanism.simulate(truth, 2_000, rng=hf.seeded(3)).reshape(-1, 3, 2)
    assert np.array_equal(draws[:, 0], draws[:, 1] + draws[:, 2])
    noise = draws - truth.reshape(3, 2)
    assert abs(np.corrcoef(noise[:, 0, 0], noise[:, 0, 1])[0, 1]) < 6 / np.sqrt(2_000)


def test_large_uncut_groups_follow_theory_h3():
    """Variances of a group of 40 leaves under one root: exchangeable, and the sum has the law of the root."""
    tree = hf.Hierarchy.from_parents([-1, 0, 0] + [1] * 40 + [2] * 3)
    mechanism = hf.laplace(hf.counts(tree), scale=2).given(hf.consistent(tree))
    noise = mechanism.noise(20_000, rng=hf.seeded(5))
    assert np.array_equal(noise[:, 1], noise[:, 3:43].sum(axis=1))
    each = noise[:, 3:43].var(axis=0)
    assert each == pytest.approx(np.full(40, each.mean()), rel=0.15)
    errors = mechanism.standard_error()
    assert noise.std(axis=0) == pytest.approx(errors, rel=0.06)


@pytest.mark.parametrize("leaves", [[0] * 12, [0] * 11 + [10**15], [60, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 57]])
def test_adversarial_counts_are_drawn(leaves):
    """All zero, one enormous leaf, many zeros: the law is exact, so nothing but the bounds can be checked quickly."""
    tree = hf.Hierarchy.from_parents([-1, 0, 0] + [1] * 6 + [2] * 6)
    mechanism = hf.laplace(hf.counts(tree), scale=2).given(hf.consistent(tree) & hf.nonnegative())
    draws = mechanism.simulate(tree.sum_up(leaves), 50, rng=hf.seeded(6))
    assert draws.min() >= 0
    assert np.array_equal(draws, tree.sum_up(draws[:, tree.leaves].T).T)
    zeros = np.array(leaves) == 0
    # A zero-count leaf is geometric with ratio at most e^{−1/2}: its mean is below 1.6.
    assert draws[:, tree.leaves][:, zeros].mean() < 1.6


@pytest.mark.parametrize("kind", ["laplace", "gaussian"])
@pytest.mark.parametrize(
    "name", [name for name in CASES if CASES[name][3] is None or "exact" in name or "leaf" in name]
)
def test_errors_come_from_the_messages(kind, name):
    """Standard errors and quantiles against the enumerated law of every node."""
    tree, scales, leaves, extra = CASES[name]
    make = hf.laplace if kind == "laplace" else hf.gaussian
    must = hf.consistent(tree) if extra is None else hf.consistent(tree) & extra
    mechanism = make(hf.counts(tree), scale=scales).given(must, method="hierarchy")
    law = enumerated(tree, kind, scales, leaves, extra, 16)
    chances = np.array(list(law.values()))
    nodes = tree.sum_up(np.array(list(law)).T).T - tree.sum_up(leaves)
    assert mechanism.standard_error() ** 2 == pytest.approx(chances @ nodes**2, rel=2e-4, abs=1e-12)
    release = mechanism.release(tree.sum_up(leaves), rng=hf.seeded(1))
    for confidence in (0.5, 0.9, 0.99):
        reach = release.interval(confidence)[:, 1] - release.values
        for v in range(tree.n):
            size = np.abs(nodes[:, v])
            covered = chances[size <= reach[v]].sum()
            assert covered >= confidence - 1e-4
            if reach[v] > 0:  # and no shorter reach would do
                assert chances[size <= reach[v] - 1].sum() < confidence + 1e-4
