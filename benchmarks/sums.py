"""Sums of numbers beside counts: their time against the engine's bare query, and how often their intervals cover.

Three million records lie in a Parquet file with a text column for the place and three numbers: doubles, cents as
decimals, whole numbers. Ours brings every number within its bounds and to its step, exactly; theirs adds them up as
they are, within their bounds, or rounded besides, in doubles. Bar: at most 1.5 times the processor time of the bare
query. Then a hierarchy of 100,000 leaves with four values, from the spec to a verified folder. Bar: 60 s of processor.

Coverage: counts, sums and means of a hierarchy whose leaves hold 0 to 1,000 records, over releases, at 95 %. Means are
those of the file, and those of `release.mean` (Fieller, or simulated errors). No share may lie below by more than 1 %.
"""

import argparse
import tempfile
import time
from pathlib import Path

import duckdb
import numpy as np
import polars as pl

import holdfast as hf
from holdfast.release.certificate.load import LoadedTable
from holdfast.release.job.job import Job
from holdfast.release.records.tabulate import tabulate
from holdfast.release.spec.spec import read_spec
from holdfast.release.writing import Written, _files, means

RECORDS, LEAVES, ROUNDS = 3_000_000, 100_000, 5
BAR_RATIO, BAR_SECONDS, LEAST = 1.5, 60.0, 0.94
SPEC = """
title: Count and three sums
data: {source: records.parquet, domain: places.csv, rows_are_records: true}
privacy: {rho: 1}
table:
  hierarchy: [region, place]
  root: country
  figures:
    - count
    - {sum: fare, between: [0, 200], step: 0.5}
    - {sum: tip, between: [0, 50], step: 0.01}
    - {sum: seconds, between: [0, 7200], step: 60}
hold: [consistent, nonnegative]
output: out
ledger: ledger.sqlite
"""
#: What the engine is asked of each number: as it is, within its bounds, and rounded besides.
THEIRS = {
    "as they are": ("fare", "tip", "seconds"),
    "within bounds": (
        "least(greatest(fare, 0), 200)",
        "least(greatest(tip, 0), 50)",
        "least(greatest(seconds, 0), 7200)",
    ),
    "within bounds, rounded": (
        "round(least(greatest(fare, 0), 200) / 0.5)",
        "round(least(greatest(tip::DOUBLE, 0), 50) / 0.01)",
        "round(least(greatest(seconds, 0), 7200) / 60)",
    ),
}  # fmt: skip
#: Records of leaves, and the rows whose means are estimated: the root, a region, leaves of 3, 12, 50 and 1,000.
SIZES = (0, 1, 3, 5, 8, 12, 20, 50, 200, 1000)
ESTIMATED = (0, 1, 6, 9, 11, 13)
CASES = (
    ({"rho": 0.1}, ["consistent"], "given"),
    ({"rho": 0.1}, ["consistent", "nonnegative"], "onto"),
    ({"epsilon": 0.5}, ["consistent", "nonnegative"], "onto"),
)


def written(folder: Path, places: int, records: int) -> Path:
    rows = "\n".join(f"R{i % max(1, places // 100)},P{i}" for i in range(places))
    (folder / "places.csv").write_text(f"region,place\n{rows}\n")
    (folder / "spec.yaml").write_text(SPEC)
    values = (
        "-20 * ln(random()) AS fare, CAST(5 * random() AS DECIMAL(9, 2)) AS tip, (random() * 5000)::INTEGER AS seconds"
    )
    duckdb.execute(
        f"COPY (SELECT 'P' || floor({places} * random() * random())::INTEGER AS place, {values} "
        f"FROM range({records})) TO '{folder / 'records.parquet'}' (FORMAT parquet)"
    )
    return folder / "records.parquet"


def tabulated() -> bool:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        path = written(folder, 263, RECORDS)
        job = Job.from_spec(read_spec(folder / "spec.yaml"))
        asked = {
            how: f"SELECT place, count(*), sum({a}), sum({b}), sum({c}) FROM read_parquet('{path}') GROUP BY 1"
            for how, (a, b, c) in THEIRS.items()
        }
        times = []
        for _ in range(ROUNDS):
            took = [time.process_time()]
            tabulate(job)
            took.append(time.process_time())
            for words in asked.values():
                duckdb.execute(words).fetchall()
                took.append(time.process_time())
            times.append(np.diff(took))
        ours, *theirs = np.median(times, axis=0)
    told = ", ".join(f"{ours / each:.2f} times {how}" for how, each in zip(asked, theirs, strict=True))
    print(f"{RECORDS:,} records, count and three sums: {ours:.2f} s of processor; {told} (bar {BAR_RATIO})", flush=True)
    return bool(ours / theirs[0] > BAR_RATIO)


