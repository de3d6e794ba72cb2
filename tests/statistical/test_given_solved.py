"""Continuous Laplace noise given linear constraints, against closed forms and whole-number laws.

The right law is accepted and a wrong one is rejected, each with a false-alarm rate of 1e-6.
"""

import numpy as np
import pytest
from scipy import stats

import holdfast as hf
from holdfast.given import Problem
from holdfast.given.exact import solved

ALARM = 1e-6
DRAWS = 2_000


def problem(query, constraint, scale):
    return Problem(hf.laplace(query, scale=scale, integer=False).base.law, constraint.system(query.n))


def p_value(draws, cdf):
    return stats.kstest(draws, cdf).pvalue


TREE = hf.Hierarchy.from_parents([-1, 0, 0, 1, 1, 1, 2, 2])


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
    made = problem(query, constraint, scale)
    assert solved.accepts(made)
    noise = solved.draw(made, None, DRAWS, hf.seeded(12))
    assert np.abs(made.space.rows @ noise.T).max() < 1e-9
    energy = (np.abs(noise) / scale).sum(axis=1)
    assert p_value(energy, stats.gamma(dimension).cdf) > ALARM
    assert p_value(energy / 1.3, stats.gamma(dimension).cdf) < ALARM


def test_fine_whole_noise_has_the_same_law():
    fine, scales = 64, np.array([1, 2, 3, 1, 1, 2, 1, 0.5])
    made = problem(hf.counts(TREE), hf.consistent(TREE), scales)
    ours = solved.draw(made, None, DRAWS, hf.seeded(6))
    whole = hf.laplace(hf.counts(TREE), scale=fine * scales).given(hf.consistent(TREE)).noise(DRAWS, rng=hf.seeded(7))
    within = np.random.default_rng(8).uniform(-0.5, 0.5, size=whole.shape)
    for v in range(TREE.n):
        assert stats.ks_2samp(ours[:, v], (whole[:, v] + within[:, v]) / fine).pvalue > ALARM
    assert stats.ks_2samp(ours[:, 0], whole[:, 7] / fine).pvalue < ALARM
