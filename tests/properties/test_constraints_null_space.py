"""Null spaces: projections against dense linear algebra, lattices against enumeration and Smith forms."""

from __future__ import annotations

import itertools
import math
import pickle

import flint
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from holdfast.arguments import Refused
from holdfast.constraints import NullSpace, consistent, equals, exact_margins, exact_nodes, fixed, invariant
from holdfast.constraints.system.null_space import determined_sums
from holdfast.domains import Hierarchy
from holdfast.exact.elimination import eliminate, peels
from holdfast.exact.lattice_bases import lattice_basis, path_basis

REPEATABLE = settings(deadline=None, max_examples=60, derandomize=True)


@st.composite
def matrices(draw: st.DrawFn, largest: int = 6) -> np.ndarray:
    m, n = draw(st.integers(1, 4)), draw(st.integers(1, 6))
    rows = draw(st.lists(st.lists(st.integers(-largest, largest), min_size=n, max_size=n), min_size=m, max_size=m))
    return np.array(rows, dtype=np.int64)


def is_lattice_basis(A: np.ndarray, B: np.ndarray) -> bool:
    """A·B = 0, full rank n − rank A, and index 1: all invariant factors of B are 1."""
    rank = flint.fmpz_mat(A.tolist()).rank() if A.size else 0
    if (A.astype(object) @ B.astype(object)).any() or B.shape[1] != A.shape[1] - rank:
        return False
    if B.shape[1] == 0:
        return True
    smith = flint.fmpz_mat(B.tolist()).snf()
    return all(abs(int(smith[i, i])) == 1 for i in range(B.shape[1]))


def test_the_check_of_lattice_bases_rejects_a_sublattice() -> None:
    A = np.array([[1, 1, 1]])
    assert is_lattice_basis(A, np.array([[1, 0], [-1, 1], [0, -1]]))
    assert not is_lattice_basis(A, np.array([[2, 0], [-2, 1], [0, -1]]))
    assert not is_lattice_basis(A, np.array([[1], [-1], [0]]))
    assert not is_lattice_basis(A, np.array([[1, 0], [-1, 1], [0, 1]]))


@REPEATABLE
@given(matrices())
def test_rank_and_projection_are_those_of_dense_linear_algebra(A: np.ndarray) -> None:
    n = A.shape[1]
    space = NullSpace.of(sparse.csr_array(A))
    assert space.rank == flint.fmpz_mat(A.tolist()).rank()
    assert space.dimension == n - space.rank
    assert space.is_zero == (space.rank == n)
    dense = np.eye(n) - np.linalg.pinv(A.astype(float)) @ A
    np.testing.assert_allclose(space.project(np.eye(n)), dense, atol=1e-12)
    vector = np.arange(1.0, n + 1)
    np.testing.assert_allclose(space.project(vector), dense @ vector, atol=1e-11)


@REPEATABLE
@given(matrices(), st.integers(0, 10**6))
def test_projection_is_idempotent_symmetric_and_into_the_space(A: np.ndarray, seed: int) -> None:
    n = A.shape[1]
    space = NullSpace.of(sparse.csr_array(A))
    x = np.random.default_rng(seed).normal(size=(n, 3))
    once = space.project(x)
    np.testing.assert_allclose(space.project(once), once, atol=1e-12)
    np.testing.assert_allclose(x.T @ once, once.T @ x, atol=1e-12)
    assert space.contains(once).all()
    np.testing.assert_allclose(A @ once, 0, atol=1e-11)


@REPEATABLE
@given(matrices(), st.integers(0, 10**6))
def test_weighted_projection_is_its_formula(A: np.ndarray, seed: int) -> None:
    n = A.shape[1]
    rng = np.random.default_rng(seed)
    x, variances = rng.normal(size=(n, 2)), rng.uniform(0.1, 10, size=n)
    S = np.diag(variances)
    expected = x - S @ A.T @ np.linalg.pinv(A @ S @ A.T) @ A @ x
    space = NullSpace.of(sparse.csr_array(A))
    np.testing.assert_allclose(space.project_weighted(x, variances), expected, atol=1e-9)
    np.testing.assert_allclose(space.project_weighted(x[:, 0], variances), expected[:, 0], atol=1e-9)
    np.testing.assert_allclose(space.project_weighted(x, np.ones(n)), space.project(x), atol=1e-11)


