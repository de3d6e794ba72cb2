"""Errors of outputs that fall into independent shares: each output keeps the errors of its share, in its place."""

import numpy as np
import pytest

import holdfast as hf
from holdfast.noise.spread import Spread, joined_spread


def spread(errors, measured=False):
    errors = np.array(errors, dtype=float)
    return Spread(errors, lambda w: float((w**2 * errors**2).sum()), lambda p: errors * (p - 0.5), measured)


def test_every_output_keeps_its_own_errors():
    outputs = [np.array([3, 0]), np.array([1, 4, 2])]
    found = joined_spread(5, outputs, [spread([1, 2]), spread([3, 4, 5], measured=True)])
    np.testing.assert_array_equal(found.standard_errors, [2, 3, 5, 1, 4])
    np.testing.assert_array_equal(found.quantiles(1.0), [1, 1.5, 2.5, 0.5, 2])
    assert found.variance_of(np.array([1.0, 0, 0, 10, 0])) == 4 + 100
    assert found.measured
    assert not joined_spread(4, [np.array([0, 1]), np.array([2, 3])], [spread([1, 2]), spread([3, 4])]).measured


def test_one_share_without_errors_leaves_none():
    assert joined_spread(2, [np.array([0]), np.array([1])], [spread([1]), None]) is None


@pytest.mark.parametrize("verb", ["given", "onto"])
def test_shares_of_a_mechanism_have_the_errors_that_they_have_alone(verb):
    first, second = [0, 3], [1, 2, 4]
    rows = np.zeros((2, 5), dtype=int)
    rows[0, first], rows[1, second] = 1, 1
    scales = np.array([2, 5, 5, 2, 5])
    joint = getattr(hf.laplace(hf.histogram(5), scale=scales), verb)(hf.invariant(rows))
    found = joint.standard_error()
    for cells, scale in ((first, 2), (second, 5)):
        query = hf.histogram(len(cells))
        alone = getattr(hf.laplace(query, scale=scale), verb)(hf.invariant(np.ones((1, len(cells)), dtype=int)))
        np.testing.assert_allclose(found[cells], alone.standard_error(), rtol=1e-9)
