"""Exact totals over categories: the law of `given` listed, the nearest tables of `onto`, and what is not accepted."""

import numpy as np
import pytest

import holdfast as hf
from holdfast.given.exact import under_totals
from holdfast.given.problem import Problem
from holdfast.onto.ways import program
from holdfast.trees.shape.under_totals import UnderTotals
from listed_noise import listed, pearson

TREE = hf.Hierarchy.from_parents([-1, 0, 0, 1, 1, 2])
BY, REACH = 2, 10
QUERY = hf.counts(TREE, by=BY)
#: A state, two counties, three blocks, two age groups; nothing is measured in the state.
SHARES = {0: 0, 1: 1, 2: 2}
TRUTH = QUERY.answer([3, 1, 0, 2, 4, 1])
ALARM = 1e-6


def totals_of(*nodes):
    """The exact totals over the categories of these nodes."""
    rows = np.zeros((len(nodes), QUERY.n), dtype=int)
    for row, node in zip(rows, nodes, strict=True):
        row[BY * node : BY * node + BY] = 1
    return hf.invariant(rows)


@pytest.mark.parametrize("law", [hf.laplace, hf.gaussian])
@pytest.mark.parametrize("low", [None, 0])
def test_draws_have_the_listed_law(law, low):
    amount = {"epsilon": 2} if law is hf.laplace else {"rho": 0.4}
    noise = law(QUERY, shares=SHARES, **amount)
    held = hf.consistent(QUERY) & totals_of(1, 2)
    mechanism = noise.given(held if low is None else held & hf.nonnegative())
    assert mechanism.method == "under_totals"
    draws = mechanism.simulate(TRUTH, 20_000, hf.seeded(3)) - TRUTH
    basis = held.system(QUERY.n).null_space().lattice_basis().toarray()
    laws = mechanism.base.law
    scales = [np.inf if value is None else float(value) for value in laws.of_output(laws.scale_values).tolist()]
    scales = np.sqrt(scales) if law is hf.gaussian else np.array(scales)
    vectors, chances = listed(basis, laws.kind, scales, REACH, None if low is None else -TRUTH)
    assert pearson(draws, vectors, chances) > ALARM
    tilted = chances * np.exp(0.5 * (vectors[:, 3] > 0))
    assert pearson(draws, vectors, tilted / tilted.sum()) < ALARM
    if low is None:
        errors = np.sqrt(chances @ vectors**2)
        assert mechanism.standard_error() == pytest.approx(errors, rel=1e-3)
        reach = mechanism.release(TRUTH, hf.seeded(1)).interval(0.9)
        wide = (reach[:BY, 1] - reach[:BY, 0]) / 2  # the state: a sum of both counties
        for output in range(BY):
            within = chances[np.abs(vectors[:, output]) <= wide[output] + 1e-9].sum()
            closer = chances[np.abs(vectors[:, output]) <= wide[output] - 1].sum()
            assert within >= 0.9 - 1e-6 > closer - 0.02


def test_errors_of_sums_are_those_of_the_listed_law():
    system = (hf.consistent(QUERY) & totals_of(1, 2)).system(QUERY.n)
    law = hf.laplace(QUERY, epsilon=4, shares=SHARES).base.law
    spread = under_totals.spread(Problem(law, system))
    scales = np.array([np.inf if value is None else float(value) for value in law.scale_values])[law.complete]
    vectors, chances = listed(system.null_space().lattice_basis().toarray(), "laplace", scales, 12)
    for weights in np.random.default_rng(1).integers(-2, 3, (6, QUERY.n)).astype(float):
        sums = vectors @ weights
        assert spread.variance_of(weights) == pytest.approx(chances @ sums**2, rel=1e-3)
        found = spread.characteristic.of(weights, np.array([0.3, 1.1]))
        assert found == pytest.approx([chances @ np.cos(w * sums) for w in (0.3, 1.1)], abs=1e-3)
        assert spread.characteristic.tilted(weights, 0.05) >= np.log(chances @ np.exp(0.05 * sums)) - 1e-6


