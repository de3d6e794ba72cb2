"""What no Gaussian mechanism can go below: the weighted squared error of the best of all of them at μ = 1.

A mechanism is the precision matrix X it gives the cells; add-remove asks x_ii ≤ 1 for every cell, and the error is
tr(G X⁻¹), G the weighted sum of the outputs' rows. With tr X ≤ N the least is (tr √G)²/N (Cauchy–Schwarz), reached
where all cells are alike. Replace-one asks (e_i − e_j)ᵀX(e_i − e_j) ≤ 1 for all pairs, so tr(QX) ≤ (N − 1)/2 with Q
off the constants, whose direction is free: 2(tr √(QGQ))²/(N − 1). G falls apart by sets of axes into hierarchies of
scalars, and each of these by classes of alike nodes: contrasts between alike subtrees see one of them alone. Upper
levels that would make a part too large are left out, which only lowers the bound.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from holdfast.arrays import Floats
from holdfast.queries import Neighbours
from holdfast.queries.areas.area_margins import AreaMargins
from holdfast.trees.normal import grains
from holdfast.trees.normal.classes import Classes

#: Classes of leaves in the largest part whose eigenvalues are computed.
MOST_CLASSES = 2_000


def least_error(
    query: AreaMargins, classes: Classes, wanted: Mapping[tuple[int, ...], Floats], relation: Neighbours
) -> float:
    """Return a lower bound of the weighted squared error of every Gaussian mechanism at μ = 1.

    classes: of the hierarchy.
    """
    tree = query.hierarchy
    total = 0.0
    known: dict[tuple[bytes, bool], float] = {}  # sets that are wanted alike but for a factor have one trace
    for axes, by_depth in wanted.items():
        count, constant, most = grains.count_of(query.table, axes), relation.adds or bool(axes), by_depth.max()
        if most == 0:
            continue
        key = (np.round(by_depth / most, 15).tobytes(), constant)
        if key not in known:
            known[key] = _trace_of_root(classes, by_depth / most, constant=constant)
        total += count * math.sqrt(most) * known[key]
    cells = tree.n_leaves * query.table.cells
    return (relation.records * total) ** 2 * (1 / cells if relation.adds else 2 / max(cells - 1, 1))


def _trace_of_root(classes: Classes, by_depth: Floats, *, constant: bool) -> float:
    """Return tr √(Σ_d g_d·U_dᵀU_d) over the leaves, without the constants where these are free."""
    children: list[list[int]] = [[] for _ in classes.parents]
    for c, parent in enumerate(classes.parents.tolist()):
        if parent >= 0:
            children[parent].append(c)
    total = 0.0
    # Each class with several alike nodes below one parent gives contrasts between them, as often as there are parents.
    share = classes.nodes * (classes.times - 1) / classes.times
    alone = ~classes.inner
    total += float((share[alone] * np.sqrt(by_depth[classes.kind[alone]])).sum())
    for c in np.flatnonzero(classes.inner & (classes.times > 1)).tolist():
        total += float(share[c]) * _alike(classes, children, [c], by_depth, once=True)
    roots = np.flatnonzero(classes.parents < 0).tolist()
    return total + _alike(classes, children, roots, by_depth, once=False, constant=constant)


def _alike(
    classes: Classes, children: list[list[int]], tops: list[int], by_depth: Floats, *, once: bool, constant: bool = True
) -> float:
    """Return tr √ on the vectors that are alike on alike nodes below these classes, one node of each top if `once`."""
    leaves, weight, paths = [], [], []
    waiting = [(c, 1.0 if once else float(classes.times[c]), [c]) for c in tops]
    while waiting:
        c, many, path = waiting.pop()
        if not children[c]:
            leaves.append(c)
            weight.append(many)
            paths.append(path)
            if len(leaves) > MOST_CLASSES:
                lower = _without_top(classes, children, tops, by_depth)
                # Off the constants one eigenvalue can be lost, and none is larger than the largest sum of a row.
                lost = (
                    0.0 if constant else math.sqrt(float(by_depth.sum()) * float(classes.nodes[~classes.inner].sum()))
                )
                return max(lower - lost, 0.0)
        waiting += [(child, many * classes.times[child], [*path, child]) for child in children[c]]
    root = np.sqrt(np.array(weight))
    matrix = np.zeros((len(leaves), len(leaves)))
    for level in range(max(map(len, paths))):
        at = np.array([path[level] if level < len(path) else -1 for path in paths])
        for c in np.unique(at[at >= 0]).tolist():
            on = np.flatnonzero(at == c)
            # The leaves below one node of class c: its share of the vector that is alike on all nodes of the class.
            inside = root[on] ** 2 / _times_to(classes, c, tops, once)
            matrix[np.ix_(on, on)] += by_depth[classes.kind[c]] * np.sqrt(np.outer(inside, inside))
    if not constant:
        unit = root / np.linalg.norm(root)
        off = np.eye(unit.size) - np.outer(unit, unit)
        matrix = off @ matrix @ off
    return float(np.sqrt(np.maximum(np.linalg.eigvalsh(matrix), 0)).sum())


def _times_to(classes: Classes, c: int, tops: list[int], once: bool) -> float:
    """Return how many nodes of a class there are below the tops."""
    many = 1.0
    while c not in tops:
        many *= float(classes.times[c])
        c = int(classes.parents[c])
    return many if once else many * float(classes.times[c])


def _without_top(classes: Classes, children: list[list[int]], tops: list[int], by_depth: Floats) -> float:
    """Return a lower bound: the subtrees below the tops on their own, as if nothing were wanted of the tops."""
    total = 0.0
    for c in tops:
        for child in children[c]:
            total += _alike(classes, children, [child], by_depth, once=True)
    return total
