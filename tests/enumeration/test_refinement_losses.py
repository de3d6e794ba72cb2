"""The loss of a refinement against programs, lists of all subsets and lists of all noises."""

from fractions import Fraction
from itertools import combinations, product

import numpy as np
import pytest
from scipy.optimize import linprog

import holdfast as hf
from holdfast.exact import cheapest_rational as exact_programs
from holdfast.refinement import LinearRefinement
from holdfast.refinement.loss import largest_admitted


def subsets(n):
    return [s for size in range(n + 1) for s in combinations(range(n), size)]


def least_cost(A, b, weights):
    """The program in doubles; None where it has no solution."""
    if len(A) == 0:
        return 0.0
    found = linprog(np.tile(weights, 2), A_eq=np.hstack([A, -A]), b_eq=b, bounds=(0, None), method="highs")
    return None if found.status == 2 else found.fun


def random_case(seed):
    rng = np.random.default_rng(seed)
    n, m = int(rng.integers(2, 6)), int(rng.integers(1, 3))
    B = rng.integers(-1, 3, size=(n, min(m, n - 1)))
    B[0] = 1
    refinement = LinearRefinement.best(B, rng.integers(1, 4, size=n))
    return refinement, rng.integers(-1, 3, size=n), rng.integers(1, 4, size=n)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(6))
def test_the_loss_is_the_largest_over_all_subsets_that_can_coincide(seed):
    refinement, difference, scales = random_case(seed)
    A, n = refinement.A, len(difference)
    values = {s: least_cost(A[list(s)], difference[list(s)], 1 / scales) for s in subsets(n)}
    expected = max(value for value in values.values() if value is not None)
    found = hf.refinement_loss(refinement, difference, scales)
    assert float(found) == pytest.approx(expected, rel=1e-9, abs=1e-9)
    assert Fraction(float(found)) >= found.exact
    for s in subsets(n)[1:]:
        one = hf.refinement_loss(refinement, difference, scales, outputs=list(s))
        assert float(one) == (np.inf if values[s] is None else pytest.approx(values[s], rel=1e-9, abs=1e-9))


@pytest.mark.parametrize("seed", range(60))
def test_largest_admitted_sets_against_all_subsets(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 8))
    tops = [frozenset(np.flatnonzero(rng.random(n) < 0.6).tolist()) for _ in range(int(rng.integers(1, 6)))]

    def admits(s):
        return any(s <= top for top in tops)

    admitted = [frozenset(s) for s in subsets(n) if admits(frozenset(s))]
    expected = {s for s in admitted if not any(s < other for other in admitted)}
    found = list(largest_admitted(n, admits))
    assert set(found) == expected
    assert len(found) == len(expected)


@pytest.mark.parametrize("seed", range(8))
def test_whole_noise_takes_the_cheapest_whole_vector(seed):
    rng = np.random.default_rng(100 + seed)
    n = int(rng.integers(2, 4))
    A = rng.integers(-2, 3, size=(n, n))
    difference, scales = rng.integers(-2, 3, size=n), rng.integers(1, 4, size=n)
    listed = np.array(list(product(range(-9, 10), repeat=n)))
    cost = np.abs(listed) @ (1 / scales)
    images = listed @ A.T
    best = 0.0
    for s in map(list, subsets(n)[1:]):
        rank = np.linalg.matrix_rank(A[s])
        if np.linalg.matrix_rank(np.column_stack([A[s], difference[s]])) > rank:
            continue  # even real values never coincide
        fits = (images[:, s] == difference[s]).all(axis=1)
        one = hf.refinement_loss(A, difference, scales, outputs=s, integer=True)
        if fits.any():
            assert float(one) == pytest.approx(cost[fits].min())
            best = max(best, cost[fits].min())
        else:
            assert float(one) == np.inf or float(one) > 9 / scales.max()  # the list ends at 9
            best = max(best, float(one))
    assert float(hf.refinement_loss(A, difference, scales, integer=True)) == pytest.approx(best)


def test_parity_that_whole_noise_cannot_hide_is_an_infinite_loss():
    """X̂ = 2X − c is even before the change and odd after it: no noise hides that, unlike real noise."""
    assert hf.refinement_loss(2 * np.eye(2, dtype=int), [1, 0], 1).exact == Fraction(1, 2)
    told = hf.refinement_loss(2 * np.eye(2, dtype=int), [1, 0], 1, integer=True)
    assert float(told) == np.inf
    assert 0 in told.outputs
    with pytest.raises(hf.Refused, match="no noise gives"):
        hf.calibrate_refinement(2 * np.eye(2, dtype=int), [1, 0], 1, integer=True)


def test_a_difference_that_shows_nowhere_needs_no_noise():
    with pytest.raises(hf.Refused, match="every scale will do"):
        hf.calibrate_refinement([[1, 0], [0, 1]], [0, 0], 1)
    with pytest.raises(hf.Refused, match="every scale will do"):
        hf.calibrate_refinement([[1, 0], [0, 1]], [1, 0], 1, outputs=[1])


def test_whole_noise_can_lose_more_than_the_program_says():
    A = [[2, 3], [0, 0]]
    real = hf.refinement_loss(A, [1, 0], 1, outputs=[0])
    whole = hf.refinement_loss(A, [1, 0], 1, outputs=[0], integer=True)
    assert (real.exact, whole.exact) == (Fraction(1, 3), Fraction(2))
    assert real.attained
    assert not whole.attained


@pytest.mark.parametrize(
    ("A", "difference", "outputs"),
    [([[1, -1], [-1, 1]], [1, 0], [0]), ([[2, 3], [0, 1]], [1, -1], [0, 1]), ([[2, 3], [0, 1]], [1, 0], [0])],
)
def test_listed_laws_of_whole_noise_stay_within_the_loss(A, difference, outputs):
    scale, reach = Fraction(3, 2), 60
    rho = float(hf.refinement_loss(A, difference, scale, outputs=outputs, integer=True))
    noise = np.array(list(product(range(-reach, reach + 1), repeat=2)))
    weight = np.exp(-np.abs(noise).sum(axis=1) / float(scale))
    images = (noise @ np.array(A).T)[:, outputs]
    law = {}
    for point, mass in zip(map(tuple, images.tolist()), weight, strict=True):
        law[point] = law.get(point, 0.0) + mass
    near = [point for point in law if max(map(abs, point)) <= 12]
    moved = [tuple(np.array(point) + np.array(difference)[outputs]) for point in near]
    ratios = [abs(np.log(law[a] / law[b])) for a, b in zip(near, moved, strict=True) if b in law]
    assert len(ratios) > 20
    assert max(ratios) <= rho + 1e-9
    assert max(ratios) > rho / 2


@pytest.mark.parametrize("seed", range(6))
def test_the_exact_method_needs_no_good_start(seed, monkeypatch):
    refinement, difference, scales = random_case(seed)
    expected = hf.refinement_loss(refinement, difference, scales).exact
    monkeypatch.setattr(exact_programs, "_program", lambda A, b, weights, integer: np.arange(A.shape[1]) * 1.0)
    assert hf.refinement_loss(refinement, difference, scales).exact == expected
