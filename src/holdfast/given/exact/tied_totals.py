"""Integer noise given exact totals that share no cell, and whatever else is one total of tied cells: exact.

Cells that differ by their sign only on the null space are one number t with the product of their weights, which is of
the same kind: rates 1/λ, or 1/σ², add up. What is left are lists of numbers with exact totals, within bounds:
hierarchies of one level, drawn by their messages (THEORY §4). A 2×k table with all margins held is of this kind, and so
is a 2×2×k table with all two-way margins.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from scipy import sparse

from holdfast.arguments import LARGEST, Refused
from holdfast.arrays import Array, Floats, Ints, kept
from holdfast.exact.elimination import eliminate
from holdfast.exact.lattice_bases import rational_basis
from holdfast.given.exact.hierarchy import TreeSums
from holdfast.given.problem import Problem, Truth
from holdfast.noise.error_model import ErrorModel
from holdfast.noise.independent import LAWS, Independent
from holdfast.noise.inversion import Characteristic
from holdfast.noise.spread import Spread, simulated_spread
from holdfast.randomness import Stream, seeded
from holdfast.trees.circles.errors.marginals import Marginals
from holdfast.trees.circles.sampler import Sampler, reaches
from holdfast.trees.shape.forest import Forest

#: Most outputs of tied cells: the basis of the null space is looked at row by row.
MOST_OUTPUTS = 2_000


@dataclass(frozen=True, eq=False)
class Ties:
    """Each output is sign·t of its group, −1: no noise. `forest`, `law`: the totals, which are exact, then the t."""

    group: Ints
    sign: Ints
    forest: Forest
    law: Independent

    @classmethod
    def of(cls, law: Independent, group: Ints, sign: Ints, above: Ints) -> Ties:
        """Tie outputs together; `above` has the total of each group. Rates of one group add up."""
        rates, totals = [Fraction(0)] * above.size, int(above.max()) + 1
        for number, kind in zip(group.tolist(), law.complete.tolist(), strict=True):
            if number >= 0:
                rates[number] += 1 / Fraction(law.scale_values[kind] or 1)
        place = {rate: k for k, rate in enumerate(dict.fromkeys(rates))}
        which = np.array([*[len(place)] * totals, *(place[rate] for rate in rates)], dtype=np.int32)
        made = LAWS[law.kind, True]
        parents = np.concatenate([np.full(totals, -1), above]).astype(np.int64)
        laws = Independent((*(made(1 / rate) for rate in place), None), which, parents.size)
        return cls(group, sign, Forest(parents, np.arange(parents.size) < totals), laws)

    @property
    def place(self) -> Ints:
        """Where the number of each output stands; of one without noise, where a total does, which has none."""
        return np.where(self.group < 0, 0, self.group + self.forest.n - self.forest.is_leaf.sum())

    def summed(self, weights: Floats) -> Floats:
        """Weights of the numbers whose sum is that of weights of all outputs."""
        return np.bincount(self.place, weights * self.sign, minlength=self.forest.n).astype(np.float64)

    def sampler(self, low: Ints, high: Ints) -> Sampler:
        """The law within bounds of the noise of every output."""
        least, most = np.full(self.forest.n, -LARGEST), np.full(self.forest.n, LARGEST)
        tied = np.flatnonzero(self.group >= 0)
        turned, place = self.sign[tied] < 0, self.place[tied]
        np.maximum.at(least, place, np.where(turned, -high[tied], low[tied]))
        np.minimum.at(most, place, np.where(turned, -low[tied], high[tied]))
        return Sampler.of(self.forest, self.law, least, most)


def _totals(problem: Problem) -> Ties | None:
    """Outputs in one row each, whose entries have one size; None where there is another."""
    rows = sparse.csr_array(problem.space.rows)
    sizes, counts = np.abs(rows.data), np.diff(rows.indptr)
    if rows.nnz != problem.law.n or np.unique(rows.indices).size < rows.nnz:
        return None
    if (sizes != np.repeat(sizes[rows.indptr[:-1]], counts)).any():
        return None
    sign, above = np.empty(rows.nnz, dtype=np.int64), np.empty(rows.nnz, dtype=np.int64)
    sign[rows.indices], above[rows.indices] = np.sign(rows.data), np.repeat(np.arange(rows.shape[0]), counts)
    return Ties.of(problem.law, np.arange(rows.nnz), sign, above)


def _tied(problem: Problem) -> Ties | None:
    """One total of tied outputs; None where the null space is another."""
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
    return Ties.of(problem.law, groups, signs, np.zeros(len(rows), dtype=np.int64))


@kept
def _ties(problem: Problem) -> Ties | None:
    system, law = problem.system, problem.law
    if not law.integer or None in law.laws or system.branches or system.inequalities.count:
        return None
    if problem.space.rank == 0 or problem.space.dimension == 0:
        return None
    found = _totals(problem)
    # Ties come from rows with two entries.
    pairs = any((rows.sizes == 2).any() for rows in (system.equalities, system.invariants))
    if found is None and law.n <= MOST_OUTPUTS and (pairs or problem.space.rank == 1):
        found = _tied(problem)
    return found if found is not None and reaches(found.forest, found.law) else None


def accepts(problem: Problem) -> bool:
    """Whether integer noise on every output is, on the null space, numbers with signs and exact totals."""
    return _ties(problem) is not None


def draw(problem: Problem, truth: Truth, size: int, stream: Stream) -> Array:
    """Draw noise such that truth + noise keeps the totals and bounds; exact."""
    ties = _ties(problem)
    assert ties is not None
    sampler = _public_sampler(problem)
    if problem.depends_on_data:
        low, high = problem.system.integer_bounds(problem.unit)
        table = np.zeros(problem.law.n, dtype=np.int64) if truth is None else np.asarray(truth, dtype=np.int64)
        low = np.where(low > -LARGEST, low - table, -LARGEST)
        sampler = ties.sampler(low, np.where(high < LARGEST, high - table, LARGEST))
    return np.asarray(sampler.draw(size, stream)[:, ties.place] * ties.sign)


@kept
def _public_sampler(problem: Problem) -> Sampler:
    """The law without bounds, with its messages."""
    ties = _ties(problem)
    assert ties is not None
    free = np.full(problem.law.n, LARGEST)
    return ties.sampler(-free, free)


def spread(problem: Problem) -> Spread | None:
    """Errors where the law does not depend on the data: from the messages, simulated where cells are tied."""
    ties = _ties(problem)
    assert ties is not None
    if problem.depends_on_data:
        return None
    if np.unique(ties.place).size < problem.law.n or (ties.group < 0).any():  # readers have no law for these
        return simulated_spread(lambda size: draw(problem, None, size, seeded(0)))
    found, sums = Marginals(_public_sampler(problem)), TreeSums(ties.forest, ties.law)

    def at_leaves(weights: Floats) -> Floats:
        return np.asarray(sums.at_leaves(ties.summed(weights))[ties.place])

    characteristic = Characteristic(
        lambda weights, frequencies: found.characteristic(ties.summed(weights), frequencies),
        at_leaves,
        lambda weights, slope: sums.tilted(ties.summed(weights), slope),
    )
    model = ErrorModel("given", problem.law, lambda: problem.space.rows, problem.law.variances)
    return Spread(
        np.sqrt(found.variances)[ties.place],
        lambda weights: found.variance_of_sum(ties.summed(weights)),
        lambda p: found.quantiles(p)[ties.place],
        characteristic=characteristic,
        model=model,
    )
