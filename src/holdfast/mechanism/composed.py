"""Several releases about the same records: what statements, or mechanisms with exact figures of their own, promise.

Statements add up (`privacy.compose`). Mechanisms say more: which records can change together while the exact figures of
all of them stay, and what those figures determine together although none of them does alone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields, replace
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from holdfast.arguments import Number, Refused, listed
from holdfast.constraints import System
from holdfast.mechanism.mechanism import Mechanism
from holdfast.mechanism.mixed import Mixture
from holdfast.mechanism.projected import Projected
from holdfast.privacy import Guarantee
from holdfast.privacy import compose as compose_statements
from holdfast.privacy.composition import DIFFERENT_FIGURES, THESE_RECORDS_ONLY
from holdfast.privacy.invariants import MOST_CELLS, MOST_RECORDS, NAMED, made_of, named, published, same_for
from holdfast.queries import Bound, Moves, Neighbours, Query, shared_moves, workload
from holdfast.queries.exact_weights import Weights

SomeMechanism = Mechanism | Mixture | Projected
MECHANISMS = (Mechanism, Mixture, Projected)

NO_MOVE = (
    "no change of a few records keeps what must hold in all parts together, so no statement holds: publish fewer exact "
    "figures"
)
DEPENDS = (
    "what the exact figures of all parts determine together, since counts are whole and not negative, depends on these "
    "figures: hf.pinned(query, invariants, figures, earlier=...) tells"
)


@dataclass(frozen=True, eq=False)
class _Part:
    """A mechanism, what must hold in it, and where its outputs are among those of all parts."""

    name: str
    mechanism: SomeMechanism
    system: System | None
    outputs: slice

    @property
    def rows(self) -> sparse.csr_array:
        """Everything that its outputs keep exactly, structural or published."""
        if self.system is None:
            return sparse.csr_array((0, self.mechanism.query.n), dtype=np.int64)
        return sparse.csr_array(self.system.null_space().rows)

    @property
    def structural(self) -> sparse.csr_array:
        if self.system is None:
            return self.rows
        return sparse.csr_array(self.system.null_space(invariants=False).rows)

    @property
    def publishes(self) -> bool:
        """Whether it publishes exact figures."""
        return self.system is not None and self.system.invariants.count > 0

    def statement(self, moves: Moves, **words: Any) -> Guarantee:
        """What it promises for changes that keep the figures of all parts."""
        figures = () if self.system is None else tuple(f"{self.name}: {figure}" for figure in published(self.system))
        return self.mechanism.statement_about(_seen(moves, self.outputs), unprotected=figures, **words)


def _seen(moves: Moves, outputs: slice) -> Moves:
    """Changes of records as one part sees them: what they change among its outputs."""
    size = outputs.stop - outputs.start

    def among_all(others: int, which: npt.NDArray[np.int64] | None) -> npt.NDArray[np.int32]:
        result = np.full(moves.n, others, dtype=np.int32)
        result[outputs] = 0 if which is None else which
        return result

    def bound(weights: Weights, p: int) -> Bound:
        return moves.bound((*weights.values, 0), among_all(len(weights.values), weights.which), p)

    def kinds(which: npt.NDArray[np.int64] | None) -> list[Counter[tuple[int, int]]]:
        others = 1 if which is None else int(which.max()) + 1
        found = moves.kinds(among_all(others, which))
        return [Counter({key: count for key, count in kind.items() if key[1] != others}) for kind in found]

    frozen = moves.frozen[(moves.frozen >= outputs.start) & (moves.frozen < outputs.stop)] - outputs.start
    return Moves(moves.neighbours, moves.everything, moves.empty, moves.exact, frozen, size, bound, kinds)


class Composition(Guarantee):
    """The first statement about several releases together; `guarantees` are all that hold, itself first."""

    @classmethod
    def of(cls, statements: Sequence[Guarantee]) -> Composition:
        first = cls(**{each.name: getattr(statements[0], each.name) for each in fields(Guarantee)})
        object.__setattr__(first, "_others", tuple(statements[1:]))
        return first

    @property
    def guarantees(self) -> tuple[Guarantee, ...]:
        return (self, *self.__dict__.get("_others", ()))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Guarantee):
            return NotImplemented
        return all(getattr(self, each.name) == getattr(other, each.name) for each in fields(Guarantee))

    __hash__ = Guarantee.__hash__


def compose(
    parts: Iterable[Guarantee] | Iterable[SomeMechanism], *, epsilon: Number | None = None, delta: Number | None = None
) -> Composition:
    """Return what several releases promise together, from their statements or from the mechanisms themselves.

    What is returned is the first statement; its `guarantees` are all that hold. Statements are added as
    `holdfast.privacy.compose` says.

    Args:
        parts: statements, or mechanisms (also mixtures, projected ones and noise made for exact figures) about the same
            records and cells, each with noise of its own.
        epsilon: the smallest proved δ at this ε is stated.
        delta: the smallest proved ε at this δ is stated; with neither, the plain sums.

    Guarantee:
        Of mechanisms, the first statement is about the smallest changes of records that keep what must hold in *all*
        parts (THEORY §3), which may take more records than in any part alone. It names the outputs that no such change
        alters, and those that the exact figures determine together although those of no part do (SDP §2.3). Statements
        about more records follow where these can alter more, and one for all neighbours about what the exact figures
        leave open, where every part makes one (SDP Props 7 and 9).

    Example:
        >>> import holdfast as hf
        >>> month = hf.gaussian(hf.histogram(3), rho=0.01)
        >>> year = hf.compose([month] * 12, delta=1e-6)
        >>> round(year.epsilon, 1)
        2.2
    """
    found = listed("parts", parts, "a list of guarantees or of mechanisms")
    if not found or not all(isinstance(part, MECHANISMS) for part in found):
        return Composition.of([compose_statements(found, epsilon=epsilon, delta=delta)])
    for part in found:
        _ = part.guarantee  # refused where it promises nothing
    joint = _joint(found)
    everywhere = _for_all_neighbours(found, epsilon, delta)
    if joint is None:
        first = compose_statements([part.guarantee for part in found], epsilon=epsilon, delta=delta)
        return Composition.of([first, *(each for each in everywhere if each.scope != first.scope)])
    together = _composed(*joint, epsilon, delta)
    if not together:
        raise Refused(NO_MOVE)
    if any(each.scope == "all" for each in together):
        everywhere = []  # says less
    return Composition.of([*together, *everywhere])


def _for_all_neighbours(mechanisms: Sequence[SomeMechanism], epsilon: Any, delta: Any) -> list[Guarantee]:
    """The sum of the parts' statements about all neighbours; nothing where a part makes none, or they have no sum."""
    found = [
        next((each for each in part.guarantees if each.scope != "invariant-sharing" and not each.void), None)
        for part in mechanisms
    ]
    statements = [each for each in found if each is not None]
    if len(statements) < len(found):
        return []
    try:
        return [compose_statements(statements, epsilon=epsilon, delta=delta)]
    except Refused:
        return []


