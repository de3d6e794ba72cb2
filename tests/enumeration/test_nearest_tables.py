"""The nearest table on small hierarchies against every table there is, and against solvers of other kinds.

Whole numbers: all tables in a box that holds an optimum are listed. Reals: bounded least squares (scipy's BVLS) and
linear programs (HiGHS).
"""

import itertools

import numpy as np
import pytest
from scipy import optimize

import optimality
from holdfast.trees.nearest.nearest import Nearest

NONE = 2**62


def random_forest(rng, n, near=4, roots=0.1):
    """Each node hangs below one of the nodes before it, or is a root; node numbers are shuffled."""
    parents = np.full(n, -1)
    for v in range(1, n):
        if rng.random() >= roots:
            parents[v] = rng.integers(max(0, v - near), v)
    name = rng.permutation(n)
    shuffled = np.empty(n, dtype=np.int64)
    shuffled[name] = np.where(parents >= 0, name[parents], -1)
    return shuffled


def inner_of(parents):
    inner = np.zeros(len(parents), dtype=bool)
    inner[parents[parents >= 0]] = True
    return inner


def tables(parents, span):
    """All tables whose leaves lie within the span."""
    leaves = np.flatnonzero(~inner_of(parents))
    listed = np.array(list(itertools.product(span, repeat=leaves.size)))
    found = np.zeros((len(listed), len(parents)), dtype=np.int64)
    found[:, leaves] = listed
    depth = optimality.depths(parents)
    for v in np.argsort(-depth, kind="stable"):
        if parents[v] >= 0:
            found[:, parents[v]] += found[:, v]
    return found


def small_problem(rng):
    """A forest of at most 8 nodes and 3 leaves, with everything that may come together."""
    while True:
        parents = random_forest(rng, int(rng.integers(1, 9)))
        inner = inner_of(parents)
        if (~inner).sum() <= 3:
            break
    n, leaves = len(parents), np.flatnonzero(~inner)
    noisy = rng.integers(-4, 6, n)
    spreads = [np.ones(n), rng.choice([1.0, 2.0, 0.5, 4.0], n), rng.uniform(0.1, 5, n)][rng.integers(0, 3)]
    spreads = np.where(inner & (rng.random(n) < 0.2), np.inf, spreads)
    low, high = np.full(n, -NONE), np.full(n, NONE)
    kind = rng.integers(0, 4)
    if kind >= 1:
        low[leaves] = rng.choice([0, 0, 0, 1, -1], leaves.size)
    if kind >= 2:
        high[leaves] = np.where(rng.random(leaves.size) < 0.5, low[leaves] + rng.integers(0, 4, leaves.size), NONE)
    if kind == 3:
        chosen = inner & (rng.random(n) < 0.4)
        low[chosen] = rng.integers(0, 3, chosen.sum())
        high[chosen] = low[chosen] + rng.integers(0, 4, chosen.sum())
    return parents, noisy, spreads, low, high


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_whole_tables_are_the_best_of_all_tables(seed):
    rng = np.random.default_rng(seed)
    compared = 0
    while compared < 40:
        parents, noisy, spreads, low, high = small_problem(rng)
        every = tables(parents, range(-8, 12))
        every = every[((every >= low) & (every <= high)).all(axis=1)]
        if not len(every):
            continue
        exact = low == high
        for norm in ("l2", "l1"):
            weights = np.where(exact | np.isinf(spreads), 0.0, 1 / spreads)
            weights = np.sqrt(weights) if norm == "l1" else weights
            cost = weights * (np.abs(every - noisy) if norm == "l1" else (every - noisy) ** 2)
            found = Nearest.of(parents, exact, spreads, absolute=norm == "l1").move(noisy[None], low, high)[0]
            assert found.dtype == np.int64
            optimality.assert_nearest(parents, noisy, weights, low, high, found, norm)
            assert optimality.objective(noisy, weights, found, norm) == pytest.approx(cost.sum(axis=1).min(), abs=1e-9)
        compared += 1


