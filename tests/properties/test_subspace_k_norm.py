"""Facets of k-norm noise against oracles that share no code with them; what is too large is refused."""

import numpy as np
import pytest
from scipy.spatial import ConvexHull

import holdfast as hf
from holdfast.subspace import k_norm
from holdfast.subspace.k_norm import WIDER, Body, Facets
from subspaces import CASES, KINDS, differences, gauges


def points_of(rank, count, seed):
    return np.random.default_rng(seed).integers(-2, 3, (rank, count)) + 0.125 * np.eye(rank, count)


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
    points, corners, beyond = k_norm._hull(body)
    assert k_norm._checked(body, points, corners, beyond) is not None
    assert k_norm._checked(body, points, corners[:-1], np.minimum(beyond[:-1], len(corners) - 2)) is None
    twice = np.concatenate([corners, corners]), np.concatenate([beyond, beyond + len(beyond)])
    assert k_norm._checked(body, points, *twice) is None
    small = np.argsort(np.abs(np.linalg.det(points[corners])))[:1]  # which no ray meets
    again = np.concatenate([corners, corners[small]]), np.concatenate([beyond, beyond[small]])
    assert k_norm._checked(body, points, *again) is None
    inside = points.copy()
    inside[corners[0, 0]] *= -0.2
    assert k_norm._checked(body, inside, corners, beyond) is None


def test_facets_too_narrow_for_doubles_are_not_taken():
    """Slopes of a facet with corners a part in 10⁵ apart would be right to 10⁻¹¹ only; farther apart they are taken."""
    wide, narrow = (Body.of(np.array([[1, 1, 0], [0, apart, 1.0]])) for apart in (1e-3, 1e-5))
    assert len(Facets.of(wide).corners) == 6
    assert Facets.of(narrow) is None


@pytest.mark.parametrize("kind", ["add-remove", "replace-one"])
def test_several_records_cost_as_many_times_the_noise(kind):
    query, held = hf.workload([[1, 0, 2, 1], [0, 1, 1, 3], [1, 1, 0, 2]]), hf.invariant([[1, 1, 1]])
    relations = [hf.Neighbours(kind, records=k) for k in (1, 2)]
    one, two = (hf.extend(query, held, law="k-norm", epsilon=1, neighbours=each) for each in relations)
    assert one.method == two.method == "k-norm (facets)"
    assert two.base.law.scale_values[0] == 2 * one.base.law.scale_values[0]
    assert one.guarantee.epsilon == two.guarantee.epsilon == 1


def test_what_is_too_large_is_refused():
    wide = hf.workload(np.random.default_rng(1).integers(0, 3, (20, 60)))
    with pytest.raises(hf.Refused, match="19 dimensions and 60 differences: use law='laplace'"):
        hf.extend(wide, hf.invariant(np.ones((1, 20), dtype=int)), law="k-norm", epsilon=1)
    many = hf.workload(np.random.default_rng(1).integers(0, 9, (4, 100)))
    with pytest.raises(hf.Refused, match="up to 2000 differences"):
        hf.extend(many, hf.invariant([[1, 1, 1, 1]]), law="k-norm", epsilon=1, neighbours="replace-one")
    assert Facets.of(Body.of(points_of(4, 9, 2)), most=10) is None
