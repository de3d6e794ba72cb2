"""Laplace noise on N through a frame: U = F z, z independent with scales λ_k (SDP Cor 17 and 18).

If F L = Π_N W, the noise hides L·hist(x) and F is applied afterwards, so ε = max Σ_k |(L d)_k|/λ_k; with a basis F of N
this is exact. The error depends on the frame, and no basis is best for all queries (an orthonormal one can lose to the
projection, THEORY §6): several are tried, the projection itself among them, each with its best scales.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
from scipy.linalg import hadamard
from scipy.spatial.distance import pdist

from holdfast.arguments import Refused
from holdfast.arrays import Floats
from holdfast.constraints import NullSpace
from holdfast.evidence import Evidence
from holdfast.noise.laplace import laplace_numbers
from holdfast.noise.spread import STUDY, Spread, simulated_quantiles
from holdfast.queries import Moves, Neighbours, Query
from holdfast.randomness import Stream, seeded
from holdfast.subspace.ellipsoids import ascend
from holdfast.subspace.geometry import Geometry
from holdfast.subspace.law import SLACK, shown, times_one_record

#: Numbers in the list of all differences of a frame's coefficients for which scales are balanced.
MOST_BALANCED = 2 * 10**7
#: Entries of a whole-number basis that is tried.
MOST_BASIS = 4 * 10**6
#: How far, as a part of the longest column, a frame may miss Π_N W.
MISSED = 1e-9


@dataclass(frozen=True, eq=False)
class FrameLaplace:
    """Law: F z, z_k independent Laplace of scale `scales`[k], F applied to rows (size, k) by `apply`.

    `plain`: F = Π_N and all scales are 1, so that a move costs at most its ‖d‖₁.
    """

    name: str
    apply: Callable[[Floats], Floats]
    scales: Floats
    largest: Fraction
    variances: Floats
    variance_of: Callable[[Floats], float]
    neighbours: Neighbours
    evidence: Evidence
    plain: bool = False
    exact: bool = False
    kind: str = "laplace"

    def draw(self, size: int, stream: Stream) -> Floats:
        return self.apply(laplace_numbers(size, len(self.scales), stream) * self.scales)

    def spread(self) -> Spread:
        """Errors with covariance 2FΛ²Fᵀ; unbiased (SDP Cor 21). Quantiles are simulated."""
        quantiles = simulated_quantiles(lambda: self.draw(STUDY, seeded(0)))
        return Spread(np.sqrt(np.maximum(self.variances, 0.0)), self.variance_of, quantiles, measured=True)

    def sharing(self, moves: Moves) -> Fraction:
        """By the triangle inequality, or by ‖d‖₁ where the noise is projected."""
        several = times_one_record(self.largest, 1, self.neighbours.records, self.neighbours.adds, moves)
        return min(several, moves.largest([1], None, 1)) if self.plain else several


def projected(
    query: Query,
    neighbours: Neighbours,
    project: Callable[[Floats], Floats],
    variances: Floats,
) -> FrameLaplace:
    """Independent noise on the outputs, projected: F = Π_N, applied to rows (SDP Cor 17)."""
    bound = query.bound([1], None, 1, neighbours)
    error = 2 * float(variances.sum()) * float(bound.value) ** 2
    return FrameLaplace(
        "projected Laplace",
        project,
        np.ones(query.n),
        bound.value,
        2 * variances,
        lambda weights: 2 * float((project(weights[None]) ** 2).sum()),
        neighbours,
        shown(error),
        plain=True,
    )


def extended(space: NullSpace, geometry: Geometry, neighbours: Neighbours, plain: FrameLaplace) -> FrameLaplace:
    """The frame of least total squared error among those tried; the projection `plain` is one of them."""
    image = geometry.basis @ geometry.points
    best, notes = plain, [f"projected: {plain.evidence.objective:.6g}"]
    for name, frame, coefficients in _frames(space, geometry, image):
        missed = np.abs(frame @ coefficients - image).max(initial=0.0)
        if missed > MISSED * np.abs(image).max():
            continue
        for scales in _scales(frame, coefficients, geometry.pairs):
            found = _made(name, frame, coefficients, scales, geometry, neighbours)
            if found.evidence.objective < best.evidence.objective * (1 - 1e-9):
                best = found
        notes.append(f"{name}: {found.evidence.objective:.6g}")
    return replace(best, evidence=shown(best.evidence.objective, notes=tuple(notes)))


def by_basis(space: NullSpace, geometry: Geometry, neighbours: Neighbours, basis: Floats) -> FrameLaplace:
    """SDP Cor 18 with a chosen basis of N, one scale for all its vectors.

    The basis is projected first: noise on a plane beside N, however near, would leave a figure without noise.
    """
    if basis.shape[1] != space.dimension or np.linalg.matrix_rank(basis) != space.dimension:
        raise Refused(f"basis must hold {space.dimension} independent vectors, one for every dimension of N")
    frame = space.project(space.project(basis))
    if np.abs(basis - frame).max() > MISSED * float(np.abs(basis).max()):
        raise Refused("basis must lie in N: every vector must leave all exact figures as they are")
    image = geometry.basis @ geometry.points
    coefficients = np.linalg.lstsq(frame, image)[0].astype(np.float64)
    found = _made("basis of your own", frame, coefficients, np.ones(frame.shape[1]), geometry, neighbours)
    missed = _missed(frame, coefficients, image) * geometry.records
    if missed > MISSED * found.largest:
        raise Refused("basis is too far from an orthonormal one for doubles: use another basis of the same space")
    return replace(found, largest=found.largest + missed)


def _missed(frame: Floats, coefficients: Floats, image: Floats) -> Fraction:
    """A bound on ‖L d − computed‖₁ for the coefficients of a difference: F times the error over F's least stretch.

    What a frame misses of the image is computed with rounding errors of its own, which are bounded by their sizes.
    """
    width = frame.shape[1]
    sizes = np.abs(frame) @ np.abs(coefficients) + np.abs(image)
    apart = np.abs(frame @ coefficients - image) + 8 * (width + 4) * np.finfo(float).eps * sizes
    least = float(np.linalg.svd(frame, compute_uv=False)[-1])
    stretch = least - 100 * width * np.finfo(float).eps * float(np.linalg.norm(frame))
    if stretch <= 0:
        raise Refused("basis is too far from an orthonormal one for doubles: use another basis of the same space")
    return Fraction(4 * math.sqrt(width) * float(np.linalg.norm(apart, axis=0).max()) / stretch)


def _made(
    name: str, frame: Floats, coefficients: Floats, scales: Floats, geometry: Geometry, neighbours: Neighbours
) -> FrameLaplace:
    largest = Fraction(_longest(coefficients / scales[:, None], geometry.pairs)) * geometry.records * (1 + SLACK)
    spread = frame * scales
    error = 2 * float((spread**2).sum()) * float(largest) ** 2
    return FrameLaplace(
        f"extended Laplace ({name})",
        lambda numbers: np.asarray(numbers @ frame.T),
        scales,
        largest,
        2 * (spread**2).sum(axis=1),
        lambda weights: 2 * float(((weights @ spread) ** 2).sum()),
        neighbours,
        shown(error),
    )


def _longest(coefficients: Floats, pairs: bool) -> float:
    """The greatest ‖·‖₁ of a column, or of the difference of two."""
    if not pairs:
        return float(np.abs(coefficients).sum(axis=0).max())
    return float(pdist(coefficients.T, "cityblock").max())


def _frames(space: NullSpace, geometry: Geometry, image: Floats) -> Iterator[tuple[str, Floats, Floats]]:
    """Frames F with coefficients L, F L = Π_N W (up to what differences cannot see)."""
    count = geometry.count
    yield "orthonormal basis", geometry.basis, geometry.points
    yield "cells", image, np.eye(count)
    wavelets = _haar(count)
    if geometry.pairs:
        wavelets = wavelets[1:]  # differences do not see the mean
    lengths = (wavelets**2).sum(axis=1)
    yield "wavelets of the cells", image @ (wavelets.T / lengths), wavelets
    if count & (count - 1) == 0 and count > 1:
        signs = hadamard(count).astype(np.float64)[1 if geometry.pairs else 0 :]
        yield "Hadamard transform of the cells", image @ signs.T / count, signs
    if space.dimension * space.n <= MOST_BASIS and geometry.rank == space.dimension:
        try:
            basis = space.lattice_basis().toarray().astype(np.float64)
        except Refused:
            return
        yield "whole-number basis", basis, np.linalg.lstsq(basis, image)[0].astype(np.float64)


def _haar(count: int) -> Floats:
    """Haar's wavelets on any number of cells: the constant, then every part's left half against its right half."""
    rows = [np.ones(count)]
    parts = [(0, count)]
    while parts:
        start, end = parts.pop(0)
        if end - start < 2:
            continue
        middle = (start + end + 1) // 2
        row = np.zeros(count)
        row[start:middle] = 1 / (middle - start)
        row[middle:end] = -1 / (end - middle)
        rows.append(row / np.abs(row).max())
        parts += [(start, middle), (middle, end)]
    return np.array(rows)


def _scales(frame: Floats, coefficients: Floats, pairs: bool) -> Iterator[Floats]:
    """Equal scales, and the scales of least error: min Σ f_k λ_k² subject to Σ_k |(L d)_k|/λ_k ≤ 1 for every d."""
    width, count = coefficients.shape
    yield np.ones(width)
    listed = count * (count - 1) // 2 if pairs else count
    costs = (frame**2).sum(axis=0)
    if listed * width > MOST_BALANCED or (costs <= 0).any():
        return
    if pairs:
        first, second = np.triu_indices(count, 1)
        sizes = np.abs(coefficients[:, first] - coefficients[:, second])
    else:
        sizes = np.abs(coefficients)
    used = sizes.max(axis=1) > 0
    if not used.all():
        return

    def ratios(weights: Floats) -> tuple[Floats, float, float]:
        means = np.maximum(sizes @ weights, np.finfo(float).tiny)
        value = float((np.cbrt(costs) * np.cbrt(means) ** 2).sum())
        phi = np.cbrt(costs / means) @ sizes / value
        return phi, 1.5 * math.log(value), float(phi.max())

    means = np.maximum(sizes @ ascend(ratios, np.ones(listed)), np.finfo(float).tiny)
    yield np.cbrt(means / costs)
