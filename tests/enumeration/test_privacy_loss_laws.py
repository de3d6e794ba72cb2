"""Sums of releases at a δ against every outcome of the worst mechanisms listed: never below, and near."""

from __future__ import annotations

import math
import random
from fractions import Fraction
from itertools import product

import pytest
from flint import arb, ctx
from scipy import optimize

import holdfast as hf
from holdfast.privacy import Guarantee, compose, gaussian_delta, gaussian_epsilon, rho_to_delta
from holdfast.privacy.composition import AMOUNTS_BEFOREHAND
from holdfast.privacy.losses import loss_laws
from holdfast.privacy.rounding import ball

F = Fraction


def says(**numbers) -> Guarantee:
    return Guarantee(neighbours="add-remove", because="a test says so", **numbers)


def outcomes(part: Guarantee) -> list[tuple[object, object]]:
    """The worst (ε, δ) mechanism: probabilities of its four outcomes for two neighbours, as balls."""
    e, d = ball(F(part.epsilon)), ball(F(part.delta))
    high, low = (1 - d) * e.exp() / (1 + e.exp()), (1 - d) / (1 + e.exp())
    return [(d, arb(0)), (high, low), (low, high), (arb(0), d)]


def listed(parts: list[Guarantee], epsilon: float) -> float:
    """δ(ε) of all parts together, all outcomes listed; independent of the code under test."""
    with ctx.workprec(200):
        price = ball(F(epsilon)).exp()
        total = arb(0)
        for chosen in product(*map(outcomes, parts)):
            p, q = arb(1), arb(1)
            for here, there in chosen:
                p, q = p * here, q * there
            gain = p - price * q
            total += gain if gain > 0 else 0
        return float(total)


def some_parts(seed: int) -> list[Guarantee]:
    rng = random.Random(seed)
    return [
        says(
            epsilon=rng.choice([rng.uniform(0.01, 0.5), rng.uniform(0.5, 3)]), delta=rng.choice([0.0, 0.0, 1e-4, 1e-2])
        )
        for _ in range(rng.randint(2, 6))
    ]


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(12))
def test_sums_are_never_below_the_truth_and_near(seed):
    parts = some_parts(seed)
    top = sum(part.epsilon for part in parts)
    for share in (0.1, 0.5, 0.85):
        truth = listed(parts, share * top)
        found = compose(parts, epsilon=share * top)
        assert truth * (1 - 1e-12) <= found.delta <= truth * (1 + 2e-2) + 1e-13
        if truth > 1e-12:
            at = compose(parts, delta=truth)
            assert share * top * (1 - 1e-12) <= at.epsilon <= share * top * 1.01


@pytest.mark.parametrize(("delta", "known"), [(1e-5, 1.5979807), (1e-6, 1.7886091)])
def test_twenty_times_a_tenth(delta, known):
    # Binomial: 20 coins, j of them show the larger probability.
    def gap(epsilon: float) -> float:
        p = 1 / (1 + math.exp(-0.1))
        terms = (
            math.comb(20, j) * p**j * (1 - p) ** (20 - j) * -math.expm1(min(0.0, epsilon - 0.1 * (2 * j - 20)))
            for j in range(21)
        )
        return sum(terms) - delta

    truth = optimize.brentq(gap, 0, 2, xtol=1e-13)
    assert truth == pytest.approx(known, abs=1e-6)
    found = compose([says(epsilon=0.1)] * 20, delta=delta)
    assert truth * (1 - 1e-9) <= found.epsilon <= truth * (1 + 1e-6)
    assert AMOUNTS_BEFOREHAND in found.caveats


@pytest.mark.parametrize(
    "epsilons", [[0.1] * 9 + [0.3] * 3, [0.07 + 0.013 * k for k in range(11)], [2.5, 0.01, 0.01, 1.0]]
)
def test_many_coins(epsilons):
    parts = [says(epsilon=e) for e in epsilons]
    laws = {F(0): 1.0}
    for e in epsilons:
        p, later = 1 / (1 + math.exp(-e)), {}
        for loss, mass in laws.items():
            for step, share in ((F(e), p), (-F(e), 1 - p)):
                later[loss + step] = later.get(loss + step, 0.0) + mass * share
        laws = later
    for epsilon in (0.2, 1.0, 1.5):
        truth = sum(mass * -math.expm1(min(0.0, epsilon - float(loss))) for loss, mass in laws.items())
        assert truth * (1 - 1e-11) <= compose(parts, epsilon=epsilon).delta <= truth * 1.02


@pytest.mark.parametrize(("mu", "count", "epsilon"), [(0.5, 3, 0.3), (1.0, 2, 1.0), (0.1, 12, 0.2)])
def test_gaussian_noise_beside_pure_statements(mu, count, epsilon):
    # Given the coins, what is left is Gaussian: δ at negative ε by the other direction.
    def gaussian(at: float) -> float:
        return gaussian_delta(mu, at) if at >= 0 else 1 - math.exp(at) * (1 - gaussian_delta(mu, -at))

    p = 1 / (1 + math.exp(-epsilon))
    parts = [says(mu=mu), *[says(epsilon=epsilon)] * count]
    for at in (0.1, 0.5, 2.0):
        truth = sum(
            math.comb(count, j) * p**j * (1 - p) ** (count - j) * gaussian(at - epsilon * (2 * j - count))
            for j in range(count + 1)
        )
        found = compose(parts, epsilon=at).delta
        assert truth * (1 - 1e-10) <= found <= truth * 1.03
        assert at * (1 - 1e-9) <= compose(parts, delta=truth).epsilon <= at * 1.01 + 1e-3


