"""How far weighted sums of noise reach at most, against their listed laws."""

from fractions import Fraction

import numpy as np
import pytest

import holdfast as hf
from holdfast.noise.reach import _excess, reach_of

WEIGHTS = ([1], [1, 1], [2, 1], [3, -1, 1], [1] * 6, [5, 3, 2, 2, 1])
TAILS = (0.3, 0.25, 0.1, 0.05, 0.025, 0.005, 0.0005, 1e-6)


def listed(law, weights):
    """Values and masses of a weighted sum with whole weights, but for 1e-12 of the mass."""
    widest = int(law.quantile(1 - 1e-13)) + 1
    u = np.arange(-widest, widest + 1)
    mass = np.exp(law.log_density(u))
    total = np.ones(1)
    for weight in weights:
        spread = np.zeros(2 * widest * abs(weight) + 1)
        spread[:: abs(weight)] = mass
        total = np.convolve(total, spread)
    reach = len(total) // 2
    return np.arange(-reach, reach + 1), total


@pytest.mark.parametrize("make", [hf.laplace, hf.gaussian])
@pytest.mark.parametrize("scale", [Fraction(3, 10), Fraction(7, 10), 1, Fraction(5, 2), 12])
def test_no_weighted_sum_of_whole_noise_reaches_farther(make, scale):
    law = make(hf.histogram(1), scale=scale).base.law
    reach = reach_of(law)
    for weights in WEIGHTS:
        values, mass = listed(law.laws[0], weights)
        deviation = np.sqrt((mass * values**2).sum())
        assert deviation == pytest.approx(np.sqrt((np.array(weights) ** 2).sum() * law.variances[0]), rel=1e-6)
        for tail in TAILS:
            assert mass[np.abs(values) > reach(tail) * deviation].sum() <= 2 * tail, (weights, tail)


def test_the_fourth_cumulants_that_the_bound_takes_are_those_of_the_laws():
    for make in (hf.laplace, hf.gaussian):
        for scale in (Fraction(3, 10), Fraction(9, 10), 1, 3, 12):
            law = make(hf.histogram(1), scale=scale).base.law.laws[0]
            values, mass = listed(law, [1])
            excess = (mass * values**4).sum() / (mass * values**2).sum() ** 2 - 3
            assert excess - 1e-6 <= _excess(law) <= max(excess, 0) * (1 + 1e-6) + 2e-4, (law, excess)


@pytest.mark.parametrize(
    ("make", "scale", "most"), [(hf.laplace, 2, 2.9), (hf.laplace, 50, 2.67), (hf.gaussian, 10, 2.31)]
)
def test_usual_levels_are_narrower_than_by_exponential_moments(make, scale, most):
    assert reach_of(make(hf.histogram(1), scale=scale).base.law)(0.025) < most


def test_real_noise():
    x = np.linspace(0, 40, 400_001)
    law = hf.laplace(hf.histogram(1), scale=1, integer=False).base.law
    for terms, above in ((1, np.exp(-x)), (2, np.exp(-x) * (1 + x / 2))):  # P(|e| ≥ x)
        for tail in TAILS:
            assert np.interp(reach_of(law)(tail) * np.sqrt(2 * terms), x, above) <= 2 * tail
    normal = reach_of(hf.gaussian(hf.histogram(1), scale=3, integer=False).base.law)
    assert normal(0.025) == pytest.approx(1.959964, abs=1e-6)
