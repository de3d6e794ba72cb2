"""Gauges by linear programs, facets and walks of k-norm noise, against oracles that share no code with them."""

import itertools

import cvxpy
import numpy as np
import pytest
from scipy.spatial import ConvexHull

import holdfast as hf
from holdfast.arrays import Shared
from holdfast.noise.convergence import meeting_times
from holdfast.subspace.k_norm import facets as k_norm_facets
from holdfast.subspace.k_norm import walk as k_norm_walk
from holdfast.subspace.k_norm.blocks import Blocks
from holdfast.subspace.k_norm.body import WIDER, Body, listed
from holdfast.subspace.k_norm.facets import Facets
from holdfast.subspace.k_norm.gauge import contains, corners_towards, gauge, gauges
from holdfast.subspace.k_norm.groups import groups
from holdfast.subspace.k_norm.pivots import gauges as pivoted_gauges
from holdfast.subspace.k_norm.pivots import paired
from holdfast.subspace.k_norm.relations import Relations
from holdfast.subspace.k_norm.walk import Walk
from subspaces import CASES, KINDS, covariance, differences


def points_of(rank, count, seed):
    return np.random.default_rng(seed).integers(-2, 3, (rank, count)) + 0.125 * np.eye(rank, count)


@pytest.mark.parametrize("pairs", [False, True])
def test_gauges_are_those_of_another_solver(pairs):
    points = np.vstack([points_of(3, 7, 1), np.ones((1, 7))]) if pairs else points_of(4, 7, 1)
    targets = np.random.default_rng(2).standard_normal((4, 7)) @ (points - points[:, :1]).T
    targets = np.concatenate([targets, (points[:, :2] - points[:, 2:4]).T])
    found = gauges(points, pairs, targets)
    for target, value in zip(targets, found, strict=True):
        z = cvxpy.Variable(7)
        conditions = [points @ z == target] + ([cvxpy.sum(z) == 0] if pairs else [])
        problem = cvxpy.Problem(cvxpy.Minimize(cvxpy.norm1(z) / (2 if pairs else 1)), conditions)
        problem.solve(solver=cvxpy.CLARABEL)
        assert value == pytest.approx(problem.value, rel=1e-6)
        assert contains(points, pairs, target / value)
        assert not contains(points, pairs, 1.001 * target / value)
    assert gauge(points, pairs, 0 * targets[0]) == 0.0
    flat = np.vstack([points, np.zeros((1, 7))])
    assert gauge(flat, pairs, np.eye(len(flat))[-1]) == np.inf


@pytest.mark.parametrize(("rank", "count", "seed"), [(2, 5, 0), (3, 8, 1), (4, 9, 2), (5, 9, 3)])
def test_facets_are_those_of_the_hull(rank, count, seed):
    """Volume and second moments of K by the triangulated hull of the points themselves, which are not moved here."""
    body = Body.of(points_of(rank, count, seed))
    facets = Facets.of(body)
    hull = ConvexHull(np.concatenate([body.points, -body.points]))
    corners = hull.points[hull.simplices]
    volumes = np.abs(np.linalg.det(corners))
    assert np.abs(np.linalg.det(facets.corners)).sum() == pytest.approx(volumes.sum(), rel=3e-6 * rank)
    # E[x xᵀ] of a simplex with corners 0, v: (Σ v vᵀ + s sᵀ)/((d+1)(d+2)); E[r²] takes the denominator away.
    sums = corners.sum(axis=1)
    each = np.einsum("fij,fik->fjk", corners, corners) + np.einsum("fj,fk->fjk", sums, sums)
    expected = np.einsum("f,fjk->jk", volumes, each) / volumes.sum()
    assert facets.moments == pytest.approx(expected, rel=1e-5, abs=1e-5)
    assert facets.largest == pytest.approx(1, abs=3 * WIDER)
    assert facets.largest >= np.abs(np.linalg.inv(facets.corners).sum(axis=2) @ body.points.T).max() - 1e-15


