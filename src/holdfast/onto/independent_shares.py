"""Independent groups of outputs, each moved by the way that suits it, on all processors."""

from __future__ import annotations

import math
import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Protocol

import numpy as np

from holdfast.arrays import Array, Floats, Ints
from holdfast.evidence import Evidence
from holdfast.noise import Independent
from holdfast.noise.spread import Spread, joined_spread
from holdfast.onto.problem import Problem, Ties
from holdfast.trees.shape.ties import tie_hash


@dataclass(frozen=True, eq=False)
class Answer:
    """A moved table (n,) with its evidence."""

    values: Ints | Floats
    evidence: Evidence


class Way(Protocol):
    """One way to find the nearest point.

    `certified(problem, noisy, right, coin)`, where it has it, moves one table and measures what it shows for it; a way
    without it is a formula for the nearest point, unless it says `NEAREST = False`.
    """

    @property
    def __name__(self) -> str:
        """Its name; a module's is that of its file."""

    def accepts(self, problem: Problem) -> bool:
        """Whether this way finds the nearest point for this problem."""

    def image(self, problem: Problem, noisy: Array, right: Array, ties: Ties = None) -> Array:
        """Move noisy values, (size, n); `right` holds the right-hand sides of `problem.space.rows`."""

    def spread(self, problem: Problem, law: Independent) -> Spread | None:
        """Errors known before data is seen; None where they depend on the data."""


@dataclass(frozen=True, eq=False)
class Share:
    """Outputs that no row connects with the others: their problem, its rows' numbers, and the way that moves them."""

    outputs: Ints
    problem: Problem
    rows: Ints
    way: Way


@dataclass(frozen=True, eq=False)
class Plan:
    """A way made of ways: one for each share of the outputs."""

    shares: tuple[Share, ...]

    @property
    def __name__(self) -> str:
        return ", ".join(sorted({share.way.__name__.rsplit(".", 1)[-1] for share in self.shares}))

    def accepts(self, problem: Problem) -> bool:
        return problem.n == sum(share.outputs.size for share in self.shares)

    def image(self, problem: Problem, noisy: Array, right: Array, ties: Ties = None) -> Array:
        """Move all shares; which thread moves which does not matter."""
        result = np.empty(noisy.shape, dtype=np.int64 if problem.integer else np.float64)

        def one(share: Share) -> None:
            part = np.ascontiguousarray(noisy[:, share.outputs])
            mine = None if ties is None else ties ^ _mark(share)
            result[:, share.outputs] = share.way.image(share.problem, part, right[share.rows], mine)

        self._each(one)
        return result

    def certified(self, problem: Problem, noisy: Array, right: Array, coin: int = 0) -> Answer:
        """Move one table, (n,); the evidence is that of all shares together."""
        values: Array = np.empty(problem.n, dtype=np.int64 if problem.integer else np.float64)

        def one(share: Share) -> Evidence:
            mine = coin ^ int(_mark(share))
            found = certified(share.way, share.problem, noisy[share.outputs], right[share.rows], mine)
            values[share.outputs] = found.values
            return found.evidence

        return Answer(values, Evidence.joined(self._each(one)))

    def spread(self, problem: Problem, law: Independent) -> Spread | None:
        parts = [share.way.spread(share.problem, law.at(share.outputs)) for share in self.shares]
        return joined_spread(problem.n, [share.outputs for share in self.shares], parts)

    def _each(self, action: Any) -> list[Any]:
        threads = min(len(self.shares), os.cpu_count() or 1)
        first = action(self.shares[0])  # what alike shares have in common is prepared once
        with ThreadPoolExecutor(threads) as pool:
            return [first, *pool.map(action, self.shares[1:])]


def _mark(share: Share) -> np.uint64:
    """A hash by which shares have coins of their own, so that alike ones do not all decide alike."""
    return np.uint64(tie_hash(share.outputs[0]))


def certified(way: Way, problem: Problem, noisy: Array, right: Array, coin: int = 0) -> Answer:
    """Move one table, (n,), with the evidence of its way. `coin` decides ties."""
    own: Any = getattr(way, "certified", None)
    if own is not None:
        found: Answer = own(problem, noisy, right, coin)
        return found
    ties = np.array([coin], dtype=np.uint64)
    grid = Fraction(1) if problem.integer else None
    nearest = bool(getattr(way, "NEAREST", True))
    gap = 0.0 if nearest else math.inf
    evidence = Evidence(gap=gap, grid=grid, exact=problem.integer, nearest=nearest)
    return Answer(way.image(problem, noisy[None, :], right, ties)[0], evidence)
