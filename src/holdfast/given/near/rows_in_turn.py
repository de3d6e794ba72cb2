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

#: Share of a law beyond each window.
TAIL = 1e-13


def windows(scale: float, cells: Ints) -> Ints:
    """How far sums of so many cells with scale λ are followed: with all but TAIL of their law.

    Chernoff's bound with the moments of independent noise; those of noise given margins of 0 do not exceed them
    (docs/theory/walks.md).
    """
    target = math.log(2 / TAIL)
    rate = 1 / scale
    tilts = rate * (1 - np.geomspace(1e-3, 0.9, 200))
    moments = np.log(np.expm1(-rate) ** 2 / (np.expm1(tilts - rate) * np.expm1(-tilts - rate)))
    return np.ceil(((target + np.multiply.outer(cells, moments)) / tilts).min(axis=1)).astype(np.int64)


class Windows(NamedTuple):
    """How far cells are drawn, and how far the messages of columns and the sums of columns j … of a row reach."""

    core: int
    reach: int
    depth: int
    widths: Ints

    @classmethod
    def of(cls, scale: float, rows: int, columns: int) -> Windows:
        """Windows for the largest scale; messages reach further than draws, so that they are right where it matters."""
        place = np.arange(columns + 1)
        core, half = windows(scale, np.array([1, max(1, rows // 2)])).tolist()
        widths = windows(scale, np.maximum(1, np.minimum(place, columns - place)))
        return cls(core, core + half, core + 2 * half, widths)


class Table(NamedTuple):
    """What the compiled draws see: weights of cells and of the rows below, by classes of like columns."""

    weights: Floats  # (rows, classes, 2·reach + 1): weight of noise −reach … reach
    below: Floats  # (rows + 1, classes, 2·depth + 1): weight with which rows r … sum to −depth … depth
    which: Ints  # (columns,): class of each column
    widths: Ints  # (columns + 1,): sums of columns j … of a row are followed from −widths[j] to widths[j]
    core: int  # noise of −core … core is drawn; core ≤ reach


def prepared(weights: Floats, which: Ints, sizes: Windows) -> Table:
    """Convolve the weights of each column from the last row upwards; each message is scaled to a largest entry of 1."""
    rows, classes, _ = weights.shape
    below = np.zeros((rows + 1, classes, 2 * sizes.depth + 1))
    below[rows, :, sizes.depth] = 1.0
    _fill(weights, below)
    return Table(weights, below, which, sizes.widths, min(sizes.core, weights.shape[2] // 2))


@compiled(inner=True)
def _nonzero(values: Floats) -> tuple[int, int]:  # pragma: no cover (compiled)
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
            lowest, highest = _nonzero(below[r + 1, k])
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


@compiled
def accepted(table: Table, limits: Floats, words: Words, noise: Ints, done: int) -> int:  # pragma: no cover (compiled)
    """Fill in tables (size, rows, columns) from `done` on until words or places are used up; return how many are done.

    Row r of a table is accepted with probability P_r/limits[r], and a table is left at the first row that is not.
    """
    rows, columns = noise.shape[1:]
    shares = np.empty((columns, table.weights.shape[2]))
    sums = np.empty((columns + 1, 2 * table.widths.max() + 1))
    for k in range(words.shape[0]):
        if done == noise.shape[0]:
            break
        needed, place = np.zeros(columns, dtype=np.int64), 0
        for r in range(rows - 1):
            coin = (np.float64(words[k, place + columns] >> np.uint64(11)) + 0.5) * 2.0**-53
            if coin * limits[r] >= _messages(table, r, needed, shares, sums):
                break
            _draw_row(words[k], place, table.core, shares, sums, noise[done, r])
            for j in range(columns):
                needed[j] -= noise[done, r, j]
            place += columns + 1
        if place == (rows - 1) * (columns + 1):
            for j in range(columns):
                noise[done, rows - 1, j] = needed[j]
            done += 1
    return done


def largest(table: Table) -> Floats:
    """P_r(0) for every row but the last: where all columns below still sum to 0."""
    rows, columns = table.weights.shape[0], table.which.size
    needed = np.zeros(columns, dtype=np.int64)
    shares, sums = np.empty((columns, table.weights.shape[2])), np.empty((columns + 1, 2 * table.widths.max() + 1))
    return np.array([_messages(table, r, needed, shares, sums) for r in range(rows - 1)])
