"""Small parts of the nearest table: who goes first among equals, and how outputs are sorted."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.domains.breadth_first import breadth_first
from holdfast.trees.shape.layout import Layout, sorted_outputs
from holdfast.trees.shape.ties import smallest, tie_hash

KEYS = {
    "hashes": st.integers(0, 2**64 - 1),
    "alike but for the last bits": st.integers(2**63, 2**63 + 40),
    "few different ones": st.sampled_from([0, 1, 2**31, 2**63, 2**64 - 1]),
}


@settings(max_examples=60, deadline=None)
@given(st.data())
@pytest.mark.parametrize("kind", KEYS)
def test_the_smallest_key_of_a_rank(kind, data):
    keys = np.array(data.draw(st.lists(KEYS[kind], min_size=1, max_size=60)), dtype=np.uint64)
    rank = data.draw(st.integers(1, keys.size))
    room = np.append(keys, np.zeros(3, dtype=np.uint64))  # what stands behind the keys does not count
    assert int(smallest(room, keys.size, rank)) == int(np.sort(keys)[rank - 1])


def test_hashes_are_all_different():
    assert np.unique([tie_hash(number) for number in range(20_000)]).size == 20_000


@settings(max_examples=80, deadline=None)
@given(st.integers(1, 40), st.integers(0, 2**32), st.booleans())
def test_layouts_list_every_child_below_its_parent(n, seed, shuffled):
    """Breadth-first numbers are recognised; other numbers are sorted to the same shape."""
    rng = np.random.default_rng(seed)
    parents = np.sort([rng.integers(-1, v) if rng.random() > 0.1 else -1 for v in range(n)])
    if shuffled:
        name = rng.permutation(n)
        renamed = np.empty(n, dtype=np.int64)
        renamed[name] = np.where(parents >= 0, name[parents], -1)
        parents = renamed
    order, counts = sorted_outputs(parents)
    assert np.array_equal(order, breadth_first(parents)[2])
    assert np.array_equal(counts, [(parents == v).sum() for v in range(-1, n)])
    layout = Layout.of(parents)
    assert sorted([*layout.inner, *layout.leaves]) == list(range(n))
    groups = [-1, *layout.inner]
    for outputs, start in ((layout.leaves, layout.leaf_start), (layout.inner, layout.inner_start)):
        assert start.size == layout.inner.size + 1
        for k, parent in enumerate(groups):
            begin = 0 if k == 0 else start[k - 1]
            assert (parents[outputs[begin : start[k]]] == parent).all()
        assert start[-1] == outputs.size