def test_squares_and_octahedra_by_hand():
    """K a square with corners ±(1, 1), ±(1, −1): ‖u‖ = max|u_i|; E u₁² = E[r²]·E[x₁²] = 12·(1/3) = 4."""
    square = hf.workload(np.array([[1, 1, 1], [1, -1, 0], [0, 0, 0]]))
    mechanism = hf.extend(square, hf.invariant([[0, 0, 1]]), law="k-norm", epsilon=1)
    assert mechanism.method == "k-norm (facets)"
    assert mechanism.standard_error() == pytest.approx([2, 2, 0], rel=1e-5)
    assert mechanism.evidence.objective == pytest.approx(8, rel=1e-5)
    # A cube of three dimensions: r ~ Gamma(4), E r² = 20, E x² = 1/3.
    signs = np.array([[1, 1, 1, 1], [1, 1, -1, -1], [1, -1, 1, -1]])
    cube = hf.extend(hf.workload(signs), hf.equals([[0, 0, 0]], [0]), law="k-norm", epsilon=2)
    assert cube.standard_error() == pytest.approx(np.sqrt([20 / 3] * 3) / 2, rel=1e-5)
    assert (cube.guarantee.epsilon, cube.guarantee.scope, cube.guarantee.status) == (2.0, "all", "proved")


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("case", ["weighted total", "workload", "one margin of cells", "exact root", "exact leaf"])
def test_no_difference_changes_the_log_density_by_more_than_said(case, kind):
    """‖u − d‖_K − ‖u‖_K by linear programs, for draws u and all d, against epsilon; some come near it."""
    query, constraint = CASES[case]
    mechanism = hf.extend(query, constraint, law="k-norm", neighbours=kind, epsilon=1)
    changes = differences(query, constraint, kind)
    noise = mechanism.noise(6, hf.seeded(3)) / mechanism.source.scale
    ends = np.concatenate([noise, *(noise - change for change in changes)])
    sizes = gauges(changes.T, False, ends).reshape(-1, 6)
    losses = np.abs(sizes[1:] - sizes[0])
    assert losses.max() <= 1 + 1e-9
    assert losses.max() > 0.6
    assert mechanism.guarantee.epsilon == 1.0


def test_broken_fans_are_not_taken():
    """A hole, a facet twice, or facets that overlap: Qhull is not trusted."""
    body = Body.of(points_of(3, 6, 5))
    points, corners, beyond = k_norm_facets._hull(body)
    assert k_norm_facets._checked(body, points, corners, beyond) is not None
    assert k_norm_facets._checked(body, points, corners[:-1], np.minimum(beyond[:-1], len(corners) - 2)) is None
    twice = np.concatenate([corners, corners]), np.concatenate([beyond, beyond + len(beyond)])
    assert k_norm_facets._checked(body, points, *twice) is None
    small = np.argsort(np.abs(np.linalg.det(points[corners])))[:1]  # which no ray meets
    again = np.concatenate([corners, corners[small]]), np.concatenate([beyond, beyond[small]])
    assert k_norm_facets._checked(body, points, *again) is None
    inside = points.copy()
    inside[corners[0, 0]] *= -0.2
    assert k_norm_facets._checked(body, inside, corners, beyond) is None


def test_facets_too_narrow_for_doubles_are_not_taken():
    """Slopes of a facet with corners a part in 10⁵ apart would be right to 10⁻¹¹ only; farther apart they are taken."""
    wide, narrow = (Body.of(np.array([[1, 1, 0], [0, apart, 1.0]])) for apart in (1e-3, 1e-5))
    assert len(Facets.of(wide).corners) == 6
    assert Facets.of(narrow) is None


@pytest.mark.parametrize(("rank", "count"), [(3, 5), (6, 14), (9, 30)])
def test_pivots_find_the_gauges_of_linear_programs(rank, count):
    body = Body.of(points_of(rank, count, rank))
    targets = np.random.default_rng(4).standard_normal((30, rank))
    first = corners_towards(body.moved.T, targets[0])
    found = pivoted_gauges(body.moved, np.ascontiguousarray(body.moved.T), first, targets)
    assert found == pytest.approx(gauges(body.moved.T, False, targets), rel=1e-8)


