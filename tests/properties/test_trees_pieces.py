"""Hierarchies cut into pieces: every free leaf is in one parcel, totals are those of outputs, kinds are alike."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.trees.messages.pieces import MOST_LEAVES
from samplers import NONE, sampler

MANY = settings(max_examples=150, deadline=None)


def forest_of(seed):
    """Parents, exact outputs, scales and bounds of a random forest."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 80))
    style = rng.integers(3)
    parents = [-1]
    for v in range(1, n):
        first, last = [(-1, v - 1), (v // 30 - 1, v // 30), (v - 2, v - 1)][style]
        parents.append(int(rng.integers(max(first, -1), min(last, v - 1) + 1)))
    exact = np.flatnonzero(rng.random(n) < rng.choice([0.0, 0.1, 0.5])).tolist()
    scales = rng.choice([1.0, 2.0], n)
    return parents, exact, scales, rng.choice([-NONE, 0, -1, -3], n), rng.choice([NONE, NONE, 0, 5], n)


def check(made):
    """All that must hold of the pieces of a sampler."""
    pieces, forest = made.messages.pieces, made.forest
    free = np.flatnonzero(forest.is_leaf & ~forest.exact)
    assert np.array_equal(np.sort(pieces.leaves), free)
    parcels = pieces.left < 0
    assert (pieces.members[parcels] > 0).all()
    assert (pieces.members <= MOST_LEAVES).all()
    assert np.array_equal(np.sort(pieces.first[parcels]), np.cumsum(pieces.members[parcels]) - pieces.members[parcels])
    # the leaves of each piece; children come before parents, and every piece but a root has one parent
    holds, above = [], np.zeros(pieces.size, dtype=int)
    for p in range(pieces.size):
        a, b = int(pieces.left[p]), int(pieces.right[p])
        assert max(a, b) < p
        if a < 0:
            holds.append(set(pieces.leaves[pieces.first[p] : pieces.first[p] + pieces.members[p]].tolist()))
            continue
        above[a] += 1
        holds.append(set(holds[a]))
        if b >= 0:
            above[b] += 1
            assert not holds[a] & holds[b]
            holds[p] |= holds[b]
    assert np.array_equal(above, (pieces.root == 0).astype(int))
    # an output's noise is the sum of the free leaves below it that no exact output hides
    below, hidden = {v: set() for v in range(forest.n)}, {}
    for leaf in free.tolist():
        v = leaf
        while v >= 0 and not forest.exact[v]:
            below[v].add(leaf)
            v = int(forest.parents[v])
        if v >= 0:
            hidden.setdefault(v, set()).add(leaf)
    shown = {int(v): p for p, v in enumerate(pieces.output) if v >= 0}
    assert len(shown) == (pieces.output >= 0).sum()
    for v in range(forest.n):
        if not forest.is_leaf[v]:
            assert (v in shown) == bool(below[v])
            if v in shown:
                assert holds[shown[v]] == below[v]
    # roots: the total of a free root is free, what an exact output holds has total 0
    tops = [sorted(below[v]) for v in np.flatnonzero(forest.parents < 0) if below[v]]
    assert sorted(tops) == sorted(sorted(holds[p]) for p in np.flatnonzero(pieces.root == 1))
    assert sorted(map(sorted, hidden.values())) == sorted(sorted(holds[p]) for p in np.flatnonzero(pieces.root == 2))
    # alike kinds: the same law, bounds and parts
    which = made.law.which
    for p in range(pieces.size):
        e, k = int(pieces.example[pieces.kind[p]]), int(pieces.kind[p])
        assert pieces.members[p] == pieces.members[e]
        span = slice(pieces.first[p], pieces.first[p] + pieces.members[p])
        other = slice(pieces.first[e], pieces.first[e] + pieces.members[e])
        mine, theirs = pieces.leaves[span], pieces.leaves[other]
        assert np.array_equal(which[mine], which[theirs])
        assert np.array_equal(made.low[mine], made.low[theirs])
        assert np.array_equal(made.high[mine], made.high[theirs])
        for side, sides in ((pieces.left, pieces.kind_left), (pieces.right, pieces.kind_right)):
            assert (side[p] < 0 and sides[k] < 0) or pieces.kind[side[p]] == sides[k]
        v, w = int(pieces.output[p]), int(pieces.output[e])
        assert (v < 0 and pieces.law[k] < 0) or (w >= 0 and which[v] == which[w])
        if v >= 0:  # a bound of the output, unless the leaves' bounds imply it
            assert pieces.low[k] in (made.low[v], -NONE)
            assert pieces.high[k] in (made.high[v], NONE)
            if pieces.low[k] == -NONE < made.low[v]:
                assert sum(least(made, below, c) for c in forest.children_of(v).tolist()) >= made.low[v]


def least(made, below, v):
    """The least noise that the bounds at and below an output allow."""
    if made.forest.exact[v] or not below[v]:
        return 0
    own = int(made.low[v])
    children = made.forest.children_of(v).tolist()
    return max(own, -NONE, sum(least(made, below, c) for c in children)) if children else own


@pytest.mark.slow
@MANY
@given(st.integers(0, 2**32))
def test_random_forests_are_cut_well(seed):
    parents, exact, scales, low, high = forest_of(seed)
    check(sampler(parents, "laplace", scales, low, high, exact))


@pytest.mark.parametrize(
    "parents",
    [
        [-1],
        [-1, -1, -1],
        [-1, 0],
        [-1] + [0] * 63,
        [-1] + [0] * 64,
        [-1] + [0] * 65,
        [-1] + [0] * 700,
        [-1, 0, 0] + [1] * 200 + [2] * 3,
        [-1, *range(2_000)],
        [-1, *range(999), *range(1_000)],
    ],
    ids=["leaf", "leaves", "child", "63", "64", "65", "700", "uneven", "chain", "comb"],
)
def test_shapes_at_the_edges(parents):
    check(sampler(parents, "laplace", 1))


def test_nothing_free_leaves_no_piece():
    assert sampler([-1, 0, 0], "laplace", 1, exact=[1, 2]).messages.pieces.size == 0
    assert sampler([-1], "laplace", 1, exact=[0]).messages.pieces.size == 0


def test_alike_families_are_of_one_kind():
    parents = [-1] + [0] * 10 + [1 + i // 5 for i in range(50)]
    pieces = sampler(parents, "laplace", 1).messages.pieces
    parcels = np.flatnonzero(pieces.left < 0)
    assert parcels.size == 10
    assert np.unique(pieces.kind[parcels]).size == 1
    low = np.where(np.arange(61) == 60, 0, -NONE)
    pieces = sampler(parents, "laplace", 1, low=low).messages.pieces
    assert np.unique(pieces.kind[np.flatnonzero(pieces.left < 0)]).size == 2


def test_enormous_bounds_below_do_not_hide_a_bound_above():
    """A hundred bounds of 2**61 add up to more than a number holds: the parent's own bound must stay."""
    n = 101
    high = np.array([3] + [2**61] * 100)
    made = sampler([-1] + [0] * 100, "laplace", 1, high=high)
    assert made.messages.pieces.high[made.messages.pieces.kind[made.messages.pieces.output == 0]].tolist() == [3]
    low = np.array([-3] + [-(2**61)] * 100)
    made = sampler([-1] + [0] * 100, "laplace", 1, low=low)
    assert made.messages.pieces.low[made.messages.pieces.kind[made.messages.pieces.output == 0]].tolist() == [-3]
    assert made.forest.n == n
