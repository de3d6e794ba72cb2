"""Mechanisms whose tables are made in pieces, and the two ways to do so in one process."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from holdfast.arguments import Refused
from holdfast.arrays import Bools, Floats, Ints
from holdfast.evidence import Evidence
from holdfast.mechanism import checking
from holdfast.mechanism.mechanism import Mechanism
from holdfast.mechanism.moving import moved
from holdfast.mechanism.release import Release
from holdfast.mechanism.source import Plain
from holdfast.onto.baselines import bluedown, topdown
from holdfast.randomness import Keys
from holdfast.release.pieces.cut import Cut, Piece
from holdfast.release.pieces.passes import Work, ascend, coins_of, decide, descend, measured

NOT_IN_PIECES = (
    "a hierarchy is drawn in pieces only where independent whole noise is moved level by level: write method: topdown "
    "or bluedown, or leave out engine: spark"
)


#: Memory of a task before it has a piece, and for every figure of the piece, estimated from its arrays; bytes that
#: travel for a figure, somewhat more than were measured (benchmarks/README.md).
TASK_BYTES, FIGURE_BYTES, FIGURE_SENT = 200 << 20, 300, 8


@dataclass(frozen=True)
class Share:
    """How a cluster shares the work: pieces below the nodes of a level, memory of a task, bytes that travel."""

    level: str
    pieces: int
    bytes_each: int
    bytes_sent: int

    def __str__(self) -> str:
        return (
            f"the cluster draws {self.pieces} pieces, one below every node of {self.level!r}, in as many tasks at once "
            f"as it has cores; a task needs about {self.bytes_each / 2**20:.0f} MiB, about "
            f"{self.bytes_sent / 2**20:.1f} MiB travel to tasks and back, and nothing is shuffled but distinct values "
            "when records are counted"
        )


@dataclass(frozen=True, eq=False)
class Drawn:
    """A table made in pieces: its values, the noisy ones from which they were moved, and the coin that decided ties."""

    values: Ints
    noisy: Ints
    coin: int


@dataclass(frozen=True, eq=False)
class Pieces:
    """A mechanism whose table is made piece by piece."""

    mechanism: Mechanism
    cut: Cut

    @classmethod
    def of(cls, mechanism: Mechanism) -> Pieces:
        """Cut a mechanism's hierarchy; refused where its table is not made level by level from independent noise."""
        moves, query = mechanism.moves, mechanism.query
        plain = isinstance(mechanism.source, Plain) and query.grid is None and len(moves) == 1
        if not plain or not moves[0].problem.integer or moves[0].way not in (topdown, bluedown) or query.tree is None:
            raise Refused(NOT_IN_PIECES)
        by = query.n // query.tree.n
        return cls(mechanism, Cut.of(query.tree, by))

    def work(self, piece: Piece) -> Work:
        """Gather what is public about a piece."""
        spreads, exact, low, high = self._whole
        at, combined = piece.outputs, self.mechanism.moves[0].way is bluedown
        return Work(
            piece, self.mechanism.base.law.at(at[: piece.own]), spreads[at], exact[at], low[at], high[at], combined
        )

    @cached_property
    def _whole(self) -> tuple[Floats, Bools, Ints, Ints]:
        problem = self.mechanism.moves[0].problem
        return problem.spreads, problem.exact, *problem.system.integer_bounds(problem.unit)

    @property
    def share(self) -> Share:
        """What the tasks of a cluster do and need, by public things alone."""
        level = self.cut.tree.levels[self.cut.depth]
        sent = self.mechanism.query.n * FIGURE_SENT
        return Share(level, len(self.numbers), TASK_BYTES + FIGURE_BYTES * self.cut.largest, sent)

    @property
    def numbers(self) -> range:
        """The numbers of the pieces below the cut."""
        return range(self.cut.nodes.size)

    def released(self, truth: Ints, drawn: Drawn) -> Release:
        """What was drawn in pieces as a release; what must hold is checked again on the values themselves."""
        mechanism = self.mechanism
        statements = (mechanism.guarantee, *mechanism.guarantees[1:])
        evidence = Evidence(gap=math.inf, grid=Fraction(1), exact=True, nearest=False)
        held = mechanism.held
        assert held is not None  # it was moved
        checking.last_look(held, drawn.values, truth, mechanism.base.unit, evidence)
        free = all(each.scope != "subspace" for each in statements)
        shown = (drawn.values, statements, mechanism.query, mechanism.method, mechanism.unit_spread)
        return Release(*shown, drawn.noisy if free else None, evidence if free else None, drawn.coin)


def in_one_process(pieces: Pieces, cells: Ints, keys: Keys) -> tuple[Ints, Ints]:
    """Make the table piece by piece here: its values and the noisy ones."""
    above, below = pieces.cut.split(cells)
    values, noisy = (np.empty(pieces.mechanism.query.n, dtype=np.int64) for _ in range(2))
    works = [pieces.work(pieces.cut.piece(number)) for number in pieces.numbers]
    done = [ascend(work, own, keys) for work, own in zip(works, below, strict=True)]
    top = pieces.work(pieces.cut.top())
    at = top.piece.outputs[: top.piece.own]
    values[at], noisy[at], totals = decide(top, above, (head for *_, head in done), keys)
    by = pieces.cut.by
    for number, (work, (truth, seen, _)) in enumerate(zip(works, done, strict=True)):
        final = totals[number * by : (number + 1) * by]
        noisy[work.piece.outputs] = seen
        values[work.piece.outputs] = descend(work, truth, seen, final, keys)
    return values, noisy


def undivided(pieces: Pieces, cells: Ints, keys: Keys) -> tuple[Ints, Ints]:
    """Make the same table by moving all noisy values at once: its values and the noisy ones."""
    mechanism = pieces.mechanism
    truth = mechanism.query.answer(cells)
    noisy = np.empty(mechanism.query.n, dtype=np.int64)
    for piece in (pieces.cut.top(), *map(pieces.cut.piece, pieces.numbers)):
        at = piece.outputs[: piece.own]
        noisy[at] = measured(pieces.work(piece), truth[at], keys)
    return moved(mechanism.moves, noisy[None].copy(), truth, coins_of(keys))[0], noisy
