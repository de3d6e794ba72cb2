"""What the exact draws of whole noise rest on: bounds by doubles that hold, masses largest at whole centres."""

import pickle
from fractions import Fraction
from functools import partial

import numpy as np
import pytest
from flint import arb
from hypothesis import given, settings
from hypothesis import strategies as st

import holdfast as hf
from holdfast.noise.draws.comparison import below
from holdfast.noise.draws.lattice_form import LatticeForm
from holdfast.noise.draws.shifted_gaussian import ShiftedGaussian, powers
from holdfast.noise.precision import ball, working_precision
from lattice_laws import CASES, exact_form, made

BITS = 30
HALF = 1 << (BITS - 1)
variances = st.one_of(
    st.fractions(Fraction(1, 100), 40, max_denominator=1000), st.fractions(Fraction(1, 1000), 1, max_denominator=1000)
)
rests = st.integers(-HALF, HALF)


@given(st.floats(0, 60))
def test_bounds_of_powers_hold(x):
    low, high = powers(np.array([x]))
    with working_precision(128):
        true = ball(-Fraction(x)).exp()
        assert arb(float(low[0])) <= true <= arb(float(high[0]))
    assert high[0] - low[0] <= high[0] * 2.0**-38 or x >= 44


@given(variances, rests)
@settings(max_examples=80)
def test_bounds_of_masses_hold(sigma2, rest):
    law = ShiftedGaussian(sigma2, BITS)
    low, high = law.ratios(np.array([rest]))
    with working_precision(128):
        true = law.ratio(rest)
        assert arb(float(low[0])) <= true
        assert true <= arb(float(high[0])) + arb(2) ** -100
        assert true >= arb(law.least_ratio)
    assert rest or high[0] == 1


@given(variances, rests, st.integers(-40, 40))
@settings(max_examples=120)
def test_exponents_are_known_and_not_negative(sigma2, rest, proposal):
    """Within 2^−43 below 44, at least 0, and the weights they leave are those of the law, up to a constant."""
    law, f = ShiftedGaussian(sigma2, BITS), Fraction(rest, 2**BITS)
    exact = law._exponent(proposal, rest)
    near = law._exponents(np.array([proposal]), np.array([rest]))[0]
    assert exact >= 0
    assert abs(Fraction(near) - exact) < Fraction(1, 2**43) or exact > 44
    assert near > 43 or exact < 44
    first = law._exponent(0, rest)
    laws = (proposal - f) ** 2 / (2 * sigma2) - f**2 / (2 * sigma2)
    assert Fraction(abs(proposal), law._scale) + exact - first == laws


@given(variances, rests)
@settings(max_examples=100)
def test_masses_are_those_of_a_sum(sigma2, rest):
    """Written out: Σ_z e^{−(z−c)²/2σ²} over its value at 0; both ways to enclose it agree with the sum."""
    c, points = rest / 2**BITS, np.arange(-80, 81)
    written = np.exp(-((points - c) ** 2) / (2 * float(sigma2))).sum()
    written /= np.exp(-(points**2) / (2 * float(sigma2))).sum()
    with working_precision(128):
        assert float(ShiftedGaussian(sigma2, BITS).ratio(rest).mid()) == pytest.approx(written, rel=1e-11)


