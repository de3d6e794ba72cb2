"""The price of bounds on outputs that are asked and noised independently; on hierarchies it is `tree_price`.

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
from holdfast.given.prices.trees import forget, tree_price
from holdfast.noise.precision import ball, working_precision
from holdfast.privacy import Additive, Differences, Guarantee

__all__ = ["PRECISION", "box_price", "forget", "tree_price"]

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
    which = base.law.complete
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
