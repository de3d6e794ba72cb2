"""The nearest table on a hierarchy: the global optimum of `onto`, over the reals and over the whole numbers.

Moves x = z − y instead of values keep differences of whole numbers exact however large the values are. Least squares is
solved by policy iteration (real.py), in the rare case that this does not settle by whole curves
(curves.py), and over the whole numbers by merging marginal costs near the real optimum (integer.py); sums
of absolute values are solved by curves throughout. Proofs: docs/theory/update-on-trees.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from holdfast.arguments import LARGEST, Refused
from holdfast.arrays import Floats, Ints, compiled
from holdfast.trees.nearest.plain import Weights, move_whole, serves
from holdfast.trees.nearest.rows import curve_rows, real_rows, whole_rows, write_real_rows, write_whole_rows
from holdfast.trees.shape.layout import Layout
from holdfast.trees.shape.ties import coins_of

#: Real bounds and exact values that miss each other by this share of their size meet up to rounding.
SLACK = 1e-9
TOO_FAR = (
    "these values cannot be moved in whole numbers: either they lie further than 2**50 from what must hold, or weights "
    "differ by more than about 1e9 times; pass integer=False"
)


@dataclass(frozen=True, eq=False)
class Nearest:
    """A forest with weights, ready to move noisy values.

    Weights are relative to the largest one; they are squared distances' (1/v) or, if `absolute`, distances' (1/√v).
    `variance` is the inverse of a leaf's weight, 0 at exact leaves; `same[k]` is the common variance of the leaves of
    inner output k, or 0. `open_leaves` says whether a leaf is neither measured nor exact.
    """

    layout: Layout
    absolute: bool
    exact: npt.NDArray[np.bool_]
    leaf_weight: Floats
    variance: Floats
    same: Floats
    weight: Floats
    open_leaves: bool

    @classmethod
    def of(cls, parents: Ints, exact: npt.NDArray[np.bool_], spreads: Floats, *, absolute: bool) -> Nearest:
        """Prepare a forest: each output's parent, whether it is exact, and its spread (inf: not measured)."""
        layout = Layout.of(parents)
        weights = _weigh(layout, exact, spreads, absolute)
        return cls(layout, absolute, exact, *weights)

    @cached_property
    def determined(self) -> bool:
        """Whether no leaf that is not measured leaves a choice.

        Such a leaf must be the only one below its parent, and the parent must be measured or exact.
        """
        if not self.open_leaves:
            return True
        start = self.layout.leaf_start
        loose = np.concatenate([[0], np.cumsum(self.leaf_weight == 0.0)])
        per_parent = loose[start[1:]] - loose[start[:-1]]
        held = (self.weight > 0.0) | self.exact[self.layout.inner]
        return not loose[start[0]] and bool((per_parent <= held).all())

    def move(
        self,
        noisy: npt.NDArray[Any],
        low: npt.NDArray[Any],
        high: npt.NDArray[Any],
        ties: npt.NDArray[np.uint64] | None = None,
    ) -> npt.NDArray[Any]:
        """Return the nearest values within the bounds that add up, (size, n); whole where the bounds are.

        No bound is ∓2**62; exact outputs have equal bounds. Whole bounds need whole noisy values. `ties` holds the coin
        of each row that decides between equally near whole tables.
        """
        layout = self.layout
        whole = low.dtype.kind == "i"
        forest = (layout.leaf_start, layout.inner_start, layout.leaves, layout.inner)
        bounds, ends = self.bounds(low, high)
        leaf_low, leaf_high, inner_low, inner_high = bounds
        limits = (inner_low < inner_high) & ((inner_low > -LARGEST) | (inner_high < LARGEST))
        of_leaves = (self.variance > 0.0) & ((leaf_low > -LARGEST) | (leaf_high < LARGEST))
        bounded = bool(limits.any() or of_leaves.any())
        if leaf_high.min(initial=LARGEST) >= LARGEST:
            leaf_high = leaf_high[:0]  # one array less to read
        bounds = (leaf_low, leaf_high, inner_low, inner_high)
        if not whole and noisy.dtype.kind == "f":
            noisy = noisy.astype(np.float64)
        result = np.empty(noisy.shape, dtype=np.int64 if whole else np.float64)
        rounds, coins = (forest, bounds, ends, bounded), coins_of(ties, len(noisy))
        done = 0 if self.absolute or self.open_leaves else self._by_policies(*rounds, noisy, coins, result)
        while done < len(noisy):
            rows = slice(done, None if self.absolute else done + 1)
            if not self._by_curves(forest, bounds, ends, noisy[rows], coins[rows], result[rows]):
                raise Refused(TOO_FAR)
            done += len(noisy[rows])
            if done < len(noisy) and not self.open_leaves:
                done += self._by_policies(*rounds, noisy[done:], coins[done:], result[done:])
        return result

    def bounds(self, low: npt.NDArray[Any], high: npt.NDArray[Any]) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        """Bounds of leaves and of inner outputs, lower and upper, tightened; and the inner ones as asked for."""
        layout = self.layout
        leaf_low, leaf_high = low[layout.leaves], high[layout.leaves]
        inner_low, inner_high = low[layout.inner], high[layout.inner]
        ends = (inner_low.copy(), inner_high.copy())
        forest = (layout.leaf_start, layout.inner_start, layout.leaves, layout.inner)
        whole = low.dtype.kind == "i"
        bad = _tighten(forest, leaf_low, leaf_high, inner_low, inner_high, 0.0 if whole else SLACK)
        if bad >= 0:
            raise Refused(f"what must hold cannot be reached below output {bad}: widen its bounds")
        return (leaf_low, leaf_high, inner_low, inner_high), ends

    def _by_policies(
        self, forest: Any, bounds: Any, ends: Any, bounded: bool, noisy: Any, coins: Any, result: Any
    ) -> int:
        """Move rows by least squares until one of them does not settle; return how many were moved."""
        weights = (self.leaf_weight, self.variance, self.same, self.weight)
        if result.dtype.kind == "f":
            return int(real_rows(forest, weights, bounds, ends, bounded, noisy, result))
        if serves(self.layout, len(noisy)):
            ends_too = (bounds[0], bounds[1] if bounds[1].size else np.full_like(bounds[0], LARGEST), *bounds[2:])
            squares = Weights(self.leaf_weight, self.variance, self.weight)
            return move_whole(self.layout, squares, ends_too, noisy, coins, result)
        inner = self.layout.inner.size
        room = (np.zeros(self.layout.leaves.size), np.zeros(inner), np.zeros(inner))
        return int(whole_rows(forest, weights, bounds, bounded, noisy, coins, result, room, False))

    def _by_curves(self, forest: Any, bounds: Any, ends: Any, noisy: Any, coins: Any, result: Any) -> bool:
        """Move rows by curves; whole least squares starts from the prices found so, one row at a time."""
        weights = (self.leaf_weight, self.variance, self.same, self.weight)
        whole = result.dtype.kind == "i"
        noisy = noisy if whole else noisy.astype(np.float64, copy=False)
        moves = np.zeros((len(noisy), self.layout.leaves.size))
        inner, price = np.zeros(self.layout.inner.size), np.zeros(self.layout.inner.size)
        curve_rows(forest, weights, bounds, self.absolute, whole and self.absolute, noisy, coins, moves, inner, price)
        if not whole:
            write_real_rows(forest, bounds, ends, noisy, moves, result)
            return True
        if self.absolute:
            return bool(write_whole_rows(forest, bounds, noisy, moves, result))
        start = (moves[0], inner, price)
        return bool(whole_rows(forest, weights, bounds, True, noisy, coins, result, start, True) == 1)