def _joint(mechanisms: list[SomeMechanism]) -> tuple[list[_Part], Query] | None:
    """The parts and the query of all their outputs; None where their own statements say it all."""
    systems = [each.held for each in mechanisms]
    if len(mechanisms) == 1 or not any(system is not None for system in systems):
        return None
    if any(system is not None and system.branches for system in systems):
        if any(system is not None and system.invariants.count for system in systems):
            raise Refused("no statement is known for a union beside exact figures: drop one of them")
        return None
    relations = {relation for mechanism in mechanisms for relation in _relations(mechanism)}
    if len(relations) > 1:
        raise Refused(
            "mechanisms must be for the same neighbours to be composed, found "
            f"{' and '.join(sorted(str(relation) for relation in relations))}"
        )
    cells = {mechanism.query.cells for mechanism in mechanisms}
    if None in cells or len(cells) > 1:
        raise Refused("mechanisms must ask about the same known cells to be composed: compose their guarantees instead")
    first, names = mechanisms[0].query, [f"part {k}" for k in range(1, len(mechanisms) + 1)]
    if all(mechanism.query.identity for mechanism in mechanisms):
        return [_Part(*each, slice(0, first.n)) for each in zip(names, mechanisms, systems, strict=True)], first
    ends = np.cumsum([0, *(mechanism.query.n for mechanism in mechanisms)])
    outputs = [slice(start, stop) for start, stop in pairwise(ends.tolist())]
    stacked = sparse.vstack([mechanism.query.columns for mechanism in mechanisms], format="csc")
    labels = np.concatenate([mechanism.query.labels for mechanism in mechanisms])
    query = workload(stacked).named(labels)
    return [_Part(*each) for each in zip(names, mechanisms, systems, outputs, strict=True)], query


