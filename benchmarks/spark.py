"""A nation drawn in pieces by a Spark cluster on this machine: equal to one process, and how time and bytes grow.

Run: .venv/bin/python benchmarks/spark.py [BLOCKS ...]     (needs pyspark and Java; 8,100,000 blocks take 6 GiB)
Prints for each size the time of the cluster against the same pieces in one process and against the undivided table, the
bytes that travel, and the work of 100 cores for a census of 2,016 cells per block. Fails where a table differs.
"""

import os
import resource
import sys
import time

import numpy as np
from nation_revision import counts, nation

import holdfast as hf
from holdfast.randomness import Keys
from holdfast.release.pieces import spark
from holdfast.release.pieces.passes import ascend, descend
from holdfast.release.pieces.tasks import packed
from holdfast.release.pieces.whole import Pieces, undivided

SIZES = (81_000, 810_000, 8_100_000)
SECRET = bytes(range(32))
CENSUS_CELLS, CORES = 2_016, 100


def session():
    os.environ["PYSPARK_PYTHON"] = sys.executable
    from pyspark.sql import SparkSession

    settings = {
        "spark.ui.enabled": "false",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.memory": "2g",
        "spark.driver.maxResultSize": "0",
        "spark.io.encryption.enabled": "true",
        "spark.log.level": "ERROR",
        "spark.ui.showConsoleProgress": "false",
    }
    building = SparkSession.builder.master("local[2]")
    for key, value in settings.items():
        building = building.config(key, value)
    return building.getOrCreate()


def timed(action):
    start = time.perf_counter()
    result = action()
    return result, time.perf_counter() - start


def one_task(pieces, cells, keys):
    """Processor seconds per output of both passes over the largest piece, and its size."""
    _, below = pieces.cut.split(cells)
    number = int(np.argmax([own.size for own in below]))
    work, own = pieces.work(pieces.cut.piece(number)), below[number]
    ascend(work, own, keys)
    start = time.process_time()
    for _ in range(3):
        truth, noisy, head = ascend(work, own, keys)
        descend(work, truth, noisy, np.maximum(head.estimate, 0), keys)
    return (time.process_time() - start) / 3 / noisy.size, noisy.size


def measure(cluster, blocks):
    tree = hf.Hierarchy.from_parents(nation(blocks))
    query = hf.counts(tree)
    noise = hf.laplace(query, scale=6)
    mechanism = noise.onto(hf.consistent(tree) & hf.nonnegative(), method="topdown")
    pieces, cells, keys = Pieces.of(mechanism), counts(blocks, 0.38), Keys.of(SECRET)
    (values, noisy), alone = timed(lambda: undivided(pieces, cells, keys))
    given, packing = timed(lambda: spark._given(pieces, cells))
    drawn, together = timed(lambda: spark.draw(cluster, pieces, cells, SECRET))
    if not (np.array_equal(drawn.values, values) and np.array_equal(drawn.noisy, noisy)):
        raise SystemExit(f"the cluster's table of {blocks} blocks differs from the undivided one")
    each, largest = one_task(pieces, cells, keys)
    sent = given.nbytes / query.n
    came = len(packed(drawn.values)) * 2 / query.n
    print(
        f"{blocks:>10,} blocks: {len(pieces.numbers):>6,} pieces (largest {largest:,}), undivided {alone:.1f} s, "
        f"cluster {together:.1f} s of which {packing:.1f} s packing; bytes per figure: {sent:.1f} to the tasks, "
        f"{came:.1f} back, 0 shuffled; task {each * 1e9:.0f} ns per figure"
    )
    return each, sent, packing / query.n


def main():
    sizes = [int(text.replace(",", "")) for text in sys.argv[1:]] or SIZES
    cluster = session()
    each, sent, packing = [measure(cluster, blocks) for blocks in sizes][-1]
    figures = CENSUS_CELLS * hf.Hierarchy.from_parents(nation(8_100_000)).n if 8_100_000 in sizes else None
    if figures:
        print(
            f"on paper, {figures:,} figures: {figures * each / CORES / 60:.0f} minutes of {CORES} cores in tasks, "
            f"{figures * sent / 2**30:.0f} GiB to the tasks; but {figures * packing / 3600:.0f} hours of the driver, "
            "which packs what the tasks get: a table of this size needs pieces that are packed where they are"
        )
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(f"the driver's peak: {peak:.2f} GiB")


if __name__ == "__main__":
    main()
