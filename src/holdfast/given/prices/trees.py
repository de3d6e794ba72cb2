"""The price of bounds on the leaves of a hierarchy, on cells below exact totals, and on independent outputs.

Independent outputs are trees of one node each (THEORY H1, H6, H11).

Which proposition of docs/theory/nonnegativity.md applies depends on what records may do to the leaves; the figures are
those of `holdfast.trees.prices.nonnegativity`.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt
from flint import arb

from holdfast.arrays import kept
from holdfast.constraints import System
from holdfast.given.prices.leaf_records import Hung, LeafRecords, counted_on, hung
from holdfast.noise.precision import PRICE_BITS, ball, working_precision
from holdfast.privacy import Additive, Differences, Guarantee
from holdfast.queries import Query
from holdfast.trees.prices.leaf_bounds import LeafBounds
from holdfast.trees.prices.nonnegativity import Prices, largest_exchange, prices

BECAUSE = "the price of bounds on the leaves of a hierarchy: "
LOWEST = BECAUSE + "max(ε_j + log c_{x±e_j}/c_x) at the lowest or highest table (THEORY H1)"
EXCHANGED = BECAUSE + "a record that moves from leaf to leaf (THEORY H1, H11)"
ADDED = BECAUSE + "at most ε + min(ε, the prices of its records added up) (THEORY H1)"


def tree_price(base: Additive, system: System, differences: Differences, **words: Any) -> Guarantee | None:
    """The guarantee of noise on a hierarchy given consistency, exact outputs and bounds; None where none is proved.

    Guarantee (docs/theory/nonnegativity.md). Laplace, bounds on leaves, records that lower no leaf: one record alone,
    exactly max_j (ε_j + log of the price at the lower or the upper bounds) (Proposition 1, THEORY H1); others by
    Propositions 2 and 7 (THEORY H11). Integer Gaussian, any bounds, independent outputs, one record added or
    removed, or one moved where all have one weight: ρ at integer Rényi orders (Proposition 5, THEORY H6).
    """
    tree = hung(base, system)
    if tree is None:
        return None
    if base.law.kind == "gaussian":
        return _gaussian(base, tree, differences, **words) if base.law.integer else None
    if tree.records.lower_a_leaf:
        return None  # then "not negative" is no fact about every dataset, and nothing but 2ε is proved
    bounds = _leaf_bounds(system, base.query, base.unit, base.law.integer, tree.law.complete.tobytes())
    price_of = None if bounds is None or not bounds.changeable.any() else prices(bounds, tree.law)
    if bounds is None or price_of is None:
        return None
    relation = differences.neighbours
    loss = base.loss(differences).value
    with working_precision(PRICE_BITS):
        if relation.adds and (relation.records == 1 or bounds.alone.sum() == bounds.changeable.sum()):
            alone = price_of.alone()
            found = [] if alone is None else [(alone * relation.records, LOWEST)]
        else:
            found = _several(price_of, tree.records, differences, loss)
        if not found:
            return None
        total, because = min(found, key=lambda option: float(option[0].upper()))
        total = total.min(ball(2 * loss)) if because != LOWEST or relation.records > 1 else total
    single = relation.adds and relation.records == 1 and because == LOWEST
    words["exact"] = single and base.law.integer and _attained(base, bounds, system)
    return base.pure(total, **(words | {"because": because}))


def _several(price_of: Prices, records: LeafRecords, differences: Differences, loss: Fraction) -> list[tuple[arb, str]]:
    """Upper bounds of the total where records are replaced, or come as others go."""
    bounds, relation = price_of.bounds, differences.neighbours
    rise, fall = price_of.rise(), price_of.fall()
    if rise is None or fall is None:
        return []
    times, some_alone = relation.records, bool(bounds.alone.any())
    one = records.one_weight
    if not relation.adds:
        price = (rise + fall) * times
    elif some_alone:
        price = rise.max(fall) * times
    elif one is not None:  # as many records come as go
        price = (rise + fall) * (times // 2)
    else:  # some come and some go
        price = rise.max(fall) * (times - 1) + rise.min(fall)
    if one is None or (some_alone and (relation.adds or records.uncounted)):
        return [(ball(loss) + price.min(ball(loss)), ADDED)]
    moves = times // 2 if relation.adds else times
    if moves and not (bounds.changeable & bounds.high).any():
        rate = min(price_of.exact_rates[law] for law in np.unique(bounds.which[bounds.changeable]))
        moved = largest_exchange(loss / (one * moves), rate, one, price_of.integer)
        price = price.min(moved * moves)
    return [(ball(loss) + price.min(ball(loss)), EXCHANGED)]


def _gaussian(base: Additive, tree: Hung, differences: Differences, **words: Any) -> Guarantee | None:
    """ρ at integer orders, where every difference is one record added or removed, or as much put as taken.

    Guarantee: docs/theory/nonnegativity.md, Proposition 5, for d = ±a·e_j and d = a·(e_k − e_j). It asks nothing of the
    sign of a, nor that the truth keeps its bounds. Independent outputs: any d (docs/theory/independent-boxes.md).
    """
    relation = differences.neighbours
    alone = relation.adds and relation.records == 1
    exchanges = relation.records == 1 or (relation.adds and relation.records == 2 and tree.all_below_exact)
    apart = bool((tree.forest.parents < 0).all())
    if not (alone or apart or (exchanges and tree.records.one_weight is not None)):
        return None
    because = "integer Gaussian noise on a hierarchy given bounds keeps ρ at integer orders (THEORY H6)"
    loss = base.loss(differences).value
    return base.integer_gaussian(loss, None, **(words | {"because": because, "orders": "integer"}))


def forget(system: System) -> None:
    """Let go of what only prices need: a nation's is large, and a release needs the memory."""
    system.forget(counted_on, _leaf_bounds)


@kept
def _leaf_bounds(system: System, query: Query, unit: Fraction, integer: bool, which: bytes) -> LeafBounds | None:
    """The bounds on leaves in steps; `which` holds the numbers of the laws. None where an inner output has its own."""
    found = counted_on(system, query)
    assert found is not None
    (forest, records), laws = found, np.frombuffer(which, dtype=np.int32)
    low, high = (side / float(unit) for side in system.real_bounds())
    if integer:
        low, high = (
            np.where(np.isfinite(real), whole, real)
            for real, whole in zip((low, high), system.integer_bounds(unit), strict=True)
        )
    totals = forest.n - low.size  # exact totals that are no outputs have no bounds
    low, high = np.append(low, np.full(totals, -np.inf)), np.append(high, np.full(totals, np.inf))
    with np.errstate(invalid="ignore"):
        width = np.where(np.isfinite(low) & np.isfinite(high), high - low, np.inf)
    ends = np.isfinite(low), np.isfinite(high)
    made = LeafBounds(forest.parents, forest.exact, laws, width, *ends, records.steps)
    return made if _implied(made, low, high) else None


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
    low, high = system.real_bounds()
    if base.query.identity and bounds.parents.size == low.size:
        room = (np.isneginf(low) | (np.ceil(low) >= 0)) & (np.floor(high) >= 1)
        return bool(room.all()) and system.equalities.count == 0
    if base.query.tree is None or inner:
        return False
    return bool((low[leaves] >= 0).all()) or bool((np.isfinite(high[leaves]) & (high[leaves] >= 1)).all())
