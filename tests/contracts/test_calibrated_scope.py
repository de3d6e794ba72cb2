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


@pytest.mark.slow
@pytest.mark.parametrize("delta", [None, 1e-4, 1e-10])
def test_calibration_does_not_depend_on_the_scale_it_starts_from(delta):
    """Draws of this table come within 2.3e-11 of their law; at small scales that alone would cost more than delta."""
    exact = hf.invariant(hf.exact_margins((3, 3), [(0,), (1,)]))
    found = []
    for scale in (0.01, 1, 30):
        mechanism = hf.laplace(hf.margins((3, 3)), scale=scale).given(exact).calibrated(epsilon=1, delta=delta)
        statement = mechanism.guarantee
        assert 1 - 1e-9 < statement.epsilon <= 1
        assert 0 < statement.delta <= (1 if delta is None else delta)
        found.append(float(mechanism.base.law.scale_values[0]))
    assert found == pytest.approx([4.0] * 3, rel=1e-9)


@pytest.mark.slow
def test_a_delta_below_what_draws_can_give_is_refused_in_one_sentence():
    exact = hf.invariant(hf.exact_margins((3, 3), [(0,), (1,)]))
    for scale in (0.01, 1):
        mechanism = hf.laplace(hf.margins((3, 3)), scale=scale).given(exact)
        with pytest.raises(hf.Refused, match="only come near their law") as refusal:
            mechanism.calibrated(epsilon=1, delta=1e-14)
        assert "Fraction" not in str(refusal.value)


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
