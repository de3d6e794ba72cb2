"""Continuous Gaussian noise given equalities, in closed form (THEORY §2).

Law: N(0, Q(QᵀΣ⁻¹Q)⁻¹Qᵀ) on N. With every output measured the draw is U − ΣAᵀ(AΣAᵀ)⁻¹AU: means are subtracted where the
rows are margins of a cube, otherwise one sparse factorisation serves all draws. With outputs that are not measured the
precision on a dense basis Q of N is used.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from scipy import linalg, special

from holdfast.arrays import Array, Floats, Ints, compiled, kept
from holdfast.constraints import NullSpace
from holdfast.constraints.system.null_space import for_alike
from holdfast.given.problem import Problem, Truth
from holdfast.noise.draws.normals import make_normals
from holdfast.noise.error_model import ErrorModel
from holdfast.noise.spread import Spread
from holdfast.randomness import Stream
from holdfast.workers import in_threads

#: Largest number of outputs for the dense way, which holds a basis of N.
LARGEST_DENSE = 3_000
#: Numbers that one thread handles at once; they stay in its processor's cache.
BATCH = 1 << 16


def accepts(problem: Problem) -> bool:
    """Whether the law is continuous Gaussian, only equalities hold, and the conditional law is normalisable."""
    if problem.depends_on_data or problem.law.kind != "gaussian" or problem.law.integer:
        return False
    if None not in problem.law.laws:
        return True
    return problem.law.n <= LARGEST_DENSE and _dense_root(problem) is not None


def _measured(problem: Problem) -> bool:
    return None not in problem.law.laws


def _dense_root(problem: Problem) -> Floats | None:
    """F with F Fᵀ = Q(QᵀΣ⁻¹Q)⁻¹Qᵀ, or None when the unmeasured outputs leave a direction without noise law."""
    basis = problem.space.orthonormal()
    precision = basis.T @ (basis / problem.law.variances[:, None])
    values, vectors = linalg.eigh(precision)
    if values.size and values[0] <= values[-1] * 1e-12:
        return None
    return np.asarray(basis @ (vectors / np.sqrt(values)))


def draw(problem: Problem, truth: Truth, size: int, stream: Stream) -> Array:
    del truth  # the law does not depend on it
    if _measured(problem):
        return _projected(problem, size, stream)
    root = _dense_root(problem)
    assert root is not None
    return np.asarray(stream.normals(size * root.shape[1]).reshape(size, -1) @ root.T)


def _projected(problem: Problem, size: int, stream: Stream) -> Floats:
    """Independent noise, projected, by several threads; with one scale, words are made into noise where they lie."""
    n, project, alike = problem.law.n, projection(problem), problem.uniform_scale()
    words = stream.words(size * n).reshape(size, n) if alike else np.empty((0, n), dtype=np.uint64)
    noise = words.view(np.float64) if alike else problem.law.draw(size, stream)
    deviation = float(np.sqrt(problem.law.variances.max(initial=0.0)))
    rows = max(1, BATCH // max(1, n))

    def finish(part: slice) -> None:
        for start in range(part.start, part.stop, rows):
            few = slice(start, min(start + rows, part.stop))
            if alike:
                make_normals(words[few], noise[few], deviation)
            noise[few] = project(noise[few])

    in_threads(finish, size, rows)
    return np.asarray(noise)


def spread(problem: Problem) -> Spread:
    """Normal errors with the covariance of the conditional law."""
    if _measured(problem):
        variances = _conditional_variances(problem)
        prior = problem.law.variances

        def variance_of(weights: Floats) -> float:
            return float(weights @ projection(problem)((prior * weights)[None, :])[0])
    else:
        root = _dense_root(problem)
        assert root is not None
        variances = (root**2).sum(axis=1)

        def variance_of(weights: Floats) -> float:
            return float(((weights @ root) ** 2).sum())

    errors = np.sqrt(np.maximum(variances, 0.0))
    model = ErrorModel("normal", problem.law, lambda: problem.space.rows, problem.law.variances)
    return Spread(errors, variance_of, lambda p: errors * special.ndtri(p), model=model)


def _conditional_variances(problem: Problem) -> Floats:
    """diag(Σ − ΣAᵀ(AΣAᵀ)⁻¹AΣ): outputs with equal rows of Aᵀ and equal variance share one value."""
    prior, project = problem.law.variances, projection(problem)
    known = project.diagonal()
    if known is not None:
        return np.asarray(prior * known)

    def found(units: Floats, chosen: Ints) -> Floats:
        return project(np.ascontiguousarray(units.T) * prior[chosen, None])[np.arange(len(chosen)), chosen]

    return for_alike(problem.space, found, prior)


class Projection(Protocol):
    """x − ΣAᵀ(AΣAᵀ)⁻¹A x for every row x of an array, Σ the variances of the outputs."""

    def __call__(self, rows: Floats) -> Floats:
        """Project each row of (size, n); the array given may be changed."""

    def diagonal(self) -> Floats | None:
        """Π_ii for every output where it is known in closed form."""


@kept
def projection(problem: Problem) -> Projection:
    """The projection of a problem in which every output is measured, made once."""
    space = problem.space
    means = space.cube_margins is not None and problem.uniform_scale()
    return Means.of(space) if means else Factorised(space.weighted_projection(problem.law.variances))


@dataclass(frozen=True, eq=False)
class Means:
    """Subtract means over the margins of a cube. Term k has coefficient c_k and one group for each of its cells."""

    groups: Ints  # (terms, n): the cell of term k that cell i adds to
    starts: Ints  # where the cells of each term begin among all
    factors: Floats  # c_T divided by the number of cells that are averaged
    share: float  # of the dimensions that is left

    @classmethod
    def of(cls, space: NullSpace) -> Means:
        """Write the margins out as terms of inclusion and exclusion."""
        assert space.cube_margins is not None
        shape, keep = space.cube_margins
        cells = np.unravel_index(np.arange(space.n), shape)
        groups: list[Ints] = []
        sizes: list[int] = []
        factors: list[float] = []
        for axes, factor in _signed_sum([frozenset(margin) for margin in keep]).items():
            group = np.zeros(space.n, dtype=np.int64)
            for axis in sorted(axes):
                group = group * shape[axis] + cells[axis]
            size = int(group.max(initial=0)) + 1
            groups.append(group + sum(sizes))
            sizes.append(size)
            factors.append(factor * size / space.n)
        starts = np.cumsum([0, *sizes])
        return cls(np.stack(groups), starts, np.array(factors), space.dimension / space.n)

    def __call__(self, rows: Floats) -> Floats:
        _subtract_means(self.groups, self.starts, self.factors, rows)
        return rows

    def diagonal(self) -> Floats:
        return np.full(self.groups.shape[1], self.share)  # the same for every cell, by symmetry


def _signed_sum(margins: list[frozenset[int]]) -> dict[frozenset[int], int]:
    """The projection on the sum of the margins' spaces as a signed sum of those of their intersections.

    P_S P_T = P_{S∩T}, all commute, and 1 − ∏(1 − P_S) is the projection on the sum.
    """
    left: dict[frozenset[int], int] = {}
    for margin in margins:
        found = dict(left)
        found[margin] = found.get(margin, 0) + 1
        for axes, factor in left.items():
            both = axes & margin
            found[both] = found.get(both, 0) - factor
        left = {axes: factor for axes, factor in found.items() if factor}
    return left


@compiled
def _subtract_means(groups: Any, starts: Any, factors: Any, rows: Any) -> None:  # pragma: no cover (compiled)
    terms, n = groups.shape
    totals = np.empty(starts[-1])
    for r in range(rows.shape[0]):
        totals[:] = 0.0
        for k in range(terms):
            for i in range(n):
                totals[groups[k, i]] += rows[r, i]
            for place in range(starts[k], starts[k + 1]):
                totals[place] *= factors[k]
        for k in range(terms):
            for i in range(n):
                rows[r, i] -= totals[groups[k, i]]


@dataclass(frozen=True, eq=False)
class Factorised:
    """A sparse factorisation of AΣAᵀ, kept over draws."""

    project: Callable[[Any], Floats]

    def __call__(self, rows: Floats) -> Floats:
        return np.ascontiguousarray(self.project(rows.T).T)

    def diagonal(self) -> None:
        """Not known in closed form."""
