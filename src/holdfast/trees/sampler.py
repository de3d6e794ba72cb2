"""Exact draws of integer noise on a hierarchy given that parents equal the sum of their children, up to a nation.

Sum-product messages (THEORY §4) in compiled doubles: one up-pass, kept for all draws; then totals are divided from the
roots down. Windows, tails and rounding do not reach the law: see steps.py and undecided.py, and for the proofs
docs/theory/exact-trees.md. Every piece has its own place in one key stream, so the number of workers changes nothing.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numba
import numpy as np
import numpy.typing as npt

from holdfast.arguments import LARGEST, Refused
from holdfast.noise import Independent, IntegerGaussian, IntegerLaplace
from holdfast.progress import Progress
from holdfast.randomness import Keys, Stream
from holdfast.trees import leaf_kinds, many, passes
from holdfast.trees.decisions import Restart
from holdfast.trees.forest import Forest, Ints
from holdfast.trees.halves import cut as cut_in_halves
from holdfast.trees.leaf_kinds import TOO_WIDE, Bools
from holdfast.trees.many import Many
from holdfast.trees.outlook import Outlook, Prospect
from holdfast.trees.parcels import Kit, Shelf, block_windows, empty_shelf, make_blocks, prefixes
from holdfast.trees.pieces import MOST_LEAVES, Pieces, cut
from holdfast.trees.responses import Laws, Leaves
from holdfast.trees.steps import HIGH, LOW
from holdfast.trees.undecided import Hand, Undecided

#: Totals are looked for where all but about e^−28 of the law lies, and inside parcels, which are quickly made again
#: where that is not enough, all but e^−18.
NEED = 28.0
NEED_INSIDE = 18.0
#: How many times wider, at most, windows are made where messages could not be.
WIDEST = 4.0
#: Largest share of a root's message beyond its window.
MOST_BEYOND = 1e-9
#: Leaves that are pulled hard break a far bound with a probability above e^−28; they matter where tables are broken
#: more often than seldom.
BREAKS = 28.0
SELDOM = 1e-4
#: Most bytes of messages.
MOST_BYTES = 5 << 29
#: Most totals and leaves drawn in one go.
CHUNK = 1 << 24


class _TooNarrow(Exception):
    """A window does not hold enough of a message; wider ones may."""


@dataclass(frozen=True, eq=False)
class Sampler:
    """The conditional law of integer noise on a forest, for given bounds on the noise of each output."""

    forest: Forest
    law: Independent
    low: Ints
    high: Ints
    need: float = NEED
    need_inside: float = NEED_INSIDE
    workers: int | None = None
    pulled: Bools | None = None  # outputs whose bounds are kept also far from the truth; None: none
    slopes: npt.NDArray[np.float64] | None = None  # that totals are known to meet, for a better guess
    at_roots: Ints | None = None  # noise of every output that stands at a root, where it is given; others are not read
    learn: bool | None = None  # whether windows are guessed again as messages become known; None: where it helps
    inflation: float = 1.0  # of the error bounds; above 1 for tests of the undecided path only

    # --- what is known before any message ------------------------------------------------------------------------

    @cached_property
    def _laws(self) -> tuple[Laws, list[int]]:
        """The measured laws, and for each law of the noise its place among them; −1: not measured."""
        return leaf_kinds.measured_laws(self.law)

    @cached_property
    def _law_of(self) -> Ints:
        _, places = self._laws
        if self.law.which is None:
            return np.full(self.forest.n, places[0], dtype=np.int64)
        return np.array(places, dtype=np.int64)[self.law.which]

    @cached_property
    def _limits(self) -> Ints:
        """For each measured law, how far from 0 bounds are kept: in general, and where a leaf is pulled hard."""
        laws, _ = self._laws
        return leaf_kinds.limits(laws, self.pulled)

    @cached_property
    def _kinds_of_leaves(self) -> tuple[Leaves, Ints]:
        """The kinds of leaves and the kind of every output (0 where it is no free leaf)."""
        return leaf_kinds.kinds_of_leaves(self.forest, self._law_of, self.low, self.high, self.pulled, self._limits)

    @cached_property
    def pieces(self) -> Pieces:
        """The forest cut into pieces."""
        leaves, kind = self._kinds_of_leaves
        return cut(self.forest, self._law_of, self.low, self.high, kind, (leaves.low, leaves.high))

    @cached_property
    def _far_places(self) -> Ints:
        """Where leaves with a bound that the messages leave out stand among the leaves of the pieces."""
        leaves, kind = self._kinds_of_leaves
        return leaf_kinds.left_out(self.pieces.leaves, kind, leaves.low, leaves.high, self.low, self.high)

    @cached_property
    def _far(self) -> Ints:
        """Leaves with a bound that the messages leave out."""
        return self.pieces.leaves[self._far_places]

    @cached_property
    def _guessed(self) -> tuple[Prospect, Bools | None]:
        """A guess of the windows, and the leaves whose far bounds must be kept; None where none must."""
        leaves, _ = self._kinds_of_leaves
        laws, _ = self._laws

        def over(task: Callable[[Ints], Any], kinds: Ints) -> None:
            self._over(task, kinds, 1 << 14, None)

        found = Prospect(self.pieces, leaves, laws, self.need, over, self.slopes)
        pulled = self._gives_way(found)
        rough = self.learn is None and found.is_rough and pulled is None
        if self.slopes is None and (self.learn or rough):
            found.forget()  # a nation's guess is large
            found = Prospect(self.pieces, leaves, laws, self.need, over, found.usual_slopes)
        return found, pulled

    @property
    def _prospect(self) -> Prospect:
        found, _ = self._guessed
        return found

    def _gives_way(self, found: Prospect) -> Bools | None:
        """Leaves that are pulled so hard that bounds far away matter; None where none are."""
        laws, _ = self._laws
        if self.pulled is not None or not laws.laplace or not self._far.size:
            return None
        far, p = self._far, self.pieces
        chosen = np.ones(far.size, dtype=np.bool_)
        if not found.is_rough:
            parcels = np.flatnonzero(p.left < 0)
            parcels = parcels[np.argsort(p.first[parcels])]
            piece = parcels[np.searchsorted(p.first[parcels], self._far_places, side="right") - 1]
            law, slope = self._law_of[far], found.outlook.below[p.kind[piece]]
            resists = np.full(far.size, np.inf)
            for bound, pull in ((-self.low[far], slope[:, 0]), (self.high[far], -slope[:, 1])):
                # under a slope, noise falls off as e^−(rate ± slope)
                left_out = (bound >= self._limits[0][law]) & (bound < LARGEST)
                resists = np.where(left_out, np.minimum(resists, (laws.rate[law] + pull) * bound), resists)
            if np.exp(-np.maximum(resists, 0.0)).sum() < SELDOM:
                return None
            chosen = resists < BREAKS
        pulled = np.zeros(self.forest.n, dtype=np.bool_)
        pulled[far[chosen]] = True
        return pulled

    @cached_property
    def guess(self) -> Outlook:
        """Where totals will probably lie."""
        return self._prospect.outlook

    @cached_property
    def kit(self) -> Kit:
        """Laws and leaves as compiled code wants them."""
        leaves, _ = self._kinds_of_leaves
        laws, _ = self._laws
        g = self.guess
        return Kit(
            leaf_kinds.weights(self.law, int(self._limits.max())), laws.laplace, laws.rate, leaves.law, leaves.low,
            leaves.high, g.grid, g.unit, g.leaf_mean, g.leaf_variance, g.leaf_steep,
        )  # fmt: skip

    # --- the up-pass ---------------------------------------------------------------------------------------------

    def _over(
        self, task: Callable[[Ints], Any], items: Ints, share: int, progress: Progress | None, heavy: bool = False
    ) -> list[Any]:
        """Run a task over slices of items on all workers, smaller ones where each item is much work."""

        def counted(part: Ints) -> Any:
            result = task(part)
            if progress:
                progress.advance(part.size)
            return result

        workers = self.workers or os.cpu_count() or 1
        share = max(1, min(share, -(-items.size // (2 * workers)))) if heavy else share
        slices = [items[i : i + share] for i in range(0, items.size, share)]
        if len(slices) < 2:
            return [counted(part) for part in slices]
        with ThreadPoolExecutor(workers) as pool:
            return list(pool.map(counted, slices))

    @cached_property
    def blocks(self) -> tuple[Shelf, Ints, int]:
        """Messages of 1, 2, … alike leaves; where each (kind, count) stands; the widest window inside a parcel."""
        p, g = self.pieces, self.guess
        kinds = self.kit.leaf_law.size
        lo = np.full((kinds, MOST_LEAVES + 1), LARGEST, dtype=np.int64)
        hi = np.full((kinds, MOST_LEAVES + 1), -LARGEST, dtype=np.int64)
        widest = block_windows(
            self.kit, p.first, p.count, p.leaf_kind, p.example, self._prospect.heights[0],
            g.below, g.rest, g.hold, self.need_inside, lo, hi, LARGEST,
        )  # fmt: skip
        asked = hi >= lo
        slots = np.full(asked.shape, -1, dtype=np.int64)
        slots[asked] = np.arange(int(asked.sum()))
        lengths = (hi - lo)[asked] + 3
        self._check(int(lengths.sum()))
        shelf = empty_shelf(lengths)
        for q in np.flatnonzero(asked.any(axis=1)):
            if not make_blocks(self.kit, q, lo, hi, slots, shelf, LARGEST):
                raise _TooNarrow
        return shelf, slots, int(widest) + int(lengths.max(initial=0)) + 16

    def _check(self, places: int) -> None:
        if places * 8 > MOST_BYTES:
            raise Refused(TOO_WIDE)

    def _scratch(self) -> Shelf:
        """Room for the messages inside one parcel."""
        _, _, widest = self.blocks
        made = empty_shelf(np.zeros(MOST_LEAVES + 2, dtype=np.int64))
        return made._replace(values=np.empty((MOST_LEAVES + 2) * widest))

    @cached_property
    def messages(self) -> Shelf:
        """The messages of all kinds of pieces."""
        p, g = self.pieces, self.guess
        heights = self._prospect.heights
        learns = self._prospect.is_rough if self.learn is None else self.learn
        if not learns:
            self._prospect.forget()
        lengths = g.high - g.low + 3
        self._check(int(lengths.sum()))
        blocks, slots, _ = self.blocks
        # what is learned may widen windows; memory that is not used is not taken
        places = int(lengths.sum()) + (2 * int(lengths[p.height > 0].sum()) if learns else 0)
        shelf = empty_shelf(np.zeros(p.kinds, dtype=np.int64))._replace(values=np.empty(places))

        def parcels(kinds: Ints) -> int:
            return passes.parcel_messages(
                self.kit, kinds, p.first, p.count, p.leaf_kind, p.example, p.law, p.low, p.high, p.lowest, p.highest,
                g.low, g.high, g.tilt, g.below, g.rest, g.hold, self.need_inside, blocks, slots, self._scratch(), shelf,
                LARGEST,
            )  # fmt: skip

        def pairs(kinds: Ints) -> int:
            return passes.pair_messages(
                self.kit, kinds, p.kind_left, p.kind_right, p.law, p.low, p.high, p.lowest, p.highest,
                g.low, g.high, g.tilt, shelf, LARGEST,
            )  # fmt: skip

        used = 0
        with Progress("making messages", p.kinds) as progress:
            for height, kinds in enumerate(heights):
                if height and learns:
                    self._prospect.learn(height - 1, shelf)
                ends = used + np.cumsum((g.high - g.low + 3)[kinds])
                shelf.offset[kinds] = np.concatenate([[used], ends[:-1]])
                used = int(ends[-1])
                self._check(used)
                if used > places:
                    raise _TooNarrow
                if sum(self._over(pairs if height else parcels, kinds, 512, progress)):
                    raise _TooNarrow
        self._prospect.forget()
        for k in np.unique(p.kind[p.root == 1]):
            self._check_root(shelf, int(k))
        return shelf

    def _check_root(self, shelf: Shelf, k: int) -> None:
        """A root's message must have a sum, and hardly any of it beyond its window."""
        window = shelf.values[shelf.offset[k] : shelf.offset[k] + shelf.hi[k] - shelf.lo[k] + 1]
        values = window * np.exp(-shelf.tilt[k] * (np.arange(window.size) - window.size // 2))
        below = 0.0 if shelf.hard[k] & LOW else shelf.r_lo[k] * np.exp(shelf.tilt[k])
        above = 0.0 if shelf.hard[k] & HIGH else shelf.r_hi[k] * np.exp(-shelf.tilt[k])
        if not max(below, above) < 1 - 1e-9:
            raise _TooNarrow
        beyond = values[0] * below / (1 - below) + values[-1] * above / (1 - above)
        if self.learn is not False and beyond > MOST_BEYOND * values.sum():
            raise _TooNarrow

    # --- the down-pass -------------------------------------------------------------------------------------------

    @cached_property
    def _order(self) -> list[Ints]:
        """Pieces by height, alike parcels together."""
        p = self.pieces
        height = p.height[p.kind]
        order = np.argsort(height, kind="stable")
        ends = np.searchsorted(height[order], np.arange(int(height.max(initial=0)) + 2))
        levels = [order[ends[h] : ends[h + 1]] for h in range(ends.size - 1)]
        levels[0] = levels[0][np.argsort(p.kind[levels[0]], kind="stable")]
        return levels

    def draw(self, size: int, stream: Stream) -> npt.NDArray[np.int64]:
        """Draw the noise of all outputs, (size, n)."""
        if self.pieces.size == 0:
            return np.zeros((size, self.forest.n), dtype=np.int64)
        tables = self._many(size)
        return self._ready._draw(size, stream) if tables is None else tables.draw(size, stream)

    def _many(self, size: int) -> Many | None:
        """Tables that serve many rows, if so many repay them."""
        if self.at_roots is not None or not many.repays(size, self.forest.n) or self._guessed[1] is not None:
            return None
        kept: dict[str, Any] = self.__dict__
        tried: int
        found: Many | None
        tried, found = kept.get("_tables", (0, None))
        if found is None and size > tried:
            found = self.tables(size)
            kept["_tables"] = size, found
        return found if found is not None and found.repaid(size) else None

    def tables(self, size: int, share: float = 1.0) -> Many | None:
        """Make tables of tickets; None where so many rows do not repay them. A share below 1 is for tests only."""
        leaves, kind = self._kinds_of_leaves
        halves = cut_in_halves(self.forest, self._law_of, self.low, self.high, leaves.low[kind], leaves.high[kind])
        laws = [law for law in self.law.laws if isinstance(law, IntegerLaplace | IntegerGaussian)]
        far = self._far, self.low[self._far], self.high[self._far]
        return many.make(halves, laws, size, far, self.workers or os.cpu_count() or 1, share)

    @cached_property
    def _ready(self) -> Sampler:
        """This law with windows wide enough for messages that can be summed; chosen before any random bit is drawn."""
        sampler = self
        found, pulled = self._guessed
        if pulled is not None:
            found.forget()
            sampler = replace(self, pulled=pulled, slopes=found.usual_slopes if found.is_rough else None)
        while True:
            try:
                _ = sampler.messages
            except _TooNarrow:
                if sampler.need >= WIDEST * self.need:
                    raise Refused(TOO_WIDE) from None
                sampler._prospect.forget()
                wider = 1.5 if sampler.learn or sampler._prospect.is_rough else 1.0
                sampler = replace(
                    sampler, need=wider * sampler.need, need_inside=wider * sampler.need_inside, learn=True
                )
            else:
                return sampler

    def _draw(self, size: int, stream: Stream) -> npt.NDArray[np.int64]:
        noise = np.zeros((size, self.forest.n), dtype=np.int64)
        rows = max(1, CHUNK // self._slots)
        keys = Keys.drawn_from(stream)
        for start in range(0, size, rows):
            part = np.zeros((self.forest.n, min(rows, size - start)), dtype=np.int64)
            for row in self._draw_rows(part, keys, start, 0):
                again, attempt = np.zeros((self.forest.n, 1), dtype=np.int64), 1
                while self._draw_rows(again, keys, start + row, attempt):
                    attempt += 1  # one is nearly always enough; giving up would tell about the data
                part[:, row] = again[:, 0]
            _turn(part, noise[start : start + rows])
        return noise

    @cached_property
    def _roots(self) -> Ints:
        return np.flatnonzero(self.pieces.root)

    @property
    def _slots(self) -> int:
        """Random words of one table: one for each piece and leaf, and one more for each root."""
        return self.pieces.size + self.pieces.leaves.size + self._roots.size

    def _draw_rows(self, noise: npt.NDArray[np.int64], keys: Keys, start: int, attempt: int) -> list[int]:
        """Draw some tables, (n, rows); return those that were rejected and are to be drawn again."""
        p, g, shelf = self.pieces, self.guess, self.messages
        levels = self._order
        blocks, slots, _ = self.blocks
        rows = noise.shape[1]
        words = keys.at("words", start, attempt).words(rows * self._slots).reshape(-1, rows)
        totals = np.zeros((p.size, rows), dtype=np.int64)
        room = int((shelf.hi - shelf.lo).max()) + 8
        rejected: set[int] = set()

        def by_hand(row: int) -> Hand:
            return Hand(
                self,
                lambda purpose, slot: keys.at(purpose, start + row, attempt, slot),
                lambda slot: int(words[slot, row]),
            )

        def settle(openings: list[Ints], draw: Callable[[Hand, int, int], None]) -> None:
            for row, piece in sorted((int(row), int(piece)) for part in openings for row, piece in part):
                if row in rejected:
                    continue
                try:
                    draw(by_hand(row), row, piece)
                except Restart:
                    rejected.add(row)

        def root(hand: Hand, row: int, piece: int) -> None:
            totals[piece, row] = hand.root(piece, p.size + p.leaves.size + int(np.searchsorted(self._roots, piece)))

        def pair(hand: Hand, row: int, piece: int) -> None:
            total = int(totals[piece, row])
            part = hand.pair(piece, total)
            totals[p.left[piece], row], totals[p.right[piece], row] = part, total - part

        def parcel(hand: Hand, row: int, piece: int) -> None:
            places = p.leaves[p.first[piece] : p.first[piece] + p.count[piece]]
            noise[places, row] = hand.parcel(piece, int(totals[piece, row]))

        def roots(some: Ints, openings: Ints) -> int:
            return passes.draw_roots(
                some, p.kind, p.root, shelf, g.centre, totals, words, p.size + p.leaves.size, self.inflation, openings,
                room,
            )  # fmt: skip

        def pairs(some: Ints, openings: Ints) -> int:
            return passes.draw_pairs(
                some, p.kind, p.left, p.right, shelf, g.left_mean, g.share, g.centre, totals, words, self.inflation,
                openings, room,
            )  # fmt: skip

        def leaves(some: Ints, openings: Ints) -> int:
            return passes.draw_parcels(
                some, p.kind, p.first, p.count, p.leaf_kind, p.leaves, self.kit, g.low, g.high, p.lowest, p.highest,
                g.below, g.rest, g.hold, self.need_inside, blocks, slots, self._scratch(), totals, words, p.size, noise,
                self.inflation, openings, LARGEST,
            )  # fmt: skip

        if self.at_roots is None:
            settle([_opened(roots, self._roots, rows * self._roots.size)], root)
        else:
            free = self._roots[p.root[self._roots] == 1]
            alone = p.leaves[np.minimum(p.first[free], p.leaves.size - 1)]  # a root without children has no output
            totals[free] = self.at_roots[np.where(p.output[free] >= 0, p.output[free], alone)][:, None]
        with Progress("drawing", p.size) as progress:
            for pieces in levels[:0:-1]:
                settle(
                    self._over(lambda some: _opened(pairs, some, rows * some.size), pieces, 4096, progress, rows > 1),
                    pair,
                )
            settle(
                self._over(lambda some: _opened(leaves, some, rows * some.size), levels[0], 512, progress, rows > 1),
                parcel,
            )
        shown = np.flatnonzero(p.output >= 0)
        noise[p.output[shown]] = totals[shown]
        if self._far.size:
            chosen = noise[self._far]
            broken = (chosen < self.low[self._far, None]) | (chosen > self.high[self._far, None])
            rejected |= set(np.flatnonzero(broken.any(axis=0)).tolist())
        return sorted(rejected)

    # --- draws by hand -------------------------------------------------------------------------------------------

    def undecided(self, bits: int) -> Undecided:
        """The messages in ball arithmetic at a precision; kept until another one is asked for."""
        kept: dict[str, Any] = self.__dict__
        if "_undecided" not in kept or kept["_undecided"].bits != bits:
            kept["_undecided"] = Undecided(self, bits)
        found: Undecided = kept["_undecided"]
        return found

    def prefixes_of(self, k: int) -> tuple[Shelf, Ints, int]:
        """The messages inside a parcel of some kind, its kinds of leaves, and how many stand in the first block.

        Kept until another kind is asked for.
        """
        kept: dict[str, Any] = self.__dict__
        if "_prefixes" not in kept or kept["_prefixes"][0] != k:
            kept["_prefixes"] = (k, self._make_prefixes(k))
        found: tuple[Shelf, Ints, int] = kept["_prefixes"][1]
        return found

    def _make_prefixes(self, k: int) -> tuple[Shelf, Ints, int]:
        p, g = self.pieces, self.guess
        blocks, slots, _ = self.blocks
        example = p.example[k]
        kinds = p.leaf_kind[p.first[example] : p.first[example] + p.count[example]]
        scratch = self._scratch()
        lo, hi = g.low[k] - (g.low[k] > p.lowest[k]), g.high[k] + (g.high[k] < p.highest[k])
        _, base, _ = prefixes(
            self.kit, kinds, g.below[k], g.rest[k], g.hold[k], self.need_inside, lo, hi, blocks, slots, scratch, LARGEST
        )
        return scratch, kinds, int(base)

    def rest_window(self, k: int, j: int, q: int, base: int) -> tuple[int, int]:
        """The window of a parcel's first j leaves."""
        if j >= base:
            scratch, _, _ = self.prefixes_of(k)
            return int(scratch.lo[j - base]), int(scratch.hi[j - base])
        shelf, slots, _ = self.blocks
        i = int(slots[q, j])
        return int(shelf.lo[i]), int(shelf.hi[i])


def _opened(task: Callable[[Ints, Ints], int], some: Ints, most: int) -> Ints:
    """Run a drawing task and return the rows and pieces that it left open."""
    openings = np.empty((min(most, 4096) + 1, 2), dtype=np.int64)
    found = task(some, openings)
    if found < 0:  # more than there was room for
        openings = np.empty((most + 1, 2), dtype=np.int64)
        found = task(some, openings)
    return openings[:found]


@numba.njit(cache=True, nogil=True)
def _turn(source: Any, target: Any) -> None:
    """target = source transposed, by blocks that stay in the cache."""
    rows, columns = target.shape
    for i in range(0, rows, 32):
        for j in range(0, columns, 32):
            for a in range(i, min(i + 32, rows)):
                for b in range(j, min(j + 32, columns)):
                    target[a, b] = source[b, a]
