"""All figures of a table that nothing protects, level by level: those that are published exactly, and what they fix.

A statement names the first few of them only; this is the whole list, short because rows that follow each other are
written as runs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from holdfast.arrays import Bools
from holdfast.constraints import System
from holdfast.constraints.system.null_space import NullSpace, determined_sums
from holdfast.given.prices.unions import ONE_SIDE, union_price
from holdfast.mechanism.mechanism import Mechanism
from holdfast.privacy.invariants import SAME, moves_within, never_altered, open_frozen, same_for, stages
from holdfast.queries.neighbours import ADD_REMOVE
from holdfast.release.facts import Unprotected
from holdfast.release.standalone_verifier.facts import FOLLOWS, PUBLISHED
from holdfast.release.table.holding import Derived, Holding
from holdfast.release.table.shape import Layout
from holdfast.release.table.wording import words_about


@dataclass(frozen=True, eq=False)
class Standing:
    """Rows of a table by how they are known, outputs first, then sums of them; no row is in two of the four.

    exact: published exactly. follows: without noise, since exact figures determine it through what holds. defined:
    without noise, since what holds for all data determines it. idle: noisy, and nothing is hidden by it, since its
    true value follows from exact figures. All others have noise that hides something.
    """

    exact: Bools
    follows: Bools
    defined: Bools
    idle: Bools

    @property
    def as_in_the_data(self) -> Bools:
        """The rows without noise."""
        return self.exact | self.follows | self.defined


def standing(layout: Layout, holding: Holding, more: Derived | None) -> Standing:
    """Decide how the rows of a table are known; `more` are the sums that are written besides the outputs."""
    n = layout.query.n
    sums = sparse.csr_array((0, n), dtype=np.int64) if more is None else sparse.csr_array(more.sums)
    exact = np.zeros(n + sums.shape[0], dtype=bool)
    for figure in holding.holds.exact:
        exact[[rows[0] for rows in figure.rows if len(rows) == 1]] = True
        if not figure.rows and figure.figure in layout.levels:  # too many to be listed
            exact[:n] |= layout.level_of == layout.levels.index(figure.figure)
    if more is not None:
        exact[n:] = more.exact
    nothing = np.zeros(exact.size, dtype=bool)
    if holding.equal is None:
        return Standing(exact, nothing, nothing, nothing)
    ruled = bool(holding.exact or (holding.holds.linear and not layout.parts))
    if (layout.parts or (layout.places is not None and layout.tree is None)) and not ruled:
        nothing[holding.holds.impossible] = True  # margins of margins determine nothing else
        return Standing(exact, np.zeros_like(exact), nothing, np.zeros_like(exact))
    system = holding.equal.system(n)
    always, mandated = system.equalities.A, system.invariants.A
    single = bool((np.diff(mandated.indptr) == 1).all())
    determined = _along_the_tree if layout.tree is not None and single and not holding.holds.linear else _pinned
    defined = determined(sums, always) & ~exact
    if not system.invariants.count:
        return Standing(exact, nothing, defined, nothing)
    without_noise = known = determined(sums, always, mandated)
    if not (holding.holds.consistent or layout.query.identity):  # all data add up, whether the table does or not
        known = determined(sums, always, mandated, layout.query.consistency())
    return Standing(exact, without_noise & ~exact & ~defined, defined, known & ~without_noise & ~exact)


def unmoved(layout: Layout, kind: str, more: Derived | None, impossible: Bools | None) -> Bools:
    """The rows that no replacement of records alters: those to which every possible record adds one."""
    cells = layout.query.cells
    if layout.parts:  # households come and go in every place, and change every margin there
        return np.zeros(layout.query.n, dtype=bool)
    assert cells is not None
    possible = np.ones(cells, dtype=np.int64) if impossible is None else (~impossible).astype(np.int64)
    counted = layout.query.answer(possible)
    if more is not None:
        counted = np.concatenate([counted, np.asarray(more.sums @ counted)])
    return np.asarray((counted == possible.sum()) & (kind != ADD_REMOVE), dtype=bool)


def _pinned(sums: Any, *rows: Any) -> Bools:
    space = NullSpace.of(sparse.csr_array(sparse.vstack(rows, format="csr")))
    return np.concatenate([space.pinned_coordinates(), determined_sums(space, sums)])


def _along_the_tree(sums: Any, *rows: Any) -> Bools:
    """The outputs that sums of children and single outputs determine, found one after the other, and sums of these.

    So all are found: an output is in two sums at most, that of its children and that of its parent, and these hang
    together as a tree. Where no sum has exactly one unknown left, every unknown can change along a path. The trees of
    different categories have nothing in common, so a sum over them is determined where all of its outputs are.
    """
    terms = abs(sparse.csr_array(sparse.vstack(rows, format="csr"))).sign()
    found = np.zeros(terms.shape[1], dtype=bool)
    while True:
        last = np.flatnonzero(terms @ (~found).astype(np.int64) == 1)
        new = np.unique(sparse.csr_array(terms[last]).indices)
        new = new[~found[new]]
        if not new.size:
            return np.concatenate([found, np.asarray(sums @ (~found).astype(np.int64) == 0, dtype=bool)])
        found[new] = True


IDLE = "follows from exact figures, so that the noise on it protects nothing"
UNMOVED = "no replacement of records alters it"
FIXED = "no allowed change of records alters it"
OUT_OF_REACH = "no allowed change of so many records alters it"
DETERMINED = "determined by the exact figures"
BEFORE = "published exactly before, in {}, so that the noise on it protects nothing"
#: Up to so many figures of a level are named one by one in words.
NAMED = 12


def unprotected(
    layout: Layout, holding: Holding, mechanism: Mechanism, stands: Standing, more: Derived | None
) -> tuple[Unprotected, ...]:
    """Return everything in a table that no statement protects, in the order of its levels; `more` are its sums."""
    found: list[Unprotected] = []
    for rows, why in ((stands.exact, PUBLISHED), (stands.follows, FOLLOWS), (stands.idle, IDLE)):
        found += _by_level(layout, rows, why, None, more)
    seen = stands.as_in_the_data | stands.idle
    still = unmoved(layout, mechanism.base.neighbours.kind, more, holding.impossible) & ~seen
    found += _by_level(layout, still, UNMOVED, None, more)
    seen |= still
    for records, frozen in _frozen(mechanism).items():
        fixed = np.zeros(seen.size, dtype=bool)
        fixed[frozen] = True
        found += _by_level(layout, fixed & ~seen, FIXED if records is None else OUT_OF_REACH, records, more)
    statement = mechanism.guarantee
    if ONE_SIDE in statement.unprotected:
        why, names = OUT_OF_REACH, ("which side holds",)
        one = Unprotected(why=why, level="either", figures=1, of=1, rows=[], records=statement.records, names=names)
        found.append(one)
    return tuple(found)


def listed(layout: Layout, rows: npt.NDArray[np.int64], why: str) -> tuple[Unprotected, ...]:
    """Return figures that are not protected for a reason, in the order of the levels."""
    chosen = np.zeros(layout.query.n, dtype=bool)
    chosen[rows] = True
    return tuple(_by_level(layout, chosen, why, None))


def in_words(table: str, found: Sequence[Unprotected]) -> list[str]:
    """Say what is not protected in a table, one sentence per reason."""
    sentences = []
    for why, records in dict.fromkeys((each.why, each.records) for each in found):
        alike = [each for each in found if (each.why, each.records) == (why, records)]
        reason = {FIXED: SAME, UNMOVED: "unchanged when a record is replaced by another, and so not hidden"}.get(
            why, why
        )
        if records is not None:
            reason = same_for(records)
        where = "" if all(each.named for each in alike) else "; the certificate lists their rows"
        sentences.append(words_about(table, f"{reason}: {', '.join(map(str, alike))}{where}"))
    return sentences


def _by_level(
    layout: Layout, chosen: npt.NDArray[np.bool_], why: str, records: int | None, more: Derived | None = None
) -> list[Unprotected]:
    n, found = layout.query.n, []
    groups = [(name, np.flatnonzero(layout.level_of == i)) for i, name in enumerate(layout.levels)]
    if more is not None:
        groups += [(title, n + np.flatnonzero(more.group_of == i)) for i, title in enumerate(more.titles)]
    for name, group in groups:
        rows = group[chosen[group]]
        if rows.size:
            few = rows[: NAMED if rows.size <= NAMED else 0]
            names = tuple(str(layout.query.labels[i]) if i < n or more is None else more.labels[i - n] for i in few)
            figures, of, runs = int(rows.size), int(group.size), _runs(rows)
            found.append(
                Unprotected(why=why, level=name, figures=figures, of=of, rows=runs, records=records, names=names)
            )
    return found


def _runs(rows: npt.NDArray[np.int64]) -> list[tuple[int, int]]:
    """The first and last of every run of rows that follow each other."""
    breaks = np.flatnonzero(np.diff(rows) > 1)
    first = rows[np.concatenate([[0], breaks + 1])]
    last = rows[np.concatenate([breaks, [rows.size - 1]])]
    return list(zip(first.tolist(), last.tolist(), strict=True))


def _frozen(mechanism: Mechanism) -> dict[int | None, npt.NDArray[np.int64]]:
    """The outputs that no allowed change alters, by how many records change together; None: by however many."""
    system, base = _system(mechanism), mechanism.base
    if system is None or base.query.cells is None:
        return {}
    if system.invariants.count:
        reached: dict[int | None, npt.NDArray[np.int64]] = {}
        for moves, frozen, never in stages(base, system):
            if not moves.everything:
                reached.setdefault(None, frozen[never[frozen]])
                reached[moves.records] = frozen[~never[frozen]]
        return reached
    if not any(statement.unprotected for statement in mechanism.guarantees):
        return {}  # nothing is fixed by what holds for all data
    if system.branches:
        price = union_price(base, system, mechanism.guarantee.neighbours)
        if price is not None:
            return {price.neighbours.records: np.array(price.frozen, dtype=np.int64)}
    space = replace(system, branches=()).null_space(invariants=False)
    moves = moves_within(base, space)
    frozen, never = open_frozen(moves, space), never_altered(base, space, moves)
    return {None: frozen[never[frozen]], moves.records: frozen[~never[frozen]]}


def _system(mechanism: Mechanism) -> System | None:
    """What the statements speak of: what the noise was made for or conditioned on, or else moved onto."""
    if mechanism.source.system is not None:
        return mechanism.source.system
    return mechanism.moves[0].problem.system if mechanism.moves else None
