"""Hierarchies and cubes against plain Python on random shapes, frames of every make, and large trees."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.arguments import LARGEST
from holdfast.domains import Cube, Hierarchy
from holdfast.domains.intervals import bound_downwards, bound_upwards


@st.composite
def forests(draw):
    n = draw(st.integers(1, 30))
    above = [draw(st.integers(-1, v - 1)) for v in range(n)]
    shuffle = draw(st.permutations(range(n)))
    parents = [0] * n
    for v in range(n):
        parents[shuffle[v]] = -1 if above[v] < 0 else shuffle[above[v]]
    return parents


def ancestors(parents, v):
    path = []
    while v >= 0:
        path.append(v)
        v = parents[v]
    return path


@pytest.mark.slow
@settings(max_examples=150, deadline=None, derandomize=True)
@given(forests())
def test_structure_of_any_forest(parents):
    tree = Hierarchy.from_parents(parents)
    n = len(parents)
    assert tree.n == n
    assert tree.depth.tolist() == [len(ancestors(parents, v)) - 1 for v in range(n)]
    leaves = [v for v in range(n) if v not in parents]
    assert tree.leaves.tolist() == leaves
    assert tree.leaves.dtype == np.int64
    assert tree.n_leaves == len(leaves)
    assert tree.is_leaf.tolist() == [v in leaves for v in range(n)]
    assert tree.roots.tolist() == [v for v in range(n) if parents[v] < 0]
    for v in range(n):
        assert tree.children_of(v).tolist() == [c for c in range(n) if parents[c] == v]
        assert tree.path(v) == tuple(str(a) for a in reversed(ancestors(parents, v)))
        assert tree.find(*tree.path(v)) == v
    assert sorted(tree.order) == list(range(n))
    assert (np.diff(tree.depth[tree.order]) >= 0).all()
    for d, name in enumerate(tree.levels):
        at = [v for v in range(n) if tree.depth[v] == d]
        assert tree.nodes_at(name).tolist() == tree.nodes_at(d).tolist() == at
        assert sorted(tree.order[tree.level_start[d] : tree.level_start[d + 1]]) == at
    siblings = [tuple(tree.parents[v] for v in tree.order if tree.depth[v] == d) for d in range(len(tree.levels))]
    for row in siblings:  # children of one node stand together
        assert len([k for k, _ in itertools.groupby(row)]) == len(set(row))


@settings(max_examples=100, deadline=None, derandomize=True)
@given(forests(), st.integers(0, 2**32))
def test_sums_are_exact_in_whole_numbers(parents, seed):
    tree = Hierarchy.from_parents(parents)
    rng = np.random.default_rng(seed)
    values = rng.integers(-(2**50), 2**50, (tree.n_leaves, 2))
    expected = np.zeros((tree.n, 2), dtype=object)
    for leaf, row in zip(tree.leaves, values.tolist(), strict=True):
        for v in ancestors(parents, leaf):
            expected[v] += np.array(row, dtype=object)
    both = tree.sum_up(values)
    assert both.dtype == np.int64
    assert (both == expected).all()
    assert (tree.sum_up(values[:, 0]) == expected[:, 0]).all()
    real = tree.sum_up(values / 7)
    assert real.dtype == np.float64
    assert np.allclose(real, expected.astype(float) / 7)


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pl.LazyFrame, pa.table])
def test_any_frame_gives_the_same_tree(make):
    columns = {"zone": ["b", "a", "a", "c"], "borough": ["y", "y", "x", "y"], "other": [1, 2, 3, 4]}
    tree = Hierarchy.from_frame(make(columns), levels=["borough", "zone"], root="city")
    assert tree.levels == ("city", "borough", "zone")
    assert tree.names.tolist() == ["city", "y", "x", "b", "a", "a", "c"]
    assert tree.parents.tolist() == [-1, 0, 0, 1, 1, 2, 1]
    assert tree.find("city", "x", "a") == 5
    assert tree.path(4) == ("city", "y", "a")
    assert tree.sum_up([1, 2, 4, 8]).tolist() == [15, 11, 4, 1, 2, 4, 8]
    forest = Hierarchy.from_frame(make(columns), levels=["borough", "zone"])
    assert forest.levels == ("borough", "zone")
    assert forest.roots.tolist() == [0, 1]
    assert "forest of 2 trees" in repr(forest)


def test_sums_that_leave_64_bits_on_the_way_are_exact():
    tree, large = Hierarchy.from_parents([-1, *[0] * 6]), 2**62 - 1
    assert tree.sum_up([large, large, large, -large, -large, 5 - large])[0] == 5


@pytest.mark.parametrize("seed", range(40))
def test_bounds_of_two_passes_are_the_least_and_the_largest_of_all_tables(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 8))
    parents = np.array([-1, *(rng.integers(0, v) for v in range(1, n))])
    tree = Hierarchy.from_parents(parents)
    low, high = np.full(n, -LARGEST), np.full(n, LARGEST)
    low[tree.leaves] = rng.integers(-2, 2, tree.n_leaves)
    high[tree.leaves] = low[tree.leaves] + rng.integers(0, 4, tree.n_leaves)
    bounded = rng.random(n) < 0.4
    low[bounded & ~tree.is_leaf], high[bounded & ~tree.is_leaf] = -1, 2
    every = itertools.product(*(range(low[leaf], high[leaf] + 1) for leaf in tree.leaves))
    tables = np.array([tree.sum_up(list(leaves)) for leaves in every])
    tables = tables[((tables >= low) & (tables <= high)).all(axis=1)]
    passed = tree.child_start, tree.children, tree.order
    crossed = bound_upwards(*passed, low, high, 0.0)
    assert (crossed >= 0) == (not len(tables))
    if len(tables):
        bound_downwards(*passed, low, high)
        np.testing.assert_array_equal([low, high], [tables.min(axis=0), tables.max(axis=0)])


def test_deeper_levels_keep_the_order_of_first_appearance():
    rows = [("y", "p", "1"), ("x", "p", "1"), ("y", "q", "1"), ("x", "q", "2"), ("y", "p", "3")]
    frame = pl.DataFrame(rows, schema=["a", "b", "c"], orient="row")
    tree = Hierarchy.from_frame(frame, ["a", "b", "c"])
    assert tree.names.tolist() == ["y", "x", "p", "p", "q", "q", "1", "1", "1", "2", "3"]
    assert tree.parents.tolist() == [-1, -1, 0, 1, 0, 1, 2, 3, 4, 5, 2]
    for row, leaf in zip(rows, tree.leaves, strict=True):
        assert tree.path(int(leaf)) == row


def test_numbers_and_categories_serve_as_names():
    frame = pd.DataFrame({"a": pd.Categorical(["u", "v"]), "b": [7, 7]})
    tree = Hierarchy.from_frame(frame, ["a", "b"])
    assert tree.names.tolist() == ["u", "v", "7", "7"]
    mixed = Hierarchy.from_frame(pd.DataFrame({"a": [1, "1"], "b": ["p", "q"]}, dtype=object), ["a", "b"])
    assert mixed.names.tolist() == ["1", "p", "q"]


def test_named_nodes_and_levels():
    tree = Hierarchy.from_parents([-1, 0, 0], names=["all", "men", "women"], levels=["total", "sex"])
    assert tree.find("all", "women") == 2
    assert tree.nodes_at("sex").tolist() == [1, 2]
    assert tree.names.tolist() == ["all", "men", "women"]


def test_the_arrays_cannot_be_changed_and_the_input_is_copied():
    given_parents = np.array([-1, 0, 0])
    tree = Hierarchy.from_parents(given_parents)
    given_parents[1] = 2
    assert tree.parents.tolist() == [-1, 0, 0]
    for values in (tree.parents, tree.depth, tree.leaves, tree.order, tree.children, tree.names):
        with pytest.raises(ValueError, match="read-only"):
            values[0] = 5


def test_many_nodes_in_any_order_and_a_long_chain():
    n = 200_000
    rng = np.random.default_rng(61)
    above = (np.arange(n) - 1) // 3
    shuffle = rng.permutation(n)
    parents = np.empty(n, np.int64)
    parents[shuffle] = np.where(np.arange(n) > 0, shuffle[above], -1)
    tree = Hierarchy.from_parents(parents)
    assert tree.roots.tolist() == [shuffle[0]]
    assert tree.sum_up(np.ones(tree.n_leaves, int))[tree.roots[0]] == tree.n_leaves
    assert len(tree.levels) == int(np.ceil(np.log(2 * n + 1) / np.log(3)))  # full levels hold 3**d nodes
    chain = Hierarchy.from_parents(np.arange(20_000) - 1)
    assert len(chain.levels) == 20_000
    assert (chain.sum_up([3]) == 3).all()


@pytest.mark.parametrize("shape", [(3,), (2, 3), (2, 1, 4), (3, 2, 2, 2)])
def test_margin_arithmetic_of_a_cube(shape):
    cube = Cube(shape)
    table = np.arange(cube.cells).reshape(shape) ** 2
    assert (cube.coordinates(np.arange(cube.cells)) == np.array(list(np.ndindex(*shape)))).all()
    for k in range(len(shape) + 1):
        for keep in itertools.combinations(range(len(shape)), k):
            summed = table.sum(axis=tuple(a for a in range(len(shape)) if a not in keep)).ravel()
            assert (cube.margin_rows(keep) @ table.ravel() == summed).all()
            index = cube.margin_index(keep)
            assert (np.bincount(index, table.ravel(), len(summed)) == summed).all()
            some = [0, cube.cells - 1]
            assert (cube.margin_index(keep, some) == index[some]).all()


def test_axes_by_name():
    cube = Cube((2, 3), names=["sex", "age"])
    assert cube.axes("age") == (1,)
    assert cube.axes(("sex", 1)) == (0, 1)
    assert cube.margin_name(()) == "total"
    assert cube.margin_name((0, 1)) == "sex × age"
    assert cube.margin_shape("age") == (3,)
    assert Cube(5).shape == (5,)
    assert Cube((2, 3)) == Cube([2, 3])
    assert Cube((2**20, 2**20)).cells == 2**40
