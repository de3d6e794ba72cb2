"""Conditional noise (`given`) group by group: messages go up, totals come down, and all groups are accepted together.

The pieces of a group are drawn side by side. A group tells how its roots' totals answer to tilts; the top guesses from
all of them the tilt above each root; the group makes its messages under that, and the top draws the totals of all roots
from what is kept of the roots. A table that the top or a group rejects is drawn again as a whole, from other words
(docs/theory/pieces.md, section 4).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from itertools import pairwise

import numpy as np

from holdfast.arguments import LARGEST
from holdfast.arrays import Floats, Ints
from holdfast.noise import Independent
from holdfast.randomness import Keys
from holdfast.release.pieces.cut import Rules, Work
from holdfast.release.pieces.tasks import Group, Tasks
from holdfast.trees import Forest
from holdfast.trees.circles.rows import Sums
from holdfast.trees.parts import Open, Part, Root, Top

#: What a group is told to be drawn: the tilts above its roots, their noise, tests of them, and the attempt.
Told = tuple[Floats, Ints, Sequence[Open | None], int]


def answers(group: Group, _: object) -> list[Root | None]:
    """How the noise of the roots of a group answers, before messages are made."""
    return _part(group).answers()


def sums(group: Group, pull: Floats) -> list[Sums | None]:
    """What the messages of the roots are made from, for the tilts above them."""
    return _part(group, pull).sums()


def drawn(group: Group, told: Told, secret: bytes) -> tuple[list[Ints], bool]:
    """The values of the pieces of a group, and whether they are accepted."""
    pull, totals, tests, attempt = told
    noise, accepted = _part(group, pull).drawn(totals, tests, attempt, _own(group.pieces[0].work, Keys.of(secret)))
    ends = np.cumsum([held.truth.size for held in group.pieces])[:-1]
    return [held.truth + own for held, own in zip(group.pieces, np.split(noise, ends), strict=True)], accepted


def conditioned(work: Work, truth: Ints, starts: Ints, tasks: Tasks, secret: bytes) -> Ints:
    """Make the top, and let the groups below be drawn; return the values of its own outputs.

    `truth` holds the true values of the top's own outputs and of the roots of all groups, which begin at `starts`.
    """
    groups = range(starts.size - 1)
    heads = tasks.grouped(answers, dict.fromkeys(groups))
    below = [root for number in groups for root in heads[number]]
    assert work.drawn is not None
    forest = Forest(work.piece.parents, work.drawn.exact)
    top = Top.above(forest, work.law, *_noise_bounds(work.drawn, truth), below)
    roots = [slice(*ends) for ends in pairwise(starts.tolist())]
    pull = top.pulls
    made = tasks.grouped(sums, {number: pull[own] for number, own in enumerate(roots)})
    top = replace(top, sums=[each for number in groups for each in made[number]])

    def ask(attempt: int, totals: Ints, tests: Sequence[Open | None]) -> bool:
        told = {number: (pull[own], totals[own], tests[own], attempt) for number, own in enumerate(roots)}
        return all(tasks.noted(partial(drawn, secret=secret), told).values())

    noise = top.together(ask, _own(work, Keys.of(secret)))
    return np.asarray((truth + noise)[: work.piece.own])


def _own(work: Work, keys: Keys) -> Keys:
    """The keys of a group by its first piece, and of the top."""
    return Keys.drawn_from(keys.at("noise", work.piece.node, work.piece.first))


def _part(group: Group, pull: Floats | None = None) -> Part:
    """The law of the noise of a group, its pieces side by side."""
    works = [held.work for held in group.pieces]
    begins = np.cumsum([0, *(work.piece.parents.size for work in works)]).tolist()
    parents = np.concatenate(
        [np.where(work.piece.parents < 0, -1, work.piece.parents + at) for work, at in zip(works, begins, strict=False)]
    )
    rules = [work.drawn for work in works if work.drawn is not None]
    ends = [_noise_bounds(each, held.truth) for each, held in zip(rules, group.pieces, strict=True)]
    low, high = (np.concatenate(side) for side in zip(*ends, strict=True))
    laws = list(dict.fromkeys(law for work in works for law in work.law.laws))
    which = [np.array([laws.index(law) for law in work.law.laws])[work.law.complete] for work in works]
    law = Independent(tuple(laws), np.concatenate(which).astype(np.int32), parents.size)
    return Part.of(Forest(parents, np.concatenate([each.exact for each in rules])), law, low, high, pull=pull)


def _noise_bounds(rules: Rules, truth: Ints) -> tuple[Ints, Ints]:
    """Bounds on the noise of each output: those on its value minus the truth; ∓2**62 where there is none."""
    low = np.where(rules.low > -LARGEST, rules.low - truth, -LARGEST)
    return low, np.where(rules.high < LARGEST, rules.high - truth, LARGEST)
