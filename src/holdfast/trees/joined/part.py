"""A subtree that is drawn apart from what is above it: its messages go up, the totals of its roots come down.

The message of a root serves the top as that of a leaf serves a parent (top.py), so the table of the whole is accepted
with the product of what is accepted in the parts (H8; docs/theory/pieces.md, section 4). Windows are guessed for the
slope with which everything above and beside pulls at a root; how good that guess is changes no law.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from holdfast.arrays import Bools, Floats, Ints
from holdfast.randomness import Keys
from holdfast.trees.messages.messages import NEED_INSIDE, Messages
from holdfast.trees.messages.outlook import learned
from holdfast.trees.messages.parcels import Shelf
from holdfast.trees.messages.responses import Known
from holdfast.trees.messages.sampler import Sampler

#: What of a message on a shelf goes up: everything but where it stands, and what is tested where it was made.
SENT = ("lo", "hi", "r_lo", "r_hi", "hard", "leaning", "tilt", "error", "swerve", "scale")


class Graft(NamedTuple):
    """What a part tells about a root: ends of its total (∓2**62: none), its answers to slopes, and its message.

    The message is its values and then what `SENT` names; None before it is made.
    """

    lowest: int
    highest: int
    answers: Known
    message: tuple[Any, ...] | None = None


@dataclass(frozen=True, eq=False)
class Part(Sampler):
    """The conditional law of the noise below some roots, for given totals of these; `pull` is the slope at each."""

    pull: Floats | None = None
    need_inside: float = NEED_INSIDE + 3.0  # what one part rejects, a whole of many is drawn again for

    @cached_property
    def messages(self) -> Messages:
        """The messages as first guessed."""
        given = (self.forest, self.law, self.low, self.high, self.need, self.need_inside, self.workers, self.learn)
        return Messages(*given, pull=np.zeros(self.forest.n) if self.pull is None else self.pull)

    def told(self) -> dict[int, Graft]:
        """What is known of each root without messages; nothing of roots that are exact or whose noise is always 0."""
        if self.messages.pieces.size == 0:
            return {}
        return {root: _graft(self.messages, k) for root, k in _roots(self.messages).items()}

    def grafts(self) -> dict[int, Graft]:
        """The same with messages, which tell better how totals answer."""
        told = self.told()
        if not told:
            return {}
        up = self.ready
        found = {}
        for root, k in _roots(up).items():
            one = slice(k, k + 1)
            shelf, (grid, mean, variance) = up.shelf, told[root].answers
            means, variances = mean[None].astype(np.float32), variance[None].astype(np.float32)
            mine = Shelf._make([shelf.values, *(each[one] for each in shelf[1:])])
            learned(np.zeros(1, dtype=np.int64), mine.tilt, grid, means, variances, mine)
            ends = int(up.pieces.lowest[k]), int(up.pieces.highest[k])
            found[root] = Graft(
                *ends, Known(grid, means[0].astype(np.float64), variances[0].astype(np.float64)), _sent(shelf, k)
            )
        return found

    def drawn(self, totals: Ints, attempts: Ints, keys: Keys) -> tuple[Ints, Bools]:
        """The noise of all outputs for totals of the roots, and which outputs are roots of trees that are rejected.

        Each tree below a root is that of its attempt; trees below exact outputs share nothing with others and are drawn
        until they are accepted.
        """
        n = self.forest.n
        noise, rejected = np.zeros(n, dtype=np.int64), np.zeros(n, dtype=np.bool_)
        if self.messages.pieces.size == 0:
            return noise, rejected
        up = self.ready
        attempt_of, root_of = (up.pieces.at_roots(each) for each in (attempts, np.arange(n)))
        free = set(np.flatnonzero(up.pieces.root == 1).tolist())
        left = set(np.flatnonzero(up.pieces.root == 2).tolist())
        tree, attempt, last = up.trees_of_outputs, 0, int(attempt_of.max(initial=0))
        while attempt <= last or left:
            now = {each for each in free if attempt_of[each] == attempt}
            if now or left:
                again = np.zeros((n, 1), dtype=np.int64)
                refused = self._draw_rows(again, keys, 0, attempt, totals).get(0, set())
                made = np.isin(tree, list(now | (left - refused)))
                noise[made] = again[made, 0]
                rejected[root_of[list(now & refused)]] = True
                left &= refused
            attempt += 1
        return noise, rejected


def _roots(up: Messages) -> dict[int, int]:
    """The outputs at which free trees begin, and the kinds of their pieces."""
    p = up.pieces
    of_piece = p.at_roots(np.arange(up.forest.n))
    return {int(of_piece[piece]): int(p.kind[piece]) for piece in np.flatnonzero(p.root == 1)}


def _graft(up: Messages, k: int) -> Graft:
    return Graft(int(up.pieces.lowest[k]), int(up.pieces.highest[k]), Known(*up.prospect.answers(k)))


def _sent(shelf: Shelf, k: int) -> tuple[Any, ...]:
    head = int(shelf.offset[k])
    values = shelf.values[head : head + int(shelf.hi[k] - shelf.lo[k]) + 1].copy()
    return values, *(getattr(shelf, name)[k].item() for name in SENT)
