"""What releases by crossed tables and walks promise, and what they refuse."""

import itertools
import math

import numpy as np
import pytest

import holdfast as hf
from holdfast.given import Problem
from holdfast.given.near.in_turn import in_turn
from holdfast.given.near.public_tables import public_tables, roomy_table
from holdfast.given.near.walk import walk

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
    assert (1 + math.exp(6)) * 1e-9 <= statement.delta <= 1e-5  # nearer than usual, since ε is large
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
    assert "no allowed change alters" in told


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


@pytest.mark.slow
def test_tables_of_many_axes_are_drawn_cell_after_cell():
    """All two-way margins of a 2⁶ table leave 42 dimensions: Gaussian noise is proved, Laplace noise is estimated."""
    shape, truth = (2,) * 6, np.arange(64) % 7
    constraint = hf.invariant(hf.exact_margins(shape, list(itertools.combinations(range(6), 2))))
    exact = hf.gaussian(hf.margins(shape), scale=2).given(constraint)
    assert exact.method == "in_turn"
    assert exact.guarantee.status == "proved"
    assert 0 < exact.guarantee.numerical_delta < 1e-7
    near = hf.laplace(hf.margins(shape), scale=2).given(constraint)
    assert near.method == "in_turn"
    statement = near.guarantee
    assert (statement.status, statement.records, statement.epsilon) == ("estimated", 4, 4.0)
    assert 0 < statement.numerical_delta == statement.delta <= 1e-5
    assert any("measured and not proved" in caveat for caveat in statement.caveats)
    for mechanism in (exact, near):
        values = mechanism.simulate(truth, 3, rng=hf.seeded(1)).reshape(3, *shape)
        assert (values != truth.reshape(shape)).any(axis=tuple(range(1, 7))).all()
        for a, b in itertools.combinations(range(6), 2):
            others = tuple(k + 1 for k in range(6) if k not in (a, b))
            assert (values.sum(axis=others) == truth.reshape(1, *shape).sum(axis=others)).all()


def test_bounds_on_tables_of_many_axes_are_kept_by_drawing_again():
    shape, pairs = (2,) * 5, list(itertools.combinations(range(5), 2))
    held = hf.invariant(hf.exact_margins(shape, pairs)) & hf.nonnegative()
    mechanism = hf.gaussian(hf.margins(shape), scale=2).given(held)
    assert mechanism.method == "in_turn"
    truth = 1 + np.arange(32) % 7
    values = mechanism.simulate(truth, 20, rng=hf.seeded(1))
    assert values.min() >= 0
    assert (values != truth).any()
    evidence = mechanism.source.plan.evidence[0]
    unbounded = hf.gaussian(hf.margins(shape), scale=2).given(hf.invariant(hf.exact_margins(shape, pairs)))
    assert evidence.distance == in_turn.MEAN_TRIES * unbounded.source.plan.evidence[0].distance
    assert not evidence.proved  # what a refusal tells is not known for Gaussian noise
    with pytest.raises(hf.Refused, match="too rarely within its bounds"):
        mechanism.simulate(np.zeros(32, dtype=int), 1, rng=hf.seeded(1))
    with pytest.raises(hf.Refused, match="depends on the data"):
        mechanism.standard_error()


def test_errors_of_gaussian_noise_drawn_cell_after_cell_are_known_beforehand():
    constraint = hf.invariant(hf.exact_margins((3, 3, 3), ALL_PAIRS))
    mechanism = hf.gaussian(hf.margins((3, 3, 3)), scale=3).given(constraint, method="in_turn")
    errors = mechanism.standard_error()
    assert np.allclose(errors, 3 * math.sqrt(8 / 27), rtol=0.05)  # the projection on 8 of 27 dimensions


def test_narrow_or_unsolved_noise_is_not_drawn_cell_after_cell():
    cube = hf.invariant(hf.exact_margins((2, 3, 3), ALL_PAIRS))
    with pytest.raises(hf.Refused, match="method 'in_turn' cannot draw"):
        hf.laplace(hf.margins((2, 3, 3)), scale=1).given(cube, method="in_turn").method  # noqa: B018
    with pytest.raises(hf.Refused, match="method 'in_turn' cannot draw"):
        hf.laplace(hf.margins((2, 3, 3)), scale=3).given(cube & hf.nonnegative(), method="in_turn").method  # noqa: B018


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


def test_a_roomy_table_depends_on_held_figures_only():
    constraint = hf.invariant(hf.exact_margins((2, 2, 3), ALL_PAIRS)) & hf.between(0, 12)
    problem = Problem(laplace((2, 2, 3)).base.law, constraint.system(12))
    truth = np.array([0, 2, 2, 1, 1, 1, 1, 3, 1, 0, 1, 2]) + 3
    truth[[0, 1, 3, 4, 6, 7, 9, 10]] += 3 * np.array([-1, 1, 1, -1, 1, -1, -1, 1])  # two cells are 0 or 1
    move = problem.space.lattice_basis().toarray()[:, 0]
    assert (truth >= 0).all()
    roomy = roomy_table(problem, problem.space.rows @ truth)
    other = truth + move if (truth + move >= 0).all() else truth - move
    assert np.array_equal(roomy, roomy_table(problem, problem.space.rows @ other))
    assert np.allclose(problem.space.rows @ roomy, problem.space.rows @ truth)
    assert np.minimum(roomy, 12 - roomy).min() > 1 > np.minimum(truth, 12 - truth).min()


@pytest.mark.parametrize("make", [hf.gaussian, hf.laplace])
def test_figures_that_leave_no_table_enough_room_are_refused_at_once(make, monkeypatch):
    shape, pairs = (2,) * 5, list(itertools.combinations(range(5), 2))
    held = hf.invariant(hf.exact_margins(shape, pairs)) & hf.nonnegative()
    mechanism = make(hf.margins(shape), scale=4).given(held, method="in_turn")

    def never(*_):
        raise AssertionError("no noise is drawn")

    with monkeypatch.context() as patch:
        patch.setattr(in_turn, "_drawn", never)
        with pytest.raises(hf.Refused, match="too rarely within its bounds"):
            mechanism.simulate(np.ones(32, dtype=int), 1, rng=hf.seeded(1))
        with pytest.raises(AssertionError, match="no noise is drawn"):
            mechanism.simulate(np.full(32, 12), 1, rng=hf.seeded(1))


def test_a_table_without_freedom_gets_no_noise():
    constraint = hf.invariant(hf.exact_margins((3, 3), [(0,), (1,)])) & hf.nonnegative()
    problem = Problem(laplace((3, 3)).base.law, constraint.system(9))
    assert not walk.draw(problem, np.diag([4, 0, 0]).ravel(), 5, hf.seeded(1)).any()
