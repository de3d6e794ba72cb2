"""One exact release of a nation's hierarchy against numpy's independent noise, in one run.

Six levels, 8.1 million blocks: about 34 blocks per group, 3 groups per tract, 23 tracts per county, 62 counties per
state; 38 % of the blocks are empty (or 95 %, or all). Noise of scale 6 on every node, secure stream. The yardstick is
numpy drawing two geometrics for every node and summing the noise up: no constraint holds, nothing is exact. A release
is the whole job: messages, draws, checks of the truth and of the result. Each case runs in a process of its own, so
that its peak memory is seen; compiling is not counted.

    python benchmarks/nation_revision.py [--blocks 81000 810000 8100000] [--data FOLDER] [--picture FILE]

With --data, the block groups of the United States in 2020 and the blocks of Rhode Island and Hawaii in 2010 (files
us_blockgroups_2020.parquet and blocks_2010_RI_HI.parquet with columns geoid and pop) are released too.
"""

import argparse
import itertools
import multiprocessing
import resource
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import growth_picture
import numpy as np
import polars

import holdfast as hf

BARS = {"consistent": 8.0, "nonnegative": 30.0}
MOST_GIB = 4.0
GROWTH_BAR = 1.5
EMPTY = {0.38: "38 % empty", 0.95: "95 % empty", 1.1: "all empty"}


def nation(blocks, seed=0):
    """Parents of a random nation; every level keeps its average size."""
    generator = np.random.default_rng(seed)
    sizes = [blocks]
    for per in (34, 3, 23, 62):
        sizes.append(max(1, round(sizes[-1] / per)))
    sizes = [1, *sizes[::-1]]
    parents = [np.array([-1])]
    start = 0
    for above, below in itertools.pairwise(sizes):
        chosen = generator.integers(0, above, below)
        chosen[:above] = np.arange(above)
        parents.append(start + np.sort(chosen))
        start += above
    return np.concatenate(parents)


def counts(blocks, empty, seed=1):
    """Counts of the blocks: so many empty, the others geometric with mean 45 (60 where nearly all are empty)."""
    generator = np.random.default_rng(seed)
    full = generator.geometric(1 / (45 if empty < 0.9 else 60), blocks)
    return np.where(generator.random(blocks) < empty, 0, full)


def from_geoids(path, cuts):
    """The hierarchy and the counts of a table of areas whose codes begin with the codes of the areas above."""
    rows = polars.read_parquet(path, columns=["geoid", "pop"]).sort("geoid")
    codes = rows["geoid"].to_numpy().astype(str)
    parents, start, above = [np.array([-1])], 1, np.zeros(codes.size, dtype=np.int64)
    for cut in [*cuts, None]:
        keys = codes if cut is None else np.array([code[:cut] for code in codes])
        _, first, member = np.unique(keys, return_index=True, return_inverse=True)
        parents.append(above[first])
        above = start + member
        start += first.size
    return np.concatenate(parents), rows["pop"].to_numpy().astype(np.int64)


def yardstick(parents, runs=5, clock=time.perf_counter):
    """The median time of drawing independent noise for all nodes and summing it up, level by level."""
    generator = np.random.default_rng()
    chance = 1 - np.exp(-1 / 6)
    tree = hf.Hierarchy.from_parents(parents)
    depth = np.asarray(tree.depth)
    levels = [np.flatnonzero(depth == d) for d in range(int(depth.max()), 0, -1)]
    times = []
    for _ in range(runs):
        start = clock()
        noise = generator.geometric(chance, parents.size) - generator.geometric(chance, parents.size)
        for level in levels:
            first = np.flatnonzero(np.diff(parents[level], prepend=-1))
            noise[parents[level[first]]] += np.add.reduceat(noise[level], first)
        times.append(clock() - start)
    return float(np.median(times))


def release(law, parents, leaves, must):
    """Release once; return seconds, and seconds of all processors."""
    tree = hf.Hierarchy.from_parents(parents)
    truth = tree.sum_up(leaves)
    hold = hf.consistent(tree) & hf.nonnegative(at=tree.leaves) if must == "nonnegative" else hf.consistent(tree)
    base = hf.laplace if law == "laplace" else hf.gaussian
    mechanism = base(hf.counts(tree), scale=6).given(hold)
    assert mechanism.guarantee.numerical_delta == 0
    start, used = time.perf_counter(), time.process_time()
    made = mechanism.release(truth)
    seconds, used = time.perf_counter() - start, time.process_time() - used
    assert np.array_equal(made.values, tree.sum_up(made.values[tree.leaves]))
    assert must == "consistent" or made.values.min() >= 0
    return seconds, used


