"""Tables of tickets: a word of 32 bits is a ticket, and each part of a total has nearly its share of all tickets.

The tickets of one total lie in cells of equal size, at most two parts to a cell (Walker's alias method, in whole
numbers): a draw is one look into one cell. Tickets that no part has had are *open*. Proofs: docs/theory/exact-trees.md.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from holdfast.arrays import compiled

#: The part that stands for an open ticket.
OPEN = -(1 << 15)
#: Cells of one total are a power of two between these.
FEWEST_BITS, MOST_BITS = 4, 12
#: All tickets, less one for each 2^33: more than all roundings of doubles cost. It is a double.
NEARLY_ALL = 2.0**32 - 0.5
#: Tables drawn side by side: their totals and words stay in the second cache.
ABREAST = 256
_TILE = 16


@compiled(inner=True)
def _share(
    f_low: Any, f_up: Any, f_lo: Any, g_low: Any, g_up: Any, g_lo: Any, missing: Any, s: Any, counts: Any
) -> Any:
    """Write how many tickets each left part of s has, from the first part on; return that part and how many there are.

    f and g are bounds on the messages of the two parts; `missing` bounds all that they do not hold.
    """
    first = max(f_lo, s - (g_lo + g_low.size - 1))
    last = min(f_lo + f_low.size - 1, s - g_lo)
    total = missing
    for a in range(first, last + 1):
        total += f_up[a - f_lo] * g_up[s - a - g_lo]
    begin, end = last + 1, first - 1
    for a in range(first, last + 1):
        count = np.int64(f_low[a - f_lo] * g_low[s - a - g_lo] / total * NEARLY_ALL) if total > 0.0 else np.int64(0)
        counts[a - first] = count
        if count > 0:
            begin, end = min(begin, a), a
    for a in range(begin, end + 1):
        counts[a - begin] = counts[a - first]
    return begin, max(end - begin + 1, 0)


@compiled(inner=True)
def _kept(counts: Any, size: Any, most: Any) -> Any:
    """The first and the number of at most so many parts with most tickets, if tickets grow and then fall."""
    first, last = 0, size - 1
    while last - first + 1 > most:
        if counts[first] < counts[last]:
            first += 1
        else:
            last -= 1
    return first, last - first + 1


@compiled
def spread_out(
    f_low: Any, f_up: Any, f_lo: Any, g_low: Any, g_up: Any, g_lo: Any, missing: Any, lo: Any, often: Any,
    f_often: Any, g_often: Any, opened: Any,
) -> None:  # fmt: skip
    """Pass on how often each total occurs to both parts; add up how often a ticket is open, for each number of cells.

    `often` tells how often the totals lo, lo + 1, … occur in one table.
    """
    counts = np.empty(f_low.size + 1, np.int64)
    for i in range(often.size):
        s = lo + i
        begin, size = _share(f_low, f_up, f_lo, g_low, g_up, g_lo, missing, s, counts)
        for j in range(size):
            part = often[i] * np.float64(counts[j]) / NEARLY_ALL
            f_often[begin + j - f_lo] += part
            g_often[s - begin - j - g_lo] += part
        for bits in range(FEWEST_BITS, MOST_BITS + 1):
            first, kept = _kept(counts, size, (1 << bits) - 1)
            left = np.int64(1) << 32
            for j in range(first, first + kept):
                left -= counts[j]
            opened[bits] += often[i] * np.float64(left) / 2.0**32


@compiled(inner=True)
def _fill(counts: Any, first: Any, kept: Any, begin: Any, bits: Any, cells: Any, left: Any, waiting: Any) -> None:
    """Put tickets into cells; the upper half of a cell tells how many of its tickets the first of its two parts has."""
    number = np.int64(1) << bits
    size = np.int64(1) << (32 - bits)
    rest = np.int64(1) << 32
    for i in range(kept):
        left[i] = counts[first + i]
        rest -= counts[first + i]
    left[kept] = rest
    for i in range(kept + 1, number):
        left[i] = 0
    small, large = 0, number  # parts with less than a cell from the front, the others from the back
    for i in range(number):
        if left[i] < size:
            waiting[small] = i
            small += 1
        else:
            large -= 1
            waiting[large] = i
    while small > 0:
        small -= 1
        one = waiting[small]
        other = waiting[large]
        cells[one] = _cell(left[one], _part(one, kept, begin), _part(other, kept, begin))
        left[other] -= size - left[one]
        if left[other] < size:
            large += 1
            waiting[small] = other
            small += 1
    for i in range(large, number):
        one = waiting[i]
        cells[one] = _cell(size, _part(one, kept, begin), _part(one, kept, begin))


@compiled(inner=True)
def _part(i: Any, kept: Any, begin: Any) -> Any:
    return begin + i if i < kept else np.int64(OPEN)


@compiled(inner=True)
def _cell(count: Any, one: Any, other: Any) -> Any:
    return np.uint64(count) << np.uint64(32) | np.uint64(one & 0xFFFF) << np.uint64(16) | np.uint64(other & 0xFFFF)


@compiled
def fill(
    f_low: Any, f_up: Any, f_lo: Any, g_low: Any, g_up: Any, g_lo: Any, missing: Any, lo: Any, hi: Any, bits: Any,
    share: Any, table: Any,
) -> None:  # fmt: skip
    """Write the cells of the totals lo … hi; each part has the given share of the tickets that it could have."""
    counts = np.empty(f_low.size + 1, np.int64)
    left = np.empty(1 << bits, np.int64)
    waiting = np.empty(1 << bits, np.int64)
    for s in range(lo, hi + 1):
        begin, size = _share(f_low, f_up, f_lo, g_low, g_up, g_lo, missing, s, counts)
        for j in range(size):
            counts[j] = np.int64(np.float64(counts[j]) * share)
        first, kept = _kept(counts, size, (1 << bits) - 1)
        at = (s - lo) << bits
        _fill(counts, first, kept, begin + first, bits, table[at : at + (1 << bits)], left, waiting)


def read(cells: npt.NDArray[np.uint64], bits: int) -> dict[int, int]:
    """How many tickets each part has in the cells of one total."""
    found: dict[int, int] = {}
    for cell in cells.tolist():
        first = cell >> 32
        for part, count in ((cell >> 16 & 0xFFFF, first), (cell & 0xFFFF, (1 << 32 - bits) - first)):
            value = part - (1 << 16) if part >> 15 else part
            if count and value != OPEN:
                found[value] = found.get(value, 0) + count
    return found


@compiled
def draw(tickets: Any, steps: Any, words: Any, lines: Any, line_of: Any, settled: Any, opened: Any, noise: Any) -> None:
    """Draw some tables, (rows, n); an open step is divided as settled, where it is.

    `tickets` are the cells, where those of each kind begin, its least total, how many totals, and bits of a place.
    `opened` gets the first step of each table that stays open (−1: none) and its total; the table is then void.
    """
    table, base, low, count, bits = tickets
    step_kind, source, left, right = steps
    settled_steps, settled_parts = settled
    rows = noise.shape[0]
    totals = np.zeros((lines, ABREAST), np.int32)
    at = 0
    for start in range(0, rows, ABREAST):
        width = min(ABREAST, rows - start)
        for r in range(width):
            opened[start + r, 0] = -1
        for i in range(step_kind.size):
            k = step_kind[i]
            cells = table[base[k] : base[k] + (count[k] << bits[k])]
            lowest, number = low[k], np.uint64(count[k])
            cell_bits = np.uint64(bits[k])
            shift = np.uint64(32 - bits[k])
            mask = (np.uint64(1) << shift) - np.uint64(1)
            of, one, other = totals[source[i]], totals[left[i]], totals[right[i]]
            drawn = words[at : at + width]
            at += width
            for r in range(width):
                s = np.int64(of[r])
                place = np.uint64(s - lowest)
                word = np.uint64(drawn[r])
                part = np.int64(OPEN)
                if place < number:
                    cell = cells[(place << cell_bits) + (word >> shift)]
                    chosen = cell >> np.uint64(16) if (word & mask) < (cell >> np.uint64(32)) else cell
                    part = np.int64(np.int16(chosen & np.uint64(0xFFFF)))
                if part == OPEN:
                    part = np.int64(0)
                    known = False
                    for j in range(settled_steps.size):
                        if settled_steps[j] == i:
                            part, known = settled_parts[j], True
                    if not known and opened[start + r, 0] < 0:
                        opened[start + r, 0], opened[start + r, 1] = i, s
                one[r] = part
                other[r] = s - part
        for tile in range(0, width, _TILE):
            for r in range(tile, min(tile + _TILE, width)):
                for v in range(line_of.size):
                    noise[start + r, v] = totals[line_of[v], r]
