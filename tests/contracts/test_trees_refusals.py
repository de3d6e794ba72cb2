"""Bad input on hierarchies: one sentence, before memory is taken, and never a confidential value in it."""

import tracemalloc
from fractions import Fraction

import numpy as np
import pytest

import holdfast as hf

INF = np.inf
TREE = hf.Hierarchy.from_parents([-1, 0, 0, 1, 1, 2, 2])
QUERY = hf.counts(TREE)
HELD = hf.consistent(TREE)
LEAVES = TREE.leaves
SECRET = 987_654_321
TRUTH = TREE.sum_up([3, 1, 0, 7])
WIDE = hf.Hierarchy.from_parents(np.concatenate([[-1], np.zeros(100, int), 1 + np.arange(20_000) % 100]))

LAWS = {
    "integer Laplace": (hf.laplace, True),
    "continuous Laplace": (hf.laplace, False),
    "integer Gaussian": (hf.gaussian, True),
    "continuous Gaussian": (hf.gaussian, False),
}


def noise(law, tree=TREE, **how):
    make, integer = LAWS[law]
    return make(hf.counts(tree), integer=integer, **(how or {"scale": 2}))


def refused(act, *words):
    """The sentence of a refusal that takes no memory to speak of."""
    tracemalloc.start()
    try:
        with pytest.raises(hf.Refused) as caught:
            act()
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    sentence = str(caught.value)
    assert peak < 100e6
    assert "\n" not in sentence
    assert len(sentence) < 300
    assert str(SECRET) not in sentence
    for word in words:
        assert word in sentence
    return sentence


def outcome(mechanism, truth):
    """One simulated release, or None and the sentence with which it is refused."""
    try:
        return mechanism.simulate(truth, 1, rng=hf.seeded(1))[0], ""
    except hf.Refused as refusal:
        return None, str(refusal)


@pytest.mark.parametrize("law", LAWS)
def test_an_inconsistent_truth(law):
    truth = TRUTH.copy()
    truth[0] += SECRET
    refused(lambda: noise(law).given(HELD).release(truth), "consistency at node 0")
    refused(lambda: noise(law).given(HELD).simulate(truth, 3), "consistency at node 0")
    refused(lambda: noise(law).onto(HELD).release(truth), "consistency at node 0")


@pytest.mark.parametrize("law", LAWS)
def test_a_leaf_outside_its_bound(law):
    below, above = TREE.sum_up([-SECRET, 1, 0, 7]), TREE.sum_up([3, 1, SECRET, 7])
    refused(lambda: noise(law).given(HELD & hf.nonnegative(at=LEAVES)).release(below), "nonnegative", "position 3")
    refused(lambda: noise(law).given(HELD & hf.between(0, 9, at=LEAVES)).release(above), "between", "position 5")


@pytest.mark.parametrize("law", LAWS)
def test_a_fixed_node_that_the_truth_does_not_have(law):
    truth = TREE.sum_up([SECRET, 1, 0, 7])
    refused(lambda: noise(law).given(HELD & hf.fixed(1, 5)).release(truth), "fixed 1")


CONTRADICTIONS = {
    "children exceed a fixed node": lambda: HELD & hf.nonnegative() & hf.fixed([1, 3], [2, 5]),
    "children cannot reach a fixed node": lambda: HELD & hf.between(0, 2, at=LEAVES) & hf.fixed(0, 9),
    "a node and all its children fixed": lambda: HELD & hf.fixed([1, 3, 4], [5, 1, 1]),
    "lower bounds exceed the root's upper one": lambda: HELD & hf.between(5, 9, at=LEAVES) & hf.between(0, 10, at=[0]),
    "halves that do not add up": lambda: HELD & hf.fixed([1, 3, 4], [Fraction(3, 2), Fraction(1, 2), 2]),
    "fixed twice": lambda: HELD & hf.fixed(0, 1) & hf.fixed(0, 2),
    "many leaves below a small root": lambda: (
        hf.consistent(WIDE) & hf.between(1, 2, at=WIDE.leaves) & hf.fixed(0, 19_999)
    ),
    "many fixed leaves": lambda: hf.consistent(WIDE) & hf.fixed(WIDE.leaves, np.ones(20_000, int)) & hf.fixed(0, 5),
}


