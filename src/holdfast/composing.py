"""Several releases about the same records: what statements, or mechanisms with exact figures of their own, promise.

Statements add up (`privacy.compose`). Mechanisms say more: which records can change together while the exact figures of
all of them stay, and what those figures determine together although none of them does alone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from holdfast.arguments import LARGEST, Refused
from holdfast.constraints import System
from holdfast.constraints.elimination import eliminate
from holdfast.constraints.lattice import rational_basis
from holdfast.extension import Extended
from holdfast.mechanism import Mechanism
from holdfast.privacy import AllDifferences, Differences, Guarantee, for_records
from holdfast.privacy import compose as compose_statements
from holdfast.privacy.composition import DIFFERENT_FIGURES, THESE_RECORDS_ONLY
from holdfast.privacy.invariants import NAMED, named, published
from holdfast.queries import Bound, Moves, Neighbours, Query, shared_moves, workload

#: Cells up to which it is worked out which outputs the figures of all parts determine by addition and subtraction.
MOST_CELLS = 4_000
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
    mechanism: Mechanism
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
        """What all data obey."""
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
        if isinstance(self.mechanism, Extended):
            whole = _for_all_changes(self.mechanism, moves.neighbours)
            caveats = (*whole.caveats, *words.pop("caveats", ()))
            return replace(whole, unprotected=figures, caveats=caveats, **words)
        differences: Differences = _Seen(moves, self.outputs)
        if moves.everything:
            differences = AllDifferences(self.mechanism.query, self.mechanism.base.neighbours)
        return self.mechanism.statement_for(differences, unprotected=figures, **words)


@dataclass(frozen=True, eq=False)
class _Seen:
    """Changes of records as one part sees them: what they change among its outputs."""

    moves: Moves
    outputs: slice

    @property
    def neighbours(self) -> Neighbours:
        """The relation, and the number of records that change together."""
        return self.moves.neighbours

    def bound(self, values: Sequence[Any], which: npt.NDArray[np.int32] | None, p: int) -> Bound:
        """Largest Σ values[which[i]]·|d_i|^p over the outputs of this part."""
        return self.moves.bound((*values, 0), self._among_all(len(values), which), p)

    def kinds(self, which: npt.NDArray[np.int32] | None) -> list[Counter[tuple[int, int]]]:
        """The maximal multisets of (|d_i|, which[i]) over the outputs of this part, and perhaps smaller ones."""
        others = 1 if which is None else int(which.max()) + 1
        found = self.moves.kinds(self._among_all(others, which))
        return [Counter({key: count for key, count in kind.items() if key[1] != others}) for kind in found]

    def _among_all(self, others: int, which: npt.NDArray[np.int32] | None) -> npt.NDArray[np.int32]:
        result = np.full(self.moves.n, others, dtype=np.int32)
        result[self.outputs] = 0 if which is None else which
        return result


def compose(parts: Iterable[Guarantee] | Iterable[Mechanism], *, epsilon: Any = None, delta: Any = None) -> Guarantee:
    """Return what several releases promise together, from their statements or from the mechanisms themselves.

    With `delta`, the smallest proved ε at this δ is stated; with `epsilon`, the smallest proved δ at this ε; with
    neither, the plain sums. Statements are added as `holdfast.privacy.compose` says.

    Mechanisms must be about the same records and cells, each with noise of its own. The statement is then about the
    smallest changes of records that keep what must hold in *all* parts (THEORY §3), which may take more records than in
    any part alone. It names the outputs that no such change alters, and those that the exact figures determine together
    although those of no part do (SDP §2.3).
    """
    if isinstance(parts, (Guarantee, Mechanism)) or not isinstance(parts, Iterable):
        raise Refused(f"parts must be a list of guarantees or of mechanisms, found {type(parts).__name__}")
    found: list[Any] = list(parts)
    if not found or not all(isinstance(part, Mechanism) for part in found):
        return compose_statements(found, epsilon=epsilon, delta=delta)
    joint = _joint(found)
    if joint is None:
        return compose_statements([part.guarantee for part in found], epsilon=epsilon, delta=delta)
    return _composed(*joint, epsilon, delta)


def _joint(mechanisms: list[Mechanism]) -> tuple[list[_Part], Query] | None:
    """The parts and the query of all their outputs; None where their own statements say it all."""
    systems = [each.system if isinstance(each, Extended) else each.held for each in mechanisms]
    if len(mechanisms) == 1 or not any(system is not None for system in systems):
        return None
    if any(system is not None and system.branches for system in systems):
        if any(system is not None and system.invariants.count for system in systems):
            raise Refused("no statement is known for a union beside exact figures: drop one of them")
        return None
    relations = {mechanism.base.neighbours for mechanism in mechanisms}
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


def _composed(parts: list[_Part], query: Query, epsilon: Any, delta: Any) -> Guarantee:
    for part in parts:
        _ = part.mechanism.guarantee  # refused where it promises nothing
    relation = parts[0].mechanism.base.neighbours
    moves = shared_moves(query, _rows(parts, query), relation, cube_margins=_cube_margins(parts, query))
    if moves.empty:
        raise Refused(NO_MOVE)
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
        together = _determined(query, on_cells)
        for rows in on_cells:
            together &= ~_determined(query, [rows])
        words += _names(query, together, "determined by the exact figures of all parts together, by none alone")
        structural = [sparse.csr_array(part.structural @ part.mechanism.query.columns) for part in parts]
        frozen &= ~together & ~_determined(query, structural)
    few = f"no allowed change of up to {moves.records} record{'s' * (moves.records > 1)} alters this"
    return words + _names(query, frozen, few)


def _determined(query: Query, rows: list[sparse.csr_array]) -> npt.NDArray[np.bool_]:
    """Which outputs are sums and differences of these rows on the cells."""
    basis = rational_basis(eliminate(sparse.csr_array(sparse.vstack(rows, format="csr"))))
    outputs = query.columns
    size = abs(outputs).astype(np.float64) @ abs(basis).astype(np.float64)
    if size.nnz and float(size.max()) >= LARGEST:
        return np.zeros(query.n, dtype=bool)
    left = sparse.csr_array(outputs @ basis)
    left.eliminate_zeros()
    return np.asarray(np.diff(left.indptr) == 0)


def _names(query: Query, chosen: npt.NDArray[np.bool_], why: str) -> list[str]:
    found = np.flatnonzero(chosen)
    if not found.size:
        return []
    labels = list(dict.fromkeys(str(query.labels[i]) for i in found.tolist()))
    return [f"{named(labels[:NAMED], len(labels))} ({why})"]


def _for_all_changes(mechanism: Mechanism, relation: Neighbours) -> Guarantee:
    """A statement about all changes of so many records, for those among them that keep every exact figure.

    Where they do, the part of the output that a subspace statement leaves out is the same before and after.
    """
    found = next((each for each in mechanism.guarantees if each.scope != "invariant-sharing" and not each.void), None)
    if found is None:
        raise Refused("a part makes no statement about all neighbours: compose the guarantees instead")
    # A replaced record is one that goes and one that comes.
    steps = relation.records * (2 if found.neighbours.adds and not relation.adds else 1)
    return replace(for_records(found, max(steps, found.records)), neighbours=relation)
