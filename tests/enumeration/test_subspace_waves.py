"""Correlated noise by waves against its own covariance, written out; and against the dense law's promise."""

import numpy as np
import pytest

import holdfast as hf
from holdfast.queries import Neighbours
from holdfast.subspace import waves
from holdfast.subspace.cube_spaces import CubeSpaces


@pytest.mark.parametrize("kind", ["add-remove", "replace-one"])
@pytest.mark.parametrize(("shape", "keep"), [((3, 4, 2), [(1, 2), (0, 2)]), ((7,), [()]), ((4, 5), [(0,), (1,)])])
def test_the_loss_is_that_of_the_covariance(shape, keep, kind):
    query, held = hf.margins(shape), hf.invariant(hf.exact_margins(shape, keep))
    n, system = query.n, held.system(query.n)
    law = waves.correlated(CubeSpaces.of(query, system), Neighbours.of(kind))
    axes = tuple(range(1, len(shape) + 1))
    units = np.eye(n).reshape(n, *shape)
    covariance = np.fft.ifftn(np.fft.fftn(units, axes=axes) * law.powers, axes=axes).real.reshape(n, n)
    space = system.null_space()
    projector = space.project(np.eye(n))
    assert np.linalg.matrix_rank(covariance) == space.dimension
    assert projector @ covariance == pytest.approx(covariance)
    differences = projector
    if kind == "replace-one":
        differences = np.stack([projector[:, i] - projector[:, j] for i in range(n) for j in range(i)], axis=1)
    inverse = np.linalg.pinv(covariance, hermitian=True)
    worst = np.einsum("ij,ik,kj->j", differences, inverse, differences).max()
    assert worst <= float(law.largest) <= worst * (1 + 1e-7)
    assert law.spread().standard_errors ** 2 == pytest.approx(np.diag(covariance))
    weights = np.arange(n) % 5 - 1.5
    assert law.spread().variance_of(weights) == pytest.approx(weights @ covariance @ weights)
    assert law.evidence.objective == pytest.approx(np.trace(covariance) * worst)
    drawn = law.draw(4, hf.seeded(3))
    assert drawn == pytest.approx(drawn @ projector)


def test_blocks_are_halves_that_hold_a_wave_and_its_opposite():
    left = np.ones((5, 4), dtype=bool)
    left[0, 0] = False
    block = waves._shorter_half(left, np.ones(left.shape))
    assert block.sum() in (10, 11)
    assert (block == np.roll(np.flip(block), (1, 1), (0, 1))).all()


def test_a_cube_beyond_dense_tables_is_drawn_with_its_margins_exact():
    shape = (14, 24, 20)
    held = hf.invariant(hf.exact_margins(shape, [(1, 2), (0, 2)]))
    made = hf.extend(hf.margins(shape), held, law="correlated", rho=0.5, neighbours="replace-one")
    noise = made.noise(2, hf.seeded(1)).reshape(2, *shape)
    assert max(np.abs(noise.sum(axis=1)).max(), np.abs(noise.sum(axis=2)).max()) < 1e-12
    assert made.guarantee.rho <= 0.5
    # the optimum is never above it
    least = hf.extend(hf.margins(shape), held, law="optimal", rho=0.5, neighbours="replace-one")
    assert made.standard_error()[0] > least.standard_error()[0]
