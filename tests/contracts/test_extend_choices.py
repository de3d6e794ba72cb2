"""extend() with a basis of one's own (SDP Cor 18) and with the papers' classical σ (SDP Lemma 13)."""

import pickle
from fractions import Fraction

import numpy as np
import pytest
from flint import fmpq, fmpq_mat
from scipy.linalg import hadamard

import holdfast as hf
from holdfast.privacy import classical_delta, classical_sigma

CELLS = hf.histogram(4)
TOTAL = hf.invariant(np.ones((1, 4), dtype=int))
SIGNS = hadamard(4)[:, 1:] / 2


def test_a_basis_decides_the_sensitivity():
    made = hf.extend(CELLS, TOTAL, law="laplace", epsilon=1, basis=SIGNS)
    # Q_Nᵀ e_j has ‖·‖₁ = 3/2, so each of three coordinates has λ = 3/2 and every cell variance 2·(9/4)·(3/4).
    assert made.guarantee.epsilon == pytest.approx(1)
    assert (made.guarantee.epsilon, made.guarantee.scope) == (1.0, "subspace")
    assert made.standard_error() ** 2 == pytest.approx(np.full(4, 27 / 8))
    assert np.abs(made.noise(20, hf.seeded(1)).sum(axis=1)).max() < 1e-12
    again = pickle.loads(pickle.dumps(made))
    assert (again.noise(2, hf.seeded(5)) == made.noise(2, hf.seeded(5))).all()


def test_the_classical_sigma_is_the_papers_and_its_delta_the_true_one():
    made = hf.extend(CELLS, TOTAL, law="gaussian", epsilon=1, delta=1e-12, calibration="classical")
    within = np.sqrt(3 / 4)  # Δ₂(Q_Nᵀ hist)
    assert made.standard_error() == pytest.approx(np.full(4, classical_sigma(1, 1, 1e-12) * within * within))
    assert made.guarantee.delta == pytest.approx(classical_delta(1, 1e-12), rel=1e-6)
    assert made.guarantee.delta > 4e-12
    assert any("classical formula claims" in words for words in made.guarantee.caveats)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"law": "laplace", "epsilon": 1, "basis": np.eye(4)[:, :3]}, "must lie in N"),
        ({"law": "laplace", "epsilon": 1, "basis": SIGNS[:, :2]}, "3 independent vectors"),
        ({"law": "laplace", "epsilon": 1, "basis": SIGNS[:3]}, "must have 4 rows"),
        ({"law": "gaussian", "rho": 1, "basis": SIGNS}, "use law='laplace'"),
        ({"law": "gaussian", "rho": 1, "calibration": "classical"}, "epsilon and delta"),
        ({"law": "gaussian", "epsilon": 1, "delta": 1e-6, "calibration": "tight"}, "calibration"),
        ({"law": "gaussian", "epsilon": 1, "delta": 1e-6, "calibration": "classical", "integer": True}, "real noise"),
    ],
)
def test_refusals(arguments, words):
    with pytest.raises(hf.Refused, match=words):
        hf.extend(CELLS, TOTAL, **arguments)


def test_a_basis_beside_the_null_space_hides_as_much_as_one_in_it():
    """Noise on a plane beside N leaves one figure without noise: the basis is projected before it is used."""
    basis = np.linalg.qr(np.array([[1, -1, 0, 0], [0, 1, -1, 0], [0, 0, 1, -1.0]]).T)[0]
    tilted = basis.copy()
    tilted[:, 0] += 4e-10
    for given in (tilted, np.round(basis, 10)):
        made = hf.extend(hf.histogram(4), hf.invariant([[1] * 4]), law="laplace", epsilon=0.01, basis=given)
        normal = np.linalg.svd(given.T)[2][-1]
        normal /= normal.mean()
        values = made.simulate(np.array([100, 200, 300, 400]), 5, rng=hf.seeded(4))
        assert np.ptp((values @ normal - 1000) / np.abs(normal - 1).max()) > 1


def test_a_basis_that_doubles_cannot_resolve_is_refused():
    basis = [
        [-7.999991416931152, -8, -4, 4],
        [11.999984741210938, 12, 0, -8],
        [4, 4, 8, 8],
        [-15.99998664855957, -16, -8, 4],
        [7.999993324279785, 8, 4, -8],
    ]
    with pytest.raises(hf.Refused, match="use another basis"):
        hf.extend(hf.histogram(5), hf.invariant([[1] * 5]), law="laplace", epsilon=1, basis=basis)


@pytest.mark.parametrize("seed", range(5))
def test_a_basis_of_doubles_costs_no_less_than_in_rationals(seed):
    rng = np.random.default_rng(seed)
    basis = np.vstack([np.eye(4), -np.ones((1, 4))]) @ rng.integers(-9, 10, (4, 4)).astype(float)
    if np.linalg.matrix_rank(basis) < 4:
        basis = np.vstack([np.eye(4), -np.ones((1, 4))])
    made = hf.extend(
        hf.histogram(5), hf.invariant([[1] * 5]), law="laplace", epsilon=1, neighbours="replace-one", basis=basis
    )
    exact = fmpq_mat([[fmpq(int(v)) for v in row] for row in basis])
    square, worst = exact.transpose() * exact, fmpq(0)
    for i in range(5):
        for j in range(i):
            move = fmpq_mat(5, 1, [fmpq((k == i) - (k == j)) for k in range(5)])
            found = square.solve(exact.transpose() * move)
            worst = max(worst, sum((abs(found[k, 0]) for k in range(4)), fmpq(0)))
    assert Fraction(int(worst.p), int(worst.q)) <= made.source.form.largest
