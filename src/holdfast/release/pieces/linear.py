"""The estimate that intervals of moved tables stand around, piece by piece: least squares under the equalities alone.

What is below a root tells of its true value what the estimate of the piece alone and its variance tell, so the top sees
a leaf with these; a piece that is told the estimates of its roots goes on as if they were exact. In real numbers this
is the estimate of the whole; rounding may differ in the last digits, which ends of intervals on whole numbers do not
show (`ErrorBars.within`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from holdfast.arguments import LARGEST
from holdfast.arrays import Bools, Floats, Ints
from holdfast.release.pieces.cut import Rules, Work
from holdfast.release.pieces.tasks import Held
from holdfast.trees.nearest.best_linear import error_variances
from holdfast.trees.nearest.nearest import Nearest


class Estimated(NamedTuple):
    """What a piece tells about its roots: estimates and their variances, infinite where it tells nothing."""

    estimate: Floats
    variance: Floats


def ascend(held: Held, _: object = None) -> Estimated:
    """The estimates of a piece's roots from what was measured in it alone."""
    rules, roots = _rules(held.work), held.work.piece.parents < 0
    nearest = Nearest.of(held.work.piece.parents, rules.exact, rules.spreads, absolute=False)
    if not nearest.determined:
        return Estimated(np.zeros(roots.sum()), np.full(roots.sum(), np.inf))
    known = np.where(np.isfinite(rules.spreads) & ~rules.exact, rules.spreads, 0.0)
    assert held.noisy is not None
    found = _moved(nearest, held.noisy, rules.exact, held.truth)
    return Estimated(found[roots], error_variances(nearest, known)[roots])


def decide(work: Work, truth: Ints, noisy: Ints, below: Sequence[Estimated]) -> Floats:
    """The estimates of the top's own outputs, and behind them of the roots of all pieces, piece by piece."""
    rules, own = _rules(work), work.piece.own
    estimate, variance = (np.concatenate(each) for each in zip(*below, strict=True))
    spreads = np.concatenate([rules.spreads[:own], variance])
    exact = rules.exact.copy()
    exact[own:] |= variance == 0.0
    known = truth.astype(np.float64)
    known[own:] = np.where(rules.exact[own:], known[own:], estimate)
    nearest = Nearest.of(work.piece.parents, exact, spreads, absolute=False)
    return _moved(nearest, np.concatenate([noisy, estimate]), exact, known)


def descend(held: Held, estimates: Floats) -> Floats:
    """The estimates of a piece's outputs from those of its roots."""
    rules, roots = _rules(held.work), held.work.piece.parents < 0
    exact, known = rules.exact | roots, held.truth.astype(np.float64)
    known[roots] = estimates
    assert held.noisy is not None
    nearest = Nearest.of(held.work.piece.parents, exact, rules.spreads, absolute=False)
    return _moved(nearest, held.noisy, exact, known)


def _rules(work: Work) -> Rules:
    assert work.linear is not None
    return work.linear


def _moved(nearest: Nearest, noisy: Ints | Floats, exact: Bools, known: Ints | Floats) -> Floats:
    low, high = np.where(exact, known, -float(LARGEST)), np.where(exact, known, float(LARGEST))
    return np.asarray(nearest.move(noisy[None].astype(np.float64), low, high)[0])
