"""Independent noise moved level by level (TopDown), piece by piece: estimates go up, totals come down.

Level by level, the children of an output depend on what is above them through its final value alone, and on what is
beside them not at all. So a piece that is told the final values of its roots makes what the whole would make, bit for
bit (docs/theory/pieces.md). The noise of a piece comes from a substream of its own.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from holdfast.arguments import Refused
from holdfast.arrays import Bools, Floats, Ints, Words
from holdfast.domains import Hierarchy
from holdfast.mechanism.mechanism import Mechanism
from holdfast.mechanism.moving import moved
from holdfast.mechanism.source import Plain
from holdfast.noise import Independent
from holdfast.onto.baselines import topdown
from holdfast.randomness import Keys
from holdfast.release.pieces.cut import Cut, Piece
from holdfast.trees.nearest.levelwise import Levelwise

NOT_IN_PIECES = (
    "a hierarchy is drawn in pieces only where independent whole noise is moved level by level: write method: topdown, "
    "or leave out engine: spark"
)


@dataclass(frozen=True, eq=False)
class Work:
    """Everything public about a piece: where it is, the law of its noise, and what must hold in it.

    `spreads` weigh the outputs, `exact` ones have no noise, and `low` and `high` bound the others (∓2**62: not at all).
    """

    piece: Piece
    law: Independent
    spreads: Floats
    exact: Bools
    low: Ints
    high: Ints


@dataclass(frozen=True, eq=False)
class Head:
    """What a piece tells about its roots: true values, estimates with their variances, least and most values."""

    truth: Ints
    estimate: Ints
    variance: Floats
    least: Ints
    most: Ints


@dataclass(frozen=True, eq=False)
class Pieces:
    """A mechanism whose table is made piece by piece."""

    mechanism: Mechanism
    cut: Cut

    @classmethod
    def of(cls, mechanism: Mechanism, most: int | None = None) -> Pieces:
        """Cut a mechanism's hierarchy; refused where its table is not made level by level from independent noise."""
        moves, query = mechanism.moves, mechanism.query
        plain = isinstance(mechanism.source, Plain) and query.grid is None and len(moves) == 1
        if not plain or not moves[0].problem.integer or moves[0].way is not topdown or query.tree is None:
            raise Refused(NOT_IN_PIECES)
        by = query.n // query.tree.n
        return cls(mechanism, Cut.of(query.tree, by) if most is None else Cut.of(query.tree, by, most))

    def work(self, piece: Piece) -> Work:
        """Gather what is public about a piece."""
        spreads, exact, low, high = self._whole
        at = piece.outputs
        return Work(piece, self.mechanism.base.law.at(at[: piece.own]), spreads[at], exact[at], low[at], high[at])

    @cached_property
    def _whole(self) -> tuple[Floats, Bools, Ints, Ints]:
        problem = self.mechanism.moves[0].problem
        return problem.spreads, problem.exact, *problem.system.integer_bounds(problem.unit)

    @property
    def numbers(self) -> range:
        """The numbers of the pieces below the cut."""
        return range(self.cut.nodes.size)


def coin_of(keys: Keys) -> int:
    """The public coin that decides between equal fractions, the same in all pieces."""
    return int(keys.at("coin").words(1)[0])


def ascend(work: Work, cells: Ints, keys: Keys) -> tuple[Ints, Ints, Head]:
    """Count and measure a piece below the cut: its true values, the noisy ones, and what it tells about its roots."""
    truth = Hierarchy.from_parents(work.piece.parents).sum_up(cells)
    noisy = _measured(work, truth, keys)
    forest = _forest(work)
    heads = forest.heads(noisy, *_bounds(work, truth))
    return truth, noisy, Head(truth[work.piece.parents < 0], *heads)


