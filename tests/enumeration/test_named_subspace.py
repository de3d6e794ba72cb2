"""Statements about the part of a release in a subspace that the user names, against laws that are listed."""

from fractions import Fraction
from itertools import product

import numpy as np
import pytest

import holdfast as hf
from holdfast.mechanism import project, within

#: Noises are listed up to this size; what lies beyond has too little weight to be seen.
FAR = 14


def listed_loss(columns, scales, V, kept, adds=True):
    """The worst |log ratio| over all neighbours of the law of V(q + U), U whole and Laplace, given kept·U = 0."""
    noises = np.array(list(product(range(-FAR, FAR + 1), repeat=len(scales))))
    noises = noises[~(noises @ np.array(kept).reshape(-1, len(scales)).T).any(axis=1)]
    keys, back = np.unique(noises @ np.array(V).T, axis=0, return_inverse=True)
    weights = np.bincount(back.ravel(), np.exp(-(np.abs(noises) / scales).sum(axis=1)))
    law = dict(zip(map(tuple, keys.tolist()), weights, strict=True))
    moves = columns.T if adds else [a - b for a in columns.T for b in columns.T]
    worst = 0.0
    for d in moves:
        shift = tuple(np.array(V) @ d)
        if not any(shift):
            continue
        pairs = [(w, law.get(tuple(np.subtract(key, shift)))) for key, w in law.items() if max(map(abs, key)) <= 5]
        if any(other is None for _, other in pairs):
            return np.inf
        worst = max(worst, *(abs(np.log(w / other)) for w, other in pairs))
    return worst


CASES = [
    # columns of the query, exact rows, V
    ([[1, 0], [1, 1], [0, 1]], [], [[2, 0, 1]]),
    ([[1, 0], [1, 1], [0, 1]], [], [[1, -1, 0], [0, 0, 1]]),
    ([[1, 0, 0], [0, 1, 0], [0, 0, 1]], [[1, 1, 1]], [[1, -1, 0]]),
    ([[1, 0, 0], [0, 1, 0], [0, 0, 1]], [[1, 1, 1]], [[1, 0, 0]]),  # not inside N, and still hidden
    ([[1, 0, 0], [0, 1, 0], [0, 0, 1]], [[0, 0, 1]], [[1, 2, 0]]),
]


@pytest.mark.slow
@pytest.mark.parametrize(("columns", "kept", "V"), CASES)
@pytest.mark.parametrize(("scales", "kind"), [([1, 1, 1], "replace-one"), ([1, 2, 3], "add-remove")])
def test_whole_noise_is_never_above_its_statement(columns, kept, V, scales, kind):
    columns = np.array(columns)
    mechanism = hf.laplace(hf.workload(columns), scale=scales, neighbours=kind)
    if kept:
        mechanism = mechanism.given(hf.invariant(kept))
    true = listed_loss(columns, scales, V, kept or np.zeros((0, 3), int), kind == "add-remove")
    stated = within(mechanism, V)
    assert stated.scope == "subspace"
    assert true <= stated.epsilon + 1e-6
    assert stated.epsilon <= max(true * 1.7, true + 0.01)
    assert stated.neighbours.kind == kind


def test_a_part_that_exact_figures_show_is_refused():
    exact = hf.laplace(hf.histogram(3), scale=1).given(hf.invariant([[1, 1, 1]]))
    assert listed_loss(np.eye(3, dtype=int), [1, 1, 1], [[1, 1, 1]], [[1, 1, 1]]) == np.inf
    for V in ([[1, 1, 1]], [[1, 0, 0], [0, 1, 0], [0, 0, 1]]):
        with pytest.raises(hf.Refused, match="never coincide"):
            within(exact, V)


def test_continuous_laplace_noise_attains_its_statement():
    """U₁ + U₂ with scales 1 and 3, moved by 2: far out the wider law decides."""
    both = hf.laplace(hf.workload([[1], [1]]), scale=[1, 3], integer=False)
    assert within(both, [[1, 1]]).epsilon == pytest.approx(2 / 3)
    assert within(both, [[1, 0]]).epsilon == pytest.approx(1)
    assert both.guarantee.epsilon == pytest.approx(4 / 3)
    steps = np.linspace(-400, 400, 800_001)
    weights = np.exp(-np.abs(steps))
    density = [np.sum(weights * np.exp(-np.abs(s - steps) / 3)) for s in (60.0, 62.0)]
    assert np.log(density[0] / density[1]) == pytest.approx(2 / 3, abs=1e-4)


