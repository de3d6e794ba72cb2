"""Exact draws of integer noise on a hierarchy given that parents equal the sum of their children, up to a nation.

The messages are made once (messages.py); then totals are divided from the roots down, and one test of what was drawn
makes up for all that messages are above what they stand for (H8; the same in plain numpy: plain/sampler.py). What
doubles do not decide is decided by hand (exact.py). Every piece has its own place in one key stream, so the number of
workers changes nothing. Proofs: docs/theory/exact-trees.md.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from holdfast.arguments import Refused
from holdfast.arrays import Ints, Owner, Words, compiled
from holdfast.noise import Independent, IntegerGaussian, IntegerLaplace
from holdfast.noise.draws.decisions import Restart
from holdfast.progress import Progress
from holdfast.randomness import Keys, Stream
from holdfast.trees.messages import passes
from holdfast.trees.messages.exact import Exact, Node
from holdfast.trees.messages.messages import NEED, NEED_INSIDE, Messages
from holdfast.trees.plain.sampler import PlainSampler, reaches
from holdfast.trees.shape.forest import Forest
from holdfast.trees.tickets import many
from holdfast.trees.tickets.halves import cut as cut_in_halves
from holdfast.trees.tickets.many import Many

#: Most totals and leaves drawn in one go.
CHUNK = 1 << 24
#: How often trees of a table are drawn again before they are drawn in plain numpy, which takes longer than all of that:
#: far bounds, which compiled messages leave out, are then broken too often.
PATIENCE = 40


@dataclass(frozen=True, eq=False)
class Sampler(Owner):
    """The conditional law of integer noise on a forest, for given bounds on the noise of each output."""

    forest: Forest
    law: Independent
    low: Ints
    high: Ints
    need: float = NEED
    need_inside: float = NEED_INSIDE
    workers: int | None = None
    at_roots: Ints | None = None  # noise of every output that stands at a root, where it is given; others are not read
    learn: bool | None = None  # as in `Messages`
    inflation: float = 1.0  # of the error bounds; above 1 for tests of choices by hand only

    @cached_property
    def messages(self) -> Messages:
        """The messages as first guessed; `ready` are those that draws are made from."""
        return Messages(
            self.forest, self.law, self.low, self.high, self.need, self.need_inside, self.workers, self.learn
        )

    @cached_property
    def ready(self) -> Messages:
        """The messages with windows that are wide enough."""
        return self.messages.ready()

    def draw(self, size: int, stream: Stream) -> Ints:
        """Draw the noise of all outputs, (size, n)."""
        if self.forest.exact.all() or not self.messages.pieces.size:  # nothing is free
            return np.zeros((size, self.forest.n), dtype=np.int64)
        try:
            tables = self._many(size)
        except Refused:  # scales beyond all tables
            tables = None
        return self._draw(size, stream) if tables is None else tables.draw(size, stream)

    # --- many rows -----------------------------------------------------------------------------------------------

    @cached_property
    def _tables(self) -> dict[int, Many | None]:
        """The tables that were made last, by the number of rows that they were to serve."""
        return {}

    def _many(self, size: int) -> Many | None:
        """Tables that serve many rows, if so many repay them."""
        up = self.messages
        if self.at_roots is not None or not many.repays(size, self.forest.n) or up.guessed[1] is not None:
            return None
        tried, found = next(iter(self._tables.items()), (0, None))
        if found is None and size > tried:
            found = self.tables(size)
            self._tables.clear()
            self._tables[size] = found
        return found if found is not None and found.repaid(size) else None

    def tables(self, size: int, share: float = 1.0) -> Many | None:
        """Make tables of tickets; None where so many rows do not repay them. A share below 1 is for tests only."""
        up = self.messages
        leaves, kind = up.kinds_of_leaves
        halves = cut_in_halves(self.forest, up.law_of, self.low, self.high, leaves.low[kind], leaves.high[kind])
        laws = [law for law in self.law.laws if isinstance(law, IntegerLaplace | IntegerGaussian)]
        far = up.far, self.low[up.far], self.high[up.far]
        return many.make(halves, laws, size, far, self.workers or os.cpu_count() or 1, share)

    # --- the down-pass -------------------------------------------------------------------------------------------

    @cached_property
    def _plain(self) -> PlainSampler | None:
        """The same law in plain numpy, where compiled messages cannot be made; None where they can.

        Counts decide this, as they decide the time that a draw takes; its law is the same.
        """
        try:
            _ = self.ready
        except Refused:
            if self.at_roots is not None or not reaches(self.forest, self.law):
                raise
            return PlainSampler(self.forest, self.law, self.low, self.high)
        return None

    def _draw(self, size: int, stream: Stream) -> Ints:
        if self._plain is not None:
            return self._plain.draw(size, stream)
        up = self.ready
        noise = np.zeros((size, self.forest.n), dtype=np.int64)
        rows = max(1, CHUNK // _slots(up))
        keys = Keys.drawn_from(stream)
        for start in range(0, size, rows):
            shape = self.forest.n, min(rows, size - start)
            part = noise.reshape(shape) if size == 1 else np.zeros(shape, dtype=np.int64)  # a nation's noise only once
            for row, trees in self._draw_rows(part, keys, start, 0).items():
                self._draw_again(part[:, row], trees, keys, start + row)
            if size > 1:
                _turn(part, noise[start : start + rows])
        return noise

    def _draw_again(self, noise: Ints, rejected: set[int], keys: Keys, row: int) -> None:
        """Draw the rejected trees of one table until none is: the others are independent of them and stay.

        One time is nearly always enough. After many they are drawn in plain numpy, which leaves no bound out: every
        attempt has the same law, if it is accepted.
        """
        attempt = 0
        while rejected:
            attempt += 1
            again, once_more = np.zeros((self.forest.n, 1), dtype=np.int64), set[int]()
            if attempt > PATIENCE and self.at_roots is None and reaches(self.forest, self.law):
                plain = PlainSampler(self.forest, self.law, self.low, self.high)
                again[:, 0] = plain.draw(1, keys.at("plain", row))[0]
            else:
                once_more = self._draw_rows(again, keys, row, attempt).get(0, set()) & rejected
            done = np.isin(self.ready.trees_of_outputs, list(rejected - once_more))
            noise[done] = again[done, 0]
            rejected = once_more

    def _draw_rows(
        self, noise: Ints, keys: Keys, start: int, attempt: int, at_roots: Ints | None = None
    ) -> dict[int, set[int]]:
        """Draw some tables, (n, rows); return the rows with trees, by their roots, that are to be drawn again."""
        up = self.ready
        rows = noise.shape[1]
        words = keys.at("words", start, attempt).words(rows * _slots(up)).reshape(-1, rows)
        drawing = _Drawing(up, noise, words, keys, start, attempt, self.inflation)
        drawing.roots(self.at_roots if at_roots is None else at_roots)
        with Progress("drawing", up.pieces.size) as progress:
            for level in up.order[:0:-1]:
                drawing.pairs(level, progress)
            drawing.parcels(up.order[0], progress)
        return drawing.finished()


def _slots(up: Messages) -> int:
    """Random words of one table: one for each piece and leaf, one more for each root, and one for each test."""
    return up.pieces.size + up.pieces.leaves.size + up.roots.size + up.tests.slack.size


class _Drawing:
    """Some tables in the making: totals of pieces for every row, and what was drawn by hand."""

    def __init__(
        self, up: Messages, noise: Ints, words: Words, keys: Keys, start: int, attempt: int, inflation: float
    ) -> None:
        self.up, self.noise, self.words, self.inflation = up, noise, words, inflation
        self.place = keys, start, attempt
        self.totals = np.zeros((up.pieces.size, noise.shape[1]), dtype=np.int64)
        self.room = int((up.shelf.hi - up.shelf.lo).max()) + 8
        self.by_hand: list[tuple[int, int]] = []  # parcels, by row

    def _exact(self, row: int) -> Exact:
        keys, start, attempt = self.place
        return Exact(
            self.up,
            lambda purpose, slot: keys.at(purpose, start + row, attempt, slot),
            lambda slot: int(self.words[slot, row]),
        )

    def _settle(self, openings: list[Ints], draw: Callable[[Exact, int, int], None]) -> None:
        """Draw by hand what stayed open, in a fixed order."""
        for row, piece in sorted((int(row), int(piece)) for part in openings for row, piece in part):
            draw(self._exact(row), row, piece)

    def _over(self, task: Callable[[Ints, Ints], int], some: Ints, share: int, progress: Progress) -> list[Ints]:
        rows = self.noise.shape[1]
        return self.up.over(lambda part: _opened(task, part, rows * part.size), some, share, progress, rows > 1)

    def roots(self, given: Ints | None) -> None:
        """Draw the totals of roots, or take those that are given."""
        up, p, totals = self.up, self.up.pieces, self.totals

        def drawn(some: Ints, openings: Ints) -> int:
            return passes.draw_roots(
                some, p, up.guess, up.shelf, totals, self.words, self.inflation, openings, np.empty(self.room)
            )

        def by_hand(exact: Exact, row: int, piece: int) -> None:
            totals[piece, row] = exact.root(piece, p.size + p.leaves.size + int(np.searchsorted(up.roots, piece)))

        if given is None:
            self._settle([_opened(drawn, up.roots, self.noise.shape[1] * up.roots.size)], by_hand)
            return
        totals[up.roots] = p.at_roots(given)[up.roots, None]

    def pairs(self, some: Ints, progress: Progress) -> None:
        """Divide the totals of some pairs."""
        up, p, totals = self.up, self.up.pieces, self.totals

        def drawn(part: Ints, openings: Ints) -> int:
            return passes.draw_pairs(
                part, p, up.guess, up.shelf, totals, self.words, self.inflation, openings, np.empty(self.room)
            )

        def by_hand(exact: Exact, row: int, piece: int) -> None:
            total = int(totals[piece, row])
            part = exact.pair(piece, total)
            totals[p.left[piece], row], totals[p.right[piece], row] = part, total - part

        self._settle(self._over(drawn, some, 4096, progress), by_hand)

    def parcels(self, some: Ints, progress: Progress) -> None:
        """Divide the totals of some parcels over their leaves."""
        up, p, rows = self.up, self.up.pieces, self.noise.shape[1]

        def drawn(part: Ints, openings: Ints) -> int:
            return passes.draw_parcels(
                part, p, up.guess, up.inside(), self.totals, self.words, self.noise, self.inflation, openings,
                np.empty(rows, dtype=np.int64), np.empty(rows, dtype=np.bool_),
            )  # fmt: skip

        def by_hand(exact: Exact, row: int, piece: int) -> None:
            self.noise[self._leaves(piece), row] = exact.parcel(piece, int(self.totals[piece, row]))
            self.by_hand.append((row, piece))

        self._settle(self._over(drawn, some, 512, progress), by_hand)

    def _leaves(self, piece: int) -> Ints:
        p = self.up.pieces
        return p.leaves[p.first[piece] : p.first[piece] + p.members[piece]]

    # --- the test ------------------------------------------------------------------------------------------------

    def finished(self) -> dict[int, set[int]]:
        """Put the totals where they are shown; return the trees that are rejected, by rows."""
        up, p = self.up, self.up.pieces
        shown = np.flatnonzero(p.output >= 0)
        self.noise[p.output[shown]] = self.totals[shown]
        rejected: dict[int, set[int]] = {}
        if up.far.size:
            chosen = self.noise[up.far]
            broken = (chosen < up.low[up.far, None]) | (chosen > up.high[up.far, None])
            for place, row in np.argwhere(broken).tolist():
                rejected.setdefault(row, set()).add(int(up.trees_of_outputs[up.far[place]]))
        for row, piece, purpose, slot, nodes in self._tested():
            tree = int(up.trees[piece])
            if tree not in rejected.get(row, ()):
                try:
                    self._exact(row).accept(purpose, slot, nodes)
                except Restart:
                    rejected.setdefault(row, set()).add(tree)
        return rejected

    def _tested(self) -> Iterator[tuple[int, int, str, int, list[Node]]]:
        """What needs a look: each total beyond its window alone, and groups whose number is close to 1."""
        up, kind = self.up, self.up.pieces.kind
        beyond = (self.totals < up.shelf.lo[kind, None]) | (self.totals > up.shelf.hi[kind, None])
        beyond[up.untested] = False
        for piece, row in np.argwhere(beyond).tolist():
            node = self._exact(row).node(piece, int(self.totals[piece, row]))
            yield row, piece, node.purpose, node.slot, [node]
        for row, piece in self.by_hand:
            for node in self._exact(row).inside_parcel(piece, self.noise[self._leaves(piece), row]):
                if not node.inside:
                    yield row, piece, node.purpose, node.slot, [node]
        numbers = self.words[self.words.shape[0] - up.tests.slack.size :] * 2.0**-64
        for group, row in np.argwhere(numbers >= 1 - 1e-15 - up.tests.slack[:, None]).tolist():
            yield row, int(up.tests.pieces[up.tests.start[group]]), "test", group, self._group(group, row)

    def _group(self, group: int, row: int) -> list[Node]:
        """All totals of a group that lie inside their windows."""
        tests, exact = self.up.tests, self._exact(row)
        found = []
        for piece in tests.pieces[tests.start[group] : tests.start[group + 1]].tolist():
            found.append(exact.node(piece, int(self.totals[piece, row])))
            if self.up.pieces.left[piece] < 0:
                found += exact.inside_parcel(piece, self.noise[self._leaves(piece), row])
        return [node for node in found if node.inside]


def _opened(task: Callable[[Ints, Ints], int], some: Ints, most: int) -> Ints:
    """Run a drawing task and return the rows and pieces that it left open."""
    openings = np.empty((min(most, 4096) + 1, 2), dtype=np.int64)
    found = task(some, openings)
    if found < 0:  # more than there was room for
        openings = np.empty((most + 1, 2), dtype=np.int64)
        found = task(some, openings)
    return openings[:found]


@compiled
def _turn(source: Any, target: Any) -> None:
    """target = source transposed, by blocks that stay in the cache."""
    rows, columns = target.shape
    for i in range(0, rows, 32):
        for j in range(0, columns, 32):
            for a in range(i, min(i + 32, rows)):
                for b in range(j, min(j + 32, columns)):
                    target[a, b] = source[b, a]
