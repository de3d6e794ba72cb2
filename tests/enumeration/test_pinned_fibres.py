"""Ranges that exact figures leave, against lists of all tables that have these figures."""

from itertools import product

import numpy as np
import pytest
from scipy import sparse

import holdfast as hf


def tables(A, b, most):
    """Every table of counts up to `most` with A x = b, by depth-first search over the cells."""
    A = np.asarray(A)
    cells = A.shape[1]
    assert (A >= 0).all()
    found, x = [], [0] * cells
    columns = [np.flatnonzero(A[:, j]).tolist() for j in range(cells)]
    last = [int(np.flatnonzero(row)[-1]) if row.any() else -1 for row in A]
    left = [int(side) for side in b]

    def search(j):
        if j == cells:
            found.append(x.copy())
            return
        for value in range(most + 1):
            for i in columns[j]:
                left[i] -= int(A[i, j]) * value
            x[j] = value
            if all(left[i] >= 0 for i in columns[j]) and all(left[i] == 0 for i in columns[j] if last[i] == j):
                search(j + 1)
            for i in columns[j]:
                left[i] += int(A[i, j]) * value
            if any(left[i] < int(A[i, j]) * value for i in columns[j]):
                break

    search(0)
    return np.array(found).reshape(-1, cells)


def rows_over_cells(query, constraint):
    C = constraint.system(query.n).invariants.A
    return (C @ sparse.csr_array(query.columns)).toarray()


def check(found, expected_outputs, everything=True):
    low, high = expected_outputs.min(axis=0), expected_outputs.max(axis=0)
    assert (found.low <= low).all()
    assert (found.high >= high).all()
    if everything:
        assert found.low.tolist() == low.tolist()
        assert found.high.tolist() == high.tolist()
        assert found.attained.all()
    assert np.array_equal(found.width == 0, low == high)
    assert found.undecided.size == 0
    assert np.array_equal(found.varies, low < high)


@pytest.mark.parametrize("seed", range(20))
def test_hierarchies(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(3, 9))
    tree = hf.Hierarchy.from_parents([-1, *(int(rng.integers(0, i)) for i in range(1, n))])
    by = int(rng.integers(1, 3))
    query = hf.counts(tree, by=by)
    truth = query.answer(rng.poisson(0.8, size=query.cells))
    nodes = np.unique(np.concatenate([[0], rng.integers(0, n, size=int(rng.integers(0, 4)))]))
    constraint = hf.invariant(hf.exact_nodes(tree, nodes, by=by)) & hf.consistent(query)
    if seed % 3 == 0:
        cap = int(rng.integers(0, query.n))
        constraint = constraint & hf.between(None, int(truth[cap]) + 1, at=[cap])
    A = rows_over_cells(query, constraint)
    system = constraint.system(query.n)
    listed = tables(A, system.invariants.A @ truth, int(truth.max()))
    outputs = np.array([query.answer(x) for x in listed])
    outputs = outputs[(outputs <= system.integer_bounds()[1]).all(axis=1)]
    check(hf.pinned(query, constraint, truth=truth), outputs)


@pytest.mark.parametrize(
    ("shape", "keep"),
    [
        ((2, 3), [(0,), (1,)]),
        ((3, 3), [(0,), (1,), ()]),
        ((2, 2, 2), [(0, 1), (0, 2)]),
        ((2, 1, 3), [(0, 1), (2,)]),
        ((2, 2, 2), [(0,), (1,)]),
        ((2, 3), [(0,)]),
        ((2, 2), [(0, 1)]),
        ((2, 3), [()]),
    ],
)
@pytest.mark.parametrize("seed", range(4))
def test_margins_in_closed_form(shape, keep, seed):
    rng = np.random.default_rng(seed)
    query = hf.margins(shape)
    truth = rng.poisson(0.7, size=query.n)
    constraint = hf.invariant(hf.exact_margins(shape, keep))
    listed = tables(rows_over_cells(query, constraint), constraint.system(query.n).invariants.A @ truth, truth.sum())
    check(hf.pinned(query, constraint, truth=truth), listed)


