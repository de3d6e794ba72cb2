"""Samplers on small and large forests for tests, and laws by enumeration."""

from fractions import Fraction

import numpy as np
from scipy import stats

from holdfast.noise import Independent, IntegerGaussian, IntegerLaplace
from holdfast.trees.circles.sampler import Sampler
from holdfast.trees.shape.forest import Forest

NONE = 2**62


def noise(kind, scales):
    """Independent noise with one scale per output; inf: not measured."""
    laws, which, known = [], [], {}
    for scale in np.asarray(scales, dtype=float).tolist():
        if scale not in known:
            known[scale] = len(laws)
            exact = Fraction(scale) if np.isfinite(scale) else None
            laws.append(
                None if exact is None else IntegerLaplace(exact) if kind == "laplace" else IntegerGaussian(exact**2)
            )
        which.append(known[scale])
    return Independent(tuple(laws), np.array(which), len(which))


def sampler(parents, kind, scales, low=None, high=None, exact=(), **options):
    """A sampler; bounds are on noise, None: none anywhere."""
    parents = np.asarray(parents, dtype=np.int64)
    n = parents.size
    is_exact = np.zeros(n, dtype=bool)
    is_exact[list(exact)] = True
    scales = np.full(n, scales) if np.ndim(scales) == 0 else scales
    low = np.full(n, -NONE) if low is None else np.asarray(low, dtype=np.int64)
    high = np.full(n, NONE) if high is None else np.asarray(high, dtype=np.int64)
    return Sampler.of(Forest(parents, is_exact), noise(kind, scales), low, high, **options)


def sums_up(parents, draws):
    """Whether every parent is the sum of its children in every row."""
    parents = np.asarray(parents)
    totals = np.zeros_like(draws.T)
    below = np.flatnonzero(parents >= 0)
    np.add.at(totals, parents[below], draws.T[below])
    inner = np.unique(parents[below])
    return bool(np.array_equal(totals[inner], draws.T[inner]))


def enumerated(tree, kind, scales, leaves, constraint, reach, factor=1.0):
    """Probabilities of every table of leaf values that lie within `reach` of the truth."""
    axes = [np.arange(x - reach, x + reach + 1) for x in leaves]
    grid = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, len(leaves))
    nodes, truth = tree.sum_up(grid.T).T, tree.sum_up(leaves)
    keep = np.ones(len(grid), dtype=bool)
    if constraint is not None:
        system = constraint.system(tree.n)
        rows = system.invariants.A.toarray()
        keep = np.asarray(system.holds(nodes)) & (rows @ nodes.T == (rows @ truth)[:, None]).all(axis=0)
    logs = np.where(keep, 0.0, -np.inf)
    for v, scale in enumerate(scales):
        if np.isfinite(scale):
            away = np.abs(nodes[:, v] - truth[v]) / (factor * scale)
            logs = logs - (away if kind == "laplace" else away**2 / 2)
    chances = np.exp(logs - logs.max())
    return {tuple(g): p for g, p in zip(grid[keep].tolist(), (chances / chances.sum())[keep].tolist(), strict=True)}


def pearson(draws, law, fewest):
    """The p-value of tables drawn, those expected fewer times than `fewest` together."""
    outputs, counts = np.unique(draws, axis=0, return_counts=True)
    seen = dict(zip(map(tuple, outputs.tolist()), counts.tolist(), strict=True))
    likely = {k: p * len(draws) for k, p in law.items() if p * len(draws) >= fewest}
    observed = np.array([seen.get(k, 0) for k in likely] + [len(draws) - sum(seen.get(k, 0) for k in likely)])
    wanted = np.array([*likely.values(), max(len(draws) - sum(likely.values()), 1e-9)])
    if wanted[-1] < 5:
        observed, wanted = observed[:-1], wanted[:-1]
    return stats.chi2.sf(((observed - wanted) ** 2 / wanted).sum(), max(len(wanted) - 1, 1))
