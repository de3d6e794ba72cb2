"""Messages in the making, from the leaves up: children are joined two by two, on windows where totals are guessed."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import NamedTuple, Protocol

import numpy as np

from holdfast.arrays import Floats, Ints
from holdfast.progress import Progress
from holdfast.trees.plain.message import ANY, NOTHING, Message, Weight, leaf, merged
from holdfast.trees.plain.outlook import Outlook, levels
from holdfast.trees.plain.table import Piece, Streams, Trees
from holdfast.trees.shape.forest import Forest

#: Windows hold all but about e^−NEED of what is guessed; one noise alone never reaches further than so many standard
#: deviations, unless that is short.
NEED, FARTHEST, SHORT = 21.0, 18.0, 30.0
#: Places beside a window for guesses that are too sure of themselves; they grow as windows do.
ROOM = 6


class Law(Protocol):
    """What is drawn: independent noise on a forest within bounds."""

    @property
    def forest(self) -> Forest:
        """The hierarchy."""

    @property
    def low(self) -> Ints:
        """The least noise of every output."""

    @property
    def high(self) -> Ints:
        """The largest noise of every output."""

    @property
    def blurs(self) -> bool:
        """Whether sums of wide messages come from a transform."""

    @property
    def rates(self) -> list[Fraction]:
        """The rate of every output's weight."""

    @property
    def square(self) -> bool:
        """Whether the noise is Gaussian."""

    def worse(self, message: Message) -> Message:
        """A message as it is used, which tests put further above."""


class Guess(NamedTuple):
    """Mean and variance of a total, how far one noise in it may reach alone, down and up, and where messages put it."""

    mean: float
    variance: float
    left: float
    right: float
    own: float

    def with_(self, other: Guess) -> Guess:
        """The sum of two totals."""
        return Guess(
            self.mean + other.mean,
            self.variance + other.variance,
            max(self.left, other.left),
            max(self.right, other.right),
            self.own + other.own,
        )


class Windows(NamedTuple):
    """How messages are made: how much of a guess windows hold, the guess, and how much of its pull is used.

    Any pull gives the exact law; one that is too strong leaves no tails. Windows may hold both what is guessed and what
    messages say of themselves.
    """

    need: float
    guess: Outlook
    pull: float
    both: bool = False

    @property
    def tilt(self) -> Floats:
        """The tilt of every output's children."""
        return self.pull * self.guess.tilt

    def around(self, i: Guess) -> tuple[int, int]:
        """Where a sum lies: as a normal one would, and one of its parts may be far off alone."""
        wide = (2 * self.need * i.variance) ** 0.5 + ROOM * self.need / NEED
        return math.floor(min(i.mean, i.own) - wide - i.left), math.ceil(max(i.mean, i.own) + wide + i.right)

    def own(self, message: Message, mean: float) -> float:
        """Where a message puts its total."""
        return message.mean if self.both else mean


class Making:
    """Totals and their messages, children before parents: parts that are alike share a message."""

    def __init__(self, law: Law, windows: Windows) -> None:
        self.law, self.windows, self.tilt = law, windows, windows.tilt
        self.pieces: list[Piece] = []
        self.guesses: list[Guess] = []
        self.known: dict[object, Message] = {}
        self.leaves: dict[int, tuple[Message, Guess]] = {}
        self.number = {id(NOTHING): 0}  # of every message, in the order in which they are made
        self.exact: list[bool] = law.forest.exact.tolist()

    def clear(self) -> None:
        """Begin anew, with nothing that was made."""
        self.pieces, self.guesses, self.known, self.leaves = [], [], {}, {}
        self.number = {id(NOTHING): 0}

    def weight(self, v: int, inner: bool) -> Weight:
        """The weight of an output, with its tilt."""
        law, parent = self.law, int(self.law.forest.parents[v])
        above = float(self.tilt[parent]) if parent >= 0 else 0.0
        own = float(self.tilt[v]) if inner else 0.0
        return Weight(law.rates[v], law.square, above - own, int(law.low[v]), int(law.high[v]))

    def _keep(self, key: object, message: Message) -> None:
        self.known[key] = self.law.worse(message)
        self.number[id(self.known[key])] = len(self.number)

    def add(self, message: Message, output: int, parts: tuple[int, int] | None, guess: Guess) -> int:
        """Add a total; return its place."""
        self.number.setdefault(id(message), len(self.number))
        self.pieces.append(Piece(message, output, parts))
        self.guesses.append(guess)
        return len(self.pieces) - 1

    def nothing(self) -> int:
        """What an exact output is to those above it."""
        return self.add(NOTHING, -1, None, Guess(0.0, 0.0, 0.0, 0.0, 0.0))

    def leaf(self, v: int) -> int:
        """The noise of a leaf."""
        need, guess = self.windows[:2]
        alike = int(guess.alike[v])
        if alike in self.leaves:
            return self.add(self.leaves[alike][0], v, None, self.leaves[alike][1])
        weight = self.weight(v, False)
        mean, variance = float(guess.mean[v]), float(guess.variance[v])
        farthest = max(FARTHEST * need / NEED * variance**0.5, SHORT)
        left, right = 0.0, 0.0
        if not weight.square:
            left, right = (
                max(side * mean, 0.0) + min(farthest, need / max(float(weight.rate) + side * weight.tilt, 1e-300))
                for side in (1, -1)
            )
        lo, hi = self.windows.around(Guess(mean, 0.0 if left else variance, left, right, mean))
        key = (weight, lo, hi)
        if key not in self.known:
            self._keep(key, leaf(weight, lo, hi))
        own = self.windows.own(self.known[key], mean)
        self.leaves[alike] = self.known[key], Guess(mean, variance, left, right, own)
        return self.leaf(v)

    def joined(self, v: int, kids: list[int]) -> int:
        """Join totals two by two, narrow ones first, and give the last one the weight of the output."""
        if len(kids) == 1:
            kids = [*kids, self.nothing()]
        ranked = sorted(kids, key=lambda i: (self.guesses[i].variance, self.number[id(self.pieces[i].message)]))
        while len(ranked) > 2:
            pairs = zip(ranked[::2], ranked[1::2], strict=False)
            joined = [self._pair(i, j, ANY, self.guesses[i].with_(self.guesses[j]), -1) for i, j in pairs]
            ranked = sorted(joined + ranked[len(joined) * 2 :], key=lambda i: self.guesses[i].variance)
        i, j = ranked
        both = self.guesses[i].with_(self.guesses[j])
        if self.exact[v]:
            return self._pair(i, j, ANY, both, -1)
        guess = self.windows.guess
        mean = float(guess.mean[v])
        both = Guess(mean, float(guess.variance[v]), both.left, both.right, mean)
        result = self._pair(i, j, self.weight(v, True), both, v)
        self.guesses[result] = both._replace(own=self.windows.own(self.pieces[result].message, mean))
        return result

    def _pair(self, i: int, j: int, weight: Weight, guess: Guess, output: int) -> int:
        a, b = self.pieces[i].message, self.pieces[j].message
        window = self.windows.around(guess)
        key = (id(a), id(b), weight, window)
        if key not in self.known:
            self._keep(key, merged(a, b, weight, *window, self.law.blurs))
        return self.add(self.known[key], output, (i, j), guess)


