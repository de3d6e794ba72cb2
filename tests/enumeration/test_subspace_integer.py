"""Whole noise made for exact figures: its promise against the law listed point by point."""

import math

import numpy as np
import pytest
from scipy.special import logsumexp

import holdfast as hf
from lattice_laws import CASES, exact_form, listed, made, near_form, shared

KINDS = ("add-remove", "replace-one")
#: Half the side of the windows: the mass beyond is below 1e-9 of everything at the budgets here.
REACH = 15


def weights(mechanism, change, reach=REACH):
    """Logarithms of the weights of the noise moved by a change, of the noise itself, and of the sum of the latter."""
    points = listed(mechanism, reach)
    there = -near_form(mechanism, points) / 2
    return -near_form(mechanism, points - change) / 2, there, logsumexp(there)


@pytest.mark.slow
@pytest.mark.parametrize("law", ["optimal", "correlated"])
@pytest.mark.parametrize("case", CASES)
def test_rho_is_the_largest_form_over_all_moves_that_share_the_figures(case, law):
    for kind in KINDS:
        mechanism = made(case, kind, law, rho=0.5)
        assert {each.scope for each in mechanism.guarantees} <= {"all", "invariant-sharing"}
        assert mechanism.guarantee.rho == pytest.approx(0.5, rel=1e-12)
        for statement in mechanism.guarantees:
            largest = max(exact_form(mechanism, shared(mechanism, statement)))
            assert largest / 2 <= statement.rho <= float(largest / 2) * (1 + 1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_rho_of_several_records_is_the_largest_form_over_their_moves(kind):
    for case in ("histogram with total", "tree with exact root", "prefix sums", "weighted total"):
        mechanism = made(case, hf.Neighbours(kind, records=2), rho=0.5)
        for statement in mechanism.guarantees:
            assert statement.records >= 2
            largest = max(exact_form(mechanism, shared(mechanism, statement)))
            assert largest / 2 <= statement.rho <= float(largest / 2) * (1 + 1e-12)


@pytest.mark.parametrize("case", CASES)
def test_renyi_divergences_of_the_listed_law_are_as_promised(case):
    """D_α ≤ αρ at every order, and equal to it at whole orders: neither too small nor too large."""
    mechanism = made(case, rho=0.5)
    statement = mechanism.guarantee
    changes = shared(mechanism, statement)
    worst = changes[int(np.argmax([float(value) for value in exact_form(mechanism, changes)]))]
    near = changes[int(np.argmin([float(value) for value in exact_form(mechanism, changes)]))]
    for change in (worst, near):
        moved, there, total = weights(mechanism, change)
        for order in (1.25, 1.5, 2, 2.5, 3):
            found = (logsumexp(order * moved + (1 - order) * there) - total) / (order - 1)
            assert found <= order * statement.rho * (1 + 1e-9)
            if order in (2, 3) and change is worst:
                assert found == pytest.approx(order * statement.rho, rel=1e-6)


@pytest.mark.parametrize("case", CASES)
def test_the_delta_of_the_listed_law_is_within_the_promise(case):
    mechanism = made(case, epsilon=1.5, delta=1e-3)
    statement = mechanism.guarantee
    assert (statement.epsilon, statement.delta) == (1.5, 1e-3)
    changes = shared(mechanism, statement)
    for change in changes[: len(changes) // 2]:  # d and −d cost the same, and the rows are sorted
        moved, there, total = weights(mechanism, change)
        assert np.maximum(np.exp(moved - total) - math.exp(1.5 - total) * np.exp(there), 0).sum() <= 1e-3


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_the_window_holds_nearly_everything(case):
    """The windows above lose nothing that matters: a wider one gives the same sums, also of the noise moved."""
    mechanism = made(case, rho=0.5)
    worst = shared(mechanism, mechanism.guarantee)[0]
    for factor in (1, -3):
        sums = [logsumexp(-near_form(mechanism, listed(mechanism, r) + factor * worst) / 2) for r in (REACH, REACH + 6)]
        assert sums[0] == pytest.approx(sums[1], rel=1e-7)


def test_the_sum_of_the_form_is_largest_around_points_of_the_lattice():
    """Σ_z e^{−|z−c|²/2} over the lattice is at most that of c = 0: the heart of the proof, where noise is small."""
    mechanism = made("tree with exact root", rho=4)
    points = listed(mechanism, 8)
    sigma = np.linalg.pinv(mechanism.source.drawn._form.factor @ mechanism.source.drawn._form.factor.T)
    rng = np.random.default_rng(5)
    basis = mechanism.source.drawn._form.basis
    sums = []
    for _ in range(50):
        away = points - basis @ rng.uniform(-0.5, 0.5, basis.shape[1])
        sums.append(np.exp(-np.einsum("ij,jk,ik->i", away, sigma, away) / 2).sum())
    centred = np.exp(-np.einsum("ij,jk,ik->i", points, sigma, points) / 2).sum()
    assert max(sums) <= centred * (1 + 1e-9)
    assert min(sums) < 0.9 * centred


@pytest.mark.parametrize("kind", KINDS)
def test_laplace_noise_given_the_figures_costs_what_is_said(kind):
    """ε of the conditioned integer law over listed moves: Σ|d|/λ."""
    for case in ("histogram with total", "two margins", "tree with exact root"):
        mechanism = made(case, kind, "laplace", epsilon=1)
        statement = next(each for each in mechanism.guarantees if each.scope != "subspace")
        scale = mechanism.base.law.scale_values[0]
        query, constraint, _ = CASES[case]
        changes = query.differences(statement.neighbours)
        kept = changes[(constraint.system(query.n).null_space().rows @ changes.T == 0).all(axis=0)]
        largest = max(int(np.abs(change).sum()) for change in kept) / scale
        assert float(largest) <= statement.epsilon <= float(largest) * (1 + 1e-12)
        assert statement.epsilon == pytest.approx(1, rel=1e-9)
        assert statement.epsilon <= 1


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("law", "budget"), [("laplace", {"epsilon": 1}), ("gaussian", {"rho": 0.5})])
def test_statements_of_both_scopes_meet_the_budget_where_differences_stay_whole(kind, law, budget):
    """One output exact, three cells: Π_N d is whole, so there is a statement about all neighbours as well."""
    query = hf.workload([[2, 1, 0], [0, 2, 3], [1, 0, 4]])
    mechanism = hf.extend(query, hf.invariant([[0, 0, 1]]), law=law, neighbours=kind, integer=True, **budget)
    assert {each.scope for each in mechanism.guarantees} == {"subspace", "invariant-sharing"}
    asked = next(iter(budget))
    found = [float(getattr(each, asked)) for each in mechanism.guarantees]
    assert max(found) <= budget[asked]
    assert max(found) == pytest.approx(budget[asked], rel=1e-9)


def test_an_understated_form_would_be_seen():
    """The check above is not empty: the form of a change is not that of the spherical law."""
    mechanism = made("prefix sums", rho=0.5)
    changes = shared(mechanism, mechanism.guarantee)
    forms = np.array([float(value) for value in exact_form(mechanism, changes)])
    lengths = (changes**2).sum(axis=1)
    assert np.ptp(forms / lengths) > 0.1 * forms.max() / lengths.max()
    assert mechanism.source.law == "optimal"
