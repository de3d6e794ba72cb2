"""`onto` with any linear rows over the reals: against cvxpy, and what a nearest point must have."""

from fractions import Fraction

import numpy as np
import pytest
from scipy import sparse

import holdfast as hf
import programs
from holdfast import onto
from holdfast.onto.grid.checker import lower_bound

WAYS = {"table": "network", "cube": "program", "sum": "network", "order": "orders", "mixed": "program"}


def cases(kind, count=2, **words):
    """Random problems of one kind."""
    return [programs.made(kind, np.random.default_rng([sum(map(ord, kind)), seed]), **words) for seed in range(count)]


@pytest.mark.slow
@pytest.mark.parametrize("norm", ["l2", "l1"])
@pytest.mark.parametrize("kind", programs.KINDS)
def test_images_are_as_near_as_those_of_cvxpy(kind, norm):
    """The cost is cvxpy's, the constraints hold, and for least squares the point is cvxpy's too."""
    for case in cases(kind):
        moved = case.base.onto(case.constraint, norm=norm, integer=False)
        z = moved.image(case.y)
        least, point = case.best(norm)
        assert case.holds(z, 1e-9).all()
        assert case.cost(z, norm) == pytest.approx(least, rel=1e-6, abs=1e-6)
        if norm == "l2":
            np.testing.assert_allclose(z, point, atol=2e-3)
        if kind in WAYS and case.G.size + np.isfinite(case.low).sum() + np.isfinite(case.high).sum():
            assert moved.method in (WAYS[kind], "projection")  # where bounds leave one table


@pytest.mark.slow
@pytest.mark.parametrize("norm", ["l2", "l1"])
@pytest.mark.parametrize("kind", programs.KINDS)
def test_images_stay_where_they_are(kind, norm):
    """Idempotent: what satisfies everything is not moved, and an image is such a point."""
    for case in cases(kind, 1):
        moved = case.base.onto(case.constraint, norm=norm, integer=False)
        np.testing.assert_array_equal(moved.image(case.truth), case.truth)
        real = hf.laplace(hf.histogram(case.y.size), scale=1, integer=False).onto(case.constraint, norm=norm)
        once = real.image(case.y)
        np.testing.assert_allclose(real.image(once), once, atol=1e-8)


@pytest.mark.parametrize("kind", programs.KINDS)
def test_least_squares_never_moves_points_apart(kind):
    """Non-expansive, with equal weights onto a convex set."""
    for case in cases(kind, 2):
        real = hf.laplace(hf.histogram(case.y.size), scale=1, integer=False).onto(case.constraint)
        rng = np.random.default_rng(5)
        points = case.truth + rng.normal(0, 4, (6, case.y.size))
        images = real.image(points)
        for k in range(5):
            assert np.linalg.norm(images[k] - images[k + 1]) <= np.linalg.norm(points[k] - points[k + 1]) + 1e-6


@pytest.mark.parametrize("kind", ["table", "cube", "sum", "mixed", "rows"])
def test_the_order_of_outputs_does_not_matter(kind):
    """Least squares has one nearest point, whatever the outputs are called."""
    for case in cases(kind, 2):
        order = np.random.default_rng(8).permutation(case.y.size)
        other = programs.permuted(case, order)
        here = case.base.onto(case.constraint, integer=False).image(case.y)
        there = other.base.onto(other.constraint, integer=False).image(other.y)
        np.testing.assert_allclose(there, here[order], atol=1e-6)


@pytest.mark.parametrize("integer", [False, True])
@pytest.mark.parametrize("norm", ["l2", "l1"])
def test_blocks_are_moved_as_if_they_were_alone(norm, integer):
    """A cube with two families of margins is a pile of tables: each is moved as if there were no other."""
    rng = np.random.default_rng(4)
    shape = (5, 3, 4)
    truth = rng.integers(0, 6, shape)
    y = truth + rng.integers(-5, 6, shape)
    must = hf.equals(programs.margins(shape, [(0, 1), (0, 2)]), _sums(truth)) & hf.nonnegative()
    whole = hf.laplace(hf.histogram(y.size), scale=2).onto(must, norm=norm, integer=integer)
    assert whole.method == "network"
    z = whole.image(y.ravel()).reshape(shape)
    for k in range(shape[0]):
        b = np.concatenate([truth[k].sum(axis=1), truth[k].sum(axis=0)])
        alone = hf.laplace(hf.histogram(12), scale=2).onto(
            hf.equals(programs.margins((3, 4), [(0,), (1,)]), b) & hf.nonnegative(), norm=norm, integer=integer
        )
        np.testing.assert_array_equal(alone.image(y[k].ravel()), z[k].ravel())
    different = hf.ordered([0, 1, 2]) & hf.equals([[0, 0, 0, 1, 1, 0]], [3])
    mixed = hf.laplace(hf.histogram(6), scale=1).onto(different, norm=norm, integer=integer)
    assert mixed.method == "boxes, network, orders"
    found = mixed.image([3, 2, 1, 4, 1, -5])
    assert [*found[:3], found[3:5].sum(), found[5]] == [2, 2, 2, 3, -5]
    assert np.abs(found[3:5] - [4, 1]).sum() == 2
    if norm == "l2":
        assert found[3:5].tolist() == [3, 0]