def test_two_uniform_numbers_are_equal_as_often_as_they_can():
    numbers = hf.seeded(5).uniforms(3 * 30_000).reshape(-1, 3)
    for low, high, other_low, other_high in [(0, 1, 0.5, 2), (0, 3, 1, 2), (1, 2, 0, 3), (0, 1, 2, 3)]:
        drawn = np.array([paired(low, high, other_low, other_high, row) for row in numbers])
        overlap = max(0, min(high, other_high) - max(low, other_low)) / max(high - low, other_high - other_low)
        assert (drawn[:, 0] == drawn[:, 1]).mean() == pytest.approx(overlap, abs=0.013)
        for column, start, end in ((0, low, high), (1, other_low, other_high)):
            shares = np.sort((drawn[:, column] - start) / (end - start))
            assert np.abs(shares - np.linspace(0, 1, len(shares))).max() < 0.013


@pytest.mark.parametrize("pairs", [False, True])
def test_relations_and_facets_have_the_same_moments(pairs):
    """Three relations with unequal coefficients between eight columns, by both ways; and one between six."""
    for rank, count, seed in ((5, 8 + pairs, 1), (5, 6 + pairs, 2), (3, 5 + pairs, 3)):
        points = points_of(rank, count, seed)
        points = points - points.mean(axis=1, keepdims=True) if pairs else points
        law = Relations.of(points, pairs)
        body = Body.of(listed(points, pairs))
        expected = body.turn @ Facets.of(body).moments @ body.turn.T
        assert points @ law.moments @ points.T == pytest.approx(expected, abs=0.05 * np.abs(expected).max())
        assert law.costs.max() < (0.5 if pairs else 1.0)


@pytest.mark.parametrize("pairs", [False, True])
def test_cells_of_relations_are_shortest(pairs):
    """The gauge of every draw, by a linear program, is what its cells say."""
    points = points_of(6, 9, 4)
    points = points - points.mean(axis=1, keepdims=True) if pairs else points
    drawn = Relations.of(points, pairs).draw(60, hf.seeded(9))
    said = np.abs(drawn).sum(axis=1) / (2 if pairs else 1)
    assert gauges(points, pairs, drawn @ points.T) == pytest.approx(said, rel=1e-5)
    assert ((drawn == 0).sum(axis=1) == 3 - pairs).all()
    if pairs:
        assert np.abs(drawn.sum(axis=1)).max() < 1e-9


@pytest.mark.slow
def test_a_weighted_total_of_many_cells():
    """The zero is the weighted median, a heavy cell more often; variances against those of all facets for few."""
    weights = np.array([[1, 2, 3, 1, 5, 2, 2, 1, 3]])
    mechanism = hf.extend(hf.histogram(9), hf.invariant(weights), law="k-norm", epsilon=1)
    assert mechanism.method == "k-norm (relations)"
    assert mechanism.evidence.notes == ("K has 9 columns with 1 relation",)
    body = Body.of(listed(np.linalg.svd(weights / np.linalg.norm(weights))[2][1:], False))
    expected = (body.turn @ Facets.of(body).moments @ body.turn.T).trace()
    assert mechanism.evidence.objective == pytest.approx(expected, rel=0.02)
    noise = mechanism.noise(200, hf.seeded(3))
    assert np.abs(noise @ weights[0]).max() < 1e-9
    large = hf.extend(hf.histogram(90), hf.invariant(np.arange(90)[None] % 7 + 1), law="k-norm", epsilon=1)
    assert large.guarantee.status == "proved"
    assert large.evidence.objective < 2 * 89


