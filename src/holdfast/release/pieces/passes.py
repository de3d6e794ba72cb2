"""A table made piece by piece, level by level (TopDown, BlueDown): estimates go up, totals come down.

Level by level, the children of an output depend on what is above them through its final value alone, and on what is
beside them not at all. So a piece that is told the final values of its roots makes what the whole would make, bit for
bit (docs/theory/pieces.md).

Intervals stand around another estimate: least squares under the equalities alone. What is below a root tells of its
true value what the estimate of the piece alone and its variance tell, so the top sees a leaf with these; a piece that
is told the estimates of its roots goes on as if they were exact. In real numbers this is the estimate of the whole;
rounding may differ in the last digits, which ends of intervals on whole numbers do not show (`ErrorBars.within`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from holdfast.arguments import LARGEST, Refused
from holdfast.arrays import Array, Bools, Floats, Ints, Words
from holdfast.domains import Hierarchy
from holdfast.mechanism.mechanism import Mechanism
from holdfast.mechanism.noise_source import Plain
from holdfast.mechanism.published.linear_estimates import input_is_free, known_errors
from holdfast.noise.spread import Spread
from holdfast.onto.baselines import bluedown, topdown
from holdfast.randomness import Keys
from holdfast.release.pieces.cut import Cut, Group, Held, Piece, Rules, Tasks, Work, by_piece, coins_of, measured
from holdfast.trees.nearest.best_linear import error_variances
from holdfast.trees.nearest.levelwise import Levelwise
from holdfast.trees.nearest.nearest import Nearest

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
            yield Group(held, partial(sheet, np.concatenate([work.piece.outputs for work in works]), first, behind))

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


# --- final values ----------------------------------------------------------------------------------------------------


class Head(NamedTuple):
    """What a piece tells about its roots: estimates (whole numbers and steps), variances, least and most values."""

    estimate: Ints
    step: Floats
    variance: Floats
    least: Ints
    most: Ints


def head(held: Held, noisy: Ints) -> Head:
    rules = held.work.rules
    return Head(*_forest(held.work, rules.exact, rules.spreads).heads(noisy, *rules.bounds(held.truth)))


def of_top(work: Work, truth: Ints, noisy: Ints, heads: Sequence[Head], coins: Words) -> Ints:
    """The values of the top, and behind them the final values of the roots of all pieces, piece by piece."""
    below = Head(*(np.concatenate(each) for each in zip(*heads, strict=True)))
    own, tail = work.piece.own, slice(work.piece.own, None)
    low, high = work.rules.bounds(truth)
    low[tail], high[tail] = below.least, below.most
    spreads = np.concatenate([work.rules.spreads[:own], below.variance])
    steps = np.concatenate([np.zeros(own), below.step])
    start = np.concatenate([noisy, below.estimate])
    return np.asarray(_forest(work, work.rules.exact, spreads).move(start[None], low, high, coins, steps)[0])


def of_piece(held: Held, noisy: Ints, totals: Ints, coins: Words) -> Ints:
    """The values of a piece below the cut from its noisy ones and the final values of its roots."""
    rules, roots = held.work.rules, held.work.piece.parents < 0
    low, high = rules.bounds(held.truth)
    low[roots] = high[roots] = totals
    forest = _forest(held.work, rules.exact | roots, rules.spreads)
    return np.asarray(forest.move(noisy[None], low, high, coins)[0])


def _forest(work: Work, exact: Bools, spreads: Floats) -> Levelwise:
    return Levelwise.of(work.piece.parents, exact, spreads, combined=work.combined, numbers=work.piece.outputs)


# --- estimates that intervals stand around ---------------------------------------------------------------------------


class Estimated(NamedTuple):
    """What a piece tells about its roots: estimates and their variances, infinite where it tells nothing."""

    estimate: Floats
    variance: Floats


def estimated(held: Held, noisy: Ints, rules: Rules) -> Estimated:
    """The estimates of a piece's roots from what was measured in it alone."""
    roots = held.work.piece.parents < 0
    nearest = Nearest.of(held.work.piece.parents, rules.exact, rules.spreads, absolute=False)
    if not nearest.determined:
        return Estimated(np.zeros(roots.sum()), np.full(roots.sum(), np.inf))
    known = np.where(np.isfinite(rules.spreads) & ~rules.exact, rules.spreads, 0.0)
    found = _moved(nearest, noisy, rules.exact, held.truth)
    return Estimated(found[roots], error_variances(nearest, known)[roots])


