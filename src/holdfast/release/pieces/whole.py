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
from holdfast.mechanism.published.linear import input_is_free
from holdfast.mechanism.release import Release
from holdfast.mechanism.source import Conditioned, Plain
from holdfast.onto.baselines import bluedown, topdown
from holdfast.randomness import Keys
from holdfast.release.pieces import conditioned
from holdfast.release.pieces.conditioned import Told, Undivided
from holdfast.release.pieces.cut import Cut, Piece
from holdfast.release.pieces.passes import Work, ascend, coins_of, decide, descend, measured
from holdfast.trees.joined.part import Graft

NOT_IN_PIECES = (
    "a hierarchy is drawn in pieces only where whole noise is conditioned, or independent whole noise is moved level "
    "by level: write method: given, topdown or bluedown, or leave out engine: spark"
)
UNMEASURED = (
    "engine: spark draws method: given only where the last level of the hierarchy is measured: give it a share of the "
    "budget, or leave out engine: spark"
)


#: Memory of a task before it has a piece, and for every figure of the piece, moved or conditioned; bytes that travel
#: for a figure, and for every root of a piece that is conditioned: all somewhat more than were measured
#: (benchmarks/README.md).
TASK_BYTES, MOVED_BYTES, CONDITIONED_BYTES = 340 << 20, 300, 600
FIGURE_SENT, ROOT_SENT = 8, 8 << 10


@dataclass(frozen=True)
class Share:
    """How a cluster shares the work: pieces below the nodes of a level, how often tasks go over them, memory, bytes."""

    level: str
    pieces: int
    passes: int
    bytes_each: int
    bytes_sent: int

    def __str__(self) -> str:
        return (
            f"the cluster draws {self.pieces} pieces below the nodes of {self.level!r}, in {self.passes} passes, as "
            f"many at once as it has cores; a task needs about {self.bytes_each / 2**20:.0f} MiB, about "
            f"{self.bytes_sent / 2**20:.1f} MiB travel to tasks and back, and nothing is shuffled but distinct values "
            "when records are counted"
        )


@dataclass(frozen=True, eq=False)
class Drawn:
    """A table made in pieces: its values, the noisy ones from which they were moved, and the coin that decided ties."""

    values: Ints
    noisy: Ints
    coin: int | None


@dataclass(frozen=True, eq=False)
class Pieces:
    """A mechanism whose table is made piece by piece."""

    mechanism: Mechanism
    cut: Cut

    @classmethod
    def of(cls, mechanism: Mechanism) -> Pieces:
        """Cut a mechanism's hierarchy; refused where its table is not made in pieces."""
        query = mechanism.query
        if query.tree is None or query.grid is not None or not (_conditions(mechanism) or _goes_down(mechanism)):
            raise Refused(NOT_IN_PIECES)
        by = query.n // query.tree.n
        return cls(mechanism, Cut.of(query.tree, by))

    @property
    def conditions(self) -> bool:
        """Whether noise is conditioned; otherwise independent noise is moved level by level."""
        return not self.mechanism.moves

    def work(self, piece: Piece) -> Work:
        """Gather what is public about a piece."""
        spreads, exact, low, high = self._whole
        at, combined = piece.outputs, not self.conditions and self.mechanism.moves[0].way is bluedown
        return Work(
            piece, self.mechanism.base.law.at(at[: piece.own]), spreads[at], exact[at], low[at], high[at], combined
        )

    @cached_property
    def _whole(self) -> tuple[Floats, Bools, Ints, Ints]:
        source, moves = self.mechanism.source, self.mechanism.moves
        if isinstance(source, Conditioned):
            forest = source.plan.problem.forest
            assert forest is not None
            return self.mechanism.base.law.variances, forest.exact, *source.system.integer_bounds(source.base.unit)
        problem = moves[0].problem
        return problem.spreads, problem.exact, *problem.system.integer_bounds(problem.unit)

    @property
    def share(self) -> Share:
        """What the tasks of a cluster do and need, by public things alone."""
        level = self.cut.tree.levels[self.cut.depth]
        sent, each, passes = self.mechanism.query.n * FIGURE_SENT, MOVED_BYTES, 2
        if self.conditions:
            sent, each, passes = sent + ROOT_SENT * self.cut.nodes.size * self.cut.by, CONDITIONED_BYTES, 3
        return Share(level, len(self.numbers), passes, TASK_BYTES + each * self.cut.largest, sent)

    @property
    def numbers(self) -> range:
        """The numbers of the pieces below the cut."""
        return range(self.cut.count)

    def released(self, truth: Ints, drawn: Drawn) -> Release:
        """What was drawn in pieces as a release; what must hold is checked again on the values themselves."""
        mechanism = self.mechanism
        statements = (mechanism.guarantee, *mechanism.guarantees[1:])
        evidence = None if self.conditions else Evidence(gap=math.inf, grid=Fraction(1), exact=True, nearest=False)
        held = mechanism.held
        assert held is not None  # it was conditioned or moved
        checking.last_look(held, drawn.values, truth, mechanism.base.unit, evidence)
        free = input_is_free(mechanism, statements)
        shown = (drawn.values, statements, mechanism.query, mechanism.method, mechanism.error_bars)
        return Release(*shown, drawn.noisy if free else None, evidence if free else None, drawn.coin)


