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
    if not (system.coordinatewise and _each_cell_its_own_output(base)) or differences.neighbours != base.neighbours:
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
    forest = _forest(base, system)
    if forest is None:
        return None
    if base.law.kind == "gaussian":
        return _gaussian_on_tree(base, forest, differences, **words) if base.law.integer else None
    bounds = _leaf_bounds(base, system, forest)
    found = None if bounds is None or not bounds.changeable.any() else prices(bounds, base.law)
    if bounds is None or found is None:
        return None
    relation = differences.neighbours
    words["because"] = (
        "the price of bounds on the leaves of a hierarchy: max(ε_j + log c_{x±e_j}/c_x) at the lowest or highest table "
        "(THEORY H1)"
    )
    if relation.adds and (relation.records == 1 or bounds.alone.sum() == bounds.changeable.sum()):
        total = found.alone()
        words["exact"] = relation.records == 1 and base.law.integer and _attained(bounds, system)
        return None if total is None else base.pure(total * relation.records, **words)
    rise, fall = found.rise(), found.fall()
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


def _forest(base: Additive, system: System) -> Forest | None:
    """The hierarchy of the system, if it is that of the query; kept with the system."""
    tree, kept = base.query.tree, system.__dict__
    if tree is None or base.unit != 1:
        return None
    if kept.get("_priced") is not base.query:
        found = Forest.of(system)
        asked = output_parents(tree.parents, base.query.n // tree.n)
        kept["_forest"] = found if found is not None and np.array_equal(asked, found.parents) else None
        kept["_priced"] = base.query
    forest: Forest | None = kept["_forest"]
    return forest


def _gaussian_on_tree(base: Additive, forest: Forest, differences: Differences, **words: Any) -> Guarantee | None:
    """ρ at integer orders, where every difference is one record added, removed or replaced."""
    relation = differences.neighbours
    if relation.records > 1 and not (relation.adds and relation.records == 2 and _all_below_exact(forest)):
        return None
    because = "integer Gaussian noise on a hierarchy given bounds keeps ρ at integer orders (THEORY H6)"
    loss = base.loss(differences).value
    return base.integer_gaussian(loss, None, **(words | {"because": because, "orders": "integer"}))


def _all_below_exact(forest: Forest) -> bool:
    """Whether every leaf is exact or has an exact output above it, so that records only come as others go."""
    free = np.zeros(forest.n, dtype=bool)
    bounds = LeafBounds(forest.parents, forest.exact, np.zeros(forest.n, np.int32), np.ones(forest.n), free, free)
    return not bounds.alone.any()


def _leaf_bounds(base: Additive, system: System, forest: Forest) -> LeafBounds | None:
    """The bounds on leaves, kept with the system; None where an inner output has a bound of its own."""
    laws = np.zeros(forest.n, dtype=np.int32) if base.law.which is None else base.law.which
    kept: LeafBounds | None = system.__dict__.get("_leaf_bounds")
    if kept is not None and np.array_equal(kept.which, laws):
        return kept
    low, high = system.real_bounds()
    if base.law.integer:
        low, high = np.ceil(low), np.floor(high)
    with np.errstate(invalid="ignore"):
        width = np.where(np.isfinite(low) & np.isfinite(high), high - low, np.inf)
    made = LeafBounds(forest.parents, forest.exact, laws, width, np.isfinite(low), np.isfinite(high))
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


def _attained(bounds: LeafBounds, system: System) -> bool:
    """Whether the worst tables can occur: all leaves at their lower, or all at their upper bounds, and counts ≥ 0."""
    leaves = bounds.is_leaf & ~bounds.exact
    if bool((bounds.exact & ~bounds.is_leaf).any()) and system.equalities.b.any():
        return False
    low, high = system.real_bounds()
    return bool((low[leaves] >= 0).all()) or bool((np.isfinite(high[leaves]) & (high[leaves] >= 1)).all())


def _each_cell_its_own_output(base: Additive) -> bool:
    query = base.query
    if query.cells != query.n or query.grid is not None:
        return False
    columns = query.columns
    ones = columns.nnz == query.n and bool((columns.data == 1).all())
    return ones and np.array_equal(columns.indices, np.arange(query.n))


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
