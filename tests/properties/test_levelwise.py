"""TopDown and BlueDown on whole hierarchies: what must hold holds, whatever the noisy values are."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import holdfast as hf
from holdfast.arguments import LARGEST
from holdfast.trees.nearest.levelwise import Levelwise

METHODS = ("topdown", "bluedown")
TREE = hf.Hierarchy.from_parents([-1, 0, 0, 1, 1, 1, 2, 2])


@st.composite
def forests(draw):
    n = draw(st.integers(1, 14))
    return np.array([draw(st.integers(-1, i - 1)) for i in range(n)])


def sums(parents, values):
    """Each parent's children added up."""
    total = np.zeros_like(values)
    np.add.at(total, parents[parents >= 0], values[parents >= 0])
    return total


@pytest.mark.slow
@settings(max_examples=100, deadline=None)
@given(data=st.data(), parents=forests(), combined=st.booleans())
def test_whole_tables_add_up_within_bounds_and_keep_exact_nodes(data, parents, combined):
    """Bounds and exact values taken from a true table, so that one table at least satisfies them."""
    n = parents.size
    whole = st.integers(-5, 12)
    leaf = ~np.isin(np.arange(n), parents)
    truth = np.where(leaf, data.draw(st.lists(whole, min_size=n, max_size=n)), 0)
    for v in range(n - 1, -1, -1):
        truth[v] = truth[v] if leaf[v] else truth[parents == v].sum()
    distance = st.one_of(st.just(LARGEST), st.integers(0, 4))
    below, above = (np.array(data.draw(st.lists(distance, min_size=n, max_size=n))) for _ in range(2))
    exact = np.array(data.draw(st.lists(st.booleans(), min_size=n, max_size=n)))
    low = np.where(below == LARGEST, -LARGEST, truth - np.where(exact, 0, below))
    high = np.where(above == LARGEST, LARGEST, truth + np.where(exact, 0, above))
    low, high = np.where(exact, truth, low), np.where(exact, truth, high)
    spreads = np.array(data.draw(st.lists(st.sampled_from([0.5, 1.0, 9.0, np.inf]), min_size=n, max_size=n)))
    spreads[parents < 0] = np.where(np.isinf(spreads[parents < 0]), 1.0, spreads[parents < 0])
    noisy = np.array(data.draw(st.lists(st.integers(-50, 50), min_size=n, max_size=n)))
    made = Levelwise.of(parents, exact, spreads, combined=combined)
    values = made.move(noisy[None], low, high)[0]
    assert np.array_equal(values[~leaf], sums(parents, values)[~leaf])
    assert np.array_equal(values[exact], truth[exact])
    assert ((values >= low) & (values <= high)).all()
    reals = made.move(noisy[None], low.astype(float), high.astype(float))[0]
    assert reals[~leaf] == pytest.approx(sums(parents, reals)[~leaf], abs=1e-9)
    assert np.array_equal(reals[exact], truth[exact])
    assert ((reals >= low) & (reals <= high)).all()


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("by", [1, 3])
def test_releases_hold_what_must_hold(method, by):
    """Through the public names: categories, exact and impossible nodes, an unmeasured level; release checks itself."""
    query = hf.counts(TREE, by=by)
    truth = query.answer(np.arange(5 * by).reshape(5, by) if by > 1 else np.arange(5))
    must = hf.consistent(query) & hf.nonnegative()
    must &= hf.invariant(hf.exact_nodes(TREE, [1, 6], by=by)) & hf.fixed(3 * by, 0)
    for base in (hf.laplace(query, epsilon=0.3), hf.gaussian(query, rho=0.1, shares={0: 1, 2: 1})):
        for integer in (True, False):
            release = base.onto(must, method=method, integer=integer).release(truth, rng=hf.seeded(2))
            values = release.values.reshape(8, by)
            assert values.dtype == (np.int64 if integer else np.float64)
            assert np.array_equal(values[[1, 6]], truth.reshape(8, by)[[1, 6]])
            assert values.min() >= 0
            assert values[3, 0] == 0
            assert release.method == method


