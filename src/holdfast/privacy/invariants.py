"""What can be promised when some figures are published exactly (THEORY §2, "Invariants by conditioning").

Two statements are possible. *Invariant-sharing*: for data that agree in every published figure. *Subspace*
(SDP Def 5): for all neighbours, about the part of the output that the published figures leave open.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from holdfast.arguments import Refused
from holdfast.constraints import Names, NullSpace, Rows, System
from holdfast.constraints.enclosed import Enclosed
from holdfast.constraints.pairs import none_possible
from holdfast.privacy.additive import Additive, AllDifferences, Differences
from holdfast.privacy.composition import PUBLISHED, THESE_RECORDS_ONLY
from holdfast.privacy.guarantee import Guarantee
from holdfast.queries import Moves, Neighbours, Query, shared_moves
from holdfast.queries.signatures import independent, signatures

#: So many rows or outputs are named one by one in a statement; the rest are counted.
NAMED = 6

#: Up to so many records are tried when some outputs stay frozen.
MOST_RECORDS = 4


def named(first: Sequence[str], count: int) -> str:
    """Join the first few of `count` names, and say how many more there are."""
    listed = ", ".join(first)
    return f"{listed} and {count - len(first)} more" if count > len(first) else listed


def published(system: System) -> tuple[str, ...]:
    """Say which figures are published exactly."""
    rows = system.invariants
    if rows.count == 0:
        return ()
    return (f"{named(rows.names[:NAMED], rows.count)} {PUBLISHED}",)


def frozen_words(base: Additive, frozen: npt.NDArray[np.int64]) -> tuple[str, ...]:
    """Name the outputs that no allowed change of records can alter: they are not protected at all."""
    if frozen.size == 0:
        return ()
    shown = [str(base.query.labels[i]) for i in frozen[:NAMED]]
    return (f"{named(shown, frozen.size)} (no allowed change alters {'it' if frozen.size == 1 else 'them'})",)


def moves_within(base: Additive, space: NullSpace, records_at_least: int = 1) -> Moves:
    """The smallest changes of records that keep every equality; kept with the space, since noise does not matter."""
    kept: dict[Any, tuple[Query, Moves]] = space.__dict__.setdefault("_moves", {})
    key = (id(base.query), base.neighbours, records_at_least)
    if key not in kept:
        found = shared_moves(
            base.query,
            space.rows,
            base.neighbours,
            cube_margins=space.cube_margins,
            records_at_least=records_at_least,
        )
        kept[key] = (base.query, found)  # the query is kept so that its id stays its own
    return kept[key][1]


#: The refusal when no set of a few records can change while every equality is kept, or within the bounds.
NO_MOVE = "no change of a few records keeps what must hold, so no statement would be about anything: ask for less of it"

#: Changes of so many records of so many cells are listed to see whether the inequalities leave room for one.
FEW_RECORDS, FEW_CELLS = 2, 24


def possible(base: Additive, system: System) -> tuple[Differences, dict[str, Any]] | None:
    """The differences that data obeying the structural equalities can show, and the words that go with them.

    None when no such difference of a few records was found: then nothing can be said.
    """
    space = system.null_space(invariants=False)
    if space.rank == 0 or base.query.cells is None or _adds_up(base.query, space):
        return None if _no_room(base, system, base.neighbours) else (AllDifferences(base.query, base.neighbours), {})
    moves = moves_within(base, space)
    if moves.empty or _no_room(base, system, moves.neighbours):
        return None
    if moves.everything:
        return AllDifferences(base.query, base.neighbours), {}
    caveats = () if _larger_are_sums(base, space, moves) else (THESE_RECORDS_ONLY,)
    return moves, {"unprotected": frozen_words(base, open_frozen(moves, space)), "caveats": caveats}


def _no_room(base: Additive, system: System, relation: Neighbours) -> bool:
    """Whether it is proved that the inequalities leave no two possible answers that neighbouring data have."""
    query = base.query
    if not system.has_inequalities or query.cells is None or not query.integer:
        return False
    if query.cells > FEW_CELLS or relation.records > FEW_RECORDS:
        return False
    A = query.consistency().astype(np.int64)
    own = Rows(A, np.zeros(A.shape[0], dtype=np.int64), Names.numbered("sum {}", np.arange(A.shape[0])))
    return none_possible(system, own, np.asarray(query.differences(relation), dtype=np.int64), base.unit)


def _larger_are_sums(base: Additive, space: NullSpace, moves: Moves) -> bool:
    """Whether changes of more records that keep the equalities are sums of moves, with as many records in all.

    It is so when the distinct signatures A·w_j of the cells, other than 0, are linearly independent: in every such
    change the records of one signature cancel, so it consists of single records of signature 0 and of pairs of one
    signature. Pairs fill up groups of an even number of records (docs/theory/composition.md).
    """
    kept: dict[Any, tuple[Query, bool]] = space.__dict__.setdefault("_sums", {})
    key = (id(base.query), moves.neighbours)
    if key not in kept:
        found = signatures(space.rows, base.query.columns, None)
        pairs = moves.neighbours.adds and bool((np.bincount(found.classes)[1:] > 1).any())
        kept[key] = (base.query, independent(found.distinct()) and not (pairs and moves.records % 2))
    return kept[key][1]


def open_frozen(moves: Moves, space: NullSpace) -> npt.NDArray[np.int64]:
    """The outputs that no move changes although the equalities leave them open."""
    return moves.frozen[~space.pinned_coordinates()[moves.frozen]]


def _adds_up(query: Query, space: NullSpace) -> bool:
    """Whether the equalities are those of the very hierarchy on which the query counts: all data obey them."""
    if space.tree is None or query.tree is None or query.n != query.tree.n * space.tree.by:
        return False
    return np.array_equal(query.tree.parents, space.tree.parents)


def sharing(base: Additive, system: System, state: Callable[..., Guarantee]) -> list[Guarantee]:
    """Invariant-sharing statements; `state(differences, **words)` turns differences into a statement.

    When every neighbour keeps the invariants the scope is "all". When no single record can change alone, the
    statement is about the smallest number of records that can change together (THEORY §2, 1).
    """
    figures = published(system)
    if base.query.cells is None:
        assumed = "the query is known by its sensitivities only: which neighbours share the invariants is not known"
        return [
            state(
                base.everything(),
                scope="invariant-sharing",
                unprotected=figures,
                caveats=(assumed,),
                exact=False,
            )
        ]
    statements = []
    for moves, frozen in stages(base, system):
        if moves.everything:
            return [state(base.everything(), scope="all", unprotected=figures)]
        statements.append(state(moves, scope="invariant-sharing", unprotected=figures + frozen_words(base, frozen)))
    return statements


def stages(base: Additive, system: System) -> Iterator[tuple[Moves, npt.NDArray[np.int64]]]:
    """Changes of ever more records that keep every equality, as long as more outputs can change; with the frozen ones.

    Each is behind one invariant-sharing statement: that of the same number of records.
    """
    space = system.null_space()
    always = system.null_space(invariants=False).pinned_coordinates()
    records, frozen_before = 1, None
    while records <= MOST_RECORDS:
        moves = moves_within(base, space, records)
        if moves.empty:
            return
        if _no_room(base, system, moves.neighbours):
            records = moves.records + 1
            continue
        frozen = moves.frozen[~always[moves.frozen]]
        if frozen_before is not None and frozen.size >= frozen_before and not moves.everything:
            return
        yield moves, frozen
        if moves.everything or frozen.size == 0:
            return
        frozen_before, records = frozen.size, moves.records + 1


@dataclass(frozen=True, eq=False)
class _Weighted:
    """A projector followed by a division of each coordinate by its scale."""

    space: NullSpace
    divisors: npt.NDArray[np.float64]

    def enclosed(self, columns: npt.NDArray[Any]) -> Enclosed:
        """Project, then divide."""
        return self.space.enclosed(columns).divided(self.divisors)


def projected_loss(base: Additive, space: NullSpace) -> Fraction | None:
    """Largest Σ|(Π_N d)_i|/λ_i, or Σ(Π_N d)_i²/σ_i², over the whole difference set, rounded up.

    None where the query does not know its columns or has too many to project.
    """
    if base.query.cells is None or None in base.law.scale_values:
        return None
    power = 1 if base.law.kind == "laplace" else 2
    scales = base.law.scale_values
    try:
        if len(scales) == 1:
            norm = Fraction(base.query.sensitivity(power, base.neighbours, within=space)) / base.unit
            return norm**power / scales[0]  # type: ignore[operator]
        per_law = np.array([float(value) for value in scales], dtype=np.float64)  # type: ignore[arg-type]
        divisors = (per_law if power == 1 else np.sqrt(per_law))[base.law.which]
        norm = Fraction(base.query.sensitivity(power, base.neighbours, within=_Weighted(space, divisors))) / base.unit
    except Refused:
        return None
    # The divisors are doubles of exact scales: a part in 2**50 covers their rounding.
    return norm**power * (1 + Fraction(1, 2**50))


def subspace_words(system: System) -> dict[str, Any]:
    """The words that every subspace statement carries (SDP Def 5)."""
    return {"scope": "subspace", "unprotected": published(system), "exact": False}
