"""A hierarchy drawn in parts that lie apart: messages of parts go up, totals of their roots come down.

A part makes the messages below its roots; the top has what is kept of a root's children where another forest has these
children. It draws the totals of the roots and tests them; tests that doubles leave undecided go down with the totals,
since they need the children's messages. So every total is drawn, tested and divided once, as in a forest that lies in
one place (docs/theory/pieces.md, section 4).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import count
from typing import ClassVar, NamedTuple

import numpy as np
from flint import arb

from holdfast.arrays import Floats, Ints
from holdfast.noise import Independent
from holdfast.randomness import Keys, Stream
from holdfast.trees.circles.drawing import Drawing
from holdfast.trees.circles.messages import Messages
from holdfast.trees.circles.outline import Cuts, Outline, outline
from holdfast.trees.circles.rows import Sums
from holdfast.trees.circles.sampler import CLEAR, Sampler, summed
from holdfast.trees.circles.testing import Doubt
from holdfast.trees.circles.tilts import Curve
from holdfast.trees.shape.forest import Forest

#: A number that travels: digits and exponent of the middle of a ball, and of its radius.
Ball = tuple[tuple[int, int], tuple[int, int]]


class Root(NamedTuple):
    """A root of a part: how the total of its children answers to tilts (None: it is a leaf), and its bounds."""

    curve: Curve | None
    low: int
    high: int


class Open(NamedTuple):
    """A test of a root that its part decides (see Doubt)."""

    word: int
    message: Ball
    above: float
    norm: float


#: What a part gets for each root: its noise, and a test that is not decided. It answers whether all is accepted.
Ask = Callable[[int, Ints, Sequence[Open | None]], bool]


@dataclass(frozen=True, eq=False)
class Part(Sampler):
    """The law of the noise below roots for given noise of these; `pull` is the tilt above each of them."""

    pull: Floats | None = None
    clear: ClassVar[float] = CLEAR / 1024  # what one part rejects, all are drawn again for

    @cached_property
    def roots(self) -> Ints:
        """The outputs that are roots."""
        return np.flatnonzero(self.forest.parents < 0)

    @cached_property
    def shape(self) -> Outline:
        """The forest as the messages see it; roots have nodes though nothing measures them."""
        return outline(self.forest, self.which, self.low, self.high, kept=self.forest.parents < 0)

    @cached_property
    def nodes(self) -> Ints:
        """The node of each root; −1: its noise is always 0, or it is a leaf."""
        nodes = np.flatnonzero((self.shape.parent < 0) & ~self.shape.fixed)
        result = np.full(self.roots.size, -1)
        result[np.searchsorted(self.roots, self.shape.output[nodes])] = nodes
        return result

    def _guess(self, aliases: float) -> Messages:
        pull = np.zeros(self.shape.size)
        if self.pull is not None:
            some = self.nodes >= 0
            pull[self.nodes[some]] = self.pull[some]
        return Messages(self.shape, self.weights, aliases, pull)

    def made(self, aliases: float) -> Messages:
        """See Sampler."""
        return self._guess(aliases).made()

    def answers(self) -> list[Root | None]:
        """What is known of each root before messages are made; None: its noise is always 0."""
        shape, responses = self.shape, self._guess(self.aliases).responses
        result: list[Root | None] = []
        for root, node in zip(self.roots.tolist(), self.nodes.tolist(), strict=True):
            if node >= 0:
                curve = Curve(responses.grid, responses.curves[node].astype(np.float64))
                result.append(Root(curve, int(shape.low[node]), int(shape.high[node])))
            else:
                leaf = root in shape.alone
                result.append(Root(None, int(self.low[root]), int(self.high[root])) if leaf else None)
        return result

    def sums(self) -> list[Sums | None]:
        """What the messages of roots are made from."""
        return [None if node < 0 else self.messages.stored(node) for node in self.nodes.tolist()]

    def drawn(self, totals: Ints, tests: Sequence[Open | None], attempt: int, keys: Keys) -> tuple[Ints, bool]:
        """The noise of all outputs for totals of the roots, and whether it is accepted.

        Trees below exact outputs have nothing in common with others, and are drawn until they are accepted.
        """
        shape = self.shape
        noise = np.zeros((1, self.forest.n), dtype=np.int64)
        at_roots = noise[0].copy()
        at_roots[self.roots] = totals
        outputs, tree = shape.output_tree
        left = np.ones(shape.trees, dtype=bool)
        bound = np.ones(shape.trees, dtype=bool)
        bound[: shape.trees - shape.alone.size] = ~shape.fixed[shape.parent < 0]
        for again in count():
            drawing = Drawing(self, 1, keys.at(attempt, again))
            if again == 0:
                for node, test in zip(self.nodes.tolist(), tests, strict=True):
                    if test is not None:
                        drawing.pending[node, 0] = Doubt(test.word, arb(*test.message), test.above, test.norm)
            leaves, kept = drawing.run(at_roots)
            now = left & kept[:, 0]
            noise[0, outputs[now[tree]]] = leaves[now[tree], 0]
            left &= ~now
            if (left & bound).any():
                return noise[0], False
            if not left.any():
                break
        summed(self.forest, noise)
        return noise[0], True


@dataclass(frozen=True, eq=False)
class Top(Sampler):
    """The law of the noise of what is above some roots, and of these: the last outputs of the forest."""

    below: Sequence[Root | None] = ()
    sums: Sequence[Sums | None] = ()
    clear: ClassVar[float] = Part.clear

    @classmethod
    def above(cls, forest: Forest, law: Independent, low: Ints, high: Ints, below: Sequence[Root | None]) -> Top:
        """The top of a forest in which roots of parts are leaves."""
        exact = forest.exact.copy()
        exact[forest.n - len(below) :] |= np.array([each is None for each in below], dtype=bool)
        return cls.of(Forest(forest.parents, exact), law, low, high, below=below)

    @cached_property
    def shape(self) -> Outline:
        """The forest as the messages see it; roots of parts have no children in it."""
        first = self.forest.n - len(self.below)
        at, low, high = np.zeros(self.forest.n, dtype=bool), self.low.copy(), self.high.copy()
        for k, root in enumerate(self.below, first):
            if root is not None:
                at[k], low[k], high[k] = root.curve is not None, root.low, root.high
        return outline(self.forest, self.which, low, high, cuts=Cuts(at, self.low, self.high), kept=at)

    @cached_property
    def nodes(self) -> Ints:
        """The node of each root of a part; −1: it has none."""
        first, shape = self.forest.n - len(self.below), self.shape
        result = np.full(len(self.below), -1)
        some = np.flatnonzero(shape.output >= first)
        result[shape.output[some] - first] = some
        return result

    def _guess(self, aliases: float) -> Messages:
        curves = {
            node: root.curve
            for node, root in zip(self.nodes.tolist(), self.below, strict=True)
            if root is not None and root.curve is not None
        }
        return Messages(self.shape, self.weights, aliases, cut=curves)

    def made(self, aliases: float) -> Messages:
        """See Sampler."""
        pairs = zip(self.nodes.tolist(), self.sums, strict=True)
        return self._guess(aliases).made({node: sums for node, sums in pairs if sums is not None})

    @property
    def pulls(self) -> Floats:
        """The tilt above each root of a part, a guess."""
        above = self._guess(self.aliases).above(np.maximum(self.nodes, 0)) if self.shape.size else np.zeros(1)
        return np.where(self.nodes >= 0, above, 0.0)

    def drawn(self, stream: Stream) -> tuple[Ints, list[Open | None]] | None:
        """The noise of all outputs and the tests of roots of parts that are not decided; None: it is rejected."""
        drawing = Drawing(self, 1, stream)
        leaves, kept = drawing.run()
        if not kept.all():
            return None
        noise = np.zeros((1, self.forest.n), dtype=np.int64)
        noise[0, self.shape.output_tree[0]] = leaves[:, 0]
        some = self.nodes >= 0
        noise[0, self.forest.n - len(self.below) :][some] = drawing.totals[self.nodes[some], 0]
        summed(self.forest, noise)
        tests = [_sent(drawing.pending.get((node, 0))) for node in self.nodes.tolist()]
        return noise[0], tests

    def together(self, ask: Ask, keys: Keys) -> Ints:
        """The noise of all outputs, drawn until the top and all parts accept it; parts are asked about each attempt."""
        first = self.forest.n - len(self.below)
        for attempt in count():
            drawn = self.drawn(keys.at(attempt))
            if drawn is not None and ask(attempt, drawn[0][first:], drawn[1]):
                break
        assert drawn is not None
        return drawn[0]


def _sent(doubt: Doubt | None) -> Open | None:
    if doubt is None:
        return None
    middle, radius = (tuple(map(int, each.man_exp())) for each in (doubt.message.mid(), doubt.message.rad()))
    return Open(doubt.word, (middle, radius), doubt.above, doubt.norm)  # type: ignore[arg-type]
