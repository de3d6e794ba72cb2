"""Mechanisms whose tables are made in pieces, and the two ways to do so in one process."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import pairwise
from typing import Any

import numpy as np

from holdfast.arguments import Refused
from holdfast.arrays import Bools, Floats, Ints
from holdfast.mechanism.mechanism import Mechanism
from holdfast.mechanism.noise_source import Conditioned, Plain
from holdfast.mechanism.published.linear_estimates import input_is_free, known_errors
from holdfast.noise.spread import Spread
from holdfast.onto.baselines import bluedown, topdown
from holdfast.onto.ways import hierarchy
from holdfast.release.pieces.cut import Cut, Piece, Rules, Way, Work
from holdfast.release.pieces.tasks import Group, Held

NOT_IN_PIECES = (
    "a hierarchy is drawn in pieces only where whole noise is conditioned or moved to whole numbers by squares: write "
    "method: given, onto, given-then-onto, topdown or bluedown, or leave out engine: spark"
)
UNMEASURED = (
    "engine: spark draws given, onto and given-then-onto only where the last level of the hierarchy is measured: give "
    "it a share of the budget, or leave out engine: spark"
)


#: The ways to move noisy values that are made in pieces.
WAYS: dict[Any, Way] = {topdown: "topdown", bluedown: "bluedown", hierarchy: "nearest"}
#: About how often tasks go over the pieces, the last time to write them; the nearest table asks as often as it must.
PASSES: dict[Way, int] = {"given": 4, "topdown": 2, "bluedown": 2, "nearest": 6}
#: Memory of a task before it has pieces, and for every figure of a group of them; bytes that
#: travel for a figure, and for every root of a piece that is conditioned: all somewhat more than were measured
#: (benchmarks/README.md).
TASK_BYTES, FIGURE_BYTES = 420 << 20, 1_000
FIGURE_SENT, ROOT_SENT = 12, 16 << 10


@dataclass(frozen=True)
class Share:
    """How a cluster shares the work: pieces below the nodes of a level, how often tasks go over them, memory, bytes."""

    level: str
    pieces: int
    groups: int
    passes: int
    bytes_each: int
    bytes_sent: int

    def __str__(self) -> str:
        return (
            f"the cluster draws {self.pieces} pieces below the nodes of {self.level!r}, in {self.groups} "
            f"{'tasks' if self.groups > 1 else 'task'} in each of about {self.passes} passes; a task needs about "
            f"{self.bytes_each / 2**20:.0f} MiB, about {self.bytes_sent / 2**20:.1f} MiB travel to tasks and back, and "
            "nothing is shuffled but distinct values when records are counted"
        )


@dataclass(frozen=True, eq=False)
class Pieces:
    """A mechanism whose table is made piece by piece."""

    mechanism: Mechanism
    cut: Cut

    @classmethod
    def of(cls, mechanism: Mechanism) -> Pieces:
        """Cut a mechanism's hierarchy; refused where its table is not made in pieces."""
        query = mechanism.query
        if (
            query.tree is None
            or query.grid is not None
            or not (_moves(mechanism) if mechanism.moves else _conditions(mechanism))
        ):
            raise Refused(NOT_IN_PIECES)
        by = query.n // query.tree.n
        return cls(mechanism, Cut.of(query.tree, by))

    @cached_property
    def way(self) -> Way:
        moves = self.mechanism.moves
        return WAYS[moves[0].way] if moves else "given"

    @cached_property
    def method(self) -> str:
        return self.mechanism.method

    @cached_property
    def conditions(self) -> bool:
        """Whether noise is conditioned; otherwise it is independent."""
        return isinstance(self.mechanism.source, Conditioned)

    def work(self, piece: Piece, *, estimated: bool = False) -> Work:
        """Gather what is public about a piece; `estimated`: and what its intervals stand around."""
        at, law = piece.outputs, self.mechanism.base.law.at(piece.outputs)
        drawn = None if self._drawn is None else self._drawn.at(at)
        rules = drawn if self._moved is None else self._moved.at(at)
        assert rules is not None
        estimate = self._estimate.at(at) if estimated and self._estimate is not None else None
        return Work(piece, law, self.way, rules, drawn, estimate)

    def groups(
        self, cells: Ints, sheet: Callable[[Ints, int, int], Any] = lambda *_: None, *, estimated: bool = False
    ) -> Iterator[Group]:
        """Hand out all pieces below the cut with their counts, group by group.

        `sheet` is made from the outputs of a group and the numbers of its first piece and of the first one behind it.
        """
        for first, behind in pairwise(self.cut.groups.tolist()):
            works = [self.work(self.cut.piece(number), estimated=estimated) for number in range(first, behind)]
            held = [Held(work, self.cut.cells(work.piece, cells)) for work in works]
            yield Group(
                first, held, partial(sheet, np.concatenate([work.piece.outputs for work in works]), first, behind)
            )

    @cached_property
    def _drawn(self) -> Rules | None:
        source = self.mechanism.source
        if not isinstance(source, Conditioned):
            return None
        forest = source.plan.problem.forest
        assert forest is not None
        bounds = source.system.integer_bounds(source.base.unit)
        return Rules.of(self.mechanism.base.law.variances, forest.exact, *bounds)

    @cached_property
    def _moved(self) -> Rules | None:
        if not self.mechanism.moves:
            return None
        problem = self.mechanism.moves[0].problem
        assert self.way != "given"  # it and the method are known from now on
        assert self.method
        problem.forget()  # what would move the whole at once
        return Rules.of(problem.spreads, problem.exact, *problem.system.integer_bounds(problem.unit))

    @cached_property
    def errors(self) -> tuple[Mechanism | None, Spread | None]:
        """The mechanism whose draw intervals stand around, and the law of its errors; None where it is not known."""
        return known_errors(self.mechanism, published=self.noisy_are_published)

    @cached_property
    def noisy_are_published(self) -> bool:
        """Whether the noisy values behind the table are published beside it."""
        mechanism = self.mechanism
        return input_is_free(mechanism, (mechanism.guarantee, *mechanism.guarantees[1:]))

    @cached_property
    def _estimate(self) -> Rules | None:
        """What the estimate that intervals stand around is moved to; None where they stand around what is drawn."""
        found, spread = self.errors
        if found is None or spread is None or found is self.mechanism or not found.moves:
            return None
        problem = found.moves[0].problem
        problem.forget()
        nothing = np.zeros(problem.n, dtype=np.int64)
        return Rules.of(problem.spreads, problem.exact, nothing, nothing)

    @property
    def share(self) -> Share:
        """What the tasks of a cluster do and need, by public things alone."""
        level = self.cut.tree.levels[self.cut.depth]
        sent, passes = self.mechanism.query.n * FIGURE_SENT, PASSES[self.way]
        if self.conditions:
            sent += ROOT_SENT * self.cut.nodes.size * self.cut.by
            passes += 0 if self.way == "given" else PASSES["given"]
        tasks = self.cut.groups.size - 1
        return Share(level, len(self.numbers), tasks, passes, TASK_BYTES + FIGURE_BYTES * self.cut.largest_group, sent)

    @property
    def numbers(self) -> range:
        return range(self.cut.count)


def _moves(mechanism: Mechanism) -> bool:
    """Whether independent whole noise, or one that is conditioned on equalities, is moved to whole numbers."""
    moves, source = mechanism.moves, mechanism.source
    if len(moves) != 1 or not moves[0].problem.integer or moves[0].way not in WAYS:
        return False
    problem = moves[0].problem
    if moves[0].way is hierarchy and problem.norm != "l2":
        return False
    if moves[0].way is hierarchy and not _leaves_known(problem.forest, problem.spreads, problem.exact):
        raise Refused(UNMEASURED)
    return isinstance(source, Plain) or (moves[0].way is hierarchy and _conditions(mechanism))


def _conditions(mechanism: Mechanism) -> bool:
    source = mechanism.source
    if not isinstance(source, Conditioned) or source.names != ("hierarchy",):
        return False
    problem = source.plan.problem
    if problem.forest is None or len(source.plan.shares) > 1:
        return False
    if not _leaves_known(problem.forest, problem.law.variances, problem.forest.exact):
        raise Refused(UNMEASURED)
    return True


def _leaves_known(forest: Any, spreads: Floats, exact: Bools) -> bool:
    return bool((np.isfinite(spreads) | exact)[forest.is_leaf].all())
