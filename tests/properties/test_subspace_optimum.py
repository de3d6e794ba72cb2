"""The optimal Gaussian law: its gap, what it is never above, closed forms, and an oracle that knows nothing of them."""

import itertools
import math
import pickle
from dataclasses import replace

import cvxpy
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import holdfast as hf
from holdfast.subspace import ellipsoids
from holdfast.subspace.gaussian_laws import correlated
from holdfast.subspace.geometry import Geometry
from subspaces import CASES, GAUSSIAN, KINDS, covariance, differences, projector


def errors(query, constraint, kind):
    """Total squared error at ρ = 1/2 (μ = 1) of each law, from the standard errors themselves."""
    found = {}
    for law in GAUSSIAN:
        mechanism = hf.extend(query, constraint, law=law, neighbours=kind, rho=0.5)
        found[law] = float((mechanism.standard_error() ** 2).sum())
        assert found[law] == pytest.approx(mechanism.evidence.objective, rel=1e-6)
        if law == "optimal":
            found["bound"], found["gap"] = mechanism.evidence.lower_bound, mechanism.evidence.relative_gap
    projected = hf.gaussian(query, rho=0.5, neighbours=kind, integer=False).onto(constraint, weights=None)
    found["projected"] = float((projected.standard_error() ** 2).sum())
    return found


@pytest.mark.slow
@pytest.mark.parametrize(("case", "kind"), list(zip(CASES, itertools.cycle(KINDS), strict=False)))
def test_the_optimum_is_never_above_the_others(case, kind):
    found = errors(*CASES[case], kind)
    assert -1e-9 <= found["gap"] < 1e-3
    for other in ("gaussian", "correlated", "projected"):
        assert found["optimal"] <= found[other] * (1 + 1e-6)
        assert found["bound"] <= found[other] * (1 + 1e-9)
    assert found["gaussian"] <= found["projected"] * (1 + 1e-8)  # SDP Cor 15


@settings(max_examples=6, deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True)
@given(st.integers(2, 6), st.integers(3, 12), st.integers(0, 2**32 - 1), st.sampled_from(KINDS))
def test_random_workloads_reach_their_gap(n, count, seed, kind):
    generator = np.random.default_rng(seed)
    query = hf.workload(generator.standard_normal((n, count)).round(3))
    constraint = hf.invariant(generator.integers(-2, 3, (1, n)) * 2 + 1)
    found = errors(query, constraint, kind)
    assert found["gap"] < 1e-3
    assert all(found["optimal"] <= found[law] * (1 + 1e-3) for law in ("gaussian", "correlated", "projected"))


