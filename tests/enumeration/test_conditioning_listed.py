"""Lists of narrow noise against plain enumeration: nothing within the radius is missed, and little lies beyond it."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

import holdfast as hf
from holdfast.given import Problem
from holdfast.given.near.listed import listed
from holdfast.given.near.listed.search import PRIME, Search, cell_shares, log_most, log_sums, needed_radius
from holdfast.noise.draws.finite import FiniteLaw
from holdfast.noise.precision import working_precision

CROSSED = [(0,), (1,)]
CHAIN = np.array([[1, 2, -1, 0, 0], [0, 1, 1, 3, -1]])


def margins(shape, keep):
    return hf.invariant(hf.exact_margins(shape, keep)), math.prod(shape)


def pairs(axes):
    return list(itertools.combinations(range(axes), 2))


# name: what holds, outputs, scales, largest coordinate of the enumeration, radius for Laplace and for Gaussian noise
CASES = {
    "2×2×2": (*margins((2, 2, 2), pairs(3)), 1.0, 20, 100.0, 900.0),
    "2×3": (*margins((2, 3), CROSSED), 1.5, 20, 30.0, 60.0),
    "3×3": (*margins((3, 3), CROSSED), 0.75, 10, 18.0, 20.0),
    "2×3×3": (*margins((2, 3, 3), pairs(3)), 1.0, 6, 30.0, 15.0),
    "2⁴": (*margins((2, 2, 2, 2), pairs(4)), 1.0, 4, 18.0, 12.0),
    "coefficients and scales": (hf.invariant(CHAIN), 5, [1, 0.5, 2, 1, 3], 30, 12.0, 25.0),
    "no equalities": (hf.nonnegative(), 3, [0.5, 1, 1.5], 20, 12.0, 20.0),
}


def problem(constraint, n, scale, kind):
    make = hf.laplace if kind == "laplace" else hf.gaussian
    return Problem(make(hf.histogram(n), scale=scale).base.law, constraint.system(n))


def rates_of(n, scale, kind):
    scales = np.broadcast_to(np.asarray(scale, dtype=float), (n,))
    return 1 / scales if kind == "laplace" else 1 / (2 * scales**2)


def enumerated(basis, rates, kind, reach):
    """All vectors with coordinates up to reach, and q of each."""
    dimension = basis.shape[1]
    steps = np.indices((2 * reach + 1,) * dimension).reshape(dimension, -1).T - reach
    noise = steps @ basis.T
    return steps, (np.abs(noise) if kind == "laplace" else noise**2) @ rates


@pytest.mark.parametrize("kind", ["laplace", "gaussian"])
@pytest.mark.parametrize("name", CASES)
def test_nothing_within_the_radius_is_missed(name, kind):
    constraint, n, scale, reach, *radii = CASES[name]
    radius = radii[kind == "gaussian"]
    basis, rates = problem(constraint, n, scale, kind).space.lattice_basis().toarray(), rates_of(n, scale, kind)
    found = Search.of(basis, rates).within(kind == "gaussian", radius)
    steps, sizes = enumerated(basis, rates, kind, reach)
    wanted = steps[sizes <= radius]
    assert np.abs(wanted).max() < reach  # the enumeration is large enough
    assert len(wanted) > 20
    assert {row.tobytes() for row in wanted.astype(np.int32)} <= {row.tobytes() for row in found}
    assert len({row.tobytes() for row in found}) == len(found)
    listed_sizes = (np.abs(found @ basis.T) if kind == "laplace" else (found @ basis.T) ** 2) @ rates
    assert listed_sizes.max() <= radius * 1.001


@pytest.mark.parametrize("kind", ["laplace", "gaussian"])
@pytest.mark.parametrize("name", CASES)
def test_bounds_on_sums_hold_and_what_lies_beyond_the_radius_weighs_less_than_tau(name, kind):
    constraint, n, scale, reach, *_ = CASES[name]
    basis, rates = problem(constraint, n, scale, kind).space.lattice_basis().toarray(), rates_of(n, scale, kind)
    shares = cell_shares(basis, 1 / rates)
    assert shares.sum() == pytest.approx(basis.shape[1])
    _, sizes = enumerated(basis, rates, kind, reach)
    parts = np.array([0.1, 0.3, 0.7, 1.0, 3.0])
    sums = np.log(np.exp(-np.outer(parts, sizes)).sum(axis=1))
    bounds = log_sums(kind == "gaussian", rates, shares, parts)
    assert (sums <= bounds + 1e-12).all()
    assert bounds[-1] < sums[-1] + basis.shape[1] * 0.7  # and are not far from the sums
    for tau in (1e-2, 1e-4):
        radius = needed_radius(kind == "gaussian", rates, shares, tau)
        assert np.exp(-sizes[sizes > radius]).sum() <= tau
        assert np.count_nonzero(sizes <= radius) <= math.exp(log_most(kind == "gaussian", rates, shares, radius))


def test_linear_forms_never_exceed_the_norm_of_a_completion():
    basis, rates = problem(*CASES["2⁴"][:3], "laplace").space.lattice_basis().toarray(), rates_of(16, 1.0, "laplace")
    search = Search.of(basis, rates)
    steps, sizes = enumerated(basis, rates, "laplace", 2)
    for depth in range(5):
        forms, errors = search.linear_forms(depth)
        assert errors.max() < 1e-6
        assert (np.abs(steps[:, : depth + 1] @ forms.T) <= sizes[:, None] + errors * 10 + 1e-9).all()
        # The cheapest completion of the last coordinate alone is met.
        alone = steps[:, depth] == 1
        alone &= (steps[:, :depth] == 0).all(axis=1)
        assert 0.5 < np.abs(forms[:, depth]).max() / sizes[alone].min() <= 1 + 1e-9


def test_outputs_that_are_not_independent_do_not_bound_a_sum():
    """Twice the same row: one of them at a time; a row of zeros never."""
    basis = np.array([[1, 0], [1, 0], [0, 1], [0, 0]])
    assert cell_shares(basis, np.ones(4)).tolist() == [0.5, 0.5, 1.0, 0.0]
    assert cell_shares(PRIME * basis, np.ones(4)) is None  # nothing is seen modulo the prime


def test_shells_have_the_probabilities_of_their_vectors():
    asked = problem(*CASES["coefficients and scales"][:3], "laplace")
    found = listed._list(asked)
    rates = rates_of(5, [1, 0.5, 2, 1, 3], "laplace")
    sizes = np.abs(found.noise(slice(None))) @ rates
    assert (np.diff(sizes) > -1e-9).all()
    assert found.exponents[0] == 0
    assert found.starts[1] == 1
    counts = np.diff(found.starts)
    assert np.allclose(np.repeat([float(each) for each in found.exponents], counts), sizes)
    shells = FiniteLaw(found.exponents, counts.tolist())
    weights = np.cumsum(np.exp(-sizes))
    with working_precision(80):
        for k in (1, 2, 5, 40):
            assert float(shells.at(k)) == pytest.approx(weights[found.starts[k] - 1] / weights[-1], abs=1e-12)
    assert FiniteLaw([Fraction(0)], [1]).size == 1


def test_whole_numbers_below_a_limit_are_all_alike():
    class Words:
        """Words at the end of their range: the last incomplete run must be drawn again."""

        def __init__(self):
            self.left = [2**64 - 1, 2**64 - 2, 5, 7]

        def words(self, count):
            found, self.left = self.left[:count], self.left[count:]
            return np.array(found, dtype=np.uint64)

    # 2⁶⁴ = 1 (mod 3): the word 2⁶⁴ − 1 would make 0 likelier; 2⁶⁴ − 2 ends the last whole run with 2.
    assert listed._below(np.array([3, 3]), Words()).tolist() == [2, 2]
    drawn = listed._below(np.full(60_000, 6), hf.seeded(1))
    counts = np.bincount(drawn, minlength=6)
    assert counts.size == 6
    assert np.abs(counts - 10_000).max() < 600
