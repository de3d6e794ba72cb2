"""Finding the smallest set of records that can change together while all invariants stay."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, partial
from typing import Any

import numpy as np
from scipy.sparse import csc_array

from holdfast.arguments import Refused, whole
from holdfast.arrays import Bools, Ints
from holdfast.queries.columns import Columns, distinct_only, largest_column
from holdfast.queries.kinds import Kind, kinds_of_columns, maximal, refuse_many
from holdfast.queries.linear_query import Query, as_classes
from holdfast.queries.moves.cube import cube_moves
from holdfast.queries.moves.joint import joint_moves
from holdfast.queries.moves.moves import Moves, no_moves
from holdfast.queries.moves.signatures import Signatures, independent, opposite
from holdfast.queries.moves.touched import are_many, signatures_of, touched_by_one, touched_by_pairs
from holdfast.queries.neighbours import ADD_REMOVE, REPLACE_ONE, Neighbours
from holdfast.queries.rounding import sqrt_up
from holdfast.queries.weights import Bound, Weights, greatest

#: The most replacements that are searched by matching sums of signatures.
MOST_REPLACEMENTS = 4
#: Moves of a cube with more cells than this come from the closed form, which only bounds unequal weights.
LISTED_CUBE = 400


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