@REPEATABLE
@given(matrices())
def test_lattice_bases_have_index_one(A: np.ndarray) -> None:
    assert is_lattice_basis(A, NullSpace.of(sparse.csr_array(A)).lattice_basis().toarray())


@REPEATABLE
@given(matrices())
def test_lattice_bases_have_index_one_without_any_pivot_of_one(A: np.ndarray) -> None:
    rough = A * np.array([2, 3, 6, 10, 15, 14])[: A.shape[1]]
    assert is_lattice_basis(rough, NullSpace.of(sparse.csr_array(rough)).lattice_basis().toarray())


def test_every_whole_vector_of_the_space_in_a_box_is_a_whole_combination() -> None:
    rng = np.random.default_rng(5)
    box = np.array(list(itertools.product(range(-4, 5), repeat=4)))
    for _ in range(25):
        A = rng.integers(-4, 5, size=(2, 4))
        space = NullSpace.of(sparse.csr_array(A))
        B = space.lattice_basis().toarray()
        members = box[~(box @ A.T).any(axis=1)]
        np.testing.assert_array_equal(space.contains(box.T), ~(box @ A.T).any(axis=1))
        weights, *_ = np.linalg.lstsq(B.astype(float), members.T.astype(float), rcond=None)
        np.testing.assert_allclose(weights, np.rint(weights), atol=1e-8)
        np.testing.assert_array_equal(B @ np.rint(weights).astype(int), members.T)


@REPEATABLE
@given(matrices(3))
def test_whole_projections_are_recognised_exactly(A: np.ndarray) -> None:
    n = A.shape[1]
    space = NullSpace.of(sparse.csr_array(A))
    rows = flint.fmpz_mat(space.rows.toarray().tolist()) if space.rank else None
    for column in np.eye(n, dtype=int):
        if rows is None:
            whole = True
        else:
            A_q = flint.fmpq_mat(rows)
            d = flint.fmpq_mat(flint.fmpz_mat([[int(v)] for v in column]))
            moved = A_q.transpose() * (A_q * A_q.transpose()).inv() * A_q * d
            whole = all(moved[i, 0].q == 1 for i in range(n))
        assert space.projects_integers(column) == whole
    pinned = space.pinned_coordinates()
    dense = np.eye(n) - np.linalg.pinv(A.astype(float)) @ A
    np.testing.assert_array_equal(pinned, np.abs(np.diag(dense)) < 1e-9)


def test_projecting_many_columns_to_whole_numbers_finds_the_one_that_fails() -> None:
    total = invariant(np.ones(4, dtype=int)).system(4).null_space()
    moves = np.array([[1, 0, 0], [-1, 1, 0], [0, -1, 1], [0, 0, -1]])
    assert total.projects_integers(moves)
    assert not total.projects_integers(np.eye(4, dtype=int))
    assert not total.projects_integers(np.concatenate([np.tile(moves, 200), [[1], [0], [0], [0]]], axis=1))
    assert total.projects_integers(sparse.csc_array(4 * np.eye(4, dtype=int)))


@pytest.mark.parametrize(
    ("shape", "keep"),
    [
        ((3, 4), [(0,), (1,)]),
        ((3, 4), [()]),
        ((2, 3, 4), [(0, 1), (1, 2)]),
        ((2, 3, 4), [(0, 1), (2,)]),
        ((2, 3, 4), [(0, 1), (1, 2), (0, 2)]),
        ((2, 3, 4), [(1,), (2, 1), ()]),
        ((1, 3, 2), [(0, 1), (2,)]),
        ((2, 2, 2, 3), [(0, 1), (1, 2, 3), (0, 3)]),
        ((2, 3), [(0, 1)]),
        ((2, 3), [(1, 0), (0,)]),
    ],
)
def test_margins_know_their_rank_rows_and_lattice(shape: tuple[int, ...], keep: list[tuple[int, ...]]) -> None:
    figures = exact_margins(shape, keep)
    space = invariant(figures).system(figures.n).null_space()
    C = figures.rows().A.toarray()
    cells = np.arange(figures.n).reshape(shape)
    rng = np.random.default_rng(1)
    table = rng.integers(0, 9, size=shape)
    expected = [table.sum(axis=tuple(a for a in range(len(shape)) if a not in margin)).ravel() for margin in keep]
    np.testing.assert_array_equal(C @ table.ravel(), np.concatenate(expected))
    assert cells.size == figures.n
    # rank: over all sets of axes inside some margin, the product of (side − 1)
    inside = {frozenset(s) for m in keep for k in range(len(m) + 1) for s in itertools.combinations(m, k)}
    rank = sum(math.prod(shape[a] - 1 for a in s) for s in inside)
    assert space.rank == rank == np.linalg.matrix_rank(C)
    assert np.linalg.matrix_rank(space.rows.toarray()) == rank
    assert np.linalg.matrix_rank(np.concatenate([C, space.rows.toarray()])) == rank
    assert is_lattice_basis(C, space.lattice_basis().toarray())
    assert space.cube_margins == (shape, tuple(tuple(sorted(margin)) for margin in keep))
    generic = NullSpace.of(figures.rows().A)
    assert generic.rank == rank
    np.testing.assert_allclose(generic.project(np.eye(figures.n)), space.project(np.eye(figures.n)), atol=1e-12)