def _relations(mechanism: SomeMechanism) -> set[Neighbours]:
    if isinstance(mechanism, Mixture):
        return {part.base.neighbours for part in mechanism.parts}
    return {mechanism.claimed.neighbours if isinstance(mechanism, Projected) else mechanism.base.neighbours}


def _composed(parts: list[_Part], query: Query, epsilon: Any, delta: Any) -> list[Guarantee]:
    """Statements about ever more records that keep what must hold in all parts, as long as they can alter more."""
    (relation,) = _relations(parts[0].mechanism)
    rows, margins = _rows(parts, query), _cube_margins(parts, query)
    found: list[Guarantee] = []
    records, frozen = 1, query.n + 1
    while records <= MOST_RECORDS and frozen:
        moves = shared_moves(query, rows, relation, cube_margins=margins, records_at_least=records)
        if moves.empty or moves.frozen.size >= frozen:
            break
        try:
            found.append(_stated(parts, query, moves, epsilon, delta))
        except Refused:
            if not found:
                raise
        records, frozen = moves.records + 1, 0 if moves.everything else moves.frozen.size
    return found


def _stated(parts: list[_Part], query: Query, moves: Moves, epsilon: Any, delta: Any) -> Guarantee:
    sharing = any(part.publishes for part in parts) and not moves.everything
    words: dict[str, Any] = {"scope": "invariant-sharing" if sharing else "all"}
    if not sharing and not moves.everything:
        words["caveats"] = (THESE_RECORDS_ONLY,)
    total = compose_statements([part.statement(moves, **words) for part in parts], epsilon=epsilon, delta=delta)
    caveats = [caveat for caveat in total.caveats if caveat != DIFFERENT_FIGURES]
    if sum(part.publishes for part in parts) > 1:
        caveats.append(DEPENDS)
    unprotected = (*total.unprotected, *_given_away(parts, query, moves))
    return replace(total, unprotected=unprotected, caveats=tuple(caveats))


def _rows(parts: list[_Part], query: Query) -> sparse.csr_array:
    """What all parts keep exactly, as rows on the outputs of all of them."""
    rows = [part.rows for part in parts]
    joined = sparse.vstack(rows, format="csr") if query.identity else sparse.block_diag(rows, format="csr")
    return sparse.csr_array(joined)


def _cube_margins(parts: list[_Part], query: Query) -> Any:
    """The shape of a cube and all margins that are kept, where nothing else is; None otherwise."""
    held = [part.system.null_space() for part in parts if part.system is not None]
    known = [space.cube_margins for space in held if space.cube_margins is not None]
    if not query.identity or len(known) < len(held) or len({shape for shape, _ in known}) != 1:
        return None
    return known[0][0], tuple(dict.fromkeys(margin for _, keep in known for margin in keep))


def _given_away(parts: list[_Part], query: Query, moves: Moves) -> list[str]:
    """Name what the figures determine together but none alone, and what else no allowed change alters."""
    frozen = np.zeros(query.n, dtype=bool)
    frozen[moves.frozen] = True
    words = []
    if int(query.cells or 0) <= MOST_CELLS:
        on_cells = [sparse.csr_array(part.rows @ part.mechanism.query.columns) for part in parts]
        together = made_of(query, on_cells)
        for rows in on_cells:
            together &= ~made_of(query, [rows])
        words += _names(query, together, "determined by the exact figures of all parts together, by none alone")
        structural = [sparse.csr_array(part.structural @ part.mechanism.query.columns) for part in parts]
        frozen &= ~together & ~made_of(query, structural)
    return words + _names(query, frozen, same_for(moves.records))


def _names(query: Query, chosen: npt.NDArray[np.bool_], why: str) -> list[str]:
    found = np.flatnonzero(chosen)
    if not found.size:
        return []
    labels = list(dict.fromkeys(str(query.labels[i]) for i in found.tolist()))
    return [f"{named(labels[:NAMED], len(labels))} ({why})"]
