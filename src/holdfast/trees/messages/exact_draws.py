"""Draws that doubles leave open, decided in ball arithmetic by the same rules.

The messages are those of the compiled passes, read from their definition: the windows and tail ratios that the passes
chose, the values in balls. A choice goes through the places in the same order and compares the same random bits, with
more bits and more precision until it is decided (decisions.py). A total beyond a window is a proposal that is accepted
with the probability by which the message overstates it there; otherwise the whole table is drawn again.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from flint import arb

from holdfast.arguments import LARGEST
from holdfast.noise.draws.decisions import Digits, accept, chosen, decided, places
from holdfast.randomness import Stream
from holdfast.trees.messages import passes
from holdfast.trees.messages.ball_messages import Law, Undecided, geometric, undecided
from holdfast.trees.messages.messages import Messages
from holdfast.trees.messages.steps import HIGH, LOW


@dataclass(eq=False)
class Hand:
    """Draws for one row of totals by hand: those that the compiled passes left open."""

    up: Messages
    stream: Callable[[str, int], Stream]  # of a purpose and a slot
    word: Callable[[int], int]  # of a slot

    def _choose(
        self, slot: int, term: Callable[[Undecided, int], arb], total: Callable[[Undecided], arb],
        start: int, low: int, high: int, lowest: int, highest: int,
    ) -> int:  # fmt: skip
        low, high = (start, start) if low > high else (low, high)
        ends = (None if lowest <= -LARGEST else lowest, None if highest >= LARGEST else highest)
        digits = Digits(self.word(slot), 64, lambda: self.stream("more", slot))
        return decided(
            partial(undecided, self.up),
            digits,
            lambda exact, number: chosen(
                lambda place: term(exact, place), total(exact), places(start, low, high, *ends), number
            ),
        )

    def root(self, p: int, slot: int) -> int:
        """Draw the total of a piece that has none above it."""
        pieces, shelf, guess = self.up.pieces, self.up.shelf, self.up.guess
        k = int(pieces.kind[p])
        lo, hi, tilt = int(shelf.lo[k]), int(shelf.hi[k]), float(shelf.tilt[k])

        def total(exact: Undecided) -> arb:
            law = exact.message(k).tilted(arb(-tilt))
            result = geometric(law.values[0], law.r_lo) + geometric(law.values[-1], law.r_hi)
            for value in law.values:
                result = result + value
            return result

        start = int(passes.part_start(guess.centre[k], 0.0, 0.0, 0, lo, hi))
        lowest, highest = self._ends(k)
        s = self._choose(
            slot, lambda exact, s: exact.message(k).tilted(arb(-tilt)).at(s), total, start, lo, hi, lowest, highest
        )
        self.accept_piece(p, s)
        return s

    def _ends(self, k: int) -> tuple[int, int]:
        """Where the message of a kind is positive: it ends at hard ends only, not at those of its support."""
        shelf = self.up.shelf
        hard = int(shelf.hard[k])
        return int(shelf.lo[k]) if hard & LOW else -LARGEST, int(shelf.hi[k]) if hard & HIGH else LARGEST

    def pair(self, p: int, s: int) -> int:
        """Divide the total of a pair; return the left part."""
        pieces, shelf, guess = self.up.pieces, self.up.shelf, self.up.guess
        k, a, b = (int(pieces.kind[i]) for i in (p, pieces.left[p], pieces.right[p]))
        low, high = max(int(shelf.lo[a]), s - int(shelf.hi[b])), min(int(shelf.hi[a]), s - int(shelf.lo[b]))
        start = int(passes.part_start(guess.left_mean[k], guess.share[k], guess.centre[k], s, low, high))
        (lowest, highest), (other_lowest, other_highest) = self._ends(a), self._ends(b)
        lowest = max(lowest, s - other_highest if other_highest < LARGEST else -LARGEST)
        highest = min(highest, s - other_lowest if other_lowest > -LARGEST else LARGEST)
        part = self._choose(
            p,
            lambda exact, u: exact.message(a).at(u) * exact.message(b).tilted(exact.between(a, b)).at(s - u),
            lambda exact: exact.product(exact.message(a), exact.message(b).tilted(exact.between(a, b)), s, s)[0],
            start, low, high, lowest, highest,
        )  # fmt: skip
        self.accept_piece(int(pieces.left[p]), part)
        self.accept_piece(int(pieces.right[p]), s - part)
        return part

    def parcel(self, p: int, s: int) -> list[int]:
        """Divide the total of a parcel; return the noise of its leaves in their order."""
        pieces, kit = self.up.pieces, self.up.kit
        k, first = int(pieces.kind[p]), int(pieces.first[p])
        kinds = [int(q) for q in pieces.leaf_kind[first : first + int(pieces.members[p])]]
        _, _, base = self.up.prefixes_of(k)
        longest = kit.weights.shape[1] - 1
        noise = [0] * len(kinds)
        for j in range(len(kinds) - 1, 0, -1):
            q = kinds[j]
            law, b_lo, b_hi = int(kit.leaf_law[q]), int(kit.leaf_low[q]), int(kit.leaf_high[q])

            def rest(exact: Undecided, j: int = j, q: int = q) -> Law:
                return exact.parcel(k)[1][j - base] if j >= base else exact.block(q, j)

            lo, hi = self.up.rest_window(k, j, q, base)
            low, high = max(b_lo, s - hi, -longest), min(b_hi, s - lo, longest)
            start = int(passes.leaf_start(kit.laplace, s, 1.0 / (j + 1), low, high))

            def term(
                exact: Undecided, b: int, s: int = s, law: int = law, rest: Callable[..., Law] = rest,
                b_lo: int = b_lo, b_hi: int = b_hi,
            ) -> arb:  # fmt: skip
                return exact.weight(law, b) * rest(exact).at(s - b) if b_lo <= b <= b_hi else arb(0)

            def total(exact: Undecided, s: int = s, q: int = q, rest: Callable[..., Law] = rest) -> arb:
                return exact.product(rest(exact), exact.leaf(q, rest(exact)), s, s)[0]

            b = self._choose(pieces.size + first + j, term, total, start, low, high, b_lo, b_hi)
            noise[j] = b
            s -= b
            if j >= base:
                self.accept_prefix(k, j - base, s, pieces.size + first + j)
            else:
                self.accept_block(q, j, s, pieces.size + first + j)
        noise[0] = s
        return noise

    # --- totals beyond a window ----------------------------------------------------------------------------------

    def _accept(
        self, inside: bool, slot: int, stated: Callable[[Undecided], arb], true: Callable[[Undecided], arb]
    ) -> None:
        if not inside:
            accept(partial(undecided, self.up), self.stream("coin", slot), stated, true)

    def accept_piece(self, p: int, s: int) -> None:
        """Keep the total of a piece, and of those that must have the same total, or raise Restart.

        Every message has a coin of its own: its piece's, and for the leaves of a parcel that of its first leaf.
        """
        pieces, shelf = self.up.pieces, self.up.shelf
        k = int(pieces.kind[p])
        if shelf.lo[k] <= s <= shelf.hi[k]:
            return
        self._accept(False, p, lambda exact: exact.message(k).at(s), lambda exact: exact.weighed(k, s, s)[0])
        if pieces.left[p] < 0:
            _, kinds, base = self.up.prefixes_of(k)
            self.accept_prefix(k, kinds.size - base, s, pieces.size + int(pieces.first[p]))
        elif pieces.right[p] < 0:
            self.accept_piece(int(pieces.left[p]), s)

    def accept_prefix(self, k: int, i: int, s: int, slot: int) -> None:
        """Keep a total of the first leaves of a parcel, or raise Restart."""
        scratch, kinds, base = self.up.prefixes_of(k)
        if i == 0:
            self.accept_block(int(kinds[0]), base, s, slot)
            return
        q = int(kinds[base + i - 1])
        self._accept(
            bool(scratch.lo[i] <= s <= scratch.hi[i]), slot,
            lambda exact: exact.parcel(k)[1][i].at(s),
            lambda exact: exact.product(
                exact.parcel(k)[1][i - 1], exact.leaf(q, exact.parcel(k)[1][i - 1]), s, s
            )[0],
        )  # fmt: skip

    def accept_block(self, q: int, count: int, s: int, slot: int) -> None:
        """Keep a total of alike leaves, or raise Restart."""
        shelf, slots, _ = self.up.blocks
        i, kit = int(slots[q, count]), self.up.kit

        def true(exact: Undecided) -> arb:
            if count > 1:
                return exact.product(exact.block(q, count - 1), exact.leaf(q, exact.block(q, count - 1)), s, s)[0]
            possible = bool(kit.leaf_low[q] <= s <= kit.leaf_high[q])
            return exact.weight(int(kit.leaf_law[q]), s) if possible else arb(0)

        self._accept(bool(shelf.lo[i] <= s <= shelf.hi[i]), slot, lambda exact: exact.block(q, count).at(s), true)
