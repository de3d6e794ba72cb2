"""A table in every period: errors at one price, and the time of its last period.

Run: .venv/bin/python benchmarks/over_time.py [--quick]
Errors are standard deviations at the ρ of one month of fresh noise, from the covariances themselves: fresh noise for
every month and nothing else; *re-releasing*, where every year and the total come anew beside the months and share the
ρ evenly; the binary-tree mechanism read by best linear estimation; and the best noise that is found. Times are of the
processor: drawing the last of 60 periods (all earlier ones are drawn again from the secret) and moving it, beside
numpy's own normal draws for one table.
"""

from __future__ import annotations

import sys
import time

import numpy as np

import holdfast as hf
from holdfast.noise.over_time import Factor
from holdfast.noise.time_factors import candidates, chosen, sums_of

SPANS = {"month": 1, "quarter": 3, "year": 12, "running": 0}
PERIODS = 60


def deviations(factor: Factor, several: int) -> list[float]:
    """Mean standard deviations of months, years and the total of all periods at cost 1."""
    covariance = factor.covariance * float(factor.worst(several))
    parts = [sums_of(PERIODS, SPANS, {name: 1.0}) for name in ("month", "year")]
    return [*(float(np.trace(each @ covariance)) ** 0.5 for each in parts), float(covariance.sum()) ** 0.5]


def errors() -> None:
    print("standard deviations of a month, a year, all 60 months; a record of one month")
    print(f"  {'fresh noise':<34}" + "".join(f"{each:8.2f}" for each in deviations(Factor.of(np.eye(PERIODS)), 1)))
    print(f"  {'re-releasing months, years, total':<34}" + "".join(f"{3**0.5:8.2f}" for _ in range(3)))
    for name in ("binary tree", "square root"):
        factor = Factor.of(candidates(PERIODS, (3, 12))[name])
        print(f"  {name:<34}" + "".join(f"{each:8.2f}" for each in deviations(factor, 1)))
    for wanted in ({"month": 1.0, "year": 1.0}, {"month": 1.0, "year": 1.0, "running": 1.0}, {"running": 1.0}):
        found = chosen(sums_of(PERIODS, SPANS, wanted), (3, 12))
        told = f"best for {', '.join(wanted)} ({100 * found.gap:.2f} % gap)"
        print(f"  {told:<34}" + "".join(f"{each:8.2f}" for each in deviations(found.factor, 1)))


def cost(title: str, tree: hf.Hierarchy) -> None:
    query = hf.counts(tree)
    held = hf.consistent(tree) & hf.nonnegative()
    start = time.process_time()
    series = hf.series(hf.gaussian(query, rho=0.5).onto(held), PERIODS, wanted={"month": 1, "year": 1})
    made = time.process_time() - start
    truth = query.answer(np.random.default_rng(1).poisson(30, tree.n_leaves))
    keys = hf.Keys.of(bytes(32))
    start = time.process_time()
    first = series.release(truth, 1, keys)
    one = time.process_time() - start
    start = time.process_time()
    last = series.release(truth, PERIODS, keys)
    end = time.process_time() - start
    start = time.process_time()
    np.random.default_rng(2).normal(size=query.n)
    yardstick = max(time.process_time() - start, 1e-6)
    assert tree.sum_up(last.values[tree.leaves])[0] == last.values[0]
    assert len(first.values) == query.n
    print(f"{title}: made {made:.2f} s, first period {one:.2f} s, 60th {end:.2f} s", end="")
    print(f" ({end / yardstick:,.0f} × one normal table)")


def main() -> None:
    errors()
    city = hf.Hierarchy.from_parents([-1] + [0] * 6 + [1 + i % 6 for i in range(263)])
    cost("city of 270 nodes", city)
    if "--quick" not in sys.argv:
        wide = hf.Hierarchy.from_parents([-1] + [0] * 300 + [1 + i % 300 for i in range(100_000)])
        cost("100,000 leaves", wide)


if __name__ == "__main__":
    main()
