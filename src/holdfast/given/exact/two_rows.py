"""Integer noise on a table of two rows with all margins held, and whatever else is one total of tied cells: exact.

Cells that differ by their sign only on the null space are one number t with the product of their weights, which is of
the same kind: rates 1/λ, or 1/σ², add up. What is left is a list of numbers with an exact total, within bounds: a
hierarchy of one level, drawn by its messages (THEORY §4). A 2×k table is of this kind, and so is a 2×2×k table with all
two-way margins.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from scipy import sparse

from holdfast.arguments import LARGEST, Refused
from holdfast.arrays import Array, Ints, kept
from holdfast.exact.elimination import eliminate
from holdfast.exact.lattice_bases import rational_basis
from holdfast.given.problem import Problem, Truth
from holdfast.noise.independent import LAWS, Independent
from holdfast.noise.spread import Spread, simulated_spread
from holdfast.randomness import Stream, seeded
from holdfast.trees.circles.sampler import Sampler
from holdfast.trees.shape.forest import Forest

#: Most outputs: the basis of the null space is looked at row by row.
MOST_OUTPUTS = 2_000


@dataclass(frozen=True, eq=False)
class Ties:
    """Each output is sign·t of its group; the t of all groups sum to 0. Group −1: no noise."""

    group: Ints
    sign: Ints
    law: Independent

    @classmethod
    def of(cls, problem: Problem) -> Ties | None:
        """Find the groups; None where the null space is not one total of tied outputs."""
        try:
            basis = problem.space.lattice_basis().toarray()
        except Refused:  # a lattice that is too hard to find is none of this kind
            return None
        filled = (basis != 0).any(axis=1)
        first = basis[np.arange(len(basis)), (basis != 0).argmax(axis=1)]
        turned = basis * np.sign(first)[:, None]
        rows, group = np.unique(turned[filled], axis=0, return_inverse=True)
        if len(rows) != basis.shape[1] + 1:
            return None
        total = rational_basis(eliminate(sparse.csr_array(rows.T))).toarray()
        if total.shape[1] != 1 or (np.abs(total) != np.abs(total[0, 0])).any():
            return None
        groups, signs = np.full(len(basis), -1), np.zeros(len(basis), dtype=np.int64)
        groups[filled] = group
        signs[filled] = np.sign(first[filled]) * np.sign(total[group, 0])
        return cls(groups, signs, _merged(problem.law, groups, len(rows)))

    def draw(self, low: Ints, high: Ints, size: int, stream: Stream) -> Ints:
        count = self.law.n - 1
        least, most = np.full(count + 1, -LARGEST), np.full(count + 1, LARGEST)
        tied = np.flatnonzero(self.group >= 0)
        turned = self.sign[tied] < 0
        np.maximum.at(least, self.group[tied] + 1, np.where(turned, -high[tied], low[tied]))
        np.minimum.at(most, self.group[tied] + 1, np.where(turned, -low[tied], high[tied]))
        parents = np.concatenate([[-1], np.zeros(count, dtype=np.int64)])
        forest = Forest(parents, np.arange(count + 1) == 0)
        numbers = Sampler.of(forest, self.law, least, most).draw(size, stream)[:, 1:]
        noise = np.zeros((size, self.group.size), dtype=np.int64)
        noise[:, tied] = numbers[:, self.group[tied]] * self.sign[tied]
        return noise


def _merged(law: Independent, groups: Ints, count: int) -> Independent:
    """The law of the total, which is exact, and of each group: rates add up."""
    rates = [Fraction(0)] * count
    for group, kind in zip(groups.tolist(), law.complete.tolist(), strict=True):
        if group >= 0:
            rates[group] += 1 / Fraction(law.scale_values[kind] or 1)
    known = sorted(set(rates))
    made = LAWS[law.kind, True]
    place = [0, *(known.index(rate) for rate in rates)]
    return Independent(tuple(made(1 / rate) for rate in known), np.array(place, dtype=np.int32), count + 1)


@kept
def _ties(problem: Problem) -> Ties | None:
    system, law = problem.system, problem.law
    simple = law.integer and None not in law.laws and not system.branches and not system.inequalities.count
    small = simple and law.n <= MOST_OUTPUTS and problem.space.rank > 0 and problem.space.dimension > 0
    # Without ties there is one row; ties come from rows with two entries.
    pairs = any((rows.sizes == 2).any() for rows in (system.equalities, system.invariants))
    return Ties.of(problem) if small and (pairs or problem.space.rank == 1) else None


def accepts(problem: Problem) -> bool:
    """Whether integer noise on every output is, on the null space, one total of numbers with signs."""
    return _ties(problem) is not None


def draw(problem: Problem, truth: Truth, size: int, stream: Stream) -> Array:
    """Draw noise such that truth + noise keeps the margins and bounds; exact."""
    ties = _ties(problem)
    assert ties is not None
    low, high = problem.system.integer_bounds(problem.unit)
    table = np.zeros(problem.law.n, dtype=np.int64) if truth is None else np.asarray(truth, dtype=np.int64)
    low = np.where(low > -LARGEST, low - table, -LARGEST)
    return ties.draw(low, np.where(high < LARGEST, high - table, LARGEST), size, stream)


def spread(problem: Problem) -> Spread | None:
    if problem.depends_on_data:
        return None
    return simulated_spread(lambda size: draw(problem, None, size, seeded(0)))
