"""Gaussian noise given equalities: prepared projections against the dense projector, and draws against their law."""

import numpy as np
import pytest
from scipy import stats

import holdfast as hf
from holdfast.given import Problem
from holdfast.given.exact.normal import gaussian
from holdfast.given.exact.normal.gaussian import projection

CUBES = {
    "one total": ((5,), [()]),
    "rows and columns": ((3, 4), [(0,), (1,)]),
    "two families": ((2, 3, 4), [(0, 2), (1, 2)]),
    "all pairs": ((2, 3, 4), [(0, 1), (1, 2), (0, 2)]),
    "one inside another": ((2, 3, 2), [(0, 1), (1,), (2,)]),
    "four axes": ((2, 3, 2, 2), [(0, 1), (1, 2, 3), (0, 3)]),
}


def problem(query, constraint, scale=1):
    law = hf.gaussian(query, scale=scale, integer=False).base.law
    return Problem(law, constraint.system(query.n))


def dense(rows, variances):
    """Σ − ΣAᵀ(AΣAᵀ)⁻¹AΣ times Σ⁻¹."""
    A, S = rows.toarray().astype(float), np.diag(variances)
    return np.eye(len(variances)) - S @ A.T @ np.linalg.pinv(A @ S @ A.T) @ A


@pytest.mark.parametrize("name", CUBES)
def test_the_projection_of_a_cube(name):
    shape, keep = CUBES[name]
    made = problem(hf.margins(shape), hf.invariant(hf.exact_margins(shape, keep)), 3)
    project = projection(made)
    points = np.random.default_rng(1).normal(size=(7, made.law.n))
    expected = dense(made.space.rows, np.ones(made.law.n))
    assert np.allclose(project(points.copy()), points @ expected.T, atol=1e-12)
    assert np.allclose(gaussian.spread(made).standard_errors ** 2, 9 * np.diag(expected), atol=1e-12)
    assert np.abs(made.space.rows @ project(points.copy()).T).max() < 1e-12


def test_a_factorisation_is_made_once_and_respects_variances():
    rng = np.random.default_rng(2)
    A = rng.integers(-2, 3, size=(4, 9))
    scales = rng.uniform(0.5, 3, size=9)
    made = problem(hf.histogram(9), hf.equals(A, np.zeros(4)), scales)
    project = projection(made)
    assert projection(made) is project
    points = rng.normal(size=(5, 9))
    assert np.allclose(project(points.copy()), points @ dense(made.space.rows, scales**2).T, atol=1e-12)
    with pytest.raises(hf.Refused, match="variances must be above 0"):
        made.space.weighted_projection(np.zeros(9))


@pytest.mark.parametrize("scale", [1, [1, 2, 1, 3, 1, 1, 2, 1, 1, 1, 4, 1]])
def test_draws_have_the_covariance_of_the_law(scale):
    shape = (3, 4)
    mechanism = hf.gaussian(hf.margins(shape), scale=scale, integer=False)
    mechanism = mechanism.given(hf.invariant(hf.exact_margins(shape, [(0,), (1,)])))
    draws = mechanism.noise(20_000, rng=hf.seeded(3))
    variances = np.broadcast_to(np.square(np.asarray(scale, dtype=float)), 12)
    expected = dense(mechanism.source.system.null_space().rows, variances) @ np.diag(variances)
    assert np.allclose(mechanism.standard_error() ** 2, np.diag(expected))
    weights = np.arange(12.0) ** 2 % 7
    error = mechanism._spread.variance_of(weights)
    assert error == pytest.approx(weights @ expected @ weights)
    # χ² with 20,000 degrees of freedom for each output, at 1e-6 over 13 comparisons, both sides.
    low, high = (stats.chi2.ppf(p, 20_000) / 20_000 for p in (1e-8, 1 - 1e-8))
    ratios = np.append((draws**2).mean(axis=0) / np.diag(expected), ((draws @ weights) ** 2).mean() / error)
    assert ((ratios > low) & (ratios < high)).all()
    assert stats.kstest(draws[:, 5] / np.sqrt(expected[5, 5]), "norm").pvalue > 1e-6
    assert stats.kstest(draws[:, 5] / np.sqrt(1.3 * expected[5, 5]), "norm").pvalue < 1e-6


def test_draws_do_not_depend_on_how_many_are_made_at_once():
    shape = (40, 50)
    mechanism = hf.gaussian(hf.margins(shape), scale=1, integer=False)
    mechanism = mechanism.given(hf.invariant(hf.exact_margins(shape, [(0,), (1,)])))
    together, stream = mechanism.noise(100, rng=hf.seeded(4)), hf.seeded(4)
    assert np.array_equal(together, np.concatenate([mechanism.noise(50, rng=stream) for _ in range(2)]))
