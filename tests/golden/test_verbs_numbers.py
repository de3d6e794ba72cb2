"""Numbers of the papers and of the theory, each with its derivation or source."""

from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

import holdfast as hf
from holdfast import beliefs
from holdfast.privacy import gaussian_delta


def total(n):
    return hf.invariant(np.ones((1, n), dtype=int))


def scope(mechanism, name):
    return next(statement for statement in mechanism.guarantees if statement.scope == name)


@pytest.mark.parametrize(("n", "factor"), [(2, 1 / 2), (3, 5 / 6), (4, 21 / 20)])
def test_conditioned_laplace_variance(n, factor):
    """TV §4: 5/6·λ² at n = 3; n = 2 is Laplace of half the scale; n = 4 from λ²(2n−1)(n−1)/(n(n+1))."""
    mechanism = hf.laplace(hf.histogram(n), scale=2, integer=False).given(total(n))
    assert mechanism.standard_error() ** 2 == pytest.approx([4 * factor] * n, rel=1e-12)
    noise = mechanism.noise(200_000, rng=hf.seeded(1))
    assert np.abs(noise.sum(axis=1)).max() < 1e-9
    # The variance of a variance over N draws is about 5·v²/N for these laws: 6 standard errors.
    assert noise.var(axis=0) == pytest.approx([4 * factor] * n, rel=6 * np.sqrt(5 / 200_000))


@pytest.mark.parametrize("n", [2, 3, 10])
def test_projected_laplace_variance(n):
    """TV Prop 18: 2λ²(1 − 1/n)."""
    mechanism = hf.laplace(hf.histogram(n), scale=3, integer=False).onto(total(n))
    assert mechanism.standard_error() ** 2 == pytest.approx([2 * 9 * (1 - 1 / n)] * n, rel=1e-12)
    noise = mechanism.noise(100_000, rng=hf.seeded(2))
    assert noise.var(axis=0) == pytest.approx([18 * (1 - 1 / n)] * n, rel=6 * np.sqrt(5 / 100_000))


@pytest.mark.slow
@pytest.mark.parametrize("scale", [Fraction(1, 2), Fraction(2)])
@pytest.mark.parametrize("n", [2, 3])
def test_integer_conditioned_variance_is_the_oracles(n, scale):
    table = beliefs.weights("laplace", scale, beliefs.reach_for("laplace", scale, 1e-14), bits=128)
    exact = beliefs.given([0] * n, table, lambda z: sum(z) == 0)
    mechanism = hf.laplace(hf.histogram(n), scale=scale).given(total(n))
    assert mechanism.standard_error() ** 2 == pytest.approx([float(exact.mean(lambda z: z[0] ** 2))] * n, rel=1e-9)


def test_spherical_gaussian_given_and_onto_have_one_law():
    """SDP Thm 22: same covariance and, for the same words, the same noise."""
    query = hf.margins((3, 4))
    base = hf.gaussian(query, scale=2, integer=False)
    mandated = hf.invariant(hf.exact_margins((3, 4), [(0,), (1,)]))
    revised, updated = base.given(mandated), base.onto(mandated)
    assert revised.standard_error() == pytest.approx(updated.standard_error(), rel=1e-12)
    same = revised.noise(100, rng=hf.seeded(5)) - updated.noise(100, rng=hf.seeded(5))
    assert np.abs(same).max() < 1e-12
    # Unequal scales: given is the weighted projection, not the orthogonal one.
    uneven = hf.gaussian(query, scale=np.linspace(1, 3, 12), integer=False)
    weighted = uneven.onto(mandated, weights="noise").noise(100, rng=hf.seeded(5))
    plain = uneven.onto(mandated, weights=None).noise(100, rng=hf.seeded(5))
    assert np.abs(uneven.given(mandated).noise(100, rng=hf.seeded(5)) - weighted).max() < 1e-12
    assert np.abs(plain - weighted).max() > 0.1


