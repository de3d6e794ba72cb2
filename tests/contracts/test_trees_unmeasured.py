"""Leaves of a hierarchy that are not measured are refused."""

import numpy as np
import pytest

import holdfast as hf

INF = np.inf
THREE = hf.Hierarchy.from_parents([-1, 0, 0, 1, 1, 2])  # leaves 3, 4 and 5
FOREST = hf.Hierarchy.from_parents([3, 3, -1, -1, 2])  # trees 3 with 0 and 1, and 2 with 4
MAKE = {"laplace": hf.laplace, "gaussian": hf.gaussian}

REFUSED = {
    "two free leaves": (THREE, [1, 1, 1, INF, INF, 1], None, "positions 3 and 4"),
    "two free branches": (THREE, [1, INF, INF, 1, INF, INF], None, "positions 1 and 2"),
    "a free root": (FOREST, [1, 1, INF, 1, INF], None, "position 2"),
    "a leaf": (THREE, [1, 1, 1, 1, INF, 1], None, "position 4 is not measured"),
    "a branch": (THREE, [1, INF, 1, 1, INF, 1], None, "position 1 is not measured"),
    "bounds everywhere": (THREE, [1, 1, 1, 1, INF, 1], hf.nonnegative(), "position 4 is not measured"),
}


@pytest.mark.parametrize("kind", ["laplace", "gaussian"])
@pytest.mark.parametrize("case", REFUSED)
def test_what_is_refused(case, kind):
    tree, scales, extra, words = REFUSED[case]
    held = hf.consistent(tree) if extra is None else hf.consistent(tree) & extra
    made = MAKE[kind](hf.counts(tree), scale=scales)
    with pytest.raises(hf.Refused, match=words) as caught:
        made.given(held).simulate(tree.sum_up(np.array([1, 2, 3])[: len(tree.leaves)]), 1)
    assert "measure " in str(caught.value)
