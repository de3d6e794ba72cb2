"""Mixtures: one of several mechanisms for the same query, chosen by a public coin before the data is looked at.

Imaging goes through a mixture: moving its values onto a constraint is the mixture of the moved parts (TV Thm 16, part
1). Conditioning does not: it would weigh the parts by the data.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property, reduce
from math import lcm
from operator import and_
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt

from holdfast.arguments import Number, Refused, positive, whole
from holdfast.constraints import Constraint, System
from holdfast.mechanism.checking import chosen_stream, drawn_from
from holdfast.mechanism.mechanism import DATA_DEPENDENT, Mechanism
from holdfast.mechanism.processed import Promising
from holdfast.mechanism.published.error_bars import ErrorBars
from holdfast.mechanism.release import Release
from holdfast.noise.draws.comparison import Comparison, FiniteLaw
from holdfast.noise.spread import Spread
from holdfast.privacy import Differences, Guarantee, Promise
from holdfast.privacy.invariants import NO_MOVE, published, sharing
from holdfast.privacy.mixing import mixed
from holdfast.queries import Moves, Query
from holdfast.randomness import Stream


@dataclass(frozen=True, eq=False, repr=False)
class Mixture(Promising):
    """One of several mechanisms, chosen with fixed public probabilities. Made by `mixture`.

    Args:
        parts: the mechanisms.
        weights: their probabilities.

    Example:
        >>> import holdfast as hf
        >>> from holdfast.mechanism import mixture
        >>> cells = hf.histogram(2)
        >>> mixture([hf.laplace(cells, epsilon=1), hf.laplace(cells, epsilon=2)], [0.5, 0.5]).guarantee.epsilon
        2.0
    """

    parts: tuple[Mechanism, ...]
    weights: tuple[Fraction, ...]

    def __repr__(self) -> str:
        listed = ", ".join(f"{weight}: {part!r}" for weight, part in zip(self.weights, self.parts, strict=True))
        return f"<Mixture of {listed}>"

    @property
    def query(self) -> Query:
        return self.parts[0].query

    def onto(self, constraint: Constraint, **how: Any) -> Mixture:
        """Belief update: every part is moved onto the constraint, as `Mechanism.onto` says."""
        return replace(self, parts=tuple(part.onto(constraint, **how) for part in self.parts))

    def given(self, *_constraint: object, **_how: Any) -> NoReturn:
        """Belief revision would weigh the parts by the data; refused."""
        raise Refused("given() on a mixture would weigh its parts by the data: condition each part, then mix them")

    @cached_property
    def promise(self) -> Promise:
        """Every statement that holds (TV Thm 16, part 2; with exact figures SDP §2.3).

        Where parts publish exact figures: for data that share those of *all* parts, since it is not known beforehand
        which are published; and for all neighbours about what none of the figures fixes, where all parts say so.
        """
        for part in self.parts:
            _ = part.guarantee  # refused with its own reason
        if self.held is None or not self.held.invariants.count:
            return Promise((mixed([_for_all(part) for part in self.parts]),))
        return Promise.of([*self._sharing(self.held), *self._subspace(self.held)], NO_MOVE)

    @cached_property
    def held(self) -> System | None:
        asked = [part.asked for part in self.parts if part.asked is not None]
        if not asked:
            return None
        distinct = list({id(each): each for each in asked}.values())
        return reduce(and_, distinct).system(self.query.n)

    def statement_about(self, moves: Moves, **words: Any) -> Guarantee:
        """What it promises for changes that keep the equalities of all parts."""
        return mixed([part.statement_about(moves, **words) for part in self.parts])

    def _sharing(self, held: System) -> list[Guarantee]:
        if held.branches:
            raise Refused("no statement is known for a union beside exact figures: drop one of them")
        relations = {part.base.neighbours for part in self.parts}
        if len(relations) > 1:
            raise Refused("the parts of a mixture with exact figures must be for the same neighbours")

        def state(differences: Any, **words: Any) -> Guarantee:
            return mixed([_about(part, differences, words) for part in self.parts])

        return sharing(self.parts[0].base, held, state)

    def _subspace(self, held: System) -> list[Guarantee]:
        """The worst of the parts' statements about all neighbours, for what the figures of all of them leave open."""
        composed = [
            next((each for each in part.guarantees if each.scope != "invariant-sharing" and not each.void), None)
            for part in self.parts
        ]
        statements = [each for each in composed if each is not None]
        if len(statements) < len(composed) or all(each.scope == "all" for each in statements):
            return []
        if held.null_space().is_zero:
            return []
        return [replace(mixed(statements), unprotected=published(held, self.query))]

    @property
    def method(self) -> str:
        return "mixture of " + " and ".join(dict.fromkeys(part.method for part in self.parts))

    def noise(self, size: int, rng: Stream | None = None) -> npt.NDArray[Any]:
        """Draw the noise, (size, n), from `rng`, where its law does not depend on the data; refused otherwise."""
        return self._drawn(size, rng, lambda part, count, stream: part.noise(count, stream))

    def simulate(self, truth: npt.ArrayLike, size: int, rng: Stream | None = None) -> npt.NDArray[Any]:
        """The values of `size` independent releases of `truth` by `rng`, (size, n); they promise nothing."""
        return self._drawn(size, rng, lambda part, count, stream: part.simulate(truth, count, stream))

    def standard_error(self) -> npt.NDArray[np.float64]:
        """Standard error of every output over the coin and the noise; refused where it depends on the data."""
        spread = self._spread()
        if spread is None:
            raise Refused(DATA_DEPENDENT)
        return spread.standard_errors

    def release(self, truth: npt.ArrayLike, rng: Stream | None = None) -> Release:
        """Release one table of `truth` by one part; refused when no statement holds. `rng=None`: the secure stream."""
        statements = (self.guarantee, *self.guarantees[1:])
        for part in self.parts:
            part.checked(truth)  # refused whatever the coin says
        stream = chosen_stream(rng)
        chosen = self.parts[int(self._coin.draw(1, stream)[0])]
        made = chosen.release(truth, stream)
        shown = (made.values, drawn_from(stream, statements), self.query, self.method)
        return Release(*shown, self._error_bars, made.measurements, ties=made.ties)

    @cached_property
    def _coin(self) -> Comparison:
        common = lcm(*(weight.denominator for weight in self.weights))
        return Comparison.of(FiniteLaw([Fraction(0)] * len(self.parts), [int(w * common) for w in self.weights]))

    def _drawn(self, size: int, rng: Stream | None, draw: Any) -> npt.NDArray[Any]:
        stream = chosen_stream(rng)
        which = self._coin.draw(whole("size", size, at_least=1), stream)
        drawn = [(which == k, part) for k, part in enumerate(self.parts)]
        values = [(mine, draw(part, int(mine.sum()), stream)) for mine, part in drawn if mine.any()]
        result = np.empty((which.size, self.query.n), dtype=np.result_type(*(drawn for _, drawn in values)))
        for mine, drawn in values:
            result[mine] = drawn
        return result

    def _error_bars(self, values: npt.NDArray[Any], draw: npt.NDArray[Any] | None) -> ErrorBars:
        """Those of the values alone: which part made them is not told."""
        del draw
        unlimited = np.full(len(values), np.inf)
        return ErrorBars(values, self._spread(), -unlimited, unlimited, whole=False)

    def _spread(self) -> Spread | None:
        """Errors over coin and noise: variances average; a quantile is at most the farthest one of the parts."""
        parts = [part.unit_spread() for part in self.parts]
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


