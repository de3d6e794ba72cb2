"""Conditional noise (`given`) piece by piece: messages go up, totals come down, and all pieces are accepted together.

A piece tells how its roots' totals answer to slopes; the top guesses from all of them how hard each root is pulled; the
piece makes its messages for that, and the top draws the totals of all roots from the messages of the roots. A table is
accepted with the product of what its pieces accept (docs/theory/pieces.md, section 4); a tree that is rejected is drawn
again as a whole, from the words of its next attempt. Where counts leave some part without messages, the hierarchy is
drawn undivided: a refusal would tell about them.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from holdfast.arguments import LARGEST, Refused
from holdfast.arrays import Array, Bools, Floats, Ints
from holdfast.randomness import Keys
from holdfast.release.pieces.tasks import Held, Tasks
from holdfast.release.pieces.work import Rules, Work
from holdfast.trees import Forest
from holdfast.trees.joined.part import Graft, Part
from holdfast.trees.joined.top import Top

#: How many times, at most, pieces make their messages again because the guess of the slopes at their roots was poor.
ROUNDS = 4
#: What pieces tell about each of their roots; None: its noise is always 0.
Grafts = list[list[Graft | None]]
#: Draws some pieces for totals of all roots, each tree by its attempt, and returns which roots' trees are rejected.
#: None where messages cannot be made.
Draw = Callable[[Ints, Ints, Ints], dict[int, Bools | None]]


class Undivided(Exception):
    """Messages of some part cannot be made for these counts: the hierarchy must be drawn undivided, by the same law."""


# --- what a task does with a piece -----------------------------------------------------------------------------------


def told(held: Held, _: object) -> list[Graft | None]:
    """How the noise of a piece's roots answers, before messages are made."""
    return _at_roots(_part(held).told(), held.work)


def grafts(held: Held, pull: Floats) -> list[Graft | None] | None:
    """The messages of its roots, for the slopes at them; None where they cannot be made."""
    try:
        return _at_roots(_part(held, pull).grafts(), held.work)
    except Refused:
        return None


def drawn(held: Held, given: tuple[Floats, Ints, Ints], secret: bytes) -> tuple[Ints, Bools | None]:
    """The values of a piece for slopes at its roots, their noise and attempts, and which roots are rejected.

    None where messages below exact outputs cannot be made.
    """
    pull, totals, attempts = given
    roots = held.work.piece.parents < 0
    at_roots = _spread(roots, totals), _spread(roots, attempts)
    try:
        noise, rejected = _part(held, pull).drawn(*at_roots, _own(held.work, Keys.of(secret)))
    except Refused:
        return held.truth, None
    return held.truth + noise, rejected[roots]


def _own(work: Work, keys: Keys) -> Keys:
    """The keys of a piece."""
    return Keys.drawn_from(keys.at("noise", work.piece.node, work.piece.first))


def _part(held: Held, pull: Floats | None = None) -> Part:
    work, rules = held.work, _rules(held.work)
    roots = work.piece.parents < 0
    slopes = np.zeros(roots.size) if pull is None else _spread(roots, pull)
    bounds = _noise_bounds(rules, held.truth)
    return Part(Forest(work.piece.parents, rules.exact), work.law, *bounds, workers=1, pull=slopes)


def _rules(work: Work) -> Rules:
    assert work.drawn is not None
    return work.drawn


def _noise_bounds(rules: Rules, truth: Ints) -> tuple[Ints, Ints]:
    """Bounds on the noise of each output: those on its value minus the truth; ∓2**62 where there is none."""
    low = np.where(rules.low > -LARGEST, rules.low - truth, -LARGEST)
    return low, np.where(rules.high < LARGEST, rules.high - truth, LARGEST)


def _spread(roots: Bools, values: Array) -> Array:
    """Values of roots as values of all outputs."""
    result: Array = np.zeros(roots.size, dtype=values.dtype)
    result[roots] = values
    return result


