"""Bounds of cells carried from row to row in whole numbers, until nothing changes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy import sparse

from holdfast.constraints.possible import propagation
from holdfast.disclosure.figures import CellRows, Contradiction

#: Rounds after which bounds that still creep are left as they are: a bound less is always allowed.
ROUNDS = 40


def carried(rows: CellRows) -> CellRows:
    """Return the rows with tighter bounds; refuse where two bounds cross. An equality is two rows A z ≥ b."""
    A = sparse.csr_array(sparse.vstack([rows.A, -rows.A, rows.G], format="csr"))
    b = np.concatenate([rows.b, -rows.b, rows.h])
    low, high = propagation.carried(A, b, (rows.low, rows.high), ROUNDS, whole=True)
    if (low > high).any():
        raise Contradiction
    return replace(rows, low=low, high=high)