def made(law: Law, windows: Windows) -> Trees:
    """All totals of a hierarchy with their messages, from the leaves up."""
    making = Making(law, windows)
    parents: list[int] = law.forest.parents.tolist()
    children: list[list[int]] = [[] for _ in parents]
    for v, parent in enumerate(parents):
        if parent >= 0:
            children[parent].append(v)
    roots, fixed = [], []
    at: dict[int, int] = {}
    for some in reversed(levels(law.forest.parents)):
        for v in some.tolist():
            kids = [at[c] for c in children[v]]
            if making.exact[v]:
                if kids:
                    fixed.append(making.joined(v, kids))
                at[v] = making.nothing()
                continue
            at[v] = making.joined(v, kids) if kids else making.leaf(v)
            if parents[v] < 0:
                roots.append(at[v])
    return Trees(making.pieces, roots, frozenset(fixed))


class Branches:
    """A hierarchy of any size: messages are kept of outputs with children only, and those between are made twice."""

    def __init__(self, law: Law, windows: Windows) -> None:
        forest = law.forest
        self._making, self._parents = Making(law, windows), forest.parents
        self._children = np.argsort(forest.parents, kind="stable")
        self._first = np.searchsorted(forest.parents[self._children], np.arange(forest.n + 1))
        inner = self._first[1:] > self._first[:-1]
        self._kept: dict[int, tuple[Message, Guess]] = {}
        self._at: tuple[int, Trees] | None = None
        self._order: list[int] = np.concatenate([some[inner[some]] for some in levels(forest.parents)]).tolist()
        self._lonely: list[int] = np.flatnonzero(~inner & (forest.parents < 0) & ~forest.exact).tolist()
        with Progress("making messages", len(self._order)) as progress:
            for v in reversed(self._order):
                pieces = self._below(v).pieces
                if not self._making.exact[v]:
                    self._kept[v] = pieces[-1].message.alone(), self._making.guesses[-1]
                progress.advance(1)

    def _below(self, v: int) -> Trees:
        """How the total of an output, which comes last, is divided among its children; the last one is kept."""
        if self._at is not None and self._at[0] == v:
            return self._at[1]
        making, exact = self._making, self._making.exact
        making.clear()
        kids, elsewhere = [], []
        for c in self._children[self._first[v] : self._first[v + 1]].tolist():
            if exact[c]:
                kids.append(making.nothing())
            elif c in self._kept:
                message, guess = self._kept[c]
                kids.append(making.add(message.alone(), c, None, guess))
                elsewhere.append(kids[-1])
            else:
                kids.append(making.leaf(c))
        last = making.joined(v, kids)
        trees = Trees(making.pieces, [last], frozenset([last] if exact[v] else []), frozenset(elsewhere))
        self._at = v, trees
        return trees

    def _alone(self, v: int) -> Trees:
        """A root without children."""
        self._making.clear()
        return Trees(self._making.pieces, [self._making.leaf(v)], frozenset())

    def draw(self, noise: Ints, streams: Callable[[int], Streams]) -> bool:
        """Draw a table from the roots down, each total by streams of its own; return whether it is accepted."""
        with Progress("drawing", len(self._order) + len(self._lonely)) as progress:
            for v in self._order + self._lonely:
                given = 0 if self._making.exact[v] else None if self._parents[v] < 0 else int(noise[v])
                trees = self._below(v) if self._first[v] < self._first[v + 1] else self._alone(v)
                totals, accepted = trees.draw([streams(v)], given)
                if not accepted[0]:
                    return False
                places, outputs = trees.shown
                noise[outputs] = totals[places, 0]
                progress.advance(1)
        return True
