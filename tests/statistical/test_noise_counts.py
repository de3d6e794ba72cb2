"""Counts of draws against exact probabilities: the right law is accepted, a scale 10 % off is rejected.

Each test is Pearson's, on cells that expect at least 50 draws. Seeds are fixed, so that a test that passes
once passes always; for a correct sampler a fresh seed would fail each with probability 10^−6.
"""

from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from holdfast.noise import Gaussian, Independent, IntegerGaussian, IntegerLaplace, Laplace
from holdfast.noise.draws.gaussian_draws import gaussian_sampler
from holdfast.noise.draws.geometric import laplace_sampler
from holdfast.randomness import seeded

ALARM = 1e-6
DRAWS = 100_000


def p_value(draws, law, cells=40):
    """Pearson's test of draws against a law, on cells between quantiles of the law."""
    levels = [Fraction(i, cells) for i in range(1, cells)] + [Fraction(1, 1000), Fraction(999, 1000)]
    edges = np.unique([law.quantile(level) for level in levels])
    chances = np.diff(np.concatenate([[0.0], law.cdf(edges), [1.0]]))
    counts = np.bincount(np.searchsorted(edges, draws, side="left"), minlength=chances.size)
    keep = chances * draws.size >= 50
    observed = np.append(counts[keep], counts[~keep].sum())
    wanted = np.append(chances[keep], chances[~keep].sum()) * draws.size
    full = wanted > 0
    assert observed[~full].sum() == 0
    statistic = ((observed[full] - wanted[full]) ** 2 / wanted[full]).sum()
    return stats.chi2.sf(statistic, max(full.sum() - 1, 1))


LAWS = [
    IntegerLaplace(Fraction(1, 3)),
    IntegerLaplace(Fraction(3)),
    IntegerLaplace(Fraction(100)),
    IntegerLaplace(Fraction(1000, 3)),
    IntegerLaplace(Fraction(10**6)),
    IntegerLaplace(Fraction(2**40 + 1)),
    IntegerGaussian(Fraction(1, 2)),
    IntegerGaussian(Fraction(9)),
    IntegerGaussian(Fraction(100**2)),
    IntegerGaussian(Fraction(600**2)),
    IntegerGaussian(Fraction(10**12, 7)),
    Laplace(Fraction(3)),
    Gaussian(Fraction(9)),
]


@pytest.mark.parametrize("law", LAWS, ids=str)
def test_draws_follow_their_law_and_no_other(law):
    draws = law.draw(DRAWS, seeded(20_240_611))
    assert p_value(draws, law) > ALARM
    for factor in (Fraction(9, 10), Fraction(11, 10)):
        assert p_value(draws, law.times(factor)) < ALARM


@pytest.mark.parametrize("law", LAWS[:-2], ids=str)
def test_the_other_kind_of_noise_is_rejected(law):
    draws = law.draw(DRAWS, seeded(3))
    if isinstance(law, IntegerLaplace):
        other = IntegerGaussian(Fraction(law.variance))
    else:
        other = IntegerLaplace(Fraction((law.variance / 2) ** 0.5))
    assert p_value(draws, other) < ALARM


@pytest.mark.parametrize("law", [IntegerLaplace(Fraction(3)), IntegerGaussian(Fraction(9))], ids=str)
def test_draws_that_are_mostly_undecided_follow_the_law(law):
    """With first words of 5 bits most draws need the exact path."""
    sampler = laplace_sampler(law.scale, 5) if law.kind == "laplace" else gaussian_sampler(law.sigma2, 5)
    draws = sampler.draw(1500, seeded(11))
    assert p_value(draws, law, cells=12) > ALARM
    assert p_value(draws, law.times(Fraction(13, 10)), cells=12) < ALARM


@pytest.mark.parametrize("sigma2", [Fraction(600**2)])
def test_rejection_with_short_words_follows_the_law(sigma2):
    draws = gaussian_sampler(sigma2, 6).draw(1500, seeded(12))
    law = IntegerGaussian(sigma2)
    assert p_value(draws, law, cells=12) > ALARM
    assert p_value(draws, law.times(Fraction(13, 10)), cells=12) < ALARM


def test_coordinates_and_rows_are_independent_and_have_their_own_laws():
    laws = (IntegerLaplace(Fraction(2)), None, IntegerLaplace(Fraction(300)))
    which = np.array([2, 0, 0, 2], dtype=np.int32)
    draws = Independent(laws, which, 4).draw(50_000, seeded(8))
    for i, k in enumerate(which):
        assert p_value(draws[:, i], laws[k]) > ALARM
    signs = draws > 0
    for i in range(4):
        for shifted in [signs[:, j] for j in range(i)] + [np.roll(signs[:, i], 1)]:
            table = np.array([[(signs[:, i] == a)[shifted == b].sum() for a in (0, 1)] for b in (0, 1)])
            assert stats.chi2_contingency(table, correction=False).pvalue > ALARM
    # The same test sees a dependence of one row in twenty.
    copied = np.where(np.arange(50_000) % 20 == 0, signs[:, 0], signs[:, 1])
    table = np.array([[(signs[:, 0] == a)[copied == b].sum() for a in (0, 1)] for b in (0, 1)])
    assert stats.chi2_contingency(table, correction=False).pvalue < ALARM
