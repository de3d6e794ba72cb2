"""Correlated Gaussian noise on a large cube's cells by its waves, without a matrix (docs/theory/subspace.md).

Shifting a cube along its axes maps exact margins onto themselves, so at every stage of SDP Algorithm 3 the differences
seen there are those of one cell (or of one cell and a shifted one), shifted; the least ellipsoid is unique, hence keeps
the shifts, and its axes are waves e^{2πi k·x}, k and −k alike. Halving is then a division of frequencies, losses over
all differences are one Fourier transform, and so is a draw.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
import numpy.typing as npt

from holdfast.arrays import Floats, Ints
from holdfast.evidence import Evidence
from holdfast.noise.spread import Spread
from holdfast.queries import Moves, Neighbours
from holdfast.randomness import Stream
from holdfast.subspace.cube_spaces import CubeSpaces
from holdfast.subspace.ellipsoids import ascend
from holdfast.subspace.law import SLACK, normal_spread, shown, times_one_record

#: The permutation in which waves of equal length are taken: a fixed one, so that blocks hold waves of every kind.
SEED = 0


@dataclass(frozen=True, eq=False)
class WaveGaussian:
    """Law: N(0, Σ_k v_k P_k), P_k the projector on the wave k; `powers` are the v_k, 0 where N has no such wave."""

    powers: Floats
    neighbours: Neighbours
    evidence: Evidence
    name: str = "correlated Gaussian"
    kind: str = "gaussian"
    exact: bool = False

    @cached_property
    def largest(self) -> Fraction:
        return _loss(self.powers, self.neighbours)

    def draw(self, size: int, stream: Stream) -> Floats:
        """Filter independent normal numbers."""
        shape = self.powers.shape
        numbers = stream.normals(size * self.powers.size).reshape((size, *shape))
        axes = tuple(range(1, len(shape) + 1))
        waves = np.fft.fftn(numbers, axes=axes) * np.sqrt(self.powers)
        return np.ascontiguousarray(np.fft.ifftn(waves, axes=axes).real.reshape(size, -1))

    def spread(self) -> Spread:
        """Normal errors, the same for every cell; unbiased (SDP Cor 21)."""
        each = float(self.powers.mean())

        def variance_of(weights: Floats) -> float:
            found = np.fft.fftn(weights.reshape(self.powers.shape))
            return float((self.powers * np.abs(found) ** 2).mean())

        return normal_spread(np.full(self.powers.size, each), variance_of)

    def sharing(self, moves: Moves) -> Fraction:
        """By the triangle inequality, and by ‖d‖² over the least variance."""
        several = times_one_record(self.largest, 2, self.neighbours.records, self.neighbours.adds, moves)
        least = Fraction(float(self.powers[self.powers > 0].min()))
        return min(several, moves.largest([1], None, 2) / least * (1 + SLACK))


def correlated(spaces: CubeSpaces, neighbours: Neighbours) -> WaveGaussian | None:
    """SDP Algorithm 3 on the cells of a cube; None where margins are asked, and not the cells."""
    if spaces.keep != (tuple(range(len(spaces.shape))),):
        return None
    free = _free(spaces)
    powers, blocks = np.zeros(spaces.shape), 0
    left, gap = free, 0.0
    while left.any():
        lengths, found = _ellipsoid(left, neighbours.adds)
        gap = max(gap, found)
        block = _shorter_half(left, lengths)
        powers[block] = _longest(block, neighbours.adds)
        left = left & ~block
        blocks += 1
    largest = _loss(powers, neighbours)
    notes = (f"{blocks} blocks of waves; the ellipsoids are within {gap:.1e} of the least ones",)
    return WaveGaussian(powers, neighbours, shown(float(powers.sum()) * float(largest), notes=notes))


def _free(spaces: CubeSpaces) -> npt.NDArray[np.bool_]:
    """Which waves N has: those that vary along exactly the axes of a free set."""
    result = np.zeros(spaces.shape, dtype=bool)
    for chosen in spaces.free:
        part = np.ones(spaces.shape, dtype=bool)
        for axis, size in enumerate(spaces.shape):
            varies = (np.arange(size) > 0) == (axis in chosen)
            part &= varies.reshape([-1 if a == axis else 1 for a in range(len(spaces.shape))])
        result |= part
    return result


def _loss(powers: Floats, neighbours: Neighbours) -> Fraction:
    """Σ|d_k|²/v_k/n, the largest over all differences: a cell, or a cell and a shifted one, d_k = 1 − e^{ik·s}."""
    inverse = np.divide(1.0, powers, out=np.zeros_like(powers), where=powers > 0)
    return Fraction(_longest_of(inverse, neighbours.adds)) * neighbours.records**2 * (1 + SLACK)


def _longest(block: npt.NDArray[np.bool_], adds: bool) -> float:
    return _longest_of(block.astype(np.float64), adds)


def _longest_of(weights: Floats, adds: bool) -> float:
    mean = float(weights.mean())
    if adds:
        return mean
    return float(2 * (mean - np.fft.ifftn(weights).real.min()))


def _ellipsoid(left: npt.NDArray[np.bool_], adds: bool) -> tuple[Floats, float]:
    """The squared lengths of the ellipsoid's axes up to a factor, and its gap.

    Cells are all alike in every set of waves that holds −k with k: M = Π/n meets the condition of the optimum with
    equality, a ball. For pairs, weights w of the shifts give M_k = 2(1 − ŵ_k)/n.
    """
    if adds:
        return np.ones(left.shape), 0.0
    n, rank = left.size, int(left.sum())

    def moments(weights: Floats) -> Floats:
        shifts = np.concatenate([[0.0], weights / weights.sum()]).reshape(left.shape)
        return np.maximum(2 * (1 - np.fft.fftn(shifts).real) / n, np.finfo(float).tiny)

    def ratios(weights: Floats) -> tuple[Floats, float, float]:
        found = moments(weights)
        inverse = np.where(left, 1 / found, 0.0)
        phi = 2 * (inverse.sum() - np.fft.fftn(inverse).real) / (n * rank)
        others = phi.ravel()[1:]
        return others, float(np.log(found[left]).sum()) / rank, float(others.max())

    weights = ascend(ratios, np.ones(n - 1), 0)
    return moments(weights), ratios(weights / weights.sum())[2] - 1


def _shorter_half(left: npt.NDArray[np.bool_], lengths: Floats) -> npt.NDArray[np.bool_]:
    """Half of the waves, the shorter ones; k and −k stay together, so it may be one wave more."""
    frequencies = np.stack(np.nonzero(left), axis=1)
    shape = np.array(left.shape)
    own = np.ravel_multi_index(tuple(frequencies.T), left.shape)
    opposite = np.ravel_multi_index(tuple(((-frequencies) % shape).T), left.shape)
    first = own <= opposite
    own, opposite = own[first], opposite[first]
    sizes: Ints = 1 + (own != opposite)
    flat = lengths.ravel()
    level = np.round(np.log(flat[own] / flat.max()), 6)  # rounding does not tell lengths apart
    order = np.lexsort((np.random.default_rng(SEED).permutation(own.size), level))
    wanted = int(left.sum()) - int(left.sum()) // 2
    count = int(np.searchsorted(np.cumsum(sizes[order]), wanted)) + 1
    chosen = order[:count]
    result = np.zeros(left.size, dtype=bool)
    result[own[chosen]] = result[opposite[chosen]] = True
    return result.reshape(left.shape)
