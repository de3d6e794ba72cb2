"""Walks and crossed tables against listed laws: the right law is accepted, one with scales 25 % off is rejected."""

import numpy as np
import pytest

import holdfast as hf
from holdfast.given import Problem
from holdfast.given.exact import two_rows
from holdfast.given.exact.normal import lattice
from holdfast.given.near import two_way, walk
from holdfast.given.near.walk import LineChain, found_moves
from holdfast.given.near.walk_steps import walk_coupled
from listed_noise import listed, pearson, two_samples

ALARM = 1e-6
CROSSED = [(0,), (1,)]
ALL_PAIRS = [(0, 1), (0, 2), (1, 2)]
SMALL = [2, 0, 1, 0, 1, 0, 0, 3, 1]
CUBE = [1, 0, 2, 1, 1, 0, 0, 3, 1, 1, 1, 2]

# name: way, shape, margins, kind, scale, reach of the list, truth (None: no bounds), draws
CASES = {
    "crossed 3×3": (two_way, (3, 3), CROSSED, "laplace", 1, 7, None, 4_000),
    "crossed 3×3, Gaussian": (lattice, (3, 3), CROSSED, "gaussian", 1.5, 7, None, 4_000),
    "crossed 3×4": (two_way, (3, 4), CROSSED, "laplace", 0.7, 3, None, 4_000),
    "two rows": (two_rows, (2, 4), CROSSED, "laplace", 2, 12, None, 4_000),
    "two rows, Gaussian": (two_rows, (4, 2), CROSSED, "gaussian", 2, 9, None, 4_000),
    "two rows, not negative": (two_rows, (2, 4), CROSSED, "laplace", 1, 8, [1, 0, 2, 1, 0, 3, 0, 1], 4_000),
    "2×2×3, not negative": (
        two_rows,
        (2, 2, 3),
        ALL_PAIRS,
        "laplace",
        3,
        9,
        CUBE,
        8_000,
    ),
    "walk 3×3": (walk, (3, 3), CROSSED, "laplace", 1, 7, None, 1_500),
    "walk 3×3, not negative": (walk, (3, 3), CROSSED, "laplace", 1, 7, SMALL, 2_000),
    "walk 3×3, not negative, Gaussian": (walk, (3, 3), CROSSED, "gaussian", 1, 7, SMALL, 2_000),
    "walk 2×4, not negative": (walk, (2, 4), CROSSED, "laplace", 1, 8, [1, 0, 2, 1, 0, 3, 0, 1], 2_000),
    "walk 3×4, not negative": (walk, (3, 4), CROSSED, "laplace", 0.8, 3, [1, 0, 1, 0, 2, 0, 0, 1, 0, 1, 1, 0], 2_000),
    "lattice 2×3×3": (lattice, (2, 3, 3), ALL_PAIRS, "gaussian", 2, 6, None, 4_000),
    "lattice 2×2×2, narrow": (lattice, (2, 2, 2), ALL_PAIRS, "gaussian", 1.5, 30, None, 4_000),
    "walk 2×2×2": (walk, (2, 2, 2), ALL_PAIRS, "laplace", 4, 30, None, 2_000),
    "walk 2×3×3": (walk, (2, 3, 3), ALL_PAIRS, "gaussian", 2, 6, None, 1_200),
    "walk 2×2×3, not negative": (
        walk,
        (2, 2, 3),
        ALL_PAIRS,
        "laplace",
        3,
        9,
        CUBE,
        2_500,
    ),
}


def problem(shape, keep, kind, scale, bounded):
    query = hf.histogram(int(np.prod(shape)))
    base = hf.laplace(query, scale=scale) if kind == "laplace" else hf.gaussian(query, scale=scale)
    constraint = hf.invariant(hf.exact_margins(shape, keep))
    return Problem(base.base.law, (constraint & hf.nonnegative() if bounded else constraint).system(query.n))


@pytest.mark.parametrize("name", CASES)
def test_draws_have_the_listed_law(name):
    way, shape, keep, kind, scale, reach, truth, size = CASES[name]
    asked = problem(shape, keep, kind, scale, truth is not None)
    assert way.accepts(asked)
    table = None if truth is None else np.array(truth)
    draws = way.draw(asked, table, size, hf.seeded(3))
    low = None if truth is None else -table
    basis = asked.space.lattice_basis().toarray()
    assert pearson(draws, *listed(basis, kind, scale, reach, low)) > ALARM
    assert pearson(draws, *listed(basis, kind, 1.25 * scale, reach, low)) < ALARM


def test_tied_cells_may_have_scales_and_signs_of_their_own():
    """A weighted chain of equalities: u₁ = −u₂, u₃ = u₄, and u₁ + u₃ = u₅; bounds on some."""
    rows = np.array([[1, 1, 0, 0, 0], [0, 0, 1, -1, 0], [2, 0, 2, 0, -2]])
    scales, truth = np.array([1, 2, 1.5, 3, 1]), np.array([1, 0, 2, 1, 0])
    constraint = hf.invariant(rows) & hf.between(-1, 3, at=[0, 4])
    asked = Problem(hf.laplace(hf.histogram(5), scale=scales.tolist()).base.law, constraint.system(5))
    assert two_rows.accepts(asked)
    draws = two_rows.draw(asked, truth, 8_000, hf.seeded(11))
    low, high = np.array([-2, -99, -99, -99, -1]), np.array([2, 99, 99, 99, 3])
    basis = asked.space.lattice_basis().toarray()
    assert pearson(draws, *listed(basis, "laplace", scales, 30, low, high)) > ALARM
    assert pearson(draws, *listed(basis, "laplace", 1.2, 30, low, high)) < ALARM