@pytest.mark.parametrize(
    ("n", "blocks"),
    [
        (6, [[0, 1, 2], [3, 4]]),
        (6, [[0, 1, 2], [3, 4, 5]]),
        (7, [[0, 1, 2], [3, 4], [5, 6]]),
        (5, [[0], [1, 2], [3, 4]]),
        (7, [[0, 1, 2, 3], [4, 5]]),
    ],
)
def test_blocks_with_totals_have_the_moments_of_all_facets(n, blocks):
    """The closed form against the facets of the same K, which is wider by about a millionth; and against draws."""
    rows = np.array([[cell in block for cell in range(n)] for block in blocks], dtype=int)
    mechanism = hf.extend(hf.histogram(n), hf.invariant(rows), law="k-norm", epsilon=1, neighbours="replace-one")
    assert mechanism.method == "k-norm (blocks)"
    points = np.eye(n) - np.linalg.pinv(rows) @ rows
    left = np.linalg.svd(points - points.mean(axis=1, keepdims=True))[0][:, : n - len(blocks)]
    body = Body.of(listed(left.T @ points, True))
    expected = left @ body.turn @ Facets.of(body).moments @ body.turn.T @ left.T
    assert covariance(mechanism) == pytest.approx(expected, rel=1e-5, abs=1e-5)
    drawn = mechanism.source.form.parts[0].draw(40, hf.seeded(2))
    assert gauges(points, True, drawn @ points.T) == pytest.approx(np.abs(drawn).sum(axis=1) / 2, rel=1e-7)
    assert mechanism.noise(50, hf.seeded(4)) @ rows.T == pytest.approx(0, abs=1e-9)


@pytest.mark.parametrize("sizes", [(0, 3, 3), (1, 2, 4), (0, 2, 2, 2), (1, 3, 2)])
def test_every_point_has_one_description_in_blocks(sizes):
    """All shortest z with enough zeros, for points at random: exactly one of them is of a case that is listed."""
    law = Blocks(np.repeat(np.arange(len(sizes)), sizes))
    inside, zero, _ = law._cases
    listed_cases = {(*a, *b) for a, b in zip(inside.tolist(), zero.tolist(), strict=True)}
    count, many = sum(sizes), len(sizes) - 2
    means = np.array([(law.labels == block) / size for block, size in enumerate(sizes) if block])
    kernel = means[1:] - means[0]
    starts = np.random.default_rng(6).standard_normal((60, count))
    for start in starts - starts.mean(axis=1, keepdims=True):
        found = {}
        for places in map(list, itertools.combinations(range(count), many)):
            if abs(np.linalg.det(kernel[:, places])) < 1e-9:
                continue
            cells = start - np.linalg.solve(kernel[:, places].T, start[places]) @ kernel
            cells[places] = 0
            found[tuple(places)] = cells
        least = min(np.abs(cells).sum() for cells in found.values())
        shortest = [cells for cells in found.values() if np.abs(cells).sum() < least + 1e-9]
        shapes = [
            tuple(np.bincount(law.labels[kept], minlength=len(sizes)) for kept in (cells > 0, cells == 0))
            for cells in shortest
        ]
        assert sum(tuple(np.concatenate(shape).tolist()) in listed_cases for shape in shapes) == 1


@pytest.mark.slow
def test_a_hierarchy_with_an_exact_level():
    sizes = [9, 14, 1, 11, 11, 5]
    tree = hf.Hierarchy.from_parents([-1, *[0] * 6, *np.repeat(np.arange(1, 7), sizes)])
    constraint = hf.consistent(tree) & hf.invariant(hf.exact_nodes(tree, range(1, 7)))
    for kind, way in (("add-remove", "k-norm"), ("replace-one", "k-norm (blocks)")):
        mechanism = hf.extend(hf.counts(tree), constraint, law="k-norm", neighbours=kind, epsilon=1)
        assert mechanism.method == way
        assert mechanism.guarantee.status == "proved"
        assert mechanism.standard_error()[:7] == pytest.approx(0, abs=1e-5)
        plain = hf.extend(hf.counts(tree), constraint, law="laplace", neighbours=kind, epsilon=1)
        assert mechanism.evidence.objective < plain.evidence.objective


def test_groups_have_noise_of_their_own():
    """Exact levels and several totals under add-remove: independent, each as if the other were not there."""
    rows = np.zeros((2, 12), dtype=int)
    rows[0, :5], rows[1, 5:9] = 1, 1
    both = covariance(hf.extend(hf.histogram(12), hf.invariant(rows), law="k-norm", epsilon=1))
    for first, last in ((0, 5), (5, 9)):
        total = hf.invariant(np.ones((1, last - first), dtype=int))
        alone = covariance(hf.extend(hf.histogram(last - first), total, law="k-norm", epsilon=1))
        assert both[first:last, first:last] == pytest.approx(alone, abs=1e-7)
    assert both[9:, 9:] == pytest.approx(2 * np.eye(3), abs=1e-7)
    assert both[:5, 5:] == pytest.approx(0, abs=1e-7)
    found = groups(np.array([[1.0, 0, 0, 2, 0], [0, 1, 0, 0, 1], [0, 0, 1, 0, 1]]))
    assert sorted(map(tuple, found)) == [(0, 3), (1, 2, 4)]