@pytest.mark.parametrize(("case", "kind"), [("workload", "replace-one"), ("exact root", "add-remove")])
def test_a_solver_of_semidefinite_programs_finds_no_less(case, kind):
    """min tr Σ with (1, aᵀ; a, Σ) ⪰ 0 for every difference, in a basis of N."""
    query, constraint = CASES[case]
    values, vectors = np.linalg.eigh(projector(query, constraint))
    points = differences(query, constraint, kind) @ vectors[:, values > 0.5]
    sigma = cvxpy.Variable((points.shape[1],) * 2, symmetric=True)
    conditions = [
        cvxpy.bmat([[np.ones((1, 1)), point[None]], [point[:, None], sigma]]) >> 0
        for point in points[: len(points) // 2]
    ]
    problem = cvxpy.Problem(cvxpy.Minimize(cvxpy.trace(sigma)), conditions)
    problem.solve(solver=cvxpy.CLARABEL)
    evidence = hf.extend(query, constraint, neighbours=kind, rho=0.5).evidence
    assert evidence.lower_bound <= problem.value * (1 + 1e-6)
    assert evidence.objective == pytest.approx(problem.value, rel=1e-3)


@pytest.mark.slow
@pytest.mark.parametrize("most", [60, 100_000])
def test_few_pairs_at_a_time_find_what_a_solver_finds(monkeypatch, most):
    """Thirty columns, replace-one: 435 pairs, of which `most` heavy ones are climbed on together."""
    monkeypatch.setattr(ellipsoids, "MOST_CHOSEN", most)
    query = hf.workload(np.random.default_rng(8).standard_normal((6, 30)).round(2))
    constraint = hf.invariant([[1, 1, 1, 1, 1, 1]])
    values, vectors = np.linalg.eigh(projector(query, constraint))
    points = differences(query, constraint, "replace-one") @ vectors[:, values > 0.5]
    precision = cvxpy.Variable((5, 5), PSD=True)  # tr Σ for Σ = precision⁻¹
    problem = cvxpy.Problem(
        cvxpy.Minimize(cvxpy.matrix_frac(np.eye(5), precision)),
        [cvxpy.sum(cvxpy.multiply(points @ precision, points), axis=1) <= 1],
    )
    problem.solve(solver=cvxpy.CLARABEL)
    evidence = hf.extend(query, constraint, neighbours="replace-one", rho=0.5).evidence
    assert evidence.relative_gap < 1e-3
    assert evidence.lower_bound <= problem.value * (1 + 1e-6)
    assert evidence.objective == pytest.approx(problem.value, rel=1e-3)


@pytest.mark.slow
def test_pairs_left_out_come_back(monkeypatch):
    """Prefix sums spread their weight over most pairs: if few are taken at first, more follow until the gap is met."""
    monkeypatch.setattr(ellipsoids, "MOST_CHOSEN", 400)
    query = hf.workload(np.tril(np.ones((64, 64), dtype=int)))
    found = hf.extend(query, hf.invariant(np.eye(1, 64, 63, dtype=int)), neighbours="replace-one", rho=0.5)
    assert found.evidence.relative_gap < 1e-3


@pytest.mark.parametrize("pairs", [False, True])
def test_bounds_are_those_of_the_weights(pairs):
    """Weights on the simplex, and from them alone the dual value and every ratio, with all differences listed."""
    points = np.random.default_rng(4).standard_normal((7, 40)) * np.arange(1, 8)[:, None]

    def whiten(found):
        values, vectors = np.linalg.eigh(found)
        trace = np.sqrt(values).sum()
        return vectors.T / np.sqrt(trace * np.sqrt(values))[:, None], 2 * np.log(trace)

    weights = ellipsoids.dual_weights(points, pairs, whiten)
    assert weights.min() >= 0
    assert weights.sum() == pytest.approx(1, rel=1e-12)
    listed = points
    if pairs:
        first, second = np.nonzero(weights)
        assert (first < second).all()
        first, second = np.triu_indices(40, 1)
        weights, listed = weights[first, second], points[:, first] - points[:, second]
    values, vectors = np.linalg.eigh((listed * weights) @ listed.T)
    ratios = ((vectors.T @ listed) ** 2 / np.sqrt(values)[:, None]).sum(axis=0) / np.sqrt(values).sum()
    assert ratios @ weights == pytest.approx(1, rel=1e-9)
    assert 1 <= ratios.max() < 1 + 1e-5


def test_weights_change_what_is_least():
    """Weighted errors by the general way and by the interaction spaces agree, and beat equal weights."""
    query = hf.margins((3, 2, 2), [(0,), (0, 1), (1, 2)])
    constraint = hf.consistent(query)
    heavy = np.repeat([1.0, 20.0, 1.0], [3, 6, 4])
    mild = hf.extend(query, constraint, rho=0.5).standard_error() ** 2
    best = hf.extend(query, constraint, rho=0.5, weights=heavy)
    assert heavy @ best.standard_error() ** 2 == pytest.approx(best.evidence.objective, rel=1e-9)
    assert best.evidence.relative_gap < 1e-3
    assert best.evidence.objective < 0.99 * (heavy @ mild)
    dense = hf.extend(hf.workload(query.columns), constraint, rho=0.5, weights=heavy)
    assert dense.evidence.objective == pytest.approx(best.evidence.objective, rel=1e-3)
    assert heavy @ dense.standard_error() ** 2 == pytest.approx(dense.evidence.objective, rel=1e-6)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("case", ["total", "margins of cells", "consistent margins", "exact root"])
def test_structure_gives_the_law_of_the_dense_way(case, kind):
    """The same query as a plain workload goes through tables of columns; covariances agree."""
    query, constraint = CASES[case]
    plain = hf.workload(query.columns)
    rows = constraint.system(query.n)
    same = hf.equals(rows.equalities.A, rows.equalities.b) if rows.equalities.count else None
    exact = hf.invariant(rows.invariants.A) if rows.invariants.count else None
    both = exact if same is None else same if exact is None else same & exact
    for law in ("optimal", "gaussian"):
        known = covariance(hf.extend(query, constraint, law=law, neighbours=kind, rho=0.5))
        dense = covariance(hf.extend(plain, both, law=law, neighbours=kind, rho=0.5))
        assert known == pytest.approx(dense, rel=3e-3, abs=3e-3 * np.abs(known).max())


def test_closed_forms():
    """A total of n cells: c = 1 − 1/n (add-remove) or 2 (replace-one) on n − 1 dimensions."""
    total = hf.invariant(np.ones((1, 10), dtype=int))
    one = hf.extend(hf.histogram(10), total, rho=0.5).evidence
    assert one.objective == pytest.approx(9 * 0.9, rel=1e-12)
    two = hf.extend(hf.histogram(10), total, rho=0.5, neighbours="replace-one").evidence
    assert two.objective == pytest.approx(18, rel=1e-12)
    # All one-way margins of a 2 × 2 table, consistent: spaces (), (0), (1) with e = 1, 1/2, 1/2 and dimension 1.
    query = hf.margins((2, 2), [(0,), (1,)])
    found = hf.extend(query, hf.consistent(query), rho=0.5).evidence
    assert found.objective == pytest.approx((1 + 2 * math.sqrt(1 / 2)) ** 2, rel=1e-9)


@pytest.mark.parametrize("case", ["two totals", "exact level", "margins of cells", "workload"])
def test_given_and_extended_spherical_noise_are_one_law(case):
    """SDP Thm 22: spherical Gaussian noise given the equalities, projected, and extended, up to scale."""
    query, constraint = CASES[case]
    extended = covariance(hf.extend(query, constraint, law="gaussian", rho=0.5))
    base = hf.gaussian(query, scale=1, integer=False)
    assert covariance(base.given(constraint)) == pytest.approx(projector(query, constraint), abs=1e-9)
    assert covariance(base.onto(constraint)) == pytest.approx(projector(query, constraint), abs=1e-9)
    assert extended / extended.trace() == pytest.approx(
        projector(query, constraint) / projector(query, constraint).trace(), abs=1e-9
    )


@pytest.mark.parametrize("records", [1, 3])
def test_k_norm_noise_of_a_histogram_with_a_total_is_conditioned_laplace(records):
    """THEORY §6: ‖z‖_K = ½‖z‖₁ on N, so λ = 2·records/ε."""
    total = hf.invariant(np.ones((1, 5), dtype=int))
    kind = hf.Neighbours("replace-one", records=records)
    direct = hf.extend(hf.histogram(5), total, law="k-norm", epsilon=0.7, neighbours=kind)
    given_total = hf.laplace(hf.histogram(5), epsilon=0.7, neighbours=kind, integer=False).given(total)
    assert direct.standard_error() == pytest.approx(given_total.standard_error(), rel=1e-8)
    assert covariance(direct) == pytest.approx(covariance(given_total), rel=1e-8)
    assert direct.guarantee.epsilon == given_total.guarantee.epsilon == 0.7


def test_second_moments_of_k_norm_noise_by_numerical_integration():
    """Three cells with a total, add-remove: the density exp(−Σ|u − median|) on a plane, on a fine grid."""
    mechanism = hf.extend(hf.histogram(3), hf.invariant([[1, 1, 1]]), law="k-norm", epsilon=1)
    step = 0.05
    a, b = np.meshgrid(np.arange(-24, 24, step) + step / 2, np.arange(-24, 24, step) + step / 2)
    points = np.stack([a, b, -a - b])
    density = np.exp(-np.abs(points - np.median(points, axis=0)).sum(axis=0))
    moments = np.einsum("iab,jab,ab->ij", points, points, density) / density.sum()
    assert covariance(mechanism) == pytest.approx(moments, rel=2e-3)


@pytest.mark.slow
def test_a_search_over_bases_is_never_worse_than_projection():
    for (query, constraint), kind in zip(CASES.values(), itertools.cycle(KINDS[::-1]), strict=False):
        mechanism = hf.extend(query, constraint, law="laplace", epsilon=1, neighbours=kind)
        base = hf.laplace(query, epsilon=1, neighbours=kind, integer=False)
        projected = (base.onto(constraint, weights=None).standard_error() ** 2).sum()
        assert (mechanism.standard_error() ** 2).sum() <= projected * (1 + 1e-9)
    prefix = hf.extend(*CASES["prefix sums"], law="laplace", epsilon=1)
    assert prefix.method.startswith("extended Laplace")
    assert any(note.startswith("projected: ") for note in prefix.evidence.notes)


def test_an_orthonormal_basis_can_be_worse():
    """THEORY §6: four cells with a total have Δ₁ = 1.5 in Hadamard's basis and 1 as they are: it is not taken."""
    mechanism = hf.extend(hf.histogram(4), hf.invariant([[1, 1, 1, 1]]), law="laplace", epsilon=1)
    notes = dict(note.rsplit(": ", 1) for note in mechanism.evidence.notes)
    assert float(notes["projected"]) == pytest.approx(6)
    assert float(notes["Hadamard transform of the cells"]) == pytest.approx(2 * 3 * 1.5**2)
    assert mechanism.method == "projected Laplace"


@pytest.mark.slow
def test_extended_mechanisms_do_what_mechanisms_do():
    query, constraint = CASES["exact root"]
    truth = query.answer([3, 0, 5, 1, 2])
    for law in ("optimal", "gaussian", "correlated", "laplace", "k-norm"):
        kind, budget = "replace-one", {"epsilon": 1} if law in ("laplace", "k-norm") else {"rho": 0.5}
        mechanism = hf.extend(query, constraint, law=law, neighbours=kind, **budget)
        release = mechanism.release(truth, rng=hf.seeded(1))
        assert release.values[0] == pytest.approx(truth[0], abs=1e-9)
        assert release.values[1:3].sum() == pytest.approx(truth[0], abs=1e-8)
        assert release.interval().shape == (query.n, 2)
        assert release.measurements is None
        again = pickle.loads(pickle.dumps(mechanism))
        assert np.array_equal(again.noise(3, hf.seeded(2)), mechanism.noise(3, hf.seeded(2)))
        half = mechanism.calibrated(**{name: value / 2 for name, value in budget.items()})
        factor = 2 if "epsilon" in budget else math.sqrt(2)
        assert half.standard_error() == pytest.approx(factor * mechanism.standard_error(), rel=1e-8)
    met = hf.extend(query, constraint, rho=1).calibrated(epsilon=0.5, delta=1e-5).guarantee
    assert 0.5 * (1 - 1e-9) <= met.epsilon <= 0.5


def test_a_grid_counts_in_its_own_units():
    W = np.array([[0.5, 1.0, 0.0], [0.0, 0.5, 1.5], [0.5, 1.5, 1.5]])
    fine = hf.extend(hf.workload(W, grid=0.5), hf.invariant([[1, 1, 0]]), law="gaussian", rho=0.5)
    plain = hf.extend(hf.workload(W), hf.invariant([[1, 1, 0]]), law="gaussian", rho=0.5)
    assert fine.standard_error() == pytest.approx(plain.standard_error(), rel=1e-8)


@pytest.mark.parametrize("case", ["total", "margins of cells", "consistent margins"])
def test_correlated_noise_does_not_depend_on_how_its_space_is_turned(case):
    """Axes of alike cells are equally long; rounding must not decide which are halved."""
    query, constraint = CASES[case]
    neighbours = hf.Neighbours("replace-one")
    geometry = Geometry.of(query, constraint.system(query.n), neighbours)
    turn = np.linalg.qr(np.random.default_rng(3).standard_normal((geometry.rank, geometry.rank)))[0]
    turned = replace(geometry, basis=geometry.basis @ turn.T, points=turn @ geometry.points)
    laws = [correlated(each, neighbours) for each in (geometry, turned)]
    one, other = (law.factor @ law.factor.T for law in laws)
    assert one == pytest.approx(other, abs=1e-4 * abs(one).max())
