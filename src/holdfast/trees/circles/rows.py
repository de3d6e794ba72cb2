"""Rows of messages: Q and M of inner nodes on their windows, made from the transforms that are kept."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from scipy import fft

from holdfast.arguments import LARGEST
from holdfast.arrays import Array, Bools, Floats, Ints, ranges
from holdfast.trees.circles.leaf_tables import ENDLESS, FAR, LEAST, TINY, LeafTable, kinds_of, powers
from holdfast.trees.circles.outline import Outline
from holdfast.trees.circles.weights import Weight, by_law, moments, product

UNIT = 2.0**-53
#: By half of how much Q is raised above what transforms give, for the rounding of the last steps.
EXCESS = 2.0**-50
#: How near to a pole tilts may come, as a share of it.
NEAREST = 1 - 2.0**-15


class Sums(NamedTuple):
    """What is kept of a node: its message, but for its own weight and the tilt above it (see Rows)."""

    tilt: float
    length: int
    start: int
    lift: float
    centre: float
    wobble: float
    slope: Floats
    bound: Floats
    values: Array


class Rows:
    """All messages of a forest; its arrays hold one entry for each inner node.

    tilt: of its children. length, start: its circle, and the first place of its window. lift: what is added to Q.
    mean, variance, norm, pad, height, ratio: of M, under the tilt of the node's siblings.
    """

    def __init__(self, shape: Outline, weights: Sequence[Weight], pull: Floats | None = None) -> None:
        self.shape, self.weights, n = shape, weights, shape.size
        #: The tilt above roots.
        self.pull = np.zeros(n) if pull is None else pull
        self.unit = min((float(weight.sizes.min()) for weight in weights), default=1.0)
        self.poles = np.array([weight.poles for weight in weights] + [(-np.inf, np.inf)])
        self.length, self.start = np.zeros(n, dtype=np.int64), np.zeros(n, dtype=np.int64)
        self.tilt, self.lift, self.centre = np.zeros(n), np.zeros(n), np.zeros(n)
        self.mean, self.variance, self.norm, self.pad = np.zeros(n), np.ones(n), np.zeros(n), np.zeros(n)
        self._largest, self.slack = np.zeros(n), np.zeros(n)  # of Q; by how much M is too large, in the mean
        self.wobble, self._again = np.zeros(n), np.zeros(n)  # how Q, and how M, may differ when it is made again
        #: By side, below and above: the children's sum at t is at most e^{bound − slope·|t − centre|} there.
        self.slope, self.bound = np.zeros((2, n)), np.zeros((2, n))
        #: By side: M at distance d ≥ 1 beyond its window is height·ratio^d.
        self.height, self.ratio = np.zeros((2, n)), np.zeros((2, n))
        self._offset, self._count, self._filled = np.zeros(n, dtype=np.int64), np.zeros(n, dtype=np.int64), 0
        self._store = np.zeros(0, dtype=np.complex128)

    def _parts(self, nodes: Ints) -> Iterator[Ints]:
        """Nodes with one circle length."""
        for length in np.unique(self.length[nodes]).tolist():
            yield nodes[self.length[nodes] == length]

    def above(self, some: Ints) -> Floats:
        """The tilts of nodes and their siblings."""
        parent = self.shape.parent[some]
        return np.where(parent >= 0, self.tilt[parent], self.pull[some])

    def _own_poles(self, some: Ints) -> Floats:
        """Between which differences of tilts own weights can be summed up, with some room, (2, nodes)."""
        shape = self.shape
        poles = NEAREST * self.poles[shape.law[some]].T
        poles[0, shape.low[some] > -LARGEST] = -np.inf
        poles[1, shape.high[some] < LARGEST] = np.inf
        return poles

    def _free(self, some: Ints) -> Bools:
        """Which nodes have neither a weight nor bounds."""
        shape = self.shape
        unbounded = (shape.low[some] <= -LARGEST) & (shape.high[some] >= LARGEST)
        return np.asarray((shape.law[some] < 0) & unbounded & ~shape.fixed[some])

    def alias(self, some: Ints, totals: Ints) -> Floats:
        """A bound on what wraps round a circle to these totals."""
        result = np.zeros(some.size)
        moved = totals - self.centre[some]
        for side, sign in ((0, -1), (1, 1)):
            slope = self.slope[side, some]
            log = self.bound[side, some] - slope * (self.length[some] + sign * moved)
            result += np.exp(np.minimum(log, 50.0)) / -np.expm1(-slope * self.length[some])
        return result

    def stored(self, node: int) -> Sums:
        """What is kept of a node."""
        values = self._stored(np.array([node]), int(self._count[node]))[0]
        return Sums._make([*(getattr(self, name)[..., node] for name in Sums._fields[:-1]), values])

    def put(self, node: int, sums: Sums) -> None:
        """Keep what another made of a node."""
        for name, value in zip(Sums._fields, sums[:-1], strict=False):
            getattr(self, name)[..., node] = value
        self._keep(np.array([node]), sums.values[None])

    def _keep(self, some: Ints, values: Array) -> None:
        self._offset[some] = self._filled + np.arange(some.size) * values.shape[1]
        self._count[some] = values.shape[1]
        end = self._filled + values.size
        self._store = _with_room(self._store, self._filled, end)
        self._store[self._filled : end] = values.ravel()
        self._filled = end

    def sums(self, some: Ints) -> Floats:
        """Q of nodes with one circle length, on their windows."""
        length = int(self.length[some[0]])
        result = np.empty((some.size, length))
        for count in np.unique(self._count[some]).tolist():
            mine = self._count[some] == count
            result[mine] = fft.irfft(self._stored(some[mine], count), length, axis=1)
        np.abs(result, out=result)  # of numbers below 0 the lift is larger, too
        result += self.lift[some][:, None]
        result *= 1 + 2 * EXCESS
        # What the lift adds far away, a tilt would make large: there the bound of the tail may be smaller.
        half = length // 2
        edges = np.stack([self.centre[some] - self.start[some], self.start[some] + length - 1 - self.centre[some]])
        ends = np.exp(np.minimum(self.bound[:, some] - self.slope[:, some] * edges, 1.0)) * (1 + 1e-9)
        for side, window in ((0, result[:, :half]), (1, result[:, : -half - 1 : -1])):  # inwards from both ends
            low = np.flatnonzero(ends[side] < self.lift[some])
            if low.size:
                tail = powers(self.slope[side, some[low]], half) * ends[side, low][:, None]
                window[low] = np.minimum(window[low], tail)
        return result

    @property
    def flat(self) -> Array:
        """All coefficients that are kept."""
        return self._store[: self._filled]

    def _stored(self, some: Ints, count: int) -> Array:
        return np.lib.stride_tricks.sliding_window_view(self.flat, count)[self._offset[some]]

    def exponents(self, some: Ints, places: Array) -> Floats:
        """log w(t) + (τ_p − τ_v)·(t − middle), rows are nodes; −∞ beyond bounds."""
        shape = self.shape
        middle = self.start[some] + self.length[some] // 2
        result = (self.above(some) - self.tilt[some])[:, None] * (places - middle[:, None])
        for weight, mine in by_law(self.weights, shape.law[some]):
            result[mine] += weight.log(places[mine])
        for bounded, sign, bound in (
            (shape.low[some] > -LARGEST, 1, shape.low[some]),
            (shape.high[some] < LARGEST, -1, shape.high[some]),
        ):
            if bounded.any():
                rows = result[bounded]
                rows[sign * (places[bounded] - bound[bounded, None]) < 0] = -np.inf
                result[bounded] = rows
        return result

    def rows(self, some: Ints, fresh: bool = False) -> Floats:
        """M of nodes with one circle length, on their windows; fresh: its norm is found first."""
        places = self.start[some][:, None] + np.arange(float(self.length[some[0]]))
        logs, result = self.exponents(some, places), self.sums(some)
        if fresh:
            self._largest[some] = result.max(axis=1)
            self.norm[some] = logs.max(axis=1)
        logs -= self.norm[some][:, None]
        own = np.exp(logs, out=logs)
        result *= own
        if fresh:
            whole = result.sum(axis=1) * (1 + 1e-9)
            excess, again = 2.2 * self.lift[some] * own.sum(axis=1), self.wobble[some]
            faint = np.flatnonzero(np.maximum(excess, again) > 1e-4 * whole)
            if faint.size:  # where tails are bounded by less than the lift
                sums, lift, wobble = self.sums(some[faint]), self.lift[some[faint], None], again[faint, None]
                excess[faint] = np.einsum("ij,ij->i", np.minimum(sums, 2.2 * lift), own[faint])
                again[faint] = (np.where(sums < lift, np.minimum(1.1 * sums, wobble), wobble) * own[faint]).max(axis=1)
            self.slack[some], self._again[some] = excess / whole, again / whole
            self.norm[some] += np.log(whole)
            steep = np.abs(self.above(some) - self.tilt[some]) * places.shape[1]
            farthest = np.maximum(np.abs(places[:, 0]), np.abs(places[:, -1]))
            self.pad[some] = UNIT * (64 + 4 * (np.abs(self.norm[some]) + steep + self._log_size(some, farthest)))
            result *= ((1 + 2 * self.pad[some]) / whole)[:, None]
        else:
            result *= (1 + 2 * self.pad[some])[:, None]
        if self._bounded(some):
            result[own > 0] = np.maximum(result[own > 0], TINY)
        else:
            np.maximum(result, TINY, out=result)
        return result

    def _log_size(self, some: Ints, farthest: Ints) -> Floats:
        """How large logarithms of own weights are on a window."""
        result = np.zeros(some.size)
        for weight, mine in by_law(self.weights, self.shape.law[some]):
            sizes = np.abs(np.stack([weight.log(farthest[mine]), weight.log(-farthest[mine])]))
            result[mine] = np.where(np.isfinite(sizes), sizes, 0.0).max(axis=0)
        return result

    def _bounded(self, some: Ints) -> bool:
        return bool((self.shape.low[some] > -LARGEST).any() or (self.shape.high[some] < LARGEST).any())

    def _measured(self, some: Ints, values: Floats) -> None:
        """Moments of rows, and the series beyond their windows."""
        length = values.shape[1]
        middle = self.start[some] + length // 2
        _, offset, variance = moments(values)
        self.mean[some], self.variance[some] = middle + offset, np.maximum(variance, 1e-12)
        largest = self._largest[some]
        for side, sign in ((0, -1), (1, 1)):
            edge = self.start[some] + (-1 if side == 0 else length)
            log = self.exponents(some, edge[:, None])[:, 0] - self.norm[some]
            steps = np.zeros(some.size)
            for weight, mine in by_law(self.weights, self.shape.law[some]):
                steps[mine] = weight.steps(edge[mine])[side]
            moved = self.above(some) - self.tilt[some]
            # Beyond bounds, or where weights end; a gap in a table of weights is no end.
            bound = (self.shape.low, self.shape.high)[side][some]
            empty = np.isneginf(log) & ((steps < np.inf) | (sign * (edge - bound) > 0))
            best, height, ratio = np.full(some.size, np.inf), np.zeros(some.size), np.zeros(some.size)
            slope = self.slope[side, some]
            chernoff = self.bound[side, some] - slope * np.abs(edge - self.centre[some])
            bare = moved * (edge - middle) - self.norm[some]  # no weight is above 1
            for steep, top in ((np.zeros(some.size), np.log(largest)), (slope, chernoff)):
                for own, step in ((log, steps), (bare, np.zeros(some.size))):
                    rate = step + sign * moved - steep
                    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
                        mass = np.where(rate < -1e-12, np.exp(own + top) / -np.expm1(rate), np.inf)
                    mass = np.where(empty, 0.0, mass)
                    better = mass < best
                    best[better] = mass[better]
                    ratio[better] = np.exp(np.maximum(rate[better], -700.0))
                    height[better] = np.exp((own + top)[better]) / ratio[better] * (1 + 1e-9)
            if not np.isfinite(best).all():
                raise TooShort(some[~np.isfinite(best)])
            self.height[side, some] = np.where(empty, 0.0, height)
            self.ratio[side, some] = np.where(empty, 0.0, ratio * (1 + 1e-12))

    def beyond(self, some: Ints) -> Floats:
        """Sums of the series beyond windows."""
        return np.asarray((self.height[:, some] * self.ratio[:, some] / (1 - self.ratio[:, some])).sum(axis=0))

    def _row_cumulants(self, some: Ints, values: Floats, slopes: Floats) -> Floats:
        """Bounds on log of Σ M(t)·e^{±s(t − mean)}, (2, rows, slopes)."""
        length = values.shape[1]
        result = np.empty((2, some.size, slopes.size))
        near, steps = np.exp(-slopes[:, None] * np.arange(32)), np.exp(-slopes[:, None] * np.arange(0, length, 32))
        falling = (steps[:, :, None] * near[:, None, :]).reshape(slopes.size, -1)[:, :length]
        for side, sign in ((0, -1), (1, 1)):
            far = length - 1 if sign > 0 else 0
            inside = product(values, (falling[:, ::-1] if sign > 0 else falling).T)
            with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
                ratio = self.ratio[side, some][:, None] * np.exp(slopes)
                series = np.where(ratio < 1, self.height[side, some][:, None] * ratio / (1 - ratio), np.inf)
            series = np.where(self.height[side, some][:, None] == 0, 0.0, series)
            shift = slopes * (sign * (self.start[some] + far - self.mean[some]))[:, None]
            with np.errstate(divide="ignore"):
                known = np.log((inside + series) * (1 + 1e-9)) + shift
            result[side] = np.where(inside > LEAST, known, ENDLESS)  # below, terms that count are lost
        return np.clip(result, 0.0, ENDLESS)

    def leaves_of(self, some: Ints) -> tuple[Ints, Ints]:
        """The leaves of nodes, and how many each has."""
        start = self.shape.leaf_start
        numbers = start[some + 1] - start[some]
        return ranges(start[some], numbers), numbers

    def leaf_table(self, some: Ints, tilt: float) -> tuple[LeafTable, Ints, Ints]:
        """The kinds of the leaves of some nodes, the kind of each leaf, and how many leaves each node has."""
        shape = self.shape
        leaves, numbers = self.leaves_of(some)
        known = shape.leaf_law[leaves], shape.leaf_low[leaves], shape.leaf_high[leaves]
        kinds, kind = kinds_of(self.weights, tilt, *known, FAR)
        return LeafTable(self.weights, kinds, tilt), kind, numbers


def _with_room(store: Array, filled: int, needed: int) -> Array:
    """A store with room for so many, and for as many again: a deep forest keeps level by level."""
    if needed <= store.size:
        return store
    result = np.empty(max(needed, 2 * store.size), dtype=np.complex128)
    result[:filled] = store[:filled]
    return result


class TooShort(Exception):
    """Circles of some nodes are too short for a series beyond their windows."""