@pytest.mark.slow
def test_error_of_projected_gaussian_noise():
    """SDP Cor 14: total squared error (n − n_c)σ². SDP §5.2: √((6720−740)/6720) = 0.943, its square 0.890."""
    shape = (14, 24, 20)
    mandated = hf.invariant(hf.exact_margins(shape, [(1, 2), (0, 2)]))
    mechanism = hf.gaussian(hf.margins(shape), scale=1, integer=False).onto(mandated)
    errors = mechanism.standard_error()
    assert (errors**2).sum() == pytest.approx(6720 - 740, rel=1e-9)
    assert np.median(errors) == pytest.approx(np.sqrt((6720 - 740) / 6720), abs=5e-4)
    assert round(float(np.median(errors)), 3) == 0.943


def test_the_subspace_loss_can_exceed_the_plain_one():
    """THEORY §2: n cells, total exact, add-remove: max‖Π_N d‖₁ = 2(1 − 1/n) > 1."""
    n = 5
    mechanism = hf.laplace(hf.histogram(n), scale=1, integer=False).given(total(n))
    assert scope(mechanism, "subspace").epsilon == pytest.approx(2 * (1 - 1 / n), rel=1e-9)
    assert scope(mechanism, "subspace").epsilon >= 2 * (1 - 1 / n)
    shared = scope(mechanism, "invariant-sharing")
    assert (shared.records, shared.neighbours.kind, shared.epsilon) == (2, "add-remove", 2.0)


def test_integer_conditioning_makes_the_subspace_statement_void():
    """THEORY §2: Π_N d is not whole, so supports are disjoint."""
    mechanism = hf.laplace(hf.histogram(3), scale=1).given(total(3))
    assert scope(mechanism, "subspace").void
    assert mechanism.guarantee.scope == "invariant-sharing"
    # Replace-one keeps the total: every neighbour shares it, and the scope is all.
    replaced = hf.laplace(hf.histogram(3), scale=1, neighbours="replace-one").given(total(3))
    assert (replaced.guarantee.scope, replaced.guarantee.epsilon) == ("all", 2.0)
    # A pinned coordinate projects whole vectors to whole vectors: the subspace statement then holds.
    pinned = hf.laplace(hf.histogram(3), scale=1).given(hf.invariant([[1, 0, 0]]))
    assert scope(pinned, "subspace").epsilon == 1.0


def test_two_crossed_margins_move_by_swaps():
    """THEORY §2: no record can change alone; the smallest move is a 2×2 swap of two records, loss 4/λ."""
    for relation in ("add-remove", "replace-one"):
        mechanism = hf.laplace(hf.margins((3, 3)), scale=2, neighbours=relation).given(
            hf.invariant(hf.exact_margins((3, 3), [(0,), (1,)]))
        )
        statement = mechanism.guarantee
        assert (statement.scope, statement.records, statement.epsilon) == ("invariant-sharing", 2, 2.0)


def test_an_exact_cell_is_named_as_unprotected():
    mechanism = hf.laplace(hf.histogram(3), scale=1, neighbours="replace-one").given(hf.invariant([[0, 1, 0]]))
    statement = scope(mechanism, "invariant-sharing")
    assert any("cell 1" in words for words in statement.unprotected)


def test_integer_gaussian_given_an_equality_has_another_delta():
    """THEORY §2: σ = 2, z₁ = z₂, ε = 2: δ goes 0.00113 → 0.00146; only ρ is kept, and the printed ε follows ρ."""
    query = hf.workload([[1], [1]])
    base = hf.gaussian(query, scale=2)
    mechanism = base.given(hf.equals([[1, -1]], [0]))
    assert mechanism.guarantee.rho == pytest.approx(2 / 8)
    table = beliefs.weights("gaussian", 4, beliefs.reach_for("gaussian", 4, 1e-25), bits=128)
    window = beliefs.window_for([[0, 0], [1, 1]], table)
    free = [beliefs.base(x, table, window) for x in ([0, 0], [1, 1])]
    line = [beliefs.given(x, table, lambda z: z[0] == z[1], window) for x in ([0, 0], [1, 1])]
    assert beliefs.hockey_stick(*free, 2) == pytest.approx(0.00113, abs=5e-6)
    true = beliefs.hockey_stick(*line, 2)
    assert true == pytest.approx(0.00146, abs=5e-6)
    assert mechanism.guarantee.at_epsilon(2).delta >= true


