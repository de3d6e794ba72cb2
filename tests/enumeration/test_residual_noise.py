"""Noise on residuals against matrices written out: its law, its loss for every pair of cells, its best split."""

import itertools

import numpy as np
import pytest
from scipy import special

import holdfast as hf

VILLAGE = hf.Hierarchy.from_parents([-1, 0, 0, 1, 1, 2])
UNEVEN = hf.Hierarchy.from_parents([-1, 0, 0, 1, 1])  # one leaf is less deep than the others
FOREST = hf.Hierarchy.from_parents([-1, -1, 0, 0, 1])
HALVES = hf.Cube((4, 2), ["age", "sex"], recoded={"half": ("age", [0, 0, 1, 1])})

QUERIES = {
    "one-way": hf.margins((2, 3), keep=[(0,), (1,)]),
    "two-way": hf.margins((2, 2, 3), keep=[(0, 1), (1, 2), (0, 2)]),
    "recoded": hf.margins(HALVES, keep=[("half",), ("age",), ("sex",)]),
    "village": hf.counts(VILLAGE, by=(2, 3), keep={0: [(0, 1)], 1: [(0,), (1,)], 2: [(), (0, 1)]}),
    "uneven": hf.counts(UNEVEN, by=(3,), keep=[(0,)]),
    "untouched level": hf.counts(VILLAGE, by=(2, 2), keep={0: [(0,)], 2: [(0,), (1,)]}),
    "forest": hf.counts(FOREST, by=(2,), keep=[(), (0,)]),
    "cells": hf.histogram(4),
    "tree": hf.counts(VILLAGE, by=2),
}


def matrix(query):
    return query.columns.toarray().astype(float)


def losses(query, covariance):
    """The squared length of what each cell adds, and of what each pair of cells changes, in the metric of the noise."""
    W, inverse = matrix(query), np.linalg.pinv(covariance, rcond=1e-10)
    reach = W.T @ inverse @ W
    assert np.allclose(W @ np.linalg.pinv(W) @ covariance, covariance)  # noise that adds up
    adds = np.diag(reach).max()
    cells = range(query.cells)
    pairs = max(reach[i, i] + reach[j, j] - 2 * reach[i, j] for i, j in itertools.product(cells, cells))
    return adds, pairs


def made(query, shares, neighbours, **words):
    return hf.gaussian(query, rho=0.5, shares=shares, neighbours=neighbours, residuals=True, **words)


def covariance_of(mechanism):
    direct = mechanism.source._residuals
    loadings = np.array([direct.noise(unit.copy()) for unit in np.eye(direct.normals_needed)]).T
    return loadings @ loadings.T


@pytest.mark.parametrize("name", QUERIES)
@pytest.mark.parametrize("neighbours", ["add-remove", "replace-one"])
def test_the_loss_is_the_largest_of_all_neighbours(name, neighbours):
    query, rng = QUERIES[name], np.random.default_rng(5)
    names = hf.best_shares(query, residuals=True).shares
    mechanism = made(query, {key: int(rng.integers(1, 9)) for key in names}, neighbours, integer=False)
    covariance = covariance_of(mechanism)
    adds, pairs = losses(query, covariance)
    assert np.isclose(adds if neighbours == "add-remove" else pairs, 1.0)
    assert mechanism.guarantee.rho == 0.5
    assert np.allclose(mechanism.standard_error() ** 2, np.diag(covariance))
    other = "replace-one" if neighbours == "add-remove" else "add-remove"
    told = mechanism.source.promise(hf.Neighbours(other)).statements[0]
    assert np.isclose(2 * told.rho, pairs if neighbours == "add-remove" else adds)
    weights = rng.normal(size=query.n)
    assert np.isclose(mechanism.source.spread().variance_of(weights), weights @ covariance @ weights)


def test_a_pair_that_agrees_on_an_axis_can_be_the_dearest():
    """With residuals a change in one coordinate alone can cost more than one in all of them."""
    query = hf.margins((2, 2), keep=[(0, 1)])
    mechanism = made(query, {(): 1, (0,): 1, (1,): 1, (0, 1): 9}, "replace-one", integer=False)
    W, inverse = matrix(query), np.linalg.pinv(covariance_of(mechanism))
    cost = {(i, j): (W[:, i] - W[:, j]) @ inverse @ (W[:, i] - W[:, j]) for i, j in itertools.combinations(range(4), 2)}
    assert cost[0, 1] > cost[0, 3] + 0.1
    assert np.isclose(max(cost.values()), 1)


@pytest.mark.parametrize(
    ("name", "neighbours"),
    [(name, "add-remove") for name in QUERIES] + [(name, "replace-one") for name in ("one-way", "cells")],
)
def test_the_best_split_is_attained_and_never_worse_than_margins(name, neighbours):
    query = QUERIES[name]
    ours = hf.best_shares(query, neighbours=neighbours, residuals=True)
    margins = hf.best_shares(query, neighbours=neighbours)
    errors = made(query, ours.shares, neighbours, integer=False).standard_error() ** 2
    assert np.isclose(errors.sum(), ours.squared_error, rtol=1e-5)
    assert ours.lower_bound - 1e-9 <= ours.squared_error <= margins.squared_error + ours.gap + 1e-6
    assert ours.gap <= 1e-2 * ours.squared_error
    if neighbours == "add-remove":
        assert ours.gap <= 1e-6 * ours.squared_error
        if name in ("one-way", "two-way", "recoded", "cells"):
            assert np.isclose(ours.squared_error, ours.lower_bound, rtol=1e-6)


