"""The enclosing ellipsoid against a solver of conic programs, and its pairs against their list."""

import cvxpy
import numpy as np
import pytest

from holdfast.subspace.ellipsoids import GAP, enclosing_ellipsoid


@pytest.mark.parametrize(("rank", "count", "pairs"), [(2, 5, False), (3, 12, False), (4, 7, True)])
def test_the_volume_is_the_least(rank, count, pairs):
    points = np.random.default_rng(rank).standard_normal((rank, count)) * np.arange(1, rank + 1)[:, None]
    found = enclosing_ellipsoid(points, pairs)
    first, second = np.triu_indices(count, 1)
    listed = points[:, first] - points[:, second] if pairs else points
    shape = np.linalg.inv(found.moments) / (rank * (1 + found.gap))
    assert np.einsum("ij,ik,kj->j", listed, shape, listed).max() <= 1 + 1e-9
    assert 0 <= found.gap <= GAP * 1.01
    inverse = cvxpy.Variable((rank, rank), PSD=True)
    problem = cvxpy.Problem(
        cvxpy.Maximize(cvxpy.log_det(inverse)), [cvxpy.norm(inverse @ point) <= 1 for point in listed.T]
    )
    problem.solve(solver=cvxpy.CLARABEL)
    # log volume = −½ log det of the shape, here 2·log det of its root by the solver
    assert np.linalg.slogdet(shape)[1] == pytest.approx(2 * problem.value, abs=1.1 * rank * GAP)
