"""Continuous Gaussian noise on hierarchies in two passes, against the dense covariance."""

import numpy as np
import pytest
from scipy import linalg

import holdfast as hf
from holdfast.given.exact.normal import gaussian_tree

INF = np.inf


def random_parents(rng):
    """A random forest of one to three trees, nodes in random order."""
    n, roots = int(rng.integers(1, 14)), int(rng.integers(1, 4))
    parents = np.array([-1 if i < roots else int(rng.integers(i)) for i in range(n)])
    place = rng.permutation(n)
    shuffled = np.empty(n, int)
    shuffled[place] = np.where(parents < 0, -1, place[parents])
    return shuffled


def dense_covariance(rows, variances):
    """Q(QᵀΣ⁻¹Q)⁻¹Qᵀ on the null space of the rows; None where it does not exist."""
    basis = linalg.null_space(rows) if len(rows) else np.eye(variances.size)
    if basis.shape[1] == 0:
        return np.zeros((variances.size, variances.size))
    precision = basis.T @ (basis / variances[:, None])
    if np.linalg.eigvalsh(precision)[0] < 1e-9 * max(1.0, np.linalg.eigvalsh(precision)[-1]):
        return None
    return basis @ np.linalg.inv(precision) @ basis.T


def random_case(seed):
    rng = np.random.default_rng([31, seed])
    by = int(rng.choice([1, 1, 2]))
    tree = hf.Hierarchy.from_parents(random_parents(rng))
    n = tree.n * by
    scale = rng.choice([0.5, 1.0, 2.0, 5.0], n)
    if seed % 2:
        scale[rng.integers(3, size=n) == 0] = INF
    exact = np.flatnonzero(rng.integers(5, size=n) == 0)
    if not np.isfinite(scale).any():
        scale[0] = 1.0
    query = hf.counts(tree, by=by)
    held = hf.consistent(query)
    rows = query.consistency().toarray().reshape(-1, n)
    if exact.size:
        held &= hf.invariant(np.eye(n, dtype=int)[exact]) if seed % 3 else hf.fixed(exact, np.zeros(exact.size))
        rows = np.vstack([rows, np.eye(n)[exact]])
    return hf.gaussian(query, scale=scale, integer=False).given(held), rows, scale, exact


@pytest.mark.parametrize("seed", range(40))
def test_the_covariance_is_that_of_the_conditional_law(seed):
    mechanism, rows, scale, exact = random_case(seed)
    covariance = dense_covariance(rows, scale**2)
    if covariance is None:
        with pytest.raises(hf.Refused, match="no law"):
            mechanism.noise(1)
        return
    plan = mechanism.source.plan
    if plan.names != ("gaussian_tree",):
        assert (mechanism.query.tree.parents < 0).all()  # nothing adds up: outputs are independent
        return
    passes = gaussian_tree._passes(plan.problem)
    n = mechanism.query.n
    # The draw is a linear map of standard normal numbers: its columns are what unit vectors become.
    units = np.eye(n)
    passes.noise(units)
    mapped = np.empty_like(units)
    mapped[:, passes.order] = units
    size = max(1.0, np.abs(covariance).max())
    assert np.allclose(mapped.T @ mapped, covariance, rtol=0, atol=1e-10 * size)
    assert (mapped[:, exact] == 0).all()
    assert np.allclose(mechanism.standard_error() ** 2, np.diag(covariance), rtol=1e-9, atol=1e-10 * size)
    weights = np.random.default_rng(seed).normal(size=n)
    expected = pytest.approx(weights @ covariance @ weights, rel=1e-9, abs=1e-9 * size)
    assert plan.spread().variance_of(weights) == expected


@pytest.mark.parametrize("seed", range(0, 40, 2))
def test_the_general_way_agrees(seed):
    mechanism, _, _, _ = random_case(seed)
    if mechanism.method != "gaussian_tree":
        return
    general = hf.gaussian(mechanism.query, scale=np.sqrt(mechanism.base.law.variances), integer=False)
    general = general.given(mechanism.source.constraint, method="gaussian")
    assert np.allclose(mechanism.standard_error(), general.standard_error(), rtol=1e-7, atol=1e-7)
    weights = np.linspace(-1, 2, mechanism.query.n)
    first, second = (each.source.plan.spread().variance_of(weights) for each in (mechanism, general))
    assert first == pytest.approx(second, rel=1e-7, abs=1e-9)


