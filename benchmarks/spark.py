"""A nation drawn in pieces by a Spark cluster on this machine: equal to one process, and how time and bytes grow.

Run: .venv/bin/python benchmarks/spark.py [--given] [BLOCKS ...]   (needs pyspark and Java; 8,100,000 blocks take 6 GiB)
Prints for each size the time of the cluster against one process, the bytes that travel, the most memory that a worker
took, and the work of 100 cores for a census of 2,016 cells per block. Fails where a table differs. TopDown is compared
with the undivided table; with --given, noise conditioned on sums and non-negativity with the same pieces, one after the
other.
"""

import os
import resource
import sys
import time

import numpy as np
from nation_revision import counts, nation

import holdfast as hf
from holdfast.randomness import Keys
from holdfast.release.pieces import conditioned, spark
from holdfast.release.pieces.passes import ascend, descend
from holdfast.release.pieces.tasks import packed
from holdfast.release.pieces.whole import Pieces, in_one_process, undivided

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
    """Processor seconds per output of all passes over the largest piece, and its size."""
    _, below = pieces.cut.split(cells)
    number = int(np.argmax([own.size for own in below]))
    work, own = pieces.work(pieces.cut.piece(number)), below[number]

    def level_by_level():
        truth, noisy, head = ascend(work, own, keys)
        descend(work, truth, noisy, np.maximum(head.estimate, 0), keys)

    def conditional():
        nothing = np.zeros(1, dtype=np.int64)
        conditioned.told(work, own)
        conditioned.grafts(work, own, np.zeros(1))
        conditioned.drawn(work, own, np.zeros(1), nothing, nothing, keys)

    passes = conditional if pieces.conditions else level_by_level
    passes()
    start = time.process_time()
    for _ in range(3):
        passes()
    return (time.process_time() - start) / 3 / work.piece.own, work.piece.own


def worker_peak(cluster):
    """The most memory that a worker of the cluster took so far, in MiB."""

    def look(batches):
        import pyarrow as pa

        for _ in batches:
            yield pa.RecordBatch.from_pydict({"peak": [resource.getrusage(resource.RUSAGE_SELF).ru_maxrss]})

    return max(row["peak"] for row in cluster.range(8).mapInArrow(look, "peak bigint").collect()) / 1024


def measure(cluster, blocks, given):
    tree = hf.Hierarchy.from_parents(nation(blocks))
    query = hf.counts(tree)
    noise, held = hf.laplace(query, scale=6), hf.consistent(tree) & hf.nonnegative()
    mechanism = noise.given(held) if given else noise.onto(held, method="topdown")
    pieces, cells, keys = Pieces.of(mechanism), counts(blocks, 0.38), Keys.of(SECRET)
    (values, noisy), alone = timed(lambda: (in_one_process if given else undivided)(pieces, cells, keys))
    packed_works, packing = timed(lambda: spark._given(pieces, cells))
    drawn, together = timed(lambda: spark.draw(cluster, pieces, cells, SECRET))
    if not (np.array_equal(drawn.values, values) and np.array_equal(drawn.noisy, noisy)):
        raise SystemExit(f"the cluster's table of {blocks} blocks differs from the undivided one")
    each, largest = one_task(pieces, cells, keys)
    sent = packed_works.nbytes / query.n
    came = len(packed(drawn.values)) * 2 / query.n
    print(
        f"{blocks:>10,} blocks: {len(pieces.numbers):>6,} pieces (largest {largest:,}), one process {alone:.1f} s, "
        f"cluster {together:.1f} s of which {packing:.1f} s packing; bytes per figure: {sent:.1f} to the tasks, "
        f"{came:.1f} back, 0 shuffled; task {each * 1e9:.0f} ns per figure; a worker took "
        f"{worker_peak(cluster):.0f} MiB at most",
        flush=True,
    )
    return each, sent, packing / query.n


def main():
    given = "--given" in sys.argv
    sizes = [int(text.replace(",", "")) for text in sys.argv[1:] if text != "--given"] or SIZES
    cluster = session()
    each, sent, packing = [measure(cluster, blocks, given) for blocks in sizes][-1]
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
