"""The mechanism behind a published table, built again from its certificate and the names of its rows alone.

It is good for what is public: the law of the errors, and what is certain of the true figures.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
from scipy import sparse

from holdfast.arguments import Refused
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
from holdfast.domains import Cube, Hierarchy
from holdfast.mechanism.correlated.residuals import OnResiduals
from holdfast.mechanism.extended import extend
from holdfast.mechanism.mechanism import Mechanism
from holdfast.mechanism.source import Plain
from holdfast.noise import Independent
from holdfast.noise.independent import LAWS
from holdfast.privacy import Additive
from holdfast.queries import Neighbours, Query, counts, linked, margins
from holdfast.release.certificate.certificate import Sum, TableCertificate
from holdfast.release.certificate.naming import BETWEEN, INSIDE, parts_of
from holdfast.release.storage.tables import Named, texts

#: Methods whose draws are conditioned on everything that holds.
CONDITIONED = ("given", "walk", "metropolis")
EXTENDED = "extend-"


def rebuilt(table: TableCertificate, columns: Named) -> Mechanism:
    """Build the mechanism of a table again; its statements were made for the spec and are in the certificate."""
    columns = {name: column[: table.outputs] for name, column in columns.items()}
    query = {"hierarchy": _hierarchy, "areas": _areas, "linked": _linked}.get(table.kind, _cube)(table, columns)
    equal, unequal = _equalities(table, columns, query), _inequalities(table)
    everything = _both(equal, unequal)
    neighbours = Neighbours(table.neighbours.kind, table.neighbours.records)
    if table.residuals:
        noise = Mechanism(_on_residuals(table, query, neighbours))
    else:
        noise = Mechanism(Plain(Additive(query, _law(table, columns), neighbours)))
    method, whole = table.method, table.holds.whole
    if everything is None or method == "noise":
        return noise
    if method.startswith(EXTENDED):
        assert equal is not None
        law = method.removeprefix(EXTENDED)
        much: Any = {"rho": Fraction(1, 100) if whole else 1} if noise.base.law.kind == "gaussian" else {"epsilon": 1}
        made = extend(query, equal, law=law, neighbours=neighbours, integer=whole, **much)
        return made.over(replace(made.base, law=Independent(noise.base.law.laws[:1], None, query.n)))
    if method in CONDITIONED:
        return noise.given(everything)
    if method == "given-then-onto" and equal is not None:
        return noise.given(equal) if unequal is None else noise.given(equal).onto(unequal, integer=whole)
    if method == "project" and equal is not None:
        return noise.onto(equal, weights=None, integer=False)
    named = method if method in ("topdown", "bluedown") and unequal is None else None
    return noise.onto(everything, integer=whole, method=named)


def _on_residuals(table: TableCertificate, query: Query, neighbours: Neighbours) -> OnResiduals:
    """Noise on residuals, by the precision of each."""
    tree, cube = query.domain
    assert cube is not None
    depths = [0 if each.level is None or tree is None else tree.depth_of_level(each.level) for each in table.residuals]
    squares = {
        (depth, cube.axes(tuple(each.axes))): Fraction(each.square)
        for depth, each in zip(depths, table.residuals, strict=True)
    }
    return OnResiduals.of(query, neighbours, squares, integer=True)


def _both(one: Constraint | None, other: Constraint | None) -> Constraint | None:
    return other if one is None else one if other is None else one & other


def _hierarchy(table: TableCertificate, columns: Named) -> Query:
    """The tree of the names, its nodes in the order of the rows, and the categories of each."""
    depth = np.array([table.levels.index(level) for level in columns["level"].tolist()])
    tree = _tree(table.levels, depth, columns)
    return counts(tree, table.outputs // tree.n)


def _tree(levels: Sequence[str], depth: Ints, columns: Named) -> Hierarchy:
    """The tree of the names: nodes that have rows in the order of these, then those between them that have none."""
    listed = [texts(columns[name]).tolist() for name in levels]
    paths = [tuple(level[row] for level in listed[: d + 1]) for row, d in enumerate(depth.tolist())]
    number: dict[tuple[Any, ...], int] = {}
    for path in paths:
        number.setdefault(path, len(number))
    for path in list(number):
        for end in range(len(path) - 1, 0, -1):
            number.setdefault(path[:end], len(number))
    parents = [number[path[:-1]] if len(path) > 1 else -1 for path in number]
    used = levels[: max(map(len, number))]
    return Hierarchy.from_parents(parents, [str(path[-1]) for path in number], used)


def _areas(table: TableCertificate, columns: Named) -> Query:
    """The margins of every area; what lies below the lowest level with rows plays no part in their law."""
    cube = _counted(table, columns, [name for name in table.columns[1:] if name not in table.places])
    kept: dict[str, list[tuple[int, ...]]] = {}
    depth_of = {}
    for level in table.noise_by_level:
        depth, margin = parts_of(table, level.level)
        depth_of[level.level] = depth
        kept.setdefault(table.places[depth], []).append(cube.axes(margin))
    tree = _tree(table.places, np.array([depth_of[level] for level in columns["level"].tolist()]), columns)
    return counts(tree, cube, kept)


def _counted(table: TableCertificate, columns: Named, names: Sequence[str]) -> Cube:
    """The cube of the columns with these names, with its recoded axes; an axis that no row has plays no part."""
    groups = {each.name: each for each in table.recoded}
    axes = [name for name in names if name not in groups]
    sizes = [len({text for text in texts(columns[name]).tolist() if text is not None}) or 1 for name in axes]
    for each in table.recoded:
        sizes[axes.index(each.axis)] = len(each.groups)
    return Cube(sizes, axes, {name: (each.axis, each.groups) for name, each in groups.items()})


def _linked(table: TableCertificate, columns: Named) -> Query:
    """Several tables in the same areas, and their ties."""
    depth_of, tables = {}, {}
    for each in table.linked:
        kept: dict[str, list[tuple[int, ...]]] = {}
        for level in table.noise_by_level:
            name, inside = level.level.split(INSIDE, 1)
            if name == each.name:
                depth, margin = parts_of(table, inside)
                depth_of[level.level] = depth
                kept.setdefault(table.places[depth], []).append(tuple(each.axes.index(axis) for axis in margin))
        tables[each.name] = kept
    tree = _tree(table.places, np.array([depth_of[level] for level in columns["level"].tolist()]), columns)
    queries = {each.name: counts(tree, Cube(each.shape, each.axes), tables[each.name]) for each in table.linked}
    rules = [
        {each.name: np.array(tie).reshape(each.shape) for each, tie in zip(table.linked, ties, strict=True)}
        for ties in zip(*(each.ties for each in table.linked), strict=True)
    ]
    return linked(queries, rules, {each.name: each.most for each in table.linked})


def _cube(table: TableCertificate, columns: Named) -> Query:
    cube = _counted(table, columns, table.columns[1:])
    kept = [_axes(level.level, cube.all_names) for level in table.measured]
    cells = kept == [tuple(range(len(cube.shape)))]
    return margins(cube, None if cells else kept)


def _axes(level: str, names: Sequence[str]) -> tuple[int, ...]:
    return () if level == "total" else tuple(names.index(name) for name in level.split(BETWEEN))


def _law(table: TableCertificate, columns: Named) -> Independent:
    """The noise of every row by its level."""
    if any(len(level.noise) > 1 for level in table.measured):
        raise Refused(f"figures of one level of {table.name!r} have several scales of noise: their law is not on file")
    first = [level.noise[0] for level in table.measured]
    parameters = [(noise.law, noise.whole, noise.parameter) for noise in first]
    distinct = list(dict.fromkeys(parameters))
    laws = tuple(None if law is None else LAWS[law, whole](Fraction(number or 1)) for law, whole, number in distinct)
    of_level = {level: distinct.index(each) for level, each in zip(table.levels, parameters, strict=False)}
    which = None if len(laws) == 1 else np.array([of_level[level] for level in columns["level"].tolist()])
    return Independent(laws, which, table.outputs)


def _equalities(table: TableCertificate, columns: Named, query: Query) -> Constraint | None:
    holds = table.holds
    found: Constraint | None = None
    if holds.consistent and not query.identity:
        found = consistent(query)
    for each in () if table.linked else holds.linear:  # ties are part of the consistency of linked tables
        if each.low == each.high:
            found = _both(found, equals(*_whole_row(each, query.n)))
    if holds.impossible:
        found = _both(found, fixed(holds.impossible, np.zeros(len(holds.impossible), dtype=np.int64)))
    return _both(found, _exact(table, columns, query)) if holds.exact else found


def _exact(table: TableCertificate, columns: Named, query: Query) -> Constraint:
    """The exact figures: nodes with all their categories, margins of cells, or sums of rows."""
    if query.tree is not None and all(len(rows) == 1 for figure in table.holds.exact for rows in figure.rows):
        own = np.unique([row for figure in table.holds.exact for rows in figure.rows for row in rows])
        by = query.n // query.tree.n
        nodes, count = np.unique(own // by, return_counts=True)
        if (count == by).all():
            return invariant(exact_nodes(query.tree, nodes, by))
    names = table.columns[1:]
    if query.identity and query.cube is not None:
        return invariant(exact_margins(query.cube.shape, [_axes(figure.figure, names) for figure in table.holds.exact]))
    rows = []
    for figure in table.holds.exact:
        sums = figure.rows or _sums(figure.figure, table, columns)
        rows += [_row(each, [1] * len(each), query.n) for each in sums]
    return invariant(sparse.vstack(rows, format="csr"))


def _sums(figure: str, table: TableCertificate, columns: Named) -> list[list[int]]:
    """The rows that add up to every value of a margin that the certificate does not list, by their names."""
    wanted = [] if figure == "total" else figure.split(BETWEEN)
    level = next(name for name in table.levels if set(wanted) <= set(name.split(BETWEEN)))
    groups: dict[tuple[Any, ...], list[int]] = {}
    for row in np.flatnonzero(np.asarray(columns["level"]).astype(str) == level).tolist():
        groups.setdefault(tuple(columns[name][row] for name in wanted), []).append(row)
    return list(groups.values())


def _inequalities(table: TableCertificate) -> Constraint | None:
    """Bounds, orders and weighted sums; sides of which only one holds bound nothing for certain."""
    holds = table.holds
    found = nonnegative() if holds.nonnegative else None
    for bound in holds.bounds:
        low, high = (None if limit is None else Fraction(limit) for limit in (bound.low, bound.high))
        found = _both(found, between(low, high, at=bound.rows))
    for chain in holds.orders:
        found = _both(found, ordered(chain))
    for each in holds.linear:
        if each.low is not None and each.low != each.high:
            found = _both(found, at_least(*_whole_row(each, table.outputs)))
    return found


def _whole_row(each: Sum, n: int) -> tuple[Any, list[Fraction]]:
    """A weighted sum and its lower side, times what makes the weights whole."""
    weights = [Fraction(weight) for weight in each.weights]
    scale = math.lcm(*(weight.denominator for weight in weights))
    return _row(each.rows, [int(weight * scale) for weight in weights], n), [Fraction(each.low or 0) * scale]


def _row(rows: Sequence[int], weights: Sequence[int], n: int) -> Any:
    """One row of a matrix of whole numbers."""
    return sparse.csr_array((np.array(weights, dtype=np.int64), list(rows), [0, len(rows)]), shape=(1, n))
