"""extend() with a basis of one's own (SDP Cor 18) and with the papers' classical σ (SDP Lemma 13)."""

import pickle

import numpy as np
import pytest
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
