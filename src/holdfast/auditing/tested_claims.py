"""A statement as points (ε, δ) that every event must keep to, and the evidence against it."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse, special
from scipy.sparse.csgraph import connected_components

from holdfast.arguments import LARGEST, Refused
from holdfast.arrays import Floats, Ints
from holdfast.auditing.pairs import Pair
from holdfast.constraints import System
from holdfast.mechanism.mechanism import Mechanism
from holdfast.mechanism.onto_moves import moved
from holdfast.noise import Independent
from holdfast.privacy import Guarantee, gaussian_delta, gaussian_epsilon

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


# --- Counts and what they prove: Clopper–Pearson limits, and one false-alarm rate shared by all tests of an audit

#: The chance that an audit calls any true statement violated, over all its pairs, events and rounds together.
FALSE_ALARM = 1e-9


def least_probability(count: int, size: int, alpha: float) -> float:
    """A lower limit of a probability: above it with chance at most alpha (Clopper and Pearson 1934)."""
    return 0.0 if count == 0 else float(special.betaincinv(count, size - count + 1, alpha))


def largest_probability(count: int, size: int, alpha: float) -> float:
    """An upper limit of a probability: below it with chance at most alpha (Clopper and Pearson 1934)."""
    return 1.0 if count == size else float(special.betainccinv(count + 1, size - count, alpha))


@dataclass
class FalseAlarms:
    """Hands out the false-alarm rate: the k-th test of an audit gets 6/(π²k²) of it, so that all sum to it at most.

    How many tests there will be need not be known, and when the audit stops may depend on what it has seen: each test
    fails with at most its own rate given everything before it, and rates of a fixed sequence are added
    (docs/theory/auditing.md).
    """

    total: float = FALSE_ALARM
    tests: int = field(default=0)

    def next(self) -> float:
        self.tests += 1
        return self.total * 6 / (np.pi**2 * self.tests**2)


def rough_limits(
    counts: npt.NDArray[np.float64], against: npt.NDArray[np.float64], sizes: tuple[int, int], confirming: int
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Limits that `confirming` fresh draws would about give, from counts among `sizes`; only for choosing events."""
    z = 7.0
    p, q = (counts + 0.0) / sizes[0], (against + 0.5) / sizes[1]
    low = p - z * np.sqrt(p * (1 - p) / confirming) - z * z / (6 * confirming)
    high = q + z * np.sqrt(q * np.maximum(1 - q, 0.0) / confirming) + z * z / (2 * confirming)
    return np.maximum(low, 0.0), np.minimum(high, 1.0)


VIOLATED, NOT_REFUTED = "violated", "not refuted"
EXACT, SAMPLED = "exact", "sampled"
#: Points of the curve δ(ε) at which a statement of ρ or μ is tested.
POINTS = 24
#: The curve is followed until δ has fallen to about this.
SMALL = 1e-9


@dataclass(frozen=True, eq=False)
class Claim:
    """A statement as points (ε, δ): for every event E and neighbours x, x', P_x(E) ≤ e^ε·P_x'(E) + δ."""

    statement: Guarantee
    epsilons: Floats
    deltas: Floats

    @classmethod
    def of(cls, statement: Guarantee) -> Claim:
        """The stated (ε, δ) and, for ρ or μ, points of the curve that they imply."""
        found: list[tuple[float, float]] = []
        if statement.epsilon is not None:
            found.append((statement.epsilon, statement.delta))
        if statement.rho is not None or statement.mu is not None:
            rho = statement.rho if statement.rho is not None else (statement.mu or 0.0) ** 2 / 2
            last = rho + 2 * math.sqrt(rho * math.log(1 / SMALL))
            for epsilon in np.linspace(last / POINTS, last, POINTS).tolist():
                try:
                    at = statement.at_epsilon(epsilon)
                except Refused:
                    continue
                found.append((at.epsilon or 0.0, at.delta))
        epsilons, deltas = np.array(found, dtype=np.float64).T
        return cls(statement, epsilons, deltas)

    def margin(self, low: npt.ArrayLike, high: npt.ArrayLike) -> tuple[Floats, npt.NDArray[np.intp]]:
        """How far each event with P_x(E) ≥ low and P_x'(E) ≤ high > 0 is beyond the claim, and at which point.

        The margin is log((low − δ)/high) − ε, largest over the points; above 0 the statement is false.
        """
        p, q = np.atleast_1d(np.asarray(low, dtype=np.float64)), np.atleast_1d(np.asarray(high, dtype=np.float64))
        with np.errstate(divide="ignore", invalid="ignore"):
            logs = np.log(np.maximum(p[:, None] - self.deltas, 0.0)) - np.log(q)[:, None]
        margins = logs - self.epsilons
        best = np.argmax(margins, axis=1)
        return margins[np.arange(len(p)), best], best


@dataclass(frozen=True)
class Evidence:
    """How far something is beyond a claim (above 0 refutes it), with ε from below at a δ, how, on which pair, by what.

    margin: above 0 the claim is refuted. epsilon: a lower bound on the ε that the mechanism needs at `delta`, where the
    statement says `claimed`. one, other: the answers of the two made-up datasets.
    """

    margin: float
    epsilon: float
    delta: float
    claimed: float
    how: str
    event: str
    pair: str = ""
    one: tuple[float, ...] = ()
    other: tuple[float, ...] = ()


# --- what two laws prove about the loss between them, listed or known without: lower bounds, rounded down ------------

