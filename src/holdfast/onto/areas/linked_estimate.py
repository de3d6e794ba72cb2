"""The best linear estimate of linked tables: each table by itself, and a price for every tie.

Without the ties the tables are independent, and each falls apart into hierarchies of scalars (H7). With Σ their
covariance after estimation and T the ties on the outputs, the estimate with the ties is z − ΣTᵀ(TΣTᵀ)⁻¹Tz; the prices
(TΣTᵀ)⁻¹Tz are found by conjugate gradients, where one product with Σ is one more estimate of every table.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from holdfast.arrays import Floats
from holdfast.constraints import System
from holdfast.queries.areas.linked import LinkedCounts
from holdfast.trees.normal.padded import priced
from holdfast.trees.normal.residuals import Residuals


@dataclass(frozen=True, eq=False)
class LinkedEstimate:
    """Linked tables under Gaussian noise of these variances, one precision for each group of outputs."""

    query: LinkedCounts
    parts: tuple[Residuals, ...]
    spreads: Floats

    @classmethod
    def of_system(cls, system: System, spreads: Floats) -> LinkedEstimate | None:
        """Return it where what must hold is such a query's consistency and perhaps that nothing is negative."""
        rows = [part for part in system.parts if part.kind != "nonnegative"]
        if len(rows) != 1 or rows[0].kind != "consistent" or not isinstance(rows[0].source, LinkedCounts):
            return None
        if system.has_bounds and not bool((system.lower == 0).all()):
            return None
        query, parts = rows[0].source, []
        for part, own in zip(query.parts, query.split(spreads), strict=True):
            first = np.array([own[part.starts[nodes[0]] + begin] for nodes, begin in part.places])
            if not bool((first[part.level_of] == own).all()):
                return None
            parts.append(Residuals(part, tuple((1 / first).tolist())))
        if any(each.untold is not None for each in parts) or not np.isfinite(spreads[query.tied_rows().indices]).all():
            return None
        return cls(query, tuple(parts), spreads)

    @cached_property
    def _ties(self) -> csr_array[Any]:
        return csr_array(self.query.tied_rows().astype(np.float64))

    def _apart(self, values: Floats) -> Floats:
        """Estimate every table by itself, (tables, n)."""
        listed = zip(self.parts, self.query.split(values), strict=True)
        return np.concatenate([part.estimated(np.ascontiguousarray(own)) for part, own in listed], axis=-1)

    def _spread(self, prices: Floats) -> Floats:
        """Return ΣTᵀ times prices, (tables, ties)."""
        pulled = prices @ self._ties
        measured = np.where(pulled != 0, self.spreads, 1.0)
        return self._apart(pulled * measured)

    def estimated(self, measured: Floats) -> Floats:
        """Return the best linear estimates of all outputs, (tables, n)."""
        return priced(self._apart(measured), lambda values: np.asarray(values @ self._ties.T), self._spread)
