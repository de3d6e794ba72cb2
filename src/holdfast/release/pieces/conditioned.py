"""Conditional noise (`given`) piece by piece: messages go up, totals come down, and all pieces are accepted together.

A piece tells how its roots' totals answer to slopes; the top guesses from all of them how hard each root is pulled; the
piece makes its messages for that, and the top draws the totals of all roots from the messages of the roots. A table is
accepted with the product of what its pieces accept (docs/theory/pieces.md, section 4); a tree that is rejected is drawn
again as a whole, from the words of its next attempt. Where counts leave some part without messages, the hierarchy is
drawn undivided: a refusal would tell about them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

import numpy as np

from holdfast.arguments import LARGEST, Refused
from holdfast.arrays import Array, Bools, Floats, Ints
from holdfast.domains import Hierarchy
from holdfast.randomness import Keys
from holdfast.release.pieces.passes import Work
from holdfast.trees import Forest
from holdfast.trees.joined.part import Graft, Part
from holdfast.trees.joined.top import Top

#: How many times, at most, pieces make their messages again because the guess of the slopes at their roots was poor.
ROUNDS = 4


class Undivided(Exception):
    """Messages of some part cannot be made for these counts: the hierarchy must be drawn undivided, by the same law."""


class Told(NamedTuple):
    """What a piece tells about its roots: their true values, and how their noise answers; None: it is always 0."""

    truth: Ints
    grafts: tuple[Graft | None, ...]


class Tasks(Protocol):
    """Who does the work of the pieces below the cut, each of `by` roots; arrays are over all roots, piece by piece."""

    @property
    def by(self) -> int:
        """How many roots each piece has."""

    def told(self) -> Sequence[Told]:
        """What every piece tells before messages are made."""

    def grafts(self, some: Ints, pull: Floats) -> dict[int, tuple[Graft | None, ...] | None]:
        """The messages of the roots of some pieces, for the slopes at the roots; None where they cannot be made."""

    def drawn(self, some: Ints, pull: Floats, totals: Ints, attempts: Ints) -> dict[int, Bools | None]:
        """Draw some pieces, each tree by its attempt; return which roots' trees are rejected, None as above."""


# --- what a task does with a piece -----------------------------------------------------------------------------------


def told(work: Work, cells: Ints) -> Told:
    """What a piece tells before messages are made."""
    truth, roots = _truth(work, cells), work.piece.parents < 0
    return Told(truth[roots], _at_roots(_part(work, truth).told(), roots))


def grafts(work: Work, cells: Ints, pull: Floats) -> tuple[Graft | None, ...] | None:
    """The messages of its roots, for the slopes at them; None where they cannot be made."""
    try:
        return _at_roots(_part(work, _truth(work, cells), pull).grafts(), work.piece.parents < 0)
    except Refused:
        return None


def drawn(work: Work, cells: Ints, pull: Floats, totals: Ints, attempts: Ints, keys: Keys) -> tuple[Ints, Bools | None]:
    """The values of a piece for the noise of its roots, each tree by its attempt, and which roots are rejected.

    None where messages below exact outputs cannot be made.
    """
    truth, roots = _truth(work, cells), work.piece.parents < 0
    part = _part(work, truth, pull)
    try:
        noise, rejected = part.drawn(_spread(roots, totals), _spread(roots, attempts), _own(work, keys))
    except Refused:
        return truth, None
    return truth + noise, rejected[roots]


def _truth(work: Work, cells: Ints) -> Ints:
    return np.asarray(Hierarchy.from_parents(work.piece.parents).sum_up(cells))


def _own(work: Work, keys: Keys) -> Keys:
    """The keys of a piece."""
    return Keys.drawn_from(keys.at("noise", work.piece.node, work.piece.first))


def _part(work: Work, truth: Ints, pull: Floats | None = None) -> Part:
    roots = work.piece.parents < 0
    slopes = np.zeros(roots.size) if pull is None else _spread(roots, pull)
    return Part(Forest(work.piece.parents, work.exact), work.law, *_noise_bounds(work, truth), workers=1, pull=slopes)


