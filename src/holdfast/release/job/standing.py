"""How every figure of a table is known once it is published: exactly, from exact figures, by definition, or with noise.

This is the one place that decides it; plans, explanations, certificates and reports only say it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from holdfast.arrays import Bools
from holdfast.constraints.system.null_space import NullSpace
from holdfast.queries.neighbours import ADD_REMOVE
from holdfast.release.table.domain import Layout
from holdfast.release.table.holding import Holding


@dataclass(frozen=True, eq=False)
class Standing:
    """Outputs by how they are known; no output is in two of the four.

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
        """The outputs without noise."""
        return self.exact | self.follows | self.defined


def standing(layout: Layout, holding: Holding) -> Standing:
    """Decide how the outputs of a table are known."""
    n = layout.query.n
    exact, nothing = np.zeros(n, dtype=bool), np.zeros(n, dtype=bool)
    for figure in holding.account["exact"]:
        exact[[rows[0] for rows in figure["rows"] if len(rows) == 1]] = True
    if holding.equal is None:
        return Standing(exact, nothing, nothing, nothing)
    system = holding.equal.system(n)
    always, mandated = system.equalities.A, system.invariants.A
    along = layout.tree is not None and not holding.account["linear"] and bool((np.diff(mandated.indptr) == 1).all())
    determined = _along_the_tree if along else _pinned
    defined = determined(always) & ~exact
    if not system.invariants.count:
        return Standing(exact, nothing, defined, nothing)
    without_noise = known = determined(always, mandated)
    if not (holding.account["consistent"] or layout.query.identity):  # all data add up, whether the table does or not
        known = determined(always, mandated, layout.query.consistency())
    return Standing(exact, without_noise & ~exact & ~defined, defined, known & ~without_noise)


def unmoved(layout: Layout, kind: str) -> Bools:
    """The outputs that no replacement of records alters: those to which every record adds the same."""
    found = np.zeros(layout.query.n, dtype=bool)
    if kind == ADD_REMOVE:
        return found
    if layout.tree is not None:
        roots = np.flatnonzero(layout.tree.parents < 0)
        found[roots] = roots.size == layout.by == 1
        return found
    columns = sparse.csr_array(layout.query.columns)
    full = np.flatnonzero(np.diff(columns.indptr) == columns.shape[1])
    found[full] = [bool((columns.data[columns.indptr[i] : columns.indptr[i + 1]] == 1).all()) for i in full]
    return found


def _pinned(*rows: Any) -> Bools:
    """The outputs that equalities determine."""
    return NullSpace.of(sparse.csr_array(sparse.vstack(rows, format="csr"))).pinned_coordinates()


def _along_the_tree(*rows: Any) -> Bools:
    """The outputs that sums of children and single outputs determine, found one after the other.

    So all are found: an output is in two sums at most, that of its children and that of its parent, and these hang
    together as a tree. Where no sum has exactly one unknown left, every unknown can change along a path.
    """
    terms = abs(sparse.csr_array(sparse.vstack(rows, format="csr"))).sign()
    found = np.zeros(terms.shape[1], dtype=bool)
    while True:
        last = np.flatnonzero(terms @ (~found).astype(np.int64) == 1)
        new = np.unique(sparse.csr_array(terms[last]).indices)
        new = new[~found[new]]
        if not new.size:
            return found
        found[new] = True
