"""Tied cells and lattices against listed laws: the right law is accepted, one with scales 25 % off is rejected."""

import numpy as np
import pytest

import holdfast as hf
from holdfast.given import Problem
from holdfast.given.exact import tied_totals
from holdfast.given.exact.normal import lattice
from listed_noise import listed, pearson

ALARM = 1e-6
CROSSED = [(0,), (1,)]
ALL_PAIRS = [(0, 1), (0, 2), (1, 2)]
SMALL = [2, 0, 1, 0, 1, 0, 0, 3, 1]
CUBE = [1, 0, 2, 1, 1, 0, 0, 3, 1, 1, 1, 2]

# name: way, shape, margins, kind, scale, reach of the list, truth (None: no bounds), draws
CASES = {
    "crossed 3×3, Gaussian": (lattice, (3, 3), CROSSED, "gaussian", 1.5, 7, None, 4_000),
    "two rows": (tied_totals, (2, 4), CROSSED, "laplace", 2, 12, None, 4_000),
    "two rows, Gaussian": (tied_totals, (4, 2), CROSSED, "gaussian", 2, 9, None, 4_000),
    "two rows, not negative": (tied_totals, (2, 4), CROSSED, "laplace", 1, 8, [1, 0, 2, 1, 0, 3, 0, 1], 4_000),
    "2×2×3, not negative": (
        tied_totals,
        (2, 2, 3),
        ALL_PAIRS,
        "laplace",
        3,
        9,
        CUBE,
        8_000,
    ),
    "lattice 2×3×3": (lattice, (2, 3, 3), ALL_PAIRS, "gaussian", 2, 6, None, 4_000),
    "lattice 2×2×2, narrow": (lattice, (2, 2, 2), ALL_PAIRS, "gaussian", 1.5, 30, None, 4_000),
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
    assert tied_totals.accepts(asked)
    draws = tied_totals.draw(asked, truth, 8_000, hf.seeded(11))
    low, high = np.array([-2, -99, -99, -99, -1]), np.array([2, 99, 99, 99, 3])
    basis = asked.space.lattice_basis().toarray()
    assert pearson(draws, *listed(basis, "laplace", scales, 30, low, high)) > ALARM
    assert pearson(draws, *listed(basis, "laplace", 1.2, 30, low, high)) < ALARM


def test_gaussian_variances_may_differ_from_cell_to_cell():
    scales = np.array([1, 2, 1.5, 0.7, 1, 1, 2, 1, 0.8])
    system = hf.invariant(hf.exact_margins((3, 3), CROSSED)).system(9)
    asked = Problem(hf.gaussian(hf.histogram(9), scale=scales.tolist()).base.law, system)
    assert lattice.accepts(asked)
    draws = lattice.draw(asked, None, 6_000, hf.seeded(12))
    basis = asked.space.lattice_basis().toarray()
    assert pearson(draws, *listed(basis, "gaussian", scales, 7)) > ALARM
    assert pearson(draws, *listed(basis, "gaussian", 1.2, 7)) < ALARM
