"""Tables drawn by tickets against enumeration, with all tickets given out, with some and with none.

Divisions whose ticket is open are made by hand, so with few tickets these tests see what a sensible table hardly needs.
"""

import numpy as np
import pytest
from scipy import stats

import holdfast as hf
from samplers import NONE, sampler, sums_up

ALARM = 1e-7
MANY, SOME = 20_000, 300
REACH = 14
ROWS = 10**9  # enough to repay any table

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
    draws = made.tables(ROWS).draw(MANY, hf.seeded(41))
    assert sums_up(made.forest.parents, draws)
    assert pearson(draws, tables, chances()) > ALARM
    assert pearson(draws, tables, chances(1.1)) < 1e-12


@pytest.mark.parametrize("kind", ["laplace", "gaussian"])
@pytest.mark.parametrize(
    ("name", "share"), [("a block of three", 0.5), ("scales per node", 0.9), ("an exact middle", 0.0), ("between", 0.5)]
)
def test_divisions_by_hand_have_the_exact_law(kind, name, share):
    made, tables, chances = case(name, kind)
    draws = made.tables(ROWS, share).draw(SOME, hf.seeded(42))
    assert sums_up(made.forest.parents, draws)
    assert pearson(draws, tables, chances()) > ALARM
    sizes, wider = np.abs(draws).sum(axis=1), np.abs(tables).sum(axis=1)
    assert abs(sizes.mean() - chances(1.5) @ wider) / (sizes.std() / SOME**0.5) > 3


@pytest.mark.parametrize("kind", ["laplace", "gaussian"])
def test_tickets_and_messages_draw_one_law(kind):
    """Forty leaves of two scales in uneven groups, some bounded, drawn in both ways: means of powers agree."""
    parents = [-1, 0, 0, 0] + [1] * 20 + [2] * 15 + [3] * 5
    low = np.where(np.arange(44) < 4, -NONE, np.where(np.arange(44) % 3 == 1, 0, -NONE))
    scales = np.where(np.arange(44) < 4, 1.5, np.where(np.arange(44) % 2, 1.0, 0.5))
    made = sampler(parents, kind, scales, low=low)
    plain, quick = made.draw(5_000, hf.seeded(2)), made.tables(ROWS).draw(50_000, hf.seeded(3))
    assert (quick >= low).all()
    assert sums_up(parents, quick)
    for power in (1, 2):
        a, b = plain.astype(float) ** power, quick.astype(float) ** power
        apart = (a.mean(axis=0) - b.mean(axis=0)) / np.sqrt(a.var(axis=0) / len(a) + b.var(axis=0) / len(b))
        assert np.abs(apart).max() < 6
