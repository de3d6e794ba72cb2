"""The mechanism behind a published table, built again from its certificate and the names of its rows alone.

It is good for what is public: the law of the errors, and what is certain of the true figures.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
from scipy import sparse

from holdfast.arguments import Refused
from holdfast.arrays import Ints
from holdfast.constraints import Constraint
from holdfast.domains import Cube, Hierarchy
from holdfast.mechanism.correlated.residual_noise import OnResiduals
from holdfast.mechanism.mechanism import Mechanism
from holdfast.mechanism.noise_source import Plain
from holdfast.noise import Independent
from holdfast.noise.independent import LAWS
from holdfast.privacy import Additive
from holdfast.queries import Neighbours, Query
from holdfast.release.facts import TableCertificate
from holdfast.release.job.methods import EXTENDED, Problem, made
from holdfast.release.storage.tables import Named, texts
from holdfast.release.table.holding import added, as_certified, both, exact_rows, sums_of_rows
from holdfast.release.table.laid import KINDS


def rebuilt(table: TableCertificate, columns: Named) -> Mechanism:
    """Build the mechanism of a table again; its statements were made for the spec and are in the certificate."""
    columns = {name: column[: table.outputs] for name, column in columns.items()}
    query = _query(table, columns)
    holds = table.holds.model_copy(update={"linear": []}) if table.linked else table.holds  # ties are part of the query
    equal, unequal = as_certified(holds, query, _exact(table, query) if holds.exact else None)
    neighbours = Neighbours(table.neighbours.kind, table.neighbours.records)
    if table.residuals:
        noise = Mechanism(_on_residuals(table, query, neighbours))
    else:
        noise = Mechanism(Plain(Additive(query, _law(table, columns), neighbours)))
    if both(equal, unequal) is None or table.method == "noise":
        return noise
    # Beside bounds, a table made level by level has the error bars of `onto`.
    same = {} if unequal is None else {"topdown": "onto", "bluedown": "onto"}
    problem = Problem(query, equal, unequal, neighbours, None, table.holds.whole, "all")
    mechanism = made(same.get(table.method, table.method), noise, problem)
    if table.method not in EXTENDED:
        return mechanism
    return mechanism.over(replace(mechanism.base, law=Independent(noise.base.law.laws[:1], None, query.n)))


def _on_residuals(table: TableCertificate, query: Query, neighbours: Neighbours) -> OnResiduals:
    tree, cube = query.domain
    assert cube is not None
    depths = [0 if each.level is None or tree is None else tree.depth_of_level(each.level) for each in table.residuals]
    squares = {
        (depth, cube.axes(tuple(each.axes))): Fraction(each.square)
        for depth, each in zip(depths, table.residuals, strict=True)
    }
    return OnResiduals.of(query, neighbours, squares, integer=True)


def _query(table: TableCertificate, columns: Named) -> Any:
    """What was asked of the records; places below the lowest level with rows play no part in the law."""
    margins, tree, kind = table.margins[: len(table.measured)], None, KINDS[table.kind]
    if table.places:
        deep = {level: margin.places - 1 for level, margin in zip(table.levels, margins, strict=False)}
        tree = _tree(table.places, np.array([deep[level] for level in columns["level"].tolist()]), columns)
    cubes = [Cube(each.shape, each.axes) for each in table.linked]
    names = [name for name in table.columns[1:] if name not in table.places]
    if names and not cubes:
        cubes = [_counted(table, columns, names)]
    return kind.linked(kind.query(tree, cubes, margins, 1 if tree is None else table.outputs // tree.n), table.linked)


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


def _counted(table: TableCertificate, columns: Named, names: Sequence[str]) -> Cube:
    """The cube of the columns with these names, with its recoded axes; an axis that no row has plays no part."""
    groups = {each.name: each for each in table.recoded}
    axes = [name for name in names if name not in groups]
    sizes = [len({text for text in texts(columns[name]).tolist() if text is not None}) or 1 for name in axes]
    for each in table.recoded:
        sizes[axes.index(each.axis)] = len(each.groups)
    return Cube(sizes, axes, {name: (each.axis, each.groups) for name, each in groups.items()})


def _law(table: TableCertificate, columns: Named) -> Independent:
    if any(len(level.noise) > 1 for level in table.measured):
        raise Refused(f"figures of one level of {table.name!r} have several scales of noise: their law is not on file")
    first = [level.noise[0] for level in table.measured]
    parameters = [(noise.law, noise.whole, noise.parameter) for noise in first]
    distinct = list(dict.fromkeys(parameters))
    laws = tuple(None if law is None else LAWS[law, whole](Fraction(number or 1)) for law, whole, number in distinct)
    of_level = {level: distinct.index(each) for level, each in zip(table.levels, parameters, strict=False)}
    which = None if len(laws) == 1 else np.array([of_level[level] for level in columns["level"].tolist()])
    return Independent(laws, which, table.outputs)


def _exact(table: TableCertificate, query: Any) -> Constraint:
    """The exact figures; those that are not listed row by row are sums of the smallest margin that tells them."""
    sums, cube = [], query.cube
    for figure in table.holds.exact:
        if figure.rows:
            sums.append(sums_of_rows(figure.rows, query.n))
            continue
        axes, kept = cube.axes(figure.axes), [cube.axes(margin.axes) for margin in table.margins]
        holding = [level for level in range(len(table.measured)) if cube.tells(kept[level], axes)]
        level = min(holding, key=lambda each: len(kept[each]))
        rows = np.arange(query.n) if query.level_of is None else np.flatnonzero(query.level_of == level)
        sums.append(added(rows[None], cube.within(kept[level], axes), query.n))
    margins = [None if figure.axes is None else tuple(figure.axes) for figure in table.holds.exact]
    return exact_rows(query, margins, sparse.csr_array(sparse.vstack(sums, format="csr")))
