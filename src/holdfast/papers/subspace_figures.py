"""SDP Figures 1 and 2: counties of states whose totals are exact; errors against size, and regressions on it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from scipy import special

from holdfast.arrays import Floats, Ints
from holdfast.constraints import between, exact_margins, invariant
from holdfast.disclosure.pinned import pinned
from holdfast.mechanism import Mechanism, compose, extend, gaussian, laplace, mixture, within
from holdfast.papers.data import STATES, State, counties, cube, demonstrated
from holdfast.papers.reproduction import Claim, Findings, Row, Study
from holdfast.pictures import Layer, Picture, five, plane
from holdfast.queries import histogram, margins

#: The budget of the paper, 4 in all × 0.16 for counties × 0.3 for the population; its runs; ours for the unbiasedness.
EPSILON, RUNS, MANY = 0.192, 10, 2_000
#: The level of the paper's tests.
LEVEL = 0.01


@dataclass(frozen=True)
class Slope:
    """A simple regression of errors on the logarithm of size."""

    slope: float
    p: float

    @property
    def falls(self) -> bool:
        """Whether errors fall with size, significantly at the paper's level."""
        return self.slope < 0 and self.p < LEVEL


def regression(people: Ints, errors: Floats) -> Slope:
    """Regress errors on log people; p of the two-sided t test of its slope."""
    x = np.log(np.maximum(people, 1)) - np.log(np.maximum(people, 1)).mean()
    slope = float(x @ errors / (x @ x))
    rest = errors - errors.mean() - slope * x
    freedom = len(x) - 2
    error = float(np.sqrt(rest @ rest / freedom / (x @ x)))
    return Slope(slope, float(2 * special.stdtr(freedom, -abs(slope) / error)) if error else 1.0)


def mechanism(count: int) -> Mechanism:
    """Laplace noise for one replaced record, projected so that the total is exact (SDP Cor 17)."""
    base = laplace(histogram(count), epsilon=EPSILON, neighbours="replace-one", integer=False)
    return base.onto(invariant(np.ones((1, count), dtype=int)), weights=None)


def figure_1(study: Study) -> Findings:
    """Illinois and regressions for every state that has data."""
    (state,) = counties(study, ("Illinois",))
    made, stream = mechanism(len(state.people)), study.stream()
    errors = made.noise(study.times(MANY, 100), stream)
    means = errors.mean(axis=0) / (errors.std(axis=0, ddof=1) / len(errors) ** 0.5)
    slopes = np.array([regression(state.people, each).slope for each in errors])
    share = float(np.mean([regression(state.people, each).p < LEVEL for each in errors]))
    shown = demonstrated(study)
    rows = [
        Row("privacy loss budget ε", EPSILON, float(made.guarantee.epsilon or 0)),
        Row.of("Illinois: slope of projected Laplace errors on log people", None, slopes),
        Row("Illinois: share of runs with a slope significant at 0.01", None, share),
    ]
    fallen = []
    for each in shown:
        assert each.protected is not None
        found = regression(each.people, (each.protected - each.people).astype(np.float64))
        rows.append(Row(f"demonstration data, {each.name}: slope ({_chance(found.p)})", None, found.slope))
        fallen.append(found)
    claims = [
        Claim(
            "projected Laplace errors are unbiased (Corollary 21)",
            float(np.abs(means).max()) < 5.5 and abs(slopes.mean()) < 5 * slopes.std(ddof=1) / len(slopes) ** 0.5,
            f"{len(errors):,} runs: no county's mean error is more than {np.abs(means).max():.1f} standard errors "
            "from 0, "
            f"and {share:.1%} of the slopes are significant at 1 %",
        ),
        Claim(
            "the total of the state holds in every run",
            bool(np.abs(errors.sum(axis=1)).max() < 1e-6 * max(1.0, float(np.abs(errors).max()) * errors.shape[1])),
            "to the rounding of doubles",
        ),
    ]
    claims += _demonstrated(fallen)
    source = state.source if shown else f"{state.source}; no demonstration data of the Census Bureau were given"
    return Findings(tuple(claims), tuple(rows), (_picture(state, errors[:RUNS]), *_shown(shown)), source)


