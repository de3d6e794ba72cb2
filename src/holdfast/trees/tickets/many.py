"""Many exact tables of one law on a hierarchy, by tables of tickets.

Where enough tables are drawn, each way to divide a total is written down once, and a division is then one look into a
table (tickets.py). Divisions that the table leaves open, a few in a million tables, are made in ball arithmetic
(enclosures.py). The law is exact: docs/theory/exact-trees.md. Every draw of some rows has its own key stream, and every
open division one of its own, so the number of workers changes nothing.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from holdfast.arrays import Floats, Ints
from holdfast.noise.draws.decisions import Digits, decided
from holdfast.noise.precision import working_precision
from holdfast.progress import Progress
from holdfast.randomness import Keys, Stream
from holdfast.trees.tickets import tickets
from holdfast.trees.tickets.enclosures import Enclosures, Law, Message, reach
from holdfast.trees.tickets.halves import Halves

#: Fewest rows, and fewest rows times outputs, that may repay tables.
FEWEST_ROWS = 1_000
FEWEST_VALUES = 1 << 21
#: Divisions that repay one cell, and one place of a message.
CELL_COSTS, PLACE_COSTS = 1, 128
#: Most outputs, widest windows and most cells (of 8 bytes) for which tables are made; parts have 16 bits.
MOST_OUTPUTS = 1 << 15
WIDEST = 1 << 13
MOST_CELLS = 1 << 23
FURTHEST = (1 << 15) - 1
#: Precision of the messages from which tickets are counted.
BITS = 192
#: Totals outside a table, and tickets left out to save cells, in one table and for one kind of part.
RARE = 1e-9
#: Most open divisions in one table for which this is the faster way.
MOST_OPEN = 1e-4
#: Rows of one piece of work.
ROWS = 2_048


def repays(size: int, outputs: int) -> bool:
    """Whether so many rows may repay tables; it depends on nothing but public figures."""
    return size >= FEWEST_ROWS and outputs <= MOST_OUTPUTS and size * outputs >= FEWEST_VALUES


@dataclass(frozen=True, eq=False)
class Many:
    """Tables for all kinds of parts of a forest: cells, and for each kind its place, its totals and its cells."""

    halves: Halves
    laws: list[Law]
    cells: npt.NDArray[np.uint64]
    base: Ints
    low: Ints
    count: Ints
    bits: Ints
    cost: int  # of the tables, in divisions
    far: tuple[Ints, Ints, Ints]  # outputs with bounds that the messages leave out, and those bounds
    workers: int
    _enclosures: dict[int, Enclosures] = field(default_factory=dict)

    def repaid(self, size: int) -> bool:
        """Whether so many rows repay the tables."""
        return self.cost <= size * self.halves.step_kind.size

    def draw(self, size: int, stream: Stream) -> Ints:
        """Draw the noise of all outputs, (size, n)."""
        keys = Keys.drawn_from(stream)
        noise = np.empty((size, self.halves.line_of.size), dtype=np.int64)

        def work(start: int) -> None:
            part = noise[start : start + ROWS]
            self._draw_rows(part, keys, start)
            progress.advance(len(part))

        with Progress("drawing", size) as progress, ThreadPoolExecutor(self.workers) as pool:
            for _ in pool.map(work, range(0, size, ROWS)):
                pass
        return noise

    def _draw_rows(self, noise: Ints, keys: Keys, start: int) -> None:
        words = self._words(keys, start, 0, len(noise))
        opened = self._run(words, noise)
        for row in np.flatnonzero(opened[:, 0] >= 0).tolist():
            self._finish(_words_of(words, row, len(noise)), noise[row : row + 1], keys, start + row, 0)
        for row in self._broken(noise):
            again, attempt = noise[row : row + 1], 0
            while attempt == 0 or self._broken(again):  # giving up would tell about the data
                attempt += 1
                self._finish(self._words(keys, start + row, attempt, 1), again, keys, start + row, attempt)

    def _words(self, keys: Keys, start: int, attempt: int, rows: int) -> npt.NDArray[np.uint32]:
        """Words of 32 bits, one for each row and step."""
        needed = rows * self.halves.step_kind.size
        words = keys.at("tickets", start, attempt).words(-(-needed // 2))
        return words.astype("<u8", copy=False).view("<u4")[:needed]

    def _run(self, words: npt.NDArray[np.uint32], noise: Ints, settled: tuple[list[int], list[int]] = ([], [])) -> Ints:
        opened = np.empty((len(noise), 2), dtype=np.int64)
        h = self.halves
        steps, parts = (np.array(part, dtype=np.int64) for part in settled)
        made = (self.cells, self.base, self.low, self.count, self.bits)
        of = (h.step_kind, h.source, h.left, h.right)
        tickets.draw(made, of, words, h.lines, h.line_of, (steps, parts), opened, noise)
        return opened

    def _finish(self, words: npt.NDArray[np.uint32], noise: Ints, keys: Keys, row: int, attempt: int) -> None:
        """Draw one row, dividing by hand what its tickets leave open."""
        steps: list[int] = []
        parts: list[int] = []
        while True:
            step, total = self._run(words, noise, (steps, parts))[0].tolist()
            if step < 0:
                return
            steps.append(step)
            parts.append(self._divide(step, total, keys.at("open", row, attempt, step)))

    def _divide(self, step: int, total: int, stream: Stream) -> int:
        """Draw the left part of a total whose ticket is open."""
        k = int(self.halves.step_kind[step])
        had = self.tickets(k, total)
        digits = Digits(stream.bits(64), 64, lambda: stream)
        return decided(self._at, digits, lambda exact, number: exact.part(k, total, had, number), BITS)

    def tickets(self, k: int, total: int) -> dict[int, int]:
        """The tickets that each left part of a total has had."""
        place, bits = total - int(self.low[k]), int(self.bits[k])
        if not 0 <= place < self.count[k]:
            return {}
        start = int(self.base[k]) + (place << bits)
        return tickets.read(self.cells[start : start + (1 << bits)], bits)

    def _at(self, bits: int) -> Enclosures:
        if bits not in self._enclosures:
            self._enclosures[bits] = Enclosures(self.halves.kinds, self.laws, bits)
        return self._enclosures[bits]

    def _broken(self, noise: Ints) -> list[int]:
        places, low, high = self.far
        if not places.size:
            return []
        chosen = noise[:, places]
        found: list[int] = np.flatnonzero(((chosen < low) | (chosen > high)).any(axis=1)).tolist()
        return found


def _words_of(words: npt.NDArray[np.uint32], row: int, rows: int) -> npt.NDArray[np.uint32]:
    """The words of one row, in the order of its steps."""
    steps = words.size // rows
    start = row // tickets.ABREAST * tickets.ABREAST
    width = min(tickets.ABREAST, rows - start)
    return np.ascontiguousarray(words[start * steps : (start + width) * steps].reshape(steps, width)[:, row - start])


@dataclass(eq=False)
class _Bounds:
    """A message in doubles: bounds on what its window holds, and a bound on what is missing."""

    lo: int
    low: Floats
    up: Floats
    missing: float
    often: Floats  # how often each total of the window occurs in one table

    @classmethod
    def of(cls, message: Message) -> _Bounds:
        low, up = message.doubles()
        return cls(message.lo, low, up, 1.01 * float(message.missing) + 1e-300, np.zeros(low.size))

    def beside(self) -> _Bounds:
        """A message that leaves the total of this one free: 1 wherever both together are 0."""
        ones = np.ones(self.low.size)
        return _Bounds(1 - self.lo - ones.size, ones, ones, 0.0, np.zeros(ones.size))

    def window(self) -> tuple[int, int]:
        """Where in the window all totals lie, but rare ones."""
        first = int(np.searchsorted(np.cumsum(self.often), RARE / 2))
        last = self.often.size - 1 - int(np.searchsorted(np.cumsum(self.often[::-1]), RARE / 2))
        return first, last


def make(
    halves: Halves, laws: list[Law], size: int, far: tuple[Ints, Ints, Ints], workers: int, share: float = 1.0
) -> Many | None:
    """Make the tables; None where they do not fit or so many rows do not repay them.

    A `share` below 1 leaves tickets open on purpose, for tests.
    """
    kinds, most = halves.kinds, size * halves.step_kind.size
    widest = max(reach(laws[kind.law], BITS) for kind in kinds if kind.left < 0)
    cost = PLACE_COSTS * len(kinds) * widest
    if cost > most or widest > WIDEST:
        return None
    exact = Enclosures(kinds, laws, BITS)
    known: dict[int, _Bounds] = {}
    places = 0
    with working_precision(BITS):
        for k, kind in enumerate(kinds):
            if not kind.top:
                message = exact.message(k)
                known[k] = _Bounds.of(message)
                places += len(message.values)
                cost = max(cost, PLACE_COSTS * places)
                if cost > most or len(message.values) > WIDEST or max(-message.lo, message.hi) > FURTHEST:
                    return None
    for k in halves.zero_totals:
        if not 0 <= -known[k].lo < known[k].often.size:  # so rare a total is not in its window
            return None
        known[k].often[-known[k].lo] += 1
    base, low, count, bits = (np.zeros(len(kinds), dtype=np.int64) for _ in range(4))
    pieces: list[npt.NDArray[np.uint64]] = []
    opened, filled = 0.0, 0
    for k in range(len(kinds) - 1, -1, -1):
        kind = kinds[k]
        if kind.left < 0:
            continue
        f = known[kind.left]
        if kind.top:
            g, low[k], often = f.beside(), 0, np.array([float((halves.step_kind == k).sum())])
        elif kind.right < 0:  # the same total, over as much of its child's window as there is
            shift = known[k].lo - f.lo
            f.often[shift : shift + known[k].often.size] += known[k].often
            continue
        else:
            g = known[kind.right]
            first, last = known[k].window()
            low[k], often = known[k].lo + first, known[k].often[first : last + 1]
        pair = (f.low, f.up, f.lo, g.low, g.up, g.lo, f.missing + g.missing)
        chances = np.zeros(tickets.MOST_BITS + 1)
        tickets.spread_out(*pair, low[k], often, f.often, g.often, chances)
        enough = chances[tickets.FEWEST_BITS :] <= chances[-1] + RARE
        bits[k], count[k], base[k] = tickets.FEWEST_BITS + int(np.argmax(enough)), often.size, filled
        filled += int(count[k]) << int(bits[k])
        opened += float(chances[bits[k]])
        cost = max(cost, CELL_COSTS * filled)
        if cost > most or filled > MOST_CELLS or opened > MOST_OPEN:
            return None
        pieces.append(np.empty(int(count[k]) << int(bits[k]), dtype=np.uint64))
        tickets.fill(*pair, low[k], low[k] + count[k] - 1, bits[k], share, pieces[-1])
    cells = np.concatenate(pieces)
    return Many(halves, laws, cells, base, low, count, bits, cost, far, workers, {BITS: exact})
