"""How many units are exchanged when k independent integer Laplace values are conditioned on their sum s.

Each value is a difference a_i − b_i of two geometric counts. Given Σ(a_i − b_i) = s ≥ 0, the total j = Σb_i has weight
C(k+j−1, j)·C(k+s+j−1, s+j)·α^{2j} with α = e^{−1/λ}, and the a_i and b_i are then uniform compositions of s+j and j
(THEORY H3); s < 0 is the mirror image. This file draws j exactly.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache

import numpy as np
import numpy.typing as npt
from flint import arb, ctx, fmpq

from holdfast.noise.draws.comparison import Comparison
from holdfast.noise.precision import ball
from holdfast.randomness import Stream
from holdfast.trees.totals.compositions import uniform_compositions


@dataclass(frozen=True, eq=False)
class Exchanged:
    """The law of j, in the order mode, mode+1, mode−1, mode+2, … so that likely values come first."""

    parts: int
    scale: Fraction
    surplus: int = 0
    _tables: dict[int, tuple[list[arb], arb]] = field(default_factory=dict, repr=False)

    @property
    def size(self) -> int | None:
        """None: there are infinitely many values."""
        return None

    @property
    def mode(self) -> int:
        """A value near the mode; any value would be right, this one keeps tables short."""
        square = math.exp(-2 / float(self.scale))
        k, s = self.parts, self.surplus
        # w_{j+1} ≥ w_j while (k+j)(k+s+j)·α² ≥ (j+1)(s+j+1): the larger root of a quadratic in j.
        a, b, c = 1 - square, s + 2 - square * (2 * k + s), s + 1 - square * k * (k + s)
        root = (-b + math.sqrt(max(0.0, b * b - 4 * a * c))) / (2 * a)
        return max(0, int(root))

    def value(self, symbols: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Turn places in the order into values of j."""
        mode = self.mode
        zigzag = np.where(symbols % 2 == 1, mode + (symbols + 1) // 2, mode - symbols // 2)
        return np.where(symbols > 2 * mode, symbols, zigzag)

    def at(self, k: int) -> arb:
        """Enclose the probability of the first k values of the order."""
        sums, total = self._table()
        if k == 0:
            return arb(0)
        if k <= len(sums):
            return sums[k - 1] / total
        return (sums[-1] / total).union(arb(1))

    def run(self) -> Iterator[arb]:
        """Enclose the cumulative probabilities in turn; past the table they are only known to be near 1."""
        sums, total = self._table()
        for partial in sums:
            yield partial / total
        while True:
            yield (sums[-1] / total).union(arb(1))

    def total(self) -> arb:
        """Enclose the sum of all weights."""
        k, mode, s = self.parts, self.mode, self.surplus
        largest = ball(math.comb(k + mode - 1, mode) * math.comb(k + s + mode - 1, s + mode))
        return largest * ball(-2 * mode / self.scale).exp() * self._table()[1]

    def _table(self) -> tuple[list[arb], arb]:
        """Partial sums of weights relative to the mode, and a ball around the sum of all weights."""
        bits = int(ctx.prec)
        if bits not in self._tables:
            self._tables[bits] = self._summed(bits)
        return self._tables[bits]

    def _summed(self, bits: int) -> tuple[list[arb], arb]:
        k, mode, s = self.parts, self.mode, self.surplus
        alpha = (-1 / ball(self.scale)).exp()
        small = arb(2) ** -(bits + 8)
        up = [arb(1)]
        while True:  # upwards: the ratio of weights falls, so a geometric series bounds the rest
            j = mode + len(up) - 1
            ratio = arb(fmpq((k + j) * (k + s + j), (j + 1) * (s + j + 1))) * alpha**2
            following = up[-1] * ratio
            if ratio < arb(1) and following / (1 - ratio) < small:
                rest_up = following / (1 - ratio)
                break
            up.append(following)
        down: list[arb] = []
        last, rest_down = arb(1), arb(0)
        while mode - len(down) > 0:  # downwards: the ratio falls as well
            j = mode - len(down)
            ratio = arb(fmpq(j * (s + j), (k + j - 1) * (k + s + j - 1))) / alpha**2
            last = last * ratio
            if ratio < arb(1) and last / (1 - ratio) < small:
                rest_down = last / (1 - ratio)
                break
            down.append(last)
        sums, running = [], arb(0)
        for step in range(2 * max(len(up), len(down)) + 1):
            above = step % 2 == 1 or step == 0
            index = (step + 1) // 2 if above else step // 2 - 1
            if step > 2 * mode:
                above, index = True, step - mode
            weights = up if above else down
            if index >= len(weights):
                break  # the order leaves the table here; later partial sums are known by the rest alone
            running = running + weights[index]
            sums.append(running)
        everything = arb(0)
        for weight in (*up, *down):
            everything = everything + weight
        return sums, everything + (rest_up + rest_down).union(arb(0))


@lru_cache(maxsize=4096)
def exchanged(parts: int, scale: Fraction, surplus: int = 0, bits: int = 64) -> Comparison:
    """The law of j, ready to be drawn from."""
    return Comparison.of(Exchanged(parts, scale, surplus), bits)


def draw_exchanged(parts: int, scale: Fraction, count: int, stream: Stream, surplus: int = 0) -> npt.NDArray[np.int64]:
    """Draw the exchanged totals of `count` independent groups with one and the same sum."""
    comparison = exchanged(parts, scale, surplus)
    law = comparison.cumulative
    assert isinstance(law, Exchanged)
    return law.value(comparison.draw(count, stream))


def spread_evenly(totals: npt.NDArray[np.int64], parts: int, scale: Fraction, stream: Stream) -> npt.NDArray[np.int64]:
    """Draw `parts` integer Laplace values given each of the totals, (size, parts); exact (THEORY H3)."""
    exchanged_totals = np.empty_like(totals)
    sizes = np.abs(totals)
    for surplus in np.unique(sizes).tolist():
        chosen = sizes == surplus
        exchanged_totals[chosen] = draw_exchanged(parts, scale, int(chosen.sum()), stream, surplus)
    values = uniform_compositions(sizes + exchanged_totals, parts, stream)
    values -= uniform_compositions(exchanged_totals, parts, stream)
    values[totals < 0] *= -1
    return values


def exchanged_probabilities(parts: int, scale: Fraction) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]:
    """Values of j and their probabilities in doubles, for moments (mass outside is below 2**-60)."""
    alpha = math.exp(-1 / float(scale))
    mode = Exchanged(parts, scale).mode
    spread = math.sqrt((mode + 1) * (parts + mode)) / math.sqrt(parts) + 1 / max(1e-300, 1 - alpha)
    reach = int(12 * spread) + 64
    j = np.arange(max(0, mode - reach), mode + reach + 1)
    steps = 2 * (np.log1p((parts - 1) / (j[:-1] + 1.0)) - 1 / float(scale))
    logs = np.concatenate([[0.0], np.cumsum(steps)])
    weights = np.exp(logs - logs.max())
    return j, weights / weights.sum()
