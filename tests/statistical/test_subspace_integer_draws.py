"""Exact draws of whole noise: against laws listed point by point, on every path of the comparison."""

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

import holdfast as hf
from holdfast.noise.draws import shifted_gaussian
from holdfast.noise.draws.lattice_form import LatticeForm
from holdfast.noise.draws.shifted_gaussian import ShiftedGaussian
from lattice_laws import CASES, listed, made, near_form, prefix_sums

#: Tests below accept the law at this level: a false alarm is rarer than one in a million.
LEVEL = 1e-7
BITS = 30


def p_value(counts, probabilities):
    """χ² over places that are not rare, and the chance that rare places together are seen so often."""
    size = counts.sum()
    rare = probabilities * size < 10
    rest, seen = size * probabilities[rare].sum(), counts[rare].sum()
    often = stats.poisson.sf(seen - 1, rest)
    expected, found = probabilities[~rare] * size, counts[~rare]
    if len(found) == 1:
        return often
    return min(often, stats.chisquare(found, expected * found.sum() / expected.sum()).pvalue)


def one_law(sigma2, centre, values):
    points = np.arange(math.floor(centre) - 60, math.floor(centre) + 62)
    law = np.exp(-((points - centre) ** 2) / (2 * sigma2))
    counts = np.array([(values == point).sum() for point in points])
    assert counts.sum() == values.size
    return p_value(counts, law / law.sum())


@pytest.mark.parametrize("sigma2", [Fraction(1, 50), Fraction(1, 5), Fraction(9, 10), Fraction(7, 3), Fraction(60)])
@pytest.mark.parametrize("centre", [Fraction(0), Fraction(1, 2), Fraction(-5, 16), Fraction(1001, 8), Fraction(-7, 2)])
def test_noise_around_a_centre_has_its_law(sigma2, centre):
    steps = np.full(30_000, int(centre * 2**BITS))
    values = ShiftedGaussian(sigma2, BITS).draw(steps, hf.seeded(11))
    assert one_law(float(sigma2), float(centre), values) > LEVEL
    away = max(0.25, math.sqrt(sigma2) / 4)
    if sigma2 > Fraction(1, 10):  # otherwise nearly all draws are one number, for many centres
        assert one_law(float(sigma2), float(centre) + away, values) < LEVEL


def test_noise_decided_by_balls_alone_has_its_law(monkeypatch):
    """Doubles that decide nothing leave every comparison to balls."""
    monkeypatch.setattr(shifted_gaussian, "powers", lambda x: (np.zeros(x.shape), np.ones(x.shape)))
    values = ShiftedGaussian(Fraction(7, 3), BITS).draw(np.full(4_000, 3 << (BITS - 3)), hf.seeded(12))
    assert one_law(7 / 3, 3 / 8, values) > LEVEL


def p_of_draws(mechanism, draws, reach):
    points = listed(mechanism, reach)
    law = np.exp(-near_form(mechanism, points) / 2)
    where = {point.tobytes(): i for i, point in enumerate(np.ascontiguousarray(points.astype(np.int64)))}
    counts = np.zeros(len(points))
    for row in np.ascontiguousarray(draws):
        counts[where[row.tobytes()]] += 1
    return p_value(counts, law / law.sum())


@pytest.mark.parametrize("rho", [0.4, 3])
@pytest.mark.parametrize("case", CASES)
def test_draws_have_the_listed_law(case, rho):
    mechanism = made(case, rho=rho)
    assert p_of_draws(mechanism, mechanism.noise(10_000, hf.seeded(7)), 16) > LEVEL


def test_vectors_accepted_without_looking_are_caught(monkeypatch):
    """Small noise on a skew lattice: coordinates drawn in turn have another law than the one promised."""
    mechanism = made("tree with exact root", rho=3)
    monkeypatch.setattr(ShiftedGaussian, "ratios", lambda self, rest: (np.ones(rest.shape), np.ones(rest.shape)))
    assert p_of_draws(mechanism, mechanism.noise(30_000, hf.seeded(7)), 16) < LEVEL


def test_vectors_accepted_by_balls_alone_have_the_listed_law(monkeypatch):
    mechanism = made("tree with exact root", rho=3)
    monkeypatch.setattr(ShiftedGaussian, "ratios", lambda self, rest: (np.zeros(rest.shape), np.ones(rest.shape)))
    assert p_of_draws(mechanism, mechanism.noise(4_000, hf.seeded(8)), 16) > LEVEL


def test_total_squared_error_is_at_most_that_of_the_continuous_law_and_far_below_spherical_noise():
    """Prefix sums of 16 cells with an exact total: the measured error, and the ratio to conditioned noise at one ρ."""
    query, constraint = prefix_sums(16)
    best = hf.extend(query, constraint, rho=0.1, integer=True)
    plain = hf.extend(query, constraint, law="gaussian", rho=0.1, integer=True)
    sharing = [each.rho for each in plain.guarantees if each.scope == "invariant-sharing"]
    assert sharing == [pytest.approx(0.1)]
    assert best.guarantee.rho == pytest.approx(0.1)
    squares = [(each.noise(4_000, hf.seeded(9)).astype(float) ** 2).sum(axis=1) for each in (best, plain)]
    bound = (best.standard_error() ** 2).sum()
    assert squares[0].mean() == pytest.approx(bound, rel=0.06)  # more than 5.5 standard deviations
    assert bound == pytest.approx(best.evidence.objective / 0.2, rel=1e-9)
    assert squares[0].mean() / squares[1].mean() < 0.3
    assert 0 <= best.evidence.relative_gap < 1e-3


def test_variances_do_not_exceed_those_of_the_continuous_law_where_noise_is_small():
    for case in CASES:
        mechanism = made(case, rho=3)
        points = listed(mechanism, 10)
        law = np.exp(-near_form(mechanism, points) / 2)
        true = (law / law.sum()) @ points**2
        assert (np.sqrt(true) <= mechanism.standard_error() * (1 + 1e-9)).all()


def test_a_lattice_of_many_directions_is_drawn():
    """Two hundred directions, correlated; the empirical covariance along random sums is the one promised."""
    rng = np.random.default_rng(2)
    basis = np.eye(200, dtype=np.int64) + np.triu(rng.integers(-1, 2, (200, 200)), 1) * (rng.random((200, 200)) < 0.02)
    form = LatticeForm.of(basis, rng.normal(size=(200, 200)) + 20 * np.eye(200))
    draws = form.draw(600, hf.seeded(4)).astype(float)
    for _ in range(5):
        direction = rng.normal(size=200)
        expected = ((direction @ form.factor) ** 2).sum()
        assert abs((draws @ direction).var() / expected - 1) < 6 * math.sqrt(2 / 600)
