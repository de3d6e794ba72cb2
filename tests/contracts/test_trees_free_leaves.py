"""Leaves of a hierarchy that are not measured: what is refused, larger trees, and the forest that is drawn."""

import numpy as np
import pytest

import holdfast as hf
from free_leaves import FOREST, INF, MAKE, THREE
from holdfast.trees.shape.forest import Forest
from holdfast.trees.shape.free_leaves import FreeLeaves

REFUSED = {
    "two free leaves": (THREE, [1, 1, 1, INF, INF, 1], None, "positions 3 and 4"),
    "two free branches": (THREE, [1, INF, INF, 1, INF, INF], None, "positions 1 and 2"),
    "a free root": (FOREST, [1, 1, INF, 1, INF], None, "position 2"),
    "a bound on a free leaf": (THREE, [1, 1, 1, 1, INF, 1], hf.between(0, None, at=4), "position 4 has a bound"),
    "a bound above a free leaf": (THREE, [1, INF, 1, 1, INF, 1], hf.between(0, 9, at=1), "position 1 has a bound"),
    "bounds everywhere": (THREE, [1, 1, 1, 1, INF, 1], hf.nonnegative(), "position 4 has a bound"),
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


def test_the_forest_that_is_drawn():
    parents = np.array([-1, 0, 0, 1, 1, 2, 2, 0])
    measured = np.array([True, False, True, True, False, True, True, True])
    found = FreeLeaves.of(Forest(parents, np.zeros(8, dtype=bool)), measured, np.zeros(8, dtype=bool))
    assert found.free.tolist() == [1, 4]
    assert found.kept.tolist() == [0, 2, 3, 5, 6, 7]
    assert found.forest.parents.tolist() == [-1, -1, -1, 1, 1, -1]
    assert found.filled(np.array([[10, 2, 3, 1, 1, 4]])).tolist() == [[10, 4, 2, 3, 1, 1, 1, 4]]
    weights = np.arange(8.0) ** 2
    assert found.moved(weights) @ [10, 2, 3, 1, 1, 4] == weights @ [10, 4, 2, 3, 1, 1, 1, 4]
    assert sorted(found.parts(4).tolist()) == [0, 1, 2, 5]


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["laplace", "gaussian"])
def test_a_city_with_one_free_zone_in_every_borough(kind):
    """Everything adds up, draws agree with the stated errors, and rows do not depend on how they are asked for."""
    sizes = [43, 61, 1, 69, 69, 20]
    tree = hf.Hierarchy.from_parents([-1, *[0] * 6, *np.repeat(np.arange(1, 7), sizes)])
    scales = np.full(tree.n, 3.0)
    free = 7 + np.cumsum([0, *sizes[:-1]])
    scales[free] = INF
    made = MAKE[kind](hf.counts(tree), scale=scales).given(hf.consistent(tree))
    draws = made.noise(3_000, rng=hf.seeded(2))
    assert np.array_equal(draws, tree.sum_up(draws[:, tree.leaves].T).T)
    assert np.array_equal(draws, made.noise(3_000, rng=hf.seeded(2)))
    errors = made.standard_error()
    assert draws.std(axis=0) == pytest.approx(errors, rel=0.15)
    # a borough's zones are independent now, and the free one takes up their noise
    each = np.sqrt(errors[1] ** 2 + (sizes[0] - 1) * errors[8] ** 2)
    assert errors[free[0]] == pytest.approx(each, rel=1e-9)


def test_categories():
    query = hf.counts(hf.Hierarchy.from_parents([-1, 0, 0]), by=2)
    made = hf.laplace(query, scale=[1, 1, 1, 1, INF, 1]).given(hf.consistent(query))
    draws = made.noise(200, rng=hf.seeded(3))
    assert np.array_equal(draws[:, :2], draws[:, 2:4] + draws[:, 4:])
    assert made.standard_error()[4] == pytest.approx(np.sqrt(2) * made.standard_error()[0], rel=1e-9)
