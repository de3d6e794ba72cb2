"""Exact totals of figures that stand side by side, as a county's persons over its age groups: trees below the totals.

The total is no output, and the figures that it sums have parents of their own (the state's age groups), so that outputs
are no hierarchy. They are one if nothing above such figures is measured: what stands above is then the sum of what
stands below, whatever is drawn or moved, and the totals are roots of a hierarchy in its place.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from holdfast.arguments import LARGEST
from holdfast.arrays import Array, Bools, Floats, Ints
from holdfast.constraints import System, TreeShape
from holdfast.constraints.constraint import build
from holdfast.constraints.structural import consistent
from holdfast.constraints.system.exact_figures import ExactNodes
from holdfast.constraints.system.parts import EQUALITIES, Bounds, Part
from holdfast.domains import Hierarchy


@dataclass(frozen=True, eq=False)
class UnderTotals:
    """The outputs `kept` and then the totals, as a hierarchy (`parents`); outputs `above` are sums of kept ones.

    `groups` has the outputs of each total as a row, `sums` those of each output above. `exact` includes the totals.
    """

    kept: Ints
    above: Ints
    groups: sparse.csr_array
    sums: sparse.csr_array
    parents: Ints
    exact: Bools

    @classmethod
    def of(cls, system: System, measured: Bools) -> UnderTotals | None:
        """Read it from a system; None if there is more, or an output above a group is measured, exact or bounded.

        Bounds that those of its children imply are none.
        """
        trees = [part.source for part in system.parts if part.kind == "consistent"]
        if len(trees) != 1 or not isinstance(trees[0], TreeShape) or system.branches or system.inequalities.count:
            return None
        parents = trees[0].outputs
        single, groups = np.zeros(system.n, dtype=bool), []
        for part in system.parts:
            if part.rows is None or part.kind == "consistent" or part.kind not in {*EQUALITIES, "invariant"}:
                continue
            A = sparse.csr_array(part.rows.A)
            sizes = np.diff(A.indptr)
            if (A.data != 1).any():
                return None
            single[A.indices[np.repeat(sizes == 1, sizes)]] = True
            groups.append(A[np.flatnonzero(sizes > 1)])
        if not groups or not sum(each.shape[0] for each in groups):
            return None
        rows = sparse.csr_array(sparse.vstack(groups, format="csr"))
        members = rows.indices
        owner, top = parents[members], members
        over = np.zeros(system.n, dtype=bool)
        while (owner := owner[owner >= 0]).size:
            over[owner] = True
            owner = parents[np.unique(owner)]
        if np.unique(members).size < members.size or (over & (measured | single)).any() or over[members].any():
            return None
        kept, above = np.flatnonzero(~over), np.flatnonzero(over)
        number = np.full(system.n + 1, -1, dtype=np.int64)  # the last place stands for no parent
        number[kept] = np.arange(kept.size)
        below = np.append(number[parents[kept]], np.full(rows.shape[0], -1))
        below[number[members]] = kept.size + np.repeat(np.arange(rows.shape[0]), np.diff(rows.indptr))
        top = kept[np.append(over, False)[parents[kept]]]
        owner, entries = parents[top], []
        while top.size:
            entries.append(np.stack([np.searchsorted(above, owner), number[top]]))
            owner = parents[owner]
            top, owner = top[owner >= 0], owner[owner >= 0]
        where = np.concatenate(entries, axis=1) if entries else np.zeros((2, 0), dtype=np.int64)
        sums = sparse.csr_array((np.ones(where.shape[1], np.int64), tuple(where)), shape=(above.size, kept.size))
        exact = np.append(single[kept], np.ones(rows.shape[0], dtype=bool))
        found = cls(kept, above, rows, sums, below, exact)
        return found if found._implies(system) else None

    def _implies(self, system: System) -> bool:
        """Whether the bounds of outputs above follow from those of the outputs that they sum."""
        low, high = system.real_bounds()
        least, most = (self.sums.astype(np.float64) @ side[self.kept] for side in (low, high))
        return bool((low[self.above] <= least).all() and (high[self.above] >= most).all())

    def system(self, whole: System) -> System:
        """What must hold for the outputs kept and the totals; exact figures and totals are read from the data."""
        tree = Hierarchy.from_parents(self.parents)
        rows = ExactNodes(tree, np.flatnonzero(self.exact))
        exact = Part("exact", "invariant", tree.n, tree.n, "invariant", rows.rows(), source=rows)
        parts = [*consistent(tree).parts, exact]
        if whole.has_bounds:
            totals = np.full(self.groups.shape[0], LARGEST)
            low, high = np.append(whole.lower[self.kept], -totals), np.append(whole.upper[self.kept], totals)
            parts.append(Part("bounds", "between", tree.n, tree.n, bounds=Bounds(None, low, high)))
        return build(parts).system(tree.n)

    def totalled(self, values: Array) -> Array:
        """Rows for the outputs kept and the totals from rows for all outputs."""
        return np.concatenate([values[..., self.kept], (self.groups @ values.T).T], axis=-1)

    def filled(self, values: Array) -> Array:
        """Rows for all outputs from rows for those kept and the totals."""
        result = np.empty((len(values), self.kept.size + self.above.size), dtype=values.dtype)
        known = values[:, : self.kept.size]
        result[:, self.kept], result[:, self.above] = known, (self.sums @ known.T).T
        return result

    def moved(self, weights: Floats) -> Floats:
        """Weights on the outputs kept and the totals whose weighted sum is that of `weights` on all."""
        known = weights[self.kept] + self.sums.T @ weights[self.above]
        return np.append(known, np.zeros(self.groups.shape[0]))
