"""Belief changes with limits: screened, credibility-limited, and bounded leakage with its update twin."""

import math
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast import Refused, histogram, laplace, nonnegative
from holdfast.beliefs import (
    condition,
    credible,
    credible_mechanism,
    image,
    leakage_loss,
    leaked,
    leaked_onto,
    log_ratio,
    mixture,
    push,
    screened,
)

F = Fraction
WORLDS = range(4)
EVENTS = st.sets(st.sampled_from(WORLDS), min_size=1)


def beliefs(least=0):
    def made(weights):
        return {w: F(weight, sum(weights)) for w, weight in enumerate(weights)}

    return st.lists(st.integers(least, 9), min_size=4, max_size=4).filter(sum).map(made)


def joints():
    def made(weights):
        return {(w, b): F(weights[2 * w + b], sum(weights)) for w in WORLDS for b in (0, 1)}

    return st.lists(st.integers(1, 9), min_size=8, max_size=8).map(made)


@settings(deadline=None, max_examples=60)
@given(beliefs(), EVENTS, st.fractions(F(1, 20), 1))
def test_credible_revision_accepts_or_keeps(p, event, least):
    found, mass = credible(p, event, least), sum(p[w] for w in event)
    assert found == (condition(p, event) if mass >= least else p)
    assert credible(found, event, least) == found
    nearest = {w: min(event) for w in WORLDS if w not in event}
    assert credible(p, event, least, nearest) == (image(p, event, nearest) if mass >= least else p)


@settings(deadline=None, max_examples=60)
@given(beliefs(), EVENTS)
def test_screened_revision_never_gives_up_its_core(p, event):
    core = {w for w in WORLDS if p[w]}
    found = screened(p, event, core)
    assert sum(found[w] for w in core) == 1
    assert found == (condition(p, event & core) if event & core else p)
    moved = screened(p, event, set(WORLDS), {w: min(event) for w in WORLDS if w not in event})
    assert sum(moved[w] for w in event) == 1  # an update accepts what a revision finds impossible


def test_a_screen_that_is_not_believed_is_refused():
    with pytest.raises(Refused, match="believed for sure"):
        screened({0: F(1, 2), 1: F(1, 2)}, {0}, {0})


def test_datasets_that_decide_differently_are_refused():
    yes, no = {1: F(9, 10), 0: F(1, 10)}, {1: F(1, 10), 0: F(9, 10)}
    assert log_ratio(credible(no, {1}, F(1, 2)), credible(yes, {1}, F(1, 2))) == math.inf
    with pytest.raises(Refused, match="which a release would show"):
        credible_mechanism({"yes": yes, "no": no}, {1}, F(1, 2))
    assert credible_mechanism({"yes": yes, "no": no}, {1}, F(1, 20)) == {"yes": {1: 1, 0: 0}, "no": {1: 1, 0: 0}}
    assert credible_mechanism({"yes": yes, "no": no}, {1}, 1) == {"yes": yes, "no": no}
    for least in (0, 2):
        with pytest.raises(Refused, match="least"):
            credible(yes, {1}, least)


@settings(deadline=None, max_examples=60)
@given(joints(), joints())
def test_laws_of_leakage(one, other):
    chances = [push(each, lambda pair: pair[1]) for each in (one, other)]
    assert mixture([(chances[0][b], leaked(one, b)) for b in (0, 1)]) == push(one, lambda pair: pair[0])
    together = max(log_ratio(one, other), log_ratio(other, one))
    weights = max(abs(math.log(chances[0][b] / chances[1][b])) for b in (0, 1))
    assert leakage_loss(one, other) <= together + weights + 1e-12
    moved = [leaked_onto(each, 1, lambda pair: (pair[0], 1)) for each in (one, other)]
    assert max(log_ratio(*moved), log_ratio(*moved[::-1])) <= together + 1e-12


def test_a_leak_about_the_output_is_conditioning():
    p = {0: F(1, 2), 1: F(1, 3), 2: F(1, 6)}
    assert leaked({(w, w > 0): value for w, value in p.items()}, True) == {1: F(2, 3), 2: F(1, 3)}
    with pytest.raises(Refused, match="must be possible"):
        leaked({(0, "a"): F(1)}, "b")
    with pytest.raises(Refused, match="no outcome in common"):
        leakage_loss({(0, "a"): F(1)}, {(0, "b"): F(1)})
    with pytest.raises(Refused, match="nearest must lead"):
        leaked_onto({(0, "a"): F(1, 2), (0, "b"): F(1, 2)}, "b", lambda pair: pair)


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (lambda m: credible_mechanism(m, nonnegative(), F(1, 2)), "mechanism.given"),
        (lambda m: credible(m, {0}, F(1, 2)), "p must map worlds"),
        (lambda m: screened(m, {0}, {0}), "p must map worlds"),
        (lambda m: leaked(m, 0), "joint must map worlds"),
        (lambda m: leaked_onto(m, 0, {}), "joint must map worlds"),
        (lambda m: leakage_loss(m, m), "joint must map worlds"),
    ],
)
def test_mechanisms_whose_laws_are_not_listed_are_refused(call, told):
    with pytest.raises(Refused, match=told):
        call(laplace(histogram(2), epsilon=1))
