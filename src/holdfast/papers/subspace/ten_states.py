"""SDP Figure 2: the counties of ten more states."""

from __future__ import annotations

import numpy as np

from holdfast.papers.data import STATES, counties
from holdfast.papers.reproduction import Claim, Findings, Row, Study
from holdfast.papers.subspace.counties import EPSILON, RUNS, boxes, mechanism, regression
from holdfast.pictures import Layer, plane

#: Runs for the means.
MANY = 400


def findings(study: Study) -> Findings:
    """Errors of ten runs for every state, and whether its figures are as printed."""
    states, stream = counties(study, tuple(STATES)[1:]), study.stream()
    rows, pictures, farthest, tests = [], [], 0.0, []
    for state in states:
        errors = mechanism(len(state.people)).noise(study.times(MANY, 40), stream)
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
