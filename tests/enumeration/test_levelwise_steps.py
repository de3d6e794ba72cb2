"""One step of TopDown and BlueDown against independent answers: active sets enumerated, rounding by brute force, and
generalised least squares by its dense formula."""

from itertools import combinations, product

import numpy as np
import pytest

import holdfast as hf
from holdfast.arguments import LARGEST
from holdfast.trees.nearest.levelwise import Levelwise


def best_split(target, metric, low, high, total):
    """min (z−t)ᵀM(z−t) with Σz = total, low ≤ z ≤ high: every choice of which bounds are met with equality."""
    k, best, found = len(target), np.inf, None
    for sides in map(np.array, product((-1, 0, 1), repeat=k)):
        z = np.where(sides < 0, low, high).astype(float)
        free = sides == 0
        if not np.isfinite(z[~free]).all():
            continue
        if free.any():
            m = int(free.sum())
            left = np.block([[metric[np.ix_(free, free)], np.ones((m, 1))], [np.ones((1, m)), np.zeros((1, 1))]])
            pull = metric[np.ix_(free, ~free)] @ (z[~free] - target[~free])
            right = np.concatenate([metric[np.ix_(free, free)] @ target[free] - pull, [total - z[~free].sum()]])
            z[free] = np.linalg.solve(left, right)[:m]
        if abs(z.sum() - total) > 1e-7 or (z < low - 1e-9).any() or (z > high + 1e-9).any():
            continue
        cost = (z - target) @ metric @ (z - target)
        if cost < best:
            best, found = cost, z
    return found


def one_level(k, spreads, combined=False):
    """A root that is exact with k leaves below it."""
    parents = np.array([-1] + [0] * k)
    exact = np.array([True] + [False] * k)
    spreads = np.concatenate([[1.0], spreads])
    return Levelwise.of(parents, exact, spreads, combined=combined)


def instances(count, seed):
    rng = np.random.default_rng(seed)
    for _ in range(count):
        k = int(rng.integers(1, 6))
        low = np.where(rng.random(k) < 0.8, rng.integers(-2, 2, k), -LARGEST)
        high = np.where(rng.random(k) < 0.4, np.maximum(low, -2) + rng.integers(0, 6, k), LARGEST)
        least = low.sum() if low.min() > -LARGEST else -20
        most = high.sum() if high.max() < LARGEST else least + 25
        total = int(rng.integers(least, most + 1))
        noisy = np.concatenate([[0], rng.integers(-8, 12, k)])
        yield k, noisy, np.append(total, low), np.append(total, high), rng.choice([0.5, 1.0, 2.0, 7.0], k), total


def as_reals(low, high):
    return low.astype(float), high.astype(float)


def endless(low, high):
    return np.where(low <= -LARGEST, -np.inf, low), np.where(high >= LARGEST, np.inf, high)


@pytest.mark.slow
def test_the_fit_is_the_best_of_all_active_sets():
    bitten = 0
    for k, noisy, low, high, spreads, total in instances(120, 1):
        found = one_level(k, spreads).move(noisy[None], *as_reals(low, high))[0]
        wanted = best_split(noisy[1:].astype(float), np.diag(1 / spreads), *endless(low[1:], high[1:]), total)
        assert found[0] == total
        assert found[1:] == pytest.approx(wanted, abs=1e-9)
        bitten += bool((found[1:] == low[1:]).any() and (found[1:] == high[1:]).any())
    assert bitten > 20  # both kinds of bounds bite together often enough to be tested


def test_rounding_is_the_nearest_of_all_controlled_roundings():
    """Floor or ceiling everywhere and the right total: no other choice is nearer to the real fit."""
    tried = 0
    for k, noisy, low, high, spreads, total in instances(300, 2):
        real = one_level(k, spreads).move(noisy[None], *as_reals(low, high))[0][1:]
        whole = one_level(k, spreads).move(noisy[None], low, high)[0]
        assert whole.dtype == np.int64
        assert whole[0] == whole[1:].sum() == total
        assert (whole[1:] >= low[1:]).all()
        assert (whole[1:] <= high[1:]).all()
        down, up = np.floor(real + 1e-9), np.ceil(real - 1e-9)
        assert ((whole[1:] == down) | (whole[1:] == up)).all()
        open_ones, short = np.flatnonzero(up > down), total - int(down.sum())
        best = min(
            ((down + np.isin(np.arange(k), chosen) - real) ** 2).sum() for chosen in combinations(open_ones, short)
        )
        assert ((whole[1:] - real) ** 2).sum() == pytest.approx(best, abs=1e-7)
        tried += 0 < short < len(open_ones)
    assert tried > 60


TREES = {
    "three levels": [-1, 0, 0, 1, 1, 2, 2, 2],
    "ragged": [-1, 0, 0, 0, 1, 1, 4, 4, 2],
    "a forest, any order": [2, 2, -1, 0, 0, 0, -1, 6, 6, 1],
}


def paths(parents):
    """The matrix that turns leaf values into all values."""
    parents = np.array(parents)
    leaves = np.setdiff1d(np.arange(parents.size), parents)
    matrix = np.zeros((parents.size, leaves.size))
    v = leaves
    while (v >= 0).any():
        matrix[v[v >= 0], np.flatnonzero(v >= 0)] = 1.0
        v = np.where(v >= 0, parents[v], -1)
    return matrix


