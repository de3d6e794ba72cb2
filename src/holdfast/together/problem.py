"""The measurements of all sources as one problem, what its answer's errors are made of, and what contradicts it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property

import numpy as np
from scipy import sparse

from holdfast.arguments import Refused
from holdfast.arrays import Floats, Ints
from holdfast.noise.error_model import FINE_BLUR
from holdfast.noise.inversion import Sums
from holdfast.noise.spread import study_size
from holdfast.randomness import seeded
from holdfast.release.certificate.comparing import chebyshev, reach
from holdfast.release.storage.tables import in_unit
from holdfast.rooms import special
from holdfast.together.joint import ROUNDS, Joint
from holdfast.together.measured import Measured
from holdfast.together.universe import Universe

#: How often contradictions are seen where there are none, and how many are listed.
FALSE_ALARM, LISTED = 0.01, 10
#: Simulated releases behind the level of the χ² of noise that is not Gaussian, and numbers that are solved at once.
SIMULATED, AT_ONCE = 1_000, 1 << 22
#: Entries of a matrix that is kept for all figures.
MOST_DENSE = 1 << 24
#: Standard errors below this share of the largest are those of exact figures.
EXACT = 1e-6


@dataclass(frozen=True, eq=False)
class Problem:
    """Sources, in steps of their figure, and the universe of their rows."""

    universe: Universe
    sources: tuple[Measured, ...]
    unit: Fraction = Fraction(1)

    @classmethod
    def of(cls, universe: Universe, sources: tuple[Measured, ...], unit: Fraction) -> Problem:
        """The problem of these sources; precisions that are not those of their laws get a scale.

        The one at which the variances of the source's own best estimate and of its noise agree in sum.
        """
        found = cls(universe, sources)
        scaled = []
        for each, single in zip(sources, found.singles, strict=True):
            times = 1.0
            if not each.best:
                times = single.joint.variances[0][single.places[0]].sum() / (each.spread.standard_errors**2).sum()
            scaled.append(replace(each, precision=each.precision * times))
        return cls(universe, tuple(scaled), unit)

    @cached_property
    def singles(self) -> list[Problem]:
        """Every source by itself, about the same figures."""
        rows = self.universe.rows
        return [
            Problem(replace(self.universe, rows=rows[number : number + 1]), (each,))
            for number, each in enumerate(self.sources)
        ]

    @cached_property
    def places(self) -> list[Ints]:
        """For every output of each source its number among the figures."""
        return [rows[: each.outputs] for rows, each in zip(self.universe.rows, self.sources, strict=True)]

    @cached_property
    def joint(self) -> Joint:
        """Precisions and equalities of all sources together."""
        n, precision, equal = self.universe.n, sparse.csc_array((self.universe.n,) * 2), [self.universe.sums]
        for each, at in zip(self.sources, self.places, strict=True):
            spot = sparse.csr_array((np.ones(at.size), (np.arange(at.size), at)), shape=(at.size, n))
            precision = precision + spot.T @ each.precision @ spot
            equal.append(each.equal @ spot)
        return Joint(sparse.csc_array(precision), sparse.csr_array(sparse.vstack(equal, format="csr")))

    @cached_property
    def right(self) -> Floats:
        return np.concatenate([np.zeros(self.universe.sums.shape[0]), *(each.right for each in self.sources)])

    @cached_property
    def estimate(self) -> tuple[Floats, float]:
        """The figures, and Σ (y − z)ᵀ W (y − z); refused where exact figures contradict each other."""
        (figures,), (left,) = self.solved([each.answers[None] for each in self.sources], self.right, ROUNDS)
        for row in self.joint.contradicted(figures, self.right)[:1]:
            used = self.joint.A.indices[slice(*self.joint.A.indptr[row : row + 2])]
            raise Refused(
                f"exact figures contradict each other: no table has all of them, look at {self.name(used[0])}; their "
                "sources do not count the same records in the same way"
            )
        return figures, float(left)

    def solved(self, answers: Sequence[Floats], right: Floats, rounds: int = 0) -> tuple[Floats, Floats]:
        """Figures (size, n) for answers (size, n) of each source, and the sums of squares that are left."""
        pull = np.zeros((self.universe.n, len(answers[0])))
        for each, at, mine in zip(self.sources, self.places, answers, strict=True):
            np.add.at(pull, at, each.precision @ mine.T)
        found = self.joint.solve(pull, np.repeat(right[:, None], len(answers[0]), axis=1), rounds).T
        left = np.zeros(len(found))
        for each, at, mine in zip(self.sources, self.places, answers, strict=True):
            off = mine - found[:, at]
            left += ((each.precision @ off.T).T * off).sum(axis=1)
        return found, left

    def drawn(self, size: int) -> Iterator[list[Floats]]:
        """Simulated errors of the answers of each source, some at a time."""
        stream = seeded(0)
        for some in np.array_split(np.arange(size), max(1, size * self.universe.n // AT_ONCE)):
            yield [np.asarray(each.noise(some.size, stream), dtype=np.float64) for each in self.sources]

    @cached_property
    def errors(self) -> Floats:
        """Simulated errors of the named figures, (size, named)."""
        named, size = self.universe.named, study_size(self.universe.n) or SIMULATED
        if self.universe.n * named > MOST_DENSE:
            still = np.zeros_like(self.right)
            return np.concatenate([self.solved(each, still)[0][:, :named] for each in self.drawn(size)])
        columns = np.concatenate([found for _, found in self.joint.columns(np.arange(named))], axis=1)
        gains = [each.precision @ columns[at] for each, at in zip(self.sources, self.places, strict=True)]
        pairs = (zip(drawn, gains, strict=True) for drawn in self.drawn(size))
        return np.concatenate([sum(errors @ gain for errors, gain in each) for each in pairs])

    def weights(self, asked: Floats) -> list[Floats]:
        """What the errors of each source count in that of a sum of figures."""
        column = self.joint.solve(asked[:, None], np.zeros((self.right.size, 1)))[:, 0]
        return [each.precision @ column[at] for each, at in zip(self.sources, self.places, strict=True)]

    def variance(self, asked: Floats) -> float:
        """The variance of the error of a sum, from the laws of all noise."""
        pairs = zip(self.sources, self.weights(asked), strict=True)
        return sum(max(each.spread.variance_of(weights), 0.0) for each, weights in pairs)

    @cached_property
    def standard_errors(self) -> Floats:
        """Those of the named figures."""
        named = self.universe.named
        if all(each.best for each in self.sources):
            found = np.sqrt(self.joint.variances[0][:named])
        else:
            found = np.sqrt([self.variance(row) for row in np.eye(named, self.universe.n)])
        return np.where(found > EXACT * found.max(initial=0.0), found, 0.0)

    def reach(self, asked: Floats, tail: float, *others: tuple[Problem, Floats]) -> float:
        """How far the error of a sum reaches, from the law of all noise; measured where that is too much work."""
        both = [(self, asked), *others]
        parts = [pair for one, sums in both for pair in zip(one.sources, one.weights(sums), strict=True)]
        parts = [(each, weights) for each, weights in parts if weights.any()]
        error = math.sqrt(sum(max(each.spread.variance_of(weights), 0.0) for each, weights in parts))
        laws = [(each.spread.characteristic, weights) for each, weights in parts]
        fine = all(each.spread.model is not None and each.spread.model.kind == "moved" for each, _ in parts)
        found = None
        if all(law is not None for law, _ in laws):
            finer = [(replace(law, blur=FINE_BLUR if fine else law.blur), u) for law, u in laws if law is not None]
            sums = Sums(finer, error)
            found = sums.least_reach(tail)
            found = sums.wide_reach(tail) if found is None else found
        if found is None and not others:
            found = reach(self.errors @ asked[: self.universe.named], tail)
        return error * chebyshev(tail) if found is None else found

    def agreement(self) -> tuple[float, float, float]:
        """χ² of what sources differ by, what noise alone makes of it on average, and how often it is as large then."""
        singles = self.singles
        left = self.estimate[1] - sum(each.estimate[1] for each in singles)
        freedom = sum(each.joint.variances[1] for each in singles) - self.joint.variances[1]
        if freedom < 0.5:  # no figure in common
            return 0.0, 0.0, 1.0
        if all(each.gaussian for each in self.sources):
            return left, freedom, float(special.gammaincc(freedom / 2, max(left, 0.0) / 2))
        still = [np.zeros_like(each.right) for each in (self, *singles)]
        counted, above = 0, 0
        for drawn in self.drawn(SIMULATED):
            both = self.solved(drawn, still[0])[1]
            for number, each in enumerate(singles):
                both = both - each.solved(drawn[number : number + 1], still[number + 1])[1]
            counted, above = counted + both.size, above + int((both >= left).sum())
        return left, freedom, (above + 1) / (counted + 1)

    def contradictions(self) -> list[str]:
        """Figures of which a source's own estimate differs from that of the others by more than noise explains.

        The worst first; each is tested at FALSE_ALARM over the number of all comparisons.
        """
        found, compared, named, count = [], 0, self.universe.named, len(self.sources)
        for number in range(count if count > 2 else 1):
            own, rest = self.singles[number], self._without(number)
            spread = np.sqrt(own.joint.variances[0] + rest.joint.variances[0])[:named]
            both = np.flatnonzero(
                np.isfinite(spread) & (spread > EXACT * np.max(spread[np.isfinite(spread)], initial=0.0))
            )
            apart = np.abs(own.estimate[0] - rest.estimate[0])[both]
            compared += both.size
            found += [(float(size), int(at), own, rest) for size, at in zip(apart / spread[both], both, strict=True)]
        worst, tail = sorted(found, key=lambda each: -each[0])[:LISTED], FALSE_ALARM / 2 / max(compared, 1)
        return [text for _, at, own, rest in worst if (text := self._contradicted(at, own, rest, tail))]

    def _without(self, number: int) -> Problem:
        if len(self.sources) == 2:
            return self.singles[1 - number]
        left = [each for each in range(len(self.sources)) if each != number]
        rows = tuple(self.universe.rows[each] for each in left)
        return Problem(replace(self.universe, rows=rows), tuple(self.sources[each] for each in left))

    def _contradicted(self, at: int, own: Problem, rest: Problem, tail: float) -> str | None:
        asked = np.eye(1, self.universe.n, at)[0]
        one, other = (float(asked @ each.estimate[0]) for each in (own, rest))
        far = own.reach(asked, tail, (rest, asked))
        if abs(one - other) <= far:
            return None
        others = rest.sources[0].who if len(rest.sources) == 1 else "the others"
        return (
            f"{self.name(at)}: {in_unit(one, self.unit):,.6g} by {own.sources[0].who} and "
            f"{in_unit(other, self.unit):,.6g} by {others}, where noise explains {in_unit(far, self.unit):,.3g}"
        )

    def name(self, number: int) -> str:
        """A figure in words."""
        pairs = zip(self.universe.dimensions, self.universe.keys[number], strict=True)
        return ", ".join(" / ".join(each.paths[node]) for each, node in pairs if node) or "the total"
