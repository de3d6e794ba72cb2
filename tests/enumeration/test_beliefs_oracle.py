"""The oracle itself against closed forms, before anything else is measured with it."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import partial
from itertools import pairwise

import numpy as np
import pytest

from holdfast.arguments import Refused
from holdfast.beliefs import (
    base,
    given,
    hockey_stick,
    log_ratio,
    onto,
    reach_for,
    renyi,
    weights,
    window_for,
    worst,
)

F = Fraction


def test_weights_are_right_to_hundreds_of_bits():
    table = weights("laplace", F(7, 3), 60)
    assert table[0] == 2**256
    # e^{-3/7} per step: consecutive products must agree to the rounding of the factors.
    for u in range(1, 30):
        assert abs(F(table[2 * u], 2**256) - F(table[u], 2**256) ** 2) < F(3, 2**256)
    assert table[5] == table[-5]
    assert float(F(table[7], 2**256)) == pytest.approx(math.exp(-3), rel=1e-15)
    gaussian = weights("gaussian", F(5, 2), 20)
    assert float(F(gaussian[3], 2**256)) == pytest.approx(math.exp(-9 / 5), rel=1e-15)
    with pytest.raises(Refused, match="bits must be larger"):
        weights("gaussian", F(1), 60)
    with pytest.raises(Refused, match="kind must be one of"):
        weights("normal", F(1), 6)


@pytest.mark.parametrize("tail", [1e-5, 1e-30])
def test_reach_leaves_at_most_the_tail(tail):
    alpha = math.exp(-1 / 2.5)
    reach = reach_for("laplace", F(5, 2), tail)
    assert 2 * alpha ** (reach + 1) / (1 + alpha) <= tail
    reach = reach_for("gaussian", F(9, 4), tail)
    u = np.arange(-200, 201)
    p = np.exp(-(u**2) / 4.5)
    assert p[abs(u) > reach].sum() / p.sum() <= tail


@pytest.mark.slow
@pytest.mark.parametrize("difference", [(1,), (0, 2), (1, 1), (3, -1, 1)])
def test_laplace_loss_is_exactly_the_weighted_distance(difference):
    scales = [F(3, 2), F(4), F(1)][: len(difference)]
    tables = [weights("laplace", scale, 20 + 4) for scale in scales]
    zero = (0,) * len(difference)
    window = window_for([zero, difference], tables)
    laws = {truth: base(truth, tables, window) for truth in (zero, difference)}
    exact = sum(abs(d) / scale for d, scale in zip(difference, scales, strict=True))
    assert worst(laws, [(zero, difference)], log_ratio) == pytest.approx(float(exact), rel=1e-4)


def test_laplace_loss_to_twenty_five_digits():
    reach = reach_for("laplace", F(2), 1e-30)
    table = weights("laplace", F(2), reach + 3, bits=512)
    window = window_for([(0,), (3,)], table)
    p, q = base((0,), table, window), base((3,), table, window)
    assert log_ratio(p, q) == 1.5
    # The closed form of δ for integer Laplace noise, d = 1, α = e^{-1/λ}: [p(0) − e^ε p(1)]₊ summed upwards.
    p, q = base((0,), table, window), base((1,), table, window)
    alpha = math.exp(-0.5)
    expected = (1 - alpha) / (1 + alpha) * (1 - math.exp(0.2 - 0.5)) / (1 - alpha)
    assert hockey_stick(p, q, F(1, 5)) == pytest.approx(expected, rel=1e-13)


def test_a_wrong_scale_is_seen():
    table = weights("laplace", F(2) * F(9, 10), 60)
    window = window_for([(0,), (1,)], table)
    found = log_ratio(base((0,), table, window), base((1,), table, window))
    assert abs(found - 0.5) > 0.05


def test_integer_gaussian_divergence_is_alpha_rho():
    # CKS20 Theorem 4: D_α ≤ α d²/2σ², with equality for whole α·d by shifting the sum.
    table = weights("gaussian", F(4), reach_for("gaussian", F(4), 1e-40) + 2, bits=512)
    window = window_for([(0,), (1,)], table)
    p, q = base((0,), table, window), base((1,), table, window)
    for alpha in (2, 3, 5):
        assert renyi(p, q, alpha) == pytest.approx(alpha / 8, rel=1e-11)
    assert renyi(p, q, 1.5) <= 1.5 / 8 + 1e-12


def test_conditioning_on_an_equality_keeps_pure_loss():
    # TV Lemma 10 on a tiny tree: root = a + b, all three noisy, listed along the lattice z₀ = z₁ + z₂.
    table = weights("laplace", F(3), 120)
    worlds = [(a + b, a, b) for a in range(-40, 41) for b in range(-40, 41)]
    laws = {t: given(t, table, worlds) for t in ((0, 0, 0), (1, 1, 0), (1, 0, 1))}
    found = worst(laws, [((0, 0, 0), (1, 1, 0)), ((0, 0, 0), (1, 0, 1))], log_ratio)
    assert found == pytest.approx(2 / 3, rel=1e-6)


def test_conditioning_on_non_negativity_costs_what_h1_says():
    # THEORY H1 for one cell: ε + log(c₁/c₀), c_x = P(x + U ≥ 0).
    alpha = math.exp(-1 / 2)
    table = weights("laplace", F(2), 90)
    truths = [(x,) for x in range(5)]
    window = window_for(truths, table)
    laws = {t: given(t, table, lambda z: z[0] >= 0, window) for t in truths}
    c0 = 1 / (1 + alpha)
    c1 = 1 - alpha**2 / (1 + alpha)
    found = worst(laws, pairwise(truths), log_ratio)
    assert found == pytest.approx(0.5 + math.log(c1 / c0), rel=1e-12)


def test_imaging_costs_nothing():
    # TV Lemma 14: a map of the noisy value does not raise the loss; here clipping even lowers δ.
    table = weights("laplace", F(2), 60)
    truths = [(0, 0), (1, 0)]
    window = window_for(truths, table)
    free = [base(t, table, window) for t in truths]
    moved = [onto(t, table, lambda z: (max(z[0], 0), max(z[1], 0)), window) for t in truths]
    assert log_ratio(*moved) <= log_ratio(*free)
    assert hockey_stick(*moved, 0.1) <= hockey_stick(*free, 0.1)


def test_supports_that_differ_are_infinitely_far():
    p, q = {0: F(1, 2), 1: F(1, 2)}, {0: F(1), 1: F(0)}
    assert log_ratio(p, q) == math.inf
    assert log_ratio(q, p) == pytest.approx(math.log(2))
    assert renyi(p, q, 2) == math.inf
    assert hockey_stick(p, q, 5) == 0.5


def test_windows_must_match():
    table = weights("laplace", F(2), 30)
    with pytest.raises(Refused, match="same window"):
        log_ratio(base((0,), table), base((1,), table))
    with pytest.raises(Refused, match="reach across the window"):
        base((5,), table, ((-30, 30),))
    with pytest.raises(Refused, match="reach every listed world"):
        given((0,), table, [(31,)])
    with pytest.raises(Refused, match="one per coordinate"):
        base((0, 0), [table])
    with pytest.raises(Refused, match="positive mass"):
        given((0,), table, lambda z: z[0] > 99)
    with pytest.raises(Refused, match="alpha must be above 0"):
        renyi({0: 1}, {0: 1}, 1)
    with pytest.raises(Refused, match="do not reach from each truth"):
        window_for([(0,), (99,)], table)
    with pytest.raises(Refused, match="at least one pair"):
        worst({}, [], log_ratio)


@pytest.mark.slow
def test_three_coordinates_are_quick_enough_to_sweep():
    table = weights("laplace", F(3), 24)
    window = window_for([(0, 0, 0), (1, 0, 0)], table)
    laws = {t: base(t, table, window) for t in ((0, 0, 0), (1, 0, 0))}
    assert len(laws[0, 0, 0]) == 48 * 49 * 49
    found = worst(laws, [((0, 0, 0), (1, 0, 0))], partial(renyi, alpha=2))
    alpha = math.exp(-1 / 3)
    # The same sum over a much wider range in plain doubles.
    u = np.arange(-400, 400)
    p, q = alpha ** abs(u), alpha ** abs(u - 1)
    expected = math.log((p**2 / q).sum() / p.sum())
    assert found == pytest.approx(expected, rel=1e-3)
