"""Draws of integer noise on a hierarchy given that parents equal the sum of their children: exact, in plain numpy.

Messages go up, totals are divided downwards, and one test accepts the table (THEORY H8, docs/theory/plain-trees.md).
Nothing is compiled. Every place has a random word of its own, so that a table follows from the key, its row and the
attempt alone.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property, partial
from typing import TypeVar

import numpy as np

from holdfast.arguments import LARGEST
from holdfast.arrays import Ints, Owner, kept
from holdfast.noise import Independent, IntegerGaussian, IntegerLaplace
from holdfast.randomness import Keys, Stream
from holdfast.trees.plain.making import NEED, Branches, Windows, made
from holdfast.trees.plain.message import Message, TooNarrow
from holdfast.trees.plain.outlook import ROUNDS, Outlook, Weights, outlook
from holdfast.trees.plain.table import Trees
from holdfast.trees.shape.forest import Forest

#: How many times more windows hold the next time.
WIDER = 1.5
#: Tables that are rejected one after another before windows are made wider; large tables, fewer.
PATIENCE, ALL_PATIENCE = 40, 120_000
#: Windows that are tried before messages are pulled less, and how many rounds their guess has.
FIRM, ROUNDS_OF = 3, (ROUNDS, 60, 240)
#: Outputs of a hierarchy that is drawn here; draws of outputs, a table counting as some more; and products of the
#: values of messages, whose windows are about so many standard deviations wide.
MOST_OUTPUTS, MOST_DRAWS, TABLE = 3_000, 1_000_000, 10
MOST_PRODUCTS, WIDTH = 4e9, 40.0
#: Places that are looked at when totals are divided, where each that differs from others counts as some more; most
#: totals lie in so small a part of their window.
MOST_PLACES, DIVISION, SPREAD = 6e8, 5_000.0, 4.0
#: Outputs, and places of messages, of a hierarchy whose messages are all kept at once.
MOST_KEPT, MOST_KEPT_PLACES = 20_000, 5e7
#: Products of the values of all messages, and places of those of outputs with children, where nothing else serves:
#: hours, and 4 GiB. A wide sum takes transforms, and as long as so many products for each of its places.
UTMOST_PRODUCTS, UTMOST_KEPT, TRANSFORMS = 4e13, 5e8, 3_500.0


Result = TypeVar("Result")


def _width(law: Independent) -> float:
    used = (0,) if law.which is None else np.unique(law.which).tolist()
    laws = (law.laws[place] for place in used)
    return WIDTH * max((float(each.variance) for each in laws if each is not None), default=0.0) ** 0.5


def serves(law: Independent, rows: int) -> bool:
    """Whether so many tables are drawn here; it depends on sizes alone, never on data or on what is compiled."""
    wide = _width(law)
    places = law.n * min(rows, wide / SPREAD + 1) * (wide + DIVISION)
    few = law.n <= MOST_OUTPUTS and rows * (law.n + TABLE) <= MOST_DRAWS and places <= MOST_PLACES
    return few and law.n * wide**2 <= MOST_PRODUCTS


def reaches(forest: Forest, law: Independent) -> bool:
    """Whether tables can be drawn here at all, in time and memory; it depends on sizes alone, which are public."""
    wide, inner = _width(law) + 1, np.unique(forest.parents).size
    kept = inner + law.n / _together(law)
    return law.n * wide * min(wide, TRANSFORMS) <= UTMOST_PRODUCTS and kept * wide <= UTMOST_KEPT


def _together(law: Independent) -> int:
    """The most children of one output whose messages are kept at once."""
    return max(int(MOST_KEPT_PLACES / (_width(law) + 1)), 16)


@dataclass(frozen=True, eq=False)
class PlainSampler(Owner):
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
    blurs: bool = True  # whether sums of wide messages come from a transform
    most_kept: int = MOST_KEPT

    def worse(self, message: Message) -> Message:
        """A message as it is used."""
        return message if self.worsened is None else self.worsened(message)

    def draw(self, size: int, stream: Stream) -> Ints:
        """Draw the noise of all outputs, (size, n)."""
        keys = Keys.drawn_from(stream)
        if self.forest.n > self.most_kept or self.forest.n * _width(self.law) > MOST_KEPT_PLACES:
            large = self._in_groups
            noise = np.zeros((size, large.forest.n), dtype=np.int64)
            for row in range(size):
                large._draw_large(noise[row], keys, row)
            return noise[:, : self.forest.n]
        noise = np.zeros((size, self.forest.n), dtype=np.int64)
        left, attempt = np.arange(size), 0
        while left.size:
            trees = self._trees(attempt // PATIENCE)
            totals, accepted = trees.draw([partial(_stream, keys, row, attempt) for row in left.tolist()])
            places, outputs = trees.shown
            noise[np.ix_(left[accepted], outputs)] = totals[np.ix_(places, accepted)].T
            left, attempt = left[~accepted], attempt + 1
        return noise

    @cached_property
    def _in_groups(self) -> PlainSampler:
        """The same law with children in groups, where there are too many to keep their messages at once.

        A group is an output that nothing measures or bounds, so it changes nothing.
        """
        parents, most = self.forest.parents, _together(self.law)
        order = np.lexsort((self.high, self.low, parents))
        above = parents[order]
        place = np.arange(order.size) - np.searchsorted(above, above)  # among its siblings
        many = (above >= 0) & (np.searchsorted(above, above, "right") - np.searchsorted(above, above) > most)
        new = many & (place % most == 0)
        if not new.any():
            return self
        grouped, groups = parents.copy(), int(new.sum())
        grouped[order[many]] = order.size - 1 + np.cumsum(new)[many]
        n = order.size + groups
        which = np.zeros(order.size, dtype=np.int64) if self.law.which is None else self.law.which
        return replace(
            self,
            forest=Forest(np.append(grouped, above[new]), np.append(self.forest.exact, np.zeros(groups, dtype=bool))),
            law=Independent((*self.law.laws, None), np.append(which, np.full(groups, len(self.law.laws))), n),
            low=np.append(self.low, np.full(groups, -LARGEST)),
            high=np.append(self.high, np.full(groups, LARGEST)),
        )

    def _draw_large(self, noise: Ints, keys: Keys, row: int) -> None:
        """Draw one table of a hierarchy whose messages are not all kept."""
        patience, attempt = max(1, min(PATIENCE, ALL_PATIENCE // self.forest.n)), 0
        while not self._branches(attempt // patience).draw(noise, partial(_streams, keys, row, attempt)):
            attempt += 1

    @cached_property
    def _made(self) -> dict[int, Trees]:
        return {}

    def _trees(self, wider: int) -> Trees:
        """The messages, with windows that were made wider so many times."""
        if wider not in self._made:
            self._made[wider] = self._first_of(lambda windows: made(self, windows), wider)
        return self._made[wider]

    @cached_property
    def _last(self) -> dict[int, Branches]:
        return {}

    def _branches(self, wider: int) -> Branches:
        """The same for a large hierarchy; only the last are kept."""
        if wider not in self._last:
            self._last.clear()
            self._last[wider] = self._first_of(lambda windows: Branches(self, windows), wider)
        return self._last[wider]

    def _first_of(self, make: Callable[[Windows], Result], wider: int) -> Result:
        """What is made of the first windows that leave tails to all messages.

        They become wider; where that does not help, totals are pulled less and less to where they are guessed. Without
        a pull every weight falls away from 0, and windows that are wide enough leave tails.
        """
        need, pull, attempt = self.need * WIDER**wider, 1.0, 0
        while True:
            try:
                return make(Windows(need, self._guess(ROUNDS_OF[min(attempt, 2)]), pull, attempt > 0))
            except TooNarrow:
                attempt, need = attempt + 1, need * WIDER
                if attempt > FIRM:
                    pull /= 2

    @cached_property
    def rates(self) -> list[Fraction]:
        """The rate of every output's weight; 0 where it is not measured."""
        rates = [_rate(law) for law in self.law.laws]
        which = self.law.which
        return rates * self.forest.n if which is None else [rates[k] for k in which.tolist()]

    @kept
    def _guess(self, rounds: int) -> Outlook:
        """Where totals will probably lie."""
        rate = np.array([float(each) for each in self.rates])
        weights = Weights(rate, self.square, self.low, self.high)
        return outlook(self.forest.parents, self.forest.exact, weights, rounds)

    @property
    def square(self) -> bool:
        """Whether the noise is Gaussian."""
        return any(isinstance(law, IntegerGaussian) for law in self.law.laws)


def _streams(keys: Keys, row: int, attempt: int, v: int) -> Callable[..., Stream]:
    return lambda *path: keys.at(*path, row, attempt, v)


def _stream(keys: Keys, row: int, attempt: int, *path: int | str) -> Stream:
    return keys.at(*path, row, attempt)


def _rate(law: object) -> Fraction:
    """The rate of a law's weight; 0 where nothing is measured."""
    if isinstance(law, IntegerLaplace):
        return 1 / law.scale
    return 1 / (2 * law.sigma2) if isinstance(law, IntegerGaussian) else Fraction(0)