@pytest.mark.parametrize("rest", [HALF, HALF // 2, -HALF // 3])
def test_both_ways_to_enclose_a_mass_meet_at_variance_one(rest):
    """Just below 1 the sum is written out, from 1 on it is Poisson's: there is no step between them."""
    below, above = ShiftedGaussian(1 - Fraction(1, 2**200), BITS), ShiftedGaussian(Fraction(1), BITS)
    with working_precision(256):
        assert abs(below.ratio(rest) - above.ratio(rest)) < arb(2) ** -180
        assert abs(1 - above.ratio(rest)) > arb(10) ** -9


@pytest.mark.slow
@given(st.integers(0, 2**32), st.integers(1, 7))
@settings(max_examples=40)
def test_the_form_is_rounded_once_and_taken_exactly(seed, size):
    """The largest form is the largest of all, in fractions, and near that of the covariance that was asked for."""
    rng = np.random.default_rng(seed)
    basis = np.eye(size + 2, size, dtype=np.int64)
    basis[size:] = rng.integers(-2, 3, (2, size))
    directions = np.linalg.qr(basis.astype(float))[0]
    factor = directions @ (rng.normal(size=(size, size)) + 3 * np.eye(size))
    form = LatticeForm.of(basis, factor)
    vectors = basis @ rng.integers(-3, 4, (size, 9))
    found, attained = form.largest(form.coordinates(vectors))
    asked = np.linalg.pinv(factor @ factor.T)
    assert attained
    assert float(found) == pytest.approx(max(v @ asked @ v for v in vectors.T), rel=1e-5)
    assert abs(round(np.linalg.det(np.linalg.lstsq(basis.astype(float), form.basis, rcond=None)[0]))) == 1
    unit = [[Fraction(int(i == j)) + Fraction(int(form.upper[i, j]), 2**30) for j in range(size)] for i in range(size)]
    values = []
    for k in form.coordinates(vectors).T.tolist():
        parts = [sum(u * x for u, x in zip(row, k, strict=True)) for row in unit]
        values.append(sum(weight * part**2 for weight, part in zip(form.weights, parts, strict=True)))
    assert found == max(values)


def test_many_ties_are_rounded_up():
    """More vectors of the largest form than are settled in fractions: the bound is a little above them, never below."""
    size = 12
    form = LatticeForm.of(np.eye(size, dtype=np.int64), 1.7 * np.eye(size))
    signs = np.array(np.meshgrid(*[[-1, 1]] * 7)).reshape(7, -1)
    vectors = np.vstack([signs, np.zeros((size - 7, signs.shape[1]), dtype=np.int64)])
    found, attained = form.largest(form.coordinates(vectors))
    true = form.largest(form.coordinates(vectors[:, :1]))[0]
    assert not attained
    assert true <= found <= true * (1 + Fraction(1, 10**12))


def test_vectors_outside_the_lattice_are_an_error():
    form = LatticeForm.of(np.array([[2, 0], [0, 1]]), np.eye(2))
    with pytest.raises(ArithmeticError, match="does not lie in the lattice"):
        form.coordinates(np.array([[1], [1]]))


@pytest.mark.parametrize("case", CASES)
def test_releases_are_whole_and_keep_what_must_hold(case):
    mechanism = made(case, rho=0.3)
    query, constraint, _ = CASES[case]
    truth = query.answer(np.arange(10, 10 + query.cells))
    released = mechanism.release(truth, rng=hf.seeded(3))
    assert released.values.dtype == np.int64
    assert not (constraint.system(query.n).null_space().rows @ (released.values - truth)).any()
    assert (released.values != truth).any()
    assert released.guarantee.rho == mechanism.guarantee.rho


def test_a_mechanism_travels_with_its_form():
    mechanism = made("prefix sums", rho=0.3)
    again = pickle.loads(pickle.dumps(mechanism))
    assert again.guarantees == mechanism.guarantees
    assert np.array_equal(again.noise(20, hf.seeded(1)), mechanism.noise(20, hf.seeded(1)))


@pytest.mark.parametrize("kind", ["add-remove", "replace-one"])
def test_calibrated_again_the_promise_follows_the_noise(kind):
    mechanism = made("tree with exact root", kind, rho=0.3).calibrated(rho=0.06)
    largest = max(exact_form(mechanism, mechanism.query.differences("replace-one")))
    assert largest / 2 <= mechanism.guarantee.rho <= 0.06
    assert mechanism.guarantee.rho == pytest.approx(0.06, rel=1e-9)


def test_intervals_hold_their_share_of_errors():
    mechanism = made("prefix sums", rho=0.3)
    truth = mechanism.query.answer([50, 40, 30, 20])
    bounds = np.asarray(mechanism.release(truth, rng=hf.seeded(3)).interval(confidence=0.9))
    width = (bounds[:, 1] - bounds[:, 0]) / 2
    errors = np.abs(mechanism.noise(5_000, hf.seeded(4)))
    assert ((errors <= width + 1e-9).mean(axis=0) > 0.88).all()


@pytest.mark.slow
def test_where_independent_noise_is_the_law_it_is_that_noise():
    """Laplace, k-norm of a total, and symmetric Gaussian noise are the conditioned laws, at the scale that is asked."""
    query, total = hf.histogram(4), hf.invariant([[1] * 4])
    laplace = hf.laplace(query, scale=2, neighbours="replace-one").given(total)
    for law in ("laplace", "k-norm"):
        made_ = hf.extend(query, total, law=law, epsilon=1, neighbours="replace-one", integer=True)
        assert made_.base.law.scale_values == (2,)
        assert made_.guarantees == laplace.guarantees
        assert np.array_equal(made_.noise(9, hf.seeded(2)), laplace.noise(9, hf.seeded(2)))
    spherical = hf.gaussian(query, scale=2, neighbours="replace-one").given(total)
    for law in ("gaussian", "optimal"):
        made_ = hf.extend(query, total, law=law, rho=0.25, neighbours="replace-one", integer=True)
        assert made_.standard_error() == pytest.approx(spherical.standard_error(), rel=1e-6)
        assert made_.guarantee.rho == pytest.approx(0.25)


@pytest.mark.parametrize("weights", [(Fraction(5), Fraction(3)), (Fraction(1, 2), Fraction(9)), (Fraction(12),) * 2])
def test_coins_of_vectors_fall_by_the_product_of_masses(weights):
    """Digits of a uniform number just below and just above Π θ(c)/θ(0), with sums made here."""
    form = LatticeForm(np.eye(2, dtype=np.int64), np.zeros((2, 2), dtype=np.int64), weights)
    places = np.arange(-60, 61)
    for rests in ((HALF, -HALF // 3), (HALF // 7, 0), (-HALF, HALF - 1)):
        chance = 1.0
        for weight, rest in zip(weights, rests, strict=True):
            around = np.exp(-float(weight) * (places - rest / 2**BITS) ** 2 / 2).sum()
            chance *= around / np.exp(-float(weight) * places**2 / 2).sum()
        digits = int(chance * 2**53)
        assert below(partial(form._ratio, np.array(rests)), digits - 2**16, 53, hf.seeded(1))
        assert not below(partial(form._ratio, np.array(rests)), digits + 2**16, 53, hf.seeded(1))
