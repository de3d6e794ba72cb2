"""The Markov chain must be asked for, says that it is only an estimate, and refuses what it cannot draw."""

import numpy as np
import pytest

import holdfast as hf
from holdfast.given import Problem, metropolis

TREE = hf.Hierarchy.from_parents([-1, 0, 0])
QUERY = hf.counts(TREE)
TRUTH = TREE.sum_up([2, 1])
WIDE = hf.Hierarchy.from_parents([-1] + [0] * 1_000)
CONSISTENT = hf.consistent(TREE)

ALONE = "hierarchies given consistent\\(\\) and nothing else"
REFUSED = {
    "no hierarchy": (lambda: hf.laplace(hf.histogram(3), scale=1), hf.invariant([[1, 1, 1]]), ALONE),
    "bounds": (lambda: hf.laplace(QUERY, scale=1), CONSISTENT & hf.nonnegative(), ALONE),
    "an exact node": (lambda: hf.laplace(QUERY, scale=1), CONSISTENT & hf.invariant(hf.exact_nodes(TREE, [0])), ALONE),
    "real noise": (lambda: hf.laplace(QUERY, scale=1, integer=False), CONSISTENT, ALONE),
    "too many outputs": (
        lambda: hf.laplace(hf.counts(WIDE), scale=1),
        hf.consistent(WIDE),
        "up to 1000 outputs, .* found 1001: leave method out",
    ),
    "an unmeasured leaf": (lambda: hf.laplace(QUERY, scale=[1, np.inf, 1]), CONSISTENT, "noise on every leaf"),
    "noise too wide": (lambda: hf.laplace(QUERY, scale=2.0**40), CONSISTENT, r"scales up to 2\*\*36"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_it_cannot_draw_is_refused_in_one_sentence(name):
    make, constraint, sentence = REFUSED[name]
    mechanism = make().given(constraint, method="metropolis")
    with pytest.raises(hf.Refused, match=sentence) as refusal:
        mechanism.simulate(np.zeros(mechanism.query.n, dtype=int), 1)
    assert "\n" not in str(refusal.value)
    with pytest.raises(hf.Refused, match=sentence):  # nothing is promised about draws that are never made
        _ = mechanism.guarantee


@pytest.mark.parametrize("make", [hf.laplace, hf.gaussian])
def test_it_is_never_chosen_unasked(make):
    base = make(QUERY, scale=1)
    assert base.given(CONSISTENT, method="metropolis").method == "metropolis"
    assert base.given(CONSISTENT).method != "metropolis"


@pytest.mark.parametrize("make", [hf.laplace, hf.gaussian])
def test_it_states_nothing_releases_nothing_and_is_simulated(make):
    """Nobody measured how near its draws come, so there is no δ that would be true."""
    chain = make(QUERY, scale=2).given(CONSISTENT, method="metropolis")
    assert chain.method == "metropolis"
    assert all(statement.void for statement in chain.guarantees)
    for use in (
        lambda: chain.guarantee,
        lambda: chain.release(TRUTH),
        lambda: chain.calibrated(epsilon=1, delta=1e-3),
        chain.standard_error,
    ):
        with pytest.raises(hf.Refused, match="nothing measures how near"):
            use()
    assert chain.simulate(TRUTH, 3, rng=hf.seeded(1)).shape == (3, TREE.n)


def test_what_follows_states_nothing_either():
    chain = hf.laplace(QUERY, epsilon=1).given(CONSISTENT, method="metropolis")
    with pytest.raises(hf.Refused, match="nothing measures how near"):
        _ = chain.onto(hf.nonnegative()).guarantee
    # Asked again without the method, the exact way draws and the proof stands.
    assert chain.given(hf.nonnegative()).guarantee.status == "proved"


def test_only_chains_that_it_draws_are_looked_at():
    law = hf.laplace(QUERY, scale=1).base.law
    with pytest.raises(hf.Refused, match=ALONE):
        metropolis.diagnose(Problem(law, hf.nonnegative().system(TREE.n)), hf.seeded(1), steps=100)
    for wrong in ({"chains": 1, "steps": 100}, {"steps": 3}):
        with pytest.raises(hf.Refused, match="must be at least"):
            metropolis.diagnose(Problem(law, CONSISTENT.system(TREE.n)), hf.seeded(1), **wrong)