@pytest.mark.parametrize("shape", [(2, 2, 2), (2, 2, 3), (2, 3, 3), (3, 3, 3)])
@pytest.mark.parametrize("seed", range(4))
def test_three_way_cubes_with_all_two_way_margins(shape, seed):
    rng = np.random.default_rng(seed)
    query = hf.margins(shape)
    truth = rng.poisson(0.5 if shape == (3, 3, 3) else 0.9, size=query.n)
    constraint = hf.invariant(hf.exact_margins(shape, [(0, 1), (0, 2), (1, 2)]))
    listed = tables(rows_over_cells(query, constraint), constraint.system(query.n).invariants.A @ truth, truth.sum())
    check(hf.pinned(query, constraint, truth=truth), listed)
    margins = hf.margins(shape, keep=[(0,), (1, 2)])
    sums = hf.pinned(query, constraint, truth=truth, of=margins)
    assert (sums.width == 0).all()
    assert sums.published.all()  # figures, and sums of them


@pytest.mark.parametrize("seed", range(12))
def test_any_workload(seed):
    rng = np.random.default_rng(seed)
    cells, outputs = int(rng.integers(3, 6)), int(rng.integers(2, 5))
    W = rng.integers(0, 3, size=(outputs, cells))
    W[0] = 1
    query = hf.workload(W)
    x = rng.poisson(1.0, size=cells)
    C = np.eye(outputs, dtype=int)[: int(rng.integers(1, outputs + 1))]
    constraint = hf.invariant(C)
    listed = tables(C @ W, C @ W @ x, x.sum())
    check(hf.pinned(query, constraint, truth=W @ x), listed @ W.T)
    check(hf.pinned(query, constraint, figures=C @ W @ x, of=hf.histogram(cells)), listed)


@pytest.mark.parametrize("seed", range(6))
def test_inequalities_and_fixed_cells(seed):
    rng = np.random.default_rng(seed)
    query = hf.margins((2, 2, 2))
    truth = rng.poisson(1.2, size=8)
    truth[3] = 0
    order = np.argsort(truth[:3], kind="stable").tolist()
    constraint = (
        hf.invariant(hf.exact_margins((2, 2, 2), [(0,), (1,), (2,)]))
        & hf.fixed([3], [0])
        & hf.ordered(order)
        & hf.between(None, int(truth[7]) + 1, at=[7])
    )
    A = rows_over_cells(query, constraint)
    listed = tables(A, A @ truth, truth.sum())
    fits = (listed[:, 3] == 0) & (np.diff(listed[:, order], axis=1) >= 0).all(axis=1) & (listed[:, 7] <= truth[7] + 1)
    found = hf.pinned(query, constraint, truth=truth)
    check(found, listed[fits])
    assert found.published[3]


def test_two_releases_pin_together():
    x = np.array([3, 1, 4])
    query = hf.histogram(3)
    one, two = hf.invariant([[1, 1, 0]]), hf.invariant([[0, 1, 0]])
    alone = [hf.pinned(query, c, truth=x).pinned.tolist() for c in (one, two)]
    assert alone == [[], []]
    both = hf.pinned(query, one, truth=x, earlier=[(query, two, [1])])
    assert both.pinned.tolist() == [0]
    assert (both.low[0], both.high[0]) == (3, 3)
    assert both.published.tolist() == [False, True, False]
    tree = hf.Hierarchy.from_parents([-1, 0, 0, 0])
    counts = hf.counts(tree)
    total = hf.invariant(hf.exact_nodes(tree, [0]))
    later = hf.pinned(
        counts, total, figures=[8], earlier=[(counts, hf.invariant(hf.exact_nodes(tree, [1, 3])), [3, 4])]
    )
    assert later.pinned.tolist() == [2]
    assert later.low[2] == 1