def decide(work: Work, cells: Ints, heads: Iterable[Head], keys: Keys) -> tuple[Ints, Ints, Ints]:
    """Make the top: its values, its noisy ones, and the final values of the roots of all pieces, piece by piece."""
    below = list(heads)
    own, tail = work.piece.own, slice(work.piece.own, None)
    known = {name: np.concatenate([getattr(head, name) for head in below]) for name in Head.__dataclass_fields__}
    truth = Hierarchy.from_parents(work.piece.parents).sum_up(np.concatenate([cells, known["truth"]]))
    noisy = np.concatenate([_measured(work, truth[:own], keys), known["estimate"]])
    low, high = _bounds(work, truth)
    low[tail], high[tail] = known["least"], known["most"]
    spreads = work.spreads.copy()
    spreads[tail] = known["variance"]
    values = _forest(replace(work, spreads=spreads)).move(noisy[None], low, high, _coins(keys))[0]
    return values[:own], noisy[:own], values[tail]


def descend(work: Work, truth: Ints, noisy: Ints, totals: Ints, keys: Keys) -> Ints:
    """Make the values of a piece below the cut from its noisy ones and the final values of its roots."""
    roots = work.piece.parents < 0
    low, high = _bounds(work, truth)
    low[roots] = high[roots] = totals
    forest = _forest(replace(work, exact=work.exact | roots))
    return np.asarray(forest.move(noisy[None], low, high, _coins(keys))[0])


def in_one_process(pieces: Pieces, cells: Ints, keys: Keys) -> tuple[Ints, Ints]:
    """Make the table piece by piece here: its values and the noisy ones."""
    where, _ = pieces.cut.of_cells
    values, noisy = (np.empty(pieces.mechanism.query.n, dtype=np.int64) for _ in range(2))
    works = [pieces.work(pieces.cut.piece(number)) for number in pieces.numbers]
    done = [ascend(work, cells[where == number], keys) for number, work in enumerate(works)]
    top = pieces.work(pieces.cut.top())
    at = top.piece.outputs[: top.piece.own]
    values[at], noisy[at], totals = decide(top, cells[where < 0], (head for *_, head in done), keys)
    by = pieces.cut.by
    for number, (work, (truth, measured, _)) in enumerate(zip(works, done, strict=True)):
        final = totals[number * by : (number + 1) * by]
        noisy[work.piece.outputs] = measured
        values[work.piece.outputs] = descend(work, truth, measured, final, keys)
    return values, noisy


def undivided(pieces: Pieces, cells: Ints, keys: Keys) -> tuple[Ints, Ints]:
    """Make the same table by moving all noisy values at once: its values and the noisy ones."""
    mechanism = pieces.mechanism
    truth = mechanism.query.answer(cells)
    noisy = np.empty(mechanism.query.n, dtype=np.int64)
    for piece in (pieces.cut.top(), *map(pieces.cut.piece, pieces.numbers)):
        at = piece.outputs[: piece.own]
        noisy[at] = _measured(pieces.work(piece), truth[at], keys)
    return moved(mechanism.moves, noisy[None].copy(), truth, _coins(keys))[0], noisy


def _measured(work: Work, truth: Ints, keys: Keys) -> Ints:
    """The true values with their noise, from the substream of the piece; 0 where nothing is measured."""
    noise = work.law.measured_draw(1, keys.at("noise", work.piece.node))[0]
    return np.asarray(noise + truth * np.isfinite(work.law.variances))


def _bounds(work: Work, truth: Ints) -> tuple[Ints, Ints]:
    """Bounds of the outputs; an exact one has its true value, which is also that of a fixed one."""
    return np.where(work.exact, truth, work.low), np.where(work.exact, truth, work.high)


def _forest(work: Work) -> Levelwise:
    piece = work.piece
    return Levelwise.of(piece.parents, work.exact, work.spreads, combined=False, numbers=piece.outputs)


def _coins(keys: Keys) -> Words:
    return np.array([coin_of(keys)], dtype=np.uint64)
