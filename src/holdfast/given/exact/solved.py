"""Continuous Laplace noise given few equalities, exactly: draw some numbers, solve the others, keep or draw again.

Outputs that are multiples of each other on the null space are one number, whose rates 1/λ add up. Of these numbers as
many as there are dimensions are drawn from their own Laplace laws, the narrowest first; the others follow, and all are
kept with probability e^{−Σ rate·|number|} over those that follow. A total over any scales, a 2×k table and a small
hierarchy are of this kind (docs/theory/continuous-draws.md). The law does not depend on data, nor does the work.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from holdfast.arrays import Array, Floats, Ints, kept
from holdfast.given.problem import Problem, Truth
from holdfast.noise.laplace import laplace_numbers
from holdfast.noise.spread import Spread, simulated_spread
from holdfast.randomness import Stream, seeded

#: Most outputs: the null space is held as a dense array.
MOST_OUTPUTS = 200
#: Least share of draws that are kept, and draws with which it is measured.
LEAST_SHARE, TRIED = 0.002, 4_000
#: How far the inverse of the numbers that are drawn may be from one.
MISSED = 1e-10
#: Numbers drawn at once.
BATCH = 1 << 20


def accepts(problem: Problem) -> bool:
    """Whether the law is continuous Laplace, only equalities hold, and enough draws are kept."""
    if problem.depends_on_data or problem.law.integer or problem.law.kind != "laplace":
        return False
    if problem.law.n > MOST_OUTPUTS or problem.space.is_zero:
        return False
    found = _solution(problem)
    return found is not None and found.share >= LEAST_SHARE


def draw(problem: Problem, truth: Truth, size: int, stream: Stream) -> Array:
    del truth  # the law does not depend on it
    solution = _solution(problem)
    assert solution is not None
    return solution.draw(size, stream)


def spread(problem: Problem) -> Spread:
    return simulated_spread(lambda size: draw(problem, None, size, seeded(0)))


@dataclass(frozen=True, eq=False)
class Solution:
    """Numbers with Laplace laws of these rates: `drawn` freely, `follow` solved from them; outputs are combinations."""

    drawn: Floats  # rates of the numbers that are drawn
    follow: Floats  # rates of the numbers that follow
    solve: Floats  # (follow, drawn)
    outputs: Floats  # (n, drawn)

    @cached_property
    def share(self) -> float:
        """About the share of draws that are kept; it is public."""
        numbers = self._numbers(TRIED, seeded(2))
        return float(np.exp(-self._energies(numbers)).mean())

    def _numbers(self, count: int, stream: Stream) -> Floats:
        return laplace_numbers(count, self.drawn.size, stream) / self.drawn

    def _energies(self, numbers: Floats) -> Floats:
        return np.asarray(np.abs(numbers @ self.solve.T) @ self.follow)

    def draw(self, size: int, stream: Stream) -> Floats:
        kept: list[Floats] = []
        missing, most = size, max(1, BATCH // max(1, len(self.outputs)))
        while missing > 0:
            numbers = self._numbers(min(most, 16 + math.ceil(1.2 * missing / self.share)), stream)
            good = numbers[-np.log(stream.uniforms(len(numbers))) > self._energies(numbers)]
            kept.append(good)
            missing -= len(good)
        return np.concatenate(kept)[:size] @ self.outputs.T


@kept
def _solution(problem: Problem) -> Solution | None:
    """Tie outputs together and choose what is drawn; None where some number has no law."""
    basis = problem.space.short_basis()
    if basis is None:
        return None
    rates = np.sqrt(2 / problem.law.variances)  # 0 where not measured
    keys: dict[tuple[int, ...], float] = {}
    for row, rate in zip(basis.tolist(), rates.tolist(), strict=True):
        common = math.gcd(*row)
        if common:
            lead = next(entry for entry in row if entry)
            key = tuple(entry // common * (1 if lead > 0 else -1) for entry in row)
            keys[key] = keys.get(key, 0.0) + common * rate
    numbers = np.array(list(keys), dtype=np.float64)
    order = np.argsort(-np.array(list(keys.values())), kind="stable")
    numbers, tied = numbers[order], np.array(list(keys.values()))[order]
    chosen = _independent_rows(numbers)
    if len(chosen) < basis.shape[1] or (tied[chosen] == 0).any():
        return None
    others = np.setdiff1d(np.arange(len(tied)), chosen)
    back = np.linalg.inv(numbers[chosen])
    if np.abs(numbers[chosen] @ back - np.eye(len(chosen))).max() > MISSED:
        return None
    outputs = problem.space.project(basis @ back)  # takes away what rounding left of the rows
    return Solution(tied[chosen], tied[others], numbers[others] @ back, outputs)


def _independent_rows(rows: Floats) -> Ints:
    """The first rows that span everything, by elimination."""
    chosen: list[int] = []
    left = rows / np.abs(rows).max(axis=1, keepdims=True)
    for k in range(len(left)):
        place = int(np.argmax(np.abs(left[k])))
        if abs(left[k, place]) > 1e-9:
            chosen.append(k)
            left[k + 1 :] -= np.outer(left[k + 1 :, place] / left[k, place], left[k])
    return np.array(chosen, dtype=np.int64)
