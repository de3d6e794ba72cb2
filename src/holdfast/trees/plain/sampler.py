"""Draws of integer noise on a hierarchy given that parents equal the sum of their children: exact, in plain numpy.

Messages go up, totals are divided downwards, and one test accepts the table (THEORY H8, docs/theory/plain-trees.md).
Nothing is compiled. Every place has a random word of its own, so that a table follows from the key, its row and the
attempt alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import chain, count
from typing import NamedTuple

import numpy as np
from flint import arb

from holdfast.arrays import Ints
from holdfast.noise import Independent, IntegerGaussian, IntegerLaplace
from holdfast.noise.draws.decisions import Digits, Open, Restart, chosen, decided
from holdfast.randomness import Keys, Stream
from holdfast.trees.plain.message import (
    ANY,
    NOTHING,
    UNIT,
    Division,
    Message,
    TooNarrow,
    Weight,
    leaf,
    merged,
)
from holdfast.trees.plain.outlook import Outlook, Weights, outlook

#: Windows hold all but about e^−NEED of what is guessed, and next time so many times more; one noise alone never
#: reaches further than so many standard deviations.
NEED, WIDER, FARTHEST = 21.0, 1.5, 18.0
#: Tables that are rejected one after another before windows are made wider.
PATIENCE = 40


@dataclass(frozen=True)
class Piece:
    """A total: of an output, of some siblings (output −1), or nothing (an exact output as its parent sees it)."""

    message: Message
    output: int
    parts: tuple[int, int] | None


@dataclass(frozen=True, eq=False)
class PlainSampler:
    """The conditional law of integer noise on a forest; bounds are on the noise of each output.

    Law: independent integer noise given that parents equal the sum of their children, exact outputs have none, and
    every bound holds; exactly (docs/theory/plain-trees.md).
    """

    parents: Ints
    exact: np.ndarray
    law: Independent
    low: Ints
    high: Ints
    need: float = NEED
    roughness: Callable[[Message], Message] = staticmethod(lambda message: message)  # for tests: worse messages

    def draw(self, size: int, stream: Stream) -> Ints:
        """Draw the noise of all outputs, (size, n)."""
        keys = Keys.drawn_from(stream)
        return np.stack([self._row(keys, row) for row in range(size)]) if size else np.zeros((0, self.parents.size), int)

    def _row(self, keys: Keys, row: int) -> Ints:
        for attempt in count():
            try:
                return self._trees(attempt // PATIENCE).draw(lambda *path: keys.at(*path, row, attempt))
            except Restart:
                continue
        raise AssertionError

    @cached_property
    def _made(self) -> dict[int, Trees]:
        return {}

    def _trees(self, wider: int) -> Trees:
        """The messages, with windows that were made wider so many times."""
        if wider not in self._made:
            need = self.need * WIDER**wider
            while True:
                try:
                    self._made[wider] = Trees.of(self, need)
                    break
                except TooNarrow:
                    need *= WIDER
        return self._made[wider]

    @cached_property
    def weights(self) -> list[Fraction]:
        """The rate of every output's weight; 0 where it is not measured."""
        rates = [
            Fraction(0) if law is None else 1 / law.scale if isinstance(law, IntegerLaplace) else 1 / (2 * law.sigma2)
            for law in self.law.laws
        ]
        which = self.law.which
        return rates * self.parents.size if which is None else [rates[k] for k in which.tolist()]

    @cached_property
    def guess(self) -> Outlook:
        """Where totals will probably lie."""
        rate = np.array([float(each) for each in self.weights])
        return outlook(self.parents, self.exact, Weights(rate, self.square, self.low, self.high))

    @property
    def square(self) -> bool:
        """Whether the noise is Gaussian."""
        return any(isinstance(law, IntegerGaussian) for law in self.law.laws)


