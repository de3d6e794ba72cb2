"""What users get from `onto` on hierarchies, by the public names alone: every table is proved to be the nearest one."""

from fractions import Fraction

import numpy as np
import pytest

import holdfast as hf
import optimality

FOREST = hf.Hierarchy.from_parents([2, 2, -1, 0, 0, 0, 1, 1, -1, 8, 8, 10, 11])
NORMS = ("l2", "l1")


def output_parents(tree, by):
    """Parents of all outputs: each category is a forest of its own, node-major."""
    above = np.asarray(tree.parents)
    return np.concatenate([np.where(p < 0, -1, p * by + np.arange(by)) for p in above])


def ends(n, low=(), high=(), exact=()):
    """Bounds as the proofs want them, from lists of (positions, values)."""
    least, most = np.full(n, -np.inf), np.full(n, np.inf)
    for where, values in low:
        least[where] = values
    for where, values in high:
        most[where] = values
    for where, values in exact:
        least[where] = most[where] = values
    return least, most


def prove(parents, noisy, variances, low, high, table, norm):
    """The proof with weights 1/v or 1/√v, 0 where an output is exact or was not measured."""
    relative = np.where((low == high) | np.isinf(variances), 0.0, variances.min() / variances)
    weights = np.sqrt(relative) if norm == "l1" else relative
    optimality.assert_nearest(parents, noisy, weights, low, high, table, norm)


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("integer", [True, False])
@pytest.mark.parametrize("by", [1, 2])
def test_images_are_proved(norm, integer, by):
    """Categories and forests; bounds and fixed values; an unmeasured level; weights by noise, equal or given."""
    query = hf.counts(FOREST, by=by)
    n, parents = query.n, output_parents(FOREST, by)
    leaves = np.flatnonzero(~np.isin(np.arange(n), parents))
    rng = np.random.default_rng(1)
    sigmas = np.where(np.isin(np.arange(n) // by, [1, 10]), np.inf, rng.choice([1.0, 2.0, 5.0], n))
    capped, known = leaves[::3], leaves[1]
    must = hf.consistent(query) & hf.nonnegative(at=leaves) & hf.between(0, 4, at=capped) & hf.fixed(known, 2)
    low, high = ends(n, low=[(leaves, 0)], high=[(capped, 4)], exact=[(known, 2)])
    base = hf.gaussian(query, scale=sigmas)
    given = rng.uniform(0.5, 4, n)
    unmeasured = np.isinf(sigmas)
    for weights, variances in (
        ("noise", base.base.law.variances),
        (None, np.where(unmeasured, np.inf, 1.0)),
        (given, np.where(unmeasured, np.inf, 1 / given)),
    ):
        mechanism = base.onto(must, norm=norm, integer=integer, weights=weights)
        assert mechanism.method == "hierarchy"
        noisy = optimality.sum_up(parents, rng.integers(0, 4, n)) + rng.integers(-6, 7, (15, n))
        for row, table in zip(noisy, mechanism.image(noisy), strict=True):
            assert table.dtype == (np.int64 if integer else np.float64)
            prove(parents, row, variances, low, high, table, norm)


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("integer", [True, False])
def test_releases_with_exact_nodes_are_proved(norm, integer):
    """The same stream draws the noisy values first and then the mechanism's, so the proof sees what was moved."""
    query = hf.counts(FOREST)
    parents, truth = output_parents(FOREST, 1), query.answer([3, 0, 1, 0, 9, 0, 2])
    must = hf.consistent(FOREST) & hf.nonnegative() & hf.invariant(hf.exact_nodes(FOREST, [0, 8]))
    low, high = ends(query.n, low=[(slice(None), 0)], exact=[([0, 8], truth[[0, 8]])])
    base = hf.laplace(query, scale={0: 4, 1: 2, 2: 3, 3: 1})
    mechanism = base.onto(must, norm=norm, integer=integer)
    noisy = base.simulate(truth, 40, rng=hf.seeded(5))
    for row, table in zip(noisy, mechanism.simulate(truth, 40, rng=hf.seeded(5)), strict=True):
        prove(parents, row, base.base.law.variances, low, high, table, norm)
    one = mechanism.release(truth, rng=hf.seeded(5)).values
    prove(parents, base.simulate(truth, 1, rng=hf.seeded(5))[0], base.base.law.variances, low, high, one, norm)


@pytest.mark.parametrize("norm", NORMS)
def test_chains_are_proved(norm):
    """given(consistent) draws a whole table, and onto moves that very table to the nearest one without negatives."""
    query = hf.counts(FOREST)
    parents, truth = output_parents(FOREST, 1), query.answer([3, 0, 1, 0, 9, 0, 2])
    base = hf.laplace(query, scale={0: 4, 1: 2, 2: 3, 3: 1})
    first = base.given(hf.consistent(FOREST))
    chain = first.onto(hf.nonnegative(), norm=norm)
    drawn = first.simulate(truth, 60, rng=hf.seeded(6))
    low, high = ends(query.n, low=[(slice(None), 0)])
    moved = chain.simulate(truth, 60, rng=hf.seeded(6))
    assert moved.dtype == np.int64
    for row, table in zip(drawn, moved, strict=True):
        prove(parents, row, base.base.law.variances, low, high, table, norm)
    assert (drawn.min(axis=1) < 0).sum() > 20
    assert chain.guarantees[0].epsilon == first.guarantees[0].epsilon == base.guarantees[0].epsilon


def paths(parents):
    """The matrix that turns leaf values into all values."""
    leaves = np.setdiff1d(np.arange(parents.size), parents)
    matrix, v = np.zeros((parents.size, leaves.size)), leaves
    while (v >= 0).any():
        matrix[v[v >= 0], np.flatnonzero(v >= 0)] = 1.0
        v = np.where(v >= 0, parents[v], -1)
    return matrix


def test_equalities_alone_are_generalised_least_squares():
    """Weighted L2 without bounds against the dense formula, exact and unmeasured nodes included."""
    rng = np.random.default_rng(7)
    parents = output_parents(FOREST, 1)
    A = paths(parents)
    for _ in range(40):
        sigmas = rng.choice([1.0, 2.0, 7.0], 13)
        sigmas[rng.choice([0, 1, 2, 10], 2, replace=False)] = np.inf
        noisy = rng.normal(10, 8, (5, 13))
        base = hf.gaussian(hf.counts(FOREST), scale=sigmas, integer=False)
        weights = np.where(np.isinf(sigmas), 0.0, 1 / sigmas**2)
        found = base.onto(hf.consistent(FOREST)).image(noisy)
        assert found == pytest.approx((A @ np.linalg.solve(A.T * weights @ A, A.T * weights @ noisy.T)).T, abs=1e-9)
        fixed = rng.choice(13, 2, replace=False)
        values = (A @ rng.integers(0, 9, 7))[fixed]
        C = A[fixed]
        left = np.block([[A.T * weights @ A, C.T], [C, np.zeros((2, 2))]])
        right = np.vstack([A.T * weights @ noisy.T, np.repeat(values[:, None], 5, axis=1)])
        found = base.onto(hf.consistent(FOREST) & hf.fixed(fixed, values)).image(noisy)
        assert found == pytest.approx((A @ np.linalg.lstsq(left, right)[0][:7]).T, abs=1e-8)


def exact_cost(noisy, table, variances):
    """Σ (z − y)²/v over the measured outputs, in exact fractions."""
    moves = zip(table.tolist(), noisy.tolist(), variances.tolist(), strict=True)
    return sum((Fraction((z - y) ** 2) / Fraction(v) for z, y, v in moves if np.isfinite(v)), Fraction(0))


@pytest.mark.parametrize("scale", [3, {0: 1, 1: 2, 2: 4, 3: 8}, {0: 5, 1: np.inf, 2: 2, 3: 2}])
@pytest.mark.parametrize("exact", [False, True])
def test_no_baseline_is_ever_nearer(scale, exact):
    """TopDown and BlueDown on the same noisy values: never a smaller objective, and often a larger one."""
    query, rng = hf.counts(FOREST), np.random.default_rng(8)
    must = hf.consistent(FOREST) & hf.nonnegative()
    if exact:
        must &= hf.fixed([0, 9], [4, 30])
    base = hf.laplace(query, scale=scale)
    noisy = query.answer([3, 0, 1, 0, 0, 30, 2]) + rng.geometric(0.2, (150, 13)) - rng.geometric(0.2, (150, 13))
    moved = {method: base.onto(must, method=method).image(noisy) for method in (None, "topdown", "bluedown")}
    variances = base.base.law.variances.copy()
    if exact:
        variances[[0, 9]] = np.inf  # every table has the same values there
    costs = {
        method: [exact_cost(row, table, variances) for row, table in zip(noisy, tables, strict=True)]
        for method, tables in moved.items()
    }
    for method in ("topdown", "bluedown"):
        assert all(best <= other for best, other in zip(costs[None], costs[method], strict=True))
        assert sum(best < other for best, other in zip(costs[None], costs[method], strict=True)) > 10