@pytest.mark.parametrize("method", METHODS)
def test_nothing_below_becomes_impossible(method):
    """An exact grandchild far above its parent's noisy value, and leaves too small for theirs."""
    must = hf.consistent(TREE) & hf.nonnegative() & hf.invariant(hf.exact_nodes(TREE, [4]))
    mechanism = hf.laplace(hf.counts(TREE), epsilon=1).onto(must, method=method, integer=True)
    # The true counts put 1,000 in node 4 and nothing elsewhere: noise alone decides about node 1, its parent.
    draws = mechanism.simulate(TREE.sum_up([0, 1000, 0, 0, 0]), 500, rng=hf.seeded(8))
    assert (draws[:, 4] == 1000).all()
    assert draws[:, 1].min() == 1000
    assert (draws[:, 0] == draws[:, 1] + draws[:, 2]).all()
    assert (draws[:, 1] == draws[:, 3:6].sum(axis=1)).all()
    assert draws.min() == 0
    narrow = hf.consistent(TREE) & hf.between(0, 2, at=TREE.leaves)
    image = hf.laplace(hf.counts(TREE), epsilon=1).onto(narrow, method=method).image
    assert image([90, 0, 90, 1, 1, 1, 1, 1]).tolist() == [10, 6, 4, 2, 2, 2, 2, 2]
    assert image([-900, 0, 90, 1, 1, 1, 1, 1]).tolist() == [0] * 8


def test_exact_figures_that_follow_from_others_are_kept():
    """Root, both middles and four leaves exact: one row follows from the others and is not among the rows."""
    must = hf.consistent(TREE) & hf.nonnegative() & hf.invariant(hf.exact_nodes(TREE, [0, 1, 2, 3, 4, 5, 6]))
    truth = TREE.sum_up([5, 0, 2, 7, 1])
    for method in METHODS:
        mechanism = hf.laplace(hf.counts(TREE), epsilon=0.1).onto(must, method=method, integer=True)
        assert (mechanism.simulate(truth, 20, rng=hf.seeded(1)) == truth).all()


def test_exact_figures_may_be_stated_as_multiples():
    must = hf.consistent(TREE) & hf.equals([[0, 0, -2, 0, 0, 0, 0, 0]], [-6]) & hf.nonnegative()
    for method in METHODS:
        for integer in (True, False):
            mechanism = hf.laplace(hf.counts(TREE), epsilon=1).onto(must, method=method, integer=integer)
            assert mechanism.image([50, 9, 40, 1, 2, 3, 8, 9])[2] == 3


@pytest.mark.parametrize("method", METHODS)
def test_extreme_groups(method):
    """A total of 0, thousands of zero siblings, one enormous leaf, values that doubles cannot hold."""
    k = 5_000
    tree = hf.Hierarchy.from_parents([-1] + [0] * k)
    move = hf.laplace(hf.counts(tree), epsilon=1).onto(hf.consistent(tree) & hf.nonnegative(), method=method).image
    rng = np.random.default_rng(1)
    noise = rng.integers(-9, 10, k)
    assert not move(np.append(-(10**7), noise)).any()
    small = move(np.append(3, noise))
    assert small.min() >= 0
    assert small[0] == small[1:].sum()
    for giant in (10**15, 2**60 + 1):
        noisy = np.append(giant, noise)
        noisy[7] = giant
        moved = move(noisy)
        assert moved.min() >= 0
        assert int(moved[0]) == sum(moved[1:].tolist())
        assert abs(int(moved[0]) - giant) < 10 * k
        assert abs(int(moved[7]) - giant) < 10 * k
    whole = hf.laplace(hf.counts(tree), epsilon=1).onto(hf.consistent(tree) & hf.fixed(0, 2**60 + 1), method=method)
    shared = whole.image(np.append(0, noise))
    assert sum(shared[1:].tolist()) == int(shared[0]) == 2**60 + 1


