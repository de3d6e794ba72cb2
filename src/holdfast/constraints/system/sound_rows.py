"""Equality rows in a form on which arithmetic in doubles is safe.

Two whole rows may be almost parallel, as (1, −20000, 2) and (1, −19999, 2) are: what they have in common then drowns
what they say apart, and a projection computed from them is wrong in its first digits. The rows T·A, T whole with
determinant ±1, have the same null space; lattice reduction (LLL) chooses them short and nearly orthogonal, exactly.
Rows that are far from parallel stay as they are, and sparse.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import flint
import numpy as np
from scipy import sparse

from holdfast.arguments import LARGEST, Refused
from holdfast.arrays import Array, Floats, Ints
from holdfast.rooms import csgraph
from holdfast.rooms import sparse_linalg as linalg

#: Rows of length 1 are reduced where the least eigenvalue of their products seems to be below this: doubles then lose
#: more than three digits. FEW rows are reduced sooner, since that takes no time.
NEARLY_PARALLEL, FEW_PARALLEL, FEW = 1e-6, 1e-2, 40
#: Below this, after all reduction, doubles do not tell the rows from dependent ones.
HOPELESS = 1e-13
#: Rows that hang together and are reduced; this many take about three seconds.
MOST_REDUCED = 400
#: Steps of inverse iteration that estimate the least eigenvalue.
STEPS = 4
#: Weights are rounded to this many parts of the least one before rows are reduced in their norm.
WEIGHT_STEPS = 1 << 20

TOO_CLOSE = (
    "these equalities are too nearly parallel for doubles, and too many or too large to be reduced first "
    f"(at most {MOST_REDUCED} that hang together are): write them as sums and differences with small whole coefficients"
)


@dataclass(frozen=True, eq=False)
class SoundRows:
    """The rows `rows` = T·A, with the projection x − ΣAᵀ(AΣAᵀ)⁻¹A x for Σ = diag(root²), made once.

    `unit` holds the rows, columns times `root`, each divided by its length (`lengths`). `changes` lists (positions, T)
    for the blocks of rows that were reduced; the other rows are those of A.
    """

    rows: sparse.csr_array
    root: Floats | None
    unit: sparse.csr_array
    lengths: Floats
    solve: Callable[[Floats], Floats]
    changes: tuple[tuple[Ints, Any], ...] = ()

    @classmethod
    def of(cls, A: sparse.csr_array, root: Floats | None = None, *, trusted: bool = False) -> SoundRows:
        """Prepare independent whole rows; `trusted` rows are known to be far from parallel and stay as they are."""
        first = cls._made(A, root)
        if trusted and first is not None:
            return first
        if first is not None and first._least() >= (FEW_PARALLEL if A.shape[0] <= FEW else NEARLY_PARALLEL):
            return first
        blocks = list(_blocks(A))
        changes, pieces = [], []
        for block in blocks:
            part = sparse.csr_array(A[block])
            found = _reduced(part, root) if 1 < len(block) <= MOST_REDUCED else None
            pieces.append(part if found is None else found[0])
            if found is not None:
                changes.append((block, found[1]))
        back = np.argsort(np.concatenate(blocks), kind="stable")
        stacked = sparse.csr_array(sparse.csr_array(sparse.vstack(pieces, format="csr"))[back])
        second = cls._made(stacked, root, tuple(changes))
        if second is None or second._least() < HOPELESS:
            raise Refused(TOO_CLOSE)
        return second

    @classmethod
    def _made(
        cls, rows: sparse.csr_array, root: Floats | None, changes: tuple[tuple[Ints, Any], ...] = ()
    ) -> SoundRows | None:
        """Scale and factorise; None where the products are singular in doubles."""
        unit, lengths = unit_rows(rows, root)
        try:
            solve = _solver(unit)
        except RuntimeError:  # SuperLU: "Factor is exactly singular"
            return None
        return cls(rows, root, unit, lengths, solve, changes)

    def _least(self) -> float:
        """Estimate the least eigenvalue of the products of the unit rows, by inverse iteration from a fixed start."""
        rank = int(self.unit.shape[0])
        vector = np.cos(np.arange(rank) * 2.399963)  # no pattern of rows is orthogonal to such a start
        size = 1.0
        for _ in range(STEPS):
            vector = vector / float(np.linalg.norm(vector))
            vector = self.solve(vector)
            size = float(np.linalg.norm(vector))
            if not np.isfinite(size) or size == 0:
                return 0.0
        return 1.0 / size

    def project(self, values: Floats) -> Floats:
        """Return x − ΣAᵀ(AΣAᵀ)⁻¹A x for a vector (n,) or each column of (n, m)."""
        wide = None if self.root is None else self.root.reshape((-1,) + (1,) * (values.ndim - 1))
        moved = values if wide is None else values / wide
        for _ in range(2):  # the second pass removes the first one's rounding error
            moved = moved - self.unit.T @ self.solve(self.unit @ moved)
        return moved if wide is None else moved * wide

    def correction(self, residuals: Floats) -> Floats:
        """Return ΣAᵀ(AΣAᵀ)⁻¹ r for residuals r (rank, m) of `rows`: the least change, in the norm of Σ⁻¹."""
        target = residuals / self.lengths[:, None]
        change = self.unit.T @ self.solve(target)
        change = change + self.unit.T @ self.solve(target - self.unit @ change)
        return np.asarray(change if self.root is None else self.root[:, None] * change)

    def sides(self, b: Any) -> Array:
        """Return T b, exactly: the right-hand sides of `rows` where b are those of A."""
        given = np.asarray(b)
        if not self.changes:
            return given
        result = given.astype(object)
        for positions, change in self.changes:
            mine = [Fraction(value) for value in given[positions].tolist()]
            for place, line in zip(positions.tolist(), change.tolist(), strict=True):
                result[place] = sum((int(t) * value for t, value in zip(line, mine, strict=True)), Fraction(0))
        return result


def unit_rows(A: sparse.csr_array, root: Floats | None = None) -> tuple[sparse.csr_array, Floats]:
    """Return A (columns times root) with every row divided by its length, and the lengths."""
    scaled = A.astype(np.float64)
    if root is not None:
        scaled = scaled @ sparse.diags_array(root, format="csr")
    lengths = np.asarray(linalg.norm(scaled, axis=1), dtype=np.float64)
    return sparse.csr_array(sparse.diags_array(1.0 / lengths, format="csr") @ scaled), lengths


def _solver(A: sparse.csr_array) -> Callable[[Floats], Floats]:
    """Return the solution operator of A Aᵀ for independent rows A of length 1."""
    gram = sparse.csc_array(A @ A.T)
    gram.eliminate_zeros()
    if gram.nnz == gram.shape[0]:
        diagonal = gram.diagonal()
        return lambda right: right / diagonal.reshape((-1,) + (1,) * (right.ndim - 1))
    return linalg.splu(gram, permc_spec="MMD_AT_PLUS_A", options={"SymmetricMode": True}).solve


def _blocks(A: sparse.csr_array) -> Iterator[Ints]:
    """Yield the rows that hang together through common columns, block by block."""
    graph: Any = sparse.block_array([[None, A], [A.T, None]], format="csr")
    _, found = csgraph.connected_components(graph, directed=False)
    label = found[: A.shape[0]]
    order = np.argsort(label, kind="stable")
    yield from np.split(order, np.flatnonzero(np.diff(label[order])) + 1)


def _reduced(part: sparse.csr_array, root: Floats | None) -> tuple[sparse.csr_array, Any] | None:
    """Return T·A and T for one block, short and nearly orthogonal in the norm of the weights; None beyond 64 bits."""
    columns = np.unique(part.indices)
    whole = flint.fmpz_mat(part[:, columns].toarray().tolist())
    if root is None:
        short, change = whole.lll(True)
    else:
        mine = root[columns]
        weights = [max(1, round(value)) for value in (mine / mine.min() * WEIGHT_STEPS).tolist()]
        heavy = [[int(x) * w for x, w in zip(line, weights, strict=True)] for line in whole.tolist()]
        change = flint.fmpz_mat(heavy).lll(True)[1]
        short = change * whole
    lines = [[int(x) for x in line] for line in short.tolist()]
    if any(abs(x) >= LARGEST for line in lines for x in line):
        return None
    dense = np.array(lines, dtype=np.int64)
    places = np.nonzero(dense)
    found = sparse.csr_array((dense[places], (places[0], columns[places[1]])), shape=part.shape)
    return found, change