def _demonstrated(found: list[Slope]) -> list[Claim]:
    """What the demonstration data at hand say; the paper's own vintage of November 2020 has 48 regressions."""
    if not found:
        return []
    negative, significant = sum(each.slope < 0 for each in found), sum(each.falls for each in found)
    return [
        Claim(
            "errors (released − true) of the Census Bureau's system fall with size in most states",
            negative > len(found) / 2,
            f"{negative} of {len(found)} slopes are negative, {significant} significantly at 0.01 (the paper: 37 of "
            "48 and "
            "11 of 48, on a vintage that is not at hand)",
        ),
        Claim(
            "as the caption says, positive errors go with larger counties",
            negative <= len(found) / 2,
            "a negative slope says the opposite: small places gain, large ones lose, as non-negativity makes them",
        ),
        Claim(
            "the slopes and the text are right, and the caption of Figure 1 has the signs exchanged",
            negative > len(found) / 2,
            f"{negative} of {len(found)} slopes are negative",
            ours=True,
        ),
    ]


def boxes(errors: Floats) -> list[tuple[float, float, float, float, float]]:
    return [five(column.tolist()) for column in errors.T]


def _picture(state: State, errors: Floats) -> tuple[str, Picture]:
    places = list(range(1, len(state.people) + 1))
    layers = [Layer(f"projected Laplace, {len(errors)} runs", "boxes", places, boxes(errors))]
    if state.protected is not None:
        layers.append(Layer("demonstration data", "points", places, (state.protected - state.people).tolist()))
    picture = plane(layers, f"counties of {state.name} by increasing size", "error")
    return f"{state.name}: errors at ε = {EPSILON}, the total exact.", picture


def _shown(states: list[State]) -> list[tuple[str, Picture]]:
    found = []
    for state in states:
        assert state.protected is not None
        errors = (state.protected - state.people).astype(float)
        layer = Layer(state.name, "points", np.maximum(state.people, 1).tolist(), errors.tolist())
        found.append(
            (f"Demonstration data: {state.name}.", plane([layer], "people", "released − true", logarithmic=True))
        )
    return found


def _chance(p: float) -> str:
    return "p < 0.001" if p < 0.001 else f"p = {p:.3f}"


#: Runs for the means.
TEN_STATES_MANY = 400


def figure_2(study: Study) -> Findings:
    """Errors of ten runs for every state, and whether its figures are as printed."""
    states, stream = counties(study, tuple(STATES)[1:]), study.stream()
    rows, pictures, farthest, tests = [], [], 0.0, []
    for state in states:
        errors = mechanism(len(state.people)).noise(study.times(TEN_STATES_MANY, 40), stream)
        rows.append(Row(f"{state.name}: counties", float(STATES[state.name][0]), float(len(state.people))))
        rows.append(Row(f"{state.name}: people", float(STATES[state.name][1]), float(state.people.sum())))
        rows.append(Row.of(f"{state.name}: mean |error| of a county", None, np.abs(errors).mean(axis=1)))
        means = errors.mean(axis=0) / (errors.std(axis=0, ddof=1) / len(errors) ** 0.5)
        farthest = max(farthest, float(np.abs(means).max()))
        tests += [regression(state.people, each).falls for each in errors]
        layer = Layer(f"{RUNS} runs", "boxes", list(range(1, len(state.people) + 1)), boxes(errors[:RUNS]))
        pictures.append((f"{state.name}, ε = {EPSILON}.", plane([layer], "counties by increasing size", "error")))
    share = float(np.mean(tests))
    claims = [
        Claim(
            "errors are unbiased whatever the size",
            farthest < 5.5 and share < 0.05,
            f"no mean of {sum(len(s.people) for s in states):,} counties is more than {farthest:.1f} standard errors "
            "from "
            f"0; {share:.2%} of the regressions fall significantly at 1 %, where chance alone gives 0.5 %",
        ),
    ]
    if not states[0].source.startswith("made up"):
        printed = [row for row in rows if row.printed is not None]
        right = all(row.printed == row.computed for row in printed) and len(states) == len(STATES) - 1
        claims.append(Claim("counties and totals are those printed", right, f"{len(printed)} figures compared"))
    return Findings(tuple(claims), tuple(rows), tuple(pictures), states[0].source)


# --- SDP Example 4, Propositions 7 and 9, mixtures, and §5.2 with Figure 3: a cube with two exact margins ------------

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


CAMPUS_RUNS = 50
#: What the paper prints: median and quantiles of "the standard deviation of the elementwise additive errors".
PRINTED = (0.88, 0.86, 0.91)


def campus(study: Study) -> Findings:
    """Fifty runs, and the four things that 0.88 could be."""
    counts, source = cube(study)
    shape = counts.shape
    query = margins(shape)
    held = invariant(exact_margins(shape, [(1, 2), (0, 2)]))
    mechanism = gaussian(query, scale=1, neighbours="replace-one", integer=False).onto(held, weights=None)
    noise = mechanism.noise(study.times(CAMPUS_RUNS, CAMPUS_RUNS), study.stream())
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
