"""What a union costs: the largest ε_d + log(c_x′/c_x) over neighbouring tables x, x′ = x − d in it, if all are listed.

For Laplace noise this is the loss itself, and never more than 2ε; c_x is the weight of the whole union seen from x.
Where tables are too many to be listed, 2ε is stated.
Proofs: docs/theory/unions.md.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt
from flint import arb
from scipy import sparse
from scipy.sparse import csgraph

from holdfast.arguments import LARGEST, Refused
from holdfast.arrays import Ints
from holdfast.constraints import System
from holdfast.given.exact import enumeration
from holdfast.given.problem import Problem
from holdfast.given.union import Weights, overlap, sides
from holdfast.noise import Independent, IntegerLaplace
from holdfast.noise.precision import PRICE_BITS, ball, working_precision
from holdfast.privacy import Additive
from holdfast.privacy.invariants import MOST_RECORDS, frozen_words
from holdfast.queries import Neighbours

#: States of the truth whose weights are computed at most, and pairs of states that are looked at.
MOST_STATES = 600
MOST_PAIRS = 400_000

#: Left open by a statement, too, where tables are too many to tell.
ONE_SIDE = "which side of the union holds (no allowed change leads from one side to another)"


@dataclass(frozen=True)
class Price:
    """The largest loss, the neighbours it is about, whether it is attained, and what no allowed change alters.

    `loss` is None where no change of a few records keeps within the union. `unprotected` says in words what no allowed
    change alters, and `frozen` lists the outputs among it.
    """

    loss: arb | None
    neighbours: Neighbours
    exact: bool = False
    unprotected: tuple[str, ...] = ()
    frozen: tuple[int, ...] = ()


def union_price(base: Additive, system: System, relation: Neighbours) -> Price | None:
    """The price of a union of sides that exclude each other; None where none is proved.

    Guarantee: pure ε of this size (docs/theory/unions.md, Propositions 2 and 3).
    """
    problem = Problem(base.law, system, base.unit)
    if base.query.cells is None or not base.query.integer or base.query.grid is not None:
        return None
    if overlap(problem) is not None or sides(problem) is None:
        return None
    with working_precision(PRICE_BITS):
        return _by_tables(base, problem, relation)


def _widened(relation: Neighbours) -> Iterator[Neighbours]:
    """The relation, and if nothing can change under it, a few records more."""
    for records in range(relation.records, max(relation.records, MOST_RECORDS) + 1):
        yield Neighbours(relation.kind, records)


def _losses(law: Independent, differences: Ints) -> list[Fraction]:
    which = law.complete
    sizes = np.stack([np.abs(differences[:, which == k]).sum(axis=1) for k in range(len(law.laws))], axis=1)
    rates = [Fraction(0) if scale is None else 1 / scale for scale in law.scale_values]
    return [sum((rate * int(s) for rate, s in zip(rates, row, strict=True)), Fraction(0)) for row in sizes]


@dataclass(frozen=True, eq=False)
class Changes:
    """Pairs of states that neighbouring data can have, each with its largest ε_d; and which outputs change at all."""

    losses: dict[tuple[int, int], Fraction]
    changed: npt.NDArray[np.bool_]

    def largest(self, weights: list[arb]) -> arb:
        """Enclose the largest ε_d + log(c_b/c_a) over the pairs (a, b)."""
        worst = arb(0)
        for (a, b), loss in self.losses.items():
            worst = worst.max(ball(loss) if a == b else ball(loss) + (weights[b] / weights[a]).log())
        return worst


def _by_tables(base: Additive, problem: Problem, relation: Neighbours) -> Price | None:
    largest = int(np.abs(base.query.columns.data).max(initial=0)) if base.query.n == 1 else 0
    tables = _tables(problem, 2 * largest * max(relation.records, MOST_RECORDS))
    if tables is None:
        return None
    tables = tables[~np.asarray(base.query.consistency() @ tables.T).any(axis=0)]  # others are the answer of no data
    for wider in _widened(relation):
        found = _listed_changes(base, tables, wider)
        if found is None:
            return None
        if found.losses:
            attained = base.law.integer and base.query.identity and bool((tables >= 0).all()) and wider == relation
            left = _left(base, problem.system, tables, found)
            return Price(found.largest(_weights(problem, tables)), wider, attained, *left)
    return Price(None, relation)


def _weights(problem: Problem, truths: Ints) -> list[arb]:
    """The weight of the whole union, seen from each truth."""
    found = sides(problem)
    assert found is not None
    values: npt.NDArray[Any] = truths if problem.law.integer else truths.astype(np.float64)
    return [Weights(found, truth).total() for truth in values]


def _left(base: Additive, system: System, tables: Ints, found: Changes) -> tuple[tuple[str, ...], tuple[int, ...]]:
    """What differs between tables but is altered by no allowed change: in words, and the outputs."""
    frozen = np.flatnonzero((tables != tables[:1]).any(axis=0) & ~found.changed)
    held = [np.asarray(branch.holds(tables), dtype=bool) for branch in system.branches]
    which = np.argmax(held, axis=0)
    pairs = np.array(list(found.losses), dtype=np.int64).reshape(-1, 2)
    joins = (which[pairs[:, 0]], which[pairs[:, 1]])
    graph = sparse.csr_array((np.ones(len(pairs)), joins), shape=(len(held), len(held)))
    label = csgraph.connected_components(graph, directed=False)[1]
    words = frozen_words(base, frozen) + ((ONE_SIDE,) if np.unique(label[which]).size > 1 else ())
    return words, tuple(frozen.tolist())


def _listed_changes(base: Additive, tables: Ints, relation: Neighbours) -> Changes | None:
    """Pairs of listed tables that are neighbours; None where there are too many to look at."""
    try:
        differences = base.query.differences(relation)
    except Refused:
        return None
    if len(tables) * len(differences) > MOST_PAIRS:
        return None
    place = {tuple(table): k for k, table in enumerate(tables.tolist())}
    losses: dict[tuple[int, int], Fraction] = {}
    changed = np.zeros(base.query.n, dtype=bool)
    for difference, loss in zip(differences, _losses(base.law, differences), strict=True):
        for a, table in enumerate((tables + difference).tolist()):
            b = place.get(tuple(table))
            if b is not None:
                losses[a, b] = loss
                changed |= difference != 0
    return Changes(losses, changed)


def _tables(problem: Problem, step: int) -> Ints | None:
    """All whole tables of the union; None where they are too many.

    One output may have no end: then its values are listed so far that no change by `step` or less loses more beyond.
    """
    if problem.law.n == 1:
        return _one_output(problem, step)
    whole = Independent((IntegerLaplace(Fraction(1)),), None, problem.law.n)
    listing = Problem(whole, problem.system)
    if not enumeration.accepts(listing):
        return None
    try:
        tables = enumeration.possible_tables(listing, np.zeros(problem.law.n, dtype=np.int64))
    except Refused:
        return None
    return tables if len(tables) <= MOST_STATES else None


def _one_output(problem: Problem, step: int) -> Ints | None:
    """The whole numbers of a union of intervals, up to `step` beyond all finite ends (Proposition 3)."""
    ends = [Fraction(end) for branch in problem.system.branches for end in _ends(branch) if abs(end) < LARGEST]
    first, last = math.floor(min(ends)) - step, math.ceil(max(ends)) + step  # sides that exclude each other have ends
    if last - first >= MOST_STATES:
        return None
    numbers = np.arange(first, last + 1, dtype=np.int64)[:, None]
    return np.asarray(numbers[np.asarray(problem.system.holds(numbers), dtype=bool)])


def _ends(branch: System) -> list[Any]:
    """The ends of one output on one side, fixed values included."""
    rows = branch.equalities
    fixed = [Fraction(b) / int(a) for a, b in zip(rows.A.data.tolist(), rows.b.tolist(), strict=True)]
    return [*branch.lower.tolist(), *branch.upper.tolist(), *fixed]
