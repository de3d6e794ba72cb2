"""Draws of integer noise on a hierarchy given that parents equal the sum of their children: exact, in plain numpy.

Messages go up, totals are divided downwards, and one test accepts the table (THEORY H8, docs/theory/plain-trees.md).
Nothing is compiled. Every place has a random word of its own, so that a table follows from the key, its row and the
attempt alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, partial
from itertools import chain
from typing import NamedTuple

import numpy as np
from flint import arb

from holdfast.arguments import Refused
from holdfast.arrays import Bools, Ints, Words
from holdfast.noise import Independent, IntegerGaussian, IntegerLaplace
from holdfast.noise.draws.decisions import FIRST_BITS, Digits, Open, decided
from holdfast.noise.precision import working_precision
from holdfast.randomness import Keys, Stream
from holdfast.trees.plain import choices
from holdfast.trees.plain.message import ANY, NOTHING, Message, TooNarrow, Weight, leaf, merged
from holdfast.trees.plain.outlook import Outlook, Weights, levels, outlook
from holdfast.trees.shape.forest import Forest

#: Windows hold all but about e^−NEED of what is guessed, and next time so many times more; one noise alone never
#: reaches further than so many standard deviations, unless that is short.
NEED, WIDER, FARTHEST, SHORT = 21.0, 1.5, 18.0, 30.0
#: Places beside a window for guesses that are too sure of themselves; they grow as windows do.
ROOM = 6
#: Tables that are rejected one after another before windows are made wider.
PATIENCE = 40
#: Windows that are tried until all messages have tails, and how many of them before messages are pulled less.
ATTEMPTS, FIRM = 40, 3
NO_WINDOWS = "no windows were found for this hierarchy: use other scales or fewer bounds, or onto(...)"
#: Outputs of a hierarchy that is drawn here; draws of outputs, a table counting as some more; and products of the
#: values of messages, whose windows are about so many standard deviations wide.
MOST_OUTPUTS, MOST_DRAWS, TABLE = 3_000, 1_000_000, 10
MOST_PRODUCTS, WIDTH = 4e9, 40.0
#: Places that are looked at when totals are divided, where each that differs from others counts as some more; most
#: totals lie in so small a part of their window.
MOST_PLACES, DIVISION, SPREAD = 6e8, 5_000.0, 4.0
#: Outputs of a hierarchy whose weighted sums have their errors from here.
MOST_SUMMED = 10_000
#: Outputs and products where nothing else serves, and it may take minutes.
UTMOST_OUTPUTS, UTMOST_PRODUCTS = 20_000, 4e10


def _width(law: Independent) -> float:
    variances = law.variances[np.isfinite(law.variances)]
    return WIDTH * float(variances.max(initial=0.0)) ** 0.5


def serves(law: Independent, rows: int) -> bool:
    """Whether so many tables are drawn here; it depends on sizes alone, never on data or on what is compiled."""
    wide = _width(law)
    places = law.n * min(rows, wide / SPREAD + 1) * (wide + DIVISION)
    few = law.n <= MOST_OUTPUTS and rows * (law.n + TABLE) <= MOST_DRAWS and places <= MOST_PLACES
    return few and law.n * wide**2 <= MOST_PRODUCTS


def serves_sums(law: Independent) -> bool:
    """Whether errors of weighted sums are computed here."""
    return law.n <= MOST_SUMMED and law.n * _width(law) ** 2 <= MOST_PRODUCTS


def reaches(law: Independent) -> bool:
    """Whether tables can be drawn here at all, in time and memory; it depends on sizes alone."""
    return law.n <= UTMOST_OUTPUTS and law.n * _width(law) ** 2 <= UTMOST_PRODUCTS


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

    forest: Forest
    law: Independent
    low: Ints
    high: Ints
    need: float = NEED
    worsened: Callable[[Message], Message] | None = None  # for tests: messages that are further above

    def draw(self, size: int, stream: Stream) -> Ints:
        """Draw the noise of all outputs, (size, n)."""
        keys = Keys.drawn_from(stream)
        noise = np.empty((size, self.forest.n), dtype=np.int64)
        left, attempt = np.arange(size), 0
        while left.size:
            drawn, accepted = self._trees(attempt // PATIENCE).draw(
                [partial(_stream, keys, row, attempt) for row in left.tolist()]
            )
            noise[left[accepted]] = drawn[accepted]
            left, attempt = left[~accepted], attempt + 1
        return noise

    @cached_property
    def _made(self) -> dict[int, Trees]:
        return {}

    def _trees(self, wider: int) -> Trees:
        """The messages, with windows that were made wider so many times."""
        if wider not in self._made:
            need, pull = self.need * WIDER**wider, 1.0
            for attempt in range(ATTEMPTS):
                try:
                    self._made[wider] = Trees.of(self, need, pull)
                    break
                except TooNarrow:
                    need *= WIDER
                    if attempt >= FIRM:
                        pull /= 2
            else:
                raise Refused(NO_WINDOWS)
        return self._made[wider]

    @cached_property
    def rates(self) -> list[Fraction]:
        """The rate of every output's weight; 0 where it is not measured."""
        rates = [_rate(law) for law in self.law.laws]
        which = self.law.which
        return rates * self.forest.n if which is None else [rates[k] for k in which.tolist()]

    @cached_property
    def guess(self) -> Outlook:
        """Where totals will probably lie."""
        rate = np.array([float(each) for each in self.rates])
        return outlook(self.forest.parents, self.forest.exact, Weights(rate, self.square, self.low, self.high))

    @property
    def square(self) -> bool:
        """Whether the noise is Gaussian."""
        return any(isinstance(law, IntegerGaussian) for law in self.law.laws)


