"""Odds in words: every bound on right guesses dominates what a full list of outcomes says, or attains it."""

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.special import ndtr, ndtri

import holdfast as hf
from holdfast.privacy import Guarantee
from holdfast.privacy.odds import guessed_right, in_hundred, shift


def statement(**numbers):
    return Guarantee(neighbours="replace-one", because="a test", **numbers)


def right(first, second):
    """The best guess between two listed laws, each as likely as the other."""
    return np.maximum(first, second).sum() / 2


@pytest.mark.parametrize("epsilon", [0.01, 0.5, 1, 2, 8])
@pytest.mark.parametrize("delta", [0, 1e-6, 0.1])
def test_the_worst_pair_of_laws_attains_the_bound(epsilon, delta):
    high, low = math.exp(epsilon) / (1 + math.exp(epsilon)), 1 / (1 + math.exp(epsilon))
    first = np.array([delta, (1 - delta) * high, (1 - delta) * low, 0])
    found = guessed_right(statement(epsilon=epsilon, delta=delta))
    assert right(first, first[::-1]) <= found <= right(first, first[::-1]) + 1e-11


@pytest.mark.parametrize("epsilon", [0.1, 1, 3])
def test_integer_laplace_noise_is_within_the_bound(epsilon):
    outcomes = np.arange(-400, 401)
    law = np.exp(-epsilon * np.abs(outcomes))
    moved = np.exp(-epsilon * np.abs(outcomes - 1))
    assert right(law / law.sum(), moved / moved.sum()) <= guessed_right(statement(epsilon=epsilon)) + 1e-9


@pytest.mark.parametrize("mu", [0.1, 1, 4])
def test_normal_noise_attains_the_bound_of_mu_and_is_within_that_of_rho(mu):
    truth = ndtr(mu / 2)
    assert truth <= guessed_right(statement(mu=mu)) <= truth + 1e-11
    assert truth <= guessed_right(statement(rho=mu**2 / 2))
    assert truth <= guessed_right(statement(rho=mu**2 / 2, orders="integer"))


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("orders", ["all", "integer"])
def test_the_bound_of_rho_dominates_listed_laws(seed, orders):
    generator = np.random.default_rng(seed)
    first, second = generator.dirichlet(np.full(4, 0.7), size=2)
    alphas = (
        np.arange(2, 200)
        if orders == "integer"
        else np.concatenate([1 + np.geomspace(1e-6, 1, 300), np.arange(2, 200)])
    )
    log = np.log(first), np.log(second)
    rho = max(np.logaddexp.reduce(a * p + (1 - a) * q) / (a - 1) / a for a in alphas for p, q in (log, log[::-1]))
    assert right(first, second) <= guessed_right(statement(rho=rho, orders=orders)) + 1e-9


@pytest.mark.parametrize("epsilon", [0.05, 1, 2, 6])
def test_epsilon_alone_is_no_easier_to_tell_than_normal_noise_of_its_shift(epsilon):
    alpha = np.linspace(0, 1, 20_001)[1:-1]
    curve = np.maximum.reduce([np.zeros_like(alpha), 1 - math.exp(epsilon) * alpha, math.exp(-epsilon) * (1 - alpha)])
    mu = shift(statement(epsilon=epsilon))
    assert (curve >= ndtr(ndtri(1 - alpha) - mu) - 1e-12).all()
    corner = 1 / (1 + math.exp(epsilon))
    assert ndtr(ndtri(1 - corner) - 0.999 * mu) > corner  # a smaller shift would be too small a claim


def test_what_is_not_stated_is_not_made_up():
    assert shift(statement(epsilon=1, delta=1e-9)) is None
    assert shift(statement(rho=1)) is None
    assert shift(statement(rho=1, mu=0.5)) == 0.5
    assert in_hundred(statement(epsilon=math.inf)) == 100
    assert in_hundred(statement(epsilon=0)) == 51  # 50 and a hair, rounded up
    assert in_hundred(statement(epsilon=1)) == 74
    assert in_hundred(statement(epsilon=50, rho=1e-8)) == 51


@pytest.mark.parametrize("right_of_two", [0.55, 0.7, 0.9, 0.99])
def test_randomised_response_attains_the_odds_of_its_rho(right_of_two):
    p, q, t = right_of_two, 1 - right_of_two, 2 * right_of_two - 1
    orders = np.concatenate([[1.0001], np.geomspace(1.01, 200, 400)])
    log = math.log(p), math.log(q)
    first, second = (orders * a + (1 - orders) * b for a, b in (log, log[::-1]))
    renyi = np.logaddexp(first, second) / (orders - 1)
    rho = 2 * t * math.atanh(t)
    assert (renyi <= orders * rho * (1 + 1e-9)).all()  # so ρ is true of it, and no smaller bound on the odds is
    assert p <= guessed_right(statement(rho=rho)) <= p + 1e-9


@pytest.mark.parametrize("sigma2", [Fraction(1, 4), 1, Fraction(37, 3)])
def test_whole_gaussian_noise_has_the_odds_of_its_law(sigma2):
    whole = np.arange(-80, 81)
    law = np.exp(-(whole**2) / (2 * float(sigma2)))
    law /= law.sum()
    truth = right(law, np.roll(law, 1))
    found = guessed_right(hf.gaussian(hf.histogram(3), scale=math.sqrt(sigma2)).guarantee)
    assert truth - 1e-12 <= found <= truth + 1e-6


def test_odds_of_a_half_rho():
    noise = hf.gaussian(hf.histogram(4), rho=0.5)
    assert in_hundred(noise.guarantee) == 70  # the normal curve has Φ(1/2) = 0.691
    tree = hf.Hierarchy.from_parents([-1, 0, 0])
    assert in_hundred(hf.gaussian(hf.counts(tree), rho=0.5).given(hf.consistent(tree)).guarantee) == 74
