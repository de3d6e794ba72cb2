"""A census made stretch by stretch: margins of a cube in every area, estimated, shared out and counted up.

What is below an area at the cut tells the top, for every set of axes, one estimate of its coordinates and a variance;
the top tells the final ones, and the whole cells that the area gets. Both parts go through the steps of the undivided
census (onto/areas) with what lower and upper levels know of each other (docs/theory/pieces.md, section 5).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from holdfast.arguments import Refused
from holdfast.arrays import Bools, Floats, Ints
from holdfast.domains import Cube, Hierarchy
from holdfast.mechanism.mechanism import Mechanism
from holdfast.mechanism.noise_source import Plain
from holdfast.noise import Independent
from holdfast.onto.areas.shared_out import Sharing
from holdfast.onto.areas.steps import BELOW, EVERYTHING, OWN, Steps, filled_areas
from holdfast.onto.baselines import bluedown, topdown
from holdfast.onto.ways import areas
from holdfast.queries.areas.area_equalities import Axes, Keep, known_sets
from holdfast.queries.areas.area_margins import AreaMargins
from holdfast.queries.areas.rules import NO_LIMIT, Rules
from holdfast.randomness import Keys
from holdfast.release.pieces.cut import TOP, Group, coins_of
from holdfast.release.pieces.passes import PASSES, TASK_BYTES, Pieces, Share
from holdfast.release.table.area_cut import AreaCut
from holdfast.trees.normal.attached import Attached, Message, message
from holdfast.trees.normal.padded import Padded
from holdfast.trees.normal.residuals import Residuals

NO_CENSUS = (
    "a cluster draws margins in areas from noise on the figures, moved onto what must hold in whole numbers: {}, or "
    "leave out engine: spark, and the cluster counts and this process draws"
)
#: Memory of a task for every cell and figure of a stretch, and bytes that travel for one, as measured.
NUMBER_BYTES, SENT = 1_150, 12
#: What each way is told by.
SOURCES: dict[Any, str] = {areas: EVERYTHING, bluedown: BELOW, topdown: OWN}


@dataclass(frozen=True, eq=False)
class Census:
    """What is public of a census and the same in all its parts: levels, margins, laws of noise, weights.

    `keep`, `known` and the groups with their `laws` and `precisions` are those of the whole. `wide` are the margins by
    which others tell areas at the cut: their own, and those of lower levels. `sets`: sets of cells that rules speak of.
    """

    table: Cube
    levels: tuple[str, ...]
    keep: Keep
    wide: tuple[Axes, ...]
    depth: int
    laws: tuple[Any, ...]
    precisions: Mapping[tuple[int, Axes], float]
    known: tuple[Sharing, ...]
    source: str
    signed: bool
    sets: Bools | None = None


@dataclass(frozen=True, eq=False)
class Stretch:
    """Areas of a census, numbered level by level, with names, and the counts of their leaves' cells, (leaves, cells).

    `numbers` are their own in the whole; in the top, which begins with the first, the leaves are the areas at the cut.
    `empty`: which cells of the leaves are 0. `limits`: of the rules' sets in every area, low and high.
    """

    numbers: Ints
    parents: Ints
    names: list[str] | None
    cells: Ints
    empty: Bools | None
    limits: tuple[Ints, ...] | None


@dataclass(frozen=True, eq=False)
class Part:
    """A stretch of a census, or the top, ready to be drawn."""

    census: Census
    of: Stretch

    @property
    def is_top(self) -> bool:
        return int(self.of.numbers[0]) == 0

    @property
    def first(self) -> int:
        """The depth of its roots in the whole."""
        return 0 if self.is_top else self.census.depth

    @property
    def told_at(self) -> int:
        """The depth, among its own, of the areas at the cut, of which others tell."""
        return self.census.depth if self.is_top else 0

    @property
    def levels(self) -> slice:
        return slice(0, self.census.depth + 1) if self.is_top else slice(self.census.depth, None)

    @cached_property
    def tree(self) -> Hierarchy:
        return Hierarchy.from_parents(self.of.parents, self.of.names, self.census.levels[self.levels])

    @cached_property
    def at_cut(self) -> Ints:
        return self.tree.nodes_at(self.told_at)

    @cached_property
    def asked(self) -> AreaMargins:
        """Its own figures; those of areas at the cut belong to the stretches."""
        keep = self.census.keep[self.levels]
        return AreaMargins.of(self.tree, self.census.table, (*keep[:-1], ()) if self.is_top else keep)

    @cached_property
    def wide(self) -> AreaMargins:
        """The same, with all margins by which areas at the cut are told."""
        keep = list(self.asked.keep)
        keep[self.told_at] = self.census.wide
        return AreaMargins.of(self.tree, self.census.table, tuple(keep))

    @cached_property
    def places(self) -> Ints:
        """Where its own figures stand among all."""
        result = np.empty(self.asked.n, np.int64)
        for g, group in enumerate(self.asked.groups):
            self.asked.set(result, g, self.wide.outputs(self.wide.groups.index(group)))
        return result

    def widened(self, values: Ints) -> Floats:
        """Values of its own figures in their places; 0 elsewhere."""
        result = np.zeros(self.wide.n)
        result[self.places] = values
        return result

    @cached_property
    def law(self) -> Independent:
        """The law of the noise of its own figures."""
        first = sum(depth < self.first for depth, _ in self.census.precisions)
        return Independent(self.census.laws, self.asked.level_of + np.int32(first), self.asked.n)

    def measured(self, keys: Keys) -> Ints:
        """The true values of its own figures with independent noise; 0 where nothing is measured."""
        if not self.asked.n:
            return np.zeros(0, np.int64)
        noise = self.law.measured_draw(1, keys.at("noise", TOP if self.is_top else int(self.of.numbers[0]), 0))[0]
        return np.asarray(noise + self.asked.totals(self.of.cells) * np.isfinite(self.law.variances))

    def precisions(self, *, below: bool) -> tuple[float, ...]:
        """With which each group is measured; `below`: also areas at the cut, of which otherwise others tell."""
        given = self.census.precisions
        return tuple(
            given.get((depth + self.first, axes), 0.0) if below or depth != self.told_at else 0.0
            for depth, axes in self.wide.groups
        )

    def rules(self, tightened: tuple[Ints, ...] | None = None) -> Rules | None:
        """The rules of its areas; `tightened`: limits of sets and atoms at the cut that follow from what is below."""
        if self.of.limits is None or self.census.sets is None:
            return None
        low, high = (each.copy() for each in self.of.limits)
        found = Rules(self.wide, self.census.sets, low, high)
        if tightened is None:
            return found
        shape = self.tree.n, found.inside.shape[1]
        atoms = np.zeros(shape, np.int64), np.full(shape, NO_LIMIT, np.int64)
        low[self.at_cut], high[self.at_cut], atoms[0][self.at_cut], atoms[1][self.at_cut] = tightened
        return replace(found, atoms=atoms)

    def moved(
        self, told: Message, noisy: Floats, coin: int, rules: Rules | None, empty: Bools | None, roots: Ints | None
    ) -> tuple[Ints, Floats, Message]:
        """Whole cells of its leaves, the best linear estimate of its figures, and the final one of areas at the cut.

        `noisy`: measured values in their places. `roots`: cells that its roots have got.
        """
        joined = Attached(self.wide, self.precisions(below=False), self.told_at, told)
        rows = joined.settled(noisy[None], below=False)
        by = linear = joined.outputs_of(rows)[0]
        if self.census.source != EVERYTHING:
            below = self.census.source == BELOW
            by = joined.outputs_of(joined.settled(noisy[None], below=True))[0] if below else noisy
        known = self.census.known[self.levels]
        steps = Steps(joined, True, self.census.signed, empty, rules, self.census.source, self.of.numbers, known)
        cells = np.asarray(steps.shared_out(by, coin, roots)[0])
        return cells, linear[self.places], message(joined, rows, self.told_at, exact=True)

    def made(self, cells: Ints, noisy: Ints, centre: Floats) -> Made:
        return Made(cells, np.asarray(self.asked.totals(cells)), noisy, centre)

    def wrong(self, cells: Ints, roots: Ints | None) -> Iterator[str]:
        """Say what does not hold in whole cells of its leaves, by sums of its own; `roots`: what they add up to."""
        sums, depth = [cells], len(self.tree.levels) - 1
        while depth:  # areas are numbered level by level, and parts of an area follow each other
            nodes = self.tree.nodes_at(depth)
            begin = np.flatnonzero(np.diff(self.of.parents[nodes], prepend=-1))
            sums.insert(0, np.add.reduceat(sums[0], begin, axis=0))
            depth -= 1
        if roots is not None and (sums[0] != roots).any():
            yield "the cells of a part are not those of the areas above it"
        if not self.census.signed and (cells < 0).any():
            yield "a cell of a part is negative"
        if self.of.empty is not None and cells[self.of.empty].any():
            yield "a cell of a part is not empty, and must be"
        if self.of.limits is not None and self.census.sets is not None:
            low, high = self.of.limits
            found = np.concatenate(sums) @ self.census.sets.T.astype(np.int64)
            if ((found < low) | (found > np.where(high >= NO_LIMIT, found, high))).any():
                yield "a figure of a part is out of its bounds, or not the exact one"


class Told(NamedTuple):
    """What a stretch tells of its roots: estimates, noisy values, which cells can be filled, limits of rules."""

    estimates: Message
    noisy: Floats | None
    filled: Bools | None
    limits: tuple[Ints, ...] | None


class Given(NamedTuple):
    """What a stretch is told of its roots: final estimates, and their whole cells."""

    estimates: Message
    cells: Ints


class Made(NamedTuple):
    """What was made of a part: whole cells of its leaves, its figures, noisy ones, and their linear estimates."""

    cells: Ints
    values: Ints
    noisy: Ints
    centre: Floats


def measure(group: Group, _: object, census: Census, secret: bytes) -> Told:
    """Measure a stretch and tell of its roots what follows; when it is finished, the same words draw it again."""
    part = Part(census, group.work)
    noisy, empty, book = part.widened(part.measured(Keys.of(secret))), part.of.empty, part.rules()
    told = Residuals(part.wide, part.precisions(below=True))
    estimates = message(told, told.settled(noisy[None], below=True), 0)
    return Told(
        estimates,
        noisy[: part.wide.starts[part.tree.roots.size]] if census.source == OWN else None,
        None if empty is None else filled_areas(part.tree, ~empty)[part.tree.roots],
        None if book is None else tuple(each[part.tree.roots] for each in book.limits),
    )


def finished(part: Part, given: Given, secret: bytes) -> Made:
    """Make the table of a stretch from what is told of its roots."""
    keys = Keys.of(secret)
    noisy, coin = part.measured(keys), int(coins_of(keys)[0])
    beside = part.rules(), part.of.empty, given.cells
    cells, centre, _ = part.moved(given.estimates, part.widened(noisy), coin, *beside)
    return part.made(cells, noisy, centre)


def decided(part: Part, below: Sequence[Told], secret: bytes) -> tuple[Made, list[Given]]:
    """Make the top from what all stretches tell, and what each of them is told."""
    keys = Keys.of(secret)
    counts = [next(iter(each.estimates.values()))[1].size for each in below]
    ends = np.cumsum(counts)[:-1].tolist()
    told = {
        axes: (
            np.concatenate([each.estimates[axes][0] for each in below]),
            np.concatenate([each.estimates[axes][1] for each in below]),
        )
        for axes in below[0].estimates
    }
    noisy = part.measured(keys)
    values = part.widened(noisy)
    if part.census.source == OWN:
        values[part.wide.starts[part.at_cut[0]] :] = np.concatenate([each.noisy for each in below])
    empty = None if below[0].filled is None else ~np.concatenate([each.filled for each in below])
    limits = None
    if below[0].limits is not None:
        limits = tuple(np.concatenate(each) for each in zip(*(one.limits for one in below if one.limits), strict=True))
    cells, centre, final = part.moved(told, values, int(coins_of(keys)[0]), part.rules(limits), empty, None)
    by_stretch: list[dict[Axes, Any]] = [{} for _ in below]
    for axes, both in final.items():
        for each, *found in zip(by_stretch, *(np.split(one, ends) for one in both), strict=True):
            each[axes] = tuple(found)
    given = [Given(each, some) for each, some in zip(by_stretch, np.split(cells, ends), strict=True)]
    return part.made(cells, noisy, centre), given


@dataclass(frozen=True, eq=False)
class AreaPieces:
    """A mechanism whose census is made stretch by stretch."""

    mechanism: Mechanism
    cut: AreaCut
    census: Census
    empty: Bools | None

    @classmethod
    def of(cls, mechanism: Mechanism) -> AreaPieces:
        """Cut a census; refused, with the reason, where it is not made in stretches."""
        query, moves, law = mechanism.query, mechanism.moves, mechanism.base.law
        assert isinstance(query, AreaMargins)
        if len(moves) != 1 or not isinstance(mechanism.source, Plain) or not moves[0].problem.integer:
            raise Refused(NO_CENSUS.format("write method: onto, topdown or bluedown, and numbers: whole"))
        problem, way = moves[0].problem, moves[0].way
        if way not in SOURCES or not (way is areas or areas.goes_down(problem)):
            raise Refused(NO_CENSUS.format("what must hold here, or so few figures, are moved in another way"))
        if not np.array_equal(problem.spreads, law.variances):
            raise Refused(NO_CENSUS.format("let errors count by the noise"))
        cut, steps = AreaCut.of(query), areas.steps_of(problem, SOURCES[way])
        if cut is None:
            raise Refused(NO_CENSUS.format("sort the rows of the domain by its levels, at least two below the root"))
        if isinstance(steps.residuals, Padded):
            raise Refused(NO_CENSUS.format("let all groups of a recoded axis have one size"))
        which = law.complete[[query.starts[nodes[0]] + begin for nodes, begin in query.places]]
        census = Census(
            table=query.table,
            levels=query.hierarchy.levels,
            keep=query.keep,
            wide=replace(steps, source=EVERYTHING).told.keep[cut.depth],
            depth=cut.depth,
            laws=tuple(law.laws[each] for each in which.tolist()),
            precisions=dict(zip(query.groups, steps.residuals.precisions, strict=True)),
            known=tuple(steps.levels),
            source=steps.source,
            signed=steps.signed,
        )
        _refuse_undetermined(census)
        return cls(mechanism, cut, census, steps.empty)

    def with_rules(self, truth: Ints) -> tuple[AreaPieces, tuple[Ints, Ints] | None]:
        """The same with the sets that rules speak of, and limits of these in every area; some are exact figures."""
        problem = self.mechanism.moves[0].problem
        rules = areas.rules_of(problem, problem.space.sides_of(truth))
        if rules is None:
            return self, None
        return replace(self, census=replace(self.census, sets=rules.sets)), (rules.low, rules.high)

    def stretch(self, nodes: Sequence[range], cells: Ints, limits: tuple[Ints, Ints] | None) -> Stretch:
        """These areas, level by level; `cells`: of the lowest of them."""
        tree, first = self.cut.query.hierarchy, int(self.cut.query.hierarchy.leaves[0])
        numbers = np.concatenate([np.arange(each.start, each.stop) for each in nodes])
        parents = np.searchsorted(numbers, tree.parents[numbers])
        parents[: len(nodes[0])] = -1
        names = None if tree.given_names is None else tree.given_names[numbers].tolist()
        empty = self.empty if numbers[0] else None
        if empty is not None:
            empty = empty[nodes[-1].start - first : nodes[-1].stop - first]
        own = None if limits is None else (limits[0][numbers], limits[1][numbers])
        return Stretch(numbers, parents, names, cells, empty, own)

    def top(self, cells: Ints, limits: tuple[Ints, Ints] | None) -> Stretch:
        """Everything above the cut, and the areas at it; `cells`: of all leaves, (leaves, cells)."""
        tree, depth = self.cut.query.hierarchy, self.cut.depth
        nodes = [range(*tree.level_start[d : d + 2].tolist()) for d in range(depth + 1)]
        sums = np.add.reduceat(cells, self.cut.begins[-1][:-1] - int(tree.leaves[0]), axis=0)
        return self.stretch(nodes, sums, limits)

    def stretches(self, cells: Ints, limits: tuple[Ints, Ints] | None) -> Iterator[Stretch]:
        """All stretches with their counts, one after the other."""
        first = int(self.cut.query.hierarchy.leaves[0])
        for number in range(self.cut.stretches):
            nodes = self.cut.nodes(number)
            yield self.stretch(nodes, cells[nodes[-1].start - first : nodes[-1].stop - first], limits)


def share_of(mechanism: Mechanism) -> Share:
    """What the tasks of a cluster do and need, by public things alone; refused where it does not draw."""
    if not isinstance(mechanism.query, AreaMargins):
        return Pieces.of(mechanism).share
    cut = AreaPieces.of(mechanism).cut
    largest = int(np.add.reduceat(cut.sizes, cut.ends[:-1]).max())
    level, sent = cut.query.hierarchy.levels[cut.depth], int(cut.sizes.sum()) * SENT
    return Share(level, cut.stretches, cut.stretches, PASSES, TASK_BYTES + NUMBER_BYTES * largest, sent)


def _refuse_undetermined(census: Census) -> None:
    """Refuse what a stretch does not determine by itself."""
    below = (census.wide, *census.keep[census.depth + 1 :])
    for axes in known_sets(census.table, below):
        last = max(d for d, kept in enumerate(below) if any(census.table.tells(each, axes) for each in kept))
        told = (
            p
            for (depth, kept), p in census.precisions.items()
            if depth == last + census.depth and census.table.tells(kept, axes)
        )
        if not any(p > 0 for p in told):
            name = census.table.margin_name(axes)
            raise Refused(NO_CENSUS.format(f"give a share to {name} at the lowest level that asks for it"))
