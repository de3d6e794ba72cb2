"""Choices by whole numbers: a law is proposed by counts out of 2**52, and accepted by what it really is.

A row holds positive doubles p on a window, n = ⌊p⌋ + 1 ways to propose each place, and what is left of 2**52 proposes a
place beyond the window. So proposals are exact, n is never below p, and an acceptance of p*/n, where p* is the exact
weight, makes up for all rounding (docs/theory/circles.md, section 3).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from flint import arb

from holdfast.arrays import Array, Floats, Ints, ranges
from holdfast.noise.draws.decisions import Digits, Open, decided
from holdfast.randomness import Stream

#: Ways to propose a place, all of a row; bits of a random word that choose; and fewest ways left for places beyond.
WAYS, BITS, BEYOND = 2.0**52, np.uint64(12), 2.0**22
#: Rows whose ways are told apart in one whole number.
BLOCK = 1 << 11
#: Places with fewer ways are looked at one by one.
FEW = 2.0**24
#: Rounds of proposals for a division, before it is drawn without any.
ROUNDS = 1_000
#: By how much a computed weight may differ from the exact one, and acceptances are lowered for that.
ROUNDING = 2.0**-33


@dataclass(eq=False)
class Table:
    """Rows of proposals; (rows, places) arrays, all windows equally long.

    first: the first place of each row. height, ratio, by side: p* at distance d beyond a window is at most
    height·ratio^d. ball(row, t): the exact weight p* at t, in the units of p.
    """

    first: Ints
    weights: Floats
    height: Floats
    ratio: Floats
    ball: Callable[[int, int], arb]

    def __post_init__(self) -> None:
        whole = self.weights.sum(axis=1)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            tails = np.where(self.height > 0, self.height * self.ratio / (1 - self.ratio), 0.0).sum(axis=0)
            spare = np.maximum(BEYOND, WAYS * 16 * tails / (whole + 16 * tails))
        if not (self.ratio < 1).all():
            raise ArithmeticError("a message has no sum")
        places = self.weights.shape[1]
        self.factor = (WAYS - spare - places) * (1 - 1e-13) / whole
        self.weights *= self.factor[:, None]
        self.height = self.height * self.factor
        beyond = np.where(self.height > 0, self.height * self.ratio, 0.0).max(axis=0)
        self.top = np.maximum(self.weights.max(axis=1), beyond)

    @cached_property
    def _keys(self) -> Ints:
        """How often each place or one before it is proposed, after 2**52 for every row of BLOCK before it."""
        with np.errstate(invalid="ignore"):
            keys = self.weights.astype(np.int64)
        keys += self.weights > 0
        np.cumsum(keys, axis=1, out=keys)
        keys += _begins(np.arange(len(keys)))[:, None]
        return keys

    @property
    def left(self) -> Floats:
        """How often places beyond the window are proposed; no number where weights are none."""
        fine = (self.factor > 0) & (self.factor < np.inf)
        used = self._keys[:, -1] - _begins(np.arange(fine.size))  # in whole numbers, for keys are no doubles
        return np.where(fine, WAYS - used, np.nan)

    @property
    def places(self) -> int:
        """The length of all windows."""
        return int(self.weights.shape[1])

    def propose(self, rows: Ints, numbers: Ints) -> tuple[Ints, Ints]:
        """The place in the window that each number, below 2**52, stands for (beyond it: its length), and its ways."""
        keys, places = self._keys, self.places
        begins = _begins(rows)
        position = np.empty(rows.size, dtype=np.int64)
        for k in range(0, len(keys), BLOCK):
            mine = np.flatnonzero((rows >= k) & (rows < k + BLOCK)) if len(keys) > BLOCK else slice(None)
            some = keys[k : k + BLOCK].ravel().searchsorted(begins[mine] + numbers[mine], "right")
            position[mine] = some - (rows[mine] - k) * places
        inside = np.minimum(position, places - 1)
        flat, at = keys.ravel(), rows * places + inside
        return position, flat[at] - np.where(inside > 0, flat[np.maximum(at, 1) - 1], begins)

    def at(self, rows: Ints, places: Ints) -> Floats:
        """p at places, and bounds on it beyond windows."""
        inside = places - self.first[rows]
        within = (inside >= 0) & (inside < self.places)
        result = self.weights.ravel()[rows * self.places + np.clip(inside, 0, self.places - 1)]
        if not within.all():
            side = (inside >= self.places).astype(np.int64)
            distance = np.where(side == 1, inside - self.places + 1, -inside)
            with np.errstate(under="ignore"):
                tail = self.height[side, rows] * self.ratio[side, rows] ** np.maximum(distance, 1)
            result = np.where(within, result, tail)
        return result

    def exact(self, row: int, place: int) -> arb:
        """The exact weight, in the units of p after scaling, lowered for what doubles round."""
        return self.ball(row, place) * arb(self.factor[row]) * (1 - arb(ROUNDING))

    def exact_ways(self, row: int, place: int) -> arb:
        """How often a place is proposed, out of 2**52."""
        inside = place - int(self.first[row])
        if 0 <= inside < self.places:
            before = self._keys[row, inside - 1] if inside else _begins(row)
            return arb(int(self._keys[row, inside] - before))
        side, distance = (1, inside - self.places + 1) if inside >= 0 else (0, -inside)
        power = self._power(row, side)
        stay = 1 - arb(2) ** -power
        return arb(self.left[row]) / 2 * arb(2) ** -power * stay ** (distance - 1)

    def _power(self, row: int, side: int) -> int:
        """Beyond a window d is geometric with ratio 1 − 2^−power, which is not below the row's."""
        return max(1, math.ceil(-math.log2(1 - float(self.ratio[side, row]))) + 1)

    def beyond(self, row: int, stream: Stream) -> int:
        """Draw a place beyond the window."""
        side = stream.bits(1)
        power, distance = self._power(row, side), 1
        while stream.bits(power):
            distance += 1
        first = int(self.first[row])
        return first + self.places - 1 + distance if side else first - distance


