"""Mend perturbed tables of a generated census, and real counts with noise: additive, nearer, intervals that cover.

Run: python benchmarks/mend.py [FOLDER of das_demo_2010_total_pop.csv], or --pictures FOLDER for those of the page.

1. Persons by region (two levels), sex and age, perturbed by a cell-key method with a published distribution (maximum
   noise 4, variance 2, zeros stay, no negative counts): one noise per cell, so sums do not hold.
2. The same table rounded to base 5, cell by cell; beside it what is had when only the inner cells are rounded and all
   others are sums of them (additive by construction, as small-count rounding is, with errors that add up).
3. Populations of counties (public file, path given), measured with whole Gaussian noise at county, state and nation.

Printed: sums that do not hold before and after, mean squared error before and after (never larger), and how many
intervals hold the true figure.
"""

from __future__ import annotations

import csv
import itertools
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

import holdfast as hf
from holdfast.mending.mended import Mended

HOLD = ["consistent", "nonnegative"]


def perturbation_table(most: int, variance: float) -> dict[str, list[float]]:
    """A distribution for each count: whole noise of mean 0, at most `most`, that never leads below 0."""
    rows: dict[str, list[float]] = {"i": [0], "v": [0], "p": [1.0]}
    for count in range(1, most + 1):
        noise = np.arange(-min(count, most), most + 1)
        steep, tilt = 1 / (2 * variance), 0.0
        for _ in range(200):  # Newton's method for a mean of 0
            weights = np.exp(-steep * noise**2 + tilt * noise)
            chance = weights / weights.sum()
            mean = (chance * noise).sum()
            tilt -= mean / (chance * (noise - mean) ** 2).sum()
        rows["i"] += [count] * noise.size
        rows["v"] += noise.tolist()
        rows["p"] += chance.tolist()
    return rows


def census(regions: int, districts: int, ages: int, seed: int) -> tuple[dict[str, Any], np.ndarray, np.ndarray]:
    """Labels, counts and which figures are inner cells, of region > district × sex × age with all totals."""
    rng = np.random.default_rng(seed)
    cells = rng.poisson(rng.gamma(0.7, 6.0, (regions, districts, 2, ages)))
    for axis in (2, 3):
        cells = np.concatenate([cells.sum(axis, keepdims=True), cells], axis)
    by_region = cells.sum(1)
    full = np.concatenate([by_region.sum(0, keepdims=True), by_region, cells.reshape(-1, 3, ages + 1)])
    names = ["Total", *(f"R{i:02}" for i in range(regions))]
    names += [f"R{i:02}{j:02}" for i in range(regions) for j in range(districts)]
    labels = itertools.product(names, ["Total", "men", "women"], ["Total", *(f"age {a:02}" for a in range(ages))])
    columns = dict(zip(("area", "sex", "age"), zip(*labels, strict=True), strict=True))
    inner = np.zeros(full.shape, dtype=bool)
    inner[1 + regions :, 1:, 1:] = True
    return columns, full.ravel(), inner.ravel()


def tell(name: str, columns: dict[str, Any], truth: np.ndarray, published: np.ndarray, errors: Any) -> Mended:
    start = time.perf_counter()
    mended = hf.mend({**columns, "value": published}, HOLD, errors)
    seconds = time.perf_counter() - start
    again = hf.mend({**columns, "value": mended.values}, HOLD)
    ends = mended.interval(0.95)
    cover = float(((ends[:, 0] <= truth) & (truth <= ends[:, 1])).mean())
    before, after = (float(((found - truth) ** 2).mean()) for found in (published, mended.values))
    print(
        f"{name:34} {mended.n:9,} figures {100 * mended.contradicted / mended.sums:5.1f} % of sums fail, then "
        f"{again.contradicted}; squared error {before:.3f} -> {after:.3f}; 95 % intervals hold {100 * cover:.1f} %, "
        f"mean width {float((ends[:, 1] - ends[:, 0]).mean()):5.2f}; {seconds:6.2f} s"
    )
    assert again.contradicted == 0
    assert after <= before
    assert cover >= 0.95 - 3 * (0.05 * 0.95 / truth.size) ** 0.5
    return mended


