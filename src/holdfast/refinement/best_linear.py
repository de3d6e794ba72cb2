"""Noisy answers refined by what an analyst knows about the true ones."""

from __future__ import annotations

from typing import Any

import numpy as np

from holdfast import onto
from holdfast.arguments import Matrix, Numbers, Refused, known, reals
from holdfast.arrays import Floats
from holdfast.constraints import Constraint, equals
from holdfast.exact.rational_matrices import dense
from holdfast.exact.rationals import numeric


def refine(
    noisy: Numbers,
    B: Matrix | None = None,
    c: Numbers | None = None,
    covariance: Matrix | None = None,
    *,
    knowledge: Constraint | None = None,
) -> Floats:
    """Return the best linear refinement X + ΣB(BᵀΣB)⁻¹(c − BᵀX) of noisy answers X.

    It is unbiased, satisfies Bᵀ X̂ = c, and has the least variance of all linear unbiased refinements.

    Args:
        noisy: X, (n,) or (size, n).
        B: (n, m): Bᵀμ = c is known.
        c: (m,).
        covariance: Σ of the noise: None for equal variances (LR Thm 3), one variance per output, or a positive definite
            matrix.
        knowledge: anything else that is known, such as ordered([0, 1, 2]) or between(0, 10); the answer is then the
            nearest point that satisfies everything, which is no longer linear.

    Guarantee:
        For c that does not depend on the data, refining is post-processing and costs nothing; where c changes with the
        data, `refinement_loss` says what it costs.

    Example:
        >>> import holdfast as hf
        >>> hf.refine([6, 3], [[1], [1]], [10]).tolist()  # the two are known to make 10
        [6.5, 3.5]
    """
    values = reals("noisy", noisy)
    if values.ndim not in (1, 2) or values.size == 0:
        raise Refused(f"noisy must have shape (n,) or (size, n), found shape {values.shape}")
    n = values.shape[-1]
    wanted = _known(B, c, knowledge, n)
    spread = np.ones(n) if covariance is None else reals("covariance", covariance)
    if spread.shape == (n,):
        if (spread <= 0).any():
            raise Refused(f"covariance must be above 0, but the entry at position {np.argmax(spread <= 0)} is not")
        return _nearest(values, wanted, spread)
    if spread.shape != (n, n):
        raise Refused(f"covariance must hold {n} variances or be a matrix of shape {(n, n)}, found {spread.shape}")
    if knowledge is not None:
        raise Refused("covariance must hold one variance per output where more than Bᵀμ = c is known, found a matrix")
    return _generalised(values, wanted, spread)


def _known(B: Any, c: Any, knowledge: Any, n: int) -> Constraint:
    """Return everything that is known as one constraint; refuse what contradicts itself."""
    if (B is None) != (c is None):
        raise Refused("B and c go together: Bᵀμ = c is known")
    if knowledge is not None and not isinstance(knowledge, Constraint):
        raise Refused(f"knowledge must be a constraint such as ordered([0, 1]), found {type(knowledge).__name__}")
    if knowledge is not None and knowledge.has_invariants:
        raise Refused("knowledge must be structural: an invariant is read from data that an analyst does not have")
    if B is None:
        if knowledge is None:
            raise Refused("nothing is known: give B and c, or knowledge")
        return knowledge
    matrix = dense("B", B)
    if matrix.shape[0] != n:
        raise Refused(f"B must have {n} rows, one for each answer, found shape {matrix.shape}")
    sides, m = numeric("c", c), matrix.shape[1]
    if sides.shape not in ((), (m,)):
        raise Refused(f"c must hold {m} numbers, one for each column of B, found shape {sides.shape}")
    linear = equals(matrix.T, c)
    return linear if knowledge is None else linear & knowledge


def _nearest(values: Floats, wanted: Constraint, spread: Any) -> Floats:
    """Move every row to the nearest point, weighted by the variances."""
    system = wanted.system(values.shape[-1])
    problem = onto.Problem(values.shape[-1], system, "l2", spread, False)
    right = system.right_hand_sides()
    moved = known(onto.choose(problem)).image(problem, np.atleast_2d(values), right)
    return np.asarray(moved, dtype=np.float64).reshape(values.shape)


def _generalised(values: Floats, wanted: Constraint, spread: Any) -> Floats:
    """Solve generalised least squares for a full covariance, with one step that removes the first one's rounding."""
    if not np.array_equal(spread, spread.T):
        raise Refused("covariance must be symmetric, and is not")
    try:
        np.linalg.cholesky(spread)
    except np.linalg.LinAlgError:
        raise Refused("covariance must be positive definite, and is not") from None
    system = wanted.system(values.shape[-1])
    sound = system.null_space().sound
    rows = sound.unit.toarray()
    right = sound.sides(system.right_hand_sides()).astype(np.float64) / sound.lengths
    loaded = spread @ rows.T
    gram = rows @ loaded
    refined = np.atleast_2d(values).copy()
    for _ in range(2):
        refined += (loaded @ np.linalg.solve(gram, right[:, None] - rows @ refined.T)).T
    return np.asarray(refined.reshape(values.shape))
