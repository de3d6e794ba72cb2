"""`reconcile`: figures and rules alone, against enumeration, formulas of generalised least squares, and bad input."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import holdfast as hf

TREE = hf.Hierarchy.from_parents([-1, 0, 0, 1, 1, 2])
A = np.array([[1, -1, -1, 0, 0, 0], [0, 1, 0, -1, -1, 0], [0, 0, 1, 0, 0, -1]])


def covariance(seed: int) -> np.ndarray:
    half = np.random.default_rng(seed).normal(size=(6, 6))
    return half @ half.T + 0.2 * np.eye(6)


def by_formula(y: np.ndarray, W: np.ndarray) -> np.ndarray:
    """MinT: y − W Aᵀ (A W Aᵀ)⁻¹ A y."""
    return y - W @ A.T @ np.linalg.solve(A @ W @ A.T, A @ y)


@pytest.mark.parametrize("seed", range(3))
def test_real_figures_are_those_of_the_formula(seed: int) -> None:
    rng = np.random.default_rng(seed)
    y, W, e, F = rng.normal(10, 5, (2, 6)), covariance(seed), rng.uniform(0.5, 2, 6), rng.normal(size=(6, 2))
    one = F[:, 0]
    for errors, full in (
        (None, np.eye(6)), (e, np.diag(e**2)), (W, W), ((e, F), np.diag(e**2) + F @ F.T),
        ((2.0, one), 4 * np.eye(6) + np.outer(one, one)),
    ):  # fmt: skip
        found = hf.reconcile(y, TREE, errors, step=None)
        assert found.values == pytest.approx(np.array([by_formula(row, full) for row in y]), abs=1e-8)
        moves = found.values - y
        assert found.distance == pytest.approx((moves * np.linalg.solve(full, moves.T).T).sum(axis=1))
        if errors is not None:
            left = full - full @ A.T @ np.linalg.solve(A @ full @ A.T, A @ full)
            assert found.standard_error[0] == pytest.approx(np.sqrt(np.diagonal(left)), abs=1e-7)


def shrunk(R: np.ndarray) -> np.ndarray:
    """λ·diag(S) + (1−λ)·S of Schäfer and Strimmer, pair by pair, as MinT(shrink) has it."""
    times, n = R.shape
    S = R.T @ R / times
    x = R / np.sqrt(np.diagonal(S))
    above = below = 0.0
    for i, j in itertools.permutations(range(n), 2):
        products = x[:, i] * x[:, j]
        above += ((products**2).sum() - products.sum() ** 2 / times) / (times * (times - 1))
        below += products.mean() ** 2
    share = min(1.0, above / below)
    return share * np.diag(np.diagonal(S)) + (1 - share) * S


@pytest.mark.parametrize("times", [3, 40])
def test_residuals_give_the_shrunk_covariance_of_mint_and_one_variance_for_each_level(times: int) -> None:
    rng = np.random.default_rng(times)
    R, y = rng.normal(size=(times, 6)) @ covariance(7), rng.normal(10, 5, (2, 6))
    by_level = np.repeat([1, 2, 3], [1, 2, 3])
    pooled = np.array([(R[:, by_level == level] ** 2).mean() for level in by_level])
    for errors, full in (({"residuals": R}, shrunk(R)), ({"residuals": R, "levels": by_level}, np.diag(pooled))):
        found = hf.reconcile(y, TREE, errors, step=None)
        assert found.values == pytest.approx(np.array([by_formula(row, full) for row in y]), abs=1e-7)
        left = full - full @ A.T @ np.linalg.solve(A @ full @ A.T, A @ full)
        assert found.standard_error[0] == pytest.approx(np.sqrt(np.diagonal(left)), abs=1e-6)


@pytest.mark.parametrize("seed", range(4))
def test_whole_figures_are_the_nearest_of_all(seed: int) -> None:
    rng = np.random.default_rng(seed)
    leaves = np.array(list(itertools.product(range(8), repeat=3)))
    tables = TREE.sum_up(leaves.T).T
    tables = tables[tables[:, 3] >= tables[:, 4]]
    y, e, F = rng.uniform(0, 6, 6), rng.uniform(0.5, 2, 6), rng.normal(size=(6, 1))
    rules = [TREE, hf.between(0, 21), hf.at_least([[0, 0, 0, 1, -1, 0]], [0])]
    for errors, full in ((e, np.diag(e**2)), ((e, F), np.diag(e**2) + F @ F.T)):
        found = hf.reconcile(y, rules, errors)
        off = tables - y
        distances = (off * np.linalg.solve(full, off.T).T).sum(axis=1)
        assert any((found.values == table).all() for table in tables)
        assert found.distance[0] - found.gap[0] <= distances.min() + 1e-6 <= found.distance[0] + 2e-6
        if errors is e:
            assert found.nearest
            assert found.distance[0] == pytest.approx(distances.min())


def test_exact_figures_steps_and_missing_ones() -> None:
    y = np.array([[10.0, 6, 5, 3, 3, 4], [20, np.nan, 9, 4, 5, 9]])
    found = hf.reconcile(y, TREE, 1.0, exact=[0], step=0.5)
    assert found.values[:, 0].tolist() == [10, 20]
    assert np.abs(found.values @ A.T).max() == 0
    assert (found.values * 2 == np.rint(found.values * 2)).all()
    assert found.standard_error[:, 0] == pytest.approx(0, abs=1e-6)
    assert [each.rows.tolist() for kinds in found.broken for each in kinds] == [[0, 2], []]
    given = hf.reconcile(y, TREE, exact={0: 12})
    assert given.values[:, 0].tolist() == [12, 12]
    assert given.most(1).tolist() == [0]
    told = str(found).splitlines()
    assert told[0].endswith("the nearest")
    assert told[1] == "consistent(6 nodes): 2 of 3 did not hold"
    assert "figure 0 − figure 1 − figure 2): -1, but must be = 0" in told[2]


def test_missing_figures_have_the_bars_of_what_they_follow_from_and_none_where_they_follow_from_nothing() -> None:
    found = hf.reconcile([10, 6, 5, np.nan, 3, 4], TREE, 2.0, step=None)
    known = np.array([0, 1, 2, 4, 5])
    rows = np.array([[1, -1, -1, 0, 0], [0, 0, 1, 0, -1]])  # what is left of the rules
    left = 4 * (np.eye(5) - rows.T @ np.linalg.solve(rows @ rows.T, rows))
    assert found.standard_error[known] == pytest.approx(np.sqrt(np.diagonal(left)), abs=1e-4)
    assert found.standard_error[3] == pytest.approx(np.sqrt(left[1, 1] + left[3, 3] - 2 * left[1, 3]), abs=1e-2)
    assert found.values[3] == pytest.approx(found.values[1] - found.values[4])
    open_ = hf.reconcile([10, 6, 5, np.nan, np.nan, 4], TREE, 2.0)
    assert np.isinf(open_.standard_error).tolist() == [False, False, False, True, True, False]
    assert open_.interval()[3].tolist() == [-np.inf, np.inf]


@pytest.mark.parametrize("far", [10**6, 10**9, 10**13])
def test_large_figures_move_as_small_ones_do(far: int) -> None:
    base = TREE.sum_up(np.array([3, 2, 5])) * far
    y = np.array([10.5, 6.25, 5.75, 2.5, 3.25, 4.5])
    small = hf.reconcile(y, TREE, [1, 2, 1, 1, 0.5, 1])
    large = hf.reconcile(base + y, [TREE, hf.nonnegative()], [1, 2, 1, 1, 0.5, 1])
    assert (large.values - base).tolist() == small.values.tolist()
    assert large.nearest
    rules = [TREE, hf.nonnegative()]
    whole, real = (hf.reconcile(y * far, rules, np.sqrt(y * far), step=step) for step in (1, None))  # moves of millions
    assert whole.nearest
    assert np.abs(whole.values @ A.T).max() == 0
    assert np.abs(whole.values - real.values).max() < 3
    with pytest.raises(hf.Refused, match="larger step"):
        hf.reconcile(y * far, TREE, step=1e-12)


def test_rules_that_are_said_twice_count_once() -> None:
    y = [10, 6, 5, 3, 3, 4]
    once, twice = (hf.reconcile(y, rules, 1.0) for rules in ([TREE], [TREE, TREE, hf.equals(A, [0, 0, 0])]))
    assert once.values.tolist() == twice.values.tolist()
    assert once.standard_error == pytest.approx(twice.standard_error)


def test_intervals_cover_as_they_say() -> None:
    rng = np.random.default_rng(5)
    truth = TREE.sum_up(rng.poisson(50, 3).astype(float))
    e, F = rng.uniform(1, 4, 6), rng.normal(size=(6, 2))
    noise = e * rng.normal(size=(4_000, 6)) + rng.normal(size=(4_000, 2)) @ F.T
    found = hf.reconcile(truth + noise, TREE, (e, F), step=None)
    ends = found.interval(0.95)
    inside = ((ends[..., 0] <= truth) & (truth <= ends[..., 1])).mean(axis=0)
    assert np.abs(inside - 0.95).max() < 5 * (0.05 * 0.95 / 4_000) ** 0.5  # five standard errors


@pytest.mark.parametrize(
    ("rules", "options", "words"),
    [
        (TREE, {"exact": {0: 9, 1: 4, 2: 4}}, "cannot hold together: consistent(6 nodes); fixed(at=[0])"),
        ([TREE, hf.at_least([[1, 0, 0, 0, 0, 0]], [9]), hf.between(None, 8, at=[0])], {}, "cannot hold together"),
        (TREE, {"errors": np.array(covariance(0)) - 9 * np.eye(6)}, "no covariance"),
        (TREE, {"errors": covariance(0) + np.triu(np.ones((6, 6)), 1)}, "no covariance"),
        (TREE, {"errors": [1, 1, 0, 1, 1, 1]}, "above 0"),
        (TREE, {"errors": (np.ones(6), np.ones((4, 1)))}, "one for each figure"),
        (TREE, {"errors": {"residuals": np.ones((1, 6))}}, "two rows or more"),
        (TREE, {"errors": {"residuals": np.eye(7, 6)[:, ::-1] * [1, 1, 0, 1, 1, 1]}}, "residuals of figure 2 are 0"),
        (TREE, {"errors": {"residual": np.ones((9, 6))}}, "must hold 'residuals'"),
        (TREE, {"exact": {0: 9, 1: 4, 2: 4}, "step": None}, "cannot hold together"),
        (TREE, {"exact": [0, 0]}, "every figure once"),
        (TREE, {"exact": [6]}, "figure 6, which is not there"),
        ("tree", {}, "rules must be"),
        (None, {}, "rules must be"),
        (TREE, {"exact": 0}, "exact must"),
        (TREE, {"exact": [0.5]}, "exact must"),
        (TREE, {"exact": ["a"]}, "exact must"),
        (TREE, {"errors": -1}, "above 0"),
        (TREE, {"errors": 0}, "above 0"),
        (TREE, {"errors": "a"}, "errors must"),
        (TREE, {"errors": np.nan}, "errors must"),
        (TREE, {"errors": (1.0, np.ones((6, 2, 1)))}, "one for each figure"),
        (hf.equals([[2, 0, 0, 0, 0, 0]], [3]), {}, "step"),
    ],
)
def test_bad_input_is_refused_in_one_sentence(rules, options, words) -> None:
    with pytest.raises(hf.Refused) as refusal:
        hf.reconcile([10, 6, 5, 3, 3, 4], rules, **options)
    assert words in str(refusal.value)
    assert "\n" not in str(refusal.value)


def test_figures_that_are_all_missing_are_refused() -> None:
    with pytest.raises(hf.Refused, match="every figure is missing"):
        hf.reconcile([[10, 6, 5, 3, 3, 4], [np.nan] * 6], TREE)
