"""Whole and non-negative tables of margins in every area: each step against an independent solver, and the whole."""

import cvxpy as cp
import numpy as np
import pytest

import holdfast as hf
from holdfast.domains import Cube
from holdfast.onto.areas.shared_out import Sharing, on_simplices, rounded
from holdfast.onto.areas.steps import Steps
from holdfast.trees.normal.residuals import Residuals


@pytest.mark.parametrize("seed", range(20))
def test_the_nearest_vector_on_a_simplex(seed):
    rng = np.random.default_rng(seed)
    values, totals = rng.normal(0, 3, (5, 7)), rng.integers(1, 9, 7)
    found = on_simplices(values, totals)
    assert np.allclose(found.sum(axis=0), totals)
    assert (found >= 0).all()
    for _ in range(50):  # no other point of the simplex is nearer
        other = rng.dirichlet(np.ones(5), 7).T * totals
        assert (((values - found) ** 2).sum(axis=0) <= ((values - other) ** 2).sum(axis=0) + 1e-12).all()


@pytest.mark.parametrize("seed", range(6))
def test_shared_out_cells_are_as_near_as_those_of_a_program(seed):
    rng = np.random.default_rng(seed)
    shape, margins, weights = (2, 3), ((), (1,), (0, 1)), (0.7, 1.3, 0.4)
    above, parts = rng.integers(0, 6, 6), 3
    told = [rng.normal(above.sum() / 9, 3, (parts, size)) for size in (1, 3, 6)]
    sharing = Sharing(Cube(shape), margins, weights)
    found = sharing.shared(above, told, parts)
    assert np.allclose(found.sum(axis=0), above)
    assert (found >= 0).all()
    x = cp.Variable((parts, 6), nonneg=True)
    to_margin = [hf.Cube(shape).margin_rows(kept).toarray() for kept in margins]
    cost = sum(w * cp.sum_squares(x @ M.T - y) for w, M, y in zip(weights, to_margin, told, strict=True))
    cp.Problem(cp.Minimize(cost), [cp.sum(x, axis=0) == above]).solve(solver="CLARABEL")
    assert np.isclose(sharing.distance(x.value, told), cost.value)
    assert sharing.distance(found, told) <= cost.value * 1.01 + 0.05


@pytest.mark.parametrize("seed", range(20))
def test_rounding_keeps_columns_and_moves_rows_by_less_than_one(seed):
    rng = np.random.default_rng(seed)
    above = rng.integers(0, 5, 12)
    cells = rng.dirichlet(np.full(4, 0.5), 12).T * above
    found = rounded(cells, above, rng.random(cells.shape))
    assert (found.sum(axis=0) == above).all()
    assert (np.abs(found - cells) < 1).all()
    assert (np.abs(found.sum(axis=1) - cells.sum(axis=1)) < 1).all()
    assert (found >= 0).all()
    alone = rounded(cells[:1], None, rng.random((1, 12)))
    assert abs(alone.sum() - cells[0].sum()) <= 0.5


