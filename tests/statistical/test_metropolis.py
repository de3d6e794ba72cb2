"""Metropolis chains on small hierarchies against listed laws and closed forms.

The right law is accepted; wrong ones are rejected: a scale 30 % off, and an acceptance that forgets the parents.
"""

import numpy as np
import pytest
from scipy import stats

import holdfast as hf
from holdfast.given.baselines import metropolis

ALARM = 1e-6
FAR = stats.norm.isf(ALARM / 40)  # up to twenty comparisons at once, two-sided
DRAWS = 1_500
REACH = 12

THREE = hf.Hierarchy.from_parents([-1, 0, 0, 1, 1, 2])
FOREST = hf.Hierarchy.from_parents([1, -1, 3, -1, 3])
EXACT_MIDDLE = hf.invariant(hf.exact_nodes(THREE, [1]))

# name: kind, tree, scale per node (inf: not measured), truth of the leaves, extra constraint
CASES = {
    "equal scales": ("laplace", THREE, [1, 1, 1, 1, 1, 1], [2, 0, 1], None),
    "Gaussian, scales per node": ("gaussian", THREE, [2, 1, 0.75, 1, 0.75, 1.5], [2, 0, 1], None),
    "an unmeasured middle": ("laplace", THREE, [1, np.inf, 1, 1, 1, 1], [2, 0, 1], None),
    "an exact root": ("gaussian", THREE, [1, 1, 1, 1, 1, 1], [2, 0, 1], hf.invariant(hf.exact_nodes(THREE, [0]))),
    "an exact middle, not negative": ("laplace", THREE, [1] * 6, [2, 1, 1], EXACT_MIDDLE & hf.nonnegative()),
    "an impossible leaf": ("laplace", THREE, [1, 1, 1, 1, 1, 1], [2, 0, 1], hf.fixed(4, 0)),
    "a forest": ("laplace", FOREST, [1, 1, 0.5, 1, 1], [0, 3, 1], None),
    "not negative": ("laplace", THREE, [1, 1, 1, 1, 1, 1], [0, 0, 1], hf.nonnegative()),
    "Gaussian, between": ("gaussian", THREE, [1, 1, 1, 1, 1, 1], [0, 2, 1], hf.between(0, 2, at=THREE.leaves)),
    "a bounded root": ("laplace", THREE, [1, 1, 1, 1, 1, 1], [0, 2, 1], hf.between(2, 4, at=0)),
}


def listed(kind, tree, scales, leaves, extra, factor=1.0, forget=()):
    """The conditional law of the leaves; `factor` and `forget` make it wrong."""
    truth = tree.sum_up(leaves)
    axes = [np.arange(x - REACH, x + REACH + 1) for x in leaves]
    grid = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, len(leaves))
    worlds = tree.sum_up(grid.T).T
    keep = np.ones(len(worlds), dtype=bool)
    if extra is not None:
        system = extra.system(tree.n)
        rows = system.invariants.A.toarray()
        keep = system.holds(worlds) & (rows @ (worlds - truth).T == 0).all(axis=0)
    logs = np.zeros(len(worlds))
    for v, scale in enumerate(scales):
        if np.isfinite(scale) and v not in forget:
            away = np.abs(worlds[:, v] - truth[v]) / (factor * scale)
            logs -= away if kind == "laplace" else away**2 / 2
    chances = np.where(keep, np.exp(logs), 0.0)
    chances /= chances.sum()
    return dict(zip(map(tuple, grid[keep].tolist()), chances[keep].tolist(), strict=True))


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


def mechanism(kind, tree, scales, extra, integer=True):
    make = hf.laplace if kind == "laplace" else hf.gaussian
    must = hf.consistent(tree) if extra is None else hf.consistent(tree) & extra
    return make(hf.counts(tree), scale=scales, integer=integer).given(must, method="metropolis")


@pytest.mark.parametrize("name", CASES)
def test_whole_draws_follow_the_listed_law(name):
    kind, tree, scales, leaves, extra = CASES[name]
    draws = mechanism(kind, tree, scales, extra).simulate(tree.sum_up(leaves), DRAWS, rng=hf.seeded(21))
    assert np.array_equal(draws, tree.sum_up(draws[:, tree.leaves].T).T)
    found = draws[:, tree.leaves]
    assert pearson(found, listed(kind, tree, scales, leaves, extra)) > ALARM
    assert pearson(found, listed(kind, tree, scales, leaves, extra, factor=1.3)) < ALARM
    if extra is None and np.isfinite(scales).all():
        parents = np.flatnonzero(~tree.is_leaf).tolist()
        assert pearson(found, listed(kind, tree, scales, leaves, extra, forget=parents)) < ALARM


def far_from(samples, mean, variance):
    """How many standard deviations mean and variance of the samples lie away, at most."""
    size = len(samples)
    centred = samples - mean
    from_mean = np.abs(centred.mean(axis=0)) / np.sqrt(variance / size)
    from_variance = np.abs((centred**2).mean(axis=0) - variance) / np.sqrt((centred**2).var(axis=0) / size)
    return max(from_mean.max(), from_variance.max())


def test_real_gaussian_draws_have_the_errors_of_the_closed_form():
    scales = [2, np.inf, 0.5, 1, 0.75, 1.5]
    noise = mechanism("gaussian", THREE, scales, None, integer=False).noise(DRAWS, rng=hf.seeded(4))
    exact = hf.gaussian(hf.counts(THREE), scale=scales, integer=False).given(hf.consistent(THREE))
    assert exact.method == "gaussian_tree"
    variances = exact.standard_error() ** 2
    assert far_from(noise, 0.0, variances) < FAR
    assert far_from(noise, 0.0, 1.3**2 * variances) > FAR


