"""Rows of synthetic persons from `records()` against Private-PGM (mbi) on the same table at equal ρ.

Adult: sex × race × relationship × marital status × work class, 3,780 cells. Both measure all two-way margins; ours
spends a twentieth on the cells, which rows need, and mbi fits a graphical model (mirror descent) and draws rows from
it. The error is half the L1 distance between the two-way margins of the rows and of the data, as a share, mean over
margins.

mbi is installed in an environment of its own, because it is no dependency of this project:
    python3 -m venv ENV && ENV/bin/pip install mbi pandas
    .venv/bin/python benchmarks/synthetic_rows.py --data FOLDER --mbi ENV/bin/python
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from itertools import combinations
from pathlib import Path

import numpy as np

COLUMNS = ("sex", "race", "relationship", "marital_status", "workclass")
RHOS, SEEDS = (0.01, 0.1, 1.0), (0, 1, 2)
#: The part of the budget that goes to the cells.
CELLS = 0.05


def pairs(shape):
    return list(combinations(range(len(shape)), 2))


def distance(table, other):
    """Half the L1 distance of the two-way margins as shares, mean over margins."""
    found = []
    for kept in pairs(table.shape):
        others = tuple(a for a in range(table.ndim) if a not in kept)
        one, two = (each.sum(axis=others) / each.sum() for each in (table, other))
        found.append(np.abs(one - two).sum() / 2)
    return float(np.mean(found))


def rival(file):
    """Run in mbi's environment: fit and draw rows for every budget and seed, and print errors and seconds."""
    import jax

    jax.config.update("jax_enable_x64", True)
    from mbi import Domain, LinearMeasurement, estimation

    table = np.load(file)
    names = [str(a) for a in range(table.ndim)]
    domain = Domain(names, table.shape)
    for rho in RHOS:
        for seed in SEEDS:
            rng = np.random.default_rng(seed)
            start = time.process_time()
            listed = pairs(table.shape)
            deviation = float(np.sqrt(len(listed) / (2 * rho)))
            measured = []
            for kept in listed:
                others = tuple(a for a in range(table.ndim) if a not in kept)
                exact = table.sum(axis=others).ravel()
                noisy = exact + rng.normal(0, deviation, exact.size)
                measured.append(LinearMeasurement(noisy, tuple(names[a] for a in kept), deviation))
            model = estimation.MirrorDescent().estimate(domain, measured)
            rows = model.synthetic_data()
            counted = np.zeros(table.shape)
            columns = [
                np.asarray(rows.to_dict()[name]) if hasattr(rows, "to_dict") else rows.df[name] for name in names
            ]
            np.add.at(counted, tuple(np.asarray(column).astype(int) for column in columns), 1)
            print(json.dumps([rho, seed, distance(table, counted), time.process_time() - start]), flush=True)


def ours(table):
    import holdfast as hf

    cube = hf.Cube(table.shape, COLUMNS)
    everything, tree = tuple(range(table.ndim)), hf.Hierarchy.from_parents([-1])
    query = hf.counts(tree, by=cube, keep=[*pairs(table.shape), everything])
    wanted = {(0, kept): 1 / np.prod(cube.margin_shape(kept)) for kept in pairs(table.shape)}
    split = hf.best_shares(hf.counts(tree, by=cube, keep=pairs(table.shape)), wanted)
    total = sum(split.shares.values())
    shares = {level: (1 - CELLS) * share / total for level, share in split.shares.items()}
    shares = {**shares, (0, everything): CELLS}
    truth = query.answer(table.ravel())
    found = {}
    for rho in RHOS:
        law = hf.gaussian(query, rho=rho, shares=shares).onto(hf.consistent(query) & hf.nonnegative())
        for seed in SEEDS:
            start = time.process_time()
            release = law.release(truth, hf.seeded(seed))
            rows = release.records("polars")
            counted = np.zeros(table.shape)
            np.add.at(counted, tuple(rows[name].to_numpy().astype(int) for name in COLUMNS), 1)
            found[rho, seed] = distance(table, counted), time.process_time() - start
    return found


def read(folder):
    import duckdb

    source = str(Path(folder) / "adult_train.parquet")
    columns = ", ".join(f"dense_rank() OVER (ORDER BY {name}) - 1" for name in COLUMNS)
    codes = np.array(duckdb.execute(f"SELECT {columns} FROM read_parquet(?)", [source]).fetchall())
    table = np.zeros(codes.max(axis=0) + 1, np.int64)
    np.add.at(table, tuple(codes.T), 1)
    return table


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", required=True)
    parser.add_argument("--mbi", required=True)
    asked = parser.parse_args()
    table = read(asked.data)
    with tempfile.TemporaryDirectory() as folder:
        np.save(f"{folder}/table.npy", table)
        words = [asked.mbi, __file__, "--rival", f"{folder}/table.npy"]
        lines = subprocess.run(words, check=True, capture_output=True, text=True).stdout.splitlines()
    theirs = {(rho, seed): (error, took) for rho, seed, error, took in map(json.loads, lines)}
    mine = ours(table)
    for rho in RHOS:
        a, b = (np.array([found[rho, seed] for seed in SEEDS]).mean(axis=0) for found in (mine, theirs))
        print(
            f"ρ = {rho}: error of the two-way margins {a[0]:.4f} from records(), {b[0]:.4f} from mbi; "
            f"{a[1]:.1f} s and {b[1]:.1f} s of processor time a release"
        )


if __name__ == "__main__":
    rival(sys.argv[2]) if sys.argv[1:2] == ["--rival"] else main()
