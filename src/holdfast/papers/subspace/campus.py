"""SDP §5.2 and Figure 3: a cube of 6,720 figures with two exact margins, Gaussian noise of unit scale, projected."""

from __future__ import annotations

import numpy as np

from holdfast.constraints import exact_margins, invariant
from holdfast.mechanism import gaussian
from holdfast.papers.data import cube
from holdfast.papers.reproduction import Claim, Findings, Row, Study
from holdfast.pictures import Layer, plane
from holdfast.queries import margins

RUNS = 50
#: What the paper prints: median and quantiles of "the standard deviation of the elementwise additive errors".
PRINTED = (0.88, 0.86, 0.91)


def findings(study: Study) -> Findings:
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