@pytest.mark.parametrize("norm", ["l1", "l2"])
@pytest.mark.parametrize("integer", [True, False])
def test_moved_tables_are_as_near_as_those_of_a_program(norm, integer):
    held = hf.consistent(QUERY) & totals_of(1, 2) & hf.nonnegative()
    mechanism = hf.laplace(QUERY, epsilon=1, shares=SHARES).onto(held, norm=norm, integer=integer)
    assert mechanism.method == "under_totals"
    problem = mechanism.moves[0].problem
    right = np.zeros(problem.space.rank, dtype=np.int64)
    rows = {tuple(problem.space.rows[[r]].indices): r for r in range(problem.space.rank)}
    spread = np.where(np.isfinite(problem.spreads), problem.spreads, np.inf)
    for noisy in np.random.default_rng(2).integers(-9, 9, (12, QUERY.n)) + TRUTH:
        for node in (1, 2):
            right[rows[tuple(range(BY * node, BY * node + BY))]] = TRUTH[BY * node : BY * node + BY].sum()
        mine = mechanism.moves[0].way.image(problem, noisy[None], right)[0]
        theirs = program.image(problem, noisy[None], right)[0]
        power = 2 if norm == "l2" else 1
        distances = [(np.abs(z - noisy) ** power / spread ** (power / 2)).sum() for z in (mine, theirs)]
        assert distances[0] <= distances[1] + 1e-6
        assert np.allclose(problem.space.rows @ mine, right)
        assert mine.min() >= -1e-9


def test_nested_totals_count_once_and_what_is_measured_above_is_another_problem():
    both = (hf.consistent(QUERY) & totals_of(1, 2)).system(QUERY.n)
    none = np.zeros(QUERY.n, dtype=bool)
    measured = none.copy()
    measured[BY:] = True
    assert UnderTotals.of(both, measured) is not None
    assert UnderTotals.of(both, ~none) is None
    bounded = hf.consistent(QUERY) & totals_of(1, 2) & hf.between(0, 5, at=[0])
    assert UnderTotals.of(bounded.system(QUERY.n), measured) is None
    nested = hf.consistent(QUERY) & totals_of(0, 1, 2)
    assert UnderTotals.of(nested.system(QUERY.n), measured) is None


@pytest.mark.parametrize("shape", [[-1, 0, 0, 1, 1, 2], [-1, 0, 1, 1, 0, 4], [-1, -1, 0, 0, 1, 1]])
def test_figures_above_are_sums(shape):
    tree = hf.Hierarchy.from_parents(shape)
    query, depth = hf.counts(tree, by=2), np.asarray(hf.Hierarchy.from_parents(shape).depth)
    nodes = np.flatnonzero(depth == depth.max() - 1)
    rows = np.zeros((nodes.size, query.n), dtype=int)
    for row, node in zip(rows, nodes, strict=True):
        row[2 * node : 2 * node + 2] = 1
    mechanism = hf.laplace(query, epsilon=1, shares={d: int(d >= depth.max() - 1) for d in set(depth.tolist())})
    truth = query.answer(np.arange(query.cells))
    held = hf.consistent(query) & hf.invariant(rows)
    for way in (mechanism.given(held), mechanism.given(held & hf.nonnegative())):
        assert way.method in {"under_totals", "hierarchy"}
        values = way.release(truth, hf.seeded(5)).values
        assert held.system(query.n).holds(values)
        assert (rows @ values == rows @ truth).all()


@pytest.mark.parametrize("law", [hf.laplace, hf.gaussian])
def test_errors_of_moved_real_tables_are_those_of_dense_least_squares(law):
    amount = {"epsilon": 1} if law is hf.laplace else {"rho": 0.5}
    mechanism = law(QUERY, shares=SHARES, **amount).onto(hf.consistent(QUERY) & totals_of(1, 2), integer=False)
    assert mechanism.method == "under_totals"
    spread, variances = mechanism.unit_spread(), np.asarray(mechanism.base.law.variances)
    system = (hf.consistent(QUERY) & totals_of(1, 2)).system(QUERY.n)
    basis, known = system.null_space().lattice_basis().toarray().astype(float), np.isfinite(variances)
    seen = basis[known] / np.sqrt(variances[known])[:, None]
    covariance = basis @ np.linalg.inv(seen.T @ seen) @ basis.T
    assert spread.standard_errors == pytest.approx(np.sqrt(covariance.diagonal()))
    for weights in np.random.default_rng(1).normal(size=(5, QUERY.n)):
        assert spread.variance_of(weights) == pytest.approx(weights @ covariance @ weights)
        curvature = 1 - 1e-6 * (weights @ covariance @ weights) / 2  # E cos tX = 1 − t²Var X/2 + …
        assert spread.characteristic.of(weights, np.array([1e-3])) == pytest.approx([curvature], abs=1e-8)
    drawn = mechanism.noise(20_000, hf.seeded(2))
    low, high = spread.quantiles(0.025), spread.quantiles(0.975)
    assert ((drawn >= low) & (drawn <= high)).mean(axis=0).min() > 0.945
