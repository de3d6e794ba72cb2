"""Sizes that real tables have: everything stays sparse and takes seconds at most."""

from __future__ import annotations

import math

import numpy as np
import pytest

from holdfast.arguments import Refused
from holdfast.constraints import (
    NullSpace,
    between,
    consistent,
    exact_margins,
    exact_nodes,
    fixed,
    invariant,
    nonnegative,
    ordered,
)
from holdfast.domains import Hierarchy


def large_tree(n: int = 100_000) -> Hierarchy:
    rng = np.random.default_rng(3)
    above = np.maximum(0, np.arange(1, n) // 4 - rng.integers(0, 6, size=n - 1))
    return Hierarchy.from_parents(np.concatenate([[-1], np.minimum(above, np.arange(n - 1))]))


@pytest.mark.slow
@pytest.mark.timeout(60)
def test_a_tree_of_a_hundred_thousand_nodes() -> None:
    tree = large_tree()
    rng = np.random.default_rng(0)
    leaves = tree.leaves[:5]
    constraint = consistent(tree) & nonnegative() & fixed(leaves, 7) & invariant(exact_nodes(tree, "level 3"))
    system = constraint.system(tree.n)
    values = rng.integers(0, 9, size=tree.n_leaves)
    values[:5] = 7
    table = tree.sum_up(values)
    assert system.violation(table) is None
    table[tree.leaves[77]] += 1
    assert system.violation(table) == f"consistency at node {tree.parents[tree.leaves[77]]}"
    space = system.null_space()
    moved = space.project(rng.normal(size=(tree.n, 2)))
    assert np.abs(space.rows @ moved).max() < 1e-10
    assert space.pinned_coordinates()[tree.nodes_at(3)].all()
    basis = space.lattice_basis()
    assert basis.shape == (tree.n, space.dimension)
    assert space.contains(basis[:, :100]).all()
    whole = consistent(tree).system(tree.n).null_space()
    assert whole.lattice_basis().nnz == int((tree.depth[tree.leaves] + 1).sum())
    with pytest.raises(Refused) as refusal:
        constraint & between(None, 30, at=0) & between(None, 10**6)
    assert str(refusal.value) == (
        f"these constraints cannot hold together: consistent({tree.n} nodes); nonnegative; "
        f"fixed(at=[{', '.join(map(str, leaves))}]); between(−inf, 30, at=[0])"
    )


@pytest.mark.timeout(60)
def test_a_deep_tree_has_a_sparse_basis() -> None:
    n = 20_001  # a spine with one leaf beside every node
    parents = np.concatenate([[-1], np.repeat(2 * np.arange(n // 2), 2)])
    tree = Hierarchy.from_parents(parents)
    space = consistent(tree).system(n).null_space()
    basis = space.lattice_basis()
    assert space.contains(basis[:, ::20]).all()
    assert basis.shape == (n, tree.n_leaves)
    assert basis.nnz < 5 * n


@pytest.mark.slow
@pytest.mark.timeout(60)
def test_margins_at_the_size_of_the_papers_example() -> None:
    shape = (4, 6, 7, 5, 8)
    keep = [(0, 1, 2), (1, 3, 4), (2, 3, 4), (0, 4)]
    figures = exact_margins(shape, keep)
    assert figures.n == 6720
    rows = figures.rows()
    assert rows.count == sum(math.prod(shape[a] for a in margin) for margin in keep) == 720
    space = invariant(figures).system(6720).null_space()
    generic = NullSpace.of(rows.A)
    assert space.rank == generic.rank
    cells = np.random.default_rng(0).normal(size=(6720, 3))
    np.testing.assert_allclose(space.project(cells), generic.project(cells), atol=1e-9)
    assert space.contains(space.lattice_basis()).all()
    assert space.lattice_basis().shape == (6720, 6720 - space.rank)
    assert not space.pinned_coordinates().any()
    empty = (invariant(figures) & fixed(np.arange(0, 6720, 60), 0)).system(6720).null_space()
    assert empty.rank > space.rank
    assert empty.pinned_coordinates()[::60].all()


@pytest.mark.slow
@pytest.mark.timeout(60)
def test_long_orders_and_many_bounds() -> None:
    n = 50_000
    constraint = ordered(range(n)) & between(0, 10) & fixed([0, n - 1], [0, 10])
    system = constraint.system(n)
    assert system.holds(np.linspace(0, 10, n))
    assert not system.holds(np.linspace(10, 0, n))


def test_whole_bounds_are_shared_and_cannot_be_written():
    system = (consistent(large_tree()) & nonnegative()).system(100_000)
    for low, high in (system.integer_bounds(), system.integer_bounds(0.5)):
        for bounds in (low, high):
            with pytest.raises(ValueError, match="read-only"):
                bounds[0] = 7
    assert np.shares_memory(system.integer_bounds()[0], system.lower)
    assert system.lower[0] == 0
