"""The nearest table on hierarchies of every kind and size: each answer comes with a proof (support/optimality.py)."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import holdfast as hf
import optimality
from holdfast.trees.nearest.best_linear import error_variances, error_weights
from holdfast.trees.nearest.nearest import Nearest
from holdfast.trees.nearest.rows import whole_rows
from holdfast.trees.shape.ties import tie_hash

NONE = 2**62


@st.composite
def problems(draw):
    """A forest with noisy values, weights, bounds on leaves and inner nodes, exact, unmeasured and open nodes."""
    n = draw(st.integers(1, 40))
    near = draw(st.sampled_from([1, 3, 40]))
    seed = draw(st.integers(0, 2**32))
    rng = np.random.default_rng(seed)
    parents = np.full(n, -1)
    for v in range(1, n):
        if rng.random() > 0.1:
            parents[v] = rng.integers(max(0, v - near), v)
    name = rng.permutation(n)
    shuffled = np.empty(n, dtype=np.int64)
    shuffled[name] = np.where(parents >= 0, name[parents], -1)
    parents = shuffled
    inner = np.zeros(n, dtype=bool)
    inner[parents[parents >= 0]] = True
    truth = optimality.sum_up(parents, rng.integers(0, draw(st.sampled_from([1, 5, 100])), n))
    noisy = truth + np.rint(rng.laplace(0, draw(st.sampled_from([0.5, 3, 30])), n)).astype(np.int64)
    weighting = draw(st.sampled_from(["equal", "few", "many"]))
    spreads = {"equal": np.full(n, 7.0), "few": rng.choice([0.25, 1.0, 8.0], n), "many": np.exp(rng.normal(0, 2, n))}
    spread = np.where(inner & (rng.random(n) < draw(st.sampled_from([0, 0.5]))), np.inf, spreads[weighting])
    low, high = np.full(n, -NONE), np.full(n, NONE)
    if draw(st.booleans()):
        low[:] = 0
    if draw(st.booleans()):
        some = ~inner & (rng.random(n) < 0.5)
        high[some] = truth[some] + rng.integers(0, 4, some.sum())
    if draw(st.booleans()):
        some = rng.random(n) < 0.2
        low[some] = truth[some] - rng.integers(0, 3, some.sum())
        high[some] = truth[some] + rng.integers(0, 3, some.sum())
    if draw(st.booleans()):
        some = rng.random(n) < 0.15
        low[some] = high[some] = truth[some]
    exact = low == high
    if draw(st.booleans()):  # one open leaf below some measured or exact parents
        for parent in np.flatnonzero(inner & (exact | np.isfinite(spread))):
            below = np.flatnonzero((parents == parent) & ~inner & ~exact)
            if below.size and rng.random() < 0.3:
                spread[rng.choice(below)] = np.inf
    return parents, noisy, spread, low, high


def weights_of(spread, exact, norm):
    relative = np.where(np.isinf(spread) | exact, 0.0, 1 / spread)
    relative /= max(relative.max(), 1e-300)
    return np.sqrt(relative) if norm == "l1" else relative


@settings(max_examples=75, deadline=None)
@given(problems(), st.sampled_from(["l1", "l2"]), st.sampled_from(["whole", "real", "real values"]))
def test_every_answer_is_proved_to_be_the_nearest(problem, norm, kind):
    parents, noisy, spread, low, high = problem
    exact = low == high
    nearest = Nearest.of(parents, exact, spread, absolute=norm == "l1")
    assert nearest.determined
    if kind == "real values":
        noisy = noisy + np.random.default_rng(1).normal(0, 0.3, noisy.size)
    limits = (low, high) if kind == "whole" else (low.astype(np.float64), high.astype(np.float64))
    z = nearest.move(noisy[None], *limits)[0]
    ends = (np.where(low > -NONE, low, -np.inf), np.where(high < NONE, high, np.inf))
    weights = weights_of(spread, exact, norm)
    slack = 0.0 if kind == "whole" and norm == "l2" and len(np.unique(weights[weights > 0])) <= 1 else 1e-9
    optimality.assert_nearest(parents, noisy, weights, *ends, z, norm, slack)
    assert z.dtype == (np.int64 if kind == "whole" else np.float64)


@settings(max_examples=50, deadline=None)
@given(problems())
def test_curves_and_policies_find_the_same(problem):
    """Least squares is solved in two ways; whole answers are equal to the last unit, ties included."""
    parents, noisy, spread, low, high = problem
    spread = np.where(np.isfinite(spread), 2.0, spread)
    nearest = Nearest.of(parents, low == high, spread, absolute=False)
    by_curves = replace(nearest, open_leaves=True)  # what open leaves ask for
    assert np.array_equal(nearest.move(noisy[None], low, high), by_curves.move(noisy[None], low, high))
    limits = (low.astype(np.float64), high.astype(np.float64))
    assert nearest.move(noisy[None], *limits) == pytest.approx(by_curves.move(noisy[None], *limits), abs=1e-8)


@pytest.mark.slow
@settings(max_examples=75, deadline=None)
@given(problems(), st.integers(0, 2**32), st.sampled_from([0.1, 3.0, 40.0]))
def test_wrong_prices_only_cost_time(problem, seed, wrong):
    """Real prices say where windows begin. Wrong ones make windows grow; the whole table and its ties stay the same."""
    parents, noisy, spread, low, high = problem
    spread = np.where(np.isfinite(spread), 2.0, spread)
    nearest = Nearest.of(parents, low == high, spread, absolute=False)
    best = nearest.move(noisy[None], low, high)
    layout, rng = nearest.layout, np.random.default_rng(seed)
    forest = (layout.leaf_start, layout.inner_start, layout.leaves, layout.inner)
    bounds = tuple(side[outputs] for outputs in (layout.leaves, layout.inner) for side in (low, high))
    weights = (nearest.leaf_weight, nearest.variance, nearest.same, nearest.weight)
    moves = (best[0, layout.leaves] - noisy[layout.leaves]).astype(np.float64)
    guess = (moves + rng.integers(-3, 4, moves.size), rng.normal(0, wrong, layout.inner.size))
    found = np.empty_like(best)
    started = (guess[0], guess[1].copy(), guess[1])
    assert (
        whole_rows(forest, weights, bounds, True, noisy[None], np.zeros(1, dtype=np.int64), found, started, True) == 1
    )
    assert np.array_equal(found, best)


@pytest.mark.slow
def test_rounds_that_do_not_settle_end_in_curves():
    """Bounds on both sides and on inner nodes, uneven weights: where policies go round in circles, curves decide."""
    rng = np.random.default_rng(23)
    for _ in range(60):
        n = int(rng.integers(30, 150))
        parents = np.full(n, -1)
        parents[1:] = [rng.integers(max(0, v - 12), v) for v in range(1, n)]
        truth = optimality.sum_up(parents, rng.integers(0, 6, n))
        noisy = truth + rng.laplace(0, 4, n)
        spread = np.exp(rng.normal(0, 2.5, n))
        low, high = np.zeros(n), np.full(n, float(NONE))
        some = rng.random(n) < 0.4
        low[some], high[some] = (
            truth[some] - rng.integers(0, 3, some.sum()),
            truth[some] + rng.integers(0, 3, some.sum()),
        )
        exact = low == high
        z = Nearest.of(parents, exact, spread, absolute=False).move(noisy[None], low, high)[0]
        optimality.assert_nearest(parents, noisy, weights_of(spread, exact, "l2"), low, high, z, "l2")


@settings(max_examples=40, deadline=None)
@given(problems(), st.sampled_from(["l1", "l2"]))
def test_a_constant_table_passes_through(problem, norm):
    """Adding a whole table that adds up to values and bounds moves the answer by it: ties do not depend on the data."""
    parents, noisy, spread, low, high = problem
    nearest = Nearest.of(parents, low == high, spread, absolute=norm == "l1")
    table = optimality.sum_up(parents, np.random.default_rng(5).integers(-(10**6), 10**6, noisy.size))
    shifted = [np.where(np.abs(side) < NONE, side + table, side) for side in (low, high)]
    moved = nearest.move(noisy[None], low, high)
    assert np.array_equal(nearest.move((noisy + table)[None], *shifted), moved + table)


@pytest.mark.slow
@pytest.mark.parametrize("norm", ["l1", "l2"])
@pytest.mark.parametrize("alike", [True, False])
def test_one_more_unit_in_total_goes_to_one_leaf(norm, alike):
    """Units stand in one order, ties included, wherever the search begins: a larger total only adds to a smaller."""
    rng = np.random.default_rng(17)
    parents = nation(3, 2, 4)
    n, inner = parents.size, int(parents.max()) + 1
    noisy = rng.integers(0, 3, n)
    spread = np.ones(n)
    if not alike:
        spread[inner::4] = 2.0  # one leaf in each group of four
    exact = parents < 0
    low = np.where(np.arange(n) < inner, -NONE, -2)
    before = None
    for total in range(-40, 60):
        limits = np.where(exact, total, low), np.where(exact, total, NONE)
        z = Nearest.of(parents, exact, spread, absolute=norm == "l1").move(noisy[None], *limits)[0]
        if before is not None:
            step = (z - before)[inner:]
            assert step.min() == 0
            assert step.sum() == step.max() == 1
        before = z


def test_rows_are_moved_independently():
    rng = np.random.default_rng(2)
    parents = np.array([-1, 0, 0, 1, 1, 1, 2, 2, -1, 8, 8])
    n = parents.size
    noisy = rng.integers(-5, 9, (50, n))
    low, high = np.zeros(n, dtype=np.int64), np.full(n, NONE)
    for absolute in (False, True):
        nearest = Nearest.of(parents, np.zeros(n, dtype=bool), np.ones(n), absolute=absolute)
        for limits in ((low, high), (low.astype(float), high.astype(float))):
            together = nearest.move(noisy, *limits)
            for row, found in zip(noisy, together, strict=True):
                assert np.array_equal(nearest.move(row[None], *limits)[0], found)


def nation(*widths):
    """Parents of a tree with so many children at each depth, breadth-first."""
    parents, start, count = [np.array([-1])], 0, 1
    for width in widths:
        parents.append(np.repeat(np.arange(start, start + count), width))
        start, count = start + count, count * width
    return np.concatenate(parents)


def large_case(name, rng):
    parents = nation(1, 40_000) if name == "one parent" else nation(4, 10, 25, 3, 34)
    inner = np.zeros(parents.size, dtype=bool)
    inner[parents[parents >= 0]] = True
    leaf = rng.geometric(0.03, parents.size) - 1
    if name == "sparse":
        leaf = np.where(rng.random(parents.size) < 0.95, 0, leaf)
    if name in ("all zero", "enormous leaf", "one parent"):
        leaf[:] = 0
    if name in ("enormous leaf", "one parent"):
        leaf[np.flatnonzero(~inner)[777]] = 10**15
    truth = optimality.sum_up(parents, leaf)
    noisy = truth + rng.geometric(0.2, parents.size) - rng.geometric(0.2, parents.size)
    return parents, truth, noisy


@pytest.mark.slow
@pytest.mark.parametrize("name", ["dense", "sparse", "all zero", "enormous leaf", "one parent"])
def test_large_hierarchies_are_proved_as_well(name):
    rng = np.random.default_rng(11)
    parents, truth, noisy = large_case(name, rng)
    n = parents.size
    low, high = np.zeros(n, dtype=np.int64), np.full(n, NONE)
    depth = optimality.depths(parents)
    for spread in (np.ones(n), 1.0 + depth, np.where(depth == 2, np.inf, 2.0 ** (depth % 3))):
        nearest = Nearest.of(parents, np.zeros(n, dtype=bool), spread, absolute=False)
        z = nearest.move(noisy[None], low, high)[0]
        optimality.assert_nearest(parents, noisy, weights_of(spread, False, "l2"), low, high, z, "l2", 1e-12)
    roots = depth <= 1
    exact_low, exact_high = np.where(roots, truth, low), np.where(roots, truth, high)
    for norm in ("l1", "l2"):
        nearest = Nearest.of(parents, roots, np.ones(n), absolute=norm == "l1")
        for limits in ((exact_low, exact_high), (exact_low.astype(float), exact_high.astype(float))):
            z = nearest.move(noisy[None], *limits)[0]
            optimality.assert_nearest(parents, noisy, weights_of(np.ones(n), roots, norm), *limits, z, norm)


@pytest.mark.parametrize("light", [1e2, 1e4, 1e8, np.inf])
def test_totals_that_hardly_count_are_found_in_wide_windows(light):
    """Where inner nodes weigh next to nothing, whole totals lie many units from real ones, and windows must grow."""
    rng = np.random.default_rng(13)
    for widths in ((6, 40), (3, 4, 15), (2, 3, 3, 9), (50,)):
        parents = nation(*widths)
        n, depth = parents.size, optimality.depths(parents)
        leaf = depth == depth.max()
        for heavy_root in (True, False):
            spread = np.where(leaf, rng.choice([1.0, 1.5, 2.0], n) if rng.random() < 0.5 else 1.0, light)
            spread[0] = 1e-3 if heavy_root else light
            for bound in (0, -NONE):
                truth = optimality.sum_up(parents, rng.integers(0, 4, n))
                noisy = truth + rng.geometric(0.2, n) - rng.geometric(0.2, n)
                low, high = np.where(leaf, bound, -NONE), np.full(n, NONE)
                z = Nearest.of(parents, np.zeros(n, dtype=bool), spread, absolute=False).move(noisy[None], low, high)[0]
                optimality.assert_nearest(parents, noisy, weights_of(spread, False, "l2"), low, high, z, "l2", 1e-13)


def test_ties_favour_no_place_among_siblings():
    """One unit to share among five equal siblings, 20,000 times: every place gets it equally often, reversed or not."""
    groups, width = 20_000, 5
    parents = np.concatenate([np.full(groups, -1), np.repeat(np.arange(groups), width)])
    n = parents.size
    noisy = np.zeros(n, dtype=np.int64)
    exact = parents < 0
    low, high = np.where(exact, 1, -NONE), np.where(exact, 1, NONE)
    for absolute in (False, True):
        nearest = Nearest.of(parents, exact, np.ones(n), absolute=absolute)
        z = nearest.move(noisy[None], low, high)[0][groups:].reshape(groups, width)
        assert (z.sum(axis=1) == 1).all()
        assert z.max() == 1
        places = z.sum(axis=0)
        # Pearson's statistic with 4 degrees of freedom exceeds 33.4 with probability 1e-6; by index it is 80,000
        assert ((places - groups / width) ** 2 / (groups / width)).sum() < 33.4
        reverse = n - 1 - np.arange(n)
        backwards = np.where(parents[reverse] >= 0, n - 1 - parents[reverse], -1)
        mirrored = Nearest.of(backwards, exact[reverse], np.ones(n), absolute=absolute)
        again = mirrored.move(noisy[None], low[reverse], high[reverse])[0][::-1][groups:].reshape(groups, width)
        assert ((again.sum(axis=0) - groups / width) ** 2 / (groups / width)).sum() < 33.4
        # the totals of parent and child that miss each other by one are split up or down equally often
    pairs = np.concatenate([np.full(groups, -1), np.arange(groups)])
    noisy = np.concatenate([np.zeros(groups, dtype=np.int64), np.ones(groups, dtype=np.int64)])
    free = np.full(2 * groups, NONE)
    ups = Nearest.of(pairs, np.zeros(2 * groups, dtype=bool), np.ones(2 * groups), absolute=False).move(
        noisy[None], -free, free
    )
    assert abs(ups[0, :groups].sum() - groups / 2) < 5 * np.sqrt(groups / 4)


def test_the_hash_of_ties_is_the_one_that_was_published():
    assert [int(tie_hash(k)) for k in (0, 1, 2)] == [0xE220A8397B1DCDAF, 0x6E789E6AA1B965F4, 0x06C45D188009454F]


@settings(max_examples=40, deadline=None)
@given(problems(), st.integers(0, 2**32))
def test_errors_without_bounds_are_those_of_the_linear_map(problem, seed):
    """Variances of errors and of weighted sums against the map itself, applied to unit errors one by one."""
    parents, _, spread, low, high = problem
    n = parents.size
    exact = low == high
    nearest = Nearest.of(parents, exact, spread, absolute=False)
    ends = np.where(exact, 0.0, float(NONE))
    columns = nearest.move(np.eye(n) * np.isfinite(spread), -ends, ends)  # row i: the map of a unit error at i
    rng = np.random.default_rng(seed)
    variances = rng.uniform(0.5, 2, n) * np.isfinite(spread)
    assert error_variances(nearest, variances) == pytest.approx((columns**2 * variances[:, None]).sum(axis=0), abs=1e-9)
    weights = rng.normal(0, 1, n)
    found = (error_weights(nearest, weights) ** 2 * variances).sum()
    assert found == pytest.approx(((columns @ weights) ** 2 * variances).sum(), rel=1e-7, abs=1e-9)


TREE = hf.Hierarchy.from_parents([-1, 0, 0, 1, 1, 1, 2, 2])
QUERY = hf.counts(TREE)
TRUTH = QUERY.answer([1, 0, 2, 0, 3])


def test_given_then_onto_is_whole_all_the_way_and_costs_nothing():
    base = hf.laplace(QUERY, epsilon=1)
    chain = base.given(hf.consistent(TREE)).onto(hf.consistent(TREE) & hf.nonnegative())
    assert chain.method == "hierarchy, hierarchy"
    assert chain.guarantee.epsilon == base.guarantee.epsilon == 1.0
    assert chain.guarantee.scope == "all"
    draws = chain.simulate(TRUTH, 300, rng=hf.seeded(3))
    assert draws.dtype == np.int64
    assert draws.min() >= 0
    assert np.array_equal(draws, TREE.sum_up(draws[:, TREE.leaves].T).T)
    # a table that adds up and is not negative is its own nearest one
    before = base.given(hf.consistent(TREE)).simulate(TRUTH, 300, rng=hf.seeded(3))
    kept = (before >= 0).all(axis=1)
    assert 10 < kept.sum() < 290
    assert np.array_equal(draws[kept], before[kept])
    assert chain.release(TRUTH, rng=hf.seeded(4)).values.min() >= 0


@pytest.mark.parametrize("norm", ["l1", "l2"])
@pytest.mark.parametrize("by", [1, 2])
def test_categories_exact_nodes_and_fixed_nodes_come_together(norm, by):
    query = hf.counts(TREE, by=by)
    leaves = np.arange(5 * by).reshape(5, by) % 4
    truth = query.answer(leaves)
    constraint = (
        hf.consistent(query)
        & hf.nonnegative()
        & hf.invariant(hf.exact_nodes(TREE, [1], by=by))
        & hf.fixed([7 * by], [int(truth[7 * by])])
    )
    for integer in (True, False):
        mechanism = hf.laplace(query, scale={0: 1, 1: 2, 2: 4}).onto(constraint, norm=norm, integer=integer)
        assert mechanism.method == "hierarchy"
        draws = mechanism.simulate(truth, 40, rng=hf.seeded(6))
        assert draws.dtype == (np.int64 if integer else np.float64)
        assert draws.min() >= 0
        for column in [*range(by, 2 * by), 7 * by]:
            assert (draws[:, column] == truth[column]).all()
        for category in range(by):
            tables = draws[:, category::by]
            assert tables == pytest.approx(TREE.sum_up(tables[:, TREE.leaves].T).T, abs=1e-9)
    assert {statement.scope for statement in mechanism.guarantees} == {"invariant-sharing"}


def test_noise_and_errors_are_known_where_there_are_no_bounds():
    base = hf.gaussian(QUERY, rho=1)
    mechanism = base.onto(hf.consistent(TREE))
    noise = mechanism.noise(4000, rng=hf.seeded(8))
    assert noise.dtype == np.int64
    assert np.array_equal(noise, TREE.sum_up(noise[:, TREE.leaves].T).T)
    # 20,000 draws behind the error and 4,000 here: variances agree within 6·√(2/4000 + 2/20000)
    assert noise.var(axis=0) == pytest.approx(mechanism.standard_error() ** 2, rel=0.15)
    real = base.onto(hf.consistent(TREE), integer=False)
    other = base.onto(hf.consistent(TREE), integer=False, method="projection")
    assert real.standard_error() == pytest.approx(other.standard_error(), rel=1e-12)
    weights = np.arange(8.0)
    first, second = (each.release(TRUTH, rng=hf.seeded(1)).estimate(weights) for each in (real, other))
    assert first.value == pytest.approx(second.value, rel=1e-12)
    assert first.standard_error == pytest.approx(second.standard_error, rel=1e-12)


def test_an_image_in_steps_of_a_grid():
    rows = [[1.0, 1.0], [1.0, 0.0], [0.0, 1.0]]
    query = hf.workload(rows, grid=Fraction(1, 2))
    tree = hf.Hierarchy.from_parents([-1, 0, 0])
    mechanism = hf.laplace(query, epsilon=1).onto(hf.consistent(tree) & hf.nonnegative())
    moved = mechanism.image([3.0, -1.5, 2.0])
    assert moved.tolist() == [2.5, 0.0, 2.5]
    with pytest.raises(hf.Refused, match="steps of the grid"):
        hf.laplace(query, epsilon=1).onto(hf.consistent(tree) & hf.fixed(0, 0.25)).image([3.0, -1.5, 2.0])


def test_what_cannot_be_reached_or_told_apart_is_refused():
    parents = np.array([-1, 0, 0])
    nearest = Nearest.of(parents, np.array([True, False, False]), np.ones(3), absolute=False)
    with pytest.raises(hf.Refused, match="below output 0"):
        nearest.move(np.zeros((1, 3), dtype=np.int64), np.array([-1, 0, 0]), np.array([-1, NONE, NONE]))
    assert not Nearest.of(parents, np.zeros(3, dtype=bool), np.array([1, np.inf, np.inf]), absolute=False).determined
    assert not Nearest.of(parents, np.zeros(3, dtype=bool), np.array([np.inf, np.inf, 1]), absolute=False).determined
    assert Nearest.of(parents, np.zeros(3, dtype=bool), np.array([1, np.inf, 1]), absolute=False).determined
    assert not Nearest.of(parents[:1], np.zeros(1, dtype=bool), np.array([np.inf]), absolute=False).determined
    far = np.array([[0, 2**61 + 6, -(2**61)]])  # the bound is 2**60 + 3 away from the value, which no double holds
    wide = Nearest.of(parents, np.zeros(3, dtype=bool), np.array([1e6, 1, 1]), absolute=True)
    with pytest.raises(hf.Refused, match=r"2\*\*50"):
        wide.move(far, np.zeros(3, dtype=np.int64), np.array([2**60 + 3] * 3))


@pytest.mark.parametrize("count", [500, 10_000, 10**7, 10**12])
@pytest.mark.parametrize("law", ["laplace", "gaussian"])
def test_margins_far_from_zero_hardly_move(law, count):
    """Nothing presses there, and the solver's last digits do not settle: it is near enough all the same."""
    query = hf.margins((5, 2), keep=[(0,), (1,), ()])
    noise = hf.laplace(query, epsilon=1.5) if law == "laplace" else hf.gaussian(query, rho=0.5)
    drawn = noise.given(hf.consistent(query)).onto(hf.nonnegative())
    truth = query.answer(np.full(10, count))
    for seed in range(4):
        values = drawn.release(truth, rng=hf.seeded(seed)).values
        assert values[:5].sum() == values[5:7].sum() == values[7]
        assert np.abs(values - truth).max() < 200