def _noise_bounds(work: Work, truth: Ints) -> tuple[Ints, Ints]:
    """Bounds on the noise of each output: those on its value minus the truth; ∓2**62 where there is none."""
    low = np.where(work.low > -LARGEST, work.low - truth, -LARGEST)
    return low, np.where(work.high < LARGEST, work.high - truth, LARGEST)


def _spread(roots: Bools, values: Array) -> Array:
    """Values of roots as values of all outputs."""
    result: Array = np.zeros(roots.size, dtype=values.dtype)
    result[roots] = values
    return result


def _at_roots(found: dict[int, Graft], roots: Bools) -> tuple[Graft | None, ...]:
    return tuple(found.get(root) for root in np.flatnonzero(roots).tolist())


# --- what is done above the cut --------------------------------------------------------------------------------------


def conditioned(work: Work, above: Ints, tasks: Tasks, keys: Keys) -> Ints:
    """Make the top, and let the pieces below be drawn; return the values of the top's own outputs, or raise Undivided.

    Whether it does depends on counts and public things alone, on no random word.
    """
    heads = tasks.told()
    truth = _truth(work, np.concatenate([above, *(head.truth for head in heads)]))
    top, pull = _fitted(work, truth, [list(head.grafts) for head in heads], tasks)
    if not top.possible:
        raise Undivided
    noise = accepted(top, work.piece.own, pull, tasks, _own(work, keys))
    return np.asarray(truth[: work.piece.own] + noise)


def accepted(top: Top, own: int, pull: Floats, tasks: Tasks, keys: Keys) -> Ints:
    """Draw all trees until each is accepted by the top and all its pieces; return the noise of the top's own outputs.

    A tree that is rejected is drawn again, in the top and in the pieces that it reaches, from the words of the next
    attempt.
    """
    below, by = slice(own, own + pull.size), tasks.by
    attempt, attempts = 0, np.zeros(pull.size, dtype=np.int64)
    noise, tree, rejected = top.drawn(attempt, keys)
    redone = np.ones(tree.size, dtype=np.bool_)  # everything is drawn a first time
    while True:
        while rejected:  # by the top alone: the pieces need not be asked
            attempt += 1
            again, _, still = top.drawn(attempt, keys)
            now = np.isin(tree, list(rejected))
            noise[now], attempts[now[below]], redone[now] = again[now], attempt, True
            rejected &= still
        some = np.unique(np.flatnonzero(redone[below]) // by)
        refused = tasks.drawn(some, pull, noise[below], attempts)
        if any(roots is None for roots in refused.values()):
            raise Undivided
        at = [number * by + i for number, roots in refused.items() for i in np.flatnonzero(roots).tolist()]
        rejected = set(tree[below][at].tolist())
        if not rejected:
            return noise[:own]
        redone[:] = False


def _fitted(work: Work, truth: Ints, below: list[list[Graft | None]], tasks: Tasks) -> tuple[Top, Floats]:
    """The top with messages of all roots whose windows fit, and the slopes for which they were made."""
    by = tasks.by
    forest = Forest(work.piece.parents, work.exact)
    bounds = _noise_bounds(work, truth)
    pull = np.zeros(len(below) * by)
    top = Top.of(forest, work.law, *bounds, tuple(each for part in below for each in part))
    for _ in range(1 + ROUNDS):
        slope, lacks = top.pulls
        told = np.array([each is not None for part in below for each in part])
        lacking = np.zeros(told.size, dtype=np.bool_)
        lacking[told] = lacks
        some = np.unique(np.flatnonzero(lacking) // by)
        if not some.size:
            break
        wanted = np.zeros(told.size)
        wanted[told] = slope
        again = np.isin(np.arange(told.size) // by, some)
        pull[again] = wanted[again]
        for number, found in tasks.grafts(some, pull).items():
            if found is None:
                raise Undivided
            below[number] = list(found)
        top = Top.of(forest, work.law, *bounds, tuple(each for part in below for each in part))
    return top, pull
