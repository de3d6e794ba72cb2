"""Noisy values moved to the nearest whole table (`onto`), piece by piece: units of roots go up, totals come down.

A piece that is told the final values of its roots makes what the whole would make, bit for bit: how a total is divided
best does not depend on what is above it, and costs of units are the same sums of the same doubles (trees/nearest).
"""

from __future__ import annotations

from functools import partial

import numpy as np

from holdfast.arguments import Refused
from holdfast.arrays import Bools, Floats, Ints, Words
from holdfast.release.pieces.cut import Work
from holdfast.release.pieces.tasks import Held, Tasks, by_piece
from holdfast.trees.nearest.joined import Told, covered, joined, told
from holdfast.trees.nearest.nearest import TOO_FAR, Nearest
from holdfast.trees.shape.ties import coins_of as as_numbers

#: Rounds in which pieces are asked at better prices, and those after which they look further each time; units of leaves
#: and of roots that are looked at first, and how often these double.
ROUNDS, FIRM, UNITS, MOST, WIDENINGS = 40, 6, 2, 32, 10


def ascend(held: Held, asked: tuple[Floats, int, int], coins: Words) -> list[Told]:
    """What a piece tells about its roots at prices from above."""
    price, *looked = asked
    rules = held.work.rules
    assert held.noisy is not None
    bounds = rules.bounds(held.truth)
    units, most = looked
    return told(_nearest(held.work, rules.exact), held.noisy, bounds, price, _coin(coins), (units, most))


def decide(work: Work, truth: Ints, noisy: Ints, shape: tuple[int, Ints], tasks: Tasks, coins: Words) -> Ints:
    """Make the top: its values, and behind them the final values of the roots of all pieces, piece by piece.

    `shape`: how many roots a piece has, and the first piece of each group and the end of the last.
    """
    by, groups = shape
    roots = truth.size - work.piece.own
    top, bounds = _nearest(work, work.rules.exact), work.rules.bounds(truth)
    price, below, some = np.zeros(roots), list[Told | None]([None] * roots), np.arange(groups.size - 1)
    group_of = np.repeat(some, np.diff(groups * by))
    widened = 0
    for turn in range(ROUNDS):
        asked = {
            group: [
                (price[i * by : i * by + by], UNITS << widened, MOST << widened)
                for i in range(groups[group], groups[group + 1])
            ]
            for group in some.tolist()
        }
        for group, answers in tasks.grouped(by_piece(partial(ascend, coins=coins)), asked).items():
            below[groups[group] * by : groups[group + 1] * by] = [each for piece in answers for each in piece]
        known = [each for each in below if each is not None]
        values, wanted = joined(top, noisy, bounds, known, _coin(coins), UNITS << widened)
        if values is not None:
            return values
        lacking = np.flatnonzero(~covered(known, wanted))
        if not lacking.size or turn >= FIRM:  # all look where they should, and not far enough
            widened = min(widened + 1, WIDENINGS)
        some = np.unique(group_of[lacking]) if lacking.size else np.arange(groups.size - 1)
        again = np.isin(group_of, some)
        price[again] = wanted[again]
    raise Refused(TOO_FAR)


def descend(held: Held, totals: Ints, coins: Words) -> Ints:
    """Make the values of a piece below the cut from its noisy ones and the final values of its roots."""
    rules, roots = held.work.rules, held.work.piece.parents < 0
    assert held.noisy is not None
    low, high = rules.bounds(held.truth)
    low[roots] = high[roots] = totals
    return np.asarray(_nearest(held.work, rules.exact | roots).move(held.noisy[None], low, high, coins)[0])


def _nearest(work: Work, exact: Bools) -> Nearest:
    rules, piece = work.rules, work.piece
    alone = Nearest.of(piece.parents, exact, rules.spreads, absolute=False)
    return alone.inside(rules.spreads, rules.unit, piece.outputs)


def _coin(coins: Words) -> int:
    return int(as_numbers(coins, 1)[0])
