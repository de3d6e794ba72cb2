"""Weighted sums of outputs' noise on a hierarchy, from messages on circles: variance and characteristic function.

A message sums up over all ways to make a total. Here each way is multiplied by something of what it contributes to the
weighted sum x: by e^{iωx} for the characteristic function, and by 1, x and x² (a jet: e^{θx} and two derivatives at
θ = 0) for the variance. Both are multiplied from child to child. What the weights below a node have in common is a
multiple of its total and goes to the node above; where nothing else is left the plain message serves. Doubles are
enough: draws do not use this file (docs/theory/circles.md).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import ClassVar

import numpy as np
from scipy import fft

from holdfast.arrays import Array, Bools, Floats, Ints, ranges
from holdfast.trees.circles.leaf_tables import LeafTable
from holdfast.trees.circles.messages import Messages

#: Places of rows that are worked on at once, and of phases that are computed one by one.
PLACES, STEP = 1 << 22, 32
#: Leaves up to which tables of theirs are made once.
FEW_LEAVES = 10_000
#: Sums below this share of the largest of their row are rounding.
FAINT = 1e-16


class BareRows:
    """Messages as they are, up to rounding and what wraps round: without what draws add to be on the safe side."""

    def __init__(self, messages: Messages) -> None:
        self.m, self.shape = messages, messages.shape
        self.leafy = self.shape.has_leaves
        self._tables: dict[bytes, tuple[LeafTable, Ints, Ints]] = {}
        sizes = np.where(self.leafy, 0, messages.length)
        self.offset = np.cumsum(sizes) - sizes
        self.flat = np.empty(int(sizes.sum()))
        for level in range(self.shape.levels.size - 2, -1, -1):
            for some in self.groups(self.inner(level)):
                spectra, _, first, shift = self.spectra(some)
                sums = fft.irfft(np.multiply.reduceat(spectra, first, axis=0), int(messages.length[some[0]]))
                self.flat[self.places_of(some)] = _without_rounding(moved(sums, shift))

    def inner(self, level: int) -> Ints:
        """The nodes of a level that have no leaves."""
        some = np.arange(self.shape.levels[level], self.shape.levels[level + 1])
        return some[~self.leafy[some]]

    def groups(self, some: Ints, times: int = 1) -> Iterator[Ints]:
        """Nodes with one circle length, above leaves with one tilt or above none, and not too many at once."""
        shape, m = self.shape, self.m
        tilt = np.where(self.leafy[some], m.tilt[some], 0.0)
        order = np.lexsort((some, tilt, m.length[some], self.leafy[some]))
        some, tilt = some[order], tilt[order]
        numbers = shape.inner_start[some + 1] - shape.inner_start[some]
        numbers += shape.leaf_start[some + 1] - shape.leaf_start[some]
        group = np.cumsum(numbers * m.length[some]) * times // PLACES
        new = np.diff(np.stack([group, m.length[some], self.leafy[some], tilt])).any(axis=0)
        yield from (part for part in np.split(some, np.flatnonzero(new) + 1) if part.size)

    def places_of(self, some: Ints) -> Ints:
        """Where rows of nodes without leaves are kept; one circle length."""
        return np.asarray(self.offset[some][:, None] + np.arange(int(self.m.length[some[0]])))

    def sums(self, some: Ints) -> Floats:
        """Sums of the children's messages of a group."""
        m, length = self.m, int(self.m.length[some[0]])
        if not self.leafy[some[0]]:
            return np.asarray(self.flat[self.places_of(some)])
        table, kind, numbers = self.leaf_table(some)
        codes = np.repeat(np.arange(some.size), numbers) * table.size + kind
        counts = np.bincount(codes, minlength=some.size * table.size).reshape(some.size, -1).astype(np.float64)
        return _without_rounding(fft.irfft(table.transforms(counts, numbers, m.start[some], length), length))

    def leaf_table(self, some: Ints) -> tuple[LeafTable, Ints, Ints]:
        """The kinds of the leaves of a group, the kind of each leaf, and how many leaves each node has."""
        key = some.tobytes()
        known = self._tables.get(key) or self.m.leaf_table(some, float(self.m.tilt[some[0]]))
        if self.shape.leaf_output.size <= FEW_LEAVES:
            self._tables[key] = known
        return known

    def window(self, some: Ints) -> Floats:
        """The totals of a group's windows."""
        return self.m.start[some][:, None] + np.arange(float(self.m.length[some[0]]))

    def own(self, some: Ints) -> Floats:
        """What sums are multiplied with: own weights and tilts; of exact outputs, that the total is 0."""
        logs = self.m.exponents(some, self.window(some)) - self.m.norm[some][:, None]
        result = np.exp(np.minimum(logs, 500.0))  # so large only where sums are 0
        fixed = self.shape.fixed[some]
        result[fixed] = self.window(some)[fixed] == 0
        return np.asarray(result)

    def children(self, some: Ints) -> tuple[Ints, Ints, Ints]:
        """The inner children of nodes, where each node's begin, and how a sum of their windows lies to its own."""
        start = self.shape.inner_start
        numbers = start[some + 1] - start[some]
        children, first = ranges(start[some], numbers), np.cumsum(numbers) - numbers
        return children, first, self.m.start[some] - np.add.reduceat(self.m.start[children], first)

    def spectra(self, some: Ints) -> tuple[Array, Ints, Ints, Ints]:
        """Transforms of the messages of all inner children of a group, and what `children` tells."""
        length = int(self.m.length[some[0]])
        children, first, shift = self.children(some)
        result = np.empty((children.size, length // 2 + 1), dtype=np.complex128)
        for part in self.groups(children):
            result[np.searchsorted(children, part)] = fft.rfft(self.sums(part) * self.own(part), length)
        return result, children, first, shift


def _without_rounding(sums: Floats) -> Floats:
    """Sums that are 0 where transforms cannot tell them from 0: tilts would make much of what is left there."""
    return np.where(sums > FAINT * sums.max(axis=1, keepdims=True), sums, 0.0)


def moved(values: Array, shift: Ints) -> Array:
    """BareRows on circles from another place on."""
    length = values.shape[-1]
    places = (np.arange(length) + shift[:, None]) % length
    return np.take_along_axis(values, np.broadcast_to(places, values.shape), axis=-1)


class Phases:
    """E e^{iωx} at some ω, real ones or others; rows have a first index for ω."""

    transform: ClassVar[Callable[..., Array]] = staticmethod(fft.fft)
    back: ClassVar[Callable[..., Array]] = staticmethod(fft.ifft)

    def __init__(self, frequencies: Array) -> None:
        self.frequencies, self.size = frequencies, frequencies.size

    def lifted(self, rows: Floats) -> Array:
        """BareRows where x is always 0."""
        return np.repeat(rows[None].astype(np.complex128), self.size, axis=0)

    def times(self, first: Array, second: Array) -> Array:
        """BareRows of x + y from those of independent x and y."""
        return first * second

    def add(self, rows: Array, slope: Floats, start: Ints) -> Array:
        """BareRows where slope·place is added to x, each row with its slope and its first place."""
        some, length = np.flatnonzero(slope), rows.shape[2]
        turn = 1j * self.frequencies[:, None, None] * slope[some, None]
        near, far = np.exp(turn * np.arange(STEP)), np.exp(turn * (start[some, None] + np.arange(0, length, STEP)))
        phases = (far[..., None] * near[:, :, None]).reshape(self.size, some.size, far.shape[2] * STEP)
        rows[:, some] *= phases[..., :length]
        return rows

    def leaves(self, table: LeafTable, kind: Ints, slope: Floats, owner: Ints, length: int) -> tuple[Array, Ints]:
        """Transforms of leaves, alike ones of one owner together, and their owners, sorted."""
        order = np.lexsort((slope, kind, owner))
        known = np.stack([owner, kind, slope])[:, order]
        first = np.flatnonzero(np.diff(known, prepend=-1).any(axis=0) | (np.arange(order.size) == 0))
        counts = np.diff(first, append=order.size)
        alike, which = np.unique(np.stack([*known[1:, first], counts]), axis=1, return_inverse=True)
        spectra = self._single(table, alike[0].astype(np.int64), alike[1], length)
        many = alike[2] > 1
        spectra[:, many] **= alike[2, many, None]
        return spectra[:, which.ravel()], known[0, first].astype(np.int64)

    def _single(self, table: LeafTable, kind: Ints, slope: Floats, length: int) -> Array:
        """Transforms of single leaves, wrapped round a circle."""
        rows = self.add(self.lifted(table.values[kind]), slope, np.full(kind.size, table.first))
        if rows.shape[2] > length:
            more = np.pad(rows, [(0, 0), (0, 0), (0, -rows.shape[2] % length)])
            rows = more.reshape(*rows.shape[:2], -1, length).sum(axis=2)
        return np.asarray(self.transform(rows, length))

    def together(self, sums: Array) -> Array:
        """What is found of the sum of independent x's, from rows summed over all places."""
        return np.asarray(sums.prod(axis=1))


class Jets(Phases):
    """The variance of x; rows have a first index for masses times 1, x and x². A constant in x makes no difference."""

    transform = staticmethod(fft.rfft)
    back = staticmethod(fft.irfft)

    def __init__(self) -> None:
        self.size = 3

    def lifted(self, rows: Floats) -> Array:
        """See Phases."""
        return np.stack([rows, np.zeros_like(rows), np.zeros_like(rows)])

    def times(self, first: Array, second: Array) -> Array:
        """See Phases."""
        (a, b, c), (x, y, z) = first, second
        return np.stack([a * x, a * y + b * x, a * z + 2 * b * y + c * x])

    def add(self, rows: Array, slope: Floats, start: Ints) -> Array:
        """See Phases; places are counted from the middle."""
        del start
        line = slope[:, None] * (np.arange(rows.shape[2]) - rows.shape[2] // 2)
        return np.stack([rows[0], rows[1] + line * rows[0], rows[2] + line * (2 * rows[1] + line * rows[0])])

    def leaves(self, table: LeafTable, kind: Ints, slope: Floats, owner: Ints, length: int) -> tuple[Array, Ints]:
        """See Phases; n leaves of one kind need Σ slopes and Σ slopes² alone."""
        codes, which, counts = np.unique(owner * table.size + kind, return_inverse=True, return_counts=True)
        single = self._single(table, np.arange(table.size), np.ones(table.size), length)
        one, line, square = single[:, codes % table.size]
        n, slopes, squares = (x[:, None] for x in (counts, np.bincount(which, slope), np.bincount(which, slope**2)))
        fewer = one ** np.maximum(n - 2, 0)
        others = np.where(n > 1, fewer * one, 1.0)
        pairs = (slopes**2 - squares) * (n > 1) * fewer * line**2
        return np.stack([others * one, slopes * others * line, squares * others * square + pairs]), codes // table.size

    def together(self, sums: Array) -> Array:
        """See Phases."""
        return np.asarray((sums[2] / sums[0] - (sums[1] / sums[0]) ** 2).sum())


class WeightedSum:
    """Σ weights·noise: the slope that all below a node have in common, and whether that is not all (it *bends*).

    `alone` are leaves that are roots, their table and their kinds.
    """

    def __init__(self, rows: BareRows, weights: Floats, alone: tuple[LeafTable, Ints] | None) -> None:
        self.rows, self.m, self.shape, self.alone = rows, rows.m, rows.shape, alone
        shape = self.shape
        self.leaf, self.alone_slope = weights[shape.leaf_output], weights[shape.alone]
        self.slope = np.where(shape.output >= 0, weights[shape.output], 0.0)
        self.common, self.bends = np.zeros(shape.size), np.zeros(shape.size, dtype=bool)
        self._join(np.flatnonzero(rows.leafy), shape.leaf_start, self.leaf, np.zeros(self.leaf.size, dtype=bool))
        for level in range(shape.levels.size - 2, -1, -1):
            self._join(rows.inner(level), shape.inner_start, self.slope, self.bends)
        some = np.flatnonzero(self.bends)
        numbers = np.diff(shape.inner_start)[some] + np.diff(shape.leaf_start)[some]
        #: About how many places are worked on for one frequency.
        self.work = float(numbers @ self.m.length[some])

    def _join(self, some: Ints, start: Ints, slope: Floats, bends: Bools) -> None:
        """The middle one of the children's slopes is common."""
        numbers = start[some + 1] - start[some]
        below, first = ranges(start[some], numbers), np.cumsum(numbers) - numbers
        owner = np.repeat(np.arange(some.size), numbers)
        order = below[np.lexsort((slope[below], owner))]
        self.common[some] = slope[order[first + numbers // 2]]
        self.slope[some] += self.common[some]
        differ = slope[order[first]] != slope[order[first + numbers - 1]]
        self.bends[some] = differ | (np.bincount(owner, bends[below], some.size) > 0)

    def find(self, way: Phases) -> Array:
        """What a way finds of the sum."""
        rows, shape = self.rows, self.shape
        bent: dict[int, Array] = {}  # sums one level below; those of leaves are made where they are needed
        for level in range(shape.levels.size - 2, 0, -1):
            below, bent = bent, {}
            for some in rows.groups(rows.inner(level)[self.bends[rows.inner(level)]], way.size):
                bent.update(zip(some.tolist(), np.moveaxis(self._sums(way, some, below), 1, 0), strict=True))
        tops = np.flatnonzero((shape.parent < 0) & (self.bends | (self.slope != 0) & ~shape.fixed))
        sums: list[Array] = [np.ones((way.size, 0))]
        for some in rows.groups(tops, way.size):
            own = rows.own(some)
            values = way.add(self._values(way, some, bent) * own, self.slope[some], self.m.start[some])
            sums.append(values.sum(axis=-1) / (rows.sums(some) * own).sum(axis=-1))
        if self.alone is not None:
            spectra, _ = way.leaves(*self.alone, self.alone_slope, np.arange(shape.alone.size), 1)
            sums.append(way.back(spectra, 1)[..., 0])
        return way.together(np.concatenate(sums, axis=1))

    def _values(self, way: Phases, some: Ints, below: dict[int, Array]) -> Array:
        """Sums of the children's rows of a group."""
        result = way.lifted(self.rows.sums(some))
        bent = some[self.bends[some]]
        if bent.size:
            known = int(bent[0]) in below
            values = np.stack([below[v] for v in bent.tolist()], axis=1) if known else self._sums(way, bent, below)
            result[:, self.bends[some]] = values
        return result

    def _sums(self, way: Phases, some: Ints, below: dict[int, Array]) -> Array:
        """The same of nodes that bend, from their children."""
        rows, m, length = self.rows, self.m, int(self.m.length[some[0]])
        if rows.leafy[some[0]]:
            table, kind, numbers = rows.leaf_table(some)
            owner = np.repeat(np.arange(some.size), numbers)
            slope = self.leaf[m.leaves_of(some)[0]] - self.common[some][owner]
            spectra, owner = way.leaves(table, kind, slope, owner, length)
            shift = m.start[some] - numbers * table.first
        else:
            children, first, shift = rows.children(some)
            owner = np.repeat(np.arange(some.size), np.diff(first, append=children.size))
            slope = self.slope[children] - self.common[some][owner]
            parts, order = [], []
            for part in rows.groups(children, way.size):
                at = np.searchsorted(children, part)
                values = self._values(way, part, below) * rows.own(part)
                parts.append(way.transform(way.add(values, slope[at], m.start[part]), length))
                order.append(at)
            spectra = np.concatenate(parts, axis=1)[:, np.argsort(np.concatenate(order))]
        result = moved(way.back(_multiplied(way, spectra, owner), length), shift)
        result[:, rows.sums(some) == 0] = 0.0
        return result


def _multiplied(way: Phases, spectra: Array, owner: Ints) -> Array:
    """What belongs to one owner together; owners are sorted."""
    first = np.flatnonzero(np.diff(owner, prepend=-1))
    numbers = np.diff(first, append=owner.size)
    result = spectra[:, first]
    for j in range(1, int(numbers.max())):
        more = numbers > j
        result[:, more] = way.times(result[:, more], spectra[:, first[more] + j])
    return result