def estimates_of_top(work: Work, rules: Rules, truth: Ints, noisy: Ints, below: Sequence[Estimated]) -> Floats:
    """The estimates of the top's own outputs, and behind them of the roots of all pieces, piece by piece."""
    own = work.piece.own
    estimate, variance = (np.concatenate(each) for each in zip(*below, strict=True))
    spreads = np.concatenate([rules.spreads[:own], variance])
    exact = rules.exact.copy()
    exact[own:] |= variance == 0.0
    known = truth.astype(np.float64)
    known[own:] = np.where(rules.exact[own:], known[own:], estimate)
    nearest = Nearest.of(work.piece.parents, exact, spreads, absolute=False)
    return _moved(nearest, np.concatenate([noisy, estimate]), exact, known)


def estimates_of_piece(held: Held, noisy: Ints, rules: Rules, estimates: Floats) -> Floats:
    """The estimates of a piece's outputs from those of its roots."""
    roots = held.work.piece.parents < 0
    exact, known = rules.exact | roots, held.truth.astype(np.float64)
    known[roots] = estimates
    nearest = Nearest.of(held.work.piece.parents, exact, rules.spreads, absolute=False)
    return _moved(nearest, noisy, exact, known)


def _moved(nearest: Nearest, noisy: Ints | Floats, exact: Bools, known: Ints | Floats) -> Floats:
    low, high = np.where(exact, known, -float(LARGEST)), np.where(exact, known, float(LARGEST))
    return np.asarray(nearest.move(noisy[None].astype(np.float64), low, high)[0])


# --- both, over all pieces -------------------------------------------------------------------------------------------


class Finished(NamedTuple):
    """The values of a piece, the noisy ones from which they were moved, and what intervals stand around."""

    values: Ints
    noisy: Ints
    centre: Array


@dataclass(frozen=True, eq=False)
class Decided:
    """The top as it is, and what each piece below is told to be finished."""

    top: Held
    made: Finished
    told: list[tuple[Ints, Floats | None]]


#: What a piece tells to what is above the cut; no estimate where no interval stands around it.
Above = tuple[Head, Estimated | None]


def measure(held: Held, _: object, secret: bytes) -> Above:
    noisy, rules = measured(held.work, held.truth, Keys.of(secret)), held.work.linear
    return head(held, noisy), None if rules is None else estimated(held, noisy, rules)


def measure_all(group: Group, _: object, secret: bytes) -> list[Above]:
    return by_piece(group, None, partial(measure, secret=secret))


def finished(held: Held, told: tuple[Ints, Floats | None], secret: bytes) -> Finished:
    """Make the values of a piece from its noisy ones, which the same words make again, and the totals of its roots."""
    (totals, estimates), keys, rules = told, Keys.of(secret), held.work.linear
    noisy = measured(held.work, held.truth, keys)
    values = of_piece(held, noisy, totals, coins_of(keys))
    if rules is None or estimates is None:
        return Finished(values, noisy, noisy)
    return Finished(values, noisy, estimates_of_piece(held, noisy, rules, estimates))


def decided(pieces: Pieces, work: Work, cells: Ints, tasks: Tasks, secret: bytes) -> Decided:
    """Let all pieces be measured, and decide everything above the cut."""
    by, own, rules = pieces.cut.width, work.piece.own, work.linear
    counted = np.concatenate(pieces.cut.above(cells))
    truth = np.asarray(Hierarchy.from_parents(work.piece.parents).sum_up(counted))
    groups: dict[int, None] = dict.fromkeys(range(pieces.cut.groups.size - 1))
    told = tasks.each(partial(measure_all, secret=secret), groups)
    below: list[Above] = [each for group in sorted(told) for each in told[group]]
    noisy = measured(work, truth[:own], Keys.of(secret))
    values = of_top(work, truth, noisy, [known for known, _ in below], coins_of(Keys.of(secret)))
    centre: Array = noisy
    estimates: Any = [None] * pieces.cut.count
    if rules is not None:
        centre = estimates_of_top(work, rules, truth, noisy, [known for _, known in below if known is not None])
        estimates = centre[own:].reshape(-1, by)
    made = Finished(values[:own], noisy, centre[:own])
    totals = values[own:].reshape(-1, by)
    return Decided(Held(work, counted), made, list(zip(totals, estimates, strict=True)))
