"""The error of a split where nothing falls apart: recoded axes with groups of different sizes, matrices written out.

With W the outputs of every cell, P the precisions and C = Σ wanted·W_gᵀW_g over groups g, the error is tr(C G⁺) with
G = WᵀPW, and its derivative by the precision of a group −tr(G⁺CG⁺·W_gᵀW_g) (docs/theory/areas-and-margins.md, 6).
"""

from __future__ import annotations

from functools import cached_property

import numpy as np

from holdfast.arguments import Refused
from holdfast.arrays import Floats
from holdfast.queries import Neighbours
from holdfast.trees.normal.split_problem import Problem

#: Cells of all leaves together up to which matrices are written out.
MOST_CELLS = 1_000


class Written(Problem):
    """The weighted squared error of a query's outputs, by matrices over all cells."""

    @cached_property
    def _products(self) -> Floats:
        """W_gᵀW_g of every group, (groups, cells, cells)."""
        if self.query.cells > MOST_CELLS:
            raise Refused(
                f"best shares of recoded axes with groups of different sizes are found for up to {MOST_CELLS:,} cells, "
                f"found {self.query.cells:,}: give shares for the levels and margins, or make the groups alike in size"
            )
        columns = self.query.columns.tocsr()
        rows = [columns[self.query.outputs(g).ravel()] for g in range(len(self.query.groups))]
        return np.stack([(each.T @ each).toarray().astype(np.float64) for each in rows])

    def _inverse(self, precision: Floats) -> Floats:
        finite = np.where(np.isinf(precision), 1e12 * np.max(precision[np.isfinite(precision)], initial=1.0), precision)
        return np.linalg.pinv(np.tensordot(finite, self._products, 1), rcond=1e-13, hermitian=True)

    def error(self, precision: Floats) -> tuple[float, Floats]:
        """Return the weighted squared error and its derivatives."""
        inverse = self._inverse(precision)
        wanted = np.tensordot(self.wanted, self._products, 1)
        both = inverse @ wanted @ inverse
        return float((inverse * wanted).sum()), -np.tensordot(self._products, both, 2)

    def parts(self, precision: Floats) -> Floats:
        """Return what the error of each group adds to the weighted squared error."""
        return np.asarray(self.wanted * np.tensordot(self._products, self._inverse(precision), 2))

    def bound(self, relation: Neighbours) -> float:
        """Return a lower bound of the weighted squared error of every Gaussian mechanism at μ = 1."""
        wanted, cells = np.tensordot(self.wanted, self._products, 1), self.query.cells
        if not relation.adds:
            wanted = wanted - wanted.mean(axis=0)
            wanted = wanted - wanted.mean(axis=1, keepdims=True)
        root = float(np.sqrt(np.maximum(np.linalg.eigvalsh(wanted), 0)).sum())
        return (relation.records * root) ** 2 * (1 / cells if relation.adds else 2 / max(cells - 1, 1))