def test_scales_may_differ_from_cell_to_cell():
    scales = np.array([1, 2, 0.5, 0.5, 1, 1, 2, 1, 0.5])
    query = hf.histogram(9)
    system = hf.invariant(hf.exact_margins((3, 3), CROSSED)).system(9)
    asked = Problem(hf.laplace(query, scale=scales.tolist()).base.law, system)
    assert not two_way.accepts(asked)
    draws = walk.draw(asked, None, 1_200, hf.seeded(4))
    basis = asked.space.lattice_basis().toarray()
    assert pearson(draws, *listed(basis, "laplace", scales, 7)) > ALARM
    assert pearson(draws, *listed(basis, "laplace", 1.0, 7)) < ALARM


def test_columns_may_have_scales_of_their_own():
    scales = np.tile([2.0, 0.5, 1.0], 3)
    system = hf.invariant(hf.exact_margins((3, 3), CROSSED)).system(9)
    asked = Problem(hf.laplace(hf.histogram(9), scale=scales.tolist()).base.law, system)
    draws = two_way.draw(asked, None, 6_000, hf.seeded(5))
    basis = asked.space.lattice_basis().toarray()
    assert pearson(draws, *listed(basis, "laplace", scales, 8)) > ALARM
    assert pearson(draws, *listed(basis, "laplace", 1.0, 8)) < ALARM


def test_gaussian_variances_may_differ_from_cell_to_cell():
    scales = np.array([1, 2, 1.5, 0.7, 1, 1, 2, 1, 0.8])
    system = hf.invariant(hf.exact_margins((3, 3), CROSSED)).system(9)
    asked = Problem(hf.gaussian(hf.histogram(9), scale=scales.tolist()).base.law, system)
    assert lattice.accepts(asked)
    draws = lattice.draw(asked, None, 6_000, hf.seeded(12))
    basis = asked.space.lattice_basis().toarray()
    assert pearson(draws, *listed(basis, "gaussian", scales, 7)) > ALARM
    assert pearson(draws, *listed(basis, "gaussian", 1.2, 7)) < ALARM


def test_rows_of_inequalities_are_respected():
    """An order of four cells with an exact total: bounds are slacks of rows."""
    truth = np.array([0, 0, 1, 2])
    constraint = hf.invariant(np.ones((1, 4), dtype=int)) & hf.ordered([0, 1, 2, 3]) & hf.between(-1, 4)
    asked = Problem(hf.laplace(hf.histogram(4), scale=1.5).base.law, constraint.system(4))
    draws = walk.draw(asked, truth, 1_500, hf.seeded(6))
    order = np.eye(4, dtype=int)[1:] - np.eye(4, dtype=int)[:-1]
    basis = asked.space.lattice_basis().toarray()

    def law(scale):
        return listed(basis, "laplace", scale, 8, -1 - truth, 4 - truth, (order, -(order @ truth)))

    assert (np.diff(draws + truth, axis=1) >= 0).all()
    assert pearson(draws, *law(1.5)) > ALARM
    assert pearson(draws, *law(0.9)) < ALARM


def test_tables_that_moves_within_bounds_do_not_connect_are_reached():
    """The positive part of a move of degree 6: no shorter one leaves it within bounds (Diaconis and Sturmfels 1998)."""
    first, shifted = np.eye(3, dtype=np.int64), np.roll(np.eye(3, dtype=np.int64), 1, axis=1)
    truth, other = np.stack([first, shifted]).ravel(), np.stack([shifted, first]).ravel()
    asked = problem((2, 3, 3), ALL_PAIRS, "laplace", 6, True)
    moves = found_moves(asked).toarray()
    assert len(moves) > 4
    for sign in (-1, 1):
        assert ((truth + sign * moves) < 0).any(axis=1).all()  # a walk that keeps to the bounds never leaves the truth
    draws = walk.draw(asked, truth, 240, hf.seeded(10))
    basis = asked.space.lattice_basis().toarray()
    noise, chances = listed(basis, "laplace", 6, 4, -truth)
    assert {tuple(row) for row in noise.tolist()} == {(0,) * 18, tuple((other - truth).tolist())}
    assert pearson(draws, noise, chances) > ALARM
    assert pearson(0 * draws, noise, chances) < ALARM


def test_a_coupled_walk_has_the_law_of_a_walk():
    """Each copy by itself: after three coupled steps the copy behind is compared with plain steps from its start."""
    asked = problem((3, 3), CROSSED, "laplace", 1, False)
    chain = LineChain.of(asked, found_moves(asked), np.zeros(9, dtype=np.int64))
    size, stream = 8_000, hf.seeded(7)
    swap = np.array([1, -1, 0, -1, 1, 0, 0, 0, 0])
    ahead, behind, plain = (np.tile(2 * k * swap, (size, 1)) for k in (-1, 1, 1))
    for _ in range(3):
        chain.advance_coupled(ahead, behind, stream)
        chain.advance(plain, stream)
    assert (ahead == behind).all(axis=1).mean() > 0.2
    assert two_samples(plain, behind) > ALARM
    assert two_samples(plain, -plain) < ALARM


def test_walks_that_met_stay_together():
    asked = problem((3, 4), CROSSED, "gaussian", 2, False)
    chain = LineChain.of(asked, found_moves(asked), np.zeros(12, dtype=np.int64))
    states = chain.start(200, hf.seeded(8))
    ahead, behind = states.copy(), states.copy()
    words = hf.seeded(9).words(200 * 50 * 4).reshape(200, 50, 4)
    walk_coupled(chain.moves, ahead, behind, words)
    assert np.array_equal(ahead, behind)
    assert not np.array_equal(ahead, states)
