"""Two-way tables with all margins held, row after row: the compiled draws.

Let F_r(c) be the weight with which rows r … R of one column have sum c. With needed sums c in every column, row r is
drawn with weights Π_j w_rj(u_j)·F_{r+1}(c_j − u_j) given that it sums to 0, by messages over its columns. This comes
near the law of the table: what is left out is P_r(c), the probability that a row sums to 0 when columns are
independent given c, and the law of the table is that of the draws weighed by Π_r P_r. All sums have positive terms, so
relative errors stay at the number of terms times the rounding of doubles.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from holdfast.arrays import Floats, Ints, Words, compiled
from holdfast.given.near.two_way.typical import Typical

#: Share of a law beyond each window.
TAIL = 1e-13


def windows(scale: float, gaussian: bool, cells: Ints) -> Ints:
    """How far sums of so many cells with scale λ or σ² are followed: with all but TAIL of their law.

    Chernoff's bound with the moments of independent noise; those of noise given margins of 0 do not exceed them
    (docs/theory/walks.md).
    """
    target = math.log(2 / TAIL)
    if gaussian:
        return np.ceil(np.sqrt(2 * scale * target * cells)).astype(np.int64)
    rate = 1 / scale
    tilts = rate * (1 - np.geomspace(1e-3, 0.9, 200))
    moments = np.log(np.expm1(-rate) ** 2 / (np.expm1(tilts - rate) * np.expm1(-tilts - rate)))
    return np.ceil(((target + np.multiply.outer(cells, moments)) / tilts).min(axis=1)).astype(np.int64)


def beyond(scale: float, gaussian: bool, deviations: Floats) -> Floats:
    """How far from their mean sums with these deviations are followed, for cells with scale λ or σ²."""
    target = math.log(2 / TAIL)
    single = math.sqrt(2 * scale * target) if gaussian else scale * target
    return np.asarray(single + deviations * math.sqrt(2 * target))


def widest_window(scale: float, gaussian: bool, cells: int) -> int:
    """No window is wider, whatever the data: deviations of up to √cells/2 scales."""
    deviation = (math.sqrt(scale) if gaussian else scale) * max(1.5, math.sqrt(cells) / 2)
    return math.ceil(float(beyond(scale, gaussian, np.array(deviation)))) + 1


def _bridge(variances: Floats) -> Floats:
    """The deviations of sums of columns j … of a row, were they normal and the row held."""
    after = np.cumsum(variances[:, ::-1], axis=1)[:, ::-1]
    before = after[:, :1] - after
    return np.asarray(np.sqrt(after * before / np.maximum(after[:, :1], 1e-300)))


class Windows(NamedTuple):
    """How far cells are drawn, and how far the messages of columns and the sums of columns j … of a row reach."""

    core: int
    reach: int
    depth: int
    widths: Ints

    @classmethod
    def around(cls, found: Typical, centre: Ints, scale: float, gaussian: bool, most: int) -> tuple[Windows, Ints]:
        """Windows for noise less its centre, where bounds push it about; also the reach of every cell by itself.

        Sums of cells whose tails fall like e^{−u/λ}, with a deviation of s, stay within λL + s√(2L) of their mean but
        for e^{−L} (docs/theory/walks.md, §2).
        """
        off, held = found.means - centre, found.deviations**2
        cells = np.minimum(most, np.ceil(np.abs(off) + beyond(scale, gaussian, found.deviations)))
        after, beside = np.cumsum(held[::-1], axis=0)[::-1], np.cumsum(off[:, ::-1], axis=1)[:, ::-1]
        below = np.abs(np.cumsum(off[::-1], axis=0)[::-1])
        depths = below + beyond(scale, gaussian, np.sqrt(np.minimum(after, after[0] - after + held[0])))
        across = (np.abs(beside) + beyond(scale, gaussian, _bridge(found.variances))).max(axis=0)
        widths = np.minimum(most, np.ceil(np.append(across, 1.0))).astype(np.int64)
        reach = int(cells.max())
        depth = max(reach, int(min(most, math.ceil(depths.max()))), int(np.abs(centre.sum(axis=0)).max()) + 1)
        return cls(reach, reach, depth, widths), cells.astype(np.int64)

    @classmethod
    def of(cls, scale: float, gaussian: bool, rows: int, columns: int) -> Windows:
        """Windows for the largest scale; messages reach further than draws, so that they are right where it matters."""
        place = np.arange(columns + 1)
        core, half = windows(scale, gaussian, np.array([1, max(1, rows // 2)])).tolist()
        widths = windows(scale, gaussian, np.maximum(1, np.minimum(place, columns - place)))
        return cls(core, core + half, core + 2 * half, widths)


class Table(NamedTuple):
    """What the compiled draws see: weights of cells and of the rows below, by classes of like columns."""

    weights: Floats  # (rows, classes, 2·reach + 1): weight of noise −reach … reach
    below: Floats  # (rows + 1, classes, 2·depth + 1): weight with which rows r … sum to −depth … depth
    which: Ints  # (columns,): class of each column
    widths: Ints  # (columns + 1,): sums of columns j … of a row are followed from −widths[j] to widths[j]
    core: int  # noise of −core … core is drawn; core ≤ reach
    sums: Ints  # (columns,): what each column sums to


def prepared(weights: Floats, which: Ints, sizes: Windows, sums: Ints | None = None) -> Table:
    """Convolve the weights of each column from the last row upwards; each message is scaled to a largest entry of 1."""
    sums = np.zeros(which.size, dtype=np.int64) if sums is None else sums
    rows, classes, _ = weights.shape
    below = np.zeros((rows + 1, classes, 2 * sizes.depth + 1))
    below[rows, :, sizes.depth] = 1.0
    _fill(weights, below)
    return Table(weights, below, which, sizes.widths, min(sizes.core, weights.shape[2] // 2), sums)


@compiled(inner=True)
def nonzero(values: Floats) -> tuple[int, int]:  # pragma: no cover (compiled)
    """The first and the last place that is not 0; the last one before the first where all are."""
    first, last = 0, values.size - 1
    while first <= last and values[first] == 0:
        first += 1
    while last >= first and values[last] == 0:
        last -= 1
    return first, last


@compiled
def _fill(weights: Floats, below: Floats) -> None:  # pragma: no cover (compiled)
    rows, classes, span = weights.shape
    reach, depth = span // 2, below.shape[2] // 2
    for r in range(rows - 1, -1, -1):
        for k in range(classes):
            lowest, highest = nonzero(below[r + 1, k])
            for u in range(-reach, reach + 1):
                weight = weights[r, k, u + reach]
                if weight > 0:
                    first, last = max(0, lowest + u), min(2 * depth, highest + u)
                    for c in range(first, last + 1):
                        below[r, k, c] += weight * below[r + 1, k, c - u]
            largest = below[r, k].max()
            for c in range(below.shape[2]):
                below[r, k, c] /= largest


@compiled(inner=True, fastmath={"contract"})
def _convolve(
    shares: Floats, first: int, source: Floats, low: int, target: Floats, new_low: int
) -> None:  # pragma: no cover (compiled)
    """Add the shares of first, first + 1, … times the source, which starts at low, to the target, from new_low on."""
    for i in range(shares.size):
        share = shares[i]
        shift = low + first + i - new_low  # where the source's first entry goes
        begin, end = max(0, shift), min(target.size, shift + source.size)
        if share > 0 and begin < end:
            into, out_of = target[begin:end], source[begin - shift : end - shift]
            for s in range(into.size):
                into[s] += share * out_of[s]


@compiled
def _messages(table: Table, r: int, needed: Ints, shares: Floats, sums: Floats) -> float:  # pragma: no cover (compiled)
    """Fill in the laws of the cells of row r and the messages over its columns; return P_r(needed)."""
    columns = needed.size
    reach, depth, width = table.weights.shape[2] // 2, table.below.shape[2] // 2, sums.shape[1] // 2
    sums[columns] = 0.0
    sums[columns, width] = 1.0
    for j in range(columns - 1, -1, -1):
        k = table.which[j]
        total = 0.0
        for u in range(-reach, reach + 1):
            c = needed[j] - u
            share = 0.0
            if -depth <= c <= depth:
                share = table.weights[r, k, u + reach] * table.below[r + 1, k, c + depth]
            shares[j, u + reach] = share
            total += share
        if total == 0:
            return 0.0
        shares[j] /= total
        sums[j] = 0.0
        old, new = table.widths[j + 1], table.widths[j]
        source, target = sums[j + 1, width - old : width + old + 1], sums[j, width - new : width + new + 1]
        _convolve(shares[j, reach - table.core : reach + table.core + 1], -table.core, source, -old, target, -new)
    return sums[0, width]


@compiled(inner=True)
def _draw_row(
    words: Words, place: int, core: int, shares: Floats, sums: Floats, row: Ints
) -> None:  # pragma: no cover (compiled)
    """Draw the cells of a row that sums to 0, one word for each."""
    reach, width = shares.shape[1] // 2, sums.shape[1] // 2
    left = 0
    for j in range(row.size):
        goal = (np.float64(words[place + j] >> np.uint64(11)) + 0.5) * 2.0**-53 * sums[j, left + width]
        total, found = 0.0, 0
        for u in range(max(-core, left - width), min(core, left + width) + 1):
            term = shares[j, u + reach] * sums[j + 1, left - u + width]
            if term > 0:
                found = u
                total += term
                if total > goal:
                    break
        row[j] = found
        left -= found


@compiled(inner=True)
def propose(
    table: Table, limits: Floats, words: Words, noise: Ints
) -> tuple[int, float]:  # pragma: no cover (compiled)
    """Draw one table; return the number of rows done and Σ log P_r.

    With limits, row r is accepted with probability P_r/limits[r], and the draw ends at the first row that is not.
    """
    rows, columns = noise.shape
    needed = table.sums.copy()
    shares = np.empty((columns, table.weights.shape[2]))
    sums = np.empty((columns + 1, 2 * table.widths.max() + 1))
    log_weight = 0.0
    for r in range(rows - 1):
        probability = _messages(table, r, needed, shares, sums)
        place = r * (columns + 1)
        if probability == 0:
            return r, -np.inf
        if limits.size:
            coin = (np.float64(words[place + columns] >> np.uint64(11)) + 0.5) * 2.0**-53
            if coin * limits[r] >= probability:
                return r, -np.inf
        log_weight += np.log(probability)
        _draw_row(words, place, table.core, shares, sums, noise[r])
        for j in range(columns):
            needed[j] -= noise[r, j]
    for j in range(columns):
        noise[rows - 1, j] = needed[j]
    return rows, log_weight


def largest(table: Table) -> Floats:
    """P_r(0) for every row but the last: where all columns below still sum to 0."""
    rows, columns = table.weights.shape[0], table.which.size
    needed = np.zeros(columns, dtype=np.int64)
    shares, sums = np.empty((columns, table.weights.shape[2])), np.empty((columns + 1, 2 * table.widths.max() + 1))
    return np.array([_messages(table, r, needed, shares, sums) for r in range(rows - 1)])
