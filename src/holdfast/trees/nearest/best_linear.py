"""Errors of weighted least squares on a hierarchy without bounds, in closed form: one pass up and one pass down.

The estimate is linear, so an output's error is a weighted sum of the measurement errors. Upwards, α_k is the error of
the estimate from what was measured at and below k; downwards, a child's final error is α_c + κ_c(ε_k − Σα), κ_c its
share of what its siblings and it are corrected by (docs/theory/update-on-trees.md).
"""

from __future__ import annotations

import numpy as np

from holdfast.arrays import Floats, compiled
from holdfast.trees.nearest.nearest import Nearest


def error_variances(nearest: Nearest, variances: Floats) -> Floats:
    """The variance of each output's error, for independent measurement errors with these variances."""
    layout = nearest.layout
    leaf, inner = np.zeros(layout.leaves.size), np.zeros(layout.inner.size)
    own = (variances[layout.leaves], variances[layout.inner])
    _variances(layout.leaf_start, layout.inner_start, *_parts(nearest), *own, leaf, inner)
    return _placed(nearest, leaf, inner)


def error_weights(nearest: Nearest, weights: Floats) -> Floats:
    """What each measurement error counts in the error of a weighted sum of the outputs."""
    layout = nearest.layout
    leaf, inner = weights[layout.leaves].astype(np.float64), weights[layout.inner].astype(np.float64)
    _weights(layout.leaf_start, layout.inner_start, *_parts(nearest), nearest.leaf_weight, leaf, inner)
    return _placed(nearest, leaf, inner)


def _parts(nearest: Nearest) -> tuple[Floats, Floats, Floats]:
    return nearest.variance, nearest.weight, nearest.exact[nearest.layout.inner].astype(np.float64)


def _placed(nearest: Nearest, leaf: Floats, inner: Floats) -> Floats:
    result = np.empty(leaf.size + inner.size)
    result[nearest.layout.leaves], result[nearest.layout.inner] = leaf, inner
    return result


@compiled(inner=True)
def _slopes(leaf_start, inner_start, variance, weight, exact):  # type: ignore[no-untyped-def]
    """Each inner output's answer to a price, and the sum of its children's answers; inf beside an unmeasured leaf."""
    response, slope = np.zeros(weight.size), np.zeros(weight.size)
    for k in range(weight.size - 1, -1, -1):
        for j in range(leaf_start[k], leaf_start[k + 1]):
            slope[k] += variance[j]
        for c in range(inner_start[k], inner_start[k + 1]):
            slope[k] += response[c]
        if exact[k] == 0.0:
            response[k] = 1.0 / weight[k] if np.isinf(slope[k]) else slope[k] / (1.0 + weight[k] * slope[k])
    return response, slope


@compiled(inner=True)
def _share(response, slope):  # type: ignore[no-untyped-def]
    """The part of a correction that a child takes; all of it goes to a child that was not measured."""
    if np.isinf(slope):
        return 1.0 if np.isinf(response) else 0.0
    return response / slope if slope > 0.0 else 0.0


