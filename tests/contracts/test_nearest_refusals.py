"""Bad input to `onto` on a hierarchy: one clear sentence, before anything is drawn, and never a confidential value."""

import numpy as np
import pytest

import holdfast as hf
from holdfast.randomness import Stream

TREE = hf.Hierarchy.from_parents([-1, 0, 0, 1, 1, 1, 2, 2])
QUERY = hf.counts(TREE)
TRUTH = TREE.sum_up([1, 0, 2, 0, 3])
MUST = hf.consistent(TREE) & hf.nonnegative()
METHODS = (None, "topdown", "bluedown")
pytestmark = pytest.mark.parametrize("method", METHODS)


class NeverDrawn(Stream):
    """A stream that must not be touched."""

    def __init__(self):
        pass

    def __getattr__(self, name):
        raise AssertionError("something was drawn before the input was checked")


@pytest.mark.parametrize(
    ("truth", "sentence"),
    [
        (TRUTH + 987_654 * (np.arange(8) == 0), "consistency at node 0"),
        (TREE.sum_up([987_660, -987_654, 2, 0, 3]), "nonnegative at position 4"),
        (TREE.sum_up([1, 0, 2, 0, 987_654]), "fixed 7"),
    ],
    ids=["inconsistent", "a leaf outside its bound", "another value than the fixed one"],
)
@pytest.mark.parametrize("integer", [True, False])
def test_a_truth_that_breaks_what_must_hold(method, truth, sentence, integer):
    mechanism = hf.laplace(QUERY, scale=1).onto(MUST & hf.fixed(7, 3), method=method, integer=integer)
    with pytest.raises(hf.Refused, match=sentence) as refusal:
        mechanism.release(truth, rng=NeverDrawn())
    assert "987" not in str(refusal.value)
    with pytest.raises(hf.Refused, match=sentence):
        mechanism.simulate(truth, 3, rng=NeverDrawn())


@pytest.mark.parametrize(
    "must",
    [
        lambda: MUST & hf.fixed(1, -3),
        lambda: hf.consistent(TREE) & hf.between(0, 2, at=TREE.leaves) & hf.fixed(1, 7),
        lambda: MUST & hf.fixed([0, 1, 2], [9, 3, 4]),
        lambda: MUST & hf.fixed(0, 3) & hf.between(2, 9, at=[3, 4, 5]),
    ],
    ids=["below its leaves", "above its leaves", "beside its siblings", "below two levels"],
)
def test_a_fixed_node_that_its_subtree_cannot_reach(method, must):
    with pytest.raises(hf.Refused, match="cannot hold together"):
        hf.laplace(QUERY, scale=1).onto(must(), method=method)


def test_an_exact_node_outside_what_its_leaves_allow(method):
    must = hf.consistent(TREE) & hf.between(0, 2, at=TREE.leaves) & hf.invariant(hf.exact_nodes(TREE, [1]))
    mechanism = hf.laplace(QUERY, scale=1).onto(must, method=method, integer=True)
    with pytest.raises(hf.Refused, match="position 4"):
        mechanism.release(TREE.sum_up([0, 987_654, 0, 0, 0]), rng=NeverDrawn())


@pytest.mark.parametrize(
    ("scale", "sentence"),
    [
        (0, "above 0"),
        (-1, "above 0"),
        (float("nan"), "finite"),
        (1e-300, r"between 2\*\*-400"),
        (1e300, r"between 2\*\*-400"),
        (1e18, r"at most 2\*\*50"),
        (np.inf, "at least one output"),
    ],
)
def test_an_absurd_scale(method, scale, sentence):
    with pytest.raises(hf.Refused, match=sentence):
        hf.laplace(QUERY, scale=scale).onto(MUST, method=method)


def test_scales_and_weights_that_cannot_be_weighed_against_each_other(method):
    """Integer noise of scale 1e-5 has a variance that no double holds; alone it is weighed, beside others refused."""
    with pytest.raises(hf.Refused, match="differ by more than 1e\\+200 times"):
        hf.laplace(QUERY, scale=[1e-5, 1, 1, 1, 1, 1e-5, 1, 1]).onto(MUST, method=method)
    with pytest.raises(hf.Refused, match="differ by more than 1e\\+200 times"):
        hf.laplace(QUERY, scale=1).onto(MUST, method=method, weights=[1e-150, 1, 1, 1, 1, 1, 1, 1e150])
    with pytest.raises(hf.Refused, match="position 2"):
        hf.laplace(QUERY, scale=1).onto(MUST, method=method, weights=[1, 1, 0, 1, 1, 1, 1, 1])
    alone = hf.laplace(hf.histogram(2), scale=[1e-5, 1]).onto(hf.nonnegative())  # nothing is weighed here
    assert alone.image([-1, 3]).tolist() == [0, 3]
    tiny = hf.laplace(QUERY, scale=1e-5)
    for integer in (True, False):
        assert tiny.onto(MUST, method=method, integer=integer).image(TRUTH).tolist() == TRUTH.tolist()
        assert tiny.onto(MUST, method=method, integer=integer).image([6, 3, 3, 1, 1, 2, 0, 3]).min() >= 0


@pytest.mark.parametrize(
    ("noisy", "sentence"),
    [
        ([1, 2, 3], r"shape \(8,\)"),
        ([1, 2, 3, 4, 5, 6, 7, np.nan], "position 7 is not finite"),
        ([1, 2, 3, 4, 5, 6, 7, 0.5], "position 7 is not whole"),
        ([2**62, 0, 0, 0, 0, 0, 0, 0], r"2\*\*62"),
    ],
)
def test_noisy_values_that_are_none(method, noisy, sentence):
    with pytest.raises(hf.Refused, match=sentence):
        hf.laplace(QUERY, scale=1).onto(MUST, method=method).image(noisy)


def test_values_too_far_from_what_must_hold_are_moved_or_refused(method):
    noisy = np.array([-(2**59), 0, 0, 2**59, 2**59, 2**59, 2**59, 2**59])
    mechanism = hf.laplace(QUERY, scale=1).onto(MUST, method=method)
    if method is None:
        with pytest.raises(hf.Refused, match="integer=False"):
            mechanism.image(noisy)
    else:
        assert not mechanism.image(noisy).any()
    real = hf.laplace(QUERY, scale=1).onto(MUST, method=method, integer=False).image(noisy)
    assert real.min() >= 0


def test_a_hierarchy_whose_leaves_nothing_tells_apart(method):
    blind = hf.laplace(QUERY, scale=[1, 1, 1, np.inf, np.inf, 1, 1, 1])
    with pytest.raises(hf.Refused, match="measure"):
        blind.onto(hf.consistent(TREE), method=method).image(TRUTH)
