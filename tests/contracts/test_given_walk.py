"""What releases by crossed tables and walks promise, and what they refuse."""

import itertools
import math

import numpy as np
import pytest

import holdfast as hf
from holdfast.given import Problem
from holdfast.given.near import walk
from holdfast.given.near.walk import public_tables

ALL_PAIRS = [(0, 1), (0, 2), (1, 2)]
CROSSED = hf.invariant(hf.exact_margins((4, 5), [(0,), (1,)]))
TABLE = np.arange(20) % 4


def laplace(shape, epsilon=1, **options):
    return hf.laplace(hf.margins(shape), epsilon=epsilon, **options)


def test_a_crossed_table_keeps_its_proof_and_pays_for_rounding():
    mechanism = laplace((4, 5)).given(CROSSED)
    assert mechanism.method == "two_way"
    statement = mechanism.guarantee
    assert (statement.status, statement.epsilon, statement.records) == ("proved", 4.0, 2)
    assert 0 < statement.delta == statement.numerical_delta < 1e-8
    release = mechanism.release(TABLE, rng=hf.seeded(1))
    assert release.values.dtype == np.int64
    change = (release.values - TABLE).reshape(4, 5)
    assert not change.sum(axis=0).any()
    assert not change.sum(axis=1).any()
    assert (np.diff(release.interval(0.9), axis=-1) > 0).all()


def test_errors_of_a_crossed_table_are_known_beforehand():
    mechanism = laplace((4, 5)).given(CROSSED)
    errors = mechanism.standard_error()
    draws = mechanism.noise(4_000, rng=hf.seeded(2))
    assert np.allclose(errors, draws.std(axis=0), rtol=0.1)
    spread = mechanism._spread
    weights = np.arange(20.0) % 3
    assert spread.variance_of(weights) == pytest.approx((draws @ weights).var(), rel=0.15)
    assert spread.variance_of(np.ones(20)) == pytest.approx(0)


def test_a_walk_is_an_estimate_and_says_what_was_measured():
    mechanism = laplace((4, 5)).given(CROSSED & hf.nonnegative())
    assert mechanism.method == "walk"
    statement = mechanism.guarantee
    assert (statement.status, statement.records) == ("estimated", 2)
    assert statement.epsilon == pytest.approx(4 + math.log1p(math.expm1(4) * math.exp(-2)))  # line by line
    assert (1 + math.exp(6)) * 1e-9 <= statement.delta <= 1e-4  # nearer than usual, as far as rounding lets it be
    assert statement.numerical_delta == statement.delta
    assert any("measured at public tables" in caveat for caveat in statement.caveats)
    assert any("not proved" in caveat for caveat in statement.caveats)
    values = mechanism.release(TABLE, rng=hf.seeded(3)).values
    assert values.min() >= 0
    with pytest.raises(hf.Refused, match="depends on the data"):
        mechanism.standard_error()


def test_independent_tables_share_the_distance():
    cube = hf.invariant(hf.exact_margins((3, 4, 5), [(0, 2), (1, 2)]))
    asked = laplace((3, 4, 5)).given(cube, method="walk")
    assert len(asked.source.plan.shares) == 5
    assert sum(each.distance for each in asked.source.plan.evidence) == pytest.approx(1e-7)
    assert asked.guarantee.delta == pytest.approx((1 + math.exp(4)) * 1e-7)
    asked = laplace((3, 4, 5)).given(cube, method="walk", tau=1e-6)
    assert sum(each.distance for each in asked.source.plan.evidence) == pytest.approx(1e-6)


def test_three_way_tables_with_all_pairs_of_margins_change_by_four_records():
    mechanism = laplace((2, 3, 3)).given(hf.invariant(hf.exact_margins((2, 3, 3), ALL_PAIRS)), method="walk")
    statement = mechanism.guarantee
    assert (statement.records, statement.epsilon, statement.status) == (4, 8.0, "estimated")


def test_cells_that_no_swap_changes_are_named():
    """The first cell is exact as well, so no swap of two records changes it."""
    constraint = hf.invariant(hf.exact_margins((3, 3), [(0,), (1,)])) & hf.invariant(np.eye(9, dtype=int)[[0]])
    statement = laplace((3, 3)).given(constraint).guarantee
    assert statement.records == 2
    assert any("published exactly" in words for words in statement.unprotected)
    pinned = hf.invariant(hf.exact_margins((3, 3), [(0,), (1,)])) & hf.invariant(np.eye(9, dtype=int)[[0, 1]])
    told = " ".join(laplace((3, 3)).given(pinned).guarantee.unprotected)
    assert "the same whatever records change" in told


