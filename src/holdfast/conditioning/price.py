"""The price of bounds: on outputs that are asked and noised independently, and on the leaves of a hierarchy.

For one output with bounds L ≤ z ≤ H, c(x) = P(L ≤ x + U ≤ H) is log-concave in x, so log c rises fastest at
x = L and falls fastest at x = H. Proofs: docs/theory/independent-boxes.md (the special case of THEORY H1 and H6).
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import flint
import numpy as np
import numpy.typing as npt

from holdfast.constraints import System
from holdfast.noise.precision import ball, working_precision
from holdfast.privacy import Additive, Differences, Guarantee
from holdfast.trees import Forest, output_parents
from holdfast.trees.leaf_bounds import LeafBounds
from holdfast.trees.nonnegativity import prices

#: Bits of the ball arithmetic behind a price; the result is then rounded outwards to a double.
PRECISION = 256


def box_price(base: Additive, system: System, differences: Differences, **words: Any) -> Guarantee | None:
    """The guarantee of independent noise given bounds, or None where outputs are not independent.

    Guarantee: Laplace, add-remove: exactly max_j (1/λ_j + log(c(L_j+1)/c(L_j))) over the outputs that are not fixed or
    exact (THEORY H1). Replace-one: the supremum of the two outputs' losses. Integer Gaussian: ρ at integer Rényi
    orders (THEORY H6).
    """
    if not (system.coordinatewise and each_cell_its_own_output(base)) or differences.neighbours != base.neighbours:
        return None
    if base.law.kind == "gaussian":
        because = "bounded independent integer Gaussian noise keeps ρ at integer orders (THEORY H6)"
        loss = base.loss(differences).value
        return base.integer_gaussian(loss, None, **(words | {"because": because, "orders": "integer"}))
    with working_precision(PRECISION):
        worst = _worst_loss(base, system)
        if worst is None:
            return None
        single = base.neighbours.kind == "add-remove" and base.neighbours.records == 1
        words["exact"] = single and base.law.integer and _reached(base, system)
        words["because"] = "the price of bounds on independent outputs: max(1/λ + log c(L+1)/c(L)) (THEORY H1)"
        return base.pure(worst * base.neighbours.records, **words)


def _reached(base: Additive, system: System) -> bool:
    """Whether the worst tables can occur: counts are whole and not negative, and some count is free to change."""
    low, high = _bounds(base, system)
    return bool(((np.isneginf(low) | (low >= 0)) & (high >= 1)).all()) and system.equalities.count == 0


def tree_price(base: Additive, system: System, differences: Differences, **words: Any) -> Guarantee | None:
    """The guarantee of noise on a hierarchy given consistency, exact outputs and bounds; None where none is proved.

    Guarantee (docs/theory/nonnegativity.md). Laplace, bounds on leaves: one record alone, exactly
    max_j (ε_j + log of the price at the lower or the upper bounds); several, or some replaced: at most
    ε + min(ε, their prices added) (THEORY H1). Integer Gaussian, any bounds, one record added, removed or replaced:
    ρ at integer Rényi orders (THEORY H6).
    """
    found = _hierarchy(base, system)
    if found is None:
        return None
    forest, steps = found
    if base.law.kind == "gaussian":
        return _gaussian_on_tree(base, forest, steps, differences, **words) if base.law.integer else None
    bounds = _leaf_bounds(base, system, forest, steps)
    price_of = None if bounds is None or not bounds.changeable.any() else prices(bounds, base.law)
    if bounds is None or price_of is None:
        return None
    relation = differences.neighbours
    words["because"] = (
        "the price of bounds on the leaves of a hierarchy: max(ε_j + log c_{x±e_j}/c_x) at the lowest or highest table "
        "(THEORY H1)"
    )
    if relation.adds and (relation.records == 1 or bounds.alone.sum() == bounds.changeable.sum()):
        total = price_of.alone()
        words["exact"] = relation.records == 1 and base.law.integer and _attained(base, bounds, system)
        return None if total is None else base.pure(total * relation.records, **words)
    rise, fall = price_of.rise(), price_of.fall()
    if rise is None or fall is None:
        return None
    with working_precision(PRECISION):
        if not relation.adds:
            price = (rise + fall) * relation.records
        elif bounds.alone.any():
            price = rise.max(fall) * relation.records
        else:  # as many records come as go
            price = (rise + fall) * (relation.records // 2)
        loss = ball(base.loss(differences).value)
        return base.pure(loss + loss.min(price), **words)


def _hierarchy(base: Additive, system: System) -> tuple[Forest, npt.NDArray[np.float64]] | None:
    """The hierarchy of the system, and by how many steps one record changes each output; kept with the system.

    None where a record changes several leaves, or the query counts on another hierarchy.
    """
    kept: dict[str, Any] = system.__dict__
    if kept.get("_priced") is not base.query:
        forest = Forest.of(system)
        steps = None if forest is None else _steps(base, forest)
        kept["_hierarchy"] = None if forest is None or steps is None else (forest, steps)
        kept["_priced"] = base.query
    found: tuple[Forest, npt.NDArray[np.float64]] | None = kept["_hierarchy"]
    return found


def forget(system: System) -> None:
    """Let go of what only prices need: a nation's is large, and a release needs the memory."""
    for name in ("_priced", "_hierarchy", "_leaf_bounds"):
        system.__dict__.pop(name, None)


