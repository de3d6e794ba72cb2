"""Figures that must add up, without noise: whole and proved nearest, beside what forecasters and statisticians use.

Run: python benchmarks/reconcile.py, where hierarchicalforecast, bayesreconpy, ipfn and osqp are installed; what is not
is left out, and said so.

1. Forecasts of a sales tree (total, states, stores, categories, departments, items) beside hierarchicalforecast.
2. Poisson forecasts of four leaves, two groups and a total: the exact law beside importance samples of bayesreconpy.
3. A reach report (420 figures, five rules) beside OSQP and Clarabel, rounded.
4. A two-way table raked to whole margins beside iterative proportional fitting (ipfn), rounded.

Times are ratios within one run, the other's time over ours; rules are counted as broken after rounding.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from importlib.util import find_spec
from math import lgamma
from typing import Any

import numpy as np
from scipy import sparse

import holdfast as hf


def timed(call: Callable[[], Any]) -> tuple[Any, float]:
    """The second of two calls: libraries load and compile in the first."""
    call()
    start = time.perf_counter()
    return call(), time.perf_counter() - start


def there(name: str) -> bool:
    if find_spec(name) is None:
        print(f"    {name}: not installed, left out")
    return find_spec(name) is not None


def sales(items: int) -> hf.Hierarchy:
    """3 states, 10 stores, 3 categories and 7 departments in each, as many items in each as in the M5 competition."""
    parents, departments = [-1, 0, 0, 0], np.array([216, 416, 532, 515, 216, 398, 756]) * items // 3049
    for state, stores in enumerate((4, 3, 3)):
        for _ in range(stores):
            store = len(parents)
            parents += [1 + state, store, store, store]
            first = len(parents)
            parents += [store + 1, store + 1, store + 2, store + 2, store + 3, store + 3, store + 3]
            for department, count in enumerate(departments.tolist()):
                parents += [first + department] * count
    return hf.Hierarchy.from_parents(parents)


def forecasts(items: int) -> None:
    tree = sales(items)
    rng = np.random.default_rng(0)
    means = rng.gamma(0.6, 2, len(tree.leaves))
    below = tree.sum_up(np.ones(len(tree.leaves), dtype=np.int64))
    y = tree.sum_up(means) * np.exp(rng.normal(0, 0.2, tree.n))
    rules = [tree, hf.nonnegative()]
    ours, seconds = timed(lambda: hf.reconcile(y, rules, np.sqrt(below)))
    assert ours.nearest
    inner = np.flatnonzero(below > 1)
    print(f"sales forecasts, {tree.n:,} nodes: {seconds:.2f} s, whole, proved nearest, 0 nodes break")
    if there("hierarchicalforecast"):
        from hierarchicalforecast.methods import MinTraceSparse

        order = np.concatenate([np.setdiff1d(np.arange(tree.n), tree.leaves), tree.leaves])
        S = tree.sum_up(sparse.identity(len(tree.leaves), format="csr", dtype=np.int64).toarray())[order]
        method = MinTraceSparse("wls_struct", nonnegative=True)
        S = sparse.csr_matrix(S, dtype=np.float64)
        theirs, other = timed(lambda: method.fit_predict(S, y[order][:, None])["mean"][:, 0])
        values = np.empty(tree.n)
        values[order] = np.rint(theirs)
        broken = (values[inner] != tree.sum_up(values[tree.leaves].astype(np.int64))[inner]).sum()
        print(f"    hierarchicalforecast: {other / seconds:.2f} times our time, {broken} of {inner.size} sums break")


def poisson(mean: float, size: int = 60) -> np.ndarray:
    x = np.arange(size)
    return np.exp(x * np.log(mean) - mean - np.array([lgamma(k + 1) for k in x]))


def laws(means: tuple[float, ...] = (9, 3, 4, 2, 2, 2, 2)) -> None:
    ours = hf.reconcile_laws(hf.Hierarchy.from_parents([-1, 0, 0, 1, 1, 2, 2]), [poisson(mean) for mean in means])
    group = [np.convolve(poisson(a), poisson(b))[:60] for a, b in (means[3:5], means[5:7])]
    total = np.convolve(group[0] * poisson(means[1]), group[1] * poisson(means[2]))[:60] * poisson(means[0])
    total /= total.sum()
    deviation = float(total @ (np.arange(60) - total @ np.arange(60)) ** 2) ** 0.5
    assert abs(ours.standard_error[0] - deviation) < 1e-12
    print(
        f"four leaves, two groups, one total: standard deviation {ours.standard_error[0]:.4f}, listed {deviation:.4f}"
    )
    if there("bayesreconpy"):
        from bayesreconpy.reconc_buis import reconc_buis

        A = np.array([[1, 1, 1, 1], [1, 1, 0, 0], [0, 0, 1, 1]])
        base = [{"lambda": float(mean)} for mean in means]
        found = reconc_buis(A, base, "params", "poisson", num_samples=200_000, suppress_warnings=True, seed=1)
        print(f"    bayesreconpy, 200,000 samples: {np.std(found['upper_reconciled_samples'][0]):.4f}")
    items = hf.Hierarchy.from_parents([-1, *[0] * 11, *(1 + np.arange(3049) % 11)])
    rng = np.random.default_rng(0)
    means_of = items.sum_up(rng.gamma(0.6, 2, 3049) + 0.05) * np.exp(rng.normal(0, 0.1, items.n))
    given = [poisson(float(mean), int(mean + 12 * mean**0.5 + 20)) for mean in means_of]
    _, seconds = timed(lambda: hf.reconcile_laws(items, given).standard_error)
    print(f"    3,049 items, 11 groups and a total: the laws of all in {seconds:.2f} s")


def reach() -> None:
    rng = np.random.default_rng(0)
    parents = np.array([-1, *[0] * 14, *(1 + np.arange(195) % 14)])
    n, people = parents.size, 10_000
    tree = hf.Hierarchy.from_parents(parents)
    views = tree.sum_up(rng.gamma(1, 300, len(tree.leaves)))
    unique = people * (1 - np.exp(-views / people))
    y = np.concatenate([views, unique]) * np.exp(rng.normal(0, 0.15, 2 * n))
    low = []
    for node in range(n):
        low.append({node: 1, n + node: -1})  # no more people than views
        below = np.flatnonzero(parents == node).tolist()
        low += [{n + node: 1, n + each: -1} for each in below]  # no part reaches more than the whole
        low += [{n + node: -1} | {n + each: 1 for each in below}] * bool(below)  # nor the whole more than its parts
    G = np.zeros((len(low), 2 * n), dtype=np.int64)
    for i, row in enumerate(low):
        G[i, list(row)] = list(row.values())
    equal = [node for node in range(n) if (parents == node).any()]
    A = np.zeros((len(equal), 2 * n), dtype=np.int64)
    for i, node in enumerate(equal):
        A[i, node], A[i, np.flatnonzero(parents == node)] = 1, -1
    top = np.concatenate([np.full(n, np.inf), np.full(n, people)])
    rules = [
        hf.equals(A, np.zeros(len(A))),
        hf.at_least(G, np.zeros(len(G))),
        hf.between(0, people, at=range(n, 2 * n)),
    ]
    ours, seconds = timed(lambda: hf.reconcile(y, [*rules, hf.nonnegative()], np.sqrt(y)))

    def broken(z: np.ndarray) -> int:
        return int((A @ z != 0).sum() + (G @ z < 0).sum() + (z < 0).sum() + (z > top).sum())

    share = float(ours.gap[0] / ours.distance[0])
    print(f"reach report, {2 * n} figures: {seconds:.2f} s, {broken(ours.values)} rules break, gap {100 * share:.2g} %")
    rows = sparse.csc_matrix(np.vstack([A, G, np.eye(2 * n)]))
    least = np.zeros(rows.shape[0])
    most = np.concatenate([np.zeros(len(A)), np.full(len(G), np.inf), top])
    if there("osqp"):
        import osqp

        def solved() -> np.ndarray:
            solver = osqp.OSQP()
            quadratic = sparse.diags(1 / y, format="csc")
            solver.setup(quadratic, -np.ones(2 * n), rows, least, most, verbose=False, max_iter=20_000)
            return solver.solve().x

        theirs, other = timed(solved)
        print(f"    OSQP, rounded: {other / seconds:.2f} times our time, {broken(np.rint(theirs))} rules break")
    import clarabel

    finite = np.isfinite(most)
    finite[: len(A)] = False
    matrix = sparse.vstack([rows[: len(A)], -rows[len(A) :], rows[finite]], format="csc")
    right = np.concatenate([least[: len(A)], -least[len(A) :], most[finite]])
    cones = [clarabel.ZeroConeT(len(A)), clarabel.NonnegativeConeT(right.size - len(A))]
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    quadratic = sparse.diags(1 / y, format="csc")
    theirs, other = timed(
        lambda: clarabel.DefaultSolver(quadratic, -np.ones(2 * n), matrix, right, cones, settings).solve().x
    )
    print(f"    Clarabel, rounded: {other / seconds:.2f} times our time, {broken(np.rint(theirs))} rules break")


def raking() -> None:
    rng = np.random.default_rng(0)
    seed = rng.gamma(1, 5, (40, 30)) + 0.1
    margins = [rng.multinomial(6000, seed.sum(axis) / seed.sum()) for axis in (1, 0)]
    A = np.vstack(
        [np.kron(np.eye(40, dtype=int), np.ones(30, dtype=int)), np.kron(np.ones(40, dtype=int), np.eye(30, dtype=int))]
    )
    rules = [hf.equals(A, np.concatenate(margins)), hf.nonnegative()]
    ours, seconds = timed(lambda: hf.reconcile(seed.ravel(), rules, np.sqrt(seed.ravel())))
    assert (A @ ours.values == np.concatenate(margins)).all()
    print(f"two-way table of 1,200 cells: {seconds:.2f} s, whole, 0 of 70 margins break, nearest: {ours.nearest}")
    if there("ipfn"):
        from ipfn import ipfn

        theirs, other = timed(
            lambda: ipfn.ipfn(seed.copy(), [m.astype(float) for m in margins], [[0], [1]]).iteration()
        )
        broken = int((A @ np.rint(theirs).ravel() != np.concatenate(margins)).sum())
        print(f"    ipfn, rounded: {other / seconds:.3f} times our time, {broken} of 70 margins break")


if __name__ == "__main__":
    forecasts(300)
    laws()
    reach()
    raking()
