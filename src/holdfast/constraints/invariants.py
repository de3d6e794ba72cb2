"""Mandated figures: read from the confidential data and published exactly, hence not protected."""

from __future__ import annotations

from typing import Any

import numpy as np

from holdfast.arguments import Refused
from holdfast.constraints.constraint import Constraint, build
from holdfast.constraints.system.exact_figures import ExactMargins, ExactNodes
from holdfast.constraints.system.parts import Part
from holdfast.constraints.system.rows import Names, Rows
from holdfast.exact.rationals import read_matrix


def invariant(C: Any) -> Constraint:
    """Require C z = C q(x): these combinations of the true answer are published exactly.

    Args:
        C: a rational matrix (dense, sparse, lists of fractions; a vector is one row), or what `exact_nodes` or
            `exact_margins` return.

    Guarantee:
        The right-hand side is read from the data; what it says is *unprotected*. Statements beside it speak of data
        that share it, or of what it leaves open.

    Example:
        >>> import holdfast as hf
        >>> mechanism = hf.laplace(hf.histogram(3), epsilon=1).given(hf.invariant([1, 1, 1]))
        >>> mechanism.guarantee.scope, int(mechanism.release([5, 0, 7]).values.sum())
        ('invariant-sharing', 12)
    """
    if isinstance(C, (ExactNodes, ExactMargins)):
        name, rows = f"invariant({C})", C.rows()
        return build([Part(name, "invariant", C.n, C.n, "invariant", rows, source=C)])
    matrix = read_matrix("C", C)
    if matrix.A.nnz == 0:
        raise Refused("C must have an entry that is not zero, found none: it would publish nothing")
    m, n = matrix.A.shape
    rows = Rows(matrix.A, np.zeros(m, dtype=np.int64), Names.numbered("invariant row {}", range(m)))
    name = f"invariant({m} row{'s' if m > 1 else ''})"
    return build([Part(name, "invariant", n, n, "invariant", rows, rational=matrix.rational, factors=matrix.factors)])
