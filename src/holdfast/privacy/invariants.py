"""What can be promised when some figures are published exactly (THEORY §2, "Invariants by conditioning").

Two statements are possible. *Invariant-sharing*: for data that agree in every published figure. *Subspace*
(SDP Def 5): for all neighbours, about the part of the output that the published figures leave open.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
from scipy import sparse

from holdfast.arguments import LARGEST, Refused
from holdfast.arrays import Array, Bools, Floats, Ints, kept
from holdfast.constraints import Names, NullSpace, Rows, System
from holdfast.constraints.possible.hidden import MOST_CHANGES, none_possible
from holdfast.constraints.system.enclosed import Enclosed
from holdfast.constraints.system.exact_figures import NUMBERED
from holdfast.constraints.system.own_sums import OwnSums
from holdfast.exact.elimination import eliminate
from holdfast.exact.lattice_bases import rational_basis
from holdfast.privacy.additive import Additive, AllDifferences, Differences
from holdfast.privacy.composition import PUBLISHED, THESE_RECORDS_ONLY
from holdfast.privacy.guarantee import Guarantee
from holdfast.privacy.projected_losses import sensitivity_within
from holdfast.queries import Moves, Neighbours, Query, shared_moves
from holdfast.queries.areas.area_margins import same_answers
from holdfast.queries.co_changes.moves import signatures_of
from holdfast.queries.co_changes.signatures import Signatures, independent, signatures
from holdfast.queries.columns import few_differences

#: So many rows or outputs are named one by one in a statement; the rest are counted.
NAMED = 6
#: Outputs up to which exact ones are called by their names, all of which are then written.
LABELLED = 100_000

#: Up to so many records are tried when some outputs stay frozen.
MOST_RECORDS = 4
#: Why a figure is not protected that no number of records alters.
SAME = "the same whatever records change, as long as all exact figures stay"
#: Cells up to which it is worked out which outputs no number of records alters, where signatures depend on each other.
MOST_CELLS = 4_000


def named(first: Sequence[str], count: int) -> str:
    """Join the first few of `count` names, and say how many more there are."""
    listed = ", ".join(first)
    return f"{listed} and {count - len(first)} more" if count > len(first) else listed


def published(system: System, query: Query | None = None) -> tuple[str, ...]:
    """Say which figures are published exactly; outputs of a query by their names."""
    rows = system.invariants
    if rows.count == 0:
        return ()
    names = rows.names[:NAMED]
    if query is not None and query.n <= LABELLED:
        cuts = [slice(start, end) for start, end in pairwise(rows.A.indptr[: NAMED + 1].tolist())]
        names = [
            _called(query, rows.A.indices[cut], rows.A.data[cut], name) for cut, name in zip(cuts, names, strict=True)
        ]
    return (f"{named(names, rows.count)} {PUBLISHED}",)


def _called(query: Query, outputs: Array, weights: Array, otherwise: str) -> str:
    """Call an exact figure by the name of its output; a numbered cell of a margin by the axes of the cube."""
    if outputs.size == 1:
        return str(query.labels[outputs[0]])
    cube = query.cube
    if cube is None or not query.identity or (weights != 1).any() or not otherwise.startswith(NUMBERED):
        return otherwise
    points = cube.coordinates(outputs.astype(np.int64))
    shared = (points == points[0]).all(axis=0)
    if outputs.size != math.prod(size for size, same in zip(cube.shape, shared, strict=True) if not same):
        return otherwise
    words = [f"{cube.names[a]}={points[0, a]}" for a in np.flatnonzero(shared)] or ["total"]
    return words[0] if len(words) == 1 else f"({', '.join(words)})"


def same_for(records: int) -> str:
    """Why a figure is not protected that only more records could alter."""
    return f"the same when up to {records} record{'s change' if records > 1 else ' changes'} and all exact figures stay"


def frozen_words(base: Additive, frozen: Ints, never: Bools | None = None, records: int = 0) -> tuple[str, ...]:
    """Name the outputs that no allowed change of records can alter: they are not protected at all.

    `never` says which of all outputs no number of records alters (None: all that are named); the others are only out of
    reach of `records` records.
    """
    for_ever = frozen if never is None else frozen[never[frozen]]
    for_now = frozen[:0] if never is None else frozen[~never[frozen]]
    words = []
    for places, why in ((for_ever, SAME), (for_now, same_for(records))):
        if places.size:
            shown = [str(base.query.labels[i]) for i in places[:NAMED]]
            words.append(f"{named(shown, places.size)} ({why})")
    return tuple(words)


def determined(query: Query, rows: Any, *, total: bool = False) -> Bools:
    """Tell which outputs are sums and differences of these rows on the outputs, and of the number of records.

    So they are if no number of records that keeps the rows alters them. Up to MOST_CELLS cells; beyond, none is said.
    """
    if int(query.cells or MOST_CELLS + 1) > MOST_CELLS or query.columns.dtype.kind != "i":
        return np.zeros(query.n, dtype=bool)
    kept = [signatures(rows, query.columns, None).matrix.tocsr()]
    if total:
        kept.append(sparse.csr_array(np.ones((1, query.columns.shape[1]), dtype=np.int64)))
    return made_of(query, kept)


def made_of(query: Query, rows: Sequence[sparse.csr_array]) -> Bools:
    """Tell which outputs are sums and differences of these rows on the cells; none where numbers are too large."""
    basis = rational_basis(eliminate(sparse.csr_array(sparse.vstack(rows, format="csr"))))
    size = abs(query.columns).astype(np.float64) @ abs(basis).astype(np.float64)
    if size.nnz and float(size.max()) >= LARGEST:
        return np.zeros(query.n, dtype=bool)
    left = sparse.csr_array(query.columns @ basis)
    left.eliminate_zeros()
    return np.asarray(np.diff(left.indptr) == 0)


def moves_within(base: Additive, space: NullSpace, records_at_least: int = 1) -> Moves:
    """The smallest changes of records that keep every equality; kept with the space, since noise does not matter."""
    return _moves(space, base.query, base.neighbours, records_at_least)


@kept
def _moves(space: NullSpace, query: Query, neighbours: Neighbours, least: int) -> Moves:
    return shared_moves(query, space.rows, neighbours, cube_margins=space.cube_margins, records_at_least=least)


#: The refusal when no set of a few records can change while every equality is kept, or within the bounds.
NO_MOVE = "no change of a few records keeps what must hold, so no statement would be about anything: ask for less of it"

#: Changes of so many records of so many cells are listed to see whether the inequalities leave room for one.
FEW_RECORDS, FEW_CELLS = 2, 24
#: Cells whose records are tried where not all changes are listed, and counts of all cells from which they change.
SOME_CELLS, SOME_COUNTS = 8, (0, 1, 5, 100)
#: Said where no two possible datasets are known that a statement is about.
NOT_LOOKED = (
    "it was not checked whether two datasets that obey everything that must hold can differ in this way: if none can, "
    "this statement is about nobody"
)


def possible(base: Additive, system: System) -> tuple[Differences, dict[str, Any]] | None:
    """The differences that data obeying the structural equalities can show, and the words that go with them.

    None when no such difference of a few records was found: then nothing can be said.
    """
    if isinstance(system.equalities, OwnSums) and same_answers(system.equalities.query, base.query):
        # All data keep them. Whatever else must hold only leaves some changes out: the statement is about all.
        return AllDifferences(base.query, base.neighbours), {}
    space = system.null_space(invariants=False)
    if space.rank == 0 or base.query.cells is None or _adds_up(base.query, space):
        looked = _looked(base, system, base.neighbours)
        return None if looked is None else (AllDifferences(base.query, base.neighbours), {"caveats": looked})
    moves = moves_within(base, space)
    looked = None if moves.empty else _looked(base, system, moves.neighbours)
    if looked is None:
        return None
    if moves.everything:
        return AllDifferences(base.query, base.neighbours), {"caveats": looked}
    caveats = looked if _larger_are_sums(space, base.query, moves.neighbours) else (*looked, THESE_RECORDS_ONLY)
    frozen = open_frozen(moves, space)
    words = frozen_words(base, frozen, never_altered(base, space, moves), moves.records) if frozen.size else ()
    return moves, {"unprotected": words, "caveats": caveats}


def _looked(base: Additive, system: System, relation: Neighbours) -> tuple[str, ...] | None:
    """What a statement about a relation must say of whether it is about anybody; None where it is about nobody."""
    none = _no_room(system, base.query, base.unit, relation)
    return None if none else (NOT_LOOKED,) if none is None else ()


@kept
def _no_room(system: System, query: Query, unit: Fraction, relation: Neighbours) -> bool | None:
    """Whether it is proved that the inequalities leave no two possible answers that neighbouring data have.

    False where two are known, or where nothing but lower bounds limits what records add to; None: not known.
    """
    if not system.has_inequalities or query.cells is None or not query.integer or query.grid is not None:
        return False
    if system.branches or not (system.inequalities.count or (system.upper < LARGEST).any() or (system.lower > 0).any()):
        return False
    some = []
    for table, change in _some_pairs(query, relation):
        if (system.equalities.A @ change).any() or (system.invariants.A @ change).any():
            continue
        some.append(change)
        if system.violation(table, unit) is None and system.violation(table + change, unit) is None:
            return False
    few = query.cells <= FEW_CELLS and relation.records <= FEW_RECORDS
    every = few_differences(query.columns, relation, MOST_CHANGES) if few else None
    changes = np.array(some if every is None else every, dtype=np.int64).reshape(-1, query.n)
    A = query.consistency().astype(np.int64)
    own = Rows(A, np.zeros(A.shape[0], dtype=np.int64), Names.numbered("sum {}", np.arange(A.shape[0])))
    return none_possible(system, own, np.unique(changes, axis=0), unit, complete=every is not None)


def _some_pairs(query: Query, relation: Neighbours) -> Iterator[tuple[Ints, Ints]]:
    """Answers to simple tables and changes of them by one record, or by one that goes and one that comes."""
    cells = int(query.cells or 0)
    everywhere = np.asarray(query.answer(np.ones(cells, np.int64)), dtype=np.int64)
    for j in np.unique(np.linspace(0, cells - 1, SOME_CELLS).astype(np.int64)).tolist():
        one, other = (_answer_to_one(query, cell) for cell in (j, (j + 1) % cells))
        for count in SOME_COUNTS:
            if relation.adds:
                yield count * everywhere, one
            if not relation.adds or relation.records > 1:
                yield count * everywhere + one, other - one


def _answer_to_one(query: Query, cell: int) -> Ints:
    table = np.zeros(int(query.cells or 0), np.int64)
    table[cell] = 1
    return np.asarray(query.answer(table), dtype=np.int64)


@kept
def _larger_are_sums(space: NullSpace, query: Query, neighbours: Neighbours) -> bool:
    """Whether changes of more records that keep the equalities are sums of moves, with as many records in all.

    It is so when the distinct signatures A·w_j of the cells, other than 0, are linearly independent: in every such
    change the records of one signature cancel, so it consists of single records of signature 0 and of pairs of one
    signature. Pairs fill up groups of an even number of records (docs/theory/composition.md).
    """
    found = signatures_of(query, space.rows, None)
    pairs = neighbours.adds and bool((np.bincount(found.classes)[1:] > 1).any())
    return independent(found.distinct()) and not (pairs and neighbours.records % 2)


def open_frozen(moves: Moves, space: NullSpace) -> Ints:
    """The outputs that no move changes although the equalities leave them open."""
    return moves.frozen[~space.pinned_coordinates()[moves.frozen]]


def _adds_up(query: Query, space: NullSpace) -> bool:
    """Whether the equalities are those of the very hierarchy on which the query counts: all data obey them."""
    if space.tree is None or query.tree is None or query.n != query.tree.n * space.tree.by:
        return False
    return space.tree.is_of(query.tree)


def sharing(base: Additive, system: System, state: Callable[..., Guarantee]) -> list[Guarantee]:
    """Invariant-sharing statements; `state(differences, **words)` turns differences into a statement.

    When every neighbour keeps the invariants the scope is "all". When no single record can change alone, the
    statement is about the smallest number of records that can change together (THEORY §2, 1).
    """
    figures = published(system, base.query)
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
    rows = system.invariants.A
    alone = rows.indices[rows.indptr[:-1][np.diff(rows.indptr) == 1]]
    if base.query.n > LABELLED and rows.shape[0] <= NAMED:
        alone = alone[:0]  # `figures` do not say which outputs these are
    for moves, frozen, never in stages(base, system):
        looked = _looked(base, system, moves.neighbours) or ()
        if moves.everything:
            return [state(base.everything(), scope="all", unprotected=figures, caveats=looked)]
        words = frozen_words(base, np.setdiff1d(frozen, alone), never, moves.records)
        statements.append(state(moves, scope="invariant-sharing", unprotected=figures + words, caveats=looked))
    return statements


def never_altered(base: Additive, space: NullSpace, moves: Moves) -> Bools:
    """Tell which outputs no number of records alters while every equality stays, as far as that is known.

    Where the distinct signatures are linearly independent, larger changes are sums of single records and of pairs, so
    what the smallest moves leave frozen stays so (docs/theory/what-can-change.md, Proposition 1).
    """
    found = signatures_of(base.query, space.rows, None)
    pairs = not moves.neighbours.adds or moves.records > 1 or not _has_pairs(found)
    if pairs and independent(found.distinct()):
        frozen = np.zeros(base.query.n, dtype=bool)
        frozen[moves.frozen] = True
        return frozen
    return determined(base.query, space.rows, total=not base.neighbours.adds)


def _has_pairs(found: Signatures) -> bool:
    return bool((np.bincount(found.classes[found.classes >= 0])[1:] > 1).any())


Masks = Bools


def stages(base: Additive, system: System) -> Iterator[tuple[Moves, Ints, Masks]]:
    """Changes of ever more records that keep every equality, as long as more outputs can change; with the frozen ones.

    The last array tells which outputs no number of records alters, as far as that is known. Each stage is behind one
    invariant-sharing statement: that of the same number of records.
    """
    space = system.null_space()
    always = system.null_space(invariants=False).pinned_coordinates()
    records, frozen_before = 1, None
    most = MOST_RECORDS + base.neighbours.records - 1
    while records <= most:
        moves = moves_within(base, space, records)
        if moves.empty:
            return
        replaced = base.neighbours.adds and not moves.neighbours.adds  # one that goes and one that comes
        following = max(records, moves.records * (2 if replaced else 1)) + 1
        if _looked(base, system, moves.neighbours) is None:
            records = following
            continue
        frozen = moves.frozen[~always[moves.frozen]]
        if frozen_before is None or frozen.size < frozen_before or moves.everything:
            never = never_altered(base, space, moves) if frozen.size else np.zeros(base.query.n, dtype=bool)
            yield moves, frozen, never
            frozen_before = frozen.size
            if moves.everything or never[frozen].all():
                return
        records = following


@dataclass(frozen=True, eq=False)
class _Weighted:
    """A projector followed by a division of each coordinate by its scale."""

    space: NullSpace
    divisors: Floats

    def enclosed(self, columns: Array) -> Enclosed:
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
            norm = Fraction(sensitivity_within(base.query, power, base.neighbours, space)) / base.unit
            return norm**power / scales[0]  # type: ignore[operator]
        per_law = np.array([float(value) for value in scales], dtype=np.float64)  # type: ignore[arg-type]
        divisors = (per_law if power == 1 else np.sqrt(per_law))[base.law.which]
        weighted = sensitivity_within(base.query, power, base.neighbours, _Weighted(space, divisors))
        norm = Fraction(weighted) / base.unit
    except Refused:
        return None
    # The divisors are doubles of exact scales: a part in 2**50 covers their rounding.
    return norm**power * (1 + Fraction(1, 2**50))


def subspace_words(system: System, query: Query) -> dict[str, Any]:
    """The words that every subspace statement carries (SDP Def 5)."""
    return {"scope": "subspace", "unprotected": published(system, query), "exact": False}