def test_the_proofs_reject_what_is_not_nearest():
    """Tables one step beside the best one are caught, whole and real, in both norms."""
    rng = np.random.default_rng(9)
    caught = 0
    for _ in range(60):
        parents, noisy, spreads, low, high = small_problem(rng)
        every = tables(parents, range(-8, 12))
        every = every[((every >= low) & (every <= high)).all(axis=1)]
        if len(every) < 2:
            continue
        for norm in ("l2", "l1"):
            weights = np.where((low == high) | np.isinf(spreads), 0.0, 1 / spreads)
            cost = (weights * (np.abs(every - noisy) if norm == "l1" else (every - noisy) ** 2)).sum(axis=1)
            for z in every[rng.integers(0, len(every), 5)]:
                best = optimality.objective(noisy, weights, z, norm) <= cost.min() + 1e-9
                if norm == "l2":
                    proved = optimality.exchange_gap(parents, noisy, weights, low, high, z) <= 1e-9
                else:
                    proved = optimality.price_gap(parents, noisy, weights, low, high, z, norm) <= 1e-9
                assert proved == best
                caught += not best
    assert caught > 200


def test_real_least_squares_agree_with_bounded_variable_least_squares():
    rng = np.random.default_rng(3)
    for _ in range(60):
        parents = random_forest(rng, int(rng.integers(2, 25)), near=8)
        n, leaves = len(parents), np.flatnonzero(~inner_of(parents))
        unit = np.zeros((n, leaves.size))
        for i, leaf in enumerate(leaves):
            v = leaf
            while v >= 0:
                unit[v, i] = 1
                v = parents[v]
        noisy, spreads = rng.normal(2, 6, n), rng.uniform(0.2, 5, n)
        low, high = np.full(n, -float(NONE)), np.full(n, float(NONE))
        low[leaves] = rng.choice([0.0, -1.5, -NONE], leaves.size)
        high[leaves] = np.where(rng.random(leaves.size) < 0.4, np.maximum(low[leaves], 0) + rng.uniform(0.1, 5), NONE)
        root = 1 / np.sqrt(spreads)
        bounds = (
            np.where(low[leaves] > -NONE, low[leaves], -np.inf),
            np.where(high[leaves] < NONE, high[leaves], np.inf),
        )
        other = optimize.lsq_linear(unit * root[:, None], noisy * root, bounds=bounds, method="bvls", tol=1e-14)
        found = Nearest.of(parents, np.zeros(n, dtype=bool), spreads, absolute=False).move(noisy[None], low, high)[0]
        assert found[leaves] == pytest.approx(other.x, abs=1e-7)


def test_real_absolute_values_agree_with_a_linear_program():
    rng = np.random.default_rng(4)
    for _ in range(40):
        parents = random_forest(rng, int(rng.integers(2, 14)))
        n, inner = len(parents), inner_of(parents)
        truth = optimality.sum_up(parents, rng.integers(0, 5, n)).astype(np.float64)
        noisy, weights = truth + rng.laplace(0, 3, n), rng.uniform(0.2, 2, n)
        low, high = np.zeros(n), np.full(n, float(NONE))
        some = rng.random(n) < 0.3
        low[some], high[some] = truth[some] - rng.integers(0, 2), truth[some] + rng.integers(0, 2)
        adds_up = np.zeros((inner.sum(), n))
        adds_up[np.arange(inner.sum()), np.flatnonzero(inner)] = 1
        for row, v in enumerate(np.flatnonzero(inner)):
            adds_up[row, parents == v] = -1
        exact = low == high
        weights[exact] = 0
        program = optimize.linprog(
            np.concatenate([np.zeros(n), weights]),
            A_ub=np.block([[np.eye(n), -np.eye(n)], [-np.eye(n), -np.eye(n)]]),
            b_ub=np.concatenate([noisy, -noisy]),
            A_eq=np.hstack([adds_up, np.zeros_like(adds_up)]),
            b_eq=np.zeros(len(adds_up)),
            bounds=[*zip(low, np.where(high < NONE, high, np.inf), strict=True), *[(None, None)] * n],
        )
        with np.errstate(divide="ignore"):
            spreads = weights**-2.0
        found = Nearest.of(parents, exact, spreads, absolute=True).move(noisy[None], low, high)[0]
        assert optimality.objective(noisy, weights, found, "l1") == pytest.approx(program.fun, abs=1e-7)
        optimality.assert_nearest(parents, noisy, weights, low, high, found, "l1")
