"""A nation drawn in pieces by a Spark cluster on this machine: equal to one process, and how time and bytes grow.

Run: .venv/bin/python benchmarks/spark.py [--apart] [BLOCKS ...]      (needs pyspark and Java)
Prints for each size the time of the cluster, which draws, writes and checks the table in parts, against one process
that draws the same pieces, bytes that travel and are written, the most memory that the driver and a worker took,
and the work of 100 cores for a census of 2,016 cells per block. Fails where a table differs. --apart leaves the
comparison out, and with it the memory that it takes.
"""

import os
import re
import resource
import shutil
import sys
import tempfile
import threading
import time
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
from nation_revision import counts, nation
from scipy import sparse

import holdfast as hf
from holdfast.release.pieces import parts, spark
from holdfast.release.pieces import passes as making
from holdfast.release.pieces.cut import Group, Here, packed, unpacked
from holdfast.release.pieces.parts import Sheets
from holdfast.release.pieces.passes import Pieces, gathered
from holdfast.release.storage.tables import ROW, read_parquet

SIZES = (81_000, 810_000, 8_100_000)
SECRET = bytes(range(32))
#: Cells of the census, figures of a nation of 8.1 million blocks, and processors.
CENSUS_CELLS, FIGURES, CORES = 2_016, 8_424_871, 100


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


class Named:
    """Names of figures that are made where they are asked for: of their level, or of the area itself."""

    def __init__(self, tree=None):
        self.tree = tree

    def __getitem__(self, at):
        if self.tree is None:
            return np.array(list(map(str, at.tolist())), dtype=object)
        return np.array(self.tree.levels, dtype=object)[self.tree.depth[at]]


def sheets_of(pieces):
    """Names and limits as a release has them, without the names of a real domain."""
    n = pieces.mechanism.query.n
    nothing, none = np.empty(0, dtype=np.int64), sparse.csr_array((0, n), dtype=np.int64)
    ends = (np.broadcast_to(0.0, n), np.broadcast_to(np.inf, n))
    rest = (none, np.broadcast_to(False, n), nothing, np.zeros(pieces.cut.count + 2, dtype=np.int64))
    names = {"level": Named(pieces.cut.tree), "area": Named()}
    return Sheets(names, {}, *ends, None, True, True, None, None, None, n, *rest)


def one_task(pieces, sheets, cells, folder):
    """Processor seconds per output of packing, and of all that tasks do with a group; bytes packed and written."""
    started = time.process_time()
    group = next(pieces.groups(cells, sheets.sheet, estimated=sheets.around_estimates))
    content = [packed([each.work, each.cells]) for each in group.pieces], packed(group.sheet())
    bytes_sent = sum(map(len, content[0])) + len(content[1])
    packing = time.process_time() - started
    group = Group(0, group.pieces, lambda: unpacked(content[1]))
    for _ in range(2):  # once to compile
        started = time.process_time()
        [unpacked(each) for each in content[0]]
        tasks = Here([group])
        tasks.noted(partial(making.measure_all, secret=SECRET), {0: None})
        done = {i: (each.noisy[:1], None) for i, each in enumerate(tasks.groups[0].pieces)}
        coins = np.zeros(1, dtype=np.uint64)
        found = tasks.grouped(partial(parts.write, coins=coins, folder=folder), {0: (0, done)})[0]
        written = sum(size for _, size, _ in found.files)
    outputs = group.figures
    return (time.process_time() - started) / outputs, packing / outputs, bytes_sent / outputs, written / outputs


class Watched:
    """What the cluster takes while it works: processor seconds and the most memory, of Java and of a worker, in MiB."""

    def __enter__(self):
        self.java = self.worker = 0.0
        self.seconds, self.done = -sum(each.seconds for each in below(os.getpid())), threading.Event()
        self.watching = threading.Thread(target=self.watch)
        self.watching.start()
        return self

    def __exit__(self, *_):
        self.seconds += sum(each.seconds for each in below(os.getpid()))
        self.done.set()
        self.watching.join()

    def watch(self):
        while not self.done.wait(1):
            for each in below(os.getpid()):
                if each.name == "java":
                    self.java = max(self.java, each.peak)
                else:
                    self.worker = max(self.worker, each.peak)


