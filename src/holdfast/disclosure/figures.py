"""What outsiders know about the cells of a table: published figures and what holds for every dataset, in whole rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
from scipy import sparse

from holdfast.arguments import LARGEST, Refused, whole_numbers
from holdfast.arrays import Ints
from holdfast.constraints.constraint import Constraint
from holdfast.constraints.possible import propagation
from holdfast.constraints.structural import invariant
from holdfast.constraints.system.constraint_system import System
from holdfast.constraints.system.exact_figures import ExactMargins, ExactNodes
from holdfast.constraints.system.parts import EQUALITIES
from holdfast.constraints.system.rows import products
from holdfast.exact.rationals import read_vector, tidy

#: Sums of figures times coefficients stay below this, so that 64 bits hold everything.
SAFE = 2.0**60
TOO_LARGE = "figures and bounds must be smaller for so many cells: their sums times coefficients must stay below 2**60"


class Contradiction(Refused):
    """Figures that no table of counts has all."""

    def __init__(self, sentence: str = "") -> None:
        super().__init__(sentence or "the figures contradict each other: no table of counts has them all; check them")


@dataclass(frozen=True, eq=False)
class Known:
    """One release: what was asked, what holds in it, and the values of its exact figures, in the order of the rows."""

    query: Any
    system: System
    figures: Ints


@dataclass(frozen=True, eq=False)
class CellRows:
    """Counts x of n cells with A x = b, G x ≥ h and low ≤ x ≤ high; 2**62 stands for no upper limit."""

    A: sparse.csr_array
    b: Ints
    G: sparse.csr_array
    h: Ints
    low: Ints
    high: Ints

    @property
    def n(self) -> int:
        return int(self.low.size)


def read_known(query: Any, invariants: Any, figures: Any = None, truth: Any = None) -> Known:
    """Check and return one release; its figures are given, or read from the true answers."""
    constraint = invariant(invariants) if isinstance(invariants, (ExactNodes, ExactMargins)) else invariants
    if not isinstance(constraint, Constraint):
        raise Refused(f"invariants must be a constraint such as invariant(C), found {type(invariants).__name__}")
    if not constraint.has_invariants:
        raise Refused("invariants must publish something exactly: give invariant(exact_nodes(...)) or invariant(C)")
    if constraint.is_union:
        raise Refused("invariants must not hold a union: ask for each of its sides")
    if constraint.irrational():
        raise Refused("invariants must hold rational numbers: give their entries as integers or fractions")
    if getattr(query, "cells", None) is None or not query.integer or query.grid is not None:
        raise Refused("query must count records in known cells: its answers are whole, and it has no grid")
    system = constraint.system(query.n)
    rows = system.invariants
    if (figures is None) == (truth is None):
        raise Refused("give either figures, the published values of the invariants' rows, or truth, the true answers")
    if figures is None:
        answers = whole_numbers("truth", truth, (query.n,))
        values = np.asarray(products(rows.A, answers[:, None])[:, 0])
    else:
        values = _whole_figures(system, figures)
    return Known(query, system, whole_numbers("figures", values))


def _whole_figures(system: System, figures: Any) -> Any:
    """Return the figures of the rows once these are whole: rows of fractions were multiplied, and figures are too."""
    parts = [part for part in system.parts if part.kind == "invariant" and part.rows is not None]
    if all(part.factors is None for part in parts):
        return whole_numbers("figures", figures, (system.invariants.count,))
    factors = [factor for part in parts for factor in part.factors or [1] * (part.rows.count if part.rows else 0)]
    given = read_vector("figures", figures)[0].tolist()
    if len(given) != len(factors):
        raise Refused(f"figures must have shape ({len(factors)},), found shape ({len(given)},)")
    exact = [Fraction(value) * factor for value, factor in zip(given, factors, strict=True)]
    for position, value in enumerate(exact):
        if value.denominator != 1:
            raise Refused(f"figures must be sums of whole counts by their rows, but the entry {position} is not")
    return [int(value) for value in exact]


def cell_rows(known: Sequence[Known], figures: bool = True) -> CellRows:
    """Write everything known as rows over the cells; without figures, only what holds for every dataset."""
    cells = int(known[0].query.cells)
    low, high = np.zeros(cells, dtype=np.int64), np.full(cells, LARGEST, dtype=np.int64)
    equal: list[tuple[sparse.csr_array, Any]] = []
    least: list[tuple[sparse.csr_array, Any]] = []
    for each in known:
        W = sparse.csr_array(each.query.columns)
        if figures:
            equal.append((each.system.invariants.A @ W, each.figures))
        equal += [
            (part.rows.widened(each.system.n).A @ W, part.rows.b)
            for part in each.system.parts
            if part.kind in EQUALITIES and part.kind != "consistent" and part.rows is not None
        ]
        least.append((each.system.inequalities.A @ W, each.system.inequalities.b))
        least += _bounded(each, W, low, high)
    A, b = _stacked(equal, cells)
    G, h = _stacked(least, cells, equalities=False)
    found = CellRows(A, b, G, h, low, high)
    largest = max(float(np.abs(side).max(initial=0)) for side in (b, h, low))
    heaviest = max((float(np.abs(rows.data).max(initial=0)) for rows in (A, G)), default=0.0)
    if largest * max(heaviest, 1.0) ** 2 * max(cells, 1) >= SAFE:
        raise Refused(TOO_LARGE)
    return found


def _bounded(each: Known, W: sparse.csr_array, low: Ints, high: Ints) -> list[tuple[sparse.csr_array, Any]]:
    """Enter bounds on outputs that are single cells; return the others as rows."""
    lower, upper = each.system.integer_bounds()
    sizes = np.diff(W.indptr)
    single = np.flatnonzero((sizes == 1) & ((lower > 0) | (upper < LARGEST)))
    single = single[W.data[W.indptr[single]] == 1]
    cells = W.indices[W.indptr[single]]
    np.maximum.at(low, cells, lower[single])
    np.minimum.at(high, cells, upper[single])
    others = np.ones(W.shape[0], dtype=bool)
    others[single] = False
    smallest = np.where(np.asarray(W.min(axis=1).toarray()).ravel() < 0, -LARGEST, 0) if W.nnz else np.zeros(W.shape[0])
    below = np.flatnonzero(others & (lower > smallest) & (lower > -LARGEST))
    above = np.flatnonzero(others & (upper < LARGEST))
    return [(sparse.csr_array(W[below]), lower[below]), (sparse.csr_array(-W[above]), -upper[above])]


def _stacked(
    blocks: list[tuple[sparse.csr_array, Any]], cells: int, equalities: bool = True
) -> tuple[sparse.csr_array, Ints]:
    """Return rows with whole right-hand sides, each once, without those that say nothing."""
    present = [(rows, side) for rows, side in blocks if rows.shape[0]]
    if not present:
        return sparse.csr_array((0, cells), dtype=np.int64), np.zeros(0, dtype=np.int64)
    rows = tidy(sparse.csr_array(sparse.vstack([rows for rows, _ in present], format="csr")))
    sides = np.concatenate([np.asarray(side) for _, side in present])
    if sides.dtype == object:
        exact = [Fraction(side) for side in sides.tolist()]
        factors = np.array([side.denominator for side in exact], dtype=np.int64)
        rows = tidy(sparse.diags_array(factors, format="csr") @ rows)
        sides = np.array([int(side * side.denominator) for side in exact], dtype=np.int64)
    empty = np.diff(rows.indptr) == 0
    if ((sides[empty] != 0) if equalities else (sides[empty] > 0)).any():
        raise Contradiction("the figures contradict what holds for every dataset: a figure of nothing must be 0")
    return sparse.csr_array(rows[np.flatnonzero(~empty)]), sides[~empty].astype(np.int64)


# --- bounds of cells carried from row to row in whole numbers, until nothing changes ---------------------------------

#: Rounds after which bounds that still creep are left as they are: a bound less is always allowed.
ROUNDS = 40


def carried(rows: CellRows) -> CellRows:
    """Return the rows with tighter bounds; refuse where two bounds cross. An equality is two rows A z ≥ b."""
    A = sparse.csr_array(sparse.vstack([rows.A, -rows.A, rows.G], format="csr"))
    b = np.concatenate([rows.b, -rows.b, rows.h])
    low, high = propagation.carried(A, b, (rows.low, rows.high), ROUNDS, whole=True)
    if (low > high).any():
        raise Contradiction
    return replace(rows, low=low, high=high)
