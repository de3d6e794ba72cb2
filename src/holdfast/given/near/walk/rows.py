"""A chain on two-way tables with all margins held and bounds on the cells: whole tables are proposed, row after row.

A proposal (`rows_in_turn.py`) does not depend on the state, so it reaches every table, and two coupled chains that are
offered the same table meet as soon as both accept it. Each row's weights are tilted by e^{βu}: row sums are held, so
this changes nothing in the law, and it lets proposed rows sum to 0 in the mean.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from holdfast.arrays import Floats, Ints, Words, compiled
from holdfast.given.near.two_way.rows_in_turn import Table, Windows, nonzero, prepared, propose
from holdfast.given.near.two_way.typical import Typical
from holdfast.randomness import Stream
from holdfast.workers import in_threads

#: Rounds in which the tilts of the rows are improved.
ROUNDS = 12
#: Bounds beyond this are none; sums of so many of them stay whole numbers of 64 bits.
FAR = 2**40
#: Random words made at once.
BATCH_WORDS = 1 << 20


@compiled
def _cell_moments(table: Table) -> tuple[Floats, Floats]:  # pragma: no cover (compiled)
    """Mean and variance of every cell when columns are independent and each has its sum."""
    rows, columns, span = table.weights.shape
    reach, depth = span // 2, table.below.shape[2] // 2
    means, variances = np.zeros((rows, columns)), np.zeros((rows, columns))
    for j in range(columns):
        above = np.zeros(2 * depth + 1)
        above[depth] = 1.0
        for r in range(rows):
            total = first = second = 0.0
            following = np.zeros(2 * depth + 1)
            lowest, highest = nonzero(above)
            least, most = nonzero(table.below[r + 1, j])
            for u in range(-reach, reach + 1):
                weight = table.weights[r, j, u + reach]
                if weight > 0:
                    # a + u + b is the column's sum for the sums a of the rows above and b of those below
                    begin, end = max(lowest, -u), min(highest, 2 * depth - u)
                    for a in range(begin, end + 1):
                        following[a + u] += weight * above[a]
                    inner, rest = 0.0, table.sums[j] - u + 2 * depth
                    for a in range(max(begin, rest - most), min(end, rest - least) + 1):
                        inner += above[a] * table.below[r + 1, j, rest - a]
                    total += weight * inner
                    first += u * weight * inner
                    second += u * u * weight * inner
            if total > 0:
                means[r, j] = first / total
                variances[r, j] = second / total - (first / total) ** 2
            above = following / max(following.max(), 1e-300)
    return means, variances


def tilted(weights: Floats, sizes: Windows, steepest: float, sums: Ints, first: Floats) -> tuple[Table, Typical]:
    """The table whose rows sum to 0 in the mean when columns are independent, starting from these tilts.

    Also the moments of its cells, and their deviations once their row is held as well.
    """
    _, columns, span = weights.shape
    which = np.arange(columns)
    places = np.arange(span) - span // 2
    logs = np.where(weights > 0, np.log(np.where(weights > 0, weights, 1.0)), -np.inf)

    def leaning(tilts: Floats) -> Table:
        leaned = logs + tilts[:, None, None] * places
        return prepared(np.exp(leaned - leaned.max(axis=2, keepdims=True)), which, sizes, sums)

    tilts = np.clip(first, -steepest, steepest)
    table = leaning(tilts)
    for turn in range(ROUNDS + 1):
        cells, spread = _cell_moments(table)
        means, variances = cells.sum(axis=1), spread.sum(axis=1)
        if turn == ROUNDS or np.abs(means).max() < 0.05 * np.sqrt(variances.mean()):
            break
        # Rows move against each other: of two, both would take the whole step.
        steps = (len(means) - 1) / len(means) * means / np.maximum(variances, 1e-9)
        tilts = tilts - np.clip(steps, -steepest / 4, steepest / 4)
        tilts = np.clip(tilts, -steepest, steepest)
        table = leaning(tilts)
    held = 1 - spread / np.maximum(variances[:, None], 1e-300)
    return table, Typical(cells, spread, np.sqrt(spread * np.clip(held, 0.0, 1.0)), tilts)


@compiled
def _offer(table: Table, words: Words, offers: Floats) -> None:  # pragma: no cover (compiled)
    """Fill in one proposed table for each row of words: its cells, and the log of its weight at the end."""
    rows, columns = table.weights.shape[0], table.which.size
    noise = np.zeros((rows, columns), dtype=np.int64)
    for c in range(words.shape[0]):
        _, log_weight = propose(table, np.empty(0), words[c], noise)
        for i in range(rows * columns):
            offers[c, i] = noise[i // columns, i % columns]
        offers[c, rows * columns] = log_weight


def tightened(low: Ints, high: Ints) -> tuple[Ints, Ints]:
    """Bounds on cells (rows, columns), narrowed by what the sums of 0 of their rows and columns leave."""
    low, high = low.clip(-FAR, FAR), high.clip(-FAR, FAR)
    for _ in range(ROUNDS):
        before = low, high
        for axis in (0, 1):
            new_high = np.minimum(high, low - low.sum(axis=axis, keepdims=True))
            low = np.maximum(low, high - high.sum(axis=axis, keepdims=True))
            high = new_high
        if all(np.array_equal(one, other) for one, other in zip(before, (low, high), strict=True)):
            break
    return low, high


@dataclass(frozen=True, eq=False)
class RowChain:
    """States are the cells of a table and the log of its weight; what is proposed is noise less its `centre`."""

    table: Table
    centre: Ints

    @property
    def width(self) -> int:
        """Numbers in a state."""
        return int(self.table.weights.shape[0] * self.table.which.size + 1)

    def offers(self, count: int, stream: Stream) -> Floats:
        """Proposed tables."""
        found = np.empty((count, self.width))
        each = self.table.weights.shape[0] * (self.table.which.size + 1)
        step = max(1, BATCH_WORDS // each)
        for start in range(0, count, step):
            part = found[start : start + step]
            words = stream.words(each * len(part)).reshape(len(part), each)
            in_threads(lambda rows, words=words, part=part: _offer(self.table, words[rows], part[rows]), len(part))  # type: ignore[misc]
        found[:, :-1] += self.centre.ravel()
        return found

    def start(self, count: int, stream: Stream) -> npt.NDArray[Any]:
        """Proposed tables of positive weight."""
        found = self.offers(count, stream)
        while (bad := np.flatnonzero(np.isneginf(found[:, -1]))).size:
            found[bad] = self.offers(bad.size, stream)
        return found

    def advance(self, states: npt.NDArray[Any], stream: Stream) -> npt.NDArray[Any]:
        """Offer a table to every chain."""
        offers, coins = self.offers(len(states), stream), np.log(stream.uniforms(len(states)))
        return _taken(states, offers, coins)

    def advance_coupled(
        self, ahead: npt.NDArray[Any], behind: npt.NDArray[Any], stream: Stream
    ) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
        """Offer the same table to both chains of a pair, with the same coin."""
        offers, coins = self.offers(len(ahead), stream), np.log(stream.uniforms(len(ahead)))
        return _taken(ahead, offers, coins), _taken(behind, offers, coins)


def _taken(states: npt.NDArray[Any], offers: Floats, coins: Floats) -> npt.NDArray[Any]:
    return np.where((coins < offers[:, -1] - states[:, -1])[:, None], offers, states)
