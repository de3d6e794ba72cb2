"""What background knowledge gains: exact laws by hand, simulations against listed laws, bounds by the guarantee."""

import math
from fractions import Fraction

import numpy as np
import pytest

import holdfast as hf
from holdfast.beliefs import base, given, weights, window_for

F = Fraction
RESPONSE = {"yes": {1: F(9, 10), 0: F(1, 10)}, "no": {1: F(1, 10), 0: F(9, 10)}}


def test_randomized_response_by_hand():
    even = hf.knowledge_gain(RESPONSE, {"yes": F(1, 2), "no": F(1, 2)}, {"yes"})
    assert (even.before, even.right_before, even.right_after, even.status) == (0.5, 0.5, 0.9, "exact")
    assert even.log_odds == pytest.approx(math.log(9))
    assert even.belief_change == pytest.approx(0.4)
    # Whoever is nearly sure already learns next to nothing: 9/10 against odds of 1 to 99 decides nothing.
    sure = hf.knowledge_gain(RESPONSE, {"yes": F(1, 100), "no": F(99, 100)}, lambda x: x == "yes")
    assert sure.right_after == sure.right_before == 0.99
    assert sure.log_odds == pytest.approx(math.log(9))


def test_odds_never_change_by_more_than_epsilon():
    made = hf.laplace(hf.histogram(2), epsilon=1)
    found = hf.knowledge_gain(made, {(3, 5): F(1, 3), (4, 5): F(2, 3)}, {(3, 5)}, size=2_000)
    assert found.status == "simulated"
    assert found.log_odds <= 1 + 1e-9


def test_simulations_meet_listed_laws():
    prior = {(2, 4): F(1, 4), (3, 4): F(1, 4), (3, 5): F(1, 2)}
    table = weights("laplace", F(1), 20)
    window = window_for(list(prior), table)
    exact = hf.knowledge_gain({x: base(x, table, window) for x in prior}, prior, lambda x: x[0] == 3)
    found = hf.knowledge_gain(hf.laplace(hf.histogram(2), scale=1), prior, lambda x: x[0] == 3)
    assert abs(found.right_after - exact.right_after) < 5 * found.standard_error + 1e-3
    assert found.belief_change == pytest.approx(exact.belief_change, abs=0.02)
    assert found.log_odds <= exact.log_odds + 1e-9


def test_noise_given_a_total():
    prior = {(3, 3): F(1, 2), (2, 4): F(1, 2)}
    total = hf.invariant([[1, 1]])
    made = hf.laplace(hf.histogram(2), scale=2, neighbours="replace-one").given(total)
    worlds = [(a, 6 - a) for a in range(-80, 90)]
    table = weights("laplace", F(2), 120)
    exact = hf.knowledge_gain({x: given(x, table, worlds) for x in prior}, prior, {(3, 3)})
    found = hf.knowledge_gain(made, prior, {(3, 3)})
    assert abs(found.right_after - exact.right_after) < 5 * found.standard_error + 1e-3
    # Data with other exact figures are told apart for sure.
    apart = hf.knowledge_gain(made, {(3, 3): F(1, 2), (2, 3): F(1, 2)}, {(3, 3)}, size=800)
    assert (apart.right_after, apart.log_odds) == (1.0, math.inf)


def test_moved_releases_gain_at_least_and_never_more_than_before_the_move():
    prior = {(0, 4): F(1, 2), (1, 4): F(1, 2)}
    plain = hf.laplace(hf.histogram(2), epsilon=1)
    moved = hf.knowledge_gain(plain.onto(hf.nonnegative()), prior, {(1, 4)})
    free = hf.knowledge_gain(plain, prior, {(1, 4)})
    assert moved.status == "at least"
    assert 0.55 < moved.right_after < free.right_after + 5 * (moved.standard_error + free.standard_error)


def test_knowledge_restricts_the_prior():
    prior = {(1, 2): F(1, 4), (2, 1): F(1, 4), (2, 2): F(1, 4), (5, 6): F(1, 4)}
    made = hf.laplace(hf.histogram(2), epsilon=1)
    ordered = hf.knowledge_gain(made, prior, lambda x: x[1] == 2, knowledge=hf.ordered([0, 1]), size=500)
    assert ordered.before == pytest.approx(2 / 3)
    summed = hf.knowledge_gain(made, prior, {(1, 2)}, knowledge=hf.equals([[1, 1]], [3]), size=500)
    assert summed.before == 0.5
    ranged = hf.knowledge_gain(made, prior, {(1, 2)}, knowledge=hf.between(0, 4), size=500)
    assert ranged.before == pytest.approx(1 / 3)
    with pytest.raises(hf.Refused, match="no dataset"):
        hf.knowledge_gain(made, prior, {(1, 2)}, knowledge=hf.between(9, 12))
    assert "an adversary who" in str(ranged)
    assert np.isfinite(ranged.as_mapping()["right_after"])


@pytest.mark.parametrize("apart", [4, 8, 12])
def test_what_is_learned_at_least_is_never_more_than_is_promised(apart):
    """Classes in which all draws agree say only so much: at ε = 1 the odds of data so far apart change by that."""
    made = hf.laplace(hf.histogram(2), epsilon=1).onto(hf.nonnegative())
    prior = {(20, 5): F(1, 2), (20 + apart, 5): F(1, 2)}
    gain = hf.knowledge_gain(made, prior, {(20, 5)})
    assert gain.status == "at least"
    assert 1 < gain.log_odds <= apart


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((RESPONSE, {"yes": 1, "no": 0}, {"yes"}), "leave the secret open"),
        ((RESPONSE, {"yes": F(1, 2), "maybe": F(1, 2)}, {"yes"}), "a law for every dataset"),
        (("nothing", {"yes": F(1, 2), "no": F(1, 2)}, {"yes"}), "mechanism must be"),
    ],
)
def test_refusals(arguments, words):
    with pytest.raises(hf.Refused, match=words):
        hf.knowledge_gain(*arguments)
