"""Continuous noise given linear constraints, against closed forms, numerical integration and whole-number laws.

The right law is accepted and a wrong one is rejected, each with a false-alarm rate of 1e-6.
"""

import numpy as np
import pytest
from scipy import stats

import holdfast as hf
from holdfast.given import Problem
from holdfast.given.exact import solved
from holdfast.given.near import lines

ALARM = 1e-6
DRAWS = 2_000
MAKE = {"laplace": hf.laplace, "gaussian": hf.gaussian}


def problem(kind, query, constraint, scale=1.0, tau=1e-4):
    law = MAKE[kind](query, scale=scale, integer=False).base.law
    return Problem(law, constraint.system(query.n), tau=tau)


def p_value(draws, cdf):
    return stats.kstest(draws, cdf).pvalue


# --- closed forms: on a cone with its tip at the truth, the energy of the noise has a Gamma law ----------------------

CROSSED = hf.invariant(hf.exact_margins((4, 5), [(0,), (1,)]))
TREE = hf.Hierarchy.from_parents([-1, 0, 0, 1, 1, 1, 2, 2])


@pytest.mark.parametrize(
    ("query", "constraint", "dimension", "scale"),
    [
        (hf.margins((4, 5)), CROSSED, 12, 2.0),
        (hf.margins((4, 5)), CROSSED, 12, np.linspace(0.5, 4, 20)),
        (hf.margins((2, 3, 3)), hf.invariant(hf.exact_margins((2, 3, 3), [(0, 1), (1, 2), (0, 2)])), 4, 1.0),
        (hf.counts(TREE), hf.consistent(TREE), 5, [1, 2, 3, 1, 1, 2, 1, 0.5]),
        (hf.histogram(4), hf.invariant([[2, 1, 0, -1], [0, 1, 3, 1]]), 2, 1.0),
    ],
)
def test_laplace_noise_given_equalities_has_a_gamma_energy(query, constraint, dimension, scale):
    made = problem("laplace", query, constraint, scale)
    assert lines.accepts(made)
    noise = lines.draw(made, None, DRAWS, hf.seeded(1))
    assert np.abs(made.space.rows @ noise.T).max() < 1e-9
    energy = (np.abs(noise) / scale).sum(axis=1)
    assert p_value(energy, stats.gamma(dimension).cdf) > ALARM
    assert p_value(energy, stats.gamma(dimension, scale=1.15).cdf) < ALARM


@pytest.mark.parametrize(
    ("query", "constraint", "dimension", "scale"),
    [
        (hf.margins((2, 6)), hf.invariant(hf.exact_margins((2, 6), [(0,), (1,)])), 5, np.linspace(1, 3, 12)),
        (hf.margins((3, 3)), hf.invariant(hf.exact_margins((3, 3), [(0,), (1,)])), 4, 1.0),
        (hf.counts(TREE), hf.consistent(TREE), 5, [1, 2, 3, 1, 1, 2, 1, 0.5]),
        (hf.histogram(40), hf.invariant(np.ones((1, 40), dtype=int)), 39, np.linspace(0.5, 3, 40)),
        (hf.histogram(4), hf.invariant([[2, 1, 0, -1], [0, 1, 3, 1]]), 2, 1.0),
        (hf.margins((2, 2)), hf.invariant(hf.exact_margins((2, 2), [(0,), (1,)])), 1, [np.inf, 2, 2, np.inf]),
    ],
)
def test_few_equalities_are_solved_exactly(query, constraint, dimension, scale):
    made = problem("laplace", query, constraint, scale)
    assert solved.accepts(made)
    noise = solved.draw(made, None, DRAWS, hf.seeded(12))
    assert np.abs(made.space.rows @ noise.T).max() < 1e-9
    energy = (np.abs(noise) / scale).sum(axis=1)
    assert p_value(energy, stats.gamma(dimension).cdf) > ALARM
    assert p_value(energy / 1.3, stats.gamma(dimension).cdf) < ALARM
    if np.isfinite(scale).all():
        near = lines.draw(made, None, DRAWS, hf.seeded(13))
        for i in range(0, query.n, 5):
            assert stats.ks_2samp(noise[:, i], near[:, i]).pvalue > 1e-8


CONES = {
    "ordered": (hf.histogram(5), hf.ordered([0, 1, 2, 3, 4]), np.full(5, 7.0), 5),
    "not negative, a row of cells above another": (
        hf.histogram(4),
        hf.nonnegative() & hf.at_least([[1, 1, -1, -1]], [0]),
        np.zeros(4),
        4,
    ),
    "consistent, not negative": (hf.counts(TREE), hf.consistent(TREE) & hf.nonnegative(), np.zeros(8), 5),
}


@pytest.mark.parametrize("kind", MAKE)
@pytest.mark.parametrize("name", CONES)
def test_noise_on_a_cone_has_the_energy_of_its_kind(kind, name):
    query, constraint, truth, dimension = CONES[name]
    made = problem(kind, query, constraint, 1.5)
    assert lines.accepts(made)
    noise = lines.draw(made, truth, DRAWS, hf.seeded(2))
    assert made.system.holds(noise + truth).all()
    if kind == "laplace":
        energy, law = (np.abs(noise) / 1.5).sum(axis=1), stats.gamma(dimension)
    else:
        energy, law = (noise**2 / 1.5**2).sum(axis=1), stats.chi2(dimension)
    assert p_value(energy, law.cdf) > ALARM
    assert p_value(energy / 1.3, law.cdf) < ALARM


