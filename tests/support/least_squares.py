"""Estimates of margins in areas against least squares with matrices written out."""

import numpy as np
import pytest

import holdfast as hf
from holdfast.trees.normal.residuals import Residuals


def check_residuals(query, precision, rng):
    """Fail where what is told, the estimate, its errors or its noise are not those of least squares."""
    W, P = query.columns.toarray().astype(float), np.diag(precision[query.level_of])
    G = W.T @ P @ W
    _, sizes, rows = np.linalg.svd(G)
    unknown = rows[sizes < 1e-9]
    told = not unknown.size or np.abs(W @ unknown.T).max() < 1e-6
    residuals = Residuals(query, tuple(precision))
    assert (residuals.untold is None) == told
    if not told:
        with pytest.raises(hf.Refused, match="nothing tells"):
            residuals.variances()
        return
    inverse = np.linalg.pinv(G, rcond=1e-10)
    covariance = W @ inverse @ W.T
    assert np.allclose(residuals.variances(), np.diag(covariance), atol=1e-9)
    noisy = rng.normal(size=query.n)
    assert np.allclose(residuals.estimated(noisy), W @ inverse @ W.T @ P @ noisy, atol=1e-8)
    weights = rng.normal(size=query.n)
    assert np.isclose(residuals.variance_of(weights), weights @ covariance @ weights)
    units = np.eye(residuals.normals_needed)
    loadings = np.array([residuals.noise(unit.copy()) for unit in units]).T
    assert np.allclose(loadings @ loadings.T, covariance, atol=1e-9)