def _sums(cube):
    return np.concatenate([cube.sum(axis=2).ravel(), cube.sum(axis=1).ravel()])


@pytest.mark.slow
@pytest.mark.parametrize("kind", [kind for kind in programs.KINDS if kind != "order"])
@pytest.mark.parametrize("norm", ["l2", "l1"])
def test_released_doubles_satisfy_everything_exactly(kind, norm):
    """Doubles stand for multiples of the stated grid, and these add up in rationals, without any tolerance."""
    for case in cases(kind, 2, invariant=True):
        must = case.constraint & hf.between(-1, None)  # without bounds, least squares is a formula
        release = case.base.onto(must, norm=norm).release(case.truth, rng=hf.seeded(3))
        assert release.evidence.exact
        grid = release.evidence.grid
        exact = [round(Fraction(value) / grid) * grid for value in release.values.tolist()]
        assert [float(value) for value in exact] == release.values.tolist()
        for row, right in zip(case.A.tolist(), case.b.tolist(), strict=True):
            assert sum(a * z for a, z in zip(row, exact, strict=True)) == right
        for row, right in zip(case.G.tolist(), case.h.tolist(), strict=True):
            assert sum(a * z for a, z in zip(row, exact, strict=True)) >= right
        assert all(low <= z <= high for low, z, high in zip(case.low.tolist(), exact, case.high.tolist(), strict=True))
        assert release.evidence.nearest
        assert 0 <= release.evidence.gap <= 1e-6 * (1 + release.evidence.objective)


def test_a_grid_with_thirds():
    """Right-hand sides that are no dyadic fractions: the grid has them, and the doubles are its nearest."""
    must = hf.equals([[1, 1, 1]], [Fraction(1, 3)]) & hf.between(0, None)
    moved = hf.laplace(hf.histogram(3), scale=1, integer=False).onto(must)
    z = moved.image([0.0, -1.0, 5.0])
    assert z.tolist() == [0.0, 0.0, 1 / 3]
    rows = hf.equals([[2, 0, 1], [0, 3, 1]], [1, 1]) & hf.between(-9, None)
    z = hf.laplace(hf.histogram(3), scale=1, integer=False).onto(rows).image([0.3, 0.1, 0.2])
    assert abs(2 * z[0] + z[2] - 1) < 1e-15
    assert abs(3 * z[1] + z[2] - 1) < 1e-15


def test_the_checker_rejects_a_wrong_point():
    """Its bound is below the optimum, tight at the right prices, and a worse point shows a gap."""
    rng = np.random.default_rng(1)
    case = programs.made("table", rng)
    problem = case.base.onto(case.constraint, integer=False).moves[0].problem
    right = problem.right_hand_sides()
    answer = onto.certified(onto.choose(problem), problem, case.y, right)
    least, _ = case.best("l2")
    assert answer.evidence.objective == pytest.approx(least, rel=1e-6)
    A, b = case.A, case.b - case.A @ case.y
    weights = 1 / case.variances
    bounds = (case.low - case.y, case.high - case.y)
    for _ in range(20):  # weak duality: no prices give more than the least cost
        prices = (rng.normal(0, 3, len(A)), np.zeros(0))
        none = (sparse.csr_array((0, case.y.size)), np.zeros(0))
        found = lower_bound("l2", weights, bounds, (sparse.csr_array(A), b), none, prices, 1e9, whole=False)
        assert found <= least + 1e-9
    worse = case.cost(case.truth, "l2")
    assert worse > least * 1.01


@pytest.mark.slow
def test_long_orders_take_linear_time_and_few_blocks():
    """Many values in order, and the same in reverse order: one block at their mean."""
    n = 20_000
    query = hf.histogram(n)
    moved = hf.laplace(query, scale=1).onto(hf.ordered(np.arange(n)), integer=False)
    np.testing.assert_array_equal(moved.image(np.arange(n)), np.arange(n))
    assert set(moved.image(np.arange(n)[::-1]).tolist()) == {(n - 1) / 2}


def test_large_counts_do_not_blur_gaps():
    """Whole margins of counts near 2**40 are met exactly."""
    rng = np.random.default_rng(2)
    truth = rng.integers(2**39, 2**40, (6, 7))
    must = hf.invariant(hf.exact_margins((6, 7), [(0,), (1,)])) & hf.nonnegative()
    for integer in (False, True):
        z = hf.laplace(hf.histogram(42), scale=50).onto(must, integer=integer).release(truth.ravel(), rng=hf.seeded(1))
        table = z.values.reshape(6, 7)
        np.testing.assert_array_equal(table.sum(axis=0), truth.sum(axis=0))
        np.testing.assert_array_equal(table.sum(axis=1), truth.sum(axis=1))
