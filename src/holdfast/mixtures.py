"""Mixtures: one of several mechanisms for the same query, chosen by a public coin before the data is looked at.

Imaging goes through a mixture: moving its values onto a constraint is the mixture of the moved parts (TV Thm 16, part
1). Conditioning does not: it would weigh the parts by the data.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt
from flint import arb

from holdfast.arguments import Refused, positive, whole
from holdfast.constraints import Constraint
from holdfast.mechanism import DATA_DEPENDENT, NOT_SECRET, Mechanism, chosen_stream
from holdfast.noise.comparison import Comparison
from holdfast.noise.precision import ball
from holdfast.noise.spread import Spread
from holdfast.privacy import Guarantee
from holdfast.privacy.mixing import mixed
from holdfast.processed import Processed, then
from holdfast.published import Release
from holdfast.queries import Query
from holdfast.randomness import Stream


@dataclass(frozen=True, eq=False)
class Shares:
    """Cumulative probabilities of the parts."""

    weights: tuple[Fraction, ...]

    @property
    def size(self) -> int:
        """Number of parts."""
        return len(self.weights)

    def at(self, k: int) -> arb:
        """Enclose the probability of the first k parts."""
        return ball(sum(self.weights[:k], Fraction(0)))

    def run(self) -> Iterator[arb]:
        """Enclose the cumulative probabilities in turn, without the last."""
        return (self.at(k) for k in range(1, self.size))


@dataclass(frozen=True, eq=False, repr=False)
class Mixture:
    """One of several mechanisms, chosen with fixed public probabilities. Made by `mixture`."""

    parts: tuple[Mechanism, ...]
    weights: tuple[Fraction, ...]

    def __repr__(self) -> str:
        listed = ", ".join(f"{weight}: {part!r}" for weight, part in zip(self.weights, self.parts, strict=True))
        return f"<Mixture of {listed}>"

    @property
    def query(self) -> Query:
        """What is asked."""
        return self.parts[0].query

    def onto(self, constraint: Constraint, **how: Any) -> Mixture:
        """Belief update: every part is moved onto the constraint, as `Mechanism.onto` says."""
        return replace(self, parts=tuple(part.onto(constraint, **how) for part in self.parts))

    def then(self, function: Callable[[npt.NDArray[Any]], Any], name: str) -> Processed:
        """Post-processing: release function(values) instead of the values, as `Mechanism.then` says."""
        return then(self, function, name)

    def given(self, *_constraint: Any, **_how: Any) -> NoReturn:
        """Belief revision would weigh the parts by the data; refused."""
        raise Refused("given() on a mixture would weigh its parts by the data: condition each part, then mix them")

    @cached_property
    def guarantee(self) -> Guarantee:
        """The largest numbers of the parts (TV Thm 16, part 2)."""
        return mixed([_for_all(part) for part in self.parts])

    @property
    def guarantees(self) -> tuple[Guarantee, ...]:
        """The one statement that is made."""
        return (self.guarantee,)

    @property
    def method(self) -> str:
        """The names of the ways in use."""
        return "mixture of " + " and ".join(dict.fromkeys(part.method for part in self.parts))

    def noise(self, size: int, rng: Stream | None = None) -> npt.NDArray[Any]:
        """Draw the noise, (size, n), where its law does not depend on the data; refused otherwise."""
        return self._drawn(size, rng, lambda part, count, stream: part.noise(count, stream))

    def simulate(self, truth: Any, size: int, rng: Stream | None = None) -> npt.NDArray[Any]:
        """The values of `size` independent releases of this truth, (size, n); they promise nothing."""
        return self._drawn(size, rng, lambda part, count, stream: part.simulate(truth, count, stream))

    def standard_error(self) -> npt.NDArray[np.float64]:
        """Standard error of every output over the coin and the noise; refused where it depends on the data."""
        found = self._spread()
        if found is None:
            raise Refused(DATA_DEPENDENT)
        return found.standard_errors

    def release(self, truth: Any, rng: Stream | None = None) -> Release:
        """Release one table by one part. `rng=None` draws from the secure stream; refused when no statement holds."""
        statement = self.guarantee
        stream = chosen_stream(rng)
        chosen = self.parts[int(self._coin.draw(1, stream)[0])]
        made = chosen.release(truth, stream)
        if stream.reproducible:
            statement = replace(statement, caveats=(*statement.caveats, NOT_SECRET))
        return Release(made.values, (statement,), self.query, self.method, self._spread, made.measurements)

    @cached_property
    def _coin(self) -> Comparison:
        return Comparison.of(Shares(self.weights))

    def _drawn(self, size: int, rng: Stream | None, draw: Any) -> npt.NDArray[Any]:
        stream = chosen_stream(rng)
        which = self._coin.draw(whole("size", size, at_least=1), stream)
        drawn = [(which == k, part) for k, part in enumerate(self.parts)]
        values = [(mine, draw(part, int(mine.sum()), stream)) for mine, part in drawn if mine.any()]
        result = np.empty((which.size, self.query.n), dtype=np.result_type(*(found for _, found in values)))
        for mine, found in values:
            result[mine] = found
        return result

    def _spread(self) -> Spread | None:
        """Errors over coin and noise: variances average; a quantile is at most the farthest one of the parts."""
        parts = [part._unit_spread() for part in self.parts]
        known = [part for part in parts if part is not None]
        if len(known) < len(parts):
            return None
        shares = [float(weight) for weight in self.weights]

        def variance_of(weights: npt.NDArray[np.float64]) -> float:
            return sum(share * part.variance_of(weights) for share, part in zip(shares, known, strict=True))

        def quantiles(p: float) -> npt.NDArray[Any]:
            farthest = np.max if p >= 0.5 else np.min
            return np.asarray(farthest([part.quantiles(p) for part in known], axis=0))

        squares = sum(s * part.standard_errors**2 for s, part in zip(shares, known, strict=True))
        return Spread(np.sqrt(squares), variance_of, quantiles, measured=any(part.measured for part in known))


def _for_all(part: Mechanism) -> Guarantee:
    """The best statement about all neighbours; refused where the part makes none."""
    _ = part.guarantee
    return next((each for each in part.guarantees if each.scope == "all" and not each.void), part.guarantee)


def mixture(mechanisms: Iterable[Mechanism], weights: Sequence[Any]) -> Mixture:
    """One of several mechanisms for one query, chosen with these fixed probabilities, before the data is looked at.

    Law: Σ a_i·(law of part i). Guarantee: the largest of the parts' (TV Thm 16).
    """
    parts = tuple(mechanisms)
    if not parts or not all(isinstance(part, Mechanism) for part in parts):
        raise Refused("mechanisms must be a list of mechanisms, made by laplace(), gaussian() and the verbs")
    if any(part.query is not parts[0].query for part in parts):
        raise Refused("the parts of a mixture must ask the same query: pass one and the same query to all of them")
    chances = tuple(positive("a weight", weight) for weight in weights)
    if len(chances) != len(parts) or sum(chances) != 1:
        raise Refused(
            f"weights must be {len(parts)} numbers above 0 that sum to exactly 1; use fractions where floats do not"
        )
    return Mixture(parts, chances)
