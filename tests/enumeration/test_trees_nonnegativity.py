"""THEORY H1 against full enumeration: all tables in a box, all outputs in a wide window, both directions."""

import itertools
from fractions import Fraction

import numpy as np
import pytest

import holdfast as hf

REACH = 18  # scales; weights beyond are below e^-18 of the largest


def random_tree(rng, leaves):
    """A random hierarchy (or forest) with so many leaves, any depths, in random node order."""
    parents = [-1]
    while True:
        parents = [-1] if rng.integers(4) else [-1, -1]
        while sum(i not in parents for i in range(len(parents))) < leaves:
            parents.append(int(rng.integers(len(parents))))
        if sum(i not in parents for i in range(len(parents))) == leaves and len(parents) <= 8:
            break
    return hf.Hierarchy.from_parents(parents)


def losses(tree, scales, truths, pairs, low=0, kind="laplace"):
    """Log-laws of every truth over leaf outputs ≥ low, and for each pair the two log-ratios."""
    count = len(tree.leaves)
    top = int(np.ceil(REACH * max(float(s) for s in scales if s is not None))) + max(map(max, truths))
    axis = np.arange(low, top + 1)
    grid = np.stack(np.meshgrid(*[axis] * count, indexing="ij"), axis=-1).reshape(-1, count)
    nodes = tree.sum_up(grid.T).T
    laws = {}
    for truth in truths:
        noise = np.abs(nodes - tree.sum_up(list(truth)))
        logs = np.zeros(len(grid))
        for v, scale in enumerate(scales):
            if scale is not None:
                logs -= noise[:, v] / float(scale) if kind == "laplace" else noise[:, v] ** 2 / (2 * float(scale) ** 2)
        laws[truth] = logs - (logs.max() + np.log(np.exp(logs - logs.max()).sum()))
    return laws, {pair: float(np.abs(laws[pair[0]] - laws[pair[1]]).max()) for pair in pairs}


def neighbours(truths, kind):
    known = set(truths)
    found = []
    for x in truths:
        for j in range(len(x)):
            up = tuple(v + (i == j) for i, v in enumerate(x))
            if kind == "add-remove":
                found.append((x, up))
            else:
                found += [(x, tuple(v - (i == k) for i, v in enumerate(up))) for k in range(len(x)) if k != j]
    return [pair for pair in found if pair[1] in known]


@pytest.mark.parametrize("seed", range(40))
def test_the_price_of_non_negativity_is_exact(seed):
    rng = np.random.default_rng([7, seed])
    count = int(rng.integers(1, 4))
    tree = random_tree(rng, count)
    scales = [Fraction(int(rng.integers(1, 5)), 4) for _ in range(tree.n)]
    for v in range(tree.n):
        if not tree.is_leaf[v] and rng.integers(4) == 0:
            scales[v] = None
    mechanism = hf.laplace(hf.counts(tree), scale=[np.inf if s is None else float(s) for s in scales]).given(
        hf.consistent(tree) & hf.nonnegative()
    )
    truths = list(itertools.product(range(3), repeat=count))
    _, found = losses(tree, scales, truths, neighbours(truths, "add-remove"))
    worst = max(found.values())
    assert worst <= mechanism.guarantee.epsilon + 1e-7
    assert mechanism.guarantee.exact
    assert worst >= mechanism.guarantee.epsilon - 1e-6
    assert mechanism.guarantee.status == "proved"


@pytest.mark.parametrize("seed", range(15))
def test_replaced_records_stay_within_their_bound(seed):
    rng = np.random.default_rng([8, seed])
    count = int(rng.integers(2, 4))
    tree = random_tree(rng, count)
    scales = [Fraction(int(rng.integers(1, 5)), 4) for _ in range(tree.n)]
    mechanism = hf.laplace(hf.counts(tree), scale=[float(s) for s in scales], neighbours="replace-one").given(
        hf.consistent(tree) & hf.nonnegative()
    )
    truths = list(itertools.product(range(3), repeat=count))
    _, found = losses(tree, scales, truths, neighbours(truths, "replace-one"))
    assert max(found.values()) <= mechanism.guarantee.epsilon + 1e-7


