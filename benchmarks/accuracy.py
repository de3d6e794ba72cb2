"""How wrong released tables are, method by method, at equal certified guarantee, on real data.

Every method releases the same true counts many times with a reproducible stream; printed are the mean absolute error
of each level with its Monte-Carlo standard error, and the bias by the size of the true count. The guarantee that
holdfast states for each mechanism is checked to be the same. Results are appended to a file; what stands there is not
run again, so the study can be stopped and continued. Packages of others join in where they are installed.

    python benchmarks/accuracy.py --data FOLDER --results FILE [--quick] [--only WORD ...] [--picture FILE]

`--only` keeps the runs in whose name all words occur, for instance `--only city laplace`; `--quick` makes a twentieth
of the repetitions.
"""

import argparse
import csv
import sys
import time
import zlib
from collections.abc import Iterator
from dataclasses import asdict, astuple, dataclass, fields
from pathlib import Path

import accuracy_rivals
import accuracy_tables
import numpy as np
import numpy.typing as npt
from accuracy_data import READERS, Case
from accuracy_methods import METHODS, SPLITS, Setting
from accuracy_tables import Result

import holdfast as hf

EPSILONS = (0.5, 1.0, 2.0)
REPETITIONS = {"city": 20_000, "state": 1_000, "blocks": 600, "nation": 10}
#: What every table and budget gets.
EVERYWHERE = tuple(method for method in METHODS if method not in ("metropolis", "onto, topdown"))
#: Tables on which other splits of the budget are tried, and other statements.
MORE = ("city", "blocks")
#: Fewer repetitions for what is slow.
SLOW = {
    ("city", "metropolis"): 200,
    ("city", "mbi"): 400,
    ("city", "mbi, 50,000 rounds"): 100,
    ("city", "InfTDA"): 1_000,
    ("state", "InfTDA"): 10,
    ("blocks", "given nonnegative"): 60,
}
#: Numbers that are held at once.
HELD = 4_000_000
#: Sizes of true counts begin here.
SIZES = {"0": 0, "1-9": 1, "10-99": 10, "100-999": 100, "1000+": 1000}


@dataclass(frozen=True)
class Run:
    """One method in one setting on one table."""

    dataset: str
    setting: Setting
    method: str

    @property
    def key(self) -> tuple[str, ...]:
        """What stands in the first columns of its results."""
        return (self.dataset, self.setting.noise, str(self.setting.epsilon), self.setting.split, self.method)

    @property
    def seed(self) -> int:
        """Each run has a stream of its own."""
        return zlib.crc32(" / ".join(self.key).encode())


def runs() -> Iterator[Run]:
    """List the whole study: the three budgets split evenly, then other splits and statements, then packages."""
    for dataset in READERS:
        for noise in ("laplace", "gaussian"):
            for epsilon in EPSILONS:
                yield from (Run(dataset, Setting(noise, epsilon, "even"), method) for method in EVERYWHERE)
    yield from (Run("city", Setting("laplace", epsilon, "even"), "metropolis") for epsilon in EPSILONS)
    for dataset in MORE:
        for noise in ("laplace", "gaussian"):
            for split in list(SPLITS)[1:]:
                for method in ("given", "given, topdown", "topdown", "bluedown"):
                    yield Run(dataset, Setting(noise, 1.0, split), method)
        for epsilon in EPSILONS:
            for method in ("onto", "given, topdown", "onto, topdown", "topdown", "bluedown"):
                yield Run(dataset, Setting("gaussian by δ", epsilon, "even"), method)
    yield from (Run("city", Setting("gaussian", epsilon, "even"), "mbi") for epsilon in EPSILONS)
    yield Run("city", Setting("gaussian", 1.0, "even"), "mbi, 50,000 rounds")
    for dataset in ("city", "state"):
        for epsilon in EPSILONS:
            for method in ("given", "onto", "given, topdown", "given nonnegative", "topdown", "bluedown", "InfTDA"):
                yield Run(dataset, Setting("exact total", epsilon, "even"), method)


def repetitions(run: Run) -> int:
    """How many tables a run makes."""
    return SLOW.get((run.dataset, run.method), REPETITIONS[run.dataset])


