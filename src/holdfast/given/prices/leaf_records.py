"""What records do to the leaves of a hierarchy: read from the query and the system, before any price is computed."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from holdfast.arrays import kept
from holdfast.constraints import System
from holdfast.constraints.system.own_sums import OwnSums
from holdfast.domains.intervals import output_parents
from holdfast.noise import Independent
from holdfast.privacy import Additive
from holdfast.queries import Query
from holdfast.trees import Forest
from holdfast.trees.prices.leaf_bounds import LeafBounds

#: Columns of a query with more cells than outputs are looked at one by one up to this number.
MOST_CELLS = 1 << 20


@dataclass(frozen=True, eq=False)
class LeafRecords:
    """How records change leaves: each record one leaf, or none.

    `steps` is by how much one record changes each output that is a leaf at most. `leaves` and `weights` list the
    distinct pairs of a leaf and a weight of a record there; None where every leaf has records, all of weight 1.
    `uncounted` tells whether some records change no leaf.
    """

    steps: npt.NDArray[np.float64]
    is_leaf: npt.NDArray[np.bool_]
    leaves: npt.NDArray[np.int64] | None
    weights: npt.NDArray[Any] | None
    uncounted: bool

    @cached_property
    def lower_a_leaf(self) -> bool:
        return self.weights is not None and bool((self.weights < 0).any())

    @cached_property
    def one_weight(self) -> Fraction | None:
        """The weight that all records have, if it is one; its size, where all are negative."""
        if self.weights is None:
            return Fraction(1)
        if self.weights.size == 0 or (self.weights != self.weights[0]).any():
            return None
        return abs(Fraction(self.weights[0].item()))


@dataclass(frozen=True, eq=False)
class Hung:
    """The hierarchy on which a query counts, with the laws of its outputs; exact totals of cells are outputs too."""

    forest: Forest
    law: Independent
    records: LeafRecords

    @cached_property
    def all_below_exact(self) -> bool:
        """Whether every leaf is exact or has an exact output above it, so that records only come as others go."""
        n, ones = self.forest.n, np.ones(self.forest.n)
        free = np.zeros(n, dtype=bool)
        bounds = LeafBounds(self.forest.parents, self.forest.exact, np.zeros(n, np.int32), ones, free, free, ones)
        return not bounds.alone.any()


def hung(base: Additive, system: System) -> Hung | None:
    """The hierarchy of a system; None where a record changes several leaves, or there is none."""
    found = counted_on(system, base.query)
    return None if found is None else Hung(found[0], _with_totals(base.law, found[0].n), found[1])


@kept
def counted_on(system: System, query: Query) -> tuple[Forest, LeafRecords] | None:
    """The hierarchy on which a query counts, and what its records do to the leaves; None as in `hung`."""
    forest = Forest.of(system) or below_totals(system)
    records = None if forest is None else _records(query, forest)
    return None if forest is None or records is None else (forest, records)


def below_totals(system: System) -> Forest | None:
    """Cells below exact totals that share no cell, as trees whose roots are not measured; None if there is more.

    Cells below no total are trees of their own.
    """
    if system.branches or system.inequalities.count or isinstance(system.equalities, OwnSums):
        return None  # sums of margins in areas weigh their parts by 1 and −1
    rows = [each.A for each in (system.equalities, system.invariants) if each.count]
    if not rows:
        return Forest(np.full(system.n, -1, np.int64), np.zeros(system.n, dtype=bool))
    A = sparse.csr_array(sparse.vstack(rows, format="csr"))
    A.eliminate_zeros()
    sizes = np.diff(A.indptr)
    exact = np.zeros(system.n, dtype=bool)
    exact[A.indices[np.repeat(sizes == 1, sizes)]] = True
    totals = np.flatnonzero(sizes > 1)
    inside = np.repeat(sizes > 1, sizes)
    cells, owners = A.indices[inside], np.repeat(np.arange(sizes.size), sizes)[inside]
    first = A.data[A.indptr[owners]]
    if np.unique(cells).size < cells.size or (A.data[inside] != first).any():
        return None
    parents = np.full(system.n + totals.size, -1, np.int64)
    parents[cells] = system.n + np.searchsorted(totals, owners)
    return Forest(parents, np.append(exact, np.ones(totals.size, dtype=bool)))


def _with_totals(law: Independent, n: int) -> Independent:
    """The law of outputs and of exact totals beside them, which are not measured."""
    if n == law.n:
        return law
    return Independent((*law.laws, None), np.append(law.complete, np.full(n - law.n, len(law.laws), np.int32)), n)


def _records(query: Query, forest: Forest) -> LeafRecords | None:
    """What records do to the leaves; None where some record changes several."""
    if query.cells is None:
        return None
    if query.tree is not None and query.n == forest.n:
        same = np.array_equal(output_parents(query.tree.parents, query.n // query.tree.n), forest.parents)
        return LeafRecords(np.ones(forest.n), forest.is_leaf, None, None, False) if same else None
    if query.cells > max(query.n, MOST_CELLS):
        return None
    places = np.flatnonzero(forest.is_leaf[: query.n])
    at_leaves = sparse.csr_array(query.columns.tocsr()[places])
    at_leaves.eliminate_zeros()
    touched = np.bincount(at_leaves.indices, minlength=query.cells)
    if touched.max(initial=0) > 1:
        return None
    steps = np.zeros(forest.n)
    steps[places] = abs(at_leaves).max(axis=1).toarray().ravel()
    leaf = np.repeat(places, np.diff(at_leaves.indptr))
    order = np.lexsort((at_leaves.data, leaf))
    leaf, weight = leaf[order], at_leaves.data[order]
    new = np.append(True, (np.diff(leaf) != 0) | (np.diff(weight) != 0))[: leaf.size]
    return LeafRecords(steps, forest.is_leaf, leaf[new], weight[new], bool((touched == 0).any()))
