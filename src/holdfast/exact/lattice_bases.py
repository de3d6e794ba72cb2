"""Bases of the whole-number vectors in a null space.

*Law:* the columns b_1 … b_k of a lattice basis make every whole-number vector of the null space N, each
exactly once, as a whole-number combination. A basis of N over the rationals is not enough: it may make only a
sublattice, and a walk along it would never reach the rest.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from fractions import Fraction

import flint
import numpy as np
from scipy import sparse

from holdfast.arguments import LARGEST, Refused
from holdfast.arrays import Ints
from holdfast.exact.elimination import Elimination, Row

#: Lattice reduction takes time that grows with the fourth power of the number of columns or faster.
LARGEST_REDUCTION = 400
#: A final reduction makes the moves of small bases short; beyond this many vectors it would take seconds.
_POLISHED = 40
#: Entries that a basis may hold (a basis of this size takes about 1.6 GB).
_LARGEST_BASIS = 10**8

Vector = dict[int, int | Fraction]


def margin_basis(shape: Sequence[int], keep: Sequence[Sequence[int]]) -> sparse.csc_array:
    """Return a lattice basis of the cell tables whose listed margins are all zero.

    Write a table in the coordinates u[i] = (sum over the axes with i_a = 0, the other axes held at i_a ≥ 1).
    This change of coordinates is the Kronecker product of unimodular ones, and a margin S is zero if and only
    if u[i] = 0 for every i whose non-zero axes lie in S. The free coordinates are the others, and each gives
    the vector ⊗_a (e_{i_a} − e_0 if i_a ≥ 1, else e_0), with 2^(number of non-zero axes) entries ±1.
    """
    sides = [int(side) for side in shape]
    axes = len(sides)
    n = math.prod(sides)
    strides = [math.prod(sides[a + 1 :]) for a in range(axes)]
    columns: list[Ints] = []
    signs: list[Ints] = []
    for support in itertools.chain.from_iterable(itertools.combinations(range(axes), k) for k in range(axes + 1)):
        if any(set(support) <= set(margin) for margin in keep):
            continue
        cells = np.zeros((1, 1), dtype=np.int64)
        sign = np.ones(1, dtype=np.int64)
        for a in support:
            steps = np.arange(1, sides[a], dtype=np.int64) * strides[a]
            moved = (cells[:, None, :] + steps[None, :, None]).reshape(-1, cells.shape[1])
            cells = np.concatenate([moved, np.repeat(cells, sides[a] - 1, axis=0)], axis=1)
            sign = np.concatenate([sign, -sign])
        if cells.size:
            columns.append(cells)
            signs.append(np.broadcast_to(sign, cells.shape))
    if sum(part.size for part in columns) > _LARGEST_BASIS:
        raise Refused(f"a lattice basis for the margins of {n} cells would hold more than {_LARGEST_BASIS} entries")
    if not columns:
        return sparse.csc_array((n, 0), dtype=np.int64)
    lengths = np.concatenate([np.full(len(part), part.shape[1]) for part in columns])
    starts = np.concatenate([[0], np.cumsum(lengths)])
    rows = np.concatenate([part.ravel() for part in columns])
    data = np.concatenate([part.ravel() for part in signs])
    result = sparse.csc_array((data, rows, starts), shape=(n, lengths.size))
    result.sort_indices()
    return result


def path_basis(parents: Ints, leaves: Ints, by: int = 1) -> sparse.csc_array | None:
    """Return the basis of consistent tables: for each leaf (and category) the leaf and all its ancestors.

    None when the tree is so deep that this basis would be too large.
    """
    rows: list[Ints] = []
    which: list[Ints] = []
    node, leaf = leaves.astype(np.int64), np.arange(leaves.size)
    size = 0
    while node.size:
        size += node.size
        if size * by > _LARGEST_BASIS // 10:
            return None
        rows.append(node)
        which.append(leaf)
        above = parents[node]
        node, leaf = above[above >= 0], leaf[above >= 0]
    categories = np.arange(by)
    nodes = (np.concatenate(rows)[:, None] * by + categories).ravel()
    columns = (np.concatenate(which)[:, None] * by + categories).ravel()
    shape = (parents.size * by, leaves.size * by)
    return sparse.csc_array((np.ones(nodes.size, dtype=np.int64), (nodes, columns)), shape=shape)


def _matrix(columns: Sequence[dict[int, int]], n: int) -> sparse.csc_array:
    if any(abs(value) >= LARGEST for column in columns for value in column.values()):
        raise Refused("a lattice basis of these rows holds numbers of 2**62 or more")
    starts = np.cumsum([0] + [len(column) for column in columns])
    rows = np.array([i for column in columns for i in column], dtype=np.int64)
    data = np.array([value for column in columns for value in column.values()], dtype=np.int64)
    result = sparse.csc_array((data, rows, starts), shape=(n, len(columns)))
    result.sort_indices()
    return result


def _completed(steps: Sequence[tuple[int, Row]], seeds: Sequence[dict[int, int]], n: int) -> list[Vector]:
    """Extend vectors on the free columns to all columns, by substituting backwards through the steps.

    Vectors are kept column of the table by column of the table: `where[j]` holds the vectors with an entry at
    j.
    """
    where: dict[int, Vector] = {}
    for k, seed in enumerate(seeds):
        for j, value in seed.items():
            where.setdefault(j, {})[k] = value
    size = sum(len(entries) for entries in where.values())
    for column, row in reversed(steps):
        lead = row[column]
        total: Vector = {}
        for other, value in row.items():
            if other != column:
                for k, entry in where.get(other, {}).items():
                    total[k] = total.get(k, 0) - value * entry
        if abs(lead) == 1:  # stays whole, and whole numbers are much faster than fractions
            found = {k: entry * lead for k, entry in total.items() if entry}
        else:
            found = {k: Fraction(entry) / lead for k, entry in total.items() if entry}
        if found:
            where[column] = found
            size += len(found)
            if size > _LARGEST_BASIS // 10:
                raise Refused(f"a basis of the null space of these rows over {n} values would be too large")
    result: list[Vector] = [{} for _ in seeds]
    for j in sorted(where):
        for k, entry in where[j].items():
            result[k][j] = entry
    return result


def rational_basis(found: Elimination) -> sparse.csc_array:
    """Return whole vectors: a basis of the null space over the rationals, perhaps not of its lattice."""
    seeds = [{int(j): 1} for j in found.free()]
    columns = []
    for vector in _completed(found.steps, seeds, found.n):
        factor = math.lcm(*(entry.denominator for entry in vector.values()))
        columns.append({j: int(entry * factor) for j, entry in vector.items()})
    return _matrix(columns, found.n)


def reduced_basis(rows: sparse.csr_array) -> Ints | None:
    """Return short whole vectors (n, dimension) that span the null space of few independent rows; None beyond 64 bits.

    They are a basis over the rationals, perhaps not of the lattice.
    """
    wide, dimension = flint.fmpz_mat(rows.toarray().tolist()).nullspace()
    lines = [[int(wide[i, k]) for i in range(rows.shape[1])] for k in range(dimension)]
    primitive = [[x // math.gcd(*line) for x in line] for line in lines]
    short = [[int(x) for x in line] for line in flint.fmpz_mat(primitive).lll().tolist()]
    if any(abs(x) >= LARGEST for line in short for x in line):
        return None
    return np.array(short, dtype=np.int64).T


def _reduced_kernel(rows: Sequence[Row], columns: Sequence[int], rank: int) -> list[dict[int, int]]:
    """Return a reduced lattice basis of the whole vectors on `columns` that all rows send to zero.

    Reduce the rows of [w·Aᵀ | I]: reduction is unimodular, so once the vectors with zero image are as many as
    the kernel has dimensions, they are a basis of the whole kernel lattice; a larger weight w forces that.
    """
    place = {column: k for k, column in enumerate(columns)}
    size, dimension = len(columns), len(columns) - rank
    weight = 2**20
    while True:
        wide = [[0] * (len(rows) + size) for _ in range(size)]
        for r, row in enumerate(rows):
            for column, value in row.items():
                wide[place[column]][r] = weight * value
        for k in range(size):
            wide[k][len(rows) + k] = 1
        reduced = [[int(x) for x in line] for line in flint.fmpz_mat(wide).lll().tolist()]
        kernel = [line[len(rows) :] for line in reduced if not any(line[: len(rows)])]
        if len(kernel) == dimension:
            return [{columns[k]: value for k, value in enumerate(line) if value} for line in kernel]
        weight = weight**2


def _polished(basis: sparse.csc_array) -> sparse.csc_array:
    """Return the same lattice with short vectors, where that is cheap."""
    if not 1 < basis.shape[1] <= _POLISHED or basis.shape[0] > LARGEST_REDUCTION:
        return basis
    short = flint.fmpz_mat(basis.T.toarray().tolist()).lll().tolist()
    return _matrix([{j: int(x) for j, x in enumerate(line) if x != 0} for line in short], basis.shape[0])


def lattice_basis(found: Elimination) -> sparse.csc_array:
    """Return a basis of the lattice of whole vectors in the null space; refuse where that is too hard."""
    steps = found.steps[: found.units]
    left = found.free(found.units).tolist()
    seeds: list[dict[int, int]]
    if found.core:
        mentioned = sorted(set().union(*found.core))
        if len(mentioned) > LARGEST_REDUCTION:
            raise Refused(
                f"a lattice basis of these rows needs the reduction of {len(mentioned)} columns without a "
                f"coefficient of 1 or −1, and at most {LARGEST_REDUCTION} can be reduced"
            )
        seeds = _reduced_kernel(found.core, mentioned, found.rank - found.units)
        seeds += [{j: 1} for j in left if j not in set(mentioned)]
    else:
        seeds = [{j: 1} for j in left]
    whole = [{j: int(entry) for j, entry in vector.items()} for vector in _completed(steps, seeds, found.n)]
    return _polished(_matrix(whole, found.n))