def test_real_laplace_draws_with_an_exact_total_have_the_variance_of_the_paper():
    """TV Prop 18: three cells given their total, variance 5/6·λ²; the solved leaf is no exception."""
    tree = hf.Hierarchy.from_parents([-1, 0, 0, 0])
    extra = hf.invariant(hf.exact_nodes(tree, [0]))
    made = mechanism("laplace", tree, [np.inf, 2, 2, 2], extra, integer=False)
    noise = made.noise(DRAWS, rng=hf.seeded(5))
    assert not noise[:, 0].any()
    assert np.abs(noise[:, 1:].sum(axis=1)).max() < 1e-12
    assert far_from(noise[:, 1:], 0.0, 5 / 6 * 4) < FAR
    assert far_from(noise[:, 1:], 0.0, 4 / 3 * 4) > FAR  # by imaging


def test_real_draws_that_are_not_negative_have_the_integrated_moments():
    tree = hf.Hierarchy.from_parents([-1, 0, 0])
    leaves = np.array([0.3, 1.5])
    middles = (np.arange(800) + 0.5) * 0.025
    one, other = np.meshgrid(middles, middles, indexing="ij")
    energy = np.abs(one + other - leaves.sum()) + np.abs(one - leaves[0]) / 0.5 + np.abs(other - leaves[1])
    weights = np.exp(-energy) / np.exp(-energy).sum()
    means = np.array([(weights * one).sum(), (weights * other).sum()])
    variances = np.array([(weights * one**2).sum(), (weights * other**2).sum()]) - means**2
    made = mechanism("laplace", tree, [1, 0.5, 1], hf.nonnegative(), integer=False)
    draws = made.simulate(tree.sum_up(leaves), DRAWS, rng=hf.seeded(6))
    assert draws.min() >= 0
    assert far_from(draws[:, 1:], means, variances) < FAR
    assert far_from(draws[:, 1:], leaves, variances) > FAR


@pytest.mark.parametrize("integer", [True, False])
@pytest.mark.parametrize("kind", ["laplace", "gaussian"])
def test_every_table_holds_what_must_hold(kind, integer):
    """Categories, nested exact nodes, a fixed leaf, bounds on leaves and on inner nodes, nodes in any order."""
    tree = hf.Hierarchy.from_parents([2, 2, 4, 4, -1, 3, 3, 3, 2])
    query = hf.counts(tree, by=2)
    cells = np.array([[0, 3], [2, 1], [0, 0], [5, 2], [1, 1], [0, 4]])
    truth = query.answer(cells)
    fixed_at = 2 * 7
    must = hf.consistent(query) & hf.nonnegative() & hf.between(2, 9, at=[2 * 2, 2 * 3]) & hf.fixed(fixed_at, [1])
    must &= hf.invariant(np.eye(query.n, dtype=int)[[2 * 4, 2 * 3 + 1]])
    make = hf.laplace if kind == "laplace" else hf.gaussian
    made = make(query, scale=1.5, integer=integer).given(must, method="metropolis")
    draws = made.simulate(truth, 200, rng=hf.seeded(8))
    slack = 0 if integer else 1e-12
    tables = draws.reshape(200, tree.n, 2)
    for category in (0, 1):
        values = tables[:, :, category]
        assert np.abs(values - tree.sum_up(values[:, tree.leaves].T).T).max() <= slack
    assert draws.min() >= 0
    for at in (2 * 2, 2 * 3):
        assert draws[:, at].min() >= 2 - slack
        assert draws[:, at].max() <= 9 + slack
    for at in (fixed_at, 2 * 4, 2 * 3 + 1):
        assert (draws[:, at] == truth[at]).all()
    free = [2 * 4 + 1, 2 * 2, 2 * 2 + 1, 2 * 3, *(2 * tree.leaves + 1)]
    assert (draws[:, free].std(axis=0) > 0.3).all()


def test_where_nothing_is_free_there_is_no_noise():
    tree = hf.Hierarchy.from_parents([-1, 0])
    made = mechanism("laplace", tree, 1, hf.invariant(hf.exact_nodes(tree, [0])))
    assert not made.noise(3).any()
    assert not made.standard_error().any()


def test_draws_are_independent_and_come_from_the_stream():
    made = mechanism("laplace", THREE, 1, None)
    noise = made.noise(DRAWS, rng=hf.seeded(9))
    assert np.array_equal(noise, made.noise(DRAWS, rng=hf.seeded(9)))
    neighbours = [np.corrcoef(noise[1:, v], noise[:-1, v])[0, 1] for v in range(THREE.n)]
    assert np.abs(neighbours).max() < FAR / np.sqrt(DRAWS)


def test_errors_are_measured_on_the_chain():
    made = mechanism("laplace", THREE, 1, None)
    exact = hf.laplace(hf.counts(THREE), scale=1).given(hf.consistent(THREE), method="hierarchy")
    # Some 900 effective draws: the error of a standard error is below 4 %.
    assert made.standard_error() == pytest.approx(exact.standard_error(), rel=0.2)


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
    problem = mechanism("laplace", THREE, 2, None).source.plan.problem
    found = metropolis.diagnose(problem, None, hf.seeded(1), chains=4, steps=20_000)
    assert (found.chains, found.steps, found.effective.shape) == (4, 20_000, (3,))
    assert 0.15 < found.acceptance < 0.33
    assert 500 < found.least_effective <= found.median_effective < 20_000
    assert found.steps_per_draw == 80_000 / found.least_effective
    assert found.r_hat.max() < 1.05
    assert "effective draws: least" in str(found)
    often = metropolis.diagnose(problem, None, hf.seeded(1), steps=20_000, acceptance=0.6)
    assert 0.5 < often.acceptance < 0.7
    assert often.step < found.step
