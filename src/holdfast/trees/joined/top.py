"""The top of a hierarchy whose subtrees are drawn elsewhere: their messages stand where leaves do.

Every root of a part is an output of the top with one child, a leaf whose message is the part's. That message has the
root's own weight and bounds already and is tested where it was made; everything above it is as in every hierarchy.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from holdfast.arguments import LARGEST, Refused
from holdfast.arrays import Bools, Floats, Ints
from holdfast.noise import Independent
from holdfast.randomness import Keys
from holdfast.trees.joined.part import SENT, Graft
from holdfast.trees.messages import leaf_kinds
from holdfast.trees.messages.messages import Messages, Tests
from holdfast.trees.messages.outlook import Outlook
from holdfast.trees.messages.parcels import Shelf
from holdfast.trees.messages.responses import Leaves
from holdfast.trees.messages.sampler import Sampler
from holdfast.trees.shape.forest import Forest

#: A window fits if it holds so many standard deviations on both sides of where its total is guessed.
FITS = 5.0


@dataclass(frozen=True, eq=False)
class Grafted(Messages):
    """The messages of a forest whose last outputs are leaves with these messages."""

    grafts: tuple[Graft, ...] = ()

    @cached_property
    def kinds_of_leaves(self) -> tuple[Leaves, Ints]:
        """The kinds of leaves; every graft is a kind of its own, after all others."""
        first, size = self.forest.n - len(self.grafts), len(self.grafts)
        law_of = self.law_of.copy()
        law_of[first:] = 0  # none: what they weigh is in their messages
        leaves, kind = leaf_kinds.kinds_of_leaves(self.forest, law_of, self.bounds, self.pulled, self.limits)
        kind = kind.copy()
        kind[first:] = leaves.law.size + np.arange(size)
        low, high = (np.array([each[end] for each in self.grafts], dtype=np.int64) for end in (0, 1))
        law = np.concatenate([leaves.law, np.zeros(size, dtype=np.int64)])
        ends = np.concatenate([leaves.low, low]), np.concatenate([leaves.high, high])
        return Leaves(law, *ends, tuple(each.answers for each in self.grafts)), kind

    @cached_property
    def places(self) -> Ints:
        """The pieces of the grafts."""
        p, first = self.pieces, self.forest.n - len(self.grafts)
        place = np.empty(self.forest.n, dtype=np.int64)
        place[p.leaves] = p.parcel_of_leaf
        return place[first:]

    @cached_property
    def wanted(self) -> tuple[Floats, Floats]:
        """The means that are guessed for the totals of grafts, and the slopes at them."""
        o, kinds = self.prospect.outlook, self.pieces.kind[self.places]
        return o.centre[kinds], o.tilt[kinds]

    @cached_property
    def guess(self) -> Outlook:
        """Where totals will probably lie; the windows of grafts are those of their messages."""
        _ = self.wanted
        found = self.prospect.outlook
        for k, graft in zip(self.pieces.kind[self.places], self.grafts, strict=True):
            assert graft.message is not None
            _, found.low[k], found.high[k], *_ = graft.message
            found.tilt[k] = graft.message[1 + SENT.index("tilt")]
        return found

    def fresh(self, parcels: Ints) -> Ints:
        """The parcels that are no grafts."""
        return parcels[~np.isin(parcels, self.pieces.kind[self.places])]

    def put_known(self, height: int, shelf: Shelf) -> None:
        """Put the messages of grafts on the shelf; their tests belong to their parts."""
        for k, graft in zip(self.pieces.kind[self.places], self.grafts, strict=True) if height == 0 else ():
            assert graft.message is not None
            values, *rest = graft.message
            shelf.values[shelf.offset[k] : shelf.offset[k] + values.size] = values
            for name, value in zip(SENT, rest, strict=True):
                getattr(shelf, name)[k] = value

    @cached_property
    def order(self) -> list[Ints]:
        """Pieces by height, without grafts, which are not divided here."""
        parcels, *others = self.levels
        return [parcels[~np.isin(parcels, self.places)], *others]

    @property
    def untested(self) -> Bools:
        """Pieces whose total is not tested here."""
        found = self.pieces.root == 2
        found[self.places] = True
        return found

    @cached_property
    def tests(self) -> Tests:
        """The groups of pieces that are tested together: grafts are in none."""
        tree = self.trees
        pieces = np.setdiff1d(np.arange(self.pieces.size), self.places)
        pieces = pieces[np.argsort(tree[pieces], kind="stable")]
        return Tests.of(pieces, tree, self.shelf.slack[self.pieces.kind])


@dataclass(frozen=True, eq=False)
class Top(Sampler):
    """The law of the noise of everything above some roots, and of these, for the messages of the roots."""

    grafts: tuple[Graft, ...] = ()

    @classmethod
    def of(cls, forest: Forest, law: Independent, low: Ints, high: Ints, below: tuple[Graft | None, ...]) -> Top:
        """The last outputs of the forest are roots of parts, which tell of them; None: their noise is 0.

        Laws and bounds of these are not read.
        """
        roots = forest.n - len(below) + np.arange(len(below))
        told = np.array([each is not None for each in below], dtype=np.bool_)
        exact = forest.exact.copy()
        exact[roots[~told]] = True
        grafts = tuple(each for each in below if each is not None)
        ends = [np.array([each[end] for each in grafts], dtype=np.int64) for end in (0, 1)]
        low, high = low.copy(), high.copy()
        low[roots], high[roots] = -LARGEST, LARGEST
        parents = np.concatenate([forest.parents, roots[told]])
        wider = Forest(parents, np.concatenate([exact, np.zeros(len(grafts), dtype=np.bool_)]))
        which = np.full(parents.size, len(law.laws), dtype=np.int32)  # a law more: not measured
        which[: roots[0] if roots.size else forest.n] = law.complete[: roots[0] if roots.size else forest.n]
        laws = Independent((*law.laws, None), which, parents.size)
        return cls(wider, laws, np.concatenate([low, ends[0]]), np.concatenate([high, ends[1]]), grafts=grafts)

    @cached_property
    def messages(self) -> Grafted:
        """The messages as first guessed."""
        given = (self.forest, self.law, self.low, self.high, self.need, self.need_inside, self.workers, self.learn)
        return Grafted(*given, grafts=self.grafts)

    @property
    def pulls(self) -> tuple[Floats, Bools]:
        """The slope at the root of every graft, and whether it has no message yet, or one whose window does not fit."""
        centre, slope = self.messages.wanted
        lacks = np.ones(len(self.grafts), dtype=np.bool_)
        for i, graft in enumerate(self.grafts):
            if graft.message is not None:
                far = FITS * np.interp(slope[i], graft.answers.grid, graft.answers.variance) ** 0.5
                _, lo, hi, *_ = graft.message
                lacks[i] = lo > max(centre[i] - far, graft.lowest) or hi < min(centre[i] + far, graft.highest)
        return slope, lacks

    @property
    def possible(self) -> bool:
        """Whether messages can be made; that depends on counts and public things alone."""
        try:
            return self.messages.pieces.size == 0 or self.ready is not None
        except Refused:
            return False

    def drawn(self, attempt: int, keys: Keys) -> tuple[Ints, Ints, set[int]]:
        """The noise of an attempt, the tree of every output (−1: its noise is 0), and the trees that are rejected."""
        n = self.forest.n
        if self.messages.pieces.size == 0:
            return np.zeros(n, dtype=np.int64), np.full(n, -1), set()
        noise = np.zeros((n, 1), dtype=np.int64)
        rejected = self._draw_rows(noise, keys, 0, attempt).get(0, set())
        return noise[:, 0], self.ready.trees_of_outputs, rejected
