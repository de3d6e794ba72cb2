"""The null space N of equality rows: projections, membership, whole-number projections, lattice bases."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from scipy import sparse

from holdfast.arguments import LARGEST, Refused, reals
from holdfast.arrays import Array, Bools, Floats, Ints, Owner
from holdfast.constraints.system.enclosed import EXACT, Enclosed, Encloser
from holdfast.constraints.system.rows import TOLERANCE, products
from holdfast.constraints.system.sound_rows import SoundRows
from holdfast.domains.breadth_first import breadth_first
from holdfast.domains.hierarchy import Hierarchy
from holdfast.domains.intervals import output_parents
from holdfast.exact.elimination import Elimination, eliminate, peels
from holdfast.exact.lattice_bases import lattice_basis, margin_basis, path_basis, rational_basis, reduced_basis
from holdfast.rooms import linalg

#: Columns handled at a time where a dense copy is needed.
_BLOCK = 256
#: Entries of unit vectors that are held at once.
_WORK = 1 << 22

TOO_MANY_SUMS = "so many figures in areas are moved by onto with consistent, and no other way: ask for fewer figures"
#: Rows with entries below this cannot be so nearly parallel that the rounding of one right-hand side matters.
LARGE = 1000


@dataclass(frozen=True, eq=False)
class TreeShape:
    """The rows are exactly the consistency of a tree with so many categories per node."""

    tree: Hierarchy
    by: int

    def is_of(self, tree: Hierarchy) -> bool:
        return tree is self.tree or np.array_equal(tree.parents, self.tree.parents)

    @cached_property
    def outputs(self) -> Ints:
        """The parents of the outputs, −1 at roots."""
        return output_parents(self.tree.parents, self.by)

    @cached_property
    def passed(self) -> tuple[Ints, Ints, Ints, Ints, int]:
        """What `breadth_first` tells of the outputs: the tree knows it where they are its nodes."""
        tree = self.tree
        if self.by > 1:
            return breadth_first(self.outputs)
        return tree.child_start, tree.children, tree.order, tree.depth, tree.n


@dataclass(frozen=True, eq=False)
class NullSpace(Owner):
    """The vectors v in Rⁿ with A v = 0, for independent whole-number rows A (`rows`).

    `cube_margins` is (shape, keep) when the rows are exactly those margins of a cube's cells, otherwise None.
    Projections are computed in doubles, from rows that are reduced first where they are nearly parallel (`sound`).
    Whoever derives a guarantee from one asks for `enclosed`, which bounds every error.
    """

    n: int
    rows: sparse.csr_array
    cube_margins: tuple[tuple[int, ...], tuple[tuple[int, ...], ...]] | None = None
    tree: TreeShape | None = None

    @classmethod
    def of(cls, A: sparse.csr_array) -> NullSpace:
        """Return the null space of whole-number rows, independent or not."""
        if peels(A):
            return cls(int(A.shape[1]), A)
        found = eliminate(A)
        rows = A if found.rank == A.shape[0] else sparse.csr_array(A[found.independent])
        result = cls(int(A.shape[1]), rows)
        result.__dict__["_elimination"] = found
        return result

    def __getstate__(self) -> dict[str, Any]:
        return {item.name: getattr(self, item.name) for item in fields(self)}  # factorisations cannot travel

    @property
    def rank(self) -> int:
        return int(self.rows.shape[0])

    @property
    def dimension(self) -> int:
        return self.n - self.rank

    @property
    def is_zero(self) -> bool:
        return self.rank == self.n

    @cached_property
    def _elimination(self) -> Elimination:
        return eliminate(self.rows)

    @cached_property
    def _lattice(self) -> sparse.csc_array:
        if self.cube_margins is not None:
            return margin_basis(*self.cube_margins)
        if self.tree is not None:
            tree, by = self.tree.tree, self.tree.by
            paths = path_basis(tree.parents, tree.leaves, by)
            if paths is not None:
                return paths
        return lattice_basis(self._elimination)

    @cached_property
    def _basis(self) -> sparse.csc_array:
        """Some basis of N with whole entries."""
        if self.cube_margins is not None or self.tree is not None:
            return self._lattice
        return rational_basis(self._elimination)

    def lattice_basis(self) -> sparse.csc_array:
        """Return whole vectors (n, dimension) that make every whole vector of N in exactly one way."""
        return self._lattice

    @cached_property
    def sound(self) -> SoundRows:
        """Rows with the same null space on which doubles can be trusted; refused where there are none."""
        return SoundRows.of(self.rows, trusted=self._trusted)

    @cached_property
    def _large(self) -> bool:
        return max(-int(self.rows.data.min(initial=0)), int(self.rows.data.max(initial=0))) >= LARGE

    @property
    def _trusted(self) -> bool:
        return self.tree is not None or self.cube_margins is not None

    def sound_for(self, variances: Any) -> SoundRows:
        """Return such rows in the norm of Σ⁻¹, Σ = diag(variances)."""
        spread = reals("variances", variances, (self.n,))
        bad = np.flatnonzero(spread <= 0)
        if bad.size:
            raise Refused(f"variances must be above 0, but the entry at position {bad[0]} is not")
        if (spread == spread[0]).all():
            return self.sound
        return SoundRows.of(self.rows, np.sqrt(spread), trusted=self._trusted)

    @cached_property
    def _encloser(self) -> Encloser:
        return Encloser(self.sound)

    def enclosed(self, columns: Any) -> Enclosed:
        """Return Π_N of each column of (n, m) with proved bounds of the error of every entry."""
        values = self._columns(columns)
        if values.ndim == 1:
            values = values[:, None]
        if np.abs(values).max(initial=0.0) >= EXACT:
            raise Refused(f"columns must stay below 2**53 in size to be projected, found {np.abs(values).max():.3g}")
        if self.rank == 0 or values.size == 0:
            return Enclosed(values, np.zeros_like(values))
        if self.is_zero:
            return Enclosed(np.zeros_like(values), np.zeros_like(values))
        return self._encloser.project(values)

    def orthonormal(self) -> Floats:
        """Return an orthonormal basis of N, dense, (n, dimension)."""
        if self.rank == 0:
            return np.eye(self.n)
        unit = self.sound.unit.toarray()
        return np.asarray(linalg.qr(unit.T)[0][:, self.rank :], dtype=np.float64)

    def short_basis(self) -> Ints | None:
        """Return whole vectors (n, dimension) that span N, dense; reduced where they are long, None beyond 64 bits."""
        try:
            found: Ints = self._basis.toarray()
            if np.abs(found).max(initial=0) < LARGE:
                return found
        except Refused:
            pass
        return reduced_basis(self.sound.rows)

    def _columns(self, columns: Any) -> Floats:
        stored: bool = sparse.issparse(columns)
        dense = columns.toarray() if stored else columns
        values = reals("columns", dense)
        if values.ndim not in (1, 2) or values.shape[0] != self.n:
            raise Refused(f"columns must have shape ({self.n},) or ({self.n}, m), found shape {values.shape}")
        return values

    def project(self, columns: Any) -> Floats:
        """Return the orthogonal projection Π_N of a vector (n,) or of each column of (n, m)."""
        values = self._columns(columns)
        if self.rank == 0 or values.size == 0:
            return values
        if self.is_zero:
            return np.zeros_like(values)
        return self.sound.project(values)

    def project_weighted(self, columns: Any, variances: Any) -> Floats:
        """Return x − ΣAᵀ(AΣAᵀ)⁻¹A x for Σ = diag(variances): the nearest point of N in the norm of Σ⁻¹."""
        return self.weighted_projection(variances)(columns)

    def weighted_projection(self, variances: Any) -> Callable[[Any], Floats]:
        """Return `project_weighted` for these variances, with its factorisation made once."""
        if self.rank == 0:
            return self._columns
        if self.is_zero:
            return lambda columns: np.zeros_like(self._columns(columns))
        made = self.sound_for(variances)

        def projected(columns: Any) -> Floats:
            values = self._columns(columns)
            return values if values.size == 0 else made.project(values)

        return projected

    def sides_of(self, values: Array) -> Array:
        """Return A·values (n,): exactly for whole numbers, and for reals where rounding could tell rows apart."""
        if values.dtype.kind in "iu":
            return products(self.rows, values.astype(np.int64)[:, None])[:, 0]
        if not self._large:
            return np.asarray(self.rows @ values)
        exact = [Fraction(value) for value in values.tolist()]
        result = np.empty(self.rank, dtype=object)
        for i, (start, stop) in enumerate(pairwise(self.rows.indptr.tolist())):
            terms = (int(self.rows.data[k]) * exact[self.rows.indices[k]] for k in range(start, stop))
            result[i] = sum(terms, Fraction(0))
        return result

    def alike(self, *values: Floats) -> tuple[Ints, Ints]:
        """Group coordinates with equal columns of A and equal entries in each of the given arrays.

        Exchanging two of a group changes nothing. Return one coordinate of each group, and each coordinate's group.
        """
        columns = sparse.csc_array(self.rows)
        columns.sort_indices()
        keys: dict[tuple[Any, ...], int] = {}
        member = np.empty(self.n, dtype=np.int64)
        first: list[int] = []
        for i in range(self.n):
            at = slice(columns.indptr[i], columns.indptr[i + 1])
            key = (columns.indices[at].tobytes(), columns.data[at].tobytes(), *(float(v[i]) for v in values))
            if key not in keys:
                keys[key] = len(first)
                first.append(i)
            member[i] = keys[key]
        return np.array(first, dtype=np.int64), member

    def _blocks(self, columns: Any) -> Iterator[Array]:
        """Yield the columns as dense (n, at most 256) pieces."""
        is_stored: bool = sparse.issparse(columns)
        if is_stored:
            stored = sparse.csc_array(columns if columns.ndim == 2 else columns.reshape(-1, 1))
            if stored.shape[0] != self.n:
                raise Refused(f"columns must have {self.n} rows, found shape {stored.shape}")
            for start in range(0, stored.shape[1], _BLOCK):
                yield stored[:, start : start + _BLOCK].toarray()
            return
        dense = np.asarray(columns)
        if dense.ndim not in (1, 2) or dense.shape[0] != self.n or dense.dtype.kind not in "iuf":
            raise Refused(f"columns must be numbers of shape ({self.n},) or ({self.n}, m), found {dense.shape}")
        wide = dense.reshape(self.n, -1)
        for start in range(0, wide.shape[1], _BLOCK):
            yield wide[:, start : start + _BLOCK]

    def contains(self, columns: Any, size: Any = None) -> Any:
        """Tell whether a vector (a bool), or each column of a matrix (an array of bools), lies in N.

        Whole numbers are tested exactly; reals within 1e-9 of the size Σ|a_i v_i| of each row, or of 1. A difference of
        numbers is rounded as they are: `size` (n,) says how large they were. Rows with large entries are reduced first,
        so that they are tested for what they say apart.
        """
        found = []
        for block in self._blocks(columns):
            if block.dtype.kind in "iu":
                found.append((products(self.rows, block.astype(np.int64)) == 0).all(axis=0))
            else:
                A = (self.sound.rows if self._large else self.rows).astype(np.float64)
                known = np.abs(block) if size is None else np.maximum(np.abs(block), np.abs(size)[:, None])
                found.append((np.abs(A @ block) <= TOLERANCE * np.maximum(abs(A) @ known, 1.0)).all(axis=0))
        result = np.concatenate(found).astype(bool) if found else np.zeros(0, dtype=bool)
        return bool(result[0]) if np.ndim(columns) == 1 else result

    def projects_integers(self, columns: Any) -> bool:
        """Tell whether Π_N d is a whole vector for every whole-number column d; True is proved exactly.

        The projection is rounded to r, and r ∈ N and d − r ⊥ N are verified in whole numbers: then r = Π_N d.
        """
        for block in self._blocks(columns):
            if block.dtype.kind not in "iu":
                raise Refused("columns must hold whole numbers to ask whether their projections are whole")
            whole = block.astype(np.int64)
            whole = whole[:, (products(self.rows, whole) != 0).any(axis=0)]  # the others are in N: their own projection
            if not whole.shape[1]:
                continue
            near = np.rint(self.project(whole)).astype(np.int64)
            if products(self.rows, near).any():
                return False
            if products(sparse.csr_array(self._basis.T), whole - near).any():
                return False
        return True

    def pinned_coordinates(self) -> Bools:
        """Tell for each coordinate whether the rows alone determine it (e_i lies in the row space)."""
        if self.rank == 0:
            return np.zeros(self.n, dtype=np.bool_)
        return np.asarray(np.diff(sparse.csr_array(self._basis).indptr) == 0)


class BesideSums(NullSpace):
    """The null space of a query's own sums, which are not written out, and of `rows`, the others.

    Every record keeps the query's own sums, so `rows` alone tell which changes of records are possible; what needs all
    rows is refused.
    """

    @property
    def dimension(self) -> int:
        raise Refused(TOO_MANY_SUMS)

    @property
    def is_zero(self) -> bool:
        """Whether N holds the zero vector only: it holds what every cell adds that the other rows do not see."""
        return False

    @cached_property
    def _elimination(self) -> Elimination:
        raise Refused(TOO_MANY_SUMS)

    @cached_property
    def _lattice(self) -> sparse.csc_array:
        raise Refused(TOO_MANY_SUMS)

    def _columns(self, columns: Any) -> Floats:
        del columns  # nothing can be projected
        raise Refused(TOO_MANY_SUMS)

    def orthonormal(self) -> Floats:
        raise Refused(TOO_MANY_SUMS)

    def alike(self, *values: Floats) -> tuple[Ints, Ints]:
        del values
        raise Refused(TOO_MANY_SUMS)

    @cached_property
    def sound(self) -> SoundRows:
        raise Refused(TOO_MANY_SUMS)

    def contains(self, columns: Any, size: Any = None) -> Any:
        del columns, size
        raise Refused(TOO_MANY_SUMS)

    def pinned_coordinates(self) -> Bools:
        """Tell which coordinates the other rows determine one by one."""
        result = np.zeros(self.n, dtype=np.bool_)
        result[self.rows.indices[self.rows.indptr[:-1][np.diff(self.rows.indptr) == 1]]] = True
        return result


def determined_sums(space: NullSpace, sums: sparse.csr_array) -> Bools:
    """Tell for each row of a 0/1 matrix (k, n) whether the rows of a space alone determine the sum that it makes."""
    if space.rank == 0 or not sums.shape[0]:
        return np.zeros(sums.shape[0], dtype=np.bool_)
    basis = sparse.csr_array(space._basis)
    # Entries of a basis are bounded by their sums in doubles: where these could overflow, nothing is said to be known.
    if basis.nnz and float((sums.astype(np.float64) @ abs(basis).astype(np.float64)).max()) >= LARGEST:
        return np.zeros(sums.shape[0], dtype=np.bool_)
    left = sparse.csr_array(sums @ basis)
    left.eliminate_zeros()
    return np.asarray(np.diff(left.indptr) == 0)


def for_alike(space: NullSpace, found: Callable[[Floats, Ints], Floats], *values: Floats) -> Floats:
    """Return one number per coordinate, found once for each group that is `alike`.

    `found` gets unit vectors (n, k) of some coordinates, and which they are.
    """
    classes, member = space.alike(*values)
    result = np.empty(len(classes))
    step = max(1, _WORK // max(1, space.n))
    for start in range(0, len(classes), step):
        chosen = classes[start : start + step]
        units = np.zeros((space.n, len(chosen)))
        units[chosen, np.arange(len(chosen))] = 1.0
        result[start : start + step] = found(units, chosen)
    return np.asarray(result[member])