@dataclass(frozen=True, eq=False)
class Trees:
    """All totals with their messages, each before its parts; roots are drawn or, below an exact output, 0."""

    pieces: list[Piece]
    roots: list[int]
    fixed: list[int]
    n: int

    @classmethod
    def of(cls, law: PlainSampler, need: float) -> Trees:
        """Make the messages from the leaves up."""
        return _Making(law, need).trees()

    @cached_property
    def slack(self) -> float:
        """A bound on 1 − ∏c over all totals inside their windows."""
        fixed = set(self.fixed)
        return 1.01 * sum(piece.message.excess for i, piece in enumerate(self.pieces) if i not in fixed)

    def draw(self, stream: Callable[..., Stream]) -> Ints:
        """Draw one table, or raise Restart if it was not accepted."""
        totals = [0] * len(self.pieces)
        words = stream("words").words(len(self.pieces) + len(self.roots) + 1)
        shares = words * 2.0**-64
        for place, i in enumerate(self.roots, len(self.pieces)):
            totals[i] = _choice(self.pieces[i].message, None, 0, shares[place], words, place, stream)
        noise = np.zeros(self.n, dtype=np.int64)
        for i in range(len(self.pieces) - 1, -1, -1):
            piece = self.pieces[i]
            if piece.output >= 0:
                noise[piece.output] = totals[i]
            if piece.parts is not None:
                left, right = piece.parts
                part = _choice(piece.message, piece.message.parts, totals[i], shares[i], words, i, stream)
                totals[left], totals[right] = part, totals[i] - part
        self._accept(totals, int(words[-1]), stream)
        return noise

    def _accept(self, totals: list[int], word: int, stream: Callable[..., Stream]) -> None:
        """Accept the table with probability ∏ c, or raise Restart."""
        fixed = set(self.fixed)
        tested = [(piece.message, totals[i]) for i, piece in enumerate(self.pieces) if i not in fixed]
        beyond = [(message, t) for message, t in tested if not message.lo <= t <= message.hi]
        if not beyond and word * 2.0**-64 < 1 - self.slack - 1e-15:
            return
        digits = Digits(word, 64, lambda: stream("test"))

        def attempt(shares: tuple[arb, arb], number: Digits) -> int:
            least, most = number.times(arb(1))
            if shares[0] >= most:
                return 1
            if shares[1] <= least:
                return 0
            raise Open

        def rough(_: int) -> tuple[arb, arb]:
            known = arb(1)
            for message, t in beyond:
                known = known * message.share(t)
            return known * (1 - arb(self.slack)), known

        def full(_: int) -> tuple[arb, arb]:
            known = arb(1)
            for message, t in tested:
                known = known * message.share(t)
            return known, known

        with_rough = _once(rough, digits, attempt)
        if not (with_rough if with_rough is not None else decided(full, digits, attempt)):
            raise Restart


def _once(exact: Callable[[int], tuple[arb, arb]], digits: Digits, attempt: Callable[..., int]) -> int | None:
    from holdfast.noise.precision import working_precision

    with working_precision(128):
        try:
            return attempt(exact(128), digits)
        except Open:
            return None


def _choice(
    message: Message,
    parts: tuple[Message, Message] | None,
    total: int,
    share: float,
    words: np.ndarray,
    place: int,
    stream: Callable[..., Stream],
) -> int:
    """Divide a total between two messages (or, without parts, draw the total of a root), exactly by their doubles.

    Places inside both windows come first, in their order, then those beyond, nearest first; the first is taken at which
    the sum of their weights passes the random number's share of the whole.
    """
    if parts is None:
        low, terms = message.lo, message.values
        whole = float(terms.sum()) + sum(end.height * end.ratio / (1 - end.ratio) for end in (message.below, message.above))
    else:
        a, b = parts
        if a is NOTHING or b is NOTHING:
            return 0 if a is NOTHING else total
        low, high = max(a.lo, total - b.hi), min(a.hi, total - b.lo)
        terms, whole = np.zeros(0), 1.0
        if low <= high and message.lo <= total <= message.hi:
            start = total - high - b.lo
            terms = a.values[low - a.lo : high - a.lo + 1] * b.values[start : start + high - low + 1][::-1]
            whole = float(message.whole[total - message.lo])
    if terms.size:
        sums = terms.cumsum()
        goal = share * whole
        k = int(sums.searchsorted(goal, "right"))
        margin = whole * (UNIT * (2 * terms.size + 16) + message.excess)
        if k < terms.size and sums[k] - goal > margin and (k == 0 or goal - sums[k - 1] > margin):
            return low + k
    digits = Digits(int(words[place]), 64, lambda: stream("digits", place))
    if parts is None:
        return decided(lambda _: _root_total(message), digits, lambda whole, d: chosen(message.ball, whole, _order(message.lo, message.hi), d))
    division = Division(*parts, total)
    return decided(
        lambda _: division.total(),
        digits,
        lambda whole, d: chosen(division.term, whole, _order(division.low, division.high), d),
    )


