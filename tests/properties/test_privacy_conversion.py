"""Rounding outwards, and orderings that every calibration and conversion must keep."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from flint import arb, ctx
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.beliefs import renyi
from holdfast.privacy import (
    gaussian_delta,
    gaussian_epsilon,
    inward,
    outward,
    pure_rho,
    rho_for,
    rho_to_delta,
    rho_to_epsilon,
)

quick = settings(max_examples=30, deadline=None, derandomize=True)
fractions = st.fractions(max_denominator=10**30)
epsilons = st.floats(1e-3, 20)
deltas = st.floats(1e-30, 0.3)


@quick
@given(fractions)
def test_outward_is_the_smallest_double_at_or_above(x):
    up = outward(x)
    assert Fraction(up) >= x > Fraction(math.nextafter(up, -math.inf))
    down = inward(x)
    assert Fraction(down) <= x < Fraction(math.nextafter(down, math.inf))


def test_outward_at_the_ends_of_the_doubles():
    assert outward(Fraction(1, 10**400)) == 5e-324
    assert outward(Fraction(-1, 10**400)) == 0.0
    assert outward(Fraction(10**400)) == math.inf
    assert outward(-Fraction(10**400)) == -math.nextafter(math.inf, 0.0)
    with ctx.workprec(100):
        assert outward(arb(10) ** -400) == 5e-324
        assert outward(arb(-1000000).exp()) == 5e-324
        assert outward(arb(1000000).exp()) == math.inf
        assert outward(arb(2)) == 2.0
        third = arb(1) / 3
        assert Fraction(outward(third)) > Fraction(1, 3) > Fraction(inward(third))
        assert outward(arb("nan")) == math.inf


@quick
@given(st.floats(1e-3, 5), epsilons)
def test_rho_conversion_is_above_the_exact_gaussian_curve(mu, epsilon):
    # A μ-Gaussian mechanism is μ²/2-zCDP, so its exact δ must not exceed what the conversion gives.
    rho = outward(Fraction(mu) ** 2 / 2)
    assert gaussian_delta(mu, epsilon) <= rho_to_delta(rho, epsilon) <= rho_to_delta(rho, epsilon, "integer")


@quick
@given(st.floats(1e-4, 10), deltas)
def test_both_directions_of_the_rho_conversion_agree(rho, delta):
    for orders in ("all", "integer"):
        epsilon = rho_to_epsilon(rho, delta, orders)
        assert rho_to_delta(rho, epsilon, orders) <= delta * (1 + 1e-12)
        if epsilon > 0:
            assert rho_for(epsilon, delta, orders) == pytest.approx(rho, rel=1e-6)


@quick
@given(st.floats(1e-3, 5), deltas)
def test_both_directions_of_the_gaussian_curve_agree(mu, delta):
    epsilon = gaussian_epsilon(mu, delta)
    assert gaussian_delta(mu, epsilon) <= delta
    if epsilon > 0:
        assert gaussian_delta(mu, epsilon * (1 - 1e-12)) > delta * (1 - 1e-15)


def response(epsilon: float) -> tuple[dict[int, Fraction], dict[int, Fraction]]:
    """Return randomized response and its neighbour, with ratio just below e^ε."""
    p = Fraction(math.exp(epsilon) / (1 + math.exp(epsilon)))
    return {0: p, 1: 1 - p}, {0: 1 - p, 1: p}


@quick
@given(st.floats(0.01, 8), st.floats(1.001, 60))
def test_pure_epsilon_to_rho_covers_randomized_response(epsilon, order):
    found = renyi(*response(epsilon), order)
    assert found <= order * pure_rho(epsilon) * (1 + 1e-9) + 1e-12


def test_pure_rho_is_the_smallest_possible():
    # D_α/α of randomized response tends to ε·tanh(ε/2) as α falls to 1; a smaller ρ would be false.
    assert renyi(*response(2.0), 1.0001) / 1.0001 > 0.999 * pure_rho(2.0)