def test_ties_do_not_follow_the_order():
    """One unit over two equal children, 4,000 times: neither place is preferred, and both ways round agree."""
    pairs = 4_000
    tree = hf.Hierarchy.from_parents([-1] * pairs + [v for v in range(pairs) for _ in range(2)])
    move = hf.laplace(hf.counts(tree), epsilon=1).onto(hf.consistent(tree), method="topdown").image
    moved = move(np.append(np.ones(pairs, dtype=int), np.zeros(2 * pairs, dtype=int)))[pairs:].reshape(-1, 2)
    assert (moved.sum(axis=1) == 1).all()
    assert np.array_equal(np.unique(moved), [0, 1])
    assert abs(int(moved[:, 0].sum()) - pairs // 2) < 5 * np.sqrt(pairs / 4)


def test_what_is_not_measured_is_shared_evenly():
    tree = hf.Hierarchy.from_parents([-1, 0, 0, 1, 1, 1, 2, 2])
    base = hf.laplace(hf.counts(tree), scale=[np.inf, 1, 1, np.inf, np.inf, np.inf, 1, np.inf])
    must = hf.consistent(tree) & hf.nonnegative()
    for method in METHODS:
        moved = base.onto(must, method=method).image([77, 10, 9, 50, 0, 0, 4, 99])
        assert moved[[0, 1, 2, 6, 7]].tolist() == [19, 10, 9, 4, 5]
        assert sorted(moved[3:6].tolist()) == [3, 3, 4]
        real = base.onto(must, method=method, integer=False).image([77, 10, 2, 50, 0, 0, 4, 99])
        assert real == pytest.approx([12, 10, 2, 10 / 3, 10 / 3, 10 / 3, 2, 0])
    # A sum of children stands in for a node that was not measured.
    middle = hf.laplace(hf.counts(tree), scale=[1, np.inf, np.inf, 1, 1, 1, 1, 1])
    assert middle.onto(must, method="topdown").image([15, 88, -3, 1, 2, 3, 4, 5])[:3].tolist() == [15, 6, 9]


@pytest.mark.slow
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("integer", [True, False])
def test_without_bounds_the_noise_does_not_depend_on_the_data(method, integer):
    must = hf.consistent(TREE) & hf.fixed(3, 2)
    mechanism = hf.laplace(hf.counts(TREE), scale=[3, 2, 2, 1, 1, 4, 1, 1]).onto(must, method=method, integer=integer)
    noise = mechanism.noise(4_000, rng=hf.seeded(9))
    truth = TREE.sum_up([2, 17, 1, 0, 40])
    assert mechanism.simulate(truth, 4_000, rng=hf.seeded(9)) == pytest.approx(truth + noise, abs=1e-9)
    errors = mechanism.standard_error()
    assert noise.std(axis=0) == pytest.approx(errors, rel=0.15)
    assert errors[3] == pytest.approx(0, abs=1e-12)


def test_bluedown_without_bounds_agrees_with_the_projection():
    base = hf.gaussian(hf.counts(TREE), rho=0.5, shares={0: 1, 1: 2, 2: 5}, integer=False)
    blue = base.onto(hf.consistent(TREE), method="bluedown")
    noisy = np.random.default_rng(2).normal(10, 5, (20, 8))
    assert blue.image(noisy) == pytest.approx(
        base.onto(hf.consistent(TREE), method="projection").image(noisy), abs=1e-9
    )
    exact = hf.consistent(TREE) & hf.invariant(hf.exact_nodes(TREE, [2]))
    draws = [
        base.onto(exact, method=method).simulate(TREE.sum_up([1, 2, 3, 4, 5]), 10, rng=hf.seeded(4))
        for method in ("bluedown", "projection")
    ]
    assert draws[0] == pytest.approx(draws[1], abs=1e-9)


def test_after_given_only_the_bounds_are_left_to_do():
    """given(consistent) adds up already; both baselines then start from the same estimates at the root."""
    base = hf.laplace(hf.counts(TREE), epsilon=1).given(hf.consistent(TREE))
    for method in METHODS:
        chain = base.onto(hf.nonnegative(), method=method)
        draws = chain.simulate(TREE.sum_up([0, 3, 0, 9, 0]), 200, rng=hf.seeded(6))
        assert draws.min() == 0
        assert np.array_equal(draws, TREE.sum_up(draws[:, TREE.leaves].T).T)
        assert chain.guarantee.epsilon == 1.0