def _stream(keys: Keys, row: int, attempt: int, *path: int | str) -> Stream:
    return keys.at(*path, row, attempt)


def _rate(law: object) -> Fraction:
    """The rate of a law's weight; 0 where nothing is measured."""
    if isinstance(law, IntegerLaplace):
        return 1 / law.scale
    return 1 / (2 * law.sigma2) if isinstance(law, IntegerGaussian) else Fraction(0)


@dataclass(frozen=True, eq=False)
class Trees:
    """All totals with their messages, each before its parts; roots are drawn or, below an exact output, 0."""

    pieces: list[Piece]
    roots: list[int]
    fixed: set[int]
    n: int

    @classmethod
    def of(cls, law: PlainSampler, need: float, pull: float = 1.0) -> Trees:
        """Make the messages from the leaves up, pulled to where the totals are guessed by so much of the guess."""
        return _Making(law, need, pull).trees()

    @cached_property
    def slack(self) -> float:
        """A bound on 1 − ∏c over all totals inside their windows."""
        return 1.01 * sum(piece.message.excess for i, piece in enumerate(self.pieces) if i not in self.fixed)

    def draw(self, streams: list[Callable[..., Stream]]) -> tuple[Ints, Bools]:
        """Draw one table from each stream, (rows, n), and say which are accepted."""
        totals = np.zeros((len(self.pieces), len(streams)), dtype=np.int64)
        size = len(self.pieces) + len(self.roots) + 1
        words = np.array([stream("words").words(size) for stream in streams]).T

        def more(place: int) -> Callable[[int], Stream]:
            return lambda row: streams[row]("digits", place)

        for place, i in enumerate(self.roots, len(self.pieces)):
            totals[i] = choices.drawn(self.pieces[i].message, words[place], more(place))
        noise = np.zeros((len(streams), self.n), dtype=np.int64)
        for i in range(len(self.pieces) - 1, -1, -1):
            piece = self.pieces[i]
            if piece.output >= 0:
                noise[:, piece.output] = totals[i]
            if piece.parts is not None:
                left, right = piece.parts
                totals[left] = choices.divided(piece.message, totals[i], words[i], more(i))
                totals[right] = totals[i] - totals[left]
        return noise, self._accepted(totals, words[-1], streams)

    def _accepted(self, totals: Ints, words: Words, streams: list[Callable[..., Stream]]) -> Bools:
        """Accept every table with probability ∏ c."""
        tested = np.array([i for i in range(len(self.pieces)) if i not in self.fixed])
        low, high = np.array([(self.pieces[i].message.lo, self.pieces[i].message.hi) for i in tested]).T[:, :, None]
        inside = ((low <= totals[tested]) & (totals[tested] <= high)).all(axis=0)
        accepted = inside & (words * 2.0**-64 < 1 - self.slack - 1e-15)
        for row in np.flatnonzero(~accepted).tolist():
            accepted[row] = self._accept(totals[:, row].tolist(), int(words[row]), streams[row])
        return accepted

    def _accept(self, totals: list[int], word: int, stream: Callable[..., Stream]) -> bool:
        """Accept one table with probability ∏ c."""
        tested = [(piece.message, totals[i]) for i, piece in enumerate(self.pieces) if i not in self.fixed]
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
            return known * (1 - arb(self.slack)), known

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

    def __init__(self, law: PlainSampler, need: float, pull: float) -> None:
        self.law, self.need, self.guess = law, need, law.guess
        self.tilt = pull * self.guess.tilt  # any pull gives the exact law; one that is too strong leaves no tails
        self.pieces: list[Piece] = []
        self.guesses: list[Guess] = []
        self.known: dict[object, Message] = {}
        self.number = {id(NOTHING): 0}  # of every message, in the order in which they are made
        self.parents: list[int] = law.forest.parents.tolist()
        self.exact: list[bool] = law.forest.exact.tolist()
        self.children: list[list[int]] = [[] for _ in self.parents]
        for v, parent in enumerate(self.parents):
            if parent >= 0:
                self.children[parent].append(v)

    def trees(self) -> Trees:
        """Go through the outputs, children first."""
        law = self.law
        roots, fixed = [], []
        at: dict[int, int] = {}
        for v in chain.from_iterable(some.tolist() for some in reversed(levels(law.forest.parents))):
            kids = [at[c] for c in self.children[v]]
            if self.exact[v]:
                if kids:
                    fixed.append(self._joined(v, kids, ANY))
                at[v] = self._nothing()
                continue
            parent = self.parents[v]
            above = float(self.tilt[parent]) if parent >= 0 else 0.0
            own = float(self.tilt[v]) if kids else 0.0
            weight = Weight(law.rates[v], law.square, above - own, int(law.low[v]), int(law.high[v]))
            at[v] = self._joined(v, kids, weight) if kids else self._leaf(v, weight)
            if parent < 0:
                roots.append(at[v])
        return Trees(self.pieces, roots, set(fixed), law.forest.n)

    def _keep(self, key: object, message: Message) -> None:
        self.known[key] = message if self.law.worsened is None else self.law.worsened(message)
        self.number[id(self.known[key])] = len(self.number)

    def _add(self, message: Message, output: int, parts: tuple[int, int] | None, guess: Guess) -> int:
        self.pieces.append(Piece(message, output, parts))
        self.guesses.append(guess)
        return len(self.pieces) - 1

    def _nothing(self) -> int:
        return self._add(NOTHING, -1, None, Guess(0.0, 0.0, 0.0, 0.0))

    def _window(self, i: Guess) -> tuple[int, int]:
        """Where a sum lies: as a normal one would, and one of its parts may be far off alone."""
        wide = (2 * self.need * i.variance) ** 0.5 + ROOM * self.need / NEED
        return math.floor(i.mean - wide - i.left), math.ceil(i.mean + wide + i.right)

    def _leaf(self, v: int, weight: Weight) -> int:
        mean, variance = float(self.guess.mean[v]), float(self.guess.variance[v])
        farthest = max(FARTHEST * self.need / NEED * variance**0.5, SHORT)
        left, right = 0.0, 0.0
        if not weight.square:
            left, right = (
                max(side * mean, 0.0) + min(farthest, self.need / max(float(weight.rate) + side * weight.tilt, 1e-300))
                for side in (1, -1)
            )
        lo, hi = self._window(Guess(mean, 0.0 if left else variance, left, right))
        key = (weight, lo, hi)
        if key not in self.known:
            self._keep(key, leaf(weight, lo, hi))
        return self._add(self.known[key], v, None, Guess(mean, variance, left, right))

    def _joined(self, v: int, kids: list[int], weight: Weight) -> int:
        """Join totals two by two, narrow ones first, and give the last one the weight of the output."""
        if len(kids) == 1:
            kids = [*kids, self._nothing()]
        ranked = sorted(kids, key=lambda i: (self.guesses[i].variance, self.number[id(self.pieces[i].message)]))
        while len(ranked) > 2:
            pairs = zip(ranked[::2], ranked[1::2], strict=False)
            joined = [self._pair(i, j, ANY, self.guesses[i].with_(self.guesses[j]), -1) for i, j in pairs]
            ranked = sorted(joined + ranked[len(joined) * 2 :], key=lambda i: self.guesses[i].variance)
        i, j = ranked
        both = self.guesses[i].with_(self.guesses[j])
        if not self.exact[v]:
            both = Guess(float(self.guess.mean[v]), float(self.guess.variance[v]), both.left, both.right)
        return self._pair(i, j, weight, both, -1 if self.exact[v] else v)

    def _pair(self, i: int, j: int, weight: Weight, guess: Guess, output: int) -> int:
        a, b = self.pieces[i].message, self.pieces[j].message
        window = self._window(guess)
        key = (id(a), id(b), weight, window)
        if key not in self.known:
            self._keep(key, merged(a, b, weight, *window))
        return self._add(self.known[key], output, (i, j), guess)
