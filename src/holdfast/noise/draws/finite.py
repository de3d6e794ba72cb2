"""A law on finitely many things of known weight, for exact draws by `Comparison`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

from flint import arb, ctx

from holdfast.noise.precision import ball


@dataclass(frozen=True, eq=False)
class FiniteLaw:
    """Classes of `counts` things each, all things of a class with the weight e^{−exponent}; *law:* on the classes."""

    exponents: Sequence[Fraction]
    counts: Sequence[int]
    _sums: dict[int, list[arb]] = field(default_factory=dict, repr=False)

    @property
    def size(self) -> int | None:
        """Number of classes."""
        return len(self.exponents)

    def at(self, k: int) -> arb:
        """Enclose the probability of the first k classes."""
        sums = self._partial()
        return arb(0) if k == 0 else arb(1) if k == len(sums) else sums[k - 1] / sums[-1]

    def run(self) -> Iterator[arb]:
        """Enclose the cumulative probabilities in turn, without the last."""
        sums = self._partial()
        for partial in sums[:-1]:
            yield partial / sums[-1]

    def _partial(self) -> list[arb]:
        bits = int(ctx.prec)
        if bits not in self._sums:
            least = min(self.exponents)
            running, sums = arb(0), []
            for exponent, count in zip(self.exponents, self.counts, strict=True):
                running = running + count * (-ball(exponent - least)).exp()
                sums.append(running)
            self._sums[bits] = sums
        return self._sums[bits]
