"""Shared moves: the changes of records that keep every invariant, and how far they move the answers.

A statement about neighbours that share the invariants (THEORY §2) is a statement about these moves, of the smallest
number of records that has any. Every number here errs on the safe side: `largest` is never too small, `frozen` never
lists too few outputs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, partial
from typing import Any

import numpy as np
from scipy.sparse import csc_array

from holdfast.arguments import Refused, one_of, whole
from holdfast.arrays import Bools, Ints
from holdfast.domains import Cube
from holdfast.queries.areas.area_classes import Spans, area_signatures
from holdfast.queries.areas.area_margins import AreaMargins
from holdfast.queries.co_changes.cube import smallest_free_sets
from holdfast.queries.co_changes.multisets import joint_moves
from holdfast.queries.co_changes.signatures import Signatures, independent, opposite, signatures
from holdfast.queries.columns import Columns, distinct_only, largest_column, row_extremes
from holdfast.queries.exact_weights import NOTHING, Bound, Weights, greatest, groups_of, sqrt_up
from holdfast.queries.kinds import Kind, kinds_of_columns, maximal, refuse_many
from holdfast.queries.linear_query import Query, as_classes
from holdfast.queries.neighbours import ADD_REMOVE, REPLACE_ONE, Neighbours

#: The most replacements that are searched by matching sums of signatures.
MOST_REPLACEMENTS = 4
#: Moves of a cube with more cells than this come from the closed form, which only bounds unequal weights.
LISTED_CUBE = 400


@dataclass(frozen=True, eq=False, repr=False)
class Moves:
    """All changes of at most `records` records, counted by `neighbours`, that keep the invariants.

    everything: the whole original difference set keeps them, so nothing is lost (scope "all"). empty: no such
    move was found up to the searched size. exact: `largest` is attained. frozen: the outputs that no listed
    move changes although some change of records alters them; they are not protected at all.
    """

    neighbours: Neighbours
    everything: bool
    empty: bool
    exact: bool
    frozen: Ints
    n: int
    bound_of: Callable[[Weights, int], Bound]
    kinds_of: Callable[[Ints | None], list[Kind]]

    @property
    def records(self) -> int:
        """How many records change together at most, in the relation `neighbours`."""
        return self.neighbours.records

    def bound(self, values: Sequence[Any], which: Any, p: int) -> Bound:
        """Return max over the moves of Σ_i values[which[i]]·|d_i|^p with whether it is attained."""
        one_of("p", p, [1, 2])
        return self.bound_of(Weights.of(values, which, self.n), p)

    def largest(self, values: Sequence[Any], which: Any, p: int) -> Fraction:
        """Return max over the moves of Σ_i values[which[i]]·|d_i|^p; never too small."""
        return self.bound(values, which, p).value

    def kinds(self, which: Any = None) -> list[Kind]:
        """Return the maximal multisets of (|d_i|, which[i]) over the moves; refused when too many to list."""
        return self.kinds_of(groups_of(which, self.n))

    def __repr__(self) -> str:
        if self.empty:
            return f"Moves(none found with {self.neighbours})"
        return f"Moves({self.neighbours}, {self.frozen.size} outputs frozen)"


def no_moves(neighbours: Neighbours, n: int, frozen: Ints) -> Moves:
    """Return the empty set of moves: every output that records can alter is frozen."""
    return Moves(neighbours, False, True, True, frozen, n, lambda _weights, _p: NOTHING, lambda _which: [])


def shared_moves(
    query: Query,
    rows: Any,
    neighbours: Any,
    allowed: Any = None,
    *,
    cube_margins: Any = None,
    records_at_least: int = 1,
) -> Moves:
    """Return the changes of records d with rows @ d = 0, for the smallest number of records that has any.

    The number is searched from that of `neighbours` (or `records_at_least`, to ask for a larger set of moves
    that may free more outputs) on: first in the given relation; for add-remove then two and three records; then
    up to four replacements, with four records of add-remove before the third. cube_margins=(shape, keep) says that the
    query asks the cells of a cube and the rows are these margins; then the number is known in closed form.
    """
    if query.cells is None:
        raise Refused("query must have known columns for a count of shared moves")
    relation = Neighbours.of(neighbours)
    start = max(relation.records, whole("records_at_least", records_at_least, at_least=1))
    mask = query.mask(allowed)
    search = _Search(query, signatures_of(query, rows, mask), mask, relation)
    asked = Neighbours(relation.kind, start)
    if search.everything():
        return search.whole_set(asked)
    closed_form = cube_margins is not None and mask is None and query.identity
    for stage in _stages(asked):
        several = closed_form and not stage.adds and stage.records > 1
        moves = None if several and query.n > LISTED_CUBE else search.at(stage)
        if moves is None and several:
            moves = cube_moves(query.n, cube_margins, stage, search.alterable)
        if moves is not None:
            return moves
    return no_moves(stage, query.n, np.flatnonzero(search.alterable))


def _stages(asked: Neighbours) -> Iterator[Neighbours]:
    yield asked
    if not asked.adds:
        for records in range(asked.records + 1, MOST_REPLACEMENTS + 1):
            yield Neighbours(REPLACE_ONE, records)
        return
    for records in range(asked.records + 1, 4):
        yield Neighbours(ADD_REMOVE, records)
    # Where as many records come as go, two of them are one replacement.
    for records in range(max(2, -(-asked.records // 2)), max(MOST_REPLACEMENTS, -(-asked.records // 2)) + 1):
        yield Neighbours(REPLACE_ONE, records)
        if records == 2 and asked.records < 4:
            yield Neighbours(ADD_REMOVE, 4)


@dataclass(frozen=True, eq=False)
class _Search:
    """One search: the query, the signatures of its cells, the allowed cells and the original relation."""

    query: Query
    signature: Signatures
    mask: Bools | None
    relation: Neighbours

    def everything(self) -> bool:
        """Return whether every difference of the original relation keeps the invariants, if there is one."""
        if not self.alterable.any():
            return False
        classes = np.unique(self.signature.classes[self.signature.classes >= 0])
        return classes.size == 1 and (not self.relation.adds or classes[0] == 0)

    def whole_set(self, asked: Neighbours) -> Moves:
        def bound(weights: Weights, p: int) -> Bound:
            return self.query.bound(weights.values, weights.which, p, asked, self.mask)

        def kinds(which: Ints | None) -> list[Kind]:
            return self.query.kinds(which, asked, self.mask)

        exact = self.query.is_exact(asked, None, self.mask)
        return Moves(asked, True, False, exact, np.zeros(0, np.int64), self.query.n, bound, kinds)

    @cached_property
    def alterable(self) -> Bools:
        """Which outputs some change of records in the original relation alters."""
        if self.relation.adds:
            return touched_by_one(self.query, self.signature.classes >= 0)
        return touched_by_pairs(self.query, np.where(self.signature.classes >= 0, 0, -1))

    def at(self, stage: Neighbours) -> Moves | None:
        """Return the moves of one relation, or None if there are none or none were found."""
        zero = self.signature.zero if stage.adds else np.zeros(self.query.cells or 0, bool)
        one = touched_by_one(self.query, zero)
        pairs = stage.records > 1 or not stage.adds
        # Two records of a zero signature come and go alone: their pairs add nothing under add-remove.
        classes = np.where(zero, -1, self.signature.classes)
        two = touched_by_pairs(self.query, classes) if pairs else np.zeros(self.query.n, bool)
        if self._simple(stage):
            if not (one.any() or two.any()):
                return None
            bound = partial(_simple_bound, self.query, zero, classes, stage)
            return self._made(stage, one | two, bound, self._simple_kinds(zero, classes, stage))
        listed, complete = self._joint(stage)
        if complete:
            return self._listed(stage, listed) if listed.shape[1] else None
        changed = one | two
        changed[listed.indices] = True
        for records in range(2, stage.records):  # fewer records are easier to list, and their moves count
            fewer, _ = self._joint(Neighbours(stage.kind, records))
            changed[fewer.indices] = True
        if not changed.any():
            return None
        return self._made(stage, changed, partial(_triangle_bound, self.query, self.mask, stage), _refused)

    def _simple(self, stage: Neighbours) -> bool:
        """Return whether every move was shown to be a sum of single ones (zero cells) and pairs in a class."""
        distinct = self.signature.distinct()
        if stage.records == 1:
            return True
        if stage.adds and stage.records == 2:  # the only other moves add two records that cancel
            return not opposite(distinct)
        return independent(distinct)

    def _listed(self, stage: Neighbours, listed: Columns) -> Moves:
        changed = np.zeros(self.query.n, bool)
        changed[listed.indices] = True

        def bound(weights: Weights, p: int) -> Bound:
            return largest_column(listed, weights, p)

        def kinds(which: Ints | None) -> list[Kind]:
            return maximal(kinds_of_columns(listed, which))

        return self._made(stage, changed, bound, kinds)

    def _made(self, stage: Neighbours, changed: Any, bound: Any, kinds: Any) -> Moves:
        unit = Weights((Fraction(1),), None, self.query.n)
        exact = all(bound(unit, p).exact for p in (1, 2))
        frozen = np.flatnonzero(self.alterable & ~changed)
        return Moves(stage, False, False, exact, frozen, self.query.n, bound, kinds)

    def _simple_kinds(self, zero: Bools, classes: Ints, stage: Neighbours) -> Any:
        if stage.records == 1 and stage.adds:
            return lambda which: self.query.single_kinds(which, zero)
        if stage.records == 1:
            return lambda which: self.query.pair_kinds(which, classes)
        if stage.records == 2 and stage.adds and not zero.any():
            return lambda which: self.query.pair_kinds(which, classes)

        def kinds(which: Ints | None) -> list[Kind]:
            listed, complete = self._joint(stage)
            if not complete:
                raise refuse_many()
            return maximal(kinds_of_columns(listed, which))

        return kinds

    def _joint(self, stage: Neighbours) -> tuple[Columns, bool]:
        """Return moves of so many records, and whether all are listed; none where columns are not written out."""
        if are_many(self.query):
            return csc_array((self.query.n, 0), dtype=np.int64), False
        return joint_moves(*self._distinct_columns(), stage)

    def _distinct_columns(self) -> tuple[Columns, Columns]:
        classes = np.where(self.signature.classes >= 0, 0, -1)
        cells = np.flatnonzero(distinct_only(self.query.columns, classes) >= 0)
        return self.signature.matrix[:, cells], self.query.columns[:, cells]


def _simple_bound(query: Query, zero: Bools, classes: Ints, stage: Neighbours, weights: Weights, p: int) -> Bound:
    """Return the largest move when every move is a sum of single ones (zero cells) and of pairs in a class.

    The weighted norm of a sum is at most the sum of the norms, and k times one move attains k times its norm.
    """
    k = stage.records
    if not stage.adds:
        pair = query.pair(weights, p, classes)
        return Bound(pair.value * k**p, pair.exact)
    one = query.single(weights, p, zero)
    if k == 1:
        return one
    two = query.pair(weights, p, classes)
    ones = Bound(one.value * k**p, one.exact)
    if k % 2 == 0 or one.value == 0:
        return greatest([ones, Bound(two.value * (k // 2) ** p, two.exact)])
    if p == 1:
        return greatest([ones, Bound(one.value + two.value * (k // 2), False)])
    mixed = Fraction(sqrt_up(one.value)) + (k // 2) * Fraction(sqrt_up(two.value))
    return greatest([ones, Bound(mixed**2, False)])


def _triangle_bound(query: Query, mask: Bools | None, stage: Neighbours, weights: Weights, p: int) -> Bound:
    one = query.single(weights, p, mask) if stage.adds else query.pair(weights, p, as_classes(mask))
    return Bound(one.value * stage.records**p, False)


def _refused(_which: Ints | None) -> list[Kind]:
    raise refuse_many()


def cube_moves(n: int, cube_margins: Any, stage: Neighbours, alterable: Bools) -> Moves:
    """Return the moves of the smallest number of replacements, at least those of `stage`, on all n cells."""
    cube = Cube(cube_margins[0])
    if cube.cells != n:
        raise Refused(f"cube_margins must be of a cube with {n} cells, found shape {cube.shape}")
    smallest = smallest_free_sets(cube.shape, cube.margins(cube_margins[1]), (tuple(range(len(cube.shape))),))
    if not smallest:
        return no_moves(stage, n, np.flatnonzero(alterable))
    t = len(smallest[0])
    fewest = 2 ** (t - 1)
    records = max(fewest, stage.records)

    def bound(weights: Weights, p: int) -> Bound:
        if records > fewest:  # a difference of `records` replacements, whatever it keeps
            return Bound(_heaviest(weights, 2) * records**p, False)
        return Bound(_heaviest(weights, 2**t), weights.uniform)

    def kinds(which: Ints | None) -> list[Kind]:
        if records > fewest or (which is not None and np.unique(which).size > 1):
            raise refuse_many()
        return [Counter({(1, 0 if which is None else int(which[0])): 2**t})]

    frozen = np.zeros(0, np.int64)
    return Moves(Neighbours(REPLACE_ONE, records), False, False, records == fewest, frozen, n, bound, kinds)


def _heaviest(weights: Weights, count: int) -> Fraction:
    if weights.which is None:
        return count * weights.values[0]
    times = np.bincount(weights.which, minlength=len(weights.values))
    total = Fraction(0)
    for g in sorted(range(len(weights.values)), key=lambda g: weights.values[g], reverse=True):
        used = min(count, int(times[g]))
        total += used * weights.values[g]
        count -= used
    return total


def signatures_of(query: Query, rows: Any, mask: Bools | None) -> Signatures:
    """Return what each allowed cell adds to rows on the outputs, and the cells that add the same."""
    found = area_signatures(query, rows, mask) if are_many(query) else None
    return signatures(rows, query.columns, mask) if found is None else found


def touched_by_one(query: Query, chosen: Bools) -> Bools:
    """Return which outputs some chosen cell adds to."""
    if isinstance(query, AreaMargins) and are_many(query):
        return np.asarray(query.totals(chosen.astype(np.int64)) > 0)
    touched = np.zeros(query.n, bool)
    touched[query.columns[:, np.flatnonzero(chosen)].indices] = True
    return touched


def touched_by_pairs(query: Query, classes: Ints) -> Bools:
    """Return which rows of W are not constant within some class ≥ 0."""
    if are_many(query):
        return Spans(query, classes).touched()
    touched = np.zeros(query.n, bool)
    cells = np.flatnonzero(classes >= 0)
    if cells.size == 0:
        return touched
    part = query.columns[:, cells].tocoo()
    label = classes[cells]
    high, low, (row, group, count) = row_extremes(part.row.astype(np.int64), label[part.col], part.data, query.n)
    size = np.bincount(label)
    touched[row[(count < size[group]) | (high != low)]] = True
    return touched


def are_many(query: Query) -> bool:
    """Whether a query has margins in so many areas that its columns are not written out."""
    return isinstance(query, AreaMargins) and query.many_sums is not None
