"""Drawing again is given up by a coin, or not at all: a refusal tells no more than a release."""

import math

import numpy as np
import pytest

import holdfast as hf
from holdfast.given import Problem
from holdfast.given.exact import boxes, rejection

EPSILON = 1.0


def laws(truth, scale, coin):
    """Exact chances of every release and of a refusal: two ordered cells of integer Laplace noise."""
    places = np.arange(-60, 61)
    alpha = math.exp(-1 / scale)
    one, two = (np.where(True, alpha ** np.abs(places - x), 0.0) * (1 - alpha) / (1 + alpha) for x in truth)
    joint = np.where(places[:, None] <= places[None, :], np.outer(one, two), 0.0)
    inside = joint.sum()
    return joint / (coin + (1 - coin) * inside), coin * (1 - inside) / (coin + (1 - coin) * inside), inside


@pytest.mark.parametrize("coin", [0.5, 0.1, 1e-3])
def test_a_refusal_by_a_coin_keeps_the_statement(coin):
    """Release or refusal: all chances sum to 1, and neighbours differ by e^2ε at most."""
    for truth in ([0, 0], [3, 3], [0, 4], [0, 1]):
        for other in ([truth[0] + 1, truth[1]], [truth[0], truth[1] + 1]):
            if other[0] > other[1]:
                continue
            (one, stop, _), (two, halt, _) = laws(truth, 1 / EPSILON, coin), laws(other, 1 / EPSILON, coin)
            assert one.sum() + stop == pytest.approx(1, abs=1e-12)
            held = one > 1e-30
            assert np.abs(np.log(one[held] / two[held])).max() <= 2 * EPSILON + 1e-9
            assert abs(math.log(stop / halt)) <= 2 * EPSILON + 1e-9


def test_a_fixed_number_of_tries_would_not_keep_it():
    """What was done before: the chances of a refusal after 20 tries differ by far more."""
    (_, _, p), (_, _, q) = laws([0, 0], 1 / EPSILON, 0.5), laws([0, 1], 1 / EPSILON, 0.5)
    assert 20 * math.log((1 - p) / (1 - q)) > 2 * EPSILON


def test_coins_fall_as_they_should():
    last = rejection.last_tries(1 << 18, 4, hf.seeded(1))
    assert abs(last.sum() - (1 << 14)) < 5.5 * 128  # 5.5 deviations


def test_rejection_is_given_up_as_often_as_its_coin_says(monkeypatch):
    """Four ordered cells that are alike in truth: one try in some twenty succeeds."""
    monkeypatch.setattr(rejection, "GIVING_UP_BITS", 7)
    problem = Problem(hf.laplace(hf.histogram(4), scale=3).base.law, hf.ordered([0, 1, 2, 3]).system(4))
    stream, refused = hf.seeded(2), 0
    noise = problem.law.draw(200_000, hf.seeded(3))
    p = float((np.diff(noise, axis=1) >= 0).all(axis=1).mean())
    for _ in range(150):
        try:
            rejection.draw(problem, np.zeros(4, dtype=int), 1, stream)
        except hf.Refused:
            refused += 1
    chance = (1 - p) / 128 / (p + (1 - p) / 128)
    assert abs(refused - 150 * chance) < 5 * math.sqrt(150 * chance * (1 - chance)) + 1  # five deviations: 6e-7


def test_gaussian_noise_is_drawn_until_it_holds(monkeypatch):
    monkeypatch.setattr(rejection, "last_tries", lambda *_: pytest.fail("no coin is tossed"))
    mechanism = hf.gaussian(hf.histogram(3), scale=1, integer=False).given(hf.ordered([0, 1, 2]), method="rejection")
    assert (np.diff(mechanism.simulate([1, 1, 1], 5, rng=hf.seeded(1)), axis=1) >= 0).all()


def test_bounds_too_narrow_for_their_noise_are_refused_whatever_the_truth():
    mechanism = hf.laplace(hf.histogram(2), scale=10**6).given(hf.between(0, 3), method="boxes")
    messages = set()
    for truth in ([0, 0], [3, 1], [2, 3]):
        with pytest.raises(hf.Refused, match="too narrow") as caught:
            mechanism.simulate(truth, 1, rng=hf.seeded(1))
        messages.add(str(caught.value))
    assert len(messages) == 1
    assert not hasattr(boxes, "MOST_ROUNDS")