@dataclass(frozen=True)
class Division:
    """Totals to be divided: the children of task k but one are counts[k] rows in turn; the last one takes the rest.

    `last` is its row in its own table, −1 where there is none. `fits(task, values, rest)` may refuse a division.
    """

    table: Table
    rows: Ints
    counts: Ints
    totals: Ints
    rest: Table | None
    last: Ints

    def draw(
        self,
        stream: Stream,
        one_by_one: Callable[[int], list[int]] | None = None,
        fits: Callable[[Ints, Ints, Ints, Ints], Array] | None = None,
    ) -> tuple[Ints, Ints]:
        """Draw all divisions; returns the values of the rows and the rests.

        What ROUNDS of proposals do not divide is drawn one by one: values of a task's rows, and its rest.
        """
        start = np.cumsum(self.counts) - self.counts
        values, rests = np.zeros(self.rows.size, dtype=np.int64), self.totals.copy()
        todo, rounds = np.arange(self.totals.size), 0
        while todo.size and (one_by_one is None or rounds < ROUNDS):
            rounds += 1
            counts = self.counts[todo]
            all_ = todo.size == self.totals.size
            slots = np.arange(self.rows.size) if all_ else ranges(start[todo], counts)
            rows = self.rows if all_ else self.rows[slots]
            words = stream.words(slots.size + todo.size)
            numbers = (words[: slots.size] >> BITS).astype(np.int64)
            position, ways = self.table.propose(rows, numbers)
            chosen = self.table.first[rows] + position
            doubtful = np.flatnonzero((ways < FEW) | (position == self.table.places))
            for slot in doubtful[position[doubtful] == self.table.places].tolist():
                chosen[slot] = self.table.beyond(int(rows[slot]), stream)
            sums = np.concatenate([[0], np.cumsum(chosen)])
            ends = np.cumsum(counts)
            rest = self.totals[todo] - (sums[ends] - sums[ends - counts])
            accepted, undecided = self._decided(todo, rest, words[slots.size :], counts)
            if doubtful.size:
                owner = np.searchsorted(ends, doubtful, "right")
                undecided[owner] = True
            for k in np.flatnonzero(undecided).tolist():
                mine = slice(int(ends[k] - counts[k]), int(ends[k]))
                accepted[k] = self._accept(
                    int(todo[k]),
                    rows[mine].tolist(),
                    chosen[mine].tolist(),
                    int(rest[k]),
                    int(words[slots.size + k]),
                    stream,
                )
            if fits is not None:
                accepted &= fits(todo, slots, chosen, rest)
            done = np.repeat(accepted, counts)
            values[slots[done]] = chosen[done]
            rests[todo[accepted]] = rest[accepted]
            todo = todo[~accepted]
        if one_by_one is not None:
            for task in todo.tolist():
                *values[start[task] : start[task] + self.counts[task]], rests[task] = one_by_one(task)
        return values, rests

    def _decided(self, todo: Ints, rest: Ints, words: Array, counts: Ints) -> tuple[Array, Array]:
        """Which divisions are accepted, and which doubles leave undecided."""
        share = np.ones(todo.size)
        if self.rest is not None:
            last = self.last[todo]
            share = np.where(
                last >= 0, self.rest.at(np.maximum(last, 0), rest) / self.rest.top[np.maximum(last, 0)], 1.0
            )
            inside = (rest >= self.rest.first[last]) & (rest < self.rest.first[last] + self.rest.places)
        else:
            inside = np.ones(todo.size, dtype=bool)
        numbers = words * 2.0**-64
        slack = (counts + 1) / FEW + 4 * ROUNDING * (counts + 2)
        accepted = inside & (numbers < share * (1 - slack) - 2.0**-60)
        undecided = ~accepted & (numbers < share * (1 + 1e-10) + 2.0**-60)
        return accepted, undecided

    def _accept(self, task: int, rows: list[int], values: list[int], rest: int, word: int, stream: Stream) -> bool:
        """Accept a division by its exact weight."""

        def share(_: int) -> arb:
            result = arb(1)
            for row, value in zip(rows, values, strict=True):
                result = result * _at_most_one(self.table.exact(row, value) / self.table.exact_ways(row, value))
            if self.rest is not None and self.last[task] >= 0:
                row = int(self.last[task])
                result = result * _at_most_one(self.rest.exact(row, rest) / arb(self.rest.top[row]))
            return result

        return accepted(share, Digits(word, 64, lambda: stream))


def accepted(share: Callable[[int], arb], digits: Digits) -> bool:
    """Accept with a probability that is enclosed by balls."""

    def attempt(value: arb, number: Digits) -> int:
        least, most = number.times(arb(1))
        if value >= most:
            return 1
        if value <= least:
            return 0
        raise Open

    return bool(decided(share, digits, attempt))


def _begins(rows: Any) -> Any:
    """The number from which the keys of rows count."""
    return (rows % BLOCK) << 52


def _at_most_one(share: arb) -> arb:
    if share > 1:
        raise ArithmeticError("a proposal is rarer than what it stands for")
    return share