def _order(low: int, high: int) -> Iterator[int]:
    """Places inside the windows in their order, then those beyond, nearest first."""
    up = max(high + 1, low) if low <= high else high + 1
    down = low - 1 if low <= high else high
    return chain(range(low, high + 1), (up + d // 2 if d % 2 == 0 else down - d // 2 for d in count()))


def _root_total(message: Message) -> arb:
    whole = arb(0)
    for value in message.values.tolist():
        whole = whole + arb(value)
    for end in (message.below, message.above):
        whole = whole + arb(end.height) * arb(end.ratio) / (1 - arb(end.ratio))
    return whole


class Guess(NamedTuple):
    """Mean and variance of a total, and how far one noise in it may reach alone, down and up."""

    mean: float
    variance: float
    left: float
    right: float

    def with_(self, other: Guess) -> Guess:
        """The sum of two totals."""
        return Guess(
            self.mean + other.mean,
            self.variance + other.variance,
            max(self.left, other.left),
            max(self.right, other.right),
        )


class _Making:
    """The messages in the making: parts that are alike share theirs."""

    def __init__(self, law: PlainSampler, need: float) -> None:
        self.law, self.need, self.guess = law, need, law.guess
        self.pieces: list[Piece] = []
        self.guesses: list[Guess] = []
        self.known: dict[object, Message] = {}
        n = law.parents.size
        self.children: list[list[int]] = [[] for _ in range(n)]
        for v, parent in enumerate(law.parents.tolist()):
            if parent >= 0:
                self.children[parent].append(v)

    def trees(self) -> Trees:
        law = self.law
        depth = {}
        roots, fixed = [], []
        order: list[int] = []
        pending = [v for v in range(law.parents.size) if law.parents[v] < 0]
        while pending:
            v = pending.pop()
            order.append(v)
            pending.extend(self.children[v])
        at: dict[int, int] = {}
        for v in reversed(order):
            kids = [at[c] for c in self.children[v]]
            if law.exact[v]:
                if kids:
                    fixed.append(self._joined(v, kids, ANY))
                at[v] = self._nothing()
                continue
            parent = int(law.parents[v])
            above = float(self.guess.tilt[parent]) if parent >= 0 else 0.0
            own = float(self.guess.tilt[v]) if kids else 0.0
            weight = Weight(law.weights[v], law.square, above - own, int(law.low[v]), int(law.high[v]))
            at[v] = self._joined(v, kids, weight) if kids else self._leaf(v, weight)
            if parent < 0:
                roots.append(at[v])
        return Trees(self.pieces, roots, fixed, law.parents.size)

    def _add(self, message: Message, output: int, parts: tuple[int, int] | None, guess: Guess) -> int:
        self.pieces.append(Piece(message, output, parts))
        self.guesses.append(guess)
        return len(self.pieces) - 1

    def _nothing(self) -> int:
        return self._add(NOTHING, -1, None, Guess(0.0, 0.0, 0.0, 0.0))

    def _window(self, i: Guess) -> tuple[int, int]:
        """Where a sum lies: as a normal one would, and one of its parts may be far off alone."""
        wide = (2 * self.need * i.variance) ** 0.5 + 2
        return math.floor(i.mean - wide - i.left), math.ceil(i.mean + wide + i.right)

    def _leaf(self, v: int, weight: Weight) -> int:
        mean, variance = float(self.guess.mean[v]), float(self.guess.variance[v])
        farthest = FARTHEST * self.need / NEED * variance**0.5
        left, right = 0.0, 0.0
        if not weight.square:
            left, right = (
                max(side * mean, 0.0)
                + min(farthest, self.need / max(float(weight.rate) + side * weight.tilt, 1e-300))
                for side in (1, -1)
            )
        lo, hi = self._window(Guess(mean, 0.0 if left else variance, left, right))
        key = (weight, lo, hi)
        if key not in self.known:
            self.known[key] = self.law.roughness(leaf(weight, lo, hi))
        return self._add(self.known[key], v, None, Guess(mean, variance, left, right))

    def _joined(self, v: int, kids: list[int], weight: Weight) -> int:
        """Join totals two by two, narrow ones first, and give the last one the weight of the output."""
        if len(kids) == 1:
            kids = [*kids, self._nothing()]
        ranked = sorted(kids, key=lambda i: (self.guesses[i].variance, id(self.pieces[i].message)))
        while len(ranked) > 2:
            pairs = zip(ranked[::2], ranked[1::2], strict=False)
            joined = [self._pair(i, j, ANY, self.guesses[i].with_(self.guesses[j]), -1) for i, j in pairs]
            ranked = sorted(joined + ranked[len(joined) * 2 :], key=lambda i: self.guesses[i].variance)
        i, j = ranked
        both = self.guesses[i].with_(self.guesses[j])
        if not self.law.exact[v]:
            both = Guess(float(self.guess.mean[v]), float(self.guess.variance[v]), both.left, both.right)
        return self._pair(i, j, weight, both, -1 if self.law.exact[v] else v)

    def _pair(self, i: int, j: int, weight: Weight, guess: Guess, output: int) -> int:
        a, b = self.pieces[i].message, self.pieces[j].message
        window = self._window(guess)
        key = (id(a), id(b), weight, window)
        if key not in self.known:
            self.known[key] = self.law.roughness(merged(a, b, weight, *window))
        return self._add(self.known[key], output, (i, j), guess)
