"""One table in the making: totals with their messages, divided from the roots down, and the test that accepts them.

Proofs: docs/theory/plain-trees.md.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from flint import arb

from holdfast.arrays import Bools, Floats, Ints, Words
from holdfast.noise.draws.decisions import FIRST_BITS, Digits, Open, decided
from holdfast.noise.precision import working_precision
from holdfast.randomness import Stream
from holdfast.trees.plain import choices
from holdfast.trees.plain.message import Message

#: The streams of one row: of words, of further digits of a place, of the test.
Streams = Callable[..., Stream]


@dataclass(frozen=True)
class Piece:
    """A total: of an output, of some siblings (output −1), or nothing (an exact output as its parent sees it)."""

    message: Message
    output: int
    parts: tuple[int, int] | None


@dataclass(frozen=True, eq=False)
class Trees:
    """Totals with their messages, each before its parts; roots are drawn, given or, below an exact output, 0.

    Those that are fixed are always 0, and do not belong to the test; nor do those that are tested elsewhere.
    """

    pieces: list[Piece]
    roots: list[int]
    fixed: frozenset[int]
    elsewhere: frozenset[int] = frozenset()

    @cached_property
    def tested(self) -> Ints:
        """The totals that belong to the test."""
        without = self.fixed | self.elsewhere
        return np.array([i for i in range(len(self.pieces)) if i not in without], dtype=np.int64)

    @cached_property
    def shown(self) -> tuple[Ints, Ints]:
        """The totals that are noise of outputs, and of which."""
        found = [(i, piece.output) for i, piece in enumerate(self.pieces) if piece.output >= 0]
        places, outputs = np.array(found, dtype=np.int64).reshape(-1, 2).T
        return places, outputs

    @cached_property
    def _waves(self) -> list[tuple[Message, Ints, Ints, Ints]]:
        """Totals that are divided by one message at the same depth, and their parts; from the roots down."""
        depth = [0] * len(self.pieces)
        waves: dict[tuple[int, int], list[int]] = {}
        for i in range(len(self.pieces) - 1, -1, -1):
            piece = self.pieces[i]
            if piece.parts is not None:
                waves.setdefault((depth[i], id(piece.message)), []).append(i)
                depth[piece.parts[0]] = depth[piece.parts[1]] = depth[i] + 1
        result = []
        for (_, _), some in sorted(waves.items(), key=lambda item: item[0][0]):
            left, right = np.array([self.pieces[i].parts for i in some]).T
            result.append((self.pieces[some[0]].message, np.array(some), left, right))
        return result

    @property
    def words(self) -> int:
        """How many random words a table takes: one for each total, one more for each root, and one for the test."""
        return len(self.pieces) + len(self.roots) + 1

    def draw(self, streams: list[Streams], given: int | None = None) -> tuple[Ints, Bools]:
        """Draw the totals of one table from each stream, (pieces, rows), and say which are accepted.

        A total that is given is that of the only root.
        """
        rows = len(streams)
        totals = np.zeros((len(self.pieces), rows), dtype=np.int64)
        words = np.array([stream("words").words(self.words) for stream in streams]).T
        for place, i in enumerate(self.roots, len(self.pieces)):
            totals[i] = given if given is not None else self._root(i, place, words[place], streams)
        for message, some, left, right in self._waves:

            def more(j: int, some: Ints = some) -> Stream:
                return streams[j % rows]("digits", int(some[j // rows]))

            found = choices.divided(message, totals[some].ravel(), words[some].ravel(), more)
            totals[left] = found.reshape(-1, rows)
            totals[right] = totals[some] - totals[left]
        return totals, self._accepted(totals, words[-1], streams)

    def _root(self, i: int, place: int, words: Words, streams: list[Streams]) -> Ints:
        return choices.drawn(self.pieces[i].message, words, lambda row: streams[row]("digits", place))

    # --- the test ------------------------------------------------------------------------------------------------

    @cached_property
    def _windows(self) -> tuple[Ints, Ints, float]:
        """The windows of the totals that are tested, and a bound on 1 − ∏c inside of them, but for what is blurred."""
        messages = [self.pieces[i].message for i in self.tested.tolist()]
        low, high = np.array([(message.lo, message.hi) for message in messages], dtype=np.int64).reshape(-1, 2).T
        return low[:, None], high[:, None], 1.01 * sum(message.excess for message in messages)

    def _slack(self, totals: Ints) -> Floats:
        """A bound on 1 − ∏c over the totals inside their windows, for every row."""
        blurred = np.zeros(totals.shape[1])
        for i in self.tested.tolist():
            if self.pieces[i].message.blur is not None:
                blurred += self.pieces[i].message.blurred(totals[i])
        return np.asarray(self._windows[2] + 1.01 * blurred)

    def _accepted(self, totals: Ints, words: Words, streams: list[Streams]) -> Bools:
        """Accept every table with probability ∏ c."""
        low, high, _ = self._windows
        inside = ((low <= totals[self.tested]) & (totals[self.tested] <= high)).all(axis=0)
        slack = self._slack(totals)
        accepted = inside & (words * 2.0**-64 < 1 - slack - 1e-15)
        for row in np.flatnonzero(~accepted).tolist():
            accepted[row] = self._accept(totals[:, row].tolist(), int(words[row]), float(slack[row]), streams[row])
        return np.asarray(accepted)

    def _accept(self, totals: list[int], word: int, slack: float, stream: Streams) -> bool:
        """Accept one table with probability ∏ c."""
        tested = [(self.pieces[i].message, totals[i]) for i in self.tested.tolist()]
        beyond = [(message, t) for message, t in tested if not message.lo <= t <= message.hi]
        digits = Digits(word, 64, lambda: stream("test"))

        def attempt(shares: tuple[arb, arb], number: Digits) -> int:
            least, most = number.times(arb(1))
            if shares[0] >= most:
                return 1
            if shares[1] <= least:
                return 0
            raise Open

        def bounds(_: int) -> tuple[arb, arb]:
            known = _shares(beyond)
            return known * (1 - arb(slack)), known

        def both(_: int) -> tuple[arb, arb]:
            known = _shares(tested)
            return known, known

        try:
            with working_precision(FIRST_BITS):
                return bool(attempt(bounds(FIRST_BITS), digits))
        except Open:
            return bool(decided(both, digits, attempt))


def _shares(totals: list[tuple[Message, int]]) -> arb:
    """∏ c over some totals."""
    result = arb(1)
    for message, t in totals:
        share = message.share(t)
        if share > 1:
            raise ArithmeticError("a message is below what it stands for")
        result = result * share
    return result