def test_coupled_walks_meet_and_stay_together():
    walk = Walk.of(Body.of(points_of(4, 9, 2)))
    times = meeting_times(walk, 5, 200, hf.seeded(6), 200)
    assert 5 < times.max() < 100
    together = walk.start(20, hf.seeded(7))
    ahead, behind = walk.advance_coupled(together.copy(), together.copy(), hf.seeded(8))
    assert np.array_equal(ahead, behind)
    assert not np.array_equal(ahead, together)


@pytest.mark.slow
def test_walks_are_estimates(monkeypatch):
    monkeypatch.setattr(k_norm_facets, "MOST_FACETS", 10)
    query, constraint = CASES["workload"]
    mechanism = hf.extend(query, constraint, law="k-norm", epsilon=1)
    assert mechanism.method == "k-norm (walk)"
    for statement in mechanism.guarantees:
        assert statement.status == "estimated"
        assert (1 + np.e) * 1e-6 <= statement.delta == statement.numerical_delta < 1e-5
        assert any("L-lag couplings" in words for words in statement.caveats)
    assert mechanism.guarantee.epsilon == 1.0
    half = mechanism.calibrated(epsilon=0.5)
    assert half.guarantee.epsilon == pytest.approx(0.5, rel=1e-9)
    assert half.standard_error() == pytest.approx(2 * mechanism.standard_error(), rel=1e-8)
    interval = mechanism.release(query.answer(np.arange(9)), rng=hf.seeded(1)).interval(0.9)
    monkeypatch.undo()
    listed_facets = hf.extend(query, constraint, law="k-norm", epsilon=1)
    width = np.diff(listed_facets.release(query.answer(np.arange(9)), rng=hf.seeded(1)).interval(0.9))
    assert np.diff(interval) == pytest.approx(width, rel=0.1)
    known = covariance(hf.extend(query, constraint, law="k-norm", epsilon=1))
    assert covariance(mechanism) == pytest.approx(known, abs=0.1 * np.abs(known).max())


def test_what_is_too_large_is_refused(monkeypatch):
    wide = hf.workload(np.random.default_rng(1).integers(0, 3, (20, 60)))
    with pytest.raises(hf.Refused, match="19 dimensions and 60 differences: use law='laplace'"):
        hf.extend(wide, hf.invariant(np.ones((1, 20), dtype=int)), law="k-norm", epsilon=1)
    many = hf.workload(np.random.default_rng(1).integers(0, 9, (4, 100)))
    with pytest.raises(hf.Refused, match="up to 2000 differences"):
        hf.extend(many, hf.invariant([[1, 1, 1, 1]]), law="k-norm", epsilon=1, neighbours="replace-one")
    monkeypatch.setattr(k_norm_facets, "MOST_FACETS", 10)
    monkeypatch.setattr(k_norm_walk, "MOST_SWEEPS", 1)
    monkeypatch.setattr(k_norm_walk, "MEASURED", Shared(1))
    with pytest.raises(hf.Refused, match="did not meet"):
        hf.extend(*CASES["workload"], law="k-norm", epsilon=1)


@pytest.mark.parametrize("kind", ["add-remove", "replace-one"])
def test_several_records_cost_as_many_times_the_noise(kind):
    query, held = hf.workload([[1, 0, 2, 1], [0, 1, 1, 3], [1, 1, 0, 2]]), hf.invariant([[1, 1, 1]])
    relations = [hf.Neighbours(kind, records=k) for k in (1, 2)]
    one, two = (hf.extend(query, held, law="k-norm", epsilon=1, neighbours=each) for each in relations)
    assert one.method == two.method == "k-norm (facets)"
    assert two.base.law.scale_values[0] == 2 * one.base.law.scale_values[0]
    assert one.guarantee.epsilon == two.guarantee.epsilon == 1
