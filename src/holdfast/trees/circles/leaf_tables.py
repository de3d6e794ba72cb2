"""Kinds of leaves under one tilt: tables of their weights, with transforms, moments and bounds of tails."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy import fft

from holdfast.arguments import LARGEST
from holdfast.arrays import Array, Floats, Ints
from holdfast.trees.circles.weights import Weight, by_law, product

#: A weight inside its bounds is nowhere 0.
TINY = 1e-290
#: Leaves' weights below e^−FAR of their largest one do not enter transforms, and bounds that lie there are looked at
#: last; so small are coefficients of a transform that are left out.
FAR = 40.0
#: A row that takes a rest more rarely than this is tilted until it does so more readily.
POOR = 0.02
#: Stands for the logarithm of a sum that is infinite.
ENDLESS = 1e30
#: Sums of tilted weights that are smaller may have lost terms that are no doubles.
LEAST = 1e-250


class Kinds(NamedTuple):
    """Kinds of leaves under one tilt: law, bounds (∓2**62: none, or far), and the window of their weights."""

    law: Ints
    low: Ints
    high: Ints
    first: Ints
    last: Ints


def kinds_of(
    weights: Sequence[Weight], tilt: float, law: Ints, low: Ints, high: Ints, need: float
) -> tuple[Kinds, Ints]:
    """Tell leaves apart under a tilt: the kinds, and the kind of every leaf."""
    first, last = np.empty(low.size), np.empty(low.size)
    for weight, mine in by_law(weights, law):
        first[mine], last[mine] = weight.window(tilt, low[mine], high[mine], need)
    near_low = np.where(first <= low, low, -LARGEST)
    near_high = np.where(last >= high, high, LARGEST)
    codes, size = np.zeros(low.size, dtype=np.int64), 1
    for values, none in ((near_low, -LARGEST), (near_high, LARGEST), (law, -1)):
        some = values != none
        if some.any():
            least, most = int(values[some].min()), int(values[some].max())
            codes = codes * (most - least + 2) + np.where(some, values - least + 1, 0)
            size *= most - least + 2
    if size <= max(4 * low.size, 1 << 16):
        used = np.zeros(size, dtype=np.int64)
        used[codes] = np.arange(low.size) + 1  # some leaf of each kind
        where = np.flatnonzero(used)
        member = used[where] - 1
        used[where] = np.arange(where.size)
        kind = used[codes]
    else:
        _, member, kind = np.unique(codes, return_index=True, return_inverse=True)
    ends = first[member].astype(np.int64), last[member].astype(np.int64)
    return Kinds(law[member], near_low[member], near_high[member], *ends), kind


class LeafTable:
    """Weights of kinds of leaves under one tilt, each summing to 1, with their transforms and moments."""

    def __init__(self, weights: Sequence[Weight], kinds: Kinds, tilt: float) -> None:
        self.tilt, self.kinds, self.size = tilt, kinds, kinds.law.size
        self.first, self.last = int(kinds.first.min()), int(kinds.last.max())
        places = np.arange(self.first, self.last + 1)
        logs = np.empty((self.size, places.size))
        self.steps = np.empty((2, self.size))
        for weight, mine in by_law(weights, kinds.law):
            logs[mine] = weight.log(places)
            self.steps[0, mine] = weight.steps(places[:1])[0] - tilt
            self.steps[1, mine] = weight.steps(places[-1:])[1] + tilt
        logs += tilt * (places - self.first)
        free = np.stack([kinds.low <= -LARGEST, kinds.high >= LARGEST])
        bounded = ~free.all()
        outside = (places < kinds.low[:, None]) | (places > kinds.high[:, None]) if bounded else None
        if outside is not None:
            logs[outside] = -np.inf
        self.peak = logs.max(axis=1)
        self.values = np.exp(logs - self.peak[:, None])
        np.maximum(self.values, TINY, out=self.values)
        if outside is not None:
            self.values[outside] = 0.0
        self.whole = self.values.sum(axis=1)
        self.values /= self.whole[:, None]
        self.mean = self.values @ places
        self.variance = np.maximum(self.values @ np.square(places, dtype=np.float64) - self.mean**2, 1e-12)
        self.roughness = np.sqrt(np.square(self.values).sum(axis=1))
        self.ends = np.where(free, self.values[:, [0, -1]].T, 0.0)
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            beyond = np.where(free, self.ends * np.exp(self.steps) / -np.expm1(self.steps), 0.0)
        self.tail = np.where(beyond >= 0, beyond, np.inf).sum(axis=0)
        self._logs: dict[int, Array] = {}

    def logs(self, length: int) -> Array:
        """Logarithms of the transforms on a circle, (kinds, frequencies)."""
        if length not in self._logs:
            width = self.values.shape[1]
            around = np.zeros((self.size, -(-width // length) * length))
            around[:, :width] = self.values
            around = around.reshape(self.size, -1, length).sum(axis=1)
            values = fft.rfft(around, axis=1)
            faint = np.abs(values) < 1e-150
            values[faint] = 1e-150
            self._logs[length] = np.log(values)
        return self._logs[length]

    def cumulants(self, slopes: Floats) -> Floats:
        """Bounds on log E e^{±s(X − mean)} for slopes s, (2, kinds, slopes): minus signs first."""
        places = np.arange(self.first, self.last + 1)
        result = np.empty((2, self.size, slopes.size))
        for side, sign in enumerate((-1, 1)):
            moved = sign * slopes * (places[:, None] - places[-1 if sign > 0 else 0])
            inside = product(self.values, np.exp(moved))
            falls = self.steps[side][:, None] + slopes
            with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
                series = self.ends[side][:, None] * np.exp(falls) / -np.expm1(falls)
            series = np.where(self.ends[side][:, None] == 0, 0.0, np.where(falls < -1e-9, series, np.inf))
            shift = slopes * (sign * (places[-1 if sign > 0 else 0] - self.mean[:, None]))
            with np.errstate(divide="ignore"):
                known = np.log((inside + series) * (1 + 1e-9)) + shift
            result[side] = np.where(inside > LEAST, known, ENDLESS)  # below, terms that count are lost
        return np.clip(result, 0.0, ENDLESS)

    def transforms(self, counts: Floats, numbers: Ints, start: Ints, length: int) -> Array:
        """Coefficients of the sums of so many leaves of each kind, on windows that begin at `start`."""
        logs = self.logs(length)
        large = np.flatnonzero(logs.real.max(axis=0) * numbers.min() > -FAR)
        size = min((int(large[-1]) // 16 + 1) * 16, logs.shape[1])
        real, imaginary = product(counts, logs.real[:, :size]), product(counts, logs.imag[:, :size])
        shift = (start - numbers * self.first) % length
        imaginary += np.outer(shift, np.arange(size)) % length * (2 * np.pi / length)
        result = np.empty(real.shape, dtype=np.complex128)
        np.exp(real, out=real)
        np.multiply(real, np.cos(imaginary), out=result.real)
        np.multiply(real, np.sin(imaginary), out=result.imag)
        return result


def rounded(tilts: Floats, variance: Floats, share: float, unit: float) -> Floats:
    """Tilts rounded so that few differ: means move by this share of a standard deviation, large tilts by an eighth."""
    finest = np.minimum(share / np.sqrt(np.maximum(variance, 1e-6)), np.maximum(np.abs(tilts), unit) / 8)
    step = 2.0 ** np.floor(np.log2(finest))
    return np.asarray(np.rint(tilts / step) * step)


def powers(rates: Floats, count: int) -> Floats:
    """e^{rate·i}, i = 0, 1, …, rows are rates; from two short tables, to some units in the last place."""
    if float(np.abs(rates).max(initial=0.0)) * (count + 16) > 600:
        return np.exp(np.clip(np.multiply.outer(rates, np.arange(count)), -700, 700))
    short = np.exp(np.multiply.outer(rates, np.arange(16)))
    long = np.exp(np.multiply.outer(rates, np.arange(0, count, 16)))
    return np.asarray((long[:, :, None] * short[:, None, :]).reshape(rates.size, -1)[:, :count])
