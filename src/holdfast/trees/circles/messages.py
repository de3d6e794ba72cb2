"""Messages on circles, from the leaves up (docs/theory/circles.md, sections 1 and 2).

Under the tilt τ_v of its children, Q_v(t) is above the sum of the children's messages over all ways to make t, wrapped
round a circle of N_v places: nothing is cut off, so nothing can be too narrow. Inside a window of N_v places around the
mean, v's own message is M_v(t) = Q_v(t)·w_v(t)·e^{(τ_p − τ_v)t} up to a factor, and beyond it a geometric series. Kept
are the transforms of the Q_v; rows of M are made again where they are needed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from scipy import fft

from holdfast.arguments import LARGEST
from holdfast.arrays import Array, Floats, Ints, ranges
from holdfast.trees.circles.leaf_tables import FAR, LeafTable, rounded
from holdfast.trees.circles.outline import Outline
from holdfast.trees.circles.rows import NEAREST, UNIT, Rows, Sums
from holdfast.trees.circles.tilts import Curve, Responses
from holdfast.trees.circles.weights import Weight, product

#: Lengths of circles, whose transforms are fast.
LENGTHS = np.unique([2**a * b for a in range(4, 25) for b in (2, 3, 5)])
#: What wraps round, or is beyond windows, is below e^−ALIASES of what is computed, at totals that are expected.
ALIASES = 18.0
#: Standard deviations within which a total is expected.
EXPECTED = 5.0
#: Slopes at which tails are bounded, in units of the inverse standard deviation.
SLOPES = np.array([2.5, 4.0, 6.0, 8.0, 11.0])
#: The least variance for which slopes are chosen.
NARROW = 0.1
#: By how many standard deviations of their totals a tilt may move before nodes without a weight are made again.
FOLLOWING = 0.25
#: Steps in which a tilt is found: means of very many children are far from what their responses promise.
STEPS = 12
#: Rows of messages that are worked on at once, and places of tables.
ROWS, PLACES = 1600, 1 << 22


def transform_error(length: Array) -> Floats:
    """The relative error, in the mean square, of a transform (Higham, theorem 24.2, with ten times the room)."""
    return np.asarray(32 * 2.3e-16 * np.log2(length))


def lengths_above(size: Floats) -> Ints:
    """The least lengths of circles that are not below these."""
    return LENGTHS[np.minimum(np.searchsorted(LENGTHS, size), LENGTHS.size - 1)]


def limits_of(shape: Outline, poles: Floats) -> Floats:
    """Between which tilts leaves without bounds can be summed up, (2, nodes)."""
    result = np.array([np.full(shape.size, -np.inf), np.full(shape.size, np.inf)])
    leafy = np.flatnonzero(np.diff(shape.leaf_start))
    if leafy.size:
        free = shape.leaf_low <= -LARGEST, shape.leaf_high >= LARGEST
        for side, over in ((0, np.maximum), (1, np.minimum)):
            at = np.where(free[side], poles[shape.leaf_law, side], (-np.inf, np.inf)[side])
            result[side, leafy] = NEAREST * over.reduceat(at, shape.leaf_start[leafy])
    return result


def slopes_for(variance: Floats, falls: Floats) -> Floats:
    """Slopes at which tails are bounded; where leaves or messages do not bear one, another serves."""
    middle, widest = (max(float(each), NARROW) for each in (np.median(variance), variance.max()))
    slopes = SLOPES / middle**0.5
    least = float(falls.min(initial=np.inf))
    if widest > 4 * middle:
        slopes = np.append(slopes, SLOPES / np.sqrt(widest))
    if least < slopes.max():
        slopes = np.append(slopes, least * np.array([0.45, 0.6, 0.75, 0.85, 0.92]))
    return np.unique(slopes)


class Messages(Rows):
    """All messages of a forest."""

    def __init__(
        self,
        shape: Outline,
        weights: Sequence[Weight],
        aliases: float = ALIASES,
        pull: Floats | None = None,
        cut: Mapping[int, Curve] | None = None,
        wound: bool = False,
    ) -> None:
        super().__init__(shape, weights, pull)
        #: Whether a circle may be shorter than those of children.
        self.wound = wound
        self.aliases = aliases
        self.responses = Responses(shape, weights, cut)
        self.limits = limits_of(shape, self.poles)
        self.tilt = self._within(self.responses.tilts(self.pull))

    def made(self, cut: Mapping[int, Sums] | None = None) -> Messages:
        """Make all messages, for what others made below nodes that are cut off."""
        shape = self.shape
        for node, sums in (cut or {}).items():
            self.put(node, sums)
        for d in range(shape.levels.size - 2, -1, -1):
            leafy, inner = shape.parents_at(d)
            self._above_leaves(leafy)
            self._above_inner(inner)
        for part in self._parts(np.flatnonzero((shape.parent < 0) & ~shape.fixed)):
            self._measured(part, self.rows(part, fresh=True))
            self.slack[part] += self.beyond(part)
        return self

    # --- tilts ---------------------------------------------------------------------------------------------------

    def _within(self, tilts: Floats) -> Floats:
        """Tilts that keep own weights and leaves summable, parents first."""
        shape = self.shape
        for d in range(shape.levels.size - 1):
            some = np.arange(shape.levels[d], shape.levels[d + 1])
            above = np.where(shape.parent[some] >= 0, tilts[shape.parent[some]], self.pull[some])
            low, high = self._own_poles(some)
            moved = np.where(shape.fixed[some], tilts[some], np.clip(tilts[some], above - high, above - low))
            moved = np.where(np.isinf(low) & np.isinf(high) & (shape.law[some] < 0) & ~shape.fixed[some], above, moved)
            tilts[some] = np.clip(moved, *self.limits[:, some])
        return tilts

    # --- circles -------------------------------------------------------------------------------------------------

    def _circles(self, some: Ints, mean: Floats, variance: Floats, cumulants: Floats, slopes: Floats) -> None:
        """Choose circles so long that little wraps round to where totals are expected, and little is beyond windows."""
        spread = np.sqrt(np.maximum(variance, NARROW))
        own = 1 / np.sqrt(1 / spread**2 + 1 / self.responses.own_variance(some, mean))
        reach = EXPECTED * own + 1
        need = self.aliases + 0.5 * (reach / spread) ** 2 + np.log(2.5 * spread + 1)
        distance = (need[None, :, None] + cumulants) / slopes
        best = np.argmin(distance, axis=2)
        far = np.take_along_axis(distance, best[:, :, None], axis=2)[:, :, 0].max(axis=0)
        # Beyond half a circle M falls by the own weight too, if that has any say there.
        moved, poles = self.above(some) - self.tilt[some], self._own_poles(some)
        falls = np.maximum([moved - poles[0], poles[1] - moved], 0.0)
        free = [self.shape.low[some] <= -LARGEST, self.shape.high[some] >= LARGEST] & (self.shape.law[some] < 0)
        falls = np.where(free, 0.0, falls)[:, :, None]
        # What is beyond may be anywhere: it counts at each place where the node's total may be.
        outside = self.aliases + np.log(2.5 * own + 1)
        beyond = ((outside[None, :, None] + cumulants) / (slopes + falls)).min(axis=2).max(axis=0)
        length = lengths_above(np.maximum(far + reach, 2 * beyond) + 2)
        self.length[some], self.centre[some] = length, mean
        self.start[some] = np.rint(mean).astype(np.int64) - length // 2
        self.slope[:, some] = slopes[best]
        self.bound[:, some] = np.take_along_axis(cumulants, best[:, :, None], axis=2)[:, :, 0]

    # --- sums of leaves ------------------------------------------------------------------------------------------

    def _above_leaves(self, some: Ints) -> None:
        if not some.size:
            return
        grid, curves = self.responses.grid, self.responses.curves
        right = np.clip(np.searchsorted(grid, self.tilt[some]), 1, grid.size - 1)
        rise = (curves[some, right] - curves[some, right - 1]) / (grid[right] - grid[right - 1])
        turned = rounded(self.tilt[some], rise, 0.25, self.unit)
        above, (low, high) = self.above(some), self._own_poles(some)
        fine = (turned > above - high) & (turned < above - low) | self.shape.fixed[some]
        fine &= (turned > self.limits[0, some]) & (turned < self.limits[1, some])
        self.tilt[some] = np.where(fine, turned, self.tilt[some])
        numbers = self.shape.leaf_start[some + 1] - self.shape.leaf_start[some]
        order = some[np.lexsort((numbers, self.tilt[some]))]
        for part in np.split(order, np.flatnonzero(np.diff(self.tilt[order])) + 1):
            self._sums_of_leaves(part, float(self.tilt[part[0]]))

    def _sums_of_leaves(self, some: Ints, tilt: float) -> None:
        table, kind, numbers = self.leaf_table(some, tilt)
        ends = np.concatenate([[0], np.cumsum(numbers)])
        step = max(1, PLACES // max(table.values.shape))
        for a in range(0, some.size, min(step, 2000)):
            b = min(a + min(step, 2000), some.size)
            row = np.repeat(np.arange(b - a), numbers[a:b]) * table.size
            mine = kind[ends[a] : ends[b]]
            counts = np.bincount(row + mine, minlength=(b - a) * table.size).reshape(b - a, -1)
            self._some_sums(some[a:b], counts.astype(np.float64), numbers[a:b], table)

    def _some_sums(self, some: Ints, counts: Floats, numbers: Ints, table: LeafTable) -> None:
        known = np.stack([table.mean, table.variance, table.roughness, table.tail], axis=1)
        mean, variance, rough, tail = product(counts, known).T
        slopes = slopes_for(variance, -table.steps[:, :][np.stack([table.ends[0] > 0, table.ends[1] > 0])])
        cumulants = np.stack([product(counts, side) for side in table.cumulants(slopes)])
        self._circles(some, mean, variance, cumulants, slopes)
        for length in np.unique(self.length[some]).tolist():
            mine = np.flatnonzero(self.length[some] == length)
            numbers_, part = numbers[mine], some[mine]
            values = table.transforms(counts[mine], numbers_, self.start[part], length)
            self._keep(part, values)
            sizes = np.abs(values).sum(axis=1) * (2 / length)
            error = UNIT * (numbers_ + 8) * (2 * FAR + 4 * (numbers_ + 4) * np.pi)
            rounding = (error + transform_error(length)) * sizes + float(np.exp(-FAR))
            few = np.where(numbers_ > 1, table.roughness.max(), 1.0)
            self.wobble[part] = (
                2.2 * transform_error(length) * np.sqrt(np.square(np.abs(values)).sum(axis=1) * 2 / length)
            )
            self.lift[part] = rounding + transform_error(length) * rough[mine] * few + tail[mine]

    # --- sums of inner nodes -------------------------------------------------------------------------------------

    def _above_inner(self, some: Ints) -> None:
        shape = self.shape
        if not some.size:
            return
        numbers = shape.inner_start[some + 1] - shape.inner_start[some]
        places = np.add.reduceat(self.length[ranges(shape.inner_start[some], numbers)], np.cumsum(numbers) - numbers)
        group = np.floor(np.cumsum(np.maximum(numbers / ROWS, places / PLACES))).astype(np.int64)
        for part in np.split(some, np.flatnonzero(np.diff(group)) + 1):
            self._some_inner(part)

    def _some_inner(self, some: Ints) -> None:
        shape = self.shape
        numbers = shape.inner_start[some + 1] - shape.inner_start[some]
        children = ranges(shape.inner_start[some], numbers)
        first = np.cumsum(numbers) - numbers
        owner = np.repeat(np.arange(some.size), numbers)
        place = np.zeros(shape.size, dtype=np.int64)
        place[children] = np.arange(children.size)
        made = [(part, self.rows(part, fresh=True)) for part in self._parts(children)]
        for part, values in made:
            self._measured(part, values)
        for attempt in range(STEPS):
            mean, variance = (np.add.reduceat(each[children], first) for each in (self.mean, self.variance))
            step = self._step(some, mean, variance, children, first)
            off = np.abs(step) * np.sqrt(variance) > 0.5
            if attempt == STEPS - 1 or not off.any():
                break
            self.tilt[some[off]] += step[off]
            if self._follow(children[off[owner]]):
                made = [(part, np.zeros((part.size, int(self.length[part[0]])))) for part in self._parts(children)]
                off[:] = True
            for part, values in made:
                again = off[owner[place[part]]]
                if again.any():
                    values[again] = self.rows(part[again], fresh=True)
                    self._measured(part[again], values[again])
        falls = -np.log(np.maximum(self.ratio[:, children][self.height[:, children] > 0], 1e-300))
        slopes = slopes_for(variance, falls)
        cumulants = np.zeros((2, children.size, slopes.size))
        rough = np.zeros(children.size)
        for part, values in made:
            at = place[part]
            cumulants[:, at] = self._row_cumulants(part, values, slopes)
            rough[at] = np.sqrt(np.einsum("ij,ij->i", values, values))
        cumulants = np.add.reduceat(cumulants, first, axis=1)
        self._circles(some, mean, variance, cumulants, slopes)
        if not self.wound:
            longest = np.maximum.reduceat(self.length[children], first)
            longer = longest > self.length[some]
            self.length[some[longer]] = longest[longer]
            self.start[some[longer]] = np.rint(mean[longer]).astype(np.int64) - longest[longer] // 2
        base = np.add.reduceat(self.start[children], first)
        tails = np.add.reduceat(self.beyond(children), first)
        for length in np.unique(self.length[some]).tolist():
            mine = np.flatnonzero(self.length[some] == length)
            spectra = np.empty((int(numbers[mine].sum()), length // 2 + 1), dtype=np.complex128)
            rank = np.full(children.size, -1, dtype=np.int64)
            chosen = np.flatnonzero(np.isin(owner, mine))
            rank[chosen] = np.arange(chosen.size)
            for part, values in made:
                at = rank[place[part]]
                spectra[at[at >= 0]] = fft.rfft(_wound(values[at >= 0], length), length, axis=1)
            product = np.multiply.reduceat(spectra, np.cumsum(numbers[mine]) - numbers[mine], axis=0)
            part = some[mine]
            shift = (self.start[part] - base[mine]) % length
            turn = np.exp(2j * np.pi / length * np.arange(length))
            product *= turn[np.outer(shift, np.arange(length // 2 + 1)) % length]
            self._keep(part, product)
            sums = np.add.reduceat(rough, first)[mine]
            few = np.where(numbers[mine] > 1, rough.max(), 1.0)
            own = np.sqrt(np.square(np.abs(product)).sum(axis=1) * 2 / length)
            relative = transform_error(length) + UNIT * 8 * (numbers[mine] + 4)
            self.wobble[part] = 2.2 * transform_error(length) * own
            again = np.add.reduceat(self._again[children], first)[mine]
            self.lift[part] = relative * (sums * few + own) + tails[mine] + again * few

    def _follow(self, some: Ints) -> bool:
        """Make nodes without a weight again where the tilt above them has moved far from theirs; whether any was."""
        shape = self.shape
        numbers = shape.inner_start[some + 1] - shape.inner_start[some]
        moved = (self.above(some) - self.tilt[some]) * np.sqrt(self.variance[some])
        far = self._free(some) & (np.abs(moved) > FOLLOWING)
        leafy, inner = some[far & shape.has_leaves[some]], some[far & (numbers > 0)]
        if leafy.size:
            self.tilt[leafy] = np.clip(self.above(leafy), *self.limits[:, leafy])
            self._above_leaves(leafy)
        if inner.size:
            numbers = shape.inner_start[inner + 1] - shape.inner_start[inner]
            children, first = ranges(shape.inner_start[inner], numbers), np.cumsum(numbers) - numbers
            low, high = self.tilt[children] + self._own_poles(children)
            bearable = np.maximum.reduceat(low, first), np.minimum.reduceat(high, first)
            self.tilt[inner] = np.clip(self.above(inner), *bearable)
            self._follow(children)
            self._above_inner(inner)
        return bool(leafy.size or inner.size)

    def _step(self, some: Ints, mean: Floats, variance: Floats, children: Ints, first: Ints) -> Floats:
        """By how much the tilt of nodes' children is off, if their total answers in a straight line."""
        shape = self.shape
        target = self.above(some)
        farthest = 8 / np.sqrt(variance)
        low, high = -farthest, farthest
        poles = self._own_poles(children)
        free = shape.law[children] < 0
        poles[:, free] = np.clip(poles[:, free], *(0.5 * self.slope[:, children[free]] * np.array([[-1], [1]])))
        least = np.maximum.reduceat(self.tilt[children] + poles[0], first) - self.tilt[some]
        most = np.minimum.reduceat(self.tilt[children] + poles[1], first) - self.tilt[some]
        low, high = np.clip(low, least, most), np.clip(high, least, most)
        free = self._free(some)
        for _ in range(16):
            middle = (low + high) / 2
            total = mean + variance * middle
            own = self.responses.own(some, total[:, None])[:, 0]
            below = np.where(shape.fixed[some], total < 0, self.tilt[some] + middle + own < target)
            low, high = np.where(below, middle, low), np.where(below, high, middle)
        return np.where(free, 0.0, (low + high) / 2)


def _wound(rows: Floats, length: int) -> Floats:
    """Rows round a circle that may be shorter than they are: what wraps round adds."""
    if rows.shape[1] <= length:
        return rows
    whole = np.pad(rows, ((0, 0), (0, -rows.shape[1] % length)))
    return np.asarray(whole.reshape(len(rows), whole.shape[1] // length, length).sum(axis=1))