#: Floats compute these logs and sums to about 1e-12; so much is taken off.
ROUNDING = 1e-9
#: Orders at which Rényi divergences are compared with α·ρ; between whole numbers only where that is claimed.
WHOLE_ORDERS, OTHER_ORDERS = (2, 3, 4, 6, 8, 16), (1.05, 1.25, 1.5, 2.5)


@dataclass(frozen=True, eq=False)
class Losses:
    """The losses log p/q of one listed law against another, from bounds on both: p from below, q from above."""

    below: Floats
    above: Floats

    @cached_property
    def _sorted(self) -> tuple[Floats, Floats, Floats]:
        """Losses, largest first, with the sums of p and of q so far."""
        seen = np.isfinite(self.below)
        p, q = self.below[seen], self.above[seen]
        order = np.argsort(q - p, kind="stable")
        return (p - q)[order], np.cumsum(np.exp(p[order])), np.cumsum(np.exp(q[order]))

    @property
    def largest(self) -> float:
        losses = self._sorted[0]
        found = float(losses[0]) if losses.size else -math.inf
        return found - ROUNDING * max(1.0, abs(found)) if math.isfinite(found) else found

    def delta(self, epsilon: float) -> float:
        """A lower bound on Σ[p − e^ε·q]₊."""
        losses, p, q = self._sorted
        k = int(np.searchsorted(-losses, -epsilon))
        if k == 0:
            return 0.0
        found = p[k - 1] * (1 - ROUNDING) - math.exp(min(epsilon, 700.0)) * q[k - 1] * (1 + ROUNDING)
        return max(0.0, float(found))

    def epsilon(self, delta: float) -> float:
        """A lower bound on the ε that is needed at this δ."""
        if delta <= 0:
            return self.largest
        low, high = 0.0, 1.0
        while self.delta(high) > delta:
            low, high = high, 2 * high
            if high > 600:
                return math.inf
        for _ in range(60):
            middle = (low + high) / 2
            low, high = (middle, high) if self.delta(middle) > delta else (low, middle)
        return low

    def renyi(self, order: float) -> float:
        """A lower bound on the Rényi divergence of this order above 1."""
        seen = np.isfinite(self.below)
        terms = order * self.below[seen] + (1 - order) * self.above[seen]
        top = float(terms.max(initial=-math.inf))
        if not math.isfinite(top):
            return top
        found = (top + math.log(float(np.exp(terms - top).sum()))) / (order - 1)
        return found - ROUNDING * max(1.0, abs(found)) / min(order - 1, 1.0)


def listed_evidence(claim: Claim, laws: Listed) -> Evidence:
    """The strongest evidence of two listed laws against a claim."""
    found = []
    for losses in (Losses(laws.below[0], laws.above[1]), Losses(laws.below[1], laws.above[0])):
        for claimed, delta in zip(claim.epsilons.tolist(), claim.deltas.tolist(), strict=True):
            epsilon = losses.epsilon(delta)
            words = "the largest log-ratio of the two laws" if delta == 0 else "the δ(ε) of the two laws"
            found.append(Evidence(epsilon - claimed, epsilon, delta, claimed, EXACT, words))
        rho = claim.statement.rho
        if rho is not None:
            for order in WHOLE_ORDERS + (() if claim.statement.orders == "integer" else OTHER_ORDERS):
                divergence = losses.renyi(order)
                if divergence > order * rho:
                    words = (
                        f"the divergence of order {order:g} is {divergence:.6g}, above {order:g}·ρ = {order * rho:.6g}"
                    )
                    best = max(found, key=lambda each: each.margin)
                    found.append(replace(best, margin=divergence - order * rho, event=words))
    return max(found, key=lambda each: each.margin)


def known_evidence(claim: Claim, mechanism: Mechanism, pair: Pair) -> Evidence | None:
    """What the law of independent real noise itself says about a pair (THEORY §1); None where the law is another.

    Laplace: the largest loss is Σ|d_i|/λ_i. Gaussian: δ(ε) at μ = ‖Σ^(−1/2)d‖ (Balle and Wang 2018, Theorem 8).
    """
    law = mechanism.base.law
    if law.integer or mechanism.source.system is not None or mechanism.moves or None in law.laws:
        return None
    change = np.abs((pair.other - pair.one).astype(np.float64)) / float(mechanism.base.unit)
    points = list(zip(claim.epsilons.tolist(), claim.deltas.tolist(), strict=True))
    if law.kind == "laplace":
        loss = float((change / np.sqrt(law.variances / 2)).sum()) * (1 - ROUNDING)
        words = "the largest log-ratio of the two laws"
        evidence = [
            Evidence(loss - claimed, loss, 0.0, claimed, EXACT, words) for claimed, delta in points if delta == 0
        ]
        return max(evidence, key=lambda each: each.margin, default=None)
    mu = float(np.sqrt((change**2 / law.variances).sum())) * (1 - ROUNDING)
    # A point with δ = 0 is only as good as the doubles that wrote it.
    points = [(claimed, delta) for claimed, delta in points if delta > 0]
    if not points:
        return None
    claimed, delta = max(points, key=lambda point: gaussian_delta(mu, point[0]) / point[1])
    epsilon = gaussian_epsilon(mu, delta) * (1 - ROUNDING) if delta < 1 else 0.0
    words = f"the δ(ε) of two Gaussians at distance {mu:.4g}"
    return Evidence(epsilon - claimed, epsilon, delta, claimed, EXACT, words)
