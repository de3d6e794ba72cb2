"""The law of a mechanism with whole noise, listed at two neighbouring truths, with a proved bound on what is left out.

*Law.* The outputs z = x + u in what must hold, u a whole vector that keeps all equalities, each with the probability of
its independent noise; `onto` then gathers them by their images. Some coordinates determine all others (`pivots`); these
run through windows, and what lies outside a window has at most the noise's own tail there as its mass. A bound on the
loss is therefore a true lower bound, whatever the windows are (docs/theory/auditing.md, Proposition 2).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse, special
from scipy.sparse.csgraph import connected_components

from holdfast.arguments import LARGEST, Refused
from holdfast.arrays import Floats, Ints
from holdfast.auditing.pairs import Pair
from holdfast.constraints import System
from holdfast.mechanism.mechanism import Mechanism
from holdfast.mechanism.onto_moves import moved
from holdfast.noise import Independent

#: Outputs that are listed at most; and where each must be moved.
MOST_OUTPUTS, MOST_MOVED = 400_000, 4_000
#: A listing that leaves out more than this share of the mass says too little.
LARGEST_SHARE = 0.02
#: How far windows reach, in exponents of the tail, widest first.
REACHES = (40, 34, 28, 24, 20, 17, 14, 12, 10, 8, 7, 6, 5)


@dataclass(frozen=True, eq=False)
class Listed:
    """Two laws over one list of outputs, as bounds: logs of probabilities from below and from above, (2, m).

    Row 0 is the law at the pair's one, row 1 at its other. What is not listed has no more than `missing` of each.
    """

    below: Floats
    above: Floats
    missing: tuple[float, float]


@dataclass(frozen=True, eq=False)
class _Part:
    """The coordinates that matter: their noise, what holds for them, and a basis of the noise that keeps equalities."""

    law: Independent
    system: System | None
    ends: tuple[Ints, Ints]
    basis: Ints
    unit: Any


def listed(mechanism: Mechanism, pair: Pair) -> Listed | None:
    """List both laws; None where there are too many outputs, or supports that no window reaches."""
    ends = tuple(
        mechanism.query.in_steps("truth", end, (mechanism.query.n,), whole=True) for end in (pair.one, pair.other)
    )
    part = _part(mechanism, (ends[0], ends[1]))
    if part is None:
        return None
    most = MOST_MOVED if mechanism.moves else MOST_OUTPUTS
    window = _window(part, most)
    if window is None:
        return None
    pivots, low, high, missing = window
    outputs = _outputs(part, pivots, low, high)
    if part.system is not None:
        outputs = outputs[np.asarray(part.system.holds(outputs, part.unit), dtype=bool)]
    if not len(outputs):
        return None
    logs = np.stack([part.law.log_density(outputs - end) for end in part.ends])
    spill = (0.0, 0.0)
    if mechanism.moves:
        logs, spill = _gathered(mechanism, outputs, logs, ends[0]), missing
    return _bounded(logs, missing, spill, conditioned=mechanism.source.system is not None)


def _part(mechanism: Mechanism, ends: tuple[Ints, Ints]) -> _Part | None:
    system = mechanism.source.system
    law, unit = mechanism.base.law, mechanism.base.unit
    everything = np.arange(mechanism.query.n)
    if not mechanism.moves and (system is None or not system.branches):
        chosen = _touched(system, ends, everything)
        if chosen.size < everything.size:
            law, ends = law.at(chosen), (ends[0][chosen], ends[1][chosen])
            system = None if system is None else system.restricted(chosen)
    n = ends[0].size
    if n > 64:
        return None
    basis = np.eye(n, dtype=np.int64)
    if system is not None and not system.branches:
        rows = sparse.csr_array(sparse.vstack([system.equalities.A, system.invariants.A], format="csr"))
        if rows.shape[0]:
            try:
                basis = np.asarray(system.null_space().lattice_basis().toarray(), dtype=np.int64)
            except Refused:
                return None
        if (rows @ (ends[1] - ends[0])).any():
            return None  # the two laws have no output in common: their exact figures differ
    return _Part(law, system, ends, basis, unit)


def _touched(system: System | None, ends: tuple[Ints, Ints], everything: Ints) -> Ints:
    """The coordinates that the change, or what must hold, connects with the change; the others have one law."""
    changed = ends[0] != ends[1]
    if system is None:
        return everything[changed]
    rows = sparse.vstack([system.equalities.A, system.invariants.A, system.inequalities.A], format="csr")
    graph = sparse.block_array([[None, rows], [rows.T, None]], format="csr") if rows.shape[0] else None
    if graph is None:
        return everything[changed]
    _, label = connected_components(graph, directed=False)
    label = label[rows.shape[0] :]
    return everything[np.isin(label, label[changed])]


def _window(part: _Part, most: int) -> tuple[Ints, Ints, Ints, tuple[float, float]] | None:
    """Pivots with the widest windows that are not too many outputs, and the mass that both laws have outside."""
    low_end, high_end = np.minimum(*part.ends), np.maximum(*part.ends)
    low_bound = np.full(low_end.size, -LARGEST, dtype=np.int64)
    high_bound = np.full(low_end.size, LARGEST, dtype=np.int64)
    if part.system is not None:
        low_bound, high_bound = part.system.integer_bounds(part.unit)
    for reach in REACHES:
        radius = _radius(part.law, reach)
        low = np.maximum(low_bound.astype(np.float64), low_end - radius)
        high = np.minimum(high_bound.astype(np.float64), high_end + radius)
        pivots = _pivots(part.basis, high - low)
        if pivots is None:
            return None
        if np.prod(np.maximum(high - low + 1, 0)[pivots]) > most:
            continue
        sides = low[pivots].astype(np.int64), high[pivots].astype(np.int64)
        at = part.law.at(pivots)
        missing = []
        for end in part.ends:
            below = _tails(at, end[pivots] - sides[0] + 1) * (sides[0] > low_bound[pivots])
            above = _tails(at, sides[1] - end[pivots] + 1) * (sides[1] < high_bound[pivots])
            missing.append(float((below + above).sum()))
        return pivots, *sides, (missing[0], missing[1])
    return None


def _radius(law: Independent, reach: float) -> Floats:
    """A distance that noise exceeds with a chance of about e^(−reach), infinite where an output is not measured."""
    found = [
        np.inf if value is None else float(value) * reach if law.kind == "laplace" else math.sqrt(2 * reach * value)
        for value in law.scale_values
    ]
    each = np.ceil(np.array(found))
    return law.of_output(each)


def _tails(law: Independent, distance: Ints) -> Floats:
    """Bounds on P(U ≥ distance) for each coordinate, distance ≥ 1: exact for Laplace noise.

    Gaussian: at most the chance that a real Gaussian is at least distance − 1 (Canonne, Kamath and Steinke 2020).
    """
    values = np.array([np.nan if value is None else float(value) for value in law.scale_values])
    scale = law.of_output(values)
    if law.kind == "laplace":
        found = np.exp(-distance / scale) / (1 + np.exp(-1 / scale))
    else:
        found = special.ndtr((1 - distance) / np.sqrt(scale))
    return np.asarray(found * (1 + 1e-9), dtype=np.float64)


def _pivots(basis: Ints, widths: Floats) -> Ints | None:
    """As many coordinates as the basis has vectors, which determine all others, the narrowest windows first."""
    chosen: list[int] = []
    for i in np.argsort(widths, kind="stable").tolist():
        if len(chosen) == basis.shape[1] or not np.isfinite(widths[i]):
            break
        if np.linalg.matrix_rank(basis[[*chosen, i]].astype(np.float64)) > len(chosen):
            chosen.append(i)
    return np.array(sorted(chosen), dtype=np.int64) if len(chosen) == basis.shape[1] else None


def _outputs(part: _Part, pivots: Ints, low: Ints, high: Ints) -> Ints:
    """Every output whose pivots lie in their windows, (m, n)."""
    axes = [np.arange(a, b + 1, dtype=np.int64) for a, b in zip(low, high, strict=True)]
    if not axes:
        return part.ends[0][None, :].copy()
    grid = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, len(axes))
    steps = grid - part.ends[0][pivots]
    inner = part.basis[pivots]
    factors = np.rint(np.linalg.solve(inner.astype(np.float64), steps.T)).astype(np.int64).T
    whole = (factors @ inner.T == steps).all(axis=1)
    return np.asarray(part.ends[0] + factors[whole] @ part.basis.T, dtype=np.int64)


def _gathered(mechanism: Mechanism, outputs: Ints, logs: Floats, truth: Ints) -> Floats:
    """The logs of the images: what is moved to one place is added. The coin for ties is public and stays the same."""
    images = np.ascontiguousarray(moved(mechanism.moves, outputs.copy(), truth, None))
    _, where = np.unique(images.view(np.dtype((np.void, images.dtype.itemsize * images.shape[1]))), return_inverse=True)
    found = np.full((2, int(where.max()) + 1), -np.inf)
    for row in range(2):
        np.logaddexp.at(found[row], where.ravel(), logs[row])
    return found


def _bounded(
    logs: Floats, missing: tuple[float, float], spill: tuple[float, float], conditioned: bool
) -> Listed | None:
    mass = [float(np.exp(row).sum()) for row in logs]
    if min(mass) <= 0 or any(left > LARGEST_SHARE * (seen + left) for seen, left in zip(mass, missing, strict=True)):
        return None
    below, above = np.empty_like(logs), np.empty_like(logs)
    for row in range(2):
        least, most = (mass[row], mass[row] + missing[row]) if conditioned else (1.0, 1.0)
        below[row] = logs[row] - math.log(most)
        above[row] = np.logaddexp(logs[row], math.log(spill[row])) if spill[row] else logs[row]
        above[row] -= math.log(least)
    shares = tuple(left / (seen if conditioned else 1.0) for seen, left in zip(mass, missing, strict=True))
    return Listed(below, above, (shares[0], shares[1]))