class Process(NamedTuple):
    name: str
    seconds: float
    peak: float


def below(number):
    """The processes that another one started, and those that they started; what ended is in who waited for it."""
    found = []
    for place in Path("/proc").glob("[0-9]*"):
        try:
            name, rest = (place / "stat").read_text().split("(", 1)[1].rsplit(")", 1)
            status = (place / "status").read_text()
        except OSError:  # it ended meanwhile
            continue
        fields = rest.split()
        if int(fields[1]) == number:
            peak = re.search(r"VmHWM:\s+(\d+)", status)
            seconds = sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")
            found += [Process(name, seconds, int(peak[1]) / 1024 if peak else 0.0), *below(int(place.name))]
    return found


def shuffled(cluster):
    """Bytes that Spark says were written for others to fetch, so far."""
    listed = cluster.sparkContext._jsc.sc().statusStore().executorList(False)
    return sum(listed.apply(i).totalShuffleWrite() for i in range(listed.length()))


def new_folder(names):
    place = tempfile.mkdtemp()
    for name in names:
        os.mkdir(os.path.join(place, name))
    return parts.Folder(place, "", 0.0)


def measure(cluster, blocks, compare):
    tree = hf.Hierarchy.from_parents(nation(blocks))
    noise, held = hf.laplace(hf.counts(tree), scale=6), hf.consistent(tree) & hf.nonnegative()
    pieces = Pieces.of(noise.onto(held, method="topdown"))
    pieces.work(pieces.cut.piece(0))  # and what moves the whole at once is forgotten
    cells = counts(blocks, 0.38)
    sheets, folder = sheets_of(pieces), new_folder(())
    before, own, moved = peak(), time.process_time(), shuffled(cluster)
    with Watched() as watched:
        _, together = timed(
            lambda: spark.in_parts(partial(spark.cluster, cluster), pieces, sheets, cells, folder, SECRET)
        )
    after, own, moved, alone = peak(), time.process_time() - own, shuffled(cluster) - moved, float("nan")
    if compare:
        (values, _), alone = timed(lambda: gathered(pieces, cells, SECRET))
        for path in Path(folder.path, "table.parquet").iterdir():
            part = read_parquet(path)
            if not np.array_equal(np.asarray(part["value"]), values[np.asarray(part[ROW])]):
                raise SystemExit(f"the cluster's table of {blocks} blocks differs from the one of one process")
    shutil.rmtree(folder.path)
    trial = new_folder((parts.WRITING, "table.parquet", "table.csv"))
    each, packing, sent, written = one_task(pieces, sheets, cells, trial)
    shutil.rmtree(trial.path)
    print(
        f"{blocks:>10,} blocks: {pieces.cut.count:>6,} pieces in {pieces.cut.groups.size - 1:,} groups, one process "
        f"{alone:.1f} s, cluster {together:.1f} s, of processors {own:.0f} s in the driver and {watched.seconds:.0f} s "
        f"in Java and workers; per figure: packing {packing * 1e9:.0f} ns of the driver, tasks {each * 1e9:.0f} ns, "
        f"{sent:.1f} bytes to the tasks, {written:.1f} written; {moved:,} bytes shuffled; driver {before:.0f} MiB, at "
        f"most {after:.0f} MiB, Java {watched.java:.0f} MiB, a worker {watched.worker:.0f} MiB",
        flush=True,
    )
    return each, sent, packing


def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**10


def main():
    words = [text for text in sys.argv[1:] if text.startswith("--")]
    sizes = [int(text.replace(",", "")) for text in sys.argv[1:] if not text.startswith("--")] or SIZES
    cluster = session()
    each, sent, packing = [measure(cluster, blocks, "--apart" not in words) for blocks in sizes][-1]
    figures = CENSUS_CELLS * FIGURES
    print(
        f"on paper, {figures:,} figures: {figures * each / CORES / 60:.0f} minutes of {CORES} cores in tasks, "
        f"{figures * sent / 2**30:.0f} GiB to the tasks, "
        f"{figures * packing / 3600:.0f} hours of the driver that packs them"
    )


if __name__ == "__main__":
    main()