def test_tables_add_up_and_exact_nodes_have_no_noise():
    rng = np.random.default_rng(5)
    parents = np.concatenate([[-1], np.zeros(20, int), 1 + rng.integers(0, 20, 200), 21 + rng.integers(0, 200, 3_000)])
    tree = hf.Hierarchy.from_parents(parents)
    exact = [3, 30, 2000]
    held = hf.consistent(tree) & hf.invariant(hf.exact_nodes(tree, exact))
    mechanism = hf.gaussian(hf.counts(tree), scale={1: 3, 2: 7, 3: 2}, integer=False).given(held)
    noise = mechanism.noise(2, rng=hf.seeded(1))
    sums = np.zeros_like(noise)
    for row, values in zip(sums, noise, strict=True):
        np.add.at(row, parents[1:], values[1:])
    inner = ~tree.is_leaf
    inner[exact] = False
    assert np.allclose(sums[:, inner], noise[:, inner], rtol=0, atol=1e-9)
    assert (noise[:, exact] == 0).all()
    assert np.abs(sums[:, [3, 30]]).max() < 1e-9
    released = mechanism.release(tree.sum_up(rng.integers(0, 50, tree.n_leaves)), rng=hf.seeded(2))
    assert released.interval().shape == (tree.n, 2)
    assert released.guarantee.mu is not None


def test_draws_have_the_spread_that_is_promised():
    """Mean squares of 40,000 draws against the exact variances: 6.5 standard errors are allowed."""
    tree = hf.Hierarchy.from_parents([-1, 0, 0, 1, 1, 2, 2, 2])
    scale = [4, 2, INF, 1, 3, 1, INF, 2]
    mechanism = hf.gaussian(hf.counts(tree), scale=scale, integer=False).given(hf.consistent(tree))
    noise = mechanism.noise(40_000, rng=hf.seeded(3))
    squares = (noise**2).mean(axis=0) / mechanism.standard_error() ** 2
    assert np.abs(squares - 1).max() < 6.5 * np.sqrt(2 / 40_000)
    inside = np.abs(noise) <= mechanism.source.plan.spread().quantiles(0.95)
    assert np.abs(inside.mean(axis=0) - 0.9).max() < 6.5 * np.sqrt(0.09 / 40_000)


def test_deep_and_wide_trees_are_drawn_in_one_pass():
    chain = hf.Hierarchy.from_parents(np.arange(-1, 50_000))
    mechanism = hf.gaussian(hf.counts(chain), scale=10, integer=False).given(hf.consistent(chain))
    assert np.ptp(mechanism.noise(1, rng=hf.seeded(1))) == 0
    star = hf.Hierarchy.from_parents(np.concatenate([[-1], np.zeros(50_000, int)]))
    mechanism = hf.gaussian(hf.counts(star), scale=10, integer=False).given(hf.consistent(star))
    errors = mechanism.standard_error()
    assert errors[0] == pytest.approx(10 * np.sqrt(50_000 / 50_001), rel=1e-12)
    assert errors[1] == pytest.approx(10 * np.sqrt(1 - 1 / 50_001), rel=1e-12)
    assert mechanism.method == "gaussian_tree"


def test_scales_far_apart_keep_their_precision():
    tree = hf.Hierarchy.from_parents([-1, 0, 0])
    mechanism = hf.gaussian(hf.counts(tree), scale=[1e-6, 1e6, 1], integer=False).given(hf.consistent(tree))
    errors = mechanism.standard_error()
    assert errors[0] == pytest.approx(1e-6, rel=1e-9)
    assert errors[1] == pytest.approx(1, rel=1e-9)
    assert errors[2] == pytest.approx(1, rel=1e-9)
