"""A census in one query: blocks × cells × levels, measured, estimated, whole, non-negative, consistent and written.

Run: .venv/bin/python benchmarks/census.py [--blocks N] [--data FOLDER] [--method areas|topdown|bluedown] [--exact]
    [--estimate]
With the blocks of Rhode Island (blocks_2010_RI_HI.parquet in FOLDER) and cells by the frequencies of the Adult table
(adult_train.parquet there) or, without these files, a generated state of the same shape with made-up frequencies: 8
kinds of work × 2 ages × 2 origins × 63 of race and occupation. Everything goes through the public names. Printed: the
seconds of each step; most memory; errors by level and margin, as measured, after best linear estimation, and of the
whole table. --exact: the total of every county is published exactly. --estimate: the split and the best linear estimate
alone, against numpy's time to draw as many measurements.
"""

from __future__ import annotations

import argparse
import resource
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse

import holdfast as hf

SHAPE, NAMES = (8, 2, 2, 63), ("work", "age", "origin", "race")
#: Eleven margins of every level, as many as the redistricting data of 2020 have.
MARGINS = [(), (0,), (1,), (2,), (3,), (1, 2), (1, 3), (2, 3), (0, 1, 2), (1, 2, 3), (0, 1, 2, 3)]
LEVELS = ("nation", "state", "county", "tract", "block group", "block")
#: Parts of the budget of each level in the redistricting data of 2020.
PUBLISHED = (104, 1440, 447, 687, 1256, 165)
RHO, NUMPY = 2.56, "numpy's measurements"


