"""Mechanisms whose tables are made in pieces, level by level, and what a cluster needs for it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import pairwise
from typing import Any

import numpy as np

from holdfast.arguments import Refused
from holdfast.arrays import Ints
from holdfast.mechanism.mechanism import Mechanism
from holdfast.mechanism.noise_source import Plain
from holdfast.mechanism.published.linear_estimates import input_is_free, known_errors
from holdfast.noise.spread import Spread
from holdfast.onto.baselines import bluedown, topdown
from holdfast.release.pieces.cut import Cut, Piece, Rules, Work
from holdfast.release.pieces.tasks import Group, Held

NOT_IN_PIECES = (
    "a cluster draws hierarchies level by level, in whole numbers: write method: topdown or bluedown, or leave out "
    "engine: spark, and the cluster counts and this process draws"
)
#: How often tasks go over the pieces: to measure them, and to write them.
PASSES = 2
#: Memory of a task before it has pieces, and for every figure of a group of them, and bytes that travel for a figure:
#: all somewhat more than were measured (benchmarks/README.md).
TASK_BYTES, FIGURE_BYTES, FIGURE_SENT = 420 << 20, 1_000, 12


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
            f"{'tasks' if self.groups > 1 else 'task'} in each of {self.passes} passes; a task needs about "
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
        query, moves = mechanism.query, mechanism.moves
        whole = query.grid is None and isinstance(mechanism.source, Plain)
        level_by_level = len(moves) == 1 and moves[0].way in (topdown, bluedown) and moves[0].problem.integer
        if query.tree is None or not whole or not level_by_level:
            raise Refused(NOT_IN_PIECES)
        by = query.n // query.tree.n
        return cls(mechanism, Cut.of(query.tree, by))

    def work(self, piece: Piece, *, estimated: bool = False) -> Work:
        """Gather what is public about a piece; `estimated`: and what its intervals stand around."""
        at, law = piece.outputs, self.mechanism.base.law.at(piece.outputs)
        estimate = self._estimate.at(at) if estimated and self._estimate is not None else None
        return Work(piece, law, self.mechanism.moves[0].way is bluedown, self._moved.at(at), estimate)

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
    def _moved(self) -> Rules:
        problem = self.mechanism.moves[0].problem
        assert self.mechanism.method  # known from now on
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
        sent, tasks = self.mechanism.query.n * FIGURE_SENT, self.cut.groups.size - 1
        return Share(level, self.cut.count, tasks, PASSES, TASK_BYTES + FIGURE_BYTES * self.cut.largest_group, sent)