def _at_roots(found: dict[int, Graft], work: Work) -> list[Graft | None]:
    return [found.get(root) for root in np.flatnonzero(work.piece.parents < 0).tolist()]


# --- what is done above the cut --------------------------------------------------------------------------------------


def conditioned(work: Work, truth: Ints, by: int, tasks: Tasks, secret: bytes) -> Ints:
    """Make the top, and let the pieces below, of `by` roots each, be drawn; return the values of its own outputs.

    `truth` holds the true values of the top's own outputs and of the roots of all pieces. Undivided is raised where
    counts and public things leave no other way; no random word decides it.
    """
    heads = tasks.asked(told)
    top, pull = _fitted(work, truth, [heads[number] for number in sorted(heads)], tasks)
    if not top.possible:
        raise Undivided
    slopes = pull.reshape(-1, by)

    def draw(some: Ints, totals: Ints, attempts: Ints) -> dict[int, Bools | None]:
        sums, tries = totals.reshape(-1, by), attempts.reshape(-1, by)
        return tasks.noted(partial(drawn, secret=secret), {i: (slopes[i], sums[i], tries[i]) for i in some.tolist()})

    noise = accepted(top, slice(work.piece.own, truth.size), by, draw, _own(work, Keys.of(secret)))
    return np.asarray(truth[: work.piece.own] + noise)


def accepted(top: Top, below: slice, by: int, draw: Draw, keys: Keys) -> Ints:
    """Draw all trees until each is accepted by the top and all its pieces; return the noise of the top's own outputs.

    A tree that is rejected is drawn again, in the top and in the pieces that it reaches, from the words of the next
    attempt. `below` are the places of the roots of all pieces in the top.
    """
    attempt = 0
    noise, tree, rejected = top.drawn(attempt, keys)
    attempts = np.zeros(below.stop - below.start, dtype=np.int64)
    redone = np.ones(tree.size, dtype=np.bool_)  # everything is drawn a first time
    while True:
        while rejected:  # by the top alone: the pieces need not be asked
            attempt += 1
            again, _, still = top.drawn(attempt, keys)
            now = np.isin(tree, list(rejected))
            noise[now], attempts[now[below]], redone[now] = again[now], attempt, True
            rejected &= still
        some = np.unique(np.flatnonzero(redone[below]) // by)
        refused = draw(some, noise[below], attempts)
        if any(roots is None for roots in refused.values()):
            raise Undivided
        at = [number * by + i for number, roots in refused.items() for i in np.flatnonzero(roots).tolist()]
        rejected = set(tree[below][at].tolist())
        if not rejected:
            return noise[: below.start]
        redone[:] = False


def _fitted(work: Work, truth: Ints, below: Grafts, tasks: Tasks) -> tuple[Top, Floats]:
    """The top with messages of all roots whose windows fit, and the slopes for which they were made."""
    by, rules = len(below[0]), _rules(work)
    forest, bounds = Forest(work.piece.parents, rules.exact), _noise_bounds(rules, truth)
    pull = np.zeros(len(below) * by)
    top = Top.of(forest, work.law, *bounds, tuple(each for part in below for each in part))
    for _ in range(1 + ROUNDS):
        slope, lacks = top.pulls
        known = np.array([each is not None for part in below for each in part])
        lacking = np.zeros(known.size, dtype=np.bool_)
        lacking[known] = lacks
        some = np.unique(np.flatnonzero(lacking) // by)
        if not some.size:
            break
        wanted = np.zeros(known.size)
        wanted[known] = slope
        again = np.isin(np.arange(known.size) // by, some)
        pull[again] = wanted[again]
        slopes = pull.reshape(-1, by)
        for number, found in tasks.asked(grafts, {i: slopes[i] for i in some.tolist()}).items():
            if found is None:
                raise Undivided
            below[number] = list(found)
        top = Top.of(forest, work.law, *bounds, tuple(each for part in below for each in part))
    return top, pull