def tables(case: Case, run: Run, size: int) -> Iterator[npt.NDArray[np.float64]]:
    """Draw the tables of a run, some at a time."""
    if run.method in accuracy_rivals.PACKAGES:
        yield from (table[None] for table in accuracy_rivals.tables(case, run.setting, run.method, size, run.seed))
        return
    mechanism, stream = run.setting.mechanism(case, run.method), hf.seeded(run.seed)
    rows = max(1, HELD // case.tree.n)
    for start in range(0, size, rows):
        yield mechanism.simulate(case.truth, min(rows, size - start), rng=stream).astype(np.float64)


def groups(case: Case) -> dict[tuple[str, str], npt.NDArray[np.int64]]:
    """The nodes of each level, all and by the size of their true count."""
    found = {}
    size = np.searchsorted(list(SIZES.values()), case.truth, side="right") - 1
    for depth, level in enumerate(case.tree.levels):
        here = case.tree.depth == depth
        found[level, "all"] = np.flatnonzero(here)
        for place, name in enumerate(SIZES):
            nodes = np.flatnonzero(here & (size == place))
            if nodes.size:
                found[level, name] = nodes
    return found


def measure(case: Case, run: Run, size: int) -> list[Result]:
    """Make the tables of a run and tell how wrong they are."""
    kinds = groups(case)
    start = time.perf_counter()
    parts = []
    for drawn in tables(case, run, size):
        noise = drawn - case.truth
        parts.append([[part[:, nodes].mean(axis=1) for nodes in kinds.values()] for part in (noise, np.abs(noise))])
    seconds = (time.perf_counter() - start) / size
    bias, error = np.concatenate(parts, axis=2)
    root = np.sqrt(size)
    return [
        Result(*run.key, level, bin_, nodes.size, size, error[i].mean(), error[i].std(ddof=1) / root,
               bias[i].mean(), bias[i].std(ddof=1) / root, seconds)
        for i, ((level, bin_), nodes) in enumerate(kinds.items())
    ]  # fmt: skip


def study(data: Path, results: Path, words: list[str], share: float) -> None:
    """Run what is not yet there and append it."""
    done = {tuple(astuple(row)[:5]) for row in accuracy_tables.read(results)}
    if not results.exists():
        with results.open("w", newline="", encoding="utf-8") as file:
            csv.writer(file).writerow([field.name for field in fields(Result)])
    case: Case | None = None
    for run in runs():
        name = " / ".join(run.key)
        if run.key in done or not all(word in name for word in words):
            continue
        if run.method in accuracy_rivals.PACKAGES and accuracy_rivals.missing(run.method):
            print(f"{name}: {accuracy_rivals.PACKAGES[run.method]} is not installed, so this is not measured")
            continue
        if case is None or case.name != run.dataset:
            case = READERS[run.dataset](data)
        try:
            rows = measure(case, run, max(2, round(repetitions(run) * share)))
        except hf.Refused as refusal:
            print(f"{name}: refused: {refusal}", flush=True)
            continue
        with results.open("a", newline="", encoding="utf-8") as file:
            csv.DictWriter(file, [field.name for field in fields(Result)]).writerows(asdict(row) for row in rows)
        errors = ", ".join(f"{row.level} {row.error:.4f} ± {row.error_se:.4f}" for row in rows if row.size == "all")
        print(f"{name}: {errors}; {rows[0].repetitions} tables of {rows[0].seconds:.4f} s", flush=True)


def main() -> int:
    options = argparse.ArgumentParser()
    options.add_argument("--data", type=Path, required=True)
    options.add_argument("--results", type=Path, required=True)
    options.add_argument("--quick", action="store_true")
    options.add_argument("--only", nargs="+", default=[])
    options.add_argument("--picture", type=Path)
    given = options.parse_args()
    study(given.data, given.results, given.only, 0.05 if given.quick else 1.0)
    found = accuracy_tables.read(given.results)
    print(accuracy_tables.report(found))
    if given.picture:
        given.picture.write_text(accuracy_tables.picture(found), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
