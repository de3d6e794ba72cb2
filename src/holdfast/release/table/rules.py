"""What must hold in a table as constraints: from the facts of a job or of a certificate, by the numbers of the rows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from functools import reduce
from typing import Any

import numpy as np
from scipy import sparse

from holdfast.arrays import Ints
from holdfast.constraints import (
    Constraint,
    at_least,
    between,
    consistent,
    equals,
    exact_margins,
    exact_nodes,
    fixed,
    invariant,
    nonnegative,
    ordered,
)
from holdfast.constraints.system.rows import Names
from holdfast.domains.intervals import output_parents
from holdfast.queries import Query
from holdfast.release.facts.table import Bound, Holds, Sum


def both(*several: Constraint | None) -> Constraint | None:
    """Everything together; None: nothing."""
    listed = [each for each in several if each is not None]
    return reduce(lambda one, other: one & other, listed) if listed else None


def titled(constraint: Constraint, texts: list[str]) -> Constraint:
    """Call the rows of a constraint by these names."""
    part = constraint.parts[0]
    assert part.rows is not None
    literal = (text.replace("{", "{{").replace("}", "}}") for text in texts)
    titles = Names(tuple((text, np.zeros((1, 0), dtype=np.int64)) for text in literal))
    return replace(constraint, parts=(replace(part, rows=replace(part.rows, names=titles)),))


def bounded(bound: Bound, n: int) -> Constraint:
    low, high = (None if limit is None else Fraction(limit) for limit in (bound.low, bound.high))
    return between(low, high, at=None if len(bound.rows) == n else np.array(bound.rows, dtype=np.int64))


def weighted(asked: Sum, n: int) -> Constraint:
    """A weighted sum of rows that has a value, or at least one; in whole weights."""
    weights = [Fraction(weight) for weight in asked.weights]
    scale = math.lcm(*(weight.denominator for weight in weights))
    whole = np.array([int(weight * scale) for weight in weights], dtype=np.int64)
    row = sparse.csr_array((whole, asked.rows, [0, len(asked.rows)]), shape=(1, n))
    return (equals if asked.low == asked.high else at_least)(row, [Fraction(asked.low or 0) * scale])


def empty(rows: Sequence[int] | Ints) -> Constraint | None:
    return fixed(rows, np.zeros(len(rows), dtype=np.int64)) if len(rows) else None


def not_implied(query: Query, sums: Any) -> Ints:
    """The exact figures of a hierarchy that no others below them add up to, each a row of outputs."""
    every = np.arange(sums.shape[0])
    if query.tree is None or np.unique(sums.indices).size < sums.nnz:
        return every
    parents = output_parents(query.tree.parents, query.n // query.tree.n)
    owner = np.full(query.n + 1, -1, dtype=np.int64)  # the last place: no output
    owner[sums.indices] = np.repeat(every, np.diff(sums.indptr))
    above, inside = owner[parents], owner[:-1] >= 0
    least, most = np.full(every.size, query.n), np.full(every.size, -1)
    np.minimum.at(least, owner[:-1][inside], above[inside])
    np.maximum.at(most, owner[:-1][inside], above[inside])
    hangs = inside & (least == most)[owner[:-1]]  # all outputs of its figure are below those of one figure
    children = np.bincount(above[above >= 0], minlength=every.size)
    known = np.bincount(above[hangs & (above >= 0)], minlength=every.size)
    return np.flatnonzero((children == 0) | (known < children))


def exact_rows(query: Query, margins: Sequence[tuple[str, ...] | None], sums: Any) -> Constraint:
    """Exact figures, each a sum of outputs: nodes with all their categories, margins of cells, or any other."""
    tree, cube = query.tree, query.cube
    if tree is not None and sums.nnz == sums.shape[0]:
        by = query.n // tree.n
        nodes, count = np.unique(np.unique(sums.indices) // by, return_counts=True)
        if (count == by).all():
            return invariant(exact_nodes(tree, nodes, by))
    if query.identity and cube is not None:
        return invariant(exact_margins(cube.shape, [cube.axes(axes) for axes in margins if axes is not None]))
    return invariant(sums[not_implied(query, sums)])


def added(rows: Ints, entry: Ints, n: int) -> Any:
    """The 0/1 rows that sum outputs (places, entries) to a margin of every place; `entry`: to which each entry adds."""
    size = int(entry.max()) + 1
    row = (np.arange(len(rows))[:, None] * size + entry).ravel()
    order = np.argsort(row, kind="stable")
    ends = np.concatenate([[0], np.cumsum(np.bincount(row, minlength=len(rows) * size))])
    ones = np.ones(row.size, dtype=np.int64)
    return sparse.csr_array((ones, rows.ravel()[order], ends), shape=(len(rows) * size, n))


def sums_of_rows(rows: Sequence[Sequence[int]], n: int) -> Any:
    ends = np.concatenate([[0], np.cumsum([len(each) for each in rows])])
    indices = np.concatenate([np.zeros(0, np.int64), *(np.array(each, dtype=np.int64) for each in rows)])
    return sparse.csr_array((np.ones(indices.size, dtype=np.int64), indices, ends), shape=(len(rows), n))


def as_certified(holds: Holds, query: Query, exact: Constraint | None) -> tuple[Constraint | None, Constraint | None]:
    """The equalities, with exact figures, and the inequalities that a certificate lists.

    Sides of which only one holds bound nothing for certain.
    """
    n, linear = query.n, [(each, each.low == each.high) for each in holds.linear]
    equal = both(
        consistent(query) if holds.consistent and not query.identity else None,
        *(weighted(each, n) for each, same in linear if same),
        empty(holds.impossible),
        exact,
    )
    unequal = both(
        nonnegative() if holds.nonnegative else None,
        *(bounded(each, n) for each in holds.bounds),
        *(ordered(chain) for chain in holds.orders),
        *(weighted(each, n) for each, same in linear if not same and each.low is not None),
    )
    return equal, unequal
