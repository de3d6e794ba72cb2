"""The loss of every law on a null space, over the whole difference set written out, by dense code of the test's own."""

import functools
import itertools

import numpy as np
import pytest
from scipy.linalg import null_space

import holdfast as hf
from subspaces import (
    CASES,
    GAUSSIAN,
    KINDS,
    budget,
    covariance,
    differences,
    gauges,
    largest_square,
    least_sums,
    projector,
)

EVERY = list(itertools.product(CASES, KINDS))


@functools.cache
def extended(case, kind, law):
    """A mechanism, and the covariance of its noise."""
    mechanism = hf.extend(*CASES[case], law=law, neighbours=kind, **budget(law))
    return mechanism, covariance(mechanism)


@pytest.mark.slow
@pytest.mark.parametrize(("case", "kind"), EVERY)
def test_mu_is_the_largest_over_the_whole_difference_set(case, kind):
    query, constraint = CASES[case]
    changes = differences(query, constraint, kind)
    for law in GAUSSIAN:
        mechanism, sigma = extended(case, kind, law)
        true = np.sqrt(largest_square(sigma, changes))
        statement = mechanism.guarantee
        assert statement.scope in ("all", "subspace")
        assert true * (1 - 1e-8) <= statement.mu <= true * (1 + 1e-6)
        assert (statement.epsilon, statement.delta) == (1.0, 1e-6)


@pytest.mark.parametrize(("case", "kind"), EVERY)
def test_scope_is_all_exactly_where_no_neighbour_changes_an_exact_figure(case, kind):
    query, constraint = CASES[case]
    raw = query.differences(kind)
    inside = np.allclose(raw, raw @ projector(query, constraint), atol=1e-9)
    scopes = [each.scope for each in hf.extend(query, constraint, law="gaussian", neighbours=kind, rho=1).guarantees]
    assert (scopes == ["all"]) == inside
    assert ("subspace" in scopes) == (not inside)


@pytest.mark.slow
@pytest.mark.parametrize(("case", "kind"), EVERY)
def test_moves_that_share_the_exact_figures_cost_no_more_than_is_said(case, kind):
    """One or two records of either relation, every sum listed: those in N are the moves of the statement."""
    query, constraint = CASES[case]
    onto = projector(query, constraint)
    for law in ("optimal", "gaussian"):
        mechanism, sigma = extended(case, kind, law)
        shared = [each for each in mechanism.guarantees if each.scope == "invariant-sharing"]
        for statement in shared:
            if statement.records > 2:
                continue
            listed = query.differences(statement.neighbours)
            kept = listed[np.abs(listed @ onto - listed).max(axis=1) < 1e-9]
            assert statement.mu >= np.sqrt(largest_square(sigma, kept)) * (1 - 1e-8)


@pytest.mark.slow
@pytest.mark.parametrize(("case", "kind"), EVERY)
def test_laplace_noise_costs_what_is_said(case, kind):
    """min{Σ|t|/λ : F t = Π_N d} by a linear program for every difference, F read off the map of the law."""
    query, constraint = CASES[case]
    mechanism = hf.extend(query, constraint, law="laplace", neighbours=kind, epsilon=1)
    scales = mechanism.source.form.scales * mechanism.source.scale
    frame = mechanism.source.form.apply(np.diag(scales)).T
    onto = projector(query, constraint)
    assert np.abs(onto @ frame - frame).max() < 1e-9
    changes = differences(query, constraint, kind)
    half = changes[: len(changes) // 2]  # d and −d cost the same, and the rows are sorted
    costs, chosen = least_sums(np.hstack([frame, -frame]), half)
    assert np.abs((chosen[:, : len(scales)] - chosen[:, len(scales) :]) @ frame.T - half).max() < 1e-7
    assert costs.max() <= mechanism.guarantee.epsilon * (1 + 1e-8)
    assert mechanism.guarantee.epsilon == 1.0


@pytest.mark.slow
@pytest.mark.parametrize(("case", "kind"), EVERY)
def test_the_density_of_k_norm_noise_falls_with_the_gauge(case, kind):
    """The gauge of each draw, by a linear program, is what the draw's cells say, so the density is exp(−ε‖u‖_K).

    Where the columns have more relations than one, or one with unequal coefficients, it is refused.
    """
    query, constraint = CASES[case]
    columns = projector(query, constraint) @ np.unique(query.columns.toarray(), axis=1)
    pairs = kind == "replace-one"
    if pairs:
        known = np.linalg.matrix_rank(columns[:, 1:] - columns[:, :1], tol=1e-9) == columns.shape[1] - 1
    else:
        columns = columns[:, np.abs(columns).max(axis=0) > 1e-9]
        kernel = null_space(columns, rcond=1e-9)
        known = kernel.shape[1] == 0 or (kernel.shape[1] == 1 and np.ptp(np.abs(kernel)) < 1e-9)
    if not known:
        with pytest.raises(hf.Refused, match="use law='laplace'"):
            hf.extend(query, constraint, law="k-norm", neighbours=kind, epsilon=1)
        return
    mechanism = hf.extend(query, constraint, law="k-norm", neighbours=kind, epsilon=1)
    assert mechanism.guarantee.epsilon == 1.0
    assert mechanism.method == "k-norm"
    drawn = mechanism.source.form.law.draw(12, hf.seeded(5))
    said = np.abs(drawn).sum(axis=1) / (2 if pairs else 1)
    assert gauges(columns, pairs, mechanism.source.form.apply(drawn)) == pytest.approx(said, rel=1e-7)
    changes = differences(query, constraint, kind)
    assert gauges(columns, pairs, changes[: len(changes) // 2]).max() <= 1 + 1e-9