def _weigh(
    layout: Layout, exact: npt.NDArray[np.bool_], spreads: Floats, absolute: bool
) -> tuple[Floats, Floats, Floats, Floats, bool]:
    """Weights of leaves, their variances, common variances, weights of inner outputs, and whether a leaf is open."""
    unit = np.where(exact, LARGEST, spreads).min(initial=float(LARGEST))
    with np.errstate(divide="ignore", invalid="ignore"):  # exact outputs have no spread
        own = unit / spreads  # 0 where the spread is infinite
        own = np.where(exact, 1.0, np.sqrt(own) if absolute else own)
        leaf_weight = own[layout.leaves]
        variance = np.where(exact[layout.leaves], 0.0, 1.0 / leaf_weight)
    weight, same = np.where(exact, 0.0, own)[layout.inner], np.zeros(layout.inner.size)
    filled = np.flatnonzero(np.diff(layout.leaf_start))
    if filled.size:
        least, most = (each.reduceat(variance, layout.leaf_start[filled]) for each in (np.minimum, np.maximum))
        same[filled] = np.where((least == most) & (most < np.inf), most, 0.0)
    return leaf_weight, variance, same, weight, bool((leaf_weight == 0.0).any())


@compiled(inner=True)
def _plus(total, bound):  # type: ignore[no-untyped-def]
    """A sum of bounds: no bound (∓2**62) stays none, and a sum beyond ±2**62 bounds nothing."""
    if abs(total) >= LARGEST or abs(bound) >= LARGEST:
        return total if abs(total) >= LARGEST else bound
    return min(max(total + bound, -LARGEST), LARGEST)