def spreads_for(parents, rng):
    """Random variances; some inner outputs are not measured, so that the leaves still determine everything."""
    spreads = rng.choice([0.5, 1.0, 3.0, 10.0], len(parents))
    inner = np.intersect1d(np.arange(len(parents)), parents)
    spreads[inner[rng.random(inner.size) < 0.3]] = np.inf
    return spreads


@pytest.mark.parametrize("name", TREES)
def test_bluedown_without_bounds_is_generalised_least_squares(name):
    parents = np.array(TREES[name])
    rng = np.random.default_rng(3)
    A, n = paths(parents), parents.size
    endless_low, endless_high = np.full(n, -float(LARGEST)), np.full(n, float(LARGEST))
    for _ in range(40):
        spreads, noisy = spreads_for(parents, rng), rng.integers(-10, 30, n)
        weights = np.where(np.isinf(spreads), 0.0, 1 / spreads)
        exact = np.zeros(n, dtype=bool)
        made = Levelwise.of(parents, exact, spreads, combined=True)
        wanted = A @ np.linalg.solve(A.T * weights @ A, A.T * weights @ noisy)
        assert made.move(noisy[None], endless_low, endless_high)[0] == pytest.approx(wanted, abs=1e-9)
        whole = made.move(noisy[None], endless_low.astype(int), endless_high.astype(int))[0]
        assert (np.abs(whole - wanted)[parents < 0] <= 0.5 + 1e-9).all()


@pytest.mark.parametrize("name", TREES)
def test_bluedown_with_exact_nodes_is_generalised_least_squares(name):
    parents = np.array(TREES[name])
    rng = np.random.default_rng(4)
    A, n = paths(parents), parents.size
    for _ in range(40):
        spreads, noisy, truth = spreads_for(parents, rng), rng.integers(-10, 30, n), A @ rng.integers(0, 9, A.shape[1])
        exact = rng.random(n) < 0.3
        low, high = np.where(exact, truth, -float(LARGEST)), np.where(exact, truth, float(LARGEST))
        made = Levelwise.of(parents, exact, spreads, combined=True)
        weights = np.where(np.isinf(spreads), 0.0, 1 / spreads)
        C = A[exact]
        left = np.block([[A.T * weights @ A, C.T], [C, np.zeros((len(C), len(C)))]])
        right = np.concatenate([A.T * weights @ noisy, truth[exact]])
        wanted = A @ np.linalg.lstsq(left, right)[0][: A.shape[1]]
        assert made.move(noisy[None], low, high)[0] == pytest.approx(wanted, abs=1e-8)


def test_bluedown_splits_by_the_covariance_of_its_estimates():
    """The children's step, against the full covariance of the dense estimates given the parent's final value."""
    parents = np.array([-1, 0, 0, 0, 1, 1, 2, 2, 2, 3])
    children, A, n = np.array([1, 2, 3]), paths([-1, 0, 0, 0, 1, 1, 2, 2, 2, 3]), 10
    rng = np.random.default_rng(5)
    bitten = 0
    for _ in range(150):
        spreads, noisy = rng.choice([0.5, 1.0, 3.0, 10.0], n), rng.integers(-6, 9, n)
        total = int(rng.integers(0, 25))
        inverse = np.linalg.inv(A.T / spreads @ A)
        estimates, covariance = (
            (A @ inverse @ (A.T / spreads @ noisy))[children],
            (A @ inverse @ A.T)[children][:, children],
        )
        # The Gaussian law of the children given their sum: mean and covariance from the dense ones.
        one = np.ones(3)
        mean = estimates + covariance @ one * (total - estimates.sum()) / (one @ covariance @ one)
        given = covariance - np.outer(covariance @ one, covariance @ one) / (one @ covariance @ one)
        wanted = best_split(mean, np.linalg.pinv(given) + np.ones((3, 3)), np.zeros(3), np.full(3, np.inf), total)
        root = np.arange(n) == 0
        made = Levelwise.of(parents, root, spreads, combined=True)
        low = np.where(root, total, 0.0)
        found = made.move(noisy[None], low, np.where(root, total, float(LARGEST)))[0]
        assert found[children] == pytest.approx(wanted, abs=1e-7)
        bitten += (found[children] == 0).any()
    assert 20 < bitten < 130


def test_a_step_by_hand():
    """Root 5 over 4, −1 and 3: the last two units too many are shared by 4 and 3, and −1 becomes 0."""
    tree = hf.Hierarchy.from_parents([-1, 0, 0, 0])
    must = hf.consistent(tree) & hf.nonnegative()
    base = hf.laplace(hf.counts(tree), epsilon=1)
    assert base.onto(must, method="topdown").image([5, 4, -1, 3]).tolist() == [5, 3, 0, 2]
    # Equal variances v: the leaves' sum has 3v, so the root moves a quarter of the way from 5 to 6, and 5.25 is shared.
    real = base.onto(must, method="bluedown", integer=False).image([5, 4, -1, 3])
    assert real == pytest.approx([5.25, 3.125, 0, 2.125])
    assert base.onto(must, method="bluedown").image([5, 4, -1, 3]).tolist() == [5, 3, 0, 2]