@pytest.mark.parametrize("case", CONTRADICTIONS)
def test_a_fixed_node_that_its_subtree_cannot_reach(case):
    refused(CONTRADICTIONS[case], "cannot hold together", "consistent" if case != "fixed twice" else "fixed")


def test_values_that_are_not_whole():
    for law in ("integer Laplace", "integer Gaussian"):
        refused(lambda law=law: noise(law).given(HELD & hf.fixed(0, 2.5)), "whole numbers")
        refused(lambda law=law: noise(law).given(HELD & hf.between(0.2, 0.8, at=[3])), "whole number")
        refused(lambda law=law: noise(law).given(HELD).release(TRUTH + 0.5), "whole")


IMPROPER = {
    "two leaves that nothing measures": ({"scale": {0: 1, 1: 1}}, TREE, "share their sum"),
    "a branch that nothing measures": ({"scale": [1, 1, INF, 1, 1, INF, INF]}, TREE, "positions 5 and 6"),
    "a tree of a forest": ({"scale": [1, 1, INF, 1, INF]}, hf.Hierarchy.from_parents([-1, 0, -1, 0, 2]), "position 2"),
    "a share of 0 for the leaves": ({"shares": {0: 1, 1: 1, 2: 0}}, TREE, "share their sum"),
}


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("case", IMPROPER)
def test_noise_without_a_law(law, case):
    how, tree, word = IMPROPER[case]
    if "shares" in how:
        how = how | ({"epsilon": 1} if "Laplace" in law else {"rho": 1})
    held = hf.consistent(tree)
    truth = np.zeros(tree.n, dtype=np.int64)
    refused(lambda: noise(law, tree, **how).given(held).release(truth), "has no law", "measure", word)
    refused(lambda: noise(law, tree, **how).given(held).noise(1), "has no law")
    # Nor is anything stated about it: the sentence is the same.
    assert noise(law, tree, **how).given(held).guarantees == ()
    refused(lambda: noise(law, tree, **how).given(held).guarantee, "has no law", "measure", word)


def test_bounds_can_give_noise_a_law():
    """Two unmeasured leaves below a measured node: not alone, but with lower bounds, and with one of them exact."""
    how = {"scale": [1, 1, 1, 1, 1, INF, INF]}
    refused(lambda: noise("integer Laplace", **how).given(HELD).release(TRUTH), "has no law")
    for extra in (hf.nonnegative(), hf.invariant(hf.exact_nodes(TREE, [5])), hf.between(0, 20, at=[5])):
        values, sentence = outcome(noise("integer Laplace", **how).given(HELD & extra), TRUTH)
        assert "has no law" not in sentence  # whether or not a way to draw it is known
        assert values is None or np.array_equal(TREE.sum_up(values[LEAVES]), values)
    # Opposite bounds leave the same direction free.
    for one, other in ((5, 6), (6, 5)):
        opposite = HELD & hf.between(0, None, at=[one]) & hf.between(None, 9, at=[other])
        refused(lambda held=opposite: noise("integer Laplace", **how).given(held).release(TRUTH), "has no law")


SCALES = {
    "zero": (0, "above 0"),
    "negative": (-1, "above 0"),
    "not a number": (float("nan"), "finite number"),
    "text": ("wide", "must be a number"),
    "absurdly large": (1e300, "2**400"),
    "absurdly small": (1e-300, "2**-400"),
    "too few": ([1, 2], "shape (7,)"),
    "zero for each": ([0] * 7, "above 0"),
    "not a number for one": ([1, 1, float("nan"), 1, 1, 1, 1], "position 2"),
    "zero for a level": ({0: 0, 1: 1, 2: 1}, "above 0"),
    "an unknown level": ({7: 1}, "must be one of"),
    "infinite everywhere": ([INF] * 7, "finite for at least one"),
}


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("case", SCALES)
def test_scales_that_are_none(law, case):
    scale, words = SCALES[case]
    refused(lambda: noise(law, scale=scale).given(HELD).release(TRUTH), words)


