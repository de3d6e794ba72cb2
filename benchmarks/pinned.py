"""What exact margins give away: the ranges of all cells of large tables, and of classic contingency tables.

A 200 by 200 table with both margins exact (bar: one second); cubes of 10 by 10 by 10 cells, from nearly empty to full,
with all two-way margins exact (bar: one minute, and for every cell it is decided whether it is pinned). With
`--data FOLDER`, the tables `ct_*.csv` in it with all two-way margins exact: how many cells are pinned, and how many of
these are not 0.
"""

import argparse
import csv
import sys
import time
from itertools import combinations
from pathlib import Path

import numpy as np

import holdfast as hf
from holdfast.disclosure.pinned import Disclosure

TWO_WAY_BAR, CUBE_BAR = 1.0, 60.0
#: The widest table of a file that is looked at.
MOST_CELLS = 2_000


def ranges(table: np.ndarray, keep: list[tuple[int, ...]]) -> tuple[Disclosure, float]:
    query = hf.margins(table.shape)
    figures = hf.exact_margins(table.shape, keep)
    start = time.perf_counter()
    found = hf.pinned(query, figures, truth=table.ravel())
    return found, time.perf_counter() - start


def words(found: Disclosure, truth: np.ndarray) -> str:
    filled = int((truth.ravel()[found.pinned] > 0).sum())
    narrow = int(((found.width > 0) & (found.width <= 2)).sum())
    return (
        f"{found.pinned.size} cells pinned ({filled} of them not 0), {narrow} vary by 1 or 2, "
        f"{found.undecided.size} undecided, both ends attained in {int(found.attained.sum())}"
    )


def read(path: Path) -> np.ndarray:
    """A file with one row per cell: the counts as an array, one axis per other column."""
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    count = "Freq" if "Freq" in rows[0] else "n"
    axes = [name for name in rows[0] if name != count]
    labels = [sorted({row[name] for row in rows}) for name in axes]
    table = np.zeros([len(names) for names in labels], dtype=np.int64)
    for row in rows:
        place = tuple(names.index(row[axis]) for axis, names in zip(axes, labels, strict=True))
        table[place] += int(row[count])
    return table


def main() -> int:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--data", type=Path)
    folder = arguments.parse_args().data
    rng = np.random.default_rng(1)
    missed = False
    ranges(np.ones((2, 2, 2), dtype=np.int64), [(0, 1), (0, 2), (1, 2)])  # compiles
    table = rng.poisson(2, size=(200, 200))
    found, seconds = ranges(table, [(0,), (1,)])
    missed |= seconds > TWO_WAY_BAR
    print(f"200 by 200, both margins: {seconds:.2f} s (bar {TWO_WAY_BAR:.0f}); {words(found, table)}")
    for mean in (0.3, 1, 3, 20):
        table = rng.poisson(mean, size=(10, 10, 10))
        found, seconds = ranges(table, list(combinations(range(3), 2)))
        missed |= seconds > CUBE_BAR or found.undecided.size > 0
        print(f"10 by 10 by 10, mean {mean}: {seconds:.1f} s (bar {CUBE_BAR:.0f}); {words(found, table)}", flush=True)
    for path in [] if folder is None else sorted(folder.glob("ct_*.csv")):
        table = read(path)
        if table.size <= MOST_CELLS:
            found, seconds = ranges(table, list(combinations(range(table.ndim), 2)))
            shape = " by ".join(map(str, table.shape))
            print(f"{path.stem} ({shape}), all two-way margins: {seconds:.1f} s; {words(found, table)}", flush=True)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
