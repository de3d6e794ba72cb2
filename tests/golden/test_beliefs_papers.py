"""The examples of *Two Views* (TV) and of THEORY §2, as they are printed."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import partial

import pytest

from holdfast.beliefs import (
    Law,
    base,
    condition,
    given,
    hockey_stick,
    image,
    kl,
    log_ratio,
    mixture,
    onto,
    push,
    reach_for,
    renyi,
    total_variation,
    weights,
    window_for,
    worst,
)

F = Fraction


def test_apple_and_banana():
    # TV Example 3 [2.3]: worlds a∧b, a∧¬b, ¬a∧b, ¬a∧¬b.
    p = {1: F(0), 2: F(7, 10), 3: F(3, 10), 4: F(0)}
    no_apple = {3, 4}
    assert condition(p, no_apple) == {1: 0, 2: 0, 3: 1, 4: 0}
    assert image(p, no_apple, {1: 3, 2: 4}) == {1: 0, 2: 0, 3: F(3, 10), 4: F(7, 10)}


def test_imaging_makes_the_impossible_possible_and_the_sure_unsure():
    # TV after equation (2): both are impossible under conditioning.
    p = {1: F(0), 2: F(7, 10), 3: F(3, 10), 4: F(0)}
    after = image(p, {3, 4}, {1: 3, 2: 4})
    assert p[4] == 0 < after[4]
    assert p[2] + p[3] == 1 > after[2] + after[3]
    revised = condition(p, {3, 4})
    assert all(revised[w] == 0 for w in p if p[w] == 0)


def test_a_union_of_constraints_can_lose_everything():
    # THEORY §2, Unions: randomized response p = 0.9, C = {1}, C' = {0}: each conditional is 0-private, the
    # union is the mechanism itself, ln 9.
    yes, no = {1: F(9, 10), 0: F(1, 10)}, {1: F(1, 10), 0: F(9, 10)}
    for branch in ({1}, {0}):
        assert log_ratio(condition(yes, branch), condition(no, branch)) == 0
    union = partial(condition, event={0, 1})
    assert log_ratio(union(yes), union(no)) == pytest.approx(math.log(9), rel=1e-15)
    # TV Theorem 12, part 1 (the mixture identity) does hold; its weight depends on the data.
    for p in (yes, no):
        weight = p[1]
        assert mixture([(weight, condition(p, {1})), (1 - weight, condition(p, {0}))]) == union(p)


def diagonal(sigma2: Fraction, truths: list[tuple[int, int]]) -> dict[tuple[int, int], Law]:
    table = weights("gaussian", sigma2, reach_for("gaussian", sigma2, 1e-30) + 2)
    reach = max(table) - 1
    worlds = [(z, z) for z in range(-reach + 1, reach)]
    return {truth: given(truth, table, worlds) for truth in truths}


def test_conditioning_integer_gaussian_noise_changes_delta_but_not_rho():
    # THEORY §2: σ = 2, z₁ = z₂, ε = 2: δ goes from 0.00113 to 0.00146; ρ = Σd²/2σ² = 1/4 stays.
    truths = [(0, 0), (1, 1)]
    table = weights("gaussian", F(4), reach_for("gaussian", F(4), 1e-30) + 2)
    window = window_for(truths, table)
    free = {truth: base(truth, table, window) for truth in truths}
    tied = diagonal(F(4), truths)
    measure = partial(hockey_stick, epsilon=2)
    assert worst(free, [tuple(truths)], measure) == pytest.approx(0.00113, abs=5e-6)
    assert worst(tied, [tuple(truths)], measure) == pytest.approx(0.00146, abs=5e-6)
    for alpha in (2, 3, 5):
        found = worst(tied, [tuple(truths)], partial(renyi, alpha=alpha))
        assert found <= alpha / 4 + 1e-12
        assert found == pytest.approx(alpha / 4, rel=1e-6)


def test_integer_gaussian_delta_of_theory_section_1():
    table = weights("gaussian", F(4), reach_for("gaussian", F(4), 1e-30) + 1)
    window = window_for([(0,), (1,)], table)
    found = hockey_stick(base((0,), table, window), base((1,), table, window), 2)
    assert found == pytest.approx(1.07409e-5, rel=1e-5)


def test_conditioning_and_imaging_differ_in_spread():
    # THEORY §3, integer twin: three cells with an exact total; conditioning spreads less than imaging by
    # projection (5/6 λ² against 4/3 λ² for continuous Laplace noise, TV Prop 18). Here λ = 6, within 3 %.
    scale = F(6)
    table = weights("laplace", scale, 100)
    worlds = [(a, b, -a - b) for a in range(-50, 51) for b in range(-50, 51)]
    revised = given((0, 0, 0), table, worlds)
    assert float(revised.mean(lambda z: z[0] ** 2)) == pytest.approx(5 / 6 * 36, rel=0.03)
    single = base((0,), weights("laplace", scale, 300))
    variance = float(single.mean(lambda z: z[0] ** 2))
    # Imaging subtracts the mean: variance (1 − 1/3)·Var.
    assert 2 / 3 * variance == pytest.approx(4 / 3 * 36, rel=0.03)


def test_clipping_is_a_push_and_an_image():
    table = weights("laplace", F(2), 40)
    noisy = base((1,), table)
    clipped = onto((1,), table, lambda z: (max(z[0], 0),))
    assert push(noisy, lambda z: (max(z[0], 0),)) == dict(clipped)
    whole = image(noisy, {z for z in noisy if z[0] >= 0}, lambda z: (max(z[0], 0),))
    assert {z: v for z, v in whole.items() if v} == dict(clipped)
    assert total_variation(noisy, whole) == sum(noisy[z] for z in noisy if z[0] < 0)
    assert kl(noisy, whole) == math.inf
