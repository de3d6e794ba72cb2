"""Mixtures with fixed weights: their law, their image and their loss against enumeration (TV Thm 16)."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

import holdfast as hf
from holdfast import beliefs
from holdfast.mechanism import mixture

QUERY, PAIR = hf.histogram(1), hf.histogram(2)
NARROW, WIDE = hf.laplace(QUERY, scale=1), hf.laplace(QUERY, scale=3)
KINDS = ("add-remove", "replace-one")
THIRD = Fraction(1, 3)
MIXED = mixture([NARROW, WIDE], [THIRD, 2 * THIRD])
SCALES = (1, 3)
WINDOW = ((-90, 96),)


def laws(truth):
    return [beliefs.base([truth], beliefs.weights("laplace", s, 110), WINDOW) for s in SCALES]


def clipped(z):
    return (min(max(z[0], 0), 4),)


def mixed_law(truth):
    return beliefs.mixture(zip((THIRD, 2 * THIRD), laws(truth), strict=True))


def test_moving_a_mixture_is_mixing_what_is_moved():
    """Part 1: in exact fractions, and by the library's own draws."""
    event = {(z,) for z in range(5)}
    moved = beliefs.image(mixed_law(2), event, clipped)
    assert moved == beliefs.mixture(
        (a, beliefs.image(law, event, clipped)) for a, law in zip((THIRD, 2 * THIRD), laws(2), strict=True)
    )
    draws = MIXED.onto(hf.between(0, 4)).simulate([2], 30_000, rng=hf.seeded(3))[:, 0]
    observed = np.bincount(draws, minlength=5)
    expected = np.array([float(moved[z,]) for z in range(5)]) * len(draws)
    assert stats.chisquare(observed, expected).pvalue > 1e-6
    swapped = beliefs.image(beliefs.mixture(zip((2 * THIRD, THIRD), laws(2), strict=True)), event, clipped)
    wrong = np.array([float(swapped[z,]) for z in range(5)]) * len(draws)
    assert stats.chisquare(observed, wrong).pvalue < 1e-6


@pytest.mark.parametrize("moved", [False, True])
def test_a_mixture_loses_no_more_than_its_weakest_part(moved):
    """Part 2: both directions, enumerated; the average of the parts' losses would be too small."""
    mechanism = MIXED.onto(hf.between(0, 4)) if moved else MIXED
    law = {x: mixed_law(x) for x in range(5)}
    if moved:
        law = {x: beliefs.image(law[x], {(z,) for z in range(5)}, clipped) for x in law}
    worst = max(beliefs.log_ratio(law[x], law[y]) for x in law for y in law if abs(x - y) == 1)
    assert worst <= mechanism.guarantee.epsilon == 1.0
    assert worst > 0.34  # the wide part alone would be 1/3


def test_the_largest_number_of_each_kind_is_stated():
    one, two = (hf.gaussian(QUERY, epsilon=e, delta=1e-6, integer=False) for e in (1, 2))
    both = mixture([one, two], [0.5, 0.5]).guarantee
    assert (both.epsilon, both.delta, both.rho, both.mu) == (2.0, 1e-6, two.guarantee.rho, two.guarantee.mu)
    beside = mixture([NARROW, hf.gaussian(QUERY, rho=0.01)], [0.5, 0.5]).guarantee
    assert beside.epsilon is None
    assert beside.rho == pytest.approx(math.tanh(0.5), rel=1e-15)  # pure ε = 1 has ρ = ε·tanh(ε/2)
    several = hf.laplace(QUERY, scale=1, neighbours=hf.Neighbours("add-remove", records=2))
    assert mixture([NARROW, several], [0.5, 0.5]).guarantee.epsilon == 2.0
    assert mixture([NARROW, NARROW], [0.5, 0.5]).guarantee.exact is False


def test_errors_average_and_intervals_cover():
    errors = MIXED.standard_error()
    variances = [part.base.law.variances[0] for part in (NARROW, WIDE)]
    assert errors[0] == pytest.approx(math.sqrt(variances[0] / 3 + 2 * variances[1] / 3))
    release = MIXED.release([7], rng=hf.seeded(2))
    low, high = release.interval(0.9)[0] - release.values[0]
    noise = MIXED.noise(20_000, rng=hf.seeded(4))[:, 0]
    assert ((noise >= low) & (noise <= high)).mean() > 0.9
    assert np.std(noise) == pytest.approx(errors[0], rel=0.05)


def test_a_release_says_what_a_mixture_promises():
    release = MIXED.onto(hf.between(0, 9)).release([7], rng=hf.seeded(2))
    assert release.guarantee.epsilon == 1.0
    assert "TV Thm 16" in release.guarantee.because
    assert any("reproducible" in caveat for caveat in release.guarantee.caveats)
    assert release.method == "mixture of boxes"
    assert MIXED.release([7]).guarantee.caveats == ()


REFUSED = {
    "no parts": (lambda: mixture([], []), "a list of mechanisms"),
    "other things": (lambda: mixture([3], [1]), "a list of mechanisms"),
    "another query": (lambda: mixture([NARROW, hf.laplace(hf.histogram(1), scale=1)], [0.5, 0.5]), "the same query"),
    "weights that sum to less": (lambda: mixture([NARROW, WIDE], [0.5, 0.25]), "sum to exactly 1"),
    "weights of another length": (lambda: mixture([NARROW, WIDE], [1]), "2 numbers"),
    "a negative weight": (lambda: mixture([NARROW, WIDE], [2, -1]), "above 0"),
    "revision": (lambda: MIXED.given(hf.nonnegative()), "weigh its parts by the data"),
    "another relation": (
        lambda: mixture([hf.laplace(PAIR, scale=1, neighbours=kind) for kind in KINDS], [0.5, 0.5]).guarantee,
        "the same neighbours",
    ),
    "invariants that no change keeps": (
        lambda: (
            mixture(
                [hf.laplace(PAIR, scale=1).given(hf.invariant(rows)) for rows in ([[1, 0]], [[0, 1]])], [0.5, 0.5]
            ).guarantee
        ),
        "no change of a few records",
    ),
    "invariants beside a union": (
        lambda: (
            mixture(
                [
                    hf.laplace(PAIR, scale=1).given(hf.invariant([[1, 1]])),
                    hf.laplace(PAIR, scale=1).given(hf.between(0, 1, at=[0]) | hf.between(5, 6, at=[0])),
                ],
                [0.5, 0.5],
            ).guarantee
        ),
        "union",
    ),
    "errors that depend on the data": (lambda: MIXED.onto(hf.nonnegative()).standard_error(), "depends on the data"),
    "a stream of another kind": (lambda: MIXED.noise(1, rng=np.random.default_rng(1)), "rng must be a stream"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_mixtures_are_refused_with_one_sentence(name):
    action, sentence = REFUSED[name]
    with pytest.raises(hf.Refused, match=sentence):
        action()