def test_sums_of_figures_are_not_called_pinned_but_differences_are():
    tree = hf.Hierarchy.from_parents([-1, 0, 0, 1, 1, 2, 2])
    query = hf.counts(tree)
    truth = query.answer([5, 6, 7, 8])
    found = hf.pinned(query, hf.exact_nodes(tree, [1, 2]), truth=truth)
    assert found.pinned.size == 0
    assert found.published.tolist() == [True] * 3 + [False] * 4
    assert hf.pinned(query, hf.exact_nodes(tree, [0, 1]), truth=truth).pinned.tolist() == [2]
    rows = hf.workload([[1, 1, 0, 0], [0, 0, 1, 1], [1, 1, 1, 1], [1, 0, 0, 0]])
    both = hf.pinned(rows, hf.invariant([[1, 0, 0, 0], [0, 1, 0, 0]]), figures=[11, 15])
    assert both.pinned.size == 0
    assert both.published.tolist() == [True, True, True, False]
    less = hf.pinned(rows, hf.invariant([[1, 0, 0, 0], [0, 0, 1, 0]]), figures=[11, 26])
    assert less.pinned.tolist() == [1]


def test_parity_pins_what_reals_leave_open():
    # 2x + 2y + z = 3 and z ≤ 1: z is odd, hence 1, although the reals allow 0 to 1
    query = hf.histogram(3)
    constraint = hf.invariant([[2, 2, 1]]) & hf.between(0, 1, at=[2])
    found = hf.pinned(query, constraint, figures=[3])
    assert found.pinned.tolist() == [2]
    assert found.low.tolist() == [0, 0, 1]
    assert found.high.tolist() == [1, 1, 1]


def test_cells_that_no_figure_bounds_have_no_limit():
    found = hf.pinned(hf.histogram(3), hf.invariant([[1, -1, 0]]), figures=[2])
    assert found.low.tolist() == [2, 0, 0]
    assert (found.high == 2**62).all()
    assert found.varies.all()
    assert found.attained.all()


def test_order_lists_pinned_outputs_first_and_leaves_out_what_is_published():
    shape = (2, 3)
    truth = np.array([0, 2, 1, 0, 0, 5])
    found = hf.pinned(hf.margins(shape), hf.exact_margins(shape, [(0,), (1,)]), truth=truth)
    order = found.order
    assert (np.diff(found.width[order]) >= 0).all()
    assert found.pinned.tolist() == [0, 3]  # the first column is empty
    assert set(found.narrow(0)) == {0, 3}
    assert "2 outputs are pinned" in str(found)


def test_every_small_table_of_two_by_two_by_two():
    constraint = hf.invariant(hf.exact_margins((2, 2, 2), [(0, 1), (0, 2), (1, 2)]))
    query = hf.margins((2, 2, 2))
    A = rows_over_cells(query, constraint)
    seen = {}
    for x in product(range(2), repeat=8):
        seen.setdefault(tuple((A @ np.array(x)).tolist()), []).append(x)
    for figures in list(seen)[::9]:
        listed = tables(A, figures, 8)
        check(hf.pinned(query, constraint, figures=figures), listed)


def test_rows_of_fractions_take_figures_as_they_were_written():
    query, half = hf.histogram(3), hf.invariant([[0.5, 0.25, 0], [0, 0, 1]])
    truth = np.array([1, 2, 4])
    found = hf.pinned(query, half, figures=[1, 4])  # x/2 + y/4 = 1: (0, 4), (1, 2) or (2, 0)
    assert found.low.tolist() == [0, 0, 4]
    assert found.high.tolist() == [2, 4, 4]
    read = hf.pinned(query, half, truth=truth)
    assert (read.low.tolist(), read.high.tolist()) == (found.low.tolist(), found.high.tolist())
    assert hf.pinned(query, half, figures=[0.25, 4]).pinned.tolist() == [0, 1]  # y = 1 and nothing else
    with pytest.raises(hf.Refused, match="entry 0 is not"):
        hf.pinned(query, half, figures=[0.1, 4])


