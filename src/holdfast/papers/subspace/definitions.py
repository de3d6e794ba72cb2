"""SDP Example 4, Propositions 7 and 9, mixtures, and §5.2 with Figure 3: a cube with two exact margins."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from holdfast.constraints import between, exact_margins, invariant
from holdfast.disclosure.pinned import pinned
from holdfast.mechanism import compose, extend, gaussian, laplace, mixture, within
from holdfast.papers.data import cube
from holdfast.papers.reproduction import Claim, Findings, Row, Study
from holdfast.pictures import Layer, plane
from holdfast.queries import histogram, margins

#: The rows of Example 4: the number of records with an odd value is exact.
ODD = np.array([[1, 0, 1, 0]])


def properties(study: Study) -> Findings:
    """Ask the library for each statement."""
    stream = study.stream()
    query, total = histogram(4), invariant(np.ones((1, 4), dtype=int))
    base = laplace(query, epsilon=1, neighbours="replace-one", integer=False)
    odd = base.onto(invariant(ODD), weights=None)
    scopes = {each.scope for each in odd.guarantees}
    shared = odd.simulate(np.array([1, 1, 0, 1]), 50, stream), odd.simulate(np.array([0, 1, 0, 2]), 50, stream)
    apart = bool((np.rint(shared[0] @ ODD[0]) == 1).all() and (np.rint(shared[1] @ ODD[0]) == 0).all())
    nested = _nested()
    both = compose([odd, base.onto(total, weights=None)])
    spent = [float(g.epsilon) for g in both.guarantees if g.epsilon is not None and math.isfinite(g.epsilon)]
    one, other = (
        extend(query, total, law=law, rho=0.5, neighbours="replace-one") for law in ("gaussian", "correlated")
    )
    mixed = mixture([one, other], [Fraction(1, 4), Fraction(3, 4)])
    alone, together = _pinned()
    found = _attributes(study)
    claims = (
        Claim(
            "Example 4: an exact figure leaves no (ε, δ) for all changes",
            apart and "all" not in scopes,
            "every release of (1, 2, 4) has an odd count of 1, of (4, 2, 4) of 0; the statements that are left are "
            "about "
            f"{', '.join(sorted(scopes))}",
        ),
        Claim("Proposition 7: a statement about V₁ holds for V₂ ⊆ V₁", nested[0], nested[1]),
        Claim(
            "Corollary 8: a private mechanism is private in every subspace",
            float(within(base, [[1, -1, 0, 0]]).epsilon or math.inf) <= 1 + 1e-9,
            "within(laplace, V) at ε = 1",
        ),
        Claim(
            "Proposition 9: guarantees add up for the joined figures",
            bool(spent) and min(spent) <= 2 * 2 + 1e-9,
            f"two releases of ε = 1 with different exact figures: {', '.join(f'{e:.3g}' for e in spent)} (a "
            "statement is "
            "about records that change together with all exact figures kept)",
        ),
        Claim(
            "§2.3: two exact figures that are harmless alone can pin cells together",
            max(alone) == 0 < together,
            f"a 2 × 2 × 2 table: no cell is pinned by one two-way margin, {together} of 8 by all three",
        ),
        Claim(
            "§2.3: mixtures of subspace private mechanisms are so (the axiom of choice)",
            float(mixed.guarantee.rho or math.inf) <= 0.5 * (1 + 1e-8),
            f"ρ = {mixed.guarantee.rho:.4g}, the worst of the parts'",
        ),
        Claim("§6: invariants of binary attributes can be drawn", *found),
    )
    return Findings(claims)


def _pinned() -> tuple[list[int], int]:
    """Cells of a small cube that are pinned by each of its two-way margins, and by all three."""
    shape, truth = (2, 2, 2), [0, 1, 1, 2, 1, 2, 2, 0]
    pairs = [(0, 1), (0, 2), (1, 2)]

    def count(keep: list[tuple[int, int]]) -> int:
        return int(pinned(margins(shape), invariant(exact_margins(shape, keep)), truth=truth).pinned.size)

    return [count([each]) for each in pairs], count(pairs)


def _nested() -> tuple[bool, str]:
    """ε about a plane and about lines in it, for noise with an exact total."""
    query, total = histogram(4), invariant(np.ones((1, 4), dtype=int))
    made = laplace(query, epsilon=1, integer=False).given(total)
    plane = float(within(made, [[1, -1, 0, 0], [0, 1, -1, 0]]).epsilon or math.inf)
    lines = [float(within(made, [row]).epsilon or math.inf) for row in ([1, -1, 0, 0], [0, 1, -1, 0], [1, 0, -1, 0])]
    return max(lines) <= plane + 1e-9, f"ε = {plane:.4g} about a plane, at most {max(lines):.4g} about lines in it"


def _attributes(study: Study) -> tuple[bool, str]:
    """Yes-or-no attributes of six records with their total exact: whole noise given 0 ≤ z ≤ 1 and the total."""
    query = histogram(6)
    held = invariant(np.ones((1, 6), dtype=int)) & between(0, 1)
    made = gaussian(query, scale=1, neighbours="replace-one").given(held)
    drawn = made.simulate(np.array([1, 1, 0, 0, 1, 0]), study.times(400, 50), study.stream())
    right = bool(
        ((drawn == 0) | (drawn == 1)).all() and (drawn.sum(axis=1) == 3).all() and len(np.unique(drawn, axis=0)) > 3
    )
    return right, "six answers of 0 or 1 with an exact total of 3, drawn whole; their law depends on the data"


RUNS = 50
#: What the paper prints: median and quantiles of "the standard deviation of the elementwise additive errors".
PRINTED = (0.88, 0.86, 0.91)


def campus(study: Study) -> Findings:
    """Fifty runs, and the four things that 0.88 could be."""
    counts, source = cube(study)
    shape = counts.shape
    query = margins(shape)
    held = invariant(exact_margins(shape, [(1, 2), (0, 2)]))
    mechanism = gaussian(query, scale=1, neighbours="replace-one", integer=False).onto(held, weights=None)
    noise = mechanism.noise(study.times(RUNS, RUNS), study.stream())
    n, equalities = query.n, held.system(query.n).null_space().rank
    expected = (n - equalities) / n
    by_cell, by_run = noise.std(axis=0, ddof=1), noise.var(axis=1)
    readings = {
        "standard deviation of each figure over the runs": by_cell,
        "standard deviation over the figures of each run": np.sqrt(by_run),
        "variance of each figure over the runs": by_cell**2,
        "variance over the figures of each run": by_run,
    }
    rows = [Row("outputs", 6720.0, float(n)), Row("independent equalities", 740.0, float(equalities))]
    rows += [
        Row(f"{name}: median, 5 % and 95 %", "0.88 (0.86, 0.91)", "{:.3f} ({:.3f}, {:.3f})".format(*_quantiles(found)))
        for name, found in readings.items()
    ]
    rows.append(Row("√((n − n_c)/n)", None, expected**0.5))
    rows.append(Row("(n − n_c)/n", None, expected))
    sums = noise.reshape(-1, *shape)
    exact = max(float(np.abs(sums.sum(axis=1)).max()), float(np.abs(sums.sum(axis=2)).max()))
    per_run = _quantiles(by_run)
    deviation = float(np.median(np.sqrt(by_run)))
    claims = (
        Claim("6,720 outputs and 740 equalities", (n, equalities) == (6720, 740), f"{n:,} and {equalities:,}"),
        Claim("both margins are exact in every run", exact < 1e-8, f"off by at most {exact:.1e}"),
        Claim(
            "the errors are unbiased",
            float(np.abs(noise.mean(axis=0)).max()) < 6 * float(by_cell.max()) / len(noise) ** 0.5,
            "no mean over the runs is six standard errors from 0",
        ),
        Claim(
            "the median standard deviation of an error is 0.88",
            abs(deviation - 0.88) < 0.02,
            f"it is {deviation:.3f}; √((n − n_c)/n) = {expected**0.5:.3f}",
        ),
        Claim(
            "what is printed as 0.88 (0.86, 0.91) is the variance over the figures of a run",
            all(abs(a - b) < 0.015 for a, b in zip(per_run, PRINTED, strict=True)),
            "it is {:.3f} ({:.3f}, {:.3f}) here, and (n − n_c)/n = {:.3f}".format(*per_run, expected),
            ours=True,
        ),
    )
    hours = list(range(shape[1]))
    truth, one = counts[0, :, 0].astype(float), counts[0, :, 0] + sums[0, 0, :, 0]
    layers = [Layer("confidential", "line", hours, truth.tolist()), Layer("one run", "points", hours, one.tolist())]
    caption = "One group in one building hour by hour: the confidential figures and one run; their sum is exact."
    return Findings(claims, tuple(rows), ((caption, plane(layers, "hour", "count")),), source)


def _quantiles(values: object) -> tuple[float, float, float]:
    middle, low, high = np.quantile(np.asarray(values), [0.5, 0.05, 0.95]).tolist()
    return middle, low, high
