"""Tables drawn by messages on circles against enumeration."""

import numpy as np
import pytest
from scipy import stats

import holdfast as hf
from samplers import NONE, sampler, sums_up

ALARM = 1e-7
MANY = 20_000
REACH = 14

# name: parents, scale per output (inf: not measured), exact outputs, lower and upper bounds on noise
CASES = {
    "three levels": ([-1, 0, 0, 1, 1, 2], [1, 1, 1, 1, 1, 1], (), {}, {}),
    "a block of three": ([-1, 0, 0, 0], [2, 1, 1, 1], (), {}, {}),
    "scales per node": ([-1, 0, 0, 1, 1, 2], [2, 1, 0.5, 1, 0.75, 1.5], (), {}, {}),
    "an unmeasured root": ([-1, 0, 0, 1, 1, 2], [np.inf, 1, 1, 1, 1, 1], (), {}, {}),
    "an unmeasured middle": ([-1, 0, 0, 1, 1, 2], [1, np.inf, 1, 1, 1, 1], (), {}, {}),
    "an exact root": ([-1, 0, 0, 1, 1, 2], [1, 1, 1, 1, 1, 1], (0,), {}, {}),
    "an exact middle": ([-1, 0, 0, 1, 1, 2], [2, 2, 2, 2, 2, 2], (1,), {}, {}),
    "an exact leaf": ([-1, 0, 0, 1, 1, 2], [1, 1, 1, 1, 1, 1], (4,), {}, {}),
    "a forest": ([-1, -1, 0, 0, 1], [1, 1, 0.5, 1, 1], (), {}, {}),
    "a lone leaf": ([-1, -1, 1], [1.5, 1, 1], (), {}, {}),
    "single children": ([-1, 0, 1, 2, 2, 0], [1.5, 1, 1.25, 1, 1, 1], (), {}, {}),
    "not negative": ([-1, 0, 0, 1, 1, 2], [2, 2, 2, 2, 2, 2], (), {3: 0, 4: 0, 5: -1}, {}),
    "between": ([-1, 0, 0, 1, 1, 2], [1, 1, 1, 1, 1, 1], (), {3: 0, 4: -2, 5: -1}, {3: 2, 4: 0, 5: 1}),
    "a bounded root": ([-1, 0, 0, 1, 1, 2], [1, 1, 1, 1, 1, 1], (), {0: -1}, {0: 1}),
}


def case(name, kind):
    """A sampler, and the chances of all tables within reach as a function of a factor on all scales."""
    parents, scales, exact, low, high = CASES[name]
    n = len(parents)
    lower, upper = np.array([low.get(v, -NONE) for v in range(n)]), np.array([high.get(v, NONE) for v in range(n)])
    leaves = [v for v in range(n) if v not in parents and v not in exact]
    grid = np.stack(np.meshgrid(*[np.arange(-REACH, REACH + 1)] * len(leaves), indexing="ij"), -1)
    tables = np.zeros((grid[..., 0].size, n), dtype=np.int64)
    tables[:, leaves] = grid.reshape(-1, len(leaves))
    for v in range(n - 1, 0, -1):
        if parents[v] >= 0:
            tables[:, parents[v]] += tables[:, v]
    tables = tables[(tables[:, list(exact)] == 0).all(axis=1) & ((tables >= lower) & (tables <= upper)).all(axis=1)]

    def chances(factor=1.0):
        away = np.abs(tables) / (factor * np.asarray(scales, dtype=float))
        logs = -(away if kind == "laplace" else away**2 / 2).sum(axis=1)
        weights = np.exp(logs - logs.max())
        return weights / weights.sum()

    return sampler(parents, kind, scales, lower, upper, exact), tables, chances


def pearson(draws, tables, chances):
    """The p-value of tables drawn, those expected fewer than ten times together."""
    outputs, counts = np.unique(draws, axis=0, return_counts=True)
    seen = dict(zip(map(tuple, outputs.tolist()), counts.tolist(), strict=True))
    likely = chances * len(draws) >= 10
    observed = np.array([seen.get(tuple(table), 0) for table in tables[likely].tolist()])
    wanted = chances[likely] * len(draws)
    rest = len(draws) - wanted.sum()
    if rest >= 5:
        observed, wanted = np.append(observed, len(draws) - observed.sum()), np.append(wanted, rest)
    return stats.chi2.sf(((observed - wanted) ** 2 / wanted).sum(), len(wanted) - 1)


@pytest.mark.parametrize("kind", ["laplace", "gaussian"])
@pytest.mark.parametrize("name", CASES)
def test_tables_have_the_exact_law(kind, name):
    made, tables, chances = case(name, kind)
    draws = made.draw(MANY, hf.seeded(41))
    assert sums_up(made.forest.parents, draws)
    assert pearson(draws, tables, chances()) > ALARM
    assert pearson(draws, tables, chances(1.1)) < 1e-12


def test_a_large_gaussian_leaf_that_empty_ones_pull_far_has_its_law():
    """It takes what 300 empty leaves take: their sum by convolution, under a slope so that doubles hold it."""
    trees, empty, sigma = 50, 300, 10.0
    parents = np.concatenate([np.full(trees, -1), np.repeat(np.arange(trees), empty + 1)])
    low = np.where(np.arange(parents.size) < trees, -(2**62), 0)
    low[trees :: empty + 1] = -150
    made = sampler(parents, "gaussian", sigma, low=low, exact=range(trees))
    taken = -made.draw(60, hf.seeded(6))[:, trees :: empty + 1].ravel()

    def law(sigma):
        places, slope = np.arange(1 << 12), 12.4 / sigma
        leaf = np.exp(-(places**2) / (2 * sigma**2) - slope * places)
        total = np.fft.irfft(np.fft.rfft(leaf / leaf.sum()) ** empty)
        weights = np.maximum(total, 0)[:151] * np.exp(slope * places - places**2 / (2 * sigma**2))[:151]
        return weights / weights.sum()

    places = np.arange(151)[:, None]
    assert pearson(taken[:, None], places, law(sigma)) > ALARM
    assert pearson(taken[:, None], places, law(1.03 * sigma)) < ALARM
    assert taken.max() <= 150
