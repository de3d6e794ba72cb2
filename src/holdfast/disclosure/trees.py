"""The ranges of a hierarchy's counts given exact and bounded nodes, in closed form: one pass up and one pass down.

Going up, a node may take the values from the sum of its children's least to the sum of their largest values, within its
own bounds. Going down, a child may take what its parent leaves when the other children take as much, or as little, as
they may. All these sets are intervals of whole numbers, so both ends are attained.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from holdfast.arguments import LARGEST, Refused
from holdfast.arrays import Ints
from holdfast.disclosure.figures import Contradiction, Known
from holdfast.domains.breadth_first import breadth_first
from holdfast.domains.intervals import bound_downwards, bound_upwards, output_parents

#: Kinds of parts that bound single nodes, besides consistency, which counts obey by themselves.
SIMPLE = frozenset({"consistent", "nonnegative", "between", "fixed", "at_least", "invariant"})
#: Sums of bounds stay below this size, so that 64 bits hold them.
MOST = 2.0**61


def accepts(known: Sequence[Known], of: Any) -> bool:
    """Whether everything is about single nodes of one hierarchy."""
    tree = of.tree
    if tree is None:
        return False
    for each in known:
        own = each.query.tree
        if own is None or each.query.n != of.n or not (own is tree or np.array_equal(own.parents, tree.parents)):
            return False
        if each.system.inequalities.count or any(part.kind not in SIMPLE for part in each.system.parts):
            return False
        if (each.system.invariants.sizes != 1).any():
            return False
    return True


def ranges(known: Sequence[Known], of: Any, figures: bool = True) -> tuple[Ints, Ints]:
    """Return the least and the largest count of every output; 2**62 where there is no limit."""
    low, high = np.zeros(of.n, dtype=np.int64), np.full(of.n, LARGEST, dtype=np.int64)
    for each in known:
        lower, upper = each.system.integer_bounds()
        np.maximum(low, lower, out=low)
        np.minimum(high, upper, out=high)
        exact = [
            (part.rows, part.rows.b) for part in each.system.parts if part.kind == "fixed" and part.rows is not None
        ]
        if figures:
            exact.append((each.system.invariants, each.figures))
        for rows, values in exact:
            filled = np.flatnonzero(rows.sizes == 1)
            outputs, factor = rows.A.indices[rows.A.indptr[filled]], rows.A.data[rows.A.indptr[filled]]
            side = np.asarray(values)[filled]
            if (side % factor != 0).any():
                raise Contradiction
            value = (side // factor).astype(np.int64)
            np.maximum.at(low, outputs, value)
            np.minimum.at(high, outputs, value)
    finite = np.where(high < LARGEST, high, 0)
    if max(low.astype(np.float64).sum(), finite.astype(np.float64).sum()) >= MOST:
        raise Refused("figures must add up to less than 2**61")
    passed = breadth_first(output_parents(of.tree.parents, of.n // of.tree.n))[:3]
    if bound_upwards(*passed, low, high, 0.0) >= 0:
        raise Contradiction
    bound_downwards(*passed, low, high)
    return low, high
