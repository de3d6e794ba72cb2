"""The best linear estimate from measurements with known precision under exact equalities (LR Theorem 3).

Least squares Σ (y − z)ᵀ W (y − z) over all z with A z = b is the system [[W, Aᵀ], [A, 0]]: sparse, and the first block
of its inverse is the covariance C of the estimate, whatever is not measured. Figures that are not determined and
equalities that are said twice make it singular: it is solved with ±TINY on its diagonal, and refined without.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse

from holdfast.arrays import Bools, Floats, Ints
from holdfast.rooms import sparse_linalg

#: What makes the system regular, in units of the usual precision; rounds in which the answer is refined without it.
TINY, ROUNDS = 1e-11, 3
#: What the diagonal must be of a column's largest entry to stay where it is: the order is that of a symmetric system.
PIVOT = 1e-3
#: A figure that reacts so much to a push of all figures is not determined: others do by their variances alone.
LOOSE = 1e-4 / TINY
#: Columns that are solved at once, by how many numbers they hold.
AT_ONCE = 1 << 21
#: Exact figures may miss each other by rounding, as a share of the largest.
ROUNDED = 1e-7


@dataclass(frozen=True, eq=False)
class Joint:
    """Precision W (n, n) of the measurements, equalities A z = b."""

    W: Any
    A: Any

    @cached_property
    def _unit(self) -> float:
        own = self.W.diagonal()
        return float(np.median(own[own > 0])) if (own > 0).any() else 1.0

    @cached_property
    def _system(self) -> tuple[Any, Any]:
        n, m = self.W.shape[0], self.A.shape[0]
        true = sparse.csc_array(sparse.block_array([[self.W / self._unit, self.A.T], [self.A, None]], format="csc"))
        shift = sparse.diags_array(np.concatenate([np.full(n, TINY), np.full(m, -TINY)]))
        options: Any = {"permc_spec": "MMD_AT_PLUS_A", "diag_pivot_thresh": PIVOT, "options": {"SymmetricMode": True}}
        return true, sparse_linalg.splu(sparse.csc_array(true + shift), **options)

    def solve(self, pull: Floats, right: Floats, rounds: int = ROUNDS) -> Floats:
        """The figures (n, k) for W y = `pull` (n, k) and b = `right` (m, k)."""
        true, factors = self._system
        asked = np.concatenate([pull / self._unit, right])
        found = factors.solve(asked)
        for _ in range(rounds):
            found += factors.solve(asked - true @ found)
        return np.asarray(found[: self.W.shape[0]])

    @cached_property
    def determined(self) -> Bools:
        """Which figures the measurements and equalities determine."""
        push = np.random.default_rng(0).standard_normal((self.W.shape[0], 2))
        still = np.zeros((self.A.shape[0], 2))
        return np.asarray(
            (np.abs(self._system[1].solve(np.concatenate([push, still]))[: len(push)]) < LOOSE).all(axis=1)
        )

    def columns(self, which: Ints) -> Iterator[tuple[Ints, Floats]]:
        """Some columns of C, many at a time: their numbers, and (n, k)."""
        n, m = self.W.shape[0], self.A.shape[0]
        for some in np.array_split(which, max(1, -(-which.size * (n + m) // AT_ONCE))):
            pull = np.zeros((n, some.size))
            pull[some, np.arange(some.size)] = 1.0
            yield some, self.solve(pull, np.zeros((m, some.size)))

    @cached_property
    def variances(self) -> tuple[Floats, float]:
        """The variance of every figure, infinite where it is not determined; and tr(C W), the figures that are free."""
        found, free = np.full(self.W.shape[0], np.inf), 0.0
        for some, columns in self.columns(np.flatnonzero(self.determined)):
            found[some] = np.maximum(columns[some, np.arange(some.size)], 0.0)
            free += float(self.W[:, some].multiply(columns).sum())
        return found, free

    def contradicted(self, figures: Floats, right: Floats) -> Ints:
        """The equalities that cannot hold together with the others."""
        off = np.abs(self.A @ figures - right)
        return np.flatnonzero(off > ROUNDED * max(1.0, float(np.abs(right).max(initial=0.0))))
