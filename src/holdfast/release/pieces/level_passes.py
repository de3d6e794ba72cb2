"""Noisy values moved level by level (TopDown, BlueDown), piece by piece: estimates go up, totals come down.

Level by level, the children of an output depend on what is above them through its final value alone, and on what is
beside them not at all. So a piece that is told the final values of its roots makes what the whole would make, bit for
bit (docs/theory/pieces.md).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from holdfast.arrays import Bools, Floats, Ints, Words
from holdfast.release.pieces.cut import Work
from holdfast.release.pieces.tasks import Held
from holdfast.trees.nearest.levelwise import Levelwise


class Head(NamedTuple):
    """What a piece tells about its roots: estimates (whole numbers and steps), variances, least and most values."""

    estimate: Ints
    step: Floats
    variance: Floats
    least: Ints
    most: Ints


def ascend(held: Held, _: object = None) -> Head:
    rules = held.work.rules
    assert held.noisy is not None
    return Head(*_forest(held.work, rules.exact, rules.spreads).heads(held.noisy, *rules.bounds(held.truth)))


def decide(work: Work, truth: Ints, noisy: Ints, heads: Sequence[Head], coins: Words) -> Ints:
    """Make the top: its values, and behind them the final values of the roots of all pieces, piece by piece."""
    below = Head(*(np.concatenate(each) for each in zip(*heads, strict=True)))
    own, tail = work.piece.own, slice(work.piece.own, None)
    low, high = work.rules.bounds(truth)
    low[tail], high[tail] = below.least, below.most
    spreads = np.concatenate([work.rules.spreads[:own], below.variance])
    steps = np.concatenate([np.zeros(own), below.step])
    start = np.concatenate([noisy, below.estimate])
    return np.asarray(_forest(work, work.rules.exact, spreads).move(start[None], low, high, coins, steps)[0])


def descend(held: Held, totals: Ints, coins: Words) -> Ints:
    """Make the values of a piece below the cut from its noisy ones and the final values of its roots."""
    rules, roots = held.work.rules, held.work.piece.parents < 0
    assert held.noisy is not None
    low, high = rules.bounds(held.truth)
    low[roots] = high[roots] = totals
    forest = _forest(held.work, rules.exact | roots, rules.spreads)
    return np.asarray(forest.move(held.noisy[None], low, high, coins)[0])


def _forest(work: Work, exact: Bools, spreads: Floats) -> Levelwise:
    piece = work.piece
    combined = work.way == "bluedown"
    return Levelwise.of(piece.parents, exact, spreads, combined=combined, numbers=piece.outputs)
