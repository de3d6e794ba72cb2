"""Continuous Gaussian noise on a hierarchy given consistency, exact and fixed nodes: two passes, O(n) (THEORY §2, §4).

Messages are normal laws, so a message is a variance. Upwards, the children's variances add up to S, and with the
node's own variance σ² it becomes V = (1/S + 1/σ²)⁻¹ (0 at an exact node, S where it is not measured). Downwards, a root
is drawn from N(0, V), and the children of a node with noise u are e_c + V_c/S·(u − Σe) with e_c from N(0, V_c):
independent noise given its sum. At most one child may have an infinite variance: it takes what the others leave.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import special

from holdfast.arrays import Floats, compiled, kept
from holdfast.domains.breadth_first import breadth_first
from holdfast.given.problem import Problem, Truth
from holdfast.noise.spread import Spread
from holdfast.randomness import Stream

#: Normal numbers that are drawn at once.
BATCH = 1 << 22


def accepts(problem: Problem) -> bool:
    """Whether the law is continuous Gaussian and all that must hold is a hierarchy with exact or fixed nodes."""
    if problem.law.kind != "gaussian" or problem.law.integer or problem.depends_on_data:
        return False
    return _passes(problem) is not None


@dataclass(frozen=True, eq=False)
class _Passes:
    """The variances of the messages, in the order in which the passes go: siblings together, parents first."""

    order: npt.NDArray[np.int64]
    first: npt.NDArray[np.int64]  # place of the first child, and of the first child of the next node
    exact: npt.NDArray[np.bool_]
    upward: Floats
    below: Floats


@kept
def _passes(problem: Problem) -> _Passes | None:
    """The up-pass, made once; None where the system is no hierarchy, or has no edge, or the noise has no law."""
    forest = problem.forest
    if forest is None or (forest.parents < 0).all():
        return None
    start, _, order, _, _ = breadth_first(forest.parents)
    sizes = np.diff(start)[order]
    roots = int((forest.parents < 0).sum())
    first = roots + np.concatenate([[0], np.cumsum(sizes)])
    exact = forest.exact[order]
    upward, below, proper = _upwards(first, exact, problem.law.variances[order])
    if not (proper and np.isfinite(upward[:roots]).all()):
        return None
    return _Passes(order, first, exact, upward, below)


def draw(problem: Problem, truth: Truth, size: int, stream: Stream) -> npt.NDArray[Any]:
    """Draw noise for the whole hierarchy at once, (size, n).

    Law: independent Gaussian noise given that parents equal the sum of their children and exact and fixed outputs have
    no noise. Every other parent is the sum of its children in floating point, exact outputs are exactly 0.
    """
    del truth  # the law does not depend on it
    passes = _passes(problem)
    assert passes is not None
    n = problem.law.n
    result = np.empty((size, n))
    rows = max(1, BATCH // n)
    for begin in range(0, size, rows):
        count = min(rows, size - begin)
        normals = stream.normals(count * n).reshape(count, n)
        _downwards(passes.first, passes.exact, passes.upward, passes.below, normals)
        result[begin : begin + count, passes.order] = normals
    return result


def spread(problem: Problem) -> Spread:
    """Normal errors; the variance of each output by one more pass down, that of a weighted sum by one pass up."""
    passes = _passes(problem)
    assert passes is not None
    errors = np.empty(problem.law.n)
    errors[passes.order] = np.sqrt(_variances(passes.first, passes.upward, passes.below))

    def variance_of(weights: Floats) -> float:
        wanted = np.ascontiguousarray(weights[passes.order], dtype=np.float64)
        return float(_variance_of(passes.first, passes.upward, passes.below, wanted))

    return Spread(errors, variance_of, lambda p: errors * special.ndtri(p))


@compiled
def _upwards(first: Any, exact: Any, own: Any) -> Any:  # pragma: no cover (compiled)
    """Return V and S of every output, and whether no output has two children without a law."""
    n = own.size
    upward, below = np.empty(n), np.zeros(n)
    proper = True
    for v in range(n - 1, -1, -1):
        endless = 0
        for c in range(first[v], first[v + 1]):
            below[v] += upward[c]
            endless += np.isinf(upward[c])
        proper = proper and endless < 2
        if exact[v] or (first[v + 1] > first[v] and below[v] == 0):
            upward[v] = 0.0
        elif first[v + 1] == first[v] or np.isinf(below[v]):
            upward[v] = own[v]
        elif np.isinf(own[v]):
            upward[v] = below[v]
        else:
            upward[v] = 1 / (1 / below[v] + 1 / own[v])
    return upward, below, proper


@compiled
def _downwards(first: Any, exact: Any, upward: Any, below: Any, noise: Any) -> None:  # pragma: no cover (compiled)
    """Turn standard normal numbers into noise, in place."""
    rows, n = noise.shape
    deviation = np.empty(n)
    for v in range(n):
        deviation[v] = 0.0 if np.isinf(upward[v]) else np.sqrt(upward[v])
    for row in range(rows):
        values = noise[row]
        for v in range(n):
            values[v] *= deviation[v]
        for v in range(n):
            if below[v] == 0:
                continue  # a leaf, or children without noise
            left = values[v]
            for c in range(first[v], first[v + 1]):
                left -= values[c]
            for c in range(first[v], first[v + 1]):
                if np.isinf(upward[c]):
                    values[c] = left
                elif not np.isinf(below[v]):
                    values[c] += upward[c] / below[v] * left
        # Parents are the sums of their children, whatever was rounded on the way.
        for v in range(n - 1, -1, -1):
            if exact[v]:
                values[v] = 0.0
            elif first[v + 1] > first[v]:
                total = 0.0
                for c in range(first[v], first[v + 1]):
                    total += values[c]
                values[v] = total


@compiled
def _variances(first: Any, upward: Any, below: Any) -> Any:  # pragma: no cover (compiled)
    """Return the variance of every output: V_c·T/S + (V_c/S)²·Var(parent), T the variance of the siblings."""
    n = upward.size
    result = upward.copy()  # at roots
    others = np.zeros(n)
    for v in range(n):
        total = 0.0
        for c in range(first[v], first[v + 1]):
            others[c] = total
            total += upward[c]
        total = 0.0
        for c in range(first[v + 1] - 1, first[v] - 1, -1):
            others[c] += total
            total += upward[c]
        for c in range(first[v], first[v + 1]):
            if np.isinf(upward[c]):
                result[c] = others[c] + result[v]
            elif upward[c] > 0 and not np.isinf(below[v]):
                share = upward[c] / below[v]
                result[c] = share * others[c] + share**2 * result[v]
    return result


@compiled
def _variance_of(first: Any, upward: Any, below: Any, weights: Any) -> Any:  # pragma: no cover (compiled)
    """Return the variance of a weighted sum: going up, it is weight·(noise of v) plus independent noise."""
    n = upward.size
    weight, variance = weights.copy(), 0.0
    for v in range(n - 1, -1, -1):
        if below[v] == 0:
            continue
        mean = 0.0
        for c in range(first[v], first[v + 1]):
            if np.isinf(below[v]):
                if np.isinf(upward[c]):
                    mean = weight[c]
            else:
                mean += upward[c] / below[v] * weight[c]
        for c in range(first[v], first[v + 1]):
            if not np.isinf(upward[c]):
                variance += upward[c] * (weight[c] - mean) ** 2
        weight[v] += mean
    for v in range(first[0]):
        variance += upward[v] * weight[v] ** 2
    return variance
