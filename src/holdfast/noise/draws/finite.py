"""Laws on finitely many things of known weight, for exact draws by `Comparison`."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate

from flint import arb, ctx

from holdfast.arrays import Owner, kept
from holdfast.noise.precision import ball


class Weighed(Owner):
    """A law on finitely many classes, by the weights of all of them."""

    @abstractmethod
    def weights(self) -> Iterable[arb]:
        """Enclose the weight of each class at the working precision."""

    @property
    def size(self) -> int | None:
        """Number of classes."""
        return len(self._sums(int(ctx.prec)))

    def total(self) -> arb:
        """Enclose the weight of all classes together."""
        return self._sums(int(ctx.prec))[-1]

    def at(self, k: int) -> arb:
        """Enclose the probability of the first k classes."""
        sums = self._sums(int(ctx.prec))
        return arb(0) if k == 0 else arb(1) if k == len(sums) else sums[k - 1] / sums[-1]

    def run(self) -> Iterator[arb]:
        """Enclose the cumulative probabilities in turn, without the last."""
        sums = self._sums(int(ctx.prec))
        return (partial / sums[-1] for partial in sums[:-1])

    @kept
    def _sums(self, _bits: int) -> list[arb]:
        return list(accumulate(self.weights()))


@dataclass(frozen=True, eq=False)
class FiniteLaw(Weighed):
    """Classes of `counts` things each, all things of a class with the weight e^{−exponent}; *law:* on the classes."""

    exponents: Sequence[Fraction]
    counts: Sequence[int]

    def weights(self) -> Iterable[arb]:
        """Weights as parts of that of the likeliest thing."""
        least = min(self.exponents)
        return (n * (-ball(exponent - least)).exp() for exponent, n in zip(self.exponents, self.counts, strict=True))
