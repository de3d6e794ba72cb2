"""Outputs that no row connects: what must hold splits into parts that can be treated one by one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy import sparse

from holdfast.arguments import Refused
from holdfast.arrays import Ints
from holdfast.constraints.system.constraint_system import System
from holdfast.constraints.system.null_space import TOO_MANY_SUMS
from holdfast.constraints.system.own_sums import OwnSums
from holdfast.constraints.system.rows import Rows
from holdfast.rooms import csgraph


def independent_outputs(system: System, equalities: sparse.csr_array) -> list[Ints]:
    """Return groups of outputs, increasing, that no row with two entries or more connects.

    `equalities` holds the independent equality rows of the system. Outputs in no such row form one group together. A
    union is one group.
    """
    if isinstance(system.equalities, OwnSums):
        raise Refused(TOO_MANY_SUMS)
    everything = [np.arange(system.n)]
    if system.branches:
        return everything
    rows = sparse.csr_array(sparse.vstack([equalities, system.inequalities.A], format="csr"))
    rows = sparse.csr_array(rows[np.flatnonzero(np.diff(rows.indptr) > 1)])
    if rows.shape[0] == 0:
        return everything
    graph: Any = sparse.block_array([[None, rows], [rows.T, None]], format="csr")
    _, found = csgraph.connected_components(graph, directed=False)
    label = found[rows.shape[0] :]
    touched = np.zeros(system.n, dtype=bool)
    touched[rows.indices] = True
    label[~touched] = -1
    names, member = np.unique(label, return_inverse=True)
    if names.size == 1:
        return everything
    order = np.argsort(member, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(member[order])) + 1)


def split_system(system: System, groups: list[Ints]) -> Iterator[System]:
    """Yield what must hold for each group of outputs; together they take one pass over the rows."""
    pieces = [list(split_rows(rows, groups)) for rows in (system.equalities, system.invariants, system.inequalities)]
    for k, outputs in enumerate(groups):
        equalities, invariants, inequalities = (of[k][0] for of in pieces)
        low, high = system.lower[outputs], system.upper[outputs]
        yield System(outputs.size, (), equalities, invariants, inequalities, low, high)


def split_rows(rows: Rows, groups: list[Ints]) -> Iterator[tuple[Rows, Ints]]:
    """Yield for each group its rows, over its own outputs, and the numbers they had before.

    Groups are made by independent equalities: one with outputs of several groups follows from these and is left out.
    """
    n = rows.A.shape[1]
    group, place = np.zeros(n, dtype=np.int64), np.zeros(n, dtype=np.int64)
    for k, outputs in enumerate(groups):
        group[outputs], place[outputs] = k, np.arange(outputs.size)
    filled = np.flatnonzero(rows.sizes > 0)  # an empty row says nothing about anybody
    owners, starts = group[rows.A.indices], rows.A.indptr[filled]
    least, most = (ends.reduceat(owners, starts) if filled.size else owners[:0] for ends in (np.minimum, np.maximum))
    filled, owner = filled[least == most], least[least == most]
    order = filled[np.argsort(owner, kind="stable")]
    ends = np.searchsorted(np.sort(owner), np.arange(len(groups) + 1))
    for k, outputs in enumerate(groups):
        mine = order[ends[k] : ends[k + 1]]
        part = rows.A[mine]
        keep = np.zeros(rows.count, dtype=bool)
        keep[mine] = True
        local = sparse.csr_array((part.data, place[part.indices], part.indptr), shape=(mine.size, outputs.size))
        yield Rows(local, rows.b[mine], rows.names.chosen(keep)), mine