@compiled(beyond=300_000)
def _variances(leaf_start, inner_start, variance, weight, exact, leaf_error, inner_error, leaf, inner):  # type: ignore[no-untyped-def]
    """Fill in the variances of the final errors; an unmeasured or exact output's own error counts nothing."""
    response, slope = _slopes(leaf_start, inner_start, variance, weight, exact)
    up, below, tied = np.zeros(weight.size), np.zeros(weight.size), np.ones(weight.size)
    for j in range(leaf.size):
        leaf[j] = leaf_error[j] if 0.0 < variance[j] < np.inf else 0.0
    for k in range(weight.size - 1, -1, -1):
        for j in range(leaf_start[k], leaf_start[k + 1]):
            below[k] += leaf[j]
        for c in range(inner_start[k], inner_start[k + 1]):
            below[k] += up[c]
        if exact[k] > 0.0:
            continue
        if weight[k] == 0.0:
            up[k] = below[k]
        elif np.isinf(slope[k]):
            up[k] = inner_error[k]
        else:
            pulled = weight[k] * slope[k] / (1.0 + weight[k] * slope[k])
            left = 1.0 - pulled
            up[k] = left * left * below[k] + pulled * pulled * inner_error[k]
    for k in range(inner_start[0]):
        inner[k] = up[k]
    for k in range(weight.size):
        # `kept`: what the children's Σα counts in k's final error
        kept = 0.0 if exact[k] > 0.0 or np.isinf(slope[k]) else tied[k] / (1.0 + weight[k] * slope[k])
        for j in range(leaf_start[k], leaf_start[k + 1]):
            part = _share(variance[j], slope[k])
            leaf[j] = _final(leaf[j], part, kept, below[k], inner[k])
        for c in range(inner_start[k], inner_start[k + 1]):
            part = _share(response[c], slope[k])
            inner[c] = _final(up[c], part, kept, below[k], inner[k]) if exact[c] == 0.0 else 0.0
            tied[c] = 1.0 - part + part * kept


@compiled(inner=True)
def _final(own, part, kept, below, above):  # type: ignore[no-untyped-def]
    """The variance of α_c + κ(ε_k − Σα), where ε_k contains `kept` times Σα."""
    found = own * (1.0 - 2.0 * part) + part * part * (below + above) + 2.0 * part * kept * (own - part * below)
    return max(found, 0.0)


@compiled(beyond=300_000)
def _weights(leaf_start, inner_start, variance, weight, exact, leaf_weight, leaf, inner):  # type: ignore[no-untyped-def]
    """Replace the weights of outputs by those of their measurement errors: the transposed map, W N(NᵀWN)⁻¹Nᵀ."""
    response, slope = _slopes(leaf_start, inner_start, variance, weight, exact)
    total, answer = np.zeros(weight.size), np.zeros(weight.size)
    for k in range(weight.size - 1, -1, -1):
        for j in range(leaf_start[k], leaf_start[k + 1]):
            if np.isinf(variance[j]):  # z_j is its parent's value less its siblings'
                load, leaf[j] = leaf[j], 0.0
                inner[k] += load
                for i in range(leaf_start[k], leaf_start[k + 1]):
                    leaf[i] -= load if i != j else 0.0
                for c in range(inner_start[k], inner_start[k + 1]):
                    inner[c] -= load
    for k in range(weight.size - 1, -1, -1):
        for j in range(leaf_start[k], leaf_start[k + 1]):
            total[k] += leaf[j] * variance[j] if variance[j] < np.inf else 0.0
        for c in range(inner_start[k], inner_start[k + 1]):
            total[k] += answer[c]
        if exact[k] == 0.0:
            if np.isinf(slope[k]):
                answer[k] = inner[k] / weight[k]
            else:
                answer[k] = (total[k] + slope[k] * inner[k]) / (1.0 + weight[k] * slope[k])
    above = np.zeros(weight.size)
    for j in range(leaf_start[0]):
        leaf[j] = leaf[j] if variance[j] > 0.0 else 0.0
    for k in range(weight.size):
        if np.isinf(slope[k]):
            price, x = 0.0, answer[k] + response[k] * above[k]
        elif exact[k] > 0.0:
            price, x = -total[k] / slope[k] if slope[k] > 0.0 else 0.0, 0.0
        else:
            price = (above[k] + inner[k] - weight[k] * total[k]) / (1.0 + weight[k] * slope[k])
            x = total[k] + slope[k] * price
        inner[k] = weight[k] * x
        for j in range(leaf_start[k], leaf_start[k + 1]):
            free = 0.0 < variance[j] < np.inf
            leaf[j] = leaf_weight[j] * (leaf[j] + price) * variance[j] if free else 0.0
        for c in range(inner_start[k], inner_start[k + 1]):
            above[c] = price