def test_concentrated_statements_beside_pure_ones():
    # Nothing but the conversion is known of rho: the sum is that curve, averaged over the coins.
    def curve(at: float) -> float:
        return rho_to_delta(0.05, at) if at >= 0 else 1 - math.exp(at) * (1 - rho_to_delta(0.05, -at))

    p = 1 / (1 + math.exp(-0.5))
    bound = p * curve(1.5) + (1 - p) * curve(2.5)
    found = compose([says(rho=0.05), says(epsilon=0.5)], epsilon=2.0).delta
    # The law behind the curve is convex, so it may lie below what the conversion says point by point.
    assert 0.5 * bound <= found <= bound * 1.03


@pytest.mark.slow
def test_integer_gaussian_noise_beside_pure_statements():
    first = hf.gaussian(hf.histogram(2), scale=1.5).guarantee
    second = hf.gaussian(hf.histogram(2), scale=F(7, 4)).guarantee
    e = 0.75
    coins = [(1 / (1 + math.exp(-e)), 1 / (1 + math.exp(e))), (1 / (1 + math.exp(e)), 1 / (1 + math.exp(-e)))]

    def pairs(variance):
        at = {u: math.exp(-(u**2) / (2 * variance)) for u in range(-20, 21)}
        total = math.fsum(at.values())
        return [(at[u] / total, at.get(u - 1, 0.0) / total) for u in range(-20, 21)]

    laws = [pairs(9 / 4), pairs(49 / 16)]
    for epsilon in (0.5, 1.5, 3.0):
        truth = math.fsum(
            max(0.0, p * s * c - math.exp(epsilon) * q * t * d)
            for p, q in laws[0]
            for s, t in laws[1]
            for c, d in coins
        )
        found = compose([first, second, says(epsilon=e)], epsilon=epsilon).delta
        assert truth * (1 - 1e-9) <= found <= truth * 1.05


def test_losses_put_on_lower_places_would_be_seen(monkeypatch):
    parts = some_parts(3)
    epsilon = 0.5 * sum(part.epsilon for part in parts)
    truth = listed(parts, epsilon)
    monkeypatch.setattr(loss_laws, "_split", lambda loss, mass, step: [(math.floor(loss / step), mass)])
    assert compose(parts, epsilon=epsilon).delta < truth * (1 - 1e-6)


def test_large_and_unlike_losses_keep_the_window_small():
    parts = [says(epsilon=40.0), says(epsilon=41.3), says(epsilon=0.001, delta=1e-7)]
    assert 40 < compose(parts, delta=1e-5).epsilon <= 81.301
    assert compose([says(epsilon=0.0, delta=1e-7)] * 3, delta=1e-6).epsilon == 0.0


def test_a_narrow_window_only_makes_delta_larger():
    step = F(1, 8)
    loss = loss_laws.response(F(1, 2), F(0), step)
    wide = loss_laws.added([(loss, 6)], step, -40, 40)
    narrow = loss_laws.added([(loss, 6)], step, -2, 10)
    for epsilon in (F(0), F(1, 3), F(1), F(5, 4)):
        assert narrow.delta(epsilon) >= wide.delta(epsilon) * (1 - 1e-12)
    assert narrow.epsilon(1e-9) == math.inf


@pytest.mark.parametrize("delta", [1e-3, 1e-9])
def test_a_curve_keeps_its_own_delta(delta):
    step = F(1, 64)
    loss = loss_laws.from_curve(lambda e: gaussian_delta(0.7, e), step, 2, -500, 500)
    assert sum(loss.masses) + loss.beyond == pytest.approx(1, abs=1e-9)
    total = loss_laws.added([(loss, 1)], step, -520, 520)
    truth = gaussian_epsilon(0.7, delta)
    assert truth * (1 - 1e-12) <= total.epsilon(delta) <= truth * 1.003


def test_a_thousand_statements_of_all_sorts_stay_below_the_plain_sum():
    rng = random.Random(5)
    noisy = hf.gaussian(hf.histogram(3), scale=30).guarantee
    parts = [says(epsilon=rng.uniform(0.001, 0.03), delta=rng.choice([0.0, 1e-10])) for _ in range(400)]
    parts += [says(mu=0.02)] * 200 + [says(rho=0.0002)] * 200 + [noisy] * 200
    found = compose(parts, delta=1e-6)
    concentrated = compose([part for part in parts if part.delta == 0], delta=9e-7)
    assert 1.0 < found.epsilon < 4.0
    assert concentrated.epsilon < sum(part.epsilon or 0.0 for part in parts)


def test_all_sums_that_need_amounts_fixed_beforehand_say_so():
    noise = [hf.gaussian(hf.histogram(3), rho=rho).guarantee for rho in (0.1, 0.2)]
    assert "its loss law" in compose(noise, delta=1e-6).because
    for found in (compose(noise, delta=1e-6), compose(noise, epsilon=2), compose(noise), compose(noise).at_delta(1e-6)):
        assert AMOUNTS_BEFOREHAND in found.caveats
    # Plain sums hold however amounts are chosen, and so does what follows from the sum of ρ or of μ² alone.
    assert AMOUNTS_BEFOREHAND not in compose([says(rho=0.1)] * 3, delta=1e-6).caveats
    assert AMOUNTS_BEFOREHAND not in compose([says(mu=0.1)] * 3, delta=1e-6).caveats
    assert AMOUNTS_BEFOREHAND not in compose(noise[:1], delta=1e-6).caveats
