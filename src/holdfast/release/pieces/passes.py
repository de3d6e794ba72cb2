"""Independent noise moved level by level (TopDown, BlueDown), piece by piece: estimates go up, totals come down.

Level by level, the children of an output depend on what is above them through its final value alone, and on what is
beside them not at all. So a piece that is told the final values of its roots makes what the whole would make, bit for
bit (docs/theory/pieces.md). The noise of a piece comes from a substream of its own.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np

from holdfast.arrays import Bools, Floats, Ints, Words
from holdfast.domains import Hierarchy
from holdfast.noise import Independent
from holdfast.randomness import Keys
from holdfast.release.pieces.cut import Piece
from holdfast.trees.nearest.levelwise import Levelwise


@dataclass(frozen=True, eq=False)
class Work:
    """Everything public about a piece: where it is, the law of its noise, and what must hold in it.

    `spreads` weigh the outputs, `exact` ones have no noise, and `low` and `high` bound the others (∓2**62: not at all).
    `combined`: estimates use what is measured below, too (BlueDown).
    """

    piece: Piece
    law: Independent
    spreads: Floats
    exact: Bools
    low: Ints
    high: Ints
    combined: bool


@dataclass(frozen=True, eq=False)
class Head:
    """What a piece tells about its roots: true values, estimates (whole numbers and steps), least and most values."""

    truth: Ints
    estimate: Ints
    step: Floats
    variance: Floats
    least: Ints
    most: Ints


def ascend(work: Work, cells: Ints, keys: Keys) -> tuple[Ints, Ints, Head]:
    """Count and measure a piece below the cut: its true values, the noisy ones, and what it tells about its roots."""
    truth = Hierarchy.from_parents(work.piece.parents).sum_up(cells)
    noisy = measured(work, truth, keys)
    forest = _forest(work)
    heads = forest.heads(noisy, *_bounds(work, truth))
    return truth, noisy, Head(truth[work.piece.parents < 0], *heads)


def decide(work: Work, cells: Ints, heads: Iterable[Head], keys: Keys) -> tuple[Ints, Ints, Ints]:
    """Make the top: its values, its noisy ones, and the final values of the roots of all pieces, piece by piece."""
    below = list(heads)
    own, tail = work.piece.own, slice(work.piece.own, None)
    known = {name: np.concatenate([getattr(head, name) for head in below]) for name in Head.__dataclass_fields__}
    truth = Hierarchy.from_parents(work.piece.parents).sum_up(np.concatenate([cells, known["truth"]]))
    noisy = np.concatenate([measured(work, truth[:own], keys), known["estimate"]])
    low, high = _bounds(work, truth)
    low[tail], high[tail] = known["least"], known["most"]
    spreads = np.concatenate([work.spreads[:own], known["variance"]])
    steps = np.concatenate([np.zeros(own), known["step"]])
    values = _forest(replace(work, spreads=spreads)).move(noisy[None], low, high, coins_of(keys), steps)[0]
    return values[:own], noisy[:own], values[tail]


def descend(work: Work, truth: Ints, noisy: Ints, totals: Ints, keys: Keys) -> Ints:
    """Make the values of a piece below the cut from its noisy ones and the final values of its roots."""
    roots = work.piece.parents < 0
    low, high = _bounds(work, truth)
    low[roots] = high[roots] = totals
    forest = _forest(replace(work, exact=work.exact | roots))
    return np.asarray(forest.move(noisy[None], low, high, coins_of(keys))[0])


def measured(work: Work, truth: Ints, keys: Keys) -> Ints:
    """The true values with their noise, from the substream of the piece; 0 where nothing is measured."""
    noise = work.law.measured_draw(1, keys.at("noise", work.piece.node, work.piece.first))[0]
    return np.asarray(noise + truth * np.isfinite(work.law.variances))


def _bounds(work: Work, truth: Ints) -> tuple[Ints, Ints]:
    """Bounds of the outputs; an exact one has its true value, which is also that of a fixed one."""
    return np.where(work.exact, truth, work.low), np.where(work.exact, truth, work.high)


def _forest(work: Work) -> Levelwise:
    piece = work.piece
    return Levelwise.of(piece.parents, work.exact, work.spreads, combined=work.combined, numbers=piece.outputs)


def coins_of(keys: Keys) -> Words:
    """The public coin that decides between equal fractions, the same in all pieces."""
    return keys.at("coin").words(1)
