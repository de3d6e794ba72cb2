"""Level by level on a hierarchy: every parent's final value is split over its children, roots first.

Each output has an estimate and a variance: its own measurement (TopDown), or everything measured at it and below it,
combined by generalised least squares (BlueDown). The children's values are the weighted least squares fit to their
estimates that lies within their bounds and adds up to the parent's final value; whole numbers then come from
controlled rounding: largest fractions up, ties by a public hash of the output's number. Bounds are first summed from
the leaves, so what is decided above can always be reached below. Derivations: docs/theory/levelwise.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from holdfast.arguments import LARGEST, Refused
from holdfast.arrays import Floats, Ints, compiled
from holdfast.domains.intervals import bound_upwards
from holdfast.trees.shape.layout import sorted_outputs
from holdfast.trees.shape.ties import coins_of, smallest, tie_hash

#: Real bounds and exact values that miss each other by this share of their size meet up to rounding.
SLACK = 1e-9
TOO_LARGE = "values that are split level by level must add up to less than 2**62 in size: use smaller values"


@dataclass(frozen=True, eq=False)
class Levelwise:
    """A forest whose outputs stand breadth-first, with the weights of the estimates.

    `order` lists the outputs breadth-first; the children of place i stand at the places first[i], …, first[i+1]−1.
    An estimate is the own value plus `gain` times (sum of the children's estimates − own value), and has `variance`.
    `names` are the numbers by which equal fractions are hashed: the outputs' own, or those in a larger forest.
    """

    order: Ints
    names: Ints
    first: Ints
    exact: npt.NDArray[np.bool_]
    gain: Floats
    variance: Floats

    @classmethod
    def of(
        cls,
        parents: Ints,
        exact: npt.NDArray[np.bool_],
        spreads: Floats,
        *,
        combined: bool,
        numbers: Ints | None = None,
    ) -> Levelwise:
        """Prepare the passes; `exact` outputs have no variance, and `combined` asks for generalised least squares.

        `numbers`: those of the outputs in a larger forest, where this is a part of one.
        """
        order, counts = sorted_outputs(parents)
        first = np.cumsum(np.append(counts[0], counts[1:][order]))
        placed, names = exact[order], order if numbers is None else numbers[order]
        return cls(order, names, first, placed, *_weigh(first, placed, spreads[order], combined))

    @property
    def roots_known(self) -> bool:
        """Whether every root has an estimate: every leaf is measured or exact, or something above it is."""
        return bool(np.isfinite(self.variance[: self.first[0]]).all())

    @property
    def determined(self) -> bool:
        """Whether no two children of one parent are without an estimate, so that nothing is shared out evenly."""
        return not _shares(self.first, self.variance)

    def move(
        self,
        noisy: npt.NDArray[Any],
        low: npt.NDArray[Any],
        high: npt.NDArray[Any],
        ties: npt.NDArray[np.uint64] | None = None,
        steps: Floats | None = None,
    ) -> npt.NDArray[Any]:
        """Return values within the bounds that add up, (size, n), from noisy ones; whole where the bounds are.

        No bound is ∓2**62; exact outputs have equal bounds. Noisy values that are not whole are rounded first where
        whole numbers are asked for. `ties` holds the coin of each row that decides between equal fractions. `steps`:
        what is added to the leaves' values, where these are the estimates of `heads`.
        """
        size = np.abs(noisy.astype(np.float64)).sum(axis=1).max(initial=0.0)
        if not size < LARGEST:
            raise Refused(TOO_LARGE)
        if low.dtype.kind == "i" and noisy.dtype.kind == "f":
            noisy = np.rint(noisy)
        noisy = np.require(noisy.astype(low.dtype, copy=False), requirements=["C", "W"])  # one compiled form for all
        bounds = self._bounded(low, high)
        result = np.empty_like(noisy)
        placed = np.empty(0) if steps is None else steps[self.order]
        passes = (self.order, self.names, self.first, self.exact, self.gain, self.variance, placed)
        whole = low.dtype.kind == "i"
        _move_rows(*passes, bounds, whole, noisy, coins_of(ties, len(noisy)), result)
        return result

    def heads(self, noisy: Ints, low: Ints, high: Ints) -> tuple[Ints, Floats, Floats, Ints, Ints]:
        """Return what a forest above would know of the roots, increasing, from one row of whole noisy values.

        Estimates, as whole numbers and steps to be added to them, their variances, least and most values.
        """
        lowest, highest = self._bounded(low, high)
        base, shift = noisy[self.order], np.empty(self.order.size)
        _estimate(self.first, self.exact, self.gain, self.variance, np.empty(0), lowest, base, shift)
        roots = slice(0, self.first[0])
        return base[roots], shift[roots], self.variance[roots], lowest[roots], highest[roots]

    def _bounded(self, low: npt.NDArray[Any], high: npt.NDArray[Any]) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
        """Bounds by place, tightened by those below; refused where nothing is left between them."""
        lowest, highest = low[self.order], high[self.order]
        places = np.arange(self.order.size)
        bad = bound_upwards(self.first, places, places, lowest, highest, 0.0 if low.dtype.kind == "i" else SLACK)
        if bad >= 0:
            raise Refused(f"what must hold cannot be reached below output {self.names[bad]}: widen its bounds")
        return lowest, highest


@compiled(beyond=100_000)
def _weigh(first, exact, spread, combined):  # type: ignore[no-untyped-def]
    """Gains and variances of the estimates, children first; an infinite spread means not measured."""
    n = spread.size
    gain, variance = np.zeros(n), spread.copy()
    for i in range(n - 1, -1, -1):
        if exact[i]:
            variance[i] = 0.0
        elif first[i + 1] > first[i]:
            below = 0.0
            for c in range(first[i], first[i + 1]):
                below += variance[c]
            if below == 0.0 or np.isinf(spread[i]):
                gain[i], variance[i] = 1.0, below
            elif combined and not np.isinf(below):
                gain[i] = spread[i] / (spread[i] + below)
                variance[i] = gain[i] * below
    return gain, variance


@compiled(beyond=100_000)
def _shares(first, variance):  # type: ignore[no-untyped-def]
    """Whether a parent has two children without an estimate."""
    for i in range(variance.size):
        unknown = 0
        for c in range(first[i], first[i + 1]):
            unknown += np.isinf(variance[c])
        if unknown > 1:
            return True
    return False


@compiled
def _estimate(first, exact, gain, variance, steps, low, base, shift):  # type: ignore[no-untyped-def]
    """Turn own values (`base`) into estimates base + shift, children first; differences of whole numbers stay exact.

    Leaves that are estimates already come with their `steps`.
    """
    for i in range(base.size - 1, -1, -1):
        shift[i] = 0.0
        if exact[i]:
            base[i] = low[i]
        elif first[i + 1] == first[i]:
            if steps.size > 0:
                shift[i] = steps[i]
            elif np.isinf(variance[i]):
                base[i] = 0
        elif gain[i] > 0.0:
            below, beside = base[i] * 0, 0.0
            for c in range(first[i], first[i + 1]):
                below += base[c]
                beside += shift[c]
            if gain[i] == 1.0:
                base[i], shift[i] = below, beside
            else:
                shift[i] = gain[i] * ((below - base[i]) + beside)


@compiled(inner=True)
def _side(step, base, low, high):  # type: ignore[no-untyped-def]
    """−1 if base + step lies below its bounds, 1 if above, 0 if within; differences of whole numbers are exact."""
    if low > -LARGEST and step < low - base:
        return -1
    return 1 if high < LARGEST and step > high - base else 0


@compiled(inner=True)
def _fit(start, stop, total, base, shift, variance, low, high, members, unknown, side, step):  # type: ignore[no-untyped-def]
    """Fit the children start, …, stop−1 to their estimates, within their bounds and with this total.

    Child start + k gets its lower bound (side[k] = −1), its upper bound (side[k] = 1) or base + step[k]. Children
    without an estimate take what the others leave, in even steps from the sum of what is known below them.
    """
    count, strangers, rest, least, most = 0, 0, total, 0.0, 0.0
    for c in range(start, stop):
        if low[c] == high[c]:
            side[c - start] = -1
            rest -= low[c]
        elif np.isinf(variance[c]):
            unknown[strangers] = c
            strangers += 1
            least += low[c] if low[c] > -LARGEST else -np.inf
            most += high[c] if high[c] < LARGEST else np.inf
        else:
            members[count] = c
            count += 1
    if strangers > 0:
        left, part = rest, 0.0
        for k in range(count):
            c = members[k]
            at = _side(shift[c], base[c], low[c], high[c])
            side[c - start], step[c - start] = at, shift[c]
            left -= base[c] if at == 0 else low[c] if at < 0 else high[c]
            part -= shift[c] if at == 0 else 0.0
        if least <= left + part <= most:
            _balance(start, unknown, strangers, left, part, base, shift, variance, low, high, side, step)
            return
        at = -1 if left + part < least else 1
        for k in range(strangers):
            side[unknown[k] - start] = at
            rest -= low[unknown[k]] if at < 0 else high[unknown[k]]
    _balance(start, members, count, rest, 0.0, base, shift, variance, low, high, side, step)


@compiled(inner=True)
def _balance(start, members, count, whole, part, base, shift, variance, low, high, side, step):  # type: ignore[no-untyped-def]
    """Fit some children to the total whole + part: step = shift + variance · μ, cut to the bounds.

    While bounds are missed, all children on the side that misses more have their bound for good: the total of the
    cut values is on that side, so μ can only move further away (docs/theory/levelwise.md).
    """
    while count > 0:
        short, weight = whole + 0, 0.0
        beside = part
        for k in range(count):
            c = members[k]
            short -= base[c]
            beside -= shift[c]
            weight += 1.0 if np.isinf(variance[c]) else variance[c]
        slope = (short + beside) / weight
        below, above = 0.0, 0.0
        for k in range(count):
            c = members[k]
            moved = shift[c] + slope * (1.0 if np.isinf(variance[c]) else variance[c])
            at = _side(moved, base[c], low[c], high[c])
            side[c - start], step[c - start] = 0, moved
            if at < 0:
                below += (low[c] - base[c]) - moved
            elif at > 0:
                above += moved - (high[c] - base[c])
        if below == 0.0 and above == 0.0:
            return
        wanted = -1 if below >= above else 1
        kept = 0
        for k in range(count):
            c = members[k]
            if _side(step[c - start], base[c], low[c], high[c]) == wanted:
                side[c - start] = wanted
                whole -= low[c] if wanted < 0 else high[c]
            else:
                members[kept] = c
                kept += 1
        count = kept


@compiled(inner=True)
def _round(start, stop, total, base, low, high, side, step, names, keys, ranked, value):  # type: ignore[no-untyped-def]
    """Controlled rounding: all down, then the largest fractions up until the total is met; ties by hash.

    Fractions count in steps of 2**−32, so that rounding errors of the fit do not decide between equal ones.
    """
    left = np.int64(total)
    for c in range(start, stop):
        k, fraction = c - start, 0.0
        if side[k] != 0:
            value[c] = low[c] if side[k] < 0 else high[c]
        else:
            down = np.floor(step[k])
            fraction = step[k] - down
            value[c] = min(max(base[c] + np.int64(down), low[c]), high[c])
        steps = np.uint64(fraction * 2.0**32 + 0.5)
        keys[k] = ~((steps << np.uint64(31)) | (tie_hash(names[c]) >> np.uint64(33)))
        left -= np.int64(value[c])
    # One round is enough, unless rounding errors of the fit added up to a unit or more.
    while left != 0:
        up, available = left > 0, 0
        unit, turned = (1, np.uint64(0)) if up else (-1, ~np.uint64(0))
        for c in range(start, stop):
            ranked[available] = keys[c - start] ^ turned
            available += value[c] < high[c] if up else value[c] > low[c]  # a key that is not needed is written over
        taken = abs(left) if abs(left) < available else available
        limit, equal = smallest(ranked, available, taken), taken
        for c in range(start, stop):
            if value[c] < high[c] if up else value[c] > low[c]:
                equal -= keys[c - start] ^ turned < limit
        for c in range(start, stop):
            key = keys[c - start] ^ turned
            if (value[c] < high[c] if up else value[c] > low[c]) and (key < limit or (key == limit and equal > 0)):
                equal -= key == limit
                value[c] += unit
                left -= unit


@compiled(inner=True)
def _place(start, stop, base, low, high, side, step, value):  # type: ignore[no-untyped-def]
    """Real values: the fit itself."""
    for c in range(start, stop):
        at = side[c - start]
        value[c] = low[c] if at < 0 else high[c] if at > 0 else base[c] + step[c - start]


@compiled(inner=True)
def _root(base, shift, number):  # type: ignore[no-untyped-def]
    """The nearest whole number to base + shift; halves up or down by hash."""
    down = np.floor(shift)
    fraction = shift - down
    up = fraction > 0.5 or (fraction == 0.5 and tie_hash(number) & np.uint64(1) == np.uint64(1))
    return base + np.int64(down) + (1 if up else 0)


@compiled(beyond=20_000)
def _move_rows(order, numbers, first, exact, gain, variance, steps, bounds, whole, noisy, coins, result):  # type: ignore[no-untyped-def]
    """All passes for each row of noisy values: estimates upwards, then final values downwards."""
    low, high = bounds
    n, widest = order.size, 0
    for i in range(n):
        widest = max(widest, first[i + 1] - first[i])
    base, shift, value = np.empty(n, low.dtype), np.empty(n), np.empty(n, low.dtype)
    members, unknown = np.empty(widest, np.int64), np.empty(widest, np.int64)
    side, step = np.empty(widest, np.int8), np.empty(widest)
    keys, ranked = np.empty(widest, np.uint64), np.empty(widest, np.uint64)
    for row in range(noisy.shape[0]):
        names = numbers ^ coins[row]
        for i in range(n):
            base[i] = noisy[row, order[i]]
        _estimate(first, exact, gain, variance, steps, low, base, shift)
        for i in range(first[0]):
            if whole:  # not a conditional expression, which would turn whole numbers into doubles
                value[i] = _root(base[i], shift[i], names[i])
            else:
                value[i] = base[i] + shift[i]
            value[i] = min(max(value[i], low[i]), high[i])
        for i in range(n):
            start, stop = first[i], first[i + 1]
            if start == stop:
                continue
            _fit(start, stop, value[i], base, shift, variance, low, high, members, unknown, side, step)
            if whole:
                _round(start, stop, value[i], base, low, high, side, step, names, keys, ranked, value)
            else:
                _place(start, stop, base, low, high, side, step, value)
        for i in range(n):
            result[row, order[i]] = value[i]