def _steps(base: Additive, forest: Forest) -> npt.NDArray[np.float64] | None:
    """By how many steps one record changes each leaf at most; None where some record changes several."""
    query = base.query
    if query.cells is None:
        return None
    if query.tree is not None:
        same = np.array_equal(output_parents(query.tree.parents, query.n // query.tree.n), forest.parents)
        return np.ones(forest.n) if same else None
    at_leaves = query.columns.tocsr()[np.flatnonzero(forest.is_leaf)]
    if at_leaves.nnz and np.bincount(at_leaves.indices).max() > 1:
        return None
    steps = np.zeros(forest.n)
    steps[forest.is_leaf] = abs(at_leaves).max(axis=1).toarray().ravel()
    return steps


def _gaussian_on_tree(
    base: Additive, forest: Forest, steps: npt.NDArray[np.float64], differences: Differences, **words: Any
) -> Guarantee | None:
    """ρ at integer orders, where every difference is one record added or removed, or as much put as taken."""
    relation = differences.neighbours
    alone = relation.adds and relation.records == 1
    exchanged = relation.records == 1 or (relation.adds and relation.records == 2 and _all_below_exact(forest))
    if not alone and not (exchanged and _one_weight(base, steps[forest.is_leaf])):
        return None
    because = "integer Gaussian noise on a hierarchy given bounds keeps ρ at integer orders (THEORY H6)"
    loss = base.loss(differences).value
    return base.integer_gaussian(loss, None, **(words | {"because": because, "orders": "integer"}))


def _one_weight(base: Additive, steps: npt.NDArray[np.float64]) -> bool:
    """Whether every record changes its leaf by the same number of steps."""
    if base.query.tree is not None:
        return True
    data = base.query.columns.data
    return bool(data.size) and bool((data == data[0]).all() and (steps == abs(data[0])).all())


def _all_below_exact(forest: Forest) -> bool:
    """Whether every leaf is exact or has an exact output above it, so that records only come as others go."""
    free, ones = np.zeros(forest.n, dtype=bool), np.ones(forest.n)
    return not LeafBounds(
        forest.parents, forest.exact, np.zeros(forest.n, np.int32), ones, free, free, ones
    ).alone.any()


def _leaf_bounds(base: Additive, system: System, forest: Forest, steps: npt.NDArray[np.float64]) -> LeafBounds | None:
    """The bounds on leaves in steps, kept with the system; None where an inner output has a bound of its own."""
    laws = np.zeros(forest.n, dtype=np.int32) if base.law.which is None else base.law.which
    kept: LeafBounds | None = system.__dict__.get("_leaf_bounds")
    if kept is not None and kept.steps is steps and np.array_equal(kept.which, laws):
        return kept
    low, high = (side / float(base.unit) for side in system.real_bounds())
    if base.law.integer:
        low, high = (
            np.where(np.isfinite(real), whole, real)
            for real, whole in zip((low, high), system.integer_bounds(base.unit), strict=True)
        )
    with np.errstate(invalid="ignore"):
        width = np.where(np.isfinite(low) & np.isfinite(high), high - low, np.inf)
    made = LeafBounds(forest.parents, forest.exact, laws, width, np.isfinite(low), np.isfinite(high), steps)
    if not _implied(made, low, high):
        return None
    system.__dict__["_leaf_bounds"] = made
    return made


def _implied(bounds: LeafBounds, low: npt.NDArray[np.float64], high: npt.NDArray[np.float64]) -> bool:
    """Whether the bounds of the leaves imply those of all inner outputs with noise."""
    inner = ~bounds.is_leaf & ~bounds.exact
    least, most = (bounds.summed(np.where(bounds.is_leaf, side, 0.0)) for side in (low, high))
    # A sum of whole numbers beyond 2^53 may be rounded: then the bound counts as one of its own.
    rounded = np.maximum(np.abs(np.where(np.isfinite(least), least, 0)), np.abs(np.where(np.isfinite(most), most, 0)))
    binding = (low > least) | (high < most) | ((rounded > 2.0**53) & (np.isfinite(low) | np.isfinite(high)))
    return not (inner & binding).any()


def _attained(base: Additive, bounds: LeafBounds, system: System) -> bool:
    """Whether the worst tables can occur: all leaves at their lower, or all at their upper bounds, and counts ≥ 0."""
    leaves = bounds.is_leaf & ~bounds.exact
    inner = bool((bounds.exact & ~bounds.is_leaf).any()) and system.equalities.b.any()
    if base.query.tree is None or inner:
        return False
    low, high = system.real_bounds()
    return bool((low[leaves] >= 0).all()) or bool((np.isfinite(high[leaves]) & (high[leaves] >= 1)).all())


def each_cell_its_own_output(base: Additive) -> bool:
    """Whether output j counts the records of cell j and nothing else."""
    query = base.query
    if query.cells != query.n or query.grid is not None:
        return False
    columns, places = query.columns, np.arange(query.n)
    one_each = columns.nnz == query.n and np.array_equal(columns.indptr[:-1], places)
    return one_each and np.array_equal(columns.indices, places) and bool((columns.data == 1).all())


def _worst_loss(base: Additive, system: System) -> Any:
    """Largest loss of one record, as a ball; None when no record can change."""
    low, high = _bounds(base, system)
    which = np.zeros(base.query.n, dtype=np.int64) if base.law.which is None else base.law.which
    free = ~system.null_space().pinned_coordinates()  # a fixed or exact output is changed by no allowed record
    groups, counts = np.unique(np.column_stack([which, low, high])[free], axis=0, return_counts=True)
    changes = []  # (loss of the noise, extra when the count rises, extra when it falls, how many such outputs)
    for (law, lower, upper), count in zip(groups, counts, strict=True):
        if upper - lower < 1:
            continue  # the output has one possible value: no record can change it
        scale = base.law.scale_values[int(law)]
        rate = flint.arb(0) if scale is None else ball(1 / scale)
        bounded_below, bounded_above = np.isfinite(lower), np.isfinite(upper)
        width = None if not (bounded_below and bounded_above) else Fraction(upper) - Fraction(lower)
        extra = flint.arb(0) if scale is None else _step(rate, width, integer=base.law.integer)
        changes.append(
            (
                rate,
                extra if bounded_below else flint.arb(0),
                extra if bounded_above else flint.arb(0),
                int(count),
            )
        )
    if base.neighbours.kind == "add-remove":
        losses = [rate + _larger(rise, fall) for rate, rise, fall, _ in changes]
    else:
        losses = [
            rate + rise + other_rate + other_fall
            for i, (rate, rise, _, count) in enumerate(changes)
            for j, (other_rate, _, other_fall, _) in enumerate(changes)
            if i != j or count > 1
        ]
    worst = None
    for loss in losses:
        worst = loss if worst is None else _larger(worst, loss)
    return worst


def _bounds(base: Additive, system: System) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    low, high = system.real_bounds()
    if base.law.integer:
        low, high = np.ceil(low), np.floor(high)
    return low, high


def _step(rate: Any, width: Fraction | None, *, integer: bool) -> Any:
    """log(c(L+1)/c(L)) for one output with bounds `width` apart (None: bounded on one side only)."""
    alpha = (-rate).exp()
    if integer:
        if width is None:
            return (1 + alpha - alpha * alpha).log()
        power = (-rate * ball(width)).exp()
        return ((alpha * (1 - alpha) + 1 - power) / (1 - alpha * power)).log()
    if width is None:
        return (2 - alpha).log()
    power = (-rate * ball(width)).exp()
    return ((2 - alpha - power / alpha) / (1 - power)).log()


def _larger(a: Any, b: Any) -> Any:
    return a.max(b)
