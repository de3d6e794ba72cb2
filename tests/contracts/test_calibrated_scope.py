"""Calibrating: the statement of one scope, from any scale, and where it cannot be done; and naming outputs."""

import numpy as np
import pytest

import holdfast as hf


def test_each_scope_can_be_calibrated():
    """A total exact by orthogonal projection: two records that change together cost twice the subspace statement."""
    moved = hf.laplace(hf.histogram(4), epsilon=3).onto(hf.invariant([[1, 1, 1, 1]]))
    for scope, other in (("subspace", 2.0), ("invariant-sharing", 0.5)):
        statements = {each.scope: each.epsilon for each in moved.calibrated(epsilon=1, scope=scope).guarantees}
        rest = next(name for name in statements if name != scope)
        assert statements[scope] == pytest.approx(1, abs=1e-9)
        assert statements[scope] <= 1
        assert statements[rest] == pytest.approx(other)


def test_void_and_unknown_scopes_are_refused():
    given = hf.laplace(hf.histogram(4), epsilon=3).given(hf.invariant([[1, 1, 1, 1]]))
    with pytest.raises(hf.Refused, match="no statement of scope 'subspace'"):
        given.calibrated(epsilon=1, scope="subspace")
    with pytest.raises(hf.Refused, match="did you mean 'subspace'"):
        given.calibrated(epsilon=1, scope="subspaces")


def test_gaussian_noise_is_calibrated_from_any_scale():
    exact = hf.invariant([[1, 1, 1, 1]])
    for scale in (0.01, 100):
        noise = hf.gaussian(hf.histogram(4), scale=scale).given(exact)
        assert noise.calibrated(rho=0.5).guarantee.rho == pytest.approx(0.5, rel=1e-9)
        assert noise.calibrated(epsilon=1, delta=1e-12).guarantee.epsilon == pytest.approx(1, rel=1e-9)


def test_outputs_can_be_named():
    query = hf.margins((2, 2))
    named = query.named(np.array(["a", "b", "c", "d"], dtype=object))
    assert named.labels.tolist() == ["a", "b", "c", "d"]
    assert query.labels.tolist() != named.labels.tolist()
    release = hf.laplace(named, epsilon=1).release([1, 2, 3, 4], rng=hf.seeded(1))
    assert release.labels.tolist() == ["a", "b", "c", "d"]