def test_sums_without_a_least_value_in_several_parts():
    query = hf.histogram(4)
    found = hf.pinned(query, hf.invariant([[1, 0, 0, 0]]), [2], of=hf.workload([[2, -1, -1, -1], [1, 1, 0, 0]]))
    assert found.low.tolist() == [-(2**62), 2]
    assert found.high.tolist() == [4, 2**62]
    assert found.width.tolist() == [2**62, 2**62]
    assert found.pinned.size == 0


def test_an_inequality_that_says_nothing_about_cells_contradicts_nothing():
    tree = hf.Hierarchy.from_parents([-1, 0, 0])
    root = hf.invariant(hf.exact_nodes(tree, [0]))
    found = hf.pinned(hf.counts(tree), root & hf.at_least([[1, -1, -1]], [-1]), [5])
    assert (found.low.tolist(), found.high.tolist()) == ([5, 0, 0], [5, 5, 5])
    with pytest.raises(hf.Refused, match="contradict"):
        hf.pinned(hf.counts(tree), root & hf.at_least([[1, -1, -1]], [1]), [5])


def test_bounds_too_large_for_64_bits_are_never_added_up():
    rows = hf.invariant([[1, 1, 0, 0, 0], [2, 1, 1, 1, 1]])
    found = hf.pinned(hf.histogram(5), rows & hf.between(0, 2**62 - 1), [5, 30])
    assert found.low.tolist() == [0, 0, 0, 0, 0]
    assert found.high.tolist() == [5, 5, 25, 25, 25]
    with pytest.raises(hf.Refused, match="must be smaller"):
        hf.pinned(hf.histogram(3), hf.invariant([[3, -5, 7]]) & hf.between(0, 2**61), [5])
    # x₀ = 9 and every next cell is at most 7 times the last: the 30th bound has no room in 64 bits
    chain = hf.at_least(7 * np.eye(30, dtype=int)[:-1] - np.eye(30, k=1, dtype=int)[:-1], np.zeros(29, dtype=int))
    found = hf.pinned(hf.histogram(30), hf.invariant(np.eye(30, dtype=int)[:1]) & chain, [9], seconds=2)
    assert all(high >= min(9 * 7**k, 2**62) for k, high in enumerate(found.high.tolist()))
    assert found.high[:5].tolist() == [9 * 7**k for k in range(5)]


@pytest.mark.parametrize("seed", range(3))
def test_one_total_of_bounded_cells(seed):
    rng = np.random.default_rng(seed)
    low, high = np.sort(rng.integers(0, 4, (2, 4)), axis=0)
    truth = rng.integers(low, high + 1)
    query = hf.workload(np.array([[1, 0, 0, 0], [0, 1, 1, 0], [1, 0, 1, 1], [1, 1, 1, 1], [0, 0, 0, 1]]))
    listed = tables(np.ones((1, 4), dtype=int), [truth.sum()], 4)
    listed = listed[(listed >= low).all(axis=1) & (listed <= high).all(axis=1)]
    held = hf.invariant(np.ones((1, 4), dtype=int)) & hf.between(low, high)
    found = hf.pinned(hf.histogram(4), held, truth=truth, of=query)
    check(found, listed @ query.columns.T.toarray())
    twice = hf.pinned(hf.histogram(4), held & hf.invariant(2 * [[1, 1, 1, 1]]), truth=truth, of=query)
    check(twice, listed @ query.columns.T.toarray())
    endless = hf.pinned(hf.histogram(4), hf.invariant(np.ones((1, 4), dtype=int)), truth=truth, of=query)
    every = tables(np.ones((1, 4), dtype=int), [truth.sum()], int(truth.sum()))
    check(endless, every @ query.columns.T.toarray())