@compiled(beyond=100_000)
def _tighten(forest, leaf_low, leaf_high, low, high, slack):  # type: ignore[no-untyped-def]
    """Compare bounds of inner outputs with the sums of their children's, in place; return an impossible output, or −1.

    A bound that the children's bounds imply is dropped. Where a total leaves its children no choice, each is set to its
    bound.
    """
    leaf_start, inner_start, _, inner = forest
    least, most = low.copy(), high.copy()
    for k in range(low.size - 1, -1, -1):
        down, up = _reach(k, leaf_start, inner_start, leaf_low, leaf_high, least, most)
        room = slack * max(1.0, abs(low[k] if low[k] > -LARGEST else high[k] if high[k] < LARGEST else low[k] * 0))
        if down > high[k] + room or up < low[k] - room or low[k] > high[k]:
            return inner[k]
        if low[k] < high[k]:
            least[k], most[k] = max(low[k], down), min(high[k], up)
            if least[k] >= most[k]:
                low[k] = high[k] = least[k] = most[k]
                continue
            if low[k] <= down:
                low[k] = -LARGEST
            if high[k] >= up:
                high[k] = LARGEST
    for k in range(low.size):
        if low[k] == high[k]:
            down, up = _reach(k, leaf_start, inner_start, leaf_low, leaf_high, least, most)
            room = 1e-3 * slack * max(1.0, abs(low[k]))
            if down > -LARGEST and low[k] <= down + room:
                for j in range(leaf_start[k], leaf_start[k + 1]):
                    leaf_high[j] = leaf_low[j]
                for c in range(inner_start[k], inner_start[k + 1]):
                    low[c] = high[c] = least[c]
            elif up < LARGEST and low[k] >= up - room:
                for j in range(leaf_start[k], leaf_start[k + 1]):
                    leaf_low[j] = leaf_high[j]
                for c in range(inner_start[k], inner_start[k + 1]):
                    low[c] = high[c] = most[c]
    return -1


@compiled(inner=True)
def _reach(k, leaf_start, inner_start, leaf_low, leaf_high, least, most):  # type: ignore[no-untyped-def]
    """The least and the largest sum of k's children."""
    down, up = least[k] * 0, least[k] * 0
    for j in range(leaf_start[k], leaf_start[k + 1]):
        down, up = _plus(down, leaf_low[j]), _plus(up, leaf_high[j])
    for c in range(inner_start[k], inner_start[k + 1]):
        down, up = _plus(down, least[c]), _plus(up, most[c])
    return down, up
