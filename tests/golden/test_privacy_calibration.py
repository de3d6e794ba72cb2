"""Numbers with a source: THEORY §1, Balle and Wang 2018, Canonne, Kamath and Steinke 2020."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import integrate, stats

import holdfast as hf
from holdfast.arguments import Refused
from holdfast.privacy import (
    classical_delta,
    classical_sigma,
    gaussian_delta,
    gaussian_epsilon,
    gaussian_mu,
    integer_gaussian_delta,
    pure_rho,
    rho_for,
    rho_to_delta,
    rho_to_epsilon,
)

F = Fraction


def test_integer_noise_of_theory_section_1():
    # THEORY §1: σ=2, Δ=1, ε=2: true 1.07e-5, continuous formula 9.4e-6.
    assert integer_gaussian_delta({(1, F(4)): 1}, 2) == pytest.approx(1.07409e-5, rel=1e-5)
    assert gaussian_delta(F(1, 2), 2) == pytest.approx(9.43917e-6, rel=1e-5)


def test_the_classical_formula_is_false_where_theory_says_so():
    # THEORY §1: the true δ is 4.2× the claim at (1, 1e-12), and the claim fails from ε ≈ 4.6 at 1e-6.
    assert classical_delta(1, 1e-12) / 1e-12 == pytest.approx(4.17, abs=0.01)
    assert classical_delta(4.5, 1e-6) < 1e-6 < classical_delta(4.7, 1e-6)
    # SDP Lemma 13: Δ₂(1 + √(1 + ln 1/δ))/ε.
    assert classical_sigma(3, 2, 1e-6) == pytest.approx(1.5 * (1 + math.sqrt(1 + math.log(1e6))), rel=1e-15)
    assert classical_delta(2, 1e-6) == pytest.approx(gaussian_delta(1 / classical_sigma(1, 2, 1e-6), 2), rel=1e-13)


@pytest.mark.parametrize(("mu", "epsilon"), [(1.0, 0.0), (1.0, 1.0), (0.3, 0.5), (4.0, 12.0)])
def test_continuous_curve_is_the_integral_of_the_excess(mu, epsilon):
    # Independent of the formula: ∫ [φ(x − μ) − e^ε φ(x)]₊ dx, positive from x = ε/μ + μ/2 on.
    start = epsilon / mu + mu / 2
    value, _ = integrate.quad(
        lambda x: stats.norm.pdf(x - mu) - math.exp(epsilon) * stats.norm.pdf(x), start, start + 30, epsabs=0
    )
    assert gaussian_delta(mu, epsilon) == pytest.approx(value, rel=1e-9)


def test_curve_far_in_the_tail_is_positive_and_tiny():
    # Laplace's method: δ ≈ φ(z)·μ/(z(z+μ)) with z = ε/μ − μ/2, here within 1 %.
    mu, epsilon = 0.5, 18.0
    z = epsilon / mu - mu / 2
    rough = stats.norm.logpdf(z) + math.log(mu / (z * (z + mu)))
    assert math.log(gaussian_delta(mu, epsilon)) == pytest.approx(rough, abs=0.02)
    assert gaussian_delta(1e-3, 700) == 5e-324


@pytest.mark.parametrize("delta", [1e-300, 1e-100, 1e-12, 1e-6, 0.1])
@pytest.mark.parametrize("epsilon", [1e-6, 1e-2, 1.0, 50.0, 700.0])
def test_mu_is_the_largest_double_that_suffices(epsilon, delta):
    mu = gaussian_mu(epsilon, delta)
    assert gaussian_delta(mu, epsilon) <= delta < gaussian_delta(np.nextafter(mu, np.inf) * (1 + 1e-14), epsilon)
    back = gaussian_epsilon(mu, delta)
    assert back <= epsilon
    assert back == pytest.approx(epsilon, rel=1e-9)


def test_epsilon_is_the_smallest_double_that_suffices():
    epsilon = gaussian_epsilon(0.2367, 1e-6)
    assert gaussian_delta(0.2367, epsilon) <= 1e-6 < gaussian_delta(0.2367, epsilon * (1 - 1e-14))
    assert gaussian_epsilon(0.01, 0.9) == 0.0
    assert gaussian_epsilon(0, 1e-9) == 0.0


def test_conversion_from_rho_is_the_published_one():
    # CKS20 Corollary 13 evaluated on a fine mesh of orders, an independent optimisation.
    rho, delta = 0.5, 1e-6
    orders = 1 + np.exp(np.linspace(-5, 6, 400_001))
    epsilons = orders * rho - np.log(orders * delta) / (orders - 1) + np.log1p(-1 / orders)
    assert rho_to_epsilon(rho, delta) == pytest.approx(epsilons.min(), rel=1e-9)
    whole = np.arange(2, 2000)
    bounds = whole * rho - np.log(whole * delta) / (whole - 1) + np.log1p(-1 / whole)
    assert rho_to_epsilon(rho, delta, "integer") == pytest.approx(bounds.min(), rel=1e-12)
    logs = (orders - 1) * (orders * rho - 5) + orders * np.log1p(-1 / orders) - np.log(orders - 1)
    assert rho_to_delta(rho, 5) == pytest.approx(math.exp(logs.min()), rel=1e-9)
    # The older bound ρ + 2√(ρ ln 1/δ) (Bun and Steinke 2016) is weaker.
    assert rho_to_epsilon(rho, delta) < rho + 2 * math.sqrt(rho * math.log(1 / delta))


def test_rho_for_is_the_largest_double_that_suffices():
    for orders in ("all", "integer"):
        rho = rho_for(1, 1e-6, orders)
        assert rho_to_delta(rho, 1, orders) <= 1e-6 < rho_to_delta(rho * (1 + 1e-12), 1, orders)


def test_pure_to_concentrated():
    # ε·tanh(ε/2), below ε²/2 (Bun and Steinke 2016, Prop 1.4).
    assert pure_rho(1) == pytest.approx(math.tanh(0.5), rel=1e-15)
    assert pure_rho(0) == 0.0
    assert pure_rho(30) == pytest.approx(30, rel=1e-9)
    assert all(pure_rho(e) < e * e / 2 for e in (0.01, 0.5, 3))


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: gaussian_mu(1, 0), "delta must lie strictly between 0 and 1"),
        (lambda: gaussian_epsilon(-1, 0.1), "mu must not be negative"),
        (lambda: rho_to_epsilon(0.1, 2), "delta must lie strictly between 0 and 1"),
        (lambda: rho_to_delta(0.1, 1, "whole"), "orders must be one of 'all', 'integer'"),
        (lambda: classical_sigma(0, 1, 0.1), "l2 must be above 0"),
        (lambda: pure_rho(math.inf), "epsilon must be a finite number"),
    ],
)
def test_bad_numbers_are_refused(call, sentence):
    with pytest.raises(Refused, match=sentence):
        call()


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", [1e17, 1e50, 1e308])
def test_an_enormous_epsilon_is_no_fault(epsilon):
    assert gaussian_mu(epsilon, 1e-6) == 1e6
    with pytest.raises(hf.Refused):
        assert hf.gaussian(hf.histogram(2), epsilon=epsilon, delta=1e-6).guarantee
