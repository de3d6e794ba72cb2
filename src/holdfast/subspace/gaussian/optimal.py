"""The Gaussian noise on N of least total (or weighted) squared error (THEORY H4).

min tr GΣ subject to aᵀΣ⁻¹a ≤ 1 for all a ∈ 𝒟_N has the dual max over weights w of (tr M^{1/2})², M = Σ w_j b_j b_jᵀ
with b = G^{1/2}a, and the optimum is Σ ∝ G^{−1/2} M^{1/2} G^{−1/2}. Any weights give both a law and a lower bound.
"""

from __future__ import annotations

import math

import numpy as np
from scipy import linalg

from holdfast.arrays import Floats
from holdfast.queries import Neighbours
from holdfast.subspace.gaussian.dense import DenseGaussian
from holdfast.subspace.geometry import Geometry, moments
from holdfast.subspace.optimum.dual_weights import dual_weights

#: Eigenvalues of M below this part of the largest are raised to it: the law needs noise in every direction.
LEAST = 1e-13
#: Eigenvalues of M count in the lower bound only above this part of the largest: smaller ones may be rounding.
COUNTED = 1e-12


def optimal(geometry: Geometry, neighbours: Neighbours, costs: Floats | None = None) -> DenseGaussian:
    """Return the optimal law, its lower bound among its evidence; `costs` weigh the outputs' squared errors."""
    points, root = geometry.points, np.eye(geometry.rank)
    if costs is not None:  # the metric G of the weighted error, in coordinates of the span
        values, vectors = linalg.eigh((geometry.basis.T * costs) @ geometry.basis)
        root = (vectors * np.sqrt(values)) @ vectors.T
        points = root @ points

    def whiten(found: Floats) -> tuple[Floats, float]:
        values, vectors = _axes(found)
        trace = float(np.sqrt(values).sum())
        return vectors.T / (math.sqrt(trace) * values[:, None] ** 0.25), 2 * math.log(trace)

    values, vectors = _axes(moments(points, geometry.pairs, dual_weights(points, geometry.pairs, whiten)))
    bound = float(np.sqrt(values[values > COUNTED * values[-1]]).sum()) ** 2
    if costs is None:
        return DenseGaussian.of("optimal Gaussian", geometry, neighbours, vectors, np.sqrt(values), bound)
    half = linalg.solve(root, vectors * values**0.25)  # Σ = half halfᵀ
    variances, axes = linalg.eigh(half @ half.T)
    return DenseGaussian.of("optimal Gaussian", geometry, neighbours, axes, variances, bound, costs=costs)


def _axes(found: Floats) -> tuple[Floats, Floats]:
    """Eigenvalues, none too small, and eigenvectors of M."""
    values, vectors = linalg.eigh(found)
    return np.maximum(values, LEAST * values[-1]), vectors
