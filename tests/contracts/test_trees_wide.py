"""Messages that are wide and flat: many unlike pieces under one node, with more noise than usual."""

import numpy as np
import pytest

import holdfast as hf


@pytest.mark.parametrize("scale", [12, 20])
def test_many_unlike_pieces_with_wide_noise_are_drawn(scale):
    sizes = 2 + np.arange(1500) % 4
    parents = np.concatenate([[-1], np.zeros(sizes.size, dtype=int), 1 + np.repeat(np.arange(sizes.size), sizes)])
    tree = hf.Hierarchy.from_parents(parents)
    tables = hf.laplace(hf.counts(tree), scale=scale).given(hf.consistent(tree)).noise(20, rng=hf.seeded(4))
    for table in tables:
        assert (tree.sum_up(table[tree.leaves]) == table).all()
    # noise of leaves that must add up is a little smaller than free noise, whose mean absolute value is about the scale
    assert 0.6 * scale < np.abs(tables[:, tree.leaves]).mean() < scale
