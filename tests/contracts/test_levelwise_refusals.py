"""The baselines are used only when they are asked for, promise what post-processing promises, and refuse clearly."""

import numpy as np
import pytest

import holdfast as hf

TREE = hf.Hierarchy.from_parents([-1, 0, 0, 1, 1])
QUERY = hf.counts(TREE)
MUST = hf.consistent(TREE) & hf.nonnegative()
METHODS = ("topdown", "bluedown")


def test_they_are_never_chosen_unasked():
    base = hf.laplace(QUERY, epsilon=1)
    for must in (MUST, hf.consistent(TREE), MUST & hf.invariant(hf.exact_nodes(TREE, [1]))):
        for integer in (True, False):
            try:
                chosen = base.onto(must, integer=integer).method
            except hf.Refused:
                continue
            assert chosen not in METHODS


@pytest.mark.parametrize("method", METHODS)
def test_they_cost_nothing(method):
    assert hf.laplace(QUERY, epsilon=0.7).onto(MUST, method=method).guarantee.epsilon == 0.7
    exact = hf.laplace(QUERY, epsilon=0.7).onto(MUST & hf.invariant(hf.exact_nodes(TREE, [0])), method=method)
    assert {statement.scope for statement in exact.guarantees} == {"invariant-sharing"}


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    ("scale", "must", "norm"),
    [
        (1, MUST, "l1"),
        (1, hf.nonnegative(), "l2"),
        (1, MUST & hf.ordered([3, 4]), "l2"),
        (1, MUST & hf.equals([[0, 1, 0, 1, 0]], [4]), "l2"),
        (1, MUST & (hf.between(0, 1, at=3) | hf.between(4, 5, at=3)), "l2"),
        ([np.inf, 1, np.inf, 1, 1], MUST, "l2"),
        ([1, 1, 1, np.inf, np.inf], hf.consistent(TREE), "l2"),
    ],
    ids=["L1", "no hierarchy", "an order", "another row", "a union", "nothing above a leaf", "an open split"],
)
def test_what_they_cannot_do_is_refused(method, scale, must, norm):
    mechanism = hf.laplace(QUERY, scale=scale).onto(must, norm=norm, method=method)
    with pytest.raises(hf.Refused, match=f"method '{method}' cannot move these values level by level: it needs"):
        mechanism.simulate(TREE.sum_up([4, 0, 4]), 1, rng=hf.seeded(1))


def test_topdown_leaves_exact_nodes_without_bounds_to_the_projection():
    """The subspace statement is about the orthogonal projection, and real TopDown is another map."""
    must = hf.consistent(TREE) & hf.invariant(hf.exact_nodes(TREE, [0]))
    base = hf.laplace(QUERY, epsilon=1)
    with pytest.raises(hf.Refused, match="leave method out"):
        base.onto(must, integer=False, method="topdown").release(TREE.sum_up([1, 2, 3]), rng=hf.seeded(1))
    whole = base.onto(must, integer=True, method="topdown")
    assert {statement.scope for statement in whole.guarantees} == {"invariant-sharing"}
    assert whole.release(TREE.sum_up([1, 2, 3]), rng=hf.seeded(1)).values[0] == 6


def test_a_misspelt_method_is_named():
    with pytest.raises(hf.Refused, match="did you mean 'topdown'"):
        hf.laplace(QUERY, epsilon=1).onto(MUST, method="top-down")


@pytest.mark.parametrize("method", METHODS)
def test_values_beyond_64_bits_are_refused(method):
    move = hf.laplace(QUERY, epsilon=1).onto(MUST, method=method).image
    with pytest.raises(hf.Refused, match="less than 2\\*\\*62"):
        move(np.full(5, 2**61))
    assert move(np.array([2**59, 2**59, 0, 2**59, 0])).tolist() == [2**59, 2**59, 0, 2**59, 0]