def areas(data: Path | None, blocks: int, rng: np.random.Generator) -> tuple[hf.Hierarchy, np.ndarray]:
    """The hierarchy of blocks and the persons in each."""
    if data is not None and (data / "blocks_2010_RI_HI.parquet").exists():
        import polars as pl

        frame = pl.read_parquet(data / "blocks_2010_RI_HI.parquet").filter(pl.col("geoid").str.starts_with("44"))
        every = max(1, len(frame) // blocks)
        codes, persons = frame["geoid"].to_list()[::every][:blocks], frame["pop"].to_numpy()[::every][:blocks]
    else:
        codes = [f"44{i // 5000:03d}{i // 100 % 50:06d}{i // 31 % 9}{i:06d}" for i in range(blocks)]
        persons = rng.geometric(1 / 42, blocks) * (rng.random(blocks) > 0.38)
    ends = (2, 5, 11, 12, 99)
    frame = pd.DataFrame({name: [code[:end] for code in codes] for name, end in zip(LEVELS[1:], ends, strict=True)})
    return hf.Hierarchy.from_frame(frame, levels=list(LEVELS[1:]), root="nation"), np.asarray(persons)


def frequencies(data: Path | None, rng: np.random.Generator) -> np.ndarray:
    """How often each cell occurs."""
    if data is None or not (data / "adult_train.parquet").exists():
        return rng.dirichlet(np.full(int(np.prod(SHAPE)), 0.02))
    import polars as pl

    adult = pl.read_parquet(data / "adult_train.parquet")

    def number(column: str, size: int) -> np.ndarray:
        return np.minimum(adult[column].rank("dense").to_numpy().astype(int) - 1, size - 1)

    place = (
        number("workclass", 8),
        (adult["age"].to_numpy() >= 38).astype(int),
        (adult["native_country"].to_numpy() != "United-States").astype(int),
        (number("race", 5) * 15 + number("occupation", 15)) % 63,
    )
    found = np.bincount(np.ravel_multi_index(place, SHAPE), minlength=int(np.prod(SHAPE)))
    return found / found.sum()


def estimate_alone(query: Any, rng: np.random.Generator) -> None:
    """Print the processor time of the split, of numpy's measurements, and of their estimate."""

    def busy(work):
        begin = time.process_time()
        return work(), time.process_time() - begin

    small = hf.counts(hf.Hierarchy.from_parents([-1, *([0] * 30)]), by=hf.Cube(SHAPE, NAMES), keep=MARGINS)
    hf.gaussian(small, rho=RHO).onto(hf.consistent(small), integer=False).image(np.zeros(small.n))  # compiled
    print(f"split {busy(lambda: hf.best_shares(query))[1]:.2f} s of processors", flush=True)
    made = hf.gaussian(query, rho=RHO, integer=False).onto(hf.consistent(query), integer=False)
    _ = made.image(np.zeros(query.n))  # what every estimate shares is found once
    measured, drawn = busy(lambda: rng.normal(size=query.n))
    for _ in range(2):
        _, spent = busy(lambda: made.image(measured))
        print(f"{query.n:,} figures: estimate {spent:.2f} s, {NUMPY} {drawn:.2f} s: {spent / drawn:.1f} ×", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--blocks", type=int, default=25_181)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--method")
    parser.add_argument("--exact", action="store_true")
    parser.add_argument("--estimate", action="store_true")
    parser.add_argument("--shares", choices=["best", "published"], default="best")
    arguments = parser.parse_args()
    rng = np.random.default_rng(1)
    tree, persons = areas(arguments.data, arguments.blocks, rng)
    query = hf.counts(tree, by=hf.Cube(SHAPE, NAMES), keep=MARGINS)
    if arguments.estimate:
        estimate_alone(query, rng)
        return
    cells = rng.multinomial(persons, frequencies(arguments.data, rng))
    truth = query.answer(cells)
    del cells
    print(
        f"{tree.n_leaves:,} blocks, {tree.n:,} areas, {query.n:,} figures, {int(persons.sum()):,} persons", flush=True
    )
    seconds: dict[str, float] = {}

    def timed(name, work):
        begin, busy = time.perf_counter(), time.process_time()
        result = work()
        seconds[name] = time.process_time() - busy
        most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
        wall = time.perf_counter() - begin
        print(f"{name:28} {seconds[name]:8.2f} s of processors {wall:8.2f} s, most memory {most:.2f} GiB", flush=True)
        return result

    if arguments.shares == "best":
        split = timed("split", lambda: hf.best_shares(query))
        shares = split.shares
        print(
            f"gap {split.gap / split.squared_error:.1e} of the error, "
            f"bound {split.lower_bound / split.squared_error:.3f}"
        )
    else:
        shares = {(level, axes): part for level, part in zip(LEVELS, PUBLISHED, strict=True) for axes in MARGINS}
    must = hf.consistent(query) & hf.nonnegative()
    if arguments.exact:
        totals = query.outputs(list(query.groups).index((LEVELS.index("county"), ()))).ravel()
        ones = np.ones(totals.size, np.int64)
        shape = (totals.size, query.n)
        must = must & hf.invariant(sparse.csr_array((ones, totals, np.arange(totals.size + 1)), shape=shape))
    base = hf.gaussian(query, rho=RHO, shares=shares)
    made = timed("mechanism", lambda: base.onto(must, integer=True, method=arguments.method))
    print(timed("guarantee", lambda: made.guarantee))
    timed(NUMPY, lambda: rng.normal(size=query.n))
    release = timed("release", lambda: made.release(truth, rng=hf.seeded(1)))
    print(release.evidence)
    with tempfile.TemporaryDirectory() as folder:
        records = timed("records", lambda: release.records("polars"))
        timed("written", lambda: records.write_parquet(Path(folder) / "records.parquet"))
        print(f"{len(records):,} records, {(Path(folder) / 'records.parquet').stat().st_size / 2**20:.1f} MiB")
    measured, values = release.measurements, release.values
    estimate = timed("estimate", lambda: base.onto(hf.consistent(query), integer=False).image(measured))
    print(f"estimate: {seconds['estimate'] / seconds[NUMPY]:.1f} × {NUMPY}")
    print(f"{'mean absolute error':44} {'measured':>9} {'estimate':>9} {'whole':>9}")
    for group, name in enumerate(query.levels):
        chosen = query.outputs(group).ravel()
        errors = [np.abs(found[chosen] - truth[chosen]).mean() for found in (measured, estimate, values)]
        print(f"{name:44} " + " ".join(f"{error:9.3f}" for error in errors))


if __name__ == "__main__":
    main()
