"""The law of each output's noise on a hierarchy: what comes from below times what comes from above.

Used for standard errors and quantiles, so doubles are enough: all terms are positive, windows leave out less than
1e-80 of the mass, and rounding stays near 1e-13. Draws do not use this file.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from holdfast.noise import IntegerLaplace
from holdfast.noise.precision import working_precision
from holdfast.trees.forest import Ints
from holdfast.trees.message import Message
from holdfast.trees.revision import BITS, Part, Revision

Reals = npt.NDArray[np.float64]

#: Values this far below the largest are left out: they do not show in a double, and tiny doubles are slow.
NEGLIGIBLE = 1e-80


@dataclass(frozen=True, eq=False)
class Window:
    """Values in doubles on low, low+1, …"""

    low: int
    values: Reals

    @classmethod
    def of(cls, message: Message) -> Window:
        """The middles of a message's balls, where they are not negligible."""
        values = np.array([float(value.mid()) for value in message.values])
        kept = np.flatnonzero(values >= values.max() * NEGLIGIBLE)
        return cls(message.low + int(kept[0]), values[kept[0] : kept[-1] + 1] / values.max())

    def __mul__(self, other: Window) -> Window:
        values = np.convolve(self.values, other.values)
        kept = np.flatnonzero(values >= values.max() * NEGLIGIBLE)
        return Window(self.low + other.low + int(kept[0]), values[kept[0] : kept[-1] + 1] / values.max())

    def on(self, first: int, count: int) -> Reals:
        """The values on first, …, first+count−1; 0 beyond the window."""
        result = np.zeros(count)
        start, stop = max(first, self.low), min(first + count, self.low + self.values.size)
        if start < stop:
            result[start - first : stop - first] = self.values[start - self.low : stop - self.low]
        return result


@dataclass(frozen=True, eq=False)
class Marginal:
    """Some outputs that share one law: probabilities on low, low+1, …"""

    outputs: Ints
    low: int
    probabilities: Reals

    @property
    def variance(self) -> float:
        """The variance of the noise."""
        places = self.low + np.arange(self.probabilities.size)
        mean = float(places @ self.probabilities)
        return float((places - mean) ** 2 @ self.probabilities)

    def quantile(self, p: float) -> int:
        """The smallest place whose cumulative probability reaches p."""
        reached = np.cumsum(self.probabilities) >= p - 1e-12
        return self.low + (int(np.argmax(reached)) if reached.any() else self.probabilities.size - 1)


def marginals(revision: Revision) -> list[Marginal]:
    """Return the law of every output's noise, alike leaves together."""
    found: list[Marginal] = []
    with working_precision(BITS):
        revision.upward()
        forest = revision.forest
        exact = np.flatnonzero(forest.exact)
        if exact.size:
            found.append(Marginal(exact, 0, np.ones(1)))
        for v in forest.downward:
            if forest.exact[v]:
                _below(revision, v, Window(0, np.ones(1)), found)
            elif forest.parents[v] < 0:
                own = Window.of(revision.message(v))
                found.append(_normalised(np.array([v]), own.low, own.values))
                if not forest.is_leaf[v]:
                    _below(revision, v, None, found)
    return found


def _below(revision: Revision, v: int, above: Window | None, found: list[Marginal]) -> None:
    """Visit everything under v, down to exact outputs. `above` is O_v; None: 1 everywhere."""
    stack: list[tuple[int, Window | None]] = [(v, above)]
    while stack:
        node, outside = stack.pop()
        parts = revision.parts_of(node)
        windows = [Window.of(revision.part_message(part)) for part in parts]
        known: dict[object, Window] = {}  # parts of one kind have alike siblings
        for i, (part, kind) in enumerate(zip(parts, revision.part_kinds_of(node), strict=True)):
            member = Window.of(revision.block(part.leaf, 1)) if part.leaf is not None else windows[i]
            if kind not in known:
                known[kind] = _seen(revision, node, outside, _siblings(revision, parts, windows, i), member)
            seen = known[kind]
            found.append(_normalised(part.members, member.low, member.values * seen.values))
            if part.leaf is None:
                stack.append((int(part.members[0]), seen))


def _siblings(revision: Revision, parts: list[Part], windows: list[Window], i: int) -> Window:
    result = Window(0, np.ones(1))
    for k, window in enumerate(windows):
        if k != i:
            result = result * window
    leaf, count = parts[i].leaf, parts[i].members.size
    if leaf is not None and count > 1:
        result = result * Window.of(revision.block(leaf, count - 1))
    return result


def _seen(revision: Revision, v: int, outside: Window | None, siblings: Window, member: Window) -> Window:
    """O(u) = Σ_r S(r)·w_v(u+r)·O_v(u+r), on the member's window."""
    first = member.low + siblings.low
    count = member.values.size + siblings.values.size - 1
    places = first + np.arange(count)
    law = revision.law_of(v)
    own = np.ones(count)
    if isinstance(law, IntegerLaplace):
        own = np.exp(-np.abs(places) / float(law.scale))
    elif law is not None:
        own = np.exp(-(places.astype(np.float64) ** 2) / (2 * float(law.sigma2)))
    if outside is not None:
        own = own * outside.on(first, count)
    low, high = revision.bounds_of(v)
    own[(places < (low if low is not None else first)) | (places > (high if high is not None else places[-1]))] = 0.0
    own[own < own.max() * NEGLIGIBLE] = 0.0
    values = np.correlate(own, siblings.values, mode="valid")
    return Window(member.low, values / values.max())


def _normalised(outputs: Ints, low: int, values: Reals) -> Marginal:
    return Marginal(outputs, low, values / values.sum())
