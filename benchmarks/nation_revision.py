"""One exact release of a nation's hierarchy against numpy's independent noise, in one run.

Six levels, 8.1 million blocks: about 34 blocks per group, 3 groups per tract, 23 tracts per county, 62 counties per
state; 38 % of the blocks are empty (or 95 %, or all), the others geometric with a mean of 45, and of others too. Noise
of scale 6 on every node, secure stream. The yardstick is numpy drawing two geometrics for every node and summing the
noise up: no constraint holds, nothing is exact. A release is the whole job: messages, draws, checks of the truth and of
the result. Each case runs in a process of its own, so that its peak memory is seen, and releases three times, so that
what a release leaves behind is seen too; compiling is not counted.

    python benchmarks/nation_revision.py [--blocks 81000 810000 8100000] [--means 5 45 60 500] [--data FOLDER]
        [--picture FILE]

Beside other work, compare seconds of processors: the yardstick's and ours.

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

BARS = {
    (law, must): bar for law in ("laplace", "gaussian") for must, bar in (("consistent", 4.0), ("nonnegative", 12.0))
}
MUST = ("consistent", "nonnegative")
MOST_GIB = 2.0
RELEASES = 3
#: Blocks of a nation that is released first: large enough that all that is used later is compiled.
FIRST = 20_000
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


def counts(blocks, empty, mean=None, seed=1):
    """Counts of the blocks: so many empty, the others geometric (with mean 45, or 60 where nearly all are empty)."""
    generator = np.random.default_rng(seed)
    full = generator.geometric(1 / (mean or (45 if empty < 0.9 else 60)), blocks)
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


def release(law, parents, leaves, must, times=1):
    """Release some times; return seconds and seconds of all processors of the first, and the peak memory after each."""
    tree = hf.Hierarchy.from_parents(parents)
    truth = tree.sum_up(leaves)
    hold = hf.consistent(tree) & hf.nonnegative(at=tree.leaves) if must == "nonnegative" else hf.consistent(tree)
    base = hf.laplace if law == "laplace" else hf.gaussian
    taken, peaks = [], []
    for _ in range(times):
        mechanism = base(hf.counts(tree), scale=6).given(hold)
        assert mechanism.guarantee.numerical_delta == 0
        start, used = time.perf_counter(), time.process_time()
        made = mechanism.release(truth)
        taken.append((time.perf_counter() - start, time.process_time() - used))
        assert np.array_equal(made.values, tree.sum_up(made.values[tree.leaves]))
        assert must == "consistent" or made.values.min() >= 0
        del mechanism, made
        peaks.append(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20)
    return *taken[0], peaks


def case(law, must, source):
    """Run one case in this process and return what was seen."""
    release(law, nation(FIRST), counts(FIRST, 0.38, 45), must)  # compile
    if source["kind"] == "nation":
        parents = nation(source["blocks"])
        leaves = counts(source["blocks"], source["empty"], source["mean"])
    else:
        parents, leaves = from_geoids(source["path"], source["cuts"])
    before, used_before = yardstick(parents), yardstick(parents, clock=time.process_time)
    seconds, used, peaks = release(law, parents, leaves, must, RELEASES)
    return {
        "seconds": seconds, "used": used, "yardstick": min(before, yardstick(parents)),
        "used_yardstick": min(used_before, yardstick(parents, clock=time.process_time)),
        "memory": peaks[-1], "peaks": peaks, "leaves": leaves.size,
    }  # fmt: skip


def run(law, must, source):
    """Run one case in a process of its own; None where it is refused, which is printed."""
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        try:
            return pool.submit(case, law, must, source).result()
        except hf.Refused as refusal:
            print(f"{law} given {must}, {source}: REFUSED: {refusal}", flush=True)
            return None


def told(found, bar):
    """The figures of one case in words, and whether a bar was missed."""
    ratio = found["seconds"] / found["yardstick"]
    missed = (bar is not None and ratio > bar) or found["memory"] > MOST_GIB
    peaks = ", ".join(f"{peak:.2f}" for peak in found["peaks"])
    against = "" if bar is None else f" (bar {bar:.0f})"
    return missed, (
        f"{found['seconds']:.2f} s, yardstick {found['yardstick']:.3f} s, ratio {ratio:.1f}{against}; of processors "
        f"{found['used']:.2f} s, ratio {found['used'] / found['used_yardstick']:.1f}; peak memory after each release "
        f"{peaks} GiB (bar {MOST_GIB:.0f}){' MISSED' if missed else ''}"
    )


def main():
    options = argparse.ArgumentParser()
    options.add_argument("--blocks", type=int, nargs="+", default=[81_000, 810_000, 8_100_000])
    options.add_argument("--means", type=float, nargs="+", default=[45, 5, 60, 500])
    options.add_argument("--laws", nargs="+", default=["laplace", "gaussian"])
    options.add_argument("--data", default=None)
    options.add_argument("--picture", type=Path, default=None)
    given = options.parse_args()
    missed = False
    seen = {}
    for blocks in given.blocks:
        cases = [(law, "consistent", 0.38, 45) for law in given.laws]
        cases += [(law, "nonnegative", 0.38, mean) for law in given.laws for mean in given.means]
        cases += [(law, "nonnegative", empty, 60) for law in given.laws for empty in (0.95, 1.1)]
        for law, must, empty, mean in cases:
            found = run(law, must, {"kind": "nation", "blocks": blocks, "empty": empty, "mean": mean})
            if found is None:
                missed = True
                continue
            if mean == 45 or empty > 0.9:
                seen[blocks, law, must, empty] = found
            bar = BARS.get((law, must)) if empty == 0.38 and blocks >= 8_000_000 else None
            bad, words = told(found, bar)
            missed |= bad
            where = f"nation of {blocks:,} blocks, {EMPTY[empty]}" + (f", mean {mean:g}" if empty < 1 else "")
            print(f"{where}, {law} given {must}: {words}", flush=True)
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
            for law, must in itertools.product(given.laws, MUST):
                found = run(law, must, {"kind": "file", "path": f"{given.data}/{file}", "cuts": cuts})
                if found is not None:
                    print(f"{name}, {found['leaves']:,} leaves, {law} given {must}: {told(found, None)[1]}", flush=True)
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