def case(law, must, source):
    """Run one case in this process and return what was seen."""
    small = nation(2_000)
    release(law, small, counts(2_000, 0.38), must)  # compile
    if source["kind"] == "nation":
        parents, leaves = nation(source["blocks"]), counts(source["blocks"], source["empty"])
    else:
        parents, leaves = from_geoids(source["path"], source["cuts"])
    before = yardstick(parents)
    seconds, used = release(law, parents, leaves, must)
    unit = yardstick(parents)
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    return {"seconds": seconds, "used": used, "yardstick": min(before, unit), "memory": memory, "leaves": leaves.size}


def run(law, must, source):
    """Run one case in a process of its own; None where it is refused, which is printed."""
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        try:
            return pool.submit(case, law, must, source).result()
        except hf.Refused as refusal:
            print(f"{law} given {must}, {source}: REFUSED: {refusal}", flush=True)
            return None


def main():
    options = argparse.ArgumentParser()
    options.add_argument("--blocks", type=int, nargs="+", default=[81_000, 810_000, 8_100_000])
    options.add_argument("--data", default=None)
    options.add_argument("--picture", type=Path, default=None)
    given = options.parse_args()
    missed = False
    seen = {}
    for blocks in given.blocks:
        cases = [
            (law, must, empty)
            for law in ("laplace", "gaussian")
            for must in BARS
            for empty in ((0.38,) if must == "consistent" else (0.38, 0.95, 1.1))
        ]
        for law, must, empty in cases:
            found = run(law, must, {"kind": "nation", "blocks": blocks, "empty": empty})
            if found is None:
                missed = True
                continue
            ratio = found["seconds"] / found["yardstick"]
            seen[blocks, law, must, empty] = found
            bar = BARS[must] if law == "laplace" and empty == 0.38 and blocks >= 8_000_000 else None
            bad = (bar is not None and ratio > bar) or found["memory"] > MOST_GIB
            missed |= bad
            against = "" if bar is None else f" (bar {bar:.0f})"
            print(
                f"nation of {blocks:,} blocks, {EMPTY[empty]}, {law} given {must}: {found['seconds']:.2f} s (of "
                f"processors {found['used']:.2f} s), yardstick {found['yardstick']:.3f} s, ratio {ratio:.1f}{against}, "
                f"peak memory {found['memory']:.2f} GiB (bar {MOST_GIB:.0f}){' MISSED' if bad else ''}",
                flush=True,
            )
    if len(given.blocks) > 1:
        small, large = sorted(given.blocks)[-2:]
        for law, must, empty in sorted(
            {key[1:] for key in seen if {(small, *key[1:]), (large, *key[1:])} <= set(seen)}
        ):
            growth = seen[large, law, must, empty]["seconds"] / seen[small, law, must, empty]["seconds"]
            missed |= growth > GROWTH_BAR * large / small
            print(
                f"{law} given {must}, {EMPTY[empty]}: {large / small:.0f} times the blocks, {growth:.1f} times the "
                f"time (bar {GROWTH_BAR * large / small:.0f})"
            )
    for empty, name in ((0.95, "95 % empty"), (1.1, "all empty")):
        blocks = max(given.blocks)
        if not {(blocks, "laplace", "nonnegative", each) for each in (empty, 0.38)} <= set(seen):
            continue
        slower = seen[blocks, "laplace", "nonnegative", empty]["seconds"]
        slower /= seen[blocks, "laplace", "nonnegative", 0.38]["seconds"]
        missed |= slower > 2
        print(f"{name}: {slower:.2f} times the time of 38 % empty (bar 2)")
    if given.data:
        for name, file, cuts in (
            ("United States, block groups 2020", "us_blockgroups_2020.parquet", [2, 5, 11]),
            ("Rhode Island and Hawaii, blocks 2010", "blocks_2010_RI_HI.parquet", [2, 5, 11, 12]),
        ):
            for law in ("laplace", "gaussian"):
                for must in BARS:
                    found = run(law, must, {"kind": "file", "path": f"{given.data}/{file}", "cuts": cuts})
                    if found is None:
                        continue
                    print(
                        f"{name}, {found['leaves']:,} leaves, {law} given {must}: {found['seconds']:.2f} s, yardstick "
                        f"{found['yardstick']:.3f} s, ratio {found['seconds'] / found['yardstick']:.1f}, peak memory "
                        f"{found['memory']:.2f} GiB",
                        flush=True,
                    )
    if given.picture:
        usual = [("consistent", 0.38), ("nonnegative", 0.38), ("nonnegative", 0.95)]
        series = {
            f"{must}, {EMPTY[empty]}": {b: seen[b, "laplace", must, empty]["seconds"] for b in given.blocks}
            for must, empty in usual
        }
        series["yardstick"] = {b: seen[b, "laplace", "consistent", 0.38]["yardstick"] for b in given.blocks}
        growth_picture.draw(given.picture, "One exact release of a nation: time", "blocks", series)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
