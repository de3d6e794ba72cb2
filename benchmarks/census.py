"""A census in one query: blocks × cells × levels, measured, estimated, whole, non-negative and consistent.

Run: .venv/bin/python benchmarks/census.py [--blocks N] [--data FOLDER]
With the blocks of Rhode Island (blocks_2010_RI_HI.parquet in FOLDER) or, without it, a generated state of the same
shape; persons' cells follow made-up frequencies over 8 household types × 2 ages × 2 ethnicities × 63 races. Printed:
the seconds of each step as ratios to numpy's time to draw the measurements, and errors by level and margin, as
measured, after best linear estimation, and of the whole table.
"""

from __future__ import annotations

import argparse
import resource
import time
from pathlib import Path

import numpy as np

import holdfast as hf
from holdfast.onto.areas.steps import Steps
from holdfast.trees.normal.residuals import Residuals

SHAPE, NAMES = (8, 2, 2, 63), ("household", "age", "ethnicity", "race")
#: The margins of every level, as in the redistricting data of 2020 (recoded household types left out).
MARGINS = [(), (0,), (1,), (2,), (3,), (1, 2), (1, 3), (2, 3), (1, 2, 3), (0, 1, 2, 3)]
LEVELS = ("state", "county", "tract", "block group", "block")
RHO = 2.56


def areas(data: Path | None, blocks: int, rng: np.random.Generator) -> tuple[hf.Hierarchy, np.ndarray]:
    """The hierarchy of blocks and the persons in each."""
    if data is not None and (data / "blocks_2010_RI_HI.parquet").exists():
        import polars as pl

        frame = pl.read_parquet(data / "blocks_2010_RI_HI.parquet").filter(pl.col("geoid").str.starts_with("44"))[
            :blocks
        ]
        codes = frame["geoid"].to_list()
        persons = frame["pop"].to_numpy()
    else:
        codes = [f"44{i // 5000:03d}{i // 100 % 50:06d}{i // 31 % 9}{i:06d}" for i in range(blocks)]
        persons = rng.geometric(1 / 42, blocks) * (rng.random(blocks) > 0.38)
    import pandas as pd

    frame = pd.DataFrame(
        {name: [code[:end] for code in codes] for name, end in zip(LEVELS[1:], (5, 11, 12, 99), strict=True)}
    )
    return hf.Hierarchy.from_frame(frame, levels=list(LEVELS[1:]), root="state"), persons


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--blocks", type=int, default=25_181)
    parser.add_argument("--data", type=Path)
    arguments = parser.parse_args()
    rng = np.random.default_rng(1)
    tree, persons = areas(arguments.data, arguments.blocks, rng)
    query = hf.counts(tree, by=hf.Cube(SHAPE, NAMES), keep=MARGINS)
    common = rng.dirichlet(np.full(query.table.cells, 0.02))
    cells = np.zeros((tree.n_leaves, query.table.cells), np.int64)
    for leaf, count in enumerate(persons):
        np.add.at(cells[leaf], rng.choice(common.size, count, p=common), 1)
    truth = query.answer(cells)
    print(f"{tree.n_leaves} blocks, {tree.n} areas, {query.n} figures")
    seconds = {}

    def timed(name, work):
        begin = time.perf_counter()
        result = work()
        seconds[name] = time.perf_counter() - begin
        return result

    split = timed("split", lambda: hf.best_shares(query))
    share = np.array([float(value) for value in split.shares.values()])
    precision = 2 * RHO * share / share.sum()
    noise = timed("numpy's measurements", lambda: rng.normal(size=query.n))
    noisy = truth + noise / np.sqrt(precision)[query.level_of]
    residuals = Residuals(query, tuple(precision))
    estimate = timed("estimate", lambda: residuals.estimated(noisy))
    table = timed("whole table", lambda: Steps(residuals, True).cells(estimate, 1))
    values = query.totals(table)
    assert table.min() >= 0
    unit = seconds["numpy's measurements"]
    for name, taken in seconds.items():
        print(f"{name:24} {taken:8.2f} s {taken / unit:8.1f} ×")
    print(f"most memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20:.2f} GiB")
    print(
        f"split: error {split.squared_error:.6g}, gap {split.gap / split.squared_error:.1e}, "
        f"bound {split.lower_bound:.6g}"
    )
    print(f"{'mean absolute error':44} {'measured':>9} {'estimate':>9} {'whole':>9}")
    for group, name in enumerate(query.levels):
        chosen = query.outputs(group).ravel()
        errors = [np.abs(found[chosen] - truth[chosen]).mean() for found in (noisy, estimate, values)]
        print(f"{name:44} " + " ".join(f"{error:9.3f}" for error in errors))


if __name__ == "__main__":
    main()
