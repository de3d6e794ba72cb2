"""k-norm noise of replaced records where blocks of cells have exact totals: a hierarchy with an exact level.

The relations are then those of the blocks' means. Of all blocks but one, each has one cell 0; the share of positive
cells of the one without a zero decides how many are positive in each other, so that the cases can be listed: one for
each block and number of positive cells. Given the case, cells of a block are exchangeable (docs/theory/subspace.md).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy import linalg, special

from holdfast.arrays import Floats, Ints
from holdfast.randomness import Stream

#: Coefficients of relations count as equal within this.
ALIKE = 1e-10
#: Numbers in the table of cases.
MOST_ENTRIES = 10**7


@dataclass(frozen=True, eq=False)
class Blocks:
    """A law of noise z on cells with Σz = 0, density exp(−½‖z‖₁), of the z that are shortest for their u.

    `labels` has the block of each cell from 1 on; cells of block 0 are in no relation.
    """

    labels: Ints
    largest: float = 1.0
    distance: float = 0.0
    name: str = "k-norm (blocks)"

    @classmethod
    def of(cls, points: Floats) -> Blocks | None:
        """Recognise the blocks by the relations of the points and of their number; None where there are others."""
        count = points.shape[1]
        table = np.vstack([points, np.ones((1, count))])
        many = count - len(table)
        if many < 1:
            return None
        kernel = np.asarray(linalg.qr(table.T)[0][:, len(table) :], dtype=np.float64)
        labels = _labels(kernel)
        if labels is None or labels.max() != many + 1:
            return None
        sizes = np.bincount(labels)
        if (sizes[1:] + 1).sum() * (sizes[0] + 1) * sizes.size > MOST_ENTRIES:
            return None
        return cls(labels)

    @property
    def note(self) -> str:
        """How many blocks there are."""
        return f"K has {self.labels.max()} blocks of cells with a total each"

    @cached_property
    def sizes(self) -> Ints:
        """The number of cells of each block, those in no relation first."""
        return np.bincount(self.labels)

    @cached_property
    def _cases(self) -> tuple[Ints, Ints, Floats]:
        """The number of positive cells in every block, whether it has a zero, and the chance of the case.

        Block b has the share of block f, rounded down; a share that is whole goes down by one for b > f: as if it cost
        a little more to be positive in later blocks.
        """
        blocks = self.sizes[1:]
        numbers = np.arange(blocks.size)
        positive, zeros = [], []
        for block, size in enumerate(blocks.tolist()):
            own = np.arange(size + 1)[:, None]
            share, rest = np.divmod(own * blocks, size)
            share = share - ((rest == 0) & (numbers > block))
            share[:, block] = own[:, 0]
            other = numbers != block
            kept = ((share[:, other] >= 0) & (share[:, other] < blocks[other])).all(axis=1)
            positive.append(share[kept])
            zeros.append(np.broadcast_to(other, share.shape)[kept])
        inside, zero = np.concatenate(positive), np.concatenate(zeros).astype(np.int64)
        alone = np.arange(self.sizes[0] + 1)
        inside = np.hstack([np.tile(alone, len(inside))[:, None], np.repeat(inside, alone.size, axis=0)])
        zero = np.hstack([np.zeros((len(inside), 1), dtype=np.int64), np.repeat(zero, alone.size, axis=0)])
        above, cells = inside.sum(axis=1), int(self.sizes.sum()) - blocks.size + 1
        possible = (above > 0) & (above < cells)
        inside, zero, above = inside[possible], zero[possible], above[possible]
        logs = _log_choices(self.sizes - zero, inside).sum(axis=1) + _log_choices(cells - 2, above - 1)
        chances = np.exp(logs - logs.max())
        return inside, zero, chances / chances.sum()

    @property
    def _dimension(self) -> int:
        return int(self.sizes.sum() - (self.sizes.size - 1))

    def draw(self, size: int, stream: Stream) -> Floats:
        """Draw the case, which cells are positive, and sizes: Dirichlet shares of one length on both sides."""
        inside, zero, chances = self._cases
        ends = np.cumsum(chances)
        case = np.minimum(np.searchsorted(ends, stream.uniforms(size) * ends[-1]), ends.size - 1)
        signs = np.empty((size, self.labels.size))
        for block in range(self.sizes.size):
            places = np.flatnonzero(self.labels == block)
            order = np.argsort(stream.words(size * places.size).reshape(size, places.size), axis=1)
            first = inside[case, block][:, None]
            ranked = np.arange(places.size)[None, :]
            ordered = (ranked < first) * 1.0 - (ranked >= first + zero[case, block][:, None])
            drawn = np.empty((size, places.size))
            np.put_along_axis(drawn, order, ordered, axis=1)
            signs[:, places] = drawn
        lengths = special.gammaincinv(self._dimension, stream.uniforms(size))[:, None]
        sizes = -np.log(stream.uniforms(signs.size)).reshape(signs.shape)
        above, below = np.where(signs > 0, sizes, 0.0), np.where(signs < 0, sizes, 0.0)
        return np.asarray(
            lengths * (above / above.sum(axis=1, keepdims=True) - below / below.sum(axis=1, keepdims=True))
        )

    def study(self, size: int, stream: Stream) -> Floats:
        """Independent draws."""
        return self.draw(size, stream)

    @property
    def moments(self) -> Floats:
        """E[z zᵀ] in closed form: cells of a block are exchangeable, and blocks independent given the case."""
        inside, zero, chances = self._cases
        total, sizes = self._dimension * (self._dimension + 1) * chances, np.maximum(self.sizes, 1)
        negative = self.sizes - zero - inside
        p, q = inside.sum(axis=1), negative.sum(axis=1)
        up, down, across = total / (p * (p + 1)), total / (q * (q + 1)), total / (p * q)
        x, y = inside / sizes, negative / sizes
        between = (x.T * up) @ x + (y.T * down) @ y - (x.T * across) @ y - (y.T * across) @ x
        own = 2 * (up @ x + down @ y)
        left = np.maximum(sizes - 1, 1)
        pairs = up @ (x * (inside - 1)) + down @ (y * (negative - 1)) - 2 * (across @ (x * negative))
        np.fill_diagonal(between, pairs / left)
        result = between[self.labels][:, self.labels]
        np.fill_diagonal(result, own[self.labels])
        return np.asarray(result)


def _labels(kernel: Floats) -> Ints | None:
    """Number the cells by their coefficients, 0 for none at all; None where some are nearly but not quite equal."""
    line = kernel @ np.sqrt(np.arange(1.0, kernel.shape[1] + 1) + 0.3)
    order = np.argsort(line)
    steps = np.diff(line[order]) > ALIKE
    labels = np.empty(line.size, dtype=np.int64)
    labels[order] = np.concatenate([[0], np.cumsum(steps)])
    found = np.zeros(line.size, dtype=np.int64)
    number = 0
    for label in range(int(labels.max()) + 1):
        rows = kernel[labels == label]
        if np.abs(rows - rows[0]).max() > ALIKE:
            return None
        if np.abs(rows).max() > ALIKE:
            number += 1
            found[labels == label] = number
    return found


def _log_choices(many: Ints | int, chosen: Ints) -> Floats:
    """The logarithm of the binomial coefficient."""
    return np.asarray(
        special.gammaln(np.asarray(many) + 1.0) - special.gammaln(chosen + 1.0) - special.gammaln(many - chosen + 1.0)
    )