@REPEATABLE
@given(st.lists(st.integers(0, 10**6), min_size=1, max_size=12), st.integers(1, 2))
def test_trees_have_one_move_per_leaf(choices: list[int], by: int) -> None:
    tree = Hierarchy.from_parents([-1, *(choice % (i + 1) for i, choice in enumerate(choices))])
    space = consistent(tree).system(tree.n).null_space()
    A = space.rows.toarray()
    B = space.lattice_basis().toarray()
    assert is_lattice_basis(A, B)
    assert B.shape[1] == tree.n_leaves
    np.testing.assert_array_equal(B, tree.sum_up(np.eye(tree.n_leaves, dtype=int)))
    wide = path_basis(tree.parents, tree.leaves, by)
    assert wide is not None
    assert wide.shape == (tree.n * by, tree.n_leaves * by)
    np.testing.assert_array_equal(wide.toarray(), np.kron(B, np.eye(by, dtype=int)))
    assert is_lattice_basis(A, lattice_basis(eliminate(space.rows)).toarray())


@REPEATABLE
@given(st.lists(st.integers(0, 10**6), min_size=2, max_size=12), st.data())
def test_exact_nodes_of_a_tree_pin_what_follows_from_them(choices: list[int], data: st.DataObject) -> None:
    tree = Hierarchy.from_parents([-1, *(choice % (i + 1) for i, choice in enumerate(choices))])
    nodes = data.draw(st.lists(st.integers(0, tree.n - 1), min_size=1, unique=True))
    constraint = consistent(tree) & invariant(exact_nodes(tree, nodes))
    space = constraint.system(tree.n).null_space()
    stacked = np.concatenate([consistent(tree).system(tree.n).equalities.A.toarray(), np.eye(tree.n, dtype=int)[nodes]])
    assert space.rank == np.linalg.matrix_rank(stacked)
    assert is_lattice_basis(stacked, space.lattice_basis().toarray())
    pinned = space.pinned_coordinates()
    assert pinned[nodes].all()
    expected = [np.linalg.matrix_rank(np.vstack([stacked, row])) == space.rank for row in np.eye(tree.n)]
    np.testing.assert_array_equal(pinned, expected)
    alone = constraint.system(tree.n).null_space(structural=False)
    assert alone.rank == len(nodes)
    assert constraint.system(tree.n).null_space(invariants=False).rank == tree.n - tree.n_leaves


def test_rows_beyond_doubles_keep_their_rank() -> None:
    # the two rows differ by 1 in 2**61: dependent in doubles, independent in truth
    A = sparse.csr_array(np.array([[2**61, 1], [2**61 - 1, 1]]))
    assert NullSpace.of(A).rank == 2
    assert NullSpace.of(sparse.csr_array(np.array([[2**60, 2**30], [2**61, 2**31]]))).rank == 1
    assert not NullSpace.of(sparse.csr_array(np.array([[2**61, -(2**61), 1]]))).contains(np.array([4, 4, 1]))