def _about(part: Mechanism, differences: Differences, words: dict[str, Any]) -> Guarantee:
    """A part's statement about some changes, or about all neighbours where all of them keep the figures."""
    if not isinstance(differences, Moves) and words.get("scope") == "all" and part.guarantee.scope == "all":
        return replace(part.guarantee, unprotected=words["unprotected"])
    return part.statement_for(differences, **words)


def _for_all(part: Mechanism) -> Guarantee:
    """The best statement about all neighbours, or the best one where the part makes none."""
    return next((each for each in part.guarantees if each.scope == "all" and not each.void), part.guarantee)


def mixture(mechanisms: Iterable[Mechanism], weights: Sequence[Number]) -> Mixture:
    """One of several mechanisms for one query, chosen with these fixed probabilities, before the data is looked at.

    Args:
        mechanisms: the parts.
        weights: their probabilities, which sum to 1.

    Law:
        Σ a_i·(law of part i).
    Guarantee:
        The largest of the parts' (TV Thm 16); where parts publish exact figures, for data that share those of all parts
        (SDP §2.3).

    Example:
        >>> import holdfast as hf
        >>> cells = hf.histogram(2)
        >>> mixed = mixture([hf.laplace(cells, epsilon=1), hf.laplace(cells, epsilon=2)], [0.75, 0.25])
        >>> mixed.guarantee.epsilon
        2.0
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
