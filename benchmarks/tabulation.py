"""Counting three million records into a city's zones against the bare query of the engine, in one run.

The records lie in a Parquet file with a text column for the zone, a few numbers beside it, and nothing missing. Ours
reads the public domain into the engine, counts, checks missing and foreign values and fills the cells; theirs counts
(`SELECT zone, count(*) ... GROUP BY zone`). The engine runs already in both. Bar: at most 1.5 times its time.
"""

import sys
import tempfile
import time
from pathlib import Path

import duckdb
import numpy as np

from holdfast.release.job.job import Job
from holdfast.release.records.tabulate import tabulate
from holdfast.release.spec.spec import read_spec

ZONES = {"Northbank": 43, "Harbour": 61, "Airport": 1, "Midtown": 69, "Eastfield": 69, "Islands": 20}
RECORDS = 3_000_000
ROUNDS = 61
BAR = 1.5
SPEC = """
title: Trips of a made-up city
data: {source: trips.parquet, domain: zones.csv}
privacy: {epsilon: 1}
table: {hierarchy: [borough, zone], root: city}
hold: [consistent]
method: given
output: out
"""


def written(folder: Path) -> Job:
    rows = [f"{borough},{borough} {i + 1}" for borough, count in ZONES.items() for i in range(count)]
    (folder / "zones.csv").write_text("\n".join(["borough,zone", *rows]))
    (folder / "spec.yaml").write_text(SPEC)
    path = folder / "trips.parquet"
    duckdb.execute(
        "COPY (SELECT zone, random() AS fare, (random() * 1e6)::INTEGER AS rider FROM "
        f"(SELECT 1 + floor(263 * random() * random())::INTEGER AS place FROM range({RECORDS})) JOIN "
        f"(SELECT row_number() OVER () AS place, zone FROM read_csv('{folder / 'zones.csv'}')) USING (place)) "
        f"TO '{path}' (FORMAT parquet)"
    )
    return Job.from_spec(read_spec(folder / "spec.yaml"))


def bare(path: Path) -> int:
    rows = duckdb.execute(f"SELECT zone, count(*) FROM read_parquet('{path}') GROUP BY zone").fetchall()
    return sum(count for _, count in rows)


def main() -> int:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        job = written(folder)
        ours, theirs = [], []
        for _ in range(ROUNDS):
            start = time.perf_counter(), time.process_time()
            counts = tabulate(job)[0]
            ours.append((time.perf_counter() - start[0], time.process_time() - start[1]))
            start = time.perf_counter(), time.process_time()
            total = bare(folder / "trips.parquet")
            theirs.append((time.perf_counter() - start[0], time.process_time() - start[1]))
        assert counts.sum() == total == RECORDS
    mine, yardstick = np.median(ours, axis=0), np.median(theirs, axis=0)  # on the clock, and of the processors
    ratio, of_processor = mine / yardstick
    print(
        f"{RECORDS:,} records into {sum(ZONES.values())} zones: {1000 * mine[0]:.0f} ms, bare query "
        f"{1000 * yardstick[0]:.0f} ms, ratio {ratio:.2f} (bar {BAR}); ratio of processor time {of_processor:.2f}"
    )
    return 0 if ratio <= BAR else 1


if __name__ == "__main__":
    sys.exit(main())
