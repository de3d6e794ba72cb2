"""Where totals will probably lie: the tilt of every node's children, from responses to tilts on a grid (a guess).

Under the tilt τ of its children the total of a node has a mean m(τ), which rises. The node's own weight takes the tilt
h(m) away, so from above the tilt is τ + h(m(τ)), a rising curve whose inverse is how the total answers. Responses of
siblings add up. Going down, every node finds its τ. Any tilt gives the exact law; a good one saves work.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from holdfast.arguments import LARGEST
from holdfast.arrays import Array, Floats, Ints
from holdfast.trees.circles.outline import Outline
from holdfast.trees.circles.weights import FEW_LAWS, Weight, by_law, product

#: Points at which a law is looked at, and the share e^−NEED of its largest weight where it is left.
POINTS, NEED = 65, 20.0
#: Places up to which a law within bounds is looked at whole, under tilts of its own.
NARROW = 1 << 12
#: Bounds up to which kinds of leaves are told apart one by one; above, by a factor.
APART, FACTOR = 16, 1.25
#: How near to a pole tilts are looked at, as shares of it, and how many weights one above another make poles.
NEAR, HIGH = 2.0 ** -np.array([12, 8, 5]), 4
#: The largest total that is followed: no sum of doubles is lost beside it.
FARTHEST = 1e15


class Curve(NamedTuple):
    """How the mean total of some children answers to their tilt."""

    tilts: Floats
    means: Floats


def mean_of(weight: Weight, tilts: Floats, low: Ints, high: Ints) -> Floats:
    """The means under some tilts within bounds, (bounds, tilts)."""
    result = np.empty((low.size, tilts.size))
    own = np.concatenate([-weight.sizes[::-1], [0.0], weight.sizes])
    if own.size < tilts.size and np.max(high.astype(np.float64) - low) < NARROW:
        places = low[:, None] + np.arange(float(np.max(high - low)) + 1)
        logs = np.where(places > high[:, None], -np.inf, weight.log(places))[:, None]
        logs = logs + own[:, None] * (places - low[:, None])[:, None]
        masses = np.exp(logs - logs.max(axis=2, keepdims=True))
        means = np.einsum("ijk,ik->ij", masses, places) / masses.sum(axis=2)
        return np.array([np.interp(tilts, own, each) for each in means])
    share = np.linspace(0.0, 1.0, POINTS)
    for j, tilt in enumerate(tilts.tolist()):
        first, last = weight.window(tilt, low, high, NEED)
        places = first[:, None] + (last - first)[:, None] * share
        few = last - first < POINTS
        places[few] = np.minimum(first[few, None] + np.arange(POINTS), last[few, None])
        logs = weight.log(places) + tilt * (places - first[:, None])
        logs[few] = np.where(np.arange(POINTS) <= (last - first)[few, None], logs[few], -np.inf)
        masses = np.exp(logs - logs.max(axis=1, keepdims=True))
        # Between points lie others, but for the ends (Euler and Maclaurin).
        masses[~few, :: POINTS - 1] *= 0.5 + 0.5 * (POINTS - 1) / (last - first)[~few, None]
        result[:, j] = (masses * places).sum(axis=1) / masses.sum(axis=1)
    return np.clip(result, -FARTHEST, FARTHEST)


def grid_of(weights: Sequence[Weight]) -> Floats:
    """Tilts that follow the bends of all laws."""
    sizes = np.unique(np.concatenate([weight.sizes for weight in weights]))
    apart, nearest = [sizes[0]], 1.03 if len(weights) <= FEW_LAWS else 1.2
    for size in sizes[1:].tolist():
        if len(weights) == 1 or size > apart[-1] * nearest:
            apart.append(size)
    return np.concatenate([-np.array(apart)[::-1], [0.0], apart])


def _near_poles(shape: Outline, weights: Sequence[Weight]) -> tuple[Floats, Floats]:
    """Tilts just within what leaves with the weights above them bear: there one enormous leaf answers for all."""
    laws = [shape.leaf_law]
    laws += [shape.law[shape.levels[d] : shape.levels[d + 1]] for d in range(shape.levels.size - 2, 0, -1)]
    poles = [weights[int(np.bincount(each).argmax())].poles[1] for each in (law[law >= 0] for law in laws) if each.size]
    sums = np.cumsum(poles)[1:HIGH]
    near = (sums[np.isfinite(sums)][:, None] * (1 - NEAR)).ravel()
    return near, -near


class Responses:
    """The mean total of every node's children by the tilt of the children, on a grid."""

    def __init__(self, shape: Outline, weights: Sequence[Weight], cut: Mapping[int, Curve] | None = None) -> None:
        self.shape, self.weights = shape, weights
        self.grid = np.unique(np.concatenate([grid_of(weights), *_near_poles(shape, weights)]))
        self.curves = np.zeros((shape.size, self.grid.size), dtype=np.float32)
        self._leaves()
        for node, curve in (cut or {}).items():
            self.curves[node] = np.interp(self.grid, *curve)
        for d in range(shape.levels.size - 2, 0, -1):
            some = np.arange(shape.levels[d], shape.levels[d + 1])
            answers = self._answers(some)
            above = shape.parent[some]
            first = np.flatnonzero(np.diff(above, prepend=-1))
            self.curves[above[first]] += np.add.reduceat(answers, first, axis=0)

    def _leaves(self) -> None:
        shape = self.shape
        low, low_bins = _binned(-shape.leaf_low)
        high, high_bins = _binned(shape.leaf_high)
        code = (shape.leaf_law * low_bins + low) * high_bins + high
        used = np.bincount(code, minlength=len(self.weights) * low_bins * high_bins)
        kinds = np.flatnonzero(used)
        number = np.zeros(used.size, dtype=np.int64)
        number[kinds] = np.arange(kinds.size)
        kind = number[code]
        means = np.empty((kinds.size, self.grid.size), dtype=np.float32)
        lows = _middle(kind, shape.leaf_low, -LARGEST, used[kinds])
        highs = _middle(kind, shape.leaf_high, LARGEST, used[kinds])
        for weight, some in by_law(self.weights, kinds // (low_bins * high_bins)):
            means[some] = mean_of(weight, self.grid, lows[some], highs[some])
        parents = np.flatnonzero(shape.has_leaves)
        step = max(1, (1 << 22) // max(kinds.size, 1))
        for a in range(0, parents.size, step):
            some = parents[a : a + step]
            first, last = int(shape.leaf_start[some[0]]), int(shape.leaf_start[some[-1] + 1])
            counts = shape.leaf_start[some + 1] - shape.leaf_start[some]
            row = np.repeat(np.arange(some.size), counts) * kinds.size
            table = np.bincount(row + kind[first:last], minlength=some.size * kinds.size)
            self.curves[some] = product(table.reshape(some.size, -1).astype(np.float32), means)

    def own(self, some: Ints, totals: Array) -> Array:
        """The tilt that each node's own weight takes away from above where its total is this; rows are nodes."""
        shape = self.shape
        result = np.zeros(totals.shape, dtype=totals.dtype)
        low, high = shape.low[some], shape.high[some]
        for weight, mine in by_law(self.weights, shape.law[some]):
            result[mine] = weight.slope(totals[mine])
        for bounded, sign, bound in ((low > -LARGEST, -1, low), (high < LARGEST, 1, high)):
            if bounded.any():
                room = sign * (bound[bounded, None] - totals[bounded]) + 0.6
                result[bounded] += sign / np.maximum(room, 1e-6)
        return result

    def own_variance(self, some: Ints, mean: Floats) -> Floats:
        """The variance of the nodes' own weights, roughly, under the tilt that gives them these means."""
        step = 1 + 0.01 * np.abs(mean)
        rise = self.own(some, np.stack([mean - step, mean + step], axis=1))
        return np.asarray(2 * step / np.maximum(rise[:, 1] - rise[:, 0], 1e-200))

    def _met(self, some: Ints) -> Array:
        """The tilt from above for each tilt of the children, which does not fall."""
        curves = self.curves[some]
        return np.maximum.accumulate(self.own(some, curves) + self.grid.astype(np.float32), axis=1)

    def _answers(self, some: Ints) -> Array:
        """The mean totals of nodes by the tilt from above."""
        result = self.curves[some]
        shape = self.shape
        free = (shape.law[some] < 0) & (shape.low[some] <= -LARGEST) & (shape.high[some] >= LARGEST)
        if free.all():
            return result
        busy = some[~free]
        step = max(1, (1 << 21) // self.grid.size)
        parts = []
        for a in range(0, busy.size, step):
            part = busy[a : a + step]
            # Rows one beside another are one curve.
            heights = np.clip(self._met(part), self.grid[0], self.grid[-1]).astype(np.float64)
            apart = 2 * np.arange(part.size)[:, None] * (self.grid[-1] - self.grid[0])
            wanted = np.clip(self.grid, heights[:, :1], heights[:, -1:]) + apart
            parts.append(np.interp(wanted, (heights + apart).ravel(), self.curves[part].ravel()))
        result[~free] = np.concatenate(parts)
        return result

    def tilts(self, pull: Floats) -> Floats:
        """The tilt of every node's children, for the pulls from above roots."""
        shape = self.shape
        result = np.zeros(shape.size)
        for d in range(shape.levels.size - 1):
            some = np.arange(shape.levels[d], shape.levels[d + 1])
            above = np.where(shape.parent[some] >= 0, result[shape.parent[some]], pull[some])
            free = (shape.law[some] < 0) & (shape.low[some] <= -LARGEST) & (shape.high[some] >= LARGEST)
            result[some[free]] = above[free]
            fixed = shape.fixed[some]
            result[some[fixed]] = self.tilts_for(some[fixed], np.zeros(int(fixed.sum())))
            busy = ~free & ~fixed
            if busy.any():
                result[some[busy]] = self._balanced(some[busy], above[busy])
        return result

    def _balanced(self, some: Ints, above: Floats) -> Floats:
        """The tilts of the children for tilts from above: means are straight lines between two points of the grid."""
        right = np.clip((self._met(some) < above[:, None]).sum(axis=1), 1, self.grid.size - 1)
        low, high = self.grid[right - 1], self.grid[right]
        first, last = (self.curves[some, right - k].astype(np.float64) for k in (1, 0))
        rise = (last - first) / (high - low)
        start = low
        for _ in range(14):
            middle = (low + high) / 2
            total = first + rise * (middle - start)
            below = middle + self.own(some, total[:, None])[:, 0] < above
            low, high = np.where(below, middle, low), np.where(below, high, middle)
        return np.asarray((low + high) / 2)

    def tilts_for(self, some: Ints, totals: Floats) -> Floats:
        """The tilts under which the children of nodes have these totals in the mean."""
        grid = np.broadcast_to(self.grid, (some.size, self.grid.size))
        return _interpolated(self.curves[some], grid, totals)


def _interpolated(curves: Array, values: Array, wanted: Array) -> Floats:
    """The value of each row where its rising curve has the wanted height; the first or the last where it never has."""
    rows, last = np.arange(len(curves)), curves.shape[1] - 1
    right = np.clip((curves < wanted[:, None]).sum(axis=1), 1, last)
    low, high = curves[rows, right - 1].astype(np.float64), curves[rows, right].astype(np.float64)
    share = np.clip((wanted - low) / np.maximum(high - low, 1e-30), 0.0, 1.0)
    below, above = values[rows, right - 1].astype(np.float64), values[rows, right].astype(np.float64)
    return np.asarray(below + share * (above - below))


def _binned(size: Ints) -> tuple[Ints, int]:
    """Bins of bounds, of which no bound at all is one, and their number."""
    if size.size == 0 or int(size.min()) >= LARGEST:
        return np.zeros(size.size, dtype=np.int64), 1
    room = np.maximum(size, 0)
    bins = np.minimum(room, APART)
    far = room > APART
    if far.any():
        bins[far] = APART + np.ceil(np.log(room[far] / APART) / np.log(FACTOR)).astype(np.int64)
    return bins, int(bins.max()) + 1


def _middle(kind: Ints, bounds: Ints, none: int, counts: Ints) -> Ints:
    """The mean bound of every kind of leaf, or none."""
    free = bounds == none
    sums = np.bincount(kind, weights=np.where(free, 0.0, bounds), minlength=counts.size)
    result = np.rint(sums / counts).astype(np.int64)
    some_free = np.bincount(kind, weights=free, minlength=counts.size) > 0
    result[some_free] = none
    return result
