"""How a table's budget is divided over its levels and margins: as the spec says, or as the least error asks."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from holdfast.arguments import Refused
from holdfast.queries import Neighbours
from holdfast.release.table.domain import Layout
from holdfast.trees.normal.residuals import Residuals
from holdfast.trees.normal.split import FREE, best_shares

#: Shares are fractions of this many parts, and at least one: nothing that is asked for stays unmeasured.
PARTS = 10**6


def shares_of(laid: Layout, neighbours: Neighbours) -> dict[str, Fraction] | None:
    """Return the share of every level or margin by its name; None: all outputs alike."""
    asked, at = laid.asked, laid.at["shares"]
    if asked.shares is None:
        return None
    if len(laid.levels) == 1:
        raise at.refuse("shares divide the budget over levels or margins, and this table has only one")
    if isinstance(asked.shares, str):
        return _best(laid, neighbours)
    shares = laid.by_level(asked.shares, at, divide=True)
    if not any(shares.values()):
        raise at.refuse("every share is 0, so nothing would be measured: give one level or margin more")
    if laid.areas is not None:
        untold = Residuals(laid.areas, tuple(float(shares.get(level, 0)) for level in laid.levels)).untold
        if untold is not None:
            raise at.refuse(f"nothing that is measured tells {untold}: give it, or what determines it, a share")
    return shares


def _best(laid: Layout, neighbours: Neighbours) -> dict[str, Fraction]:
    """Divide so that the error after best linear estimation is least (THEORY H7)."""
    weights = None
    if laid.asked.weights is not None:
        weights = laid.by_level(laid.asked.weights, laid.at["weights"])
        if not any(weights.values()):
            raise laid.at["weights"].refuse("every weight is 0: give one level or margin more")
    try:
        split = best_shares(laid.query, weights, neighbours, minimise=laid.asked.minimise)
    except Refused as refusal:
        raise laid.at["shares"].refuse(str(refusal)) from None
    values = np.array([float(value) for value in split.shares.values()])
    paid = values < FREE
    whole = np.maximum(np.rint(PARTS * values / values[paid].sum()), 1).astype(np.int64)
    return {
        level: Fraction(int(part), PARTS) if costs else Fraction(FREE)
        for level, part, costs in zip(laid.levels, whole, paid, strict=True)
    }