@pytest.mark.parametrize("seed", range(10))
def test_gaussian_noise_pays_nothing_at_integer_orders(seed):
    rng = np.random.default_rng([9, seed])
    count = int(rng.integers(1, 4))
    tree = random_tree(rng, count)
    scales = [Fraction(int(rng.integers(2, 6)), 4) for _ in range(tree.n)]
    mechanism = hf.gaussian(hf.counts(tree), scale=[float(s) for s in scales]).given(
        hf.consistent(tree) & hf.nonnegative()
    )
    assert mechanism.guarantee.orders == "integer"
    truths = list(itertools.product(range(3), repeat=count))
    pairs = neighbours(truths, "add-remove")
    laws, _ = losses(tree, scales, truths, pairs, kind="gaussian")
    for x, y in pairs:
        for p, q in ((laws[x], laws[y]), (laws[y], laws[x])):
            for order in (2, 3, 6):
                divergence = np.log(np.exp(order * p + (1 - order) * q).sum()) / (order - 1)
                assert divergence <= order * mechanism.guarantee.rho + 1e-9


@pytest.mark.parametrize(("epsilon", "price"), [(0.5, 0.3817), (1, 0.6324), (2, 0.9873), (4, 1.3181)])
def test_the_city_of_reference(epsilon, price):
    """THEORY H1: the 1–6–263 tree (43, 61, 1, 69, 69, 20 zones), λ = 3/ε everywhere."""
    parents = [-1] + [0] * 6 + [1 + i for i, k in enumerate((43, 61, 1, 69, 69, 20)) for _ in range(k)]
    tree = hf.Hierarchy.from_parents(parents)
    mechanism = hf.laplace(hf.counts(tree), epsilon=epsilon).given(hf.consistent(tree) & hf.nonnegative())
    assert mechanism.guarantee.epsilon - epsilon == pytest.approx(price, abs=5e-5)
    total = mechanism.calibrated(epsilon=epsilon).guarantee.epsilon
    assert epsilon * (1 - 1e-9) <= total <= epsilon


def test_a_price_a_little_too_small_is_caught():
    tree = hf.Hierarchy.from_parents([-1, 0, 0])
    mechanism = hf.laplace(hf.counts(tree), scale=1).given(hf.consistent(tree) & hf.nonnegative())
    truths = list(itertools.product(range(3), repeat=2))
    _, found = losses(tree, [Fraction(1)] * 3, truths, neighbours(truths, "add-remove"))
    assert max(found.values()) > mechanism.guarantee.epsilon * 0.9999
    assert max(found.values()) > 2.0 + 1e-3  # the base's ε alone


def test_bounds_of_their_own_on_inner_nodes_are_not_priced_by_h1():
    """H1 is for trees with bounds on leaves: everything else doubles ε, or is certified where it is small."""
    tree = hf.Hierarchy.from_parents([-1, 0, 0])
    base = hf.laplace(hf.counts(tree), epsilon=1)
    assert 1.27 < base.given(hf.consistent(tree) & hf.between(0, 9)).guarantee.epsilon < 1.4


def test_another_tree_than_the_querys_is_not_priced():
    """The price is for the hierarchy that was asked; a different consistency keeps the general bound."""
    asked, other = hf.Hierarchy.from_parents([-1, 0, 0, 0]), hf.Hierarchy.from_parents([-1, 0, 0, 1])
    base = hf.laplace(hf.counts(asked), scale=1)
    try:
        statement = base.given(hf.consistent(other) & hf.nonnegative()).guarantee
    except hf.Refused:
        return
    assert "hierarchy" not in statement.because