def test_gaussian_noise_is_stated_at_a_delta():
    query = hf.margins((4, 5))
    statement = hf.gaussian(query, rho=0.5).given(CROSSED, method="walk").guarantee
    assert statement.status == "estimated"
    assert statement.rho is None
    assert statement.epsilon is not None
    assert statement.delta > statement.numerical_delta > 0
    asked = hf.gaussian(query, epsilon=1, delta=1e-5).given(CROSSED, method="walk").guarantee
    assert asked.delta <= 1e-5
    assert 0 < asked.numerical_delta <= 0.5e-5
    coarse = hf.gaussian(query, epsilon=1, delta=1e-5).given(CROSSED, method="walk", tau=1e-6).guarantee
    assert coarse.delta == pytest.approx(1e-5 + (1 + math.exp(coarse.epsilon)) * 1e-6)


def test_the_total_can_be_calibrated():
    mechanism = laplace((4, 5)).given(CROSSED & hf.nonnegative()).calibrated(epsilon=1)
    assert 0.99 < mechanism.guarantee.epsilon <= 1


@pytest.mark.parametrize(
    ("base", "constraint", "sentence"),
    [
        (laplace((2, 3), integer=False), hf.nonnegative(), "integer noise"),
        (laplace((2, 3)), hf.between(0, 1) | hf.between(3, 4), "no unions"),
        (laplace((4, 4, 9)), hf.invariant(hf.exact_margins((4, 4, 9), ALL_PAIRS)), "up to 60 dimensions"),
        (laplace((2, 3, 3), epsilon=1e-4), hf.invariant(hf.exact_margins((2, 3, 3), ALL_PAIRS)), "up to 4096"),
    ],
    ids=["real", "a union", "many dimensions", "wide"],
)
def test_what_a_walk_cannot_draw_is_refused_in_one_sentence(base, constraint, sentence):
    with pytest.raises(hf.Refused, match=sentence):
        base.given(constraint, method="walk").method  # noqa: B018


def test_public_tables_depend_on_held_figures_only():
    constraint = hf.invariant(hf.exact_margins((2, 2, 3), ALL_PAIRS)) & hf.nonnegative()
    problem = Problem(laplace((2, 2, 3)).base.law, constraint.system(12))
    truth = np.array([1, 2, 2, 1, 1, 1, 1, 3, 1, 1, 1, 2])
    move = problem.space.lattice_basis().toarray()[:, 0]
    assert (truth + move >= 0).all()
    one, other = (public_tables(problem, problem.space.rows @ table) for table in (truth, truth + move))
    assert len(one) > 1
    assert all(np.array_equal(a, b) for a, b in zip(one, other, strict=True))
    assert all(problem.system.holds(table) for table in one)


def test_a_table_without_freedom_gets_no_noise():
    constraint = hf.invariant(hf.exact_margins((3, 3), [(0,), (1,)])) & hf.nonnegative()
    problem = Problem(laplace((3, 3)).base.law, constraint.system(9))
    assert not walk.draw(problem, np.diag([4, 0, 0]).ravel(), 5, hf.seeded(1)).any()


def test_whole_gaussian_noise_given_margins_is_drawn_exactly_and_keeps_its_rho():
    """All two-way margins of a 2⁵ table leave 16 dimensions; so do two crossed margins of a 4×5 table, or 12."""
    for shape, keep in (((2,) * 5, list(itertools.combinations(range(5), 2))), ((4, 5), [(0,), (1,)])):
        mechanism = hf.gaussian(hf.margins(shape), scale=2).given(hf.invariant(hf.exact_margins(shape, keep)))
        assert mechanism.method == "lattice"
        statement = mechanism.guarantee
        assert (statement.status, statement.numerical_delta) == ("proved", 0)
        assert statement.rho is not None
        truth = np.arange(math.prod(shape)) % 7
        values = mechanism.simulate(truth, 3, rng=hf.seeded(1)).reshape(3, *shape)
        assert (values != truth.reshape(shape)).any()
        for kept in keep:
            others = tuple(k for k in range(len(shape)) if k not in kept)
            assert (values.sum(axis=tuple(k + 1 for k in others)) == truth.reshape(shape).sum(axis=others)).all()


def test_what_no_way_draws_names_another_verb():
    """Laplace noise on a cube of many dimensions: walks do not meet, and nothing else is known."""
    shape = (4, 4, 9)
    held = hf.invariant(hf.exact_margins(shape, ALL_PAIRS))
    for constraint, words in ((held, r"use onto\(\.\.\., integer=False\)"), (held & hf.nonnegative(), r"use onto\(")):
        with pytest.raises(hf.Refused, match=words):
            laplace(shape).given(constraint).method  # noqa: B018
    assert hf.gaussian(hf.margins(shape), scale=3).given(held).method == "lattice"
