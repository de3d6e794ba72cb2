"""The error of a sum of blocks of a nation, from the messages against simulated tables, in one run.

Nations as in nation_revision.py, integer Laplace noise of scale 6 on every node, given that the table adds up. Blocks
are chosen at random, each counts once. Errors of all single figures are made first: their messages serve all sums. The
yardstick is what a simulation takes: 100 tables know a standard error to about 7 %, and 1,500 show the ends of a 95 %
interval. A few tables are drawn, and their mean time counts so often. Seconds are those of processors. Bar: no error
and no interval takes longer than that.

    python benchmarks/nation_sums.py [--blocks 81000 810000] [--sums 1 100 10000]
"""

import argparse
import resource
import sys
import time
from functools import partial

import numpy as np
from nation_revision import nation

import holdfast as hf
from holdfast.noise.inversion import Sums

TABLES, FOR_ENDS, DRAWN = 100, 1_500, 4


def timed(task):
    """What a task returns, and the seconds of processors that it takes."""
    start = time.process_time()
    result = task()
    return result, time.process_time() - start


def peak():
    """The most memory that was used so far, in GiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


def measured(blocks, sizes):
    """Print the figures of one nation; return whether a bar is missed."""
    tree = hf.Hierarchy.from_parents(nation(blocks))
    mechanism = hf.laplace(hf.counts(tree), scale=6).given(hf.consistent(tree))
    truth = np.zeros(tree.n, dtype=np.int64)
    release = mechanism.release(truth, rng=hf.seeded(1))
    _, single = timed(lambda: release.estimate(truth))
    print(f"nation of {blocks:,} blocks: errors of all figures in {single:.2f} s; peak memory {peak():.2f} GiB")
    found = []
    for size in sizes:
        weights = np.zeros(tree.n)
        weights[np.random.default_rng(size).choice(tree.leaves, size, replace=False)] = 1
        estimate, seconds = timed(partial(release.estimate, weights))
        spread, error = release.spread, estimate.standard_error
        sums = Sums([(spread.characteristic, weights)], error)
        reach, more = timed(partial(sums.least_reach, 0.025))
        found.append((size, error, seconds, reach, more, peak()))
    _, drawing = timed(lambda: [mechanism.simulate(truth, 1, rng=hf.seeded(seed)) for seed in range(DRAWN)])
    table = drawing / DRAWN
    print(f"simulated tables: {TABLES} in {table * TABLES:.1f} s, {FOR_ENDS:,} in {table * FOR_ENDS:.1f} s")
    missed = False
    for size, error, seconds, reach, more, memory in found:
        ratios = seconds / (table * TABLES), more / (table * FOR_ENDS)
        missed |= reach is None or max(ratios) > 1
        ends = "not found" if reach is None else f"{reach:g}, {reach / error:.3f} errors"
        print(
            f"sum of {size:,} of {blocks:,} blocks: error {error:.6g} in {seconds:.2f} s, ratio {ratios[0]:.4f}"
            f" (bar 1); 95 % reach {ends} in {more:.2f} s, ratio {ratios[1]:.4f} (bar 1); peak memory {memory:.2f} GiB"
        )
    return missed


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--blocks", nargs="+", type=int, default=[81_000, 810_000])
    parser.add_argument("--sums", nargs="+", type=int, default=[1, 100, 10_000])
    options = parser.parse_args()
    missed = [measured(blocks, options.sums) for blocks in options.blocks]
    return 1 if any(missed) else 0


if __name__ == "__main__":
    sys.exit(main())
