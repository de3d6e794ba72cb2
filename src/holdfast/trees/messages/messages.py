"""The up-pass on a hierarchy: messages in compiled doubles, made once and kept for all draws.

Sum-product messages (THEORY §4). First the forest is cut into pieces and it is guessed where totals will lie; then the
messages are made from the leaves up, on windows that are widened where they turn out too narrow. Windows, tails and
rounding do not reach the law of a draw: see steps and exact.py, and for the proofs docs/theory/exact-trees.md.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, NamedTuple

import numpy as np

from holdfast.arguments import LARGEST, Refused
from holdfast.arrays import Bools, Floats, Ints, Owner, kept, only_read
from holdfast.noise import Independent
from holdfast.progress import Progress
from holdfast.trees.messages import leaf_kinds, passes
from holdfast.trees.messages.leaf_kinds import TOO_WIDE
from holdfast.trees.messages.outlook import Outlook, Prospect
from holdfast.trees.messages.parcels import Inside, Kit, Shelf, asked, block_windows, empty_shelf, make_blocks, prefixes
from holdfast.trees.messages.pieces import MOST_LEAVES, Pieces
from holdfast.trees.messages.pieces import cut as cut_in_pieces
from holdfast.trees.messages.responses import Laws, Leaves
from holdfast.trees.shape.forest import Forest
from holdfast.trees.steps.ends import HIGH, LOW

#: Totals are looked for where all but about e^−20 of the law lies, and inside parcels all but e^−14: what lies beyond
#: is drawn and tested by hand, a few parcels of a nation of so many outputs, and of larger ones no more.
NEED, NEED_INSIDE, NATION = 20.0, 14.0, 8_000_000
#: How many times wider, at most, windows are made where messages could not be.
WIDEST = 4.0
#: Largest share of a root's message beyond its window.
MOST_BEYOND = 1e-6
#: Leaves that are pulled hard break a far bound with a probability above e^−28; they matter where tables are broken
#: more often than seldom.
BREAKS = 28.0
SELDOM = 1e-4
#: A Gaussian leaf that is pulled further than this many σ needs a longer table of weights: windows inside a parcel keep
#: 8σ from the end of the usual one.
HARD = 5.0
#: Most bytes of messages.
MOST_BYTES = 5 << 29
#: Pieces whose totals are tested together.
TOGETHER = 32


class Tests(NamedTuple):
    """Pieces in groups, each of one tree; where each group begins; and a bound on 1 − ∏c over a group."""

    pieces: Ints
    start: Ints
    slack: Floats

    @classmethod
    def of(cls, pieces: Ints, tree: Ints, slack: Floats) -> Tests:
        """Group pieces that are sorted by their trees; `tree` and `slack` are those of all pieces."""
        _, first = np.unique(tree[pieces], return_index=True)
        sizes = np.diff(np.append(first, pieces.size))
        start = np.concatenate([np.arange(0, size, TOGETHER) + at for at, size in zip(first, sizes, strict=True)])
        return cls(pieces, np.append(start, pieces.size), 1.01 * np.add.reduceat(slack[pieces], start))


class TooNarrow(Exception):
    """A window does not hold enough of a message; wider ones may."""


@dataclass(frozen=True, eq=False)
class Messages(Owner):
    """The messages of integer noise on a forest, for given bounds on the noise of each output."""

    forest: Forest
    law: Independent
    low: Ints
    high: Ints
    need: float = NEED
    need_inside: float = NEED_INSIDE
    workers: int | None = None
    learn: bool | None = None  # whether windows are guessed again as messages become known; None: where it helps
    cut: Pieces | None = None  # the forest cut into pieces, where this is known
    pulled: Bools | None = None  # outputs whose bounds are kept also far from the truth; None: none
    pull: Floats | None = None  # the slope from above at every output, read at roots, where others stand above; None: 0

    def __post_init__(self) -> None:
        for name in ("low", "high"):  # compiled once, whether a caller might write them or not
            object.__setattr__(self, name, only_read(getattr(self, name)))

    # --- what is known before any message ------------------------------------------------------------------------

    @cached_property
    def laws(self) -> Laws:
        """The measured laws."""
        return leaf_kinds.measured_laws(self.law)

    @cached_property
    def law_of(self) -> Ints:
        """For every output, the place of its law among the measured ones; −1: not measured."""
        return leaf_kinds.places_of_laws(self.law)

    @cached_property
    def bounds(self) -> tuple[Ints, Ints] | None:
        """Bounds on the noise of all outputs; None where none has any."""
        free = self.low.max(initial=-LARGEST) == -LARGEST and self.high.min(initial=LARGEST) == LARGEST
        return None if free else (self.low, self.high)

    @cached_property
    def limits(self) -> Ints:
        """For each measured law, how far from 0 bounds are kept: in general, and where a leaf is pulled hard."""
        return leaf_kinds.limits(self.laws, self.pulled)

    @cached_property
    def kinds_of_leaves(self) -> tuple[Leaves, Ints]:
        """The kinds of leaves and the kind of every output (0 where it is no free leaf)."""
        return leaf_kinds.kinds_of_leaves(self.forest, self.law_of, self.bounds, self.pulled, self.limits)

    @cached_property
    def pieces(self) -> Pieces:
        """The forest cut into pieces; they do not depend on windows."""
        if self.cut is not None:
            return self.cut
        leaves, kind = self.kinds_of_leaves
        return cut_in_pieces(self.forest, self.law_of, self.bounds, kind, (leaves.low, leaves.high))

    @cached_property
    def levels(self) -> list[Ints]:
        """All pieces by height, alike parcels together."""
        return self.pieces.by_height()

    @property
    def order(self) -> list[Ints]:
        """The same of the pieces that are divided here: all of them, unless some come from elsewhere."""
        return self.levels

    @cached_property
    def roots(self) -> Ints:
        """The pieces that have none above them."""
        return np.flatnonzero(self.pieces.root)

    @cached_property
    def far_places(self) -> Ints:
        """Where leaves with a bound that the messages leave out stand among the leaves of the pieces."""
        return leaf_kinds.left_out(self.pieces.leaves, *self.kinds_of_leaves, self.bounds)

    @cached_property
    def far(self) -> Ints:
        """Leaves with a bound that the messages leave out."""
        return self.pieces.leaves[self.far_places]

    @cached_property
    def guessed(self) -> tuple[Prospect, Bools | None]:
        """A guess of the windows, and the leaves whose far bounds must be kept; None where none must."""
        leaves, _ = self.kinds_of_leaves
        over = partial(self.over, share=1 << 11)
        pull = None if self.pull is None else self.pieces.at_roots(self.pull)
        found = Prospect(self.pieces, self.levels, leaves, self.laws, self.need, over, pull, self.learn)
        pulled = _gives_way(self, found)
        found.place()
        return found, pulled

    @property
    def prospect(self) -> Prospect:
        """The guess of the windows, which learns."""
        found, _ = self.guessed
        return found

    @cached_property
    def guess(self) -> Outlook:
        """Where totals will probably lie."""
        return self.prospect.outlook

    @cached_property
    def kit(self) -> Kit:
        """Laws and leaves as compiled code wants them."""
        leaves, _ = self.kinds_of_leaves
        g = self.guess
        return Kit(
            leaf_kinds.weights(self.law, int(self.limits.max())), self.laws.laplace, self.laws.rate, leaves.law,
            leaves.low, leaves.high, g.grid, g.unit, g.leaf_mean, g.leaf_variance, g.leaf_steep,
        )  # fmt: skip

    # --- the up-pass ---------------------------------------------------------------------------------------------

    @property
    def over(self) -> Callable[..., list[Any]]:
        """What runs a task over slices of items on all workers; it does not keep these messages alive."""
        return partial(_in_slices, self.workers)

    @cached_property
    def blocks(self) -> tuple[Shelf, Ints, int]:
        """Messages of 1, 2, … alike leaves; where each (kind, count) stands; the widest window inside a parcel."""
        lo, hi, widest = _windows_of_blocks(self)
        asked = hi >= lo
        slots = np.full(asked.shape, -1, dtype=np.int64)
        slots[asked] = np.arange(int(asked.sum()))
        lengths = (hi - lo)[asked] + 3
        _refuse_beyond(lengths.sum(dtype=np.float64))
        shelf = empty_shelf(lengths)
        for q in np.flatnonzero(asked.any(axis=1)):
            if not make_blocks(self.kit, q, lo, hi, slots, shelf):
                raise TooNarrow
        return shelf, slots, int(widest) + int(lengths.max(initial=0)) + 16

    def inside(self) -> Inside:
        """What messages inside parcels are made with, and room of its own for those of one parcel."""
        shelf, slots, widest = self.blocks
        room = empty_shelf(np.zeros(MOST_LEAVES + 2, dtype=np.int64))
        scratch = room._replace(values=np.empty((MOST_LEAVES + 2) * widest))
        return Inside(self.kit, shelf, slots, scratch, _rarity(self))

    @cached_property
    def shelf(self) -> Shelf:
        """The messages of all kinds of pieces."""
        p, g = self.pieces, self.guess
        heights = self.prospect.heights
        learns = self.prospect.learns
        if not learns:
            self.prospect.forget()
        lengths = g.high - g.low + 3
        _refuse_beyond(lengths.sum(dtype=np.float64))
        _ = self.blocks  # so that threads find them made
        # what is learned may widen windows; memory that is not used is not taken
        places = min(int(lengths.sum()) + (8 * int(lengths[p.height > 0].sum()) if learns else 0), MOST_BYTES // 8)
        shelf = empty_shelf(np.zeros(p.kinds, dtype=np.int64))._replace(values=np.empty(places))

        def parcels(kinds: Ints) -> int:
            return passes.parcel_messages(kinds, p, g, self.inside(), shelf)

        def pairs(kinds: Ints) -> int:
            return passes.pair_messages(kinds, p, g, self.kit, shelf)

        used = 0
        with Progress("making messages", p.kinds) as progress:
            for height, kinds in enumerate(heights):
                if height and learns:
                    self.prospect.learn(height - 1, shelf)
                ends = used + np.cumsum((g.high - g.low + 3)[kinds])
                shelf.offset[kinds] = np.concatenate([[used], ends[:-1]])
                used = int(ends[-1])
                _refuse_beyond(used)
                if used > places:
                    raise TooNarrow
                self.put_known(height, shelf)
                if sum(self.over(pairs if height else parcels, kinds if height else self.fresh(kinds), 512, progress)):
                    raise TooNarrow
        self.prospect.forget()
        for k in np.unique(p.kind[p.root == 1]) if self.pull is None else ():
            beyond = _beyond(shelf, int(k))
            if np.isinf(beyond) or (self.learn is not False and beyond > MOST_BEYOND):
                raise TooNarrow
        return shelf

    def fresh(self, parcels: Ints) -> Ints:
        """The parcels, of some, whose messages are made here: all of them, unless some come from elsewhere."""
        return parcels

    def put_known(self, height: int, shelf: Shelf) -> None:
        """Put messages of some height that come from elsewhere on the shelf: there are none."""

    @property
    def untested(self) -> Bools:
        """Pieces whose total is not tested: it is always 0."""
        return np.asarray(self.pieces.root == 2)

    def ready(self) -> Messages:
        """The messages with windows so wide that they can be summed; chosen before any random bit is drawn."""
        wide = self
        found, pulled = self.guessed
        if pulled is not None:
            found.forget()
            wide = replace(self, cut=None, pulled=pulled)
        while True:
            try:
                _ = wide.shelf
            except TooNarrow:
                if wide.need >= WIDEST * max(self.need, NEED):
                    raise Refused(TOO_WIDE) from None
                wide.prospect.forget()
                wider = 1.5 if wide.learn or wide.prospect.is_rough else 1.0
                wide = replace(wide, need=wider * wide.need, need_inside=wider * wide.need_inside, learn=True)
            else:
                return wide

    @cached_property
    def trees(self) -> Ints:
        """The root of every piece; what lies below different roots is independent."""
        return self.pieces.trees(self.order)

    @property
    def trees_of_outputs(self) -> Ints:
        """The root of every output (−1 where its noise is 0)."""
        return self.pieces.of_outputs(self.trees, self.forest.n)

    @cached_property
    def tests(self) -> Tests:
        """The groups of pieces that are tested together."""
        return Tests.of(np.argsort(self.trees, kind="stable"), self.trees, self.shelf.slack[self.pieces.kind])

    # --- inside parcels ------------------------------------------------------------------------------------------

    @kept
    def prefixes_of(self, k: int) -> tuple[Shelf, Ints, int]:
        """The messages inside a parcel of some kind, its kinds of leaves, and how many stand in the first block."""
        p, g = self.pieces, self.guess
        example = p.example[k]
        kinds = p.leaf_kind[p.first[example] : p.first[example] + p.members[example]]
        inside = self.inside()
        lo, hi = asked(k, p, g)
        _, base, _ = prefixes(inside, kinds, g.below[k], g.rest[k], g.hold[k], lo, hi)
        return inside.scratch, kinds, int(base)


def _in_slices(
    workers: int | None,
    task: Callable[[Ints], Any],
    items: Ints,
    share: int,
    progress: Progress | None = None,
    heavy: bool = False,
) -> list[Any]:
    """Run a task over slices of items on all workers, smaller ones where each item is much work."""

    def counted(part: Ints) -> Any:
        result = task(part)
        if progress:
            progress.advance(part.size)
        return result

    workers = workers or os.cpu_count() or 1
    share = max(1, min(share, -(-items.size // (2 * workers)))) if heavy else share
    slices = [items[i : i + share] for i in range(0, items.size, share)]
    if len(slices) < 2:
        return [counted(part) for part in slices]
    with ThreadPoolExecutor(workers) as pool:
        return list(pool.map(counted, slices))


def _refuse_beyond(places: float) -> None:
    if places * 8 > MOST_BYTES:
        raise Refused(TOO_WIDE)


def _rarity(up: Messages) -> float:
    """How rarely totals inside parcels lie beyond their windows, as minus a logarithm."""
    return up.need_inside + float(np.log(max(up.forest.n / NATION, 1.0)))


def _windows_of_blocks(up: Messages) -> tuple[Ints, Ints, float]:
    """The windows that parcels ask of blocks, (leaf kind, count), and the widest inside a parcel."""
    room = up.kit.leaf_law.size, MOST_LEAVES + 1

    def widened(parcels: Ints) -> tuple[Ints, Ints, float]:
        lo, hi = np.full(room, LARGEST), np.full(room, -LARGEST)
        return lo, hi, block_windows(up.kit, up.pieces, parcels, up.guess, _rarity(up), lo, hi)

    parcels = up.fresh(up.prospect.heights[0])
    lows, highs, widest = zip(widened(parcels[:0]), *up.over(widened, parcels, 1 << 14, None), strict=True)
    return np.minimum.reduce(lows), np.maximum.reduce(highs), max(widest)


def _gives_way(up: Messages, found: Prospect) -> Bools | None:
    """Leaves that are pulled so hard that bounds far away matter; None where none are."""
    laws, far, p = up.laws, up.far, up.pieces
    if up.pulled is not None or not far.size:
        return None
    chosen = np.ones(far.size, dtype=np.bool_)
    if not (laws.laplace and found.is_rough):
        law, slope = up.law_of[far], found.outlook.below[p.kind[p.parcels_at(up.far_places)]]
        resists = np.full(far.size, np.inf)
        for bound, pull in ((-up.low[far], slope[:, 0]), (up.high[far], -slope[:, 1])):
            left_out = (bound >= up.limits[0][law]) & (bound < LARGEST)
            resists = np.where(left_out, np.minimum(resists, laws.resistance(law, pull, bound)), resists)
        hard = not laws.laplace and bool((np.abs(slope).max(axis=1) > HARD * laws.slope[law]).any())
        if not hard and np.exp(-resists).sum() < SELDOM:
            return None
        chosen = resists < BREAKS
    pulled = np.zeros(up.forest.n, dtype=np.bool_)
    pulled[far[chosen]] = True
    return pulled


def _beyond(shelf: Shelf, k: int) -> float:
    """The share of a root's message beyond its window; infinite where that has no sum."""
    window = shelf.values[shelf.offset[k] : shelf.offset[k] + shelf.hi[k] - shelf.lo[k] + 1]
    values = window * np.exp(-shelf.tilt[k] * (np.arange(window.size) - window.size // 2))
    below = 0.0 if shelf.hard[k] & LOW else shelf.r_lo[k] * np.exp(shelf.tilt[k])
    above = 0.0 if shelf.hard[k] & HIGH else shelf.r_hi[k] * np.exp(-shelf.tilt[k])
    if not max(below, above) < 1 - 1e-9:
        return np.inf
    return float((values[0] * below / (1 - below) + values[-1] * above / (1 - above)) / values.sum())