def perturbed(truth: np.ndarray, table: dict[str, list[float]], rng: np.random.Generator) -> np.ndarray:
    """Draw one noise for each figure from the distribution of its count."""
    counts, noise, chance = (np.array(table[name]) for name in ("i", "v", "p"))
    result = truth.copy()
    for count in np.unique(counts):
        at = np.flatnonzero(np.minimum(truth, counts.max()) == count)
        own = counts == count
        result[at] += rng.choice(noise[own].astype(np.int64), at.size, p=chance[own] / chance[own].sum())
    return result


def pictures(folder: Path) -> None:
    """The pictures of docs/how-to/mend.md."""
    from holdfast.mending.telling import moves_picture, picture

    table = perturbation_table(4, 2.0)
    columns, truth, _ = census(5, 8, 6, 0)
    published = perturbed(truth, table, np.random.default_rng(0))
    mended = hf.mend({**columns, "value": published}, HOLD, {"cell_key": table})
    picture(mended).save(folder / "mend-contradictions.svg")
    moves_picture(mended).save(folder / "mend-moves.svg")


def main() -> None:
    if sys.argv[1:2] == ["--pictures"]:
        pictures(Path(sys.argv[2]))
        return
    table = perturbation_table(4, 2.0)
    for seed, size in enumerate([(5, 8, 6), (5, 8, 6), (16, 25, 8)]):
        columns, truth, inner = census(*size, seed)
        published = perturbed(truth, table, np.random.default_rng(seed))
        tell("cell-key, distribution by count", columns, truth, published, {"cell_key": table})
        rounded = 5 * np.rint(truth / 5).astype(np.int64)
        tell("rounded to base 5", columns, truth, rounded, {"rounding": 5})
        alone = {name: [x for x, kept in zip(found, inner, strict=True) if kept] for name, found in columns.items()}
        summed = _sums(columns, alone, rounded[inner])
        print(f"{'':34} only inner cells rounded and summed: mean squared error {((summed - truth) ** 2).mean():.3f}")
    if len(sys.argv) > 1:
        counties(Path(sys.argv[1]) / "das_demo_2010_total_pop.csv")


def _sums(columns: dict[str, Any], alone: dict[str, Any], values: np.ndarray) -> np.ndarray:
    """Every figure as the sum of the inner cells below it."""
    found: dict[tuple[str, ...], int] = {}
    for area, sex, age, value in zip(alone["area"], alone["sex"], alone["age"], values.tolist(), strict=True):
        for key in itertools.product(("Total", area[:3], area), ("Total", sex), ("Total", age)):
            found[key] = found.get(key, 0) + value
    return np.array([found[key] for key in zip(columns["area"], columns["sex"], columns["age"], strict=True)])


def counties(path: Path) -> None:
    """Public populations: the demonstration figures as they were published, and measurements with noise."""
    with path.open(encoding="utf-8") as lines:
        rows = list(csv.DictReader(lines))
    states = sorted({row["state"] for row in rows})
    area = ["Total", *states, *(f"{row['state']} / {row['geo_id']}" for row in rows)]
    domain = {"Total": states} | {s: [f"{s} / {row['geo_id']}" for row in rows if row["state"] == s] for s in states}
    for name in ("pop_sf1", "pop_dp"):
        leaves = np.array([int(row[name]) for row in rows])
        tops = [int(leaves[[row["state"] == s for row in rows]].sum()) for s in states]
        truth = np.array([sum(tops), *tops, *leaves])
        if name == "pop_dp":
            found = hf.mend({"area": area, "value": truth}, HOLD, domain={"area": domain})
            print(f"{'demonstration figures as published':34} {found.n:9,} figures, {found.contradicted} sums fail")
            continue
        noise = hf.gaussian(hf.histogram(truth.size), scale=50).simulate(truth, 20, hf.seeded(5))
        errors, hits = np.zeros(2), 0.0
        for noisy in noise:
            mended = hf.mend({"area": area, "value": noisy}, HOLD, {"gaussian": 50}, domain={"area": domain})
            ends = mended.interval(0.95)
            hits += float(((ends[:, 0] <= truth) & (truth <= ends[:, 1])).mean()) / len(noise)
            step = [float(((each - truth) ** 2).mean()) for each in (noisy, mended.values)]
            assert step[1] <= step[0]
            errors += np.array(step) / len(noise)
        print(
            f"{'counties with Gaussian noise of 50':34} {truth.size:9,} figures, 20 times: mean squared error "
            f"{errors[0]:.0f} -> {errors[1]:.0f}; 95 % intervals hold {100 * hits:.1f} %"
        )


if __name__ == "__main__":
    main()
