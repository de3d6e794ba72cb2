"""The difference set seen in N, in coordinates of the space it spans.

𝒟_N = Π_N 𝒟: the columns of Π_N W with both signs (add-remove), or their differences (replace-one); several records
multiply every norm (docs/theory/difference-sets.md, Proposition 1).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import flint
import numpy as np
from scipy import linalg, sparse

from holdfast.arguments import Refused
from holdfast.arrays import Floats
from holdfast.constraints import NullSpace, System
from holdfast.constraints.system.enclosed import NOT_PROVED
from holdfast.queries import Neighbours, Query
from holdfast.queries.columns import equal_columns

#: Numbers in the table of projected columns, and pairs of columns, that are kept at once.
MOST_ENTRIES = 3 * 10**7
MOST_PAIRS = 1 << 24
#: Directions shorter than the first part of the longest are rounding; between the two nothing is certain.
NOTHING, SOMETHING = 1e-12, 1e-6
#: Part of the width of the noise by which a projected column may be wrong in any direction; losses are raised by more.
ACCURATE = 2e-10
#: Primes modulo which the rank of whole columns is taken.
PRIMES = (2**61 - 1, 2**59 - 55)

NOTHING_OPEN = "the exact figures leave nothing open that neighbouring data can change: no noise is needed"


@dataclass(frozen=True, eq=False)
class Geometry:
    """`basis` (n, r) is orthonormal and spans 𝒟_N; `points` (r, m) are the projected columns in it.

    With `pairs`, the differences are those of two points (which are then centred); otherwise they are ± the points.
    """

    basis: Floats
    points: Floats
    pairs: bool
    records: int

    @property
    def rank(self) -> int:
        return int(self.basis.shape[1])

    @property
    def count(self) -> int:
        return int(self.points.shape[1])

    @classmethod
    def of(cls, query: Query, system: System, neighbours: Neighbours) -> Geometry:
        """Project the columns; refuse where they are unknown, too many, or nearly dependent."""
        if query.cells is None:
            raise Refused("this law needs a query with known columns: use law='gaussian' or law='laplace'")
        if query.n**2 > MOST_ENTRIES:
            raise Refused(_too_large(query.n, query.cells))
        classes = equal_columns(query.columns)
        columns = query.columns[:, np.unique(classes, return_index=True)[1]]
        n, count = columns.shape
        pairs = not neighbours.adds
        if n * count > MOST_ENTRIES or (pairs and count**2 > MOST_PAIRS):
            raise Refused(_too_large(n, count))
        space = system.null_space()
        found = space.enclosed(columns)
        images = found.values
        if pairs:
            images = images - images.mean(axis=1, keepdims=True)
        left, lengths, _ = linalg.svd(images, full_matrices=False)
        longest = lengths[0] if lengths.size else 0.0
        if longest <= NOTHING * float(abs(columns).max()):
            raise Refused(NOTHING_OPEN)
        rank = int((lengths > SOMETHING * longest).sum())
        if rank < lengths.size and lengths[rank] > NOTHING * longest:
            raise Refused("some directions of the answer are a million times shorter than others: rescale the rows")
        # No law is narrower in a direction than some difference is long there, about the shortest length over √count.
        if found.radius.max() * np.sqrt(n * count) > ACCURATE * lengths[rank - 1]:
            raise Refused(NOT_PROVED)
        most = min(space.dimension, count - pairs)
        if rank < most and columns.dtype.kind == "i" and _exact_rank(columns, space, pairs) != rank:
            raise Refused("some directions of the answer are too short for doubles: rescale the rows")
        basis = linalg.qr(space.project(left[:, :rank]), mode="economic")[0]
        return cls(np.asarray(basis), np.asarray(basis.T @ images), pairs, neighbours.records)

    def squares(self, whitened: Floats) -> Floats:
        """Return ‖·‖² of every difference whose points have these coordinates: per point, or per pair (m, m)."""
        return squares(whitened, self.pairs)


def squares(points: Floats, pairs: bool) -> Floats:
    """‖·‖² of every point (r, m), or of the difference of every two, (m, m)."""
    lengths = np.einsum("ij,ij->j", points, points)
    if not pairs:
        return lengths
    result = points.T @ points
    result *= -2
    result += lengths[:, None]
    result += lengths
    return np.maximum(result, 0.0, out=result)


def moments(points: Floats, pairs: bool, weights: Any) -> Floats:
    """Σ w_j a_j a_jᵀ over the points, or over the differences of every two of them with a table of weights (m, m)."""
    if not pairs:
        return (points * weights) @ points.T
    both = weights + weights.T
    return (points * both.sum(axis=1)) @ points.T - (both @ points.T).T @ points.T


def _too_large(n: int, count: int) -> str:
    return (
        f"this law needs a table of {n} outputs by {count} different columns, which is too large without a structure "
        "that is known: use law='gaussian' or law='laplace'"
    )


def _exact_rank(columns: Any, space: NullSpace, pairs: bool) -> int:
    """Return the rank of Π_N W (or of its differences): that of (W, Aᵀ) beyond that of A, modulo two primes."""
    whole = sparse.csc_array(columns)
    if pairs:
        whole = sparse.csc_array(whole[:, 1:] - sparse.hstack([whole[:, [0]]] * (whole.shape[1] - 1), format="csc"))
    table = sparse.hstack([whole, space.rows.T], format="csr").toarray()
    entries = [[int(value) % prime for value in table.ravel().tolist()] for prime in PRIMES]
    ranks = [flint.nmod_mat(*table.shape, values, prime).rank() for values, prime in zip(entries, PRIMES, strict=True)]
    return int(max(ranks)) - space.rank