def test_gaussian_noise_has_the_covariance_of_the_part():
    rng = np.random.default_rng(8)
    for _ in range(15):
        n = int(rng.integers(2, 5))
        columns = rng.integers(-1, 3, (n, 3))
        V = rng.integers(-1, 2, (int(rng.integers(1, n + 1)), n))
        sigma = rng.choice([1.0, 2.0, 4.0], n)
        if not (V @ columns).any():
            continue
        found = within(hf.gaussian(hf.workload(columns), scale=sigma, integer=False), V)
        covariance = np.linalg.pinv(V @ np.diag(sigma**2) @ V.T)
        expected = max(float(d @ covariance @ d) for d in (V @ columns).T)
        assert 2 * found.rho == pytest.approx(expected, rel=1e-9)
        assert 2 * found.rho >= expected * (1 - 1e-12)


def test_conditioned_gaussian_noise_is_compared_by_its_covariance_on_the_null_space():
    C, V = np.array([[1, 1, 1, 1]]), np.array([[1, -1, 0, 0], [0, 1, 2, -3]])
    sigma = np.array([1.0, 2.0, 1.0, 3.0])
    mechanism = hf.gaussian(hf.histogram(4), scale=sigma.tolist(), integer=False).given(hf.invariant(C))
    S = np.diag(sigma**2)
    law = S - S @ C.T @ np.linalg.inv(C @ S @ C.T) @ C @ S
    expected = max(float(d @ np.linalg.inv(V @ law @ V.T) @ d) for d in V.T)
    found = within(mechanism, V)
    assert 2 * found.rho == pytest.approx(expected, rel=1e-9)
    whole = next(each for each in mechanism.guarantees if each.scope == "subspace")
    assert found.rho <= whole.rho
    assert "published" in " ".join(found.unprotected)


def test_nested_statements_hold_for_parts():
    exact = hf.invariant([[1, 1, 1, 1]])
    extended = hf.extend(hf.histogram(4), exact, law="gaussian", rho=0.5)
    assert within(extended, [[1, -1, 0, 0]]).rho == extended.guarantees[0].rho
    with pytest.raises(hf.Refused, match="no statement about this subspace"):
        within(extended, [[1, 0, 0, 0]])
    bounded = hf.laplace(hf.histogram(4), scale=2).onto(hf.nonnegative())
    assert within(bounded, [[1, 0, 0, 0]]).epsilon == bounded.guarantee.epsilon
    moved = hf.laplace(hf.histogram(4), scale=2, integer=False).onto(exact)
    assert within(moved, [[1, -1, 0, 0]]).epsilon == pytest.approx(0.5)
    own = project(lambda x: x, hf.histogram(4), exact, guarantee=hf.laplace(hf.histogram(4), scale=1).guarantee)
    assert within(own, normals=[[1, 1, 1, 1]]).epsilon == 1


def test_several_records_and_normals():
    cells = hf.workload([[1, 0], [1, 1]])
    one = hf.laplace(cells, scale=1, integer=False)
    three = hf.laplace(cells, scale=1, integer=False, neighbours=hf.Neighbours("add-remove", records=3))
    assert within(three, [[2, 1]]).epsilon == pytest.approx(3 * within(one, [[2, 1]]).epsilon)
    assert within(one, normals=[[1, -2]]).epsilon == within(one, [[2, 1]]).epsilon
    assert within(one, [[Fraction(2, 3), Fraction(1, 3)]]).epsilon == within(one, [[2, 1]]).epsilon


def test_refusals():
    cells = hf.laplace(hf.histogram(3), scale=1)
    for asked, words in [
        ({}, "name the subspace once"),
        ({"V": [[1, 0]]}, "3 columns"),
        ({"V": [[0, 0, 0]]}, "more than zero"),
        ({"V": [[2**0.5, 0, 0]]}, "rational"),
    ]:
        with pytest.raises(hf.Refused, match=words):
            within(cells, **asked)
    with pytest.raises(hf.Refused, match="no neighbour changes"):
        within(hf.laplace(hf.workload([[1], [1]]), scale=1), [[1, -1]])
    with pytest.raises(hf.Refused, match="mechanism must be made by"):
        within("noise", [[1]])


def test_the_listed_law_of_one_coordinate():
    assert listed_loss(np.array([[1]]), [2], [[1]], np.zeros((0, 1), int)) == pytest.approx(0.5)


def test_a_statement_about_a_subspace_lists_what_it_assumes():
    """The sum of a histogram is a fact that no query implies: whoever reads the statement is told."""
    fixed = hf.laplace(hf.histogram(3), scale=1, neighbours="replace-one").given(hf.equals([[1, 1, 1]], [9]))
    assert fixed.guarantee.assumes
    assert within(fixed, [[1, -1, 0]]).assumes == fixed.guarantee.assumes
    assert within(hf.laplace(hf.histogram(3), scale=1), [[1, -1, 0]]).assumes == ()