def test_classical_calibration_prints_the_true_delta():
    """THEORY §1: at (1, 1e-12) the classical σ has 4.2 times the claimed δ."""
    mechanism = hf.gaussian(hf.histogram(3), epsilon=1, delta=1e-12, integer=False, calibration="classical")
    assert mechanism.guarantee.delta == pytest.approx(4.2e-12, rel=0.02)
    assert any("classical" in caveat for caveat in mechanism.guarantee.caveats)
    tight = hf.gaussian(hf.histogram(3), epsilon=1, delta=1e-12, integer=False)
    assert (tight.guarantee.epsilon, tight.guarantee.delta) == (1.0, 1e-12)


def test_a_union_is_not_free():
    """THEORY §2: TV Thm 12 part 2 as printed fails: each side is constant, the union shows which of them holds."""
    union = hf.between(0, 0) | hf.between(2, 2)
    mechanism = hf.laplace(hf.histogram(1), scale=1).given(union)
    table = beliefs.weights("laplace", 1, 40)
    laws = [beliefs.given([x], table, [(0,), (2,)]) for x in (0, 2)]
    assert beliefs.log_ratio(*laws) == 2.0  # one record cannot change alone: 1 lies on neither side
    assert mechanism.guarantee.records == 2
    assert mechanism.guarantee.epsilon == pytest.approx(2.0, rel=1e-15)
    for branch in (hf.between(0, 0), hf.between(2, 2)):  # each branch alone is constant
        assert (
            len(
                {
                    tuple(row)
                    for row in hf.laplace(hf.histogram(1), scale=1)
                    .given(branch)
                    .simulate([branch.parts[0].bounds.low[0]], 50, hf.seeded(1))
                    .tolist()
                }
            )
            == 1
        )


@pytest.mark.parametrize(("n", "epsilon"), [(1, 0.5), (4, 1.0)])
def test_the_price_of_non_negativity_on_independent_cells(n, epsilon):
    """docs/theory/independent-boxes.md: ε + log(1 + α − α²), α = e^−ε, exactly."""
    mechanism = hf.laplace(hf.histogram(n), epsilon=epsilon).given(hf.nonnegative())
    alpha = np.exp(-epsilon)
    expected = epsilon + np.log(1 + alpha - alpha**2)
    assert mechanism.guarantee.epsilon == pytest.approx(expected, rel=1e-14)
    assert mechanism.guarantee.exact
    continuous = hf.laplace(hf.histogram(n), epsilon=epsilon, integer=False).given(hf.nonnegative())
    assert continuous.guarantee.epsilon == pytest.approx(epsilon + np.log(2 - alpha), rel=1e-14)


@pytest.mark.parametrize("truth", [0, 1, 4])
@pytest.mark.parametrize("scale", [0.5, 1.0, 3.0])
def test_continuous_gaussian_noise_pays_nothing_for_a_convex_set(truth, scale):
    """THEORY H6 in one dimension: z ≥ 0 given, truths x and x + 1; the log ratio falls in z, so δ(ε) is a tail."""
    mechanism = hf.gaussian(hf.histogram(1), scale=scale, integer=False).given(hf.nonnegative())
    assert mechanism.guarantee.mu == pytest.approx(1 / scale)
    mass = {x: stats.norm.sf(0, x, scale) for x in (truth, truth + 1)}
    for epsilon in (0.0, 0.3, 1.0, 2.5):
        allowed = gaussian_delta(mechanism.guarantee.mu, epsilon)
        for x, y in ((truth, truth + 1), (truth + 1, truth)):
            # log p_x/p_y = ((z−y)² − (z−x)²)/2σ² + log(mass_y/mass_x) = ε at this z:
            z = ((epsilon - np.log(mass[y] / mass[x])) * 2 * scale**2 - (y**2 - x**2)) / (2 * (x - y))
            z = max(z, 0.0)
            if x > y:
                p, q = stats.norm.sf(z, x, scale), stats.norm.sf(z, y, scale)
            else:
                p, q = (stats.norm.cdf(z, c, scale) - stats.norm.cdf(0, c, scale) for c in (x, y))
            true = p / mass[x] - np.exp(epsilon) * q / mass[y]
            assert true <= allowed + 1e-12