def test_extreme_null_spaces() -> None:
    everything = nonempty = fixed(0, 1).system(3).null_space(structural=False)
    assert everything.rank == 0
    assert nonempty.lattice_basis().toarray().tolist() == np.eye(3, dtype=int).tolist()
    assert not everything.pinned_coordinates().any()
    assert everything.projects_integers(np.eye(3, dtype=int))
    nothing = fixed([0, 1, 2], 0).system(3).null_space()
    assert nothing.is_zero
    assert nothing.lattice_basis().shape == (3, 0)
    assert nothing.pinned_coordinates().all()
    assert not nothing.project(np.ones((3, 2))).any()
    assert nothing.contains(np.zeros(3, dtype=int)) is True
    assert nothing.contains(np.array([0, 1, 0])) is False


def test_a_null_space_survives_a_journey_between_processes() -> None:
    space = equals([[1, 1, 1], [1, -1, 0]], [0, 0]).system(3).null_space()
    before = space.project(np.array([1.0, 2.0, 4.0]))
    after = pickle.loads(pickle.dumps(space)).project(np.array([1.0, 2.0, 4.0]))
    np.testing.assert_array_equal(before, after)


def test_a_union_has_no_null_space_and_too_hard_lattices_are_refused() -> None:
    with pytest.raises(Refused, match="a union has no null space of its own"):
        (fixed(0, 1) | fixed(0, 2)).system(1).null_space()
    rng = np.random.default_rng(0)
    rough = sparse.csr_array(2 * rng.integers(2, 9, size=(1, 401)) + (np.arange(401) == 0))
    with pytest.raises(Refused, match="reduction of 401 columns"):
        NullSpace.of(rough).lattice_basis()


def test_bad_columns_are_refused() -> None:
    space = equals([1, 1, 1], 0).system(3).null_space()
    for bad in (np.zeros(2), np.zeros((2, 3)), np.zeros((3, 1, 1))):
        with pytest.raises(Refused, match="columns must"):
            space.project(bad)
        with pytest.raises(Refused, match="columns must"):
            space.contains(bad)
    with pytest.raises(Refused, match="position 1 is not finite"):
        space.project([0, np.nan, 0])
    with pytest.raises(Refused, match="variances must be above 0, but the entry at position 1"):
        space.project_weighted(np.zeros(3), [1, 0, 1])
    with pytest.raises(Refused, match="variances must have shape"):
        space.project_weighted(np.zeros(3), [1, 1])
    with pytest.raises(Refused, match="whole numbers"):
        space.projects_integers(np.full(3, 0.5))


@REPEATABLE
@given(matrices(1))
def test_rows_that_peel_are_independent(A):
    rank = flint.fmpz_mat(A.tolist()).rank()
    assert rank == len(A) or not peels(sparse.csr_array(A))
    assert NullSpace.of(sparse.csr_array(A)).rank == rank


def test_trees_peel_and_repeated_or_empty_rows_do_not():
    tree = Hierarchy.from_parents([-1, 0, 0, 1, 1, 2, 5, 5])
    rows = (consistent(tree) & invariant(exact_nodes(tree, [0, 2]))).system(tree.n)
    both = sparse.csr_array(sparse.vstack([rows.equalities.A, rows.invariants.A]))
    assert peels(both)
    assert not peels(sparse.csr_array(sparse.vstack([both, both[:1]])))
    assert not peels(sparse.csr_array(np.array([[1, 1], [0, 0]])))
    stored = sparse.csr_array((np.array([1, 0]), np.array([0, 1]), np.array([0, 1, 2])), shape=(2, 2))
    assert not peels(stored)


def test_a_margin_is_the_same_whichever_way_its_axes_are_named():
    """Rows, basis and names of (2, 0) are those of (0, 2)."""
    one, other = (invariant(exact_margins((2, 3, 2), keep)).system(12) for keep in ([(2, 0), (1,)], [(0, 2), (1,)]))
    assert (one.invariants.A != other.invariants.A).nnz == 0
    assert (one.null_space().lattice_basis() != other.null_space().lattice_basis()).nnz == 0
    assert str(invariant(exact_margins((2, 3), [(1, 0)]))) == str(invariant(exact_margins((2, 3), [(0, 1)])))


def test_sums_of_a_table_that_is_known_altogether_are_known():
    space = NullSpace.of(sparse.csr_array(np.eye(3, dtype=np.int64)))
    assert determined_sums(space, sparse.csr_array(np.array([[1, 1, 0], [0, 1, 1]]))).all()
