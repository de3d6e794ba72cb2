"""Metropolis chains on small hierarchies against listed laws and closed forms.

The right law is accepted; wrong ones are rejected: a scale 30 % off, and an acceptance that forgets the parents.
"""

import numpy as np
import pytest
from scipy import stats

import holdfast as hf
from holdfast.given import metropolis

ALARM = 1e-6
FAR = stats.norm.isf(ALARM / 40)  # up to twenty comparisons at once, two-sided
DRAWS = 1_500
REACH = 12

THREE = hf.Hierarchy.from_parents([-1, 0, 0, 1, 1, 2])
FOREST = hf.Hierarchy.from_parents([1, -1, 3, -1, 3])

# name: kind, tree, scale per node (inf: not measured), truth of the leaves
CASES = {
    "equal scales": ("laplace", THREE, [1, 1, 1, 1, 1, 1], [2, 0, 1]),
    "Gaussian, scales per node": ("gaussian", THREE, [2, 1, 0.75, 1, 0.75, 1.5], [2, 0, 1]),
    "an unmeasured middle": ("laplace", THREE, [1, np.inf, 1, 1, 1, 1], [2, 0, 1]),
    "a forest": ("laplace", FOREST, [1, 1, 0.5, 1, 1], [0, 3, 1]),
}


def listed(kind, tree, scales, leaves, factor=1.0, forget=()):
    """The conditional law of the leaves; `factor` and `forget` make it wrong."""
    truth = tree.sum_up(leaves)
    axes = [np.arange(x - REACH, x + REACH + 1) for x in leaves]
    grid = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, len(leaves))
    worlds = tree.sum_up(grid.T).T
    logs = np.zeros(len(worlds))
    for v, scale in enumerate(scales):
        if np.isfinite(scale) and v not in forget:
            away = np.abs(worlds[:, v] - truth[v]) / (factor * scale)
            logs -= away if kind == "laplace" else away**2 / 2
    chances = np.exp(logs) / np.exp(logs).sum()
    return dict(zip(map(tuple, grid.tolist()), chances.tolist(), strict=True))


def pearson(draws, law):
    outputs, counts = np.unique(draws, axis=0, return_counts=True)
    seen = dict(zip(map(tuple, outputs.tolist()), counts.tolist(), strict=True))
    assert seen.keys() <= law.keys()
    likely = {k: p * len(draws) for k, p in law.items() if p * len(draws) >= 10}
    observed = np.array([seen.get(k, 0) for k in likely] + [len(draws) - sum(seen.get(k, 0) for k in likely)])
    wanted = np.array([*likely.values(), len(draws) - sum(likely.values())])
    if wanted[-1] < 10:
        observed, wanted = observed[:-1], wanted[:-1]
    return stats.chi2.sf(((observed - wanted) ** 2 / wanted).sum(), len(wanted) - 1)


def mechanism(kind, tree, scales):
    make = hf.laplace if kind == "laplace" else hf.gaussian
    return make(hf.counts(tree), scale=scales).given(hf.consistent(tree), method="metropolis")


@pytest.mark.parametrize("name", CASES)
def test_whole_draws_follow_the_listed_law(name):
    kind, tree, scales, leaves = CASES[name]
    draws = mechanism(kind, tree, scales).simulate(tree.sum_up(leaves), DRAWS, rng=hf.seeded(21))
    assert np.array_equal(draws, tree.sum_up(draws[:, tree.leaves].T).T)
    found = draws[:, tree.leaves]
    assert pearson(found, listed(kind, tree, scales, leaves)) > ALARM
    assert pearson(found, listed(kind, tree, scales, leaves, factor=1.3)) < ALARM
    if np.isfinite(scales).all():
        parents = np.flatnonzero(~tree.is_leaf).tolist()
        assert pearson(found, listed(kind, tree, scales, leaves, forget=parents)) < ALARM


def test_draws_are_independent_and_come_from_the_stream():
    made = mechanism("laplace", THREE, 1)
    noise = made.noise(DRAWS, rng=hf.seeded(9))
    assert np.array_equal(noise, made.noise(DRAWS, rng=hf.seeded(9)))
    neighbours = [np.corrcoef(noise[1:, v], noise[:-1, v])[0, 1] for v in range(THREE.n)]
    assert np.abs(neighbours).max() < FAR / np.sqrt(DRAWS)


def test_effective_draws_of_known_sequences():
    rng = np.random.default_rng(3)
    independent = rng.normal(size=(4, 5_000, 3))
    assert metropolis.effective_draws(independent) == pytest.approx(np.full(3, 20_000), rel=0.15)
    assert metropolis.split_r_hat(independent) == pytest.approx(np.ones(3), abs=0.01)
    # An autoregression with coefficient φ has n(1−φ)/(1+φ) effective draws.
    slow = np.empty_like(independent)
    slow[:, 0] = independent[:, 0]
    for t in range(1, 5_000):
        slow[:, t] = 0.9 * slow[:, t - 1] + np.sqrt(1 - 0.81) * independent[:, t]
    assert metropolis.effective_draws(slow) == pytest.approx(np.full(3, 20_000 * 0.1 / 1.9), rel=0.35)
    # Chains that stay apart, and chains that stand still.
    assert metropolis.split_r_hat(independent + 3 * np.arange(4)[:, None, None]).min() > 2
    still = np.zeros((2, 100, 1)) + np.array([0.0, 1.0])[:, None, None]
    assert metropolis.effective_draws(still).tolist() == [0.0]
    assert metropolis.split_r_hat(still).tolist() == [np.inf]
    assert metropolis.split_r_hat(np.zeros((2, 100, 1))).tolist() == [1.0]


def test_diagnostics_tell_how_the_chain_went():
    problem = mechanism("laplace", THREE, 2).source.plan.problem
    found = metropolis.diagnose(problem, hf.seeded(1), chains=4, steps=20_000)
    assert (found.steps, found.effective.shape) == (80_000, (3,))
    assert 0.15 < found.acceptance < 0.33
    assert 500 < found.effective.min() < 20_000
    assert found.steps_per_draw == 80_000 / found.effective.min()
    assert found.r_hat.max() < 1.05