def test_one_way_margins_reach_what_no_margins_reach():
    query = hf.margins((2, 2), keep=[(0,), (1,)])
    assert np.isclose(hf.best_shares(query).squared_error, 6)
    assert np.isclose(hf.best_shares(query, residuals=True).squared_error, 3 + 2 * 2**0.5)


def test_whole_noise_is_the_rounded_noise_and_its_errors_are_known():
    query = QUERIES["one-way"]
    shares = hf.best_shares(query, residuals=True).shares
    real, whole = (made(query, shares, "add-remove", integer=each) for each in (False, True))
    drawn = whole.noise(3, hf.seeded(4))
    assert drawn.dtype == np.int64
    assert (drawn == np.rint(real.noise(3, hf.seeded(4)))).all()
    sigma = real.standard_error()
    steps = np.arange(-60, 61)[:, None]
    law = special.ndtr((steps + 0.5) / sigma) - special.ndtr((steps - 0.5) / sigma)
    assert np.allclose(whole.standard_error() ** 2, (steps**2 * law).sum(axis=0))
    low = whole.source.spread().quantiles(0.025)
    assert (np.array([law[steps[:, 0] < at, i].sum() for i, at in enumerate(low)]) <= 0.025).all()
    assert whole.guarantee.rho == 0.5
    assert not whole.guarantee.exact


def test_moved_tables_keep_the_statement_of_the_residuals_and_add_up():
    query = QUERIES["village"]
    shares = hf.best_shares(query, residuals=True).shares
    moved = made(query, shares, "add-remove").onto(hf.consistent(query) & hf.nonnegative())
    assert moved.guarantee.rho == 0.5  # not that of independent noise of about these variances
    assert "residuals" in moved.guarantee.because
    assert moved.about(2).rho == 2.0
    truth = query.answer(np.arange(query.cells))
    release = moved.release(truth, rng=hf.seeded(3))
    assert (query.consistency() @ release.values == 0).all()
    assert (release.values >= 0).all()
    low, high = release.interval(0.999).T
    assert ((low <= truth) & (truth <= high)).all()
    assert np.isclose(moved.calibrated(rho=0.1).guarantee.rho, 0.1)
    assert np.isclose(made(query, shares, "replace-one").calibrated(rho=0.1).guarantee.rho, 0.1)


@pytest.mark.parametrize("integer", [True, False])
@pytest.mark.parametrize("share", [1e-20, 1e-36, 1e-60])
def test_noise_that_would_swallow_other_noise_is_refused(share, integer):
    """Doubles of 10**17 have no place for noise of 1, and whole numbers of 64 bits none for noise of 10**20."""
    query = QUERIES["one-way"]
    with pytest.raises(hf.Refused, match="doubles lose the noise"):
        made(query, {(): 1, (0,): share, (1,): 1}, "add-remove", integer=integer)
    drawn = made(query, {(): 1, (0,): 1e-9, (1,): 1}, "add-remove").noise(20, hf.seeded(1))
    assert abs(drawn).max() > 100
    assert np.unique(drawn[:, :2].sum(axis=1)).size > 2  # the total keeps its own noise


def test_whole_noise_that_would_leave_64_bits_is_refused_also_when_rescaled():
    query = QUERIES["one-way"]
    mechanism = made(query, None, "add-remove")
    with pytest.raises(hf.Refused, match="doubles lose the noise"):
        mechanism.calibrated(rho=1e-20).noise(1, hf.seeded(1))
    assert made(query, None, "add-remove", integer=False).calibrated(rho=1e-20).noise(1, hf.seeded(1)).any()


def test_noise_too_small_to_be_drawn_is_refused():
    with pytest.raises(hf.Refused, match="too small to be drawn"):
        hf.gaussian(hf.margins((2, 3)), rho=1e308, residuals=True)


def test_what_residuals_cannot_do_is_refused():
    query = QUERIES["one-way"]
    mechanism = made(query, None, "add-remove", integer=False)
    with pytest.raises(hf.Refused, match="keeps no exact figures"):
        mechanism.onto(hf.invariant(np.ones((1, query.n), int)))
    with pytest.raises(hf.Refused, match="cannot be conditioned"):
        mechanism.given(hf.consistent(query))
    with pytest.raises(hf.Refused, match="must name residuals"):
        made(query, {(2,): 1}, "add-remove")
    with pytest.raises(hf.Refused, match="nothing tells"):
        made(query, {(0,): 1}, "add-remove")
    with pytest.raises(hf.Refused, match="must not be negative"):
        made(query, {(): -1, (0,): 1, (1,): 1}, "add-remove")
    with pytest.raises(hf.Refused, match="leave scale"):
        hf.gaussian(query, scale=1, residuals=True)
    uneven = hf.Cube((3,), ["age"], recoded={"half": ("age", [0, 0, 1])})
    with pytest.raises(hf.Refused, match="alike in size"):
        hf.best_shares(hf.margins(uneven, keep=[("half",), ("age",)]), residuals=True)
