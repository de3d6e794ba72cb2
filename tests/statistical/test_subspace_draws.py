"""Draws of noise on a null space against the law's own errors; a wrong law is rejected."""

import numpy as np
import pytest
from scipy import stats

import holdfast as hf
from subspaces import CASES, KINDS, budget, projector

#: A fixed seed each; together the two-sided tests below raise a false alarm with probability below 1e-6.
SIZE, FAR = 6_000, 7.0
LAWS = ("optimal", "gaussian", "correlated", "laplace", "k-norm")
SOME = ("total", "one margin of cells", "consistent margins, one exact", "exact node below an open one", "prefix sums")


def scores(noise, mechanism, weights):
    """Standard scores of the mean and of the mean square of weighted sums, by the fourth moments of the draws."""
    sums = noise @ weights.T
    variance = np.array([mechanism._spread.variance_of(row) for row in weights])
    means = sums.mean(axis=0) / np.sqrt(variance / len(sums))
    squares = sums**2
    return np.abs(np.r_[means, (squares.mean(axis=0) - variance) / (squares.std(axis=0) / np.sqrt(len(sums)))])


@pytest.mark.parametrize("case", SOME)
def test_draws_have_mean_zero_their_variance_and_keep_every_equality(case):
    query, constraint = CASES[case]
    weights = np.random.default_rng(8).standard_normal((4, query.n)) @ projector(query, constraint)
    for number, (law, kind) in enumerate((law, kind) for law in LAWS for kind in KINDS):
        try:
            mechanism = hf.extend(query, constraint, law=law, neighbours=kind, **budget(law))
        except hf.Refused:
            assert law == "k-norm"
            continue
        noise = mechanism.noise(SIZE, hf.seeded(number))
        assert np.abs(noise @ projector(query, constraint) - noise).max() < 1e-9 * np.abs(noise).max()
        assert scores(noise, mechanism, weights).max() < FAR
        assert scores(1.15 * noise, mechanism, weights).max() > FAR  # the test would see 15 % too much noise


FIVE = (hf.histogram(5), hf.invariant(np.ones((1, 5), dtype=int)))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("case", ["total", "total of five cells"])
def test_the_gauge_of_k_norm_noise_has_a_gamma_law(case, kind):
    """‖u‖_K of a density exp(−‖u‖_K) on r dimensions is Gamma(r); the gauge is written out here."""
    query, constraint = CASES.get(case, FIVE)
    noise = hf.extend(query, constraint, law="k-norm", neighbours=kind, epsilon=1).noise(SIZE, hf.seeded(11))
    if kind == "replace-one":
        sizes, rank = np.abs(noise).sum(axis=1) / 2, noise.shape[1] - 1
    else:
        sizes, rank = np.abs(noise - np.median(noise, axis=1, keepdims=True)).sum(axis=1), noise.shape[1] - 1
    assert stats.kstest(sizes, stats.gamma(rank).cdf).pvalue > 1e-7
    assert stats.kstest(sizes, stats.gamma(rank + 1).cdf).pvalue < 1e-7


@pytest.mark.parametrize("example", [CASES["total"], FIVE])
def test_every_cell_has_every_rank_equally_often_in_k_norm_noise(example):
    noise = hf.extend(*example, law="k-norm", epsilon=1).noise(SIZE, hf.seeded(12))
    ranks = np.argsort(np.argsort(noise, axis=1), axis=1)
    for cell in range(noise.shape[1]):
        assert stats.chisquare(np.bincount(ranks[:, cell], minlength=noise.shape[1])).pvalue > 1e-8
