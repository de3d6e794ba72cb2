"""A nation drawn in pieces by a Spark cluster on this machine: equal to one process, and how time and bytes grow.

Run: .venv/bin/python benchmarks/spark.py [--apart | --census] [BLOCKS ...]      (needs pyspark and Java)
Prints for each size the time of the cluster, which draws, writes and checks the table in parts, against one process
that draws the same pieces, bytes that travel and are written, the most memory that the driver and a worker took,
and the work of 100 cores for a census of 2,016 cells per block. Fails where a table differs. --apart leaves the
comparison out, and with it the memory that it takes. --census draws a census of 84 cells and four margins in every area
instead, once by this process and once by the cluster, and fails where a file differs.
"""

import json
import os
import re
import resource
import shutil
import sys
import tempfile
import threading
import time
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
import polars as pl
from nation_revision import counts, nation
from scipy import sparse

import holdfast as hf
from holdfast.release.pieces import drawing, parts, spark
from holdfast.release.pieces import passes as making
from holdfast.release.pieces.cut import Group, Here, packed, unpacked
from holdfast.release.pieces.parts import Sheets
from holdfast.release.pieces.passes import Pieces

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
    content = packed(group.work), packed(group.sheet())
    bytes_sent = sum(map(len, content))
    packing = time.process_time() - started
    for _ in range(2):  # once to compile
        started = time.process_time()
        tasks = Here([Group(unpacked(content[0]), lambda: unpacked(content[1]))])
        heads = tasks.each(partial(making.measure_all, secret=SECRET), {0: None})[0]
        done = [(head.estimate, None) for head, _ in heads]
        found = tasks.each(partial(parts.write, folder=folder, secret=SECRET), {0: (0, done)})[0]
        written = sum(size for _, size, _ in found.files)
    outputs = sum(held.work.piece.own for held in group.work)
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
        made, together = timed(
            lambda: drawing.in_parts(partial(spark.cluster, cluster), pieces, sheets, cells, folder, SECRET)
        )
    after, own, moved, alone = peak(), time.process_time() - own, shuffled(cluster) - moved, float("nan")
    if compare:
        other = new_folder(())
        here, alone = timed(
            lambda: drawing.in_parts(lambda each: nullcontext(Here(list(each))), pieces, sheets, cells, other, SECRET)
        )
        shutil.rmtree(other.path)
        if texts_of(here) != texts_of(made):
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


CENSUS = """
title: A census
data: {{source: none.csv, domain: {domain}, values: {values}}}
privacy: {{rho: 1}}
table:
  hierarchy: [state, county, tract, group, block]
  root: nation
  cube: [sex, age, kind]
  measure: {measure}
hold: [consistent, nonnegative]
method: onto
engine: spark
output: {folder}
"""


def census(cluster, blocks, place):
    """Draw and write one census by this process and by the cluster."""
    parents = nation(blocks)
    tree = hf.Hierarchy.from_parents(parents)
    columns, node = {}, tree.leaves
    for level in ("block", "group", "tract", "county", "state"):
        columns[level] = [f"{level[0]}{number}" for number in node.tolist()]
        node = parents[node]
    pl.DataFrame({name: columns[name] for name in reversed(columns)}).write_csv(place / f"{blocks}.csv")
    sizes = {"sex": 2, "age": 7, "kind": 6}
    values = {name: [f"{name}{i}" for i in range(size)] for name, size in sizes.items()}
    margins = [["sex", "age", "kind"], ["sex", "age"], ["kind"], "total"]
    measure = json.dumps(dict.fromkeys(["nation", *reversed(columns)], margins))
    spec = CENSUS.format(
        domain=place / f"{blocks}.csv", values=json.dumps(values), measure=measure, folder=place / "out"
    )
    table = hf.job(spec).made.tables[0]
    people = np.random.default_rng(1).multinomial(counts(blocks, 0.38), np.random.default_rng(2).dirichlet([0.3] * 84))
    cells, n = people.astype(np.int64).ravel(), table.mechanism.query.n
    truth = table.mechanism.query.answer(cells)
    made = []
    for hand in (lambda groups: nullcontext(Here(list(groups))), partial(spark.cluster, cluster)):
        folder, own = new_folder(()), time.process_time()
        with Watched() as watched:
            _, seconds = timed(
                lambda: made.append(drawing.census_in_parts(hand, table, cells, truth, folder, SECRET))  # noqa: B023
            )
        own = time.process_time() - own
        print(
            f"{blocks:>10,} blocks, {n:,} figures, {made[-1].count} parts: {seconds:.0f} s, of processors {own:.0f} s "
            f"here and {watched.seconds:.0f} s in Java and workers; this process at most {peak():.0f} MiB, Java "
            f"{watched.java:.0f} MiB, a worker {watched.worker:.0f} MiB; "
            f"{sum(size for size, _ in made[-1].files.values()):,} bytes written, {shuffled(cluster):,} shuffled",
            flush=True,
        )
        shutil.rmtree(folder.path)
    if texts_of(made[0]) != texts_of(made[1]):
        raise SystemExit(f"the cluster's census of {blocks} blocks differs from the one of one process")


def texts_of(made):
    """Size and hash of every CSV file: all that was written, as text."""
    return {name: each for name, each in made.files.items() if name.endswith(".csv")}


def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**10


def main():
    words = [text for text in sys.argv[1:] if text.startswith("--")]
    sizes = [int(text.replace(",", "")) for text in sys.argv[1:] if not text.startswith("--")] or SIZES
    cluster = session()
    if "--census" in words:
        with tempfile.TemporaryDirectory() as place:
            for blocks in sizes:
                census(cluster, blocks, Path(place))
        return
    each, sent, packing = [measure(cluster, blocks, "--apart" not in words) for blocks in sizes][-1]
    figures = CENSUS_CELLS * FIGURES
    print(
        f"on paper, {figures:,} figures: {figures * each / CORES / 60:.0f} minutes of {CORES} cores in tasks, "
        f"{figures * sent / 2**30:.0f} GiB to the tasks, "
        f"{figures * packing / 3600:.0f} hours of the driver that packs them"
    )


if __name__ == "__main__":
    main()
