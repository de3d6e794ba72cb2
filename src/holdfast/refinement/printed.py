"""LR Theorem 2 as it is printed: a reference, not a guarantee.

Its matrix A* = V·diag(Σ₁⁻¹, I)·Uᵀ contains the null blocks U₂ and V₂ of a singular value decomposition, which are
determined only up to a rotation, and its value changes with the rotation; a low value understates the loss. The loss
itself is `refinement_loss` (THEORY §7).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from holdfast.arguments import Refused, positive, reals
from holdfast.exact.rational_matrices import dense
from holdfast.refinement.linear import LinearRefinement

#: Singular values below this part of the largest count as zero, and rotations may miss orthogonality by this much.
TOLERANCE = 1e-9


def printed_theorem_2(
    refinement: LinearRefinement, B: Any, difference: Any, epsilon: Any, rotation: Any = None
) -> float:
    """Return ε‖A*D(c − c') − (μ − μ')‖₁ / ‖μ − μ'‖₁ with c − c' = Bᵀ(μ − μ'), for one choice of the null block.

    `rotation`: an orthogonal (m, m) matrix by which the null block U₂ that numpy finds is turned; None: not at all.
    """
    A, D = refinement.A, refinement.D
    n, m = D.shape
    known = reals("B", dense("B", B), (n, m))
    change = reals("difference", difference, (n,))
    if not change.any():
        raise Refused("difference must not be zero")
    U, sizes, V = np.linalg.svd(A)
    rank = int((sizes > TOLERANCE * sizes[0]).sum()) if sizes[0] > 0 else 0
    if rank != n - m:
        raise Refused(f"the theorem asks for a matrix A of rank n − m = {n - m}, found rank {rank}")
    turn = np.eye(m) if rotation is None else reals("rotation", rotation, (m, m))
    if np.abs(turn @ turn.T - np.eye(m)).max() > TOLERANCE:
        raise Refused("rotation must be an orthogonal matrix")
    U[:, rank:] = U[:, rank:] @ turn
    inverse = V.T @ np.diag(np.concatenate([1 / sizes[:rank], np.ones(m)])) @ U.T
    moved = inverse @ D @ (known.T @ change) - change
    return float(positive("epsilon", epsilon)) * float(np.abs(moved).sum() / np.abs(change).sum())