@pytest.fixture(scope="module")
def village():
    rng = np.random.default_rng(0)
    tree = hf.Hierarchy.from_parents([-1] + [0] * 4 + [1 + i // 5 for i in range(20)])
    query = hf.counts(tree, by=(2, 3, 4), keep=[(), (0,), (0, 1), (0, 1, 2)])
    people = np.array([rng.multinomial(count, rng.dirichlet(np.full(24, 0.2))) for count in rng.geometric(0.02, 20)])
    return query, query.answer(people)


@pytest.mark.slow
@pytest.mark.parametrize("integer", [True, False])
def test_everything_holds_and_margins_stay_near_the_estimate(village, integer):
    query, truth = village
    must = hf.consistent(query) & hf.nonnegative()
    made = hf.gaussian(query, rho=1, integer=integer).onto(must, integer=integer)
    release = made.release(truth, rng=hf.seeded(1))
    assert np.abs(query.consistency() @ release.values).max() <= (0 if integer else 1e-6)
    assert release.values.min() >= 0
    assert not release.evidence.nearest
    assert np.isfinite(release.evidence.gap)
    assert made.guarantee.rho == 1
    values = np.abs(made.simulate(truth, 4, rng=hf.seeded(2)) - truth).mean(axis=0)
    noisy = np.abs(hf.gaussian(query, rho=1, integer=integer).simulate(truth, 4, rng=hf.seeded(3)) - truth).mean(axis=0)
    for group in range(len(query.groups)):
        outputs = query.outputs(group).ravel()
        if outputs.size > 20:  # groups of few figures are left to luck
            assert values[outputs].mean() < noisy[outputs].mean()


def test_leaves_of_which_nothing_is_asked_get_their_share(village):
    query, _ = village
    upper = hf.counts(query.hierarchy, by=(2, 3, 4), keep={0: None, 1: [(0, 1)]})
    residuals = Residuals(upper, tuple(1.0 for _ in upper.groups))
    rng = np.random.default_rng(1)
    people = rng.poisson(3, (20, 24))
    cells = Steps(residuals, True).cells(upper.totals(people).astype(float), 7)
    assert np.abs(upper.totals(cells) - upper.totals(people)).max() <= 2
    assert cells.sum() == people.sum()


def test_the_coin_decides_and_nothing_else(village):
    query, truth = village
    steps = Steps(Residuals(query, tuple(1.0 for _ in query.groups)), True)
    estimate = truth + np.random.default_rng(5).normal(size=query.n)
    first, again, other = (steps.cells(estimate, coin) for coin in (1, 1, 2))
    assert (first == again).all()
    assert first.sum() == other.sum()


def test_records_count_to_the_table(village):
    query, truth = village
    must = hf.consistent(query) & hf.nonnegative()
    release = hf.gaussian(query, rho=1).onto(must, integer=True).release(truth, rng=hf.seeded(4))
    frame = release.records("polars")
    assert frame.columns == ["level 1", "level 2", "axis 0", "axis 1", "axis 2"]
    cells = np.zeros((20, 2, 3, 4), np.int64)
    leaf = frame["level 2"].cast(int).to_numpy() - 5
    np.add.at(cells, (leaf, *(frame[f"axis {a}"].to_numpy() for a in range(3))), 1)
    assert (query.answer(cells) == release.values).all()
    upper = hf.counts(query.hierarchy, by=(2, 3, 4), keep={0: None, 1: [(0,)]})
    coarse = hf.gaussian(upper, rho=1).onto(hf.consistent(upper) & hf.nonnegative(), integer=True)
    with pytest.raises(hf.Refused, match="counts every cell"):
        coarse.release(upper.totals(cells), rng=hf.seeded(5)).records()


def test_whole_tables_of_any_sign_follow_the_truth(village):
    query, truth = village
    made = hf.gaussian(query, rho=1).onto(hf.consistent(query), integer=True)
    assert made.method == "areas"
    nothing, some = (made.simulate(start, 5, rng=hf.seeded(1)) - start for start in (0 * truth, truth))
    assert (nothing < 0).any()  # nobody asked for more
    assert (nothing == some).all()
    assert (query.consistency() @ some.T == 0).all()


def test_what_only_lower_levels_ask_is_told_upwards(village):
    """Cells are asked of blocks alone: towns must not be given equal shares of what blocks know."""
    query, _ = village
    lower = hf.counts(query.hierarchy, by=(2, 3, 4), keep={0: [()], 1: [(0,)], 2: None})
    rng = np.random.default_rng(2)
    people = rng.poisson(rng.gamma(0.3, 40.0, (20, 24)))
    truth = lower.totals(people)
    steps = Steps(Residuals(lower, tuple(1.0 for _ in lower.groups)), True)
    assert (lower.totals(steps.cells(truth.astype(float), 3)) == truth).all()


def test_intervals_of_large_tables_cover():
    """Beyond what is simulated: the limits of sums of whole Gaussian noise are proved and wider than normal ones."""
    tree = hf.Hierarchy.from_parents([-1, *([0] * 700)])
    query = hf.counts(tree, by=(2, 3, 4), keep=[(0,), (0, 1, 2)])
    made = hf.gaussian(query, rho=1).onto(hf.consistent(query), integer=False)
    truth = query.answer(np.full(query.cells, 50))
    release = made.release(truth, rng=hf.seeded(5))
    low, high = release.interval(0.95).T
    inside = ((low <= truth) & (truth <= high)).mean()
    assert inside > 0.98
    assert np.abs(high - low - 2 * 2.7162 * made.standard_error()).max() <= 2  # ends are whole


@pytest.mark.slow
def test_cells_that_are_known_to_be_empty_are(village):
    query, _ = village
    rng = np.random.default_rng(3)
    possible = rng.random((20, 24)) < 0.7
    possible[4] = False  # a whole block
    possible[:, 5] = False
    truth = query.answer(rng.poisson(6, (20, 24)) * possible)
    rows = np.flatnonzero(query.answer(possible.astype(int)) == 0)
    must = hf.consistent(query) & hf.nonnegative() & hf.fixed(rows, np.zeros(rows.size, int))
    made = hf.gaussian(query, rho=1).onto(must, integer=True)
    assert made.method == "areas"
    release = made.release(truth, rng=hf.seeded(1))
    assert (release.values[rows] == 0).all()
    assert (query.consistency() @ release.values == 0).all()
    assert (release.values >= 0).all()
    low, high = release.interval(0.95).T
    assert (high[rows] == 0).all()
    assert ((low <= truth) & (truth <= high)).mean() > 0.93
    free = hf.gaussian(query, rho=1).onto(hf.consistent(query) & hf.nonnegative(), integer=True)
    errors = [np.abs(each.simulate(truth, 2, rng=hf.seeded(2)) - truth).mean() for each in (made, free)]
    assert errors[0] < errors[1]


def test_what_is_told_from_below_is_least_squares_of_each_subtree(village):
    query, _ = village
    rng = np.random.default_rng(7)
    precisions = tuple(rng.uniform(0.5, 2, len(query.groups)))
    residuals = Residuals(query, precisions)
    measured = rng.normal(0, 5, query.n)
    found = residuals.estimated(measured, below=True)
    spreads = residuals.variances_by_group(below=True)
    tree = query.hierarchy
    part = hf.counts(hf.Hierarchy.from_parents([-1] + [0] * 5), by=(2, 3, 4), keep=[(), (0,), (0, 1), (0, 1, 2)])
    nodes = np.concatenate([[1], tree.children_of(1)])
    mine = np.concatenate([np.arange(query.starts[v], query.starts[v + 1]) for v in nodes])
    below = tuple(p for (depth, _), p in zip(query.groups, precisions, strict=True) if depth > 0)
    W = part.columns.toarray().astype(float)
    weight = np.array(below)[part.level_of]
    dense = W @ np.linalg.pinv(W.T * weight @ W) @ W.T * weight
    expected = dense @ measured[mine]
    own = np.arange(part.starts[1])  # of the area itself; its parts are told by themselves
    assert np.allclose(found[mine][own], expected[own])
    variance = (dense / weight * 1.0).diagonal()
    for g, (depth, _) in enumerate(part.groups):
        if depth == 0:
            group = query.groups.index((1, part.groups[g][1]))
            assert np.allclose(variance[part.outputs(g)], spreads[group][0])


@pytest.mark.slow
@pytest.mark.parametrize("method", ["topdown", "bluedown"])
def test_baselines_hold_the_same_and_are_no_nearer_on_average(village, method):
    query, truth = village
    must = hf.consistent(query) & hf.nonnegative()
    base = hf.gaussian(query, rho=0.2)
    made, best = base.onto(must, integer=True, method=method), base.onto(must, integer=True)
    release = made.release(truth, rng=hf.seeded(1))
    assert made.method == method
    assert (query.consistency() @ release.values == 0).all()
    assert release.values.min() >= 0
    assert "gap of an area's parts" in release.evidence.notes[0]
    errors = [
        ((each.simulate(truth, 3, rng=hf.seeded(2)) - truth) ** 2 / base.base.law.variances).sum()
        for each in (best, made)
    ]
    assert errors[0] < 1.1 * errors[1]