@pytest.mark.parametrize("law", ["integer Laplace", "integer Gaussian"])
def test_integer_noise_beyond_64_bits(law):
    refused(lambda: noise(law, scale=1e30).given(HELD).release(TRUTH), "64 bits")


@pytest.mark.parametrize("law", ["integer Laplace", "integer Gaussian"])
@pytest.mark.parametrize("scale", [1e6, 1e9, 2.0**49])
@pytest.mark.parametrize("bounded", [False, True])
def test_windows_beyond_memory_are_never_made(law, scale, bounded):
    """Very wide noise on many leaves: drawn within memory, or refused."""
    held = hf.consistent(WIDE) & hf.nonnegative() if bounded else hf.consistent(WIDE)
    truth = WIDE.sum_up(np.ones(20_000, dtype=np.int64))
    mechanism = noise(law, WIDE, scale=scale).given(held)
    tracemalloc.start()
    values, _ = outcome(mechanism, truth)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert values is None or np.array_equal(WIDE.sum_up(values[WIDE.leaves]), values)
    assert peak < 1e9


BUDGETS = [0, -1, float("nan"), INF, 1e-300, 1e300]


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("budget", BUDGETS)
def test_budgets_that_are_none(law, budget):
    how = {"epsilon": budget} if "Laplace" in law else {"rho": budget}
    refused(lambda: noise(law, **how).given(HELD).release(TRUTH))


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize(
    "truth",
    [[float("nan")] * 7, [1, 2], [str(SECRET)] * 7, [2.0**63] * 7, [1e300] * 7, [[SECRET] * 7], [None] * 7],
    ids=["nan", "short", "text", "beyond 64 bits", "absurd", "nested", "missing"],
)
def test_truths_that_are_none(law, truth):
    refused(lambda: noise(law).given(HELD).release(truth))


def test_more_draws_than_memory_holds():
    for law in LAWS:
        refused(lambda law=law: noise(law).noise(10**13), "size must be at most", "7 outputs")
        refused(lambda law=law: noise(law).simulate(TRUTH, 10**13), "size must be at most")


def test_exact_nodes_that_are_none():
    refused(lambda: hf.exact_nodes(TREE, [99]), "between 0 and 6")
    refused(lambda: hf.exact_nodes(TREE, [1, 1]), "twice")
    refused(lambda: hf.exact_nodes(TREE, []), "list of positions")
    other = hf.Hierarchy.from_parents([-1, 0, 0])
    refused(lambda: HELD & hf.invariant(hf.exact_nodes(other, [1])), "about 3")
    refused(lambda: HELD & hf.exact_nodes(TREE, [1]), "invariant(")


def test_everything_exact_leaves_nothing_to_protect():
    everything = hf.invariant(hf.exact_nodes(TREE, LEAVES))
    for law in LAWS:
        refused(
            lambda law=law: noise(law).given(HELD & everything).release(TRUTH), "no statement would be about anything"
        )


@pytest.mark.slow
def test_calibration_that_no_scale_meets():
    mechanism = noise("integer Laplace").given(HELD & hf.nonnegative())
    refused(lambda: mechanism.calibrated(epsilon=1e200), "ask for less")
    refused(lambda: mechanism.calibrated(epsilon=1e-200), "2**400")
    refused(lambda: mechanism.calibrated(epsilon=0), "above 0")
    assert mechanism.calibrated(epsilon=1e-9).guarantee.epsilon <= 1e-9


def test_another_number_of_categories():
    refused(lambda: hf.laplace(hf.counts(TREE, by=3), epsilon=1).given(HELD), "7 values", "21")
