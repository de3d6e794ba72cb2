"""The noise at which a refinement's loss meets a target."""

from __future__ import annotations

from typing import Any

import numpy as np

from holdfast.arguments import Refused, positive
from holdfast.arrays import Floats
from holdfast.exact.rational_matrices import dense
from holdfast.privacy.rounding import outward
from holdfast.refinement.linear import LinearRefinement
from holdfast.refinement.loss import read_scales, refinement_loss


def calibrate_refinement(
    A: Any, difference: Any, rho: Any, outputs: Any = None, *, relative: Any = None, integer: bool = False
) -> float | Floats:
    """Return the least Laplace scale at which `refinement_loss` is at most rho, rounded up.

    The loss falls as 1/factor when all scales grow by one factor, because the cheapest vector stays the same, so there
    is nothing to search.

    Args:
        A: as in `refinement_loss`.
        difference: as in `refinement_loss`.
        rho: the loss that is allowed.
        outputs: as in `refinement_loss`.
        relative: scales of the outputs relative to each other; then one scale per output is returned.
        integer: as in `refinement_loss`.

    Guarantee:
        At this scale e^−rho ≤ P(X̂ ∈ Ω)/P(X̂' ∈ Ω) ≤ e^rho for every event of the outputs (docs/theory/refinement.md).

    Example:
        >>> import holdfast as hf
        >>> hf.calibrate_refinement(hf.LinearRefinement.best([[1], [1]]), [1, -1], rho=1)
        2.0
    """
    target = positive("rho", rho)
    n = len(A.exact_h) if isinstance(A, LinearRefinement) else dense("A", A).shape[0]
    scales = read_scales("relative", 1 if relative is None else relative, n)
    found = refinement_loss(A, difference, scales, outputs, integer=integer)
    if found.exact is None:
        raise Refused(
            "no noise gives these outputs a finite loss: their values before and after a change never coincide; "
            "leave outputs out, or name fewer"
        )
    if not found.exact:
        raise Refused("the difference changes no refined answer that is seen, so every scale will do: use any above 0")
    factor = found.exact / target
    if relative is None:
        return outward(factor)
    return np.array([outward(factor * each) for each in scales])
