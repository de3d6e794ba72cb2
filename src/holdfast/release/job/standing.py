"""How every figure of a table is known once it is published: exactly, from exact figures, by definition, or with noise.

This is the one place that decides it; plans, explanations, certificates and reports only say it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from holdfast.arrays import Bools
from holdfast.constraints.system.null_space import NullSpace, determined_sums
from holdfast.queries.neighbours import ADD_REMOVE
from holdfast.release.table.exactly import Derived
from holdfast.release.table.holding import Holding
from holdfast.release.table.shape import Layout


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
