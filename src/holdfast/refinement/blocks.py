"""Refined answers and noises that have nothing to do with each other: a study of a refinement falls into blocks."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from flint import fmpq_mat
from scipy import sparse
from scipy.sparse import csgraph


@dataclass(frozen=True)
class Block:
    """Outputs and noises, increasing, that no entry of A connects with others."""

    outputs: tuple[int, ...]
    noises: tuple[int, ...]


def blocks_of(A: fmpq_mat) -> list[Block]:
    """Split the rows and columns of A; a row of zeros is a block without noise."""
    rows, columns = A.nrows(), A.ncols()
    filled = np.array([value != 0 for value in A.entries()], dtype=bool).reshape(rows, columns)
    graph = sparse.block_array([[None, sparse.csr_array(filled)], [sparse.csr_array(filled.T), None]], format="csr")
    count, label = csgraph.connected_components(graph, directed=False)
    members: list[tuple[list[int], list[int]]] = [([], []) for _ in range(count)]
    for i, k in enumerate(label.tolist()):
        members[k][i >= rows].append(i if i < rows else i - rows)
    return [Block(tuple(outputs), tuple(noises)) for outputs, noises in members if outputs]
