"""The best linear refinement: feasible, unbiased, of least variance, and the same by every road."""

from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import holdfast as hf
from holdfast.refinement import LinearRefinement


def cases(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 7))
    m = int(rng.integers(1, n))
    B = rng.integers(-2, 3, size=(n, m))
    B[np.arange(m), np.arange(m)] += 5
    root = rng.integers(-1, 2, size=(n, n)) + 3 * np.eye(n, dtype=int)
    return rng, B, root @ root.T


@settings(max_examples=12, deadline=None)
@given(st.integers(0, 10_000))
def test_refined_answers_satisfy_what_is_known_and_move_least(seed):
    rng, B, covariance = cases(seed)
    n = len(B)
    truth = rng.integers(0, 9, size=n)
    noisy = truth + rng.normal(size=(3, n))
    c = B.T @ truth
    for spread in (None, np.diag(covariance).copy(), covariance):
        full = np.eye(n) if spread is None else np.diag(spread) if spread.ndim == 1 else spread
        refined = hf.refine(noisy, B, c, spread)
        assert np.abs(refined @ B - c).max() < 1e-9
        exact = LinearRefinement.best(B, spread)
        assert exact.unbiased(B)
        assert exact.constrained(B)
        assert np.allclose(exact.refine(noisy, c), refined, atol=1e-9)
        assert np.allclose(exact.refine(truth, c), truth, atol=1e-9)
        # least variance: any other unbiased refinement is D + K with (A − KBᵀ), and is not better anywhere
        other = exact.A - rng.normal(size=exact.D.shape) @ B.T
        best = np.diag(exact.A @ full @ exact.A.T)
        assert (np.diag(other @ full @ other.T) >= best - 1e-9).all()


def test_repeated_knowledge_changes_nothing():
    B = np.array([[1, 1, 2], [1, 1, 2], [0, 1, 0]])
    noisy = [1.0, 2.5, 4.0]
    once, twice = LinearRefinement.best(B[:, :2]), LinearRefinement.best(B)
    assert twice.unbiased(B)
    assert twice.constrained(B)
    assert np.allclose(once.refine(noisy, [3, 7]), twice.refine(noisy, [3, 7, 6]))
    assert np.allclose(hf.refine(noisy, B, [3, 7, 6]), twice.refine(noisy, [3, 7, 6]))


def test_biased_and_unconstrained_refinements_are_told():
    B = [[1], [1]]
    half = Fraction(1, 2)
    projection = [[half, -half], [-half, half]]
    assert not LinearRefinement(projection, [[1], [0]]).unbiased(B)  # A + DBᵀ is not the identity
    assert LinearRefinement(projection, [[1], [0]]).constrained(B)
    assert not LinearRefinement(projection, [[half], [half]], h=[1, -1]).unbiased(B)
    assert LinearRefinement(projection, [[half], [half]], h=[1, -1]).constrained(B)
    assert not LinearRefinement(projection, [[half], [half]], h=[1, 0]).constrained(B)
    assert not LinearRefinement(projection, [[0], [0]]).constrained(B)  # the sum is 0 and not c
    assert LinearRefinement(np.eye(2), [[0], [0]]).unbiased(B)
    assert not LinearRefinement(np.eye(2), [[0], [0]]).constrained(B)


def test_range_knowledge_is_met_by_the_nearest_point():
    noisy = np.array([[-2.0, 3.0, 12.0], [1.0, 2.0, 3.0]])
    assert hf.refine(noisy, knowledge=hf.between(0, 10)).tolist() == [[0, 3, 10], [1, 2, 3]]


def test_order_and_linear_knowledge_together():
    order = hf.ordered([0, 1, 2, 3])
    assert np.allclose(hf.refine([3.0, 1.0, 2.0, 9.0], knowledge=order), [2, 2, 2, 9])
    refined = hf.refine([3.0, 1.0, 2.0, 9.0], np.ones((4, 1)), [12], knowledge=order & hf.nonnegative())
    assert np.allclose(refined, [1.25, 1.25, 1.25, 8.25], atol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(5))
def test_calibrated_noise_meets_the_target_from_below(seed):
    rng, B, _ = cases(seed)
    n = len(B)
    refinement = LinearRefinement.best(B)
    changes = np.eye(n, dtype=int)
    target = float(rng.uniform(0.1, 3))
    scale = hf.calibrate_refinement(refinement, changes, target)
    assert target * (1 - 1e-12) <= hf.refinement_loss(refinement, changes, scale).exact <= Fraction(target)
    relative = rng.uniform(0.5, 2, size=n)
    scales = hf.calibrate_refinement(refinement, changes, target, relative=relative)
    assert np.allclose(scales / relative, scales[0] / relative[0])
    assert target * (1 - 1e-12) <= hf.refinement_loss(refinement, changes, scales).exact <= Fraction(target)


@settings(max_examples=10, deadline=None)
@given(st.integers(0, 10_000))
def test_a_larger_set_of_outputs_never_loses_less(seed):
    rng, B, _ = cases(seed)
    refinement = LinearRefinement.best(B)
    n = len(B)
    difference = rng.integers(-2, 3, size=n)
    seen = [hf.refinement_loss(refinement, difference, 1, outputs=list(range(k + 1))) for k in range(n)]
    assert all(a.order <= b.order for a, b in pairwise(seen))
    assert hf.refinement_loss(refinement, -difference, 1).exact == hf.refinement_loss(refinement, difference, 1).exact