# --- numerical integration -------------------------------------------------------------------------------------------

GRID = 1_201


def marginal(kind, truth, scales, low, high):
    """CDF of the first of three cells with an exact total, each between its bounds, by integration on a grid."""
    first = np.linspace(max(low[0], truth[0] - 30), min(high[0], truth[0] + 30), GRID)
    second = np.linspace(max(low[1], truth[1] - 30), min(high[1], truth[1] + 30), GRID)
    z = np.stack([*np.meshgrid(first, second, indexing="ij"), np.zeros((GRID, GRID))])
    z[2] = sum(truth) - z[0] - z[1]
    away = np.abs(z - np.reshape(truth, (3, 1, 1))) / np.reshape(scales, (3, 1, 1))
    energy = (away if kind == "laplace" else away**2 / 2).sum(axis=0)
    weight = np.where((z[2] >= low[2]) & (z[2] <= high[2]), np.exp(-energy), 0.0).sum(axis=1)
    cumulative = np.concatenate([[0.0], np.cumsum((weight[1:] + weight[:-1]) / 2)])
    return lambda values: np.interp(values, first, cumulative / cumulative[-1])


@pytest.mark.parametrize("kind", MAKE)
@pytest.mark.parametrize(
    ("truth", "low", "high"),
    [([2, 0, 1], [0, 0, 0], [np.inf] * 3), ([2, 3, 1], [0, 1, -1], [2, 4, 5]), ([50, 0, 0], [0, 0, 0], [51, 40, 40])],
)
def test_bounded_cells_with_an_exact_total_follow_the_integrated_law(kind, truth, low, high):
    scales = [1.0, 2.0, 0.5]
    bounds = hf.nonnegative() if np.isinf(high[0]) else hf.between(low, high)
    made = problem(kind, hf.histogram(3), hf.invariant([[1, 1, 1]]) & bounds, scales)
    assert lines.accepts(made)
    values = lines.draw(made, np.array(truth), DRAWS, hf.seeded(3)) + truth
    assert (values >= low).all()
    assert (values <= high).all()
    assert np.allclose(values.sum(axis=1), sum(truth))
    assert p_value(values[:, 0], marginal(kind, truth, scales, low, high)) > ALARM
    assert p_value(values[:, 0], marginal(kind, truth, [0.3, 0.3, 3.0], low, high)) < ALARM


def test_scales_that_differ_follow_the_integrated_law():
    scales = [1.0, 3.0, 0.5]
    made = problem("laplace", hf.histogram(3), hf.invariant([[1, 1, 1]]), scales)
    noise = lines.draw(made, None, DRAWS, hf.seeded(4))
    free = [-np.inf] * 3, [np.inf] * 3
    assert p_value(noise[:, 0], marginal("laplace", [0, 0, 0], scales, *free)) > ALARM
    assert p_value(noise[:, 0], marginal("laplace", [0, 0, 0], [1.0, 0.5, 0.5], *free)) < ALARM


def test_cells_without_noise_of_their_own_follow_from_measured_ones():
    # Two crossed margins of 2 × 2 cells leave one number t; with one measured cell it is that cell's own noise.
    constraint = hf.invariant(hf.exact_margins((2, 2), [(0,), (1,)]))
    made = problem("laplace", hf.margins((2, 2)), constraint, [np.inf, np.inf, 2.0, np.inf])
    assert lines.accepts(made)
    noise = lines.draw(made, None, DRAWS, hf.seeded(5))
    assert np.allclose(noise, noise[:, [0]] * [1, -1, -1, 1])
    assert p_value(noise[:, 2], stats.laplace(scale=2).cdf) > ALARM


# --- whole-number laws on a fine grid --------------------------------------------------------------------------------


def test_fine_whole_noise_has_the_same_law():
    fine, scales = 64, np.array([1, 2, 3, 1, 1, 2, 1, 0.5])
    made = problem("laplace", hf.counts(TREE), hf.consistent(TREE), scales)
    ours = lines.draw(made, None, DRAWS, hf.seeded(6))
    whole = hf.laplace(hf.counts(TREE), scale=fine * scales).given(hf.consistent(TREE)).noise(DRAWS, rng=hf.seeded(7))
    within = np.random.default_rng(8).uniform(-0.5, 0.5, size=whole.shape)
    for v in range(TREE.n):
        assert stats.ks_2samp(ours[:, v], (whole[:, v] + within[:, v]) / fine).pvalue > ALARM
    assert stats.ks_2samp(ours[:, 0], whole[:, 7] / fine).pvalue < ALARM


def test_fine_whole_noise_has_the_same_law_with_bounds():
    fine, leaves = 64, [1, 0, 0, 2, 0]
    constraint = hf.consistent(TREE) & hf.nonnegative()
    made = problem("laplace", hf.counts(TREE), constraint, 1.0)
    ours = lines.draw(made, TREE.sum_up(leaves), DRAWS, hf.seeded(9)) + TREE.sum_up(leaves)
    mechanism = hf.laplace(hf.counts(TREE), scale=fine).given(constraint)
    whole = mechanism.simulate(TREE.sum_up(np.array(leaves) * fine), DRAWS, rng=hf.seeded(10))
    for v in range(TREE.n):
        assert stats.ks_2samp(ours[:, v], whole[:, v] / fine + 1e-3).pvalue > ALARM
    assert stats.ks_2samp(ours[:, 3], whole[:, 4] / fine).pvalue < ALARM