def _goes_down(mechanism: Mechanism) -> bool:
    """Whether independent whole noise is moved level by level."""
    moves = mechanism.moves
    plain = isinstance(mechanism.source, Plain) and len(moves) == 1
    return plain and moves[0].problem.integer and moves[0].way in (topdown, bluedown)


def _conditions(mechanism: Mechanism) -> bool:
    """Whether whole noise on a hierarchy is conditioned, and nothing else."""
    source = mechanism.source
    if mechanism.moves or not isinstance(source, Conditioned) or source.names != ("hierarchy",):
        return False
    problem = source.plan.problem
    if problem.forest is None or len(source.plan.shares) > 1:
        return False
    if not (np.isfinite(problem.law.variances) | problem.forest.exact)[problem.forest.is_leaf].all():
        raise Refused(UNMEASURED)
    return True


@dataclass(frozen=True, eq=False)
class Here:
    """The tasks of conditional noise, done by this process one after the other."""

    works: list[Work]
    cells: list[Ints]
    keys: Keys
    by: int
    values: dict[int, Ints]

    def told(self) -> list[Told]:
        """What every piece tells before messages are made."""
        return [conditioned.told(work, own) for work, own in zip(self.works, self.cells, strict=True)]

    def grafts(self, some: Ints, pull: Floats) -> dict[int, tuple[Graft | None, ...] | None]:
        """The messages of the roots of some pieces."""
        slopes = pull.reshape(-1, self.by)
        return {i: conditioned.grafts(self.works[i], self.cells[i], slopes[i]) for i in some.tolist()}

    def drawn(self, some: Ints, pull: Floats, totals: Ints, attempts: Ints) -> dict[int, Bools | None]:
        """Draw some pieces; return which roots' trees are rejected."""
        slopes, sums, tries = (each.reshape(-1, self.by) for each in (pull, totals, attempts))
        rejected: dict[int, Bools | None] = {}
        for i in some.tolist():
            given = self.works[i], self.cells[i], slopes[i], sums[i], tries[i]
            self.values[i], rejected[i] = conditioned.drawn(*given, self.keys)
        return rejected


def at_once(pieces: Pieces, cells: Ints, keys: Keys) -> Ints:
    """Make a table of conditional noise undivided, from words of its own, where counts leave a piece without messages.

    The law is the same; that it is drawn here says something of the counts only to those who measure time or memory.
    """
    mechanism = pieces.mechanism
    return np.asarray(mechanism.simulate(mechanism.query.answer(cells), 1, keys.at("at once"))[0])


def in_one_process(pieces: Pieces, cells: Ints, keys: Keys) -> tuple[Ints, Ints]:
    """Make the table piece by piece here: its values and the noisy ones (the same where noise is conditioned)."""
    above, below = pieces.cut.split(cells)
    if pieces.conditions:
        values = np.empty(pieces.mechanism.query.n, dtype=np.int64)
        works = [pieces.work(pieces.cut.piece(number)) for number in pieces.numbers]
        here = Here(works, below, keys, pieces.cut.width, {})
        top = pieces.work(pieces.cut.top())
        try:
            values[top.piece.outputs[: top.piece.own]] = conditioned.conditioned(top, above, here, keys)
        except Undivided:
            values = at_once(pieces, cells, keys)
            return values, values
        for number, work in enumerate(here.works):
            values[work.piece.outputs] = here.values[number]
        return values, values
    values, noisy = (np.empty(pieces.mechanism.query.n, dtype=np.int64) for _ in range(2))
    works = [pieces.work(pieces.cut.piece(number)) for number in pieces.numbers]
    done = [ascend(work, own, keys) for work, own in zip(works, below, strict=True)]
    top = pieces.work(pieces.cut.top())
    at = top.piece.outputs[: top.piece.own]
    values[at], noisy[at], totals = decide(top, above, (head for *_, head in done), keys)
    by = pieces.cut.width
    for number, (work, (truth, seen, _)) in enumerate(zip(works, done, strict=True)):
        final = totals[number * by : (number + 1) * by]
        noisy[work.piece.outputs] = seen
        values[work.piece.outputs] = descend(work, truth, seen, final, keys)
    return values, noisy


def undivided(pieces: Pieces, cells: Ints, keys: Keys) -> tuple[Ints, Ints]:
    """Make the same table by moving all noisy values at once, level by level: its values and the noisy ones."""
    mechanism = pieces.mechanism
    truth = mechanism.query.answer(cells)
    noisy = np.empty(mechanism.query.n, dtype=np.int64)
    for piece in (pieces.cut.top(), *map(pieces.cut.piece, pieces.numbers)):
        at = piece.outputs[: piece.own]
        noisy[at] = measured(pieces.work(piece), truth[at], keys)
    return moved(mechanism.moves, noisy[None].copy(), truth, coins_of(keys))[0], noisy