def leaves() -> bool:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        written(folder, LEAVES, RECORDS // 10)
        start = time.process_time()
        hf.load(hf.job(folder / "spec.yaml").release().folder)
        took = time.process_time() - start
    words = f"{LEAVES:,} leaves with four values, from the spec to a verified folder: {took:.1f} s of processor"
    print(f"{words} (bar {BAR_SECONDS:.0f})", flush=True)
    return took > BAR_SECONDS


def covered(privacy: dict, hold: list[str], method: str, releases: int) -> bool:
    with tempfile.TemporaryDirectory() as name:
        folder, rng = Path(name), np.random.default_rng(5)
        rows = "\n".join(f"R{i % 3},P{i}" for i in range(len(SIZES)))
        (folder / "domain.csv").write_text(f"region,place\n{rows}\n")
        frame = pl.DataFrame({"place": np.repeat([f"P{i}" for i in range(len(SIZES))], SIZES)})
        frame = frame.with_columns(hours=pl.Series(rng.integers(0, 61, len(frame))))
        figures = ["count", {"sum": "hours", "between": [0, 60]}, {"mean": "hours"}]
        spec = {
            "title": "Hours",
            "data": {"name": "hours", "domain": str(folder / "domain.csv"), "rows_are_records": True},
            "privacy": privacy,
            "table": {"hierarchy": ["region", "place"], "root": "all", "figures": figures},
            "hold": hold,
            "method": method,
            "output": str(folder / "out"),
            "ledger": str(folder / "ledger.sqlite"),
        }
        job = Job.from_spec(read_spec(spec))
        first = hf.load(hf.job(spec).release(frame).folder)
        truths = [table.answer(cells) for table, cells in zip(job.tables, tabulate(job, frame), strict=True)]
    with np.errstate(all="ignore"):
        mean = truths[1] / truths[0]
    stream, hits = hf.seeded(3), []
    for _ in range(releases):
        drawn, loaded, row = [], [], []
        for table, truth, read in zip(job.tables, truths, first.tables.values(), strict=True):
            made = Written(table, table.mechanism.release(truth, rng=stream), folder, _files("x", False, False))
            ends = made.ends(slice(0, len(truth)))
            columns = {**read.columns, "value": made.values, "low": ends[:, 0], "high": ends[:, 1]}
            noisy = None if read.noisy is None else {**read.noisy, "value": made.drawn.measurements}
            found = LoadedTable(read.certificate, columns, read.release, noisy)
            found.__dict__["mechanism"] = read.mechanism  # built once
            row.append((ends[:, 0] <= truth) & (truth <= ends[:, 1]))
            drawn.append(made)
            loaded.append(found)
        file = means(*drawn)
        low, high = file["hours_mean_low"], file["hours_mean_high"]
        row.append(np.where(np.isnan(low), np.nan, (low <= mean) & (mean <= high)))
        for read, found in zip(first.tables.values(), loaded, strict=True):
            found._studies.update(read._studies)
        ends = np.full((len(mean), 2), np.nan)
        for i in ESTIMATED:
            each = np.eye(len(mean))[i]
            estimate = loaded[1].ratio(each, each, 0.95, of=loaded[0])
            ends[i] = estimate.low, estimate.high
        for read, found in zip(first.tables.values(), loaded, strict=True):
            read._studies.update(found._studies)
        asked = np.isin(np.arange(len(mean)), ESTIMATED)
        row.append(np.where(asked, (ends[:, 0] <= mean) & (mean <= ends[:, 1]), np.nan))
        row.append(np.where(asked, np.isfinite(ends).all(axis=1), np.nan))
        hits.append(row)
    kept = np.array(hits, dtype=float)
    there = ~np.isnan(kept)
    shares = np.where(there.mean(axis=0) > 0.5, np.nansum(kept, axis=0) / np.maximum(there.sum(axis=0), 1), np.nan)
    print(f"{privacy}, {', '.join(hold)}, {method}: {releases} releases of {len(mean)} rows")
    kinds = ("counts", "sums", "means of the file", "means estimated", "estimated means with finite ends")
    for what, found in zip(kinds, shares, strict=True):
        known = np.flatnonzero(~np.isnan(found))
        told = ", ".join(f"{truths[0][i]:.0f}: {100 * found[i]:.1f}" for i in known)
        print(f"  {what}: {100 * found[known].mean():.1f} % of the time; by records in the row {told}", flush=True)
    return bool(np.nanmean(shares[:4], axis=1).min() < LEAST)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--releases", type=int, default=1000)
    parser.add_argument("--only", choices=["coverage", "times"])
    parser.add_argument("--case", type=int, choices=range(len(CASES)))
    asked, missed = parser.parse_args(), []
    if asked.only != "coverage":
        missed += [tabulated(), leaves()]
    if asked.only != "times":
        cases = CASES if asked.case is None else [CASES[asked.case]]
        missed += [covered(*case, asked.releases) for case in cases]
    return int(any(missed))


if __name__ == "__main__":
    raise SystemExit(main())
