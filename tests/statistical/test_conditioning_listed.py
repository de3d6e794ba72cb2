"""Noise drawn from a list against enumerated laws: the right law is accepted, one with scales off is rejected."""

import itertools
import math

import numpy as np
import pytest

import holdfast as hf
from holdfast.given import Problem
from holdfast.given.near.listed import listed as way
from holdfast.given.near.two_way import two_way
from listed_noise import listed, pearson, two_samples

ALARM = 1e-6
CROSSED = [(0,), (1,)]

# name: shape, margins, kind, scale, reach of the enumeration, draws
CASES = {
    "2×2×2, Laplace": ((2, 2, 2), "laplace", 4, 30, 20_000),
    "2×2×3, Laplace": ((2, 2, 3), "laplace", 2, 12, 20_000),
    "2×3×3, Laplace": ((2, 3, 3), "laplace", 1, 5, 100_000),
    "2⁴, Laplace": ((2, 2, 2, 2), "laplace", 1, 3, 100_000),
    "2⁴, Gaussian": ((2, 2, 2, 2), "gaussian", 0.8, 3, 100_000),
    "2×3×3, Gaussian": ((2, 3, 3), "gaussian", 0.9, 4, 50_000),
}


def margins(shape, keep=None):
    return hf.invariant(hf.exact_margins(shape, keep or list(itertools.combinations(range(len(shape)), 2))))


def problem(constraint, n, kind, scale):
    make = hf.laplace if kind == "laplace" else hf.gaussian
    return Problem(make(hf.histogram(n), scale=scale).base.law, constraint.system(n))


@pytest.mark.parametrize("name", CASES)
def test_draws_have_the_enumerated_law(name):
    shape, kind, scale, reach, size = CASES[name]
    asked = problem(margins(shape), math.prod(shape), kind, scale)
    assert way.accepts(asked)
    draws = way.draw(asked, None, size, hf.seeded(3))
    basis = asked.space.lattice_basis().toarray()
    assert pearson(draws, *listed(basis, kind, scale, reach)) > ALARM
    assert pearson(draws, *listed(basis, kind, 1.15 * scale, reach)) < ALARM


def test_crossed_tables_are_drawn_as_row_after_row():
    asked = problem(margins((3, 3), CROSSED), 9, "laplace", 1)
    draws = way.draw(asked, None, 8_000, hf.seeded(4))
    assert two_way.accepts(asked)
    assert two_samples(two_way.draw(asked, None, 8_000, hf.seeded(5)), draws) > ALARM
    other = problem(margins((3, 3), CROSSED), 9, "laplace", 1.15)
    assert two_samples(two_way.draw(other, None, 8_000, hf.seeded(5)), draws) < ALARM


@pytest.mark.parametrize("kind", ["laplace", "gaussian"])
def test_equalities_may_have_coefficients_and_cells_scales(kind):
    rows = np.array([[1, 2, -1, 0, 0], [0, 1, 1, 3, -1]])
    scales = np.array([2, 1.5, 3, 1.5, 2])
    asked = problem(hf.invariant(rows), 5, kind, scales.tolist())
    draws = way.draw(asked, None, 20_000, hf.seeded(6))
    assert not (draws @ rows.T).any()
    basis = asked.space.lattice_basis().toarray()
    assert pearson(draws, *listed(basis, kind, scales, 40)) > ALARM
    assert pearson(draws, *listed(basis, kind, 2.0, 40)) < ALARM


@pytest.mark.parametrize(("kind", "scale"), [("laplace", 1.5), ("gaussian", 2)])
def test_bounds_and_inequalities_cut_the_law(kind, scale):
    truth = np.array([1, 0, 2, 1, 1, 0, 0, 3, 1, 1, 1, 2])
    order = np.eye(12, dtype=int)[[2]] - np.eye(12, dtype=int)[[6]]
    asked = problem(margins((2, 2, 3)) & hf.nonnegative() & hf.ordered([6, 2]), 12, kind, scale)
    draws = way.draw(asked, truth, 20_000, hf.seeded(7))
    basis = asked.space.lattice_basis().toarray()

    def law(by, low):
        return listed(basis, kind, by, 9, low, inequalities=(order, -(order @ truth)))

    assert (draws + truth >= 0).all()
    assert pearson(draws, *law(scale, -truth)) > ALARM
    assert pearson(draws, *law(scale / 1.5, -truth)) < ALARM
    assert pearson(draws, *law(scale, -truth - 1)) < ALARM
