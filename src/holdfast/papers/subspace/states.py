"""SDP Figures 1 and 2: counties of states whose totals are exact; errors against size, and regressions on it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import special

from holdfast.arrays import Floats, Ints
from holdfast.constraints import invariant
from holdfast.mechanism import Mechanism, laplace
from holdfast.papers.data import STATES, State, counties, demonstrated
from holdfast.papers.reproduction import Claim, Findings, Row, Study
from holdfast.pictures import Layer, Picture, five, plane
from holdfast.queries import histogram

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
