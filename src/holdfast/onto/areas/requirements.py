"""What must hold in areas beside consistency and non-negativity, read as rows of ones with limits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from holdfast.arguments import LARGEST
from holdfast.arrays import Array, Bools, Ints
from holdfast.constraints.system.own_sums import OwnSums
from holdfast.constraints.system.rows import raised, stacked
from holdfast.exact.elimination import eliminate
from holdfast.onto.problem import Problem
from holdfast.queries.areas.area_margins import AreaMargins
from holdfast.queries.areas.rules import NO_LIMIT, Rules

#: What stands beside consistency without being a rule.
PLAIN = ("consistent", "nonnegative")


@dataclass(frozen=True, eq=False)
class Asked:
    """Rows of ones on outputs with limits; `exact`: which have the figures of the data for both, in order."""

    query: AreaMargins
    rows: sparse.csr_array[Any]
    low: Ints
    high: Ints
    exact: Bools

    @property
    def empty_only(self) -> bool:
        """Whether all that is asked is that some outputs are 0."""
        return not self.exact.any() and not self.high.any() and bool((np.diff(self.rows.indptr) == 1).all())

    def rules(self, figures: Array) -> Rules | None:
        """Return the rules for these exact figures."""
        low, high = self.low.copy(), self.high.copy()
        low[self.exact] = high[self.exact] = np.asarray(figures, dtype=np.int64)
        return Rules.of_rows(self.query, self.rows, low, high)


def asked_of(problem: Problem, query: AreaMargins) -> Asked | None:
    """Read what must hold; None where something does not say what a set of figures of one margin adds up to."""
    system = problem.system
    if system.branches or not bool((np.asarray(system.lower >= 0) | _fixed(problem)).all()):
        return None
    low, high = system.integer_bounds(problem.unit)
    single = np.flatnonzero(((low > 0) | (high < LARGEST)) & ~_fixed(problem))
    blocks: list[Any] = [_ones(single, problem.n)]
    least, most = [low[single]], [np.minimum(high[single], NO_LIMIT)]
    for part in system.parts:
        if part.kind in (*PLAIN, "between", "invariant") or part.rows is None:
            continue
        rows = part.rows.widened(problem.n)
        side = np.asarray(raised(rows.b), dtype=np.int64)
        if rows.count and (rows.A.data == 1).all():
            blocks.append(rows.A)
            least.append(side)
            most.append(side if part.kind != "at_least" else np.full(rows.count, NO_LIMIT))
        elif rows.count and part.kind == "at_least" and (rows.A.data == -1).all():
            blocks.append(-rows.A)
            least.append(np.zeros(rows.count, np.int64))
            most.append(-side)
        elif rows.count:
            return None
    count = sum(block.shape[0] for block in blocks)
    figures = system.invariants.A[_exact_rows(problem)[1]]
    if (figures.data != 1).any():
        return None
    blocks.append(figures)
    exact = np.arange(count + figures.shape[0]) >= count
    least.append(np.zeros(figures.shape[0], np.int64))
    most.append(np.full(figures.shape[0], NO_LIMIT))
    found = Asked(
        query, sparse.csr_array(sparse.vstack(blocks, format="csr")), np.concatenate(least), np.concatenate(most), exact
    )
    return None if exact.size and Rules.of_rows(query, found.rows, found.low, found.high) is None else found


def exact_figures(problem: Problem, right: Array) -> Array:
    """Return the exact figures among the right-hand sides of `problem.space.rows`, in the order of `asked_of`."""
    return np.asarray(right)[_exact_rows(problem)[0]]


def _exact_rows(problem: Problem) -> tuple[Ints, Ints]:
    """Where the independent rows of exact figures stand in `problem.space.rows`, and among the invariants."""
    system = problem.system
    equal = system.equalities.others if isinstance(system.equalities, OwnSums) else system.equalities
    both = stacked([equal, system.invariants], system.n)
    kept = np.arange(both.count) if problem.space.rank == both.count else eliminate(both.A).independent
    place = np.flatnonzero(np.asarray(kept) >= equal.count)
    return place, np.asarray(kept)[place] - equal.count


def _fixed(problem: Problem) -> Bools:
    result = np.zeros(problem.n, bool)
    for part in problem.system.parts:
        if part.kind == "fixed" and part.rows is not None:
            result[part.rows.A.indices] = True
    return result


def _ones(outputs: Ints, n: int) -> Any:
    return sparse.csr_array(
        (np.ones(outputs.size, np.int64), outputs, np.arange(outputs.size + 1)), shape=(outputs.size, n)
    )
